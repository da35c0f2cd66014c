#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""sanstack-daemon as a service: messages to the service manager, dropped rights, reload of the
file, shutdown. (SYS-2, SYS-5)"""

import ctypes
import errno
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

from daemon import DAEMON, IP, PINGPONG, Daemon, alone, embedded
from e2e import (BUILD, OWN_MOUNTS, OWN_MOUNTS_SH, PATIENCE, SANITIZE, SLOW, SOURCE, Process, Tests,
                 Work, check, need_namespaces, until_true)
from test_daemon import (CONNECT, CQ_CREATE, HELLO, LISTEN, MR_ADD, QP_CREATE, answer, ask, ask_id,
                         conn_body, dial, exchange, memfd, mr_body, request, say_as, stream_body)

TRANSFER = os.path.join(BUILD, 'test/e2e/transfer')
LEAVER = os.path.join(BUILD, 'test/e2e/leaver')
# The units, and how exposed systemd says that they are at most: their comments say what by.
UNITS = {'apps/sanstack-daemon/sanstack-daemon.service': 3.0,
         'apps/sanstack-daemon/sanstack-daemon@.service': 3.0,
         'usertools/sanstack-metrics.service': 1.5}
SANCTL = os.path.join(SOURCE, 'usertools/sanctl')
NOBODY = 65534


def wait_log(daemon, text, count=1):
    until_true(lambda: f'"{text}", {count} times: {daemon.process.tail()}',
               lambda: daemon.process.err().count(text) >= count)


# ---- the service manager ----

class Manager:
    """The socket to which sd_notify() writes."""

    def __init__(self, work):
        self.path = work.path('notify')
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.said = []

    def listen(self, seconds=0):
        """Messages that have arrived, or arrive in that time."""
        until, got = time.monotonic() + seconds, []
        while True:
            self.sock.settimeout(max(until - time.monotonic(), 0))
            try:
                got += self.sock.recv(4096).decode().split('\n')
            except (TimeoutError, BlockingIOError):
                return got

    def wait(self, *words):
        """Wait for messages with each of these prefixes. Returns those since the last call."""
        said = []

        def has_all():
            said.extend(self.listen(0.05))
            return all(any(w.startswith(word) for w in said) for word in words)
        until_true(lambda: f'{words} among {said}', has_all)
        return said


def wait_title(daemon, nb):
    """Wait until the process title has the number of applications."""
    want = f'sanstack-daemon: serving {nb} applications on {daemon.path}'

    def title():
        with open(f'/proc/{daemon.process.pid}/cmdline', encoding='utf-8') as f:
            return f.read()
    until_true(title, lambda: title().startswith(want))


def told(work):
    """READY, STATUS, RELOADING and STOPPING, each at the right time; and the process title."""
    manager = Manager(work)
    daemon = Daemon(work, 'server', env={'NOTIFY_SOCKET': manager.path})
    manager.wait('READY=1', f'STATUS=serving 0 applications on {daemon.path}')
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    manager.wait(f'STATUS=serving 1 applications on {daemon.path}')
    wait_title(daemon, 1)
    s.close()
    manager.wait('STATUS=serving 0')
    daemon.process.signal('HUP')
    said = manager.wait('RELOADING=1', 'MONOTONIC_USEC=', 'READY=1')
    check('READY=1' in said[said.index('RELOADING=1'):], said)
    daemon.stop()
    manager.wait('STOPPING=1')


PTRACE_ATTACH, PTRACE_DETACH = 16, 17


def hold(tid):
    """Stop one thread, as if it hung."""
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.ptrace(PTRACE_ATTACH, tid, 0, 0) == 0, f'ptrace: {os.strerror(ctypes.get_errno())}')
    os.waitpid(tid, 0x40000000)             # __WALL


def let_go(tid):
    ctypes.CDLL(None).ptrace(PTRACE_DETACH, tid, 0, 0)


def threads(daemon):
    """{thread: its /proc status as a dictionary}"""
    found, folder = {}, f'/proc/{daemon.process.pid}/task'
    for tid in os.listdir(folder):
        with open(f'{folder}/{tid}/status', encoding='utf-8') as f:
            found[int(tid)] = dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)
    return found


def watchdog(work):
    """The watchdog is reset every half of its period, but not while an lcore hangs."""
    manager = Manager(work)
    daemon = Daemon(work, 'server', env={'NOTIFY_SOCKET': manager.path, 'WATCHDOG_USEC': '400000'})
    for _ in range(5):
        manager.wait('WATCHDOG=1')
    lcore = [tid for tid, t in threads(daemon).items() if re.search('worker', t['Name'])]
    check(len(lcore) == 1, threads(daemon))
    hold(lcore[0])
    wait_log(daemon, 'lcore=0 hangs', daemon.process.err().count('lcore=0 hangs') + 1)
    manager.listen()
    said = manager.listen(0.8)      # time for four resets
    let_go(lcore[0])
    check('WATCHDOG=1' not in said, f'told that an lcore that hangs lives: {said}')
    manager.wait('WATCHDOG=1')
    daemon.stop()


def pidfile(work):
    """A second daemon prints the PID of the first, whose end removes the file."""
    path = work.path('pid')
    daemon = Daemon(work, 'server', daemon=f'pidfile = {path}')
    with open(path, encoding='utf-8') as f:
        check(int(f.read()) == daemon.process.pid, 'another pid')
    second = subprocess.run([DAEMON, '-c', daemon.conf], capture_output=True, text=True,
                            timeout=PATIENCE, check=False)
    check(second.returncode == 1 and f'another daemon runs, pid {daemon.process.pid}' in
          second.stderr, second.stderr)
    daemon.stop()
    check(not os.path.exists(path), 'the pidfile is left')


# ---- dropped rights ----

def check_threads(daemon, uid, seccomp):
    seen = threads(daemon)
    check(len(seen) >= 4, f'only {len(seen)} threads')
    for tid, t in seen.items():
        for caps in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb'):
            check(int(t[caps], 16) == 0, f'thread {tid} {t["Name"]}: {caps} {t[caps]}')
        check(t['NoNewPrivs'] == '1', f'thread {tid} {t["Name"]} may gain rights')
        check(set(t['Uid'].split()) == {str(uid)}, f'thread {tid} {t["Name"]}: Uid {t["Uid"]}')
        check(SANITIZE or t['Seccomp'] == seccomp, f'thread {tid} {t["Name"]}: {t["Seccomp"]}')
        check(uid == 0 or '0' not in t['Groups'].split(), f'Groups {t["Groups"]}')
    return len(seen)


def telemetry(daemon, uid_folder):
    """A client of DPDK's telemetry, which starts a thread for it."""
    with open(daemon.conf, encoding='utf-8') as f:
        prefix = re.search(r'--file-prefix=(\S+)', f.read())[1]
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(PATIENCE)
    s.connect(os.path.join(uid_folder, 'dpdk', prefix, 'dpdk_telemetry.v2'))
    s.recv(16384)
    s.send(b'/sanstack/stats')
    check(b'loops' in s.recv(65536), 'no counters')
    return s


