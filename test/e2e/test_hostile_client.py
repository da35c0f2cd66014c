#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that attack their own daemon, each in its own way, while two others use it. These are
not disturbed, their data is correct, and afterwards everything is released. (SYS-5, ARCH-5)"""

import contextlib
import os
import socket
import struct
import sys

import test_daemon
from daemon import wait_listening
from e2e import BUILD, SANITIZE, Process, Tests, Work, check
from test_daemon import (CQ_CREATE, FILECOPY, HELLO, IP, LISTEN, MR_ADD, QP_CREATE, Daemon, ask,
                         ask_id, memfd, mr_body, request)
from test_service import NOBODY, AsNobody, conn_body

HOSTILE = os.path.join(BUILD, 'test/e2e/hostile_client')
PARTITION = os.path.join(BUILD, 'test/e2e/partition')
NO_SEALS = os.path.join(BUILD, 'test/e2e/libno_seals.so')
QP_DESTROY = 7
COPIES = 4      # files copied during an attack
PORT = 'conns = 1024\nregions = 256\ncqs = 512'


def hostile(work, daemon, mode, peer=IP['server']):
    return Process(work, mode, [HOSTILE, mode, daemon.path, peer])


def works(work, daemon, how):
    """One program of the daemon copies a file to another, unchanged."""
    out = work.path('copy.out')
    server = Process(work, 'server', [FILECOPY, 'server', daemon.spec, out])
    wait_listening(daemon, server)
    client = Process(work, 'client', [FILECOPY, 'client', daemon.spec, IP['server'], HOSTILE, how])
    check(client.wait() == 0 and server.wait() == 0, f'{client.tail()} {server.tail()}')
    with open(out, 'rb') as got, open(HOSTILE, 'rb') as sent:
        check(got.read() == sent.read(), 'the copy is another file')


def attacked(work, mode, copies=COPIES, port=PORT, limits='', peer=IP['server']):
    daemon = Daemon(work, 'server', port, limits)
    before = daemon.held()
    attacker = hostile(work, daemon, mode, peer)
    for i in range(copies):
        works(work, daemon, ('push', 'send')[i % 2])
    check(attacker.stop() == 0, attacker.tail())
    check(mode != 'holes' or 'its memory failed' in daemon.process.err(), daemon.process.tail())
    daemon.settle(before)
    daemon.stop()
    print(f'# {copies} copies; {attacker.out().strip()}')


def marked(work):
    """Neither other applications nor the network see data of an application that has ended."""
    capture = work.path('marked.pcapng')
    daemon = Daemon(work, 'server', PORT + f'\ncapture = {capture}')
    before = daemon.held()
    for how in ('beside', 'behind', 'behind'):
        secret = hostile(work, daemon, 'secret')
        secret.wait_text('filled')
        if how == 'behind':
            secret.kill()
            daemon.settle(before)
        looks = hostile(work, daemon, 'looks')
        check(looks.wait() == 0, f'{how}: {looks.tail()}')
        secret.kill()
        daemon.settle(before)
    daemon.stop()


def without_seals():
    """Environment of a daemon whose memory may fail; sanitizers require to be loaded first."""
    options = [o for o in [os.environ.get('ASAN_OPTIONS')] if o] + ['verify_asan_link_order=0']
    return {'LD_PRELOAD': NO_SEALS, 'ASAN_OPTIONS': ':'.join(options)}


def sigbus(work):
    """Memory that programs share with the daemon fails: these applications end, all others
    go on."""
    # sanitizers turn it off anyway
    for seccomp in ('',) if SANITIZE else ('seccomp = off', 'seccomp = on'):
        daemon = Daemon(work, 'server', PORT, daemon=seccomp, env=without_seals())
        before = daemon.held()
        server, client = test_daemon.connected(work, [daemon.spec] * 2)
        os.chmod(work.dir, 0o777)
        os.chmod(daemon.path, 0o666)
        # LeakSanitizer fails in a program that has changed its user
        for user in (contextlib.nullcontext, *(() if SANITIZE else (AsNobody,))):
            for rc in (0, 1):   # a user may do so once a minute
                with user():
                    attacker = hostile(work, daemon, 'sigbus')
                check(attacker.wait() == rc, f'{attacker.tail()} {daemon.process.tail()}')
        check('its memory failed' in daemon.process.err(), daemon.process.tail())
        check(server.is_alive() and client.is_alive(), f'{server.tail()} {client.tail()}')
        server.kill()
        client.kill()
        daemon.settle(before)
        daemon.stop()


def partitions(work):
    """Applications of different partitions can't communicate, on one daemon or on two."""
    names = '[partitions]\n0xffff = all\n0x8001 = all'
    server = Daemon(work, 'server', PORT, limits=names)
    client = Daemon(work, 'client', PORT, limits=names)
    before = server.held(), client.held()
    for daemon in (client, server):
        both = Process(work, 'both', [PARTITION, daemon.path, server.path, IP['server'], '0x8001'])
        check(both.wait() == 0, f'{both.tail()} {server.process.tail()}')
    for daemon, held in zip((server, client), before):
        daemon.settle(held)
    for daemon in (server, client):
        daemon.stop()


