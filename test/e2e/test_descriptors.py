#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Descriptors that programs pass to the daemon, in every possible way and slow to close, and a
daemon without free descriptors: others are not affected, and none is left in it. (SYS-5)"""

import os
import resource
import select
import signal
import socket
import struct
import sys
import time

from daemon import Daemon, alone, connected
from e2e import PATIENCE, Tests, check, until_true
from test_daemon import CQ_CREATE, HELLO, LISTEN, MR_ADD, REP, ask, dial, mr_body, request
from test_service import AsNobody

CQ_FD, EVENT_FD = 14, 15
FLOOD = 20
FDS = 128           # limit of a daemon that is to exhaust its descriptors
HELLO_FDS = 8       # more than a hello needs
LINGER_S = 60       # until close() returns although the peer reads nothing


def lingering(seconds=LINGER_S):
    """A TCP socket whose close() waits for a peer that does not read, and that peer."""
    listener = socket.create_server(('127.0.0.1', 0))
    s = socket.create_connection(listener.getsockname())
    peer = listener.accept()[0]
    listener.close()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, seconds))
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(65536))
    except BlockingIOError:
        return s, peer


def attach(daemon):
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    return s


def is_served(s):
    """True if it is answered at once. The request needs no descriptor."""
    s.settimeout(PATIENCE)
    try:
        return 'backlog' in ask(s, request(LISTEN))[1]
    except TimeoutError:
        return False


def text_of(answer):
    return answer[64:].partition(b'\0')[0].decode()


def read_one(s):
    """An answer; empty if the daemon has closed the socket."""
    try:
        return s.recv(4096)
    except ConnectionResetError:
        return b''


# ---- slow to close ----

def pass_one(bad, fds):
    """With a valid request."""
    socket.send_fds(bad, [request(MR_ADD, mr_body(4096))], fds)


def pass_many(bad, fds):
    """As the last of more than a message may have, which makes the socket unusable."""
    with open('/dev/null', 'rb') as null:
        socket.send_fds(bad, [request(MR_ADD, mr_body(4096))], [null.fileno()] * 200 + fds)


def pass_unread(bad, fds):
    """With messages that are never read, because the first one is invalid."""
    bad.send(b'none')
    for _ in range(20):
        socket.send_fds(bad, [request(MR_ADD, mr_body(4096))], fds)


def pass_empty(bad, fds):
    """With empty messages, which look like the end of the connection."""
    for _ in range(20):
        socket.send_fds(bad, [b''], fds)


def pass_last(bad, fds):
    """After as many others as a socket can hold."""
    bad.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    bad.setblocking(False)
    trial, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    trial.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    trial.setblocking(False)
    room = 0
    try:
        while True:
            trial.send(b'')
            room += 1
    except BlockingIOError:
        pass
    for _ in range(room - 1):
        bad.send(b'')
    socket.send_fds(bad, [b''], fds)
    trial.close()
    other.close()


def pass_back(pair, fds):
    """To the daemon's end of a wake pair, which receives nothing."""
    try:
        socket.send_fds(pair, [b'x'], fds)
    except BrokenPipeError:
        return False
    return True


def control(bad):
    return bad


def wakes(kind):
    """The program's end of a wake pair, of a completion queue or of events."""
    def get(bad):
        check(ask(bad, request(CQ_CREATE, struct.pack('<I', 16)))[0] == 0, 'queue')
        bad.send(request(kind))
        _, fds, _, _ = socket.recv_fds(bad, REP, 1)
        check(len(fds) == 1, 'no pair')
        return socket.socket(fileno=fds[0])
    return get


def halt(process):
    """Stop a process with SIGSTOP; it is stopped on return."""
    process.popen.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def keep_closing(daemon, seconds):
    """Keep the daemon closing a descriptor of our user for so long; others wait behind it."""
    bad = attach(daemon)
    slow, peer = lingering(seconds)
    halt(daemon.process)    # else this process may make the last close
    pass_one(bad, [slow.fileno()])
    slow.close()
    daemon.process.popen.send_signal(signal.SIGCONT)
    check(read_one(bad), 'no answer')
    return bad, peer


def slow_close(work, ways):
    """Descriptors whose close() takes very long: others are not affected, and they are closed
    finally."""
    # helpers avoid the lcore's CPU: they share that of the main thread, and may run before it goes on
    allowed = sorted(os.sched_getaffinity(0))
    daemon = Daemon(work, 'server', at=f'0@{allowed[0]},1@{allowed[-1]}')
    good = attach(daemon)
    with open('/dev/null', 'rb') as null:
        pass_one(good, [null.fileno()])
    check('no memfd' in text_of(good.recv(REP)), 'now it has a helper')
    before = daemon.held()
    for get, how in ways:
        bad = attach(daemon)
        way = get(bad)
        slow, peer = lingering()
        halt(daemon.process)    # so that all requests arrive together
        if how(way, [slow.fileno()]) is not False:
            slow.close()
        way.close()
        bad.close()
        daemon.process.popen.send_signal(signal.SIGCONT)
        daemon.settle(before)       # /proc does not list one that is being closed
        check(is_served(good), f'{how.__name__}: held up')
        peer.close()
        slow.close()
    good.close()
    daemon.stop()


