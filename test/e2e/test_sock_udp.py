#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Carried UDP sockets, one property per case: both paths into one socket, shared descriptors, ways
of waiting, killed programs, and no system calls. (UDP-1, UDP-4, UDP-6, UDP-7, UDP-8)
"""

import functools
import re
import signal
import sys

import sock
from e2e import Process, Tests, check, need_namespaces, until_true
from sock import HERE, OUR_IP, PEER, PEER_IP, PEER_IP6, PYTHON, need
from test_descriptors import keep_closing

PORT = 5000
# At our end, with the library: *s* is bound to the port, *c* is another socket that sends to it
# through the kernel, and *far* is one at the peer.
HEAD = f'''
import array, functools, os, select, signal, socket, subprocess, sys, threading, time
sys.path.append("{HERE}")
from asleep import wait_asleep, wait_thread
print = functools.partial(print, flush=True)    # children have none of it
def udp(*to):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(to or ("0.0.0.0", {PORT}))
    return s
def when_asleep(what, *args):
    """Do it as soon as the thread that calls this sleeps."""
    waits = threading.current_thread()
    threading.Thread(target=lambda: (wait_thread(waits), what(*args))).start()
s = udp()
c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
c.connect(("{OUR_IP}", {PORT}))
'''


def here(pair, program, **how):
    """Run *program* at our end. Returns its output."""
    return pair.client(PYTHON, '-c', HEAD + program, **how)


def ours(test, **how):
    """A case that runs at our end, with rule "both" unless *how* has another one."""
    how = {'rules': 'both', **how}

    @sock.may_fail
    @functools.wraps(test)
    def run():
        test(sock.shared(sock.CLIENT, **how))
    return run


@ours
def both_ways(pair):
    """A thousand datagrams by each path to one socket bound to any address: each arrives once, with
    its source."""
    reader = pair.server(PYTHON, '-c', f'''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", {PORT + 1}))
print("up", flush=True)
for _ in range(1000):
    data, peer = s.recvfrom(100)
    s.sendto(data, peer)
''', text='up')
    check(reader.is_alive(), reader.tail())
    out = here(pair, f'''
far = ("{pair.server_ip}", {PORT + 1})
near = c.getsockname()
got, poll = [], select.poll()
poll.register(s, select.POLLIN)
for i in range(1000):
    s.sendto(b"f%d" % i, far)       # which sends it back
    c.send(b"n%d" % i)
    while len(got) < 2 * (i + 1) - 20 and poll.poll(2000):
        got.append(s.recvfrom(100))
while len(got) < 2000 and poll.poll(2000):
    got.append(s.recvfrom(100))
want = {{(b"f%d" % i, far) for i in range(1000)}} | {{(b"n%d" % i, near) for i in range(1000)}}
print(len(got), set(got) == want, poll.poll(0))
''')
    check(out == '2000 True []\n', out)


@ours
def descriptors(pair):
    """dup, fork, exec and SCM_RIGHTS share the socket; the last close ends it."""
    out = here(pair, '''
print(subprocess.run(["/bin/echo", "vfork"], capture_output=True, text=True).stdout, end="")
c.send(b"mine"); print(s.recv(9))
d = s.dup(); c.send(b"dup"); print(d.recv(9)); d.close()
if os.fork() == 0:
    data, peer = s.recvfrom(9); s.sendto(b"child " + data, peer); os._exit(0)
c.send(b"f"); print(c.recv(20)); os.wait()
os.set_inheritable(s.fileno(), True)
# so many that the library's own ones come to be while these are listed
more = [os.dup(0) for _ in range(60)]
for fd in more: os.set_inheritable(fd, True)
code = ("import os, socket; s = socket.socket(fileno=%d); d, p = s.recvfrom(9); port = s.getsockname()[1]; "
        "own = sum(int(fd) >= 700 for fd in os.listdir('/proc/self/fd')); "
        "s.sendto(b'exec ' + d + b' %%d %%d' %% (port, own), p)" % s.fileno())
p = subprocess.Popen([sys.executable, "-c", code], close_fds=False)
c.send(b"x"); print(c.recv(20)); p.wait()
for fd in more: os.close(fd)
a, b = socket.socketpair()
if os.fork() == 0:
    s.close()
    _, fds, _, _ = socket.recv_fds(b, 9, 1)
    t = socket.socket(fileno=fds[0]); d, p = t.recvfrom(9); t.sendto(b"passed " + d, p); os._exit(0)
socket.send_fds(a, [b"x"], [s.fileno()]); s.close()
c.send(b"y"); print(c.recv(20)); os.wait()
b.close(); a.close()
c.settimeout(10)
try:
    while True:
        c.send(b"z"); time.sleep(0.01); c.setblocking(False)
        try: c.recv(9)
        except BlockingIOError: c.settimeout(10)
except ConnectionRefusedError:
    print("gone")
''')
    check(out == "vfork\nb'mine'\nb'dup'\nb'child f'\nb'exec x 5000 3'\nb'passed y'\ngone\n", out)


@ours
def waits(pair):
    """Timeouts, signals, poll, select and epoll, and close while waiting."""
    out = here(pair, '''
def timed(call, *args):
    t = time.monotonic()
    try: what = call(*args)
    except OSError as e: what = type(e).__name__
    return what, time.monotonic() - t >= 0.19
s.setblocking(False); print(timed(s.recv, 9))
s.setblocking(True)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, b"".join(n.to_bytes(8, "little") for n in (0, 200000)))
print(timed(s.recv, 9))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16))
p = select.poll(); p.register(s, select.POLLIN); print(timed(p.poll, 200))
print(timed(select.select, [s], [], [], 0.2))
e = select.epoll(); e.register(s, select.EPOLLIN); print(timed(e.poll, 0.2))
outer = select.epoll(); outer.register(e, select.EPOLLIN); print(timed(outer.poll, 0.2))
when_asleep(c.send, b"now"); print(len(outer.poll(20)))
print(len(e.poll(0)), p.poll(0) == [(s.fileno(), 1)], select.select([s], [], [], 0)[0] == [s], s.recv(9))
print(e.poll(0), outer.poll(0), p.poll(0))
when_asleep(c.send, b"then"); print(s.recv(9))
class Alarm(Exception): pass
def alarm(*_): raise Alarm
signal.signal(signal.SIGALRM, alarm); signal.setitimer(signal.ITIMER_REAL, 0.2)
try: s.recv(9)
except Alarm: print("alarm")
c.send(b"12345"); print(s.recv(2, socket.MSG_PEEK), s.recvmsg(2)[2] == socket.MSG_TRUNC)
c.send(b""); print(s.recv(9))
k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); k.connect(("10.77.0.2", 9)); k.settimeout(20); k.send(b"x")
try: k.recv(9)
except ConnectionRefusedError: print("refused")
try: udp("10.77.0.1", 5000)
except OSError as e: print(e)
''')
    want = """('BlockingIOError', False)
