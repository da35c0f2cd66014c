#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sequence numbers wrap: they start just below 2^32 and pass it in the run. (RT-3)"""

import sys

from e2e import SANITIZE, Memif, Run, Server, Tests, Work, check, counter

FEW = 4 if SANITIZE else 1
START = ['--set', 'first_psn=0xfffffff0']


def wrap(work, mode, order):
    link = Memif(work, impair='drop=0.02,dup=0.02,reorder=0.1,seed=4')
    server = Server(link, START)
    result = Run(link, ['--mode', *mode, '--size', '8-9000', '--count', str(400 // FEW), '--order',
                        order, '--verify', *START]).check_ok()
    served = server.stop_ok()
    # Numbers start 16 before the wrap, and the set-up uses none of them.
    check(counter(result, 'tx_pkts') > 32 and counter(served, 'tx_pkts') > 32, 'too few packets')
    check(counter(result, 'rtx') + counter(served, 'rtx') > 0, 'nothing was sent again')


def main():
    tests = Tests()
    with Work() as work:
        for mode in (['send'], ['push', '--solicit', 'always'], ['push', '--solicit', 'never'],
                     ['pull']):
            for order in ('ordered', 'unordered'):
                tests.add(f'{" ".join(mode)}, {order}', wrap, work, mode, order)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
