#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Options, flags, errno and arguments of carried sockets are like the kernel's: each option takes
effect, or the socket stays with the kernel, or the option is refused; invalid memory gives EFAULT.
(UDP-9)
"""

import json
import os
import re
import subprocess

import sock
from e2e import BUILD, SOURCE, check, until_true
from sock import PYTHON
from sock_talk import HEAD, PORT, carried_pair

OPTIONS = os.path.join(BUILD, 'test/e2e/sock_options')
ENOPROTOOPT = 92
AT_ONCE = 30        # options tested together, with two sockets each
WORDS = {'effect': 'CARRIED', 'no matter': 'NOTHING', "kernel's": 'KERNELS'}
LEVELS = {'socket(7)': 'SOL_SOCKET', 'ip(7)': 'IPPROTO_IP', 'ipv6(7)': 'IPPROTO_IPV6',
          'tcp(7)': 'IPPROTO_TCP', 'udp(7)': 'IPPROTO_UDP'}

# Options that would replace the daemon's filter: set on the kernel's socket only.
FILTERS = 'SO_ATTACH_FILTER', 'SO_ATTACH_BPF', 'SO_LOCK_FILTER'

# It reads each connection to its end, and keeps it until then.
READER = f'''{HEAD}
def serve(s):
    try: all_of(s)
    except OSError: pass
l = listen()
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
'''


# ---- each option ----

def the_list():
    """{(level, option): (kind for UDP, kind for TCP)} of the library."""
    out = subprocess.run([OPTIONS, 'list'], capture_output=True, text=True, check=True).stdout
    return {tuple(line.split()[:2]): tuple(line.split()[2:]) for line in out.splitlines()}


def documented():
    with open(os.path.join(SOURCE, 'doc/sockets.md'), encoding='utf-8') as f:
        text = f.read()
    got = {}
    for of, udp, tcp, options in re.findall(
            r"^\| (\S+\(7\)) \| (\S[^|]*) \| (\S[^|]*) \| (.*) \|$", text, re.M):
        for option in re.findall(r'`(\w+)`', options):
            key = LEVELS[of], option
            check(key not in got, f'{option} twice')
            got[key] = WORDS.get(udp, '-'), WORDS.get(tcp, '-')
    want = the_list()
    check(len(want) > 150, want)
    check(got.keys() == want.keys(), f'not in both: {got.keys() ^ want.keys()}')
    for key, kinds in want.items():
        for mine, its in zip(got[key], kinds):
            check(mine in ('-', its), f'{key}: documented {got[key]}, is {kinds}')


def outcomes(text):
    """{(when, option): (errno, kernel or daemon)}"""
    return {tuple(line.split()[:2]): (int(line.split()[2]), line.split()[3])
            for line in text.splitlines()}


def wrong(kind, is_udp, when, option, kernel, got):
    """What is wrong with the outcome of an option of this kind, or None."""
    if kernel[0] != 0 and kind == 'KERNELS' and is_udp and when == 'after' and option not in FILTERS:
        return None if got == (kernel[0], 'carried') else 'not as it was'
    if kernel[0] != 0 and kind == 'KERNELS':
        return None if got[0] != 0 else 'confirmed'
    if kind == 'KERNELS' and not is_udp and when == 'after':
        return None if got == (ENOPROTOOPT, 'carried') else 'not refused'
    if got[0] != kernel[0]:
        return 'another result'
    want = 'kernel' if kind == 'KERNELS' else kernel[1] if kernel[1] == 'unnamed' else 'carried'
    return None if got[1] == want else f'not {want}'


def each_option(proto):
    is_udp = proto == 'udp'
    if is_udp:
        pair, device = sock.shared(sock.CLIENT, rules='both', v6=True), 'a0'
        args = [pair.server_ip, 9, device]
    else:
        pair, device = carried_pair(), 'b0'
        args = [pair.server_ip, PORT, device]
        pair.server(PYTHON, '-c', READER, pair.server_ip, PORT, pair.folder, text='ready')
    kernel, got = {}, {}
    for first in range(0, len(the_list()), AT_ONCE):
        some = (OPTIONS, proto, *args, first, first + AT_ONCE)
        kernel.update(outcomes(pair.client(*some, plain=True)))
        got.update(outcomes(pair.client(*some)))
        for d in pair.daemons.values():     # until closed streams are released
            until_true('sockets are gone', lambda d=d: d.ask('sockets')['sockets'] < AT_ONCE)
    bad = []
    for (_, option), kinds in the_list().items():
        for when in ('before', 'after'):
            key = when, option
            why = wrong(kinds[0 if is_udp else 1], is_udp, when, option, kernel[key], got[key])
            if why:
                bad.append(f'{when} {option}: {got[key]}, on the kernel {kernel[key]}: {why}')
    check(not bad, '\n'.join(bad))
    check(sum(what == (0, 'carried') for what in got.values()) > 40, got)


@sock.may_fail
def each_option_of_udp():
    each_option('udp')


@sock.may_fail
def each_option_of_tcp():
    each_option('tcp')


# ---- calls ----

# A case is a function; its output is its return value or the exception.
CASES = r'''
import array, ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
nowhere = ctypes.c_void_p(libc.mmap(None, 1 << 16, 0, 0x22, -1, 0))   # PROT_NONE
class Iov(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
class Msg(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("iov", ctypes.c_void_p), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]
def call(name, *args):
    """What the C library's function says."""
    f = getattr(libc, name); f.restype = ctypes.c_long; ctypes.set_errno(0)
    n = f(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return n if n >= 0 and n != 2 ** 32 - 1 else errno.errorcode[ctypes.get_errno()]    # -1 of 32 bits, too
def plain(what):
    return what.decode("latin") if isinstance(what, (bytes, bytearray)) else list(map(plain, what)) if isinstance(what, (tuple, list)) else what
def attempt(f, *args):
    try: return plain(f(*args))
    except OSError as e: return errno.errorcode.get(e.errno, str(e))
def control(s, n=100, flags=0, room=500):
    d, c, f, _ = s.recvmsg(n, room, flags)
    return d, sorted((l, t, len(x)) for l, t, x in c), f & ~0x40000000
def polled(s, mask=select.POLLIN | select.POLLOUT | select.POLLRDHUP, ms=20000):
    p = select.poll(); p.register(s, mask); return [e for _, e in p.poll(ms)]
def accepts(value):      # a filter that says that for each datagram
    code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, value), 8)
    return code, struct.pack("<H6xQ", 1, ctypes.addressof(code))
