#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make check-mutants: each patch in devtools/mutants/ breaks one mechanism, and
the test that it names must notice.

A patch starts with what it breaks and who notices, then a diff for patch -p1:

    Breaks: the received bit is taken as acknowledged (RT-7)
    Test: test_pdl_window

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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MESON_BUILD_FAILED = 125


def read_patch(path):
    """What it breaks, and the name of the test that notices."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    breaks = re.search(r'^Breaks:\s*(.+)$', text, re.MULTILINE)
    test = re.search(r'^Test:\s*(\S+)\s*$', text, re.MULTILINE)
    if not breaks or not test:
        sys.exit(f'{path}: needs a "Breaks:" and a "Test:" line')
    return breaks.group(1), test.group(1)


def apply(tree, path, *options):
    return subprocess.run(['patch', '-p1', '--forward', '--no-backup-if-mismatch', '-F0', '-s',
                           '-d', tree, '-i', path, *options], stdout=subprocess.DEVNULL)


def run_test(build, test):
    """'passed', 'failed', or why there is no verdict."""
    log = os.path.join(build, 'meson-logs', 'testlog.json')
    if os.path.exists(log):
        os.unlink(log)
    run = subprocess.run(['meson', 'test', '-C', build, test], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    if run.returncode == MESON_BUILD_FAILED:
        return 'does not compile:\n' + run.stdout[-2000:]
    results = []
    if os.path.exists(log):
        with open(log, encoding='utf-8') as lines:
            results = [json.loads(line)['result'] for line in lines]
    if not results:
        return f'no such test: {test}'
    if 'SKIP' in results:
        return f'{test} was skipped'
    return 'passed' if set(results) == {'OK'} else 'failed'


def copy_tree(tree):
    def ignore(_, names):
        return [n for n in names if n == '.git' or n == 'build' or n.startswith('build-')]
    shutil.copytree(ROOT, tree, ignore=ignore, symlinks=True)


def judge(tree, build, path, sound):
    """'noticed', or what is wrong. *sound* remembers tests that pass unbroken."""
    _, test = read_patch(path)
    if test not in sound:
        sound[test] = run_test(build, test)
    if sound[test] != 'passed':
        return f'{test} without the patch: {sound[test]}'
    if apply(tree, path, '--dry-run').returncode != 0:
        return 'does not apply'
    apply(tree, path)
    verdict = run_test(build, test)
    apply(tree, path, '-R')
    if verdict == 'failed':
        return 'noticed'
    return f'MISSED by {test}' if verdict == 'passed' else verdict


def main():
    paths = sorted(glob.glob(os.path.join(ROOT, 'devtools', 'mutants', '*.patch')))
    if len(sys.argv) > 1:
        paths = [p for p in paths if any(a in os.path.basename(p) for a in sys.argv[1:])]
    if not paths:
        sys.exit('no mutants')
    noticed = 0
    with tempfile.TemporaryDirectory(prefix='san-mutants-') as work:
        tree = os.path.join(work, 'tree')
        build = os.path.join(work, 'build')
        copy_tree(tree)
        subprocess.run(['meson', 'setup', '-Doptimization=1', build, tree], check=True,
                       stdout=subprocess.DEVNULL)
        sound = {}
        for path in paths:
            breaks, _ = read_patch(path)
            verdict = judge(tree, build, path, sound)
            noticed += verdict == 'noticed'
            print(f'{os.path.basename(path):40} {verdict:10} {breaks}', flush=True)
    print(f'{noticed} noticed, {len(paths) - noticed} missed')
    return 0 if noticed == len(paths) else 1


if __name__ == '__main__':
    sys.exit(main())
