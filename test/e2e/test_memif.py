#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every mode of sanbench between two processes on memif, on clean and impaired links, with the
engine in the process, and in a daemon.

Both ends verify each run byte by byte, and it must leave nothing behind. Each impaired link must
have caused its effect, or the run proves nothing. (RT-7, RT-10 to RT-16, RT-20, RT-22, RT-23,
RT-30, RT-31, SYS-3)
"""

import contextlib
import functools
import os
import socket
import struct
import sys

from daemon import Attached, alone
from e2e import IS_CHECK, PATIENCE, SANITIZE, Memif, Run, Server, Tests, Work, check, counter, cpus

FEW = 10 if SANITIZE else 2     # factor of fewer messages with sanitizers

# name: arguments of the client, messages on a clean link
TRAFFIC = {
    'send': (['--mode', 'send', '--size', '8-20000'], 4000),
    'send-small': (['--mode', 'send', '--size', '8-64', '--depth', '128'], 40000),
    'push': (['--mode', 'push', '--size', '1-20000'], 4000),
    'push-solicited': (['--mode', 'push', '--size', '1-50000', '--solicit', 'always'], 2000),
    'push-unsolicited': (['--mode', 'push', '--size', '1-50000', '--solicit', 'never'], 2000),
    'push-imm': (['--mode', 'push', '--imm', '--size', '1-20000'], 3000),
    'push-long': (['--mode', 'push', '--size', '8M', '--depth', '2'], 16),
    'pull': (['--mode', 'pull', '--size', '1-20000'], 4000),
    'pull-long': (['--mode', 'pull', '--size', '4M', '--depth', '4'], 16),
    'atomic': (['--mode', 'atomic', '--conns', '3'], 20000),
    'incast': (['--mode', 'incast', '--conns', '24', '--size', '1-100000'], 1000),
    'push-turns': (['--mode', 'push', '--size', '1-2000', '--conns', '50', '--turns', '4',
                    '--depth', '64'], 4000),
    'push-batch': (['--mode', 'push', '--size', '1-200', '--depth', '64', '--batch', '16'], 10000),
    'rpc': (['--mode', 'rpc', '--size', '32', '--both'], 20000),
    'rpc-batch': (['--mode', 'rpc', '--size', '64', '--conns', '3', '--batch', '16'], 20000),
}
ORDERS = ('ordered', 'unordered', 'relaxed')

# name: impairment at both ends (drop20: 20 % of what each sends), factor of fewer messages,
# counters that must not be zero
LINKS = {
    'clean': (None, 1, []),
    'mixed': ('drop=0.01,dup=0.01,reorder=0.05,corrupt=0.001,seed=3', 2,
              ['rtx', 'fast_rtx', 'cam_inserts', 'drop_icrc', 'drop_duplicate']),
    'drop20': ('tx:drop=0.2,seed=9', 8, ['rtx', 'fast_rtx', 'tlp', 'rto', 'probes']),
}


def add(counts, result):
    for name, value in result['counters'].items():
        counts[name] = counts.get(name, 0) + value


# The same with daemons: programs and daemons are four processes, here on two CPUs.
ATTACHED_LINKS = {
    'attached': (None, 4, []),
    'attached, mixed': (LINKS['mixed'][0], 16, LINKS['mixed'][2]),
}


def run_one(link, name, order, few, counts):
    own, count = TRAFFIC[name]
    n = max(count // few // FEW, 12)
    run = Run(link, [*own, '--count', str(n), '--order', order, '--verify'])
    result = run.check_ok()
    check(result['messages'] == n, f'{result["messages"]} of {n} messages')
    check(result['server_messages'] == n, f'the server counted {result["server_messages"]}')
    check(result['bytes'] == result['server_bytes'], 'the two sides counted other bytes')
    check(result['latency_ns']['count'] == n, 'not every message has a latency')
    if '--both' in own:
        check(result['server_calls'] > 0 and result['server_mps'] > 0, 'the server never asked')
    else:
        check(result['server_calls'] == 0, 'the server asked by itself')
    if name == 'push-solicited':
        check(counter(result, 'push_solicited') > n // 2, 'pushes were not solicited')
    if name == 'push-unsolicited':
        check(counter(result, 'push_unsolicited') >= n, 'pushes were not unsolicited')
    add(counts, result)


class LinkTests:
    """One server for all runs on one kind of link."""

    def __init__(self, work, kind, name):
        self.work, self.kind, self.name = work, kind, name
        self.spec, self.few, self.expected = {**LINKS, **ATTACHED_LINKS}[name]
        self.counts = {}
        self.link = self.server = None

    def run(self, name, order):
        if self.server is None:
            self.link = self.kind(self.work, impair=self.spec)
            self.server = Server(self.link)
        run_one(self.link, name, order, self.few, self.counts)

    def stop(self):
        check(self.server is not None, 'there is no server')
        result = self.server.stop_ok()
        add(self.counts, result)
        for name in self.expected:
            check(self.counts.get(name, 0) > 0, f'this link has exercised no {name}')
        for name in ('grants', 'push_solicited', 'push_unsolicited', 'pulls', 'atomics'):
            check(self.counts[name] > 0, f'no {name}')
        if self.spec is None:
            check(self.counts['drop_icrc'] == 0, 'wrong ICRCs on a clean link')
        self.link.stop()


def rnr(work, kind=Memif):
    """RT-23: one receive for 32 sends in flight: refused, withdrawn, sent again."""
    link = kind(work)
    server = Server(link, ['--rq', '1'])
    result = Run(link, ['--mode', 'send', '--size', '1-6000', '--count', str(400 // FEW),
                        '--verify']).check_ok()
    served = server.stop_ok()
    check(counter(result, 'rnr_rx') > 0, 'the client met no receiver that was not ready')
    check(counter(served, 'rnr_tx') > 0, 'the server was always ready')
    check(counter(result, 'resync_tx') > 0, 'nothing was withdrawn')
    check(counter(served, 'resync_rx') > 0, 'the server saw no RESYNC')
    link.stop()


def incast_deferred(work, kind=Memif):
    """RT-13: more is requested than may be granted at a time."""
    link = kind(work)
    server = Server(link)
    Run(link, ['--mode', 'incast', '--conns', '48', '--size', '1M', '--depth', '2', '--count',
               str(192 // FEW), '--verify']).check_ok()
    served = server.stop_ok()
    check(counter(served, 'grants') > 0, 'no grants')
    check(counter(served, 'grants_deferred') > 0, 'every grant could go at once')
    link.stop()


def packing(work, kind=Memif):
    """RT-34: messages posted together share packets, unless one of the two sides does not."""
    for sets in ({}, {'client': ['pack=0']}, {'server': ['pack=0']}):
        link = kind(work, sets=sets)
        server = Server(link)
        for mode in ('send', 'push'):
            n = 6400 // FEW
            result = Run(link, ['--mode', mode, '--size', '1-64', '--depth', '32', '--count', str(n),
                                '--verify']).check_ok()
            check(result['messages'] == n, f'{result["messages"]} of {n} messages')
            packed = counter(result, 'packed_tx')
            if sets:
                check(packed == 0, f'{packed} packets were shared')
            else:
                check(packed > 0, 'no packet was shared')
                check(counter(result, 'packed_tx_messages') >= 2 * packed, 'shared by one')
        served = server.stop_ok()
        if not sets:
            check(counter(served, 'packed_rx') > 0, 'the server saw no shared packet')
        link.stop()


def duration_and_live(work, kind=Memif):
    """The duration limits a run, and rates are printed each second."""
    link = kind(work)
    server = Server(link)
    run = Run(link, ['--mode', 'push', '--duration', '2.5', '--live'])
    result = run.check_ok()
    check(result['seconds'] > 2.4, f'ran {result["seconds"]} s')
    # two seconds have ended, however late, and the end prints rates, too
    check(run.out.count('Gb/s  ') >= 2, f'no rates each second: {run.out}')
    # sim_limits__clean_link proves in virtual time that a clean link needs none
    want = counter(result, 'rtx') if kind is Memif else None
    check(result['rtx'] == want, f'rtx: {result["rtx"]}')
    server.stop_ok()
    link.stop()


def connect_again(work, kind=Memif):
    """RT-24: connections are set up and ended repeatedly, on a clean and on an impaired link."""
    for spec in (None, 'drop=0.05,seed=5'):
        link = kind(work, impair=spec)
        server = Server(link)
        result = Run(link, ['--mode', 'connect', '--conns', '16', '--duration', '0.5']).check_ok()
        check(result['messages'] > 16, f'only {result["messages"]} connections')
        check(result['messages'] == result['server_messages'], 'the server counted others')
        check(result['latency_ns']['count'] > 0, 'no time of setting up')
        server.stop_ok()
        link.stop()


def idle(work, kind=Memif):
    """Idle connections stay, and their memory is reported."""
    link = kind(work)
    server = Server(link)
    result = Run(link, ['--mode', 'idle', '--conns', '500', '--duration', '0.2']).check_ok()
    begin, up = result['memory_begin'], result['memory_up']
    check(all(begin[k] > 0 for k in ('rss', 'data')), f'memory: {begin}')
    check((begin['heap'] > 0) == (kind is Memif), f'heaps of DPDK: {begin}')
    check(up['data'] >= begin['data'] and up['rss'] > begin['rss'], f'memory: {begin} {up}')
    check(result['messages'] == 0 and result['own_per_conn'] > 0, 'something was moved')
    server.stop_ok()
    link.stop()


def own_lcore(work, more):
    """SYS-1: the engine on an lcore of its own, at both ends."""
    link = Memif(work)
    own = ['--poll', 'lcore', *more]
    lcores = '(0-1)@' + cpus()[0]
    server = Server(link, own, lcores=lcores)
    for mode, size in (('send', '1-20000'), ('push', '1-20000'), ('pull', '1-20000'), ('rpc', 32)):
        Run(link, ['--mode', mode, '--size', str(size), '--count', str(1000 // FEW), '--verify',
                   *own], lcores=lcores).check_ok()
    server.stop_ok()


def late_server(work):
    """A server whose socket exists before its port is started refuses; the client asks again."""
    link = Memif(work)
    early = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    early.bind(link.socket)
    early.listen()
    early.settimeout(PATIENCE)
    client = work.start('client', link.program(
        'client', ['--connect', link.server_ip, '--count', '100']))
    asked, _ = early.accept()
    asked.settimeout(PATIENCE)
    hello = struct.pack('<32sHHHHHB', b'late', 0x200, 0x200, 255, 0, 0, 14)
    asked.send((struct.pack('<H', 2) + hello).ljust(128, b'\0'))
    check(asked.recv(128)[:2] == b'\3\0', 'no INIT from the client')
    asked.send((struct.pack('<HI', 8, 0) + b'ID not found').ljust(128, b'\0'))
    for s in (asked, early):
        s.close()
    os.unlink(link.socket)
    server = Server(link)
    check(client.wait() == 0, f'{client.tail()} {server.process.tail()}')
    server.stop()


def large_frames(work):
    """RT-31: buffers of 9216 bytes give an MTU of 9000, and the longest packets use it."""
    for mode in ('send', 'push'):
        link = Memif(work, 9216)
        server = Server(link)
        result = Run(link, ['--mode', mode, '--size', '65536', '--count', '200', '--verify']).check_ok()
        server.stop_ok()
        check(counter(result, 'mtu_raised') > 0, 'no probe of the path MTU came back')
        each = result['bytes'] / counter(result, 'tx_pkts')
        check(each > 3000, f'{each} bytes in a packet')


def small_buffers(work):
    """RT-31: an MTU that exceeds memif's buffers is refused."""
    run = Run(Memif(work), ['--mode', 'push', '--set', 'mtu=9000'])
    check(run.status != 0 and 'bsize=' in run.err, f'{run.status}: {run.err}')
    # Sides that differ use the lower value.
    link = Memif(work, 9216)
    server = Server(link)
    link.bsize = 2048
    Run(link, ['--mode', 'push', '--size', '1-100000', '--count', str(200 // FEW), '--verify']).check_ok()
    server.stop_ok()


def attached_prompt(work):
    """At the prompt of an attached process commands that need an engine are refused with a text."""
    link = Attached(work)
    server = Server(link)
    path = work.path('commands')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(f'connect {link.server_ip}\nset mode pull\nset count 100\nset verify on\n'
                'start\nwait\nshow histogram\nshow config\nshow port\nshow conn\nimpair drop=1\n'
                'capture x\nquit\n')
    client = work.start('prompt', link.program('client', ['--cmdline-file', path]))
    check(client.wait() == 1, client.tail())      # because of the refused commands
    check('content verified by both sides' in client.out(), client.tail())
    check(client.out().count("error: the port is the daemon's: see sanctl(1)") == 4, client.tail())
    check('retransmissions' not in client.out(), client.tail())
    server.stop_ok()
    link.stop()


def add_link(add, on_link, orders, names):
    """Every kind of traffic on one link, *names*: those in the second and third order, too."""
    for name in TRAFFIC:
        for order in orders:
            # Relaxed placement matters for pushes that arrive out of order.
            if order == 'relaxed' and (on_link.name != 'mixed' or name != 'push'):
                continue
            if order == 'ordered' or name in names:
                add(f'{on_link.name}: {name}, {order}', on_link.run, name, order)
    add(f'{on_link.name}: counters and leaks', on_link.stop)


def add_embedded(tests, stack):
    def on(name):
        return LinkTests(stack.enter_context(Work()), Memif, name)

    orders = ORDERS[:1] if SANITIZE or IS_CHECK else ORDERS
    add_link(tests.add, on('mixed'), orders, TRAFFIC)
    work = stack.enter_context(Work())
    if not SANITIZE:
        add_link(tests.add, on('clean'), orders, TRAFFIC)
        add_link(tests.add_long, on('drop20'), orders, TRAFFIC)
    tests.add('receiver not ready', rnr, work)
    tests.add_long('incast defers grants', incast_deferred, work)
    tests.add('small requests share packets', packing, work)
    tests.add_long('duration, live rates', duration_and_live, work)
    tests.add('set up and ended, over and over', connect_again, work)
    tests.add_long('idle connections', idle, work)
    tests.add_long('engine on its own lcore', own_lcore, work, [])
    tests.add('engine on its own lcore, the program sleeps', own_lcore, work, ['--wait'])
    tests.add_long('a server that is late', late_server, work)
    tests.add('large frames', large_frames, work)
    tests.add_long('buffers too small for the MTU', small_buffers, work)


def add_attached(tests, stack):
    """Not included: an lcore of its own (a daemon has no other engine), a late server, large frames
    and small buffers (these concern the daemon's port, not programs). make check has test_providers
    for it."""
    for name in ['attached, mixed'] if SANITIZE else ATTACHED_LINKS:
        add_link(tests.add_long, LinkTests(stack.enter_context(Work()), Attached, name),
                 ORDERS[:1] if SANITIZE else ORDERS[:2], ('send', 'push', 'pull'))
    tests.add_long('attached: prompt', alone, attached_prompt)
    if SANITIZE:
        return          # the link runs cover the provider's code
    for name, test in [
            ('receiver not ready', rnr),
            ('incast defers grants', incast_deferred),
            ('small requests share packets', packing),
            ('duration, live rates', duration_and_live),
            ('set up and ended, over and over', connect_again),
            ('idle connections', idle),
    ]:
        tests.add_long(f'attached: {name}', alone, functools.partial(test, kind=Attached))


def main():
    tests = Tests()
    with contextlib.ExitStack() as stack:
        add_embedded(tests, stack)
        add_attached(tests, stack)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