def second(what): return struct.pack("ll", int(what), int(what % 1 * 1000000))
cases = {}
def case(f): cases[f.__name__.replace("_", " ")] = f
def run():
    for name, f in cases.items():
        if len(sys.argv) < 6 or sys.argv[5] in name: print(json.dumps([name, attempt(f)]), flush=True)
    os._exit(0)
'''

UDP = CASES + r'''
own = sys.argv[4]
def new(bind=True):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); limit(s, 20)
    if bind: s.bind((own, 0))
    return s
def limit(s, seconds): s.setsockopt(1, 20, second(seconds))
def told(s): s.sendto(b"x", (ip, port)); wait(s); return control(s)
def wait(s): polled(s, select.POLLIN)
def echoed(s): s.sendto(b"e", (ip, port)); return s.recv(9)
@case
def time_stamps():
    a, b, c, d = new(), new(False), new(), new()
    a.setsockopt(1, 35, 1); b.setsockopt(1, 29, 1); b.bind((own, 0)); c.setsockopt(1, 37, 8 | 16); d.setsockopt(1, 64, 1)
    return [told(s) for s in (a, b, c, d)]
@case
def time_stamp_by_ioctl():
    s, t = new(), array.array("q", [0, 0]); first = attempt(fcntl.ioctl, s, 0x8906, t); echoed(s)
    return first, fcntl.ioctl(s, 0x8906, t), abs(t[0] - time.time()) < 100, fcntl.ioctl(s, 0x8907, t), abs(t[0] - time.time()) < 100
@case
def control_messages():
    s = new()
    for name in (8, 12, 13, 20): s.setsockopt(0, name, 1)
    return told(s)
@case
def no_room_for_control():
    s = new(); s.setsockopt(0, 8, 1); s.setsockopt(0, 12, 1); got = []
    for room in (0, 8, 16, 20, 28, 32, 40, 48, 64):
        s.sendto(b"x", (ip, port)); wait(s); got.append(control(s, 9, 0, room))
    return got
@case
def errors_queued():
    s = new(); s.setsockopt(0, 11, 1); s.connect((ip, 1)); s.send(b"x")
    return polled(s, 0), control(s, 100, socket.MSG_ERRQUEUE), attempt(control, s, 100, socket.MSG_ERRQUEUE), s.getsockopt(0, 11)
@case
def refused():
    s = new(); s.connect((ip, 1)); s.send(b"x"); wait(s)
    first = attempt(s.recv, 9); s.send(b"x"); polled(s, 0)
    return first, s.getsockopt(1, 4), s.getsockopt(1, 4)