('BlockingIOError', True)
([], True)
(([], [], []), True)
([], True)
([], True)
1
1 True True b'now'
[] [] []
b'then'
alarm
b'12' True
b''
refused
[Errno 98] Address already in use
"""
    check(out == want, out)


@ours
def select_keeps_time(pair):
    """select() updates its timeout like Linux does."""
    out = here(pair, '''
import ctypes
libc = ctypes.CDLL(None)
def wait(seconds):
    sets, tv = (ctypes.c_long * 16)(), (ctypes.c_long * 2)(int(seconds), int(seconds % 1 * 1e6))
    sets[0] = 1 << s.fileno()
    rc = libc.select(s.fileno() + 1, sets, None, None, tv)
    return rc, tv[0] + tv[1] / 1e6
print(wait(0.2))
when_asleep(c.send, b"x")
rc, left = wait(600.5); print(rc, 0 < left < 600.5)
''')
    check(out == '(0, 0.0)\n1 True\n', out)


@ours
def edges(pair):
    """With EPOLLET each arriving datagram is reported once, also while others are unread."""
    out = here(pair, '''
ET = select.EPOLLIN | select.EPOLLET
e, level = select.epoll(), select.epoll()
def told(n, t):
    got = 0
    for i in range(n):
        c.sendto(b"%d" % i, t.getsockname()); got += len(e.poll(20))
    return got, e.poll(0.05)
def left(t):
    got = 0
    try:
        while t.recv(9): got += 1
    except BlockingIOError: return got, e.poll(0.05), level.poll(0)
early = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)        # in the set before it is carried
e.register(early, ET)
early.bind(("10.77.0.1", 6000))
late, changed = udp("10.77.0.1", 6001), udp("10.77.0.1", 6002)
e.register(late, ET)
e.register(changed, select.EPOLLIN); e.modify(changed, ET)
e.poll(0)
for t in early, late, changed:
    t.setblocking(False); level.register(t, select.EPOLLIN)
    print(told(200, t), len(level.poll(0)), left(t), told(1, t), left(t))
''')
    check(out == "(200, []) 1 (200, [], []) (1, []) (1, [], [])\n" * 3, out)


@ours
def killed(pair):
    """Programs killed while they send leave nothing behind."""
    daemon = pair.daemons['us']
    before = daemon.held()
    for _ in range(20):
        p = Process(pair.work, 'killed', pair.command('client', PYTHON, '-c', HEAD + '''
more = [udp("10.77.0.1", 6000 + i) for i in range(5)]
print("up", flush=True)
while True: more[0].sendto(bytes(1000), ("10.77.0.2", 7))
'''))
        p.wait_text('up')
        p.kill()
        pair.wait_unused()
    daemon.settle(before)
    out = here(pair, 'print(udp("10.77.0.1", 6000).getsockname())')
    check(out == "('10.77.0.1', 6000)\n", out)


# Has a port until it is killed.
HOLDER = '''
import signal, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
signal.pause()
'''


@ours
def binds_again(pair):
    """A port is free as soon as its socket is closed or its program has ended, and not earlier."""
    program = f'''
import collections, errno
at, far = ("{OUR_IP}", {PORT + 7}), ("{pair.server_ip}", 9)
def again(sends=False):
    try: t = udp(*at)
    except OSError as e: return errno.errorcode[e.errno]
    for _ in range(400 * sends): t.sendto(b"x", far)
    t.close()
    return "bound"
def all(*args): print(collections.Counter(again(*args) for _ in range(50)))
k = udp("0.0.0.0", 0); k.connect(far); k.settimeout(1)
while True:         # until the neighbour is known
    try: k.send(b"x"); k.recv(9)
    except ConnectionRefusedError: break
    except TimeoutError: pass
all(); all(True)
for _ in range(10):
    p = subprocess.Popen([sys.executable, "-c", {HOLDER!r}, *map(str, at)], stdout=subprocess.PIPE)
    p.stdout.readline(); print(again())
    p.kill(); p.wait(); print(again())
t = udp(*at); all()
d = t.dup(); t.close(); all(); d.close(); print(again())
'''
    want = here(pair, program, plain=True)
    check(want.startswith("Counter({'bound': 50})\n" * 2 + 'EADDRINUSE\nbound\n' * 10), want)
    out = here(pair, program)
    check(out == want, f'{out}, on the kernel: {want}')


@ours
def binds_late(pair):
    """A port is free after close() although descriptors of its user are slow to close."""
    kept = keep_closing(pair.daemons['us'], 1)
    out = here(pair, f'''
at = ("{OUR_IP}", {PORT + 7})
for _ in range(2): t = udp(*at); t.close()
print("bound")
''')
    check(out == 'bound\n', out)
    for s in kept:
        s.close()


ECHO_ALL = f'''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", {PORT + 1}))
print("up", flush=True)
while True: s.sendto(*s.recvfrom(100))
'''


@ours
def waits_first(pair):
    """A thread that waits before the socket is carried receives what arrives. A socket whose thread
    is cancelled, or that a child of a threaded program has, releases its port with the last
    close()."""
    pair.server(PYTHON, '-c', ECHO_ALL, text='up')
    program = f'''
import ctypes, struct
far = ("{pair.server_ip}", {PORT + 1}); libc = ctypes.CDLL(None); libc.pthread_cancel.argtypes = [ctypes.c_ulong]
def new(): return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def polled(s): p = select.poll(); p.register(s, select.POLLIN); return len(p.poll(20000))
for wait in (lambda s: s.recv(99), polled):
    for send in (lambda s: s.sendto(b"hi", far), lambda s: (s.connect(far), s.send(b"hi"))):
        s = new(); out = []; t = threading.Thread(target=lambda: out.append(wait(s)), daemon=True)
        t.start(); wait_thread(t); send(s); t.join(20); print(out, flush=True)
def bound(): s = new(); s.bind(("{OUR_IP}", {PORT + 9})); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 9999); return s
s = bound(); buf = ctypes.create_string_buffer(9); fd = s.fileno()
t = threading.Thread(target=lambda: libc.recv(fd, buf, 9, 0), daemon=True); t.start(); wait_thread(t)
libc.pthread_cancel(t.ident)
while os.path.exists("/proc/self/task/%d" % t.native_id): time.sleep(0.01)
s.close(); s = bound(); s.settimeout(1)
def late():
    try: s.recv(9)
    except OSError: pass
t = threading.Thread(target=late); t.start(); wait_thread(t); pid = os.fork()
if pid == 0: s.close(); signal.pause()
wait_asleep(pid); t.join(); s.close(); bound(); print("bound", flush=True); os.kill(pid, 9); os._exit(0)
'''
    out = here(pair, program)
    check(out == "[b'hi']\n[b'hi']\n[1]\n[1]\nbound\n", out)


@ours
def error_edges(pair):
    """With EPOLLET each error is an edge; an error alone does not make the socket readable."""
    out = here(pair, f'''
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("{pair.server_ip}", {PORT + 77}))
s.setblocking(False); ep = select.epoll(); ep.register(s, select.EPOLLIN | select.EPOLLET)
for _ in range(3):
    s.send(b"x"); print(*[e for _, e in ep.poll(20)])
    try: s.recv(9)
    except ConnectionRefusedError: print("refused")
''')
    check(out == '8\nrefused\n' * 3, out)


@ours
def asks_nobody(pair):
    """In the steady state sending and receiving make no system calls, except for one check in
    65,536 empty receives that the daemon is alive."""
    strace, = need('strace')
    pair.server(PYTHON, '-c', f'''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", {PORT + 1}))
print("up", flush=True)
while True:
    data, peer = s.recvfrom(100)
    s.sendto(data, peer)
''', text='up')
    trace = pair.path('trace')
    out = pair.client(strace, '-f', '-o', trace, PYTHON, '-c', HEAD + f'''
k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
k.connect(("{pair.server_ip}", {PORT + 1}))
k.setblocking(False)
nothing = 0
def rounds(n):
    global nothing
    for i in range(n):
        k.send(b"%d" % i)
        while True:
            try: got = k.recv(100)
            except BlockingIOError: nothing += 1; continue
            break
        assert got == b"%d" % i
rounds(50)      # pages that Python uses are asked for once each
nothing = 0; os.getppid(); rounds(200); os.getppid()
print(nothing)
''')
    check(re.fullmatch(r'\d+\n', out), out)
    with open(trace, encoding='utf-8') as f:
        text = f.read().split('getppid')
    calls = re.findall(r'^\d+ +(\w+)\(', text[1], re.M)
    # it may wake a sleeping daemon (write), and nothing else; the count began before
    check(set(calls) <= {'write', 'recvfrom'} and calls.count('recvfrom') <= int(out) // 65536 + 1,
          f'nothing {out} times, {set(calls)}: {text[1][:1500]}')


@ours
def many_sockets(pair):
    """Two hundred sockets in one epoll set; closed ones report nothing any more."""
    out = here(pair, '''
e = select.epoll()
all = {}
for i in range(200):
    t = udp("10.77.0.1", 7000 + i); t.setblocking(False); all[t.fileno()] = t; e.register(t, select.EPOLLIN)
for i in range(200):
    c.sendto(b"%d" % i, ("10.77.0.1", 7000 + i))
for fd in list(all)[::2]: all.pop(fd).close()
got, until = 0, time.monotonic() + 20
while got < 100 and time.monotonic() < until:
    for fd, _ in e.poll(1): got += all[fd].recv(9) != b""
print(got, e.poll(0))
''')
    check(out == '100 []\n', out)


@ours
def own_descriptors(pair):
    """A program that closes or replaces all descriptors does not harm the library's own."""
    out = here(pair, f'''
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
far = ("{PEER_IP}", 9)
def high(): return [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) >= 700]
def is_carried(t):
    inode = os.readlink(f"/proc/self/fd/{{t.fileno()}}")[8:-1]
    with open("/proc/self/net/unix") as f: return inode in f.read()
def works(port):
    t = udp("{OUR_IP}", port)
    t.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 5000)
    t.sendto(b"x", far)
    c.sendto(b"y", t.getsockname())
    return is_carried(t), t.recv(9), t
keep = [works(6000)]
print(keep[0][:2], len(high()) > 2)
def refused(fd):
    try: os.close(fd)
    except OSError: return True
print(all([refused(fd) for fd in high()]))
os.closerange(700, 70000); libc.close_range(700, 0xffffffff, 0); libc.closefrom(700)
libc.syscall(436, 700, 0xffffffff, 0)
print(len(high()) > 2, works(6001)[:2])
r, w = os.pipe()
taken = high()
for fd in taken: os.dup2(w, fd)
keep.append(works(6002)); print(keep[-1][:2])
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 5000); keep[0][2].sendto(b"z", far)
for fd in taken: os.write(fd, b"p"); os.close(fd)
os.close(w)
print(os.read(r, 9999) == b"p" * len(taken), keep[0][2].getsockopt(socket.SOL_SOCKET, socket.SO_TYPE))
if os.fork() == 0:
    os.closerange(700, 70000)
    print(works(6003)[:2], flush=True); os._exit(0)
os.wait()
''')
    want = "(True, b'y')"
    check(out == f'{want} True\nTrue\nTrue {want}\n{want}\nTrue 2\n{want}\n', out)


