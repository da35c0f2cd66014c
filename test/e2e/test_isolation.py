#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A hostile program of another user can't block the daemon in the kernel, keep addresses that the
kernel has given to others, or fill the daemon's log. (SYS-6, SYS-7, SYS-9)"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

import sock
from daemon import Daemon, alone
from e2e import (BUILD, OWN_MOUNTS, OWN_MOUNTS_SH, PATIENCE, SOURCE, Process, Tests, check, need_namespaces,
                 until_true)
from sock import OUR_IP, PEER_IP
from test_daemon import CQ_CREATE, HELLO, LISTEN, MR_ADD, REP, ask, dial, memfd, mr_body, request
from test_descriptors import halt, is_served, text_of
from test_service import AsNobody

CARRY, FIND, SYNC, KERNEL, SOCK_GROUP = 17, 18, 19, 20, 21
SOCK_LISTEN, CONNECT, ACCEPT = 22, 23, 24
LIBC = ctypes.CDLL(None, use_errno=True)
USERFAULTFD, UFFD_API, UFFD_REGISTER, UFFD_ZERO = 323, 0xc018aa3f, 0xc020aa00, 0xc020aa04
SIZE = 65536        # of memory whose page fault is not served
MSG_MORE = 0x8000
RX_TAIL, RX_HEAD = 128, 192     # offsets in struct san_sock_shm


class Lock:
    """A socket that the kernel keeps locked: send() reads from memory whose page fault is not
    served until the context ends. SIGKILL does not end a process that waits for the lock."""

    def __init__(self, s, flags):
        self.s, self.flags = s, flags

    def __enter__(self):
        # poll() of one without O_NONBLOCK returns at once
        self.fault = LIBC.syscall(USERFAULTFD, os.O_CLOEXEC | os.O_NONBLOCK)
        check(self.fault >= 0, f'userfaultfd: {os.strerror(ctypes.get_errno())}')
        fcntl.ioctl(self.fault, UFFD_API, struct.pack('<QQQ', 0xaa, 0, 0))
        self.memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.at = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        fcntl.ioctl(self.fault, UFFD_REGISTER, struct.pack('<QQQQ', self.at, SIZE, 1, 0))
        self.sends = threading.Thread(target=LIBC.send, args=(
            self.s.fileno(), ctypes.c_void_p(self.at), ctypes.c_size_t(1000), self.flags))
        self.sends.start()
        # the fault has arrived: the lock is held
        check(select.select([self.fault], [], [], PATIENCE)[0], 'send() does not read')
        return self

    def __exit__(self, *_):
        fcntl.ioctl(self.fault, UFFD_ZERO, struct.pack('<QQQq', self.at, SIZE, 0, 0))
        self.sends.join()
        os.close(self.fault)


def sock_body(local_only=1, peer=b'\0' * 16, port=0):
    return struct.pack('<BB16s16sH', local_only, 0, b'\0' * 16, peer, port)


def v4(ip):
    return b'\0' * 10 + b'\xff\xff' + socket.inet_aton(ip)


def attach(daemon):
    s = dial(daemon)
    check(ask(s, request(HELLO))[0] == 0, 'hello')
    return s


def pass_fd(s, kind, fd, body=sock_body()):
    """Send a request with a descriptor; its answer is not read."""
    socket.send_fds(s, [request(kind, body)], [fd])


def answer(s):
    """The result, the text and the descriptor of an answer."""
    data, fds, _, _ = socket.recv_fds(s, REP, 1)
    return struct.unpack_from('<i', data, 8)[0], text_of(data), fds[0] if fds else -1


def opened(daemon):
    """Open the daemon's socket to other users."""
    os.chmod(daemon.work.dir, 0o755)
    os.chmod(daemon.path, 0o666)
    return daemon


# ---- blocked in the kernel ----

@contextlib.contextmanager
def udp_pair():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(('127.0.0.1', 0))
        s.connect(('127.0.0.1', 9))
        yield s


