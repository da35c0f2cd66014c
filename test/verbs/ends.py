# SPDX-License-Identifier: BSD-3-Clause
"""The two guests as ends of the cases that every provider must pass."""

import re

from e2e import until_true
from provider_cases import Ends

DEVICE = 'verbs:rxe0'
# at a device that no program has: the kernel's own
IDLE = {'pd': 1, 'cq': 1, 'qp': 1, 'cm_id': 0, 'mr': 0, 'ctx': 0}


class Guests(Ends):
    """Both ends in a guest each, on Soft-RoCE."""

    name = 'verbs'
    server_ip = '10.77.0.1'
    lacks = ('unordered', 'loans')
    ends_on_error = True
    max_msg = 1 << 23       # as Soft-RoCE's port says
    slow = 2        # emulated

    def __init__(self, lab):
        self.lab = lab
        self.pair = None
        self.stay = []      # processes that serve several cases

    def begin(self):
        """The guests; nothing that a case before has left may be in the way."""
        self.pair = self.lab.up()
        for end in self.pair.ends.values():
            for remote in end.alive():
                if remote not in self.stay:
                    remote.kill()
                    remote.wait()

    def run(self, function, *args):
        """A case. What it leaves when it fails is not for the next one: that gets other guests."""
        try:
            self.begin()
            function(self, *args)
            self.end()
        except BaseException:
            self.stay = []
            self.lab.give_up()
            raise

    def run_last(self, function, *args):
        """A case whose guests nobody else can use; their kernels may not have complained."""
        self.run(function, *args)
        self.lab.stop()

    def held(self, role):
        """What programs have at the device: its own is what stays."""
        out = self.sh(role, '/usr/bin/rdma resource show')
        return {kind: int(n) for kind, n in re.findall(r'(pd|cq|qp|cm_id|mr|ctx) (\d+)', out)}

    def settle(self, role, want):
        """Until programs have at the device what they had."""
        until_true(lambda: f'{role}: at the device are {self.held(role)}, not {want}',
                   lambda: self.held(role) == want)

    def end(self):
        """Programs have ended: so has all that was theirs."""
        if not self.pair.is_up() or any(r in self.stay for end in self.pair.ends.values() for r in end.alive()):
            return
        for role in self.pair.ends:
            self.settle(role, IDLE)

    def program(self, name):
        return f'/bin/{name}'

    def spec(self, role):
        return DEVICE

    def start(self, role, name, command, env=None):
        return self.pair.ends[role].start(name, command, env)

    def sh(self, role, command):
        return self.pair.ends[role].sh(command)

    def path(self, role, name):
        return f'/tmp/{name}'

    def wait_listening(self, server):
        until_true(lambda: f'it listens: {server.tail()}', lambda: 'LISTEN' in self.sh(
            'server', '/usr/bin/rdma resource show cm_id'))
