#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The configurations in config/ run unchanged, each on a machine of its own: /run is empty, and the
only devices are a veth pair for each interface that the file names. (SYS-11)
"""

import glob
import json
import os
import re
import subprocess
import sys

from daemon import DAEMON
from e2e import OWN_MOUNTS, OWN_MOUNTS_SH, PATIENCE, SOURCE, Skipped, Tests, Work, check, need_namespaces
from test_veth import need_xdp

CONFIG = os.path.join(SOURCE, 'config')
SANSOCK = os.path.join(os.path.dirname(DAEMON), '../sansock/sansock')
# A program that serves and one that asks, at the daemons' sockets.
PINGPONG = """
pingpong -w server unix:/run/sanstack/{server}.sock >/run/pingpong.log 2>&1 &
pingpong -w client unix:/run/sanstack/{client}.sock 10.0.0.1 100
"""
# Each name that the dashboard asks for is among the daemon's numbers.
NUMBERS = """
sanctl -c config/local.conf metrics >/run/metrics
for name in $(grep -oE 'sanstack_[a-z_]+' config/grafana.json | sort -u); do
    family=${{name%_total}}
    grep -q "^# TYPE ${{family%_bucket}} " /run/metrics || {{ echo "no $name"; exit 1; }}
done
"""
# Files that are started together, and the commands that follow.
RUN = {
    ('af-packet.conf',): '',
    ('af-xdp.conf',): '',
    ('local.conf',): (PINGPONG + NUMBERS).format(server='sanstack', client='sanstack'),
    ('memif-server.conf', 'memif-client.conf'): PINGPONG.format(server='server', client='client'),
    ('two-ports.conf',): '',
}
# they need a NIC that DPDK supports, or contain rules, or only comments
ONLY_CHECKED = {'ena.conf', 'mlx5.conf', 'pci.conf', 'sansock.conf', 'sanstack.conf'}
MACHINE = """
. usertools/env.sh
set -eu
mount -t tmpfs -o mode=755 run /run
mkdir /run/sanstack
ip link set lo up
"""
DEVICE = """
ip link add {name} type veth peer name {name}-peer
ip link set {name} up
ip link set {name}-peer up
"""
START = """
sanstack-daemon --config config/{name} >/run/{name}.log 2>&1 &
pids="$! ${{pids:-}}"
until grep -q 'ready on' /run/{name}.log; do
    kill -0 $! 2>/dev/null || {{ cat /run/{name}.log; exit 1; }}
    sleep 0.05
done
"""
END = """
for pid in $pids; do
    kill $pid
    wait $pid
done
echo went well
"""


def read(name):
    with open(os.path.join(CONFIG, name), encoding='utf-8') as f:
        return f.read()


def accepted(command, path):
    done = subprocess.run([*command, path], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    check(done.returncode == 0, f'{path}: {done.stdout}{done.stderr}')


def right(work, name):
    """The file is valid, also with all commented-out lines enabled."""
    command = [SANSOCK, 'check'] if name == 'sansock.conf' else [DAEMON, '--check-config', '-c']
    accepted(command, os.path.join(CONFIG, name))
    text, nb = re.subn(r'(?m)^# (?=(\w+ = \S|(daemon|port|spin|probe|answer|log|drop) \S+( |$)))', '',
                       read(name))
    path = work.path(name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    accepted(command, path)
    return nb


def every_file():
    """Every file in config/ is tested."""
    names = {os.path.basename(path) for path in glob.glob(f'{CONFIG}/*.conf')}
    known = ONLY_CHECKED.union(*RUN)
    check(names == known, f'only in one of config/ and this test: {names ^ known}')
    with Work() as work:
        hidden = {name: right(work, name) for name in sorted(names)}
    check(hidden['sanstack.conf'] > 80 and hidden['af-packet.conf'] > 5 and hidden['sansock.conf'] > 5, f'{hidden}')


def monitoring():
    """The dashboard is JSON with a query in each panel; the scrape file names the port of sanctl(1)."""
    panels = json.loads(read('grafana.json'))['panels']
    check(panels and all(target['expr'] for panel in panels for target in panel['targets']), panels)
    check('- 127.0.0.1:9464' in read('prometheus.yml'), read('prometheus.yml'))


def runs(names, then):
    cpus = set(re.findall(r'@(\d+)', ''.join(map(read, names))))
    if not cpus <= set(map(str, os.sched_getaffinity(0))):
        raise Skipped(f'there are no CPUs {", ".join(sorted(cpus))}')
    if 'af-xdp.conf' in names and (why := need_xdp()):
        raise Skipped(f'af_xdp: {why}')
    devices = sorted(set(re.findall(r'iface=(\w+)', ''.join(map(read, names)))))
    script = (MACHINE + ''.join(DEVICE.format(name=name) for name in devices) +
              ''.join(START.format(name=name) for name in names) + then + END)
    done = subprocess.run([*OWN_MOUNTS, '--net', '--pid', '--fork', '--mount-proc', '--kill-child',
                           'bash', '-c', OWN_MOUNTS_SH + script], cwd=SOURCE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', timeout=PATIENCE, check=False)
    check(done.returncode == 0 and 'went well' in done.stdout,
          f'ended with {done.returncode}: {done.stdout[-3000:]}')


def main():
    need_namespaces()
    tests = Tests()
    tests.add('every file is right', every_file)
    tests.add('monitoring', monitoring)
    for names, then in RUN.items():
        tests.add(f'as it stands: {", ".join(names)}', runs, names, then)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
