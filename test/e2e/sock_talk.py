# SPDX-License-Identifier: BSD-3-Clause
"""Two small Python programs that talk by TCP, and their output.

A case is what the server does with its listener *l*, and what the client does. The output must be
the same on the kernel and when both ends are carried. No program waits by the clock:
asleep("server") returns when the other one can do no more, and messages between them are passed.
"""

import functools
import os

import sock
from e2e import BUILD, Failed, check
from sock import HERE, PYTHON

PORT = 5100
HEAD = f'''
import array, errno, fcntl, hashlib, os, select, signal, socket, struct, subprocess, sys, termios
import threading, time
sys.path.append({HERE!r})
from asleep import wait_asleep, wait_thread
stdio = {os.path.join(BUILD, "test/e2e/sock_stdio")!r}
''' + '''
ip, port, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def tell(what, text=""):
    with open(f"{folder}/{what}.new", "w") as f: f.write(text)
    os.rename(f"{folder}/{what}.new", f"{folder}/{what}")
def hear(what):
    while not os.path.exists(f"{folder}/{what}"): time.sleep(0.01)
def asleep(other): hear(other); wait_asleep(open(f"{folder}/{other}").read())
def say(*what): print(*what, flush=True)
def name(e): return errno.errorcode[e.errno]
def ready(s): return [bool(x) for x in select.select([s], [s], [], 0)[:2]]
def all_of(s, n=1 << 40):
    parts = b""
    while len(parts) < n and (d := s.recv(65536)): parts += d
    return parts
def digest(b): return len(b), hashlib.sha256(b).hexdigest()[:12]
def listen(waits=True):
    tell("server", str(os.getpid())); l = socket.socket()
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind((ip, port)); l.listen()
    if waits: ready(l)      # from now on it gets streams
    say("ready")
    return l
def dial(**how):
    tell("client", str(os.getpid())); return socket.create_connection((ip, port), **how)
def story(name):
    p = subprocess.Popen([stdio, name, ip, str(port)], stdout=subprocess.PIPE, text=True)
    tell("client", str(p.pid)); out = p.communicate()[0]
    say(name, p.returncode, out)
def by_line(s):
    for line in s.makefile("rb"):
        say(line)
        if line == b"bye\\n": break
        s.send(b"echo " + line)
data = bytes(i * 7 + (i >> 8) & 255 for i in range(3_000_000))
'''


def talk(pair, case, plain=False):
    """The output of both, and separately the server's standard error, which may differ."""
    server, client = case
    args = (pair.server_ip, PORT, pair.folder)
    s = pair.server(PYTHON, '-c', f'{HEAD}\nl = listen()\n{server}', *args, text='ready',
                    plain=plain)
    try:
        out = pair.client(PYTHON, '-c', HEAD + client, *args)
    except Failed as e:
        raise Failed(f'{e}; the server: {s.tail()}') from None
    s.wait()
    return out, s.out(), s.err()


def carried_pair():
    return sock.shared(sock.SERVER, 'tcp', 2)


@sock.may_fail
def same(case):
    want = talk(sock.shared(sock.KERNEL, 'tcp'), case)
    pair = carried_pair()
    got = talk(pair, case)
    check(got[:2] == want[:2], f'carried: {got}, on the kernel: {want}')
    grown = pair.grown()
    check(grown['streams_accepted'] > 0, 'it was not carried')
    check(grown['tx_pkts'] > 0, 'nothing was sent')
    pair.wait_unused()


def both(test):
    @sock.may_fail
    @functools.wraps(test)
    def run():
        pair = carried_pair()
        test(pair, pair.daemons['us'], pair.daemons['peer'])
    return run
