# SPDX-License-Identifier: BSD-3-Clause
"""What every model of NIC must pass: traffic, by an engine in the program and by a daemon, and what
a port can be configured with."""

import json

import provider_cases
from e2e import SERVER_IP6, Skipped, check
from ends import Daemons, Embedded
from provider_cases import Bench

MODES = ('send', 'push', 'pull', 'atomic', 'rpc', 'stream, direct', 'stream, wait')
GIGANTIC = 'default_hugepagesz=1G hugepagesz=1G hugepages=1'
DAEMON_MODES = ('push', 'rpc', 'connect', 'stream, mixed')


class Counted(Bench):
    """sanbench, which counts what its engines send again though nothing is lost."""

    def result(self, role, name):
        return json.loads(self.ends.sh(role, f'cat {self.ends.path(role, name)}'))

    def mode(self, ends, own):
        super().mode(ends, own)
        ends.count(self.result('client', f'client{self.nb}.json')['counters'])

    def over(self, ends):
        super().over(ends)
        ends.count(self.result('server', 'server.json')['counters'])
        sums = ends.sums
        print(f'# {ends.nic.name}: {sums["rtx"]} of {sums["tx_pkts"]} packets were sent again: '
              + ', '.join(f'{name} {n}' for name, n in sums.items()), flush=True)


def once(ends, own, serve=()):
    """One server and one client; results of both, by role."""
    server = ends.start('server', 'sanbench server', ends.bench('server', [
        '--server', '--json', '/tmp/server.json', *serve]))
    server.wait_text('listening')
    client = ends.start('client', 'sanbench client', ends.bench('client', [
        '--connect', ends.server_ip, '--verify', '--json', '/tmp/client.json', *own]))
    check(client.wait() == 0, client.tail() + server.tail())
    check(server.stop() == 0, server.tail())
    results = {role: json.loads(ends.sh(role, f'cat /tmp/{role}.json')) for role in
               ('server', 'client')}
    check(all(r['ok'] and not r['leaks'] for r in results.values()), f'{results}')
    return results


def jumbo(ends):
    """Frames of 9000 bytes pass, and are used."""
    sent = once(ends, ['--mode', 'push', '--size', '1M', '--count', '20'])['client']['counters']
    check(sent['mtu_raised'] > 0, f'the path has no longer packets: {sent}')
    check(sent['tx_pkts'] < 20 * 2**20 / 4000, f'packets are not long: {sent}')


def tagged(ends):
    """Both ends are in one VLAN."""
    for mode in ('push', 'stream, direct'):
        once(ends, provider_cases.MODES[mode])


def other_vlan(ends):
    """The client's frames are of another VLAN: what the NIC does not drop the server drops."""
    server = ends.start('server', 'sanbench server', ends.bench('server', [
        '--server', '--json', '/tmp/server.json']))
    server.wait_text('listening')
    client = ends.start('client', 'sanbench client', ends.bench('client', [
        '--connect', ends.server_ip, '--mode', 'push', '--timeout', '4s']))
    check(client.wait() == 1, client.tail() + server.tail())
    check(server.stop() == 0, server.tail())
    counters = json.loads(ends.sh('server', 'cat /tmp/server.json'))['counters']
    check(counters['drop_vlan'] == counters['rx_pkts'], f'{counters}')


def damaged(ends):
    """What is damaged on its way is found by the ICRC, whatever the NIC says of checksums."""
    results = once(ends, [*provider_cases.MODES['push'], '--impair', 'tx:corrupt=0.02,seed=1'])
    check(results['server']['counters']['drop_icrc'] > 0, f'{results}')


def pages(ends):
    once(ends, provider_cases.MODES['stream, direct'])


def gigantic(ends):
    if ends.sh('server', 'cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages') == '0\n':
        raise Skipped("the guest's kernel has no place for a page of 1 GiB")
    pages(ends)


def add_all(tests, lab, nic):
    def add(ends, name, function, *args):
        tests.add(f'{nic.name}: {name}', ends.run, function, *args)

    ends = Embedded(lab, nic)
    bench = Counted(ends)
    add(ends, 'pingpong', provider_cases.pingpong, (), 2000)
    add(ends, 'filecopy', provider_cases.filecopy, 'push', 1000001)
    for mode in MODES:
        add(ends, f'sanbench {mode}', bench.mode, provider_cases.MODES[mode])
    add(ends, 'sanbench, the server ends', bench.over)
    ends = Embedded(lab, nic)
    ends.server_ip = SERVER_IP6
    add(ends, 'IPv6: neighbours by multicast', provider_cases.pingpong, (), 400)
    add(Embedded(lab, nic), 'damaged packets', damaged)
    if nic.jumbo:
        add(Embedded(lab, nic, 'mtu=9000'), 'MTU 9000', jumbo)
    add(Embedded(lab, nic, 'vlan=5'), 'VLAN', tagged)
    add(Embedded(lab, nic, {'server': 'vlan=5', 'client': 'vlan=6'}), 'another VLAN', other_vlan)
    if nic.name == 'virtio':    # a mapping in the IOMMU for each page of 4 KiB takes its time
        add(Embedded(lab, nic, memory='--no-huge -m 256'), 'no hugepages', pages)
        add(Embedded(lab, nic, memory_mb=5120, append=GIGANTIC), 'hugepages of 1 GiB',
            gigantic)
    ends = Daemons(lab, nic)
    bench = Bench(ends)
    add(ends, 'daemon: pingpong', provider_cases.pingpong, ('-w',), 1000)
    add(ends, 'daemon: kvget', provider_cases.kvget)
    add(ends, 'daemon: filecopy', provider_cases.filecopy, 'send', 1000001)
    add(ends, 'daemon: stream', provider_cases.stream)
    for mode in DAEMON_MODES:
        add(ends, f'daemon: sanbench {mode}', bench.mode, provider_cases.MODES[mode])
    add(ends, 'daemon: sanbench, the server ends', bench.over)
    add(ends, 'daemons end', Daemons.end_daemons)
