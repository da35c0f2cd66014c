#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The configurations in config/ run unchanged, each on a machine of its own: /run is empty, and the
only devices are a veth pair for each interface that the file names. Commands of the documents that
depend on files end. (SYS-11)
"""

import glob
import json
import os
import re
import subprocess
import sys

from daemon import DAEMON
from e2e import BUILD, OWN_MOUNTS, OWN_MOUNTS_SH, PATIENCE, SOURCE, Skipped, Tests, Work, check, need_namespaces
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
for name in $(grep -oE 'sanstack_[a-z_]+' {build}/config/grafana.json | sort -u); do
    family=${{name%_total}}
    grep -q "^# TYPE ${{family%_bucket}} " /run/metrics || {{ echo "no $name"; exit 1; }}
done
"""
# Files that are started together, and the commands that follow.
RUN = {
    ('af-packet.conf',): '',
    ('af-xdp.conf',): '',
    ('local.conf',): (PINGPONG + NUMBERS).format(server='sanstack', client='sanstack', build=BUILD),
    ('memif-server.conf', 'memif-client.conf'): PINGPONG.format(server='server', client='client'),
    ('two-ports.conf',): '',
}
# Wrong files, with the line and what is said of it.
IP = '[port]\nip = 10.0.0.1/24\n'
EAL = '[eal]\nargs = --no-huge --lcores='
WRONG = [
    ('[port]\nmtu = 1500\n', ':1: [port]: ip= is missing'),
    (IP + 'lcores = 1\n[port b]\nport = 1\nlcores = 2\n', ':4: [port b]: ip= is missing'),
    ('[port]\nip = 10.0.0.1\n', ':2: ip: "10.0.0.1" is not an address'),
    ('[port]\nip = 10.0.0.1/0\n', ':2: ip: "10.0.0.1/0" is not an address'),
    ('[port]\nip = 10.0.0.1/33\n', ':2: ip: "10.0.0.1/33" is not an address'),
    ('[port]\nip = 10.0.0.0/24\n', ':2: ip: "10.0.0.0/24" is not an address'),
    ('[port]\nip = 10.0.0.255/24\n', ':2: ip: "10.0.0.255/24" is not an address'),
    ('[port]\nip = 224.0.0.5/24\n', ':2: ip: "224.0.0.5/24" is not an address'),
    ('[port]\nip6 = ff02::1/64\n', ':2: ip6: "ff02::1/64" is not an address'),
    (IP + 'ip = 10.0.0.1/16\n', ':3: ip: "10.0.0.1/16" is not one of at most 8 different'),
    (IP + 'gw = 10.1.0.1\n', ':1: [port]: router 10.1.0.1: in no prefix'),
    (IP + 'route = 10.9.0.0/16,10.1.0.1\n', ':1: [port]: router 10.1.0.1: in no prefix'),
    (IP + 'mtu = 1500\nmtu = 9000\n', ':4: mtu: given twice'),
    (IP + 'rto = 2ms\nrto_us = 3000\n', ':4: rto_us: given twice'),
    (IP + 'lapsed = 1M\nexpired = 2M\n', ':4: expired: given twice'),
    (IP + 'rto_min = 2s\n', ':1: [port]: rto_min <= rto <= rto_max does not hold'),
    (IP + 'rto = 1s\n[log]\npdl = debug\n', ':1: [port]: rto_min <= rto <= rto_max'),
    (IP + 'cwnd = 2000\n', ':1: [port]: cwnd is above cwnd_max'),
    (IP + 'stream_mem = 1M\nstream_mem_user = 2M\n', ':1: [port]: stream_mem_user=2097152: more'),
    ('[port]\nip6 = fd00::1/64\nmtu = 1100\n', ':1: [port]: mtu=1100: at least 1280'),
    (IP + 'pool = 100\n', ':1: [port]: pool=100: at least'),
    (IP + 'lcores = 1,2\nconns = 65536\n', ':1: [port]: conns=65536: at most 32768 with 2'),
    (IP + 'lcores = 1,2,1\n', ':3: lcores: "1" in "1,2,1" is there already'),
    (IP + 'impair_tx = drop=2\n', ':3: impair_tx: drop: "2" is not 0 to 1'),
    (EAL + '0@0,1@0\n' + IP + 'lcores = 1,2\n', ':3: [port]: lcore 2: no worker of EAL'),
    (IP + 'lcores = 2\n' + EAL + '0@0,1@0\n', ':4: [port]: lcore 2: no worker of EAL'),
    (EAL + '(0-2)@0\n' + IP + 'lcores = 0\n', ':3: [port]: lcore 0: no worker of EAL'),
    (EAL + '0,1@(4,5),2 --main-lcore=1\n' + IP + 'lcores = 1\n', ':3: [port]: lcore 1: no worker'),
    ('[eal]\nargs = -l 0-1\nargs = --no-pci\n' + IP + 'lcores = 2\n', ':4: [port]: lcore 2: no'),
    (EAL + '0@0\n' + IP, ':3: [port]: EAL has no worker lcore'),
    ('[eal]\nargs = --lcores="0@0\n', ':1: [eal] args: too long, or a quote is open'),
    (IP + '[daemon]\nuser = no-such-user\n', ':4: user: "no-such-user" is not the name of a user'),
    (IP + '[daemon]\ngroup = no-such-group\n', ':4: group: "no-such-group" is not the name of'),
    (IP + '[daemon]\nsocket = /a\nsocket = /b\n', ':5: socket: given twice'),
    (IP + '[limits]\nunattached = 1\nstrangers = 2\n', ':5: strangers: given twice'),
]
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
    text, path = read(name), work.path(name)
    if name == 'sanstack.conf':     # only comments, and a port needs an address
        text = text.replace('[port]\n', IP)
    more, nb = re.subn(r'(?m)^# (?=(\w+ = \S|(daemon|port|spin|probe|answer|log|drop) \S+( |$)))', '',
                       text)
    more = re.sub('(?m)^(user|group) = .*', r'\1 = root', more)     # this machine has no others
    for content in (text, more):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(content)
        accepted(command, path)
    return nb


