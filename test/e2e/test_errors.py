#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Peers that die: programs get the documented status and continue; with the engine in the process,
and in a daemon. provider_cases.py has invalid input. (RT-7, RT-23, RT-24, RT-27, RT-29)
"""

import functools
import os
import sys

from daemon import Attached, alone
from e2e import (BUILD, Memif, Process, Run, Server, Tests, Veth, Work, check, cpus,
                 need_namespaces, until_true)

PROGRAM = os.path.join(BUILD, 'test/e2e/errors')


def spec(work, link, role, own=''):
    """The provider's spec: a daemon's socket, or the arguments of EAL and of the port in
    one text."""
    if isinstance(link, Attached):
        return link.daemons[role].spec
    args = work.eal(cpus()[role == 'client'], link.vdev(role))
    ip = link.server_ip if role == 'server' else link.client_ip
    return f'dpdk:{" ".join(args)} -- ip={ip}/24 idle=sleep {own}'


def start_server(work, link):
    server = work.start('errors-server', [*link.wrap('server'), PROGRAM, 'server',
                                          spec(work, link, 'server')])
    server.wait_text('listening')
    return server


def server_killed(again, work, kind=Memif):
    """The server is killed in the middle of a transfer: everything completes with a status.

    A killed memif server leaves its socket's file, so the next one uses a veth.
    """
    link = kind(work) if kind is not Memif or not again else Veth(work, 'af_packet')
    server = start_server(work, link)
    client = work.start('errors-client', [
        *link.wrap('client'), PROGRAM, 'client',
        spec(work, link, 'client', 'keepalive_ms=200'), link.server_ip,
        'restarted' if again else 'killed'])
    client.wait_text('streaming')
    server.kill()
    client.wait_text('ended')
    if again:
        server = start_server(work, link)
    check(client.wait() == 0, client.tail())
    server.kill()
    link.stop()


def client_killed(work, kind=Memif):
    """The client is killed: the server releases its resources and serves the next one. A daemon
    reports the end of its program; an engine in the process ends silently with it."""
    link = kind(work)
    server = Server(link, ['--keepalive-ms', '1000'] if kind is Memif else [])
    for n, mode in enumerate(('send', 'push', 'pull', 'incast'), 1):
        own = ['--connect', link.server_ip, '--mode', mode, '--verify', '--duration', '600',
               '--live']
        victim = Process(work, 'victim', link.program('client', own))
        victim.wait_text('Gb/s')
        victim.kill()
        until_true(lambda: f'{mode}: nobody notices: {server.process.tail()}',
                   lambda n=n: server.process.out().count(' errors: ') == n)
        Run(link, ['--mode', mode, '--count', '200', '--verify']).check_ok()
    status, result = server.stop()
    check(result['leaks'] == link.no_leaks, f'{result["leaks"]} leaks')
    check(status == 1 and result['sessions_failed'] == 4, f'{status}, {result["sessions_failed"]}')
    link.stop()


def restarted(work, kind=Memif):
    """A peer that restarts with the same address is a new peer. (RT-24)"""
    link = kind(work)
    for _ in range(3):
        server = Server(link)
        Run(link, ['--mode', 'push', '--count', '500', '--verify']).check_ok()
        server.process.kill()
        if kind is Memif and os.path.exists(link.socket):
            os.unlink(link.socket)
    link.stop()


def main():
    need_namespaces('ethtool', 'sysctl')
    tests = Tests()
    with Work() as work:
        for name, test, args in [
                ('server killed', server_killed, (False,)),
                ('server killed, another one started', server_killed, (True,)),
                ('client killed', client_killed, ()),
                ('server restarted', restarted, ())]:
            tests.add_long(name, test, *args, work)
            tests.add(f'attached: {name}', alone, functools.partial(test, *args, kind=Attached))
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