def all_threads(daemon, uid, seccomp='2', folder='/var/run'):
    before = check_threads(daemon, uid, seccomp)
    s = telemetry(daemon, folder)
    check(check_threads(daemon, uid, seccomp) > before, 'telemetry made no thread')
    s.close()


def other_user(work):
    """user =: every thread has that user and no other rights; the daemon serves, reads its file
    again, and removes its files."""
    os.chmod(work.dir, 0o777)
    daemon = Daemon(work, 'server', daemon=f'user = nobody\ngroup = root\npidfile = {work.dir}/pid',
                    log='driver = notice')
    all_threads(daemon, NOBODY)
    exchange(work, daemon)
    daemon.process.signal('HUP')
    wait_log(daemon, 'is read again')
    all_threads(daemon, NOBODY)
    daemon.stop()
    check(not os.path.exists(daemon.path) and not os.path.exists(work.path('pid')), 'files are left')
    check(not os.path.exists(work.path('memif.sock')), 'the socket of memif is left')
    for word in ('stays at the end', 'EAL'):
        check(word not in daemon.process.err(), daemon.process.err())


def root_without_rights(work):
    """Without user = it stays root, but without capabilities."""
    daemon = Daemon(work, 'server')
    all_threads(daemon, 0)
    exchange(work, daemon)
    daemon.stop()


