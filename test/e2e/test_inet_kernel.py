#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A port of the stack and the Linux kernel at the two ends of a veth pair or of a TAP: how each
handles the other's ARP, ND, echoes, fragments and errors. (UDP-3, RT-31)
"""

import contextlib
import errno
import os
import random
import socket
import struct
import sys
import time

from e2e import (CLIENT_IP6, HERE, PATIENCE, SANITIZE, SERVER_IP6, Link, Namespace, Server, Tests,
                 Veth, Work, check, counter, need_namespaces, until_true)
from daemon import Daemon
from test_veth import need_xdp

TRANSPORT = 4791
# Bytes of an echo: one packet, exactly one, two, three, and the maximum.
SIZES = (0, 1, 56, 1400, 1472, 1473, 2000, 4000, 20000, 65507)
# DPDK's af_packet gets reassembled IPv4 packets from the kernel, and truncates them.
SHORT = SIZES[:6]
# Fragments are reassembled for datagrams only, if the port has sockets.
SOCKETS = {'server': ['sockets=16']}
GARBAGE = 3000 if SANITIZE else 20000


# ---- in the kernel's namespace ----

def checksum(data):
    if len(data) % 2:
        data += b'\0'
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def family(peer):
    return socket.AF_INET6 if ':' in peer else socket.AF_INET


def ping(peer, size, seq):
    """An echo of *size* bytes through a raw socket: the kernel makes the fragments."""
    v6 = ':' in peer
    s = socket.socket(family(peer), socket.SOCK_RAW,
                      socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
    s.settimeout(1)
    data = random.randbytes(size)
    head = struct.pack('!HH', os.getpid() & 0xFFFF, seq)
    body = struct.pack('!BBH', 128 if v6 else 8, 0, 0) + head + data
    if not v6:
        body = body[:2] + struct.pack('!H', checksum(body)) + body[4:]
    want = bytes([129 if v6 else 0, 0])
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        s.sendto(body, (peer, 0))
        with contextlib.suppress(TimeoutError):     # buffers may be occupied
            while True:
                got = s.recv(65536)
                if not v6:
                    got = got[(got[0] & 15) * 4:]
                if got[:2] == want and got[4:8] == head:
                    return got[8:] == data
    return False


def prompt(peer):
    """Echoes with a pause before each: a quarter of them is answered in a tenth of the time for which
    an lcore sleeps if nothing wakes it. Other tests may delay the rest."""
    took = []
    for seq in range(40):
        time.sleep(0.03)
        start = time.monotonic()
        if not ping(peer, 56, seq):
            return False
        took.append(time.monotonic() - start)
    quarter = sorted(took)[10]
    print(f'an echo takes {quarter * 1e6:.0f} us', flush=True)
    return quarter < 0.002


def refused(peer, port, size=10):
    """True if the kernel's socket gets an error because the port is closed."""
    s = socket.socket(family(peer), socket.SOCK_DGRAM)
    s.settimeout(PATIENCE)
    s.connect((peer, port))
    s.send(bytes(size))
    try:
        s.recv(10)
    except OSError as e:
        return e.errno == errno.ECONNREFUSED
    return False