@ours
def full(pair):
    """If the send ring is not emptied all calls report that it is full, and a blocking
    call sleeps."""
    pair.server(PYTHON, '-c', f'''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", {PORT + 1}))
print("up", flush=True)
while True:
    data, peer = s.recvfrom(2000)
    if data == b"last": s.sendto(data, peer)
''', text='up')
    out = here(pair, f'''
daemon = {pair.daemons['us'].process.pid}
far = ("{PEER_IP}", {PORT + 1})
SO_SNDTIMEO = socket.SO_SNDTIMEO
s.sendto(b"x", far)
s.setsockopt(socket.SOL_SOCKET, SO_SNDTIMEO, b"".join(n.to_bytes(8, "little") for n in (0, 300000)))
p = select.poll(); p.register(s, select.POLLOUT)
e = select.epoll(); e.register(s, select.EPOLLOUT)
edge = select.epoll(); edge.register(s, select.EPOLLOUT | select.EPOLLET); edge.poll(0)
def writable(wait=0):
    return [len(e.poll(wait)), len(p.poll(wait * 1000)), len(select.select([], [s], [], wait)[1])]
def taken():
    """Until what was sent has gone: the last one is answered."""
    s.settimeout(1)
    while True:
        try: s.sendto(b"last", far); s.recv(9); break
        except TimeoutError: pass
    s.settimeout(None)
def stopped():
    with open(f"/proc/{{daemon}}/stat") as f: return f.read().rpartition(")")[2].split()[0]
def fill():
    s.setblocking(False)
    try:
        for i in range(9999): s.sendto(bytes(1000), far)
    except BlockingIOError: return 100 < i < 300
    finally: s.setblocking(True)
print(writable())
for _ in range(2):
    taken()
    os.kill(daemon, signal.SIGSTOP)
    try:
        while stopped() != "T": time.sleep(0.01)
        print(fill(), writable(), writable(0.1), edge.poll(0))
        t, cpu = time.monotonic(), time.thread_time()
        try: s.sendto(bytes(1000), far)
        except BlockingIOError: print("in time", time.monotonic() - t > 0.2, time.thread_time() - cpu < 0.1)
    finally:
        when_asleep(os.kill, daemon, signal.SIGCONT)
    print(writable(20), len(edge.poll(20)))
    s.settimeout(20)
    for i in range(2000): s.sendto(bytes(1000), far)
    s.settimeout(None)
    edge.poll(0)
''')
    once = 'True [0, 0, 0] [0, 0, 0] []\nin time True True\n[1, 1, 1] 1\n'
    check(out == '[1, 1, 1]\n' + 2 * once, out)


