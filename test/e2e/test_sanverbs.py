#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs of rdma-core and perftest on the devices of libsanverbs. (RDMA-1, RDMA-2,
RDMA-3)"""

import os
import re
import socket
import subprocess
import sys

from daemon import Daemon, IP, eal, wait_listening
from e2e import BUILD, SOURCE, Namespace, Process, Tests, Veth, Work, check, cpus, until_true

RUN = os.path.join(SOURCE, 'usertools/sanverbs'), 'run', '--'
NULL = '--vdev=net_null0,no-rx=1'


# ---- where the two programs run: daemons, and the specs of both ends ----

def embedded(work):
    """Engines in the programs, which may do nothing themselves while their peer works."""
    def spec(role):
        cpu = cpus()[role == 'client']
        return (f'dpdk:{eal(work, role, f"0@{cpu},1@{cpu}")} -- ip={IP[role]}/24 conns=64 '
                'idle=sleep poll=lcore')
    return [], (spec('server'), spec('client'))


def one_daemon(work):
    daemon = Daemon(work, 'server', vdev=NULL, port='conns = 256')    # each flow of datagrams is one
    return [daemon], (daemon.spec, daemon.spec)


def two_daemons(work):
    daemons = [Daemon(work, role) for role in ('server', 'client')]
    return daemons, tuple(daemon.spec for daemon in daemons)


def on_veth(work):
    link = Veth(work, 'af_packet')
    daemons = [Daemon(work, role, wrap=link.wrap(role), vdev=link.vdev(role))
               for role in ('server', 'client')]
    return daemons, tuple(daemon.spec for daemon in daemons)


PLACES = {'embedded': embedded, 'one daemon': one_daemon, 'two daemons': two_daemons,
          'veth': on_veth}

# ---- programs: their words; PORT is a TCP port by which the two find each other ----

PINGPONG = 'ibv_rc_pingpong -g 0 -p PORT -c'
PERFTEST = '-d san0 -x 0 -F -p PORT'
QUICK = (
    PINGPONG,
    f'{PINGPONG} -e -s 65536',
    f'ib_write_lat {PERFTEST} -n 500',
    f'ib_send_bw {PERFTEST} -n 500 -q 8',
    'ibv_srq_pingpong -g 0 -p PORT -c -e -q 1',
    'ibv_ud_pingpong -g 0 -p PORT -c -e',
)
ALL = (
    f'{PINGPONG} -N',
    f'{PINGPONG} -s 1000000 -n 50',
    *(f'ib_{name} {PERFTEST} -n 500' for name in (
        'send_lat', 'send_bw', 'write_bw', 'read_lat', 'read_bw', 'atomic_lat', 'atomic_bw')),
    f'ib_send_lat {PERFTEST} -n 500 -e',
    f'ib_send_bw {PERFTEST} -n 500 -e',
    f'ib_read_lat {PERFTEST} -n 500 -e',
    f'ib_write_bw {PERFTEST} -n 200 -a -b',
    f'ib_write_lat {PERFTEST} -n 500 -I 64',
    f'ib_send_bw {PERFTEST} -n 500 --use_old_post_send',
    f'ib_read_bw {PERFTEST} -n 500 -q 8 -b',
    'ibv_srq_pingpong -g 0 -p PORT -c -q 3 -r 20 -s 100000',
    f'ib_send_bw {PERFTEST} -n 500 --use-srq -q 4',
    f'ib_send_lat {PERFTEST} -n 500 --use-srq',
    'ibv_ud_pingpong -g 0 -p PORT -c -s 1000',
    f'ib_send_lat {PERFTEST} -n 500 -c UD -I 64',
    f'ib_send_bw {PERFTEST} -n 500 -c UD --use_old_post_send',
)


# ---- UCX, and MPI on it; the second word makes its connections ----

UCX = {'UCX_NET_DEVICES': 'san0:1', 'UCX_WARN_UNUSED_ENV_VARS': 'n'}
UCX_TESTS = (
    ('rc_v', 'tag_lat -s 64'), ('rc_v', 'tag_bw -s 1000000'), ('rc_v', 'ucp_put_bw -s 65536'),
    ('rc_v', 'ucp_get -s 65536'), ('rc_v', 'ucp_fadd -s 8'), ('rc_v', 'stream_bw -s 8192'),
    ('ud_v', 'tag_bw -s 100000'), ('ud_v', 'ucp_am_lat -s 4000'),
)
MPI = {
    'openmpi': 'mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca pml ucx '
               '--mca osc ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any',
    'mpich': 'mpiexec.hydra',
}


# ---- programs of librdmacm: the words of both; ADDRESS is the server's, on its device ----

CM_QUICK = (
    ('rping -s -C 10 -S 6000 -a ADDRESS -p PORT', 'rping -c -V -C 10 -S 6000 -a ADDRESS -p PORT'),
    ('udaddy -b ADDRESS -c CONNS -S 900', 'udaddy -s ADDRESS -c CONNS -S 900'),
)
CM_ALL = (
    ('rping -s -P -p PORT', 'rping -c -V -C 10 -a ADDRESS -p PORT'),
    ('ucmatose -b ADDRESS -p PORT -C 10 -S 10000',
     'ucmatose -s ADDRESS -p PORT -C 10 -S 10000'),
    ('rdma_server -s ADDRESS -p PORT', 'rdma_client -s ADDRESS -p PORT'),
    ('rdma_xserver -p PORT', 'rdma_xclient -s ADDRESS -p PORT'),
    ('cmtime -b ADDRESS -p PORT -c 20', 'cmtime -s ADDRESS -p PORT -c 20'),
    ('ib_write_bw -R -F -p PORT -n 500', 'ib_write_bw -R -F -p PORT -n 500 ADDRESS'),
    ('ib_send_lat -R -F -p PORT -n 500 -e', 'ib_send_lat -R -F -p PORT -n 500 -e ADDRESS'),
    ('ib_read_bw -R -F -p PORT -n 500 -q 4', 'ib_read_bw -R -F -p PORT -n 500 -q 4 ADDRESS'),
    ('fio --name=s --ioengine=rdma --port=PORT --verb=write --rw=read --bs=64k --size=16m '
     '--hostname=ADDRESS',
     'fio --name=c --ioengine=rdma --port=PORT --verb=write --rw=write --bs=64k --size=16m '
     '--hostname=ADDRESS --iodepth=8'),
)
SERVES_ON = ('rping -s -P', 'cmtime')     # they do not end by themselves


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def listens(port):
    for name in ('tcp', 'tcp6'):
        with open(f'/proc/net/{name}', encoding='ascii') as f:
            if re.search(rf':{port:04X} [0-9A-F:]+ 0A ', f.read()):
                return True
    return False


def start(work, name, words, spec, env=None, wrap=()):
    return Process(work, name, [*wrap, *RUN, *words.split()],
                   {'SANVERBS_SPEC': spec, 'SANVERBS_DEBUG': '1', **(env or {})})


def pair(place, words, env=None):
    """The program at both ends: both succeed."""
    with Work() as work:
        daemons, specs = PLACES[place](work)
        port = free_port()
        words = words.replace('PORT', str(port))
        server = start(work, 'server', words, specs[0], env)
        until_true(server.tail, lambda: listens(port) or not server.is_alive())
        client = start(work, 'client', words + ' 127.0.0.1', specs[1], env)
        check(client.wait() == 0, f'client: {client.tail()}\nserver: {server.tail()}')
        check(server.wait() == 0, f'server: {server.tail()}')
        for daemon in daemons:
            daemon.stop()


def cm_pair(place, server_words, client_words):
    """Programs that connect by librdmacm. Without a daemon, which knows who listens, a client that
    came too early comes again. It has one connection: of several, some could be refused."""
    with Work() as work:
        daemons, specs = PLACES[place](work)
        port = str(free_port())
        server_words, client_words = (
            words.replace('PORT', port).replace('ADDRESS', IP['server'])
            .replace('CONNS', '4' if daemons else '1') for words in (server_words, client_words))
        server = start(work, 'server', server_words, specs[0])
        if server_words.startswith('fio'):      # it forks, and its client reports no failure
            server.wait_text('waiting for connection')
        elif daemons:
            wait_listening(daemons[0], server, 2)       # the device listens, too

        clients = []

        def said():
            return f'client: {clients[-1].tail()}\nserver: {server.tail()}'

        def succeeds():
            is_over = not server.is_alive()
            clients.append(start(work, 'client', client_words, specs[1]))
            if clients[-1].wait() == 0:
                return True
            check(not is_over, said())
            return False
        until_true(said, succeeds)
        if server_words.startswith(SERVES_ON):
            server.kill()
        else:
            check(server.wait() == 0, f'server: {server.tail()}')
        for daemon in daemons:
            daemon.stop()


def multicast(work):
    """A namespace whose kernel has multicast, which a machine need not have."""
    space = Namespace(work)
    space.run('ip', 'route', 'add', '239.0.0.0/8', 'dev', 'lo')
    return space


def group(place):
    """The members of a group get what another one sends."""
    with Work() as work:
        daemons, specs = PLACES[place](work)
        space = multicast(work)

        def mckey(name, spec, *more):
            return start(work, name, ' '.join(['mckey -m 239.9.9.9 -c 2', *more]), spec,
                         wrap=space.exec())
        at = specs[:1] if place == 'embedded' else specs
        members = [mckey(f'member{i}', spec) for i, spec in enumerate(at)]

        def joined():
            with open(f'/proc/{space.pid}/net/udp', encoding='ascii') as f:
                return f.read().count('090909EF:12B9 ') == 2 * len(members)
        until_true(lambda: [member.tail() for member in members], joined)
        sender = mckey('sender', specs[1], '-s')
        check(sender.wait() == 0, sender.tail())
        for member in members:
            check(member.wait() == 0, f'{member.tail()}\nsender: {sender.tail()}')
        for daemon in daemons:
            daemon.stop()


QPERF = ('ud_lat', 'ud_bw', 'ud_bi_bw', 'rc_lat', 'rc_bw', 'rc_bi_bw', 'rc_rdma_read_lat',
         'rc_rdma_read_bw', 'rc_rdma_write_lat', 'rc_rdma_write_bw', 'rc_rdma_write_poll_lat',
         'rc_compare_swap_mr', 'rc_fetch_add_mr', 'ver_rc_compare_swap', 'ver_rc_fetch_add')


def qperf(place):
    """It names its peer by a LID alone."""
    with Work() as work:
        daemons, specs = PLACES[place](work)
        port = free_port()
        server = start(work, 'server', f'qperf -lp {port}', specs[0])
        until_true(server.tail, lambda: listens(port))
        client = start(work, 'client', f'qperf -lp {port} -t 1 127.0.0.1 {" ".join(QPERF)}',
                       specs[1])
        check(client.wait() == 0, f'client: {client.tail()}\nserver: {server.tail()}')
        check(re.findall(r'^(\w+):', client.out(), re.M) == list(QPERF), client.out())
        server.kill()
        for daemon in daemons:
            daemon.stop()


# ---- one program ----

def listed():
    """The device is there with its address; without a daemon no device is, and that is said."""
    with Work() as work:
        daemon = Daemon(work, 'server', vdev=NULL)
        info = start(work, 'info', 'ibv_devinfo -v', daemon.spec)
        check(info.wait() == 0, info.tail())
        for text in ('hca_id:\tsan0', 'PORT_ACTIVE', f'::ffff:{IP["server"]}, RoCE v2'):
            check(text in info.out(), f'{text}: {info.tail()}')
        daemon.stop()
        none = start(work, 'none', 'ibv_devinfo', daemon.spec)
        check(none.wait() != 0 and 'No IB devices found' in none.tail(), none.tail())
        check('is sanstack-daemon running?' in none.err(), none.tail())


CALLS = {'verbs_calls': ('memory', 'bounds', 'threads', 'forked', 'states', 'ends', 'shared', 'own_qps'),
         'verbs_more': ('datagrams', 'groups', 'copied')}


def calls(place, program, name):
    with Work() as work:
        daemons, specs = PLACES[place](work)
        here = start(work, name, f'{BUILD}/test/e2e/{program} {name}', specs[0],
                     {'EMBEDDED': '1'} if place == 'embedded' else {},
                     multicast(work).exec() if name == 'groups' else ())
        check(here.wait() == 0 and f'{name}: ok' in here.out(), here.tail())
        for daemon in daemons:
            daemon.stop()


HUGE_PAGES = '/proc/sys/vm/nr_overcommit_hugepages'


def with_huge_pages(function, *args):
    """The kernel finds 64 when they are asked for. Programs take them where they can get them."""
    with open(HUGE_PAGES, 'r+', encoding='ascii') as f:
        before = f.read()
        f.seek(0)
        f.write('64')
        f.flush()
        try:
            function(*args)
        finally:
            f.seek(0)
            f.write(before)


def mpi(place, kind):
    """Ranks at both ends, whose cases give the digests of another transport."""
    with Work() as work:
        daemons, specs = PLACES[place](work)
        subprocess.run([f'mpicc.{kind}', '-w', '-o', work.path('program'),
                        os.path.join(SOURCE, 'test/e2e/ofi_mpi.c')], check=True)

        def run(name, *ways):
            words = [*MPI[kind].split()]
            for way in ways:
                words += [':'] if way is not ways[0] else []
                words += ['-n', str(4 // len(ways)), 'env', *way, work.path('program'), '100000']
            process = Process(work, name, words, {'OMPI_MCA_mpi_yield_when_idle': '1'})
            check(process.wait() == 0, process.tail())
            return sorted(process.out().splitlines())
        options = [f'{key}={value}' for key, value in UCX.items()]
        ours = run('ours', *([*options, 'UCX_TLS=rc_v,self', f'SANVERBS_SPEC={spec}', *RUN]
                             for spec in specs))
        check(len(ours) == 6 and ours == run('theirs', ['UCX_TLS=tcp,self,sm']), f'{ours}')
        for daemon in daemons:
            daemon.stop()


def main():
    tests = Tests()
    tests.add('a device', listed)
    for place in ('embedded', 'one daemon'):
        for program, names in CALLS.items():
            for name in names:
                tests.add(f'{place}: {name}', calls, place, program, name)
        tests.add_long(f'{place}: huge', calls, place, 'verbs_more', 'huge')
    tests.add('one daemon: forged', calls, 'one daemon', 'verbs_more', 'forged')
    if os.access(HUGE_PAGES, os.W_OK):
        tests.add('one daemon: pages', with_huge_pages, calls, 'one daemon', 'verbs_more', 'pages')
        tests.add_long('one daemon: ucx_perftest with huge pages', with_huge_pages, pair,
                       'one daemon', f'ucx_perftest -p PORT -n 500 -t {UCX_TESTS[0][1]}',
                       {**UCX, 'UCX_TLS': UCX_TESTS[0][0]})
    for place in PLACES:
        add = tests.add_long if place == 'veth' else tests.add
        for words in QUICK:
            add(f'{place}: {words}', pair, place, words)
        for words in CM_QUICK:
            add(f'{place}: {words[1]}', cm_pair, place, *words)
        for words in ALL:
            tests.add_long(f'{place}: {words}', pair, place, words)
        for tls, words in UCX_TESTS:
            tests.add_long(f'{place}: ucx_perftest {tls} {words}', pair, place,
                           f'ucx_perftest -p PORT -n 500 -t {words}', {**UCX, 'UCX_TLS': tls})
        for words in CM_ALL:
            tests.add_long(f'{place}: {words[1]}', cm_pair, place, *words)
        (tests.add if place == 'one daemon' else tests.add_long)(f'{place}: mckey', group, place)
        tests.add_long(f'{place}: qperf', qperf, place)
    for place in ('one daemon', 'two daemons'):
        for kind in MPI:
            tests.add_long(f'{place}: {kind} on UCX', mpi, place, kind)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
