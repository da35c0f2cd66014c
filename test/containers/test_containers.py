#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The images and the two hosts of usertools/container, by podman: they are built from the sources, on
an image of Debian that is made here, and the demo runs between them as compose.yaml says. (SYS-10)

Storage, settings, mounts and network are the test's own. Base and images stay in the build folder.
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../e2e'))

from e2e import (BUILD, OWN_MOUNTS, OWN_MOUNTS_SH, PATIENCE, SOURCE, Namespace, Tests,  # noqa: E402
                 Work, check, need_namespaces, skip, until_true)

TOOLS = ('podman', 'podman-compose', 'crun', 'mmdebstrap', 'iptables')
FOLDER = os.path.join(BUILD, 'containers')
RECIPE = 'usertools/container'
BASE = 'localhost/debian:12'
USER = '750'

# Podman finds no container of an earlier run, as after a boot, and one kind of control groups: crun
# refuses version 1 beside version 2.
MACHINE = """
umount /sys/fs/cgroup/unified 2>/dev/null || :
mkdir -p {0}/run
mount -t tmpfs -o mode=755 run {0}/run
exec "$@"
"""
STORAGE = """[storage]
driver = "overlay"
graphroot = "{0}/storage"
runroot = "{0}/run/storage"
"""
# Limits are those of this process, because raising them is a right that it may lack. Podman itself
# lowers the one of processes.
CONTAINERS = """[containers]
default_ulimits = ["nofile={1}:{1}", "nproc=32768:32768"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{0}/run/tmp"
[network]
network_backend = "netavark"
network_config_dir = "{0}/run/networks"
"""


