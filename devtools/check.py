#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make check and make check-all: a plain and an ASan+UBSan build, their tests, one sum.

make check runs the tests of meson's suite "check" in phases, and prints the time of each phase and
its budget on a quiet machine. make check-all runs every test and the mutants, suite by suite. A
suite that has passed at this commit is not repeated, and when all have passed the result is written
into doc/testing.md. That document also says which test belongs where.

The sum counts TAP results where a test prints TAP, else one per test, and one for the equality of
the simulations of both builds packet by packet. No test runs twice. Failures are printed at the
end; the last line is "N passed, N failed". Exit status 1 if anything failed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAP_LINE = re.compile(r'^(not )?ok\b([^#]*)(?:#\s*(SKIP|TODO)\b)?', re.IGNORECASE)
TAP_PLAN = re.compile(r'^1\.\.\d+', re.MULTILINE)
HASHES = 'test/sim/hashes.txt'      # in each build's folder, by test/sim/test_sansim.py
REPORT = os.path.join(ROOT, 'doc', 'testing.md')
MARKS = ('<!-- check-all -->\n', '<!-- end of check-all -->\n')     # in REPORT
NB_SLOWEST = 10
PATIENCE = 5        # factor for the timeout that a test asks for: a watchdog, never a verdict
CPUS = len(os.sched_getaffinity(0))
SLEEPERS = 5        # end-to-end tests per CPU, because they mostly sleep

PLAIN, ASAN = 'plain', 'asan'
# Sanitizers need line numbers only; full debug information takes a fifth of the compile time.
SETUP = {PLAIN: [], ASAN: ['-Db_sanitize=address,undefined', '-Doptimization=1', '-Ddebug=false',
                           '-Dc_args=-g1']}
MUTANTS = 'mutants'

# From models on, a suite does not depend on the build, or is slow enough without sanitizers.
SUITES = {
    'style': (PLAIN,), 'unit': (PLAIN, ASAN), 'property': (PLAIN, ASAN), 'fuzz': (PLAIN, ASAN),
    'sim': (PLAIN, ASAN), 'e2e': (PLAIN, ASAN), 'model': (PLAIN,), 'experiments': (PLAIN,),
    'portability': (PLAIN,), 'pci': (PLAIN,), 'containers': (PLAIN,), 'machine': (PLAIN,),
}

# make check: name, seconds on two quiet CPUs, suites, builds
PHASES = (
    ('unit, property, fuzz', 60, ('unit', 'property', 'fuzz'), (PLAIN, ASAN)),
    ('models', 30, ('model',), (PLAIN,)),
    ('simulation', 150, ('sim',), (PLAIN, ASAN)),
    # end-to-end tests mostly wait, and leave the CPUs to those of the other build and to the style
    ('style, end to end', 400, ('style', 'e2e'), (PLAIN, ASAN)),
)
BUILD_BUDGET = 240

Count = collections.namedtuple('Count', 'passed failed skipped', defaults=(0, 0, 0))


def add(counts):
    return Count(*map(sum, zip(Count(), *counts)))


def count_tap(text):
    passed = failed = skipped = 0
    for line in text.splitlines():
        match = TAP_LINE.match(line)
        if not match:
            continue
        if (match.group(3) or '').upper() == 'SKIP':
            skipped += 1
        elif match.group(1):
            failed += 1
        else:
            passed += 1
    return Count(passed, failed, skipped)


def count_test(entry):
    """Results of one meson test. Meson's verdict has priority over the test's output."""
    output = entry.get('stdout') or ''
    result = entry['result']
    tap = count_tap(output) if TAP_PLAN.search(output) else Count()
    if result == 'SKIP':
        return Count(0, 0, max(tap.skipped, 1))
    if result not in ('OK', 'EXPECTEDFAIL'):
        return tap._replace(failed=max(tap.failed, 1))
    return tap if sum(tap) > 0 else Count(1, 0, 0)


def last_words(entry):
    """The lines of a failed test that explain the failure."""
    lines = (entry.get('stdout') or '').splitlines() + (entry.get('stderr') or '').splitlines()
    said, explains = [], False
    for line in lines:      # comments after "not ok" belong to it
        explains = line.startswith('not ok') or (explains and line.startswith('#'))
        if explains or re.match(r'FAIL|.*(rror|\.[ch]:\d+|differ)', line):
            said.append(line)
    return [line[:300] for line in (said or lines)[:20] + lines[-5:]]


class Report:
    """Collects what is printed at the end."""

    def __init__(self):
        self.lines, self.failures, self.tests = [], [], []

    def fail(self, text, why=()):
        self.failures += [text, *(f'    {line}' for line in why)]
        return Count(0, 1, 0)

    def add_test(self, build, entry):
        name = f'{build}: {entry["name"].rpartition(" / ")[2]}'
        count = count_test(entry)
        self.tests.append((entry['duration'], name))
        if name.endswith(': check-size'):
            self.lines += (entry.get('stdout') or '').splitlines()
        if count.failed:
            self.fail(f'{name} FAILED ({entry["result"]})', last_words(entry))
        elif count.skipped:
            reason = ((entry.get('stdout') or '').strip().splitlines() or [''])[-1]
            self.lines.append(f'{name}: {count.skipped} skipped: {reason}')
        return count

    def print(self, total):
        print('\n'.join(['== summary', *self.lines]))
        if self.tests:
            print('== slowest')
            for seconds, name in sorted(self.tests, reverse=True)[:NB_SLOWEST]:
                print(f'{seconds:7.1f} s  {name}')
        if total.skipped:
            print(f'{total.skipped} skipped')
        if self.failures:
            print('\n'.join(['== failed', *self.failures]))
        print(f'{total.passed} passed, {total.failed} failed', flush=True)


