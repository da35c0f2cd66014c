#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages and config/sanstack.conf have exactly the keys of the programs, with their defaults
and ranges: devtools/keys.py would change nothing. (SYS-11)
"""

import os
import sys

from e2e import BUILD, SOURCE, Tests, check

sys.path.insert(0, os.path.join(SOURCE, 'devtools'))
import keys  # noqa: E402


def as_explained():
    wrong = keys.outdated(BUILD)
    check(not wrong, f'run devtools/keys.py {BUILD}: {", ".join(wrong)} not as explained')


def main():
    tests = Tests()
    tests.add('pages are as the programs explain their keys', as_explained)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
