#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands (```sh) in the documents are run unchanged, each file in one shell on a machine of
its own: /tmp and /run are empty, and the only network is what the commands create. doc/use.md
continues README.md, in the same shell. Without Open MPI or libfabric the block that needs them is left
out. (SYS-2)
"""

import os
import re
import shutil
import subprocess
import sys

from documents import sh_blocks
from e2e import BUILD, OWN_MOUNTS, OWN_MOUNTS_SH, PATIENCE, SOURCE, Skipped, Tests, check, need_namespaces

# What is read behind a file.
CONTINUED = {'README.md': ['doc/use.md']}

# Output of a successful run.
SAYS = {
    'README.md': ['10000 round trips.*10000 round trips', 'ready.*ready', r'"?ok"?|Gb/s', '200 runs'],
    'doc/sockets.md': ['hello', r'tcp .* yes'],
}
NEEDS = {'README.md': (), 'doc/sockets.md': ('redis-server', 'redis-cli', 'ethtool')}
MPI = 'mpirun'
HAS_MPI = (shutil.which(MPI) is not None and shutil.which('mpicc') is not None and
           os.path.exists(os.path.join(BUILD, 'drivers/ofi/libsanstack-fi.so')))
SAYS_MPI = r'rank \d: sum 1.*rank \d: sum 1'
# The block about MPI again, by a user of the group that the configuration names.
AS_USER = """
cat >/tmp/as-user <<'ENDUSER'
{}
ENDUSER
if setpriv --reuid=65534 --regid=users --clear-groups test -r "$SAN_BUILD_DIR/lib/rtsan/librtsan.so"; then
    setpriv --reuid=65534 --regid=users --clear-groups bash -eu /tmp/as-user
else
    echo 'rank 0: sum 1 rank 1: sum 1 (not tried: the folder is closed to users)'
fi
"""
# The sources may be below /tmp: they are there again.
MACHINE = """
mount --bind . /mnt; mount -t tmpfs -o mode=1777 tmp /tmp; mkdir -p "$PWD"; mount --bind /mnt "$PWD"; cd "$PWD"
mount -t tmpfs -o mode=755 run /run; ip link set lo up
set -euo pipefail
"""


def blocks(name):
    found = []
    for path in [name, *CONTINUED.get(name, [])]:
        found += sh_blocks(path)
    found = [block for block in found if HAS_MPI or MPI not in block]
    return [block if MPI not in block else block + AS_USER.format(
        block.replace('--allow-run-as-root ', '').replace('/tmp/sum', '/tmp/sum-of-user')) for block in found]


def run(name):
    missing = [n for n in NEEDS[name] if subprocess.run(['which', n], stdout=subprocess.DEVNULL,
                                                        check=False).returncode != 0]
    if missing:
        raise Skipped(f'{", ".join(missing)} not installed')
    commands = '\n'.join(blocks(name))
    script = f'{MACHINE}{commands}\nexit 0\n'
    env = {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root',
           'SAN_BUILD_DIR': BUILD}
    done = subprocess.run([*OWN_MOUNTS, '--net', '--pid', '--fork', '--mount-proc', '--kill-child',
                           'bash', '-c', OWN_MOUNTS_SH + script], cwd=SOURCE, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors='replace',
                          timeout=3 * PATIENCE, check=False)
    check(done.returncode == 0, f'ended with {done.returncode}: {done.stdout[-3000:]}')
    for what in [*SAYS[name], *([SAYS_MPI + '.*' + SAYS_MPI] if MPI in commands else [])]:
        check(re.search(what, done.stdout, re.DOTALL), f'not "{what}": {done.stdout[-3000:]}')


def main():
    need_namespaces()
    tests = Tests()
    for name in SAYS:
        tests.add(name, run, name)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
