#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The libfabric provider: fi_info and fi_pingpong of libfabric, calls of libfabric that fi_pingpong
does not make, and Open MPI, over the daemon and with the engine in the process. (OFI-1)

Programs run unmodified; FI_SANSTACK_SPEC and the folder of the provider are all that they are told.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys

from daemon import IP, Daemon, eal
from e2e import (BUILD, PATIENCE, SANITIZE, Process, Tests, Veth, Work, check, cpus, skip,
                 until_true)

CALLS = os.path.join(BUILD, 'test/e2e/ofi_calls')
RDM_CALLS = os.path.join(BUILD, 'test/e2e/ofi_rdm')
RDM_PAIR = os.path.join(BUILD, 'test/e2e/ofi_rdm_pair')
RDM_HOSTILE = os.path.join(BUILD, 'test/e2e/ofi_rdm_hostile')
PAIR = os.path.join(BUILD, 'test/e2e/ofi_pair')
MPI = os.path.join(BUILD, 'test/e2e/ofi_mpi')
RXM = 'sanstack;ofi_rxm'
NO_RXM = {'FI_PROVIDER': '^ofi_rxm'}      # libfabric lists it before the provider
NULL = '--vdev=net_null0,no-rx=1'
NO_PORT = 1     # a port on which no program listens

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


def environment(spec):
    return {**os.environ, 'FI_PROVIDER_PATH': os.path.join(BUILD, 'drivers/ofi'),
            'FI_SANSTACK_SPEC': spec, 'FI_LOG_LEVEL': 'warn', 'OMPI_MCA_mpi_yield_when_idle': '1'}


def embedded(work, role):
    """The engine in the process, on a memif link, on an lcore of its own."""
    cpu = cpus()[role == 'client']
    return (f'dpdk:{eal(work, role, f"0@{cpu},1@{cpu}")} -- ip={IP[role]}/24 conns=64 idle=sleep '
            'poll=lcore')


def one_daemon(work):
    daemon = Daemon(work, 'server', vdev=NULL)
    return [daemon], (daemon.spec, daemon.spec), IP['server']


def two_daemons(work):
    daemons = [Daemon(work, role) for role in ('server', 'client')]
    return daemons, (daemons[0].spec, daemons[1].spec), IP['server']


def on_veth(work):
    """Daemons in namespaces of their own; the ranks are in one."""
    link = Veth(work, 'af_packet')
    daemons = [Daemon(work, role, wrap=link.wrap(role), vdev=link.vdev(role))
               for role in ('server', 'client')]
    return daemons, (daemons[0].spec, daemons[1].spec), IP['server']


def no_daemon(work):
    return [], (embedded(work, 'server'), embedded(work, 'client')), IP['server']


def polled(work):
    """The engine in the process, without an lcore. A silent peer is given up after half a second."""
    def spec(role):
        cpu = cpus()[role == 'client']
        return (f'dpdk:{eal(work, role, f"0@{cpu}")} -- ip={IP[role]}/24 conns=64 idle=yield '
                'poll=caller keepalive=100ms')
    return [], (spec('server'), spec('client')), IP['server']


def polled_alone(work):
    return [], [f'dpdk:{eal(work, "server", f"0@{cpus()[0]}", vdev=NULL)} -- ip={IP["server"]}/24 '
                'conns=64 idle=yield'], IP['server']


def with_ends(start, function, *args):
    with Work() as work:
        daemons, specs, ip = start(work)
        before = [d.held() for d in daemons]
        function(work, specs, ip, *args)
        for daemon, held in zip(daemons, before):
            daemon.settle(held)
            daemon.settle_engine()
        for daemon in daemons:
            daemon.stop()


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return str(s.getsockname()[1])


def finish(process):
    check(process.wait() == 0, f'{process.name}: {process.tail()}')


# ---- without MPI ----

