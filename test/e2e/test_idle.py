#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Lcores and programs that sleep: what wakes them, and what they cost meanwhile. (AFC-19)"""

import os
import signal
import sys
import time

from e2e import BUILD, SANITIZE, SLOW, Process, Tests, check, cpus
from daemon import IP, PINGPONG, Daemon, alone, connected, eal, embedded

WAITERS = os.path.join(BUILD, 'test/e2e/waiters')
SLEEP = 'conns = 64\nidle = sleep'
NS_PER_S = 1e9


def cpu_ns(pid):
    """What all its threads have used."""
    total = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/schedstat', encoding='utf-8') as f:
            total += int(f.read().split()[0])
    return total


def share(pid, seconds):
    """Of a CPU, the least of three looks: other work makes each wake-up dearer."""
    least = 1.0
    for _ in range(3):
        start, used = time.monotonic(), cpu_ns(pid)
        time.sleep(seconds)
        least = min(least, (cpu_ns(pid) - used) / NS_PER_S / (time.monotonic() - start))
    return least


def ping(server_spec, client_spec, work, rounds='300', options=('-w',)):
    server = Process(work, 'server', [PINGPONG, *options, 'server', server_spec])
    time.sleep(0.5 * SLOW)
    client = Process(work, 'client', [PINGPONG, *options, 'client', client_spec, IP['server'],
                                      rounds])
    check(client.wait(60) == 0, client.tail())
    check(server.wait(20) == 0, server.tail())


def all_sleep(work):
    """Both daemons and both programs; then programs that poll, for whom no system call is made."""
    daemons = Daemon(work, 'server', SLEEP), Daemon(work, 'client', SLEEP)
    ping(daemons[0].spec, daemons[1].spec, work)
    woken = [d.counters()['wakes'] for d in daemons]
    check(min(woken) > 100, f'programs were woken {woken} times')
    ping(daemons[0].spec, daemons[1].spec, work, options=())
    check([d.counters()['wakes'] for d in daemons] == woken, 'who polls was woken')
    for d in daemons:
        d.stop()


def lcores_sleep(work):
    """Two lcores of one daemon, two programs that talk to each other: what one lcore has for
    the other wakes it."""
    daemon = Daemon(work, 'server', SLEEP, lcores=2)
    for _ in range(2):
        ping(daemon.spec, daemon.spec, work)
    daemon.stop()


def daemon_polls(work):
    """Programs sleep, daemons don't: the usual case on lcores of their own."""
    daemons = Daemon(work, 'server'), Daemon(work, 'client')
    ping(daemons[0].spec, daemons[1].spec, work)
    for d in daemons:
        d.stop()


def embedded_waits(work):
    """The same program embedded: with an lcore it sleeps, without it polls, and never hangs."""
    ping(embedded(work, 'server', 'idle=sleep'), embedded(work, 'client'), work)
    specs = [f'dpdk:{eal(work, role, f"0@{cpu},1@{cpu}")} -- ip={IP[role]}/24 conns=16 '
             'poll=lcore idle=sleep' for role, cpu in zip(('server', 'client'), cpus())]
    ping(*specs, work)


def many_queues(work):
    """One program that waits for 1,000 queues: all that it armed are woken, no other one is."""
    daemon = Daemon(work, 'server', 'conns = 2048\ncqs = 1024', 'cqs = 1024')
    before = daemon.held()
    waiters = Process(work, 'waiters', [WAITERS, daemon.path, IP['server'], '1000', '20'])
    check(waiters.wait(60) == 0, f'{waiters.tail()} {daemon.process.tail()}')
    daemon.settle(before)
    daemon.stop()


def idle_cost(work):
    """Nobody does anything: under 3 % of a CPU for the daemon, which looks some 500 times a second;
    next to nothing for a program."""
    daemons = Daemon(work, 'server', SLEEP), Daemon(work, 'client', SLEEP)
    server = Process(work, 'server', [PINGPONG, '-w', 'server', daemons[0].spec])
    time.sleep(1 * SLOW)
    before, began = daemons[0].counters()['sleeps'], time.monotonic()
    used = share(daemons[0].process.pid, 1)
    looks = (daemons[0].counters()['sleeps'] - before) / (time.monotonic() - began)
    print(f'# daemon: {100 * used:.2f} % of a CPU, {looks:.0f} looks a second')
    check(looks < 1000, f'{looks:.0f} looks a second')
    check(SANITIZE or used < 0.03, f'an idle daemon takes {100 * used:.1f} % of a CPU')
    used = share(server.pid, 0.5)
    check(used < 0.005, f'a program that waits takes {100 * used:.1f} % of a CPU')
    server.kill()
    for d in daemons:
        d.stop()


def daemon_dies(work):
    """Who sleeps hears that the daemon is gone, waiting for events or for completions."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        daemons = Daemon(work, 'server', SLEEP), Daemon(work, 'client', SLEEP)
        server, client = connected(work, [d.spec for d in daemons], ['-w'])
        daemons[0].process.popen.send_signal(how)
        check(server.wait(20) == 1, server.tail())
        client.kill()
        waiting = Process(work, 'waiting', [PINGPONG, '-w', 'server', daemons[1].spec])
        time.sleep(0.5 * SLOW)
        daemons[1].process.popen.send_signal(how)
        check(waiting.wait(20) == 1 and 'gone' in waiting.tail(), waiting.tail())
        for d in daemons:
            d.process.wait(20)


def interrupt_refused(work):
    """A port without receive interrupts says so, and what to do instead."""
    p = Process(work, 'server', [PINGPONG, 'server', embedded(work, 'server', 'idle=interrupt')])
    check(p.wait(20) == 1 and 'no receive interrupts; idle=sleep' in p.tail(), p.tail())


def main():
    tests = Tests(400)
    for name, test in [
            ('all sleep', all_sleep),
            ('two lcores that sleep', lcores_sleep),
            ('programs sleep, daemons poll', daemon_polls),
            ('embedded programs sleep', embedded_waits),
            ('very many queues', many_queues),
            ('what idling costs', idle_cost),
            ('the daemon dies', daemon_dies),
            ('a port without interrupts', interrupt_refused),
    ]:
        tests.add(name, alone, test)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