@case
def broadcast():
    s = new(); to = ip.rsplit(".", 1)[0] + ".255"
    return attempt(s.sendto, b"x", (to, 9)), attempt(s.sendto, b"x", ("255.255.255.255", 9)), s.setsockopt(1, 6, 1), s.sendto(b"x", (to, 9))
@case
def not_of_datagrams(): s = new(); return call("accept", s.fileno(), None, None), attempt(s.listen), attempt(s.getsockopt, 6, 1), call("sockatmark", s.fileno())
@case
def lengths():
    s = new(); s.connect((ip, port))
    return s.send(b""), s.recv(9), attempt(s.send, bytes(65508)), attempt(s.sendmsg, [b"ab"] * 1025), s.sendmsg([b"ab"] * 1000), len(s.recv(3000))
@case
def whole_or_not_at_all():
    s = new(); s.setsockopt(0, 10, 2)
    return attempt(s.sendto, bytes(2000), (ip, port)), s.sendto(bytes(1472), (ip, port)), len(s.recv(9000)), attempt(s.sendto, bytes(1473), (ip, port)), echoed(s)
@case
def zero_copy():
    s = new(); s.setsockopt(1, 60, 1); n = s.sendmsg([bytes(100)], [], 0x4000000, (ip, port))
    return n, len(s.recv(200)), polled(s, 0), control(s, 9, socket.MSG_ERRQUEUE)[1]
@case
def without_a_place():
    s, b = new(), bytearray(10); s.connect((ip, port)); iov = Iov(ctypes.cast(ctypes.c_char_p(b"hello"), ctypes.c_void_p), 5)
    n = call("pwritev2", s.fileno(), ctypes.byref(iov), 1, -1, 0); wait(s)
    return n, os.preadv(s.fileno(), [b], -1), b, attempt(os.preadv, s.fileno(), [b], -1, os.RWF_NOWAIT), attempt(os.preadv, s.fileno(), [b], 0), attempt(os.pread, s.fileno(), 9, 0)
def changed_later(level, name, value, then=echoed):
    s = new(); first = echoed(s)
    return first, attempt(s.setsockopt, level, name, value), attempt(then, s), attempt(then, s), limit(s, 0.3), attempt(s.recv, 9)
@case
def filter_that_takes(): keep = accepts(0xffffffff); return changed_later(1, 26, keep[1])
@case
def filter_that_cuts(): keep = accepts(29); return changed_later(1, 26, keep[1], lambda s: (s.sendto(b"long", (ip, port)), s.recvmsg(9)[:2]))
@case
def filter_that_drops():
    keep = accepts(0); s = new(); first = echoed(s); s.setsockopt(1, 26, keep[1]); s.sendto(b"x", (ip, port)); limit(s, 0.3); gone = attempt(s.recv, 9)
    s.setsockopt(1, 27, 0); limit(s, 20); return first, gone, echoed(s)
@case
def no_filter(): s = new(); return attempt(s.setsockopt, 1, 27, 0), attempt(s.setsockopt, 1, 27, b""), s.getsockopt(1, 26), echoed(s)
@case
def locked_filter(): return changed_later(1, 44, 1)
@case
def another_device(): return changed_later(1, 25, b"lo\0", lambda s: (limit(s, 0.3), attempt(echoed, s)))
@case
def peek_off():
    s = new(); s.setsockopt(1, 42, 0); s.sendto(b"abcdef", (ip, port)); wait(s)
    return s.recv(2, socket.MSG_PEEK), s.recv(2, socket.MSG_PEEK), s.recv(9)
@case
def corked():
    s = new(); s.connect((ip, port)); s.setsockopt(17, 1, 1); s.send(b"one"); s.send(b"two"); s.setsockopt(17, 1, 0); return s.recv(9)
@case
def in_segments(): s = new(); s.setsockopt(17, 103, 2); s.sendto(b"aabbc", (ip, port)); return sorted(s.recv(9) for _ in range(3))
@case
def more():
    s = new(); s.connect((ip, port)); s.send(b"one", socket.MSG_MORE); s.send(b"two"); return s.recv(9)
@case
def invalid_values():
    s = new(); return [attempt(s.setsockopt, *o) for o in ((0, 2, 0), (0, 2, 256), (0, 10, 9), (1, 35, b"x"), (1, 25, b"nowhere"), (0, 8, b""), (17, 1, b"x"), (1, 999, 1), (77, 1, 1), (6, 1, 1))]