@contextlib.contextmanager
def tcp_pair():
    with socket.create_server(('127.0.0.1', 0)) as listener:
        with socket.create_connection(listener.getsockname()) as s:
            yield s


def locked(work):
    """Requests about a locked socket: other users are served normally. The program gets an error in
    time for each request, and is served normally afterwards."""
    daemon = opened(Daemon(work, 'server', 'conns = 64\nsockets = 16'))
    good = attach(daemon)
    with AsNobody():
        bad = attach(daemon)
    for kind, pair, flags in [
            (CARRY, udp_pair, MSG_MORE), (SYNC, udp_pair, MSG_MORE), (KERNEL, udp_pair, MSG_MORE),
            (SOCK_LISTEN, tcp_pair, 0), (CONNECT, tcp_pair, 0), (ACCEPT, tcp_pair, 0)]:
        with AsNobody():    # all threads change the user together, which fails while one is blocked
            other = dial(daemon)
        with pair() as s, other, Lock(s, flags):
            pass_fd(bad, kind, s.fileno())
            for _ in range(1000):
                check(is_served(good), f'{kind}: another user')
            check('holds up' in (text := answer(bad)[1]), f'{kind}: {text}')
            pass_fd(bad, kind, s.fileno())      # waits for the previous request
            check(ask(other, request(HELLO))[0] == 0, f'{kind}: another program of the user')
            check(is_served(other), f'{kind}: without descriptors')
        check(answer(bad)[0] < 0, f'{kind}: once it is not locked any more')
    good.close()
    bad.close()
    daemon.stop()


def outlived(work):
    """A blocked helper does not keep its daemon alive or another one from starting, and has none of
    the daemon's resources."""
    daemon = opened(Daemon(work, 'server', 'conns = 64\nsockets = 16'))
    with AsNobody():
        bad = attach(daemon)
    with udp_pair() as s, Lock(s, MSG_MORE):
        pass_fd(bad, CARRY, s.fileno())
        helper = until_true('a helper', lambda: helpers(daemon.process.pid))[0]
        until_true('it is held up', lambda: state(helper) == 'D')
        check(holds(helper) <= {'/dev/null', 'socket', 'anon_inode'}, f'{holds(helper)}')
        with open(f'/proc/{helper}/maps', encoding='utf-8') as f:
            check('hugepage' not in (maps := f.read()) and 'memfd' not in maps, 'it maps memory')
        daemon.process.popen.send_signal(signal.SIGKILL)
        daemon.process.wait()
        check(state(helper) == 'D', 'it has ended')
        os.unlink(work.path('memif.sock'))      # DPDK leaves it behind
        daemon = opened(daemon.again())
        good = attach(daemon)
        check(is_served(good), 'the next daemon')
    good.close()
    bad.close()
    daemon.stop()


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        return [int(p) for p in f.read().split()]


def helpers(pid):
    """Helpers of a daemon: children of its process that forks them."""
    return [h for forker in children(pid) for h in children(forker)]