def captured(work):
    """Lcores can still write captures to files."""
    path = work.path('port.pcapng')
    daemon = Daemon(work, 'server', port=f'conns = 64\ncapture = {path}')
    exchange(work, daemon)
    daemon.stop()
    check(os.path.getsize(path) > 50000, f'{os.path.getsize(path)} bytes of 600 packets')
    daemon.again().stop()
    check(0 < os.path.getsize(path) < 50000, f'{os.path.getsize(path)} bytes: not replaced')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('precious')
    again = subprocess.run([DAEMON, '-c', daemon.conf], capture_output=True, text=True,
                           timeout=PATIENCE, check=False)
    check(again.returncode == 1 and f'{path}: is no capture; it stays' in again.stderr, again.stderr)
    with open(path, encoding='utf-8') as f:
        check(f.read() == 'precious', 'a file that is no capture was overwritten')


# As PrivateTmp= and ProtectProc= of the unit: {} is another folder for the daemon.
CONFINED = OWN_MOUNTS_SH + """
mount -t tmpfs none {}
mount -t proc -o hidepid=invisible proc /proc
exec "$@"
"""


def confined(work):
    """A daemon that sees neither the caller's files nor other users' processes: sanctl captures into
    the caller's file, and applications have names. Without capabilities sanctl serves metrics, as soon
    as there is a daemon."""
    need_namespaces('setpriv')
    os.chmod(work.dir, 0o755)
    folder, conf = work.path('tmp'), work.path('server.conf')
    os.mkdir(folder, 0o700)
    http = Process(work, 'metrics', ['setpriv', '--bounding-set', '-all', '--no-new-privs', SANCTL,
                                     '--config', conf, 'metrics', '--listen', '127.0.0.1:0'])
    http.wait_text('listening')

    def scrape():
        with socket.create_connection(('127.0.0.1', int(http.out().rpartition(':')[2]))) as s:
            s.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
            return b''.join(iter(lambda: s.recv(65536), b'')).decode()

    def sanctl(*words):
        done = subprocess.run([SANCTL, '--config', conf, *words], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        check(done.returncode == 0, f'{words}: {done.stderr}')
        return done.stdout

    check(' 503 ' in scrape(), scrape())
    daemon = Daemon(work, 'server', daemon='user = nobody',
                    wrap=[*OWN_MOUNTS, 'sh', '-c', CONFINED.format(folder), 'sh'])
    server = Process(work, 'pingpong', [PINGPONG, '-w', 'server', daemon.spec])
    until_true(lambda: sanctl('apps'), lambda: ' pingpong ' in sanctl('apps'))
    check(' 200 ' in scrape() and 'name="pingpong"' in scrape(), scrape())
    server.kill()
    sanctl('capture', 'start', f'{folder}/one.pcapng', '--snap', '100')
    exchange(work, daemon)
    sanctl('capture', 'stop')
    size = os.path.getsize(f'{folder}/one.pcapng')
    check(size > 30000, f'{size} bytes of 600 packets')
    daemon.stop()
    check(' 503 ' in scrape(), scrape())
    http.kill()


def no_filter(work):
    """seccomp = off omits the filter, and nothing else."""
    daemon = Daemon(work, 'server', daemon='' if SANITIZE else 'seccomp = off')
    all_threads(daemon, 0, '0')
    daemon.stop()


def can_not_remove(work):
    """A folder of another user: the daemon warns at start and end, and the next one starts."""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server', daemon='user = nobody')
    check(f'{daemon.path} stays at the end' in daemon.process.err(), daemon.process.err())
    daemon.stop()
    check(f'{daemon.path}: Permission denied; it stays' in daemon.process.err(),
          daemon.process.err())
    for path in (daemon.path, work.path('memif.sock')):
        check(os.path.exists(path), path)
    os.unlink(work.path('memif.sock'))
    Daemon(work, 'server', daemon='user = nobody').stop()


def as_in_its_service(work):
    """Without the capabilities that its unit lacks it starts again where the one before, with them or
    without, has left the socket; and that is its group's."""
    os.chmod(work.dir, 0o755)
    less = ['setpriv', '--bounding-set', '-chown,-dac_override,-dac_read_search,-fowner', '--']
    for wrap in ([], less, less):
        daemon = Daemon(work, 'server', daemon='user = nobody\ngroup = nogroup', wrap=wrap)
        st = os.stat(daemon.path)
        check(st.st_gid == NOBODY and st.st_mode & 0o777 == 0o660, f'{st}')
        daemon.stop()
        check(os.path.exists(daemon.path), 'nothing is left')
        os.unlink(work.path('memif.sock'))


def unprivileged(work):
    """Started by a user without rights, on memif, without hugepages."""
    os.chmod(work.dir, 0o777)
    run = work.path('run')
    os.mkdir(run)
    os.chown(run, NOBODY, NOBODY)
    program = shutil.copy(DAEMON, work.path('daemon'))  # our folder may be closed to other users
    wrap = ['setpriv', '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups', '--',
            'sh', '-c', f'shift; exec {program} "$@"', 'sh']
    daemon = Daemon(work, 'server', wrap=wrap, env={'XDG_RUNTIME_DIR': run})
    daemon.runtime_dir = lambda: os.path.join(run, 'dpdk', daemon.prefix)
    all_threads(daemon, NOBODY, folder=run)
    exchange(work, daemon)
    daemon.stop()
    check(not os.path.exists(daemon.path), 'the socket is left')


def other_drivers(work):
    """Started with exactly the rights that a driver needs: it serves without them, and ends in
    order."""
    need_namespaces()
    os.chmod(work.dir, 0o777)
    program = shutil.copy(DAEMON, work.path('daemon'))
    for vdev, caps in (('net_af_packet0,iface=lo', '+net_raw,+net_admin'),
                       ('net_tap0,iface=tsan', '+net_admin'),
                       ('net_ring0', '-all')):
        if 'tap' in vdev and not os.access('/dev/net/tun', os.W_OK):
            continue
        run = work.path(vdev[:8])
        os.mkdir(run)
        os.chown(run, NOBODY, NOBODY)
        set_caps = '' if caps == '-all' else f'--inh-caps {caps} --ambient-caps {caps}'
        become = f'setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {set_caps} --'
        wrap = ['unshare', '--net', 'sh', '-c',
                f'ip link set lo up; shift; exec {become} {program} "$@"', 'sh']
        daemon = Daemon(work, 'server', vdev=f'--vdev={vdev}', wrap=wrap,
                        env={'XDG_RUNTIME_DIR': run})
        all_threads(daemon, NOBODY, folder=run)
        s = dial(daemon)
        check(ask(s, request(HELLO))[0] == 0, 'hello')
        check(ask(s, request(CQ_CREATE, struct.pack('<I', 16)))[0] == 0, 'queue')
        s.close()
        daemon.stop()


# ---- reload ----

def rewrite(daemon, old, new):
    with open(daemon.conf, encoding='utf-8') as f:
        text = f.read()
    check(old in text, f'{old} is not in {text}')
    with open(daemon.conf, 'w', encoding='utf-8') as f:
        f.write(text.replace(old, new))
    daemon.process.signal('HUP')


def read_again(work):
    """Valid changes take effect or are reported; an invalid file changes nothing."""
    daemon = Daemon(work, 'server', limits='regions = 2\ncqs = 3\n', log='driver = notice')
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    fd = memfd(8192)
    for i in range(2):
        check(ask(s, request(MR_ADD, mr_body(4096)), [fd])[0] == 0, f'region {i}')
    check('its limit' in ask(s, request(MR_ADD, mr_body(4096)), [fd])[1], 'one more')
    rewrite(daemon, 'regions = 2', 'regions = 3')
    wait_log(daemon, 'is read again')
    check(ask(s, request(MR_ADD, mr_body(4096)), [fd])[0] == 0, 'the new limit')
    # below the current use: affects only new ones
    rewrite(daemon, 'regions = 3', 'regions = 1\nbytes = 4096')
    wait_log(daemon, 'is read again', 2)
    check('has 3, its limit' in ask(s, request(MR_ADD, mr_body(4096)), [fd])[1], 'one more')
    # invalid: no change
    rewrite(daemon, 'regions = 1', 'regions = many')
    wait_log(daemon, ': regions: "many" is not 1 to')
    check(f'{daemon.conf}:' in daemon.process.err(), daemon.process.err())
    check('has 3, its limit' in ask(s, request(MR_ADD, mr_body(4096)), [fd])[1], 'as before')
    rewrite(daemon, 'regions = many\nbytes = 4096', 'regions = 9\nbytes = 4096')
    wait_log(daemon, 'is read again', 3)
    check('0 are left' in ask(s, request(MR_ADD, mr_body(4096)), [fd])[1], 'fewer bytes than held')
    # the same value in other words: no change
    rewrite(daemon, 'conns = 64', 'conns = 0x40')
    wait_log(daemon, 'is read again', 4)
    check('changed' not in daemon.process.err(), daemon.process.err())
    rewrite(daemon, 'conns = 0x40', 'conns = 32\nip = 10.9.9.9/8')
    wait_log(daemon, 'port.conns changed: needs a restart')
    wait_log(daemon, 'port.ip changed: needs a restart')
    check(daemon.process.err().count('port.conns changed') == 1, daemon.process.err())
    check('daemon.socket' not in daemon.process.err(), daemon.process.err())
    rewrite(daemon, 'socket = ', 'socket = /x')
    wait_log(daemon, 'daemon.socket changed: needs a restart')
    # log levels
    check('attached' not in daemon.process.err(), daemon.process.err())
    rewrite(daemon, 'driver = notice', 'driver = info')
    wait_log(daemon, 'is read again', 7)
    t = dial(daemon)
    check(ask(t, request(HELLO))[0] == 0, 'hello')
    wait_log(daemon, 'attached')
    os.close(fd)
    s.close()
    t.close()
    daemon.stop()


def journal(work):
    """Messages to the journal have priorities; syslog gets messages in its format."""
    out = work.path('daemon-server.0.err')
    with open(out, 'wb') as f:
        st = os.fstat(f.fileno())
    manager = Manager(work)
    daemon = Daemon(work, 'server', log='driver = info', env={
        'JOURNAL_STREAM': f'{st.st_dev}:{st.st_ino}', 'NOTIFY_SOCKET': manager.path})
    dial(daemon).close()
    s = dial(daemon)
    ask(s, request(HELLO))
    s.close()
    wait_log(daemon, '<6>san.driver: app=1')
    wait_log(daemon, ' detached')
    before = daemon.process.err()
    manager.listen()
    rewrite(daemon, '[log]', '[log]\ntarget = syslog')
    manager.wait('RELOADING=1', 'READY=1')
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    s.close()
    check(daemon.process.err() == before, 'syslog is standard error')
    daemon.stop()


# ---- shutdown ----

def start_transfer(work, drain, env=None):
    server = Process(work, 'server', [TRANSFER, 'server', embedded(work, 'server')])
    server.wait_text('listening')
    daemon = Daemon(work, 'client', daemon=f'drain = {drain}', env=env)
    client = Process(work, 'client', [TRANSFER, 'client', daemon.spec, IP['server']])
    client.wait_text('posted')
    return server, daemon, client


def check_told(server, client):
    """Both ends are notified: by an event, and the application finally by -EIO."""
    check(client.wait() == 0, client.tail())
    check('ended: 0' in client.out() and 'then Input/output error' in client.out(), client.tail())
    server.signal('USR1')
    check(server.wait() == 0 and 'ended: told' in server.out(), server.tail())


def drained(work):
    """Work posted before completes, later work is flushed, and every program is notified."""
    server, daemon, client = start_transfer(work, 300000)
    other = dial(daemon)
    check(ask(other, request(HELLO))[0] == 0, 'hello')
    daemon.process.signal('TERM')
    wait_log(daemon, 'applications=2: ends')
    until_true('the socket goes', lambda: not os.path.exists(daemon.path))
    check('about to end' in ask(other, request(8, bytes(48)))[1], 'it listens for somebody new')
    check(daemon.process.is_alive() and 'done' not in client.out(), 'too fast to see anything')
    client.signal('USR1')
    check(daemon.process.wait() == 0, daemon.process.tail())
    check_told(server, client)
    check('done 64 flushed 8 other 0' in client.out(), client.tail())
    check('had not ended' not in daemon.process.err(), daemon.process.tail())


def cut_off(work):
    """The time is over: likewise, and the rest is flushed."""
    for drain, signals in ((1, 1), (3600000, 2)):
        with Work() as own:
            server, daemon, client = start_transfer(own, drain)
            for _ in range(signals):    # two pending signals count as one
                daemon.process.signal('TERM')
                wait_log(daemon, ': ends, in ')
            check(daemon.process.wait() == 0, daemon.process.tail())
            check_told(server, client)
            check(re.search(r'done \d+ flushed [1-9]', client.out()), client.tail())
            check(not os.path.exists(daemon.path), 'the socket is left')


# ---- other users ----

class AsNobody:
    """A context in which the process has another user."""

    def __enter__(self):
        os.seteuid(NOBODY)

    def __exit__(self, *_):
        os.seteuid(0)


def listen(s, service, pkey):
    return ask(s, request(LISTEN, conn_body(service, pkey, 1), number=service))


def partitions(work):
    """A partition is limited to the users and groups that the file names, or open to all."""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server', daemon='group = nogroup', limits=f'[partitions]\n'
                    f'0xffff = all\n0x8001 = user:nobody, user:1\n0x8002 = group:{os.getgid()}')
    root = dial(daemon)
    os.setegid(NOBODY)
    with AsNobody():
        nobody = dial(daemon)
    os.setegid(0)
    say_as(root, 1, request(HELLO))     # it proves that it is root of this host
    check(answer(root)[0] == 0, 'hello of root')
    check(ask(nobody, request(HELLO))[0] == 0, 'hello')
    for s, pkey, may in ((root, 0xffff, True), (root, 0, True), (root, 0x8001, False),
                         (root, 0x8002, True), (root, 0x8003, False), (nobody, 0xffff, True),
                         (nobody, 0x8001, True), (nobody, 0x8002, False), (nobody, 1, False)):
        rc, why = listen(s, 100 + pkey + (s is root), pkey)
        check(rc == (0 if may else -errno.EACCES), f'{pkey:x}: {rc} {why}')
        check(may or f'partition 0x{pkey:04x}: not for this user' in why, why)
    check(ask(root, request(CQ_CREATE, struct.pack('<I', 16)))[0] == 0, 'queue')
    rc, qp = ask_id(root, request(QP_CREATE, struct.pack('<IIII', 0, 0, 8, 8)))
    check(rc == 0, 'queue pair')
    to = conn_body(7, 0x8001, peer=IP['client'].encode())
    rc, why = ask(root, request(CONNECT, to, number=qp))
    check(rc == -errno.EACCES, f'connect: {rc} {why}')
    rewrite(daemon, '0x8001 = user:nobody, user:1', '0x8001 = user:root')
    wait_log(daemon, 'is read again')
    check(listen(root, 1, 0x8001)[0] == 0, 'by the new file')
    check(listen(nobody, 2, 0x8001)[0] == -errno.EACCES, 'not any more')
    for s in (root, nobody):
        s.close()
    daemon.stop()


