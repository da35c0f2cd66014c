# SPDX-License-Identifier: BSD-3-Clause
"""Instructions and cache misses per operation, by function: bench_core under callgrind.

Two cores run in one process and in virtual time, so a build gives the same counts on any machine
under any load.
"""

import json
import os
import re
import subprocess

SIDES = ('client', 'server')
EVENTS = ('Ir', 'I1mr', 'D1mr', 'D1mw', 'ILmr', 'DLmr', 'DLmw')
LIMIT_S = 600
TOP = 30
# name: arguments of bench_core: operation, bytes, in flight, posted together, operations,
# connections, packing, virtual nanoseconds of a round
CASES = {
    'request': ('rpc', 64, 1, 1, 4000, 1, 0),
    'request slow': ('rpc', 64, 1, 1, 4000, 1, 0, 1500),
    'one each': ('push', 64, 256, 1, 8000, 1000, 0),
    'push': ('push', 64, 256, 16, 8000, 1, 0),
    'packed': ('push', 64, 256, 16, 8000, 1, 1),
    'send': ('send', 64, 256, 16, 8000, 1, 0),
    'rpc': ('rpc', 32, 64, 16, 8000, 1, 0),
    'rpc packed': ('rpc', 32, 64, 16, 8000, 1, 1),
    'idle': ('idle', 64, 256, 16, 8000, 1, 0),
    'pull': ('pull', 64, 256, 16, 8000, 1, 0),
    'bulk': ('push', 1 << 20, 8, 1, 16, 1, 0),
}
# Stages of an operation, from posting to polling, each including its calls.
STAGES = (
    ('work posted', 'san_core_post'), ('receives posted', 'san_core_post_recv'),
    ('packets in', 'san_core_rx_burst'), ('- parsed, ICRC checked', 'san_wire_parse'),
    ('timers', 'san_core_tick'),
    ('packets out', 'san_core_tx_burst'), ('- headers written', 'san_wire_build'),
    ('- ICRC made', 'san_wire_icrc_seal'),
    ('completions polled', 'san_ulp_cq_poll'),
)


class ProfileError(Exception):
    """callgrind failed; one line."""


class Counts:
    """Counts of one side: per function, exclusive and inclusive."""

    def __init__(self, path, operations):
        self.own, self.all = {}, {}
        self.operations = operations
        self.events = []
        with open(path, encoding='utf-8') as file:
            self.read(file)

    def read(self, file):
        function, is_call, library = None, False, ''
        for line in file:
            if line.startswith('events:'):
                self.events = line.split()[1:]
            elif line.startswith('ob='):
                library = line[3:].strip().rsplit('/', 1)[-1].split('.')[0]
            elif line.startswith('fn='):
                # "name'2" is a recursive call
                function = line[3:].strip().split("'")[0]
                if function.startswith('0x'):
                    function = f'{library} 0x{int(function, 16):x}'
            elif line.startswith('calls='):
                is_call = True
            elif function and re.match(r'[0-9+*-]', line):
                cost = [int(x) for x in line.split()[1:]]
                self.add(self.all, function, cost)
                if not is_call:
                    self.add(self.own, function, cost)
                is_call = False

    def add(self, to, function, cost):
        counts = to.setdefault(function, dict.fromkeys(self.events, 0))
        for event, n in zip(self.events, cost):
            counts[event] += n

    def per_op(self, counts, *events):
        return sum(counts.get(e, 0) for e in events) / self.operations

    def total(self, *events):
        return sum(self.per_op(c, *events) for c in self.own.values())

    def stage(self, function, *events):
        return self.per_op(self.all.get(function, {}), *events)

    def top(self):
        """Functions by exclusive instructions."""
        return sorted(self.own, key=lambda f: -self.own[f]['Ir'])