def state(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as f:
            return f.read().rpartition(')')[2].split()[0]
    except OSError:
        return None


def holds(pid):
    folder = f'/proc/{pid}/fd'
    return {os.readlink(f'{folder}/{fd}').partition(':')[0] for fd in os.listdir(folder)}


# ---- large regions ----

def large(work):
    """Regions that take long to map and to free: others are served meanwhile."""
    size, nb = 512 << 20, 3
    daemon = opened(Daemon(work, 'server', limits='bytes = 4G'))
    good = attach(daemon)
    fd = memfd(size)
    bad = []
    for _ in range(nb):
        with AsNobody():
            bad.append(attach(daemon))
    halt(daemon.process)
    for s in bad:
        socket.send_fds(s, [request(MR_ADD, mr_body(size))], [fd])
    daemon.process.popen.send_signal(signal.SIGCONT)
    served, waits = 0, set(bad)
    while waits:
        check(is_served(good), 'another user')
        served += 1
        for s in select.select(list(waits), [], [], 0)[0]:
            check(answer(s)[0] == 0, 'a large region')
            waits.remove(s)
    check(served > nb * 10, f'another user was served {served} times while they were mapped')
    os.close(fd)
    before = served
    for s in bad:
        s.close()
    until_true('they are freed', lambda: is_served(good) and not maps_large(daemon))
    good.close()
    daemon.stop()
    print(f'# {before} other requests')


def maps_large(daemon):
    with open(f'/proc/{daemon.process.pid}/maps', encoding='utf-8') as f:
        return 'memfd:hostile' in f.read()


# ---- addresses ----

def carry(daemon, s):
    """The program's end of the pair."""
    bad = attach(daemon)
    pass_fd(bad, CARRY, s.fileno())
    rc, why, shadow = answer(bad)
    check(rc == 0, f'carry: {why}')
    return bad, socket.socket(fileno=shadow)


def disconnect(s):
    check(LIBC.connect(s.fileno(), struct.pack('<H14x', socket.AF_UNSPEC), 16) == 0, 'AF_UNSPEC')


def carried_port(daemon, port):
    """True if it is carried at this port."""
    return any(isinstance(one, dict) and one['local'].endswith(f':{port}')
               for one in daemon.ask('sock_list').values())


@contextlib.contextmanager
def inside(ns):
    """Sockets created in the context belong to that namespace."""
    with open('/proc/self/ns/net', 'rb') as ours, open(f'/proc/{ns.pid}/ns/net', 'rb') as theirs:
        check(LIBC.setns(theirs.fileno(), 0) == 0, 'setns')
        try:
            yield
        finally:
            check(LIBC.setns(ours.fileno(), 0) == 0, 'setns')


def kept_name(pair):
    """A port that the kernel chose stays the socket's, whatever its program does with it."""
    daemon = opened(pair.daemons['us'])
    with inside(pair.at_us):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for connect in (False, True):
        with s.dup() as mine:
            mine.bind((OUR_IP, 0)) if not connect else mine.connect((PEER_IP, 9))
            name, device = mine.getsockname(), 0
            bad, shadow = carry(daemon, mine)
            disconnect(mine)
            check(mine.getsockname()[1] == name[1], f'it has {mine.getsockname()}, not {name}')
        s.close()
        try:
            other.bind((OUR_IP, name[1]))
            check(False, 'another socket has its port')
        except OSError as e:
            check('in use' in str(e), str(e))
        shadow.close()
        bad.close()
        until_true('its port is free', lambda: can_bind(other, (OUR_IP, name[1])))
        other.close()
        with inside(pair.at_us):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.close()
    other.close()


def stale_port(pair):
    """A TCP socket still reports a port that it has released. It is not carried at a port that may
    belong to another socket by then."""
    daemon = opened(pair.daemons['us'])
    with inside(pair.at_us):
        mine, other = socket.socket(), socket.socket()
    for option in (30, 34):     # TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE
        mine.setsockopt(socket.IPPROTO_TCP, option, 1)
    mine.connect((PEER_IP, 9))
    disconnect(mine)
    name = mine.getsockname()
    other.bind(('0.0.0.0', name[1]))
    bad = attach(daemon)
    pass_fd(bad, CONNECT, mine.fileno(), sock_body(0, v4(PEER_IP), 9))
    rc, why, _ = answer(bad)
    check(name[1] != 0 and rc < 0, f'{name} is carried: {rc} {why}')
    for s in (mine, other, bad):
        s.close()


def can_bind(s, name):
    try:
        s.bind(name)
        return True
    except OSError:
        return False


def moved_name(pair):
    """A socket that its program binds to another device has its address only there, and receives
    nothing from the port any more."""
    daemon = opened(pair.daemons['us'])
    with inside(pair.at_us):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((OUR_IP, 0))
    port = s.getsockname()[1]
    bad, shadow = carry(daemon, s)
    pass_fd(bad, FIND, shadow.fileno())
    ring = mmap.mmap(answer(bad)[2], 4096)
    with inside(pair.at_peer):
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    until_true('it receives', lambda: receives(peer, port, ring))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'lo')
    until_true('it receives no more', lambda: not receives(peer, port, ring))
    for x in (s, shadow, bad, peer):
        x.close()


