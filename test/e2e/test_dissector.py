#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every packet type, as lib/wire builds it, decoded by tshark with our dissector and by scapy.

wire_pcap writes the packets of test/wire_sample.h, and sends with the messages of
test/stream_sample.h. The expected values below are written by hand for each type, independently of
it. (RT-3, RT-24, RT-29, RT-31, PCB-5; AFC-3; ARCH-3)
"""

import json
import os
import struct
import subprocess
import sys

from capture import CHECK_ICRC, LUA, bare_tshark
from e2e import BUILD

WIRE_PCAP = os.path.join(BUILD, "test/e2e/wire_pcap")

PCAP_HEADER = 24
RECORD_HEADER = 16

# In each of our packets.
COMMON = {
    "san.bth.se": "0", "san.bth.migreq": "0", "san.bth.tver": "0", "san.bth.pkey": "0x8123",
    "san.bth.resv8a": "0x00", "san.bth.ackreq": "1", "san.bth.resv7": "0x00",
    "san.bth.psn": "0xdcba98", "san.version": "1", "san.psn_hi": "0xfe", "san.psn": "4275878552",
    "san.round": "90", "san.tag": "0xc1c2c3c4", "san.rsn": str(0xd1d2d3d4),
    "san.req_ebsn": str(0xe1e2e3e4), "san.data_ebsn": str(0xf1f2f3f4),
    "san.cmpl_rsn": str(0xb1b2b3b4), "san.tx_time": str(0xa1a2a3a4),
}
REMOTE = {"san.key": "0x91929394", "san.addr": "0x8182838485868788"}
SSN = {"san.ssn": str(0x71727374)}
ACK = {
    "san.ack.serial": str(0x11121314), "san.ack.echo_tx": str(0x21222324),
    "san.ack.echo_rx": str(0x31323334), "san.ack.ecn_count": str(0x4142),
    "san.ack.rx_level": "750", "san.ack.first_win": str(0x5152),
}
NACK = {"san.nack.psn": str(0x61626364), "san.nack.delay_us": str(0x51525)}
CM = {
    "san.cm.xid": "0x01020304", "san.cm.src_cid": "0x00111213", "san.cm.src_tag": "0x21222324",
    "san.cm.dst_cid": "0x00313233", "san.cm.dst_tag": "0x41424344",
    "san.cm.req_psn": str(0x51525354), "san.cm.data_psn": str(0x61626364),
    "san.cm.first_rsn": str(0x71727374), "san.cm.features": "0x81828380",
    "san.cm.mtu": str(0x0a0b), "san.cm.req_win": str(0x0c0d), "san.cm.data_win": str(0x0e0f),
    "san.cm.first_win": str(0x1a1b), "san.cm.max_txn": str(0x1c1d), "san.cm.rnr_ms": str(0x1e1f),
    "san.cm.keepalive_ms": str(0x2a2b), "san.cm.service": "0x9192939495969798",
    "san.bth.dcid": "0x000001", "san.payload_len": "164",
}
LAST, SEND, IMM = {"san.flags.last": "1"}, {"san.flags.kind": "1"}, {"san.flags.kind": "2"}


def payload(n, first=0):
    """The payload of the samples, in tshark's form of bytes."""
    return ":".join(f"{(i * 7 + 1) & 0xff:02x}" for i in range(first, n))


def size(length, payload_len, *dicts):
    """Transaction length (None: no such field) and payload length."""
    out = {"san.payload_len": str(payload_len)}
    if length is not None:
        out["san.length"] = str(length)
    for d in dicts:
        out.update(d)
    return out


