#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One daemon with two ports: an application belongs to one of them and has nothing on the other.
Both ports have the same address, each on a link of its own, so traffic through the wrong port
fails. (SYS-1, SYS-2, SYS-5)"""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys

from daemon import DAEMON, IP, PINGPONG, Daemon, alone, connected, until_true, write_conf
from e2e import BENCH, BUILD, SANITIZE, SOURCE, Namespace, Process, Tests, check, cpus
from openmetrics import parse
from test_daemon import (CQ_CREATE, HELLO, MR_ADD, QP_CREATE, ask, ask_id, dial, memfd, mr_body,
                         request)
from test_hostile_client import hostile, without_seals
from test_service import Manager, check_told, hold, let_go, threads

SANCTL = os.path.join(SOURCE, 'usertools/sanctl')
TRANSFER = os.path.join(BUILD, 'test/e2e/transfer')
MR_DEL, CQ_DESTROY, QP_DESTROY, PUSHES = 3, 5, 7, 24
NAMES = ('0', 'east')
PEER = IP['client']


class Two(Daemon):
    """Ports "0" and "east", each the server's end of a memif link, or given by *vdevs*."""

    def __init__(self, work, daemon='', log='', keys='', vdevs=None, ips=(IP['server'],) * 2,
                 wrap=(), env=None):
        self.work, self.cpu = work, cpus()[0]
        self.path = work.path('two.sock')
        self.spec = f'unix:{self.path}'
        vdevs = vdevs or [self.memif(i, 'server') for i in range(2)]
        args = [*work.eal(0, f'--vdev={vdevs[0]}', 512, f'(0-2)@{self.cpu}'), f'--vdev={vdevs[1]}']
        args.remove('--log-level=error')
        self.prefix = f'{work.tag}x{work.nb_prefixes - 1}'
        ports = ''.join(f"""[port{name}]
port = {vdev.split(',')[0]}
ip = {ip}/24
lcores = {lcore}
conns = 64
idle = sleep
{keys}
""" for name, lcore, vdev, ip in zip(('', ' east'), (1, 2), vdevs, ips))
        args = '\n'.join(f'args = {word}' for word in args)      # a line has a limited length
        self.conf = write_conf(work, 'two.conf', f"""[eal]
{args}
{ports}[daemon]
socket = {self.path}
seccomp = {'off' if SANITIZE else 'on'}
{daemon}
[log]
{log}
""")
        self.process = Process(work, 'two', [*wrap, DAEMON, '--config', self.conf], env)
        self.process.wait_text('ready')

    def memif(self, i, role):
        return (f'net_memif{i},role={role},id=0,socket={self.work.dir}/link{i}.sock,'
                f'socket-abstract=no,mac=02:00:00:00:0{i}:0{1 if role == "server" else 2}')

    def at(self, i):
        """The spec of port number *i*."""
        return f'{self.spec},port={NAMES[i]}' if i else self.spec

    def far(self, i):
        """EAL arguments of a program at the far end of link number *i*."""
        vdev = self.memif(i, 'client').replace(f'net_memif{i}', 'net_memif0')
        return self.work.eal(0, f'--vdev={vdev}', 256, f'0@{cpus()[1]}')

    def embedded(self, i):
        return f'dpdk:{" ".join(self.far(i))} -- ip={PEER}/24 conns=16 idle=sleep'

    def sanctl(self, *args, status=0):
        done = subprocess.run([SANCTL, '--file-prefix', self.prefix, *args], capture_output=True,
                              text=True, check=False)
        check(done.returncode == status, f'sanctl {args}: {done.returncode} {done.stderr}')
        return done.stdout if status == 0 else done.stderr

    def json(self, *args):
        return json.loads(self.sanctl(*args, '--json'))


def talk(work, daemon, i, rounds='100000000'):
    """A program at port number *i* and one at the far end, connected."""
    return connected(work, (daemon.at(i), daemon.embedded(i)), rounds=rounds)


