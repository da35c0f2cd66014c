# SPDX-License-Identifier: BSD-3-Clause
"""What happens to a NIC while it is used: its link goes down, it is unplugged."""

import provider_cases
from e2e import check, until_true
from ends import Daemons, Embedded

ENDLESS = ['--mode', 'push', '--size', '1-20000', '--duration', '600', '--live', '--verify']


def busy(ends):
    """A server, and a client that pushes until it is stopped."""
    server = ends.start('server', 'sanbench server', ends.bench('server', ['--server']))
    server.wait_text('listening')
    client = ends.start('client', 'sanbench client', ends.bench('client', [
        '--connect', ends.server_ip, *ENDLESS]))
    moves(client, 1)
    return server, client


def rates(client):
    """What the client has moved in each second."""
    return [float(line.split('Gb/s')[0].split()[-1]) for line in client.out().splitlines()
            if 'Gb/s' in line]


def moves(client, nb, is_up=True):
    """Until it has moved data, or none, in *nb* of the seconds to come."""
    seen = len(rates(client))

    def there():
        check(client.is_alive(), client.tail())
        return sum((rate > 0) == is_up for rate in rates(client)[seen:]) >= nb
    until_true(lambda: f'data {"moves" if is_up else "stops"}: {client.tail()}', there)


def link(ends, role, is_up):
    ends.pair.ends[role].machine.ask(f'set_link nic0 {"on" if is_up else "off"}')


def down_and_up(ends, role):
    """A connection outlives a short outage, and nothing is lost or damaged."""
    server, client = busy(ends)
    link(ends, role, False)
    moves(client, 1, False)
    link(ends, role, True)
    moves(client, 2)
    check(client.stop() == 0, client.tail() + server.tail())
    check(server.stop() == 0, server.tail())


def down(ends, role):
    """A long outage ends the connection, and the program says so; then all is well again."""
    server, client = busy(ends)
    link(ends, role, False)
    check(client.wait() == 1, client.tail())
    check('imeout' in client.out() or 'not answer' in client.out(), client.tail())
    link(ends, role, True)
    client = ends.start('client', 'sanbench client', ends.bench('client', [
        '--connect', ends.server_ip, '--verify', *provider_cases.MODES['push']]))
    check(client.wait() == 0, client.tail() + server.tail())
    server.stop()   # 1: the session that the outage has ended


def unplug(ends, role):
    """The guest's kernel asks the program for the NIC, and waits for it."""
    ends.pair.ends[role].machine.ask('device_del nic0')


def plug(ends, role):
    """Another one in the place of the one that is leaving."""
    machine = ends.pair.ends[role].machine
    until_true(f'{role}: the NIC is out', lambda: 'nic0' not in machine.ask('info pci'))
    said = machine.ask(f'device_add {ends.nic.plugged(int(role == "client"))}')
    check('rror' not in said, said)
    until_true(f'{role}: the NIC is back', lambda: ends.sh(
        role, 'sh /bin/take-nic; cat /tmp/nic 2>/dev/null || :').strip())


def unplugged(ends, role):
    """The program is told that its port has failed, and gives the NIC up; another NIC serves."""
    server, client = busy(ends)
    programs = {'server': server, 'client': client}
    unplug(ends, role)
    gone, other = programs[role], programs['client' if role == 'server' else 'server']
    check(gone.wait() == 1, gone.tail())
    check('the port has failed' in gone.out(), gone.tail())
    if other is client:
        check(other.wait() == 1, other.tail())
    other.stop()
    plug(ends, role)
    provider_cases.pingpong(ends, (), 400)


def unplugged_daemon(ends, role):
    """Applications are told, the daemon says so and keeps the NIC until it is stopped; the next
    one has another."""
    server, client = busy(ends)
    unplug(ends, role)
    check(client.wait() == 1, client.tail())
    check('the port has failed' in client.out(), client.tail())
    server.stop()
    daemon = ends.daemons[role]
    check(daemon.is_alive() and 'is being removed' in daemon.out(), daemon.tail())
    check(daemon.stop() == 0, daemon.tail())
    plug(ends, role)
    ends.begin()
    provider_cases.pingpong(ends, ('-w',), 400)


def add_all(tests, lab, nic):
    def add(ends, name, function, *args):
        tests.add(f'{nic.name}: {name}', ends.run, function, *args)

    ends = Embedded(lab, nic)
    for role in ('server', 'client'):
        add(ends, f'link of the {role} down and up', down_and_up, role)
    add(ends, 'link down', down, 'server')
    if nic.can_unplug:
        add(ends, 'unplugged under a program', unplugged, 'client')
        ends = Daemons(lab, nic)
        add(ends, 'unplugged under a daemon', unplugged_daemon, 'client')
        add(ends, 'daemons end at last', Daemons.end_daemons)
