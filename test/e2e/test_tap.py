#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""TAP: two net_tap ports, bridged by the kernel in a namespace. (SYS-1, SYS-3)"""

import os
import sys

from daemon import connected
from e2e import (SANITIZE, Link, Namespace, Run, Server, Tests, Work, check, counter, cpus,
                 need_namespaces, skip)

FEW = 4 if SANITIZE else 1


class Tap(Link):
    """The program of each side creates its device; a bridge connects the two."""

    def __init__(self, work):
        super().__init__(work)
        self.ns = Namespace(work)
        self.ns.run('ip', 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0',
                    'mcast_snooping', '0')
        self.ns.run('ip', 'link', 'set', 'br0', 'up')
        # Adds each of our devices to the bridge as soon as it exists.
        self.joiner = work.start('joiner', [*self.ns.exec(), 'bash', '-c', JOIN])

    def wrap(self, role):
        return self.ns.exec()

    def vdev(self, role):
        mac = '01' if role == 'server' else '02'
        return f'--vdev=net_tap0,iface=t{role},mac=02:00:00:00:78:{mac}'


JOIN = '''
while sleep 0.05; do
    for dev in tserver tclient; do
        state=$(ip -o link show dev $dev 2>/dev/null) || continue
        # The kernel's device gets the address of our port, and a bridge keeps what is for
        # the addresses of its own ports: it must have another one.
        case $state in
        *02:00:00:00:78:*) ip link set $dev address 02:00:00:00:79:$((RANDOM % 80 + 10)) ;;
        esac
        case $state in
        *' master br0 '*) ;;
        *) ip link set $dev master br0 up ;;
        esac
    done
done
'''


def modes(work):
    link = Tap(work)
    server = Server(link)
    for own in (['--mode', 'send'], ['--mode', 'push', '--solicit', 'always'],
                ['--mode', 'push', '--order', 'unordered'], ['--mode', 'pull'],
                ['--mode', 'incast', '--conns', '4']):
        Run(link, [*own, '--size', '1-20000', '--count', str(200 // FEW), '--verify']).check_ok()
    result = Run(link, ['--mode', 'atomic', '--count', str(200 // FEW), '--verify']).check_ok()
    check(counter(result, 'atomics') > 0, 'no atomics')
    server.stop_ok()


def bad_link(work):
    link = Tap(work)
    extra = ['--impair', 'drop=0.05,dup=0.01,reorder=0.05,seed=6']
    server = Server(link, extra)
    result = Run(link, ['--mode', 'push', '--size', '1-20000', '--count', str(300 // FEW),
                        '--verify', *extra]).check_ok()
    check(counter(result, 'rtx') > 0, 'nothing was sent again')
    server.stop_ok()


def interrupts(work):
    """Lcores sleep until the port has packets, and no longer. Nothing else wakes them for a tenth
    of a second, so a round trip would take that long if an interrupt were missing."""
    link = Tap(work)
    specs = {}
    for role, ip in (('server', link.server_ip), ('client', link.client_ip)):
        eal = ' '.join(work.eal(0, link.vdev(role), 256, f'(0-1)@{cpus()[0]}'))
        specs[role] = f'dpdk:{eal} -- ip={ip}/24 conns=16 poll=lcore idle=interrupt'
    server, client = connected(work, list(specs.values()), rounds='300', peer=link.server_ip,
                               wrap=link.wrap('server'))
    check(client.wait() == 0, f'{client.tail()} {server.tail()}')
    check(server.wait() == 0, server.tail())
    each_us = float(client.out().split(',')[1].split()[0])
    print(f'# {each_us} us for a round trip')
    check(each_us < 80000, f'{each_us} us for a round trip: nothing woke the lcores')


def main():
    need_namespaces('sysctl')
    if not os.path.exists('/dev/net/tun'):
        skip('there is no /dev/net/tun')
    tests = Tests()
    with Work() as work:
        tests.add('every mode', modes, work)
        tests.add_long('bad link', bad_link, work)
        tests.add('interrupts', interrupts, work)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