@ours
def connects_anew(pair):
    """Data sent earlier goes to the peer at that time."""
    pair.server(PYTHON, '-c', f'''
import select, socket
all = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for i, s in enumerate(all): s.bind(("0.0.0.0", {PORT + 1} + i))
print("up", flush=True)
while True:
    for s in select.select(all, [], [])[0]:
        data, peer = s.recvfrom(2000)
        s.sendto(b"%d" % s.getsockname()[1] + data[:4], ("{OUR_IP}", {PORT}))
''', text='up')
    out = here(pair, f'''
k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
wrong = came = 0
k.connect(("{PEER_IP}", {PORT + 1})); k.send(b"0000"); s.recv(99)        # the neighbour is known
for i in range(30):
    for to in ({PORT + 1}, {PORT + 2}):
        k.connect(("{PEER_IP}", to))
        for _ in range(20): k.send((b"%d" % to) * 300)
    try:
        for _ in range(40):
            data = s.recv(99); came += 1; wrong += data[:4] != data[4:]
    except TimeoutError: pass
print(wrong, came > 600)
''')
    check(out == '0 True\n', out)


@ours
def first_datagram(pair):
    """The first datagram of an unbound socket is sent like all others."""
    echo = pair.server(PYTHON, PEER, 'echo_selectors', pair.server_ip, PORT + 3, text='ready')
    before = sock.snmp(pair.at_us)['Udp.OutDatagrams']
    out = pair.client(PYTHON, '-c', f"""
import socket
for _ in range(3):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)
    s.sendto(b"first", ("{pair.server_ip}", {PORT + 3})); print(s.recv(9), s.getsockname()[0])
""")
    check(echo.is_alive() and out == "b'first' 0.0.0.0\n" * 3, out)
    check(sock.snmp(pair.at_us)['Udp.OutDatagrams'] == before, 'the kernel sent one')


