# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs over a link between two namespaces, with the library preloaded at one end or
at none.

Our end has an address in the kernel, and a sanstack-daemon with a port on the same device and
address. The other end belongs to the kernel. A case is a function that starts a server and clients
on a Pair and returns their output without varying parts. The output must not depend on whether the
sockets are carried.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys

from asleep import wait_asleep
from daemon import Daemon
from e2e import (BUILD, PATIENCE, Namespace, Process, Skipped, Tests, Work, check,
                 need_namespaces, until_true)

LIBRARY = os.path.join(BUILD, 'lib/sansock/libsansock.so')
OUR_IP, PEER_IP = '10.77.0.1', '10.77.0.2'
OUR_IP6, PEER_IP6 = 'fd77::1', 'fd77::2'
PYTHON = '/usr/bin/python3'
HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, 'sock_peer.py')
SERVERS = '/usr/sbin:/sbin'     # Debian's folders that are not in every PATH
# With the library the kernel may have this fraction of its packets without it.
FEW = 10
# TCP segments of the token, the daemon's connection to the kernel's listener.
TOKEN = 8
COUNTED = {'udp': ('Udp.InDatagrams', 'Udp.OutDatagrams'), 'tcp': ('Tcp.InSegs', 'Tcp.OutSegs')}

# The end that is ours, and whether its programs have the library.
KERNEL, SERVER, CLIENT = 'kernel', 'server', 'client'


def has_library():
    return os.path.exists(LIBRARY)


def begin():
    """Start a file of cases. It is skipped without the library."""
    need_namespaces('ethtool', 'sysctl')
    if not has_library():
        print('1..0 # SKIP no library')
        sys.exit(0)
    return Tests()


def need(*tools):
    """Full paths of tools. The case is skipped if one is missing."""
    path = os.environ['PATH'] + ':' + SERVERS
    found = [shutil.which(tool, path=path) for tool in tools]
    missing = [tool for tool, at in zip(tools, found) if at is None]
    if missing:
        raise Skipped(f'{", ".join(missing)} not installed')
    return found


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def file_digest(path):
    with open(path, 'rb') as f:
        return digest(f.read())


def sample(path, size, seed=1):
    """Create a file of *size* bytes, always the same ones. Returns its digest."""
    with open(path, 'wb') as f:
        f.write(hashlib.shake_128(str(seed).encode()).digest(size))
    return file_digest(path)


def snmp(ns):
    """Counters of a namespace: {'Udp.InDatagrams': 5, ...}."""
    counters = {}
    with open(f'/proc/{ns.pid}/net/snmp', encoding='ascii') as f:
        lines = [line.split() for line in f]
    for names, values in zip(lines[::2], lines[1::2]):
        for name, value in zip(names[1:], values[1:]):
            counters[names[0] + name] = int(value)
    return {name.replace(':', '.'): value for name, value in counters.items()}


def rows(ns, proto):
    """The kernel's sockets in a namespace as lists of words; the second is the local address."""
    for version in ('', '6'):
        with contextlib.suppress(FileNotFoundError):
            with open(f'/proc/{ns.pid}/net/{proto}{version}', encoding='ascii') as f:
                yield from [line.split() for line in f][1:]


def bound(ns, proto, port):
    """True if the kernel has a socket on *port*. A TCP socket must listen (0A)."""
    return any(int(r[1].split(':')[1], 16) == port and (proto == 'udp' or r[3] == '0A')
               for r in rows(ns, proto))


def is_helper(pid):
    """True for helpers of a daemon, which end with it."""
    with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
        return f.read().startswith('san-helper')


def processes(ns):
    """All processes in a namespace except the one that keeps it, and helpers of daemons."""
    mine = Namespace.link(ns.pid)
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if pid != ns.pid and Namespace.link(pid) == mine and not is_helper(pid):
                yield int(pid)
        except OSError:
            pass        # it has ended


