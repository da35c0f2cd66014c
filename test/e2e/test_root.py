#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Root of a container has user ID 0 and no capability. It is not root of this host: it neither
takes root's reserve nor poses as a daemon that a new one takes over from. (SYS-8, SYS-9)"""

import os
import socket
import struct
import sys

from daemon import PINGPONG, Daemon, alone
from e2e import HERE, OWN_MOUNTS, PATIENCE, Process, Tests, check, need_namespaces, until_true
from test_daemon import ABI, HELLO, MAGIC, REP, answer, ask, dial, request, say_as
from test_service import AsNobody, listen
from test_takeover import SLEEP, conf_with, has_rights, next_one, takeover

NULL = '--vdev=net_null0,no-rx=1'
CONTAINER = [*OWN_MOUNTS, '--pid', '--kill-child', '--mount-proc',
             'setpriv', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs']


def in_container(work, name, text, *args):
    """Run Python text there, with the functions of this file. It ends with the test."""
    return Process(work, name, [*CONTAINER, sys.executable, '-c',
                                f'import sys; sys.path.insert(0, {HERE!r})\n'
                                f'from test_root import *\n{text}', *args])


class At:
    """A daemon of which only the path is known."""

    def __init__(self, path):
        self.path = path


def attach(s, proves):
    """Say hello as root of this host, or as any process of user 0."""
    if not proves:
        return ask(s, request(HELLO))
    say_as(s, 1, request(HELLO))
    return answer(s)


# ---- places ----

TAKE_ALL = """
held, rc, why = [], 0, ''
while rc == 0:
    held.append(dial(At(sys.argv[1])))
    rc, why = ask(held[-1], request(HELLO))
print('attached', len(held) - 1, why, flush=True)
signal.pause()
"""
STAY_SILENT = """
held = []
while True:
    with contextlib.suppress(OSError):
        held.append(dial(At(sys.argv[1])))
    if len(held) == 100: print('connected', flush=True)
    time.sleep(0.001)
"""


def attached(work):
    """It gets the share of one user. Others get theirs, and the reserve is left to root."""
    daemon = Daemon(work, 'server', SLEEP, limits='apps = 32', vdev=NULL)
    os.chmod(work.dir, 0o755)
    os.chmod(daemon.path, 0o777)
    hog = in_container(work, 'hog', 'import signal\n' + TAKE_ALL, daemon.path)
    hog.wait_text('attached')
    check('attached 23 ' in hog.out(), hog.out())    # three quarters of the places without root's
    held = []
    with AsNobody():
        held.append(dial(daemon))
        check(ask(held[0], request(HELLO))[0] == 0, 'another user has no place')
    for proves, served in ((False, False), (True, True)):
        held.append(dial(daemon))
        rc, why = attach(held[-1], proves)
        check((rc == 0) == served, f'root with proof {proves}: {rc} {why}')
    server = Process(work, 'server', [PINGPONG, '-w', 'server', daemon.spec])
    until_true(server.tail, lambda: 'waiting for a peer' in server.err() + server.out())
    server.kill()
    hog.kill()
    daemon.stop()


def silent(work):
    """Connections without a hello take neither the reserve nor the places of others."""
    daemon = Daemon(work, 'server', SLEEP, limits='unattached = 16', vdev=NULL)
    os.chmod(work.dir, 0o755)
    os.chmod(daemon.path, 0o777)
    hog = in_container(work, 'hog', 'import contextlib, time\n' + STAY_SILENT, daemon.path)
    hog.wait_text('connected')
    with AsNobody():
        mute = [dial(daemon) for _ in range(20)]    # all places that are not root's
    for _ in range(50):
        with dial(daemon) as s:
            rc, why = attach(s, True)
            check(rc == 0, f'root has no place: {why}')
    for s in mute:
        s.close()
    hog.kill()
    daemon.stop()


def partition(work):
    """A partition of root's is that of root of this host, also after a takeover."""
    daemon = Daemon(work, 'server', SLEEP, limits='[partitions]\n0x8001 = user:root', vdev=NULL)
    socks = {proves: dial(daemon) for proves in (False, True)}
    for i in range(2):
        for proves, s in socks.items():
            if i == 0:
                check(attach(s, proves)[0] == 0, 'hello')
            rc, why = listen(s, 5 + i, 0x8001)
            check((rc == 0) == proves, f'with proof {proves}, {i} takeovers: {rc} {why}')
        if i == 0:
            daemon = takeover(daemon)
    for s in socks.values():
        s.close()
    daemon.stop()


# ---- a false daemon ----

ANSWER = struct.pack('<II', MAGIC, ABI).ljust(REP, b'\0')
NOTE = b'sanstack-daemon: I have the ports\0'     # takeover.c
POSE = """
import os, select
l = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
l.bind(sys.argv[1])
l.listen()
print('poses', flush=True)
l.accept()[0].close()       # first the new daemon checks that one is there
s = l.accept()[0]
select.select([s], [], [])  # the request is there
if sys.argv[2] == 'no note':
    notes = []
elif sys.argv[2] == 'a file':
    notes = [os.open('/dev/null', os.O_RDWR)]
elif sys.argv[2] == 'the request of root':
    notes = [s.fileno()]    # which it has not received yet
else:
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    say_as(other, os.getpid(), NOTE)
    notes = [mine.fileno()]
socket.send_fds(s, [ANSWER], notes)
for _ in range(3):
    print('asked' if s.recv(1000) else 'left', flush=True)
"""


def false_daemon(work):
    """A new daemon takes nothing from a daemon that does not prove what it is."""
    daemon = Daemon(work, 'server', SLEEP, vdev=NULL)
    for i, kind in enumerate(('no note', 'a file', 'the request of root', 'its own note')):
        path = work.path(f'false{i}')
        false = in_container(work, f'false{i}', POSE, path, kind)
        false.wait_text('poses')
        new = next_one(daemon, conf_with(daemon, f'false{i}.conf', (daemon.path, path)))
        check(new.wait() == 1 and 'neither root of this host' in new.err(), f'{kind}: {new.tail()}')
        false.wait_text('left')
        false.kill()
    daemon.stop()


def without_rights(work):
    """A daemon of user 0 without capabilities takes over and is taken over by one that has them."""
    powerless = CONTAINER[CONTAINER.index('setpriv'):]
    daemon = Daemon(work, 'server', SLEEP, vdev=NULL, wrap=powerless)
    check(not has_rights(daemon.process), 'it has rights')
    for wrap in ((), powerless, ()):
        new = next_one(daemon, wrap=wrap)
        check(daemon.process.wait() == 0, f'{daemon.process.tail()} {new.tail()}')
        new.wait_text('ready')
        daemon.process = new
    daemon.stop()


def main():
    need_namespaces('setpriv')
    tests = Tests()
    tests.add('places of programs', alone, attached)
    tests.add('connections without a hello', alone, silent)
    tests.add('a partition of root', alone, partition)
    tests.add('a false daemon', alone, false_daemon)
    tests.add('daemons without rights', alone, without_rights)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