@functools.partial(ours, rules=f'drop remote 10.77.0.9;carry remote {PEER_IP}')
def sends_first(pair):
    """A rule about destinations is applied to the first datagram of an unbound socket, by any call;
    later destinations or a bind have no effect."""
    echo = pair.server(PYTHON, '-c', ECHO, pair.server_ip, PORT + 1, text='up')
    before = sock.snmp(pair.at_us)['Udp.OutDatagrams']
    out = pair.client(PYTHON, '-c', f"""
import ctypes, os, socket, struct
libc = ctypes.CDLL(None)
far, near = ("{PEER_IP}", {PORT + 1}), ("127.0.0.1", 9)
def udp(ip=None):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)
    if ip: s.bind((ip, 0))
    return s
def is_carried(s):
    inode = os.readlink("/proc/self/fd/%d" % s.fileno())[8:-1]
    with open("/proc/net/unix") as f: return any(line.split()[6] == inode for line in f)
def mmsg(s):
    data = ctypes.create_string_buffer(b"four", 4)
    name = struct.pack("<H", 2) + struct.pack(">H", far[1]) + socket.inet_aton(far[0]) + bytes(8)
    name = ctypes.create_string_buffer(name, 16)
    iov = (ctypes.c_ulong * 2)(ctypes.addressof(data), 4)
    msg = (ctypes.c_ulong * 8)(ctypes.addressof(name), 16, ctypes.addressof(iov), 1)
    return libc.sendmmsg(s.fileno(), msg, 1, 0)
def by(send, s=None):
    s = s or udp()
    send(s); return is_carried(s), s.recv(9), s
for way in (lambda s: s.sendto(b"one", far), lambda s: s.sendto(b"two", 0, far),
            lambda s: s.sendmsg([b"three"], [], 0, far), mmsg):
    print(*by(way)[:2])
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); six.settimeout(5)
print(*by(lambda s: s.sendto(b"five", ("::ffff:" + far[0], far[1])), six)[:2])
s = udp()
try: s.sendto(b"no", ("10.77.0.9", 9))
except PermissionError: print("refused")
print(*by(lambda s: s.sendto(b"six", far), s)[:2], flush=True)
""")
    check(echo.is_alive() and out == """True b'one'
True b'two'
True b'three'
True b'four'
True b'five'
refused
True b'six'
""", out)
    check(sock.snmp(pair.at_us)['Udp.OutDatagrams'] == before, 'the kernel sent one')
    out = pair.client(PYTHON, '-c', f"""
import os, socket
def is_carried(s):
    inode = os.readlink("/proc/self/fd/%d" % s.fileno())[8:-1]
    with open("/proc/net/unix") as f: return any(line.split()[6] == inode for line in f)
for ip in (None, "0.0.0.0", "{OUR_IP}"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)
    if ip: s.bind((ip, 0))
    else: s.sendto(b"near", ("127.0.0.1", 9))
    s.sendto(b"far", ("{PEER_IP}", {PORT + 1})); print(is_carried(s), s.recv(9))
""")
    check(out == "False b'far'\n" * 3, out)


