# SPDX-License-Identifier: BSD-3-Clause
"""What the end-to-end tests share: processes, links, namespaces, results.

Everything that a test starts or makes has a name of its own and is gone at its
end, whatever happened; only processes that were started here are ended, by pid.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get('SAN_SOURCE_DIR', os.path.dirname(os.path.dirname(HERE)))
BUILD = os.environ.get('SAN_BUILD_DIR', os.path.join(SOURCE, 'build'))
SANITIZE = os.environ.get('SAN_SANITIZE', '0') == '1'
BENCH = os.path.join(BUILD, 'apps/sanbench/sanbench')
SLOW = 4 if SANITIZE else 1     # how much longer things may take
PATIENCE = 120 * SLOW   # seconds that anything is waited for: a watchdog, no verdict
CASE = os.environ.get('SAN_CASE', '')   # only cases with this in their names
IS_CHECK = os.environ.get('SAN_TIER') == 'check'    # make check; else make check-all

os.environ['LD_LIBRARY_PATH'] = ':'.join(
    [os.path.join(BUILD, 'drivers/san/dpdk'), os.path.join(BUILD, 'lib/rtsan')]
    + ([os.environ['LD_LIBRARY_PATH']] if os.environ.get('LD_LIBRARY_PATH') else []))

SERVER_IP, CLIENT_IP = '10.77.0.1', '10.77.0.2'
SERVER_IP6, CLIENT_IP6 = 'fd77::1', 'fd77::2'


class Failed(Exception):
    """A check of a test did not hold."""


class Skipped(Exception):
    """A case that can't be run here, and why."""


def check(condition, text):
    if not condition:
        raise Failed(text)


def skip(reason):
    """End the whole test as skipped."""
    print(f'1..0 # SKIP {reason}')
    print(reason, flush=True)
    sys.exit(77)


def cpus():
    """For EAL, the CPUs of each of two processes: any of ours, as other tests run beside."""
    mine = ','.join(map(str, sorted(os.sched_getaffinity(0))))
    return f'({mine})', f'({mine})'


def until_true(what, function):
    """Until *function* returns something true; that. *what*, a text or a function, says what
    did not come."""
    until = time.monotonic() + PATIENCE
    while not (value := function()):
        check(time.monotonic() < until, f'never: {what() if callable(what) else what}')
        time.sleep(0.01)
    return value


class Process:
    """A program in the background, its output in files."""

    def __init__(self, work, name, command, env=None):
        self.name = name
        self.out_path = os.path.join(work.dir, f'{name}.{len(work.processes)}.out')
        self.err_path = self.out_path[:-4] + '.err'
        with open(self.out_path, 'wb') as out, open(self.err_path, 'wb') as err:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=err, env=dict(os.environ, **(env or {})))
        self.pid = self.popen.pid
        work.processes.append(self)

    def out(self):
        with open(self.out_path, encoding='utf-8', errors='replace') as f:
            return f.read()

    def err(self):
        with open(self.err_path, encoding='utf-8', errors='replace') as f:
            return f.read()

    def is_alive(self):
        return self.popen.poll() is None

    def wait_text(self, text):
        """Until *text* is in its output."""
        def says():
            is_alive = self.is_alive()
            if text in self.out():
                return True
            check(is_alive, f'{self.name} has ended: {self.tail()}')
            return False
        until_true(lambda: f'{self.name} does not say "{text}": {self.tail()}', says)

    def wait(self):
        """Its exit status; fails if it does not end."""
        try:
            return self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f'{self.name} hangs: {self.tail()}') from None

    def signal(self, name):
        self.popen.send_signal(signal.Signals[f'SIG{name}'])

    def stop(self):
        """End it orderly; its exit status."""
        if self.is_alive():
            self.popen.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        if self.is_alive():
            self.popen.kill()
        self.popen.wait()

    def tail(self):
        """The end of its output, and how it has ended, if it has."""
        text = (self.out()[-1500:] + self.err()[-1500:]).strip() or '(no output)'
        return text if self.is_alive() else f'{text} (ended with {self.popen.returncode})'


