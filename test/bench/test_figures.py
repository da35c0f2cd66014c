#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How figures of make bench are judged: pure functions, nothing is measured. (SYS-3)"""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from figures import FIGURES, judge  # noqa: E402
from report import plot, table      # noqa: E402
from runner import RunError, divide     # noqa: E402

RPC = next(f for f in FIGURES if f.name == 'rpc_worked')
# (slow and fast half of the link, per round), baseline and ratio that count
MODES = (
    ('one mode', [(9, 11)] * 3, 10, 0.5),
    ('two modes', [(5, 15)] * 3, 5, 1),
    ('stopped for half of each round', [(0, 20)] * 3, 10, 0.5),
    ('stopped for half of one round', [(0, 20), (5, 15), (5, 15)], 5, 1),
)


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

    def test_run_that_took_no_time(self):
        self.assertEqual(divide(6, 3, 'seconds'), 2)
        self.assertRaises(RunError, divide, 1, 0, 'seconds')


if __name__ == '__main__':
    unittest.main()
