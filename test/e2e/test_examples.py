#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs at the first try: an example says what it waits for and leaves no socket behind when it
is told to end; a memif socket that a killed process left behind is in nobody's way. (SYS-2)
"""

import os
import socket
import sys

from daemon import Daemon
from e2e import (BUILD, CLIENT_IP, SERVER_IP, Memif, Null, Tests, Work, check, cpus,
                 until_true)

NAMES = ('pingpong', 'stream', 'kvget')


def start(work, link, name, role, *more):
    ip = SERVER_IP if role == 'server' else CLIENT_IP
    eal = ' '.join(work.eal(cpus()[0], link.vdev(role)))
    return work.start(f'{name}-{role}', [os.path.join(BUILD, f'examples/{name}'), role,
                                         f'dpdk:{eal} -- ip={ip}/24 idle=sleep', *more])


def says(process, text):
    def look():
        check(process.is_alive(), f'{process.name} has ended: {process.tail()}')
        return text in process.out() + process.err()
    until_true(lambda: f'{process.name} does not say "{text}": {process.tail()}', look)


def ends_by_signal(work):
    """It says what it waits for; told to end it takes the socket with it and dies of the signal."""
    for name in NAMES:
        for signal, number in (('TERM', 15), ('INT', 2)):
            link = Memif(work)
            server = start(work, link, name, 'server')
            says(server, f'{name}: waiting for a peer')
            check(os.path.exists(link.socket), f'{name} has no socket')
            server.signal(signal)
            check(server.wait() == -number, f'{name}, {signal}: {server.tail()}')
            check(not os.path.exists(link.socket), f'{name}, {signal}: the socket is still there')


def client_waits(work):
    """A client says whom it waits for, and ends at once when it is told to."""
    for name in NAMES:
        client = start(work, Null(work), name, 'client', SERVER_IP)
        says(client, f'{name}: waiting for the peer at {SERVER_IP}')
        client.signal('INT')
        check(client.wait() == -2, f'{name}: {client.tail()}')


def leave_socket(path):
    """As a process does that is killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
        s.listen()


def stale_socket(work):
    """Nobody listens there any more: a server takes the place."""
    link = Memif(work)
    leave_socket(link.socket)
    server = start(work, link, 'pingpong', 'server')
    says(server, 'waiting for a peer')
    client = start(work, link, 'pingpong', 'client', SERVER_IP, '100')
    check(client.wait() == 0 and server.wait() == 0, f'{client.tail()} {server.tail()}')

    link = Memif(work)
    leave_socket(link.socket)
    bench = work.start('sanbench', link.program('server', ['--server']))
    bench.wait_text('listening')
    check(bench.stop() == 0, bench.tail())

    link = Memif(work)
    leave_socket(link.socket)
    daemon = Daemon(work, 'server', vdev=link.vdev('server'))
    daemon.stop()


def not_ours(work):
    """A socket in use stays, and so does what is no socket; both are told."""
    link = Memif(work)
    first = start(work, link, 'pingpong', 'server')
    says(first, 'waiting for a peer')
    second = start(work, link, 'pingpong', 'server')
    check(second.wait() == 1, second.tail())
    check(f'{link.socket}: another process has this memif socket' in second.err(), second.tail())
    client = start(work, link, 'pingpong', 'client', SERVER_IP, '100')
    check(client.wait() == 0 and first.wait() == 0, f'{client.tail()} {first.tail()}')

    link = Memif(work)
    with open(link.socket, 'w', encoding='utf-8') as f:
        f.write('precious')
    bench = work.start('sanbench', link.program('server', ['--server']))
    check(bench.wait() != 0 and f'{link.socket}: is no socket' in bench.err(), bench.tail())
    with open(link.socket, encoding='utf-8') as f:
        check(f.read() == 'precious', 'the file was written to')


def main():
    tests = Tests()
    with Work() as work:
        tests.add('ended by a signal', ends_by_signal, work)
        tests.add('a client that waits', client_waits, work)
        tests.add('a socket left behind', stale_socket, work)
        tests.add("what is another's stays", not_ours, work)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
