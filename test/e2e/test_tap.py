#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Over TAP: two net_tap ports, bridged by the kernel in a namespace. (SYS-1, SYS-3)"""

import os
import sys
import time

from e2e import (BUILD, SANITIZE, SLOW, Link, Namespace, Process, Run, Server, Tests, Work, check,
                 counter, cpus, need_namespaces, skip)

PINGPONG = os.path.join(BUILD, 'examples/pingpong')

FEW = 4 if SANITIZE else 1


class Tap(Link):
    """The device of each side is made when its program starts; a bridge takes them in."""

    def __init__(self, work):
        super().__init__(work)
        self.ns = Namespace(work)
        self.ns.run('ip', 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0',
                    'mcast_snooping', '0')
        self.ns.run('ip', 'link', 'set', 'br0', 'up')
        # Takes in each device of ours as soon as it is there.
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
        Run(link, [*own, '--size', '1-20000', '--count', str(200 // FEW), '--verify'],
            90).check_ok()
    result = Run(link, ['--mode', 'atomic', '--count', str(200 // FEW), '--verify'], 90).check_ok()
    check(counter(result, 'atomics') > 0, 'no atomics')
    served = server.stop_ok()


def bad_link(work):
    link = Tap(work)
    extra = ['--impair', 'drop=0.05,dup=0.01,reorder=0.05,seed=6']
    server = Server(link, extra)
    result = Run(link, ['--mode', 'push', '--size', '1-20000', '--count', str(300 // FEW),
                        '--verify', *extra], 90).check_ok()
    check(counter(result, 'rtx') > 0, 'nothing was sent again')
    served = server.stop_ok()


def interrupts(work):
    """Lcores that sleep until the port says that packets came, not longer; nothing else wakes
    them for a tenth of a second."""
    link = Tap(work)
    specs = {}
    for role, ip, cpu in (('server', link.server_ip, cpus()[0]), ('client', link.client_ip, cpus()[1])):
        eal = ' '.join(work.eal(0, link.vdev(role), 256, f'0@{cpu},1@{cpu}'))
        specs[role] = f'dpdk:{eal} -- ip={ip}/24 conns=16 poll=lcore idle=interrupt'
    server = Process(work, 'server', [*link.wrap('server'), PINGPONG, '-w', 'server',
                                      specs['server']])
    time.sleep(1.5)
    client = Process(work, 'client', [*link.wrap('client'), PINGPONG, '-w', 'client',
                                      specs['client'], link.server_ip, '500'])
    check(client.wait(90) == 0, f'{client.tail()} {server.tail()}')
    check(server.wait(20) == 0, server.tail())
    each_us = float(client.out().split(',')[1].split()[0])
    check(each_us < 20000 * SLOW, f'{each_us} us for a round trip: nothing woke the lcores')


def main():
    need_namespaces('sysctl')
    if not os.path.exists('/dev/net/tun'):
        skip('there is no /dev/net/tun')
    tests = Tests(200)
    with Work() as work:
        tests.add('every mode', modes, work)
        tests.add('bad link', bad_link, work)
        tests.add('interrupts', interrupts, work)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