class Work:
    """A folder and the processes of one test; use as a context."""

    nb_works = 0

    def __init__(self):
        self.processes = []
        self.namespaces = []
        self.nb_prefixes = 0

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix='san-e2e.')
        Work.nb_works += 1
        self.tag = f'e2e{os.getpid()}w{Work.nb_works}'
        return self

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
        for ns in self.namespaces:
            ns.close()
        for base in ('/var/run/dpdk', os.environ.get('XDG_RUNTIME_DIR', '') + '/dpdk', '/tmp/dpdk'):
            for i in range(self.nb_prefixes):
                shutil.rmtree(os.path.join(base, f'{self.tag}x{i}'), ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def prefix(self):
        """A file prefix of DPDK that nobody else has."""
        self.nb_prefixes += 1
        return f'{self.tag}x{self.nb_prefixes - 1}'

    def eal(self, cpu, vdev, memory=512, lcores=None):
        """EAL arguments of a process on *cpu*, without hugepages and NICs."""
        return [f'--lcores={lcores or f"0@{cpu}"}', '--no-pci', '--no-huge', '--no-shconf',
                '-m', str(memory), f'--file-prefix={self.prefix()}', '--log-level=error', vdev]

    def start(self, name, command, env=None):
        return Process(self, name, command, env)


class Link:
    """How two sanbench processes reach each other. A subclass per kind."""

    server_ip, client_ip = SERVER_IP, CLIENT_IP
    bits = 24
    no_leaks = 0        # what a process says that has released everything

    def __init__(self, work, impair=None, sets=None):
        """*impair*: faults of both ends; *sets*: of each role, keys of the provider."""
        self.work = work
        self.impair, self.sets = impair, sets or {}

    def wrap(self, role):
        """Command in front of the program: a namespace, for instance."""
        return []

    def vdev(self, role):
        raise NotImplementedError

    def program(self, role, own, memory=512, lcores=None):
        """Command line of sanbench as 'server' or 'client' with its own arguments."""
        cpu = cpus()[role == 'client']
        ip = self.server_ip if role == 'server' else self.client_ip
        port = ['--ip', f'{ip}/{self.bits}', '--set', 'idle=sleep']
        if self.impair:
            port += ['--impair', self.impair]
        for key in self.sets.get(role, ()):
            port += ['--set', key]
        return [*self.wrap(role), BENCH, *self.work.eal(cpu, self.vdev(role), memory, lcores),
                '--', *port, *own]

    def counters(self, role, result):
        """Those of the engine that served the process whose results these are."""
        return result['counters']

    def stop(self):
        """End what the link itself is made of."""


class Memif(Link):
    def __init__(self, work, bsize=2048, **kwargs):
        super().__init__(work, **kwargs)
        self.bsize = bsize
        self.socket = work.path(f'memif{work.nb_prefixes}')

    def vdev(self, role):
        mac = '01' if role == 'server' else '02'
        return (f'--vdev=net_memif0,role={role},id=0,socket={self.socket},socket-abstract=no,'
                f'bsize={self.bsize},rsize=10,mac=02:00:00:00:77:{mac}')

    def is_listening(self):
        """Is the server's port there, so that a client's finds it? (flags __SO_ACCEPTCON)"""
        with open('/proc/net/unix', encoding='utf-8') as f:
            return any(line.split()[3] == '00010000' and line.endswith(f' {self.socket}\n')
                       for line in f)


class Null(Link):
    """A port that takes everything and gives nothing."""

    def vdev(self, role):
        return '--vdev=net_null0,no-rx=1'


class Server:
    """sanbench as a server on a link."""

    def __init__(self, link, own=(), **kwargs):
        self.link = link
        self.json_path = link.work.path(f'server{len(link.work.processes)}.json')
        self.process = link.work.start('server', link.program(
            'server', ['--server', '--json', self.json_path, *own], **kwargs))
        self.process.wait_text('listening')

    def stop(self):
        """End it; (exit status, its JSON)."""
        status = self.process.stop()
        result = load(self.json_path, self.process)
        result['counters'] = self.link.counters('server', result)
        return status, result

    def stop_ok(self):
        """End it; its JSON. Nothing may have been wrong or be left behind."""
        status, result = self.stop()
        check(status == 0 and result['ok'], f'server ended with {status}: {self.process.tail()}')
        check(result['leaks'] == self.link.no_leaks, f'the server leaks {result["leaks"]}')
        return result


def load(path, process):
    try:
        with open(path, encoding='utf-8') as f:
            return json.load(f)
    except (OSError, ValueError) as e:
        raise Failed(f'{process.name}: no results: {e}: {process.tail()}') from None


class Run:
    """sanbench as a client, to its end."""

    def __init__(self, link, own, peer=None, **kwargs):
        self.link = link
        self.json_path = link.work.path(f'client{len(link.work.processes)}.json')
        command = link.program('client', ['--connect', peer or link.server_ip,
                                          '--json', self.json_path, *own], **kwargs)
        self.process = link.work.start('client', command)
        self.status = self.process.wait()
        self.out, self.err = self.process.out(), self.process.err()
        self.json = {}
        if os.path.exists(self.json_path):
            self.json = load(self.json_path, self.process)
            self.json['counters'] = link.counters('client', self.json)

    def check_ok(self):
        check(self.status == 0, f'client ended with {self.status}: {self.process.tail()}')
        check(self.json.get('ok') is True, f'client: {self.json.get("error")}')
        check(self.json['server_errors'] == 0, 'the server found errors')
        check(self.json['leaks'] == self.link.no_leaks, f'{self.json["leaks"]} leaks')
        return self.json


def counter(result, name):
    """A counter of the provider; it must exist."""
    check(name in result['counters'], f'there is no counter {name}')
    return result['counters'][name]


class Tests:
    """Numbered results in TAP, so that one test that fails doesn't hide the others."""

    def __init__(self):
        self.cases = []
        signal.signal(signal.SIGTERM, self.on_signal)

    @staticmethod
    def on_signal(signum, _):
        raise TimeoutError(f'signal {signum}: the test takes too long')

    def add(self, name, function, *args):
        """A case of both tiers."""
        if CASE in name:
            self.cases.append((name, function, args))

    def add_long(self, name, function, *args):
        """A case of make check-all only."""
        if not IS_CHECK:
            self.add(name, function, *args)

    def run(self):
        """Run all; exit status."""
        failed = 0 if self.cases else 1
        print(f'1..{len(self.cases)}', flush=True)
        for i, (name, function, args) in enumerate(self.cases, 1):
            began = time.monotonic()
            try:
                function(*args)
                took = time.monotonic() - began
                print(f'ok {i} - {name}\n# {took:.1f} s', flush=True)
            except Skipped as e:
                print(f'ok {i} - {name} # SKIP {e}', flush=True)
            except TimeoutError as e:
                print(f'not ok {i} - {name}\n# {e}', flush=True)
                return 1
            except Exception as e:      # a test that breaks is a test that fails
                failed += 1
                text = str(e) if isinstance(e, Failed) else traceback.format_exc()
                print(f'not ok {i} - {name}')
                for line in text.splitlines():
                    print(f'# {line}')
                sys.stdout.flush()
        return 1 if failed else 0


# ---- namespaces ----

def need_namespaces(*tools):
    """Skip unless network namespaces can be made and *tools* are here."""
    for tool in ('ip', *tools):
        if shutil.which(tool) is None:
            skip(f'{tool} is not installed')
    if os.geteuid() != 0:
        skip('network namespaces and raw sockets need root')
    made = subprocess.run(['unshare', '--net', 'true'], capture_output=True, text=True)
    if made.returncode != 0:
        skip(f'no network namespaces: {made.stderr.strip()}')


def sh(*command):
    """Run a command that must work; its output."""
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f'{" ".join(command)}: {done.stderr.strip()}')
    return done.stdout