@case
def said_with_a_datagram():
    s = new(); to = (ip, port); pack = struct.pack
    return [attempt(lambda c: (s.sendmsg([b"x"], [c], 0, to), s.recv(9)), c) for c in (
        (0, 99, b"1234"), (0, 2, pack("i", 0)), (0, 2, pack("i", 300)), (0, 2, pack("i", 9)), (0, 1, pack("i", 8)),
        (0, 8, pack("i", 0) + socket.inet_aton("10.77.0.77") + bytes(4)), (0, 8, pack("i", 0) + socket.inet_aton(own) + bytes(4)),
        (0, 8, pack("i", 77) + bytes(8)), (1, 36, pack("i", 0)), (17, 103, pack("H", 500)))]
@case
def flags():
    s = new(); to = (ip, port); return [(attempt(s.sendto, b"x", f, to), attempt(s.recv, 9, socket.MSG_DONTWAIT * (f == 1))) for f in (1, 4, 0x80, 0x800, 0x4000, 0x20000000, 0x4000000)]
@case
def flags_to_receive():
    s = new(); s.sendto(b"0123456789", (ip, port)); wait(s); return s.recv(4, 2), s.recvmsg(4, 0, 2 | 0x20)[0::2], attempt(s.recv, 9, 0x41), attempt(s.recvmsg, 4, 0, 0x60), attempt(s.recv, 9, 0x40), attempt(s.recv, 9, 0x2000)
@case
def addresses():
    s = new(); f = s.fileno(); a = struct.pack("<H", 2) + struct.pack(">H", port) + socket.inet_aton(ip) + bytes(8); b = ctypes.create_string_buffer
    return [call("sendto", f, b(b"x"), 1, 0, b(x), n) for x, n in ((a, 16), (a, 8), (a[:2] + bytes(14), 16), (b"\x0a" + a[1:], 16), (b"\0\0" + a[2:], 16), (a, 400))], attempt(s.send, b"x")
@case
def port_zero(): s = new(); return attempt(s.sendto, b"x", (ip, 0)), s.connect((ip, 0)), attempt(s.send, b"x")
@case
def connected_and_not():
    s = new(); s.connect((ip, port)); s.connect((ip, port + 1)); peer = s.getpeername()[1] - port
    return peer, call("connect", s.fileno(), ctypes.create_string_buffer(16), 16), attempt(s.send, b"x"), attempt(s.getpeername), attempt(s.sendto, b"x", (ip, port))
@case
def shut():
    s = new(); s.connect((ip, port)); bad = attempt(s.shutdown, 3); s.shutdown(0); now = attempt(s.recv, 9, socket.MSG_DONTWAIT), polled(s); return bad, now, s.recv(9), s.send(b"x"), s.shutdown(1), attempt(s.send, b"x", socket.MSG_NOSIGNAL), polled(s)
@case
def many_at_once():
    s = new(); f = s.fileno(); b = ctypes.create_string_buffer(10); iov = Iov(ctypes.addressof(b), 10)
    class Mmsg(ctypes.Structure): _fields_ = [("h", Msg), ("n", ctypes.c_uint)]
    m = (Mmsg * 2)(*[Mmsg(Msg(iov=ctypes.addressof(iov), iovlen=1))] * 2); t = lambda a, b: (ctypes.c_long * 2)(a, b)
    bad = [call("recvmmsg", f, m, 2, 0x40, x) for x in (t(-1, 0), t(0, -1), t(0, 10 ** 9), nowhere)]
    s.sendto(b"one", (ip, port)); wait(s); left = t(100, 0)
    return bad, call("recvmmsg", f, m, 1, 0, left), left[0] in (99, 100), call("recvmmsg", f, nowhere, 1, 0x40, None), call("sendmmsg", f, nowhere, 1, 0), call("recvmmsg", f, m, 0, 0, None)
@case
def many_with_a_bad_one():
    s = new(); f = s.fileno(); b = ctypes.create_string_buffer(10); iov, bad = Iov(ctypes.addressof(b), 10), Iov(nowhere, 10); got = []
    class Mmsg(ctypes.Structure): _fields_ = [("h", Msg), ("n", ctypes.c_uint)]
    for at in range(3):
        for x in (b"one", b"two", b"three"): s.sendto(x, (ip, port))
        time.sleep(0.2); m = (Mmsg * 3)(*[Mmsg(Msg(iov=ctypes.addressof(bad if i == at else iov), iovlen=1)) for i in range(3)])
        got.append([call("recvmmsg", f, m, 3, 0x40, None), [attempt(s.recv, 9, 0x40) for _ in range(5)]])
    return got
