#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every packet type, as lib/wire builds it, before tshark with our dissector and before scapy.

wire_pcap writes the packets of test/wire_sample.h; what is expected here is written down
independently of it, by hand, per type. (RT-3, RT-24, RT-29, RT-31, PCB-5)
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

# In every packet of ours.
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
    "san.cm.first_rsn": str(0x71727374), "san.cm.features": "0x81828384",
    "san.cm.mtu": str(0x0a0b), "san.cm.req_win": str(0x0c0d), "san.cm.data_win": str(0x0e0f),
    "san.cm.first_win": str(0x1a1b), "san.cm.max_txn": str(0x1c1d), "san.cm.rnr_ms": str(0x1e1f),
    "san.cm.keepalive_ms": str(0x2a2b), "san.cm.service": "0x9192939495969798",
    "san.bth.dcid": "0x000001", "san.payload_len": "164",
}
LAST, SEND, IMM = {"san.flags.last": "1"}, {"san.flags.kind": "1"}, {"san.flags.kind": "2"}


def payload(n, first=0):
    """The payload that the samples carry, as tshark prints bytes."""
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
    """A CM message; number of ports and private bytes follow from its number."""
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
    "push_slctd_req": ("0xc0", size(1 << 30, 0, REMOTE, SSN)),
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
        "san.offset": "1073741824", "san.imm": payload(4)})),
    "push_unslctd_data": ("0xc5", size(0x12345678, 63, REMOTE, {
        "san.offset": "16909060", "san.bth.padcnt": "1", "san.pad": "00",
        "san.payload": payload(63)})),
    "push_unslctd_data_empty": ("0xc5", size(0, 0, REMOTE, LAST, {"san.offset": "0"})),
    "push_unslctd_data_send": ("0xc5", size(62, 62, REMOTE, LAST, SEND, {
        "san.bth.padcnt": "2", "san.pad": "00:00", "san.payload": payload(62)})),
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
    "cm_reset": cm(8, reason="9"),
    "probe": ("0xcb", {"san.payload_len": "0"}),
    "probe_long": ("0xcb", {"san.payload_len": "1200"}),
    "push_packed": ("0xcc", size(None, 60, {
        "san.pack.count": "3", "san.pack.rsn": [str(0xd1d2d3d4 + i) for i in range(3)],
        "san.pack.kind": ["1", "0", "2"], "san.pack.length": ["5", "8", "2"],
        "san.key": ["0x91929394", "0xa1a2a3a4"],
        "san.addr": ["0x8182838485868788", "0xb1b2b3b4b5b6b7b8"], "san.imm": "51:52:53:54",
        "san.payload": [payload(5), payload(8), payload(2)], "san.pad": ["00:00:00", "00:00"]})),
    "push_packed_empty": ("0xcc", size(None, 256, {
        "san.pack.count": "64", "san.pack.kind": ["1"] * 64, "san.pack.length": ["0"] * 64})),
    "cnp": None,  # Wireshark's own
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
         # RoCEv2 sends none over IPv6 either
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
        # CNP apart, which this Wireshark does not know by name
        bad = [k for k in fields if "expert" in k or "malformed" in k.lower()]
        if bad and EXPECTED[name] is not None:
            fail(f"{name} over IPv{version}: {bad}")
        seen.add((name, version))
    if seen != {(name, v) for name in EXPECTED for v in (4, 6)}:
        fail("a packet type is missing in the capture")
    passed(f"{len(frames)} packets, every field of every type")


def changed(capture, listing, path, name, version, at, value):
    """Copy of one frame of *capture* with a byte changed, as a capture of its own."""
    with open(capture, "rb") as f:
        data = f.read()
    pos = PCAP_HEADER
    for entry in listing:
        length = struct.unpack_from("<I", data, pos + 8)[0]
        if entry == (name, version):
            frame = bytearray(data[pos:pos + RECORD_HEADER + length])
            frame[RECORD_HEADER + at] = value
            with open(path, "wb") as f:
                f.write(data[:PCAP_HEADER] + frame)
            return
        pos += RECORD_HEADER + length
    fail(f"no {name}")


# Bytes that must not be as they are, over IPv4: BTH at 42, common header at 54, extended at 82.
EXPERTS = [
    ("probe", 43, 0x01, "reserved"), ("probe", 43, 0x80, "reserved"), ("probe", 46, 0x40, "reserved"),
    ("probe", 50, 0x81, "reserved"), ("probe", 54, 0x20, "version"), ("probe", 54, 0x11, "reserved"),
    ("probe", 55, 0x20, "reserved"), ("probe", 55, 0x01, "value"), ("probe", 55, 0x10, "value"),
    ("probe", 43, 0x10, "short"), ("probe", 42, 0xC0, "short"),
    ("push_slctd_req", 55, 0x0C, "value"), ("push_slctd_req", 82, 0x80, "value"),
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
    ("push_packed", 82, 2, "value"), ("push_packed", 82, 4, "value"), ("push_packed", 82, 1, "value"),
    ("push_packed_empty", 82, 65, "value"), ("push_packed", 83, 1, "reserved"),
    ("push_packed", 86, 3, "value"), ("push_packed", 87, 1, "reserved"),
    ("push_packed", 86 + 9, 1, "reserved"), ("push_packed", 86 + 39, 5, "value"),
]


def check_experts(capture, listing, folder):
    path = os.path.join(folder, "one.pcap")
    for name, at, value, expert in EXPERTS:
        changed(capture, listing, path, name, 4, at, value)
        if f"san.expert.{expert}" not in tshark(path)[0]:
            fail(f"{name} with byte {at} = {value}: no expert info '{expert}'")
    passed(f"{len(EXPERTS)} invalid packets are pointed out")


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
        changed(capture, listing, path, "pull_data", version, at, 0x77)
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


def main():
    with bare_tshark() as folder:
        capture = os.path.join(folder, "all.pcap")
        done = subprocess.run([WIRE_PCAP, capture], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(f"wire_pcap: {done.stderr}")
        listing = [(line.split()[1], int(line.split()[2])) for line in done.stdout.splitlines()]
        check_all(capture, listing)
        check_experts(capture, listing, folder)
        check_port(capture, listing)
        check_icrc(capture, listing, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
