#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""sanstack-daemon: attached programs that link librtsan without DPDK, against embedded ones and
each other; programs that die or misbehave. (SYS-2, SYS-5)"""

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

from daemon import (DAEMON, IP, PINGPONG, Daemon, alone, check_notified, connected, eal, embedded,
                    wait_listening, write_conf)
from e2e import BUILD, IS_CHECK, PATIENCE, SANITIZE, Process, Tests, check, until_true

SCRIBBLE = os.path.join(BUILD, 'test/e2e/scribble')
FILECOPY = os.path.join(BUILD, 'examples/filecopy')
LIFECYCLE = os.path.join(BUILD, 'test/e2e/lifecycle')
REQ, REP, MAGIC, ABI = 176, 256, 0x716d6873, 11
HELLO, MR_ADD, CQ_CREATE, QP_CREATE, LISTEN, CONNECT, TYPES = 1, 2, 4, 6, 8, 10, 27
UNLISTEN, ACCEPT, REJECT, DISCONNECT = 9, 11, 12, 13


def exchange(work, daemon):
    """An application of the server's daemon works with one that has an engine."""
    server = Process(work, 'server', [PINGPONG, '-w', 'server', daemon.spec])
    wait_listening(daemon, server)
    client = Process(work, 'client', [PINGPONG, '-w', 'client', embedded(work, 'client'),
                                      IP['server'], '300'])
    check(client.wait() == 0, client.tail() + daemon.process.tail())
    check(server.wait() == 0, server.tail())


def attached_server(work):
    daemon = Daemon(work, 'server')
    exchange(work, daemon)
    daemon.stop()


def attached_client(work):
    server = Process(work, 'server', [PINGPONG, '-w', 'server', embedded(work, 'server')])
    until_true('a link', lambda: os.path.exists(work.path('memif.sock')))
    daemon = Daemon(work, 'client')

    def talks():    # refused before the other one listens
        return Process(work, 'client', [PINGPONG, '-w', 'client', daemon.spec, IP['server'],
                                        '300']).wait() == 0
    until_true(server.tail, talks)
    check(server.wait() == 0, server.tail())
    daemon.stop()


def local(work):
    """Two programs on one daemon without a peer on its link: their traffic does not need it."""
    for lcores in (1, 2):
        daemon = Daemon(work, 'server', lcores=lcores)
        for end in connected(work, [daemon.spec] * 2, rounds='2000'):
            check(end.wait() == 0, end.tail())
        out = work.path('local.out')
        server = Process(work, 'server', [FILECOPY, 'server', daemon.spec, out])
        wait_listening(daemon, server)
        client = Process(work, 'client', [FILECOPY, 'client', daemon.spec, IP['server'], DAEMON,
                                           'push'])
        check(client.wait() == 0, client.tail())
        check(server.wait() == 0, server.tail())
        with open(out, 'rb') as got, open(DAEMON, 'rb') as sent:
            check(got.read() == sent.read(), 'the copy is another file')
        daemon.stop()


def lifecycle(work, roles=('server',)):
    """test_lifecycle, with daemons for *roles*: every end is reported, and nothing is left."""
    retry = 'cm_retry_ms = 50\ncm_retries = 6'
    daemons = {role: Daemon(work, role, f'conns = 256\n{retry}', limits='conns = 256')
               for role in roles}
    before = {role: d.held() for role, d in daemons.items()}
    specs = {role: d.spec for role, d in daemons.items()}
    server = Process(work, 'server', [LIFECYCLE, 'server', specs['server']])
    server.wait_text('listening')
    client = Process(work, 'client', [LIFECYCLE, 'client', specs.get('client') or embedded(
        work, 'client', retry.replace(' ', '').replace('\n', ' ')), IP['server']])
    check(client.wait() == 0, f'{client.tail()} {server.tail()}')
    check(server.wait() == 0, server.tail())
    for role, d in daemons.items():
        d.settle(before[role])
        d.settle_engine()
    for d in daemons.values():
        d.stop()


def lifecycle_both(work):
    lifecycle(work, ('server', 'client'))


