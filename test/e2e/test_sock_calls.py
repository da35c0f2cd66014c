#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each call of a program on a TCP socket has the same outcome as on the kernel, while another
thread changes the socket during the call, and on a small stack. (UDP-10, UDP-1)
"""

import json
import os
import sys

import sock
from e2e import BUILD, IS_CHECK, Work, check, until_true
from sock import PEER, PEER_IP, PYTHON
from sock_talk import HEAD, PORT, carried_pair

ROUNDS = 10     # of each call, while a socket changes between kernel and daemon
SMALL_STACK = os.path.join(BUILD, 'test/e2e/small_stack')
# It accepts all connections and reads nothing.
SERVER = f'''{HEAD}
l, kept = listen(), []
while True: kept.append(l.accept())
'''
# One thread waits on a socket, which may be full; another thread changes the socket.
CLIENT = f'''{HEAD}
import json
kept, pids = [], []
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
def poll_for(mask):
    def wait(s, ep):
        p = select.poll(); p.register(s, mask)
        return [e for _, e in p.poll()]
    return wait
def epoll_for(mask):
    def wait(s, ep): return [e for _, e in ep.poll()]
    wait.mask = mask
    return wait
def attempt(wait, s, ep):
    try: return str(wait(s, ep))
    except OSError as e: return name(e)
def in_child(wait):
    def both(s, ep):
        r, w = os.pipe()
        pids[:] = pid, = [os.fork()]
        if pid == 0: os.write(w, attempt(wait, s, ep).encode()); os._exit(0)
        os.close(w); os.waitpid(pid, 0); pids.remove(pid)
        return os.read(r, 999).decode()
    return both
def recv(s, ep): return s.recv(9)
def send(s, ep): return s.send(bytes(100000))
IN, OUT = select.POLLIN | select.POLLRDHUP, select.POLLOUT
waits = {{
    "recv": recv,
    "recv to peek": lambda s, ep: s.recv(9, socket.MSG_PEEK),
    "recv of all": lambda s, ep: s.recv(9, socket.MSG_WAITALL),
    "poll in": poll_for(IN),
    "poll out, full": poll_for(OUT),
    "poll for nothing": poll_for(0),
    "select in": lambda s, ep: len(select.select([s], [], [])[0]),
    "select out, full": lambda s, ep: len(select.select([], [s], [])[1]),
    "epoll in": epoll_for(IN),
    "epoll in, edges": epoll_for(IN | select.EPOLLET),
    "epoll out, full": epoll_for(OUT),
    "send, full": send,
    "sendmsg, full": lambda s, ep: s.sendmsg([bytes(100000)]),
    "recv in a child": in_child(recv),
    "send in a child, full": in_child(send),
}}
null = os.open("/dev/null", os.O_RDWR)
changes = {{
    "shutdown to read": lambda s: s.shutdown(socket.SHUT_RD),
    "shutdown to write": lambda s: s.shutdown(socket.SHUT_WR),
    "shutdown": lambda s: s.shutdown(socket.SHUT_RDWR),
    "close": lambda s: os.close(s.fileno()),
    "dup2": lambda s: os.dup2(null, s.fileno()),
}}
def fill(s):
    s.setblocking(False); quiet = 0
    while quiet < 10:
        try: s.send(bytes(100000)); quiet = 0
        except BlockingIOError: quiet += 1; time.sleep(0.01)
    s.setblocking(True)
def settle(t):
    wait_thread(t)
    for pid in pids: wait_asleep(pid); wait_thread(t)
def outcome(what, change, wanted):
    s, ep, wait, done = dial(), select.epoll(), waits[what], []
    if hasattr(wait, "mask"): ep.register(s, wait.mask)
    def start():
        if what.endswith("full"): fill(s)
        t = threading.Thread(target=lambda: done.append(attempt(wait, s, ep)), daemon=True)
        done.clear(); pids.clear(); t.start(); settle(t)
        return t
    t = start()
    # a peer that is slow to take what is on its way leaves room again
    while done and what.endswith("full"): t = start()
    if done: return "did not wait: " + done[0]
    changes[change](s); kept.append(s)
    # the kernel wakes a thread at once; what it is to hear of somebody else comes later
    t.join(0.2 if wanted == "waits" else 20 if wanted else 0)
    settle(t)
    for pid in pids: os.kill(pid, 9)
    return done[0] if done else "waits"
wants = json.load(open(folder + "/wants"))
for what in waits:
    for change in changes:
        if "child" in what and "shutdown" not in change: continue   # it has descriptors of its own
        if sys.argv[5] == "few" and change not in ("shutdown", "dup2"): continue
        key = what + ": " + change
        if sys.argv[4] in key: say(json.dumps([key, outcome(what, change, wants.get(key))]))
os._exit(0)
'''


# It sends and reads much on each connection.
GENEROUS = f'''{HEAD}
def serve(s):
    threading.Thread(target=lambda: all_of(s)).start()
    try: s.sendall(data[:100000])
    except OSError: pass
l = listen()
for _ in range(2): serve(l.accept()[0])
'''


def outcomes(pair, wants):
    """The outcome of each wait and change."""
    pair.server(PYTHON, '-c', SERVER, pair.server_ip, PORT, pair.folder, text='ready')
    pair.write('wants', json.dumps(wants))
    out = pair.client(PYTHON, '-c', CLIENT, pair.server_ip, PORT, pair.folder,
                      os.environ.get('SAN_ONLY', ''), 'few' if IS_CHECK else 'all')
    return dict(json.loads(line) for line in out.splitlines())


@sock.may_fail
def changed_under_a_waiter():
    want = outcomes(sock.shared(sock.KERNEL, 'tcp'), {})
    pair = carried_pair()
    got = outcomes(pair, want)
    carried = pair.grown()['streams_accepted']
    check(carried == len(want), f'{carried} of {len(want)} were carried')
    wrong = [f'{key}: {got[key]}, on the kernel {want[key]}' for key in want if got[key] != want[key]]
    check(not wrong, '\n'.join(wrong))


# A thread waits or calls repeatedly, while another one first binds the socket.
NAMED = f'''{HEAD}
import json
to, rounds = (ip, port), int(sys.argv[4])
def polled(s):
    p = select.poll(); p.register(s, select.POLLIN)
    return p.poll() and s.recv(9, socket.MSG_DONTWAIT)
def in_epoll(s):
    ep = select.epoll(); ep.register(s, select.EPOLLIN)
    return ep.poll() and s.recv(9, socket.MSG_DONTWAIT)
waits = {{
    "recv": lambda s: s.recv(9),
    "recvfrom": lambda s: s.recvfrom(9)[0],
    "recvmsg": lambda s: s.recvmsg(9)[0],
    "recv to peek": lambda s: s.recv(9, socket.MSG_PEEK),
    "read": lambda s: os.read(s.fileno(), 9),
    "readv": lambda s: os.readv(s.fileno(), [bytearray(9)]),
    "poll": polled,
    "select": lambda s: select.select([s], [], []) and s.recv(9, socket.MSG_DONTWAIT),
    "epoll": in_epoll,
    "recv of time": lambda s: s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                                           struct.pack("ll", 60, 0)) or s.recv(9),
}}
calls = {{
    "getsockname": lambda s: s.getsockname()[0] in ("0.0.0.0", own),
    "getsockopt": lambda s: s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN),
    "setsockopt": lambda s: s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 9),
    "ioctl": lambda s: fcntl.ioctl(s, termios.FIONREAD, b"0000") != b"0000",
    "dup": lambda s: os.close(os.dup(s.fileno())),
    "dup to its own": lambda s: os.dup2(s.fileno(), s.fileno()) == s.fileno(),
    "fcntl": lambda s: fcntl.fcntl(s, fcntl.F_GETFL),
    "nothing there": lambda s: nothing(s),
    "epoll_ctl": lambda s: ep.register(s, 0) or ep.unregister(s),
    "sendto": lambda s: time.sleep(0.001) or s.sendto(b"more", to),
}}
ep = select.epoll()
def nothing(s):
    try: s.recv(9, socket.MSG_DONTWAIT | socket.MSG_PEEK); return "nothing"
    except BlockingIOError: return "nothing"
def by_connect(s): s.connect(to); s.send(b"first")
def by_bind(s): s.bind(("0.0.0.0", 0)); s.sendto(b"first", to)
names = {{"sendto": lambda s: s.sendto(b"first", to), "connect": by_connect, "bind": by_bind}}
def waited(wait, give, asleep):
    s, got = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), []
    t = threading.Thread(target=lambda: got.append(wait(s)))
    t.start()
    if asleep: wait_thread(t)
    give(s); t.join()
    return str(got[0])
def called(call, give):
    s, got, ends = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), set(), []
    def again():
        while not ends:
            try: got.add(str(call(s)))
            except OSError as e: got.add(name(e)); break
    t = threading.Thread(target=again); t.start()
    give(s); all_heard(s); ends.append(1); t.join()
    return str(sorted(got))
def all_heard(s):
    while s.recv(9) != b"first": pass
own = sys.argv[5]
for what, wait in waits.items():
    for by, give in names.items():
        said = sorted({{waited(wait, give, i % 2 == 0) for i in range(rounds)}})
        say(what, "while", by, said)
for what, call in calls.items():
    for by, give in names.items():
        if (what, by) == ("sendto", "bind"): continue       # it may have a name by then
        say(what, "beside", by, sorted({{called(call, give) for i in range(rounds)}}))
'''


@sock.may_fail
def named_under_a_call():
    """A datagram that arrives once a socket is bound is received by a thread that waited before,
    and calls at the same time use the right socket."""
    def said(pair):
        pair.server(PYTHON, PEER, 'echo_selectors', pair.server_ip, PORT, port=PORT)
        return pair.client(PYTHON, '-c', NAMED, pair.server_ip, PORT, pair.folder, ROUNDS,
                           pair.client_ip).splitlines()
    want = said(sock.shared(sock.KERNEL, 'udp'))
    pair = sock.shared(sock.CLIENT, 'udp')
    got = said(pair)
    wrong = [f'{a}, on the kernel {b}' for a, b in zip(got, want) if a != b]
    check(not wrong and len(got) == len(want), '\n'.join(wrong))
    check(pair.grown()['tx_pkts'] >= len(want) * ROUNDS, 'not all were carried')


@sock.may_fail
def named_by_its_peer():
    """A bound socket is the kernel's. After connect() a rule would carry it, but not while a thread
    waits."""
    pair = sock.shared(sock.CLIENT, 'udp', rules=f'carry remote {PEER_IP}')
    pair.server(PYTHON, PEER, 'echo_selectors', pair.server_ip, PORT, text='ready')
    out = pair.client(PYTHON, '-c', f'''{HEAD}
def polled(s):
    p = select.poll(); p.register(s, select.POLLIN)
    return p.poll(60000) and s.recv(9)
def named(wait):
    s, got = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), []
    s.bind(("0.0.0.0", 0))
    t = threading.Thread(target=lambda: got.append(wait(s)))
    if wait != late: t.start(); wait_thread(t)
    s.connect((ip, port)); s.send(b"hi")
    if wait == late: t.start()
    t.join(); return got[0]
def late(s): return s.recv(9)
say(*[named(wait) for wait in (lambda s: s.recv(9), polled, late)])
''', pair.server_ip, PORT, pair.folder)
    check(out == "b'hi' b'hi' b'hi'\n", out)
    grown = pair.grown()
    check(grown['Udp.OutDatagrams'] == 2 and grown['tx_pkts'] > 0, f'not one of three: {grown}')


# A thread for each way of waiting, and of not waiting, each with its own socket, answers.
ANSWERS = f'''{HEAD}
def polled(s, *limit):
    p = select.poll(); p.register(s, select.POLLIN)
    return lambda: (p.poll(*limit), time.sleep(0.01 * len(limit)))
def in_epoll(s, *limit):
    ep = select.epoll(); ep.register(s, select.EPOLLIN)
    return lambda: (ep.poll(*limit), time.sleep(0.01 * len(limit)))
def answer(s, wait):
    while True:
        wait()
        try: d, a = s.recvfrom(99)
        except BlockingIOError: continue
        s.sendto(d, a)
for i, how in enumerate((lambda s: int, polled, in_epoll, lambda s: lambda: select.select([s], [], []),
                         lambda s: lambda: time.sleep(0.01), lambda s: polled(s, 0), lambda s: in_epoll(s, 0))):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((ip, port + i)); s.setblocking(i == 0)
    threading.Thread(target=answer, args=(s, how(s))).start()
say("ready")
'''
ASKS = f'''{HEAD}
for i in range(7):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.1); s.connect((ip, port + i))
    while True:
        try: s.send(b"%d" % i); say(s.recv(9)); break
        except (TimeoutError, ConnectionRefusedError): pass
'''


def daemon_crashes():
    """UDP sockets continue with the kernel when their daemon has died, and new ones with the next
    daemon."""
    with Work() as work, sock.Pair(work, sock.SERVER, 'udp') as pair:
        def all_answer():
            out = pair.client(PYTHON, '-c', ASKS, pair.server_ip, PORT, pair.folder)
            check(out == ''.join(f"b'{i}'\n" for i in range(7)), out)
        pair.server(PYTHON, '-c', ANSWERS, pair.server_ip, PORT, pair.folder, text='ready')
        all_answer()
        daemon = pair.daemons['us']
        check(daemon.counters()['tx_pkts'] >= 7, 'they were not carried')
        daemon.process.kill()
        all_answer()
        pair.daemons['us'] = daemon = daemon.again()
        pair.server(PYTHON, PEER, 'echo_selectors', pair.server_ip, PORT + 9, port=PORT + 9)
        check(daemon.ask('sockets')['sockets'] >= 1, daemon.ask('sockets'))
        # each socket asks again from time to time when it answers
        until_true('they are carried again',
                   lambda: all_answer() or daemon.ask('sockets')['sockets'] == 8)


def daemon_crashes_under_a_stream():
    """The stream is reset, which differs from its end; the listener continues with the kernel."""
    with Work() as work, sock.Pair(work, sock.SERVER, 'tcp', 2) as pair:
        s = pair.server(PYTHON, '-c', HEAD + '''
def attempt(call, *args):
    try: say(call(*args))
    except OSError as e: say(name(e))
l = listen(); s, _ = l.accept(); say(s.recv(9)); attempt(s.recv, 9); attempt(s.recv, 9)
attempt(s.send, b"x"); s, _ = l.accept(); say(s.recv(9))
''', pair.server_ip, PORT, pair.folder, text='ready')
        client = pair.background('client', PYTHON, '-c', f'''{HEAD}
s = dial(); s.send(b"hi"); hear("gone"); t = dial(); t.send(b"again")
''', pair.server_ip, PORT, pair.folder)
        s.wait_text("b'hi'")
        check(pair.grown()['streams_accepted'] == 1, 'it was not carried')
        pair.daemons.pop('us').process.kill()
        s.wait_text('EPIPE')
        pair.write('gone', '')
        s.wait(), client.wait()
        check(s.out() == "ready\nb'hi'\nECONNRESET\nb''\nEPIPE\nb'again'\n", s.tail())


def daemon_crashes_without_waiters():
    """Streams whose programs only send, or only look, are reset within seconds."""
    with Work() as work, sock.Pair(work, sock.SERVER, 'tcp', 2) as pair:
        s = pair.server(PYTHON, '-c', HEAD + '''
def sends(s):
    try:
        while True: s.send(b"x"); time.sleep(0.01)
    except OSError as e: say("sends", name(e))
def looks(s):
    p = select.poll(); p.register(s, select.POLLIN)
    while not (is_ := p.poll(0)): time.sleep(0.01)
    say("looks", bool(is_[0][1] & select.POLLHUP))
l = listen(); both = [(f, l.accept()[0]) for f in (sends, looks)]; say("both"); hear("gone")
for f, s in both: f(s)
''', pair.server_ip, PORT, pair.folder, text='ready')
        pair.background('client', PYTHON, '-c', f'{HEAD}\nboth = dial(), dial(); all_of(both[0])',
                        pair.server_ip, PORT, pair.folder)
        s.wait_text('both')
        pair.daemons.pop('us').process.kill()
        pair.write('gone', '')
        s.wait()
        check(s.out() == 'ready\nboth\nsends ECONNRESET\nlooks True\n', s.tail())


def daemon_restarts_under_a_listener():
    """A listener that the kernel served meanwhile is carried by the next daemon."""
    with Work() as work, sock.Pair(work, sock.SERVER, 'tcp', 2) as pair:
        pair.server(PYTHON, '-c', HEAD + '''
l = listen()
while True: s, _ = l.accept(); s.send(b"there"); s.close()
''', pair.server_ip, PORT, pair.folder, text='ready')

        def answers():
            out = pair.client(PYTHON, '-c', HEAD + 'say(all_of(dial()))', pair.server_ip, PORT, pair.folder)
            check(out == "b'there'\n", out)
            return True
        answers()
        daemon = pair.daemons['us']
        check(daemon.ask('sockets')['streams_accepted'] == 1, 'it was not carried')
        daemon.process.kill()
        answers()
        pair.daemons['us'] = daemon = daemon.again()
        until_true('it is carried again', lambda: answers() and daemon.ask('sockets')['streams_accepted'] != 0)


@sock.may_fail
def small_stacks():
    def said(pair):
        pair.server(PYTHON, '-c', GENEROUS, pair.server_ip, PORT, pair.folder, text='ready')
        return pair.client(SMALL_STACK, pair.server_ip, PORT)
    want = said(sock.shared(sock.KERNEL, 'tcp'))
    pair = carried_pair()
    got = said(pair)
    check(got == want, f'carried: {got}, on the kernel: {want}')
    check(pair.grown()['streams_accepted'] == 2, 'not all were carried')


def main():
    tests = sock.begin()
    tests.add('changed under a waiter', changed_under_a_waiter)
    tests.add('named under a call', named_under_a_call)
    tests.add('named by its peer', named_by_its_peer)
    tests.add('small stacks', small_stacks)
    tests.add('daemon crashes', daemon_crashes)
    tests.add('daemon crashes under a stream', daemon_crashes_under_a_stream)
    tests.add('daemon crashes without waiters', daemon_crashes_without_waiters)
    tests.add('daemon restarts under a listener', daemon_restarts_under_a_listener)
    tests.add('daemons end', sock.stop_shared)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
