#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs for test_sock_programs.py that Debian does not have: echo servers that use Python's ways
of waiting, and clients that print what they receive.

usage: sock_peer.py KIND ARGUMENT...
"""

import asyncio
import hashlib
import multiprocessing
import selectors
import signal
import socket
import socketserver
import struct
import sys
import threading

SIZES = [0, 1, 2, 63, 64, 512, 1400, 1472]      # of datagrams without fragments
WAIT_S = 60


def udp(ip, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((ip, int(port)))
    return s


def ready():
    print('ready', flush=True)


def digest(parts):
    return hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]


# ---- echo servers ----

def echo_selectors(ip, port):
    with udp(ip, port) as s, selectors.DefaultSelector() as selector:
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ)
        ready()
        while True:
            selector.select()
            try:
                while True:
                    data, peer = s.recvfrom(2000)
                    s.sendto(data, peer)
            except BlockingIOError:
                pass


class EchoProtocol(asyncio.DatagramProtocol):
    transport = None

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.transport.sendto(data, addr)


def echo_asyncio(ip, port):
    async def serve():
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(EchoProtocol, (ip, int(port)))
        ready()
        await asyncio.Event().wait()
    asyncio.run(serve())


class EchoHandler(socketserver.BaseRequestHandler):
    def handle(self):
        data, s = self.request
        s.sendto(data, self.client_address)


def echo_socketserver(ip, port):
    with socketserver.ThreadingUDPServer((ip, int(port)), EchoHandler) as server:
        server.daemon_threads = True
        ready()
        server.serve_forever()


def echo_loop(s):
    while True:
        data, peer = s.recvfrom(2000)
        s.sendto(data, peer)


def echo_processes(ip, port):
    """Two processes with one socket."""
    with udp(ip, port) as s:
        workers = [multiprocessing.Process(target=echo_loop, args=(s,), daemon=True)
                   for _ in range(2)]
        for worker in workers:
            worker.start()
        ready()
        for worker in workers:
            worker.join()


# ---- echo servers of TCP: they close after the client has closed ----

def listener(ip, port):
    return socket.create_server((ip, int(port)), backlog=16)


def serve_selectors(ip, port):
    """One thread that waits both for data and for room."""
    unsent, ended = {}, set()
    with listener(ip, port) as s, selectors.DefaultSelector() as selector:
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ)
        ready()
        while True:
            for key, events in selector.select():
                c = key.fileobj
                if c is s:
                    c = s.accept()[0]
                    c.setblocking(False)
                    unsent[c] = b''
                elif events & selectors.EVENT_READ:
                    data = c.recv(20_000)
                    unsent[c] += data
                    if not data:
                        ended.add(c)
                if events & selectors.EVENT_WRITE:
                    try:
                        unsent[c] = unsent[c][c.send(unsent[c]):]
                    except BlockingIOError:     # known, see doc/sockets.md
                        pass
                watch(selector, c, unsent, ended)


def watch(selector, c, unsent, ended):
    """Watch for data if nothing is unsent, else for room; for nothing once all is sent and the end
    came."""
    if c in selector.get_map():
        selector.unregister(c)
    if unsent[c]:
        selector.register(c, selectors.EVENT_WRITE)
    elif c not in ended:
        selector.register(c, selectors.EVENT_READ)
    else:
        ended.remove(c)
        del unsent[c]
        c.close()


async def echo_stream(reader, writer):
    while data := await reader.read(20_000):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
    writer.close()


def serve_asyncio(ip, port):
    async def serve():
        server = await asyncio.start_server(echo_stream, ip, int(port))
        ready()
        await server.serve_forever()
    asyncio.run(serve())


class StreamHandler(socketserver.StreamRequestHandler):
    def handle(self):
        while data := self.rfile.read1(20_000):
            self.wfile.write(data)


def serve_with(kind, ip, port):
    kind.allow_reuse_address = kind.daemon_threads = True
    with kind((ip, int(port)), StreamHandler) as server:
        ready()
        server.serve_forever()


def serve_threads(ip, port):
    serve_with(socketserver.ThreadingTCPServer, ip, port)


def serve_forks(ip, port):
    """A process for each connection."""
    serve_with(socketserver.ForkingTCPServer, ip, port)


def accept_loop(s):
    while True:
        with s.accept()[0] as c:
            while data := c.recv(20_000):
                c.sendall(data)


def serve_processes(ip, port):
    """Two processes forked before any connection, with one listener; one connection each at
    a time."""
    with listener(ip, port) as s:
        workers = [multiprocessing.Process(target=accept_loop, args=(s,), daemon=True)
                   for _ in range(2)]
        for worker in workers:
            worker.start()
        ready()
        for worker in workers:
            worker.join()


# ---- UDP clients ----

def ask(ip, port, least='0'):
    """Each datagram, of *least* bytes or more, returns. The number of repetitions is
    not printed."""
    got = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((ip, int(port)))
        s.settimeout(0.5)
        for i in range(200):
            size = max(SIZES[i % len(SIZES)], int(least))
            data = (b'%d.' % i * 800)[:size]
            for _ in range(100):
                try:
                    s.send(data)
                    while (answer := s.recv(2000)) != data:
                        pass    # the late answer to a repeated datagram
                    got.append(answer)
                    break
                except (TimeoutError, ConnectionRefusedError):
                    pass
    print(len(got), digest(got))


def memcached_udp(ip, port):
    """Requests by UDP: a header of 8 bytes, then the text protocol. Answers have several parts."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(WAIT_S)
        s.connect((ip, int(port)))
        big = b'0123456789' * 100
        for i, text in enumerate((b'set a 1 0 5\r\nhello\r\n', b'get a\r\n',
                                  b'set b 0 0 1000\r\n' + big + b'\r\n',
                                  *[b'append b 0 0 1000\r\n' + big + b'\r\n'] * 4, b'get b\r\n',
                                  b'incr a 1\r\n', b'delete a\r\n', b'get a\r\n')):
            s.send(struct.pack('>HHHH', i, 0, 1, 0) + text)
            pieces, total = {}, 1
            while len(pieces) < total:
                answer = s.recv(2000)
                number, at, total, _ = struct.unpack('>HHHH', answer[:8])
                if number == i:
                    pieces[at] = answer[8:]
            answer = b''.join(pieces[k] for k in sorted(pieces))
            print(len(answer), answer[:60])


