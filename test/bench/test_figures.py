#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Judgment of the figures of make bench: pure functions, nothing is measured. (SYS-3)"""

import argparse
import contextlib
import copy
import io
import pathlib
import random
import shutil
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import bench                        # noqa: E402
import compare                      # noqa: E402
import fabric                       # noqa: E402
import store                        # noqa: E402
import verbs                        # noqa: E402
from figures import FIGURES, judge  # noqa: E402
from report import CHART, CHARTED, FRONT, NUMBERS, chart, plot, table   # noqa: E402
from runner import RunError, Runner, divide     # noqa: E402

RPC = next(f for f in FIGURES if f.name == 'rpc_worked')
# (slow and fast half of the link, per round); the valid baseline and ratio
MODES = (
    ('one mode', [(9, 11)] * 3, 10, 0.5),
    ('two modes', [(5, 15)] * 3, 5, 1),
    ('stopped for half of each round', [(0, 20)] * 3, 10, 0.5),
    ('stopped for half of one round', [(0, 20), (5, 15), (5, 15)], 5, 1),
)


def runs(new, jitter, seed):
    """Fifteen rounds on a machine of varying speed, with *jitter* of each run; new / base."""
    draw = random.Random(seed)
    speed = [draw.choice((1, 1, 0.5)) for _ in range(compare.ROUNDS)]
    return {side: [s * draw.gauss(1, jitter) * factor for s in speed]
            for side, factor in (('base', 1), ('new', new), ('again', 1))}


class Judge(unittest.TestCase):
    def test_modes(self):
        for name, halves, baseline, ratio in MODES:
            with self.subTest(name):
                link = [{'mpps': 10, 'slow_mpps': s, 'fast_mpps': f} for s, f in halves]
                ours = [{'direction_mpps': 5}] * len(link)
                record = judge(RPC, {RPC.ours: ours, RPC.base: link})
                self.assertEqual((record['baseline']['value'], record['ratio']),
                                 (baseline, ratio))

    def test_baseline_of_zero(self):
        link = [{'mpps': 0, 'slow_mpps': 0, 'fast_mpps': 0}]
        record = judge(RPC, {RPC.ours: [{'direction_mpps': 5}], RPC.base: link})
        self.assertIsNone(record['ratio'])
        self.assertFalse(record['met'])
        self.assertIn('failed', table([record])[-1])
        self.assertTrue(plot(record).startswith('<svg'))

    def test_chart(self):
        known = {f.name: f for f in FIGURES}
        self.assertLessEqual({*CHARTED, *FRONT, *NUMBERS}, set(known))
        records = [{'name': n, 'ratio': 0.5, 'value': 1, 'unit': known[n].unit,
                    'elsewhere': known[n].elsewhere} for n in CHARTED[:-1]]
        svg = chart(records, 'a machine')
        self.assertEqual(svg.count('>2.00: 1 us<'), sum(r['unit'] == 'us' for r in records))
        self.assertEqual(svg.count('<rect'), 1 + len(records))
        # the legend has two, too
        self.assertEqual(svg.count('<circle'), 2 + sum(len(r['elsewhere']) for r in records))
        self.assertEqual(svg.count(' = 1<'), len(CHART))

    def drawn(self, stored):
        """The texts that are drawn from *stored*, in copies."""
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as patches:
            copies = {n: pathlib.Path(shutil.copy(getattr(bench, n), folder))
                      for n in ('README', 'REPORT', 'ALL', 'CHART')}
            for name, path in copies.items():
                patches.enter_context(mock.patch.object(bench, name, path))
            bench.write_texts(stored)
            return {n: path.read_text('utf-8') for n, path in copies.items()}

    def test_report(self):
        """A run replaces what it measured, each text gets its rows and date, and what is older than
        the sources says so."""
        found = {'date': '2030-01-01', 'commit': 'abc',
                 'flags': {'compiler': 'cc', 'options': ['-O2']},
                 'machine': {'cpus': 2, 'model': 'a CPU', 'kernel': '6', 'dpdk': '22',
                             'hugepages': False, 'rounds': 1, 'run_ms': 1, 'stolen': []},
                 'figures': [judge(f, dict.fromkeys((f.ours, f.base), [
                     {f.key: 1, f.of_base(): 1, 'counters': {}}]))
                             for f in FIGURES if f.base != RPC.base and not f.drop]}
        before = store.read(bench.STORE)
        stored = copy.deepcopy(before)
        store.merge(stored, found)
        self.assertEqual(stored['figures'][RPC.name], before['figures'][RPC.name])
        self.assertEqual(stored['figures']['echo_udp']['run'], '2030-01-01 abc')
        texts = self.drawn({**stored, 'comparison': ['| a change |']})
        for text in texts.values():
            self.assertIn('2030-01-01', text)
            self.assertIn('abc, older', text)
        self.assertIn('| a change |', texts['ALL'])
        self.assertGreater(texts['ALL'].count('\n| '), 3 * texts['REPORT'].count('\n| '))

    def test_texts(self):
        """The texts have what figures.json has; only the age changes with the sources."""
        def ageless(text):
            return text.replace(', older than the sources', '').replace(', older', '')

        for name, text in self.drawn(store.read(bench.STORE)).items():
            self.assertEqual(ageless(text), ageless(getattr(bench, name).read_text('utf-8')), name)

    def test_run_that_took_no_time(self):
        self.assertEqual(divide(6, 3, 'seconds'), 2)
        self.assertRaises(RunError, divide, 1, 0, 'seconds')