def receives(peer, port, ring):
    """True if the carried socket receives one of ten datagrams that arrive at the port."""
    before = ring[RX_HEAD:RX_HEAD + 4] = ring[RX_TAIL:RX_TAIL + 4]      # mark them as read
    for _ in range(10):
        peer.sendto(b'x', (OUR_IP, port))
    time.sleep(0.1)     # for datagrams that must not arrive
    return ring[RX_TAIL:RX_TAIL + 4] != before


def stale_listener(pair):
    """A listener that has closed, before the daemon knows of it or while its lease is kept, does not
    lead peers to another listener on the same port."""
    daemon = opened(pair.daemons['us'])
    for address, taker, here in ((OUR_IP, '127.0.0.1', True), ('0.0.0.0', '127.0.0.1', True),
                                 ('0.0.0.0', '127.0.0.1', False), ('0.0.0.0', '0.0.0.0', True),
                                 ('0.0.0.0', '0.0.0.0', False), (OUR_IP, OUR_IP, True)):
        with inside(pair.at_us):
            mine, other = socket.socket(), socket.socket()
        mine.bind((address, 0))
        mine.listen()
        port = mine.getsockname()[1]
        bad = attach(daemon)
        pass_fd(bad, SOCK_LISTEN, mine.fileno())
        rc, why, lease = answer(bad)
        check(rc == 0, why)
        os.write(lease, b'x')   # as a program that waits for connections
        mine.close()
        until_true('it is closed', lambda: can_bind(other, (taker, port)))
        other.listen()
        if not here:    # if the kernel does not have the port's address
            pair.at_us.run('ip', 'address', 'del', f'{OUR_IP}/24', 'dev', 'a0')
        before = pair.grown()['streams_accepted']
        out = pair.server(sock.PYTHON, '-c', f"""
import socket
try: socket.create_connection(("{OUR_IP}", {port}), 2).close(); print("over")
except OSError as e: print("over", e)
""", text='over').out()
        while select.select([other], [], [], 0)[0]:
            peer = other.accept()[1]
            check(not peer[0].startswith('127.'), f'{address}, {taker}: {peer}: {out}')
        after = pair.grown()['streams_accepted']
        check(before == after, f'{address}, {taker}: a stream: {out}')
        if not here:
            pair.at_us.run('ip', 'address', 'add', f'{OUR_IP}/24', 'dev', 'a0')
        os.close(lease)
        bad.close()
        other.close()


def taken_ports(pair):
    """A user that binds all ports costs others the carrying, and no connection. The log has it."""
    listener = pair.background('listener', sock.PYTHON, '-c', f"""
import select, socket
l = socket.create_server(("{OUR_IP}", 8090)); select.select([l], [], [], 0); print("ready", flush=True)
for _ in range(3): l.accept()[0].send(b"x")
""")
    listener.wait_text('ready')
    few = 'net.ipv4.ip_local_port_range'
    before = pair.at_us.run('sysctl', '-n', few).strip()
    pair.at_us.run('sysctl', '-qw', f'{few}=40000 40009')
    with inside(pair.at_us):
        taken = [socket.socket() for _ in range(10)]
    for i, s in enumerate(taken):
        s.bind(('0.0.0.0', 40000 + i))
    for carried in (0, 0, 1):
        if carried:
            for s in taken:
                s.close()
        out = pair.server(sock.PYTHON, '-c', f"""
import socket; print(socket.create_connection(("{OUR_IP}", 8090), 20).recv(1), flush=True)
""", text='x').out()
        check(out == "b'x'\n", out)
        check(pair.grown()['streams_accepted'] == carried, pair.grown()['streams_accepted'])
    pair.at_us.run('sysctl', '-qw', f'{few}={before}')
    check('no tokens' in pair.daemons['us'].process.err(), 'nothing is logged')


