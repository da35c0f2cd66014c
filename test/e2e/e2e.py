# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the end-to-end tests: processes, links, namespaces, results.

Everything that a test starts or creates has a unique name and is removed at the end in any case.
Only processes that were started here are ended, by PID.
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
SLOW = 4 if SANITIZE else 1     # factor for time limits
PATIENCE = 120 * SLOW   # seconds for any wait: a watchdog, never a verdict
CASE = os.environ.get('SAN_CASE', '')   # run only cases whose name contains this
IS_CHECK = os.environ.get('SAN_TIER') == 'check'    # make check; else make check-all

os.environ['LD_LIBRARY_PATH'] = ':'.join(
    [os.path.join(BUILD, 'drivers/san/dpdk'), os.path.join(BUILD, 'lib/rtsan')]
    + ([os.environ['LD_LIBRARY_PATH']] if os.environ.get('LD_LIBRARY_PATH') else []))

SERVER_IP, CLIENT_IP = '10.77.0.1', '10.77.0.2'
SERVER_IP6, CLIENT_IP6 = 'fd77::1', 'fd77::2'


class Failed(Exception):
    """A check failed."""


class Skipped(Exception):
    """A case can't run here; the reason."""


def check(condition, text):
    if not condition:
        raise Failed(text)


def skip(reason):
    """End the whole test as skipped."""
    print(f'1..0 # SKIP {reason}')
    print(reason, flush=True)
    sys.exit(77)


def cpus():
    """CPUs for EAL of two processes: any allowed ones, because other tests run at the same time."""
    mine = ','.join(map(str, sorted(os.sched_getaffinity(0))))
    return f'({mine})', f'({mine})'


def until_true(what, function):
    """Wait until *function* returns something true, and return that. *what*, a text or a function,
    describes what did not happen."""
    until = time.monotonic() + PATIENCE
    while not (value := function()):
        check(time.monotonic() < until, f'never: {what() if callable(what) else what}')
        time.sleep(0.01)
    return value


class Process:
    """A background process with its output in files."""

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
        """Its output so far; a line counts when it is complete, or the process has ended."""
        is_alive = self.is_alive()
        with open(self.out_path, encoding='utf-8', errors='replace') as f:
            text = f.read()
        return text[:text.rfind('\n') + 1] if is_alive else text

    def err(self):
        with open(self.err_path, encoding='utf-8', errors='replace') as f:
            return f.read()

    def is_alive(self):
        return self.popen.poll() is None

    def wait_text(self, text):
        """Wait until *text* is in its output."""
        def says():
            is_alive = self.is_alive()
            if text in self.out():
                return True
            check(is_alive, f'{self.name} has ended: {self.tail()}')
            return False
        until_true(lambda: f'{self.name} does not say "{text}": {self.tail()}', says)

    def wait(self):
        """Wait for its end. Returns the exit status; fails on a timeout."""
        try:
            return self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f'{self.name} hangs: {self.tail()}') from None

    def signal(self, name):
        self.popen.send_signal(signal.Signals[f'SIG{name}'])

    def stop(self):
        """Terminate it in order. Returns the exit status."""
        if self.is_alive():
            self.popen.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        if self.is_alive():
            self.popen.kill()
        self.popen.wait()

    def tail(self):
        """The end of its output, and its exit status if it has ended."""
        text = (self.out()[-1500:] + self.err()[-1500:]).strip() or '(no output)'
        return text if self.is_alive() else f'{text} (ended with {self.popen.returncode})'


class Work:
    """A folder and the processes of one test, as a context manager."""

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
        """A unique file prefix for DPDK."""
        self.nb_prefixes += 1
        return f'{self.tag}x{self.nb_prefixes - 1}'

    def eal(self, cpu, vdev, memory=512, lcores=None):
        """EAL arguments of a process on *cpu*, without hugepages and NICs."""
        return [f'--lcores={lcores or f"0@{cpu}"}', '--no-pci', '--no-huge', '--no-shconf',
                '-m', str(memory), f'--file-prefix={self.prefix()}', '--log-level=error', vdev]

    def start(self, name, command, env=None):
        return Process(self, name, command, env)