def wrong():
    """The check and the start refuse each wrong file in the same words, with its line."""
    with Work() as work:
        path = work.path('wrong.conf')
        for text, want in WRONG:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
            said = [subprocess.run([DAEMON, *option, '-c', path], capture_output=True, text=True,
                                   timeout=PATIENCE, check=False) for option in (['--check-config'], [])]
            check([done.returncode for done in said] == [1, 1] and path + want in said[0].stderr and
                  said[0].stderr == said[1].stderr, f'{text!r}: {[done.stderr for done in said]}')


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
    with open(os.path.join(BUILD, 'config/grafana.json'), encoding='utf-8') as f:
        panels = json.load(f)['panels']
    check(panels and all(target['expr'] for panel in panels for target in panel['targets']), panels)
    check('- 127.0.0.1:9464' in read('prometheus.yml'), read('prometheus.yml'))


def documents():
    for path in ('README.md', 'debian/README.Debian', 'doc/*.md', 'doc/man/*'):
        for name in glob.glob(os.path.join(SOURCE, path)):
            with open(name, encoding='utf-8') as f:
                yield name, f.read()


def waits():
    """Each loop of the documents that waits for a daemon ends if that has ended."""
    nb = 0
    for name, text in documents():
        for line in re.findall(r'^ *((?:until|while) .*; do .*done)$', text, re.M):
            nb += 1
            with Work() as work:
                line = line.replace('/tmp/', work.dir + '/')
                done = subprocess.run(['timeout', '60', 'bash', '-c', f'false & sleep 0.1\n{line}'],
                                      capture_output=True, text=True, check=False)
            check(done.returncode != 124, f'{name}: {line}: for ever')
    check(nb >= 3, f'only {nb} loops')


def environment():
    """usertools/env.sh leaves the arguments of the script that reads it alone."""
    done = subprocess.run(['sh', '-c', '. usertools/env.sh && sansim --version && echo "with $1"', 'sh', '/etc'],
                          cwd=SOURCE, env={**os.environ, 'SAN_BUILD_DIR': BUILD}, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    check('sansim ' in done.stdout and 'with /etc' in done.stdout, done.stdout + done.stderr)


def scenarios():
    """The scenarios that the documents name have the hosts and connections that they are about."""
    found = {path for _, text in documents()
             for path in re.findall(r'--scenario (test/\S+\.ini)', text)}
    check('test/experiments/incast.ini' in found, f'{found}')
    for path in found:
        done = subprocess.run([os.path.join(BUILD, 'apps/sansim/sansim'), '--scenario', path, '--print'],
                              cwd=SOURCE, capture_output=True, text=True, timeout=PATIENCE, check=False)
        check(done.returncode == 0, done.stderr)
        values = dict(re.findall(r'^(\w+) = (\S+)', done.stdout, re.M))
        check(values['pattern'] != 'incast' or int(values['connections']) > 16, f'{path}: {values}')


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
    tests.add('every wrong file is refused with its line', wrong)
    tests.add('monitoring', monitoring)
    tests.add('waits of the documents end', waits)
    tests.add('env.sh in a script', environment)
    tests.add('scenarios of the documents', scenarios)
    for names, then in RUN.items():
        tests.add(f'as it stands: {", ".join(names)}', runs, names, then)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
