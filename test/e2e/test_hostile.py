#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Somebody else on the wire: garbage at the rate of the link, and packets that are right
but for one thing. Each is counted under its reason; transfers go on, verified, and nothing
is left behind. (RT-21, RT-24, RT-29, SYS-1)
"""

import os
import random
import select
import socket
import struct
import sys
import time

from capture import icrc_tool
from e2e import (BUILD, HERE, SANITIZE, Run, Server, Tests, Veth, Work, check, counter,
                 need_namespaces)

FLOOD = os.path.join(BUILD, 'test/e2e/flood')
PORT = 4791
ETH = 14
# Offsets from the BTH, see doc/wire.md.
OPCODE, PKEY, DST_QP, VERSION, TAG = 0, 2, 5, 12, 16
CM, RESET = 0xCA, 8

# name: (how the frame is changed, drop counter that must move)
CHANGES = {
    'icrc': 'drop_icrc',
    'partition': 'drop_pkey',
    'cid': 'drop_cid',
    'tag': 'drop_tag',
    'source': 'drop_peer',
    'version': 'drop_version',
    'opcode': 'drop_opcode',
}


def change(tool, frame, name):
    """A copy of a good frame that is wrong in one way, with an ICRC that is right."""
    f = bytearray(frame)
    version = 4 if f[12:14] == b'\x08\x00' else 6
    udp = 20 if version == 4 else 40
    bth = ETH + udp + 8
    if name == 'partition':
        f[bth + PKEY:bth + PKEY + 2] = b'\x12\x34'
    elif name == 'cid':
        f[bth + DST_QP:bth + DST_QP + 3] = random.randbytes(3)
    elif name == 'tag':
        f[bth + TAG:bth + TAG + 4] = random.randbytes(4)
    elif name == 'version':
        f[bth + VERSION] = 0xF0
    elif name == 'opcode':
        f[bth + OPCODE] = 0xEE
    elif name == 'source':
        f[ETH + 15 if version == 4 else ETH + 23] ^= 0x40
        if version == 4:
            f[ETH + 10:ETH + 12] = b'\0\0'
            total = sum(struct.unpack('!10H', f[ETH:ETH + 20]))
            total = (total & 0xFFFF) + (total >> 16)
            total = (total & 0xFFFF) + (total >> 16)
            f[ETH + 10:ETH + 12] = struct.pack('!H', ~total & 0xFFFF)
    f[-4:] = tool.icrc(bytes(f[ETH:]), version, udp)
    if name == 'icrc':
        f[-1 - random.randrange(4)] ^= 1 << random.randrange(8)
    return bytes(f)


def inject(name, seconds):
    """In the client's namespace: change what it sends, and send that, too."""
    tool = icrc_tool()
    random.seed(name)
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw.bind(('pv0', 0))
    until, sent = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        if not select.select([raw], [], [], 0.1)[0]:
            continue
        frame, address = raw.recvfrom(2048)
        # Only what our side sends, and never what we have sent ourselves.
        if address[2] != socket.PACKET_OUTGOING or len(frame) < 90:
            continue
        udp = ETH + (20 if frame[12:14] == b'\x08\x00' else 40)
        if struct.unpack_from('!H', frame, udp + 2)[0] != PORT or frame[udp + 8] == CM:
            continue
        raw.send(change(tool, frame, name))
        sent += 1
    print(sent)
    return 0 if sent else 1


def traffic(link, seconds):
    return Run(link, ['--mode', 'push', '--size', '1-9000', '--duration', str(seconds), '--verify'],
               90).check_ok()


def changed(work, v6, names):
    """Frames that are right but for one thing, while a transfer runs."""
    link = Veth(work, 'af_packet', v6=v6)
    for name in names:
        server = Server(link)
        injector = work.start('inject', [*link.ns['client'].exec(), sys.executable,
                                         os.path.join(HERE, 'test_hostile.py'), '--inject', name,
                                         '4'])
        traffic(link, 2)
        check(injector.wait(20) == 0, f'{name}: nothing was sent: {injector.tail()}')
        served = server.stop_ok()
        check(counter(served, CHANGES[name]) > 0, f'{name}: {CHANGES[name]} is 0')


def garbage(work, v6):
    """Tens of thousands of broken packets a second, at both ends."""
    link = Veth(work, 'af_packet', v6=v6)
    server = Server(link)
    floods = [work.start('flood', [*link.ns[role].exec(), FLOOD, 'pv0', '6', str(seed)])
              for seed, role in enumerate(('client', 'server'), 1)]
    for mode in ('push', 'send', 'pull'):
        Run(link, ['--mode', mode, '--size', '1-5000', '--count', '150', '--verify'], 90).check_ok()
    for flood in floods:
        check(flood.wait(30) == 0, f'no flood: {flood.tail()}')
    sent = sum(int(flood.out()) for flood in floods)
    check(sent > (2000 if SANITIZE else 20000), f'only {sent} broken packets')
    # Afterwards everything is as before.
    Run(link, ['--mode', 'push', '--count', '500', '--verify'], 60).check_ok()
    served = server.stop_ok()
    for name in ('drop_icrc', 'drop_short'):
        check(counter(served, name) > 0, f'{name} is 0')
    print(f'# {sent} broken packets')


def main():
    if len(sys.argv) == 4 and sys.argv[1] == '--inject':
        return inject(sys.argv[2], float(sys.argv[3]))
    need_namespaces('ethtool', 'sysctl')
    tests = Tests(300)
    with Work() as work:
        tests.add('wrong in one thing, IPv4', changed, work, False, list(CHANGES))
        tests.add('wrong in one thing, IPv6', changed, work, True, ['icrc', 'tag', 'source'])
        tests.add('garbage, IPv4', garbage, work, False)
        tests.add('garbage, IPv6', garbage, work, True)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
