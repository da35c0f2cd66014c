#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cases for every provider on this machine: the engine in the process over memif, and in a
daemon at each end. test/verbs/test_verbs.py runs the same in guests. The examples also run over
IPv6, polled by an lcore, and on an impaired link. (SYS-2, SYS-4, RT-10, RT-11, AFC-1)
"""

import os
import subprocess
import sys

import provider_cases
from daemon import IP, Attached, wait_listening
from e2e import (BUILD, CLIENT_IP, CLIENT_IP6, IS_CHECK, SANITIZE, SERVER_IP, SERVER_IP6, Memif,
                 Tests, Work, check, cpus, until_true)


class Here(provider_cases.Ends):
    """Both ends are processes on this machine."""

    def __init__(self, work):
        self.work, self.link = work, None

    def run(self, function, *args):
        self.begin()
        try:
            function(self, *args)
        finally:
            for p in self.work.processes:
                if p not in self.stay and not p.name.startswith('daemon'):
                    p.kill()

    def program(self, name):
        return os.path.join(BUILD, provider_cases.PROGRAMS[name])

    def start(self, role, name, command, env=None):
        return self.work.start(name, command, env)

    def bench(self, role, own):
        return self.link.program(role, own)

    def path(self, role, name):
        return self.work.path(f'{self.name}.{role}.{name}')

    def sh(self, role, command):
        done = subprocess.run(['sh', '-c', command], capture_output=True, text=True)
        check(done.returncode == 0, f'{command}: {done.stderr}')
        return done.stdout


class Embedded(Here):
    """An engine in each process, on memif."""

    name = 'dpdk'

    def __init__(self, work, port='', server_ip=SERVER_IP, client_port=''):
        super().__init__(work)
        self.port, self.server_ip, self.client_port = port, server_ip, client_port

    def begin(self):
        """A new link, because memif's can't be used again, except by processes that stay."""
        if not any(p.is_alive() for p in self.stay):
            self.link = Memif(self.work)

    def open(self, role, vdev, port):
        lcores = f'(0-1)@{cpus()[0]}' if 'poll=lcore' in port else None
        ips = (SERVER_IP, SERVER_IP6) if role == 'server' else (CLIENT_IP, CLIENT_IP6)
        return (f'dpdk:{" ".join(self.work.eal(cpus()[0], vdev, lcores=lcores))} -- '
                f'ip={ips[0]}/24 ip={ips[1]}/64 idle=sleep {port}')

    def spec(self, role):
        port = self.port + (self.client_port if role == 'client' else '')
        return self.open(role, self.link.vdev(role), port)

    def own_spec(self):
        return self.open('server', '--vdev=net_null0,no-rx=1', f'poll=lcore {self.port}')

    def wait_listening(self, server):
        """The server has created the socket that the client needs; requests repeat until it
        listens."""
        until_true(lambda: f'a link: {server.tail()}', self.link.is_listening)


class Daemons(Here):
    """A daemon at each end."""

    name = 'unix'
    lacks = ('loans',)

    def __init__(self, work, port=(), server_ip=IP['server']):
        super().__init__(work)
        self.port, self.server_ip = port, server_ip

    def begin(self):
        if self.link is None:
            self.link = Attached(self.work, sets={
                'server': [f'ip6 = {SERVER_IP6}/64', *self.port],
                'client': [f'ip6 = {CLIENT_IP6}/64', *self.port]})

    def spec(self, role):
        return self.link.daemons[role].spec

    def wait_listening(self, server):
        wait_listening(self.link.daemons['server'], server)

    def stop(self):
        self.link.stop()


def wrong_use(work):
    """Wrong usage of an example: one line and status 2; a wrong argument: one line and 1."""
    eal = ' '.join(work.eal(cpus()[0], '--no-telemetry'))
    for program, args, status, says in [
            *((name, (), 2, 'usage') for name in ('pingpong', 'kvget', 'filecopy', 'stream')),
            ('pingpong', ('client', f'dpdk:{eal} -- ip=10.0.0.300/24', SERVER_IP), 1,
             'pingpong: ip: "10.0.0.300/24" is not an address'),
            ('pingpong', ('client', f'dpdk:{eal} -- ip=10.0.0.3/24', SERVER_IP), 1,
             'port=0: no such port')]:
        done = work.start(program, [os.path.join(BUILD, f'examples/{program}'), *args])
        check(done.wait() == status and says in done.tail() and '\n' not in done.tail(),
              f'{program} {args}: {done.tail()}')


BAD = 'drop=0.02,dup=0.02,reorder=0.05,corrupt=0.005'


def add_variants(tests, work, other):
    """The examples with ports of another configuration."""
    for name, ends in [
            ('dpdk, lcore, IPv6', Embedded(work, 'poll=lcore', SERVER_IP6)),
            ('dpdk, polling', Embedded(work, 'idle=poll')),
            # a server that has ended can't repeat its answer
            ('dpdk, bad link', Embedded(work, 'mtu=1280', client_port=f' impair_tx={BAD}')),
            ('unix, bad link, IPv6', Daemons(other, [f'impair_tx = {BAD}'], SERVER_IP6))]:
        provider_cases.add_examples(
            lambda case, *args, n=name, e=ends: tests.add_long(f'{n}: {case}', e.run, *args))
        if isinstance(ends, Daemons):
            tests.add_long(f'{name}: nothing is left in the daemons', ends.stop)


def main():
    tests = Tests()
    with Work() as work, Work() as other:
        # test_memif covers it in make check; memory of other users is in daemons
        if not (IS_CHECK and SANITIZE):
            ends = Embedded(work)
            provider_cases.add_all(tests, ends, ends.run, tests.add_long)
        ends = Daemons(work)
        provider_cases.add_all(tests, ends, ends.run)
        tests.add('unix: nothing is left in the daemons', ends.stop)
        tests.add('examples, used wrongly', wrong_use, work)
        add_variants(tests, work, other)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
