# SPDX-License-Identifier: BSD-3-Clause
"""The libfabric provider on an RDMA device. (OFI-1)"""

import ofi_cases
from e2e import SANITIZE
from lab import OFI_FOLDER


class Ends(ofi_cases.Ends):
    """The guests as ends of its cases."""

    folder = f'/{OFI_FOLDER}'

    def __init__(self, guests):
        self.guests = guests
        self.server_ip = self.control_ip = guests.server_ip

    def program(self, name):
        return self.guests.program(name)

    def spec(self, role):
        return self.guests.spec(role)

    def start(self, role, name, command, env):
        return self.guests.start(role, name, command, env)

    def sh(self, role, command):
        return self.guests.sh(role, command)

    def path(self, role, name):
        return self.guests.path(role, name)

    def free_port(self):
        return '47592'


def add_all(tests, guests):
    if not ofi_cases.can_run():
        return

    def add(name, function, *args):
        tests.add(f'libfabric: {name}', guests.run, lambda _: function(Ends(guests), *args))

    if not SANITIZE:    # libfabric's programs can't load a provider with sanitizers
        add('fi_info', ofi_cases.info)
        for case, *args in ofi_cases.PINGPONGS:
            add(case, *args)
    add('calls', ofi_cases.calls, 'server', 'polite')
    add('refused access', ofi_cases.calls, 'intruded', 'intrude')
    add('shared receives', ofi_cases.shared)
    add('alone', ofi_cases.alone)
    add('pair', ofi_cases.pair)
    add('refused', ofi_cases.refused)
    add('peer dies', ofi_cases.peer_dies)
    add('rdm', ofi_cases.rdm)
    add('rdm, peer dies', ofi_cases.rdm_peer_dies)
    add('rdm, an early message', ofi_cases.rdm_early)
    add('rdm, a hostile peer', ofi_cases.rdm_hostile)
    add('rdm, a false name', ofi_cases.rdm_false_name)