def garbage(peer, n):
    """Packets with a few wrong bytes, truncated ones, and arbitrary fragments."""
    import logging
    logging.getLogger('scapy').setLevel(logging.ERROR)
    from scapy.all import (ARP, ICMP, IP, UDP, Ether, ICMPv6DestUnreach, ICMPv6EchoRequest,
                           ICMPv6PacketTooBig, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                           IPv6ExtHdrHopByHop, PadN, RouterAlert, fragment, fragment6)
    rand = random.Random(4)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(('pv0', 0))
    mac = s.getsockname()[4].hex(':')
    with open('/proc/net/arp', encoding='ascii') as f:
        known = {line.split()[0]: line.split()[3] for line in f.readlines()[1:]}
    eth = Ether(src=mac, dst=known.get(peer, 'ff:ff:ff:ff:ff:ff'))
    if ':' in peer:
        out = os.popen('ip -6 neigh').read().split()
        eth.dst = out[out.index('lladdr') + 1]
        ours, data = 'fd77::2', bytes(range(250)) * 10
        ip = IPv6(src=ours, dst=peer)
        quoted = bytes(IPv6(src=peer, dst=ours) / UDP(sport=1, dport=2) / data[:600])
        seeds = [ip / UDP(sport=1, dport=9) / b'x', ip / ICMPv6EchoRequest(data=b'abc'),
                 ip / IPv6ExtHdrHopByHop(options=[RouterAlert()]) / UDP(sport=1, dport=9) / b'x',
                 ip / IPv6ExtHdrDestOpt(options=[PadN(optdata=b'\0\0')]) / UDP(dport=9) / b'x',
                 ip / ICMPv6DestUnreach(code=4) / quoted[:100],
                 ip / ICMPv6PacketTooBig(mtu=1280) / quoted[:100],
                 *fragment6(ip / IPv6ExtHdrFragment(id=5) / UDP(dport=9) / data, 1280)]
    else:
        ip = IP(src='10.77.0.2', dst=peer)
        quoted = bytes(IP(src=peer, dst='10.77.0.2') / UDP(sport=1, dport=2) / bytes(600))
        seeds = [ip / UDP(sport=1, dport=9) / b'x', ip / ICMP() / b'abc',
                 ip / ICMP(type=3, code=3) / quoted[:36],
                 ip / ICMP(type=3, code=4, nexthopmtu=576) / quoted[:36],
                 ARP(op=1, hwsrc=mac, psrc='10.77.0.2', pdst=peer),
                 *fragment(ip / UDP(sport=1, dport=9) / bytes(4000))]
    seeds = [bytes(eth / p) for p in seeds]
    for _ in range(n):
        frame = bytearray(rand.choice(seeds))
        for _ in range(rand.randrange(4)):
            frame[rand.randrange(12, len(frame))] = rand.randrange(256)
        if rand.random() < 0.3:
            del frame[rand.randrange(14, len(frame)):]
        try:
            s.send(frame)
        except OSError as e:
            if e.errno != errno.ENOBUFS:
                raise
            time.sleep(0.001)
    return True


def inside(what, peer, *args):
    """The part in the kernel's namespace; the exit status is the result."""
    fine = True
    if what == 'ping':
        for seq, size in enumerate(args):
            good = ping(peer, int(size), seq)
            print(f'{size} bytes: {"answered" if good else "not answered"}', flush=True)
            fine = fine and good
    elif what == 'prompt':
        fine = prompt(peer)
    elif what == 'refused':
        fine = refused(peer, int(args[0]), int(args[1]))
    elif what == 'garbage':
        fine = garbage(peer, int(args[0]))
    return 0 if fine else 1


# ---- outside of the namespace ----

def configure(ns, device, address, v6):
    """Set up the kernel's end."""
    if v6:
        ns.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=0',
               f'net.ipv6.conf.{device}.disable_ipv6=0')
    ns.run('ip', 'addr', 'add', address, 'dev', device, *(['nodad'] if v6 else []))


def do(link, ns, what, *args):
    """Run a part in the kernel's namespace to its end."""
    process = link.work.start(what, [
        *ns.exec(), '/usr/bin/python3', os.path.join(HERE, 'test_inet_kernel.py'), '--inside',
        what, link.server_ip, *map(str, args)])
    check(process.wait() == 0, f'{what} {args}: {process.tail()}')


class Kernel(Veth):
    """Our server at one end; the kernel of the other namespace has the client's address."""

    def __init__(self, work, v6, driver='af_packet'):
        super().__init__(work, driver, v6=v6)
        self.sets = SOCKETS
        configure(self.ns['client'], 'pv0', f'{self.client_ip}/{self.bits}', v6)

    def do(self, what, *args):
        do(self, self.ns['client'], what, *args)