def run(spec, *command):
    return subprocess.run(command, env=environment(spec), timeout=PATIENCE, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def info(work, specs, ip):
    out = run(specs[0], 'fi_info', '-p', 'sanstack').stdout
    for provider, kind in (('sanstack', 'FI_EP_MSG'), ('sanstack', 'FI_EP_RDM'),
                           (RXM, 'FI_EP_RDM')):
        check(re.search(rf'provider: {provider}\n(    .*\n)*    type: {kind}', out),
              f'no {provider} in: {out}')
    # MPI counts the bits of a tag
    out = run(specs[0], 'fi_info', '-v', '-p', 'sanstack', '-t', 'FI_EP_RDM').stdout
    check('mem_tag_format: 0xaaaaaaaaaaaaaaaa' in out, out)


def pingpong(work, specs, ip, provider, kind, *options, env=None):
    port = free_port()
    command = ['fi_pingpong', '-p', provider, '-e', kind, '-c', '-I', '20', *options]
    env = {'FI_LOG_LEVEL': 'info', **(env or {})}   # it says why a connection ends
    server = Process(work, 'server', [*command, '-B', port], {**environment(specs[0]), **env})
    until_true(lambda: f'server does not listen: {server.tail()}',
               lambda: f':{int(port):04X} ' in open('/proc/net/tcp', encoding='ascii').read())
    client = Process(work, 'client', [*command, '-P', port, '127.0.0.1'],
                     {**environment(specs[1]), **env})
    check(client.wait() == 0, f'client: {client.tail()}; server: {server.tail()}')
    finish(server)
    check('1m' in client.out(), client.tail())


def pingpong_rdm(work, specs, ip):
    pingpong(work, specs, ip, 'sanstack', 'rdm', '-m', 'tagged', env=NO_RXM)


def serve(work, specs, *role):
    server = Process(work, 'calls-server', [CALLS, *(role or ['server'])], environment(specs[0]))
    server.wait_text('port ')
    return server, re.search(r'port (\d+)', server.out())[1]


def calls(work, specs, ip, role='server'):
    server, port = serve(work, specs, role)
    client = Process(work, 'calls-client', [CALLS, 'client', ip, port], environment(specs[1]))
    finish(client)
    finish(server)


def alone(work, specs, ip):
    """Calls that need no peer."""
    out = run(specs[0], CALLS, 'alone').stdout
    check(out.endswith('done\n'), out)


def pair(work, specs, ip):
    """Two endpoints of one process, and a child that dies in the middle of a message."""
    out = run(specs[0], PAIR).stdout
    check(out.endswith('done\n'), out)


def rdm(work, specs, ip):
    """Endpoints FI_EP_RDM of one process."""
    out = run(specs[0], RDM_CALLS).stdout
    check(out.endswith('done\n'), out)


def rdm_server(work, specs, role):
    server = Process(work, f'rdm-{role}', [RDM_PAIR, role], environment(specs[0]))
    server.wait_text('address ')
    return server, re.search(r'address (\S+)', server.out())[1]


def rdm_peer_dies(work, specs, ip):
    """Both sleep while they exchange messages; then one is killed."""
    server, address = rdm_server(work, specs, 'peer')
    client = Process(work, 'rdm-hold', [RDM_PAIR, 'hold', address], environment(specs[1]))
    client.wait_text('holding')
    server.kill()
    finish(client)
    check('done' in client.out(), client.tail())


def rdm_early(work, specs, ip):
    """The first message comes before the report of its connection, short or long."""
    for length in ('1', '3000000'):
        server, address = rdm_server(work, specs, 'slow')
        out = run(specs[1], RDM_PAIR, 'one', address, length).stdout
        check(out.endswith('done\n'), out)
        finish(server)


def rdm_hostile(work, specs, ip, role='victim'):
    """A peer that breaks the protocol loses its connection, and its victim goes on."""
    server, address = rdm_server(work, specs, role)
    done = run(specs[1], RDM_HOSTILE, specs[1], *address.rsplit(':', 1))
    check(done.stdout.endswith('done\n'), done.stdout)
    finish(server)


def refused(work, specs, ip):
    """Nobody listens, and nobody is there: an error with a text, in bounded time."""
    out = run(specs[1], CALLS, 'refused', ip, str(NO_PORT)).stdout
    check('Connection refused: the peer has no listener' in out, out)
    out = run(specs[1], CALLS, 'refused', ip.rpartition('.')[0] + '.77', str(NO_PORT)).stdout
    check('Connection timed out: ' in out, out)


def peer_dies(work, specs, ip):
    server, port = serve(work, specs)
    client = Process(work, 'calls-hold', [CALLS, 'hold', ip, port], environment(specs[1]))
    client.wait_text('connected')
    server.kill()
    finish(client)
    check('done' in client.out(), client.tail())


def shared(work, specs, ip):
    """Two endpoints with shared receives: one buffer serves both, and the end of their peer in the
    middle of a message ends the receive that took the beginning."""
    file = work.path('under-way')
    server, port = serve(work, specs, 'shared', file)
    client = Process(work, 'calls-two', [CALLS, 'two', ip, port], environment(specs[1]))
    for number, text in ((1, 'sent'), (2, 'half')):
        client.wait_text(text)
        open(f'{file}.{number}', 'w', encoding='ascii').close()
    server.wait_text('held')
    client.kill()
    finish(server)
    check('done' in server.out(), server.tail())


def daemon_dies():
    with Work() as work:
        daemons, specs, ip = one_daemon(work)
        server, port = serve(work, specs)
        client = Process(work, 'calls-hold', [CALLS, 'hold', ip, port], environment(specs[1]))
        client.wait_text('connected')
        daemons[0].process.kill()
        finish(client)
        server.stop()


def rdm_daemon_dies():
    with Work() as work:
        daemons, specs, _ = one_daemon(work)
        program = Process(work, 'rdm-wait', [RDM_PAIR, 'wait'], environment(specs[0]))
        program.wait_text('waiting')
        daemons[0].process.kill()
        finish(program)


def too_many():
    with Work() as work:
        daemon = Daemon(work, 'server', vdev=NULL, limits='qps = 8')
        out = run(daemon.spec, CALLS, 'many').stdout
        check('8 endpoints: No space left on device' in out and 'queue pair' in out, out)
        daemon.stop()


def no_context():
    for spec, text in (('unix:/nowhere/san.sock', 'is sanstack-daemon running?'),
                       ('nosuch:x', 'librtsan-nosuch.so'), ('bad', 'has no "provider:"')):
        done = run(spec, 'fi_info', '-p', 'sanstack')
        check(done.returncode != 0 and text in done.stdout, f'{spec}: {done.stdout}')


# ---- Open MPI ----

def ofi(provider):
    return ('--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'mtl_ofi_provider_include', provider,
            '--mca', 'btl', '^ofi', '--mca', 'osc', 'pt2pt')


OFI = ofi(RXM)
OWN = ofi('sanstack')
SHARED_MEMORY = ('--mca', 'pml', 'ob1', '--mca', 'btl', 'self,vader', '--mca', 'osc', 'pt2pt')


def mpirun(work, specs, ranks, transport, *program):
    """Start *ranks* ranks, half of them with each spec."""
    command = ['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', *transport]
    for name in ('FI_PROVIDER_PATH', 'RTSAN_PROVIDER_PATH', 'LD_LIBRARY_PATH', 'FI_LOG_LEVEL'):
        command += ['-x', name]
    for i, spec in enumerate(specs):
        command += [':'] if i else []
        command += ['-n', str(ranks // 2), '-x', f'FI_SANSTACK_SPEC={spec}', *program]
    own = NO_RXM if transport is OWN else {}
    return Process(work, 'mpirun', command, {**environment(specs[0]), **own})


def mpi_results(work, specs, ranks, transport, *program):
    process = mpirun(work, specs, ranks, transport, *program)
    for _ in range(3):      # a rank may think as long as PATIENCE
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.popen.wait(PATIENCE)
    finish(process)
    return process.out()


def mpi_same(work, specs, ip, ranks, size, transport=OFI):
    ours = mpi_results(work, specs, ranks, transport, MPI, size)
    theirs = mpi_results(work, specs, ranks, SHARED_MEMORY, MPI, size)
    check(ours.count('\n') == 5 and ours == theirs, f'{ours} is not {theirs}')


def mpi_python(work, specs, ip):
    script = work.path('ring.py')
    with open(script, 'w', encoding='ascii') as f:
        f.write(MPI4PY)
    out = mpi_results(work, specs, 4, OWN, '/usr/bin/python3', script)
    check('gathered [0, 1, 4, 9]' in out, out)


def mpi_thinks(work, specs, ip, seconds, transport=OFI):
    """A rank that does not call the library loses no connection and no message."""
    ours = mpi_results(work, specs, 4, transport, MPI, 'think', seconds)
    theirs = mpi_results(work, specs, 4, SHARED_MEMORY, MPI, 'think', '0')
    check(ours == theirs != '', f'{ours} is not {theirs}')


def mpi_rank_dies(work, specs, ip, transport=OFI):
    process = mpirun(work, specs, 4, transport, MPI, 'loop')
    process.wait_text('looping')
    with open(f'/proc/{process.popen.pid}/task/{process.popen.pid}/children', encoding='ascii') as f:
        ranks = f.read().split()
    check(len(ranks) == 4, f'ranks: {ranks}')
    os.kill(int(ranks[2]), 9)
    check(process.wait() != 0, 'mpirun does not report the killed rank')


def main():
    if not os.path.exists(CALLS) or shutil.which('fi_pingpong') is None:
        skip('no libfabric (libfabric-dev, libfabric-bin)')
    tests = Tests()
    for name, start in (('one daemon', one_daemon), ('two daemons', two_daemons),
                        ('embedded', no_daemon), ('polled', polled)):
        tests.add(f'{name}: calls', with_ends, start, calls)
        if SANITIZE:    # libfabric's programs can't load a provider with sanitizers
            continue
        add = tests.add if start in (one_daemon, polled) else tests.add_long
        add(f'{name}: fi_pingpong msg', with_ends, start, pingpong, 'sanstack', 'msg')
        add(f'{name}: fi_pingpong rxm', with_ends, start, pingpong, RXM, 'rdm', '-m', 'tagged')
        add(f'{name}: fi_pingpong rdm', with_ends, start, pingpong_rdm)
    tests.add('one daemon: alone', with_ends, one_daemon, alone)
    tests.add('one daemon: pair', with_ends, one_daemon, pair)
    tests.add('two daemons: refused', with_ends, two_daemons, refused)
    tests.add('two daemons: peer dies', with_ends, two_daemons, peer_dies)
    tests.add('one daemon: rdm', with_ends, one_daemon, rdm)
    for name, start in (('one daemon', one_daemon), ('two daemons', two_daemons)):
        tests.add(f'{name}: rdm, peer dies', with_ends, start, rdm_peer_dies)
    tests.add('two daemons: rdm, an early message', with_ends, two_daemons, rdm_early)
    tests.add('one daemon: rdm, a hostile peer', with_ends, one_daemon, rdm_hostile)
    tests.add('two daemons: rdm, a false name', with_ends, two_daemons, rdm_hostile, 'wary')
    tests.add('one daemon: shared receives', with_ends, one_daemon, shared)
    tests.add('daemon dies', daemon_dies)
    tests.add('rdm, daemon dies', rdm_daemon_dies)
    tests.add('too many endpoints', too_many)
    tests.add('polled: a program thinks', with_ends, polled, calls, 'thinks')
    tests.add('polled: alone', with_ends, polled, alone)
    tests.add('polled: rdm', with_ends, polled_alone, rdm)
    if not SANITIZE:
        tests.add('no context', no_context)
        tests.add('fi_info', with_ends, one_daemon, info)
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
