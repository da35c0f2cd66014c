# SPDX-License-Identifier: BSD-3-Clause
"""Compares a commit with this tree: builds it separately, measures both in turn, judges each
figure.

Each round runs the base, this tree and the base again, so that disturbances of the machine affect
all three, and the difference between the two runs of the base shows the noise.
"""

import json
import re
import shutil
import statistics
import subprocess
import sys

import profile_core
from figures import VARIANTS
from report import number
from runner import RunError

ROUNDS = 15
ACCIDENT = 1e-3         # probability of calling an equal figure worse or better
SIDES = ('base', 'new', 'again')
# Options that affect performance: the base gets those of this tree.
OPTIONS = ('b_lto', 'b_ndebug', 'b_pgo', 'c_args', 'c_link_args', 'debug', 'debug_asserts', 'lto',
           'optimization')
TARGET = 'bench-programs'


class BaseError(Exception):
    """The base is not available; the reason in a few lines."""


# ---- building the base ----

def run(*command, **more):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **more)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode(errors='replace').strip().splitlines()
        raise BaseError('\n'.join([f'{command[0]} {command[1]} failed', *words[-10:]]))
    return done.stdout


def options(build, source):
    """The options of *build*, as arguments for a tree that may not have all of them."""
    own = set(re.findall(r"option\('(\w+)'", (source / 'meson_options.txt').read_text('utf-8')))
    given = []
    for o in json.loads(run('meson', 'introspect', '--buildoptions', build)):
        if o['name'] in OPTIONS and (o['section'] != 'user' or o['name'] in own):
            value = o['value']
            text = str(value).lower() if isinstance(value, bool) else value
            given.append(f'-D{o["name"]}={text}')
    return given + ['-Dtests=false'] * ('tests' in own)


def build_base(root, build, commit):
    """Build the commit, and return the folder. It is kept below *build* for reuse, without its
    worktree."""
    name = run('git', 'rev-parse', '--verify', f'{commit}^{{commit}}', cwd=root).decode()[:12]
    above = build / 'base'
    source, folder = above / name / 'source', above / name / 'build'
    if above.exists():
        for other in above.iterdir():
            if other.name != name:
                shutil.rmtree(other)
    source.mkdir(parents=True, exist_ok=True)
    run('tar', '-x', '-C', source, input=run('git', 'archive', name, cwd=root))
    if not (folder / 'build.ninja').exists():
        shutil.rmtree(folder, ignore_errors=True)
        run('meson', 'setup', *options(build, source), folder, source)
    # older commits do not have this target: build everything
    known = subprocess.run(['ninja', '-C', folder, '-t', 'query', TARGET], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    print(f'base {name}: building', file=sys.stderr, flush=True)
    run('ninja', '-C', folder, TARGET if known else 'all')
    return folder


# ---- judgement ----

def chance(rounds, wins):
    """Probability of winning that many of the 2 x *rounds* comparisons if all three runs
    are alike."""
    ways = [1]
    for _ in range(rounds):
        ways = [sum(ways[max(0, n - 2):n + 1]) for n in range(len(ways) + 2)]
    return sum(ways[wins:]) / 3 ** rounds


def judge(runs, lower, within):
    """Record of the runs of each side; *lower* is better. A ratio is the median of those within
    each round. The figure is worse if it loses by more than the noise of the base and more than
    *within*, and in so many comparisons with the base's runs of the same round that chance is
    excluded.
    """
    rounds = [(a, n, b) for a, n, b in zip(*(runs[side] for side in SIDES)) if a + b]
    record = {'base': statistics.median(runs['base'] + runs['again']),
              'new': statistics.median(runs['new']), 'change': None, 'noise': None,
              'verdict': 'same' if rounds else 'base is 0'}
    if not rounds:
        return record
    change = statistics.median(2 * n / (a + b) - 1 for a, n, b in rounds)
    noise = abs(statistics.median(2 * (a - b) / (a + b) for a, _, b in rounds))
    record.update(change=change, noise=noise)
    higher = sum((n > a) + (n > b) for a, n, b in rounds)
    less = sum((n < a) + (n < b) for a, n, b in rounds)
    worse, better = (higher, less) if lower else (less, higher)
    if abs(change) > noise:
        if chance(len(rounds), better) < ACCIDENT:
            record['verdict'] = 'better'
        elif chance(len(rounds), worse) < ACCIDENT and abs(change) > within:
            record['verdict'] = 'LOSS'
    return record


# ---- measuring ----

def measure(runner, builds, variant, rounds):
    """Results of each side, and the error: (side, round, error) or None."""
    results = {side: [] for side in SIDES}
    for i in range(rounds):
        for side in SIDES[i % len(SIDES):] + SIDES[:i % len(SIDES)]:
            runner.use(builds[side])
            try:
                results[side].append(VARIANTS[variant](runner))
            except (RunError, OSError, ValueError, KeyError) as error:
                return results, (side, i, error)
        print(f'{variant}: round {i + 1} of {rounds}', file=sys.stderr, flush=True)
    return results, None


def compare(runner, base_build, figures, rounds, within):
    """Records of this stack's quantities in these figures, each once; and errors."""
    builds = {'base': base_build, 'new': runner.build, 'again': base_build}
    records, errors = [], []
    for variant in dict.fromkeys(f.ours for f in figures):
        results, wrong = measure(runner, builds, variant, rounds)
        quantities = {f.key: f for f in reversed(figures) if f.ours == variant}
        for key, figure in reversed(quantities.items()):
            record = {'title': figure.title, 'unit': figure.unit}
            if wrong is None:
                record['runs'] = {side: [r[key] for r in results[side]] for side in SIDES}
                record.update(judge(record['runs'], figure.lower, within))
            else:
                record['verdict'] = 'not in the base' if wrong[:2] == ('base', 0) else 'failed'
            records.append(record)
        if wrong:
            errors.append(f'{variant}, {wrong[0]}, round {wrong[1] + 1}: {wrong[2]}')
    return records, errors


def count(tmp, builds, cases, within):
    """Records of instructions per operation, which do not vary between runs; and errors."""
    records, errors = [], []
    for case in cases:
        found = {}
        for side, build in builds.items():
            try:
                found[side] = profile_core.count(build, tmp, case, False)
            except profile_core.ProfileError as error:
                if side == 'new':   # an older bench_core may not have the case
                    errors.append(f'{side}: {error}')
        for end in profile_core.SIDES:
            record = {'title': f'{case}, {end}', 'unit': 'instructions'}
            if len(found) == len(builds):
                counts = {side: [round(c[end].total('Ir'))] * ROUNDS for side, c in found.items()}
                record.update(judge({**counts, 'again': counts['base']}, True, within))
            else:
                record['verdict'] = 'failed' if 'base' in found else 'not in the base'
            records.append(record)
    return records, errors


def table(records):
    def share(x, form):
        return '–' if x is None else form.format(x)

    lines = ['| figure | unit | base | this | change | base against itself | |',
             '| --- | --- | --- | --- | --- | --- | --- |']
    for r in records:
        lines.append(f"| {r['title']} | {r['unit']} | {number(r.get('base'))} | "
                     f"{number(r.get('new'))} | {share(r.get('change'), '{:+.1%}')} | "
                     f"{share(r.get('noise'), '{:.1%}')} | {r['verdict']} |")
    return lines


def status(records):
    return int(any(r['verdict'] in ('LOSS', 'failed') for r in records))