class Build:
    """One of the two builds: its folder and its tests."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, is_all):
        """Configure and compile; returns true on success. The sanitizer build only has what its
        tests need."""
        print(f'== {self.name}: build', flush=True)
        setup = ['meson', 'setup', '--werror', *SETUP[self.name], self.folder, ROOT]
        if not os.path.exists(self.path('build.ninja')) and \
           subprocess.run(setup).returncode != 0:
            return False
        # meson's list of tests is as old as build.ninja
        if subprocess.run(['ninja', '-C', self.folder, 'build.ninja']).returncode != 0:
            return False
        goals = ['all'] if self.name == PLAIN else []
        if self.name == ASAN or is_all:
            goals += self.programs(self.tests(SUITES, is_all))
        return subprocess.run(['ninja', '-C', self.folder, *goals]).returncode == 0

    def introspect(self, what):
        out = subprocess.run(['meson', 'introspect', what, self.folder], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        return json.loads(out)

    def tests(self, suites, is_all):
        """Meson's tests of these suites: all, or those of make check."""
        found = []
        for test in self.introspect('--tests'):
            mine = {suite.rpartition(':')[2] for suite in test['suite']}
            if mine & set(suites) and (is_all or 'check' in mine):
                found.append(test)
        return found

    def programs(self, tests):
        wanted = {target for test in tests for target in test['depends']}
        return [os.path.relpath(file, self.folder) for target in self.introspect('--targets')
                if target['id'] in wanted for file in target['filename']]

    def run(self, suites, is_all, report, is_alone=None, jobs=CPUS):
        """Run tests of these suites, *jobs* at a time. Returns their Count. *is_alone*: only those
        that run beside others (False), or do not (True)."""
        names = sorted({test['name'] for test in self.tests(suites, is_all)
                        if is_alone in (None, not test['is_parallel'])})
        if not names:
            return Count()
        base = 'check-alone' if is_alone else 'check'
        log = self.path(f'meson-logs/{base}.json')
        if os.path.exists(log):
            os.unlink(log)
        options = ['--no-rebuild', '--print-errorlogs', '--logbase', base,
                   '--num-processes', str(jobs), '--timeout-multiplier', str(PATIENCE)]
        for suite in suites:
            options += ['--suite', suite]
        print(f'== {self.name}: {", ".join(suites)}', flush=True)
        subprocess.run(['meson', 'test', '-C', self.folder, *options, *names],
                       env=dict(os.environ, SAN_TIER='all' if is_all else 'check'))
        entries = []
        if os.path.exists(log):
            with open(log, encoding='utf-8') as lines:
                entries = [json.loads(line) for line in lines]
        count = add(report.add_test(self.name, entry) for entry in entries)
        missing = len(names) - len(entries)
        if missing > 0:     # an incomplete log must not pass
            report.fail(f'{self.name}: FAILED: {missing} tests left no result')
            count = count._replace(failed=count.failed + missing)
        return count


def compare_hashes(paths, report):
    """Compare the trace hashes of equal scenarios in all builds. Returns their Count."""
    hashes = []
    for path in paths:
        if not os.path.exists(path):
            return report.fail(f'determinism: {path} is missing')
        with open(path, encoding='utf-8') as f:
            hashes.append(set(f.read().splitlines()))
    differ = sorted({line.split()[0] for line in hashes[0] ^ hashes[1]})
    if differ or not hashes[0]:
        return report.fail(f'determinism: FAILED: {" ".join(differ) or "nothing to compare"}')
    return Count(1, 0, 0)


def run_sleepers(builds, suites, is_all, report):
    """Tests that sleep, in all *builds* side by side; then those that must run alone. Their Count."""
    todo = [(build, [s for s in suites if build.name in SUITES[s]]) for build in builds]
    jobs = CPUS * SLEEPERS // len(builds)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        counts = list(pool.map(lambda job: job[0].run(job[1], is_all, report, False, jobs), todo))
    return add(counts + [build.run(mine, is_all, report, True) for build, mine in todo])


def run_suites(builds, suites, names, is_all, report):
    """Run these suites in the builds of these names. Returns their Count."""
    if 'e2e' in suites:
        return run_sleepers([builds[name] for name in names], suites, is_all, report)
    for build in builds.values() if 'sim' in suites else ():
        if os.path.exists(build.path(HASHES)):      # left by another run
            os.unlink(build.path(HASHES))
    count = add(builds[name].run([s for s in suites if name in SUITES[s]], is_all, report)
                for name in names)
    if 'sim' in suites:
        count = add([count, compare_hashes([b.path(HASHES) for b in builds.values()], report)])
    return count


