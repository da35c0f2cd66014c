#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A hostile host on the network: much garbage, and packets with one wrong field. Each packet is
counted under its reason, transfers go on with correct data, and nothing is left behind. (RT-21,
RT-24, RT-29, SYS-1)
"""

import itertools
import os
import random
import socket
import struct
import sys

from capture import icrc_tool
from e2e import (BUILD, HERE, Run, Server, Tests, Veth, Work, check, counter,
                 need_namespaces)

FLOOD = os.path.join(BUILD, 'test/e2e/flood')
PORT = 4791
ETH = 14
# Offsets from the BTH, see doc/wire.md.
OPCODE, PKEY, DST_QP, VERSION, TAG = 0, 2, 5, 12, 16
CM, RESET = 0xCA, 8

# name of the wrong field: drop counter that must increase
CHANGES = {
    'icrc': 'drop_icrc',
    'partition': 'drop_pkey',
    'cid': 'drop_cid',
    'tag': 'drop_tag',
    'source': 'drop_peer',
    'version': 'drop_version',
    'opcode': 'drop_opcode',
}
EACH = 100          # frames of each kind
GARBAGE = 50000     # broken packets to each end


def change(tool, frame, name):
    """A copy of a valid frame with one wrong field and a correct ICRC."""
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


def inject():
    """Runs in the client's namespace: copy what it sends, change the copy, and send that."""
    tool = icrc_tool()
    random.seed(1)
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw.bind(('pv0', 0))
    names = [name for name in CHANGES for _ in range(EACH)]
    while names:
        frame, address = raw.recvfrom(2048)
        # Only frames that this end sends, but not the changed copies.
        if address[2] != socket.PACKET_OUTGOING or len(frame) < 90:
            continue
        udp = ETH + (20 if frame[12:14] == b'\x08\x00' else 40)
        if struct.unpack_from('!H', frame, udp + 2)[0] != PORT or frame[udp + 8] == CM:
            continue
        raw.send(change(tool, frame, names.pop()))
    return 0


def changed(work, v6):
    """Frames with one wrong field, during a transfer."""
    link = Veth(work, 'af_packet', v6=v6)
    server = Server(link)
    injector = work.start('inject', [*link.ns['client'].exec(), sys.executable,
                                     os.path.join(HERE, 'test_hostile.py'), '--inject'])
    client = work.start('client', link.program('client', [
        '--connect', link.server_ip, '--mode', 'push', '--size', '1-9000', '--duration', '3600',
        '--verify']))
    check(injector.wait() == 0, f'nothing was sent: {injector.tail()}')
    client.signal('INT')
    check(client.wait() == 0 and 'no errors' in client.out(), client.tail())
    served = server.stop_ok()
    for name, drop in CHANGES.items():
        check(counter(served, drop) > 0, f'{name}: {drop} is 0')


def garbage(work, v6):
    """Tens of thousands of broken packets per second at both ends."""
    link = Veth(work, 'af_packet', v6=v6)
    server = Server(link)
    floods = [work.start('flood', [*link.ns[role].exec(), FLOOD, 'pv0', str(GARBAGE), str(seed)])
              for seed, role in enumerate(('client', 'server'), 1)]
    modes = itertools.cycle(('push', 'send', 'pull'))
    while any(flood.is_alive() for flood in floods):
        Run(link, ['--mode', next(modes), '--size', '1-5000', '--count', '150',
                   '--verify']).check_ok()
    for flood in floods:
        check(flood.wait() == 0, f'no flood: {flood.tail()}')
    # Afterwards everything works as before.
    Run(link, ['--mode', 'push', '--count', '500', '--verify']).check_ok()
    served = server.stop_ok()
    for name in ('drop_icrc', 'drop_short'):
        check(counter(served, name) > 0, f'{name} is 0')


def main():
    if sys.argv[1:] == ['--inject']:
        return inject()
    need_namespaces('ethtool', 'sysctl')
    tests = Tests()
    with Work() as work:
        tests.add('wrong in one thing, IPv4', changed, work, False)
        tests.add_long('wrong in one thing, IPv6', changed, work, True)
        tests.add('garbage, IPv4', garbage, work, False)
        tests.add_long('garbage, IPv6', garbage, work, True)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
