# SPDX-License-Identifier: BSD-3-Clause
"""What is measured, the baseline, and the wanted ratio.

A variant is one run: a function of the runner that returns a dictionary. A figure divides a
quantity of one variant by that of another. The variants of a group are measured in turn.
"""

import dataclasses
import statistics

import fabric
import profile_core
import verbs
from sockets import LINKS, by_kernel, memcached, over, redis, start_up

MIB = 1 << 20
BUFFERS = 8             # of 1 MiB, in flight and reused
SLOTS = 64              # of small messages, for the link with minimum work
DEPTH = 256             # small pushes in flight
SMALL = ('--size', 64, '--depth', DEPTH, '--solicit', 'never')
TURN = 16               # messages of a connection per turn
TOGETHER = 16           # messages posted per call
IDLE = 10000            # connections
SPARE = 8               # connections of a port in reserve
TWO_MODES = 1.4         # medians: faster half over slower half
DROPS_WITHIN = 0.1      # relative to the configured rate
SHARE = 16              # connections of an application that shares a daemon
SHARED = 64 << 10       # bytes of its messages
ROUNDS = 10             # that it makes of them
WINDOWS = (8, 16, 32)   # requests in flight, besides 64
BOTH_WAYS = 'worked link, both ways'
COUNTED = 'counted'     # group of figures that are the same on any machine under any load
FRAME = 170             # frame of a 64-byte push: headers, payload, ICRC


# ---- variants ----

def pack(on):
    return ('--set', f'pack={int(on)}')


def room_for(conns):
    return ('--set', f'conns={conns + SPARE}')


def san(mode, *client, server=(), ends=(), **more):
    """A run of sanbench; *ends* are arguments of both processes."""
    return lambda r: r.san(mode, *client, *ends, server=(*server, *ends), **more)


def small(on, *client):
    return san('push', *SMALL, *client, ends=pack(on))


def rpc(on, *client, depth=64):
    """Both sides send requests; packets of a direction hold requests of one and answers to the
    other."""
    def run(r):
        got = r.san('rpc', '--size', 32, '--depth', depth, '--both', *client, *pack(on),
                    server=pack(on))
        got['direction_mpps'] = got['mpps'] + got['server_mps']
        got['issued_mpps'] = min(got['mpps'], got['server_mps'])
        return got
    return run


def bulk(mode, mtu, *client, **more):
    return san(mode, '--size', MIB, '--depth', BUFFERS, *client, mtu=mtu, **more)


def impaired(order, fault, *client):
    """Pushes of 64 KiB; the client's port drops or reorders in both directions."""
    words = ('--impair', fault) if fault else ()
    return san('push', '--size', '64K', '--depth', 16, '--order', order, *words, *client)


def stream(size, *client, depth=BUFFERS, **more):
    return san('stream', '--size', size, '--depth', depth, *client, **more)


def mode(how, manner):
    """Large sends to a server that receives in one manner, in a forced mode or the learned one."""
    return stream('256K', '--stream-mode', how, '--receive', manner)


# behavior of the receiver of large sends
MANNERS = {
    'direct': 'buffers posted before',
    'wait': 'the receiver waits for data',
    'small': 'small buffers',
    'mixed': 'each manner in turn',
}
FORCED = ('small', 'large', 'small-large')


PLACES = {'memif': 'two daemons, memif', 'veth': 'two daemons, veth', 'embedded': 'embedded, memif',
          'embedded9000': 'embedded, memif, MTU 9000'}


def ofi(where):
    """Programs on libfabric and MPI, against the same by TCP over the veth."""
    def figure(what, title, unit, ours, base, key, target):
        return Figure(f'ofi_{what}_{where}', fabric.GROUP, f'{title}, {PLACES[where]}', unit,
                      f'{ours}, {where}', base, key, 'peer', target if where != 'veth' else '',
                      lower=unit == 'us', quick=(what, where) == ('msg_latency', 'embedded'))

    faster, wider = '<= 0.5', '>= 1.5'
    return [
        *(figure(f'{kind}_{what}', f'libfabric, {kind}, {title} ping-pong, one way', unit,
                 f'libfabric, {kind}', f'libfabric tcp, {kind}', key, target)
          for kind in fabric.TCP_KINDS
          for what, title, unit, key, target in (('latency', '8 B', 'us', 'us', faster),
                                                 ('bulk', '1 MiB', 'Gb/s', 'gbps', wider))),
        *(figure(f'mpi_{what}', f'MPI, {title}', unit, 'MPI', 'MPI, TCP', key, target)
          for what, title, unit, key, target in (
              ('small', 'allreduce of 8 B', 'us', 'us', faster),
              ('bulk', 'allreduce of 1 MiB', 'Gb/s', 'gbps', wider),
              ('rate', '8 B, 64 under way, one way', 'M/s', 'mpps', '')))]


