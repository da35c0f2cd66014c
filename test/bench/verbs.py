# SPDX-License-Identifier: BSD-3-Clause
"""Programs of rdma-core on libsanverbs, two of one daemon or each with an engine, against TCP of the
kernel on a veth pair and against sanbench on the same link.

The daemon shares the server's CPU. Both ends of ib_write_lat spin without a pause, so there are
three busy threads on two CPUs: its median says what a write takes while nobody is in the way, its
average how the scheduler shares. With engines in the programs they would be four, so there is no
figure of that. The server of ib_write_bw sleeps.
"""

import contextlib
import pathlib
import re
import shutil

from runner import KERNEL_IP, RunError, divide, stop
from sockets import served

GROUP = 'verbs'
PROGRAMS = ('ib_write_lat', 'ib_write_bw', 'qperf')
MTU = 9000
IPS = {'server': '10.98.0.2', 'client': '10.98.0.1'}    # the first is that of the daemon
PORT = 4796             # by which the two programs find each other
SMALL, LARGE = 64, 1 << 20
WRITES_EACH_MS = {'ib_write_lat': 5, 'ib_write_bw': 10}
UNITS = {'us': 1, 'ms': 1e3, 'MB/sec': 8e-3, 'GB/sec': 8}
RUN = pathlib.Path(__file__).resolve().parents[2] / 'usertools/sanverbs'


def missing(_runner):
    return [p for p in PROGRAMS if shutil.which(p) is None]


@contextlib.contextmanager
def daemon(runner):
    started = runner.daemon(MTU, 'idle = sleep', role='server', ip=IPS['server'],
                            vdev='--vdev=net_null0,no-rx=1')
    try:
        yield dict.fromkeys(IPS, f'unix:{runner.socket("server")}')
    finally:
        stop(started)


@contextlib.contextmanager
def embedded(runner):
    """An engine in each program, joined by memif."""
    def words(role):
        return ' '.join(str(w) for w in runner.eal(role, MTU, runner.huge, True))

    (runner.tmp / 'memif.sock').unlink(missing_ok=True)
    yield {role: f'dpdk:{words(role)} -- ip={ip}/24 mtu={MTU} conns=64 idle=sleep poll=lcore'
           for role, ip in IPS.items()}


def perftest(runner, program, size, place=daemon):
    """The last line of the table that it prints."""
    libraries = ':'.join(str(runner.build / f) for f in ('drivers/san/dpdk', 'lib/rtsan'))
    with place(runner) as specs:
        server, client = (['env', f'SANVERBS_SPEC={specs[role]}', f'LD_LIBRARY_PATH={libraries}',
                           f'SAN_BUILD_DIR={runner.build}', RUN, 'run', program, '-d', 'san0',
                           '-x', 0, '-F', '-s', size, '-n', WRITES_EACH_MS[program] * runner.ms,
                           '-p', PORT] for role in IPS)
        out = served(runner, server, PORT, *client, KERNEL_IP)
    rows = [line.split() for line in out.splitlines() if line.split()[:1] == [str(size)]]
    if not rows:
        raise RunError(f'{program}: {out.strip()[-300:]}')
    return [float(word) for word in rows[-1]]


def write_latency(runner):
    return {'us': perftest(runner, 'ib_write_lat', SMALL)[4]}      # t_typical


def write_bandwidth(place):
    """It prints binary megabytes per second."""
    def run(runner):
        return {'gbps': perftest(runner, 'ib_write_bw', LARGE, place)[3] * 8 * (1 << 20) / 1e9}
    return run


def tcp(test, size):
    """qperf over the veth pair, with frames of the same size and the kernel's offloads."""
    def run(runner):
        runner.set_kernel(MTU, True)
        out = served(runner, ['qperf', '-lp', PORT], PORT, 'qperf', '-lp', PORT, '-t', 1, '-m', size,
                     KERNEL_IP, test)
        found = re.search(r'(latency|bw) += +([0-9.]+) (\S+)', out)
        if found is None or found[3] not in UNITS:
            raise RunError(f'qperf: {out.strip()[-300:]}')
        return {'us' if found[1] == 'latency' else 'gbps': float(found[2]) * UNITS[found[3]]}
    return run


def sanbench(mode, *words):
    """Two sanbench of one daemon."""
    def run(runner):
        reports = [runner.tmp / 'server.json', runner.tmp / 'client.json']
        program = runner.build / 'apps/sanbench/sanbench'
        with daemon(runner) as specs:
            runner.pair(['taskset', '-c', runner.cpus[1], program, '--attach', specs['server'],
                         '--server', '--sessions', 1, '--json', reports[0]],
                        ['taskset', '-c', runner.cpus[0], program, '--attach', specs['client'],
                         '--connect', IPS['server'], '--mode', mode, '--duration',
                         runner.ms / 1000, '--json', reports[1], *words], runner.wait_ready, None)
        got = runner.result(reports)
        return {**got, 'us': divide(1, got['mpps'], 'messages') / 2}
    return run
