#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Streams between two processes on memif, on clean and impaired links, with the engine in the
process and in daemons: all ways to receive and send, all modes, each byte verified by both ends;
nothing is left behind. (AFC-1, AFC-6 to AFC-9, AFC-11, SYS-3)
"""

import os
import sys

from daemon import Attached
from e2e import BUILD, SANITIZE, Memif, Process, Run, Server, Tests, Work, check, counter, cpus

FEW = 10 if SANITIZE else 1
MANNERS = ('direct', 'wait', 'small', 'mixed')
WAYS = ('one', 'both', 'send-recv', 'recv-send')
MODES = ('adaptive', 'small', 'large', 'small-large')

# name: arguments of the client, messages
SIZES = {
    'small': (['--size', '1-2000', '--depth', '32'], 4000),
    'large': (['--size', '20000-300000'], 300),
    'any': (['--size', '1-60000', '--depth', '8'], 1500),
}
LINKS = {
    'clean': (None, 1),
    'mixed': ('drop=0.01,dup=0.01,reorder=0.05,corrupt=0.001,seed=3', 4),
}


def run_one(link, own, count):
    n = max(count // FEW, 12)
    result = Run(link, ['--mode', 'stream', *own, '--count', str(n), '--verify']).check_ok()
    check(result['messages'] == n, f'{result["messages"]} of {n} messages')
    check(result['bytes'] == result['server_bytes'], 'the two sides counted other bytes')
    check(result['latency_ns']['count'] == n, 'not every message has a latency')
    return result


class LinkTests:
    """One server for all runs on one kind of link."""

    def __init__(self, work, kind, spec, few):
        self.work, self.kind, self.spec, self.few = work, kind, spec, few
        self.link = self.server = None

    def start(self):
        if self.server is None:
            self.link = self.kind(self.work, impair=self.spec)
            self.server = Server(self.link)

    def run(self, manner, way, size):
        self.start()
        own, count = SIZES[size]
        if 'recv' in way:
            count //= 4
        run_one(self.link, [*own, '--receive', manner, '--way', way], count // self.few)

    def modes(self, read):
        """AFC-8: forced modes, with and without remote reads, give the same stream."""
        self.start()
        for mode in MODES:
            for manner in MANNERS:
                run_one(self.link, ['--size', '1-100000', '--stream-mode', mode, '--stream-read',
                                    read, '--receive', manner], 100 // self.few)

    def many(self):
        """Many streams at once, each with few buffers."""
        self.start()
        run_one(self.link, ['--size', '1-30000', '--conns', '40', '--buffers', '5', '--receive',
                            'mixed'], 2000 // self.few)

    def refuse_loans(self):
        """AFC-1: with an engine in another process loans are refused, without harm."""
        self.start()
        lend(self.work, self.link.daemons['server'].spec, self.link.server_ip, 'refused')

    def stop(self):
        check(self.server is not None, 'there is no server')
        self.server.stop_ok()
        self.link.stop()


def lend(work, spec, address, says):
    program = Process(work, 'loans', [os.path.join(BUILD, 'test/e2e/loans'), spec, address])
    check(program.wait() == 0, program.tail())
    check(program.out() == f'loans: {says}\n', program.tail())


def loans(work, idle):
    """AFC-1, AFC-27: a whole stream received by loans, which outlive their connection."""
    mine, other = cpus()
    eal = work.eal(mine, '--vdev=net_null0,no-rx=1', 256, f'0@{mine},1@{other}')
    lend(work, f'dpdk:{" ".join(eal)} -- ip=10.77.0.1/24 poll=lcore idle={idle}', '10.77.0.1',
         'all by loans')


def path_of(link, manner):
    """Receive in a manner: the fractions of messages that were written, and sent as messages."""
    result = run_one(link, ['--size', '100000', '--depth', '1', '--way', 'one', '--receive',
                            manner], 200)
    nb = result['messages']
    return counter(result, 'push_solicited') / nb, counter(result, 'push_unsolicited') / nb


def paths(work):
    """AFC-6 to AFC-9: the path follows from how the server receives: each transfer is a write, a
    read by the server, or messages, except during learning and when a busy machine delays a
    program: then it is tried again. (test_stream_mode checks each of them.)
    """
    link = Memif(work)
    server = Server(link)
    for manner in ('direct', 'wait', 'small'):
        for _ in range(5):
            written, messages = path_of(link, manner)
            # bytes not written or in messages are read; learning takes some 27 messages
            fits = (written > 0.5) == (manner == 'direct') and (messages > 20) == (manner == 'small')
            if fits:
                break
        check(fits, f'{manner}: of a transfer {written} were written; {messages} messages')
    server.stop_ok()
    link.stop()


def main():
    tests = Tests()
    with Work() as work:
        for name, (spec, few) in LINKS.items():
            one = LinkTests(work, Memif, spec, few)
            for manner in MANNERS:
                for way in WAYS:
                    for size in SIZES:
                        # make check has one way for each manner
                        is_one = (MANNERS.index(manner) + WAYS.index(way)) % 4 == 0
                        add = tests.add if is_one and name == 'mixed' else tests.add_long
                        add(f'{name}: {manner}, {way}, {size}', one.run, manner, way, size)
            for read in ('auto', 'never', 'always'):
                tests.add_long(f'{name}: modes, reads {read}', one.modes, read)
            tests.add_long(f'{name}: many', one.many)
            (tests.add if name == 'mixed' else tests.add_long)(f'{name}: stop', one.stop)
        tests.add('paths', paths, work)
        tests.add_long('loans, idle=poll', loans, work, 'poll')
        tests.add('loans, idle=sleep', loans, work, 'sleep')
        one = LinkTests(work, Attached, None, 4)
        for manner in MANNERS:
            for way in WAYS:
                tests.add_long(f'attached: {manner}, {way}', one.run, manner, way, 'any')
        tests.add_long('attached: loans', one.refuse_loans)
        tests.add_long('attached: stop', one.stop)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
