#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The diagrams of doc/stream.md equal those of captures made now, so a changed sequence is
detected. (AFC-5 to AFC-13, AFC-18, AFC-22, AFC-23, AFC-28)
"""

import os
import subprocess
import sys

from capture import bare_tshark
from e2e import SOURCE, Tests, check

BUILD = os.environ['SAN_BUILD_DIR']
SCRIPT = os.path.join(SOURCE, 'devtools', 'stream_diagrams.py')


def same():
    run = subprocess.run([sys.executable, SCRIPT, BUILD], capture_output=True, text=True,
                         check=False)
    check(run.returncode == 0, run.stdout + run.stderr)


def main():
    tests = Tests()
    with bare_tshark():
        tests.add('diagrams', same)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