# ---- tests ----

def both_at_once(work):
    """A program on each port, each with a peer on its own link: data arrives unchanged."""
    daemon = Two(work)
    servers = [Process(work, f'server{i}', [BENCH, '--attach', daemon.at(i), '--wait', '--server',
                                            '--sessions', '1']) for i in range(2)]
    for s in servers:
        s.wait_text('listening')
    clients = [Process(work, f'client{i}', [
        BENCH, *daemon.far(i), '--', '--ip', f'{PEER}/24', '--set', 'idle=sleep', '--connect',
        IP['server'], '--mode', 'push', '--verify', '--size', '1-30000', '--count', '2000',
        '--json', work.path(f'{i}.json')]) for i in range(2)]
    for i in range(2):
        check(clients[i].wait() == 0, clients[i].tail())
        check(servers[i].wait() == 0, servers[i].tail())
        with open(work.path(f'{i}.json'), encoding='utf-8') as f:
            result = json.load(f)
        check(result['ok'] and result['server_errors'] == 0, f'{result.get("error")}')
        port = daemon.ask(f'port,port={NAMES[i]}')
        check(port['port_name'] == NAMES[i] and port['rx_pkts'] > 2000, f'{port}')
        check(daemon.ask(f'stats,port={NAMES[i]}')['conns'] == 0, 'connections are left')
    daemon.stop()
    check('leaks' not in daemon.process.err(), daemon.process.err())


def unknown(work):
    """An unknown port is refused with a list of the ports; so is a name that is not terminated."""
    daemon = Two(work)
    for wrong in ('west', '0east', 'eas', 'EAST', 'x' * 31):
        client = Process(work, 'client', [PINGPONG, 'client', f'{daemon.spec},port={wrong}', PEER])
        check(client.wait() == 1 and f'port {wrong}: there is none; there are: 0, east'
              in client.tail(), client.tail())
    for wrong, text in ((',port=', '1 to 31'), (',port=' + 'x' * 32, '1 to 31'),
                        (',prot=east', 'may only be ,port=NAME'), (',', 'may only be')):
        client = Process(work, 'client', [PINGPONG, 'client', daemon.spec + wrong, PEER])
        check(client.wait() == 1 and text in client.tail(), client.tail())
    s = dial(daemon)
    for name in (b'y' * 160, b'east' + b'x' * 156, b'0' * 32):
        rc, why = ask(s, request(HELLO, name))
        check(rc < 0 and 'there are: 0, east' in why, f'{rc} {why}')
    check(ask(s, request(HELLO, b'east'))[0] == 0, 'hello')
    check('before' in ask(s, request(HELLO, b'0'))[1], 'another port later')
    check(not daemon.json('--port', '0', 'apps') and len(daemon.json('apps')) == 1, 'of one port')
    s.close()
    daemon.stop()


def numbers(work):
    """Numbers of one port mean nothing on the other one, which may assign them again."""
    daemon = Two(work)
    apps = [dial(daemon) for _ in range(2)]
    for s, name in zip(apps, (b'', b'east')):
        check(ask(s, request(HELLO, name))[0] == 0, 'hello')
    fd, other = memfd(8192), apps[1]
    own = apps[0]
    own.send(request(CQ_CREATE, struct.pack('<I', 16)))
    cq = struct.unpack_from('<I', own.recv(256), 16)[0]
    rc, qp = ask_id(own, request(QP_CREATE, struct.pack('<IIII', cq, cq, 8, 8)))
    check(rc == 0, 'queue pair')
    socket.send_fds(own, [request(MR_ADD, mr_body(4096))], [fd])
    key = struct.unpack_from('<I', own.recv(256), 16)[0]
    cases = [(MR_DEL, b'', key), (CQ_DESTROY, b'', cq), (QP_DESTROY, b'', qp),
             (QP_CREATE, struct.pack('<IIII', cq, cq, 8, 8), 0)]
    for kind, body, number in cases:
        rc, why = ask(other, request(kind, body, number=number))
        check(rc < 0 and ('none with' in why or 'no such' in why), f'{kind}: {rc} {why}')
    # the other port starts its own numbers: the same ones, for its own applications
    check(ask_id(other, request(CQ_CREATE, struct.pack('<I', 16))) == (0, cq), 'first queue')
    check(ask(other, request(CQ_DESTROY, number=cq))[0] == 0, 'its own')
    for kind in (QP_DESTROY, CQ_DESTROY, MR_DEL):
        number = {QP_DESTROY: qp, CQ_DESTROY: cq, MR_DEL: key}[kind]
        check(ask(own, request(kind, number=number))[0] == 0, f'{kind}: it was still there')
    os.close(fd)
    for s in apps:
        s.close()
    daemon.stop()


