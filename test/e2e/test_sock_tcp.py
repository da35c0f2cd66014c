#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""TCP sockets carried as streams: each pair of programs has the same output as on the kernel,
including half-closed connections, waiting and sharing; other sockets stay with the kernel. (UDP-1,
UDP-2, UDP-7, AFC-1)
"""

import json
import os
import signal
import sys
import time

import asleep
import sock
from e2e import BUILD, SOURCE, check, until_true
from sock import PEER, PYTHON
from sock_talk import HEAD, PORT, both, same, talk
from test_descriptors import keep_closing

SANCTL = os.path.join(SOURCE, 'usertools/sanctl')
# Two programs by name: what the server does with its listener *l*, and what the client does.
CASES = {
    'names': ('''
s, a = l.accept()
say(a == s.getpeername(), s.getsockname() == (ip, port), a[0])
s.send(repr(a).encode()); s.close()
''', '''
s = dial()
say(s.getpeername() == (ip, port), all_of(s) == repr(s.getsockname()).encode())
'''),
    'half closed': ('''
s, _ = l.accept()
b = all_of(s); say(digest(b)); s.sendall(b[::-1]); s.close()
''', '''
s = dial(); s.sendall(data); s.shutdown(socket.SHUT_WR)
say(digest(all_of(s)), s.recv(9))
try: s.send(b"x")
except OSError as e: say(name(e))
'''),
    'without blocking': ('''
s, _ = l.accept(); s.recv(2); hear("full"); say(digest(all_of(s)))
''', '''
s = dial(); s.setblocking(False); ep = select.epoll(); ep.register(s, select.EPOLLOUT)
say(ready(s)); s.send(b"go"); sent = 0
while ep.poll(0.1) or ready(s)[1]:      # while the peer's host takes more
    try:
        while True: sent += s.send(data[sent:sent + 50000])
    except BlockingIOError: pass
tell("full"); say(sent < len(data), [e for _, e in ep.poll(20)] == [select.EPOLLOUT])
while sent < len(data):
    ep.poll(20)
    try: sent += s.send(data[sent:sent + 50000])
    except BlockingIOError: pass
s.close()
'''),
    'lingering': ('''
s, _ = l.accept()
try: say(s.recv(9))
except OSError as e: say(name(e))
s, _ = l.accept(); hear("lingers"); say(digest(all_of(s)))
l.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); tell("set")
s, _ = l.accept(); say(s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)); s.close()
''', '''
s = dial(); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
say(s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)); asleep("server"); s.close()
s = dial(); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 9999))
s.sendall(data[:200000]); threading.Timer(0.1, tell, ("lingers",)).start()
s.close()       # does not take those 9999 seconds
hear("set"); s = dial()
try: say(s.recv(9))
except OSError as e: say(name(e))
'''),
    'lingering in part': ('''
l.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 9999))
s, _ = l.accept()
if os.fork() == 0: s.sendall(data); s.close(); os._exit(0)
while ready(s)[1]: time.sleep(0.01)
s.close(); tell("closed"); os.wait()
''', '''
s = dial(); hear("closed"); say(digest(all_of(s)))
'''),
    'reset behind bytes': ('''
for i in range(2):
    s, _ = l.accept(); s.send(b"x" * 10); hear(f"came{i}")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
''', '''
s = dial(); s.recv(10, socket.MSG_PEEK); tell("came0"); say(s.recv(20, socket.MSG_WAITALL))
for _ in range(2):
    try: say(s.recv(9))
    except OSError as e: say(name(e))
s = dial(); s.recv(10); tell("came1"); p = select.poll(); p.register(s, 0); p.poll()
signal.signal(signal.SIGPIPE, lambda *_: say("pipe"))
for _ in range(2):
    try: s.send(b"x")
    except OSError as e: say(name(e))
'''),
    'reset behind the end': ('''
for i in range(2): s, _ = l.accept(); s.shutdown(socket.SHUT_WR); hear(f"ended{i}"); s.close(); tell(f"closed{i}")
''', '''
signal.signal(signal.SIGPIPE, lambda *_: say("pipe"))
def failing():
    s = dial(); say(s.recv(9)); tell(f"ended{i}"); hear(f"closed{i}"); s.send(b"x")
    p = select.poll(); p.register(s, 0)
    while not p.poll(1000): s.send(b"x")    # the first may have come before the end of the socket
    say(s.recv(9)); return s
i = 0; s = failing()
say([errno.errorcode.get(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0) for _ in range(2)], s.recv(9))
i = 1; s = failing()
for _ in range(2):
    try: s.send(b"x")
    except OSError as e: say(name(e))
say(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.recv(9))
'''),
    'written by the C library': ('''
with open(folder + "/part", "w") as f: f.write("part\\n" * 10)
for _ in range(3):
    s, _ = l.accept()
    subprocess.run(["bash", "-c", "echo first; seq 60000; cat " + folder + "/part; echo then; seq 3; "
                    "dd if=/dev/zero bs=70000 count=1 status=none | tr \'\\\\0\' x; echo last"],
                   stdin=s, stdout=s)
    s.shutdown(socket.SHUT_WR); s.close()
''', '''
for _ in range(3):
    s = dial(); say(digest(all_of(s)))
'''),
    'written without the library': ('''
for _ in range(3):
    s, _ = l.accept()
    subprocess.run(["bash", "-c", "without=\'env -u LD_PRELOAD\'; echo first; $without seq 60000; "
                    "echo then; $without seq 3; seq 4; $without bash -c \'echo last\'"],
                   stdin=s, stdout=s)
    s.shutdown(socket.SHUT_WR); s.close()
''', '''
for _ in range(3):
    s = dial(); say(digest(all_of(s)))
'''),
    'streams of two directions': ('''
for _ in range(2):
    s, _ = l.accept(); by_line(s); s.sendall(b"one\\ntwo"); s.close()
''', '''
story("apart"); story("together")
'''),
    'a stream both ways': ('''
s, _ = l.accept(); by_line(s); s.sendall(b"x" * 300 + b"\\n"); s.close()
s, _ = l.accept(); by_line(s); s.close()
''', '''
story("both_ways"); story("before")
'''),
    'a stream closed once': ('''
s, _ = l.accept(); say(all_of(s)); s.close()
''', '''
story("once")
'''),
    'streams of all modes': ('''
for _ in range(2):
    s, _ = l.accept(); say(all_of(s)); s.close()
''', '''
story("modes"); story("wide")
'''),
    'a stream by number': ('''
s, _ = l.accept(); b = all_of(s); say(digest(b), b[-200:]); s.close()
''', '''
story("by_number")
'''),
    'a stream and a full peer': ('''
s, _ = l.accept(); asleep("client"); say(digest(all_of(s))); s.close()
''', '''
story("late")
'''),
    'a stream opened again': ('''
s, _ = l.accept(); by_line(s); s.close()
''', '''
story("another")
'''),
    'standard streams that were replaced': ('''
s, _ = l.accept(); s.sendall(b"one\\ntwo\\nthree"); s.shutdown(socket.SHUT_WR); say(all_of(s))
''', '''
story("replaced")
'''),
    'standard streams that were inherited': ('''
for args in ([stdio, "inherited"], ["cat"], ["head", "-1"], ["sed", "-u", "s/o/0/"],
             ["bash", "-c", "read line; echo \'<\'$line\'>\'; head -1; echo end"],
             ["awk", "{ print NR, $0 }"]):
    s, _ = l.accept()
    p = subprocess.run(args, stdin=s, stdout=s, stderr=s); s.shutdown(socket.SHUT_WR)
    say(args[0], p.returncode); all_of(s); s.close()
''', '''
for _ in range(6):
    s = dial(); s.send(b"one\\n"); asleep("server"); s.send(b"two\\n"); s.shutdown(socket.SHUT_WR)
    say(all_of(s))
'''),
    'a file in parts': ('''
s, _ = l.accept(); asleep("client"); say(digest(all_of(s)))
''', '''
with open(folder + "/file", "wb") as f: f.write(data)
s = dial(); f = open(folder + "/file", "rb"); s.setblocking(False); n = 1
while n:
    try: n = os.sendfile(s.fileno(), f.fileno(), None, 1 << 20)
    except BlockingIOError: select.select([], [s], [])
say(f.seek(0, 1)); s.close()
'''),
    'a listener that was inherited': ('''
code = "import socket; s, a = socket.socket(fileno=%d).accept(); s.send(b'child ' + s.recv(9))" % l.fileno()
l.set_inheritable(True)
for _ in range(2):
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    os.wait()
''', '''
for i in range(2):
    s = dial(); s.send(b"%d" % i); say(all_of(s))
'''),
    'poll by hand': ('''
s, _ = l.accept(); s.send(b"x"); s.recv(1)
''', '''
import ctypes
s = dial(); select.select([s], [], [])
fds = (ctypes.c_int * 6)(-1, 0x7fff7fff, s.fileno(), 1, -5, 0x7fff7fff)
say(ctypes.CDLL(None).poll(fds, 3, 20000), fds[1] >> 16, fds[3] >> 16, fds[5] >> 16)
try: s.connect((ip, port))
except OSError as e: say(name(e))
'''),
    'spliced': ('''
s, _ = l.accept(); r, w = os.pipe(); out = open(folder + "/out", "wb"); n = 1
while n:
    n = k = os.splice(s.fileno(), w, 1 << 20)
    while k: k -= os.splice(r, out.fileno(), k)
out.close(); say(digest(open(folder + "/out", "rb").read())); s.send(b"all")
try: os.splice(s.fileno(), out.fileno() if not out.closed else l.fileno(), 9)
except OSError as e: say(name(e))
''', '''
with open(folder + "/file", "wb") as f: f.write(data)
s = dial(); f = open(folder + "/file", "rb"); r, w = os.pipe()
while n := os.splice(f.fileno(), w, 65536):
    while n: n -= os.splice(r, s.fileno(), n)
try: os.splice(r, s.fileno(), 9, flags=os.SPLICE_F_NONBLOCK)
except OSError as e: say(name(e))
s.shutdown(socket.SHUT_WR); say(s.recv(9))
'''),
    'peek and parts': ('''
s, _ = l.accept()
for part in (b"one", b"two", b"three"): s.send(part); asleep("client")
say(s.recv(9)); s.close()
''', '''
s = dial()
say(s.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL)[:3], s.recv(11, socket.MSG_WAITALL))
try: s.recv(1, socket.MSG_DONTWAIT)
except BlockingIOError as e: say(name(e))
s.settimeout(0.1)
try: s.recv(1)
except TimeoutError: say("time")
s.settimeout(None); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 100000))
try: s.recv(1)
except BlockingIOError as e: say(name(e))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16)); s.sendmsg([b"gath", b"", b"ered"]); s.setblocking(True)
say(s.recvmsg_into([bytearray(2), bytearray(3)])[0], s.recv(9))
'''),
    'waiting bytes': ('''
s, _ = l.accept(); s.send(b"12345"); s.recv(1); s.close()
''', '''
s = dial(); select.select([s], [], [])
n = array.array("i", [0]); fcntl.ioctl(s, termios.FIONREAD, n); say(n[0]); s.send(b"x")
say(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
say(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
'''),
    'unread when closed': ('''
s, _ = l.accept(); select.select([s], [], []); asleep("client"); s.close(); say("closed")
''', '''
s = dial(); s.send(b"never read")
try: say(s.recv(9))
except OSError as e: say(name(e))
signal.signal(signal.SIGPIPE, lambda *_: say("pipe"))
for _ in range(2):
    try: s.send(b"x")
    except OSError as e: say(name(e))
'''),
    'children': ('''
for _ in range(3):
    s, _ = l.accept()
    if os.fork() == 0:
        l.close(); b = s.recv(9); s.send(b"child " + b); os._exit(0)
    s.close(); os.wait()
''', '''
for i in range(3):
    s = dial(); s.send(b"%d" % i); say(all_of(s))
'''),
    'children by other names': ('''
import ctypes
libc = ctypes.CDLL(None); stack = ctypes.create_string_buffer(1 << 20)
def child(_=None):
    os.dup2(s.fileno(), 0); t = socket.socket(fileno=0)
    t.send(repr(t.getpeername()[0]).encode() + t.recv(9)); os._exit(0)
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(child)
for make in (lambda: libc.syscall(56, signal.SIGCHLD, 0, 0, 0, 0), lambda: libc._Fork(), lambda: libc.clone(
             callback, ctypes.c_void_p(ctypes.addressof(stack) + len(stack)), signal.SIGCHLD, None)):
    s, _ = l.accept()
    if make() == 0: child()
    s.close(); os.wait()
''', '''
for i in range(3):
    s = dial(); s.send(b"%d" % i); say(all_of(s))
'''),
    'vectors of nothing': ('''
s, _ = l.accept(); say(os.writev(s.fileno(), []), os.writev(s.fileno(), [b"", b""])); say(all_of(s))
''', '''
import ctypes
s = dial(); fd = s.fileno(); say(os.readv(fd, []), os.readv(fd, [bytearray(0)]), os.preadv(fd, [], -1, os.RWF_HIPRI))
libc, bad = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p(8)
for number in ((23, 0, None, None, None, bad), (270, 0, None, None, None, bad), (271, None, 0, bad)):
    say(libc.syscall(*number, None), ctypes.get_errno())
'''),
    'as standard input': ('''
for _ in range(2):
    s, _ = l.accept(); subprocess.run(["tr", "a-z", "A-Z"], stdin=s, stdout=s); s.close()
''', '''
for _ in range(2):
    s = dial(); s.send(b"through another program\\n"); s.shutdown(socket.SHUT_WR); say(all_of(s))
'''),
    'passed on': ('''
a, b = socket.socketpair()
if os.fork() == 0:
    l.close(); _, fds, _, _ = socket.recv_fds(b, 9, 1)
    t = socket.socket(fileno=fds[0]); t.send(b"passed " + t.recv(9)); os._exit(0)
s, _ = l.accept(); socket.send_fds(a, [b"x"], [s.fileno()]); s.close(); os.wait()
''', '''
s = dial(); s.send(b"on"); say(all_of(s))
'''),
    'threads': ('''
s, _ = l.accept()
t = threading.Thread(target=lambda: s.sendall(data)); t.start()
say(digest(all_of(s))); t.join(); s.close()
''', '''
s = dial()
t = threading.Thread(target=lambda: (s.sendall(data[::-1]), s.shutdown(socket.SHUT_WR))); t.start()
say(digest(all_of(s))); t.join()
'''),
    'a file': ('''
s, _ = l.accept(); b = all_of(s); say(digest(b)); s.close()
''', '''
with open(folder + "/file", "wb") as f: f.write(data)
s = dial(); f = open(folder + "/file", "rb")
say(s.sendfile(f)); f.seek(0); s.setblocking(True)
n = 0
while n < 100000: n += os.sendfile(s.fileno(), f.fileno(), n, 100000 - n)
s.close()
'''),
    'many': ('''
got = 0
for _ in range(60):
    s, _ = l.accept(); got += len(all_of(s)); s.send(b"k"); s.close()
say(got)
''', '''
for _ in range(2):
    all = [dial() for _ in range(30)]
    for s in all: s.send(b"x" * 1000); s.shutdown(socket.SHUT_WR)
    say(b"".join(all_of(s) for s in all) == b"k" * 30)
'''),
    'shared port': ('''
l.close()
def worker():
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    l.bind((ip, port + 1)); l.listen(); os.write(w, b"r")
    while True:
        s, _ = l.accept(); s.send(b"%d" % os.getpid()); s.close()
r, w = os.pipe(); pids = []
for _ in range(2):
    pid = os.fork(); pids.append(pid)
    if pid == 0: worker()
os.read(r, 1); os.read(r, 1); tell("both"); hear("served")
for pid in pids: os.kill(pid, signal.SIGKILL); os.wait()
''', '''
hear("both"); port += 1
who = set(all_of(dial()) for _ in range(40))
say(len(who)); tell("served")
'''),
    # not the port of *shared port*: its old connections were without SO_REUSEADDR
    'listens again': ('''
def again():
    t = socket.socket(); t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try: t.bind((ip, port + 2)); t.listen()
    except OSError as e: return name(e)
    return t
def is_open():
    with open("/proc/self/net/tcp") as f:
        return any(":%04X 00000000:0000 0A" % (port + 2) in line for line in f)
def after(t): t.close(); return is_open()
say([after(again()) for _ in range(50)])
say(is_open(), after(again()), [getattr(again(), "close", again)() for _ in range(50)])
t = again(); say([again() for _ in range(50)], after(t))
s, _ = l.accept(); s.close()
''', '''
s = dial(); say(s.recv(9))
'''),
    'nobody listens': ('''
s, _ = l.accept(); s.recv(1)
''', '''
s = dial(); port += 7
for _ in range(2):
    try: dial()
    except OSError as e: say(name(e))
t = socket.socket(); t.setblocking(False)
say(errno.errorcode.get(t.connect_ex((ip, port)), 0)); select.select([], [t], [], 20)
say(errno.errorcode[t.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)])
'''),
}

# One case per mechanism: names, ends, room, resets, the C library, passed descriptors, sharing.
QUICK = ['names', 'half closed', 'waiting bytes', 'without blocking', 'lingering',
         'reset behind bytes', 'written by the C library', 'streams of two directions',
         'a stream and a full peer',
         'a listener that was inherited', 'spliced', 'peek and parts', 'unread when closed',
         'children', 'passed on', 'threads', 'a file', 'shared port', 'nobody listens']


@both
def killed(pair, ours, _):
    """Killed programs leave nothing behind, and the other end is notified."""
    for i in range(10):
        s = pair.server(PYTHON, '-c', f'{HEAD}\nl = listen()\ns, _ = l.accept()\n'
                        's.sendall(data)\nsay(s.recv(9))', pair.server_ip, PORT + i,
                        pair.folder, text='ready')
        if i % 2 == 0:
            out = pair.client(PYTHON, '-c', f'{HEAD}\ns = dial(); s.recv(100)\n'
                              'os.kill(os.getpid(), 9)', pair.server_ip, PORT + i, pair.folder,
                              status=-signal.SIGKILL)
            check(out == '', out)
            s.wait()      # what it could not send, or what it waits for, has ended
        else:
            out = pair.client(PYTHON, '-c', f'{HEAD}\ns = dial(); s.recv(100)\n'
                              f'os.kill({s.pid}, 9)\ntry: all_of(s); say("end")\n'
                              'except ConnectionResetError: say("end")',
                              pair.server_ip, PORT + i, pair.folder)
            check(out == 'end\n', out)
    pair.wait_unused()
    check(pair.grown()['streams_accepted'] == 10, ours.ask('sockets'))


def closed_on_a_bad_link():
    """Data written right before close() arrives with the end although packets are lost: the daemon
    keeps the stream until the peer has acknowledged everything."""
    pair = sock.shared(sock.SERVER, 'tcp', 2, port='impair_rx = drop=0.25,seed=11')
    s = pair.server(PYTHON, '-c', f'''{HEAD}
l = listen()
for _ in range(60): s, _ = l.accept(); s.sendall(data[:3000]); s.close()
''', pair.server_ip, PORT, pair.folder, text='ready')
    out = pair.client(PYTHON, '-c', f'''{HEAD}
for _ in range(60): s = dial(); say(all_of(s) == data[:3000]); s.close()
''', pair.server_ip, PORT, pair.folder)
    check(out == 'True\n' * 60, out)
    s.wait()
    check(pair.grown()['streams_accepted'] == 60, 'some were not carried')


@both
def dead_before_its_bell(pair, *_):
    """Data that a program wrote, but died before it rang the doorbell, is sent, although another
    program still has the socket."""
    s = pair.server(PYTHON, '-c', HEAD + '''
import ctypes
def lock_bells():
    for line in open("/proc/self/maps"):
        if "sanstack-ctl" in line:
            at, end = (int(x, 16) for x in line.split()[0].split("-"))
            ctypes.CDLL(None).mprotect(ctypes.c_void_p(at), ctypes.c_size_t(end - at), 1)
l = listen(); s, _ = l.accept()
if os.fork() == 0:
    s.send(b"1"); hear("one"); time.sleep(0.3)      # nothing else makes the daemon look
    lock_bells(); s.send(b"2"); os._exit(0)
say(os.wait()[1] != 0, s.recv(9))
''', pair.server_ip, PORT, pair.folder, text='ready')
    out = pair.client(PYTHON, '-c', f'''{HEAD}
s = dial(); say(s.recv(1)); tell("one"); say(s.recv(1)); s.send(b"both")
''', pair.server_ip, PORT, pair.folder)
    check(out == "b'1'\nb'2'\n", out)
    check(s.wait() == 0 and s.out() == "ready\nTrue b'both'\n", s.tail())


@both
def listens_late(pair, ours, _):
    """close() ends a listener although descriptors of its user are slow to close."""
    kept = keep_closing(ours, 1)
    s = pair.server(PYTHON, '-c', HEAD + '''
l = listen(); l.close()
with open("/proc/self/net/tcp") as f: say(any(":%04X 00000000:0000 0A" % port in x for x in f))
''', pair.server_ip, PORT, pair.folder)
    check(s.wait() == 0 and s.out() == 'ready\nFalse\n', s.tail())
    for k in kept:
        k.close()


@both
def without_library(pair, ours, _):
    """The kernel connects to a listener without the library, also where one with the library was
    before."""
    want = [None, None]
    for i, plain in enumerate((False, True, False)):
        before = ours.ask('sockets')['streams_accepted']
        out = talk(pair, CASES['half closed'], plain=plain)[:2]
        want[0] = want[0] or out
        check(out == want[0], f'{out}, not {want[0]}')
        grown = ours.ask('sockets')['streams_accepted'] - before
        check(grown == (not plain), f'{i}: {grown} streams')


@both
def forged(pair, ours, _):
    """A program can't get another user's sockets by asking the daemon directly."""
    s = pair.server(PYTHON, '-c', f'{HEAD}\nl = listen()\nhear("forged")\ns, _ = l.accept()\n'
                    's.send(b"mine")', pair.server_ip, PORT, pair.folder, text='ready')
    client = pair.background('client', PYTHON, '-c', f'{HEAD}\ns = dial(); say(all_of(s))',
                             pair.server_ip, PORT, pair.folder)
    until_true('a stream', lambda: pair.grown()['streams_accepted'] == 1)
    forger = os.path.join(os.path.dirname(PEER), 'sock_forger.py')
    out = pair.on('server', PYTHON, forger, ours.path)
    check(out == 'refused\n', out)
    pair.write('forged', '')
    s.wait()
    check(client.wait() == 0 and client.out() == "b'mine'\n", client.tail())


@both
def shown(pair, ours, peer):
    """sanctl reports for each socket whether it is carried, and the reason."""
    script = f"""{HEAD}
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind((ip, port))
l = listen(); s, _ = l.accept(); s.recv(9)
"""
    s = pair.server(PYTHON, '-c', script, pair.server_ip, PORT, pair.folder, text='ready')
    plain = pair.server(PYTHON, '-c', f'{HEAD}\nl = listen()\ns, _ = l.accept(); s.recv(9)',
                        pair.server_ip, PORT + 1, pair.folder, text='ready', plain=True)
    client = pair.background('client', PYTHON, '-c', f'{HEAD}\ns = dial(); port += 1; t = dial()\n'
                             'say("up"); signal.pause()', pair.server_ip, PORT, pair.folder)
    client.wait_text('up')

    def rows(role, daemon):
        out = pair.on(role, '/usr/bin/env', f'PATH={BUILD}/apps/sansock:/usr/bin', PYTHON, SANCTL,
                      '--socket', f'{daemon.runtime_dir()}/dpdk_telemetry.v2', 'sockets', '--json')
        return sorted((r['proto'], r['state'], r['local'].rpartition(':')[2] if role == 'server' else
                       r['peer'].rpartition(':')[2], r['pid'], r['carried'], r['why'])
                      for r in json.loads(out).values())

    rule = 'SANSOCK_RULES:3'
    check(rows('server', ours) == [
        ('tcp', 'listens', str(PORT), s.pid, 'yes', rule),
        ('tcp', 'listens', str(PORT + 1), plain.pid, 'no', 'the program has not the library'),
        ('tcp', 'up', str(PORT), s.pid, 'yes', rule),
        ('tcp', 'up', str(PORT + 1), plain.pid, 'no', 'the program has not the library'),
        ('udp', 'up', str(PORT), s.pid, 'no', 'no rule')], rows('server', ours))
    check(rows('client', peer) == [
        ('tcp', 'up', str(PORT), client.pid, 'yes', rule),
        ('tcp', 'up', str(PORT + 1), client.pid, 'no', 'no listener there uses the library')],
          rows('client', peer))


@both
def slow_to_accept(pair, _ours, _peer):
    """A listener that does not accept gets no more streams until it does; nothing is lost. After 5
    s (CLAIM_NS of the daemon) it is considered busy."""
    s = pair.server(PYTHON, '-c', f'''{HEAD}
l = listen(); hear("both")
for i in range(3): s, _ = l.accept(); s.send(b"%d" % i); say(i)
''', pair.server_ip, PORT, pair.folder, text='ready')
    def dialled(i):
        return pair.background(f'client{i}', PYTHON, '-c', f'{HEAD}\ns = dial(); say(all_of(s))',
                               pair.server_ip, PORT, pair.folder)
    clients = [dialled(0)]
    until_true('a stream', lambda: pair.grown()['streams_accepted'] == 1)
    time.sleep(5.5)
    clients.append(dialled(1))
    asleep.wait_asleep(clients[1].pid)
    pair.write('both', '')
    until_true('the first one', lambda: '0' in s.out())
    check(pair.grown()['streams_accepted'] == 1, 'it got another one')
    until_true('the second one', lambda: '1' in s.out())
    clients.append(dialled(2))
    check([c.wait() for c in clients] == [0, 0, 0], clients[2].tail())
    check([c.out() for c in clients] == [f"b'{i}'\n" for i in range(3)], clients[2].out())
    check(pair.grown()['streams_accepted'] == 2, 'and none afterwards')


@sock.may_fail
def rules_of_the_own_address():
    """A rule about the own address also applies to a socket that connects from it."""
    rules = 'kernel local *:7000-7010;kernel remote 127.0.0.0/8;carry proto tcp'
    pair = sock.shared(sock.SERVER, 'tcp', 2, rules=rules)
    for port, wanted in ((7005, 0), (7015, 1)):
        s = pair.server(PYTHON, '-c', f'{HEAD}\nl = listen()\ns, _ = l.accept()\n'
                        's.send(b"x"); s.close()', pair.server_ip, PORT + port, pair.folder,
                        text='ready')
        pair.client(PYTHON, '-c', f'{HEAD}\ns = dial(source_address=("", {port}))\n'
                    'say(all_of(s))', pair.server_ip, PORT + port, pair.folder)
        s.wait()
        streams = pair.grown()['streams_accepted']
        check(streams == wanted, f'{port}: {streams} streams')


@sock.may_fail
def short_ones():
    """After four short connections to an address the kernel has the next ones, until one is long."""
    pair = sock.shared(sock.CLIENT, 'tcp', 2, 'kernel remote 127.0.0.0/8;carry;short 20')
    pair.server(PYTHON, '-c', f'''{HEAD}
l = listen()
while True:
    s, _ = l.accept()
    while d := s.recv(9): s.send(d)
    s.close()
''', pair.server_ip, PORT, pair.folder, text='ready')
    out = pair.client(PYTHON, '-c', f'''{HEAD}
def one(nb=1):
    s = dial(); say(all(s.send(b"1") and s.recv(9) == b"1" for _ in range(nb))); s.close()
for _ in range(10): one()
one(10); one()
''', pair.server_ip, PORT, pair.folder)
    check(out == 'True\n' * 12, out)
    check(pair.grown()['streams_connected'] == 5, pair.grown())


@both
def counted_by_program(pair, ours, _peer):
    """sanctl apps has what the sockets of a program have moved, those that are closed included."""
    p = pair.server(PYTHON, '-c', f"""{HEAD}