def cm(msg, flags="0x00", reason="0"):
    """A CM message; ports and private bytes are derived from its number."""
    nb_ports, nb_private = msg % 9, msg * 8
    out = {"san.cm.msg": str(msg), "san.cm.flags": flags, "san.cm.reason": reason,
           "san.cm.nb_ports": str(nb_ports), "san.cm.private_len": str(nb_private),
           "san.cm.port": [str(0xc000 + i) for i in range(nb_ports)],
           "san.cm.private": ":".join(f"{0x40 + i:02x}" for i in range(nb_private))}
    with_cookie = int(flags, 16) & 4
    out["san.cm.cookie"] = ":".join(f"{(0xb0 + i) if with_cookie else 0:02x}" for i in range(20))
    return ("0xca", {**CM, **out})


def words(first, n, extra=0):
    return [f"0x{(first + i) | extra:016x}" for i in range(n)]


def ack(nb_req, nb_data, oow_req):
    return ("0xc7", {
        **ACK, "san.ack.nb_req": str(nb_req), "san.ack.nb_data": str(nb_data),
        "san.ack.oow_req": str(oow_req), "san.ack.oow_data": str(1 - oow_req),
        "san.ack.req": words(0x0102030405060700, nb_req),
        "san.ack.data_acked": words(0x1112131415161700, nb_data),
        "san.ack.data_rcvd": words(0x1112131415161700, nb_data, 0x8080808080808080),
        "san.payload_len": str((nb_req + 2 * nb_data) * 8)})


ATOMIC = {"san.atomic.operand": "0x01080f161d242b32", "san.atomic.swap": "0x3940474e555c636a"}
EXPECTED = {
    "push_slctd_req": ("0xc0", size(1 << 31, 0, REMOTE, SSN)),
    "push_slctd_req_send": ("0xc0", size(1, 0, REMOTE, SSN, SEND)),
    "push_slctd_req_imm": ("0xc0", size(0, 0, REMOTE, SSN, IMM)),
    "pull_req": ("0xc1", size(0x12345678, 0, REMOTE)),
    "atomic_add": ("0xc2", size(None, 16, REMOTE, ATOMIC, {"san.atomic.op": "1"})),
    "atomic_swap": ("0xc2", size(None, 16, REMOTE, ATOMIC, {"san.atomic.op": "2"})),
    "push_grnt": ("0xc3", size(None, 0, SSN, {"san.offset": "16909060", "san.status": "0"})),
    "push_grnt_rnr": ("0xc3", size(None, 0, SSN, {"san.offset": "0", "san.status": "1"})),
    "push_slctd_data": ("0xc4", size(None, 64, {
        "san.offset": "16909060", "san.flags.last": "0", "san.payload": payload(64)})),
    "push_slctd_data_last": ("0xc4", size(None, 61, LAST, {
        "san.offset": "9029", "san.bth.padcnt": "3", "san.payload": payload(61),
        "san.pad": "00:00:00"})),
    "push_slctd_data_imm": ("0xc4", size(None, 4, LAST, IMM, {
        "san.offset": "2147483648", "san.imm": payload(4)})),
    "push_unslctd_data": ("0xc5", size(0x12345678, 63, REMOTE, {
        "san.offset": "16909060", "san.bth.padcnt": "1", "san.pad": "00",
        "san.payload": payload(63)})),
    "push_unslctd_data_empty": ("0xc5", size(0, 0, REMOTE, LAST, {"san.offset": "0"})),
    "push_unslctd_data_send": ("0xc5", size(62, 62, REMOTE, LAST, SEND, {
        "san.bth.padcnt": "2", "san.pad": "00:00", "san.payload": payload(62)})),
    "push_unslctd_data_send_imm": ("0xc5", size(16, 20, REMOTE, LAST, {
        "san.flags.kind": "3", "san.imm": payload(4), "san.payload": payload(20, 4)})),
    "push_unslctd_data_imm": ("0xc5", size(16, 20, REMOTE, LAST, IMM, {
        "san.imm": payload(4), "san.payload": payload(20, 4)})),
    "pull_data": ("0xc6", size(None, 1000, {"san.offset": "16909060", "san.status": "0"})),
    "pull_data_last": ("0xc6", size(None, 1, LAST, {
        "san.offset": "0", "san.status": "0", "san.pad": "00:00:00"})),
    "pull_data_revoked": ("0xc6", size(None, 0, LAST, {"san.offset": "0", "san.status": "6"})),
    "ack_bare": ack(0, 0, 0),
    "ack_small": ack(1, 1, 1),
    "ack_full": ack(4, 16, 0),
    "nack_rnr": ("0xc8", {**NACK, "san.nack.code": "1"}),
    "nack_aborted": ("0xc8", {**NACK, "san.nack.code": "10"}),
    "nack_unpack": ("0xc8", {**NACK, "san.nack.code": "1", "san.flags.win_data": "1",
                             "san.flags.unpack": "1"}),
    "resync_req": ("0xc9", {"san.resync.code": "0", "san.flags.win_data": "0"}),
    "resync_data_abort": ("0xc9", {"san.resync.code": "1", "san.flags.win_data": "1"}),
    "cm_req": cm(1, "0x01"),
    "cm_cookie": cm(2, "0x04"),
    "cm_req_cookie": cm(1, "0x07"),
    "cm_rep": cm(3),
    "cm_rtu": cm(4),
    "cm_rej": cm(5, reason="7"),
    "cm_dreq": cm(6, reason="8"),
    "cm_drep": cm(7),
    "cm_reset": ("0xca", {"san.bth.dcid": "0x000001", "san.payload_len": "0",
                          "san.rsn": str(0xd1d2d3)}),
    "probe": ("0xcb", {"san.payload_len": "0"}),
    "probe_long": ("0xcb", {"san.payload_len": "1200"}),
    "push_packed": ("0xcc", size(None, 72, {
        "san.pack.count": "4", "san.pack.rsn": [str(0xd1d2d3d4 + i) for i in range(4)],
        "san.pack.kind": ["1", "0", "2", "3"], "san.pack.length": ["5", "8", "2", "3"],
        "san.key": ["0x91929394", "0xa1a2a3a4"],
        "san.addr": ["0x8182838485868788", "0xb1b2b3b4b5b6b7b8"], "san.imm": ["51:52:53:54", "61:62:63:64"],
        "san.payload": [payload(5), payload(8), payload(2), payload(3)],
        "san.pad": ["00:00:00", "00:00", "00"]})),
    "push_packed_empty": ("0xcc", size(None, 256, {
        "san.pack.count": "64", "san.pack.kind": ["1"] * 64, "san.pack.length": ["0"] * 64})),
    "cnp": None,  # Wireshark's own dissector
}


