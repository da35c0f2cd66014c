#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""NICs on a PCI bus: two guests, DPDK's own drivers, an emulated IOMMU and vfio-pci. (SYS-1)

Skipped where there is no QEMU, or no kernel for it; the reason is its last line.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '../guest'), os.path.join(HERE, '../e2e')]

import cases_event  # noqa: E402
import cases_nic  # noqa: E402
import cases_queues  # noqa: E402
import cases_vhost  # noqa: E402
from e2e import Tests, skip  # noqa: E402
from lab import NICS, Lab, NoLab  # noqa: E402


def main():
    try:
        lab = Lab()
    except NoLab as e:
        skip(str(e))
    tests = Tests()
    with lab:
        for nic in NICS:
            cases_nic.add_all(tests, lab, nic)
            cases_event.add_all(tests, lab, nic)
        cases_queues.add_all(tests, lab)
        cases_vhost.add_all(tests, lab)
        tests.add('no kernel complains', lab.stop)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
