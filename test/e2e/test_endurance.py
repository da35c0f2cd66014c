#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs and daemons that are killed repeatedly leave nothing in the daemon that survives; large
numbers of applications and connections. (SYS-2, SYS-5)

  test_endurance.py [ROUNDS]      how often each is killed (20); 100 by `make endurance`
"""

import functools
import os
import random
import re
import subprocess
import sys
import time

from daemon import Attached, Daemon, alone, check_notified
from e2e import BUILD, SANITIZE, SLOW, Process, Run, Server, Tests, check, until_true

CROWD = os.path.join(BUILD, 'test/bench/crowd')
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 4 if SANITIZE else 20
WARM_UP = max(10, ROUNDS // 4)  # rounds that use records, and so memory, for the first time
GROWTH_KIB = 1024       # limit for a daemon over all rounds: libc's heap is not exact
MODES = (['send', '--size', '1-20000'], ['push', '--size', '1-20000'],
         ['pull', '--size', '1-20000'], ['rpc'], ['incast', '--size', '1-50000', '--conns', '8'])
WRONG = re.compile(r'message \d+: (?!.*(gone|ended|flushed|answer))|came twice|impossible|differs')
PATIENCE = ['--keepalive-ms', '200']


class Survivor:
    """Compares a daemon's resources before the first round and after the last."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.held, self.conns = daemon.held(), daemon.engine_held()['conns']
        self.files, self.mbufs = self.list_files(), daemon.mbufs()
        self.rss = None

    def list_files(self):
        return sorted(os.listdir(self.daemon.runtime_dir()))

    def settle(self):
        """Wait until its resources are those before the round."""
        self.daemon.settle(self.held)
        until_true(lambda: f'connections: {self.daemon.engine_held()}',
                   lambda: self.daemon.engine_held()['conns'] == self.conns)

    def round_over(self, i):
        self.settle()
        if i == min(WARM_UP, ROUNDS) - 1:
            self.rss = self.daemon.rss_kib()

    def over(self, what):
        """Final check, after all programs have ended."""
        growth = self.daemon.rss_kib() - self.rss
        check(SANITIZE or growth <= GROWTH_KIB, f'the daemon has grown by {growth} KiB')
        self.daemon.settle_engine()
        until_true(lambda: f'packets: {self.daemon.mbufs()}, not {self.mbufs}',
                   lambda: self.daemon.mbufs() <= self.mbufs + 64)
        check(self.list_files() == self.files, f'files: {self.list_files()}, not {self.files}')
        print(f'# {what}, {ROUNDS} times: {growth} KiB more of {self.rss}, descriptors and '
              f'mappings {self.held}, packets {self.mbufs} and {self.daemon.mbufs()}', flush=True)


def start_client(link, i, mode):
    return Process(link.work, f'client{i}', link.program('client', [
        '--connect', link.server_ip, '--verify', '--duration', '600', *PATIENCE, '--mode', *mode]))


def no_wrong_data(*processes):
    for p in processes:
        check(not WRONG.search(p.out() + p.err()), f'{p.name}: {p.tail()}')


def apps_killed(work):
    """Either end of connections is killed under load, while another pair of programs
    loses nothing."""
    link = Attached(work)
    bystander = Server(link, PATIENCE)
    other = Process(work, 'bystander', link.program('client', [
        '--connect', link.server_ip, '--verify', '--mode', 'push', '--size', '1-3000', '--depth',
        '4', '--duration', '3600', '--json', work.path('bystander.json')]))
    until_true(other.tail, lambda: link.daemons['server'].engine_held()['conns'] == 2)
    for d in link.daemons.values():     # the first sleep creates descriptors
        until_true('it sleeps', lambda: d.ask('lcores')['0']['sleeps'] > 10)
    survivors = [Survivor(d) for d in link.daemons.values()]
    rng = random.Random(11)
    for i in range(ROUNDS):
        mode = MODES[i % len(MODES)]
        server = Server(link, ['--service', '7', *PATIENCE])
        client = start_client(link, i, [*mode, '--service', '7'])
        time.sleep(rng.random() * 0.3 * SLOW)   # at a random moment
        check(client.is_alive() and server.process.is_alive(),
              f'{client.tail()} {server.process.tail()}')
        first, second = (client, server.process) if rng.random() < 0.5 else (server.process, client)
        first.kill()
        if second is client:
            check(client.wait() == 1, f'the client was not told: {client.tail()}')
        else:
            check(second.is_alive(), second.tail())
            second.signal('TERM')
            second.wait()
        no_wrong_data(client, server.process, other, bystander.process)
        for s in survivors:
            s.round_over(i)
    check(other.stop() == 0, other.tail())
    bystander.stop_ok()
    for s, role in zip(survivors, link.daemons):
        s.over(f'applications killed, daemon of the {role}')
    link.stop()


