#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The libfabric provider over daemons and with the engine in the process: the cases of ofi_cases.py,
the end of a daemon, and Open MPI. (OFI-1)
"""

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import sys

import ofi_cases
from daemon import IP, Daemon, eal
from e2e import BUILD, PATIENCE, SANITIZE, SOURCE, Process, Tests, Veth, Work, check, cpus, skip
from ofi_cases import finish

MPI = os.path.join(BUILD, 'test/e2e/ofi_mpi')
NULL = '--vdev=net_null0,no-rx=1'
NOBODY = '65534'

MPI4PY = """
import sys
sys.path.insert(0, '/usr/lib/python3/dist-packages')
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = {'rank': comm.rank, 'bytes': bytes(range(256)) * 4000}
got = comm.sendrecv(data, dest=(comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
total = comm.allreduce(got['rank'])
assert got['bytes'] == data['bytes'] and total == comm.size * (comm.size - 1) // 2
gathered = comm.gather(comm.rank ** 2, root=0)
if comm.rank == 0:
    print('gathered', gathered)
"""


# What only libfabric 1.x has. Its headers need container_of themselves.
HEADERS = ('fabric', 'fi_atomic', 'fi_cm', 'fi_domain', 'fi_endpoint', 'fi_eq', 'fi_errno', 'fi_rma',
           'fi_tagged', 'providers/fi_log', 'providers/fi_prov')
ONLY_1X = """
#undef container_of
#undef count_of
#undef FI_PROV_SPECIFIC
#undef FI_XPU_TRIGGER
#pragma GCC poison FI_MR_UNSPEC FI_MR_BASIC FI_MR_SCALABLE
"""


def embedded(work, role):
    """The engine in the process, on a memif link, on an lcore of its own."""
    cpu = cpus()[role == 'client']
    return (f'dpdk:{eal(work, role, f"0@{cpu},1@{cpu}")} -- ip={IP[role]}/24 conns=64 idle=sleep '
            'poll=lcore')


def one_daemon(work):
    daemon = Daemon(work, 'server', vdev=NULL)
    return [daemon], (daemon.spec, daemon.spec)


def for_all(work):
    """One daemon, for every user."""
    daemons, specs = one_daemon(work)
    os.chmod(work.dir, 0o755)
    os.chmod(daemons[0].path, 0o666)
    return daemons, specs


def two_daemons(work):
    daemons = [Daemon(work, role) for role in ('server', 'client')]
    return daemons, (daemons[0].spec, daemons[1].spec)


def on_veth(work):
    """Daemons in namespaces of their own; the ranks are in one."""
    link = Veth(work, 'af_packet')
    daemons = [Daemon(work, role, wrap=link.wrap(role), vdev=link.vdev(role))
               for role in ('server', 'client')]
    return daemons, (daemons[0].spec, daemons[1].spec)


def no_daemon(work):
    return [], (embedded(work, 'server'), embedded(work, 'client'))


def polled(work):
    """The engine in the process, without an lcore. A silent peer is given up after five seconds."""
    def spec(role):
        cpu = cpus()[role == 'client']
        return (f'dpdk:{eal(work, role, f"0@{cpu}")} -- ip={IP[role]}/24 conns=64 idle=yield '
                'poll=caller')
    return [], (spec('server'), spec('client'))


def polled_alone(work, more='', ip=f'{IP["server"]}/24'):
    return [], [f'dpdk:{eal(work, "server", f"0@{cpus()[0]}", vdev=NULL)} -- ip={ip} conns=64 '
                f'idle=yield {more}']


def polled_v6(work):
    return polled_alone(work, ip='fd00::1/64')


def few_regions(work):
    return polled_alone(work, 'regions=16')


class Here(ofi_cases.Ends):
    """Both ends are processes on this machine."""

    server_ip, control_ip = IP['server'], '127.0.0.1'
    folder = os.path.join(BUILD, 'drivers/ofi')

    def __init__(self, work, specs):
        self.work = work
        self.specs = {'server': specs[0], 'client': specs[-1]}

    def program(self, name):
        return os.path.join(BUILD, 'test/e2e', name)

    def spec(self, role):
        return self.specs[role]

    def start(self, role, name, command, env=None):
        return Process(self.work, name, command, env)

    def sh(self, role, command):
        return subprocess.run(['sh', '-c', command], check=True, capture_output=True, text=True).stdout

    def path(self, role, name):
        return self.work.path(name)

    def free_port(self):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            return str(s.getsockname()[1])


def with_ends(start, function, *args):
    with Work() as work:
        daemons, specs = start(work)
        before = [d.held() for d in daemons]
        function(Here(work, specs), *args)
        for daemon, held in zip(daemons, before):
            daemon.settle(held)
            daemon.settle_engine()
        for daemon in daemons:
            daemon.stop()


def daemon_dies():
    with Work() as work:
        daemons, specs = one_daemon(work)
        ends = Here(work, specs)
        server, port = ofi_cases.serve(ends)
        client = ends.call('client', 'ofi_calls', 'hold', ends.server_ip, port)
        client.wait_text('connected')
        daemons[0].process.kill()
        finish(client)
        server.stop()


def rdm_daemon_dies():
    with Work() as work:
        daemons, specs = one_daemon(work)
        program = Here(work, specs).call('server', 'ofi_rdm_pair', 'wait')
        program.wait_text('waiting')
        daemons[0].process.kill()
        finish(program)


def too_many():
    with Work() as work:
        daemon = Daemon(work, 'server', vdev=NULL, limits='qps = 8')
        process = Here(work, [daemon.spec]).call('server', 'ofi_calls', 'many')
        check('8 endpoints: No space left on device' in finish(process), process.tail())
        check('queue pair' in process.err(), process.tail())
        daemon.stop()


def no_context():
    for spec, text in (('unix:/nowhere/san.sock', 'is sanstack-daemon running?'),
                       ('nosuch:x', 'librtsan-nosuch.so'), ('bad', 'has no "provider:"')):
        with Work() as work:
            process = Here(work, [spec]).launch('server', ['fi_info', '-p', 'sanstack'])
            check(process.wait() != 0 and text in process.tail(), f'{spec}: {process.tail()}')


def later_libfabric():
    """The sources need no name that libfabric 2.x no longer has."""
    with Work() as work:
        header = work.path('1x.h')
        with open(header, 'w', encoding='ascii') as f:
            f.write(''.join(f'#include <rdma/{name}.h>\n' for name in HEADERS) + ONLY_1X)
        for path in glob.glob(os.path.join(SOURCE, 'drivers/ofi/*.c')):
            includes = [f'-I{SOURCE}/{folder}' for folder in ('lib/abi', 'lib/base', 'lib/rtsan')]
            done = subprocess.run(['cc', '-fsyntax-only', '-Wall', '-Werror', '-D_GNU_SOURCE', *includes,
                                   '-include', header, path], stderr=subprocess.PIPE, text=True,
                                  check=False)
            check(done.returncode == 0, done.stderr)


# ---- Open MPI ----

def ofi(provider):
    return ('--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'mtl_ofi_provider_include', provider,
            '--mca', 'btl', '^ofi', '--mca', 'osc', 'pt2pt')


OFI = ofi(ofi_cases.RXM)
OWN = ofi('sanstack')
SHARED_MEMORY = ('--mca', 'pml', 'ob1', '--mca', 'btl', 'self,vader', '--mca', 'osc', 'pt2pt')


def mpirun(ends, ranks, transport, *program):
    """Start *ranks* ranks, half of them at each end."""
    command = ['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', *transport]
    for name in ('FI_PROVIDER_PATH', 'RTSAN_PROVIDER_PATH', 'LD_LIBRARY_PATH', 'FI_LOG_LEVEL'):
        command += ['-x', name]
    for role in ('server', 'client'):
        command += [':'] if role == 'client' else []
        command += ['-n', str(ranks // 2), '-x', f'FI_SANSTACK_SPEC={ends.spec(role)}', *program]
    env = {'OMPI_MCA_mpi_yield_when_idle': '1', **(ofi_cases.NO_RXM if transport is OWN else {})}
    return ends.launch('server', command, env)


def mpi_results(ends, ranks, transport, *program):
    process = mpirun(ends, ranks, transport, *program)
    for _ in range(3):      # a rank may think as long as PATIENCE
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.popen.wait(PATIENCE)
    return finish(process)


def mpi_same(ends, ranks, size, transport=OFI):
    ours = mpi_results(ends, ranks, transport, MPI, size)
    theirs = mpi_results(ends, ranks, SHARED_MEMORY, MPI, size)
    check(ours.count('\n') == 6 and ours == theirs, f'{ours} is not {theirs}')


def mpi_python(ends):
    script = ends.work.path('ring.py')
    with open(script, 'w', encoding='ascii') as f:
        f.write(MPI4PY)
    out = mpi_results(ends, 4, OWN, '/usr/bin/python3', script)
    check('gathered [0, 1, 4, 9]' in out, out)


def mpi_thinks(ends, seconds, transport=OFI):
    """A rank that does not call the library loses no connection and no message."""
    ours = mpi_results(ends, 4, transport, MPI, 'think', seconds)
    theirs = mpi_results(ends, 4, SHARED_MEMORY, MPI, 'think', '0')
    check(ours == theirs != '', f'{ours} is not {theirs}')


def mpi_rank_dies(ends, transport=OFI):
    process = mpirun(ends, 4, transport, MPI, 'loop')
    process.wait_text('looping')
    with open(f'/proc/{process.popen.pid}/task/{process.popen.pid}/children', encoding='ascii') as f:
        ranks = f.read().split()
    check(len(ranks) == 4, f'ranks: {ranks}')
    os.kill(int(ranks[2]), 9)
    check(process.wait() != 0, 'mpirun does not report the killed rank')


def main():
    if not ofi_cases.can_run():
        skip('no libfabric (libfabric-dev, libfabric-bin)')
    tests = Tests()
    for name, start in (('one daemon', one_daemon), ('two daemons', two_daemons),
                        ('embedded', no_daemon), ('polled', polled)):
        tests.add(f'{name}: calls', with_ends, start, ofi_cases.calls)
        if SANITIZE:    # libfabric's programs can't load a provider with sanitizers
            continue
        add = tests.add if start in (one_daemon, polled) else tests.add_long
        for case, *args in ofi_cases.PINGPONGS:
            add(f'{name}: {case}', with_ends, start, *args)
    tests.add('one daemon: alone', with_ends, one_daemon, ofi_cases.alone)
    tests.add('one daemon: pair', with_ends, one_daemon, ofi_cases.pair)
    tests.add('two daemons: refused', with_ends, two_daemons, ofi_cases.refused)
    tests.add('two daemons: peer dies', with_ends, two_daemons, ofi_cases.peer_dies)
    tests.add('one daemon: rdm', with_ends, one_daemon, ofi_cases.rdm)
    for name, start in (('one daemon', one_daemon), ('two daemons', two_daemons)):
        tests.add(f'{name}: rdm, peer dies', with_ends, start, ofi_cases.rdm_peer_dies)
    tests.add('two daemons: rdm, an early message', with_ends, two_daemons, ofi_cases.rdm_early)
    tests.add('one daemon: rdm, a hostile peer', with_ends, one_daemon, ofi_cases.rdm_hostile)
    tests.add('one daemon: rdm, a false name', with_ends, one_daemon, ofi_cases.rdm_false_name)
    tests.add('one daemon: rdm, another user', with_ends, for_all, ofi_cases.rdm_forged,
              'server', NOBODY)
    tests.add('two daemons: rdm, another host', with_ends, two_daemons, ofi_cases.rdm_forged,
              'client')
    tests.add('one daemon: rdm, a user without leave', with_ends, for_all, ofi_cases.rdm_other_user,
              NOBODY)
    tests.add('one daemon: rdm, an allowed user', with_ends, for_all, ofi_cases.rdm_allowed,
              NOBODY)
    tests.add('one daemon: another user', with_ends, for_all, ofi_cases.other_user, NOBODY)
    tests.add('one daemon: a hostile peer', with_ends, one_daemon, ofi_cases.hostile)
    tests.add('embedded: a stopped peer', with_ends, no_daemon, ofi_cases.deserted)
    tests.add('one daemon: shared receives', with_ends, one_daemon, ofi_cases.shared)
    tests.add('daemon dies', daemon_dies)
    tests.add('rdm, daemon dies', rdm_daemon_dies)
    tests.add('too many endpoints', too_many)
    tests.add('polled: a program thinks', with_ends, polled, ofi_cases.calls, 'thinks')
    tests.add('polled: alone', with_ends, polled, ofi_cases.alone)
    tests.add('polled, IPv6: alone', with_ends, polled_v6, ofi_cases.alone)
    tests.add('polled: pair', with_ends, polled_alone, ofi_cases.pair)
    tests.add('polled: few regions', with_ends, few_regions, ofi_cases.few_regions)
    tests.add('polled: leaves', with_ends, polled_alone, ofi_cases.leaves)
    tests.add('polled: rdm', with_ends, polled_alone, ofi_cases.rdm)
    tests.add('polled: rdm, 2 GiB', with_ends, polled_alone, ofi_cases.rdm_huge)
    tests.add('one daemon: rdm, 2 GiB', with_ends, one_daemon, ofi_cases.rdm_huge)
    if not SANITIZE:
        tests.add('no context', no_context)
        tests.add('names of libfabric 2.x', later_libfabric)
        tests.add('fi_info', with_ends, one_daemon, ofi_cases.info)
    if os.path.exists(MPI) and shutil.which('mpirun') is not None and not SANITIZE:
        for name, start in (('one daemon', one_daemon), ('two daemons', two_daemons)):
            for ranks, size in ((2, '67108864'), (4, '4194304')):
                tests.add_long(f'{name}: MPI, {ranks} ranks', with_ends, start, mpi_same, ranks, size)
                tests.add_long(f'{name}: MPI by RDM, {ranks} ranks', with_ends, start, mpi_same,
                               ranks, size, OWN)
            tests.add_long(f'{name}: mpi4py', with_ends, start, mpi_python)
            tests.add_long(f'{name}: MPI, a rank dies', with_ends, start, mpi_rank_dies)
            tests.add_long(f'{name}: MPI by RDM, a rank dies', with_ends, start, mpi_rank_dies, OWN)
        tests.add_long('veth: MPI, 4 ranks', with_ends, on_veth, mpi_same, 4, '4194304')
        tests.add_long('veth: MPI by RDM, 4 ranks', with_ends, on_veth, mpi_same, 4, '4194304', OWN)
        tests.add_long('two daemons: MPI, a rank thinks', with_ends, two_daemons, mpi_thinks, '120')
        tests.add_long('two daemons: MPI by RDM, a rank thinks', with_ends, two_daemons, mpi_thinks,
                       '120', OWN)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
