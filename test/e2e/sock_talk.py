# SPDX-License-Identifier: BSD-3-Clause
"""Two small programs of Python that talk to each other by TCP, and what they say.

A case is what the server does with its listener *l*, and what the client does; it must be the
same on the kernel as when both are carried.
"""

import os

import sock
from e2e import BUILD, Work, check
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
def story(name):
    p = subprocess.run([stdio, name, ip, str(port)], stdout=subprocess.PIPE, text=True, timeout=15)
    say(name, p.returncode, p.stdout)
def by_line(s):
    for line in s.makefile("rb"):
        say(line)
        if line == b"bye\\n": break
        s.send(b"echo " + line)
data = bytes(i * 7 + (i >> 8) & 255 for i in range(3_000_000))
''' + f'stdio = {os.path.join(BUILD, "test/e2e/sock_stdio")!r}\n'



def talk(pair, case, plain=False):
    """What both of them say."""
    server, client = case
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
