# SPDX-License-Identifier: BSD-3-Clause
"""Two lcores on a NIC: with one queue, and with two among which the NIC spreads packets by RSS.

A connection chooses a source port whose hash leads to its lcore's queue. So with RSS hardly a
packet has to be handed over to another lcore, and with one queue nearly half of them.
"""

from cases_nic import once
from e2e import check
from ends import Embedded
from lab import NICS, RSS

RUNS = (
    ['--mode', 'send', '--size', '8-20000', '--count', '300', '--conns', '8'],
    ['--mode', 'push', '--size', '1-50000', '--count', '200', '--conns', '8'],
)


def spread(ends, nb_queues):
    for own in RUNS:
        for role, result in once(ends, own).items():
            counters = result['counters']
            part = counters['handover_in'] / counters['rx_pkts']
            print(f'# {role}: {part:.1%} of {counters["rx_pkts"]} packets handed over', flush=True)
            check(part < 0.05 if nb_queues > 1 else part > 0.1,
                  f'{role}: {part:.1%} were handed over')


def add_all(tests, lab):
    for nic, nb_queues in ((NICS[0], 1), (RSS, RSS.queues)):
        ends = Embedded(lab, nic, lcores=2)
        tests.add(f'{nic.name}: two lcores', ends.run, spread, nb_queues)
