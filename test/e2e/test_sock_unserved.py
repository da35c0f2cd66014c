#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel serves programs that the library can't serve, from the first connection or datagram
on, and the reason is reported: no library, no right to the daemon, io_uring, system calls by own
instructions. What a program has when it confines itself stays carried. (UDP-11)
"""

import os
import sys

import sock
from e2e import BUILD, Skipped, check
from sock import PYTHON
from sock_talk import HEAD, PORT, carried_pair

UNHEARD = os.path.join(BUILD, 'test/e2e/unheard')
CONFINED = os.path.join(BUILD, 'test/e2e/confined')
NO_RING = 77

CLIENT = f'''{HEAD}
import random
data = random.Random(1).randbytes(3_000_000)
def echoed(s, what):
    t = threading.Thread(target=lambda: (s.sendall(what), s.shutdown(socket.SHUT_WR))); t.start()
    got = all_of(s); t.join(); return got == what
for i in range(int(sys.argv[4])):
    s = dial(); s.sendall(b"first"); say(s.recv(9) == b"first", echoed(s, data)); s.close()
'''


def accepts(command, pair, connections=1):
    """Clients of *command*, a server at our end, get back what they sent; returns the carried
    streams."""
    p = pair.server(*command, text='ready')
    try:
        out = pair.client(PYTHON, '-c', CLIENT, pair.server_ip, PORT, pair.folder, connections)
    finally:
        if not p.is_alive() and p.popen.wait() == NO_RING:
            raise Skipped(p.tail())
    check(out == 'True True\n' * connections, f'{out}; the server: {p.tail()}')
    return pair.grown()['streams_connected'] + pair.grown()['streams_accepted']


@sock.may_fail
def calls_of_its_own():
    """It accepts, reads and writes by own instructions."""
    pair = carried_pair()
    carried = accepts([UNHEARD, 'calls', pair.server_ip, PORT], pair)
    check(carried == 0, carried)
    reasons = ' '.join(map(str, pair.daemons['us'].ask('sock_reasons').values()))
    check('without the library' in reasons, reasons)


DATAGRAMS = f'''{HEAD}
s = dial(); s.settimeout(None)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(20)
u.connect((ip, port)); u.send(b"0")
def ask(n):
    u.send(b"%d" % n); return u.recv(100) == b"%d" % n
s.sendall(b"first"); say(s.recv(9) == b"first")
if sys.argv[4] != "read":
    say(all(ask(i) for i in range(50)), time.sleep(0.3), ask(50))
data = bytes(range(250)) * 12000
t = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))); t.start()
say(all_of(s) == data)
'''


@sock.may_fail
def confined(others, how):
    """The daemon carries on with both sockets while the program may only read, write and poll."""
    pair = sock.shared(sock.SERVER, 'tcp', 2, 'kernel remote 127.0.0.0/8;carry')
    p = pair.server(CONFINED, pair.server_ip, PORT, others, how, text='ready')
    out = pair.client(PYTHON, '-c', DATAGRAMS, pair.server_ip, PORT, pair.folder, how)
    want = 'True\n' + ('' if how == 'read' else 'True None True\n') + 'True\n'
    check(out == want, f'{out}; the server: {p.tail()}')
    check(p.wait() == 0, p.tail())
    grown = pair.grown()
    check(grown['streams_accepted'] == 1 and grown['Tcp.InSegs'] < 30, grown)


@sock.may_fail
def by_a_ring():
    """Its sockets stay with the kernel."""
    pair = carried_pair()
    carried = accepts([UNHEARD, 'ring', pair.server_ip, PORT], pair)
    check(carried == 0, carried)


@sock.may_fail
def datagram_by_a_ring():
    pair = sock.shared(sock.SERVER)
    p = pair.server(UNHEARD, 'udp', pair.server_ip, PORT, text='ready')
    if not p.is_alive() and p.popen.wait() == NO_RING:
        raise Skipped(p.tail())
    pair.client(PYTHON, '-c', f'''{HEAD}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"datagram", (ip, port))''',
                pair.server_ip, PORT, pair.folder)
    p.wait_text('datagram')


# Its parent has the library and the listener; it accepts without the library.
WITHOUT = f'''{HEAD}
l = listen(waits=False); os.set_inheritable(l.fileno(), True)
env = {{k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}}
code = """
import socket, sys
l = socket.socket(fileno=int(sys.argv[1]))
while True:
    s, _ = l.accept()
    while d := s.recv(65536): s.sendall(d)
    s.close()