class WholeEnd(unittest.TestCase):
    def found(self, *idle):
        """What three runs give, whose set-up takes 7,000, an operation 5 and an idle round 3."""
        found = [(ops, 7000 + 5 * ops + 3 * i, i)
                 for ops, i in zip((1000, 1010, 4000), idle)]
        runner = types.SimpleNamespace(whole_run=lambda *_: found.pop(0))
        return Runner.whole_end(runner, False)

    def test_rounds_without_work(self):
        self.assertAlmostEqual(self.found(100, 9000, 200)['both'], 5)

    def test_busy_machine(self):
        self.assertRaises(RunError, self.found, 100, 9000, 20000)


class Possible(unittest.TestCase):
    def test_without_libfabric(self):
        """The other figures are measured, and a word says what is missing."""
        args = argparse.Namespace(only=None, quick=False)
        runner = types.SimpleNamespace(build=pathlib.Path('/nonexistent'))
        with contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch.object(verbs, 'missing', lambda _: []):
            found = bench.possible(args, runner)
        self.assertEqual({f.group for f in FIGURES} - {f.group for f in found}, {fabric.GROUP})
        self.assertIn('libsanstack-fi.so', said.getvalue())


class Compare(unittest.TestCase):
    def verdicts(self, new, jitter, lower=False, within=0.0):
        return [compare.judge(runs(new, jitter, seed), lower, within)['verdict']
                for seed in range(10)]

    def test_worse(self):
        self.assertEqual(set(self.verdicts(0.95, 0.01)), {'LOSS'})
        self.assertEqual(set(self.verdicts(1.05, 0.01, lower=True)), {'LOSS'})

    def test_better(self):
        self.assertEqual(set(self.verdicts(1.05, 0.01)), {'better'})
        self.assertEqual(set(self.verdicts(0.95, 0.01, lower=True)), {'better'})

    def test_within(self):
        self.assertEqual(set(self.verdicts(0.95, 0.01, within=0.08)), {'same'})

    def test_exact(self):
        base = [1696] * compare.ROUNDS
        for new, verdict in ((1695, 'better'), (1696, 'same'), (1697, 'LOSS')):
            runs_of = {'base': base, 'new': [new] * compare.ROUNDS, 'again': base}
            self.assertEqual(compare.judge(runs_of, True, 0)['verdict'], verdict)

    def test_accident(self):
        """Of a thousand comparisons of equals almost none is called a difference."""
        verdicts = [compare.judge(runs(1, 0.2, seed), False, 0)['verdict']
                    for seed in range(1000)]
        self.assertGreater(verdicts.count('same'), 990)

    def test_chance(self):
        self.assertEqual(compare.chance(1, 0), 1)
        self.assertAlmostEqual(compare.chance(1, 2), 1 / 3)
        self.assertAlmostEqual(compare.chance(2, 3), 3 / 9)

    def test_base_of_zero(self):
        zero = {'base': [0], 'new': [1], 'again': [0]}
        self.assertEqual(compare.judge(zero, False, 0)['verdict'], 'base is 0')


if __name__ == '__main__':
    unittest.main()
