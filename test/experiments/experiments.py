#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make experiments: what the transport does, in the simulator's virtual time.

Runs the experiments of catalog.py, as many simulations at once as there are CPUs, and
leaves figures, tables and plots in build/experiments. The figures do not depend on the
machine nor on what else it does, but for those of "speed". Exit status 1 if a simulation
failed or a target is missed. How to read the tables: doc/experiments.md.

With --check the output is TAP: a line per target, and with "all" one per table, because what
the report says must be what is measured.
"""

import argparse
import concurrent.futures
import configparser
import csv
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import catalog      # noqa: E402
import plots        # noqa: E402

REPORT = ROOT / 'doc/experiments.md'
PICTURES = ROOT / 'doc/experiments'
UNITS = {'ns': 1e-9, 'us': 1e-6, 'ms': 1e-3, 's': 1, 'B': 1, 'KiB': 1 << 10, 'MiB': 1 << 20,
         'GiB': 1 << 30, 'Mb/s': 1e6, 'Gb/s': 1e9}
RUN_LIMIT_S = 3600      # a watchdog: the longest takes a minute


class RunError(Exception):
    """A simulation that did not work, in one line."""


def quantity(text):
    """'4MiB' in bytes, times in seconds, rates in bits per second; words as they are."""
    found = re.fullmatch(r'([0-9.]+) ?(\S*)', text)
    return float(found[1]) * UNITS.get(found[2], 1) if found else text


def cpu_s():
    """CPU time of all simulations that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Runner:
    def __init__(self, build, folder):
        self.program = pathlib.Path(build).resolve() / 'apps/sansim/sansim'
        self.folder = pathlib.Path(folder)      # of time series, while they are needed

    def command(self, run):
        words = [str(self.program)]
        for name in run.files:
            words += ['--scenario', str(HERE / name)]
        for word in run.sets:
            words += ['--set', word]
        return words + ['--seed', str(run.seed)]

    def call(self, command):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=RUN_LIMIT_S,
                                  check=False)
        except subprocess.TimeoutExpired:
            raise RunError(f'no end within {RUN_LIMIT_S} s') from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ['no message']
            raise RunError(f'exit code {done.returncode}: {lines[-1]}')
        return done.stdout

    def conf(self, run):
        """The whole scenario, as the simulator understood it."""
        ini = configparser.ConfigParser(interpolation=None)
        ini.read_string(self.call([*self.command(run), '--print']))
        return {s: {k: quantity(v) for k, v in ini[s].items()} for s in ini.sections()}

    def simulate(self, run):
        """The figures of one run, those that the experiment derives among them."""
        conf = self.conf(run)
        series, path = [], None
        command = [*self.command(run), '--json', '-']
        if run.series:
            handle, path = tempfile.mkstemp('.csv', dir=self.folder)
            os.close(handle)
            command += ['--series', path]
        try:
            before = cpu_s()
            figures = json.loads(self.call(command))
            if run.alone:
                figures['cpu_s'] = cpu_s() - before
            if path:
                with open(path, encoding='utf-8', newline='') as file:
                    series = [{k: int(v) for k, v in line.items()} for line in csv.DictReader(file)]
        finally:
            if path:
                os.unlink(path)
        catalog.ALL[run.experiment].derive(run, conf, figures, series)
        return figures


def label(run):
    return f'{run.experiment}: {run.variant}, {run.x:g}, seed {run.seed}'


