#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutants: each row of test/mutants.list breaks one mechanism, and the test that it names must
fail. The head of that file describes the format.

usage: check_mutants.py --dry BUILD               each applies, compiles, and names a test
       check_mutants.py [--state FILE] [NAME...]  each, or those with NAME in theirs, is noticed

The dry run checks the syntax with the flags of the folder BUILD, but not in make check, where that
would take a minute of two CPUs. Mutants of a file that change different lines are compiled together. Without --dry a copy of the tree is built. For each mutant
its file is compiled, and its test is linked and run. A test that hangs counts as noticed. With
--state the verdicts on this commit are kept in FILE, so that an interrupted run can be continued.
Exit status 1 if a mutant does not apply, or is missed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, 'test', 'mutants.list')
PATIENCE, PATIENCE_MIN = 20, 60     # multiple of the time without the mutant; seconds
GROUP = 8                           # mutants of a file that one build takes in a row
VERDICTS = {0: 'MISSED', 77: 'skipped'}     # by exit status; others: noticed
# a comment, a string, a character, or any other character that is not white space
TOKEN = re.compile(r'''/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\S''', re.DOTALL)
TO_TEXT = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT, 'text': True}

Mutant = collections.namedtuple('Mutant', 'name breaks test case edits')
Edit = collections.namedtuple('Edit', 'file scope old new')


def read_table():
    mutants, path = {}, None
    for number, line in enumerate(read(TABLE).splitlines(), 1):
        name, *fields = line.split('\t')
        try:
            if line[:1] == '#':
                continue
            if name and not fields:
                path = line
            elif name and fields:
                test, *edit, breaks = fields
                mutant = Mutant(name, breaks, *test.partition(': ')[::2], [Edit(path, *edit)])
                if mutants.setdefault(name, mutant) is not mutant:
                    raise ValueError(f'{name} is there twice')
            elif fields:
                mutant.edits.append(Edit(*fields, *[''][len(fields) - 3:]))
        except (TypeError, ValueError) as error:
            sys.exit(f'{TABLE}:{number}: {error}')
    return list(mutants.values())


def read(*path):
    with open(os.path.join(*path), encoding='utf-8') as file:
        return file.read()


def write(text, *path):
    with open(os.path.join(*path), 'w', encoding='utf-8') as file:
        file.write(text)


def find_once(pattern, what, text, *limits):
    found = list(re.compile(pattern, re.MULTILINE).finditer(text, *limits))
    if len(found) != 1:
        raise ValueError(f'{what} is there {len(found)} times')
    return found[0]


def code_of(text, start, end):
    """The code of *text* without white space and comments, and the place of each character."""
    code = [(char, match.start() + i) for match in TOKEN.finditer(text, start, end)
            if match.group()[:2] not in ('/*', '//') for i, char in enumerate(match.group())]
    return ''.join(char for char, _ in code), [place for _, place in code]


def locate(text, edit):
    """The place of *edit* in *text*, and its replacement: start, end, new text."""
    limits = 0, len(text)
    if edit.scope:      # it starts in column 0 and ends with the next brace there
        name = re.escape(edit.scope)
        limits = find_once(rf'^(?:{name}\(|\w.*\b{name}(?:\[.*\])*(?: =)? {{$)(?:.*\n)+?}}',
                           edit.scope, text).span()
    old, code, places = code_of(edit.old, 0, len(edit.old))[0], *code_of(text, *limits)
    if not old or old == code_of(edit.new, 0, len(edit.new))[0]:
        raise ValueError('it changes nothing')
    match = find_once(f'(?={re.escape(old)})', f'"{edit.old}"', code)
    return places[match.start()], places[match.start() + len(old) - 1] + 1, edit.new


def places_of(tree, mutant):
    """By file: places and replacements of *mutant*."""
    places = collections.defaultdict(list)
    for edit in mutant.edits:
        places[edit.file].append(locate(read(tree, edit.file), edit))
    return places


def replace(text, places):
    for start, end, new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def overlap(some, others):
    return any(a[0] <= b[1] and b[0] <= a[1] for a in some for b in others)


def join(plans):
    """(file, {mutant: places}); mutants of one batch change different lines."""
    batches = collections.defaultdict(list)
    for name, plan in plans.items():
        for path, places in plan.items():
            for batch in batches[path]:
                if not any(overlap(places, other) for other in batch.values()):
                    break
            else:
                batches[path].append(batch := {})
            batch[name] = places
    return [(path, batch) for path, some in batches.items() for batch in some]