class Pair:
    """Two namespaces for one case, or several in sequence; as a context manager.

    *ours* is the program that runs at our end with the library: SERVER or CLIENT. With KERNEL the
    server runs there, and no program has the library. *daemons*: also at the other end (mode
    "both"). *v6*: both ends have an IPv6 address, too. *port*, *limits*: more lines for the
    daemons' sections; *env*: more environment of programs with the library.
    """

    def __init__(self, work, ours=KERNEL, proto='udp', daemons=1, rules=None, port='',
                 v6=False, limits='', env=()):
        self.env = env
        self.work, self.ours, self.proto, self.port = work, ours, proto, port
        self.servers, self.nb_cases = [], 0
        self.at_us, self.at_peer = Namespace(work), Namespace(work)
        self.v6, self.limits = v6, limits
        self.link_up()
        is_server = ours != CLIENT
        self.ns = {'server': self.at_us if is_server else self.at_peer,
                   'client': self.at_peer if is_server else self.at_us}
        self.server_ip, self.client_ip = ((OUR_IP, PEER_IP) if is_server else (PEER_IP, OUR_IP))
        self.daemons = {}
        if ours != KERNEL:
            self.daemons['us'] = self.start_daemon(self.at_us, 'server', OUR_IP, 'a0',
                                                   f'ip = {OUR_IP6}/64' if v6 else '')
            if daemons == 2:
                self.daemons['peer'] = self.start_daemon(self.at_peer, 'client', PEER_IP, 'b0')
        # give daemons on a busy machine enough time; carry short connections
        patience = (';answer 60' + (';probe 10000' if daemons == 2 else '') +
                    (';short 0' if 'short' not in (rules or '') else ''))
        self.carries_all = rules is None
        self.rules = (rules or f'kernel remote 127.0.0.0/8;carry proto {proto}') + patience
        self.own_names = self.names()   # sockets of the daemons themselves
        self.next_case()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Stop the servers; killed ones may have left workers."""
        for p in self.servers:
            if p.is_alive():
                p.popen.send_signal(signal.SIGTERM)
        for p in self.servers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.popen.wait(1)
        self.servers = []
        daemons = [d.process.pid for d in self.daemons.values()]
        for ns in (self.at_us, self.at_peer):
            for pid in processes(ns):
                if pid not in daemons:
                    os.kill(pid, signal.SIGKILL)

    def next_case(self):
        """Start a case with a folder of its own and new counters. Nothing of the previous one may
        be left."""
        self.__exit__()
        self.wait_unused()
        self.nb_cases += 1
        self.kernels = 0        # datagrams that the case leaves to the kernel of our end
        self.sent = None        # messages sent by our end, if the case counts them
        self.folder = self.work.path(f'{self.ours}{self.nb_cases}')
        os.makedirs(self.folder)
        self.before = self.counters()

    def wait_unused(self):
        """Wait until the sockets of ended programs are released: those of daemons, and
        UDP ports."""
        for d in self.daemons.values():
            until_true('sockets are gone', lambda: d.ask('sockets').get('sockets') == 0)
        until_true('names are free', lambda: self.names() <= self.own_names)

    def names(self):
        return {r[1] for ns in (self.at_us, self.at_peer) for r in rows(ns, 'udp')}

    def link_up(self):
        ours, peer = self.at_us, self.at_peer
        ours.run('ip', 'link', 'add', 'a0', 'type', 'veth', 'peer', 'name', 'b0', 'netns', peer.pid)
        peer.run('sysctl', '-qw', 'net.ipv4.icmp_ratelimit=0')  # each case counts by itself
        for ns, name, ip in ((ours, 'a0', OUR_IP), (peer, 'b0', PEER_IP)):
            # The driver takes frames as they are, so the kernel must fill in checksums.
            ns.run('ethtool', '-K', name, 'tx', 'off', 'gso', 'off', 'tso', 'off')
            ns.run('ip', 'address', 'add', f'{ip}/24', 'dev', name)
            ns.run('ip', 'link', 'set', name, 'up')
            ns.run('ip', 'route', 'add', '224.0.0.0/4', 'dev', name)
            if self.v6:
                ns.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=0',
                       f'net.ipv6.conf.{name}.disable_ipv6=0')
                ns.run('ip', 'address', 'add', f'{OUR_IP6 if ns is ours else PEER_IP6}/64',
                       'dev', name, 'nodad')

    def start_daemon(self, ns, role, ip, device, more=''):
        conns = 64 if self.proto == 'udp' else 512
        port = f'conns = {conns}\nsockets = 300\nidle = sleep\nsleep_us = 100\n'
        if 'carry_tcp' not in self.port:
            port += 'carry_tcp = on\n'    # over af_packet it is off otherwise
        return Daemon(self.work, role, f'{port}{self.port}\n{more}', self.limits,
                      wrap=ns.exec(), vdev=f'--vdev=net_af_packet0,iface={device}', ip=ip)

    # ---- programs ----

    def command(self, role, *command, plain=False):
        """Command of a program at an end. With a daemon the program has the library, but nsenter
        has not."""
        end = 'us' if self.ns[role] is self.at_us else 'peer'
        if plain or end not in self.daemons:
            env = []
        else:
            rules = f'daemon {self.daemons[end].path};{self.rules}'
            env = ['/usr/bin/env', f'LD_PRELOAD={LIBRARY}', 'SANSOCK_CONF=/dev/null',
                   f'SANSOCK_RULES={rules}', *self.env]
        return [*self.ns[role].exec(), *env, *map(str, command)]

    def server(self, *command, port=None, text=None, proto=None, **how):
        """Start a server, and wait until it has *port* or has printed *text*."""
        p = Process(self.work, os.path.basename(command[0]),
                    self.command('server', *command, **how))
        self.servers.append(p)
        if text is not None:
            p.wait_text(text)
        if port is not None:
            self.wait_port(p, proto or self.proto, port)
            if self.carries_all and (proto or self.proto) == self.proto and not how.get('plain'):
                self.wait_carried(p, port)
        return p

    def wait_carried(self, p, port):
        """Wait until the port is carried: until then the kernel gets what arrives."""
        daemon = self.daemons.get('us' if self.ns['server'] is self.at_us else 'peer')
        until_true(lambda: f'{p.name} has port {port} carried: {p.tail()}',
                   lambda: not daemon or not p.is_alive() or any(
                       one['local'].endswith(f':{port}')
                       for one in daemon.ask('sock_list').values() if isinstance(one, dict)))

    def wait_port(self, p, proto, port):
        """Wait for a port. The kernel also knows the name of a carried socket."""
        until_true(lambda: f'{p.name} opens port {port}: {p.tail()}',
                   lambda: bound(self.ns['server'], proto, port) or not p.is_alive())
        check(p.is_alive(), f'{p.name} has ended: {p.tail()}')
        wait_asleep(p.pid)      # a port has its number before the socket is carried

    def client(self, *command, stdin='', status=0, **how):
        """Run a client to its end. Returns its output. *stdin* and the output are texts, or both
        bytes."""
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        p = subprocess.Popen(self.command('client', *command, **how), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = p.communicate(data, PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            check(False, f'{command[0]} hangs: {(out + err)[-1500:]!r}')
        check(status is None or p.returncode == status,
              f'{command[0]} ended with {p.returncode}: {(out + err)[-1500:]!r}')
        return out if isinstance(stdin, bytes) else out.decode(errors='replace')

    def background(self, name, *command):
        """Start a client in the background."""
        p = Process(self.work, name, self.command('client', *command))
        self.servers.append(p)
        return p

    def on(self, role, *command):
        """The output of a program at that end without the library."""
        done = subprocess.run(self.command(role, *command, plain=True), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PATIENCE, check=False, text=True)
        check(done.returncode == 0, f'{command[1]}: {done.stdout[-1500:]}')
        return done.stdout

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(text)
        return self.path(name)

    # ---- kernel or daemon ----

    def counters(self):
        """Counters of our end: the kernel's, and those of the daemon if there is one."""
        ours = self.daemons.get('us')
        return {**snmp(self.at_us),
                **({**ours.counters(), **ours.ask('sockets')} if ours else {})}

    def grown(self):
        """Increase of each counter in this case."""
        return {name: n - self.before.get(name, 0) for name, n in self.counters().items()}

    def stop(self):
        """End programs, then daemons, and check that they end in order."""
        self.next_case()
        for d in self.daemons.values():
            d.stop()


