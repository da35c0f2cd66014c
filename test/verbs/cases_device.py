# SPDX-License-Identifier: BSD-3-Clause
"""Devices that are not there, can do less, or go away."""

import re

from e2e import SANITIZE, check, until_true
from provider_cases import Bench, example

RDMA = '/usr/bin/rdma'
LAST = 'as in verbs:mlx5_0'

# What is opened, and the text that says what is wrong.
WRONG = [
    ('verbs:', f'verbs: a device is to be named, {LAST}'),
    ('verbs:,ip=10.77.0.1', f'verbs: a device is to be named, {LAST}'),
    (f'verbs:{"x" * 64}', f'verbs: a device is to be named, {LAST}'),
    ('verbs:rxe', 'verbs: there is no device "rxe"; there are: rxe0'),
    ('verbs:rxe00', 'verbs: there is no device "rxe00"; there are: rxe0'),
    ('verbs:rxe0,ip=10.77.0.300', 'verbs: "10.77.0.300" is no address'),
    ('verbs:rxe0,ip=', 'verbs: "" is no address'),
    ('verbs:rxe0,ip=10.9.9.9', 'verbs: 10.9.9.9 is no address of rxe0'),
    ('verbs:rxe0,colour=blue', 'verbs: "colour=blue": ip=ADDRESS or plain is expected'),
    ('verbs:rxe0,', 'verbs: "": ip=ADDRESS or plain is expected'),
    ('verbs:rxe0,plain,simple', 'verbs: "simple": ip=ADDRESS or plain is expected'),
]
RIGHT = ['verbs:rxe0,ip=10.77.0.1', 'verbs:rxe0,plain', 'verbs:rxe0,ip=10.77.0.1,plain']


def opened(guests, spec, env=None, role='server'):
    """What the provider says to it."""
    program = guests.start(role, f'open {spec[:40]}',
                           [guests.program('comes_and_goes'), 'caps', spec], env)
    status = program.wait()
    return status, program.out()


def refused(guests, spec, text, env=None):
    until_true(lambda: f'{spec}: {opened(guests, spec, env)}',
               lambda: opened(guests, spec, env) == (1, f'{text}\n'))


def until_open(guests, role, spec):
    """A device hears of its addresses a moment later."""
    until_true(f'{role}: {spec} opens', lambda: opened(guests, spec, role=role)[0] == 0)


def wrong_specs(guests):
    """Each has one text that names what is wrong."""
    for spec, text in WRONG:
        refused(guests, spec, text)
    for spec in RIGHT:
        status, out = opened(guests, spec)
        check(status == 0, f'{spec}: {out}')


def link_again(guests, role='server'):
    """The device as it was when the guest booted."""
    guests.sh(role, f'{RDMA} link show rxe0/1 >/dev/null 2>&1 || '
                    f'{RDMA} link add rxe0 type rxe netdev eth0')
    until_open(guests, role, 'verbs:rxe0')


def not_ready(guests):
    """A port that is down, a device without address, no device at all; then all is well again."""
    address = f'{guests.pair.address["server"]}/24'
    try:
        guests.sh('server', 'ip link set eth0 down')
        refused(guests, 'verbs:rxe0', 'verbs: no port of rxe0 is active: down')
        guests.sh('server', f'ip link set eth0 up; ip addr del {address} dev eth0')
        refused(guests, 'verbs:rxe0', 'verbs: rxe0 has no address: see ip=')
        guests.sh('server', f'{RDMA} link delete rxe0')
        refused(guests, 'verbs:rxe0', 'verbs: there is no device "rxe0"; there are: none')
    finally:
        guests.sh('server', f'ip link set eth0 up; ip addr show dev eth0 | grep -q {address} || '
                            f'ip addr add {address} dev eth0')
        link_again(guests)
    example(guests, 'pingpong', ['100'])


def ipv6(guests):
    """An address of IPv6 that is told."""
    for role, ip in (('server', 'fd77::1'), ('client', 'fd77::2')):
        guests.sh(role, 'echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad; '
                        f'ip addr show dev eth0 | grep -q {ip}/ || '
                        f'ip -6 addr add {ip}/64 dev eth0')
        until_open(guests, role, f'verbs:rxe0,ip={ip}')
    program = guests.program('pingpong')
    server = guests.start('server', 'pingpong server', [program, 'server', 'verbs:rxe0,ip=fd77::1'])
    guests.wait_listening(server)
    client = guests.start('client', 'pingpong client',
                          [program, 'client', 'verbs:rxe0,ip=fd77::2', 'fd77::1', '100'])
    check(client.wait() == 0, client.tail() + server.tail())
    check(server.wait() == 0, server.tail())
    for role, ip in (('server', 'fd77::1'), ('client', 'fd77::2')):
        guests.sh(role, f'ip -6 addr del {ip}/64 dev eth0')


# ---- a device that can do less ----

class Poor:
    """The guests with limits, as poor.c has them: another Ends for the same cases."""

    def __init__(self, guests, **limits):
        self.guests = guests
        self.env = {'LD_PRELOAD': '/lib/ours/libpoor.so',
                    **{f'POOR_{name.upper()}': n for name, n in limits.items()}}
        if SANITIZE:
            self.env['ASAN_OPTIONS'] = 'verify_asan_link_order=0'

    def __getattr__(self, name):
        return getattr(self.guests, name)

    def start(self, role, name, command):
        return self.guests.start(role, name, command, self.env)

    def caps(self):
        status, out = opened(self.guests, 'verbs:rxe0', self.env)
        check(status == 0, out)
        return dict(line.split(' ', 1) for line in out.splitlines())

    def bench(self, role, own):
        return self.guests.bench(role, own)

    def modes(self, *all_own):
        """Programs are right nevertheless."""
        bench = Bench(self)
        for own in all_own:
            bench.mode(self, own)
        bench.over(self)


