#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A pcapng file of the simulator, read by tshark and scapy.

sim_pcapng writes it; its expected packets are written down here independently.
"""

import logging
import os
import subprocess
import sys

from capture import bare_tshark
from e2e import BUILD
from scapy.utils import RawPcapNgReader

SIM_PCAPNG = os.path.join(BUILD, "test/e2e/sim_pcapng")

H0, LEAF1 = ("0", "h0"), ("1", "leaf1 port 3")
IN, OUT = "0x00000001", "0x00000002"
FIELDS = ["frame.time_epoch", "frame.interface_id", "frame.interface_name",
          "frame.packet_flags_direction", "frame.len", "frame.cap_len", "frame.comment"]
EXPECTED = [
    ("0.000000000", *H0, OUT, "60", "60", ""),
    ("0.000000001", *LEAF1, IN, "61", "61", "dropped: queue full"),
    ("0.999999999", *H0, IN, "62", "62", ""),
    ("1.000000000", *LEAF1, OUT, "63", "63", ""),
    ("4.294967295", *H0, OUT, "1514", "1514", ""),
    ("4.294967296", *LEAF1, OUT, "1514", "1514", "marked: 100 % of 32 KiB, été"),
    ("86400.000000001", *H0, IN, "9014", "9014", ""),
    ("1234.567890123", *H0, OUT, "65535", "65535", ""),
]


def fail(text):
    print(f"FAIL: {text}")
    sys.exit(1)


def run(*command):
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        fail(f"{command}: {done.stderr}")
    return done.stdout


def check_fields(path):
    command = ["tshark", "-r", path, "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    rows = [tuple(line.split("\t")) for line in run(*command).splitlines()]
    if len(rows) != len(EXPECTED):
        fail(f"{len(rows)} packets, not {len(EXPECTED)}")
    for number, (row, expected) in enumerate(zip(rows, EXPECTED), 1):
        if row != expected:
            fail(f"packet {number}: {row}, not {expected}")


def check_bytes(path):
    # It warns about a comment without a newline.
    logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
    packets = [data for data, _ in RawPcapNgReader(path)]
    for number, (data, expected) in enumerate(zip(packets, EXPECTED, strict=True), 1):
        if data != bytes(i & 0xff for i in range(int(expected[5]))):
            fail(f"packet {number}: not the bytes that were written")


def main():
    with bare_tshark() as folder:
        path, again = os.path.join(folder, "a.pcapng"), os.path.join(folder, "b.pcapng")
        run(SIM_PCAPNG, path)
        check_fields(path)
        check_bytes(path)
        run(SIM_PCAPNG, again)
        with open(path, "rb") as first, open(again, "rb") as second:
            if first.read() != second.read():
                fail("twice the same calls, not the same file")
    print("ok: times, interfaces, directions, lengths, comments, bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