LENGTHS = f'''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", {PORT + 1}))
print("up", flush=True)
while True:
    data, peer = s.recvfrom(65536)
    s.sendto(b"%d " % len(data) + data[:20] + b"\\n", peer)
'''


@ours
def writes_unheard(pair):
    """What a program without the library writes to its end of the pair is sent nevertheless."""
    pair.server(PYTHON, '-c', LENGTHS, text='up')
    out = here(pair, f'''
k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
k.connect(("{PEER_IP}", {PORT + 1})); k.settimeout(20)
for text in ("hello", "world"):
    subprocess.run(["env", "-u", "LD_PRELOAD", "echo", text], stdout=k)
    print(k.recv(100))
k.send(b"and more"); print(k.recv(100))
''')
    check(out == "b'6 hello\\n\\n'\nb'6 world\\n\\n'\nb'8 and more\\n'\n", out)


@ours
def streams(pair):
    """Streams of the C library: datagrams have the same lengths as with the kernel."""
    pair.server(PYTHON, '-c', LENGTHS, text='up')
    out = here(pair, f'''
import ctypes
libc = ctypes.CDLL(None)
libc.fdopen.restype = libc.fgets.restype = ctypes.c_void_p
k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
f = ctypes.c_void_p(libc.fdopen(k.fileno(), b"r+")); buf = ctypes.create_string_buffer(100)
k.connect(("{PEER_IP}", {PORT + 1}))
for text in (b"hello", b"x" * 10000):
    libc.fputs(text, f); libc.fflush(f); libc.fgets(buf, 100, f); print(buf.value)
libc.fgets(buf, 100, f); print(buf.value)
libc.dprintf(k.fileno(), b"%s %d", b"number", 5); libc.fgets(buf, 100, f); print(buf.value)
libc.fclose(f)
try: os.fstat(k.detach())
except OSError: print("closed")
''')
    check(out == "b'5 hello\\n'\nb'8192 xxxxxxxxxxxxxxxxxxxx\\n'\nb'1808 xxxxxxxxxxxxxxxxxxxx\\n'\n"
          "b'8 number 5\\n'\nclosed\n", out)