def shown(work):
    """Telemetry and sanctl: rows of all ports with the port's name; other output of the chosen
    port."""
    daemon = Two(work)
    pairs = [talk(work, daemon, i) for i in range(2)]
    check(daemon.ask('ports') == list(NAMES), f'{daemon.ask("ports")}')
    check('error' in daemon.ask('port,port=west') and 'error' in daemon.ask('apps,port=west'),
          'an unknown port')
    for view in ('conns', 'apps', 'lcores'):
        rows = daemon.json(view)
        check([r['port'] for r in rows.values()] == list(NAMES), f'{view}: {rows}')
        check([k.startswith('east/') for k in rows] == [False, True], f'{view}: {list(rows)}')
        only = daemon.json('--port', 'east', view)
        check(list(only) == [k for k in rows if k.startswith('east/')], f'{view}: {only}')
        last = [line.split()[-1] for line in daemon.sanctl(view).splitlines()]
        check(last == ['PORT', *NAMES], daemon.sanctl(view))
    check({r['pid'] for r in daemon.json('apps').values()} == {s.pid for s, _ in pairs}, 'pids')
    check(list(daemon.json('ports')) == list(NAMES), daemon.sanctl('ports'))
    check(daemon.json('port')['port_name'] == '0', 'the first')
    check(daemon.json('--port', 'east', 'port')['name'] == 'net_memif1', 'the chosen one')
    for view in ('stats', 'drops', 'cam', 'hist', 'reasons'):
        check(daemon.sanctl(view).startswith('port 0\n'), view)
        check(daemon.sanctl('-p', 'east', view).startswith('port east\n'), view)
    (cid,) = daemon.json('--port', 'east', 'conns')
    cid = cid.removeprefix('east/')
    check(daemon.json('--port', 'east', 'conn', cid)['peer'] == PEER, 'one connection')
    check('no port' in daemon.sanctl('--port', 'west', 'conns', status=1), 'unknown')
    seen = parse(daemon.sanctl('metrics'))
    for family in ('port', 'rx_pkts', 'drops', 'app_tx_bytes', 'conns_held', 'round_seconds'):
        got = {s.labels['port'] for s in seen['sanstack_' + family].samples}
        check(got == set(NAMES), f'{family}: {got}')
    # a capture belongs to one port, and each may have one
    files = [work.path(f'{name}.pcapng') for name in NAMES]
    for name, path in zip(NAMES, files):
        daemon.sanctl('--port', name, 'capture', 'start', path)
    for name, path in zip(NAMES, files):
        until_true('packets',
                   lambda name=name: daemon.json('-p', name, 'capture', 'show')['packets'] > 20)
        check(daemon.json('-p', name, 'capture', 'stop')['file'] == path, name)
    for pair in pairs:
        for p in pair:
            check(p.is_alive(), p.tail())
            p.kill()
    daemon.stop()