def simulate_all(runner, runs):
    """Experiment: its figures; a list of what went wrong. The longest runs begin first."""
    got = {run.experiment: catalog.Got() for run in runs}
    errors = []
    count = itertools.count(1)

    def keep(run, figures):
        try:
            got[run.experiment].add(run, figures())
        except (RunError, OSError, ValueError, KeyError) as error:
            errors.append(f'{label(run)}: {error!s}\n  '
                          + ' '.join(f"'{w}'" if ' ' in w else w for w in runner.command(run)))
        print(f'{next(count)} of {len(runs)}: {label(run)}', file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {pool.submit(runner.simulate, run): run
                   for run in sorted(runs, key=lambda r: -r.cost) if not run.alone}
        try:
            for future in concurrent.futures.as_completed(futures):
                keep(futures[future], future.result)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for run in runs:
        if run.alone:
            keep(run, lambda run=run: runner.simulate(run))
    return got, errors


# ---- what is left behind ----

def write_results(path, runs, got, targets):
    results = []
    for run in runs:
        figures = got[run.experiment].by_point.get((run.variant, run.x), {}).get(run.seed)
        if figures is not None:
            results.append({'experiment': run.experiment, 'variant': run.variant, 'x': run.x,
                            'x_is': catalog.ALL[run.experiment].x,
                            **{k: v for k, v in figures.items() if not k.startswith('_')}})
    listed = [{'name': t.name, 'value': t.value, 'limit': t.limit,
               'relation': 'at most' if t.at_most else 'at least', 'met': t.met,
               'experiment': name} for name, ts in targets.items() for t in ts]
    path.write_text(json.dumps({'results': results, 'targets': listed}, indent=1) + '\n',
                    encoding='utf-8')


def draw_all(folder, got):
    """Experiment: paths of its plots; a list of what went wrong."""
    drawn, errors = {}, []
    for name, points in got.items():
        drawn[name] = []
        for plot in catalog.ALL[name].plots(points):
            try:
                drawn[name].append(plots.draw(plot, folder))
            except plots.PlotError as error:
                errors.append(str(error))
    return drawn, errors


def section(name, points, targets, pictures):
    """What stands between the markers of an experiment."""
    lines = [f'![{p.stem}](experiments/{p.name})' for p in pictures]
    lines += ['', *catalog.ALL[name].table(points), '']
    lines += [f'- {target.text()}' for target in targets] or ['- No target.']
    return lines


def write_report(sections):
    text = REPORT.read_text(encoding='utf-8')
    for name, lines in sections.items():
        begin, end = (f'<!-- experiments:{name}:{what} -->' for what in ('begin', 'end'))
        head, rest = text.split(begin, 1)
        tail = rest.split(end, 1)[1]
        text = head + begin + '\n' + '\n'.join(lines) + '\n' + end + tail
    REPORT.write_text(text, encoding='utf-8')


def copy_pictures(drawn):
    PICTURES.mkdir(exist_ok=True)
    for pictures in drawn.values():
        for picture in pictures:
            shutil.copyfile(picture, PICTURES / picture.name)


# ---- all together ----

def check_scenarios(runner, runs):
    """Would the simulator take them? It reads them, and runs nothing."""
    errors = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for run, future in [(r, pool.submit(runner.conf, r)) for r in runs]:
            try:
                future.result()
            except RunError as error:
                errors.append(f'{label(run)}: {error}')
    return errors


def chosen(args):
    return [run for e in catalog.ALL.values() for run in e.runs()
            if args.only in (None, run.experiment)]


def table_is_true(name, points):
    """A line of TAP: what the report says was measured."""
    report = REPORT.read_text(encoding='utf-8').splitlines()
    wrong = [row for row in catalog.ALL[name].table(points) if row not in report]
    return not wrong, f'{name}: its table is in {REPORT.name}' + ''.join(f'\n# {r}' for r in wrong)


def check(args, folder):
    """TAP: targets by the runs that are quick, or by all, and then the tables of the report, too."""
    every, needed = chosen(args), catalog.needed()
    runs = [run for run in every
            if not run.alone and (args.check == 'all' or (run.quick and run in needed))]
    runner = Runner(args.build, folder)
    errors = check_scenarios(runner, [run for run in every if run not in runs])
    got, wrong = simulate_all(runner, runs)
    errors += wrong + catalog.slow_ones(got, runs)
    if args.check == 'all':
        errors += draw_all(folder, got)[1]
    lines = [(not errors, '\n# '.join(['scenarios are read, runs end and cost what they say, plots are '
                                       'drawn', *'\n'.join(errors).splitlines()]))]
    for name, points in got.items():
        lines += [(t.met, f'{name}: {t.text()}') for t in catalog.ALL[name].targets(points)]
        if args.check == 'all':
            lines.append(table_is_true(name, points))
    print(f'1..{len(lines)}')
    for i, (ok, text) in enumerate(lines, 1):
        print(f'{"ok" if ok else "not ok"} {i} - {text}', flush=True)
    return 0 if all(ok for ok, _ in lines) else 1


def measure(args, folder):
    runs = chosen(args)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder) as series:
        got, errors = simulate_all(Runner(args.build, series), runs)
    drawn, not_drawn = draw_all(folder, got)
    errors += not_drawn
    targets = {name: catalog.ALL[name].targets(points) for name, points in got.items()}
    write_results(folder / 'results.json', runs, got, targets)
    sections = {name: section(name, points, targets[name], drawn[name])
                for name, points in got.items()}
    for name, lines in sections.items():
        print(f'== {name}', *lines, sep='\n')
    if args.write and not errors:
        copy_pictures(drawn)
        write_report(sections)
    for error in errors:
        print('experiments: ' + error, file=sys.stderr)
    verdicts = [t.met for ts in targets.values() for t in ts]
    print(f'== {len(runs)} runs, {len(errors)} failed, {sum(verdicts)} targets met, '
          f'{len(verdicts) - sum(verdicts)} missed, {time.monotonic() - began:.0f} s', flush=True)
    return 0 if not errors and all(verdicts) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', nargs='?', default=str(ROOT / 'build'), help='build folder')
    parser.add_argument('--only', choices=list(catalog.ALL), help='one experiment')
    parser.add_argument('--check', choices=('quick', 'all'),
                        help='judge the targets, by the quick runs or by all; nothing is left')
    parser.add_argument('--write', action='store_true',
                        help=f'put tables and plots into {REPORT.parent.name}/{REPORT.name}')
    args = parser.parse_args()
    if args.check and args.write:
        parser.error('--check writes nothing')
    if args.check:
        with tempfile.TemporaryDirectory() as folder:
            return check(args, pathlib.Path(folder))
    folder = pathlib.Path(args.build).resolve() / 'experiments'
    folder.mkdir(exist_ok=True)
    return measure(args, folder)


if __name__ == '__main__':
    sys.exit(main())
