#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the ICRC of every RoCEv2 packet in captures.

IPv4 packets are judged by scapy's RoCE layer and by the computation below, IPv6
packets (which scapy cannot do) by the latter alone. Exit status 1 on any mismatch,
on a packet that the capture holds only in part, and if there is nothing to check.
"""

import argparse
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.error import Scapy_Exception
from scapy.layers.inet import IP, UDP
from scapy.packet import bind_layers
from scapy.utils import RawPcapReader

PORT = 4791
# link type: offset of the EtherType, offset of the IP header
LINKS = {1: (12, 14), 113: (14, 16), 276: (0, 20)}
ETH_IPV4, ETH_IPV6 = 0x0800, 0x86DD
UDP_LEN, BTH_LEN, ICRC_LEN = 8, 12, 4


class Malformed(Exception):
    """The packet is cut off or its lengths contradict each other."""


def ip_packet(frame, link):
    """The bytes from the IP header on, without link padding; None if it is not IP."""
    if link not in LINKS:
        raise SystemExit(f"check-icrc: link type {link} is not supported")
    type_at, ip_at = LINKS[link]
    ip = frame[ip_at:]
    if len(ip) < 20:
        return None, 0
    ethertype = struct.unpack_from("!H", frame, type_at)[0]
    if ethertype == ETH_IPV4 and ip[0] >> 4 == 4:
        return ip[:struct.unpack_from("!H", ip, 2)[0]], 4
    if ethertype == ETH_IPV6 and ip[0] >> 4 == 6 and len(ip) >= 40:
        return ip[:40 + struct.unpack_from("!H", ip, 4)[0]], 6
    return None, 0


def udp_at(ip, version):
    """Offset of the UDP header, or None if there is none."""
    if version == 6:
        return 40 if ip[6] == 17 else None
    fragment = struct.unpack_from("!H", ip, 6)[0] & 0x3FFF
    return (ip[0] & 15) * 4 if ip[9] == 17 and not fragment else None


def masked(ip, version, udp):
    """What the ICRC covers: all that no router changes, the rest as ones."""
    data = bytearray(ip[:-ICRC_LEN])
    if version == 4:
        variant = [1, 8, 10, 11]
    else:
        variant = [1, 2, 3, 7]
        data[0] |= 0x0F
    # UDP checksum, BTH resv8a
    for at in variant + [udp + 6, udp + 7, udp + UDP_LEN + 4]:
        data[at] = 0xFF
    return bytes(data)


def icrc(ip, version, udp):
    """The ICRC as the four bytes on the wire; eight bytes of ones stand for the LRH."""
    crc = zlib.crc32(b"\xff" * 8 + masked(ip, version, udp))
    return struct.pack("<I", crc)


def scapy_icrc(ip):
    """scapy's opinion of an IPv4 packet: (in the packet, computed)."""
    bth = IP(ip)[BTH]
    return struct.pack("!I", bth.icrc), bth.compute_icrc(b"")


def check(ip, version, udp):
    """A text if the ICRC is wrong, else None."""
    udp_len = struct.unpack_from("!H", ip, udp + 4)[0]
    if udp + udp_len != len(ip) or udp_len < UDP_LEN + BTH_LEN + ICRC_LEN:
        raise Malformed
    found, want = ip[-ICRC_LEN:], icrc(ip, version, udp)
    if found != want:
        return f"ICRC {found.hex()}, computed {want.hex()}"
    if version == 4:
        found, want = scapy_icrc(ip)
        if found != want:
            return f"ICRC {found.hex()}, scapy computes {want.hex()}"
    return None


def packets(path):
    """(number, link type, bytes) of every packet of a pcap or pcapng file."""
    reader = RawPcapReader(path)
    try:
        for number, (data, meta) in enumerate(reader, 1):
            # pcapng has one per interface
            link = getattr(meta, "linktype", None)
            yield number, reader.linktype if link is None else link, data
    finally:
        reader.close()


def check_file(path, port, count):
    for number, link, frame in packets(path):
        ip, version = ip_packet(frame, link)
        udp = udp_at(ip, version) if ip else None
        if udp is None or len(ip) < udp + UDP_LEN:
            continue
        if struct.unpack_from("!H", ip, udp + 2)[0] != port:
            continue
        count[f"ipv{version}"] += 1
        try:
            error = check(ip, version, udp)
        except Malformed:
            error = "cut off, or lengths that do not agree"
        if error:
            count["bad"] += 1
            print(f"{path}: frame {number}: opcode 0x{ip[udp + 8:udp + 9].hex()}: {error}")
        else:
            count["good"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("capture", nargs="+", help="pcap or pcapng file")
    parser.add_argument("--port", type=int, default=PORT, help="UDP destination port")
    args = parser.parse_args()
    if args.port != PORT:
        bind_layers(UDP, BTH, dport=args.port)

    count = {"ipv4": 0, "ipv6": 0, "good": 0, "bad": 0}
    for path in args.capture:
        try:
            check_file(path, args.port, count)
        except (OSError, Scapy_Exception, EOFError) as error:
            print(f"check-icrc: {path}: {error}", file=sys.stderr)
            return 1
    print(" ".join(f"{key}={value}" for key, value in count.items()))
    return 1 if count["bad"] or not count["good"] else 0


if __name__ == "__main__":
    sys.exit(main())