class Tap(Link):
    """The other end of our port is the kernel itself."""

    def __init__(self, work, v6):
        super().__init__(work, sets=SOCKETS)
        if v6:
            self.server_ip, self.client_ip, self.bits = SERVER_IP6, CLIENT_IP6, 64
        self.v6 = v6
        self.ns = Namespace(work)

    def wrap(self, role):
        return self.ns.exec()

    def vdev(self, role):
        return '--vdev=net_tap0,iface=pv0,mac=02:00:00:00:78:01'

    def start(self):
        """The device exists once our program runs; its MAC address must differ from our port's."""
        server = Server(self)
        self.ns.run('ip', 'link', 'set', 'pv0', 'address', '02:00:00:00:79:01', 'up')
        configure(self.ns, 'pv0', f'{self.client_ip}/{self.bits}', self.v6)
        return server

    def do(self, what, *args):
        do(self, self.ns, what, *args)


def echo(work, v6):
    """Echoes of any length; long ones are fragmented in both directions."""
    link = Kernel(work, v6)
    server = Server(link)
    link.do('ping', *(SIZES if v6 else SHORT))
    server.stop_ok()


def nb_sleeps(pid):
    """How often a thread of the process has yielded its CPU voluntarily."""
    total = 0
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/status', encoding='utf-8') as f:
            total += next(int(line.split()[1]) for line in f if line.startswith('voluntary'))
    return total


def asleep(work, driver):
    """An lcore that sleeps until the kernel has a packet: it does not poll every 2 ms like with
    other ports, and wakes at once. (AFC-19)"""
    link = Kernel(work, False, driver)
    daemon = Daemon(work, 'server', 'idle = sleep', vdev=link.vdev('server'),
                    wrap=link.wrap('server'), ip=link.server_ip)
    link.do('prompt')
    start, before = time.monotonic(), nb_sleeps(daemon.process.pid)
    until_true('it sleeps', lambda: nb_sleeps(daemon.process.pid) > before + 100)
    rate = (nb_sleeps(daemon.process.pid) - before) / (time.monotonic() - start)
    check(rate < 250, f'it wakes {rate:.0f} times a second without a packet')
    daemon.stop()


def tap(work, v6):
    """The same without a device in between that might change fragments; also datagrams in
    fragments."""
    link = Tap(work, v6)
    server = link.start()
    link.do('ping', *SIZES)
    link.do('refused', TRANSPORT + 1, 5000)
    server.stop_ok()


def nobody(work, v6):
    """A closed port: the kernel reports an error to its program."""
    link = Kernel(work, v6)
    server = Server(link)
    link.do('refused', 9, 10)
    link.do('refused', 53, 0)
    link.do('refused', TRANSPORT + 1, 1472)
    server.stop_ok()


def neighbours(work, v6):
    """The kernel knows our MAC address from announcements, not only from its own requests."""
    link = Kernel(work, v6)
    ns = link.ns['client']
    stale = '02:00:00:00:00:99'
    ns.run('ip', 'neigh', 'replace', link.server_ip, 'lladdr', stale, 'dev', 'pv0', 'nud', 'stale')
    server = Server(link)
    until_true('told that the address has moved',
               lambda: stale not in ns.run('ip', 'neigh', 'show', link.server_ip))
    link.do('ping', 56)
    server.stop_ok()


def broken(work, v6):
    """Malformed packets and single fragments: afterwards everything works as before."""
    link = Kernel(work, v6)
    server = Server(link)
    link.do('ping', 56)
    link.do('garbage', GARBAGE)
    link.do('ping', 56, 2000 if v6 else 1400)
    served = server.stop_ok()
    check(counter(served, 'drop_inet_malformed') > GARBAGE / 100, 'nothing was malformed')


def main():
    if len(sys.argv) >= 4 and sys.argv[1] == '--inside':
        return inside(sys.argv[2], *sys.argv[3:])
    need_namespaces('ethtool', 'sysctl')
    tests = Tests()
    with Work() as work:
        for v6 in (False, True):
            version = 'IPv6' if v6 else 'IPv4'
            tests.add(f'echo, {version}', echo, work, v6)
            tests.add(f'echo by TAP, {version}', tap, work, v6)
            if not v6:
                tests.add('an lcore that sleeps', asleep, work, 'af_packet')
                if need_xdp() is None:
                    tests.add('an lcore that sleeps, by af_xdp', asleep, work, 'af_xdp')
            tests.add(f'nobody there, {version}', nobody, work, v6)
            tests.add(f'neighbours, {version}', neighbours, work, v6)
            tests.add(f'broken packets, {version}', broken, work, v6)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
