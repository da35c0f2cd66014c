# SPDX-License-Identifier: BSD-3-Clause
"""Programs of rdma-core on libsanverbs, two of one daemon, against TCP of the kernel on a veth pair
and against sanbench on the same daemon.

The daemon shares the server's CPU. Both ends of ib_write_lat spin without a pause, so there are
three busy threads on two CPUs: its median says what a write takes while nobody is in the way, its
average how the scheduler shares.
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
IP = '10.98.0.2'        # of the daemon
PORT = 4796             # by which the two programs find each other
SMALL, LARGE = 64, 1 << 20
WRITES_EACH_MS = {'ib_write_lat': 5, 'ib_write_bw': 10}
UNITS = {'us': 1, 'ms': 1e3, 'MB/sec': 8e-3, 'GB/sec': 8}
RUN = pathlib.Path(__file__).resolve().parents[2] / 'usertools/sanverbs'


def missing(_runner):
    return [p for p in PROGRAMS if shutil.which(p) is None]


@contextlib.contextmanager
def daemon(runner):
    started = runner.daemon(MTU, 'idle = sleep', role='server', ip=IP,
                            vdev='--vdev=net_null0,no-rx=1')
    try:
        yield f'unix:{runner.socket("server")}'
    finally:
        stop(started)


def perftest(runner, program, size):
    """The last line of the table that it prints."""
    libraries = ':'.join(str(runner.build / f) for f in ('drivers/san/dpdk', 'lib/rtsan'))
    with daemon(runner) as spec:
        command = ['env', f'SANVERBS_SPEC={spec}', f'LD_LIBRARY_PATH={libraries}',
                   f'SAN_BUILD_DIR={runner.build}', RUN, 'run', program, '-d', 'san0', '-x', 0, '-F',
                   '-s', size, '-n', WRITES_EACH_MS[program] * runner.ms, '-p', PORT]
        out = served(runner, command, PORT, *command, KERNEL_IP)
    rows = [line.split() for line in out.splitlines() if line.split()[:1] == [str(size)]]
    if not rows:
        raise RunError(f'{program}: {out.strip()[-300:]}')
    return [float(word) for word in rows[-1]]


def write_latency(runner):
    return {'us': perftest(runner, 'ib_write_lat', SMALL)[4]}      # t_typical


def write_bandwidth(runner):
    """It prints binary megabytes per second."""
    return {'gbps': perftest(runner, 'ib_write_bw', LARGE)[3] * 8 * (1 << 20) / 1e9}


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
        with daemon(runner) as spec:
            runner.pair(['taskset', '-c', runner.cpus[1], program, '--attach', spec, '--server',
                         '--sessions', 1, '--json', reports[0]],
                        ['taskset', '-c', runner.cpus[0], program, '--attach', spec, '--connect', IP,
                         '--mode', mode, '--duration', runner.ms / 1000, '--json', reports[1],
                         *words], runner.wait_ready, None)
        got = runner.result(reports)
        return {**got, 'us': divide(1, got['mpps'], 'messages') / 2}
    return run