def killed(work):
    """Either end is killed with SIGKILL repeatedly: the other end is notified, and nothing
    is left."""
    daemons = Daemon(work, 'server'), Daemon(work, 'client')
    before = [d.held() for d in daemons]
    rng = random.Random(5)
    for _ in range(6 if SANITIZE or IS_CHECK else 20):
        server, client = connected(work, [d.spec for d in daemons])
        time.sleep(rng.random() * 0.2)      # at a random moment
        check(server.is_alive() and client.is_alive(), f'{server.tail()} {client.tail()}')
        first, second = (server, client) if rng.random() < 0.5 else (client, server)
        first.kill()
        check(second.wait() != 0, f'{second.name} was not told: {second.tail()}')
        for d, want in zip(daemons, before):
            d.settle(want)
    for d in daemons:
        d.stop()


def daemon_dies(work):
    """Attached programs are notified of the daemon's death, and attach to the next one."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        daemon = Daemon(work, 'server')
        server = Process(work, 'server', [PINGPONG, 'server', daemon.spec])
        wait_listening(daemon, server)
        daemon.process.popen.send_signal(how)
        check_notified(server)
        daemon.process.wait()


# ---- hand-made requests ----

def dial(daemon):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(PATIENCE)
    s.connect(daemon.path)
    return s


def request(kind, body=b'', magic=MAGIC, abi=ABI, number=0):
    return (struct.pack('<IIII', magic, abi, kind, number) + body).ljust(REQ, b'\0')[:REQ]


def ask_id(s, message):
    """The ID in an answer that has no descriptor."""
    s.send(message)
    data, got, _, _ = socket.recv_fds(s, REP, 4)
    for fd in got:
        os.close(fd)
    return struct.unpack_from('<i', data, 8)[0], struct.unpack_from('<I', data, 16)[0]


def ask(s, message, fds=()):
    socket.send_fds(s, [message], list(fds)) if fds else s.send(message)
    data, got, _, _ = socket.recv_fds(s, REP, 4)
    for fd in got:
        os.close(fd)
    if not data:
        return None, 'closed'
    return struct.unpack_from('<i', data, 8)[0], data[64:].split(b'\0')[0].decode()


def say_as(s, pid, message):
    """Send with the credentials of that process, which requires root."""
    s.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS,
                           struct.pack('iII', pid, os.getuid(), os.getgid()))])


def answer(s):
    data = s.recv(REP)
    return struct.unpack_from('<i', data, 8)[0], data[64:].partition(b'\0')[0].decode()


def memfd(size, seal=True):
    fd = os.memfd_create('hostile', os.MFD_ALLOW_SEALING)
    os.posix_fallocate(fd, 0, size)
    if seal:
        import fcntl
        fcntl.fcntl(fd, 1033, 2)        # F_ADD_SEALS, F_SEAL_SHRINK
    return fd


def mr_body(length, offset=0, access=0, addr=0x10000):
    return struct.pack('<QQQI', addr, length, offset, access)


def conn_body(service=0, pkey=0, backlog=0, asked=0, peer=b'', private_len=0, order=0):
    """struct shmq_conn."""
    return struct.pack('<HH4xQQ48s12xHBx64s', pkey, backlog, service, asked, peer, private_len,
                       order, b'')


def refused(work):
    """Requests that librtsan would not send are refused with a text."""
    daemon = Daemon(work, 'server', limits='regions = 2\nbytes = 1M\nqps = 2\ncqs = 2')
    s = dial(daemon)
    check('a hello must come first' in ask(s, request(CQ_CREATE))[1], 'before hello')
    check('version' in ask(s, request(HELLO, abi=ABI + 1))[1], 'another version')
    check('not a request' in ask(s, request(HELLO, magic=1))[1], 'another magic')
    check(ask(s, request(HELLO, b''.ljust(32, b'\0') + b'\1'))[0] == 0, 'a query')
    check('a hello must come first' in ask(s, request(CQ_CREATE))[1], 'a query does not attach')
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    check('before' in ask(s, request(HELLO))[1], 'hello twice')
    for kind in (0, TYPES, 2 ** 31):
        check('unknown kind' in ask(s, request(kind))[1], f'kind {kind}')
    good, short, bare = memfd(8192), memfd(4096), memfd(8192, seal=False)
    holes = memfd(8192)
    os.ftruncate(holes, 1 << 19)
    with open('/dev/zero', 'rb') as zero:
        cases = [
            (mr_body(4096), [], 'no descriptor'),
            (mr_body(4096), [zero.fileno()], 'is no memfd'),
            (mr_body(4096), [bare], 'F_SEAL_SHRINK'),
            (mr_body(8192), [short], 'fewer bytes'),
            (mr_body(8192), [holes], 'has holes'),
            (mr_body(4096, 2 ** 63), [good], 'fewer bytes'),
            (mr_body(8100, 100), [good], 'fewer bytes'),
            (mr_body(0), [good], 'bytes'),
            (mr_body(2 ** 20 + 1), [good], 'left of its limit'),
            (mr_body(2 ** 64 - 1), [good], 'left of its limit'),
        ]
        for body, fds, text in cases:
            rc, why = ask(s, request(MR_ADD, body), fds)
            check(rc < 0 and text in why, f'{text}: {rc} {why}')
    check(ask(s, request(MR_ADD, mr_body(4096, access=0xff)), [good])[0] < 0, 'unknown rights')
    for i in range(2):
        check(ask(s, request(MR_ADD, mr_body(4096)), [good])[0] == 0, f'region {i}')
    check('its limit' in ask(s, request(MR_ADD, mr_body(4096)), [good])[1], 'one region more')
    check(ask(s, request(CQ_CREATE, struct.pack('<I', 2 ** 31)))[0] < 0, 'depth')
    for i in range(2):
        check(ask(s, request(CQ_CREATE, struct.pack('<I', 16)))[0] == 0, f'queue {i}')
    check('its limit' in ask(s, request(CQ_CREATE, struct.pack('<I', 16)))[1], 'a queue more')
    for sizes in ((0, 8), (8, 0), (3, 8), (8, 2 ** 31), (2 ** 20, 8)):
        check('depths' in ask(s, request(QP_CREATE, struct.pack('<IIII', 0, 1, *sizes)))[1],
              f'depths {sizes}')
    check('no such completion queue' in
          ask(s, request(QP_CREATE, struct.pack('<IIII', 0, 7, 8, 8)))[1], "another's queue")
    rc, qp = ask_id(s, request(QP_CREATE, struct.pack('<IIII', 0, 1, 8, 8)))
    check(rc == 0, 'queue pair')
    cases = [
        (LISTEN, qp, conn_body(7), 'backlog'),
        (UNLISTEN, 0, conn_body(7), 'does not listen'),
        (CONNECT, qp, conn_body(7, peer=b'1' * 48), 'is not an address'),
        (CONNECT, qp, conn_body(7, peer=b'10.9.9.1/8'), 'is not an address'),
        (CONNECT, qp, conn_body(7, peer=b'10.9.9.1', order=4), 'order 4'),
        (CONNECT, qp, conn_body(7, peer=b'10.9.9.1', private_len=65), '65 bytes'),
        (CONNECT, qp + 1, conn_body(7, peer=b'10.9.9.1'), 'none with number'),
        (ACCEPT, qp, conn_body(private_len=65535), '65535 bytes'),
        (ACCEPT, qp, conn_body(asked=5), 'no such request'),
        (REJECT, 0, conn_body(private_len=65535), '65535 bytes'),
        (REJECT, 0, conn_body(asked=5), 'no such request'),
        (DISCONNECT, qp + 1, b'', 'none with number'),
    ]
    for kind, number, body, text in cases:
        rc, why = ask(s, request(kind, body, number=number))
        check(rc < 0 and text in why, f'{kind}, {text}: {rc} {why}')
    other = dial(daemon)
    check(ask(other, request(HELLO))[0] == 0, 'hello')
    for kind in (CONNECT, ACCEPT, DISCONNECT):
        rc, why = ask(other, request(kind, conn_body(7, peer=b'10.9.9.1'), number=qp))
        check('none with number' in why, f"{kind}, another's queue pair: {rc} {why}")
    check('no such completion queue' in
          ask(other, request(QP_CREATE, struct.pack('<IIII', 0, 1, 8, 8)))[1], "another's queue")
    for fd in (good, short, bare, holes):
        os.close(fd)
    s.close()
    other.close()
    daemon.stop()


def stream_body(mode=0xff, read=0, learn=3, scans=2, recv=32, store=32, send=32, t1=0, t2=0,
                threshold=0, size=1536, most=8192, buffer=0, linger=0):
    """struct shmq_qp of a stream."""
    return struct.pack('<IIIIB7x5Bx6H2x7I', 0, 0, 16, 16, 1, mode, read, learn, scans, linger, recv,
                       store, send, t1, t2, 0, threshold, size, most, buffer, 0, 0, 0)


def streams_refused(work):
    """Invalid attributes of a stream: the text names the attribute, and nothing is
    left. (AFC-15)"""
    daemon = Daemon(work, 'server')
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    check(ask(s, request(CQ_CREATE, struct.pack('<I', 64)))[0] == 0, 'queue')
    before = daemon.held()
    for body, text in [
            (stream_body(mode=4), 'mode'),
            (stream_body(read=3), 'read'),
            (stream_body(recv=3), 'message buffers'),
            (stream_body(recv=1025), 'message buffers'),
            (stream_body(store=1), 'message buffers'),
            (stream_body(send=1), 'message buffers'),
            (stream_body(t2=1), 'T2'),
            (stream_body(recv=10, t2=9), 'T2 + 2'),
            (stream_body(t1=1), 'T1'),
            (stream_body(recv=10, t1=11), 'T1'),
            (stream_body(threshold=255), 'threshold'),
            (stream_body(threshold=65537), 'threshold'),
            (stream_body(size=511), 'message size'),
            (stream_body(size=4096, most=2048), 'message size'),
            (stream_body(most=65537), 'message size'),
            (stream_body(buffer=3000), 'send buffer'),
    ]:
        rc, why = ask(s, request(QP_CREATE, body))
        check(rc < 0 and 'stream: ' in why and text in why, f'{text}: {rc} {why}')
    check(daemon.held() == before, f'{daemon.held()} {before}')
    # a valid request succeeds after a refused one
    check(ask(s, request(QP_CREATE, stream_body(linger=0xff)))[0] == 0, 'a good one')
    s.close()
    daemon.stop()


def too_many(work):
    """One application more than allowed is refused, and may attach when another one has left."""
    daemon = Daemon(work, 'server', limits='apps = 1')
    first = dial(daemon)
    check(ask(first, request(HELLO))[0] == 0, 'hello')
    client = Process(work, 'client', [PINGPONG, 'client', daemon.spec, IP['client'], '1'])
    check(client.wait() == 1 and 'serves 1 applications' in client.tail(),
          client.tail())
    first.close()
    until_true('nobody is attached', lambda: '1' not in daemon.ask('apps'))
    second = dial(daemon)
    check(ask(second, request(HELLO))[0] == 0, 'hello of the next one')
    second.close()
    daemon.stop()


def garbage(work):
    """Arbitrary data on the socket: the daemon goes on and releases what it was sent."""
    daemon = Daemon(work, 'server')
    before = daemon.held()
    rng = random.Random(7)
    fds = [memfd(4096), memfd(1 << 20, seal=False)]
    for i in range(100 if SANITIZE else 400):
        s = dial(daemon)
        if rng.random() < 0.8:
            ask(s, request(HELLO))
        try:
            for _ in range(rng.randrange(12)):
                size = REQ if rng.random() < 0.9 else rng.randrange(1, 3 * REQ)
                body = rng.randbytes(size) if rng.random() < 0.5 else \
                    bytes(rng.choice((0, 0, 0, 1, 8, 255)) for _ in range(size))
                head = struct.pack('<IIII', MAGIC, ABI, rng.randrange(TYPES), 0)
                message = (head + body)[:size]
                extra = [rng.choice(fds) for _ in range(rng.choice((0, 0, 1, 1, 2, 50)))]
                socket.send_fds(s, [message], extra) if extra else s.send(message)
                if rng.random() < 0.7:
                    _, got, _, _ = socket.recv_fds(s, REP, 4)
                    for fd in got:
                        os.close(fd)
        except (BrokenPipeError, ConnectionResetError):
            pass                        # the daemon has closed it
        s.close()
        check(daemon.process.is_alive(), f'round {i}: {daemon.process.tail()}')
    for fd in fds:
        os.close(fd)
    daemon.settle(before)
    daemon.stop()


def scribble(work):
    """Programs overwrite the memory that they share with the daemon; other programs are not
    affected."""
    port = 'conns = 8192'       # numbers rest for a second, and these programs use many
    daemons = Daemon(work, 'server', port), Daemon(work, 'client', port)
    before = [d.held() for d in daemons]
    for seed in range(1 if SANITIZE or IS_CHECK else 3):
        liars = [Process(work, f'liar{role}', [SCRIBBLE, role, d.path, IP['server'],
                                               str(100 * seed + k)])
                 for k, (role, d) in enumerate(zip(('server', 'client'), daemons))]
        for _ in range(3):
            for end in connected(work, [d.spec for d in daemons], rounds='300'):
                check(end.wait() == 0, end.tail())
        check(all(p.stop() == 0 for p in liars), ' '.join(p.tail() for p in liars))
        check(any(not p.out().startswith('0 ') for p in liars), 'no queue pair was noticed')
        print('#', [p.out().strip() for p in liars])
        for d, want in zip(daemons, before):
            check(d.process.is_alive(), d.process.tail())
            d.settle(want)
    for d in daemons:
        d.stop()


def wrong_conf(work):
    """An invalid line is reported with its number, and the daemon does not start."""
    cases = [
        ('[port]\nip = 10.0.0.1/24\ncolour = blue\n', ':3: colour'),
        ('[port]\n\n# comment\nmtu = many\n', ':4: mtu: "many" is not'),
        ('[port]\npoll = caller\n', ':2: poll'),
        ('[limits]\napps = 0\n', ':2: apps: "0" is not 1 to 255'),
        ('[limits]\napps = -1\n', ':2: apps: "-1" is not 1 to 255'),
        ('[daemon]\nsocket = ' + 'x' * 200 + '\n', ':2: socket: "xxx'),
        ('[demon]\nsocket = x\n', ':1: [demon]: known are'),
        ('[partitions]\n0 = all\n', ':2: 0: a partition is a number'),
        ('[partitions]\n0x8001 = nobody\n', ':2: 0x8001 = nobody: neither user:NAME'),
        ('[partitions]\n1 = all\n0x1 = all\n', ':3: 0x1 = all: given twice'),
        ('[partitions]\n1 = user:no-such-user\n', ':2: 1 = user:no-such-user: no such user'),
        ('socket = x\n', ':1:'),
        ('[daemon]\nsocket\n', ':2:'),
        ('[daemon]\ncolour = blue\n', ':2: colour: unknown key of [daemon]'),
    ]
    for text, want in cases:
        path = write_conf(work, 'wrong.conf', text)
        done = subprocess.run([DAEMON, '--check-config', '-c', path], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        check(done.returncode == 1 and f'{path}{want}' in done.stderr, f'{text!r}: {done.stderr}')
    path = write_conf(work, 'right.conf', '[port]\nip = 10.0.0.1/24\n')
    done = subprocess.run([DAEMON, '--check-config', '-c', path], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    check(done.returncode == 0 and 'OK' in done.stdout, done.stderr)
    done = subprocess.run([DAEMON, '-c', work.path('absent.conf')], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    check(done.returncode == 1 and 'No such file' in done.stderr, done.stderr)


def one_at_a_time(work):
    """A second daemon on the same socket is refused; a killed one is replaced."""
    daemon = Daemon(work, 'server')
    second = subprocess.run([DAEMON, '-c', work.path('server.conf')], capture_output=True,
                            text=True, timeout=PATIENCE, check=False)
    check(second.returncode == 1 and 'another process has this socket' in second.stderr,
          second.stderr)
    daemon.process.kill()
    os.unlink(f'{work.dir}/memif.sock')         # memif's own socket, which DPDK would fail on
    Daemon(work, 'server').stop()
    check(not os.path.exists(daemon.path), 'the socket is left')


def make_socket(path):
    """Leave a socket file like a killed process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)