def unattached(work):
    """Connections without a hello are closed after a time, and their number is limited."""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server', limits='unattached = 3')
    os.chmod(daemon.path, 0o666)
    good = dial(daemon)
    check(ask(good, request(HELLO))[0] == 0, 'hello')
    with AsNobody():    # of root the first one would end instead
        mute = [dial(daemon) for _ in range(4)]
    check(mute[3].recv(1) == b'', 'a fourth stranger')
    mute[0].setblocking(False)
    try:
        mute[0].recv(1)
        check(False, 'the first has no time at all')
    except BlockingIOError:
        mute[0].settimeout(PATIENCE)
    check(mute[0].recv(1) == b'', 'a stranger that says nothing')
    check(ask(good, request(CQ_CREATE, struct.pack('<I', 16)))[0] == 0, 'it has said hello')
    again = dial(daemon)
    check(ask(again, request(HELLO))[0] == 0, 'there is room again')
    for s in (good, again, *mute):
        s.close()
    daemon.stop()


def of_one_user(work):
    """apps_per_uid: the applications of one user leave room for another's."""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server', limits='apps = 8\napps_per_uid = 2')
    os.chmod(daemon.path, 0o666)
    mine = [dial(daemon) for _ in range(3)]
    for s in mine[:2]:
        check(ask(s, request(HELLO))[0] == 0, 'hello')
    rc, why = ask(mine[2], request(HELLO))
    check(rc < 0 and '2 of them of this user' in why, why)
    with AsNobody():
        other = dial(daemon)
    check(ask(other, request(HELLO))[0] == 0, 'another user')
    for s in (other, *mine):
        s.close()
    daemon.stop()


