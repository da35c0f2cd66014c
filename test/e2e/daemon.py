# SPDX-License-Identifier: BSD-3-Clause
"""A sanstack-daemon for the tests, its resources, and links with a daemon at each end."""

import contextlib
import copy
import glob
import json
import os
import socket

from e2e import (BENCH, BUILD, PATIENCE, SANITIZE, Failed, Link, Process, Work, check, cpus,
                 until_true)

DAEMON = os.path.join(BUILD, 'apps/sanstack-daemon/sanstack-daemon')
PINGPONG = os.path.join(BUILD, 'examples/pingpong')
IP = {'server': '10.5.0.1', 'client': '10.5.0.2'}
os.environ['RTSAN_PROVIDER_PATH'] = os.path.join(BUILD, 'drivers/san/unix')
os.environ['LD_LIBRARY_PATH'] += ':' + os.path.join(BUILD, 'drivers/san/unix')


def eal(work, role, lcores, vdev=None):
    memif = (f'--vdev=net_memif0,role={role},id=0,socket={work.dir}/memif.sock,'
             f'socket-abstract=no,mac=02:00:00:00:00:0{1 if role == "server" else 2}')
    return ' '.join(work.eal(0, vdev or memif, 256, lcores))


def embedded(work, role, port=''):
    cpu = cpus()[role == 'client']
    return f'dpdk:{eal(work, role, f"0@{cpu}")} -- ip={IP[role]}/24 conns=64 idle=sleep {port}'


def check_notified(process):
    """The program has ended because its daemon has: an event, or a request, has failed."""
    check(process.wait() == 1, process.tail())
    check('the port has failed' in process.err() or 'the daemon has ended' in process.err(),
          process.tail())


