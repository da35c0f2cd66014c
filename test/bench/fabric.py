# SPDX-License-Identifier: BSD-3-Clause
"""Programs on libfabric and MPI: over this stack's provider, over libfabric's tcp provider, and over
Open MPI's own TCP. Each end has a CPU. It has a daemon, which shares the CPU with the program, or
the program has the engine and polls it.
"""

import contextlib
import json
import shutil

from runner import KERNEL_IP, RunError, divide, stop
from sockets import VETH, served

GROUP = 'ofi'
PROGRAMS = ('fi_pingpong', 'mpirun')
BUILT = ('drivers/ofi/libsanstack-fi.so', 'test/bench/bench_mpi')
# Endpoints: libfabric's type, the layers over a provider, and settings. libfabric lists ofi_rxm
# before the provider's own, and programs take the first answer.
RXM = ';ofi_rxm'
NO_RXM = 'FI_PROVIDER=^ofi_rxm'
KINDS = {'msg': ('msg', '', ()),
         'rdm': ('rdm', '', (NO_RXM,)),
         'rxm': ('rdm', RXM, ())}
TCP_KINDS = {'msg': 'msg', 'rdm': 'rxm'}    # it has no RDM of its own
IP = {'client': '10.98.0.2', 'server': '10.98.0.1'}
MTU = 1500
CONNS = 'conns = 64'
CONTROL_PORT = 4795     # of fi_pingpong
SMALL, LARGE = 8, 1 << 20
# Messages, so that a run takes as long as others at the least. The first ten thousand are slower,
# and the clock of fi_pingpong includes the set-up of connections of type rdm.
LARGE_EACH_MS, SMALL_EACH_MS = 1, 250
# A rank that spins keeps its daemon from their CPU. On a busy machine TCP is faster so, too.
YIELD = ('--mca', 'mpi_yield_when_idle', 1)
OFI = ('--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'btl', '^ofi',
       '--mca', 'mtl_ofi_provider_include')
TCP = ('--mca', 'pml', 'ob1', '--mca', 'btl', 'self,tcp', '--mca', 'btl_tcp_if_include', 'veth0')
# The ranks find mpirun through the veth, because one of them is in the peer's namespace.
REMOTE = ('PMIX_MCA_ptl_tcp_remote_connections=1', 'PMIX_MCA_ptl_tcp_if_include=veth0')


def missing(runner):
    """What the figures need and is not there."""
    return ([p for p in PROGRAMS if shutil.which(p) is None]
            + [p for p in BUILT if not (runner.build / p).exists()])


# ---- two ends: the settings of the program at each ----

def settings(runner, spec):
    libraries = ':'.join(str(runner.build / f) for f in ('drivers/san/dpdk', 'lib/rtsan'))
    return [f'FI_PROVIDER_PATH={runner.build / "drivers/ofi"}', f'LD_LIBRARY_PATH={libraries}',
            f'FI_SANSTACK_SPEC={spec}']


@contextlib.contextmanager
def attached(runner, vdev=None):
    """A daemon at each end; *vdev* joins them, or memif."""
    started = []
    (runner.tmp / 'memif.sock').unlink(missing_ok=True)
    runner.set_kernel(MTU, False, False)    # frames on the veth must be like those on a wire
    try:
        for role, ip in reversed(IP.items()):
            started.append(runner.daemon(MTU, CONNS, 'idle = yield', vdev=vdev, role=role, ip=ip))
        yield {role: settings(runner, f'unix:{runner.socket(role)}') for role in IP}
    finally:
        for process in reversed(started):
            stop(process)


@contextlib.contextmanager
def embedded(runner, mtu=MTU):
    """The engine in each program, joined by memif. Ranks start at the same time, and so would
    compete for hugepages."""
    def words(role):
        return ' '.join(str(w) for w in runner.eal(role, mtu, False))

    (runner.tmp / 'memif.sock').unlink(missing_ok=True)
    yield {role: settings(runner, f'dpdk:{words(role)} -- ip={ip}/24 mtu={mtu} conns=64 idle=yield')
           for role, ip in IP.items()}


# Where a program finds its transport.
ENDS = {'memif': attached, 'veth': lambda runner: attached(runner, VETH), 'embedded': embedded,
        'embedded9000': lambda runner: embedded(runner, 9000)}


@contextlib.contextmanager
def kernel(runner):
    runner.set_kernel(MTU, True)
    yield {role: ['FI_PROVIDER=tcp'] for role in IP}


# ---- runs ----

def pingpong(runner, ends, provider, kind, size, each_ms):
    """Microseconds of a message, half of those there and back."""
    endpoint, layers, more = KINDS[kind]
    command = [*more, 'fi_pingpong', '-p', provider + layers, '-e', endpoint, '-S', size,
               '-I', max(1, int(runner.ms * each_ms))]
    if endpoint == 'rdm':
        command += ['-m', 'tagged']
    out = served(runner, ['env', *ends['server'], *command, '-B', CONTROL_PORT], CONTROL_PORT,
                 'env', *ends['client'], *command, '-P', CONTROL_PORT, KERNEL_IP)
    rows = [line.split() for line in out.splitlines() if line[:1].isdigit()]
    if not rows:
        raise RunError(f'fi_pingpong: {out.strip()[-300:]}')
    return float(rows[-1][-2])


def libfabric(where, provider, kind):
    """A run of fi_pingpong with small and with large messages. *where* makes the ends."""
    def run(runner):
        with where(runner) as ends:
            small = pingpong(runner, ends, provider, kind, SMALL, SMALL_EACH_MS)
            large = pingpong(runner, ends, provider, kind, LARGE, LARGE_EACH_MS)
        return {'us': small, 'both_us': 2 * small,
                'gbps': divide(8 * LARGE, large, 'microseconds') / 1e3}
    return run


def ours(kind, where):
    return libfabric(ENDS[where], 'sanstack', kind)


def tcp(kind):
    return libfabric(kernel, 'tcp', TCP_KINDS[kind])


def mpirun(runner, ends, transport, prefix):
    """Two ranks of bench_mpi; *prefix* gives what is in front of each."""
    command = ['env', *REMOTE, 'mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to',
               'none', *YIELD, *transport]
    for i, role in enumerate(IP):
        command += ([':'] if i else []) + ['-n', 1, *prefix(role), 'env', *ends[role],
                                           runner.build / 'test/bench/bench_mpi', runner.ms]
    started = runner.start(command, 'mpirun')
    try:
        return json.loads(runner.finish(started).splitlines()[-1])
    finally:
        stop(started)


def after(runner, where, role):
    """The client's port starts only after the server's, which makes the socket of memif."""
    if not where.startswith('embedded') or role == 'server':
        return []
    return ['sh', '-c', 'until test -S "$0"; do sleep 0.1; done; exec "$@"',
            runner.tmp / 'memif.sock']


def mpi(where, layers=''):
    """The ranks are in one namespace."""
    def run(runner):
        with ENDS[where](runner) as ends:
            if not layers:
                ends = {role: [*words, NO_RXM] for role, words in ends.items()}
            return mpirun(runner, ends, (*OFI, 'sanstack' + layers),
                          lambda role: [*after(runner, where, role), 'taskset', '-c',
                                        runner.cpus[role == 'server']])
    return run


def mpi_tcp(runner):
    with kernel(runner) as ends:
        return mpirun(runner, ends, TCP, runner.at)


def sanbench(runner):
    """Messages there and back without libfabric."""
    got = runner.san('rpc', '--size', SMALL, '--depth', 1, huge=False)
    return {**got, 'both_us': divide(1, got['mpps'], 'messages')}
