#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tree for arm64: it compiles, and the emulator runs the unit tests and the simulator.

That finds wrong sizes, signs and results. It does not find a missing barrier: the emulator keeps the
order of memory accesses of the processor on which it runs.
"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../e2e'))

from e2e import BUILD, SOURCE, Tests, check, skip  # noqa: E402

CROSS = os.path.join(SOURCE, 'devtools/arm64.ini')
FOLDER = os.path.join(BUILD, 'arm64')
ROOT = os.path.join(BUILD, 'root-arm64')      # its libraries
QEMU = ('qemu-aarch64-static', '-L', ROOT)
NEEDED = ('aarch64-linux-gnu-gcc', 'qemu-aarch64-static')
SWARM = ('--swarm', '60', '--seed', '700')

# Tests of what the emulator lacks, and what that is.
NOT_EMULATED = {
    'test_sandbox': 'filters of system calls',
    'test_san_mem': 'MAP_FIXED_NOREPLACE in a second process',
    'test_shmq': 'seals of a memfd, MSG_CTRUNC',
    'test_shmq_guard': 'SIGBUS of a mapping that has lost its pages',
}


def run(*command):
    """Run it without the libraries of the other build. Returns its output."""
    env = {name: value for name, value in os.environ.items() if name != 'LD_LIBRARY_PATH'}
    done = subprocess.run(command, env=dict(env, SAN_TIER='check'), check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    check(done.returncode == 0, f'{command}: {done.returncode}: {done.stdout[-4000:]}')
    return done.stdout


def compiles():
    """Everything that is built by default, without a warning."""
    run('sh', os.path.join(SOURCE, 'devtools/arm64-root.sh'), ROOT)
    if not os.path.exists(os.path.join(FOLDER, 'build.ninja')):
        # linking layers as one program takes long, and nothing is measured
        run('meson', 'setup', '--werror', '--cross-file', os.path.join(ROOT, 'root.ini'),
            '--cross-file', CROSS, '-Dlto=false', '-Doptimization=1', FOLDER, SOURCE)
    run('ninja', '-C', FOLDER)


def unit_tests():
    every = json.loads(run('meson', 'introspect', '--tests', FOLDER))
    names = {test['name'] for test in every if 'sanstack:unit' in test['suite']}
    check(set(NOT_EMULATED) < names, f'there are: {sorted(names)}')
    run('meson', 'test', '-C', FOLDER, '--no-rebuild', '--print-errorlogs',
        '--timeout-multiplier', '10', *sorted(names - set(NOT_EMULATED)))


def swarm_hash(*wrapper):
    folder = FOLDER if wrapper else BUILD
    out = run(*wrapper, os.path.join(folder, 'apps/sansim/sansim'), *SWARM)
    match = re.search(r'^\d+ runs, 0 failed, .*trace hash ([0-9a-f]{16})', out, re.M)
    check(match, out)
    return match.group(1)


def same_runs():
    """Each packet of random scenarios is the same, and sent at the same time."""
    here, there = swarm_hash(), swarm_hash(*QEMU)
    check(here == there, f'{here} here, {there} there')


def main():
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        skip(f'not installed: {" ".join(missing)}')
    tests = Tests()
    tests.add('compiles for arm64', compiles)
    tests.add('unit tests, emulated', unit_tests)
    tests.add('the simulator sends the same packets', same_runs)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
