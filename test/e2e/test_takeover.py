#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Live restart: a new daemon takes over, and applications see nothing but a pause. (SYS-2)"""

import re
import sys
import time

from daemon import IP, Attached, Daemon, alone, connected, embedded
from e2e import Tests, check

BLACKOUT = re.compile(r'blackout_us=(\d+)')


def takeover(old):
    """The daemon that has taken over from *old*, which has ended."""
    new = old.again('--takeover')
    check(old.process.wait(10) == 0, f'the old one: {old.process.tail()}')
    return new


def blackout_ms(daemon):
    return int(BLACKOUT.search(daemon.process.err())[1]) / 1000


def smoke(work):
    peer = Daemon(work, 'server', 'idle = sleep')
    daemon = Daemon(work, 'client', 'idle = sleep', log='driver = info')
    specs = [peer.spec, daemon.spec]
    server, client = connected(work, specs)
    for i in range(3):
        time.sleep(0.5)
        check(client.is_alive(), client.tail())
        daemon = takeover(daemon)
        print(f'# blackout {blackout_ms(daemon):.1f} ms')
    time.sleep(1)
    check(client.is_alive(), client.tail())
    client.stop()
    print(client.out()[-500:])
    daemon.stop()


if __name__ == '__main__':
    tests = Tests(100)
    tests.add('smoke', alone, smoke)
    sys.exit(tests.run())
