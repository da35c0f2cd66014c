#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Live restart: a new daemon takes over, and applications notice only a pause. (SYS-2)

memif's client is taken over, because two servers can't have one socket. Cases with both ends, or
with a link that stays, use a veth.
"""

import ctypes
import fcntl
import functools
import os
import random
import re
import shutil
import socket
import struct
import sys
import threading
import time

from asleep import wait_asleep
from daemon import DAEMON, IP, PINGPONG, Attached, Daemon, alone, check_notified, connected
from e2e import (BUILD, IS_CHECK, OWN_MOUNTS, PATIENCE, SANITIZE, SLOW, Process, Server, Tests,
                 Veth, check, load, need_namespaces, until_true)
from test_daemon import ABI, HELLO, MAGIC, REP, answer, ask, dial, request, say_as
from test_ports import NAMES, Two
from test_service import NOBODY, Manager, check_threads, wait_title

PROGRAM = os.path.join(BUILD, 'test/e2e/takeover')
TAKEOVER = 256
ROUNDS = 2 if SANITIZE or IS_CHECK else 5
MODES = (['send', '--size', '1-20000'], ['push', '--size', '1-20000'],
         ['pull', '--size', '1-20000'], ['rpc', '--size', '32'], ['atomic', '--conns', '3'],
         ['incast', '--size', '1-50000', '--conns', '8'],
         ['stream', '--size', '1-100000', '--way', 'both', '--receive', 'direct'],
         ['stream', '--size', '1-100000', '--receive', 'mixed', '--conns', '3'])
BLACKOUT = re.compile(r'blackout_us=(\d+)')
GROWTH_KIB = 512    # resident memory varies
PATIENT = 'cm_retries = 20\ncm_retry_ms = 1000'     # requests wait during a takeover
SLEEP = f'conns = 64\nidle = sleep\n{PATIENT}'


def takeover(old):
    """Take over from *old*, which has ended then. Returns the new daemon."""
    new = old.again('--takeover')
    check(old.process.wait() == 0, f'the old one: {old.process.tail()}')
    return new


def blackout_ms(daemon):
    found = BLACKOUT.search(daemon.process.err())
    check(found, f'no blackout: {daemon.process.tail()}')
    return int(found[1]) / 1000


def next_one(daemon, conf=None, wrap=()):
    """Start another daemon that tries to take over."""
    return Process(daemon.work, 'next', [*wrap, DAEMON, '--config', conf or daemon.conf,
                                         '--takeover'])


def ask_before(daemon, conf=None):
    """Whether *daemon* would hand over, and what the operator reads."""
    asks = Process(daemon.work, 'asks', [DAEMON, '--config', conf or daemon.conf,
                                         '--takeover', '--check-config'])
    return asks.wait() == 0, asks.out() + asks.err()


def conf_with(daemon, name, *changes):
    """The daemon's configuration with changes, as another file."""
    with open(daemon.conf, encoding='utf-8') as f:
        text = f.read()
    for old, new in changes:
        check(old in text, f'{old} is not in {text}')
        text = text.replace(old, new)
    path = daemon.work.path(name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def must_move(daemon, *programs):
    """Check that packets arrive, so that talking programs make progress."""
    before = daemon.counters()['rx_pkts']
    until_true(lambda: f'packets: {before}; {[p.tail() for p in programs]}',
               lambda: daemon.counters()['rx_pkts'] > before + 10)
    for p in programs:
        check(p.is_alive(), p.tail())


def must_go_on(daemon, *programs):
    """Likewise for programs that talk to each other on one daemon."""
    def messages():
        return sum(app['rx_messages'] for name, app in daemon.ask('apps').items()
                   if name.isdigit())

    before = messages()
    until_true(lambda: f'messages: {before}; {[p.tail() for p in programs]}',
               lambda: messages() > before + 10)
    check(all(p.is_alive() for p in programs), ' '.join(p.tail() for p in programs))


class Kernel(Attached):
    """Daemons at the ends of a veth, which outlives both."""

    def __init__(self, work, **kwargs):
        self.veth = Veth(work, 'af_packet')
        super().__init__(work, **kwargs)

    def end(self, role):
        return {'wrap': self.veth.wrap(role), 'vdev': self.veth.vdev(role)}


# ---- under load ----

def start_load(link, mode):
    path = link.work.path(f'load{len(link.work.processes)}.json')
    client = Process(link.work, 'client', link.program('client', [
        '--connect', link.server_ip, '--verify', '--duration', '3600', '--json', path,
        '--mode', *mode]))
    client.json_path = path
    must_move(link.daemons['server'], client)
    return client


def end_load(client):
    """Everything requested was executed once and correctly."""
    check(client.stop() == 0, client.tail())
    result = load(client.json_path, client)
    check(result['ok'] and result['server_errors'] == 0, f'{result.get("error")}')


def under_load(work, kind, roles):
    """Takeovers at random moments of traffic of each mode: nothing is lost, repeated or wrong."""
    link = kind(work)
    server, rng, pauses = Server(link), random.Random(17), []
    for mode in MODES[::2] if IS_CHECK else MODES:
        client = start_load(link, mode)
        for i in range(ROUNDS):
            time.sleep(rng.random() * 0.2)
            role = roles[i % len(roles)]
            link.daemons[role] = takeover(link.daemons[role])
            pauses.append(blackout_ms(link.daemons[role]))
            for d in link.daemons.values():
                must_move(d, client, server.process)
        end_load(client)
    status = server.process.stop()
    result = load(server.json_path, server.process)
    check(status == 0 and result['ok'], f'{status}: {server.process.tail()}')
    print(f'# {len(pauses)} takeovers: blackout {sorted(pauses)[len(pauses) // 2]:.0f} ms in the '
          f'middle, {max(pauses):.0f} ms at most', flush=True)
    link.stop()


def peer_stands_still(work):
    """The other end is stopped during a takeover: afterwards it runs, and the link works."""
    link = Attached(work)
    server = Server(link)
    client = start_load(link, MODES[0])
    far = link.daemons['server']
    far.process.signal('STOP')
    link.daemons['client'] = takeover(link.daemons['client'])
    far.process.signal('CONT')
    must_move(far, client, server.process)
    end_load(client)
    check(server.process.stop() == 0, server.process.tail())
    link.stop()


def peer_comes_again(work):
    """The daemon at the other end of a memif link ends, in order or not, and another one comes."""
    def kill(daemon):
        daemon.process.kill()
        os.unlink(work.path('memif.sock'))  # else the driver finds it in use

    daemons = Attached(work).daemons
    for end in (Daemon.stop, kill):
        end(daemons['server'])
        daemons['server'] = daemons['server'].again()
        pair = connected(work, [d.spec for d in daemons.values()])
        must_move(daemons['server'], *pair)
        for p in pair:
            p.stop()
    until_true(daemons['client'].process.tail,
               lambda: 'memif=connected' in daemons['client'].process.err())
    for d in daemons.values():
        d.stop()


# ---- sleeping programs ----

def waiting(work):
    """Sleeping programs and daemons: none sleeps forever."""
    daemons = {role: Daemon(work, role, SLEEP) for role in IP}
    pair = connected(work, [d.spec for d in daemons.values()], ['-w'])
    idle = Process(work, 'idle', [PINGPONG, '-w', 'server', daemons['client'].spec])
    for _ in range(ROUNDS):
        wait_asleep(idle.pid)
        daemons['client'] = takeover(daemons['client'])
        for d in daemons.values():
            must_move(d, *pair, idle)
    # a listener that has slept through all takeovers
    client = Process(work, 'far', [PINGPONG, '-w', 'client', daemons['server'].spec,
                                   IP['client'], '300'])
    check(client.wait() == 0, client.tail())
    check(idle.wait() == 0, idle.tail())
    for p in pair:
        p.stop()
    for d in daemons.values():
        d.settle_engine()
        d.stop()


def waiting_bench(work):
    """sanbench --wait with little traffic, so that it sleeps most of the time."""
    link = Attached(work)
    server = Server(link)
    client = start_load(link, ['rpc', '--size', '32', '--depth', '1'])
    for _ in range(ROUNDS):
        link.daemons['client'] = takeover(link.daemons['client'])
        must_move(link.daemons['server'], client, server.process)
    end_load(client)
    check(server.process.stop() == 0, server.process.tail())
    link.stop()


# ---- existing objects ----

def use_what_was_set_up(work, start, take, rounds):
    """The program in takeover.c, through *rounds* takeovers."""
    program = Process(work, 'program', [PROGRAM, *start, str(rounds)])
    for i in range(rounds):
        program.wait_text(f'set up {i}')
        take()
        program.signal('USR1')
    check(program.wait() == 0, program.tail())


def set_up_local(work, lcores=1):
    """Both programs on the daemon that is taken over."""
    box = [Daemon(work, 'server', SLEEP, lcores=lcores)]
    before = box[0].held()

    def take():
        box[0] = takeover(box[0])

    use_what_was_set_up(work, [box[0].spec, box[0].spec, IP['server']], take, ROUNDS)
    box[0].settle(before)
    box[0].settle_engine()
    box[0].stop()


def set_up_far(work, taken):
    """One end of a link is taken over, first the listener's, then the other."""
    link = Kernel(work, sets=dict.fromkeys(IP, [PATIENT]))
    specs = {role: d.spec for role, d in link.daemons.items()}

    def take():
        link.daemons[taken] = takeover(link.daemons[taken])

    use_what_was_set_up(work, [specs['server'], specs['client'], IP['server']], take, ROUNDS)
    link.stop()


def comers(work):
    """Connections without a hello before, during and after a takeover."""
    daemon = Daemon(work, 'server', SLEEP)
    before = daemon.held()
    attached = dial(daemon)
    check(ask(attached, request(HELLO))[0] == 0, 'hello')
    for _ in range(ROUNDS):
        stranger = dial(daemon)     # has 5 s for its hello
        new = next_one(daemon)
        during = []
        while 'ready' not in new.out():
            check(new.is_alive(), new.tail())
            if len(during) < 8:
                during.append(dial(daemon))
                during[-1].send(request(HELLO))
            time.sleep(0.01)
        check(daemon.process.wait() == 0, daemon.process.tail())
        daemon.process = new
        for s in during:
            check(len(s.recv(1000)) == 256, 'no answer')
            s.close()
        check(ask(stranger, request(HELLO))[0] == 0, 'who said nothing is not known any more')
        stranger.close()
        check('before' in ask(attached, request(HELLO))[1], 'who was attached is not any more')
    late = dial(daemon)
    check(ask(late, request(HELLO))[0] == 0, 'who comes afterwards')
    for s in (attached, late):
        s.close()
    daemon.settle(before)
    daemon.stop()


def killed_around(work):
    """A program dies right before, during and right after: its peer is notified, nothing
    is left."""
    link = Attached(work)
    rng = random.Random(19)
    for i in range(2 * ROUNDS):
        specs = [d.spec for d in link.daemons.values()]
        server, client = connected(work, specs)
        new = next_one(link.daemons['client'])
        if i % 3 == 0:
            client.kill()
        elif i % 3 == 1:
            time.sleep(rng.random() * 0.6 * SLOW)   # at a random moment
            client.kill()
        new.wait_text('ready')
        client.kill()
        check(link.daemons['client'].process.wait() == 0, 'the old one stays')
        link.daemons['client'].process = new
        check(server.wait() == 1 and re.search('disconnected|ended', server.err()), server.tail())
    link.stop()


# ---- lcores, ports ----

def two_ports(work):
    """Each port continues, with its own programs."""
    box = [Two(work, keys=PATIENT)]
    before = box[0].held()
    pairs = [connected(work, [box[0].at(i)] * 2, ['-w']) for i in range(2)]
    programs = [Process(work, f'program{i}', [PROGRAM, box[0].at(i), box[0].at(i), IP['server'],
                                              str(ROUNDS)]) for i in range(2)]
    for k in range(ROUNDS):
        for p in programs:
            p.wait_text(f'set up {k}')
        box[0] = takeover(box[0])
        for name in NAMES:
            check(len(box[0].json('--port', name, 'apps')) == 4, f'programs of port {name}')
        for p in programs:
            p.signal('USR1')
    for p in programs:
        check(p.wait() == 0, p.tail())
    everybody = [p for pair in pairs for p in pair]
    check(all(p.is_alive() for p in everybody), ' '.join(p.tail() for p in everybody))
    for p in everybody:
        p.kill()
    box[0].settle(before)
    box[0].stop()


# ---- takeovers that fail ----

def goes_on(daemon, peer):
    """True if *daemon* is alive, once it has ended or *peer* receives packets again."""
    before = peer.counters()['rx_pkts']
    until_true(daemon.process.tail, lambda: not daemon.process.is_alive() or
               peer.counters()['rx_pkts'] > before + 10)
    return daemon.process.is_alive()


def new_one_killed(work):
    """The new daemon dies at a random moment: the old one goes on, or the new one already served.
    At one point the state of the devices is unknown: then the old one reports that and ends, and
    programs are notified."""
    link = Attached(work)
    server, rng, ended, served = Server(link), random.Random(23), 0, 0
    client = start_load(link, MODES[1])
    for i in range(4 if SANITIZE else 10):
        daemon = link.daemons['client']
        new = next_one(daemon)
        time.sleep(rng.random() * 0.25 * SLOW)  # at a random moment
        new.kill()
        if goes_on(daemon, link.daemons['server']):
            must_move(link.daemons['server'], client)
            continue
        served += 'ready' in new.out()
        ended += 'this one cannot continue' in daemon.process.err()
        check('ready' in new.out() or 'this one cannot continue' in daemon.process.err(), daemon.process.tail())
        check_notified(client)
        link.daemons['client'] = daemon.again()
        client = start_load(link, MODES[1])
    end_load(client)
    print(f'# {served} times it served already, {ended} times nobody could go on', flush=True)
    server.process.stop()
    link.stop()


def can_not_open(work, kind, changes):
    """A new daemon that can't open the port reports the reason, and the old one goes on; a good one
    follows."""
    link = kind(work)
    server = Server(link)
    client = start_load(link, MODES[0])
    daemon = link.daemons['client']
    for i, (change, text) in enumerate(changes):
        new = next_one(daemon, conf_with(daemon, f'bad{i}.conf', change),
                       link.end('client').get('wrap', ()))
        check(new.wait() == 1 and text in new.err(), new.tail())
        print(f'# {new.err().strip().splitlines()[-1]}', flush=True)
        until_true(daemon.process.tail, lambda: 'this one continues' in daemon.process.err())
        check(daemon.process.is_alive(), daemon.process.tail())
        must_move(link.daemons['server'], client, server.process)
    link.daemons['client'] = takeover(daemon)
    must_move(link.daemons['server'], client, server.process)
    end_load(client)
    check(server.process.stop() == 0, server.process.tail())
    link.stop()


def refused(work):
    """Refused with a text, and without stopping the daemon."""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server', SLEEP, log='driver = notice')
    before = daemon.held()
    os.chmod(daemon.path, 0o777)
    other = conf_with(daemon, 'other.conf', ('conns = 64', 'conns = 65'))
    new = next_one(daemon, other)
    check(new.wait() == 1 and '[port] sections have changed' in new.err(), new.tail())
    may, why = ask_before(daemon, other)
    check(not may and '[port] sections have changed' in why, why)
    may, what = ask_before(daemon)
    check(may and re.search('^live restart: [0-9a-f]{16} [0-9a-f]{8}$', what, re.M), what)
    program = shutil.copy(DAEMON, work.path('daemon'))
    run = work.path('run')
    os.mkdir(run)
    os.chown(run, NOBODY, NOBODY)
    os.chmod(daemon.conf, 0o644)
    new = Process(work, 'nobody', [
        'setpriv', '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups', '--',
        program, '--config', daemon.conf, '--takeover'], {'XDG_RUNTIME_DIR': run})
    check(new.wait() == 1 and 'only root of this host' in new.err(), new.tail())
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    rc, why = ask(s, request(TAKEOVER, b'any layout'))
    check(rc < 0 and why, f'an application may take over: {rc} {why}')
    s.close()
    for layout in (b'', b'\xff' * 40, b'x' * 40):
        for pid, text in ((os.getpid(), 'only root of this host'), (1, 'structures are others')):
            with dial(daemon) as s:
                say_as(s, pid, request(TAKEOVER, layout))
                rc, why = answer(s)
                check(rc < 0 and text in why, f'{rc} {why}')
    daemon.settle(before)
    check('this one continues' not in daemon.process.err(), daemon.process.err())
    daemon.stop()


def without_rights(work):
    """Root of a container, which has only the user ID, is not root of this host. A process of the
    daemon's user is accepted if it is in the same namespaces."""
    container = [*OWN_MOUNTS, '--pid', '--fork', '--mount-proc']
    powerless = ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs']
    daemon = Daemon(work, 'server', SLEEP, vdev='--vdev=net_null0,no-rx=1')
    new = next_one(daemon, wrap=container + powerless)
    check(new.wait() == 1 and 'only root of this host' in new.err(), new.tail())
    check(daemon.process.is_alive(), daemon.process.tail())
    new = next_one(daemon, wrap=powerless)
    check(daemon.process.wait() == 0, f'{daemon.process.tail()} {new.tail()}')
    new.wait_text('ready')
    check(new.stop() == 0, new.tail())


def with_files(work):
    """As in README: a daemon with EAL's files, without hugepages."""
    daemon = Daemon(work, 'server', SLEEP, vdev='--vdev=net_null0,no-rx=1')
    conf = conf_with(daemon, 'files.conf', ('--no-shconf', ''))
    daemon.stop()
    old = Process(work, 'old', [DAEMON, '--config', conf])
    old.wait_text('ready')
    new = next_one(daemon, conf)
    check(old.wait() == 0, f'{old.tail()} {new.tail()}')
    new.wait_text('ready')
    check(new.stop() == 0, new.tail())


FALSE = """
import os, socket, struct, sys
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
s.listen()
print('serves', flush=True)
s.accept()[0].close()       # first the new daemon checks that one is there
other = s.accept()[0]
while other.recv(1000):
    other.send(bytes.fromhex(sys.argv[2]))
print('left', flush=True)
"""


def false_daemon(work):
    """The daemon that serves the socket must be of root or of the new one's user. What another one
    answers is no text for a terminal."""
    os.chmod(work.dir, 0o755)
    daemon = Daemon(work, 'server', SLEEP, vdev='--vdev=net_null0,no-rx=1')
    folder = work.path('folder')
    os.mkdir(folder)
    os.chown(folder, NOBODY, -1)
    for rc, text in ((0, f'served by user {NOBODY}, who is neither root of this host'),
                     (-1, 'the daemon that serves: ?]0;evil?done')):
        path = f'{folder}/sock{rc}'
        reply = struct.pack('<IIi', MAGIC, ABI, rc).ljust(64, b'\0') + b'\x1b]0;evil\x07done'
        false = Process(work, f'false{rc}', [sys.executable, '-c', FALSE, path,
                                             reply.ljust(REP, b'\0').hex()])
        false.wait_text('serves')
        new = next_one(daemon, conf_with(daemon, f'false{rc}.conf', (daemon.path, path)))
        check(new.wait() == 1 and text in new.err(), new.tail())
        false.wait_text('left')
    daemon.stop()


GIVEN = '<Qii16i48s'    # takeover.c: struct given, without another port's guards
STATE = '<QII'


def send_state(sock, data, fds=()):
    """Send in the format of state.c."""
    memory = os.memfd_create('state')
    os.write(memory, data)
    socket.send_fds(sock, [struct.pack(STATE, len(data), len(fds), 0)], [memory])
    os.close(memory)
    if fds:
        socket.send_fds(sock, [b'\0'], fds)


def has_rights(process):
    with open(f'/proc/{process.pid}/status', encoding='ascii') as f:
        return int(re.search(r'CapPrm:\t(\w+)', f.read())[1], 16) != 0


def in_other_network(make):
    """What *make* returns in another network namespace: in a thread, which ends."""
    made = []

    def run():
        check(ctypes.CDLL(None).unshare(0x40000000) == 0, 'unshare')    # CLONE_NEWNET
        made.append(make())
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return made[0]


def listening(family=socket.AF_UNIX, kind=socket.SOCK_SEQPACKET):
    s = socket.socket(family, kind)
    s.bind('' if family == socket.AF_UNIX else ('127.0.0.1', 0))
    if kind != socket.SOCK_DGRAM:
        s.listen()
    return s


def arena(*words, seals=fcntl.F_SEAL_SHRINK):
    """Memory of a port: busy, size, bytes in use, root, free memory; from word 8 on, the rest."""
    fd = os.memfd_create('memory', os.MFD_ALLOW_SEALING)
    os.truncate(fd, STATE_BYTES)
    os.pwrite(fd, struct.pack(f'<{len(words)}Q', *words), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


STATE_FROM, STATE_BYTES = 0x200000000000, 1 << 36       # ports.h; of a port


def lying_daemon(work):
    """A daemon that has proved who it is sends invalid state. The new one, which has dropped its
    rights before it reads what applications hold, reports the error and ends."""
    daemon = Daemon(work, 'server', SLEEP, vdev='--vdev=net_null0,no-rx=1')
    path = work.path('lying.sock')
    conf = conf_with(daemon, 'lying.conf', (daemon.path, path))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    listener.settimeout(PATIENCE)
    memory = arena(0, STATE_BYTES, 4096)
    port = struct.pack('<QQiIII', 0, STATE_BYTES, 0, 1, 0, 0)
    nothing = struct.pack('<II', 0, 5) + bytes(92)  # no application; app_state.c: SAVED_END
    guard = in_other_network(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    given = [
        ([], 'no socket to listen on'),
        ([listening(socket.AF_INET, socket.SOCK_STREAM)], 'no socket to listen on'),
        ([socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)], 'no socket to listen on'),
        ([in_other_network(listening)], 'a socket of another network namespace'),
        ([listener, guard], 'a guard of another network namespace'),
    ]
    images = [((0, STATE_BYTES, *words), text) for words, text in (
        ((STATE_BYTES + 64, 0, 0), 'port: its memory'),
        ((4096, 0, 0x4141414141414141), 'port: its memory'),
        ((4096, 0, STATE_FROM + 4096), 'port: its memory'),
        ((4096, 0x4141414141414141, 0), 'nothing is parked there'),
        ((1 << 20, STATE_FROM + 64, 0, 0, 0, 0, 1 << 32), 'parked with room for other numbers'),
        ((1 << 20, STATE_FROM + 64, 0, 0, 0, 0, 1 << 32, 0x4141414141414140),
         'parked with room for other numbers'),
        ((1 << 20, STATE_FROM + 64, 0, 0, 0, 0, 1 << 32, STATE_FROM + 8192),
         'parked with room for other numbers'))]
    cases = [(None, [s.fileno() for s in socks], text) for socks, text in given] + [
        (port + nothing, [arena(*words)], text) for words, text in images] + [
        (port, [arena(0, STATE_BYTES, 4096, seals=0)], 'port: its memory'),
        (port, [arena(0, 0, 4096)], 'port: its memory'),
        (b'', [], 'too short'),
        (b'\xff' * 4000, [], 'port: its memory'),
        (b'A' * 4000, [memory], 'a descriptor that did not come'),
        (struct.pack('<QQiIII', 0, 2 * STATE_BYTES, 0, 1, 0, 0), [memory], 'port: its memory'),
        (port, [memory], 'too short'),
        (port + struct.pack('<I', 9) + b'\xff' * 900, [memory], 'application: its socket'),
        (port + struct.pack('<I', 0) + b'\7' * 900, [memory], 'an object of no application'),
        (port + nothing, [memory], 'nothing is parked there'),
        (port + nothing + b'\0', [memory], 'more bytes than expected'),
    ]
    for data, fds, text in cases:
        new = next_one(daemon, conf)
        listener.accept()[0].close()       # first it checks that a daemon is there
        with listener.accept()[0] as s:
            for _ in range(2):
                s.recv(1000)
                s.send(struct.pack('<II', MAGIC, ABI).ljust(REP, b'\0'))
            first = fds if data is None else [listener.fileno()]
            places = [i if i < len(first) else -1 for i in range(17)]
            send_state(s, struct.pack(GIVEN, 0, 1, *places, bytes(48)), first)
            if data is not None:
                until_true('it reads with all its rights', lambda: not has_rights(new))
                send_state(s, data, fds)
            check(new.wait() == 1 and text in new.err(), f'{text}: {new.tail()}')
    daemon.stop()


def asked(daemon):
    """The request of a new daemon, received by a false one."""
    path = daemon.work.path('false.sock')
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
        s.listen()
        s.settimeout(PATIENCE)
        new = next_one(daemon, conf_with(daemon, 'false.conf', (daemon.path, path)))
        s.accept()[0].close()       # first it checks that a daemon is there
        with s.accept()[0] as other:
            question = other.recv(1000)
    check(new.wait() == 1 and 'the daemon that serves' in new.err(), new.tail())
    return question


def silent(work):
    """A program asks for a takeover and stays silent: the old daemon waits for a limited time and
    goes on. Peers elsewhere may wait less; these are its own programs. (A memif server that comes
    back costs a descriptor in DPDK 22.11.)"""
    daemon = Daemon(work, 'server', SLEEP, vdev='--vdev=net_null0,no-rx=1')
    pair = connected(work, [daemon.spec] * 2, ['-w'])
    question = asked(daemon)

    def ask_once():
        said = daemon.process.err().count('this one continues')
        with dial(daemon) as s:
            say_as(s, 1, question)
            check(struct.unpack_from('<i', s.recv(1000), 8)[0] == 0, 'it is not taken for a daemon')
            until_true(daemon.process.tail,
                       lambda: daemon.process.err().count('this one continues') > said)
            must_go_on(daemon, *pair)

    ask_once()      # both wait meanwhile, for which a program gets a socket
    before = daemon.held()
    ask_once()
    daemon.settle(before)
    daemon = takeover(daemon)
    must_go_on(daemon, *pair)
    for p in pair:
        p.kill()
    daemon.stop()


def nobody_there(work):
    """--takeover without a daemon is an ordinary start."""
    daemon = Daemon(work, 'server', SLEEP)
    daemon.stop()
    may, why = ask_before(daemon)
    check(not may and 'no daemon serves' in why, why)
    daemon = daemon.again('--takeover')
    check('taken over' not in daemon.process.err(), daemon.process.err())
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    s.close()
    daemon.stop()


# ---- as a service ----

def as_service(work):
    """Another user, the filter, a pidfile, the service manager: all as before."""
    os.chmod(work.dir, 0o755)
    os.chown(work.dir, NOBODY, -1)
    path, manager = work.path('pid'), Manager(work)
    os.chmod(manager.path, 0o777)
    os.environ['NOTIFY_SOCKET'] = manager.path
    try:
        daemon = Daemon(work, 'server', SLEEP, daemon=f'user = nobody\npidfile = {path}')
        manager.wait('READY=1')
        pair = connected(work, [daemon.spec] * 2, ['-w'])
        for _ in range(ROUNDS):
            daemon = takeover(daemon)
            print(f'# blackout {blackout_ms(daemon):.0f} ms', flush=True)
            check_threads(daemon, NOBODY, '2')
            with open(path, encoding='utf-8') as f:
                check(int(f.read()) == daemon.process.pid, 'the pidfile names another one')
            wait_title(daemon, 2)
            manager.wait('READY=1')
            for p in pair:
                check(p.is_alive(), p.tail())
        for p in pair:
            p.kill()
        daemon.stop()
    finally:
        del os.environ['NOTIFY_SOCKET']
    check('stays at the end' not in daemon.process.err(), daemon.process.err())
    for left in (path, daemon.path):
        check(not os.path.exists(left), f'{left} is left')


def many(work):
    """Many takeovers: the last daemon has no more resources than the second one."""
    daemon = Daemon(work, 'server', SLEEP)
    pair = connected(work, [daemon.spec] * 2, ['-w'])
    rows = []
    for _ in range(6 if SANITIZE else 20):
        daemon = takeover(daemon)
        rows.append((daemon.held(), sum(daemon.memory_kib())))
    check({held for held, _ in rows} == {rows[0][0]}, f'descriptors and mappings: {rows}')
    kib = [kib for _, kib in rows]
    growth = min(kib[-3:]) - min(kib[:3])
    print(f'# {len(rows)} takeovers: {growth} KiB more of {kib[0]}', flush=True)
    check(SANITIZE or growth <= GROWTH_KIB, f'the daemon has grown: {kib}')
    check(all(p.is_alive() for p in pair), ' '.join(p.tail() for p in pair))
    for p in pair:
        p.kill()
    daemon.settle_engine()
    daemon.stop()


def main():
    need_namespaces('ethtool', 'sysctl', 'setpriv')
    tests = Tests()
    for add, name, test in [
            (tests.add, 'under load, the client\'s daemon', functools.partial(
                under_load, kind=Attached, roles=['client'])),
            (tests.add_long, 'under load, both daemons', functools.partial(
                under_load, kind=Kernel, roles=['server', 'client'])),
            (tests.add, 'the peer stands still', peer_stands_still),
            (tests.add, 'the peer comes again', peer_comes_again),
            (tests.add, 'who waits', waiting),
            (tests.add_long, 'sanbench waits', waiting_bench),
            (tests.add, 'what was set up, on one daemon', set_up_local),
            (tests.add_long, 'what was set up, on two lcores',
             functools.partial(set_up_local, lcores=2)),
            (tests.add_long, 'what was set up, server taken over',
             functools.partial(set_up_far, taken='server')),
            (tests.add_long, 'what was set up, client taken over',
             functools.partial(set_up_far, taken='client')),
            (tests.add, 'who comes', comers),
            (tests.add_long, 'programs killed', killed_around),
            (tests.add_long, 'two ports', two_ports),
            (tests.add_long, 'the new one is killed', new_one_killed),
            (tests.add, 'the new one can\'t open the port', functools.partial(
                can_not_open, kind=Attached, changes=[
                    (('net_memif0,role=client', 'net_nonsense0,role=client'), 'net_nonsense0'),
                    (('-m 256', '-m 20'), 'memory')])),
            (tests.add, 'the new one can\'t open the kernel\'s device', functools.partial(
                can_not_open, kind=Kernel, changes=[(('-m 256', '-m 20'), 'memory')])),
            (tests.add, 'refused', refused),
            (tests.add, 'without rights', without_rights),
            (tests.add, 'a false daemon', false_daemon),
            (tests.add, 'a daemon that lies', lying_daemon),
            (tests.add, 'with files of EAL', with_files),
            (tests.add_long, 'who asks and says no more', silent),
            (tests.add, 'nobody is there', nobody_there),
            (tests.add, 'as a service', as_service),
            (tests.add_long, 'many times', many),
    ]:
        add(name, alone, test)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