def killed(work):
    """An application of one port is killed: that of the other port goes on, and everything is
    released."""
    daemon = Two(work)
    pair = talk(work, daemon, 0)
    before = None
    for _ in range(3):
        server, client = talk(work, daemon, 1)
        before = before or daemon.held()        # with all programs running and both links up
        daemon.settle(before)
        server.popen.send_signal(signal.SIGKILL)
        check(client.wait() == 1, client.tail())
        server.wait()
        until_true('gone', lambda: not daemon.json('--port', 'east', 'apps'))
        # numbers of connections rest for a second
        until_true('nothing is held', lambda: daemon.ask('stats,port=east')['conns'] == 0)
        until_true('its memory is free', lambda: daemon.held()[1] < before[1])
        sent = daemon.ask('port')['tx_pkts']
        check(pair[0].is_alive() and pair[1].is_alive(), pair[0].tail() + pair[1].tail())
        until_true('it goes on', lambda sent=sent: daemon.ask('port')['tx_pkts'] > sent + 100)
    for p in pair:
        p.kill()
    daemon.stop()


def peer_dies(work):
    """The peer of one port ends, and the link with it: the other port's program does not wait."""
    daemon = Two(work)
    pairs = [talk(work, daemon, i) for i in range(2)]
    pairs[0][1].kill()
    check(pairs[0][0].wait() == 1, pairs[0][0].tail())
    sent = daemon.ask('port,port=east')['tx_pkts']
    until_true('it goes on', lambda: daemon.ask('port,port=east')['tx_pkts'] > sent + 100)
    # and the link comes up again while the other one is busy
    server, client = talk(work, daemon, 0, rounds='300')
    check(client.wait() == 0 and server.wait() == 0, client.tail() + server.tail())
    check(pairs[1][0].is_alive() and pairs[1][1].is_alive(), pairs[1][1].tail())
    for p in pairs[1]:
        p.kill()
    daemon.stop()


def drained(work):
    """Work posted on a port completes before the daemon ends, although the others are idle."""
    daemon = Two(work, daemon='drain = 300000', log='driver = notice')
    ends, pushes = [], (1, PUSHES)
    for i in range(2):
        far = Process(work, f'far{i}', [TRANSFER, 'server', daemon.embedded(i)])
        far.wait_text('listening')
        near = Process(work, f'near{i}', [TRANSFER, 'client', daemon.at(i), PEER, str(pushes[i])])
        ends.append((near, far))
    for near, _ in ends:
        near.wait_text('posted')
    daemon.process.popen.send_signal(signal.SIGTERM)
    until_true('it ends', lambda: 'applications=2: ends' in daemon.process.err())
    check('done' not in ends[1][0].out(), 'too fast to see anything')
    check(daemon.process.wait() == 0, daemon.process.tail())
    for (near, far), nb in zip(ends, pushes):
        check_told(far, near)
        check(f'done {nb} flushed 0 other 0' in near.out(), near.tail())


def memory_fails(work):
    """Memory of an application of one port fails; that with the same number on the other port goes
    on."""
    daemon = Two(work, env=without_seals())
    pair = connected(work, [daemon.at(1)] * 2)
    attacker = hostile(work, daemon, 'sigbus')
    check(attacker.wait() == 0, f'{attacker.tail()} {daemon.process.tail()}')
    check('port=0 pid=' in daemon.process.err(), daemon.process.tail())
    for p in pair:
        check(p.is_alive(), p.tail() + daemon.process.tail())
    for p in pair:
        p.kill()
    daemon.stop()


def said_now(manager):
    """Messages of the daemon that have arrived and are not read yet."""
    said = []
    try:
        while True:
            said.append(manager.sock.recv(4096, socket.MSG_DONTWAIT).decode())
    except BlockingIOError:
        return said