class Compiler:
    """Checks the syntax of changed sources, with the flags of the folder *build*."""

    def __init__(self, build):
        self.flags = {}     # by source; by folder for headers, which compile alone
        for entry in json.loads(read(build, 'compile_commands.json')):
            source = os.path.realpath(os.path.join(entry['directory'], entry['file']))
            self.flags.setdefault(source, entry)
            self.flags.setdefault(os.path.dirname(source), entry)

    def errors(self, path, places):
        source = os.path.join(os.path.realpath(ROOT), path)
        folder = os.path.dirname(source)
        entry = self.flags.get(source) or self.flags[folder]
        command = re.sub(r' -(?:o|M[QF]) \S+| -(?:MD|c \S+)', '', entry['command'])
        text = f'#line 1 "{path}"\n' + replace(read(source), places)
        run = subprocess.run([*shlex.split(command), '-w', '-O0', '-fsyntax-only',
                              '-fdiagnostics-color=never', '-iquote', folder, '-x', 'c', '-'],
                             cwd=entry['directory'], input=text, **TO_TEXT)
        if run.returncode == 0:
            return ''
        return '\n'.join(re.findall('.*error:.*', run.stdout)) or 'the compiler fails'

    def judge(self, path, batch):
        """The mutants of *batch* that do not compile, and their errors."""
        if not self.errors(path, [place for places in batch.values() for place in places]):
            return {}
        return {name: errors for name, places in batch.items()
                if (errors := self.errors(path, places))}


def dry_run(mutants, build):
    compiler = Compiler(build)
    tests = {test['name'] for test in json.loads(read(build, 'meson-info', 'intro-tests.json'))}
    plans, wrong = {}, {}
    for mutant in mutants:
        try:
            plans[mutant.name] = places_of(ROOT, mutant)
            if mutant.test not in tests:
                raise ValueError(f'no such test: {mutant.test}')
        except (OSError, ValueError) as error:
            wrong[mutant.name] = f'{mutant.edits[0].file}: {error}'
    batches = join(plans) if os.environ.get('SAN_TIER') != 'check' else []
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for errors in pool.map(lambda job: compiler.judge(*job), batches):
            wrong.update(errors)
    for name, why in sorted(wrong.items()):
        print(f'{name}: {why}')
    print(f'{len(mutants) - len(wrong)} apply, {len(wrong)} do not')
    return 1 if wrong else 0


