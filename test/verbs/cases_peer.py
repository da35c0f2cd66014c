# SPDX-License-Identifier: BSD-3-Clause
"""Peers that die, that keep to no rule, and that know nothing of sanstack."""

from e2e import check
from provider_cases import Bench

PLAIN = 'verbs:rxe0,plain'
TIMEOUT = 8     # RTSAN_R_TIMEOUT


def errors_server(guests):
    server = guests.start('server', 'errors server',
                          [guests.program('errors'), 'server', guests.spec('server')])
    server.wait_text('listening')
    return server


def errors_client(guests, *cases):
    return guests.start('client', f'errors client {cases[0]}', [
        guests.program('errors'), 'client', guests.spec('client'), guests.server_ip, *cases])


# ---- peers that die ----

def killed(guests, again):
    """SIGKILL of the server under load; nobody takes its place, or another one does."""
    server = errors_server(guests)
    client = errors_client(guests, 'restarted' if again else 'killed')
    client.wait_text('streaming')
    server.signal('KILL')
    client.wait_text('ended')
    server.wait()
    if again:
        server = errors_server(guests)
    check(client.wait() == 0, client.tail() + server.tail())
    server.kill()
    server.wait()


def client_killed(guests):
    """A server goes on, releases what the dead one held, and serves the next."""
    bench = Bench(guests)
    bench.serve()
    before = guests.held('server')
    for mode in ('push', 'pull', 'stream'):
        victim = guests.start('client', 'victim', guests.bench('client', [
            '--connect', guests.server_ip, '--mode', mode, '--duration', '600', '--live']))
        victim.wait_text('Gb/s')
        victim.signal('KILL')
        victim.wait()
        bench.mode(guests, ['--mode', mode, '--count', '20'])
    guests.settle('server', before)
    check(bench.server.stop() == 1, bench.server.tail())


def vanished(guests):
    """A connection under load ends, and one on which nothing happens. (RT-24)"""
    errors_server(guests)
    clients = [errors_client(guests, case) for case in ('killed', 'idle')]
    clients[0].wait_text('streaming')
    clients[1].wait_text('idle')
    # power off at once would leave QEMU with what nobody takes, and the sender's queue stand still
    guests.pair.unplug('server')
    for client in clients:
        client.wait_text('ended')
        check(f'ended, reason {TIMEOUT}' in client.out(), client.tail())
        check(client.wait() == 0, client.tail())
    guests.pair.power_off('server')


def unplugged(guests):
    """What either sends is lost for a while; another connection then works."""
    server = errors_server(guests)
    before = guests.held('server')
    clients = [errors_client(guests, case) for case in ('restarted', 'idle')]
    clients[0].wait_text('streaming')
    clients[1].wait_text('idle')
    # both ways: else who notices first can tell the other. And no port of theirs: then the sender's
    # queue would stand still, too
    ways = [(role, guests.pair.address[peer]) for role, peer in
            (('server', 'client'), ('client', 'server'))]
    for role, peer in ways:
        guests.sh(role, f'arp -s {peer} 52:54:00:77:00:99')
    for client in clients:
        client.wait_text('ended')
        check(f'ended, reason {TIMEOUT}' in client.out(), client.tail())
    for role, peer in ways:
        guests.sh(role, f'arp -d {peer}')
    for client in clients:
        check(client.wait() == 0, client.tail() + server.tail())
    guests.settle('server', before)
    check(server.stop() == 0, server.tail())


# ---- a peer that keeps to no rule ----

def hostile(guests, how, says):
    """The server refuses it, lives, serves others meanwhile and afterwards, and keeps nothing."""
    server = errors_server(guests)
    before = guests.held('server')
    peer = guests.start('client', f'hostile {how}',
                        [guests.program('hostile'), guests.server_ip, '17', how])
    if how == 'floods':
        peer.wait_text('not finished')
    else:
        check(peer.wait() == 0, peer.tail() + server.tail())
    good = errors_client(guests, 'refused', 'key')
    check(good.wait() == 0, good.tail() + peer.tail() + server.tail())
    check(peer.wait() == 0, peer.tail() + server.tail())
    for text in says:
        check(text in peer.out(), f'not "{text}": {peer.tail()}')
    guests.settle('server', before)
    good = errors_client(guests, 'local')
    check(good.wait() == 0, good.tail() + server.tail())
    check(server.stop() == 0, server.tail())


# ---- programs of rdmacm-utils ----

def talk(guests, server, client, says):
    """Two programs, one of which is ours, to their ends."""
    one = guests.start('server', server[0], server)
    if server[0].endswith('stock'):
        one.wait_text('listening')
    else:
        guests.wait_listening(one)
    other = guests.start('client', client[0], client)
    check(other.wait() == 0, other.tail() + one.tail())
    # at its end rping may close the channel that a thread of its own reads from
    check(one.wait() == 0 or 'rdma_get_cm_event: Bad file descriptor' in one.out(),
          one.tail() + other.tail())
    check(says in one.out() + other.out(), one.tail() + other.tail())


def rping(guests, is_client, size):
    """rping -v -V: what it reads and writes is what it was, which it checks."""
    n = 10
    own = ['rping', '-a', guests.server_ip, '-v', '-V', '-C', str(n), '-S', str(size)]
    ours = guests.program('stock')
    if is_client:
        talk(guests, [ours, 'rping-server', PLAIN], [*own, '-c'], f'stock: served {n} rounds')
    else:
        talk(guests, [*own, '-s'], [ours, 'rping-client', PLAIN, guests.server_ip, str(size),
                                    str(n)], f'stock: {n} rounds came back')


def cmatose(guests, is_client, size):
    """ucmatose: messages both ways."""
    n = 20
    own = ['ucmatose', '-C', str(n), '-S', str(size)]
    ours = guests.program('stock')
    if is_client:
        talk(guests, [ours, 'cmatose-server', PLAIN, str(size), str(n)],
             [*own, '-s', guests.server_ip], f'stock: {n} messages each way')
    else:
        talk(guests, [*own, '-b', guests.server_ip],
             [ours, 'cmatose-client', PLAIN, guests.server_ip, str(size), str(n)],
             f'stock: {n} messages each way')


def hello(guests, is_client):
    """rdma_client and rdma_server: one message each way."""
    ours = guests.program('stock')
    if is_client:
        talk(guests, [ours, 'hello-server', PLAIN], ['rdma_client', '-s', guests.server_ip],
             'stock: said hello')
    else:
        talk(guests, ['rdma_server'], [ours, 'hello-client', PLAIN, guests.server_ip],
             'stock: said hello')


HOSTILE = {
    'garbage': ['another version: RDMA_CM_EVENT_REJECTED, 6',
                'another service: RDMA_CM_EVENT_REJECTED, 1'],
    'halves': [],
    'floods': [],
    'keys': ['each refused: yes'],
}


def add_all(tests, guests):
    def add(name, function, *args):
        tests.add(name, guests.run, function, *args)

    for is_client, role in ((True, 'client'), (False, 'server')):
        for size in (64, 1500, 6000):
            add(f'rping as {role}, {size} bytes', rping, is_client, size)
        for size in (1, 10000):
            add(f'ucmatose as {role}, {size} bytes', cmatose, is_client, size)
        add(f'rdma_{role}', hello, is_client)
    for how, says in HOSTILE.items():
        add(f'hostile peer: {how}', hostile, how, says)
    add('peer killed', killed, False)
    add('peer killed, another one started', killed, True)
    add('client killed', client_killed)
    add('peer unplugged', unplugged)
    tests.add('peer vanished', guests.run_last, vanished)