def make_foreign_socket(path):
    make_socket(path)
    os.chown(path, 65534, -1)


def make_file(path):
    with open(path, 'w', encoding='utf-8') as f:
        f.write('127.0.0.1 localhost\n')


def make_link(path):
    make_file(path + '.target')
    os.symlink(path + '.target', path)


def run_briefly(work, name, text):
    """A daemon with these keys and no use of a device. Returns its error output."""
    args = eal(work, 'server', '0@0,1@0', '--vdev=net_null0,no-rx=1')
    conf = write_conf(work, 'brief.conf', f"""[eal]
args = {args.replace('--log-level=error', '')}
[port]
ip = 10.0.0.1/24
idle = sleep
[daemon]
seccomp = {'off' if SANITIZE else 'on'}
{text}
""")
    process = Process(work, name, [DAEMON, '--config', conf])
    until_true(process.tail, lambda: not process.is_alive() or 'ready' in process.out())
    if process.is_alive():
        check(process.stop() == 0, process.tail())
    return process.err()


def other_files(work):
    """A socket or pidfile that the configuration names is removed only if it is one, the daemon's,
    and left behind."""
    cases = [(make_socket, None), (make_file, 'is no socket'), (make_link, 'is no socket'),
             (os.mkdir, 'is no socket'), (os.mkfifo, 'is no socket'),
             (make_foreign_socket, 'is no socket of root or of this user')]
    for i, (make, why) in enumerate(cases if os.getuid() == 0 else cases[:-1]):
        path = work.path(f'file{i}')
        make(path)
        before = os.lstat(path)
        err = run_briefly(work, f'socket{i}', f'socket = {path}')
        if why is None:
            check(not os.path.lexists(path), 'a socket that was left behind is not replaced')
            continue
        check(f'{path}: {why}' in err, f'{make.__name__}: {err}')
        after = os.lstat(path)
        check((before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns), err)
    cases = [('12345', None), ('', None), ('127.0.0.1 localhost\n', 'no pidfile'),
             ('1' * 100, 'no pidfile')]
    for i, (text, why) in enumerate(cases):
        path = write_conf(work, f'pid{i}', text)
        err = run_briefly(work, f'pid{i}', f'socket = {work.path("sock")}\npidfile = {path}')
        check(os.path.exists(path) == (why is not None) and (why or '') in err, f'{text}: {err}')
        if why is not None:
            with open(path, encoding='utf-8') as f:
                check(f.read() == text, 'it was emptied')


def replaced_socket(work):
    """What lies at the path of its socket when a daemon ends stays, unless it is a socket."""
    daemon = Daemon(work, 'server')
    os.unlink(daemon.path)
    make_file(daemon.path)
    daemon.stop()
    check(os.path.isfile(daemon.path), 'a file that is no socket was removed')
    check(f'{daemon.path}: is no socket of root or of this user; it stays' in daemon.process.err(),
          daemon.process.err())


def main():
    tests = Tests()
    for name, test in [
            ('attached server, embedded client', attached_server),
            ('attached client, embedded server', attached_client),
            ('two programs on one daemon', local),
            ('lifecycle, both attached', lifecycle_both),
            ('applications killed', killed),
            ('the daemon dies', daemon_dies),
            ('refused in words', refused),
            ('streams refused in words', streams_refused),
            ('too many', too_many),
            ('garbage on the socket', garbage),
            ('memory written over', scribble),
            ('wrong configuration', wrong_conf),
            ('one daemon at a time', one_at_a_time),
            ('other files at its paths', other_files),
            ('another file in place of its socket', replaced_socket),
    ]:
        tests.add(name, alone, test)
    tests.add_long('lifecycle, attached', alone, lifecycle)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