# ---- pairs shared by the cases of a file ----

SHARED = {}     # parameters: (context to end it, the pair)


def shared(*args, **how):
    """A pair for a case, shared with other cases that need the same."""
    key = repr((args, how))
    if key in SHARED:
        SHARED[key][1].next_case()
    else:
        with contextlib.ExitStack() as stack:
            pair = stack.enter_context(Pair(stack.enter_context(Work()), *args, **how))
            SHARED[key] = stack.pop_all(), pair
    return SHARED[key][1]


@atexit.register
def forget_shared():
    while SHARED:
        SHARED.popitem()[1][0].close()


def stop_shared():
    """After the last case of a file: daemons end in order and leave nothing behind."""
    for _, pair in SHARED.values():
        pair.stop()
    forget_shared()


def may_fail(test):
    """Run a case on a shared pair. After a failure the others get a new pair."""
    @functools.wraps(test)
    def run(*args):
        try:
            test(*args)
        except BaseException:
            forget_shared()
            raise
    return run


def carried(pair, kernel, grown):
    """*grown* of our end with the library: the kernel has moved almost nothing of what it moves
    without the library (*kernel*, of the server's end), except for what the case leaves to it, and
    the daemon has sent packets. The daemon's receive counter proves nothing, because its device
    also shows what the kernel of the same host sends."""
    received, sent = (kernel[name] for name in COUNTED[pair.proto])
    most = max(received, sent) // FEW + pair.kernels + TOKEN * grown['streams_accepted']
    for name in COUNTED[pair.proto]:
        check(grown[name] <= most, f'the kernel has {name} {grown[name]}, at most {most}; '
                                   f'the daemon: {pair.daemons["us"].process.tail()}')
    wanted = sent if pair.ours == SERVER else received
    if pair.sent is not None:       # the number of repetitions depends on the transport
        wanted = pair.sent
    if pair.proto == 'tcp':
        check(grown['streams_accepted'] + grown['streams_connected'] > 0, 'no streams')
    # one of our packets may hold the data of many segments
    least = wanted // (20 if pair.proto == 'udp' else 100)
    check(wanted <= pair.kernels or grown['tx_pkts'] > least,
          f'the daemon has sent {grown["tx_pkts"]} packets of {wanted}')
