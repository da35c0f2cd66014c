#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make check: a plain and an ASan+UBSan build, every test in both, one sum.

Counts TAP results where a test speaks TAP, else one per test; and one for the
simulations of both builds being the same packet by packet. An end-to-end test
that failed is run once more by itself, unless many did: meson never runs two of
them at a time, but what else the machine does may stall one. What failed is told
last, and the last line is "N passed, N failed"; exit status 1 if anything failed.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAP_LINE = re.compile(r'^(not )?ok\b([^#]*)(?:#\s*(SKIP|TODO)\b)?', re.IGNORECASE)
HASHES = 'test/sim/hashes.txt'     # in each build's folder, by test/sim/test_sansim.py
TAP_PLAN = re.compile(r'^1\.\.\d+', re.MULTILINE)
AGAIN_SUITE, AGAIN_MAX = 'e2e', 3   # more that failed in a build are no accident

Count = collections.namedtuple('Count', 'passed failed skipped')
Report = collections.namedtuple('Report', 'lines failed')   # what failed is told last


def build(folder, options):
    """Configure once, compile; True if both worked."""
    if not os.path.exists(os.path.join(folder, 'build.ninja')):
        if subprocess.run(['meson', 'setup', '--werror', *options, folder, ROOT]).returncode != 0:
            return False
    return subprocess.run(['ninja', '-C', folder]).returncode == 0


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
    """Results of one meson test. Its own verdict wins over what it printed."""
    output = entry.get('stdout') or ''
    result = entry['result']
    tap = count_tap(output) if TAP_PLAN.search(output) else Count(0, 0, 0)
    if result == 'SKIP':
        return Count(0, 0, max(tap.skipped, 1))
    if result not in ('OK', 'EXPECTEDFAIL'):
        return tap._replace(failed=max(tap.failed, 1))
    return tap if sum(tap) > 0 else Count(1, 0, 0)


def run_tests(folder, options, logbase='testlog'):
    """Run meson's tests; a list of (suite, name, count, entry)."""
    log = os.path.join(folder, 'meson-logs', f'{logbase}.json')
    if os.path.exists(log):
        os.unlink(log)
    env = dict(os.environ, MESON_TESTTHREADS=str(os.cpu_count() or 1))
    subprocess.run(['meson', 'test', '-C', folder, '--no-rebuild', '--print-errorlogs',
                    '--logbase', logbase, *options], env=env)
    results = []
    if os.path.exists(log):
        with open(log, encoding='utf-8') as lines:
            for line in lines:
                entry = json.loads(line)
                suite, _, name = entry['name'].rpartition(' / ')
                results.append((suite.rpartition(':')[2], name, count_test(entry), entry))
    return results


def expected_tests(folder, options):
    """How many tests meson would run: a log cut short must not pass."""
    out = subprocess.run(['meson', 'test', '-C', folder, '--list', '--no-rebuild', *options],
                         stdout=subprocess.PIPE, text=True).stdout
    return sum(' / ' in line for line in out.splitlines())


def last_words(entry):
    """What a test that failed said of it, for who has only the end of the log."""
    lines = (entry.get('stdout') or '').splitlines() + (entry.get('stderr') or '').splitlines()
    said = [line for line in lines if re.match(r'not ok|FAIL|.*(rror|\.[ch]:\d+|differ)', line)]
    return [line[:300] for line in (said or lines)[:10] + lines[-5:]]


def run_again(label, folder, options, results, report):
    """*results*, but for end-to-end tests that failed and pass now: those are in the report."""
    names = [name for suite, name, count, _ in results if suite == AGAIN_SUITE and count.failed]
    if not 0 < len(names) <= AGAIN_MAX:
        return results
    print(f'== {label}: test again: {" ".join(names)}', flush=True)
    again = run_tests(folder, [*options, '--suite', AGAIN_SUITE, '--num-processes', '1', *names],
                      'testlog-again')
    passed = {name: (suite, name, count, entry) for suite, name, count, entry in again
              if entry['result'] == 'OK' and not count.failed}
    for suite, name, _, entry in results:
        if suite == AGAIN_SUITE and name in passed:
            report.lines.append(f'{label}: {suite}/{name} failed beside others, passed alone '
                                f'({entry["result"]} at first)')
            report.lines.extend(f'    {line}' for line in last_words(entry))
    return [passed.get(r[1], r) if r[0] == AGAIN_SUITE and r[2].failed else r for r in results]