def counted(work):
    """Memory of queues counts against the limit of an application, and is released."""
    daemon = Daemon(work, 'server', PORT, 'bytes = 64K')
    s = test_daemon.dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    check('left of its limit' in ask(s, request(CQ_CREATE, struct.pack('<I', 4096)))[1], 'queue')
    check(ask(s, request(CQ_CREATE, struct.pack('<I', 64)))[0] == 0, 'a queue that fits')
    create = request(QP_CREATE, struct.pack('<IIII', 0, 0, 128, 128))
    for first in (True, False, False):
        socket.send_fds(s, [create], [])
        data, fds, _, _ = socket.recv_fds(s, test_daemon.REP, 1)
        rc, qp = struct.unpack_from('<i4xI', data, 8)
        check(rc == 0, 'a queue pair that fits')
        os.close(fds[0])
        if first:
            check(ask(s, create)[0] == 0, 'and another one')
        check('left of its limit' in ask(s, create)[1], 'one more')
        check(ask(s, request(QP_DESTROY, number=qp))[0] == 0, 'destroy')
    s.close()
    daemon.stop()


def crowded_out(work):
    """A program that connects without end gets its share of connections, and others get theirs."""
    attacked(work, 'churn', 10 * COPIES, 'conns = 256', 'conns = 64', IP['client'])


# A request for one more, the places of the port, and those that a program may take.
HOGGED = {
    'queue pairs': (None, 256, 192),
    'completion queues': (request(CQ_CREATE, struct.pack('<I', 16)), 512, 256),
    'regions': (request(MR_ADD, mr_body(4096)), 256, 100),
    'listeners': (None, 256, 8),
}


class Program:
    """An attached program of a user, which takes places."""

    def __init__(self, daemon, uid):
        os.seteuid(uid)
        self.s = test_daemon.dial(daemon)
        os.seteuid(0)
        check(ask(self.s, request(HELLO))[0] == 0, 'hello')
        self.fd, self.nb = memfd(4096), 0
        self.cq = ask_id(self.s, HOGGED['completion queues'][0])[1]

    def take(self, what):
        """Take one more place. The result and the text of the answer."""
        one = HOGGED[what][0]
        if what == 'listeners':
            one = request(LISTEN, conn_body((self.fd << 32) + self.nb, 0, 1), number=self.nb)
        if what == 'queue pairs':
            one = request(QP_CREATE, struct.pack('<IIII', self.cq, self.cq, 16, 16))
        rc, why = ask(self.s, one, [self.fd] if what == 'regions' else ())
        self.nb += rc == 0
        return rc, why


def hogged(work, what):
    """A user with many programs takes all that it may. Another one gets a place, and so does root;
    the log says so, but not each time."""
    places, each = HOGGED[what][1:]
    daemon = Daemon(work, 'server', 'conns = 256\nregions = 256\ncqs = 512', 'regions = 100')
    os.chmod(work.dir, 0o755)
    os.chmod(daemon.path, 0o666)
    hogs, why = [], ''
    while not hogs or hogs[-1].nb != 0:
        check(len(hogs) <= places / each, f'{what}: {[hog.nb for hog in hogs]}')
        hogs.append(Program(daemon, NOBODY))
        while (one := hogs[-1].take(what))[0] == 0:
            pass
        why = one[1]
    nb = sum(hog.nb for hog in hogs)
    check(f'of user {NOBODY}' in why, why)
    check(places / 2 < nb < places * 3 / 4, f'{what}: {nb} places')
    lines = [line for line in daemon.process.err().splitlines() if f'of user {NOBODY}' in line]
    check(len(lines) == 1, f'{lines}')
    for uid in (5, 0):
        rc, why = Program(daemon, uid).take(what)
        check(rc == 0, f'{what}, user {uid}: {why}')
    daemon.stop()


def rings_all(work):
    """Full rings of 200 queue pairs, with doorbells rung all the time, do not stall
    other programs."""
    daemon = Daemon(work, 'server', PORT)
    attacker = hostile(work, daemon, 'bells')
    attacker.wait_text('ready')
    server, client = test_daemon.connected(work, [daemon.spec] * 2, rounds='500')
    check(client.wait() == 0 and server.wait() == 0, f'{client.tail()} {server.tail()}')
    check(attacker.stop() == 0, attacker.tail())
    daemon.stop()


def alone(test, *args):
    with Work() as work:
        test(work, *args)


def main():
    tests = Tests()
    for mode, name in [
            ('flip', 'entries that change while they are read'),
            ('foreign', 'regions of others, gone, or made up'),
            ('holes', 'memory that goes while it is worked on'),
            ('floods', 'descriptors, half messages, unread answers'),
            ('stages', 'gone at every step'),
            ('armed', 'always waiting, never reading'),
    ]:
        tests.add(name, alone, attacked, mode)
    tests.add('marked memory', alone, marked)
    tests.add('memory that fails', alone, sigbus)
    tests.add('partitions', alone, partitions)
    tests.add('memory of queues', alone, counted)
    tests.add('connections without end', alone, crowded_out)
    for what in HOGGED:
        tests.add(f'one user takes all {what}', alone, hogged, what)
    tests.add('full rings', alone, rings_all)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