class Podman:
    def __init__(self, work):
        self.env = {name: value for name, value in os.environ.items() if name != 'LD_LIBRARY_PATH'}
        files = os.sysconf('SC_OPEN_MAX')
        for name, text in (('CONTAINERS_STORAGE_CONF', STORAGE), ('CONTAINERS_CONF', CONTAINERS)):
            self.env[name] = work.path(name)
            with open(self.env[name], 'w', encoding='utf-8') as f:
                f.write(text.format(FOLDER, files))
        self.wrap = Namespace(work).exec()
        self.end()

    def ask(self, *command, wrap=None):
        """Run a command. Returns its status and all output."""
        done = subprocess.run([*(self.wrap if wrap is None else wrap), *command], env=self.env,
                              cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace', check=False)
        return done.returncode, done.stdout

    def run(self, *command, **kwargs):
        """Run a command, which must succeed. Returns its output."""
        status, said = self.ask(*command, **kwargs)
        check(status == 0, f'{" ".join(command)}: {status}: {said[-4000:]}')
        return said

    def compose(self, *command):
        return self.run('podman-compose', '-f', f'{RECIPE}/compose.yaml', *command)

    def build(self, name, *options):
        # packages come from Debian's mirror, so by the network of this machine
        self.run('podman', 'build', '--network', 'host', '--build-arg', f'BASE={BASE}', '-t', name,
                 '-f', f'{RECIPE}/Containerfile', *options, '.', wrap=())

    def end(self):
        self.run('podman', 'rm', '--all', '--force', '--time', '0')
        self.run('podman', 'volume', 'rm', '--all', '--force')


def images(podman):
    """Both are built; that for programs has no DPDK."""
    podman.run('sh', 'devtools/container-base.sh', f'{FOLDER}/base.tar', BASE, wrap=())
    podman.build('sanstack-app', '--target', 'application')
    podman.build('sanstack')
    look = ('podman', 'run', '--rm', '--network=none', '--entrypoint', 'sh')
    find = 'find / -xdev -name "librte_*" 2>/dev/null | wc -l'
    check(podman.run(*look, 'sanstack-app', '-c', find).strip() == '0', 'programs have DPDK')
    check(int(podman.run(*look, 'sanstack', '-c', find)) > 10, 'the daemon has no DPDK')
    version = podman.run(*look, 'sanstack', '-c', 'sanstack-daemon --version')
    ours = podman.run('sh', 'devtools/version.sh', wrap=())
    check(version.split()[2] == ours.split()[1], f'{version}, not {ours}')


def two_hosts(podman):
    """Both sides end well, and what arrives is what was sent."""
    podman.compose('up', '-d')
    said = {}
    for name in ('server', 'client'):
        container = f'container_{name}_1'
        until_true(lambda: f'{name} runs: {podman.ask("podman", "logs", container)}',
                   lambda: 'running' not in podman.run(
                       'podman', 'inspect', '-f', '{{.State.Status}}', container))
        said[name] = podman.run('podman', 'logs', container)
        check(f'{name}: OK' in said[name], f'{name}: {said}')
    sums = re.findall(r'^(?:file|copy by push|copy by send): ([0-9a-f]{64})',
                      said['client'] + said['server'], re.M)
    check(len(sums) == 3 and len(set(sums)) == 1, f'{said}')


def in_one(podman, *command):
    return podman.run('podman', 'exec', 'container_one_1', *command)


def rights(podman):
    """The daemon is an ordinary user without capabilities, and can change no file of its image."""
    status = in_one(podman, 'cat', '/proc/1/status')
    check(re.search(rf'^Uid:(\s{USER}){{4}}$', status, re.M), status)
    check(re.findall(r'^Cap\w+:\s(\w+)$', status, re.M) == 5 * ['0' * 16], status)
    check(re.search(r'^NoNewPrivs:\s1$', status, re.M), status)
    said = podman.ask('podman', 'exec', 'container_one_1', 'touch', '/usr/new')
    check('Read-only file system' in said[1], f'{said}')
    check('10.0.0.1' in in_one(podman, 'sanctl', 'port'), 'sanctl does not find the daemon')


def program(podman, *options):
    """A program, as those of compose.yaml but for these options: status and output."""
    return podman.ask('podman', 'run', '--rm', '--network=none', '--read-only', '--cap-drop=all',
                      '-v', 'container_one:/run/sanstack:ro', *options, 'sanstack-app',
                      'timeout', str(PATIENCE), 'filecopy', 'server',
                      'unix:/run/sanstack/sanstack.sock', '/tmp/copy')


def strangers(podman):
    """A program that is not in the group cannot attach."""
    status, said = program(podman, '--user', '65534:65534')
    check(status == 1 and 'Permission denied' in said, f'{status}: {said}')


def ends(podman):
    """The daemons end in order, and have reported nothing else."""
    podman.run('podman', 'stop', 'container_one_1', 'container_two_1')
    for name in ('one', 'two'):
        container = f'container_{name}_1'
        code = podman.run('podman', 'inspect', '-f', '{{.State.ExitCode}}', container).strip()
        said = podman.run('podman', 'logs', container)
        check(code == '0' and 'ready' in said, f'{name}: {code}: {said}')
        # the second one may have started again and again, until the first one was there
        others = re.sub('.*(ready on|applications=0: ends).*\n', '', said)
        check(name == 'two' or others == '', f'{name}: {others}')


def main():
    need_namespaces()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        skip(f'not installed: {" ".join(missing)}')
    if 'SAN_OWN_MOUNTS' not in os.environ:
        os.environ['SAN_OWN_MOUNTS'] = 'yes'
        os.execvp(OWN_MOUNTS[0], [*OWN_MOUNTS, 'sh', '-c', OWN_MOUNTS_SH + MACHINE.format(FOLDER),
                                  'sh', sys.executable, *sys.argv])
    tests = Tests()
    with Work() as work:
        podman = Podman(work)
        try:
            for case in (images, two_hosts, rights, strangers, ends):
                tests.add(case.__name__, case, podman)
            return tests.run()
        finally:
            podman.end()


if __name__ == '__main__':
    sys.exit(main())