"""
subprocess.run([sys.executable, "-c", code, str(l.fileno())], env=env, close_fds=False)
'''
# It has the library, but no right to the daemon any more.
NO_RIGHT = f'''{HEAD}
l = listen(waits=False)
if os.fork() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    while True:
        s, _ = l.accept()
        while d := s.recv(65536): s.sendall(d)
        s.close()
os.wait()
'''


def accepts_unserved(program):
    """All connections are the kernel's."""
    pair = carried_pair()
    carried = accepts([PYTHON, '-c', program, pair.server_ip, PORT, pair.folder], pair, 5)
    check(carried == 0, f'{carried} of 10 ends')


@sock.may_fail
def without_the_library():
    accepts_unserved(WITHOUT)


@sock.may_fail
def without_a_right():
    accepts_unserved(NO_RIGHT)


@sock.may_fail
def accepted_by_another():
    """A program with the library waits, and one without it accepts: that connection ends, and later
    ones are the kernel's."""
    pair = carried_pair()
    pair.server(PYTHON, '-c', WITHOUT.replace('waits=False', ''), pair.server_ip, PORT, pair.folder,
                text='ready')
    out = pair.client(PYTHON, '-c', f'''{HEAD}
for _ in range(3):
    try: s = dial(); s.send(b"x"); say(s.recv(1))
    except ConnectionResetError: say("reset")
''', pair.server_ip, PORT, pair.folder)
    check(out == "reset\nb'x'\nb'x'\n", out)
    check(pair.grown()['streams_accepted'] == 1, pair.grown())


# Calls by number, equivalent to the libc functions of the same names.
NUMBERS = f'''{HEAD}
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    n = libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return n if n >= 0 else errno.errorcode[ctypes.get_errno()]
class Iov(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
buf = ctypes.create_string_buffer(b"hello", 100); iov = Iov(ctypes.addressof(buf), 5); v = ctypes.byref(iov)
a = struct.pack("<H", 2) + struct.pack(">H", port) + socket.inet_aton(ip) + bytes(8)
t = (ctypes.c_long * 2)(20, 0); n = ctypes.c_uint(16); name_of = ctypes.create_string_buffer(16)
s = call(41, 2, 1, 0); say(call(42, s, ctypes.create_string_buffer(a, 16), 16))
p = ctypes.create_string_buffer(struct.pack("ihh", s, 1, 0)); sets = ctypes.create_string_buffer(128); sets[s // 8] = 1 << s % 8
say(call(20, s, v, 1), call(7, p, 1, 20000), call(271, p, 1, t, None), call(23, s + 1, sets, None, None, t), call(270, s + 1, sets, None, None, t, None))
say(call(19, s, v, 1)); say(call(328, s, v, 1, -1, 0, 0), call(7, p, 1, 20000), call(327, s, v, 1, -1, 0, 0))
say(call(52, s, name_of, ctypes.byref(n)), name_of.raw[:8] == a[:8], call(55, s, 1, 3, name_of, ctypes.byref(n)), name_of.raw[0], call(54, s, 6, 1, ctypes.create_string_buffer(struct.pack("i", 1)), 4))
e = call(291, 0); ev = ctypes.create_string_buffer(struct.pack("<IQ", 1, 7), 12); say(call(233, e, 1, s, ev)); d = call(32, s); say(call(1, d, buf, 5), call(441, e, ev, 1, t, None, 8), ev.raw[4])
say(call(45, s, buf, 100, 0, None, None), call(48, s, 1), call(7, p, 1, 20000), call(0, s, buf, 9), call(3, s), call(3, d))
'''


@sock.may_fail
def by_number():
    """Calls through syscall(3) are intercepted."""
    if os.uname().machine != 'x86_64':
        raise Skipped('numbers of x86-64')
    server = f'{HEAD}\nl = listen(); s, _ = l.accept()\nwhile d := s.recv(99): s.sendall(d)\n'
    got = []
    for pair in (sock.shared(sock.KERNEL, 'tcp'), carried_pair()):
        args = pair.server_ip, PORT, pair.folder
        pair.server(PYTHON, '-c', server, *args, text='ready')
        got.append(pair.client(PYTHON, '-c', NUMBERS, *args))
    check(got[0] == got[1], f'{got[1]}\non the kernel\n{got[0]}')
    check(pair.grown()['streams_accepted'] == 1, 'not carried')


def main():
    tests = sock.begin()
    for test in (calls_of_its_own, by_a_ring, datagram_by_a_ring, without_the_library,
                 without_a_right, accepted_by_another, by_number):
        tests.add(test.__name__.replace('_', ' '), test)
    for others in ('kill', 'refuse'):
        for how in ('read', 'poll', 'child', 'open'):
            tests.add(f'confined, {others}, {how}', confined, others, how)
    tests.add('daemons end', sock.stop_shared)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
