# SPDX-License-Identifier: BSD-3-Clause
"""The libfabric provider on an RDMA device. (OFI-1)"""

import ofi_cases
from e2e import SANITIZE
from ends import Guests
from lab import OFI_FOLDER


class Ends(ofi_cases.Ends, Guests):
    """The guests as ends of its cases."""

    control_ip = Guests.server_ip
    folder = f'/{OFI_FOLDER}'
    lets_in = {'FI_SANSTACK_USERS': 'any'}      # no device knows the peer's user

    def free_port(self):
        return '47592'


def add_all(tests, guests):
    if not ofi_cases.can_run():
        return
    ends = Ends(guests.lab)

    def add(name, function, *args):
        tests.add(f'libfabric: {name}', ends.run, function, *args)

    if not SANITIZE:    # libfabric's programs can't load a provider with sanitizers
        add('fi_info', ofi_cases.info)
        for case, *args in ofi_cases.PINGPONGS:
            add(case, *args)
    add('calls', ofi_cases.calls, 'server', 'polite')
    add('refused access', ofi_cases.calls, 'intruded', 'intrude')
    for name in ('shared', 'hostile', 'alone', 'pair', 'refused', 'peer_dies', 'rdm', 'rdm_peer_dies',
                 'rdm_early', 'rdm_hostile', 'rdm_false_name'):
        add(name.replace('_', ' '), getattr(ofi_cases, name))
    add('rdm forged', ofi_cases.rdm_forged, 'server')
