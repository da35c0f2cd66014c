#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's device of a port is missing, taken down, renamed, deleted, created anew, or gets
another MTU: the daemon reports what happened and what to do, and sanctl shows it. (RT-38, SYS-2)
"""

import os
import subprocess
import sys

from daemon import DAEMON, PINGPONG, Daemon, eal, write_conf
from e2e import SOURCE, Namespace, Tests, Work, check, need_namespaces, until_true

SANCTL = os.path.join(SOURCE, 'usertools/sanctl')
VDEV = '--vdev=net_af_packet0,iface=v0'


class Ends:
    """A veth pair between two namespaces, with a daemon on v0 at each end."""

    def __init__(self, work):
        self.work, self.ns = work, (Namespace(work), Namespace(work))
        self.link()
        self.daemons = [Daemon(work, role, wrap=ns.exec(), vdev=VDEV)
                        for role, ns in zip(('server', 'client'), self.ns)]

    def link(self):
        a, b = self.ns
        a.run('ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v0', 'netns', b.pid)
        for ns in self.ns:
            ns.run('ethtool', '-K', 'v0', 'tx', 'off', 'gso', 'off', 'tso', 'off')
            ns.run('ip', 'link', 'set', 'v0', 'up')

    def ip(self, *words):
        self.ns[0].run('ip', 'link', *words)

    def log(self):
        return self.daemons[0].process.out() + self.daemons[0].process.err()

    def says(self, *texts):
        for text in texts:
            until_true(lambda text=text: f'"{text}": {self.log()}', lambda text=text: text in self.log())

    def shows(self, *words):
        """Check that sanctl's row of the port has these words."""
        daemon = self.daemons[0]

        def ports():
            return subprocess.run([*self.ns[0].exec(), SANCTL, '--socket',
                                   f'{daemon.runtime_dir()}/dpdk_telemetry.v2', 'ports'],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
        until_true(lambda: f'{words}: {ports()}', lambda: all(f' {w} ' in ports() for w in words))

    def talk(self):
        """Check that programs reach each other."""
        server = self.work.start('server', [PINGPONG, '-w', 'server', self.daemons[0].spec])
        client = self.work.start('client', [PINGPONG, '-w', 'client', self.daemons[1].spec,
                                            '10.5.0.1', '100'])
        check(client.wait() == 0 and server.wait() == 0, f'{client.tail()} {server.tail()}')


def missing(work):
    """A start fails with the name of the missing interface."""
    ns = Namespace(work)
    args = eal(work, 'server', '0@0,1@0', VDEV)
    conf = write_conf(work, 'missing.conf', f'[eal]\nargs = {args}\n[port]\nip = 10.5.0.1/24\n'
                                            f'[daemon]\nsocket = {work.path("missing.sock")}\n')
    daemon = work.start('missing', [*ns.exec(), DAEMON, '--config', conf])
    check(daemon.wait() == 1 and 'interface v0 of net_af_packet0 does not exist' in daemon.err(),
          daemon.tail())
    check(len(daemon.err().splitlines()) == 1, daemon.err())


def changes(work):
    """Each change is reported, and traffic works when it should."""
    ends = Ends(work)
    ends.talk()
    ends.shows('v0', 'up')
    ends.ip('set', 'v0', 'down')
    ends.says('device=v0 is down', 'ip link set v0 up')
    ends.shows('v0', 'down')
    ends.ip('set', 'v0', 'name', 'w0')
    ends.says('device=v0 is called w0 now')
    ends.ip('set', 'w0', 'up')
    ends.says('device=w0 is up again')
    ends.shows('w0', 'up')
    ends.talk()
    ends.ip('set', 'w0', 'mtu', '1400')
    ends.says('device=w0 has an MTU of 1400 now, less than', 'ip link set w0 mtu 1500')
    ends.ip('set', 'w0', 'mtu', '9000')
    ends.says('device=w0 has an MTU of 9000 now; the port keeps 1500')
    ends.talk()
    ends.ip('del', 'w0')
    ends.says('device=w0 was deleted')
    ends.shows('w0', 'deleted')
    ends.link()
    # a new device of the same name is another one, until the next start
    ends.shows('w0', 'deleted')
    for daemon in ends.daemons:
        daemon.process.stop()
    ends.daemons = [Daemon(work, role, wrap=ns.exec(), vdev=VDEV)
                    for role, ns in zip(('server', 'client'), ends.ns)]
    ends.talk()
    ends.shows('v0', 'up')


def main():
    need_namespaces('ethtool')
    tests = Tests()
    with Work() as work:
        tests.add('missing at the start', missing, work)
        tests.add('changes', changes, work)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