class Link:
    """A connection between two sanbench processes. Each kind has a subclass."""

    server_ip, client_ip = SERVER_IP, CLIENT_IP
    bits = 24
    no_leaks = 0        # leaks reported by a process that has released everything

    def __init__(self, work, impair=None, sets=None):
        """*impair*: faults at both ends; *sets*: by role, keys of the provider."""
        self.work = work
        self.impair, self.sets = impair, sets or {}

    def wrap(self, role):
        """Command in front of the program, for instance for a namespace."""
        return []

    def vdev(self, role):
        raise NotImplementedError

    def program(self, role, own, memory=512, lcores=None):
        """sanbench's command line as 'server' or 'client' with the arguments *own*."""
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
        """Counters of the engine that served the process with these results."""
        return result['counters']

    def stop(self):
        """End the processes of the link itself."""


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
        """True if the server's port accepts connections of a client's port.
        (flags __SO_ACCEPTCON)"""
        with open('/proc/net/unix', encoding='utf-8') as f:
            return any(line.split()[3] == '00010000' and line.endswith(f' {self.socket}\n')
                       for line in f)


class Null(Link):
    """A port that drops all packets and receives none."""

    def vdev(self, role):
        return '--vdev=net_null0,no-rx=1'


class Server:
    """sanbench as the server of a link."""

    def __init__(self, link, own=(), **kwargs):
        self.link = link
        self.json_path = link.work.path(f'server{len(link.work.processes)}.json')
        self.process = link.work.start('server', link.program(
            'server', ['--server', '--json', self.json_path, *own], **kwargs))
        self.process.wait_text('listening')

    def stop(self):
        """Stop it. Returns (exit status, JSON)."""
        status = self.process.stop()
        result = load(self.json_path, self.process)
        result['counters'] = self.link.counters('server', result)
        return status, result

    def stop_ok(self):
        """Stop it. Returns its JSON, after a check that there were no errors and no leaks."""
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
    """sanbench as a client, run to its end."""

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
    """A counter of the provider, which must exist."""
    check(name in result['counters'], f'there is no counter {name}')
    return result['counters'][name]


class Tests:
    """Numbered results in TAP, so that a failed test does not hide the others."""

    def __init__(self):
        self.cases = []
        signal.signal(signal.SIGTERM, self.on_signal)

    @staticmethod
    def on_signal(signum, _):
        raise TimeoutError(f'signal {signum}: the test takes too long')

    def add(self, name, function, *args):
        """Add a case for both tiers."""
        if CASE in name:
            self.cases.append((name, function, args))

    def add_long(self, name, function, *args):
        """Add a case for make check-all only."""
        if not IS_CHECK:
            self.add(name, function, *args)

    def run(self):
        """Run all cases. Returns the exit status."""
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
            except Exception as e:      # any exception fails the test
                failed += 1
                text = str(e) if isinstance(e, Failed) else traceback.format_exc()
                print(f'not ok {i} - {name}')
                for line in text.splitlines():
                    print(f'# {line}')
                sys.stdout.flush()
        return 1 if failed else 0


# ---- namespaces ----

def need_namespaces(*tools):
    """Skip unless network namespaces can be created and *tools* are installed."""
    for tool in ('ip', *tools):
        if shutil.which(tool) is None:
            skip(f'{tool} is not installed')
    if os.geteuid() != 0:
        skip('network namespaces and raw sockets need root')
    made = subprocess.run(['unshare', '--net', 'true'], capture_output=True, text=True)
    if made.returncode != 0:
        skip(f'no network namespaces: {made.stderr.strip()}')


def sh(*command):
    """Run a command, which must succeed. Returns its output."""
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f'{" ".join(command)}: {done.stderr.strip()}')
    return done.stdout


# Mounts of one's own: a command, and the first line of the script that it starts. In a chroot / is
# no mount point, so its propagation can't be changed there, and unshare must not try.
OWN_MOUNTS = ['unshare', '--mount', '--propagation', 'unchanged']
OWN_MOUNTS_SH = 'mount --make-rprivate / 2>/dev/null || :\n'


class Namespace:
    """An unnamed network namespace, which exists as long as a process in it.

    `ip netns` would need mounts, which a chroot forbids and a killed test leaves behind.
    """

    def __init__(self, work):
        # It ends with its standard input, and so with this process in any case.
        self.holder = subprocess.Popen(['unshare', '--net', 'cat'], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL)
        work.namespaces.append(self)
        self.pid = str(self.holder.pid)
        until_true('a namespace', lambda: self.link(self.pid) != self.link('self'))
        # Router solicitations and the like would clutter the captures.
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
    """A veth pair between two namespaces, with a DPDK driver at each end."""

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
            # The driver takes frames as they are, so the kernel must fill in checksums.
            ns.run('ethtool', '-K', 'pv0', 'tx', 'off', 'gso', 'off', 'tso', 'off')

    def wrap(self, role):
        return self.ns[role].exec()

    def vdev(self, role):
        # Without the bypass the taps of the namespace also see sent packets.
        more = ',qdisc_bypass=0' if self.driver[role] == 'af_packet' else ''
        return f'--vdev=net_{self.driver[role]}0,iface=pv0{more}'
