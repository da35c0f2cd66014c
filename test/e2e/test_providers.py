#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What every provider must pass, on this machine: the engine in the process over memif, and in a
daemon at each end. test/verbs/test_verbs.py runs the same in guests. (SYS-4)
"""

import os
import subprocess
import sys
import time

import provider_cases
from daemon import Attached, wait_listening
from e2e import BUILD, SLOW, Memif, Tests, Work, check, cpus


class Here(provider_cases.Ends):
    """Both ends are processes on this machine."""

    def __init__(self, work):
        self.work, self.link = work, None

    @property
    def server_ip(self):
        return self.link.server_ip

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

    def start(self, role, name, command):
        return self.work.start(name, command)

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

    def begin(self):
        """A link of its own, as memif can't be used again, but for who stays."""
        if not any(p.is_alive() for p in self.stay):
            self.link = Memif(self.work)

    def spec(self, role):
        args = self.work.eal(cpus()[role == 'client'], self.link.vdev(role))
        ip = self.link.server_ip if role == 'server' else self.link.client_ip
        return f'dpdk:{" ".join(args)} -- ip={ip}/24'

    def own_spec(self):
        mine, other = cpus()
        eal = self.work.eal(mine, '--vdev=net_null0,no-rx=1', 256, f'0@{mine},1@{other}')
        return f'dpdk:{" ".join(eal)} -- ip={self.link.server_ip}/24 poll=lcore idle=sleep'

    def wait_listening(self, server):
        """It has made the socket that the client needs; requests are repeated until it listens."""
        until = time.monotonic() + 20 * SLOW
        while not os.path.exists(self.link.socket):
            check(server.is_alive(), f'{server.name} has ended: {server.tail()}')
            check(time.monotonic() < until, f'no link: {server.tail()}')
            time.sleep(0.02)


class Daemons(Here):
    """A daemon at each end."""

    name = 'unix'
    lacks = ('loans',)

    def begin(self):
        if self.link is None:
            self.link = Attached(self.work)

    def spec(self, role):
        return self.link.daemons[role].spec

    def wait_listening(self, server):
        wait_listening(self.link.daemons['server'], server)

    def stop(self):
        self.link.stop()


def main():
    tests = Tests(400)
    with Work() as work:
        ends = Embedded(work)
        provider_cases.add_all(tests, ends, ends.run)
        ends = Daemons(work)
        provider_cases.add_all(tests, ends, ends.run)
        tests.add('unix: nothing is left in the daemons', ends.stop)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