def learnt(manner, forced):
    """The learned mode of a stream against a forced one."""
    return Figure(f'stream_{manner}_{forced}', f'streams-{manner}',
                  f'256 KiB, {MANNERS[manner]}; against {forced}', 'Gb/s',
                  f'{manner}, adaptive', f'{manner}, {forced}', 'gbps', 'peer',
                  '>= 1' if manner == 'mixed' else '>= 0.95')


def asks(size):
    return stream(size, '--way', 'send-recv', depth=1)


def turns(conns, n=TURN):
    return san('push', *SMALL, '--conns', conns, '--turns', n,
               ends=(*room_for(conns), *pack(False)))


def connect(r):
    got = r.san('connect', '--conns', 64)
    return {**got, 'kps': got['mpps'] * 1e3}


def idle(r):
    """Memory per connection: the pools that grow with the maximum number of connections, used or
    not, and what is allocated at set-up. Shared pools do not depend on whether there are 10,000
    connections or twice as many.
    """
    def run(conns, room):
        return r.san('idle', '--conns', conns, '--duration', 0.01, *room_for(room),
                     server=room_for(room))

    def reserved(memory):
        return memory['data'] + memory['heap']

    many, wider = run(IDLE, IDLE), run(1, 2 * IDLE)
    begin, up = many['memory_begin'], many['memory_up']
    pools = (reserved(wider['memory_begin']) - reserved(begin)) / IDLE
    grown = (reserved(up) - reserved(begin)) / IDLE - many['own_per_conn']
    resident = sum(up[k] - begin[k] for k in ('rss', 'hugetlb')) / IDLE - many['own_per_conn']
    many['bytes'] = pools + grown
    many['counters'] = {'pools_per_conn': pools, 'grown_per_conn': grown,
                        'resident_per_conn': resident, **many['counters']}
    return many


def attached(mode, *client, **more):
    """The client is attached to a daemon whose lcore shares its CPU. The server is embedded, or
    with *both* attached, too.
    """
    return lambda r: r.attached(mode, *client, **more)


def core(case):
    """Instructions per operation of both sides, or per round, of bench_core under callgrind."""
    return lambda r: r.core(case)


def worked(server, client, message, buffers, mtu=1500, answer=()):
    return lambda r: r.link(server, client, message, buffers, mtu, mtu=mtu, answer=answer)


def raw(server, client, frame, mtu=1500):
    return lambda r: r.link(server, client, frame, mtu=mtu)


def constant(**values):
    return lambda r: values


# operations of programs on sockets, both carried and by the kernel
PROGRAMS = {
    'UDP echo': lambda r: r.ping(how=''),
    'UDP sends': lambda r: r.udp_rate(how=''),
    'TCP echo': lambda r: r.ping(how='', tcp=True),
    'TCP bulk': lambda r: r.tcp(1500, True),
    'redis': redis('-n', 50_000),
    'redis pipelines': redis('-n', 400_000, '-P', 16),
    'redis connects': redis('-n', 2000, '-k', 0, is_left=True),
    'memcached': memcached(),
    'memcached UDP': memcached('-U'),
}


SLEEPING = 'veth as in README'


def program(name, title, unit, key, lower=False):
    """Carried against the kernel, on a link that is not a device of the kernel, and on one
    that is."""
    group, target = f'sock-{name.lower().replace(" ", "-")}', '<= 1' if lower else '>= 1'
    return [Figure(f'{group}-{link}'.lower().replace('-', '_').replace(' ', '_'), group,
                   f'{title}, over {link}', unit, f'{name}, {link}',
                   # a veth without offloads has the segments of a real wire
                   'kernel TCP, no offloads' if (name, link) == ('TCP bulk', SLEEPING) else
                   f'{name}, kernel', key, 'peer', '' if link == 'veth' else target, lower=lower,
                   quick=link == 'memif' and name in ('UDP echo', 'TCP echo'))
            for link in LINKS]


