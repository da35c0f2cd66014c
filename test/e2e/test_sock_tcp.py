#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""TCP sockets that are carried as streams: each pair of programs says the same as on the kernel,
both ways of ending, waiting and sharing included; and what is not carried goes on with the
kernel. (UDP-1, UDP-2, UDP-7, AFC-1)
"""

import os
import signal
import sys

import sock
from e2e import Tests, Work, check, need_namespaces
from sock import PYTHON, wait_for

PORT = 5100
HEAD = '''
import array, errno, fcntl, hashlib, os, select, signal, socket, struct, subprocess, sys, termios
import threading, time
ip, port, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def say(*what): print(*what, flush=True)
def name(e): return errno.errorcode[e.errno]
def ready(s): return [bool(x) for x in select.select([s], [s], [], 0)[:2]]
def all_of(s, n=1 << 40):
    parts = b""
    while len(parts) < n and (d := s.recv(65536)): parts += d
    return parts
def digest(b): return len(b), hashlib.sha256(b).hexdigest()[:12]
def listen(**how):
    l = socket.socket()
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind((ip, port)); l.listen(); say("ready")
    return l
def dial(**how): return socket.create_connection((ip, port), **how)
data = bytes(i * 7 + (i >> 8) & 255 for i in range(3_000_000))
'''

# What two programs say, by name: what the server does with its listener *l*, what the client does.
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
s, _ = l.accept(); s.recv(2); time.sleep(0.3); say(digest(all_of(s)))
''', '''
s = dial(); s.setblocking(False)
say(ready(s)); s.send(b"go"); sent = 0
try:
    while True: sent += s.send(data[sent:sent + 50000])
except BlockingIOError: say("full", ready(s)[1])
ep = select.epoll(); ep.register(s, select.EPOLLOUT)
say(ep.poll(0), [e for _, e in ep.poll(5)] == [select.EPOLLOUT])
while sent < len(data):
    ep.poll(5)
    try: sent += s.send(data[sent:sent + 50000])
    except BlockingIOError: pass
s.close()
'''),
    'epoll': ('''
s, _ = l.accept()
for _ in range(5): s.send(b"x" * 10); s.recv(1)
s.close()
''', '''
s = dial(); ep = select.epoll()
ep.register(s, select.EPOLLIN | select.EPOLLRDHUP)
say(ep.poll(5)[0][1], ep.poll(0)[0][1], s.recv(4), ep.poll(0)[0][1], s.recv(9), ep.poll(0.05))
ep.modify(s, select.EPOLLIN | select.EPOLLET); s.send(b"1")
say(ep.poll(5)[0][1], ep.poll(0.05), s.recv(3), ep.poll(0.05), s.recv(99))
ep.modify(s, select.EPOLLIN | select.EPOLLONESHOT); s.send(b"1")
say(ep.poll(5)[0][1], ep.poll(0.05), s.recv(99))
ep.modify(s, select.EPOLLIN | select.EPOLLOUT); say(ep.poll(0)[0][1])
ep.modify(s, select.EPOLLIN | select.EPOLLRDHUP); s.send(b"111")
say(s.recv(10, socket.MSG_WAITALL)); time.sleep(0.2)
say(ep.poll(5)[0][1] & select.EPOLLIN, s.recv(99), s.recv(99))
'''),
    'peek and parts': ('''
s, _ = l.accept()
for part in (b"one", b"two", b"three"): s.send(part); time.sleep(0.1)
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
s.sendmsg([b"gath", b"", b"ered"]); s.setblocking(True)
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
s, _ = l.accept(); select.select([s], [], []); time.sleep(0.1); s.close(); say("closed")
''', '''
s = dial(); s.send(b"never read")
try: say(s.recv(9))
except OSError as e: say(name(e))
signal.signal(signal.SIGPIPE, lambda *_: say("pipe"))
time.sleep(0.1)
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
os.read(r, 1); os.read(r, 1); say("both")
time.sleep(2)
for pid in pids: os.kill(pid, signal.SIGKILL); os.wait()
''', '''
time.sleep(0.5); port += 1
who = set(all_of(dial()) for _ in range(40))
say(len(who))
'''),
    'nobody listens': ('''
s, _ = l.accept(); s.recv(1)
''', '''
s = dial(); port += 7
for _ in range(2):
    try: dial()
    except OSError as e: say(name(e))
t = socket.socket(); t.setblocking(False)
say(errno.errorcode.get(t.connect_ex((ip, port)), 0)); select.select([], [t], [], 5)
say(errno.errorcode[t.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)])
'''),
}


def talk(pair, case, plain=False):
    """What both of them say."""
    server, client = CASES[case]
    args = (pair.server_ip, PORT, pair.folder)
    s = pair.server(PYTHON, '-c', f'{HEAD}\nl = listen()\n{server}', *args, text='ready',
                    plain=plain)
    out = pair.client(PYTHON, '-c', HEAD + client, *args)
    s.wait(10)
    return out, s.out()


def same(case):
    with Work() as work, sock.Pair(work, sock.KERNEL, 'tcp') as pair:
        want = talk(pair, case)
    with Work() as work, sock.Pair(work, sock.SERVER, 'tcp', 2) as pair:
        got = talk(pair, case)
        check(got == want, f'carried: {got}, on the kernel: {want}')
        ours = pair.daemons['us']
        check(ours.ask('sockets')['streams_accepted'] > 0, 'it was not carried')
        check(ours.counters()['tx_pkts'] > 0, 'nothing was sent')
        for d in pair.daemons.values():
            wait_for('sockets are gone', lambda d=d: d.ask('sockets')['sockets'] == 0)


def both(test):
    def run():
        with Work() as work, sock.Pair(work, sock.SERVER, 'tcp', 2) as pair:
            test(pair, pair.daemons['us'], pair.daemons['peer'])
    run.__name__ = test.__name__
    return run


@both
def killed(pair, ours, peer):
    """Programs that are killed leave nothing, and the other end hears of it."""
    for i in range(10):
        s = pair.server(PYTHON, '-c', f'{HEAD}\nl = listen()\ns, _ = l.accept()\n'
                        's.sendall(data)\nsay(s.recv(9))', pair.server_ip, PORT + i,
                        pair.folder, text='ready')
        if i % 2 == 0:
            out = pair.client(PYTHON, '-c', f'{HEAD}\ns = dial(); s.recv(100)\n'
                              'os.kill(os.getpid(), 9)', pair.server_ip, PORT + i, pair.folder,
                              status=-signal.SIGKILL)
            check(out == '', out)
            s.wait(10)      # what it could not send, or what it waits for, has ended
        else:
            out = pair.client(PYTHON, '-c', f'{HEAD}\ns = dial(); s.recv(100)\n'
                              f'os.kill({s.pid}, 9)\ntry: all_of(s); say("end")\n'
                              'except ConnectionResetError: say("end")',
                              pair.server_ip, PORT + i, pair.folder)
            check(out == 'end\n', out)
    for d in (ours, peer):
        wait_for('nothing is left', lambda d=d: d.ask('sockets')['sockets'] == 0)
    check(ours.ask('sockets')['streams_accepted'] == 10, ours.ask('sockets'))


@both
def without_library(pair, ours, _):
    """A listener that has not the library is connected to by the kernel, also where one was that
    had it."""
    want = [None, None]
    for i, plain in enumerate((False, True, False)):
        before = ours.ask('sockets')['streams_accepted']
        out = talk(pair, 'half closed', plain=plain)
        want[0] = want[0] or out
        check(out == want[0], f'{out}, not {want[0]}')
        grown = ours.ask('sockets')['streams_accepted'] - before
        check(grown == (not plain), f'{i}: {grown} streams')


@both
def no_system_calls(pair, _ours, _peer):
    """Bytes of streams that are polled cost none (UDP-8)."""
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
    pair.client(strace, '-f', '-o', out, '-E', 'PYTHONUNBUFFERED=1', PYTHON, '-c', f'''{HEAD}
s = dial(); s.setblocking(False)
def ask():
    s.send(b"x" * 64); got = 0
    while got < 64:
        try: got += len(s.recv(64))
        except BlockingIOError: pass
ask(); os.write(2, b"begin"); [ask() for _ in range(200)]; os.write(2, b"end"); s.close()
''', pair.server_ip, PORT, pair.folder, seconds=60)
    with open(out, encoding='utf-8', errors='replace') as f:
        text = f.read()
    calls = text[text.index('"begin"'):text.index('"end"')].splitlines()[1:-1]
    others = [c for c in calls if 'futex' not in c and 'sched_yield' not in c and
              'eventfd' not in c and 'write(' not in c]
    check(len(others) <= 5, f'{len(others)} calls: {others[:5]}')
    s.wait(10)


def main():
    need_namespaces('ethtool', 'sysctl')
    tests = Tests(600)
    if not sock.has_library():
        print('1..0 # SKIP no library')
        return 0
    for case in CASES:
        tests.add(case, same, case)
    for test in (killed, without_library, no_system_calls):
        tests.add(test.__name__.replace('_', ' '), test)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