SEND = ['--mode', 'send', '--size', '1-3000', '--count', '100']
PULL = ['--mode', 'pull', '--size', '1-3000', '--count', '100']
RPC = ['--mode', 'rpc', '--count', '200']
ATOMIC = ['--mode', 'atomic', '--count', '100']
STREAM = ['--mode', 'stream', '--size', '1-20000', '--count', '50']


def poor_sge(guests):
    """It says so by caps.max_sge, and what has one part goes."""
    poor = Poor(guests, sge=1)
    check(poor.caps()['sge'] == '1', f'{poor.caps()}')
    poor.modes(SEND, RPC)


def poor_inline(guests):
    """What is inline is copied elsewhere."""
    poor = Poor(guests, inline=0)
    example(poor, 'pingpong', ['200'])
    poor.modes(RPC)


def poor_reads(guests):
    """One read at a time; without any it is refused."""
    Poor(guests, rd_atom=1).modes(PULL, ATOMIC, STREAM)
    refused(guests, 'verbs:rxe0', 'verbs: rxe0 has no reads, or no parts of a request',
            Poor(guests, rd_atom=0).env)


def poor_atomics(guests):
    """None: whoever posts one is told, all else goes, streams without them, too."""
    poor = Poor(guests, atomic=0)
    check(poor.caps()['atomics'] == '0', f'{poor.caps()}')
    server = poor.start('server', 'errors server',
                        [poor.program('errors'), 'server', poor.spec('server')])
    server.wait_text('listening')
    client = poor.start('client', 'errors client', [
        poor.program('errors'), 'client', poor.spec('client'), poor.server_ip, 'key', 'align'])
    check(client.wait() == 0, client.tail() + server.tail())
    check(server.stop() == 0, server.tail())
    example(poor, 'stream', ['1'])


def poor_queues(guests):
    """Shallow queues are told by caps.max_wr."""
    poor = Poor(guests, wr=600, cqe=3000)
    check(int(poor.caps()['wr']) <= 512, f'{poor.caps()}')
    poor.modes([*SEND, '--depth', '8'], [*RPC, '--depth', '8'])


def poor_regions(guests):
    """Few regions: what is made beyond fails with a text, and the program can go on."""
    poor = Poor(guests, mr=5)
    check(int(poor.caps()['mrs']) <= 5, f'{poor.caps()}')
    example(poor, 'pingpong', ['100'])
    program = poor.start('server', 'kvget', [poor.program('errors'), 'server',
                                             poor.spec('server')])
    status = program.wait()
    check(status == 1 and 'rtsan_mr_alloc' in program.out(), program.tail())


def stream_ways(guests, read):
    """What is large goes by remote reads, or by writes where there are none; both sides. (AFC-8)"""
    poor = Poor(guests, count=1)
    bench = Bench(poor)
    bench.mode(poor, ['--mode', 'stream', '--stream-mode', 'small-large', '--stream-read', read,
                      '--count', '40', '--size', '30000-60000'])
    bench.over(poor)
    shared = re.findall(r'shared: (\d+) to write, (\d+) to read',
                        bench.client.out() + bench.server.out())
    check(len(shared) == 2, bench.client.tail() + bench.server.tail())
    writes, reads = (sum(map(int, way)) for way in zip(*shared))
    if read == 'never':
        check(writes >= 20 and reads == 0, f'{writes} to write, {reads} to read')
    else:
        check(reads >= 20 and writes == 0, f'{writes} to write, {reads} to read')


# ---- a device that goes away ----

def removed(guests, role):
    """Under load, of either side: everything ends, closing works, and it can come back."""
    server = guests.start('server', 'errors server',
                          [guests.program('errors'), 'server', guests.spec('server')])
    server.wait_text('listening')
    case = 'removed' if role == 'client' else 'killed'
    client = guests.start('client', 'errors client', [
        guests.program('errors'), 'client', guests.spec('client'), guests.server_ip, case])
    client.wait_text('streaming')
    # it may wait until its last user has gone
    delete = guests.start(role, 'rdma link delete', [RDMA, 'link', 'delete', 'rxe0'])
    client.wait_text('ended')
    check(client.wait() == 0, client.tail() + server.tail())
    check(server.stop() == 0, server.tail())
    check(delete.wait() == 0, delete.tail())
    link_again(guests, role)
    example(guests, 'pingpong', ['100'])


def add_all(tests, guests):
    def add(name, function, *args):
        tests.add(f'device: {name}', guests.run, function, *args)

    add('wrong specs', wrong_specs)
    add('IPv6', ipv6)
    for function in (poor_sge, poor_inline, poor_reads, poor_atomics, poor_queues, poor_regions):
        add(function.__name__.replace('_', ', few '), function)
    for read in ('auto', 'never'):
        add(f'stream, remote reads: {read}', stream_ways, read)
    add('not ready', not_ready)
    add('removed under load', removed, 'client')
    add('removed under load, the server\'s', removed, 'server')