def write_conf(work, name, text):
    path = work.path(name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def children(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        return f.read().split()
    return []


class Daemon:
    """A daemon at one end of the memif link."""

    def __init__(self, work, role, port='', limits='', daemon='', log='', wrap=(),
                 env=None, vdev=None, lcores=1, ip=None, at=None):
        cpu = cpus()[role == 'client']
        workers = [f'{i + 1}@{cpu}' for i in range(lcores)]
        port = port or 'conns = 64'
        if lcores > 1:
            port += '\nlcores = ' + ','.join(str(i + 1) for i in range(lcores))
        if 'idle' not in port:
            port += '\nidle = sleep'   # daemons, programs and other tests share CPUs
        if SANITIZE:
            # Sanitizers start processes, trace them, and map executable memory.
            daemon += '\nseccomp = off'
        self.spec = f'unix:{work.dir}/{role}.sock'
        self.path = f'{work.dir}/{role}.sock'
        self.prefix = f'{work.tag}x{work.nb_prefixes}'
        args = eal(work, role, at or ','.join([f'0@{cpu}', *workers]), vdev)
        self.conf = write_conf(work, f'{role}.conf', f"""[eal]
args = {args.replace('--log-level=error', '')}
[port]
ip = {ip or IP[role]}/24
{port}
[daemon]
socket = {self.path}
{daemon}
[log]
{log}
[limits]
{limits}
""")
        self.work = work
        self.process = Process(work, f'daemon-{role}', [*wrap, DAEMON, '--config', self.conf], env)
        self.process.wait_text('ready')

    def again(self, *options):
        """The next daemon in the same place, started after this one's end or with *options*."""
        new = copy.copy(self)
        args = [a for a in self.process.popen.args if a not in options]
        new.process = Process(self.work, self.process.name, [*args, *options])
        new.process.wait_text('ready')
        return new

    def held(self):
        """Number of descriptors and mappings, which a dead program must not leave behind. The
        telemetry client also uses a descriptor for a moment, so wait for a stable number."""
        looks = []

        def stays():
            looks.append(self.held_now())
            return looks[-10:].count(looks[-1]) == 10
        until_true(lambda: f'what it holds never stays the same: {looks[-1]}', stays)
        return looks[-1]

    def held_now(self):
        pid = self.process.pid
        with open(f'/proc/{pid}/maps', encoding='utf-8') as f:
            ours = sum('memfd:' in line for line in f)
        # A user's helper lives as long as its programs, and uses two descriptors of the daemon.
        helpers = sum(len(children(forker)) for forker in children(pid))
        return len(os.listdir(f'/proc/{pid}/fd')) - 2 * helpers, ours

    def settle(self, want):
        until_true(lambda: f'held {self.held_now()}, not {want}', lambda: self.held_now() == want)

    def runtime_dir(self):
        """DPDK's folder for runtime files."""
        run = '/var/run' if os.getuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp')
        return f'{run}/dpdk/{self.prefix}'

    def telemetry(self):
        """Connect to DPDK's telemetry. If an ending daemon still has the path, or a killed one left
        it, the next daemon uses another one."""
        paths = glob.glob(f'{self.runtime_dir()}/dpdk_telemetry.v2*')
        for path in sorted(paths, key=os.path.getmtime, reverse=True):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.settimeout(PATIENCE)
            if s.connect_ex(path) == 0:
                return s
            s.close()
        raise Failed(f'no telemetry in {paths}')

    def ask(self, question):
        """An answer of DPDK's telemetry."""
        with self.telemetry() as s:
            s.recv(1024)
            s.send(f'/sanstack/{question}'.encode())
            return json.loads(s.recv(65536))[f'/sanstack/{question.split(",")[0]}']

    def counters(self):
        """All counters of the engine, in the form that sanbench prints for an engine of its own."""
        return {**self.ask('stats'), **self.ask('drops')}

    def engine_held(self):
        """Resources of connections in the engine, by name."""
        stats = self.ask('stats')
        return {name: stats[name] for name in ('conns', 'leaks', 'held', 'cam_used')}

    def settle_engine(self):
        """Wait until the engine holds nothing. There must be no applications."""
        until_true(lambda: f'engine: {self.engine_held()}',
                   lambda: not any(self.engine_held().values()))

    def mbufs(self):
        """Number of packet buffers in use."""
        port = self.ask('port')
        return port['buffers'] - port['buffers_free']

    def rss_kib(self):
        with open(f'/proc/{self.process.pid}/status', encoding='utf-8') as f:
            return next(int(line.split()[1]) for line in f if line.startswith('VmRSS'))

    def memory_kib(self):
        """Resident memory: its own, and that of memfds shared with programs."""
        own = shared = 0
        is_shared = False
        with open(f'/proc/{self.process.pid}/smaps', encoding='utf-8') as f:
            for line in f:
                words = line.split()
                if '-' in words[0]:
                    # DPDK's heap and memif's rings are memfds, too.
                    is_shared = ('memfd:' in line and 'nohuge' not in line and 'memif' not in line and
                                 'sanstack-state' not in line)
                elif words[0] == 'Rss:' and is_shared:
                    shared += int(words[1])
                elif words[0] == 'Rss:':
                    own += int(words[1])
        return own, shared

    def stop(self):
        check(self.process.stop() == 0, f'daemon: {self.process.tail()}')


def wait_listening(daemon, program, listeners=1):
    """Wait until that process, which is attached to the daemon, listens."""
    def listens():
        check(program.is_alive(), f'{program.name} has ended: {program.tail()}')
        rows = [row for row in daemon.ask('apps').values() if isinstance(row, dict)]
        return any(row.get('pid') == program.popen.pid and row['listeners'] >= listeners for row in rows)
    until_true(lambda: f'{program.name} does not listen: {program.tail()}', listens)


class Attached(Link):
    """A daemon at each end of a memif link. Programs attach to them, and sleep while idle."""

    server_ip, client_ip = IP['server'], IP['client']
    no_leaks = None     # a program does not know the daemon's leaks

    def __init__(self, work, conns=1024, limits='', **kwargs):
        super().__init__(work, **kwargs)
        self.daemons, self.before, self.last = {}, {}, {}
        for role in ('server', 'client'):
            port = [f'conns = {conns}', *self.faults(), *self.sets.get(role, ())]
            self.daemons[role] = Daemon(work, role, '\n'.join(port),
                                        f'conns = {conns}\n{limits}', **self.end(role))

        # Wait until the link is up: memif uses descriptors for it.
        for role, d in self.daemons.items():
            self.before[role], self.last[role] = d.held(), d.counters()

    def end(self, role):
        """What the daemon is configured with on another kind of link."""
        return {}

    def faults(self):
        """The faults of --impair, with different seeds so that the two directions lose different
        packets."""
        if not self.impair:
            return []
        way, colon, spec = self.impair.rpartition(':')
        spec, _, seed = spec.partition(',seed=')
        return [f'impair_{w} = {spec},seed={int(seed or 0) + (w == "tx")}'
                for w in ([way] if colon else ['rx', 'tx'])]

    def program(self, role, own, **_):
        return [BENCH, '--attach', self.daemons[role].spec, '--wait', *own]

    def counters(self, role, result):
        """Counters since the last call. The values in the process's own JSON must be null."""
        check(result['counters'] is None, 'counters of an engine elsewhere')
        last, self.last[role] = self.last[role], self.daemons[role].counters()
        return {name: value - last[name] for name, value in self.last[role].items()}

    def stop(self):
        """End the daemons, and check that nothing is left in them."""
        for role, d in self.daemons.items():
            d.settle(self.before[role])
            d.settle_engine()
        for d in self.daemons.values():
            d.stop()


def connected(work, specs, options=('-w',), rounds='100000000', peer=IP['server'], wrap=()):
    """Start two programs that talk for *rounds*, or until they are stopped. A client that is
    refused because the server does not listen yet asks again."""
    server = Process(work, 'server', [*wrap, PINGPONG, *options, 'server', specs[0]])
    client = None

    def is_connected():
        nonlocal client
        if 'connected' in server.out():
            return True
        check(server.is_alive(), f'server has ended: {server.tail()}')
        if client is None or not client.is_alive():
            client = Process(work, 'client', [*wrap, PINGPONG, *options, 'client', specs[1],
                                              peer, rounds])
        return False
    until_true(lambda: f'connected: {server.tail()}; the client: {client.tail()}', is_connected)
    return server, client


def alone(test):
    """Give a test a folder and processes of its own."""
    with Work() as work:
        test(work)