def check(builds, report):
    """make check. Returns its Count."""
    counts, budgets = [], []
    began = start = time.monotonic()

    def note(name, budget):
        nonlocal start
        now = time.monotonic()
        budgets.append(f'{name:30} {now - start:6.0f} s of {budget:4} s')
        start = now

    for build in builds.values():
        if not build.compile(False):
            return report.fail(f'{build.name}: build failed')
    note('builds', BUILD_BUDGET)
    for name, budget, suites, names in PHASES:
        counts.append(run_suites(builds, suites, names, False, report))
        note(name, budget)
    whole = BUILD_BUDGET + sum(phase[1] for phase in PHASES)
    report.lines += [*budgets, f'{"all":30} {time.monotonic() - began:6.0f} s of {whole:4} s']
    return add(counts)


def run_mutants(builds, report):
    """Test each mutant; one that is noticed has passed."""
    state = builds[PLAIN].path('mutants.json')
    command = ['/usr/bin/python3', os.path.join(ROOT, 'devtools', 'check_mutants.py'),
               '--state', state]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        lines = []
        for line in run.stdout:
            print(line, end='', flush=True)
            lines.append(line.rstrip())
    match = re.fullmatch(r'(\d+) noticed, (\d+) missed', lines[-1] if lines else '')
    if match is None:
        return report.fail('mutants: FAILED: no result', lines[-10:])
    if int(match.group(2)):
        report.fail('mutants: FAILED', [line for line in lines[:-1] if ' noticed ' not in line])
    return Count(int(match.group(1)), int(match.group(2)), 0)


class Record:
    """Suites that check-all has seen pass at this commit, stored in the plain build's folder."""

    def __init__(self, build):
        self.path = build.path('check-all.json')
        git = subprocess.run(['git', 'describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'],
                             stdout=subprocess.PIPE, text=True)
        self.commit = git.stdout.strip()
        self.suites = {}
        if os.path.exists(self.path):
            with open(self.path, encoding='utf-8') as f:
                old = json.load(f)
            if old['commit'] == self.commit and not self.is_dirty():
                self.suites = old['suites']

    def is_dirty(self):
        return self.commit.endswith('-dirty') or not self.commit

    def add(self, suite, count, seconds):
        self.suites[suite] = [time.strftime('%Y-%m-%d'), *count, round(seconds)]
        with open(self.path, 'w', encoding='utf-8') as f:
            json.dump({'commit': self.commit, 'suites': self.suites}, f, indent=1)

    def write(self, suites):
        """Write the table in doc/testing.md."""
        rows = ['| suite | date | passed | failed | skipped | seconds |',
                '| --- | --- | ---: | ---: | ---: | ---: |']
        rows += [f'| {suite} | ' + ' | '.join(map(str, self.suites[suite])) + ' |'
                 for suite in suites]
        with open(REPORT, encoding='utf-8') as f:
            before, rest = f.read().split(MARKS[0])
        text = f'Commit `{self.commit}`, {CPUS} CPUs:\n\n' + '\n'.join(rows) + '\n'
        with open(REPORT, 'w', encoding='utf-8') as f:
            f.write(before + MARKS[0] + text + MARKS[1] + rest.split(MARKS[1])[1])


def check_all(builds, wanted, report):
    """make check-all, or one suite of it. Returns its Count."""
    suites = [*SUITES, MUTANTS]
    if wanted and wanted not in suites:
        return report.fail(f'SUITE={wanted}: there is no such suite; there are: {" ".join(suites)}')
    for build in builds.values():
        if not build.compile(True):
            return report.fail(f'{build.name}: build failed')
    record = Record(builds[PLAIN])
    counts = []
    for suite in [wanted] if wanted else suites:
        if suite in record.suites and not wanted:
            counts.append(Count(*record.suites[suite][1:4]))
            report.lines.append(f'{suite}: passed at this commit before')
            continue
        start = time.monotonic()
        count = run_mutants(builds, report) if suite == MUTANTS else \
            run_suites(builds, [suite], SUITES[suite], True, report)
        counts.append(count)
        if count.failed == 0:
            record.add(suite, count, time.monotonic() - start)
    if record.is_dirty():
        report.lines.append('doc/testing.md is not written: the tree has changes')
    elif set(suites) <= set(record.suites):
        record.write(suites)
    return add(counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--plain', default='build', help='folder of the plain build')
    parser.add_argument('--asan', default='build-asan', help='folder of the sanitizer build')
    parser.add_argument('--all', action='store_true', help='make check-all')
    parser.add_argument('--suite', default='', help='only this suite of make check-all')
    args = parser.parse_args()
    os.chdir(ROOT)

    builds = {PLAIN: Build(PLAIN, args.plain), ASAN: Build(ASAN, args.asan)}
    report = Report()
    total = check_all(builds, args.suite, report) if args.all else check(builds, report)
    if total.passed == 0 and total.failed == 0:
        total = total._replace(failed=1)
    report.print(total)
    return 1 if total.failed else 0


if __name__ == '__main__':
    sys.exit(main())