def crowded_groups(pair):
    """Sockets of one user can be in its share of the port's groups, and root's in all. A program
    gets an error beyond that, while others can join. User 0 without a proof is one of them."""
    daemon = opened(pair.daemons['us'])
    program = f"""
import socket
nb = 0
try:
    for _ in range(4):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("{OUR_IP}", 0))
        globals()[f"s{{nb}}"] = s
        s.sendto(b"x", ("{PEER_IP}", 9))
        for _ in range(20):
            s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                         socket.inet_aton(f"239.1.1.{{nb}}") + socket.inet_aton("{OUR_IP}"))
            nb += 1
except OSError as e: print(nb, e.errno)
"""
    pair.kernels = 4    # datagrams without a receiver
    check(pair.client(sock.PYTHON, '-c', program) == '64 105\n', 'as many as it may, then ENOBUFS')
    socks, nb = [], []
    for user in (AsNobody(), AsNobody(), AsNobody(), AsNobody(), contextlib.nullcontext()):
        with inside(pair.at_us):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((OUR_IP, 0))
        with user:
            bad, shadow = carry(daemon, s)
        nb.append(0)
        for i in range(15):
            body = struct.pack('<BB16s16sH', 0, 0, v4(f'239.2.{len(nb)}.{i}'), b'', 0)
            pass_fd(bad, SOCK_GROUP, shadow.fileno(), body)
            nb[-1] += answer(bad)[0] == 0
        socks += [s, shadow, bad]
    check(nb == [15, 15, 15, 0, 12], f'{nb}')
    for s in socks:
        s.close()


# ---- flooded sockets ----

FLOODED = 60
FLOOD = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
n, data = 0, bytes(60000)
while True:
    for port in map(int, sys.argv[1:]):
        try: s.sendto(data, ('127.0.0.1', port))
        except OSError: pass
    n += 1
    if n == 10: print('flooding', flush=True)
"""


def flooded_sockets(pair):
    """The kernel floods many sockets of one user: others are served meanwhile."""
    daemon = opened(pair.daemons['us'])
    with AsNobody():
        bad = attach(daemon)
    held, ports = [], []
    for _ in range(FLOODED):
        with inside(pair.at_us):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(('0.0.0.0', 0))
        pass_fd(bad, CARRY, s.fileno(), sock_body(0))
        rc, why, shadow = answer(bad)
        check(rc == 0, why)
        held += [s, socket.socket(fileno=shadow)]
        ports.append(str(s.getsockname()[1]))
    flood = Process(pair.work, 'flood', [*pair.at_us.exec(), sock.PYTHON, '-c', FLOOD, *ports])
    flood.wait_text('flooding')
    for _ in range(20):
        with dial(daemon) as s:
            check(ask(s, request(HELLO))[0] == 0, 'hello')
            check(ask(s, request(CQ_CREATE, struct.pack('<I', 16)))[0] == 0, 'a queue')
    check(flood.is_alive(), flood.tail())
    flood.kill()
    bad.close()
    for s in held:
        s.close()


# ---- the transport's UDP port ----

GRAB = """
import os, socket
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print('ready', flush=True)
while True:
    try:
        s.bind(('0.0.0.0', 4791)); print('has it', flush=True); break
    except OSError: pass
