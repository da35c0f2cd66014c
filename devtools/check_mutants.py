#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make check-mutants: each patch in devtools/mutants/ breaks one mechanism, and
the test that it names must notice.

A patch starts with what it breaks and who notices, then a diff for patch -p1:

    Breaks: the received bit is taken as acknowledged (RT-7)
    Test: test_pdl_window

The test is a program of the build (unit, property, sim). One build tree serves all:
only what a patch touches is compiled again, and only that test is linked and run.
A test that hangs has noticed, too: it gets three times as long as without the patch.

usage: check_mutants.py [NAME...]     all, or those whose file name contains NAME
The last line is "N noticed, N missed"; exit status 1 if one was missed, does not
apply or does not compile.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JOBS = '2'          # memory, not processors, is what runs out
PATIENCE = 3        # times as long as without the patch
PATIENCE_MIN = 30   # seconds


def read_patch(path):
    """What it breaks, and the name of the test that notices."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    breaks = re.search(r'^Breaks:\s*(.+)$', text, re.MULTILINE)
    test = re.search(r'^Test:\s*(\S+)\s*$', text, re.MULTILINE)
    if not breaks or not test:
        sys.exit(f'{path}: needs a "Breaks:" and a "Test:" line')
    return breaks.group(1), test.group(1)


def copy_tree(tree):
    def ignore(_, names):
        return [n for n in names if n == '.git' or n == 'build' or n.startswith('build-')]
    shutil.copytree(ROOT, tree, ignore=ignore, symlinks=True)


class Build:
    """A copy of the tree, built as far as tests were asked for."""

    def __init__(self, work):
        self.tree = os.path.join(work, 'tree')
        self.dir = os.path.join(work, 'build')
        self.times = {}     # seconds that a test takes unbroken, or why it has no verdict
        copy_tree(self.tree)
        subprocess.run(['meson', 'setup', '-Doptimization=1', self.dir, self.tree], check=True,
                       stdout=subprocess.DEVNULL)
        listed = subprocess.run(['meson', 'introspect', '--tests', self.dir], check=True,
                                stdout=subprocess.PIPE, text=True)
        self.tests = {t['name']: t for t in json.loads(listed.stdout)}

    def compile(self, names):
        """None, or the end of what the compiler said."""
        programs = [os.path.relpath(self.tests[n]['cmd'][0], self.dir) for n in names]
        run = subprocess.run(['ninja', '-C', self.dir, '-j', JOBS, *programs], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return None if run.returncode == 0 else run.stdout[-2000:]

    def has(self, name):
        return name in self.tests and self.tests[name]['cmd'][0].startswith(self.dir + os.sep)

    def run(self, name, timeout=None):
        """'passed' or 'failed'."""
        test = self.tests[name]
        try:
            run = subprocess.run(test['cmd'], env={**os.environ, **test['env']}, cwd=self.dir,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 timeout=timeout)
        except subprocess.TimeoutExpired:
            return 'failed'
        return 'passed' if run.returncode == 0 else 'failed'

    def run_unbroken(self, name):
        """Remember how long it takes; why not, if it does not pass."""
        if name not in self.times:
            error = self.compile([name])
            start = time.monotonic()
            if error is None and self.run(name) != 'passed':
                error = f'{name} fails without any patch'
            self.times[name] = error or time.monotonic() - start
        return self.times[name] if isinstance(self.times[name], str) else None

    def patch(self, path, *options):
        return subprocess.run(['patch', '-p1', '--forward', '--no-backup-if-mismatch', '-F0', '-s',
                               '-d', self.tree, '-i', path, *options],
                              stdout=subprocess.DEVNULL).returncode == 0


def judge(build, path, test):
    """'noticed', or what is wrong."""
    if not build.has(test):
        return f'no such test program: {test}'
    error = build.run_unbroken(test)
    if error is not None:
        return error
    if not build.patch(path, '--dry-run'):
        return 'does not apply'
    build.patch(path)
    error = build.compile([test])
    verdict = 'does not compile:\n' + error if error else \
        build.run(test, max(PATIENCE_MIN, PATIENCE * build.times[test]))
    build.patch(path, '-R')
    return {'failed': 'noticed', 'passed': f'MISSED by {test}'}.get(verdict, verdict)


def main():
    paths = sorted(glob.glob(os.path.join(ROOT, 'devtools', 'mutants', '*.patch')))
    if len(sys.argv) > 1:
        paths = [p for p in paths if any(a in os.path.basename(p) for a in sys.argv[1:])]
    if not paths:
        sys.exit('no mutants')
    patches = {path: read_patch(path) for path in paths}
    noticed = 0
    with tempfile.TemporaryDirectory(prefix='san-mutants-') as work:
        build = Build(work)
        build.compile(sorted({test for _, test in patches.values() if build.has(test)}))
        for path, (breaks, test) in patches.items():
            start = time.monotonic()
            verdict = judge(build, path, test)
            noticed += verdict == 'noticed'
            print(f'{os.path.basename(path)[:-6]:30} {verdict:10} {test:20} '
                  f'{time.monotonic() - start:5.1f} s  {breaks}', flush=True)
    print(f'{noticed} noticed, {len(paths) - noticed} missed')
    return 0 if noticed == len(paths) else 1


if __name__ == '__main__':
    sys.exit(main())
