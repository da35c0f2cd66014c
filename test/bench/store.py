# SPDX-License-Identifier: BSD-3-Clause
"""doc/figures.json: what was measured last of each figure, and by which run.

The texts and the chart are drawn from it. A run replaces the figures that it measured, and leaves
the others, which may then be older than the sources.
"""

import functools
import json
import pathlib
import subprocess

from figures import COUNTED, FIGURES, compare_with_target, empty

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ('lib', 'drivers', 'apps')
GROUPS = {f.name: f.group for f in FIGURES}


@functools.lru_cache
def is_old(commit):
    """True if the product's sources are others than those of *commit*, or that is not known."""
    return subprocess.run(['git', 'diff', '--quiet', commit, '--', *SOURCES], cwd=ROOT,
                          stderr=subprocess.DEVNULL, check=False).returncode != 0


def read(path):
    return json.loads(path.read_text(encoding='utf-8'))


def write(path, stored):
    path.write_text(json.dumps(stored, indent=1) + '\n', encoding='utf-8')


def short(record, run):
    """What is kept of a record: the rest follows from the figure."""
    def spread(samples):
        return [min(samples), max(samples)] if len(samples) > 1 else []

    base = record['baseline']
    kept = {'run': run, 'value': record['value'], 'range': spread(record['samples']['ours']),
            'baseline': base['value'], 'baseline_range': spread(record['samples']['baseline']),
            'ratio': record['ratio']}
    return {**kept, **({'modes': base['modes']} if 'modes' in base else {}),
            **({'dropped': record['dropped']} if 'dropped' in record else {})}


def merge(stored, found):
    """Put what a run found into what is stored."""
    run = f"{found['date']} {found['commit']}"
    if found['figures'] and all(GROUPS[r['name']] == COUNTED for r in found['figures']):
        run += ' counted'
    stored['runs'][run] = {k: found[k] for k in ('commit', 'date', 'flags', 'machine')}
    for record in found['figures']:
        stored['figures'][record['name']] = short(record, run)
    for part in ('counts', 'wire'):
        if found.get(part):
            stored[part] = {'run': run, 'rows': found[part]}
    used = {s['run'] for s in (*stored['figures'].values(), stored['counts'], stored['wire']) if s}
    stored['runs'] = {k: v for k, v in stored['runs'].items() if k in used}


def measured(stored, run, older=', older than the sources'):
    """Commit of a run, and *older* if the sources have changed since."""
    commit = stored['runs'][run]['commit']
    return commit + (older if is_old(commit) else '')


def records(stored):
    """Records of all figures, as judge() makes them, with the commit at which each was measured."""
    found = []
    for figure in FIGURES:
        record = {**empty(figure), 'measured': None}
        kept = stored['figures'].get(figure.name)
        if kept:
            record.update(value=kept['value'], ratio=kept['ratio'],
                          measured=measured(stored, kept['run'], ', older'), run=kept['run'],
                          samples={'ours': kept['range'], 'baseline': kept['baseline_range']})
            record['baseline']['value'] = kept['baseline']
            record['baseline'].update({'modes': kept['modes']} if 'modes' in kept else {})
            record.update({'dropped': kept['dropped']} if 'dropped' in kept else {})
            compare_with_target(figure, record)
        found.append(record)
    return found