def daemons_killed(work, mode):
    """One of two daemons is killed together with its programs; the other one and its program
    survive.

    The killed one is memif's client, because a killed server leaves its socket's file.
    """
    link = Attached(work)
    server = Server(link, PATIENCE)
    survivor = Survivor(link.daemons['server'])
    rng = random.Random(13)
    for i in range(ROUNDS):
        client = start_client(link, i, mode)
        want = int(mode[mode.index('--conns') + 1]) + 1
        until_true(lambda: f'{client.tail()} {server.process.tail()}',
                   lambda: survivor.daemon.engine_held()['conns'] == want)
        time.sleep(rng.random() * 0.2 * SLOW)   # at a random moment
        dead = link.daemons['client']
        dead.process.kill()
        check_notified(client)
        link.daemons['client'] = dead.again()
        survivor.round_over(i)
        no_wrong_data(client, server.process)
        Run(link, ['--mode', 'push', '--count', '50', '--verify', *PATIENCE]).check_ok()
        survivor.settle()
    check(len(os.listdir(link.daemons['client'].runtime_dir())) == len(survivor.files),
          f'{os.listdir(link.daemons["client"].runtime_dir())}')
    status, result = server.stop()
    check(status == 1 and result['sessions_failed'] == ROUNDS, f'{status}, {result}')
    survivor.daemon.settle(link.before['server'])
    survivor.over(f'a daemon killed, its programs in mode {mode[0]}')
    for d in link.daemons.values():
        d.stop()


def crowd(work):
    """Many applications with the same task at one daemon, each with many connections."""
    pairs, conns, rounds = (8, 16, 4) if SANITIZE else (32, 64, 20)
    port = f'conns = {4 * pairs * conns}\ncm_retries = 20\nidle = sleep\nsleep_us = 100'
    daemon = Daemon(work, 'server', port, vdev='--vdev=net_null0,no-rx=1')
    before = daemon.held()
    p = Process(work, 'crowd', [CROWD, daemon.spec, '10.5.0.1', str(pairs), str(conns),
                                str(rounds), '1000'])
    check(p.wait() == 0, p.tail())
    first, last = (int(word) for word in p.out().split())
    print(f'# {2 * pairs} applications, {conns} queue pairs each, {conns * rounds} messages there '
          f'and back per pair: the first is ready after {first} ms, the last after {last} ms',
          flush=True)
    check(last < 4 * first + 500, f'some wait for others: {first} ms, {last} ms')
    daemon.settle(before)
    daemon.settle_engine()
    daemon.stop()


def many_conns(work):
    """Idle connections on one lcore of a daemon, and the memory of each."""
    conns = 200 if SANITIZE else 10000
    link = Attached(work, conns=conns + 240, limits=f'qps = {conns + 10}\ncqs = 1024')
    server = Server(link)
    before = {role: d.memory_kib() for role, d in link.daemons.items()}
    client = Process(work, 'client', link.program('client', [
        '--connect', link.server_ip, '--mode', 'idle', '--conns', str(conns), '--duration', '3600',
        '--timeout', '120000']))
    held = [d.engine_held for d in link.daemons.values()]
    until_true(lambda: f'{client.tail()} {server.process.tail()} {held[1]()}',
               lambda: all(h()['conns'] == conns + 1 for h in held))
    for role, d in link.daemons.items():
        d.held()        # wait until it is stable
        own, queues = (1024 * (now - then) / conns
                       for now, then in zip(d.memory_kib(), before[role]))
        print(f'# {conns} idle connections, daemon of the {role}: {own:.0f} bytes each, and '
              f'{queues:.0f} of queues that the application asked for', flush=True)
        check(SANITIZE or own < 8192, f'{own:.0f} bytes for an idle connection')
    check(client.stop() == 0, client.tail())
    check(server.process.stop() == 0, server.process.tail())
    link.stop()


def main():
    tests = Tests()
    tests.add('applications killed', alone, apps_killed)
    tests.add('a daemon killed, with idle connections', alone,
              functools.partial(daemons_killed, mode=['idle', '--conns', '4']))
    tests.add('a daemon killed under load', alone,
              functools.partial(daemons_killed, mode=['push', '--conns', '4', '--size', '1-20000']))
    tests.add('a crowd', alone, crowd)
    tests.add('many connections', alone, many_conns)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