def flood(work):
    """The requests of a program that passes such descriptors repeatedly wait until they are closed,
    except for one that gets a timeout; so do those of its user's other programs. Another user is
    served meanwhile."""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server')
    os.chmod(daemon.path, 0o666)
    with AsNobody():
        bad = dial(daemon)
        late = dial(daemon)
    for s in (bad, late):
        check(ask(s, request(HELLO))[0] == 0, 'hello')
        s.settimeout(PATIENCE)
    good = attach(daemon)
    pairs = [lingering() for _ in range(FLOOD)]
    halt(daemon.process)    # else this process may make the last close
    for slow, _ in pairs:
        pass_one(bad, [slow.fileno()])
        slow.close()
    daemon.process.popen.send_signal(signal.SIGCONT)
    check('no memfd' in text_of(bad.recv(REP)), 'the first one')
    check('holds up' in text_of(bad.recv(REP)), 'the one behind it')
    with open('/dev/null', 'rb') as null:
        pass_one(late, [null.fileno()])     # nobody can fetch it
    for _ in range(1000):
        check(is_served(good), 'another user')
    check(not select.select([bad, late], [], [], 0)[0], 'one more is answered')
    for i, (slow, peer) in enumerate(pairs, 1):
        peer.close()        # the lingering socket is closed now, and the next request is fetched
        slow.close()
        check(not 2 <= i < FLOOD or bad.recv(REP), 'it is not served any more')
    check(is_served(bad), 'it is not served any more')
    check(late.recv(REP), 'another program of its user')
    for s in (good, bad, late):
        s.close()
    daemon.stop()


# ---- no descriptors left ----

def knock(daemon):
    """One more application, or None."""
    s = dial(daemon)
    s.settimeout(PATIENCE)
    try:
        if ask(s, request(HELLO))[0] == 0:
            return s
    except (BrokenPipeError, ConnectionResetError):
        pass
    s.close()
    return None


def busy(daemon, seconds=1):
    """The CPU share of the serving thread."""
    def used():
        with open(f'/proc/{daemon.process.pid}/task/{daemon.process.pid}/stat',
                  encoding='utf-8') as f:
            return sum(map(int, f.read().rpartition(')')[2].split()[11:13]))
    before = used()
    time.sleep(seconds)
    return (used() - before) / os.sysconf('SC_CLK_TCK') / seconds


def is_refused(daemon, mute):
    """Without a free descriptor one connection is closed: the new one, or the oldest of user 0 that
    is silent. The others stay."""
    while mute:
        mute.pop().close()
    mute += [dial(daemon) for _ in range(HELLO_FDS)]
    with dial(daemon) as late:
        return 0 < len(select.select([late, *mute], [], [], 1)[0]) < len(mute)


def exhausted(work):
    """Without descriptors no new application is served and the others are unaffected; later new
    ones are."""
    daemon = Daemon(work, 'server', wrap=['prlimit', f'--nofile=64:{FDS}', '--'],
                    limits='apps = 255')
    check(resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE) == (FDS, FDS), 'its limit')
    before = daemon.held()
    server, client = connected(work, [daemon.spec] * 2, (), '20000')
    for p in (server, client):
        halt(p)
    apps = []
    while (s := knock(daemon)) is not None:
        apps.append(s)
        check(len(apps) < FDS, 'there is no end')
    mute = []       # connections that leave too few descriptors for a hello
    until_true('a connection that is refused', lambda: is_refused(daemon, mute))
    check(not any(knock(daemon) for _ in range(50)), 'one more has come')
    check(busy(daemon) < 0.2, 'it asks again and again')
    for s in apps:
        check(is_served(s), 'held up')
    check(ask(apps[0], request(CQ_CREATE, struct.pack('<I', 16)))[0] < 0, 'a queue without any')
    check(is_served(apps[0]), 'for what it was refused it is ended')
    check(server.is_alive(), server.tail())
    for p in (server, client):
        p.signal('CONT')
    check(client.wait() == 0 and server.wait() == 0, f'{client.tail()} {server.tail()}')
    apps.pop().close()
    until_true('room for another one', lambda: apps.append(knock(daemon)) or apps[-1])
    for s in filter(None, apps + mute):
        s.close()
    daemon.settle(before)
    daemon.stop()
    print(f'# {len(apps)} applications')


def main():
    tests = Tests()
    tests.add('slow to close, with requests', alone, lambda work: slow_close(
        work, [(control, pass_one), (control, pass_many), (control, pass_unread)]))
    tests.add('slow to close, with messages of no bytes', alone, lambda work: slow_close(
        work, [(control, pass_empty), (control, pass_last)]))
    tests.add('slow to close, by a wake-up\'s pair', alone, lambda work: slow_close(
        work, [(wakes(CQ_FD), pass_back), (wakes(EVENT_FD), pass_back)]))
    if os.geteuid() == 0:
        tests.add('a flood of them', alone, flood)
    tests.add('no descriptors left', alone, exhausted)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