def default_route(pair):
    """A port with the default route: the kernel keeps local traffic and that of other devices."""
    us, peer = pair.at_us, pair.at_peer
    us.run('ip', 'link', 'set', 'lo', 'up')
    us.run('ip', 'route', 'add', 'default', 'via', PEER_IP)
    us.run('ip', 'link', 'add', 'd0', 'type', 'veth', 'peer', 'name', 'd1', 'netns', peer.pid)
    us.run('ip', 'address', 'add', '10.88.0.1/24', 'dev', 'd0')
    us.run('ip', 'link', 'set', 'd0', 'up')
    peer.run('ip', 'address', 'add', '10.88.0.2/24', 'dev', 'd1')
    peer.run('ip', 'link', 'set', 'd1', 'up')
    peer.run('ip', 'address', 'add', '10.99.0.1/32', 'dev', 'lo')
    peer.run('ip', 'link', 'set', 'lo', 'up')
    pair.server(PYTHON, '-c', f'''
import select, socket
all = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for s, ip in zip(all, ("10.88.0.2", "10.99.0.1")): s.bind((ip, {PORT + 1}))
print("up", flush=True)
while True:
    for s in select.select(all, [], [])[0]:
        data, peer = s.recvfrom(100)
        s.sendto(data + b" from " + s.getsockname()[0].encode(), peer)
''', text='up')
    out = here(pair, f'''
s.settimeout(20)
def sent():
    rows = [line.split() for line in open("/proc/net/snmp") if line.startswith("Udp:")]
    return int(rows[1][rows[0].index("OutDatagrams")])
for ip in ("127.0.0.1", "127.1.2.3", "{OUR_IP}", "10.88.0.1"):
    t = udp(ip, 6000)
    s.sendto(b"local", (ip, 6000))
    t.settimeout(5); print(t.recv(9)); t.close()
for ip in ("10.88.0.2", "10.99.0.1"):
    before = sent()
    s.sendto(b"x", (ip, {PORT + 1})); print(s.recv(99), sent() - before)
''')
    check(out == "b'local'\n" * 4 + "b'x from 10.88.0.2' 1\nb'x from 10.99.0.1' 0\n", out)
# Echoes until nothing arrives any more.
ECHO = '''
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
while True:
    s.sendto(*s.recvfrom(65536))
'''


@functools.partial(ours, v6=True)
def long_ones(pair):
    """Datagrams up to the maximum length, in fragments in both directions, IPv4 and IPv6. The
    reassembly of IPv4 under DPDK's af_packet makes no difference."""
    for ip, most in ((pair.server_ip, 65507), (PEER_IP6, 65507)):
        pair.server(PYTHON, '-c', ECHO, ip, PORT + 1, text='up')
        before = pair.counters()
        out = here(pair, f'''
k = socket.socket(socket.AF_INET6 if ":" in "{ip}" else socket.AF_INET, socket.SOCK_DGRAM)
k.connect(("{ip}", {PORT + 1}))
k.settimeout(20)
for n in (1400, 1472, 1473, 1900, *range(1930, 1990), 2048, 9000, 12000, 40000, {most}):
    data = os.urandom(n)
    k.send(data)
    if k.recv(70000) != data: print(n)
k.send(b"last"); print(k.recv(70000))
''')
        check(out == "b'last'\n", out)
        grown = pair.counters()['tx_pkts'] - before['tx_pkts']
        check(grown > 100, f'the daemon has sent {grown} packets')