# ---- multicast ----

def mcast_read(group, port, interface, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(('', int(port)))
        join = socket.inet_aton(group) + socket.inet_aton(interface)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, join)
        s.settimeout(WAIT_S)
        ready()
        got = []
        try:
            while len(got) < int(count):
                got.append(s.recv(2000))
        except TimeoutError:
            pass
        s.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, join)
        print(len(got), digest(sorted(got)), flush=True)


def mcast_send(group, port, interface, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
        for i in range(int(count)):
            s.sendto(b'%d.' % i * 50, (group, int(port)))


# ---- TCP clients ----

def send_all(s, data):
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)


def talk(ip, port):
    """Twice, with two connections at a time: first small requests and their answers in turn; then
    more than the buffers hold, and the end, while reading what returns up to the other end."""
    for i in range(2):
        both = [socket.create_connection((ip, int(port)), WAIT_S) for _ in range(2)]
        files = [s.makefile('rb') for s in both]
        for size in (1, 64, 1460, 5000) * 10:
            for s, f in zip(both, files):
                s.sendall(b'q' * size)
                if f.read(size) != b'q' * size:
                    sys.exit(f'not what was sent: {size} bytes')
        much = [b'%d.%d.' % (i, k) * 200_000 for k in range(2)]
        threads = [threading.Thread(target=send_all, args=pair) for pair in zip(both, much)]
        for thread in threads:
            thread.start()
        back = [f.read() for f in files]
        for thread in threads:
            thread.join()
        if back != much:
            sys.exit(f'of {[len(b) for b in much]} bytes came back {[len(b) for b in back]}')
        print(digest(back))
        for s, f in zip(both, files):
            f.close()
            s.close()


def memcached_tcp(ip, port):
    """Two connections, several commands in a row without waiting."""
    for offset in (0, 1000):
        with socket.create_connection((ip, int(port)), WAIT_S) as s, s.makefile('rb') as f:
            s.sendall(b''.join(b'set k%d 0 0 5 noreply\r\nv%04d\r\n' % (i, i % 10000)
                               for i in range(offset, offset + 1000)))
            s.sendall(b''.join(b'get k%d\r\n' % i for i in range(offset, offset + 1000)))
            answers = [f.readline() for _ in range(3 * 1000)]
            s.sendall(b'nonsense\r\nquit\r\n')
            print(digest(answers), f.readline(), f.read())


def web(url):
    """Many requests of one connection, then several connections at the same time."""
    import http.client      # only here, because loading it is slow
    host, _, path = url.removeprefix('http://').partition('/')
    c = http.client.HTTPConnection(host, timeout=WAIT_S)
    for name in (path, 'nosuch', path):
        c.request('GET', '/' + name)
        answer = c.getresponse()
        body = answer.read()
        print(answer.status, digest([body]) if answer.status == 200 else len(body))
    many = [http.client.HTTPConnection(host, timeout=WAIT_S) for _ in range(5)]
    for c in many:
        c.request('GET', '/' + path)
    print([digest([c.getresponse().read()]) for c in many])


KINDS = {f.__name__: f for f in (echo_selectors, echo_asyncio, echo_socketserver, echo_processes,
                                 serve_selectors, serve_asyncio, serve_threads, serve_forks,
                                 serve_processes, ask, memcached_udp, mcast_read, mcast_send,
                                 talk, memcached_tcp, web)}

if __name__ == '__main__':
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    KINDS[sys.argv[1]](*sys.argv[2:])
