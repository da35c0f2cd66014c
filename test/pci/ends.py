# SPDX-License-Identifier: BSD-3-Clause
"""The two guests as ends of the cases that every provider must pass."""

import shlex

from e2e import CLIENT_IP, CLIENT_IP6, SERVER_IP, SERVER_IP6, check, until_true
from provider_cases import Ends

IPS = {'server': (SERVER_IP, SERVER_IP6), 'client': (CLIENT_IP, CLIENT_IP6)}
HUGEPAGES = '--in-memory -m 256'


class Guests(Ends):
    """Both ends in a guest each, on a NIC; use as a context. *port* and *memory* may be given by
    role, *lcores* are the workers of an engine."""

    server_ip = SERVER_IP
    slow = 4        # emulated
    # a NIC without MSI-X; a client that was there first
    noise = ('EAL: Error enabling MSI-X', 'EAL: Error disabling MSI-X', 'waiting for the peer')

    def __init__(self, lab, nic, port='', memory=HUGEPAGES, lcores=1, **up):
        self.lab, self.nic, self.up = lab, nic, up
        self.port, self.memory, self.lcores = port, memory, lcores
        self.pair, self.stay, self.daemons = None, [], {}
        self.sums = dict.fromkeys(('tx_pkts', 'rtx', 'fast_rtx', 'rto', 'tlp'), 0)

    def begin(self):
        """The guests; nothing that a case before has left may be in the way."""
        pair = self.lab.up(self.nic, **self.up)
        if pair is not self.pair:
            self.pair, self.stay, self.daemons = pair, [], {}
        self.clear()

    def clear(self):
        for end in self.pair.ends.values():
            for remote in end.alive():
                if remote not in (*self.stay, *self.daemons.values()):
                    remote.kill()
                    remote.wait()

    def run(self, function, *args):
        """A case. What it leaves when it fails is not for the next one: that gets other guests."""
        try:
            self.begin()
            function(self, *args)
        except BaseException:
            self.stay, self.daemons = [], {}
            self.lab.give_up()
            raise

    def of(self, role, what):
        return what[role] if isinstance(what, dict) else what

    def eal(self, role, workers=0):
        """EAL's arguments: the NIC, and lcores that share the guest's processor."""
        nic = self.sh(role, 'cat /tmp/nic').strip()
        lcores = ','.join(f'{i}@0' for i in range(1 + workers))
        return [f'--lcores={lcores}', *self.of(role, self.memory).split(), f'--allow={nic}',
                '--log-level=error']

    def keys(self, role):
        v4, v6 = IPS[role]
        return [f'ip={v4}/24', f'ip={v6}/64', 'idle=sleep', *self.of(role, self.port).split()]

    def program(self, name):
        return f'/bin/{name}'

    def start(self, role, name, command, env=None):
        return self.pair.ends[role].start(name, command, env)

    def sh(self, role, command):
        return self.pair.ends[role].sh(command)

    def path(self, role, name):
        return f'/tmp/{name}'

    def until_opened(self, server, text):
        """Until the server has opened what has *text* in its name."""
        look = f'pid=$(cat /tmp/pid.{server.number}); ls -l /proc/$pid/fd; cat /proc/$pid/maps'

        def has_it():
            check(server.is_alive(), server.tail())
            return text in self.pair.ends['server'].sh(look, may_fail=True)
        until_true(lambda: f'it opens {text}: {server.tail()}', has_it)

    def count(self, counters):
        for name in self.sums:
            self.sums[name] += counters[name]


class Embedded(Guests):
    """An engine in each program."""

    name = 'dpdk'

    def spec(self, role):
        return f'dpdk:{" ".join(self.eal(role))} -- {" ".join(self.keys(role))}'

    def own_spec(self):
        return (f'dpdk:{" ".join(self.eal("server", 1))} -- {" ".join(self.keys("server"))} '
                'poll=lcore')

    def bench(self, role, own):
        workers = self.lcores if self.lcores > 1 else 0
        keys = [f'--set={key}' for key in self.keys(role) if not key.startswith('ip=')]
        if workers:
            keys += ['--poll=lcore', f'--set=lcores={",".join(map(str, range(1, workers + 1)))}']
        ips = [f'--ip={key[3:]}' for key in self.keys(role) if key.startswith('ip=')]
        return [self.program('sanbench'), *self.eal(role, workers), '--', *ips, *keys, *own]

    def wait_listening(self, server):
        """It has the NIC; requests are repeated until it listens."""
        self.until_opened(server, '/dev/vfio/')


class Daemons(Guests):
    """A daemon at each end."""

    name = 'unix'
    lacks = ('loans',)

    def begin(self):
        super().begin()
        for role in IPS:
            if role not in self.daemons or not self.daemons[role].is_alive():
                self.daemons[role] = self.serve(role)
        for daemon in self.daemons.values():
            daemon.wait_text('ready')

    def serve(self, role):
        keys = '\n'.join(key.replace('=', ' = ', 1) for key in self.keys(role))
        workers = ','.join(map(str, range(1, self.lcores + 1)))
        conf = f"""[eal]
args = {' '.join(self.eal(role, self.lcores))}
[port]
{keys}
lcores = {workers}
[daemon]
socket = /tmp/{role}.sock
"""
        # a command is one line
        self.sh(role, f'printf %b {shlex.quote(conf)} >/tmp/{role}.conf'.replace('\n', '\\n'))
        return self.start(role, f'daemon {role}',
                          ['/bin/sanstack-daemon', '--config', f'/tmp/{role}.conf'])

    def spec(self, role):
        return f'unix:/tmp/{role}.sock'

    def wait_listening(self, server):
        """It is attached; a client in another guest starts later than it listens."""
        self.until_opened(server, 'memfd:')

    def end_daemons(self):
        for daemon in self.daemons.values():
            check(daemon.stop() == 0, daemon.tail())
        self.daemons = {}