@case
def control_beyond_its_end():
    s = new(); a = ctypes.create_string_buffer(struct.pack("<H", 2) + struct.pack(">H", port) + socket.inet_aton(ip) + bytes(8)); b = ctypes.create_string_buffer(b"x"); iov = Iov(ctypes.addressof(b), 1); got = []
    for n in (0, 15, 16, 19, 20, 24, 25, 400, 2 ** 63, 2 ** 64 - 1):
        c = ctypes.create_string_buffer(struct.pack("QiiiI", n, 0, 2, 9, 0), 24)
        got.append(call("sendmsg", s.fileno(), ctypes.byref(Msg(name=ctypes.addressof(a), namelen=16, iov=ctypes.addressof(iov), iovlen=1, control=ctypes.addressof(c), controllen=24)), 0))
    return got
@case
def no_memory():
    s = new(); f = s.fileno(); s.sendto(b"0123456789", (ip, port)); wait(s); got = []; b = ctypes.create_string_buffer(10); iov = Iov(ctypes.addressof(b), 10); bad = Iov(nowhere, 10)
    a = ctypes.create_string_buffer(struct.pack("<H", 2) + struct.pack(">H", port) + socket.inet_aton(ip) + bytes(8)); n = ctypes.c_uint(16)
    say = lambda *what: got.append(call(*what)); ref = ctypes.byref
    say("recv", f, nowhere, 10, 2); say("recvfrom", f, b, 10, 2, nowhere, ref(n)); say("recvfrom", f, b, 10, 2, b, nowhere); say("recvmsg", f, nowhere, 2); say("recvmsg", f, ref(Msg(iov=nowhere, iovlen=1)), 2)
    say("recvmsg", f, ref(Msg(iov=ctypes.addressof(bad), iovlen=1)), 2); say("readv", f, nowhere, 1); say("read", f, ctypes.c_void_p(1), 10)
    say("sendto", f, nowhere, 10, 0, a, 16); say("sendto", f, b, 10, 0, nowhere, 16); say("sendmsg", f, nowhere, 0); say("sendmsg", f, ref(Msg(name=ctypes.addressof(a), namelen=16, iov=nowhere, iovlen=1)), 0)
    say("sendmsg", f, ref(Msg(name=ctypes.addressof(a), namelen=16, iov=ctypes.addressof(iov), iovlen=1, control=nowhere, controllen=100)), 0); say("writev", f, nowhere, 1)
    say("getsockname", f, nowhere, ref(n)); say("getsockname", f, b, nowhere); say("getsockopt", f, 1, 3, nowhere, ref(n)); say("getsockopt", f, 0, 8, nowhere, ref(n)); say("getsockopt", f, 1, 3, b, nowhere)
    say("setsockopt", f, 0, 8, None, 4); say("setsockopt", f, 1, 8, nowhere, 4); say("setsockopt", f, 1, 35, nowhere, 4); say("ioctl", f, 0x541b, nowhere); say("connect", f, nowhere, 16); say("bind", f, nowhere, 16)
    return got
@case
def no_place_for_control():
    s = new(); s.setsockopt(0, 8, 1); s.sendto(b"x", (ip, port)); wait(s); b = ctypes.create_string_buffer(10); iov = Iov(ctypes.addressof(b), 10); m = Msg(iov=ctypes.addressof(iov), iovlen=1, controllen=100)
    return call("recvmsg", s.fileno(), ctypes.byref(m), 0), m.flags, m.controllen
