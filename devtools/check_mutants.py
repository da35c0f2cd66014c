#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make check-mutants: each patch in devtools/mutants/ breaks one mechanism, and
the test that it names must notice.

A patch starts with what it breaks and who notices, then a diff for patch -p1:

    Breaks: the received bit is taken as acknowledged (RT-7)
    Test: test_pdl_window

The test is one of meson's. Of an end-to-end test, which has long cases, one may be
named behind it ("Test: test_service: partitions"). One build tree serves all: only
what a patch touches is compiled again, and only what that test needs is linked and run.
A test that hangs has noticed, too: it gets three times as long as without the patch.

usage: check_mutants.py [NAME...]     all, or those whose file name contains NAME
The last line is "N noticed, N missed"; exit status 1 if one was missed, does not
apply or does not compile.
"""

import collections
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
SKIPPED = 77        # exit status


class Test(collections.namedtuple('Test', 'name case')):
    """Who notices: a test of meson, and of which case of it; '': all."""

    def __str__(self):
        return f'{self.name}: {self.case}' if self.case else self.name


def read_patch(path):
    """What it breaks, and the test that notices."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    breaks = re.search(r'^Breaks:\s*(.+)$', text, re.MULTILINE)
    test = re.search(r'^Test:\s*([^\s:]+)(?::\s*(.+?))?\s*$', text, re.MULTILINE)
    if not breaks or not test:
        sys.exit(f'{path}: needs a "Breaks:" and a "Test:" line')
    return breaks.group(1), Test(test.group(1), test.group(2) or '')


def copy_tree(tree):
    def ignore(_, names):
        return [n for n in names if n == '.git' or n == 'build' or n.startswith('build-')]
    shutil.copytree(ROOT, tree, ignore=ignore, symlinks=True)


def end(run):
    """An end-to-end test that is asked to end takes its daemons with it."""
    run.terminate()
    try:
        run.wait(PATIENCE_MIN)
    except subprocess.TimeoutExpired:
        run.kill()


class Build:
    """A copy of the tree, built as far as tests were asked for."""

    def __init__(self, work):
        self.tree = os.path.join(work, 'tree')
        self.dir = os.path.join(work, 'build')
        self.times = {}     # seconds that a test takes unbroken, or why it has no verdict
        copy_tree(self.tree)
        subprocess.run(['meson', 'setup', '-Doptimization=1', '-Dlto=false', self.dir, self.tree],
                       check=True, stdout=subprocess.DEVNULL)
        self.tests = {t['name']: t for t in self.introspect('--tests')}
        self.files = {t['id']: t['filename'] for t in self.introspect('--targets')}

    def introspect(self, what):
        listed = subprocess.run(['meson', 'introspect', what, self.dir], check=True,
                                stdout=subprocess.PIPE, text=True)
        return json.loads(listed.stdout)

    def compile(self, names):
        """None, or the end of what the compiler said."""
        programs = {os.path.relpath(file, self.dir) for name in names
                    for target in self.tests[name]['depends'] for file in self.files[target]}
        run = subprocess.run(['ninja', '-C', self.dir, '-j', JOBS, *programs], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return None if run.returncode == 0 else run.stdout[-2000:]

    def run(self, test, timeout=None):
        """'passed', 'skipped' or 'failed'."""
        conf = self.tests[test.name]
        env = {**os.environ, **conf['env'], 'SAN_CASE': test.case}
        with subprocess.Popen(conf['cmd'], env=env, cwd=self.dir, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as run:
            try:
                status = run.wait(timeout)
            except subprocess.TimeoutExpired:
                end(run)
                return 'failed'
        return {0: 'passed', SKIPPED: 'skipped'}.get(status, 'failed')

    def run_unbroken(self, test):
        """Remember how long it takes; why not, if it does not pass."""
        if test not in self.times:
            error = self.compile([test.name])
            start = time.monotonic()
            verdict = self.run(test) if error is None else None
            if verdict not in (None, 'passed'):
                error = f'{test} {verdict} without any patch'
            self.times[test] = error or time.monotonic() - start
        return self.times[test] if isinstance(self.times[test], str) else None

    def patch(self, path, *options):
        return subprocess.run(['patch', '-p1', '--forward', '--no-backup-if-mismatch', '-F0', '-s',
                               '-d', self.tree, '-i', path, *options],
                              stdout=subprocess.DEVNULL).returncode == 0


def judge(build, path, test):
    """'noticed', or what is wrong."""
    if test.name not in build.tests:
        return f'no such test: {test.name}'
    error = build.run_unbroken(test)
    if error is not None:
        return error
    if not build.patch(path, '--dry-run'):
        return 'does not apply'
    build.patch(path)
    error = build.compile([test.name])
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
        build.compile({test.name for _, test in patches.values() if test.name in build.tests})
        for path, (breaks, test) in patches.items():
            start = time.monotonic()
            verdict = judge(build, path, test)
            noticed += verdict == 'noticed'
            print(f'{os.path.basename(path)[:-6]:30} {verdict:10} {str(test):20} '
                  f'{time.monotonic() - start:5.1f} s  {breaks}', flush=True)
    print(f'{noticed} noticed, {len(paths) - noticed} missed')
    return 0 if noticed == len(paths) else 1


if __name__ == '__main__':
    sys.exit(main())
