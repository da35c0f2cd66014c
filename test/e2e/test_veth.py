#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernel devices: af_packet and af_xdp on a veth pair between two namespaces, IPv4 and IPv6,
captured by tshark. Every packet decodes, every ICRC is correct. (SYS-1, SYS-3, RT-31)
"""

import sys

import capture
from capture import Watch, check_decodes, check_icrc, fields
from e2e import (SANITIZE, Namespace, Run, Server, Tests, Veth, Work, check, counter,
                 need_namespaces, sh)

FEW = 4 if SANITIZE else 1
RUNS = [
    ['--mode', 'send', '--size', '8-9000', '--count', '150'],
    ['--mode', 'push', '--size', '1-30000', '--count', '100', '--solicit', 'always'],
    ['--mode', 'push', '--size', '1-30000', '--count', '100', '--imm', '--order', 'unordered'],
    ['--mode', 'pull', '--size', '1-20000', '--count', '100'],
    ['--mode', 'atomic', '--count', '300'],
    ['--mode', 'incast', '--conns', '6', '--size', '16000', '--count', '24'],
]
EVERY = {capture.PUSH_SLCTD_REQ, capture.PULL_REQ, capture.ATOMIC_REQ, capture.PUSH_GRNT,
         capture.PUSH_SLCTD_DATA, capture.PUSH_UNSLCTD_DATA, capture.PULL_DATA, capture.ACK,
         capture.CM}


def need_xdp():
    """Why af_xdp can't be tested, or None."""
    with Work() as work:
        ns = Namespace(work)
        program = ('import socket\n'
                   'try:\n    socket.socket(44, socket.SOCK_RAW, 0)\n'
                   'except OSError as e:\n    print(e)')
        return ns.run('/usr/bin/python3', '-c', program).strip() or None


