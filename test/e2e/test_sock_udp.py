#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Carried UDP sockets, one property each: both ways into one socket, who has a descriptor, who
waits how, what a program that is killed leaves, and that nothing asks the kernel. (UDP-1, UDP-4,
UDP-6, UDP-7, UDP-8)
"""

import functools
import re
import signal
import sys

import sock
from e2e import Process, Tests, Work, check, need_namespaces
from sock import OUR_IP, PEER_IP6, PYTHON, need

PORT = 5000
# Of this end, with the library; *s* is bound to the port, *c* is another one that sends to it by
# the kernel, and *far* is one at the peer.
HEAD = f'''
import array, os, select, signal, socket, subprocess, sys, threading, time
def udp(*to):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(to or ("0.0.0.0", {PORT}))
    return s
s = udp()
c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
c.connect(("{OUR_IP}", {PORT}))
'''


def here(pair, program, **how):
    """Run *program* at our end; its output."""
    return pair.client(PYTHON, '-c', HEAD + program, **how)


def ours(test, **how):
    """Of a case that runs at our end."""
    @functools.wraps(test)
    def run():
        with Work() as work, sock.Pair(work, sock.CLIENT, rules='both', **how) as pair:
            test(pair)
    return run


@ours
def both_ways(pair):
    """A thousand by each path, to one socket bound to any address: all, once, with their source."""
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
    """dup, fork, exec and SCM_RIGHTS give others the same socket; the last close ends it."""
    out = here(pair, '''
print(subprocess.run(["/bin/echo", "vfork"], capture_output=True, text=True).stdout, end="")
c.send(b"mine"); print(s.recv(9))
d = s.dup(); c.send(b"dup"); print(d.recv(9)); d.close()
if os.fork() == 0:
    data, peer = s.recvfrom(9); s.sendto(b"child " + data, peer); os._exit(0)
c.send(b"f"); print(c.recv(20)); os.wait()
os.set_inheritable(s.fileno(), True)
code = ("import socket; s = socket.socket(fileno=%d); d, p = s.recvfrom(9); "
        "s.sendto(b'exec ' + d + b' %%d' %% s.getsockname()[1], p)" % s.fileno())
p = subprocess.Popen([sys.executable, "-c", code], close_fds=False)
c.send(b"x"); print(c.recv(20)); p.wait()
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
    check(out == "vfork\nb'mine'\nb'dup'\nb'child f'\nb'exec x 5000'\nb'passed y'\ngone\n", out)


@ours
def waits(pair):
    """Time-outs, signals, poll, select and epoll, and what is closed meanwhile."""
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
threading.Timer(0.2, lambda: c.send(b"now")).start(); print(timed(outer.poll, 10)[1])
print(len(e.poll(0)), p.poll(0) == [(s.fileno(), 1)], select.select([s], [], [], 0)[0] == [s], s.recv(9))
print(e.poll(0), outer.poll(0), p.poll(0))
threading.Timer(0.2, lambda: c.send(b"then")).start(); print(timed(s.recv, 9))
class Alarm(Exception): pass
def alarm(*_): raise Alarm
signal.signal(signal.SIGALRM, alarm); signal.setitimer(signal.ITIMER_REAL, 0.2)
try: s.recv(9)
except Alarm: print("alarm")
c.send(b"12345"); print(s.recv(2, socket.MSG_PEEK), s.recvmsg(2)[2] == socket.MSG_TRUNC)
c.send(b""); print(s.recv(9))
k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); k.connect(("10.77.0.2", 9)); k.settimeout(5); k.send(b"x")
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
True
1 True True b'now'
[] [] []
(b'then', True)
alarm
b'12' True
b''
refused
[Errno 98] Address already in use
"""
    check(out == want, out)


@ours
def killed(pair):
    """Programs that are killed while they send leave nothing."""
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
    daemon.settle(before)
    out = here(pair, 'print(udp("10.77.0.1", 6000).getsockname())')
    check(out == "('10.77.0.1', 6000)\n", out)


@ours
def asks_nobody(pair):
    """In the steady state neither sending nor receiving is a system call."""
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
os.getppid()
for i in range(200):
    k.send(b"%d" % i)
    while True:
        try: got = k.recv(100)
        except BlockingIOError: continue
        break
    assert got == b"%d" % i
os.getppid()
''')
    check(out == '', out)
    with open(trace, encoding='utf-8') as f:
        text = f.read().split('getppid')
    calls = re.findall(r'^\d+ +(\w+)\(', text[1], re.M)
    # it may wake a daemon that sleeps (write), and nothing else
    check(all(call == 'write' for call in calls), f'{set(calls)}: {text[1][:1500]}')


@ours
def many_sockets(pair):
    """Two hundred in one epoll set; those that are closed meanwhile say nothing any more."""
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


# Sends back what it gets, until nothing comes any more.
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
    """Datagrams of any length up to the longest, in fragments both ways, of both families. What
    DPDK's af_packet does to IPv4's makes no difference."""
    for ip, most in ((pair.server_ip, 65507), (PEER_IP6, 65507)):
        pair.server(PYTHON, '-c', ECHO, ip, PORT + 1, text='up')
        before = pair.counters()
        out = here(pair, f'''
k = socket.socket(socket.AF_INET6 if ":" in "{ip}" else socket.AF_INET, socket.SOCK_DGRAM)
k.connect(("{ip}", {PORT + 1}))
k.settimeout(5)
for n in (1400, 1472, 1473, 1900, *range(1930, 1990), 2048, 9000, 12000, 40000, {most}):
    data = os.urandom(n)
    k.send(data)
    if k.recv(70000) != data: print(n)
k.settimeout(0.2)
try: print("more:", len(k.recv(70000)))
except TimeoutError: print("all")
''')
        check(out == 'all\n', out)
        grown = pair.counters()['tx_pkts'] - before['tx_pkts']
        check(grown > 100, f'the daemon has sent {grown} packets')


@functools.partial(ours, limits='sock_bytes = 1600K')
def memory(pair):
    """A user's sockets have the memory that they may have; further ones are the kernel's."""
    daemon = pair.daemons['us']
    before = daemon.ask('sockets')
    check(before == {'sockets': 0, 'sockets_max': 300, 'bytes': 0, 'bytes_user_max': 1600 << 10,
                     'refused': 0}, before)
    out = here(pair, f'''
def is_carried(s):
    inode = os.readlink("/proc/self/fd/%d" % s.fileno())[8:-1]
    with open("/proc/net/unix") as f: return any(line.split()[6] == inode for line in f)
def echoes(s):
    c.connect(s.getsockname()); c.send(b"x"); s.settimeout(5)
    return s.recv(9) == b"x"
more = [udp("{OUR_IP}", {PORT} + i) for i in range(1, 4)]
print([is_carried(t) for t in [s, c, *more]], all(echoes(t) for t in more))
s.close(); until = time.monotonic() + 10
while not is_carried(t := udp("{OUR_IP}", {PORT + 9})) and time.monotonic() < until:
    t.close(); time.sleep(0.01)
print(is_carried(t), echoes(t), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
''', status=-signal.SIGKILL)
    check(out == '[True, True, True, False, False] True\nTrue True\n', out)
    sock.wait_for('they are gone', lambda: daemon.ask('sockets')['sockets'] == 0)
    check(daemon.ask('sockets')['refused'] >= 2, daemon.ask('sockets'))


def main():
    need_namespaces('ethtool', 'sysctl')
    tests = Tests(300)
    for test in (both_ways, descriptors, waits, killed, asks_nobody, many_sockets, long_ones, memory):
        tests.add(test.__name__.replace('_', ' '), test)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