# In each session message.
SM = {"san.sm.version": "1", "san.sm.mode": "3", "san.sm.pr": str(0xa1a2),
      "san.sm.seq": "4294967294", "san.sm.lrsq": str(0xb1b2b3b4), "san.sm.rcvd": str(0xc1c2c3c4),
      "san.sm.freed": str(0xd1d2d3d4)}
SM_FLAGS = {
    0: "hello", 1: "wdone", 2: "adv", 3: "notice", 4: "offer", 5: "rdone", 6: "small", 7: "resize",
    8: "resized", 9: "urgent", 10: "cancel", 11: "cancelled", 16: "initial", 17: "large",
    18: "urgent_byte", 19: "fin", 20: "update", 21: "rediscover", 22: "withdraw", 23: "acceptor"}


def sm(flags, length, info, **fields):
    """A session message: flags, bytes of payload, end of the summary, and its parts."""
    out = {**SM, "san.sm.flags": f"0x{flags:08x}", "san.sm.len": str(length)}
    out.update({f"san.sm.flags.{name}": str(flags >> bit & 1) for bit, name in SM_FLAGS.items()})
    out.update({"san.sm." + key.replace("__", "."): value for key, value in fields.items()})
    if length:
        out["san.payload"] = ":".join(f"{0x41 + i:02x}" for i in range(length))
    return info, out


