# SPDX-License-Identifier: BSD-3-Clause
"""Sockets of unmodified programs, carried by a daemon at each end, or by the kernel.

Each daemon shares a CPU with the programs of its end. Runs of the runner that use sockets are
carried within carried(). The runs below are only meaningful with sockets.
"""

import contextlib
import pathlib
import re
import statistics
import subprocess
import time

from runner import KERNEL_IP, RunError, said, stop

CLIENT_IP = '10.99.0.1'
SNMP = pathlib.Path('/proc/self/net/snmp')
SENT = {'Udp': 'OutDatagrams', 'Tcp': 'OutSegs'}
FEW = 500               # packets that the kernel may send, of thousands by daemons
PORTS = {'redis': 6379, 'memcached': 11211}
CLIENTS = 16
STARTS = 60             # of a program, alternately with and without the library
PORT = ['conns = 256', 'sockets = 128', 'carry_tcp = on']
# links: the driver's argument (None: memif), and the idle mode of lcores
VETH = '--vdev=net_af_packet0,iface=veth0'
LINKS = {'memif': (None, 'yield'), 'veth': (VETH, 'yield'), 'veth as in README': (VETH, 'sleep')}


def sent_by_kernel():
    """Packets with data of sockets that the client's kernel has sent."""
    rows = [line.split() for line in SNMP.read_text(encoding='ascii').splitlines()]
    return sum(int(values[names.index(SENT[names[0][:-1]])])
               for names, values in zip(rows[::2], rows[1::2]) if names[0][:-1] in SENT)


def preload(runner, role, rules):
    """Prefix of a program with the library."""
    return ['env', f'LD_PRELOAD={runner.build / "lib/sansock/libsansock.so"}',
            'SANSOCK_CONF=/dev/null', f'SANSOCK_RULES=daemon {runner.socket(role)};{rules}']


@contextlib.contextmanager
def carried(runner, link, is_left=False):
    """Daemons on *link*, one of LINKS. *is_left*: most of it may be left to the kernel."""
    started, (vdev, idle) = [], LINKS[link]
    (runner.tmp / 'memif.sock').unlink(missing_ok=True)
    runner.set_kernel(1500, False, False)   # frames on the veth must be like those on a wire
    try:
        for role, ip in (('server', KERNEL_IP), ('client', CLIENT_IP)):
            started.append(runner.daemon(1500, *PORT, f'idle = {idle}', vdev=vdev, role=role,
                                         ip=ip))
            runner.library[role] = preload(runner, role, 'carry')
        before = sent_by_kernel()
        yield
        by_kernel = sent_by_kernel() - before
        if by_kernel > FEW and not is_left:
            raise RunError(f'not carried: the kernel has sent {by_kernel} packets')
    finally:
        runner.library.clear()
        for process in reversed(started):
            stop(process)


def over(link, run):
    """That run, carried."""
    def variant(runner):
        with carried(runner, link, getattr(run, 'is_left', False)):
            return run(runner)
    return variant


def by_kernel(run):
    """That run by the kernel, with a CPU for each program."""
    def variant(runner):
        runner.set_kernel(1500, True)
        return run(runner)
    return variant


def served(runner, server, port, *client):
    """Output of a client that ends by itself; the server prints nothing when it is ready."""
    def ready(process):
        end = time.monotonic() + 5
        where = [*runner.peer, 'ss', '-Hltn', f'sport = {port}']
        while not subprocess.run(where, stdout=subprocess.PIPE, check=True).stdout:
            if process.poll() is not None or time.monotonic() > end:
                raise runner.wrong(process, f'does not open port {port}')
            time.sleep(0.02)
    return runner.pair([*runner.at('server'), *server], [*runner.at('client'), *client], ready)[1]


def redis(*how, is_left=False):
    """Thousands of answers per second to redis-benchmark, and the latency of one."""
    def run(runner):
        out = served(runner, ['redis-server', '--bind', KERNEL_IP, '--port', PORTS['redis'],
                              '--protected-mode', 'no', '--save', '', '--appendonly', 'no',
                              '--dir', runner.tmp], PORTS['redis'],
                     'redis-benchmark', '-h', KERNEL_IP, '-c', CLIENTS, '-t', 'get', '--csv', *how)
        row = re.search(r'^"GET","([0-9.]+)","[0-9.]+","[0-9.]+","([0-9.]+)"', out, re.MULTILINE)
        if row is None:
            raise RunError(f'redis-benchmark: {out.strip()[-300:]}')
        return {'kps': float(row[1]) / 1e3, 'p50_us': float(row[2]) * 1e3}
    run.is_left = is_left
    return run


def memcached(*how):
    """Thousands of answers per second to memcaslap."""
    def run(runner):
        port = PORTS['memcached']
        out = served(runner, ['memcached', '-u', 'root', '-l', KERNEL_IP, '-p', port, '-U', port,
                              '-t', 1], port,
                     'memcaslap', '-s', f'{KERNEL_IP}:{port}', '-T', 1, '-c', CLIENTS, '-t', '1s',
                     *how)
        return {'kps': said(r'TPS: ([0-9]+)', out) / 1e3}
    return run


def start_up(runner):
    """Time that the library adds to start and end of a program with a socket without a rule:
    medians."""
    plain = ['socat', '-u', '/dev/null', f'UDP:{KERNEL_IP}:9']
    ways = {'plain': plain, 'library': [*preload(runner, 'client', 'carry remote 192.0.2.0/24'),
                                        *plain]}
    took = {name: [] for name in ways}
    for _ in range(STARTS):
        for name, command in ways.items():
            before = time.perf_counter()
            subprocess.run(command, check=True)
            took[name].append((time.perf_counter() - before) * 1e3)
    medians = {name: statistics.median(times) for name, times in took.items()}
    return {'added_ms': medians['library'] - medians['plain'], 'counters': medians}