def count(build, tmp, case, caches=True):
    """{side: Counts} of a case."""
    what = CASES[case]
    found = {}
    for side in SIDES:
        out = tmp / f'callgrind.{case}.{side}'
        command = ['valgrind', '--quiet', '--tool=callgrind', '--collect-atstart=no',
                   f'--toggle-collect={side}_turn', f'--cache-sim={"yes" if caches else "no"}',
                   '--compress-strings=no', '--compress-pos=no', f'--callgrind-out-file={out}',
                   build / 'test/bench/bench_core', *what]
        try:
            done = subprocess.run([str(w) for w in command], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ProfileError(f'{case}: {error}') from None
        if done.returncode != 0 or not os.path.exists(out):
            last = (done.stderr.strip().splitlines() or ['no message'])[-1]
            raise ProfileError(f'{case}: {last}')
        found[side] = Counts(out, what[4])
        found[side].result = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def has_counters():
    """True if the machine supports cycle counters in perf."""
    try:
        done = subprocess.run(['perf', 'stat', '-x,', '-e', 'cycles', 'true'], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except OSError:
        return False
    return done.returncode == 0 and re.match(r'[0-9]+,', done.stderr.strip()) is not None


def cycles(build, case):
    """Cycles and last-level cache misses per operation of both sides, including the set-up."""
    what = (*CASES[case][:4], CASES[case][4] * 100, *CASES[case][5:])
    done = subprocess.run(['perf', 'stat', '-x,', '-e', 'cycles,cache-misses',
                           str(build / 'test/bench/bench_core'), *map(str, what)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = {line.split(',')[2]: line.split(',')[0] for line in done.stderr.splitlines()
             if line.count(',') > 2}
    return {k: float(v) / what[4] for k, v in found.items() if v.isdigit()}


def number(x):
    return f'{x:.0f}' if x >= 10 else f'{x:.2g}'


def lines_of(case, found):
    """Tables as text: stages, then the most expensive functions."""
    first, second = (found[s] for s in SIDES)
    misses = ('I1mr', 'D1mr', 'D1mw'), ('ILmr', 'DLmr', 'DLmw')
    what = CASES[case]
    lines = [f'### {what[0]}, {what[1]} bytes, {what[2]} under way, {what[3]} posted together'
             + (f', {what[5]} connections' if what[5] > 1 else '')
             + (', packed' if what[6] else '') + (f', rounds of {what[7]} ns' if what[7:] else ''),
             '', '| per operation, with what it calls | client, instructions | misses, first level '
             '| last level | server, instructions | first level | last level |',
             '| --- |' + ' --- |' * 6]
    rows = [('all', lambda c, *e: c.total(*e))]
    rows += [(title, lambda c, *e, f=function: c.stage(f, *e)) for title, function in STAGES]
    for title, get in rows:
        cells = [number(get(side, *events)) for side in (first, second)
                 for events in (('Ir',), *misses)]
        if any(cell != '0' for cell in cells):
            lines.append(f'| {title} | ' + ' | '.join(cells) + ' |')
    lines += ['', '| function | client, its own | with what it calls | server, its own | '
              'with what it calls |', '| --- |' + ' --- |' * 4]
    names = sorted(set(first.top()[:TOP] + second.top()[:TOP]), key=lambda f: -sum(
        c.per_op(c.own.get(f, {}), 'Ir') for c in (first, second)))
    for name in names:
        cells = [number(c.per_op(counts.get(name, {}), 'Ir')) for c in (first, second)
                 for counts in (c.own, c.all)]
        lines.append(f'| `{name}` | ' + ' | '.join(cells) + ' |')
    return lines + ['']


def report(build, tmp, cases):
    """The whole report of these cases, as lines."""
    lines = []
    counted = has_counters()
    if not counted:
        lines += ['This machine has no counters for perf: no cycles. Cache misses are those of '
                  "callgrind's model of this machine's caches.", '']
    for case in cases:
        lines += lines_of(case, count(build, tmp, case))
        if counted:
            lines += [', '.join(f'{v:.1f} {k}' for k, v in cycles(build, case).items())
                      + ' per operation of both sides, set-up included', '']
    return lines