def segs(nb, *salts):
    """Pieces of locations, as fields."""
    every = [(salt, i) for salt in salts for i in range(nb)]
    return {"addr": [f"0x{0x8182838485868700 + 16 * s + i:016x}" for s, i in every],
            "bytes": [str(0x10200 + 16 * s + i) for s, i in every],
            "key": [f"0x{0x91929300 + 16 * s + i:08x}" for s, i in every]}


def numbers(first, n):
    return [str(first + i) for i in range(n)]


HELLO = {"hello__store": "258", "hello__advs": "772", "hello__msg_size": str(0x10506),
         "hello__threshold": str(0x20708), "hello__can_read": "1"}
START = {"send": str(0x51525354), "rest": str(0x61626364)}
RDONE = {"rdone__id": str(0x71727374), "rdone__bytes": str(0x01020304), "rdone__mode": "2"}
OTHERS = {"small": str(0x11121314), "resize": str(0x15161718), "resized__bytes": str(0x25262728),
          "resized__after": str(0x35363738), "urgent": str(0x45464748), "cancel": str(0x55565758),
          "cancelled": str(0x65666768)}


def everything(info, length, nb):
    """All parts that can be combined, with lists of *nb*, or as many as allowed."""
    nb_adv = min(nb, 4)
    return sm(0x00fb0ff7, length, info, **HELLO, **START, **RDONE, **OTHERS,
              **segs(nb_adv, *range(nb_adv), 4), wdone__id=numbers(0x21222300, nb),
              wdone__bytes=numbers(0x31323300, nb), adv__id=numbers(0x41424300, nb_adv),
              adv__after=[str(i & 1) for i in range(nb_adv)],
              count=[str(nb), str(nb_adv)] + [str(nb_adv)] * nb_adv + [str(nb_adv)])


MESSAGES = {
    "update": sm(1 << 20, 0, " UPDATE"),
    "data": sm(0, 7, " data=7"),
    "hello": sm(1, 0, " HELLO=66822", **HELLO),
    "hello_acceptor": sm(1 << 23 | 1, 0, " HELLO=66822 ACCEPTOR", **HELLO),
    "wdone": sm(2, 0, " WDONE=555885312:825373440", count="1", wdone__id=str(0x21222300),
                wdone__bytes=str(0x31323300)),
    "adv": sm(4, 0, " ADV=1094861568", count=["1", "1"], adv__id=str(0x41424300), adv__after="0",
              **segs(1, 0)),
    "notice": sm(1 << 17 | 8, 7, " NOTICE=1364349780 rest=1633837924 LARGE data=7", **START),
    "offer": sm(1 << 16 | 16, 7, " OFFER=1364349780 rest=1633837924 INITIAL data=7", count="1",
                **START, **segs(1, 4)),
    "rdone": sm(32, 0, " RDONE=1903326068:16909060", **RDONE),
    "withdraw": sm(1 << 22 | 32, 0, " RDONE=1903326068:16909060 WITHDRAW", **RDONE),
    "small": sm(64, 0, " SMALL=286397204", small=OTHERS["small"]),
    "resize": sm(128, 0, " RESIZE=353769240", resize=OTHERS["resize"]),
    "resized": sm(256, 0, " RESIZED=623257384 after=892745528",
                  resized__bytes=OTHERS["resized__bytes"], resized__after=OTHERS["resized__after"]),
    "urgent": sm(512, 0, " URGENT=1162233672", urgent=OTHERS["urgent"]),
    "urgent_byte": sm(1 << 18, 1, " URGENT_BYTE data=1"),
    "cancel": sm(1024, 0, " CANCEL=1431721816", cancel=OTHERS["cancel"]),
    "cancelled": sm(2048, 0, " CANCELLED=1701209960", cancelled=OTHERS["cancelled"]),
    "fin": sm(1 << 19 | 1 << 21, 7, " FIN REDISCOVER data=7"),
    "all": everything(" INITIAL LARGE FIN UPDATE REDISCOVER WITHDRAW ACCEPTOR data=7", 7, 2),
    "longest": everything(" INITIAL LARGE FIN UPDATE REDISCOVER WITHDRAW ACCEPTOR", 0, 8),
}