import time; time.sleep(1000)
"""


def wanted_port(pair):
    """Another program tries to bind it all the time. It does not succeed during a takeover. A
    daemon that finds it in use reports which process has it."""
    daemon = opened(pair.daemons['us'])
    grab = Process(pair.work, 'grab', [*pair.at_us.exec(), sock.PYTHON, '-c', GRAB])
    grab.wait_text('ready')
    for _ in range(3):
        old, daemon = daemon, daemon.again('--takeover')
        check(old.process.wait() == 0, f'the old one: {old.process.tail()}')
    check('has it' not in grab.out(), 'it has the port')
    daemon.stop()
    grab.wait_text('has it')
    args = [a for a in daemon.process.popen.args if a != '--takeover']
    again = Process(pair.work, 'again', args)
    text = f'UDP port 4791 is that of pid={grab.pid} (python3'
    check(again.wait() == 1 and text in again.err(), again.tail())
    grab.kill()
    pair.daemons['us'] = daemon.again('--takeover')


# ---- checks that the kernel would make ----

# In a control group of its own, whose hook for sendto() refuses.
HOOK = """
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)

def bpf(command, attr):
    buf = ctypes.create_string_buffer(attr, len(attr))
    fd = libc.syscall(321, command, buf, len(attr))
    if fd < 0: sys.exit(os.strerror(ctypes.get_errno()))
    return fd

group = '{folder}/group'
os.mkdir('{folder}')
if libc.unshare(0x20000): sys.exit('no mounts')
libc.mount(b'none', b'/', None, 0x44000, None)      # in a chroot it is no mount point
if libc.mount(b'none', b'{folder}', b'cgroup2', 0, None): sys.exit('no cgroup2')
os.makedirs(group + str(os.getpid()))
with open(group + str(os.getpid()) + '/cgroup.procs', 'w') as f: f.write('0')
code = ctypes.create_string_buffer(bytes.fromhex('b700000000000000' '9500000000000000'), 16)
name = ctypes.create_string_buffer(b'GPL')
prog = bpf(5, struct.pack('<IIQQIIQII16sII', 18, 2, ctypes.addressof(code),
                          ctypes.addressof(name), 0, 0, 0, 0, 0, b'', 0, 14))
bpf(8, struct.pack('<IIII', os.open(group + str(os.getpid()), os.O_RDONLY), prog, 14, 0))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('{ours}', 0))
try:
    for _ in range(3): s.sendto(b'x', ('{peer}', 8085))
    print('it may')
except OSError as e: print(e.errno)
with open('{folder}/cgroup.procs', 'w') as f: f.write('0')
os.rmdir(group + str(os.getpid()))      # else it stays for ever
"""

# With Landlock, which allows no connection.
LANDLOCK = """
import ctypes, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(444, None, 0, 1) < 4: print('too old')
rules = libc.syscall(444, struct.pack('<QQ', 0, 2), 16, 0)
libc.prctl(38, 1, 0, 0, 0)
libc.syscall(446, rules, 0)
s = socket.socket()
try:
    s.connect(('{peer}', 8084))
    print('it may')
except OSError as e: print(e.errno)
"""
SERVER = f"""
import socket
s = socket.create_server(("{PEER_IP}", {{port}}))
print("ready", flush=True)
socks = []
while True: socks.append(s.accept())
"""


def hook_of_sendto(pair):
    """A control group's hook is asked before a carried socket sends to an address."""
    out = pair.client(sock.PYTHON, '-c',
                      HOOK.format(folder=pair.path('cgroup'), ours=OUR_IP, peer=PEER_IP))
    check(out == f'{errno.EPERM}\n', out)


def hook_of_connect(pair):
    """A security module is asked before a carried socket connects."""
    pair.server(sock.PYTHON, '-c', SERVER.format(port=8084), text='ready', port=8084)
    out = pair.client(sock.PYTHON, '-c', LANDLOCK.format(peer=PEER_IP))
    check(out == f'{errno.EACCES}\n' or 'too old' in out, out)


UNSIGNED = """
import socket, struct
def refused(s, option, value):
    try: s.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError as e: return e.errno
key = struct.pack('<HH4s120sHHI80s', 2, 0, socket.inet_aton('{peer}'), b'', 0, 3, 0, b'key')
s = socket.create_connection(('{peer}', {port}))
print(refused(s, 31, b'tls'), refused(s, 14, key))
s = socket.socket()
s.settimeout(2)
s.setsockopt(socket.IPPROTO_TCP, 14, key)
try:
    s.connect(('{peer}', {port}))
    print('without a signature')
except TimeoutError: print('not without')
"""