@case
def set_at_the_end_of_memory():
    p = libc.mmap(None, 8192, 3, 0x22, -1, 0); call("mprotect", ctypes.c_void_p(p + 4096), 4096, 0); s = new(); f = s.fileno()
    ctypes.memset(p + 4096 - 128 + f // 8, 1 << f % 8, 1); s.sendto(b"x", (ip, port)); t = (ctypes.c_long * 2)(20, 0)
    return call("select", 1 << 20, ctypes.c_void_p(p + 4096 - 128), None, None, t), s.recv(9)
@case
def changed_while_a_child_has_it():
    s = new(); echoed(s); r, w = os.pipe(); a, b = os.pipe(); pid = os.fork()
    if pid == 0:
        os.read(r, 1); os.write(b, json.dumps([attempt(s.sendto, b"child", (ip, port)), plain(attempt(s.recv, 9))]).encode()); os._exit(0)
    s.setsockopt(1, 37, 8 | 16); os.write(w, b"x"); got = json.loads(os.read(a, 99)); os.waitpid(pid, 0)
    return got, echoed(s)
@case
def memory_that_was():
    p = libc.mmap(None, 4096, 3, 0x22, -1, 0); v = ctypes.c_void_p(p); s = new(); s.connect((ip, port)); f = s.fileno()
    got = [call("send", f, v, 9, 0), len(s.recv(20)), call("mprotect", v, 4096, 1), call("send", f, v, 9, 0), wait(s), call("recv", f, v, 9, 0), call("mprotect", v, 4096, 0), call("send", f, v, 9, 0), call("munmap", v, 4096), call("send", f, v, 9, 0)]
    return got
@case
def waits_without_memory():
    s = new(); f = s.fileno(); t = (ctypes.c_long * 2)(-1, 0); b = ctypes.create_string_buffer(128); b[f // 8] = 1 << f % 8; ep = select.epoll(); n = f + 1
    return [call("select", n, nowhere, None, None, None), call("select", n, b, nowhere, None, None), call("select", n, b, None, None, t), call("pselect", n, b, None, None, t, None),
            call("poll", nowhere, 1, 0), call("epoll_ctl", ep.fileno(), 1, f, nowhere), ep.register(s, 1), s.sendto(b"x", (ip, port)), wait(s), call("epoll_wait", ep.fileno(), nowhere, 1, 0), call("epoll_wait", ep.fileno(), b, 0, 0)]
@case
def signals():
    s = new(); hits = []; signal.signal(signal.SIGIO, lambda *_: hits.append(1)); fcntl.fcntl(s, fcntl.F_SETOWN, os.getpid());
    fcntl.fcntl(s, fcntl.F_SETFL, fcntl.fcntl(s, fcntl.F_GETFL) | os.O_ASYNC); s.sendto(b"x", (ip, port))
    while not hits: time.sleep(0.01)
    return s.recv(9)
@case
def signals_before_its_name():
    s = new(False); hits = []; signal.signal(signal.SIGIO, lambda *_: hits.append(1)); fcntl.fcntl(s, fcntl.F_SETOWN, os.getpid());
    fcntl.fcntl(s, fcntl.F_SETFL, fcntl.fcntl(s, fcntl.F_GETFL) | os.O_ASYNC); s.bind((own, 0)); s.sendto(b"x", (ip, port))
    while not hits: time.sleep(0.01)
    return s.recv(9)
@case
def groups_of_this_host():
    a, o = new(False), new(); a.setsockopt(1, 2, 1); a.bind(("0.0.0.0", port + 9)); limit(a, 20); group = socket.inet_aton("239.7.7.7"); to = ("239.7.7.7", port + 9)
    a.setsockopt(0, 35, group + socket.inet_aton(own)); o.setsockopt(0, 32, socket.inet_aton(own)); got = [o.sendto(b"one", to), a.recv(9)]
    o.setsockopt(0, 34, 0); got.append(o.sendto(b"two", to)); o.setsockopt(0, 34, 1); o.sendto(b"three", to); got.append(a.recv(9)); return got, o.getsockopt(0, 34), o.getsockopt(0, 33)
run()
'''

TCP = CASES + r'''
def new():
    return dial()
def last(s, word): s.sendall(word); return polled(s, select.POLLIN | select.POLLRDHUP)
def maybe(s, what, *args): return attempt(getattr(s, what), *args)
RST, END = b"reset", b"close"
@case
def states():
    a, b, c, d = new(), new(), new(), new(); last(b, END); last(c, RST); d.shutdown(1); all_of(d)
    return [s.getsockopt(6, 11, 1)[0] for s in (a, b, c)], attempt(d.getpeername)
@case
def segment(): s = new(); return s.getsockopt(6, 2), struct.unpack_from("II", s.getsockopt(6, 11, 104), 16)[0]
@case
def after_a_reset():
    got = []
    for what in ("recv", "send", "getpeername", "getsockname", "error", "poll", "shutdown", "again"):
        s = new(); last(s, RST)
        got.append(polled(s) if what == "poll" else [s.getsockopt(1, 4), s.getsockopt(1, 4)] if what == "error" else maybe(s, what, 9) if what == "recv" else
                   maybe(s, "send", b"x") if what == "send" else maybe(s, "shutdown", 2) if what == "shutdown" else [maybe(s, "recv", 9), maybe(s, "recv", 9), maybe(s, "send", b"x"), polled(s)] if what == "again" else
                   maybe(s, what) if what == "getpeername" else len(maybe(s, what)))
    return got
@case
def after_an_end(): s = new(); first = last(s, END); return first, s.recv(9), s.recv(9), len(s.getpeername())
@case
def bytes_that_are_dropped():
    s = new(); s.sendall(b"hello world"); peek(s, 11)
    return call("recv", s.fileno(), None, 3, 0x20), call("recv", s.fileno(), nowhere, 3, 0x20), call("recv", s.fileno(), None, 9, 0x22), s.recv(20)
def peek(s, n):
    while len(s.recv(n, socket.MSG_PEEK)) < n: time.sleep(0.001)
@case
def peek_at_all():
    s, got = new(), []; t = threading.Thread(target=lambda: got.append(s.recv(10, socket.MSG_PEEK | socket.MSG_WAITALL))); s.sendall(b"hello"); peek(s, 5)
    t.start(); s.sendall(b"world"); t.join(); s.setsockopt(1, 20, second(0.2)); short = s.recv(20, socket.MSG_PEEK | socket.MSG_WAITALL); return got, short, s.recv(20)
@case
def peek_at_all_to_the_end():
    s = new(); s.sendall(b"hello"); peek(s, 5); s.shutdown(1); return s.recv(50, socket.MSG_PEEK | socket.MSG_WAITALL), s.recv(50, socket.MSG_WAITALL), s.recv(9)
@case
def low_mark():
    s = socket.socket(); s.setsockopt(1, 18, 10); s.connect((ip, port)); s.sendall(b"hello"); short = polled(s, select.POLLIN, 300); s.sendall(b"world"); return short, polled(s, select.POLLIN), s.recv(20)
@case
def disconnected():
    s = new(); s.sendall(b"a"); s.recv(1); none = ctypes.create_string_buffer(16); got = [call("connect", s.fileno(), none, 16), attempt(s.getpeername)]
    s.connect((ip, port)); s.sendall(b"again"); return got, s.recv(9), call("connect", s.fileno(), none, 1)
@case
def same_four_numbers():
    a, b = socket.socket(), socket.socket()
    for s in (a, b): s.setsockopt(1, 2, 1)
    a.bind((sys.argv[4], 0)); b.bind(a.getsockname()); a.connect((ip, port)); return attempt(b.connect, (ip, port)), attempt(a.connect, (ip, port)), a.send(b"x"), a.recv(9)
@case
def names():
    s = new(); return attempt(s.bind, (sys.argv[4], 0)), attempt(s.listen), attempt(s.accept), s.getpeername() == (ip, port), len(s.getsockopt(1, 28, 16)), s.getsockopt(1, 28, 16)[:8] == struct.pack("<H", 2) + struct.pack(">H", port) + socket.inet_aton(ip)
@case
def marks(): s = new(); s.sendall(b"abc"); peek(s, 3); return call("sockatmark", s.fileno()), attempt(s.recv, 9, 1), s.recv(9)
@case
def said_with_bytes():
    s = new(); s.setblocking(True); return [attempt(s.sendmsg, [b"x"], [c]) for c in ((1, 1, struct.pack("i", 0)), (1, 99, b"1234"), (0, 2, struct.pack("i", 0)))], attempt(s.sendto, b"x", ("1.2.3.4", 5)), attempt(s.recv, 9, 0x2000)
@case
def control_beyond_its_end():
    s = new(); s.setblocking(True); b = ctypes.create_string_buffer(b"x"); iov = Iov(ctypes.addressof(b), 1); got = []
    for n in (0, 15, 16, 20, 24, 25, 400, 2 ** 63, 2 ** 64 - 1):
        c = ctypes.create_string_buffer(struct.pack("QiiiI", n, 0, 2, 9, 0), 24)
        got.append(call("sendmsg", s.fileno(), ctypes.byref(Msg(iov=ctypes.addressof(iov), iovlen=1, control=ctypes.addressof(c), controllen=24)), 0))
    return got
@case
def without_a_place():
    s, b = new(), bytearray(9); s.sendall(b"abc"); peek(s, 3); iov = Iov(ctypes.cast(ctypes.c_char_p(b"hello"), ctypes.c_void_p), 5); got = os.preadv(s.fileno(), [b], -1), b[:3]
    return got, call("pwritev2", s.fileno(), ctypes.byref(iov), 1, -1, 0), peek(s, 5), s.recv(9), attempt(os.preadv, s.fileno(), [b], 0), attempt(os.preadv, s.fileno(), [b], -1, os.RWF_NOWAIT)
@case
def no_memory():
    s = new(); f = s.fileno(); s.sendall(b"0123456789"); peek(s, 10); b = ctypes.create_string_buffer(10); iov = Iov(ctypes.addressof(b), 10); bad = Iov(nowhere, 10); both = (Iov * 2)(iov, bad); ref = ctypes.byref; n = ctypes.c_uint(16)
    return [call("recv", f, nowhere, 10, 0), call("recvmsg", f, nowhere, 0), call("recvmsg", f, ref(Msg(iov=nowhere, iovlen=1)), 0), call("readv", f, both, 2), call("send", f, nowhere, 10, 0), call("writev", f, both, 2), s.sendall(b"after"), peek(s, 5), call("readv", f, ref(bad), 1), s.recv(20),
            call("sendmsg", f, nowhere, 0), call("sendmsg", f, ref(Msg(iov=ctypes.addressof(iov), iovlen=1, control=nowhere, controllen=50)), 0), call("getpeername", f, nowhere, ref(n)), call("getpeername", f, b, nowhere), call("getsockopt", f, 6, 11, nowhere, ref(n)), call("ioctl", f, 0x541b, nowhere)]
@case
def out_of_band(): s = new(); return attempt(s.send, b"!", socket.MSG_OOB)
@case
def low_mark_later(): s = new(); return attempt(s.setsockopt, 1, 18, 10), s.setsockopt(1, 18, 1)
@case
def on_a_connected_one():
    s = new(); return attempt(s.sendto, b"x", 0x20000000, (ip, port)) in ("EISCONN", "EOPNOTSUPP")
@case
def signals():
    s = new(); hits = []; signal.signal(signal.SIGIO, lambda *_: hits.append(1)); fcntl.fcntl(s, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(s, fcntl.F_SETFL, fcntl.fcntl(s, fcntl.F_GETFL) | os.O_ASYNC); n = len(hits); s.sendall(b"x")
    while len(hits) == n: time.sleep(0.01)
    return s.recv(9)
@case
def deferred():
    l = socket.socket(); l.bind((sys.argv[4], 0)); l.setsockopt(6, 9, 5); l.listen(); l.settimeout(0.3); c = socket.socket(); c.connect(l.getsockname()); early = attempt(lambda: l.accept()[0].fileno() < 0); c.send(b"x"); l.settimeout(20); return early, l.accept()[0].recv(9)
run()
'''

# Carried streams that refuse what the kernel supports.
REFUSED = {'out of band': 'ENOTSUP', 'low mark later': ['ENOPROTOOPT', None]}

TCP_SERVER = f'''{HEAD}
def serve(s):
    try:
        while (d := s.recv(65536)) and d not in (b"reset", b"close"): s.sendall(d)
        if d == b"reset": s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError: pass
    s.close()
l = listen()
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
'''
UDP_SERVER = f'''{HEAD}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((ip, port)); say("ready")
while True:
    d, a = s.recvfrom(70000)
    try: s.sendto(d, a)
    except OSError: pass
'''


def said(pair, cases, server):
    args = (pair.server_ip, PORT, pair.folder)
    p = pair.server(PYTHON, '-c', server, *args, text='ready')
    out = pair.client(PYTHON, '-c', HEAD + cases, *args, pair.client_ip,
                      os.environ.get('SAN_ONLY', ''))
    check(p.is_alive(), p.tail())
    # without the library the addresses of the two ends are exchanged
    return {name: json.dumps(what).replace(pair.client_ip, 'client').replace(pair.server_ip, 'server')
            for name, what in map(json.loads, out.splitlines())}


def same(want, got):
    check(len(want) == len(got), f'{len(got)} of {len(want)}')
    bad = []
    for name, what in want.items():
        if name in REFUSED:
            what = json.dumps(REFUSED[name])
        if got[name] != what:
            bad.append(f'{name}:\n  {got[name]}\n  on the kernel\n  {what}')
    check(not bad, '\n'.join(bad))


@sock.may_fail
def calls_of_udp():
    want = said(sock.shared(sock.KERNEL), UDP, UDP_SERVER)
    same(want, said(sock.shared(sock.CLIENT, rules='both'), UDP, UDP_SERVER))


@sock.may_fail
def calls_of_tcp():
    want = said(sock.shared(sock.KERNEL, 'tcp'), TCP, TCP_SERVER)
    pair = carried_pair()
    same(want, said(pair, TCP, TCP_SERVER))
    if not os.environ.get('SAN_ONLY'):
        check(pair.grown()['streams_accepted'] > 20, pair.grown())


def main():
    tests = sock.begin()
    tests.add('documented', documented)
    for test in (each_option_of_udp, each_option_of_tcp, calls_of_udp, calls_of_tcp):
        tests.add(test.__name__.replace('_', ' '), test)
    tests.add('daemons end', sock.stop_shared)
    return tests.run()


if __name__ == '__main__':
    raise SystemExit(main())