def fail(text):
    print(f"FAILED: {text}")
    sys.exit(1)


def passed(text):
    print(f"ok: {text}")


def flatten(pairs, out):
    """All fields of a packet at any depth: name → list of values."""
    for key, value in pairs:
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            out.setdefault(key, [])
            flatten(value, out)
        elif not isinstance(value, list):
            out.setdefault(key, []).append(value)
    return out


def tshark(capture, *options):
    """One dictionary of fields per frame."""
    done = subprocess.run(
        ["tshark", "-X", f"lua_script:{LUA}", "-r", capture, "-T", "json",
         # RoCEv2 has none over IPv6 either
         "-o", "udp.ignore_ipv6_zero_checksum:TRUE", *options],
        capture_output=True, text=True, check=False)
    if done.returncode != 0 or "Lua" in done.stderr:
        fail(f"tshark: {done.stderr}")
    frames = json.loads(done.stdout, object_pairs_hook=list)
    return [flatten(frame, {}) for frame in frames]


def check_frame(name, version, fields):
    where = f"{name} over IPv{version}"
    if EXPECTED[name] is None:
        if any(key.startswith("san.") for key in fields) or "infiniband.bth" not in fields:
            fail(f"{where}: not left to Wireshark's dissector: {sorted(fields)}")
        return
    opcode, want = EXPECTED[name]
    want = {"san.bth.opcode": opcode, "san.bth.dcid": "0xabcdef", **COMMON, **want}
    for key, value in want.items():
        value = value if isinstance(value, list) else [value]
        if fields.get(key, []) != value:
            fail(f"{where}: {key} is {fields.get(key)}, not {value}")
    if "san.icrc" not in fields or any("infiniband" in key for key in fields):
        fail(f"{where}: {sorted(fields)}")


def check_all(capture, listing):
    frames = tshark(capture)
    if len(frames) != len(listing):
        fail(f"{len(frames)} frames of {len(listing)}")
    seen = set()
    for (name, version), fields in zip(listing, frames):
        check_frame(name, version, fields)
        # except for the CNP, which this Wireshark does not know by name
        bad = [k for k in fields if "expert" in k or "malformed" in k.lower()]
        if bad and EXPECTED[name] is not None:
            fail(f"{name} over IPv{version}: {bad}")
        seen.add((name, version))
    if seen != {(name, v) for name in EXPECTED for v in (4, 6)}:
        fail("a packet type is missing in the capture")
    passed(f"{len(frames)} packets, every field of every type")


def changed(capture, listing, path, changes):
    """Write a capture of copies of frames of *capture*, with one byte changed in each."""
    with open(capture, "rb") as f:
        data = f.read()
    frames, pos = {}, PCAP_HEADER
    for entry in listing:
        end = pos + RECORD_HEADER + struct.unpack_from("<I", data, pos + 8)[0]
        frames.setdefault(entry, data[pos:end])
        pos = end
    with open(path, "wb") as f:
        f.write(data[:PCAP_HEADER])
        for name, version, at, value in changes:
            frame = bytearray(frames[name, version])
            frame[RECORD_HEADER + at] = value
            f.write(frame)


def check_pointed_out(capture, listing, folder, experts, first, *options):
    """Each change has its expected expert info; offsets count from *first*."""
    path = os.path.join(folder, "changed.pcap")
    changed(capture, listing, path, [(name, 4, first + at, value) for name, at, value, _ in experts])
    for (name, at, value, expert), fields in zip(experts, tshark(path, *options), strict=True):
        if f"san.expert.{expert}" not in fields:
            fail(f"{name} with byte {at} = {value}: no expert info '{expert}'")