def unsigned(pair):
    """Options for encryption or signatures of the kernel's TCP are refused on carried sockets; a
    socket that has one is not carried."""
    port = 8083
    pair.server(sock.PYTHON, '-c', SERVER.format(port=port), text='ready', port=port)
    out = pair.client(sock.PYTHON, '-c', UNSIGNED.format(peer=PEER_IP, port=port))
    check(out == f'{errno.ENOPROTOOPT} {errno.ENOPROTOOPT}\nnot without\n', out)


# ---- shares ----

def subordinate(work):
    """Subordinate users of one user have one share together, also if they became that after the
    daemon's start; another user and root get theirs."""
    os.chmod(work.dir, 0o755)
    subuid = work.path('subuid')
    with open(subuid, 'w', encoding='utf-8') as f:
        f.write('65533:100000:65536\n')
    daemon = opened(Daemon(work, 'server', limits='unattached = 32', wrap=[
        *OWN_MOUNTS, 'sh', '-c', f"""{OWN_MOUNTS_SH}mount --bind {subuid} /etc/subuid && exec "$@" """, 'sh']))
    with open(subuid, 'w', encoding='utf-8') as f:
        f.write('nobody:100000:65536\n')
    time.sleep(0.2)
    with dial(daemon):      # it looks at the file
        time.sleep(1)
    mute = []
    for uid in [*range(100000, 100020), 65534]:
        os.seteuid(uid)
        mute += [dial(daemon) for _ in range(2)]
        os.seteuid(0)
    for uid in (5, 0):
        os.seteuid(uid)
        with dial(daemon) as s:
            check(ask(s, request(HELLO))[0] == 0, f'user {uid} is not served')
        os.seteuid(0)
    served = sum(is_open(s) for s in mute)
    check(served == 23, f'{served} connections')    # three quarters of the places without root's
    for s in mute:
        s.close()
    daemon.stop()


PLACES, CHILDREN = 4, 12

PREFORK = """
import os, signal, socket
kind = socket.{kind}
s = socket.socket(socket.AF_INET, kind)
s.bind(('{ip}', {port}))
if kind == socket.SOCK_STREAM: s.listen(100)
for i in range({children}):
    if os.fork() == 0:
        if kind == socket.SOCK_STREAM:
            c = s.accept()[0]
            c.sendall(c.recv(100))
        else:
            s.sendto(*s.recvfrom(100))
        signal.pause()
print('ready', flush=True)
signal.pause()
"""
ASK = """
import socket
kind, got, socks = socket.{kind}, 0, []
for i in range({children}):
    c = socket.socket(socket.AF_INET, kind)
    c.settimeout(30)
    c.connect(('{ip}', {port}))
    c.sendall(b'question')
    socks.append(c)
    if kind == socket.SOCK_DGRAM: got += c.recv(100) == b'question'
if kind == socket.SOCK_STREAM: got = sum(c.recv(100) == b'question' for c in socks)
print(got)
"""


def more_children(kind, port):
    """Children of a server share its socket, and the daemon has places for some of them: these
    serve. Further connections stay with the kernel, and the reason is reported."""
    words = {'kind': kind, 'ip': PEER_IP, 'port': port, 'children': CHILDREN}
    pair = sock.shared(sock.CLIENT, proto='tcp' if kind == 'SOCK_STREAM' else 'udp', daemons=2,
                       limits=f'apps = {PLACES}')
    pair.server(sock.PYTHON, '-c', PREFORK.format(**words), text='ready', port=port)
    out = pair.client(sock.PYTHON, '-c', ASK.format(**words))
    check(out == f'{CHILDREN}\n', out)
    daemon = pair.daemons['peer']
    check('is refused' in daemon.process.err() or 'no place' in daemon.process.err(),
          daemon.process.err())
    if kind == 'SOCK_STREAM':
        shown = pair.on('server', '/usr/bin/env', f'PATH={BUILD}/apps/sansock:/usr/bin',
                        sock.PYTHON, os.path.join(SOURCE, 'usertools/sanctl'), '--socket',
                        f'{daemon.runtime_dir()}/dpdk_telemetry.v2', 'sockets')
        check('no place for programs that accept' in shown, shown)


