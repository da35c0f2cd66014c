#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs one test with its output shown: check_one.py SECONDS TEST. The last line is "N passed, N
failed"; the reason precedes it if the test was skipped.
"""

import signal
import subprocess
import sys

from check import Count, count_tap

SKIPPED = 77
GRACE = 20  # seconds for ending the processes that it has started


def main():
    seconds, test = int(sys.argv[1]), sys.argv[2]
    said = []
    with subprocess.Popen(['/usr/bin/python3', '-u', test], stdout=subprocess.PIPE, text=True,
                          errors='replace') as process:
        # when terminated, the test ends the processes that it has started
        signal.signal(signal.SIGALRM, lambda *_: process.terminate())
        signal.alarm(seconds)
        for line in process.stdout:
            print(line, end='', flush=True)
            said.append(line)
        status = process.wait(GRACE)
    count = count_tap(''.join(said))
    if status == SKIPPED:
        print(f'skipped: {said[-1].strip() if said else "without a reason"}')
        count = Count(0, 0, 1)
    elif status != 0 and count.failed == 0:
        print(f'it ended with {status}')
        count = count._replace(failed=1)
    print(f'{count.passed} passed, {count.failed} failed', flush=True)
    return 0 if status in (0, SKIPPED) else 1


if __name__ == '__main__':
    sys.exit(main())