def info_of(capture, *options):
    """The summary of each frame."""
    done = subprocess.run(
        ["tshark", "-X", f"lua_script:{LUA}", "-r", capture, "-T", "fields", "-e", "_ws.col.Info",
         *options], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def check_message(where, name, fields, info):
    end, want = MESSAGES[name]
    for key, value in want.items():
        value = value if isinstance(value, list) else [value]
        if fields.get(key, []) != value:
            fail(f"{where}: {key} is {fields.get(key)}, not {value}")
    extra = {key for key in fields if key.startswith("san.sm.")} - set(want)
    if extra - {"san.sm.flags_tree", "san.sm.flags.reserved_parts", "san.sm.flags.reserved_facts"}:
        fail(f"{where}: {extra}")
    if not info.endswith(end) or "| seq=4294967294 lrsq=2981278644 pr=41378 small then" not in info:
        fail(f"{where}: {info}")


def check_long(first, last, info):
    """A message in two packets: the parts are in the first one."""
    if first.get("san.sm.len") != ["100"] or first.get("san.sm.cancelled") != ["1701209960"]:
        fail(f"first packet of a long message: {first}")
    if len(first["san.payload"][0].split(":")) != 50 or not info[0].endswith("ACCEPTOR data=100"):
        fail(f"first packet of a long message: {first['san.payload']}, {info[0]}")
    if "san.sm.len" in last or len(last["san.payload"][0].split(":")) != 50 or "|" in info[1]:
        fail(f"last packet of a long message: {last}")


def check_packed(fields, info):
    """All shorter messages share a packet with a push, whose bytes are not changed."""
    names = [name for name in MESSAGES if name not in ("all", "longest")]
    want = [MESSAGES[name][1]["san.sm.flags"] for name in names]
    if fields["san.sm.flags"] != want or len(fields["san.payload"]) != 1 + 5:
        fail(f"packed messages: {fields['san.sm.flags']}, {fields['san.payload']}")
    if info.count("| seq=") != len(names) or not info.endswith(" FIN REDISCOVER data=7"):
        fail(f"packed messages: {info}")


def check_streams(capture, listing):
    """The dissector knows session messages from the handshake, or by a preference."""
    for options in ((), ("-o", "san.streams:TRUE")):
        frames, infos, setups, decoded = tshark(capture, *options), info_of(capture, *options), 0, 0
        for i, ((name, _), fields) in enumerate(zip(listing, frames)):
            where = f"frame {i + 1}, {name}"
            bad = [k for k in fields if "expert" in k or "malformed" in k.lower()]
            if bad:
                fail(f"{where}: {bad}")
            back = fields["san.bth.dcid"] == ["0x111213"]
            # a request without the feature, its reply, a request with it, its reply
            setups += name in ("cm_req", "cm_rep")
            stream = setups == 4 or (setups == 3 and back) or options != ()
            if fields.get("san.tag") == ["0x41424345"] and options == ():
                stream = False    # same CID, another connection
            if name in MESSAGES and stream:
                check_message(where, name, fields, infos[i])
                decoded += 1
            elif name in MESSAGES and ("san.sm.len" in fields or "|" in infos[i]):
                fail(f"{where}: is no session message")
        check_long(*frames[-3:-1], infos[-3:-1])
        check_packed(frames[-1], infos[-1])
        passed(f"{decoded} session messages {' '.join(options)}")


# Invalid bytes of session messages, over IPv4: the message begins at 102.
STREAM_EXPERTS = [
    ("data", 0, 2, "version"), ("data", 1, 4, "value"), ("data", 3, 6, "value"), ("data", 3, 8, "value"),
    ("data", 4, 0x80, "reserved"), ("data", 6, 0x10, "reserved"), ("data", 5, 0x01, "value"),
    ("data", 5, 0x04, "value"), ("data", 5, 0x40, "value"), ("data", 5, 0x80, "value"),
    ("data", 10, 1, "reserved"), ("data", 7, 0x01, "short"), ("data", 7, 0x02, "short"),
    ("update", 7, 0x02, "short"), ("update", 7, 0x40, "short"),
    ("hello", 40, 2, "value"), ("hello", 41, 1, "reserved"),
    ("wdone", 28, 0, "value"), ("wdone", 28, 2, "short"), ("wdone", 29, 1, "reserved"),
    ("longest", 28 + 16, 9, "value"), ("longest", 28 + 16 + 68, 5, "short"),
    ("adv", 28, 0, "value"), ("adv", 28, 2, "short"), ("adv", 29, 1, "reserved"),
    ("adv", 36, 0, "value"), ("adv", 36, 2, "short"), ("adv", 37, 2, "value"),
    ("adv", 38, 1, "reserved"), ("offer", 36, 0, "value"), ("offer", 36, 2, "short"),
    ("offer", 37, 1, "reserved"), ("offer", 7, 0x18, "value"), ("offer", 6, 0x01, "short"),
    ("rdone", 36, 4, "value"), ("rdone", 37, 1, "reserved"),
]


def check_stream_experts(capture, listing, folder):
    # set the preference: this capture has no handshake
    check_pointed_out(capture, listing, folder, STREAM_EXPERTS, 102, "-o", "san.streams:TRUE")
    passed(f"{len(STREAM_EXPERTS)} invalid session messages are pointed out")


# Invalid bytes over IPv4: BTH at 42, common header at 54, extended header at 82.
EXPERTS = [
    ("probe", 43, 0x01, "reserved"), ("probe", 43, 0x80, "reserved"), ("probe", 46, 0x40, "reserved"),
    ("probe", 50, 0x81, "reserved"), ("probe", 54, 0x20, "version"), ("probe", 54, 0x11, "reserved"),
    ("probe", 55, 0x40, "reserved"), ("probe", 55, 0x20, "value"), ("probe", 55, 0x01, "value"),
    ("probe", 55, 0x10, "value"),
    ("probe", 43, 0x10, "short"), ("probe", 42, 0xC0, "short"),
    ("push_slctd_req", 82, 0xc0, "value"),
    ("push_grnt", 90, 99, "value"), ("push_grnt", 91, 1, "reserved"),
    ("atomic_add", 82, 3, "value"), ("atomic_add", 83, 1, "reserved"),
    ("pull_data", 86, 11, "value"), ("pull_data", 88, 1, "reserved"),
    ("push_slctd_data_last", 86 + 62, 1, "reserved"),
    ("ack_small", 100, 0x65, "reserved"), ("ack_small", 101, 2, "short"),
    ("ack_small", 96, 0xFF, "value"),
    ("nack_rnr", 86, 0, "value"), ("nack_rnr", 87, 1, "reserved"),
    ("resync_req", 82, 2, "value"), ("resync_req", 83, 1, "reserved"),
    ("cm_req", 82, 9, "value"), ("cm_req", 83, 0x11, "reserved"), ("cm_req", 84, 11, "value"),
    ("cm_req", 82 + 64, 1, "reserved"), ("cm_req", 82 + 163, 1, "reserved"),
    ("cm_req", 82 + 98, 1, "reserved"),
    ("push_packed", 82, 3, "value"), ("push_packed", 82, 5, "value"), ("push_packed", 82, 1, "value"),
    ("push_packed_empty", 82, 65, "value"), ("push_packed", 83, 1, "reserved"),
    ("push_packed", 86, 4, "value"), ("push_packed", 87, 1, "reserved"),
    ("push_packed", 86 + 9, 1, "reserved"), ("push_packed", 86 + 39, 17, "value"),
]


def check_experts(capture, listing, folder):
    check_pointed_out(capture, listing, folder, EXPERTS, 0)
    passed(f"{len(EXPERTS)} invalid packets are pointed out")


def check_cut(capture, listing, folder):
    """A capture of the beginnings of frames, 300 times, then all frames: those decode as ever."""
    with open(capture, "rb") as f:
        data = f.read()
    starts, pos = [], PCAP_HEADER
    while pos < len(data):
        starts.append(pos)
        pos += RECORD_HEADER + struct.unpack_from("<I", data, pos + 8)[0]
    path, nb_cut = os.path.join(folder, "cut.pcap"), 0
    with open(path, "wb") as f:
        f.write(data[:PCAP_HEADER])
        for i, kept in [(i, kept) for kept in (42, 43, 53, 54, 81, 82, 90, 100) for i in range(300)]:
            # each second frame is IPv4; one of these, the CNP, is not ours
            at = starts[i * 2 % len(listing)]
            sec, usec, has, length = struct.unpack_from("<4I", data, at)
            if kept < has:
                f.write(struct.pack("<4I", sec, usec, kept, length))
                f.write(data[at + RECORD_HEADER:at + RECORD_HEADER + kept])
                nb_cut += 1
        f.write(data[PCAP_HEADER:])
    frames = tshark(path)
    if len(frames) != nb_cut + len(listing):
        fail(f"{len(frames)} frames of {nb_cut} cut ones and {len(listing)}")
    for i, fields in enumerate(frames[:nb_cut]):
        ours = "san.expert.cut" in fields
        if any("lua" in key and "error" in key for key in fields) or ("san" in fields and not ours):
            fail(f"cut frame {i}: {sorted(fields)}")
    nb_ours = sum("san.expert.cut" in fields for fields in frames[:nb_cut])
    if nb_ours < nb_cut * 3 // 4:
        fail(f"{nb_ours} of {nb_cut} cut frames are known as ours")
    for (name, version), fields in zip(listing, frames[nb_cut:]):
        check_frame(name, version, fields)
    passed(f"{nb_cut} cut frames, then all others")


def check_port(capture, listing):
    frames = tshark(capture, "-o", "san.port:4790")
    if any("san.psn" in fields for fields in frames):
        fail("the port preference is ignored")
    if not all("infiniband.bth" in fields for fields in frames[:len(listing)]):
        fail("Wireshark's dissector did not get its port back")
    passed("port preference")


def check_icrc(capture, listing, folder):
    done = subprocess.run([CHECK_ICRC, capture], capture_output=True, text=True, check=False)
    want = f"ipv4={len(listing) // 2} ipv6={len(listing) // 2} good={len(listing)} bad=0\n"
    if done.returncode != 0 or done.stdout != want:
        fail(f"check-icrc: {done.stdout}{done.stderr}")
    path = os.path.join(folder, "one.pcap")
    for version, at in ((4, 60), (6, 80)):
        changed(capture, listing, path, [("pull_data", version, at, 0x77)])
        done = subprocess.run([CHECK_ICRC, path], capture_output=True, text=True, check=False)
        if done.returncode != 1 or "bad=1" not in done.stdout:
            fail(f"check-icrc accepts a damaged packet: {done.stdout}{done.stderr}")
    with open(path, "rb") as f:
        header = f.read(PCAP_HEADER)
    with open(path, "wb") as f:
        f.write(header)
    done = subprocess.run([CHECK_ICRC, path], capture_output=True, text=True, check=False)
    if done.returncode != 1:
        fail("check-icrc is content with nothing")
    passed("ICRC, by scapy over IPv4 and by the independent computation")


def write_pcap(*args):
    """Name and IP version of each frame."""
    done = subprocess.run([WIRE_PCAP, *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"wire_pcap: {done.stderr}")
    return [(line.split()[1], int(line.split()[2])) for line in done.stdout.splitlines()]


def main():
    with bare_tshark() as folder:
        capture = os.path.join(folder, "all.pcap")
        listing = write_pcap(capture)
        check_all(capture, listing)
        check_experts(capture, listing, folder)
        check_cut(capture, listing, folder)
        check_port(capture, listing)
        check_icrc(capture, listing, folder)
        capture = os.path.join(folder, "streams.pcap")
        listing = write_pcap("--streams", capture)
        check_streams(capture, listing)
        check_stream_experts(capture, listing, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