def run_all(link, extra=()):
    results = []
    for own in RUNS:
        own = list(own)
        at = own.index('--count') + 1
        own[at] = str(max(int(own[at]) // FEW, 24))
        results.append(Run(link, [*own, '--verify', *extra]).check_ok())
    return results


def drivers(work, server_driver, client_driver, v6):
    """All modes over one pair, captured where the kernel sees packets of both directions."""
    link = Veth(work, server_driver, client_driver, v6)
    # Frames of af_xdp never pass the taps of their own namespace.
    watched = link.ns['server' if server_driver == 'af_packet' else 'client']
    with Watch(work, watched, f'{server_driver}-{client_driver}-{v6}') as watch:
        server = Server(link)
        run_all(link)
        server.stop_ok()
    found = check_decodes(watch.path)
    missing = EVERY - set(found)
    check(not missing, f'never on the wire: {[hex(op) for op in missing]}')
    check(f'ipv{6 if v6 else 4}={sum(found.values())} ' in check_icrc(watch.path),
          'packets of another version of IP')


def both_xdp(work, v6):
    """af_xdp at both ends: no kernel tap sees these frames, but our own capture does."""
    link = Veth(work, 'af_xdp', v6=v6)
    server = Server(link)
    for i, own in enumerate(RUNS[:4]):
        path = work.path(f'own-{v6}-{i}.pcapng')
        result = Run(link, [*own, '--verify', '--capture', path]).check_ok()
        found = check_decodes(path)
        total = counter(result, 'rx_pkts') + counter(result, 'tx_pkts')
        check(sum(found.values()) <= total, f'{sum(found.values())} packets of {total}')
        check_icrc(path)
    server.stop_ok()


def bad_link(work, driver):
    """Impaired at both ends: retransmitted and refused packets decode as well."""
    link = Veth(work, driver)
    wanted = {capture.NACK, capture.RESYNC, capture.PROBE}
    for seed in range(8, 12):           # it depends on timing which of them a run causes
        extra = ['--impair', f'drop=0.03,dup=0.02,reorder=0.05,seed={seed}']
        with Watch(work, link.ns['server'], f'bad-{driver}-{seed}') as watch:
            server = Server(link, [*extra, '--rq', '2'])
            results = run_all(link, extra)
            server.stop_ok()
        check(sum(counter(r, 'rtx') for r in results) > 0, 'nothing was sent again')
        wanted -= set(check_decodes(watch.path))
        check_icrc(watch.path)
        if not wanted:
            return
    check(False, f'never on the wire: {[hex(op) for op in wanted]}')


def corrupted(work):
    """Proof of the check: corrupt packets are detected on the wire, and refused by the stack."""
    link = Veth(work, 'af_packet')
    with Watch(work, link.ns['server'], 'corrupt') as watch:
        server = Server(link)
        Run(link, ['--mode', 'push', '--size', '5000', '--count', '400', '--verify', '--impair',
                   'tx:corrupt=0.1,seed=2']).check_ok()
        served = server.stop()[1]
    check(counter(served, 'drop_icrc') > 0, 'no packet was refused for its ICRC')
    check_icrc(watch.path, expected=False)


def jumbo_vdev(_):
    # This PMD has no segments: a frame must fit one mbuf. Frames must fill their blocks to the last
    # byte, and blocks are whole pages: 32 frames in 71 pages.
    return '--vdev=net_af_packet0,iface=pv0,qdisc_bypass=0,framesz=9088,blocksz=290816'


def jumbo(work):
    """Frames of 9000 bytes (RT-31)."""
    link = Veth(work, 'af_packet')
    for ns in link.ns.values():
        ns.run('ip', 'link', 'set', 'pv0', 'mtu', '9000')
    link.vdev = jumbo_vdev
    with Watch(work, link.ns['server'], 'jumbo') as watch:
        server = Server(link)
        Run(link, ['--mode', 'push', '--size', '100000', '--count', '100', '--verify']).check_ok()
        server.stop_ok()
    longest = max(int(n) for (n,) in fields(watch.path, 'frame.len'))
    check(8900 < longest <= 9014, f'the longest frame has {longest} bytes')
    check_decodes(watch.path)
    check_icrc(watch.path)


def refused(work):
    """Neither the driver's frames nor the kernel's device support an MTU of 9000 (RT-31)."""
    link = Veth(work, 'af_packet')
    for vdev, says in ((link.vdev, 'framesz='), (jumbo_vdev, 'ip link set')):
        link.vdev = vdev
        run = Run(link, ['--mode', 'push', '--set', 'mtu=9000'])
        check(run.status != 0 and says in run.err, f'{run.status}: {run.err}')


class Narrow(Veth):
    """Both ends with 9000 bytes, each on a bridge; a link of 1500 between the bridges."""

    def __init__(self, work):
        super().__init__(work, 'af_packet')
        self.ns['server'].run('ip', 'link', 'del', 'pv0')
        mid = self.mid = Namespace(work)
        mid.run('ip', 'link', 'add', 'to-server', 'mtu', '1500', 'type', 'veth', 'peer', 'name',
                'to-client', 'mtu', '1500')
        for (role, ns), trunk in zip(self.ns.items(), ('to-client', 'to-server')):
            ns.run('ip', 'link', 'add', 'pv0', 'mtu', '9000', 'type', 'veth', 'peer', 'name', role,
                   'mtu', '9000', 'netns', mid.pid)
            ns.run('ip', 'link', 'set', 'pv0', 'up')
            ns.run('ethtool', '-K', 'pv0', 'tx', 'off', 'gso', 'off', 'tso', 'off')
            mid.run('ip', 'link', 'add', f'br-{role}', 'type', 'bridge')
            for port in (role, trunk):
                mid.run('ip', 'link', 'set', port, 'master', f'br-{role}', 'up')
            mid.run('ip', 'link', 'set', f'br-{role}', 'up')

    vdev = staticmethod(jumbo_vdev)


def narrow(work):
    """Both ends have 9000 bytes, and the path between them has less: it is detected (RT-31)."""
    link = Narrow(work)
    with Watch(work, link.ns['client'], 'narrow') as watch:
        server = Server(link)
        result = Run(link, ['--mode', 'push', '--size', '100000', '--count', '100', '--verify']).check_ok()
        server.stop_ok()
    check(counter(result, 'mtu_raised') == 0, 'the bridge took a long packet')
    rows = [(int(n), int(op, 0)) for n, op in fields(watch.path, 'frame.len', 'san.bth.opcode')]
    long = [op for n, op in rows if n > 1514]
    check(len(long) >= 3, f'{len(long)} long packets')
    check(set(long) == {capture.PROBE}, f'long packets that are no probes: {set(long)}')
    # Without probing the sender does not search for longer packets, but still learns from losses
    # that these are too long, and sends shorter ones (RT-37).
    off = ['--set', 'pmtu=0']
    server = Server(link, off)
    result = Run(link, ['--mode', 'push', '--size', '100000', '--count', '10', '--verify',
                        *off]).check_ok()
    check(counter(result, 'mtu_lowered') > 0, 'no packet was found too long')
    server.stop_ok()


# Sends ARP requests in another VLAN, without one, and in ours (1), each as another host, in that
# order; prints host and VLAN of each answer up to the last one.
ASK = '''
import socket, struct, sys
SOL_PACKET, PACKET_AUXDATA, ARP = 263, 8, b'\\x08\\x06'
vid, theirs = int(sys.argv[1]), socket.inet_aton(sys.argv[2])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(('pv0', 0))
s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
mac = s.getsockname()[4]
for vlan, host in ((vid + 1, '10.77.0.8'), (0, '10.77.0.9'), (vid, '10.77.0.2')):
    tag = struct.pack('>HH', 0x8100, vlan) if vlan else b''
    ours = socket.inet_aton(host)
    body = struct.pack('>HHBBH', 1, 0x800, 6, 4, 1) + mac + ours + bytes(6) + theirs
    s.send((b'\\xff' * 6 + mac + tag + ARP + body).ljust(60, b'\\0'))
to = None
while to != ours:
    data, aux, _, _ = s.recvmsg(2000, 100)
    if data[12:14] == ARP and data[20:22] == b'\\0\\x02' and data[28:32] == theirs:
        to = data[38:42]
        print(socket.inet_ntoa(to), struct.unpack_from('HH', aux[0][2], 16)[0])
'''


def vlan(work):
    """Both ends in a VLAN. Packets of another one, or without one, are dropped."""
    link = Veth(work, 'af_packet')
    own = ['--set', 'vlan=7']
    server = Server(link, own)
    Run(link, ['--mode', 'push', '--size', '1-30000', '--count', '100', '--verify',
               *own]).check_ok()
    got = link.ns['client'].run('/usr/bin/python3', '-c', ASK, '7', link.server_ip)
    check(got == f'{link.client_ip} 7\n', f'answered are {got}')
    served = server.stop_ok()
    check(counter(served, 'drop_vlan') > 0, 'nothing of another VLAN was dropped')


def main():
    need_namespaces('ethtool', 'tshark', 'sysctl')
    sh('tshark', '--version')
    no_xdp = need_xdp()
    tests = Tests()
    with Work() as work:
        for v6 in (False, True):
            version = 'IPv6' if v6 else 'IPv4'
            # test_wire_* and test_dissector check the bytes of IPv6 over the same driver
            add = tests.add_long if v6 else tests.add
            add(f'af_packet, {version}', drivers, work, 'af_packet', 'af_packet', v6)
            if no_xdp:
                print(f'# af_xdp left out: {no_xdp}')
                continue
            tests.add_long(f'af_xdp server, {version}', drivers, work, 'af_xdp', 'af_packet', v6)
            if not v6:
                tests.add_long(f'af_xdp client, {version}', drivers, work, 'af_packet', 'af_xdp',
                               v6)
                tests.add_long('af_xdp at both ends', both_xdp, work, v6)
        tests.add_long('bad link', bad_link, work, 'af_packet')
        tests.add('corruption is seen', corrupted, work)
        tests.add('jumbo frames', jumbo, work)
        tests.add('an MTU that the port has not', refused, work)
        tests.add_long('narrow path', narrow, work)
        tests.add_long('in a VLAN', vlan, work)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