def watched(work):
    """The daemon resets the watchdog only if the lcores of all ports are alive."""
    manager = Manager(work)
    daemon = Two(work, env={'NOTIFY_SOCKET': manager.path, 'WATCHDOG_USEC': '400000'})
    workers = sorted(tid for tid, t in threads(daemon).items() if 'worker' in t['Name'])
    check(len(workers) == 2, f'{threads(daemon)}')
    for tid, name in zip(workers, NAMES):
        until_true('that we live', lambda: any('WATCHDOG=1' in w for w in said_now(manager)))
        hold(tid)
        text = f'port={name} lcore=0 hangs'     # logged whenever a reset is due
        nb = daemon.process.err().count(text)   # on a busy machine an lcore may seem to hang before
        until_true(text, lambda: daemon.process.err().count(text) >= nb + 2)
        said_now(manager)
        until_true(text, lambda: daemon.process.err().count(text) >= nb + 5)
        said = said_now(manager)
        let_go(tid)
        check(not any('WATCHDOG=1' in w for w in said), f'an lcore hangs, and told is {said}')
    daemon.stop()


def limits(work):
    """Applications are counted per port; those of a user, per daemon."""
    daemon = Two(work, daemon='[limits]\napps = 1\napps_per_uid = 2\nstrangers = 8')
    apps = [dial(daemon) for _ in range(3)]
    check(ask(apps[0], request(HELLO))[0] == 0, 'hello')
    check('serves 1 applications' in ask(apps[1], request(HELLO))[1], 'one more')
    check(ask(apps[1], request(HELLO, b'east'))[0] == 0, 'on the other port')
    for s in apps:
        s.close()
    daemon.stop()
    daemon = Two(work, daemon='[limits]\napps_per_uid = 1')
    apps = [dial(daemon) for _ in range(2)]
    check(ask(apps[0], request(HELLO))[0] == 0, 'hello')
    check('of this user' in ask(apps[1], request(HELLO, b'east'))[1], 'of one user')
    for s in apps:
        s.close()
    daemon.stop()


def read_again(work):
    """Keys of a port need a restart, and are reported with the port's name."""
    daemon = Two(work, log='driver = notice')
    with open(daemon.conf, encoding='utf-8') as f:
        text = f.read()
    first, east, rest = text.partition('[port east]')
    write_conf(work, 'two.conf', first + east + rest.replace('conns = 64', 'conns = 32'))
    daemon.process.popen.send_signal(signal.SIGHUP)
    until_true('told', lambda: 'port east.conns changed' in daemon.process.err())
    check('port.conns' not in daemon.process.err(), daemon.process.err())
    write_conf(work, 'two.conf', text.replace('[port east]', '[port west]'))
    daemon.process.popen.send_signal(signal.SIGHUP)
    until_true('told', lambda: 'port west.ip changed' in daemon.process.err())
    check('port east.ip changed' in daemon.process.err(), daemon.process.err())
    daemon.stop()


