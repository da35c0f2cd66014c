#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two lcores on one port, at one end and at both: over memif with one queue, and over af_packet
with two, among which the kernel distributes packets. Packets that arrive at the wrong lcore are
handed over; connections exist on both; every byte is verified. (SYS-1, SYS-2, RT-13, RT-23, RT-24,
RT-26)
"""

import os
import sys

from capture import bare_tshark, check_decodes
from e2e import (BUILD, SANITIZE, Memif, Run, Server, Tests, Veth, Work, check, counter, cpus,
                 need_namespaces)

FEW = 4 if SANITIZE else 1
RUNS = [
    ['--mode', 'send', '--size', '8-20000', '--count', '1200', '--conns', '8'],
    ['--mode', 'push', '--size', '1-50000', '--count', '800', '--conns', '8', '--solicit',
     'always'],
    ['--mode', 'push', '--imm', '--size', '1-20000', '--count', '1200', '--conns', '7',
     '--order', 'unordered'],
    ['--mode', 'pull', '--size', '1-20000', '--count', '1200', '--conns', '8'],
    ['--mode', 'atomic', '--count', '4000', '--conns', '6'],
    ['--mode', 'incast', '--conns', '24', '--size', '1-100000', '--count', '300'],
]


def own(nb, *more):
    """Port arguments for *nb* lcores that share CPUs with others."""
    lcores = ','.join(str(i + 1) for i in range(nb))
    return ['--set', f'lcores={lcores}', '--set', 'idle=sleep', *more]


def lcores(role, nb):
    """EAL arguments: the caller's lcore, and *nb* for the port."""
    return f'(0-{nb})@{cpus()[role == "client"]}'


def start(link, nb, *more):
    return Server(link, own(nb, *more), lcores=lcores('server', nb))


def run_all(link, nb, more=(), runs=None):
    """All runs with *nb* lcores; with 0 the caller polls. Returns the sums of all counters."""
    counts = {}
    for args in runs or RUNS:
        args = list(args)
        at = args.index('--count') + 1
        args[at] = str(int(args[at]) // FEW)
        ends = own(nb) if nb else ['--set', 'idle=sleep']
        result = Run(link, [*args, '--verify', *ends, *more],
                     lcores=lcores('client', nb)).check_ok()
        for name, value in result['counters'].items():
            counts[name] = counts.get(name, 0) + value
    return counts


def check_spread(counts, nb_queues):
    """Check that both lcores had work: some packets were handed over, and (with one queue) the
    other lcore has sent some.

    A packet that finds its lane full is counted as drop_handover. That is no error, because the
    machine may not schedule an lcore for a while.
    """
    check(counter({'counters': counts}, 'handover_out') > 500, 'nothing was handed over')
    check(counts['handover_out'] == counts['handover_in'],
          f'{counts["handover_out"]} handed over, {counts["handover_in"]} taken')
    sent = counter({'counters': counts}, 'tx_by_others')
    check((sent > 500) == (nb_queues == 1), f'{sent} packets sent by others')


def memif(work, nb_server, nb_client, more=(), runs=None):
    """One queue: one lcore receives and sends for all."""
    link = Memif(work)
    server = start(link, nb_server, *more)
    counts = run_all(link, nb_client, more, runs)
    if nb_client > 1:
        check_spread(counts, 1)
    check_spread(server.stop_ok()['counters'], 1)


class Fanout(Veth):
    """af_packet with two queues."""

    def vdev(self, role):
        return super().vdev(role) + ',qpairs=2'


def af_packet(work):
    """One queue for each lcore; the kernel selects by its own hash."""
    link = Fanout(work, 'af_packet')
    server = start(link, 2, '--set', 'queues=2')
    check_spread(run_all(link, 2, ['--set', 'queues=2']), 2)
    check_spread(server.stop_ok()['counters'], 2)


def captured(work):
    """One capture of both lcores decodes, and has the packets that both sent and received."""
    link = Memif(work)
    path = work.path('both.pcapng')
    server = start(link, 2)
    with bare_tshark():
        result = Run(link, ['--mode', 'send', '--size', '8-9000', '--count', '200', '--conns', '6',
                            '--verify', *own(2), '--capture', path],
                     lcores=lcores('client', 2)).check_ok()
        found = sum(check_decodes(path).values())
    total = counter(result, 'rx_pkts') + counter(result, 'tx_pkts')
    check(total * 0.9 < found <= total, f'{found} packets in the file, {total} counted')
    server.stop_ok()


def comes_and_goes(work, nb):
    """Contexts, queue pairs and connections are opened, closed and lost; *nb* lcores each, with 0
    the caller polls."""
    link = Memif(work)
    poll = {0: 'poll=caller', 1: 'poll=lcore'}.get(nb, 'lcores=1,2')

    def start(role, byte, *args):
        eal = work.eal(0, link.vdev(role), 256, lcores(role, nb))
        return work.start(role, [
            os.path.join(BUILD, 'test/e2e/lifecycle'), role, f'dpdk:{" ".join(eal)} -- '
            f'ip=10.5.0.{byte}/24 conns=64 held=256 rxd=256 txd=256 cm_retry_ms=50 '
            f'cm_retries={8 if SANITIZE else 6} '
            f'idle=sleep {poll}', *args])

    server = start('server', 1)
    server.wait_text('listening')
    client = start('client', 2, '10.5.0.1')
    check(client.wait() == 0, f'client: {client.tail()} server: {server.tail()}')
    check(server.wait() == 0, f'server: {server.tail()}')


def main():
    need_namespaces()
    tests = Tests()
    with Work() as work:
        tests.add('memif, two lcores at both ends', memif, work, 2, 2)
        tests.add_long('memif, three against one', memif, work, 3, 0, (), RUNS[:2])
        tests.add_long('memif, two at both ends, bad link', memif, work, 2, 2,
                  ['--impair', 'drop=0.01,dup=0.01,reorder=0.05,corrupt=0.001,seed=3'])
        tests.add('af_packet, a queue each', af_packet, work)
        tests.add_long('capture', captured, work)
        tests.add('opening and closing, two lcores', comes_and_goes, work, 2)
        tests.add_long('opening and closing, one lcore', comes_and_goes, work, 1)
        tests.add_long('opening and closing, polled by the caller', comes_and_goes, work, 0)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