@functools.partial(ours, rules='carry')
def long_ones_carried_only(pair):
    """A socket that receives nothing through the kernel's other devices gets datagrams that
    af_packet truncates, once."""
    us, peer = pair.at_us, pair.at_peer
    us.run('ip', 'link', 'add', 'd0', 'type', 'veth', 'peer', 'name', 'd1', 'netns', peer.pid)
    for ns, name, ip in ((us, 'd0', '10.88.0.1'), (peer, 'd1', '10.88.0.2')):
        ns.run('ip', 'address', 'add', f'{ip}/24', 'dev', name)
        ns.run('ip', 'link', 'set', name, 'up')
    pair.server(PYTHON, '-c', f'''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", {PORT + 1}))
print("up", flush=True)
while True:
    data, peer = s.recvfrom(100)
    s.sendto(bytes(int(data)), ("10.88.0.1", peer[1]))
    s.sendto(b"x" * int(data), peer)
''', text='up')
    out = here(pair, f'''
s.settimeout(20)
for n in (1000, 20000, 60000):
    s.sendto(b"%d" % n, ("{pair.server_ip}", {PORT + 1}))
    data, peer = s.recvfrom(70000)
    print(data == b"x" * n, peer[0])
    c.send(b"local"); print(s.recv(70000)[:9])
c.send(b"last"); print(s.recv(70000))
''')
    check(out == f"True {pair.server_ip}\nb'local'\n" * 3 + "b'last'\n", out)


def long_ones_two_daemons(pair):
    """Carried at both ends: a datagram of each length arrives once in each direction, by either
    path."""
    before = [sock.snmp(ns)['Udp.OutDatagrams'] for ns in (pair.at_us, pair.at_peer)]
    pair.server(PYTHON, '-c', ECHO, pair.server_ip, PORT + 1, text='up')
    out = here(pair, f'''
k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
k.connect(("{pair.server_ip}", {PORT + 1}))
k.settimeout(20)
lengths = (1472, 1473, 4000, 20000, 65507)
for n in lengths:
    data = os.urandom(n)
    k.send(data)
    if k.recv(70000) != data: print(n)
for _ in range(10):
    want = sorted(os.urandom(n) for n in lengths)
    for data in want: k.send(data)
    got = sorted(k.recv(70000) for _ in want)       # some by the kernel's socket, which takes longer
    if got != want: print([len(data) for data in got])
k.send(b"last"); print(k.recv(70000))
''')
    check(out == "b'last'\n", out)
    after = [sock.snmp(ns)['Udp.OutDatagrams'] for ns in (pair.at_us, pair.at_peer)]
    check(after == before, f'kernels have sent {before}, {after}')


@functools.partial(ours, daemons=2)
def long_ones_both(pair):
    long_ones_two_daemons(pair)


@functools.partial(ours, rules='carry', daemons=2)
def long_ones_carry(pair):
    long_ones_two_daemons(pair)


@functools.partial(ours, limits='sock_bytes = 1600K')
def memory(pair):
    """The sockets of a user are limited in memory; further ones stay with the kernel."""
    daemon = pair.daemons['us']
    before = daemon.ask('sockets')
    check(before == {'sockets': 0, 'sockets_max': 300, 'streams_connected': 0,
                     'streams_accepted': 0, 'bytes': 0, 'bytes_user_max': 1600 << 10,
                     'refused': 0}, before)
    out = here(pair, f'''
def is_carried(s):
    inode = os.readlink("/proc/self/fd/%d" % s.fileno())[8:-1]
    with open("/proc/net/unix") as f: return any(line.split()[6] == inode for line in f)
def echoes(s):
    c.connect(s.getsockname()); c.send(b"x"); s.settimeout(20)
    return s.recv(9) == b"x"
more = [udp("{OUR_IP}", {PORT} + i) for i in range(1, 4)]
print([is_carried(t) for t in [s, c, *more]], all(echoes(t) for t in more))
s.close()
while not is_carried(t := udp("{OUR_IP}", 0)): t.close(); time.sleep(0.01)
print(is_carried(t), echoes(t), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
''', status=-signal.SIGKILL)
    check(out == '[True, True, True, False, False] True\nTrue True\n', out)
    until_true('they are gone', lambda: daemon.ask('sockets').get('sockets') == 0)
    check(daemon.ask('sockets')['refused'] >= 2, daemon.ask('sockets'))


QUICK = (both_ways, descriptors, waits, edges, killed, binds_late, waits_first, asks_nobody,
         long_ones, memory, full, sends_first)
LONG = (select_keeps_time, binds_again, error_edges, many_sockets, long_ones_carried_only,
        long_ones_both, long_ones_carry, own_descriptors, connects_anew, first_datagram,
        writes_unheard, streams,
        functools.partial(ours, port=f'route = 0.0.0.0/0,{PEER_IP}')(default_route))


def main():
    need_namespaces('ethtool', 'sysctl')
    tests = Tests()
    for add, cases in ((tests.add, QUICK), (tests.add_long, LONG)):
        for test in cases:
            add(test.__name__.replace('_', ' '), test)
    tests.add('daemons end', sock.stop_shared)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
