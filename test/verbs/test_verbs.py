#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The provider for RDMA devices, on Soft-RoCE in guests: what every provider must pass, and what
only this one has. (SYS-4)

Skipped where there is no QEMU, or no kernel for it; the reason is its last line.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '../guest'), os.path.join(HERE, '../e2e')]

import cases_device  # noqa: E402
import cases_ofi  # noqa: E402
import cases_peer  # noqa: E402
import provider_cases  # noqa: E402
from ends import Guests  # noqa: E402
from e2e import Tests, skip  # noqa: E402
from lab import Lab, NoLab  # noqa: E402


def main():
    try:
        lab = Lab()
    except NoLab as e:
        skip(str(e))
    tests = Tests()
    with lab:
        guests = Guests(lab)
        provider_cases.add_all(tests, guests, guests.run)
        cases_device.add_all(tests, guests)
        cases_ofi.add_all(tests, guests)
        cases_peer.add_all(tests, guests)
        tests.add('no kernel complains', lab.stop)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
