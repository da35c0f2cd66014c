#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""All sources that use DPDK, against the headers of other versions, without a warning.

DPDK_TREE has the folders of unpacked releases, separated by spaces:
make check-all SUITE=portability DPDK_TREE="/usr/src/dpdk-23.11 /usr/src/dpdk-24.11"
Their headers replace the installed ones, with the installed rte_build_config.h, so nothing of them
has to be built. Nothing is linked.
"""

import concurrent.futures
import glob
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../e2e'))

from e2e import BUILD, SOURCE, Failed, Tests, check, skip  # noqa: E402

ARCH = {'x86_64': 'x86', 'aarch64': 'arm'}.get(platform.machine())
CONFIG = 'rte_build_config.h'       # written when DPDK is built


def sources():
    """The compiler's command and folder of each source file that uses DPDK."""
    found = {}
    with open(os.path.join(BUILD, 'compile_commands.json'), encoding='utf-8') as f:
        for entry in json.load(f):
            if 'rte_config.h' in entry['command']:
                found[entry['file']] = shlex.split(entry['command']), entry['directory']
    return found


def folder_of(word):
    """The folder of an option like -isystem/usr/include/dpdk."""
    return re.sub('^-(I|isystem)', '', word)


def is_dpdk(word):
    return word.startswith(('-I', '-isystem')) and \
        any(os.path.exists(os.path.join(folder_of(word), name)) for name in (CONFIG, 'rte_eal.h'))


def headers(tree):
    """Folders of the headers of a release."""
    found = {os.path.dirname(path) for path in glob.glob(f'{tree}/lib/*/*.h')}
    found |= {f'{tree}/lib/eal/{place}include' for place in ('', f'{ARCH}/', 'linux/')}
    return sorted(found) + [f'{tree}/config', f'{tree}/drivers/bus/pci', f'{tree}/drivers/bus/vdev']


def version(tree):
    with open(os.path.join(tree, 'VERSION'), encoding='utf-8') as f:
        return re.match(r'(\d+)\.(\d+)\.(\d+)', f.read()).groups()


def config(tree, command):
    """The installed configuration with the version of *tree*."""
    for word in filter(is_dpdk, command):
        path = os.path.join(folder_of(word), CONFIG)
        if os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                text = f.read()
            for name, value in zip(('YEAR', 'MONTH', 'MINOR'), version(tree)):
                text = re.sub(rf'(#define RTE_VER_{name}) .*', rf'\1 {int(value)}', text)
            # since 24.11 it is not in rte_config.h any more
            return text + '\n#define RTE_PKTMBUF_HEADROOM 128\n'
    raise Failed(f'there is no {CONFIG}: {command}')


def compile_one(folders, command, directory):
    """What the compiler says."""
    words, skips = [], False
    for word in command:
        if not skips and word not in ('-o', '-MD', '-MQ', '-MF') and not is_dpdk(word):
            words.append(word)
        skips = word in ('-o', '-MQ', '-MF')
    words[1:1] = [f'-isystem{folder}' for folder in folders]
    return subprocess.run([*words, '-Werror', '-fsyntax-only', '-fdiagnostics-color=never'], cwd=directory, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


def compiles(tree):
    """Without an error and without a warning."""
    todo = sources()
    check(len(todo) > 100, f'only {len(todo)} sources use DPDK')
    with tempfile.TemporaryDirectory() as own, \
            concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        with open(os.path.join(own, CONFIG), 'w', encoding='utf-8') as f:
            f.write(config(tree, next(iter(todo.values()))[0]))
        folders = [own, *headers(tree)]
        done = pool.map(lambda entry: compile_one(folders, *entry), todo.values())
        bad = [(file, run.stderr) for file, run in zip(todo, done) if run.returncode != 0]
    why = [line for _, text in bad for line in text.splitlines() if re.search('error|warning', line)]
    check(not bad, '\n'.join([f'{len(bad)} of {len(todo)} sources', *why[:60]]))


def main():
    trees = os.environ.get('DPDK_TREE', '').split()
    if not trees:
        skip('DPDK_TREE= has no folder of another version')
    if ARCH is None:
        skip(f'there is no folder of headers for {platform.machine()}')
    tests = Tests()
    for tree in trees:
        tests.add(f'DPDK {".".join(version(tree))}', compiles, os.path.join(SOURCE, tree))
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