def is_open(s):
    return not select.select([s], [], [], 0)[0]


# ---- log ----

def flooded(work):
    """A user that is refused without end can't fill the log; messages about another user appear."""
    daemon = opened(Daemon(work, 'server', limits='unattached = 8'))
    with AsNobody():
        mute = [dial(daemon) for _ in range(8)]
        for _ in range(3000):
            with contextlib.suppress(OSError):
                dial(daemon).close()
    lines = daemon.process.err().count('one more is refused')
    check(0 < lines < 100, f'{lines} messages')
    for s in mute:
        s.close()
    daemon.stop()


# Its standard error is a full pipe that is not read.
UNREAD = """
import os, sys
r, w = os.pipe()
os.set_inheritable(r, True)
os.set_blocking(w, False)
try:
    while os.write(w, bytes(4096)): pass
except BlockingIOError: pass
os.set_blocking(w, True)
os.dup2(w, 2)
os.execv(sys.argv[1], sys.argv[1:])
"""


def unread_log(work):
    """A daemon whose messages are not read goes on."""
    daemon = opened(Daemon(work, 'server', limits='unattached = 8',
                           wrap=[sock.PYTHON, '-c', UNREAD]))
    with AsNobody():
        mute = [dial(daemon) for _ in range(8)]     # two of them are refused, which is logged
    good = attach(daemon)
    check(is_served(good), 'another user')
    for s in mute:
        s.close()
    good.close()
    daemon.stop()


def main():
    tests = Tests()
    need_namespaces()
    tests.add('sockets that are locked', alone, locked)
    tests.add('a helper that outlives its daemon', alone, outlived)
    tests.add('large regions', alone, large)
    for name, test in (('a port that the kernel chose', kept_name),
                       ('a name on another device', moved_name),
                       ('a port that is wanted', wanted_port)):
        tests.add(name, sock.may_fail(lambda test=test: test(sock.shared(sock.CLIENT))))
    tests.add('a port that was given back', sock.may_fail(lambda: stale_port(
        sock.shared(sock.CLIENT, proto='tcp', daemons=2))))
    tests.add('crowded groups', sock.may_fail(lambda: crowded_groups(sock.shared(sock.CLIENT))))
    tests.add('a stale listener', sock.may_fail(lambda: stale_listener(
        sock.shared(sock.CLIENT, proto='tcp', daemons=2))))
    tests.add('ports that are taken', sock.may_fail(lambda: taken_ports(
        sock.shared(sock.CLIENT, proto='tcp', daemons=2))))
    tests.add('a hook of sendto()', sock.may_fail(lambda: hook_of_sendto(
        sock.shared(sock.CLIENT))))
    tests.add('a security module', sock.may_fail(lambda: hook_of_connect(
        sock.shared(sock.CLIENT, proto='tcp', daemons=2))))
    tests.add('encryption and signatures', sock.may_fail(lambda: unsigned(
        sock.shared(sock.CLIENT, proto='tcp', daemons=2))))
    tests.add('flooded sockets', sock.may_fail(lambda: flooded_sockets(
        sock.shared(sock.CLIENT))))
    tests.add('subordinate users', alone, subordinate)
    for kind, port in (('SOCK_STREAM', 8081), ('SOCK_DGRAM', 8082)):
        tests.add(f'more children than places: {kind}', sock.may_fail(
            lambda kind=kind, port=port: more_children(kind, port)))
    tests.add('a flooded log', alone, flooded)
    tests.add('a log that nobody reads', alone, unread_log)
    tests.add('daemons end', sock.stop_shared)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