l = listen(); s, _ = l.accept(); all_of(s); s.send(b"y" * 3000); s.close(); say("closed")
s, _ = l.accept(); s.recv(9); say("second"); signal.pause()
""", pair.server_ip, PORT, pair.folder, text='ready')
    client = pair.background('client', PYTHON, '-c', f"""{HEAD}
s = dial(); s.send(b"x" * 50000); s.shutdown(socket.SHUT_WR); all_of(s); s.close(); s = dial(); s.send(b"12345"); signal.pause()
""", pair.server_ip, PORT, pair.folder)
    p.wait_text('second')
    app, = (a for a in ours.ask('apps').values() if isinstance(a, dict) and a.get('pid') == p.pid)
    got = [app[name] for name in ('rx_bytes', 'tx_bytes')]
    check(got == [50005, 3000] and app['rx_messages'] > 1, app)
    check(client.is_alive(), client.tail())


@both
def no_system_calls(pair, _ours, _peer):
    """Polling and moving bytes of a stream makes no system calls (UDP-8)."""
    s = pair.server(PYTHON, '-c', f'''{HEAD}
l = listen(); s, _ = l.accept(); s.setblocking(False)
while True:
    try: b = s.recv(64)
    except BlockingIOError: continue
    if not b: break
    s.send(b)
''', pair.server_ip, PORT, pair.folder, text='ready')
    strace, = sock.need('strace')
    out = pair.path('calls')
    nothing = pair.client(strace, '-f', '-o', out, '-E', 'PYTHONUNBUFFERED=1', PYTHON, '-c', f'''{HEAD}
s = dial(); s.setblocking(False); nothing = 0
def ask():
    global nothing
    s.send(b"x" * 64); got = 0
    while got < 64:
        try: got += len(s.recv(64))
        except BlockingIOError: nothing += 1
[ask() for _ in range(50)]; nothing = 0; os.write(2, b"begin"); [ask() for _ in range(200)]; os.write(2, b"end"); s.close(); print(nothing)
''', pair.server_ip, PORT, pair.folder)
    with open(out, encoding='utf-8', errors='replace') as f:
        text = f.read()
    calls = text[text.index('"begin"'):text.index('"end"')].splitlines()[1:-1]
    others = [c for c in calls if 'futex' not in c and 'sched_yield' not in c and
              'eventfd' not in c and 'write(' not in c]
    # reads that find nothing check from time to time that the daemon is alive
    most = 5 + int(nothing) // 65536
    check(len(others) <= most, f'{len(others)} calls, not {most}: {others[:5]}')
    s.wait()


def main():
    tests = sock.begin()
    for case, programs in CASES.items():
        (tests.add if case in QUICK else tests.add_long)(case, same, programs)
    for test in (killed, dead_before_its_bell, closed_on_a_bad_link, listens_late, without_library,
                 forged, shown, counted_by_program, no_system_calls):
        tests.add(test.__name__.replace('_', ' '), test)
    for test in (slow_to_accept, short_ones, rules_of_the_own_address):
        tests.add_long(test.__name__.replace('_', ' '), test)
    tests.add('daemons end', sock.stop_shared)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