def check_build(label, folder, setup_options, test_options, report):
    """Build and test one variant; its Count."""
    print(f'== {label}: build', flush=True)
    if not build(folder, setup_options):
        report.failed.append(f'{label}: build failed')
        return Count(0, 1, 0)
    print(f'== {label}: test', flush=True)
    results = run_again(label, folder, test_options, run_tests(folder, test_options), report)
    total = Count(0, 0, 0)
    suites = collections.OrderedDict()
    for suite, name, count, entry in results:
        total = Count(*map(sum, zip(total, count)))
        suites[suite] = Count(*map(sum, zip(suites.get(suite, Count(0, 0, 0)), count)))
        if count.failed:
            report.failed.append(f'{label}: {suite}/{name} FAILED ({entry["result"]})')
            report.failed.extend(f'    {line}' for line in last_words(entry))
        elif count.skipped:
            reason = ((entry.get('stdout') or '').strip().splitlines() or [''])[-1]
            report.lines.append(f'{label}: {suite}/{name} skipped {count.skipped}: {reason}')
    missing = expected_tests(folder, test_options) - len(results)
    if missing > 0:
        report.failed.append(f'{label}: FAILED: {missing} tests left no result')
        total = total._replace(failed=total.failed + missing)
    for suite, count in suites.items():
        report.lines.append(f'{label}: {suite:10} {count.passed:6} passed {count.failed:4} failed '
                            f'{count.skipped:4} skipped')
    return total


def forget_hashes(folders):
    for folder in folders:
        path = os.path.join(folder, HASHES)
        if os.path.exists(path):
            os.unlink(path)


def compare_hashes(folders, report):
    """Trace hashes of the same scenarios, however the program was built; their Count."""
    hashes = []
    for folder in folders:
        path = os.path.join(folder, HASHES)
        lines = []
        if os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                lines = f.read().splitlines()
        else:
            report.failed.append(f'determinism: {path} is not there')
        hashes.append(set(lines))
    differ = sorted({line.split()[0] for line in hashes[0] ^ hashes[1]})
    if differ or not hashes[0]:
        report.failed.append(f'determinism: FAILED: {" ".join(differ) or "nothing to compare"}')
        return Count(0, 1, 0)
    report.lines.append('determinism: debug and release give the same hashes '
                        f'({len(hashes[0])} runs)')
    return Count(1, 0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--plain', default='build', help='folder of the plain build')
    parser.add_argument('--asan', default='build-asan', help='folder of the sanitizer build')
    args = parser.parse_args()
    os.chdir(ROOT)

    report = Report([], [])
    forget_hashes([args.plain, args.asan])
    total = check_build('plain', args.plain, [], [], report)
    # The style of the sources does not depend on the build: judged once, above.
    asan = check_build('asan', args.asan, ['-Db_sanitize=address,undefined'],
                       ['--no-suite', 'style', '--timeout-multiplier', '3'], report)
    same = compare_hashes([args.plain, args.asan], report)
    total = Count(*map(sum, zip(total, asan, same)))
    if total.passed == 0 and total.failed == 0:
        total = total._replace(failed=1)
    print('\n'.join(['== summary', *report.lines]))
    if total.skipped:
        print(f'{total.skipped} skipped')
    if report.failed:
        print('\n'.join(['== failed', *report.failed]))
    print(f'{total.passed} passed, {total.failed} failed', flush=True)
    return 1 if total.failed else 0


if __name__ == '__main__':
    sys.exit(main())