class Namespace:
    """A network namespace without a name: it lives as long as a process in it.

    `ip netns` would mount things, which a chroot forbids and a killed test leaves.
    """

    def __init__(self, work):
        # It ends with its standard input, so with this process, whatever ends that.
        self.holder = subprocess.Popen(['unshare', '--net', 'cat'], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL)
        work.namespaces.append(self)
        self.pid = str(self.holder.pid)
        until_true('a namespace', lambda: self.link(self.pid) != self.link('self'))
        # Router solicitations and the like would only be noise in the captures.
        self.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1',
                 'net.ipv6.conf.default.disable_ipv6=1')
        self.run('ip', 'link', 'set', 'lo', 'up')

    @staticmethod
    def link(pid):
        return os.readlink(f'/proc/{pid}/ns/net')

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()

    def exec(self):
        return ['nsenter', '--target', self.pid, '--net', '--']

    def run(self, *command):
        return sh(*self.exec(), *command)


class Veth(Link):
    """A veth pair between two namespaces, a DPDK driver at each end."""

    mtu = 1500

    def __init__(self, work, server, client=None, v6=False):
        super().__init__(work)
        self.driver = {'server': server, 'client': client or server}
        if v6:
            self.server_ip, self.client_ip, self.bits = SERVER_IP6, CLIENT_IP6, 64
        self.ns = {role: Namespace(work) for role in ('server', 'client')}
        server, client = self.ns['server'], self.ns['client']
        server.run('ip', 'link', 'add', 'pv0', 'type', 'veth', 'peer', 'name', 'pv0', 'netns',
                   client.pid)
        for ns in (server, client):
            ns.run('ip', 'link', 'set', 'pv0', 'mtu', str(self.mtu), 'up')
            # The driver takes frames as they are: checksums must be in them.
            ns.run('ethtool', '-K', 'pv0', 'tx', 'off', 'gso', 'off', 'tso', 'off')

    def wrap(self, role):
        return self.ns[role].exec()

    def vdev(self, role):
        # Without the bypass, what a port sends passes the taps of its namespace, too.
        more = ',qdisc_bypass=0' if self.driver[role] == 'af_packet' else ''
        return f'--vdev=net_{self.driver[role]}0,iface=pv0{more}'