def wrong_conf(work):
    """Errors in sections of ports are reported with file and line, or when the ports are opened."""
    ip = 'ip = 10.0.0.1/24\n'
    one = f'[port]\n{ip}lcores = 1\n'
    cases = [
        ('[port a b]\n', ':1: [port a b]: a name is 1 to 31'),
        ('[port  b]\n', ':1: [port  b]: a name is'),
        (f'[port {"x" * 32}]\n', ':1: [port ' + 'x' * 32 + ']: a name is'),
        (f'\n[port {"x" * 99}]\n', ':2: '),
        ('[port a/b]\n', ':1: [port a/b]: a name is'),
        ('[ports]\n', ':1: [ports]: known are [eal], [port], [port NAME]'),
        (f'{one}[port a]\n{ip}port = 1\nlcores = 2\n[port a]\n', ':8: [port a] is there already'),
        (f'{one}[port 0]\n', ':4: [port 0]: [port] has this name'),
        (f'{one}[port b]\nlcores = 2\ncolour = blue\n', ':6: colour'),
        (f'{one}[port b]\n{ip}port = 1\nlcores = 2,1\n',
         ':4: [port b]: lcore 1 is also that of port 0'),
        (f'{one}[port b]\n{ip}port = 0\nlcores = 2\n',
         ':4: [port b]: port=0 is also that of port 0'),
        (f'{one}[port b]\n{ip}lcores = 2\n', ':4: [port b]: port=0 is also that of port 0'),
        (f'{one}[port b]\n{ip}port = 1\n', ':4: [port b]: of several ports each needs lcores=, '
         'and port b has none'),
        (f'[port]\n{ip}[port b]\n{ip}port = 1\nlcores = 1\n', ':3: [port b]: of several ports '
         'each needs lcores=, and port 0 has none'),
        (''.join(f'[port p{i}]\n{ip}port = {i}\nlcores = {i + 1}\n' for i in range(9)),
         ':33: [port p8]: at most 8 ports'),
        ('[eal]\nargs = --no-huge\n', ': there is no [port]'),
    ]
    for text, want in cases:
        path = write_conf(work, 'wrong.conf', text)
        done = subprocess.run([DAEMON, '--check-config', '-c', path], capture_output=True,
                              text=True, check=False)
        check(done.returncode == 1 and f'{path}{want}' in done.stderr, f'{text!r}: {done.stderr}')
    right = ('[port left]\nip = 10.0.0.1/24\nlcores = 1\n'
             '[port right-2_x]\nip = 10.0.0.1/24\nport = 1\nlcores = 2,3\n')
    path = write_conf(work, 'right.conf', right)
    done = subprocess.run([DAEMON, '--check-config', '-c', path], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and 'OK' in done.stdout, done.stderr)
    # the same device by two names
    args = ' '.join(work.eal(0, '--vdev=net_null0', 256, '0@0,1@0,2@0'))
    path = write_conf(work, 'same.conf', f'[eal]\nargs = {args}\n'
                      '[port]\nip = 10.0.0.1/24\nlcores = 1\n'
                      '[port b]\nport = net_null0\nip = 10.0.0.2/24\nlcores = 2\n'
                      f'[daemon]\nsocket = {work.path("same.sock")}\n')
    done = subprocess.run([DAEMON, '-c', path], capture_output=True, text=True, check=False)
    check(done.returncode == 1 and '[port b] port=net_null0: the device of port 0' in done.stderr,
          done.stderr)


def over_the_wire(work):
    """Two programs on two ports of one daemon: data leaves by one port and arrives at the other."""
    if os.geteuid() != 0 or shutil.which('ip') is None:
        print('# not run: a cable between the ports needs root and ip')
        return
    ns = Namespace(work)
    ns.run('ip', 'link', 'add', 'pa', 'type', 'veth', 'peer', 'name', 'pb')
    for name in ('pa', 'pb'):
        ns.run('ip', 'link', 'set', name, 'up')
    daemon = Two(work, vdevs=['net_af_packet0,iface=pa', 'net_af_packet1,iface=pb'],
                 ips=(IP['server'], IP['client']), wrap=ns.exec())
    server, client = connected(work, (daemon.at(1), daemon.at(0)), rounds='300', peer=IP['client'])
    check(client.wait() == 0 and server.wait() == 0, client.tail() + server.tail())
    for name in NAMES:
        port = daemon.ask(f'port,port={name}')
        check(port['rx_pkts'] >= 300 and port['tx_pkts'] >= 300, f'{port}')
    daemon.stop()


def main():
    tests = Tests()
    tests.add('both at once', alone, both_at_once)
    tests.add('a port that is not there', alone, unknown)
    tests.add('numbers of another port', alone, numbers)
    tests.add('telemetry and sanctl', alone, shown)
    tests.add('an application of one port is killed', alone, killed)
    tests.add_long('a peer of one port dies', alone, peer_dies)
    tests.add_long('drained', alone, drained)
    tests.add('memory that fails', alone, memory_fails)
    tests.add_long('the watchdog', alone, watched)
    tests.add('limits', alone, limits)
    tests.add_long('the file, read again', alone, read_again)
    tests.add('wrong configuration', alone, wrong_conf)
    tests.add_long('from port to port over the wire', alone, over_the_wire)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
