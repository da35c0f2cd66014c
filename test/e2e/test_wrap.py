#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sequence numbers wrap: they start just below 2^32 and pass it in the run. (RT-3)"""

import sys

from e2e import SANITIZE, Memif, Run, Server, Tests, Work, check, counter

FEW = 4 if SANITIZE else 1
START = ['--set', 'first_psn=0xfffffff0']
BAD = ['--impair', 'drop=0.02,dup=0.02,reorder=0.1,seed=4']


def wrap(work, mode, order, bad):
    link = Memif(work)
    extra = [*START, *(BAD if bad else [])]
    server = Server(link, extra)
    count = (400 if bad else 4000) // FEW
    result = Run(link, ['--mode', *mode, '--size', '8-9000', '--count', str(count), '--order', order,
                        '--verify', *extra], 90).check_ok()
    served = server.stop_ok()
    # Numbers start 16 before the wrap, and set-up takes none of them.
    check(counter(result, 'tx_pkts') > 32 and counter(served, 'tx_pkts') > 32, 'too few packets')
    if bad:
        check(counter(result, 'rtx') + counter(served, 'rtx') > 0, 'nothing was sent again')


def main():
    tests = Tests(300)
    with Work() as work:
        for mode in (['send'], ['push', '--solicit', 'always'], ['push', '--solicit', 'never'],
                     ['pull']):
            for order in ('ordered', 'unordered'):
                for bad in (True,) if SANITIZE else (False, True):
                    name = f'{" ".join(mode)}, {order}, {"bad" if bad else "clean"} link'
                    tests.add(name, wrap, work, mode, order, bad)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
