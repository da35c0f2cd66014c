#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""epoll sets with carried sockets report the same as on the kernel, for any process that waits.
(UDP-6, UDP-8, AFC-19)
"""

import sys

import sock
from e2e import check, until_true
from sock import PYTHON
from sock_talk import HEAD, PORT, both, same

# The output of two programs, by name: see sock_talk.py.
CASES = {
    'epoll': ('''
s, _ = l.accept()
for _ in range(5): s.send(b"x" * 10); s.recv(1)
s.close()
''', '''
s = dial(); ep = select.epoll()
ep.register(s, select.EPOLLIN | select.EPOLLRDHUP)
say(ep.poll(20)[0][1], ep.poll(0)[0][1], s.recv(4), ep.poll(0)[0][1], s.recv(9), ep.poll(0.05))
ep.modify(s, select.EPOLLIN | select.EPOLLET); s.send(b"1")
say(ep.poll(20)[0][1], ep.poll(0.05), s.recv(3), ep.poll(0.05), s.recv(99))
ep.modify(s, select.EPOLLIN | select.EPOLLONESHOT); s.send(b"1")
say(ep.poll(20)[0][1], ep.poll(0.05), s.recv(99))
ep.modify(s, select.EPOLLIN | select.EPOLLOUT); say(ep.poll(0)[0][1])
ep.modify(s, select.EPOLLIN | select.EPOLLRDHUP); s.send(b"111")
say(s.recv(10, socket.MSG_WAITALL)); p = select.poll(); p.register(s, select.POLLRDHUP); p.poll(20000)
say(ep.poll(20)[0][1], s.recv(99), s.recv(99))
'''),
    'ends in epoll': ('''
for _ in range(2):
    s, _ = l.accept(); s.send(b"bytes"); asleep("client"); s.close()
''', '''
s = dial(); ep = select.epoll(); ep.register(s, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
p = select.poll(); p.register(s, select.POLLRDHUP); p.poll(20000)
say(ep.poll(20)[0][1], s.recv(9), s.recv(9), ep.poll(0.05)); s.close()
s = dial(); s.recv(5); say(s.recv(5)); ep.register(s, select.EPOLLIN | select.EPOLLRDHUP)
say(ep.poll(20)[0][1], ep.poll(0)[0][1]); ep.modify(s, select.EPOLLRDHUP); say(ep.poll(0)[0][1])
p = select.poll(); p.register(s, select.POLLIN | select.POLLRDHUP); say(p.poll(0)[0][1])
'''),
    'many in a set': ('''
ep = select.epoll(); ep.register(l, select.EPOLLIN); r, w = os.pipe(); ep.register(r, select.EPOLLIN)
conns, waits, got, pipes = {}, {}, 0, 0
while got < 41:
    for fd, e in ep.poll(20):
        if fd == l.fileno():
            s, _ = l.accept(); s.setblocking(False); conns[s.fileno()] = s; waits[s.fileno()] = b""
            ep.register(s, select.EPOLLIN); os.write(w, b"x")
        elif fd == r: pipes += len(os.read(r, 9))
        elif e & select.EPOLLOUT:
            conns[fd].send(waits[fd]); ep.modify(fd, select.EPOLLIN)
        else:
            b = conns[fd].recv(99)
            if b: waits[fd] = b[::-1]; ep.modify(fd, select.EPOLLIN | select.EPOLLOUT)
            else: got += 1; ep.unregister(fd); conns.pop(fd).close()
say(got, pipes, len(conns)); say(ep.poll(0.05))
''', '''
import random
random.seed(1); all = [dial() for _ in range(41)]; ep = select.epoll()
for s in all: ep.register(s, select.EPOLLIN)
by = {s.fileno(): s for s in all}; sums = 0
for turn in range(30):
    some = random.sample(all, 1 + turn)
    for i, s in enumerate(some): s.send(b"%d" % (i + 100))
    left = len(some)
    while left:
        for fd, e in ep.poll(20, 3): sums += int(by[fd].recv(99)[::-1]); left -= 1
say(sums, ep.poll(0.05)); began = time.time(); ep.poll(0.2); say(time.time() - began > 0.19)
for s in all[:20]: s.close()
all[20].send(b"last"); say([fd == all[20].fileno() for fd, _ in ep.poll(20)], all[20].recv(9))
'''),
    'a set with others': ('''
pairs = [l.accept()[0] for _ in range(4)]; ep = select.epoll()
for s in pairs: ep.register(s, select.EPOLLIN)
pairs[0].send(b"0"); p = select.poll(); p.register(ep, select.POLLIN); say("nested", p.poll(20000)[0][1], ep.poll(20)[0][1])
outer = select.epoll(); pairs[0].recv(9); outer.register(ep, select.EPOLLIN); say(outer.poll(0.05))
pairs[0].send(b"1"); say("in a set", outer.poll(20)[0][1], pairs[0].recv(9), outer.poll(0.05))
again = select.epoll.fromfd(os.dup(ep.fileno())); pairs[1].send(b"2")
say("again", [fd == pairs[1].fileno() for fd, _ in again.poll(20)], pairs[1].recv(9)); again.close()
''', '''
all = [dial() for _ in range(4)]
for i in (0, 0, 1): all[i].recv(1); asleep("server"); all[i].send(b"data")
all_of(all[3])
'''),
    'a set of two threads': ('''
pairs = [l.accept()[0] for _ in range(4)]; ep = select.epoll(); got = []; other = threading.Event()
for s in pairs: ep.register(s, select.EPOLLIN)
def work():
    while True:
        for fd, _ in ep.poll(-1, 1):
            s = next(s for s in pairs if s.fileno() == fd)
            try: b = s.recv(1, socket.MSG_DONTWAIT)
            except BlockingIOError: continue
            if b == b"q": return
            if b == b"w": other.wait()
            if b == b"o": other.set()
            got.append(b); s.send(b)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start(); wait_thread(t)
pairs[0].send(b"go")
for t in threads: t.join()
say(sorted(got))
''', '''
all = [dial() for _ in range(4)]; all[0].recv(2)
for turn in range(10):
    for s in all: s.send(b"%d" % turn)
    for s in all: s.recv(1)
all[0].send(b"w"); asleep("server"); all[1].send(b"o"); all[0].recv(1); all[1].recv(1)
all[0].send(b"q"); all[1].send(b"q"); all_of(all[3])
'''),
    'a thread that leaves another one': ('''
s, _ = l.accept(); ep = select.epoll(); ep.register(s, select.EPOLLIN)
short = threading.Thread(target=lambda: say("short", ep.poll(0.5)))
long = threading.Thread(target=lambda: say("long", ep.poll()[0][1], s.recv(9)))
short.start(); wait_thread(short); long.start(); wait_thread(long); short.join(); s.send(b"go"); long.join()
''', '''
s = dial(); s.recv(2); asleep("server"); s.send(b"x"); all_of(s)
'''),
    'a thread that waits first': ('''
for _ in range(3): s, _ = l.accept(); s.recv(2); s.send(b"data"); all_of(s)
''', '''
for how in ("in", "out", "poll"):
    ep = select.epoll(); out = []; p = select.poll(); p.register(ep, select.POLLIN)
    t = threading.Thread(target=lambda: out.append(p.poll(20000) if how == "poll" else ep.poll(20)))
    t.start(); wait_thread(t); s = dial()
    ep.register(s, select.EPOLLOUT if how == "out" else select.EPOLLIN); s.send(b"go"); t.join()
    say(how, [(fd == (ep if how == "poll" else s).fileno(), e) for fd, e in out[0]])
    s.recv(9); s.close()
'''),
    'numbers that are used again': ('''
s, _ = l.accept(); s.send(b"data"); all_of(s); a, _ = l.accept(); b, _ = l.accept()
b.recv(2); asleep("client"); b.send(b"data"); all_of(b)
''', '''
s = socket.socket(); ep = select.epoll(); ep.register(s, select.EPOLLIN); n = ep.fileno(); ep.close()
ep = select.epoll(); say(ep.fileno() == n); s.connect((ip, port))
select.select([s], [], []); say(ep.poll(0), s.recv(9)); s.close()
a = dial(); n = a.fileno(); p = select.poll(); p.register(n, select.POLLIN)
t = threading.Thread(target=lambda: p.poll(600)); t.start(); wait_thread(t); a.close(); b = dial()
say(b.fileno() == n); t.join(); b.send(b"go"); say(b.recv(9))
'''),
    'another number over it': ('''
s, _ = l.accept(); s.send(b"data"); all_of(s)
''', '''
s = dial(); ep = select.epoll(); ep.register(s, select.EPOLLOUT | select.EPOLLIN); say(len(ep.poll(1)))
d = os.dup(s.fileno()); r, w = os.pipe(); os.dup2(r, s.fileno()); c = time.process_time()
ep.poll(1); say(time.process_time() - c > 0.5)
'''),
    'a child of vfork': ('''
s, _ = l.accept(); os.dup2(s.fileno(), 0); ep = select.epoll(); ep.register(0, select.EPOLLIN)
subprocess.run(["true"], stdin=subprocess.DEVNULL); s.send(b"go"); say(ep.poll(20), s.recv(9))
''', '''
s = dial(); s.recv(2); s.send(b"x"); all_of(s)
'''),
    'changed as it is': ('''
s, _ = l.accept(); all_of(s)
''', '''
s = dial(); ep = select.epoll(); ev = select.EPOLLIN | select.EPOLLOUT | select.EPOLLET
ep.register(s, ev); say(ep.poll(20)[0][1]); here = threading.current_thread()
threading.Thread(target=lambda: (wait_thread(here), ep.modify(s, ev))).start()
say([e for _, e in ep.poll()])
'''),
    'two children': ('''
pairs = [l.accept()[0] for _ in range(2)]; ep = select.epoll(); ep.register(pairs[0], select.EPOLLIN)
pairs[0].send(b"go"); say(len(ep.poll(20)), pairs[0].recv(9)); r, w = os.pipe(); one = os.fork()
if one == 0: # uses the parent's
    for _ in range(2):
        got = ep.poll(20); os.write(w, b"x")
        say("child", [fd == pairs[0].fileno() for fd, _ in got]); pairs[0].recv(9); pairs[0].send(b"go")
    os._exit(0)
pairs[0].send(b"go"); os.read(r, 1); other = os.fork()
if other == 0: # has one of its own
    ep.close(); ep = select.epoll(); ep.register(pairs[1], select.EPOLLIN); ep.poll(0); os._exit(0)
os.waitpid(other, 0); ep.modify(pairs[0], select.EPOLLIN | select.EPOLLPRI); ep.poll(0.2)
os.waitpid(one, 0)
''', '''
all = [dial() for _ in range(2)]
for _ in range(4): all[0].recv(2); asleep("server"); all[0].send(b"1")
'''),
    'changed by the parent': ('''
pairs = [l.accept()[0] for _ in range(2)]; ep = select.epoll(); ep.register(pairs[0], select.EPOLLIN)
pairs[0].send(b"go"); say(len(ep.poll(20)), pairs[0].recv(9)); r, w = os.pipe(); pid = os.fork()
for i in range(2 if pid == 0 else 0):
    say("child", [fd == pairs[i].fileno() for fd, _ in ep.poll(20)]); pairs[i].recv(9); os.write(w, b"x")
if pid == 0: os._exit(0)
pairs[0].send(b"go"); os.read(r, 1); ep.modify(pairs[0], select.EPOLLIN | select.EPOLLRDHUP)
ep.register(pairs[1], select.EPOLLIN); pairs[1].send(b"go"); os.waitpid(pid, 0)
''', '''
all = [dial() for _ in range(2)]
for s in (all[0], all[0], all[1]): s.recv(2); asleep("server"); s.send(b"1")
all_of(all[0])
'''),
    'a set and a child': ('''
pairs = [l.accept()[0] for _ in range(3)]; ep = select.epoll()
for s in pairs[:2]: ep.register(s, select.EPOLLIN)
pairs[0].send(b"go"); say(ep.poll(20)[0][0] == pairs[0].fileno(), pairs[0].recv(9)); pairs[0].send(b"on")
if os.fork() == 0:
    ep.register(pairs[2], select.EPOLLIN); got = 0
    while got < 3:
        for fd, _ in ep.poll(20):
            s = next(s for s in pairs if s.fileno() == fd); s.send(b"child " + s.recv(9)); got += 1
    os._exit(0)
os.wait(); pairs[1].send(b"parent"); say(ep.poll(20)[0][0] == pairs[1].fileno(), pairs[1].recv(9))
''', '''
all = [dial() for _ in range(3)]; all[0].recv(9); asleep("server"); all[0].send(b"a"); all[0].recv(9)
for s in all: asleep("server"); s.send(b"b"); say(s.recv(9))
say(all[1].recv(9)); asleep("server"); all[1].send(b"c"); all_of(all[0])
'''),
    'nothing came': ('''
conns = [l.accept()[0] for _ in range(5)]; all_of(conns[0])
''', '''
def quiet(how):
    s = dial(); ep, outer = select.epoll(), select.epoll()
    ep.register(s, select.EPOLLIN | (select.EPOLLEXCLUSIVE if how == 1 else 0))
    if how == 2: outer.register(ep, select.EPOLLIN); say(outer.poll(0.1))
    elif how == 3: say(select.select([ep], [], [], 0.1)[0])
    elif how == 4 and os.fork() == 0: say(ep.poll(0.1)); os._exit(0)
    elif how == 4: os.wait()
    say(ep.poll(0.1)); return s
held = [quiet(how) for how in range(5)]
'''),
    'a large set': ('''
ep = select.epoll(); conns = {}
for _ in range(270):
    s, _ = l.accept(); conns[s.fileno()] = s; ep.register(s, select.EPOLLIN)
s.send(b"all"); got = 0
while got < 300:
    for fd, _ in ep.poll(20): b = conns[fd].recv(9); got += len(b); conns[fd].send(b)
say(got)
''', '''
all = [dial() for _ in range(270)]; say(all[-1].recv(3))
for i in range(300): s = all[i * 7 % 270]; s.send(b"x"); s.recv(1)
'''),
    'changes': ('''
ep = select.epoll(); conns = [l.accept()[0] for _ in range(3)]; a, b, c = conns
for s in conns: ep.register(s, select.EPOLLIN)
for what in (lambda: ep.register(a, 1), lambda: ep.unregister(l), lambda: ep.modify(l, 1)):
    try: what()
    except OSError as e: say(name(e))
a.send(b"go"); n = 0
while n < 3: n += sum(len(x.recv(9)) for x in conns for fd, _ in ep.poll(20) if fd == x.fileno())
ep.unregister(a); ep.modify(b, 0); b.send(b"go")
for s in conns: select.select([s], [], [])      # all have something
say(sorted(e for _, e in ep.poll(20)), len(ep.poll(0))); ep.register(a, select.EPOLLIN); ep.modify(b, select.EPOLLIN)
say(len(ep.poll(20)), len(ep.poll(0)), a.recv(9), b.recv(9), c.recv(9)); c.close(); say(ep.poll(0.05))
a.send(b"go"); d, _ = l.accept(); ep.register(d, select.EPOLLIN)
say([fd == d.fileno() for fd, _ in ep.poll(20)], d.recv(9))
ep.modify(a, select.EPOLLOUT); say([e for _, e in ep.poll(20)]); ep.close()
e2 = select.epoll(); e2.register(a, select.EPOLLIN); e2.register(b, select.EPOLLIN); b.send(b"go")
say([fd == a.fileno() for fd, _ in e2.poll(20)], a.recv(9))
''', '''
all = [dial() for _ in range(3)]; all[0].recv(2)
for s in all: s.send(b"1")
all[1].recv(2)
for s in all: s.send(b"2")
all[0].recv(2); t = dial(); asleep("server"); t.send(b"new"); all[1].recv(2); all[0].send(b"3")
all_of(all[0])
'''),
    'turns': ('''
conns = [l.accept()[0] for _ in range(7)]; ep = select.epoll(); r, w = os.pipe(); os.write(w, b"x")
for s in conns: ep.register(s, select.EPOLLIN)
for s in conns: s.recv(1, socket.MSG_PEEK)
seen = set(); [seen.update(fd for fd, _ in ep.poll(20, 2)) for _ in range(30)]; say(len(seen))
ep.register(r, select.EPOLLIN)
for most in (1, 2, 100):
    seen = set(); [seen.update(fd for fd, _ in ep.poll(20, most)) for _ in range(300)]
    say(len(seen), r in seen)
for s in conns: s.recv(1)
''', '''
all = [dial() for _ in range(7)]
for s in all: s.send(b"x")
all_of(all[0])
'''),
    'a busy set with a pipe': ('''
ep = select.epoll(); s, _ = l.accept(); r, w = os.pipe(); n = 0
for x in (s, r): ep.register(x, select.EPOLLIN)
while True:
    fds = [fd for fd, _ in ep.poll(20)]
    if r in fds: break
    s.send(s.recv(9)); n += 1
    if n == 1000: os.write(w, b"pipe")
say(os.read(r, 9)); s.close()
''', '''
s = dial()
try:
    while True:
        s.send(b"x")
        if not s.recv(9): break
except OSError: pass
'''),
    'time and signals': ('''
ep = select.epoll(); s, _ = l.accept(); ep.register(s, select.EPOLLIN)
began = time.time(); say(ep.poll(0.3)); say(time.time() - began > 0.29)
class Rang(Exception): pass
def rang(*_): raise Rang
signal.signal(signal.SIGALRM, rang)
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try: ep.poll()
    except Rang: say("rang")
s.send(b"go"); say(ep.poll()[0][1], s.recv(9))
''', '''
s = dial(); s.recv(9); asleep("server"); s.send(b"x"); all_of(s)
'''),
    'only the end': ('''
s, _ = l.accept(); ep = select.epoll(); ep.register(s, select.EPOLLRDHUP); s.send(b"go")
say(ep.poll(20)[0][1], all_of(s)); s.close()
s, _ = l.accept(); ep.register(s, 0); s.send(b"go"); select.select([s], [], [])
say(len(ep.poll(0.05)), s.recv(9))
''', '''
s = dial(); s.recv(9); s.send(b"x"); n = array.array("i", [1])
while n[0]: fcntl.ioctl(s, termios.TIOCOUTQ, n)         # it is there
asleep("server"); s.shutdown(socket.SHUT_WR); all_of(s)
s = dial(); s.recv(9); s.send(b"x"); all_of(s)
'''),
    'a set within a set': ('''
outer, ep = select.epoll(), select.epoll(); outer.register(ep, select.EPOLLIN)
s, _ = l.accept(); ep.register(s, select.EPOLLIN); s.send(b"go")
say(len(outer.poll(20)), ep.poll(0)[0][1], s.recv(9), outer.poll(0.05))
ep = select.epoll(); select.select([ep], [], [], 0); ep.register(s, select.EPOLLIN); s.send(b"go")
say(len(select.select([ep], [], [], 20)[0]), ep.poll(0)[0][1], s.recv(9))
''', '''
s = dial()
for _ in range(2): s.recv(9); asleep("server"); s.send(b"x")
all_of(s)
'''),
    'a set that a child uses': ('''
pairs = [l.accept()[0] for _ in range(3)]; ep = select.epoll()
for s in pairs: ep.register(s, select.EPOLLIN)
def serve(who, nb):
    while nb:
        for fd, _ in ep.poll(20):
            s = next(s for s in pairs if s.fileno() == fd); s.send(who + s.recv(9)); nb -= 1
pairs[0].send(b"go"); serve(b"parent ", 2); pid = os.fork()
if pid == 0: serve(b"child ", 3); os._exit(0)
os.wait(); pairs[0].send(b"go"); serve(b"parent ", 3)
if os.fork() == 0:
    for s in pairs: s.close()
    ep.close(); os._exit(0)
os.wait(); pairs[0].send(b"go"); serve(b"again ", 3)
r, w = os.pipe()
if os.fork() == 0: os.read(r, 1); serve(b"side ", 1); os._exit(0)
pairs[0].send(b"go"); serve(b"parent ", 1); os.write(w, b"x"); os.wait(); pairs[0].send(b"go"); serve(b"last ", 2)
''', '''
all = [dial() for _ in range(3)]
for i in (0, 1): all[i].send(b"1")
say(all[0].recv(2)); say(sorted(all[i].recv(99) for i in (0, 1)))
for turn in range(2):
    for s in all: s.send(b"2"); say(s.recv(99))
    say(all[0].recv(2))
for s in all: s.send(b"3"); say(s.recv(99))
say(all[0].recv(2)); all[1].send(b"4"); say(all[1].recv(99)); all[2].send(b"4"); say(all[2].recv(99))
say(all[0].recv(2))
for i in (1, 2): all[i].send(b"5"); say(all[i].recv(99))
'''),
    'a set that is sent': ('''
s, _ = l.accept(); ep = select.epoll(); ep.register(s, select.EPOLLIN); here, there = socket.socketpair()
s.send(b"go"); say(ep.poll(20)[0][1], s.recv(9)); pid = os.fork()
if pid == 0:
    ep.close(); _, fds, _, _ = socket.recv_fds(there, 9, 1); ep = select.epoll.fromfd(fds[0])
    say(ep.poll(20)[0][0] == s.fileno(), s.recv(9)); os._exit(0)
socket.send_fds(here, [b"x"], [ep.fileno()]); wait_asleep(pid); s.send(b"go"); os.wait()
s.send(b"go"); say(ep.poll(20)[0][1], s.recv(9))
''', '''
s = dial()
for i in range(3): s.recv(9); asleep("server"); s.send(b"%d" % i)
all_of(s)
'''),
    'room': ('''
for gives in (False, True):
    s, _ = l.accept(); s.setblocking(False); ep = select.epoll()
    if gives: select.select([ep], [], [], 0)
    ep.register(s, select.EPOLLOUT); left, refused = data * 3, 0
    while left:
        for _ in ep.poll():
            try: left = left[s.send(left[:16384]):]
            except BlockingIOError: refused += 1
    say(gives, refused <= 3); s.close()
''', '''
for _ in range(2): s = dial(); say(digest(all_of(s))); s.close()
'''),
    'once': ('''
s, _ = l.accept(); ep = select.epoll(); once = select.EPOLLIN | select.EPOLLONESHOT
ep.register(s, once); s.send(b"go"); say(ep.poll()[0][1], ep.poll(0.05), s.recv(9)); s.send(b"go")
select.select([s], [], []); say(ep.poll(0.05)); ep.modify(s, once | select.EPOLLOUT); say(ep.poll()[0][1], ep.poll(0.05))
s.recv(9); ep.modify(s, once); s.send(b"go"); say(ep.poll()[0][1], ep.poll(0.05))
ep.modify(s, once | select.EPOLLET); say(ep.poll()[0][1], ep.poll(0.05), s.recv(9)); s.send(b"end")
p = select.poll(); p.register(s, select.POLLRDHUP); p.poll(); say(ep.poll(0.05)); select.select([ep], [], [], 0); say(ep.poll(0.05))
ep.modify(s, once); say(len(ep.poll()))
''', '''
s = dial()
for _ in range(3): s.recv(2); asleep("server"); s.send(b"x")
s.recv(3)
'''),
    'one edge each': ('''
s, _ = l.accept(); ep = select.epoll(); ep.register(s, select.EPOLLIN | select.EPOLLET)
for _ in range(3): s.send(b"go"); say(ep.poll()[0][1], ep.poll(0.05), s.recv(1), ep.poll(0.05))
ep.modify(s, select.EPOLLIN | select.EPOLLET); say(ep.poll()[0][1], s.recv(99), ep.poll(0.05))
ep.modify(s, select.EPOLLOUT | select.EPOLLET); say(ep.poll()[0][1], ep.poll(0.05)); s.send(b"end")
ep.modify(s, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET); say(ep.poll()[0][1], ep.poll(0.05))
''', '''
s = dial()
for _ in range(3): s.recv(2); asleep("server"); s.send(b"12")
s.recv(3); asleep("server"); s.shutdown(socket.SHUT_WR); s.recv(1)
'''),
    'edges': ('''
s, _ = l.accept(); s.setblocking(False); ep = select.epoll()
ep.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET); got, left = [], data
while True:
    for _, e in ep.poll(20):
        try:
            while e & select.EPOLLIN and (b := s.recv(70000)): got.append(b)
        except BlockingIOError: pass
        try:
            while e & select.EPOLLOUT and left: left = left[s.send(left[:90000]):]
        except BlockingIOError: pass
    if e & select.EPOLLRDHUP and not left: break
got.append(all_of(s)); say(digest(b"".join(got)))
''', '''
s = dial(); t = threading.Thread(target=lambda: s.sendall(data) or s.shutdown(socket.SHUT_WR)); t.start()
say(digest(all_of(s, len(data)))); t.join()
'''),
}

# One case per mechanism: kinds of events, other descriptors, threads, children, passed sets, room.
QUICK = ['epoll', 'ends in epoll', 'many in a set', 'a set with others', 'a set of two threads',
         'a thread that waits first', 'numbers that are used again', 'two children', 'changes',
         'a busy set with a pipe', 'time and signals', 'a set within a set', 'a set that is sent',
         'room', 'once', 'one edge each', 'edges']


@both
def daemon_gone(pair, ours, _peer):
    """Any program that waits for a socket is notified when its daemon dies."""
    script = f'''{HEAD}
l = listen(); a, _ = l.accept(); b, _ = l.accept(); ours, its = select.epoll(), select.epoll()
ours.register(a, select.EPOLLIN); its.register(b, select.EPOLLIN); select.select([its], [], [], 0); say("has both")
for ep, s in ((ours, a), (its, b)):
    say(len(ep.poll(30)))
    try: say(s.recv(9))
    except OSError as e: say(name(e))
'''
    s = pair.server(PYTHON, '-c', script, pair.server_ip, PORT, pair.folder, text='ready')
    client = pair.background('client', PYTHON, '-c', f'{HEAD}\nall = [dial(), dial()]\nsay("up")\n'
                             'signal.pause()', pair.server_ip, PORT, pair.folder)
    client.wait_text('up')
    until_true('streams', lambda: pair.grown()['streams_accepted'] == 2)
    s.wait_text('has both')
    ours.process.popen.kill()
    s.wait()
    said = s.out().split('\n')[2:-1]
    check(len(said) == 4 and said[0] == said[2] == '1' and said[1] == said[3], said)
    sock.forget_shared()


def main():
    tests = sock.begin()
    for case, programs in CASES.items():
        (tests.add if case in QUICK else tests.add_long)(case, same, programs)
    tests.add('daemons end', sock.stop_shared)
    tests.add('daemon gone', daemon_gone)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