VARIANTS = {
    # one at a time
    'send': san('send', '--size', 64, '--depth', 1),
    'echo': san('rpc', '--size', 64, '--depth', 1),
    'worked link, ACK': worked('pong', 'ping', 64, SLOTS, answer=('ack',)),
    'worked link, echo': worked('pong', 'ping', 64, SLOTS, answer=('echo',)),
    'raw link, echo': raw('raw-pong', 'raw-ping', FRAME),
    'kernel UDP, echo': lambda r: r.ping(),
    # requests and answers
    'rpc': rpc(False),
    BOTH_WAYS: worked('both-peer', 'both', 32, SLOTS),
    **{f'rpc at {n}{packed}': rpc(packed != '', *words, depth=n) for n in WINDOWS
       for packed, words in (('', ()), (', packed', ('--batch', min(n, TOGETHER))))},
    'rpc, default': rpc(True),
    'rpc, drop 0.1 %': rpc(True, '--impair', 'drop=0.001'),
    'rpc, drop 1 %': rpc(True, '--impair', 'drop=0.01'),
    'rpc, drop 0.1 %, unpacked': rpc(False, '--impair', 'drop=0.001'),
    'rpc, drop 1 %, unpacked': rpc(False, '--impair', 'drop=0.01'),
    # small pushes in one direction
    'small push': small(False),
    'worked link, small': worked('rx', 'tx', 64, SLOTS),
    'raw link, small': raw('raw-rx', 'raw-tx', FRAME),
    'kernel UDP': lambda r: r.udp_rate(),
    # large messages
    'push': bulk('push', 1500, '--solicit', 'always'),
    'pull': bulk('pull', 1500),
    'long send': bulk('send', 1500, server=('--rq', BUFFERS + 2)),
    'push, no hugepages': bulk('push', 1500, '--solicit', 'always', huge=False),
    'worked link, bulk': worked('rx', 'tx', MIB, BUFFERS, 1500),
    'raw link, bulk': raw('raw-rx', 'raw-tx', 1514),
    'kernel TCP': lambda r: r.tcp(1500, True),
    'kernel TCP, no offloads': lambda r: r.tcp(1500, False),
    'push 9000': bulk('push', 9000, '--solicit', 'always'),
    'worked link, bulk 9000': worked('rx', 'tx', MIB, BUFFERS, 9000),
    'raw link, bulk 9000': raw('raw-rx', 'raw-tx', 9014, 9000),
    'kernel TCP 9000': lambda r: r.tcp(9000, True),
    'kernel TCP 9000, no offloads': lambda r: r.tcp(9000, False),
    # streams
    'stream': stream(MIB, '--receive', 'direct'),
    'small stream': stream(64, '--receive', 'small', depth=DEPTH),
    'small send': san('send', '--size', 64, '--depth', DEPTH // 2, '--solicit', 'never'),
    **{f'{manner}, {how}': mode(how, manner)
       for manner in MANNERS for how in ('adaptive', *FORCED)},
    'stream, 64 B asked': asks(64),
    'kernel TCP, 64 B asked': lambda r: r.ping(tcp=True),
    'stream, 16 KiB asked': asks('16K'),
    'kernel TCP, 16 KiB asked': lambda r: r.ping(tcp=True, size=16384),
    '64 streams': stream('64K', '--conns', 64, depth=2),
    'kernel TCP, 1 MiB': lambda r: r.tcp(1500, True, length='1M'),
    'kernel TCP, 64 streams': lambda r: r.tcp(1500, True, 64, '64K'),
    'kernel TCP, 64 streams, no offloads': lambda r: r.tcp(1500, False, 64, '64K'),
    '64 streams, 4 KiB': stream('4K', '--conns', 64, depth=16),
    'kernel TCP, 64 streams, 4 KiB': lambda r: r.tcp(1500, True, 64, '4K'),
    '64 streams, 9000': stream('64K', '--conns', 64, depth=2, mtu=9000),
    'kernel TCP, 64 streams, 9000': lambda r: r.tcp(9000, True, 64, '64K'),
    # faults
    'clean': impaired('ordered', '', '--verify'),
    'drop 0.1 %': impaired('ordered', 'drop=0.001', '--verify'),
    'drop 1 %': impaired('ordered', 'drop=0.01', '--verify'),
    'ordered': impaired('ordered', 'reorder=0.05'),
    'unordered': impaired('unordered', 'reorder=0.05'),
    # connections
    '1 connection': turns(1),
    '1,000 in turn': turns(1000),
    '10,000 in turn': turns(10000),
    'one each': turns(1000, 1),
    'connect': connect,
    'wanted per second': constant(kps=20),
    'idle': idle,
    'allowed per connection': constant(bytes=2048),
    # the daemon
    'hop': lambda r: r.hop(),
    'wanted operations': constant(mops=10),
    'attached echo': attached('rpc', '--size', 64, '--depth', 1),
    'kernel UDP, blocking': lambda r: r.ping(how=''),
    'attached rpc': attached('rpc', '--size', 64, '--depth', 32),
    'embedded rpc': san('rpc', '--size', 64, '--depth', 32),
    'both attached, echo': attached('rpc', '--size', 64, '--depth', 1, both=True),
    'both attached, rpc': attached('rpc', '--size', 64, '--depth', 64, both=True),
    'attached push 9000': attached('push', '--size', MIB, '--depth', BUFFERS, '--solicit', 'always',
                                   mtu=9000),
    'attached, restarted': lambda r: r.restarted('rpc', '--size', 64, '--depth', 1),
    'allowed blackout': constant(blackout_ms=100),
    'one pair': lambda r: r.crowd(1, SHARE, 32 * ROUNDS, SHARED),
    '32 pairs': lambda r: r.crowd(32, SHARE, ROUNDS, SHARED),
    'all the same': constant(even=1),
    'idle daemon': lambda r: r.idle(),
    'allowed': constant(percent=3),
    # instructions
    **{f'{case}, counted': core(case) for case in profile_core.CASES},
    'allowed instructions': constant(ask=450, serve=380, both=2600, packed=1300, round=150),
    'rpc, whole end': lambda r: r.whole_end(False),
    'rpc packed, whole end': lambda r: r.whole_end(True),
    'a packet each way': constant(packets=2),
    'all packets': constant(express_tx=100, express_rx=100),
    # packing
    'small push, packed': small(True, '--batch', TOGETHER),
    'small push, not packed': small(False, '--batch', TOGETHER),
    'rpc, packed': rpc(True, '--batch', TOGETHER),
    'rpc, not packed': rpc(False, '--batch', TOGETHER),
    # sockets of programs
    **{f'{name}, {link}': over(link, run) for name, run in PROGRAMS.items()
       for link in LINKS},
    **{f'{name}, kernel': by_kernel(run) for name, run in PROGRAMS.items()},
    # libfabric and MPI
    **{f'libfabric tcp, {kind}': fabric.tcp(kind) for kind in fabric.TCP_KINDS},
    **{f'libfabric, {kind}, {where}': fabric.ours(kind, where) for kind in fabric.KINDS
       for where in fabric.ENDS},
    'sanbench, rpc': fabric.sanbench,
    'MPI, TCP': fabric.mpi_tcp,
    **{f'MPI, {where}': fabric.mpi(where) for where in fabric.ENDS},
    'MPI by ofi_rxm, embedded': fabric.mpi('embedded', fabric.RXM),
    # rdma-core
    'ib_write_lat': verbs.write_latency,
    'ib_write_bw': verbs.write_bandwidth(verbs.daemon),
    'ib_write_bw, embedded': verbs.write_bandwidth(verbs.embedded),
    'qperf tcp_lat': verbs.tcp('tcp_lat', verbs.SMALL),
    'qperf tcp_bw': verbs.tcp('tcp_bw', verbs.LARGE),
    'sanbench, rpc, one daemon': verbs.sanbench('rpc', '--size', verbs.SMALL, '--depth', 1),
    'sanbench, push, one daemon': verbs.sanbench('push', '--size', MIB, '--depth', BUFFERS),
    'start': start_up,
    'allowed start': constant(added_ms=5),
}


# ---- figures ----

@dataclasses.dataclass
class Figure:
    name: str
    group: str              # the variants that are measured in turn
    title: str
    unit: str
    ours: str               # variant
    base: str               # variant
    key: str                # the quantity, in both unless base_key says otherwise
    kind: str               # 'limit': suspect if better than it; 'reference': may be; 'peer'
    target: str             # for ours / base: '>= 0.5'; '': for information
    base_key: str = ''
    lower: bool = False     # is better
    drop: float = 0         # rate that must have been dropped
    elsewhere: tuple = ()   # eRPC's ratio to that baseline; a second one with its mempool cache
    once: bool = False      # a single round
    quick: bool = False     # part of the short run that only proves that everything works

    def of_base(self):
        return self.base_key or self.key


FIGURES = [
    Figure('send_worked', 'latency', '64 B send, posting to completion, p50', 'us',
           'send', 'worked link, ACK', 'p50_us', 'limit', '<= 1.15', lower=True),
    Figure('echo_worked', 'latency', '64 B send and one in answer, p50', 'us',
           'echo', 'worked link, echo', 'p50_us', 'limit', '<= 1.3', lower=True, quick=True,
           elsewhere=(0.87,)),
    Figure('echo_udp', 'latency', '64 B send and one in answer, p50', 'us',
           'echo', 'kernel UDP, echo', 'p50_us', 'peer', '', lower=True, quick=True),
    Figure('echo_raw', 'latency', '64 B send and one in answer, p50', 'us',
           'echo', 'raw link, echo', 'p50_us', 'limit', '', lower=True),
    Figure('rpc_worked', 'rpc', '32 B requests and answers, 64 under way, both ask, unpacked',
           'M/s', 'rpc', BOTH_WAYS, 'direction_mpps', 'limit', '>= 0.75', base_key='mpps',
           quick=True, elsewhere=(0.79, 1.3)),
    Figure('rpc_packed', 'rpc', '32 B requests without their answers, 64 under way, both ask, '
           'packed', 'M/s', 'rpc, packed', BOTH_WAYS, 'issued_mpps', 'reference', '>= 0.75',
           base_key='mpps'),
    *(Figure(f'rpc_{n}{mark}', 'rpc-windows',
             f'32 B requests without their answers, {n} under way, both ask{packed}', 'M/s',
             f'rpc at {n}{packed}', BOTH_WAYS, 'issued_mpps', 'reference',
             '>= 0.35' if n == 8 and packed else '', base_key='mpps')
      for n in WINDOWS for packed, mark in (('', ''), (', packed', '_packed'))),
    *(Figure(f'rpc_drop_{mark}{suffix}', 'rpc-loss',
             f'32 B requests, 64 under way, both ask, at {share} drop{how}', 'M/s',
             f'rpc, drop {share}{how}', base, 'issued_mpps', 'peer', target, drop=drop)
      for suffix, how, base in (('', '', 'rpc, default'), ('_unpacked', ', unpacked', 'rpc'))
      for mark, share, target, drop in (('01', '0.1 %', '>= 0.95', 0.001),
                                        ('1', '1 %', '>= 0.85', 0.01))),
    Figure('push_worked', 'push', '64 B unsolicited push, one way', 'M/s',
           'small push', 'worked link, small', 'mpps', 'limit', '>= 0.75', quick=True),
    Figure('push_packed', 'push', '64 B push, 16 posted together, packed', 'M/s',
           'small push, packed', 'worked link, small', 'mpps', 'reference', '>= 1.5'),
    Figure('push_udp', 'push', '64 B unsolicited push, one way', 'M/s',
           'small push', 'kernel UDP', 'mpps', 'peer', '', quick=True),
    Figure('push_raw', 'push', '64 B unsolicited push, one way', 'M/s',
           'small push', 'raw link, small', 'mpps', 'limit', ''),
    *(Figure(f'instructions_{name}', COUNTED, title, 'instructions', f'{case}, counted',
             'allowed instructions', key, 'peer', '' if 'alone' in title else '<= 1', base_key=base,
             lower=True, once=True)
      for name, title, case, key, base in (
          ('client', '64 B push, client', 'push', 'ask', 'ask'),
          ('server', '64 B push, server', 'push', 'serve', 'serve'),
          ('rpc', '32 B request asked and one served, the core alone', 'rpc', 'both', 'both'),
          ('rpc_packed', '32 B request asked and one served, the core alone, packed', 'rpc packed',
           'both', 'packed'),
          ('round', "a core's round that finds nothing", 'idle', 'round', 'round'))),
    *(Figure(f'whole_end_{base}', 'whole-end', f'32 B request asked and one served, with sanbench '
             f'and memif{how}', 'instructions', f'rpc{" packed" if how else ""}, whole end',
             'allowed instructions', 'both', 'peer', '<= 1', base_key=base, lower=True, once=True)
      for base, how in (('both', ''), ('packed', ', packed'))),
    *(Figure(f'{name}_{side}', COUNTED, f'{title}, {side}', 'instructions', f'{case}, counted',
             f'{base}, counted', key, 'peer', '', lower=True, once=True)
      for name, title, case, base in (
          ('one_each', '64 B push, one per connection over 1,000', 'one each', 'push'),
          ('request', '64 B request and answer, one at a time', 'request', 'rpc'))
      for side, key in (('client', 'ask'), ('server', 'serve'))),
    *(Figure(f'packets_{case.replace(" ", "_")}', COUNTED, f'64 B request and answer, one at a '
             f'time, {ns} ns a round', 'packets', f'{case}, counted', 'a packet each way',
             'packets', 'limit', '', lower=True, once=True)
      for case, ns in (('request', 500), ('request slow', 1500))),
    *(Figure(f'{way}_{case.replace(" ", "_")}', COUNTED, f'{done} by the express path: {title}',
             '% of packets', f'{case}, counted', 'all packets', way, 'limit', '', once=True)
      for way, done in (('express_tx', 'sent'), ('express_rx', 'received'))
      for case, title in (('push', '64 B push'), ('one each', '64 B push, one per connection'),
                          ('send', '64 B send'), ('rpc', '32 B requests and answers'),
                          ('rpc packed', '32 B requests and answers, packed'),
                          ('request', '64 B request and answer, one at a time'))),
    Figure('bulk_worked', 'bulk', '1 MiB solicited push, 8 under way, MTU 1500', 'Gb/s',
           'push', 'worked link, bulk', 'gbps', 'reference', '>= 0.95', elsewhere=(1.2,)),
    Figure('bulk_tcp_plain', 'bulk', '1 MiB solicited push, 8 under way, MTU 1500', 'Gb/s',
           'push', 'kernel TCP, no offloads', 'gbps', 'peer', ''),
    Figure('bulk_tcp', 'bulk', '1 MiB solicited push, 8 under way, MTU 1500', 'Gb/s',
           'push', 'kernel TCP', 'gbps', 'peer', ''),
    Figure('bulk_raw', 'bulk', '1 MiB solicited push, 8 under way, MTU 1500', 'Gb/s',
           'push', 'raw link, bulk', 'gbps', 'limit', ''),
    Figure('bulk9000_worked', 'bulk9000', '1 MiB solicited push, 8 under way, MTU 9000', 'Gb/s',
           'push 9000', 'worked link, bulk 9000', 'gbps', 'reference', '>= 0.95', quick=True,
           elsewhere=(0.9,)),
    Figure('bulk9000_tcp_plain', 'bulk9000', '1 MiB solicited push, 8 under way, MTU 9000',
           'Gb/s', 'push 9000', 'kernel TCP 9000, no offloads', 'gbps', 'peer', '', quick=True),
    Figure('bulk9000_tcp', 'bulk9000', '1 MiB solicited push, 8 under way, MTU 9000', 'Gb/s',
           'push 9000', 'kernel TCP 9000', 'gbps', 'peer', ''),
    Figure('bulk9000_raw', 'bulk9000', '1 MiB solicited push, 8 under way, MTU 9000', 'Gb/s',
           'push 9000', 'raw link, bulk 9000', 'gbps', 'limit', ''),
    Figure('pull', 'kinds', '1 MiB pull, 8 under way, MTU 1500', 'Gb/s',
           'pull', 'push', 'gbps', 'peer', '>= 0.9', quick=True),
    Figure('send', 'kinds', '1 MiB send, 8 under way, MTU 1500', 'Gb/s',
           'long send', 'push', 'gbps', 'peer', '>= 0.9'),
    Figure('stream_push', 'streams', '1 MiB stream sends into 1 MiB receives, MTU 1500', 'Gb/s',
           'stream', 'push', 'gbps', 'peer', '>= 0.95', quick=True),
    Figure('stream_tcp', 'streams', '1 MiB stream sends into 1 MiB receives, MTU 1500', 'Gb/s',
           'stream', 'kernel TCP, 1 MiB', 'gbps', 'peer', '>= 1'),
    Figure('stream_small', 'streams-64b', '64 B stream sends into small receives', 'M/s',
           'small stream', 'small send', 'mpps', 'peer', '>= 0.7', quick=True),
    *(learnt(manner, forced) for manner in MANNERS for forced in FORCED),
    Figure('stream_ask', 'streams-ask', '64 B asked and answered on a stream, p50', 'us',
           'stream, 64 B asked', 'kernel TCP, 64 B asked', 'p50_us', 'peer', '<= 1', lower=True,
           quick=True),
    Figure('stream_ask16k', 'streams-ask16k', '16 KiB asked and answered on a stream, p50', 'us',
           'stream, 16 KiB asked', 'kernel TCP, 16 KiB asked', 'p50_us', 'peer', '<= 1',
           lower=True),
    Figure('streams_64', 'streams-64', '64 streams, 64 KiB sends', 'Gb/s',
           '64 streams', 'kernel TCP, 64 streams', 'gbps', 'peer', '>= 1'),
    Figure('streams_64_plain', 'streams-64', '64 streams, 64 KiB sends, TCP without offloads',
           'Gb/s', '64 streams', 'kernel TCP, 64 streams, no offloads', 'gbps', 'peer', '>= 1'),
    Figure('streams_64_4k', 'streams-64-4k', '64 streams, 4 KiB sends', 'Gb/s',
           '64 streams, 4 KiB', 'kernel TCP, 64 streams, 4 KiB', 'gbps', 'peer', '>= 1'),
    Figure('streams_64_9000', 'streams-64-9000', '64 streams, 64 KiB sends, MTU 9000', 'Gb/s',
           '64 streams, 9000', 'kernel TCP, 64 streams, 9000', 'gbps', 'peer', '>= 1'),
    Figure('drop_01', 'loss', '64 KiB push at 0.1 % drop, verified', 'Gb/s',
           'drop 0.1 %', 'clean', 'gbps', 'peer', '>= 0.95', drop=0.001),
    Figure('drop_1', 'loss', '64 KiB push at 1 % drop, verified', 'Gb/s',
           'drop 1 %', 'clean', 'gbps', 'peer', '>= 0.92', drop=0.01, quick=True),
    Figure('reorder', 'reorder', '64 KiB push, ordered, at 5 % reordering', 'Gb/s',
           'ordered', 'unordered', 'gbps', 'peer', '>= 0.9'),
    Figure('conns_1000', 'conns', '64 B push, 1,000 connections in turn', 'M/s',
           '1,000 in turn', '1 connection', 'mpps', 'peer', '>= 0.85', quick=True),
    Figure('conns_10000', 'conns', '64 B push, 10,000 connections in turn', 'M/s',
           '10,000 in turn', '1 connection', 'mpps', 'peer', '>= 0.75'),
    Figure('one_each', 'conns', '64 B push, one per connection over 1,000 in turn', 'M/s',
           'one each', '1 connection', 'mpps', 'peer', ''),
    Figure('connect', 'connect', 'connections set up and ended', 'thousand/s',
           'connect', 'wanted per second', 'kps', 'peer', '>= 1', quick=True),
    Figure('memory', 'memory', 'memory per idle connection, with every pool that grows with them',
           'B', 'idle', 'allowed per connection', 'bytes', 'peer', '<= 1', lower=True, once=True),
    Figure('pack_push', 'packing', '64 B push, 16 posted together', 'M/s',
           'small push, packed', 'small push, not packed', 'mpps', 'peer', ''),
    Figure('pack_rpc', 'packing', '32 B requests and answers, 16 posted together, both ask',
           'M/s', 'rpc, packed', 'rpc, not packed', 'direction_mpps', 'peer', '', quick=True),
    Figure('hop', 'hop', 'from an application to the daemon and back, p50', 'us',
           'hop', 'hop', 'p50_us', 'limit', '<= 4', base_key='line_us', lower=True, quick=True),
    Figure('hop_rate', 'hop', 'operations through shared memory, 32 a bell', 'M/s',
           'hop', 'wanted operations', 'mops', 'peer', '>= 1', quick=True),
    Figure('attached_both', 'attached', '64 B round trip, both ends attached, p50', 'us',
           'both attached, echo', 'echo', 'p50_us', 'peer', '<= 1.7', lower=True),
    Figure('attached_both_p99', 'attached', '64 B round trip, both ends attached, p99', 'us',
           'both attached, echo', 'echo', 'p99_us', 'peer', '', lower=True),
    Figure('attached_both_rpc', 'attached', '64 B requests, 64 under way, both ends attached',
           'M/s', 'both attached, rpc', 'embedded rpc', 'mpps', 'peer', ''),
    Figure('attached_echo', 'attached', '64 B round trip, attached, p50', 'us',
           'attached echo', 'echo', 'p50_us', 'peer', '', lower=True, quick=True),
    Figure('attached_echo_udp', 'attached', '64 B round trip, attached, p50', 'us',
           'attached echo', 'kernel UDP, echo', 'p50_us', 'peer', '', lower=True),
    Figure('attached_echo_udp_blocking', 'attached', '64 B round trip, attached, p50', 'us',
           'attached echo', 'kernel UDP, blocking', 'p50_us', 'peer', '', lower=True),
    Figure('attached_rpc', 'attached', '64 B requests, 32 under way, attached', 'M/s',
           'attached rpc', 'embedded rpc', 'mpps', 'peer', '', quick=True),
    Figure('attached_push', 'attached9000', '1 MiB push, attached, MTU 9000', 'Gb/s',
           'attached push 9000', 'push 9000', 'gbps', 'limit', '>= 0.85'),
    Figure('restart', 'restart', 'live restart: the longest that an application waits', 'ms',
           'attached, restarted', 'allowed blackout', 'blackout_ms', 'peer', '<= 1', lower=True),
    Figure('crowd', 'crowd', '64 applications with 16 connections each, 64 KiB there and back',
           'Gb/s', '32 pairs', 'one pair', 'gbps', 'peer', '>= 0.9'),
    Figure('crowd_even', 'crowd', 'the first of them to be ready against the last', 'of the time',
           '32 pairs', 'all the same', 'even', 'peer', '>= 0.8'),
    Figure('idle_cpu', 'idle', 'an idle daemon with idle=sleep', '% of a CPU',
           'idle daemon', 'allowed', 'percent', 'peer', '<= 1', lower=True),
    *program('UDP echo', 'sockperf, UDP, 64 B and the same in answer, p50', 'us', 'p50_us', True),
    Figure('sock_udp_raw', 'sock-udp-echo', 'the same, over memif', 'us', 'UDP echo, memif',
           'raw link, echo', 'p50_us', 'limit', '', lower=True),
    *program('UDP sends', 'sockperf, UDP, 64 B, one way, that arrived', 'M/s', 'mpps'),
    *program('TCP echo', 'sockperf, TCP, 64 B and the same in answer, p50', 'us', 'p50_us', True),
    *program('TCP bulk', 'iperf3, TCP, 128 KiB writes', 'Gb/s', 'gbps'),
    *program('redis', 'redis-benchmark, GET, 16 clients', 'thousand/s', 'kps'),
    *program('redis pipelines', 'redis-benchmark, GET, 16 clients, 16 in a row', 'thousand/s',
             'kps'),
    *program('redis connects', 'the same, a connection for each GET', 'thousand/s', 'kps'),
    *program('memcached', 'memcaslap, TCP, 16 clients', 'thousand/s', 'kps'),
    *program('memcached UDP', 'memcaslap, UDP, 16 clients', 'thousand/s', 'kps'),
    Figure('sock_start', 'sock-start', 'added to the start of a program that no rule is for', 'ms',
           'start', 'allowed start', 'added_ms', 'peer', '<= 1', lower=True, quick=True),
    *(figure for where in fabric.ENDS for figure in ofi(where)),
    Figure('ofi_overhead', fabric.GROUP,
           '8 B there and back, FI_EP_MSG against sanbench, embedded, memif', 'us',
           'libfabric, msg, embedded', 'sanbench, rpc', 'both_us', 'peer', '<= 1.15', lower=True),
    Figure('ofi_rdm', fabric.GROUP, '8 B, RDM against RDM by ofi_rxm, embedded, memif', 'us',
           'libfabric, rdm, embedded', 'libfabric, rxm, embedded', 'us', 'peer', '', lower=True),
    Figure('ofi_rdm_bulk', fabric.GROUP, '1 MiB, RDM against RDM by ofi_rxm, embedded, memif',
           'Gb/s', 'libfabric, rdm, embedded', 'libfabric, rxm, embedded', 'gbps', 'peer', ''),
    Figure('ofi_mpi_rdm_rate', fabric.GROUP,
           'MPI, 8 B, 64 under way, one way, RDM against RDM by ofi_rxm, embedded, memif', 'M/s',
           'MPI, embedded', 'MPI by ofi_rxm, embedded', 'mpps', 'peer', ''),
    *(Figure(f'verbs_{what}_{against}', verbs.GROUP, f'{title}, one daemon, MTU 9000', unit, ours, base,
             key, 'peer', target, lower=unit == 'us')
      for what, title, unit, key, ours, bases in (
          ('latency', 'write of 64 B, ib_write_lat, p50', 'us', 'us', 'ib_write_lat',
           (('tcp', 'qperf tcp_lat', '<= 0.5'),
            ('sanbench', 'sanbench, rpc, one daemon', '<= 1.15'))),
          ('bulk', 'writes of 1 MiB, ib_write_bw', 'Gb/s', 'gbps', 'ib_write_bw',
           (('tcp', 'qperf tcp_bw', '>= 0.8'),
            ('sanbench', 'sanbench, push, one daemon', '>= 0.9'))))
      for against, base, target in bases),
    *(Figure(f'verbs_embedded_{against}', verbs.GROUP,
             'writes of 1 MiB, ib_write_bw, embedded, MTU 9000', 'Gb/s', 'ib_write_bw, embedded',
             base, 'gbps', 'peer', target)
      for against, base, target in (('tcp', 'qperf tcp_bw', '>= 1.3'),
                                    ('sanbench', 'push 9000', '>= 0.9'))),
    Figure('no_huge', 'no-huge', '1 MiB solicited push without hugepages, MTU 1500', 'Gb/s',
           'push, no hugepages', 'push', 'gbps', 'peer', '', once=True),
]


# ---- judgement ----

def is_ok(ratio, target):
    op, value = target.split()
    return ratio >= float(value) if op == '>=' else ratio <= float(value)


def dropped(results):
    """Share of packets that the client's port dropped, over all rounds."""
    drops = packets = 0
    for c in (r['counters'] for r in results):
        tx, rx = c['impair_tx_dropped'], c['impair_rx_dropped']
        drops += tx + rx
        packets += c['tx_pkts'] + tx + c['rx_pkts']
    return drops / packets if packets else 0


def modes(results):
    """Medians of the link's slower and faster half, over all intervals of all rounds."""
    if any('slow_mpps' not in r for r in results):
        return None
    return {k: statistics.median(r[f'{k}_mpps'] for r in results) for k in ('slow', 'fast')}


def ratio_of(mine, theirs):
    """Median of the ratios within each round; None if the baseline is zero in all of them."""
    ratios = [x / y for x, y in zip(mine, theirs) if y]
    return statistics.median(ratios) if ratios else None


def interesting(results):
    """Counters of the last round, without zeros."""
    last, found = results[-1], {}
    for side, counts in (('client', last.get('counters')),
                         ('server', last.get('server', {}).get('counters'))):
        if counts:
            found[side] = {k: v for k, v in counts.items() if v}
    return found


def empty(figure):
    """The record of a figure that is not measured."""
    return {'name': figure.name, 'title': figure.title, 'value': None, 'unit': figure.unit,
            'baseline': {'name': figure.base, 'kind': figure.kind, 'value': None},
            'elsewhere': figure.elsewhere,
            'ratio': None, 'target': figure.target or None, 'met': False, 'suspect': False,
            'samples': {}, 'counters': {}}


def compare_with_target(figure, record):
    """Whether a measured figure is believed, and meets its target."""
    ratio = record['ratio']
    record['suspect'] = figure.kind == 'limit' and (ratio < 1 if figure.lower else ratio > 1)
    record['met'] = bool(figure.target) and is_ok(ratio, figure.target) and not record['suspect']
    if figure.drop:
        record['met'] &= abs(record['dropped'] / figure.drop - 1) <= DROPS_WITHIN


def judge(figure, results):
    """A record of results.json."""
    ours, base = results[figure.ours], results[figure.base]
    record = empty(figure)
    if None in ours or None in base:
        return record
    mine = [r[figure.key] for r in ours]
    theirs = [r[figure.of_base()] for r in base]
    value, against = statistics.median(mine), statistics.median(theirs)
    ratio = ratio_of(mine, theirs)
    two = modes(base) if figure.base == BOTH_WAYS else None
    if two:
        record['baseline']['modes'] = two
        # half of the intervals at zero: the link was stopped, and this is no slow mode
        if 0 < TWO_MODES * two['slow'] < two['fast']:
            against = two['slow']
            ratio = ratio_of(mine, [r['slow_mpps'] for r in base])
    if 'congestion_control' in base[-1]:
        record['baseline']['congestion_control'] = base[-1]['congestion_control']
    record['samples'] = {'ours': mine, 'baseline': theirs}
    record['counters'] = interesting(ours)
    record.update(value=value, ratio=ratio)
    record['baseline']['value'] = against
    if ratio is None:
        return record
    if figure.drop:
        record['dropped'] = dropped(ours)
    compare_with_target(figure, record)
    return record