class Build:
    """A copy of the tree, built only as far as tests need it."""

    def __init__(self, work):
        self.tree, self.dir = os.path.join(work, 'tree'), os.path.join(work, 'build')
        self.times = {}     # seconds that a test takes without a mutant
        self.running, self.is_over = None, False
        shutil.copytree(ROOT, self.tree, symlinks=True,
                        ignore=shutil.ignore_patterns('.git', 'build', 'build-*'))
        subprocess.run(['meson', 'setup', '-Doptimization=1', '-Ddebug=false', '-Dlto=false',
                        '-Ddebug_asserts=true', self.dir, self.tree],
                       check=True, stdout=subprocess.DEVNULL)
        tests, targets = (json.loads(read(self.dir, 'meson-info', f'intro-{what}.json'))
                          for what in ('tests', 'targets'))
        self.tests = {test['name']: test for test in tests}
        self.files = {target['id']: target['filename'] for target in targets}

    def compile(self, test):
        """Build the programs of *test*. Returns the compiler's output if that fails."""
        programs = [os.path.relpath(file, self.dir) for target in self.tests[test]['depends']
                    for file in self.files[target]]
        run = subprocess.run(['ninja', '-C', self.dir, *programs], **TO_TEXT)
        return run.stdout[-600:] if run.returncode else ''

    def run(self, mutant, timeout=None):
        conf = self.tests[mutant.test]
        env = {**os.environ, **conf['env'], 'SAN_CASE': mutant.case}
        with subprocess.Popen(conf['cmd'], env=env, cwd=self.dir, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as run:
            self.running = run
            try:
                return VERDICTS.get(run.wait(timeout), 'noticed')
            except subprocess.TimeoutExpired:
                run.terminate()     # an end-to-end test ends its daemons
            try:
                run.wait(PATIENCE_MIN)
            except subprocess.TimeoutExpired:
                run.kill()
        return 'noticed'

    def end(self):
        """Stop judging, and terminate the running test."""
        self.is_over = True
        if self.running is not None:
            self.running.terminate()

    def time(self, mutant):
        """Seconds that its test takes without the mutant; a text if the test does not pass."""
        key = mutant.test, mutant.case
        if key not in self.times:
            errors = self.compile(mutant.test)
            start = time.monotonic()
            verdict = errors or self.run(mutant)
            self.times[key] = time.monotonic() - start
            if verdict != VERDICTS[0]:
                self.times[key] = 'without the mutant: ' + verdict.replace('noticed', 'failed')
        return self.times[key]

    def judge(self, mutant):
        if mutant.test not in self.tests:
            return f'no such test: {mutant.test}'
        seconds = self.time(mutant)
        if isinstance(seconds, str):
            return seconds
        places = places_of(self.tree, mutant)
        texts = {path: read(self.tree, path) for path in places}
        for path, text in texts.items():
            write(replace(text, places[path]), self.tree, path)
        verdict = self.compile(mutant.test) or \
            self.run(mutant, max(PATIENCE_MIN, PATIENCE * seconds))
        for path, text in texts.items():
            write(text, self.tree, path)
        return verdict


def recall(path):
    """The current commit, and its verdicts in *path* if the tree is unchanged."""
    commit = subprocess.run(['git', '-C', ROOT, 'describe', '--always', '--abbrev=40', '--dirty',
                             '--exclude=*'], **TO_TEXT).stdout.strip()
    usable = path and os.path.exists(path) and not commit.endswith('-dirty')
    return commit, json.loads(read(path)).get(commit, {}) if usable else {}


class Judges:
    """One build for each CPU, because most tests wait. Each takes mutants of one file at a time."""

    def __init__(self, mutants, state):
        self.state, self.lock = state, threading.Lock()
        self.commit, self.verdicts = recall(state)
        by_file = collections.defaultdict(list)
        for mutant in sorted(mutants, key=lambda m: (m.edits[0].file, m.test, m.case)):
            if mutant.name not in self.verdicts:
                by_file[mutant.edits[0].file].append(mutant)
        # what a mutant changed is compiled again only with the next one
        self.queue = [group[i:i + GROUP] for group in by_file.values()
                      for i in range(0, len(group), GROUP)]

    def keep(self, mutant, verdict, seconds):
        with self.lock:
            self.verdicts[mutant.name] = verdict
            print(f'{mutant.name:30} {verdict:10} {mutant.test:20} {seconds:5.1f} s  '
                  f'{mutant.breaks}', flush=True)
            if self.state:
                write(json.dumps({self.commit: self.verdicts}, indent=1), self.state + '.new')
                os.replace(self.state + '.new', self.state)

    def work(self, build):
        while not build.is_over:
            with self.lock:
                group = self.queue.pop(0) if self.queue else None
            if group is None:
                return
            for mutant in group:
                start = time.monotonic()
                verdict = build.judge(mutant)
                if build.is_over:
                    return
                self.keep(mutant, verdict, time.monotonic() - start)

    def run(self):
        nb = min(len(os.sched_getaffinity(0)), len(self.queue))
        with tempfile.TemporaryDirectory(prefix='san-mutants-') as work, \
                concurrent.futures.ThreadPoolExecutor(max(nb, 1)) as pool:
            os.chmod(work, 0o755)       # some tests run programs as another user
            builds = [Build(os.path.join(work, str(i))) for i in range(nb)]
            try:
                for job in [pool.submit(self.work, build) for build in builds]:
                    job.result()
            finally:
                for build in builds:
                    build.end()


def run_all(mutants, state):
    judges = Judges(mutants, state)
    judges.run()
    verdicts = judges.verdicts
    missed = [m for m in mutants if verdicts[m.name] != 'noticed']
    for mutant in missed:
        print(f'{mutant.name}: {verdicts[mutant.name]} ({mutant.test} {mutant.case})')
    print(f'{len(mutants) - len(missed)} noticed, {len(missed)} missed')
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--dry', metavar='BUILD')
    parser.add_argument('--state', metavar='FILE')
    parser.add_argument('names', metavar='NAME', nargs='*')
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # so that the copy is removed
    mutants = [m for m in read_table() if not args.names or any(n in m.name for n in args.names)]
    if not mutants:
        sys.exit('no mutants')
    return dry_run(mutants, args.dry) if args.dry else run_all(mutants, args.state)


if __name__ == '__main__':
    sys.exit(main())