# ---- orphaned streams ----

def leave(work, daemon, nb):
    """Leave streams behind that never end; returns why no more were possible, or ''."""
    client = Process(work, 'leaver', [LEAVER, 'client', daemon.spec, IP['client'], str(nb)])
    return '' if client.wait() == 0 else client.err()


def left_behind(work, port, limits, why):
    """One user's programs leave orphaned streams repeatedly. These count against the user until
    they end, and another user has room. (SYS-5)"""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server', f'conns = 64\n{port}\nlinger_ms = {20000 * SLOW}', limits)
    os.chmod(daemon.path, 0o666)
    reader = Process(work, 'reader', [LEAVER, 'server', embedded(work, 'client', 'conns=256')])
    reader.wait_text('listens')
    told = [leave(work, daemon, 8) for _ in range(4)]
    check(told[0] == '' and why in told[-1], f'{told}')
    limit, now = daemon.ask('apps')['limits'], daemon.ask('stats')
    check(0 < now['orphans'] <= 32, f'{now["orphans"]} orphans')
    check(0 < now['orphan_bytes'] <= limit['stream_mem'] // 2, f'{now["orphan_bytes"]} of orphans')
    check(now['orphan_bytes'] <= now['stream_bytes'] <= limit['stream_mem_user'],
          f'{now["stream_bytes"]} of streams')
    with AsNobody():
        other = dial(daemon)
    check(ask(other, request(HELLO))[0] == 0, 'another user')
    check(ask(other, request(CQ_CREATE, struct.pack('<I', 64)))[0] == 0, 'his queue')
    body = stream_body(recv=8, store=8, send=8)
    for _ in range(8):
        rc, text = ask(other, request(QP_CREATE, body))
        check(rc == 0, text)
    other.close()
    until_true('orphans end', lambda: daemon.ask('stats')['orphans'] == 0)
    check(daemon.ask('stats')['stream_bytes'] == 0, 'memory of streams')
    check(leave(work, daemon, 3) == '', 'there is room again')
    check(daemon.ask('stats')['orphans'] != 0, 'nothing was left behind')
    daemon.stop()  # without them, and without a leak
    reader.kill()


def left_queue_pairs(work):
    """Limited by queue pairs."""
    left_behind(work, '', 'qps = 20', "of its user's linger, its limit")


def left_memory(work):
    """Limited by memory."""
    left_behind(work, 'stream_mem = 4M', '', 'what its user may have of stream_mem')


# ---- installed files ----

def installed(work):
    """The systemd units are valid, and confine their programs."""
    if shutil.which('systemd-analyze') is None:
        print('# no systemd-analyze: the units are not verified')
        return
    for unit, limit in UNITS.items():
        path = work.path(os.path.basename(unit))
        with open(os.path.join(BUILD, unit), encoding='utf-8') as f:
            text = f.read()
        with open(path, 'w', encoding='utf-8') as f:
            f.write(re.sub(r'(?m)^ExecStart=\S+', f'ExecStart={DAEMON}', text))
        name = path.replace('@', '@x')
        os.rename(path, name)
        for words in (['verify', '--man=no'],
                      ['security', '--offline=true', f'--threshold={round(10 * limit)}']):
            done = subprocess.run(['systemd-analyze', *words, name], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            check(done.returncode == 0 and os.path.basename(name) not in done.stderr,
                  f'{words}: {done.stdout[-4000:]}{done.stderr}')


def main():
    tests = Tests()
    root = os.geteuid() == 0
    for add, name, test in [
            (tests.add, 'what a service manager is told', told),
            (tests.add, 'the watchdog, and an lcore that hangs', watchdog),
            (tests.add, 'one pidfile, one daemon', pidfile),
            (tests.add, 'partitions', partitions),
            (tests.add, 'another user, no rights in any thread', other_user),
            (tests.add_long, 'root without rights', root_without_rights),
            (tests.add_long, 'capture behind the filter', captured),
            (tests.add, 'confined as by its unit', confined),
            (tests.add_long, 'without the filter', no_filter),
            (tests.add_long, 'what can not be removed', can_not_remove),
            (tests.add, 'started again in its service', as_in_its_service),
            (tests.add_long, 'started without rights', unprivileged),
            (tests.add_long, 'drivers that need rights at start', other_drivers),
            (tests.add, 'the file is read again', read_again),
            (tests.add_long, 'messages for the journal', journal),
            (tests.add, 'posted work is done before the end', drained),
            (tests.add_long, 'the end at once', cut_off),
            (tests.add_long, 'unattached', unattached),
            (tests.add, 'applications of one user', of_one_user),
            (tests.add_long, 'queue pairs left behind', left_queue_pairs),
            (tests.add_long, 'memory left behind', left_memory),
            (tests.add, 'unit and example', installed),
    ]:
        if root or test not in (confined, other_user, as_in_its_service, unprivileged,
                                can_not_remove, other_drivers,
                                of_one_user, left_queue_pairs, left_memory, watchdog,
                                root_without_rights, no_filter):
            add(name, alone, test)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
