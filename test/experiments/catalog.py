# SPDX-License-Identifier: BSD-3-Clause
"""The experiments: what is swept, what is made of the figures, what they must be.

The constants of each are in NAME.ini. To add one: that file, a class here, a line
in ALL, a section with markers in doc/experiments.md.
"""

import dataclasses
import math
import statistics

from plots import Curve, Panel, Plot

SEEDS = (1, 2, 3)
MANY_SEEDS = range(1, 21)
QUICK = 5                   # what costs no more is run in every check
ETHERNET = 14
FRAME_EXTRA = 24            # preamble, frame check sequence, gap
IP_OVERHEAD_MAX = 92        # IP header to ICRC, the longest over IPv4: doc/wire.md
FIRST_MTU = 1500            # of a connection, until it has filled as many packets: RT-31


@dataclasses.dataclass(frozen=True)
class Run:
    """One process: scenario files, then --set, then --seed."""
    experiment: str
    variant: str
    x: float
    sets: tuple
    files: tuple
    seed: int = 1
    series: bool = False    # is its time series needed?
    cost: float = 1         # seconds, roughly, and no fewer than millions of packet events
    alone: bool = False     # nothing else runs: its CPU time is a figure

    @property
    def quick(self):
        return self.cost <= QUICK


@dataclasses.dataclass
class Target:
    """A figure that must be at most, or at least, so much."""
    name: str
    value: float
    limit: float
    at_most: bool = False

    @property
    def met(self):
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def text(self):
        relation = 'at most' if self.at_most else 'at least'
        return (f'{self.name}: {number(self.value)}, {relation} {number(self.limit)}: '
                + ('met' if self.met else '**missed**'))


class Got:
    """The figures of one experiment; of what failed or was not run there are none."""

    def __init__(self):
        self.by_point = {}

    def add(self, run, figures):
        self.by_point.setdefault((run.variant, run.x), {})[run.seed] = figures

    def values(self, variant, x, key):
        seeds = self.by_point.get((variant, x), {})
        return [seeds[s][key] for s in sorted(seeds)]

    def xs(self):
        return sorted({x for _, x in self.by_point})

    def _over(self, function, variant, x, key, scale):
        values = self.values(variant, x, key)
        return function(values) * scale if values else None

    def mean(self, variant, x, key, scale=1):
        return self._over(statistics.fmean, variant, x, key, scale)

    def least(self, variant, x, key, scale=1):
        return self._over(min, variant, x, key, scale)

    def most(self, variant, x, key, scale=1):
        return self._over(max, variant, x, key, scale)

    def median(self, variant, x, key, scale=1):
        return self._over(statistics.median, variant, x, key, scale)

    def total(self, variant, x, key):
        return self._over(sum, variant, x, key, 1)

    def curve(self, title, variant, key, scale=1, over='mean', **how):
        function = getattr(self, over)
        return Curve(title, [(x, function(variant, x, key, scale)) for x in self.xs()], **how)


class Asked(Got):
    """Has no figures, and notes of which runs any were wanted."""

    def __init__(self, runs):
        super().__init__()
        self.runs = runs
        self.asked = set()

    def values(self, variant, x, key):
        self.asked.update(r for r in self.runs if (r.variant, r.x) == (variant, x))
        return []

    def xs(self):
        return sorted({r.x for r in self.runs})


def number(v, digits=3):
    """So many digits count; no exponent; thousands apart."""
    if v is None:
        return '–'
    if v == 0:
        return '0'
    behind = max(digits - 1 - math.floor(math.log10(abs(v))), 0)
    text = f'{v:,.{behind}f}'
    return text.rstrip('0').rstrip('.') if '.' in text else text


def share(part, whole):
    return None if part is None or not whole else part / whole


def percent(rate):
    return f'{100 * rate:g} %'


def row(cells):
    return '| ' + ' | '.join(cells) + ' |'


def table(head, rows):
    return [row(head), row(['---'] * len(head)), *map(row, rows)]


def target_if(name, value, limit, at_most=False):
    """No verdict about what was not measured."""
    return [] if value is None else [Target(name, value, limit, at_most)]


def rate(series, begin, end, key='bytes'):
    """Gb/s between two times, s, of a time series."""
    a, b = (min(series, key=lambda s, t=t: abs(s['time_ns'] / 1e9 - t)) for t in (begin, end))
    return (b[key] - a[key]) * 8 / (b['time_ns'] - a['time_ns'])


def rates(series, key, end):
    """(ms, Gb/s) of each interval up to a time, s."""
    return [(b['time_ns'] / 1e6, (b[key] - a[key]) * 8 / (b['time_ns'] - a['time_ns']))
            for a, b in zip(series, series[1:]) if b['time_ns'] / 1e9 <= end]


class Experiment:
    name = ''
    x = ''          # what is swept, for results.json

    def run(self, variant, x, sets, overlay=(), **how):
        files = (self.name + '.ini', *(o + '.ini' for o in overlay))
        return Run(self.name, variant, x, tuple(f'{k}={v}' for k, v in sets.items()), files, **how)

    def runs(self):
        raise NotImplementedError

    def derive(self, run, conf, figures, series):
        """Further figures; a key that begins with _ does not go into results.json."""

    def table(self, got):
        raise NotImplementedError

    def plots(self, got):
        raise NotImplementedError

    def targets(self, got):
        return []


# ---- 1: loss ----

class Loss(Experiment):
    name = 'loss'
    x = 'share of packets lost'
    RATES = (0, 1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.02, 0.03, 0.05)
    VARIANTS = {'random': 'loss', 'bursts': 'burst'}
    PUBLISHED = {1e-7: 73, 1e-5: 57, 1e-4: 18, 1e-3: 2.5}   # eRPC, Gb/s
    RARE = 1e-3             # below: longer runs
    OFTEN = 0.01            # bursts from here on: what timeouts cost differs from seed to seed

    def runs(self):
        for variant, kind in self.VARIANTS.items():
            for rate in self.RATES:
                sets = {'fault.l.kind': kind, 'fault.l.rate': f'{rate:.6f}'}
                if 0 < rate < self.RARE:
                    sets['run.duration'] = '200 ms'
                for seed in MANY_SEEDS if kind == 'burst' and rate >= self.OFTEN else SEEDS:
                    yield self.run(variant, rate, sets, seed=seed,
                                   cost=2 if 0 < rate < self.RARE else 0.5)

    def derive(self, run, conf, figures, series):
        possible = conf['link']['rate'] * (1 - run.x)
        figures['share_of_possible'] = figures['goodput_kbps'] * 1e3 / possible

    def limit(self, got, rate):
        clean = got.mean('random', 0, 'goodput_kbps', 1e-6)
        return None if clean is None else clean * (1 - rate)

    def table(self, got):
        rows = []
        for rate in sorted({*got.xs(), *self.PUBLISHED}):
            def gbps(variant, at=rate):
                return number(got.mean(variant, at, 'goodput_kbps', 1e-6))
            known = rate in got.xs()
            rows.append([
                f'{rate:g}', number(self.limit(got, rate)), gbps('random'),
                number(got.mean('random', rate, 'share_of_possible')),
                number(got.total('random', rate, 'rto')) if known else '–',
                number(got.most('random', rate, 'completion_p99_ns', 1e-3)),
                gbps('bursts'), number(got.total('bursts', rate, 'rto')),
                number(self.PUBLISHED.get(rate))])
        return table(['lost', 'limit, Gb/s', 'random, Gb/s', 'of link × (1 − loss)', 'timeouts',
                      'p99, us', 'bursts, Gb/s', 'timeouts', 'eRPC, published, Gb/s'], rows)

    def plots(self, got):
        limit = Curve('limit: (1 − loss) × lossless', [(x, self.limit(got, x)) for x in got.xs()],
                      colour=7, dashed=True, marks=False)
        curves = [limit, *(got.curve(v, v, 'goodput_kbps', 1e-6) for v in self.VARIANTS),
                  Curve('eRPC, published', sorted(self.PUBLISHED.items()), colour=4, lines=False)]
        return [Plot('loss', [Panel(
            'One connection, 100 Gb/s, 10 us: goodput under loss', 'share of packets lost',
            'goodput, Gb/s', curves, log='x', yrange='0:105', xrange='5e-8:0.1',
            xformat='10^{%T}')], width=720)]

    def targets(self, got):
        found = []
        for rate, least in ((0.01, 0.95), (0.05, 0.85)):
            found += target_if(f'goodput at {percent(rate)} loss / (link rate × (1 − loss))',
                               got.mean('random', rate, 'share_of_possible'), least)
        late = [got.total('random', r, 'rto') for r in got.xs() if r <= 0.01]
        late = [n for n in late if n is not None]
        return found + target_if('timeouts in all runs with random loss up to 1 %',
                                 sum(late) if late else None, 0, at_most=True)


class Small(Experiment):
    name = 'small'
    x = 'share of packets lost'
    RATES = (0, 1e-3, 0.01, 0.02)
    VARIANTS = {'packed': 'yes', 'unpacked': 'no'}

    def runs(self):
        for variant, pack in self.VARIANTS.items():
            for rate in self.RATES:
                sets = {'host.pack': pack, 'fault.l.rate': f'{rate:.6f}'}
                for seed in SEEDS:
                    yield self.run(variant, rate, sets, seed=seed, cost=2)

    @staticmethod
    def of_clean(got, variant, rate):
        return share(got.mean(variant, rate, 'ops'), got.mean(variant, 0, 'ops'))

    def table(self, got):
        rows = []
        for rate in got.xs():
            cells = [percent(rate)]
            for variant in self.VARIANTS:
                cells += [number(self.of_clean(got, variant, rate)),
                          number(got.most(variant, rate, 'completion_p99_ns', 1e-3)),
                          number(got.total(variant, rate, 'tlp')),
                          number(got.total(variant, rate, 'rto'))]
            rows.append(cells)
        return table(['lost', *(f'{v}: {what}' for v in self.VARIANTS for what in
                                ('of what a clean link completes', 'p99, us', 'tail probes',
                                 'timeouts'))], rows)

    def plots(self, got):
        curves = [Curve(v, [(x, self.of_clean(got, v, x)) for x in got.xs()])
                  for v in self.VARIANTS]
        return [Plot('small', [Panel('Messages of 32 bytes, 64 under way each way',
                                     'share of packets lost', 'completed, of a clean link',
                                     curves, yrange='0:1.05')], width=720)]

    def targets(self, got):
        found = []
        for rate, least in ((1e-3, 0.95), (0.01, 0.85)):
            found += target_if(f'completed at {percent(rate)} loss, of a clean link, packed',
                               self.of_clean(got, 'packed', rate), least)
        return found


# ---- 2: reordering ----

class Reorder(Experiment):
    name = 'reorder'
    x = 'packets come later by up to, us'
    RATES = (0.01, 0.1, 0.5)
    LATE_US = (1, 10, 100)
    ORDERS = {'ordered': 0, 'unordered': 1}
    OOO = (3, 64)

    @staticmethod
    def variant(order, ooo, rate):
        return f'{order}, ooo {ooo}, {percent(rate)}'

    def runs(self):
        for order, unordered in self.ORDERS.items():
            for ooo in self.OOO:
                sets = {'load.unordered': unordered, 'host.ooo': ooo}
                yield self.run(self.variant(order, ooo, 0), 0, sets)
                for rate in self.RATES:
                    for late in self.LATE_US:
                        sets = {**sets, 'fault.r.rate': rate, 'fault.r.arg': f'{late} us'}
                        yield self.run(self.variant(order, ooo, rate), late, sets)

    def derive(self, run, conf, figures, series):
        figures['resent_per_push'] = figures['rtx'] / max(figures['ops'], 1)

    def table(self, got):
        combinations = [(o, n) for o in self.ORDERS for n in self.OOO]
        rows = []
        for rate, late in [(0, 0), *((r, us) for r in self.RATES for us in self.LATE_US)]:
            cells = [percent(rate), number(late)]
            for order, ooo in combinations:
                v = self.variant(order, ooo, rate)
                cells += [number(got.mean(v, late, 'completion_p50_ns', 1e-3)) + ' / '
                          + number(got.mean(v, late, 'completion_p99_ns', 1e-3)),
                          number(got.mean(v, late, 'resent_per_push'), 2)]
            rows.append(cells)
        head = ['late packets', 'by up to, us']
        for order, ooo in combinations:
            head += [f'{order}, {ooo}: p50 / p99, us', 'resent per push']
        return table(head, rows)

    def plots(self, got):
        panels = []
        for order in self.ORDERS:
            curves = []
            for ooo in self.OOO:
                for i, rate in enumerate(self.RATES):
                    curves.append(got.curve(f'{percent(rate)} late, allowance {ooo}',
                                            self.variant(order, ooo, rate), 'completion_p99_ns',
                                            1e-3, colour=i, dashed=ooo != self.OOO[0]))
            panels.append(Panel(f'{order}: 64 KiB pushes, four at once',
                                'packets come later by up to, us', 'completion p99, us', curves,
                                log='xy', yrange='20:500', xrange='0.8:125',
                                ytics=(20, 50, 100, 200, 500), key='top left'))
        return [Plot('reorder', panels)]


# ---- 3: incast ----

class Incast(Experiment):
    name = 'incast'
    x = 'senders'
    SENDERS = (1, 4, 16, 64, 256, 1024, 4096)
    VARIANTS = {'solicited': 'always', 'unsolicited': 'never'}
    DATA_OVERHEAD = {'always': 76, 'never': 92}     # IP header to ICRC: doc/wire.md
    SLOW, SLOW_SENDERS = 'solicited, 10 Gb/s', 256  # the budget takes longer than grants wait
    LINKS_PER_RTT = 4

    def runs(self):
        for variant, solicit in self.VARIANTS.items():
            for n in self.SENDERS:
                yield self.run(variant, n, self.sets(n, solicit), cost=0.3 + n / 400)
        n = self.SLOW_SENDERS
        yield self.run(self.SLOW, n, {**self.sets(n, 'always'), 'link.rate': '10 Gb/s'})

    @staticmethod
    def sets(n, solicit):
        return {'topology.hosts': n + 1, 'load.connections': n, 'load.solicit': solicit}

    def derive(self, run, conf, figures, series):
        size = conf['load']['size_max']
        packets = math.ceil(size / (FIRST_MTU - IP_OVERHEAD_MAX))
        overhead = self.DATA_OVERHEAD[conf['load']['solicit']]
        wire = size + packets * (overhead + ETHERNET + FRAME_EXTRA)
        seconds = (run.x * wire * 8 / conf['link']['rate']
                   + 1.5 * self.LINKS_PER_RTT * conf['link']['delay'])
        figures['ideal_ns'] = round(seconds * 1e9)
        figures['last_over_ideal'] = figures['last_completion_ns'] / figures['ideal_ns']

    def table(self, got):
        def us(variant, n, key):
            return number(got.mean(variant, n, key, 1e-3), 4)

        rows = [[number(n, 5), v, number(got.mean(v, n, 'switch_drops'), 6),
                 number(got.mean(v, n, 'queue_high_bytes', 1 / 1024), 4),
                 us(v, n, 'completion_p50_ns'), us(v, n, 'completion_p99_ns'),
                 us(v, n, 'completion_p999_ns'), us(v, n, 'last_completion_ns'),
                 us(v, n, 'ideal_ns'), number(got.mean(v, n, 'last_over_ideal')),
                 number(got.mean(v, n, 'rto'), 6)]
                for n in got.xs() for v in (*self.VARIANTS, self.SLOW) if got.values(v, n, 'ops')]
        return table(['senders', 'pushes', 'drops', 'queue at most, KiB', 'p50, us', 'p99, us',
                      'p99.9, us', 'last, us', 'ideal, us', 'last / ideal', 'timeouts'], rows)

    def plots(self, got):
        return [Plot('incast', [
            Panel('64 KiB from each of N senders to one host', 'senders', 'last completion / ideal',
                  [got.curve(v, v, 'last_over_ideal') for v in self.VARIANTS], log='xy',
                  yrange='0.8:10', ytics=(1, 2, 5, 10), key='top left'),
            Panel('Switch with 1 MiB', 'senders', 'queue at most, KiB',
                  [got.curve(v, v, 'queue_high_bytes', 1 / 1024) for v in self.VARIANTS],
                  log='xy', yrange='1:2000', key='bottom right'),
            Panel('Drops (none: not drawn)', 'senders', 'packets',
                  [got.curve(v, v, 'switch_drops') for v in self.VARIANTS], log='xy',
                  xrange='1:5000', yrange='1:1e6', key='top left')
            if any(got.mean(v, n, 'switch_drops') for v in self.VARIANTS for n in got.xs()) else
            Panel('Completion', 'senders', 'p99, us',
                  [got.curve(v, v, 'completion_p99_ns', 1e-3) for v in self.VARIANTS], log='xy')])]

    def targets(self, got):
        found = []
        for n in (1024, 4096):
            who = f'{n:,} solicited senders'
            found += target_if(f'drops with {who}', got.mean('solicited', n, 'switch_drops'), 0,
                               at_most=True)
            found += target_if(f'last completion / ideal with {who}',
                               got.mean('solicited', n, 'last_over_ideal'), 1.05, at_most=True)
        found += target_if('queue at most with 1,024 solicited senders, KiB',
                           got.mean('solicited', 1024, 'queue_high_bytes', 1 / 1024), 520,
                           at_most=True)
        return found + target_if(f'drops with {self.SLOW_SENDERS} {self.SLOW}',
                                 got.mean(self.SLOW, self.SLOW_SENDERS, 'switch_drops'), 0,
                                 at_most=True)


# ---- 4: virtual windows ----

class Vwin(Experiment):
    name = 'vwin'
    x = 'connections'
    CONNECTIONS = (1, 10, 100, 1000, 10000)
    MANY = CONNECTIONS[-1]
    BUDGET = 128
    VARIANTS = {'budget 65,536': {}, 'budget 128': {'host.budget': BUDGET}}
    RECORDS = 'budget 128, few records'

    def runs(self):
        for n in self.CONNECTIONS:
            sets = {'load.connections': n}
            if n == 1:
                sets['load.depth'] = 64
            if n == self.MANY:
                sets.update({'run.warmup': '100 ms', 'run.duration': '400 ms'})
            cost = 30 if n == self.MANY else 1
            for variant, more in self.VARIANTS.items():
                yield self.run(variant, n, {**sets, **more}, cost=cost)
            if n == self.MANY:
                yield self.run(self.RECORDS, n, {**sets, 'host.budget': self.BUDGET,
                                                 'host.txns': 1024}, cost=cost)

    def table(self, got):
        rows = []
        for n in got.xs():
            for v in (*self.VARIANTS, self.RECORDS):
                if not got.values(v, n, 'ops'):
                    continue
                rows.append([number(n, 5), v, number(got.mean(v, n, 'goodput_kbps', 1e-6)),
                             number(got.mean(v, n, 'inflight_high_pkts'), 6),
                             number(got.mean(v, n, 'side_bytes_min', 1 / 1024), 6),
                             number(got.mean(v, n, 'side_bytes_max', 1 / 1024), 6),
                             number(got.mean(v, n, 'jain_ppm', 1e-6)),
                             number(got.mean(v, n, 'completion_p99_ns', 1e-3)),
                             number(got.mean(v, n, 'rtx'), 6),
                             number(got.mean(v, n, 'rto'), 6)])
        return table(['connections', 'host', 'Gb/s', 'in flight at most, packets',
                      'least of a connection, KiB', 'most, KiB', 'Jain', 'p99, us', 'resent',
                      'timeouts'], rows)

    def plots(self, got):
        budget = Curve('128', [(x, self.BUDGET) for x in got.xs()], colour=7, dashed=True,
                       marks=False)
        return [Plot('vwin', [
            Panel('One host to 100 hosts: throughput', 'active connections', 'goodput, Gb/s',
                  [got.curve(v, v, 'goodput_kbps', 1e-6) for v in self.VARIANTS], log='x',
                  yrange='0:105'),
            Panel('In flight', 'active connections', 'packets at most',
                  [*(got.curve(v, v, 'inflight_high_pkts') for v in self.VARIANTS), budget],
                  log='xy', key='top left'),
            Panel('Completion', 'active connections', 'p99, us',
                  [got.curve(v, v, 'completion_p99_ns', 1e-3) for v in self.VARIANTS],
                  log='xy', key='top left')])]

    def targets(self, got):
        found = []
        for v in self.VARIANTS:
            found += target_if(f'bytes of the slowest of 10,000 connections, {v}',
                               got.least(v, self.MANY, 'side_bytes_min'), 1)
        flights = [got.most('budget 128', n, 'inflight_high_pkts') for n in got.xs()]
        flights = [f for f in flights if f is not None]
        found += target_if('packets in flight with a budget of 128',
                           max(flights) if flights else None, self.BUDGET, at_most=True)
        for v in self.VARIANTS:
            found += target_if(f'throughput of 10,000 connections / of one, {v}',
                               share(got.mean(v, self.MANY, 'goodput_kbps'),
                                     got.mean(v, 1, 'goodput_kbps')), 0.95)
        return found


# ---- 5: congestion control ----

class Cc(Experiment):
    name = 'cc'
    x = 'pairs'
    PAIRS = (2, 16, 64, 256)
    ALGORITHMS = ('swift', 'dcqcn', 'fixed')
    JOINING = {'swift': 'swift, joining', 'dcqcn': 'dcqcn, joining'}
    FLOWS = 8
    ALL_FROM, ALL_TO = 0.036, 0.045     # all flows are there, the last one since 1 ms

    def runs(self):
        for n in self.PAIRS:
            sets = {'topology.hosts': 2 * n, 'load.connections': n}
            if n == 256:
                sets['run.duration'] = '200 ms'
            for cc in self.ALGORITHMS:
                yield self.run(cc, n, {**sets, 'host.cc': cc}, series=True,
                               cost=16 if n == 256 else 1)
        for cc, variant in self.JOINING.items():
            yield self.run(variant, self.FLOWS, {'host.cc': cc}, ('cc-join',), series=True)

    def derive(self, run, conf, figures, series):
        begin, end = conf['run']['warmup'], conf['run']['duration']
        delays = sorted(s['queue_bytes'] * 8e6 / conf['link']['rate'] for s in series
                        if begin <= s['time_ns'] / 1e9 <= end)
        figures['queue_mean_us'] = statistics.fmean(delays)
        figures['queue_p99_us'] = delays[int(len(delays) * 0.99)]
        if run.variant in self.JOINING.values():
            self.derive_flows(figures, series, end)

    def derive_flows(self, figures, series, end):
        """Throughput of each flow over time, and how fair it is while all are there."""
        keys = [f'flow{i}' for i in range(self.FLOWS)]
        figures['_flows'] = [rates(series, key, end) for key in keys]
        got = [rate(series, self.ALL_FROM, self.ALL_TO, key) for key in keys]
        figures['jain_of_all'] = sum(got) ** 2 / (len(got) * sum(g * g for g in got))

    def table(self, got):
        rows = []
        for n in got.xs():
            for v in (*self.ALGORITHMS, *self.JOINING.values()):
                if not got.values(v, n, 'ops'):
                    continue
                joining = v in self.JOINING.values()
                rows.append([number(n), v, number(got.mean(v, n, 'goodput_kbps', 1e-6)),
                             number(got.mean(v, n, 'jain_of_all')) if joining else
                             number(got.mean(v, n, 'jain_ppm', 1e-6)),
                             number(got.mean(v, n, 'queue_mean_us')),
                             number(got.mean(v, n, 'queue_p99_us')),
                             number(got.mean(v, n, 'completion_p99_ns', 1e-3)),
                             number(got.mean(v, n, 'switch_drops'), 6),
                             number(got.mean(v, n, 'rto'), 6)])
        return table(['pairs', 'control', 'Gb/s', 'Jain', 'queue, mean, us', 'queue, p99, us',
                      'completion p99, us', 'drops', 'timeouts'], rows)

    def plots(self, got):
        def curves(key, scale=1):
            made = [got.curve(v, v, key, scale) for v in self.ALGORITHMS]
            for curve in made:
                curve.points = [p for p in curve.points if p[0] in self.PAIRS]
            return made

        def joining(cc):
            flows = got.values(self.JOINING[cc], self.FLOWS, '_flows')
            return Panel(f'{cc}: eight flows join and leave', 'time, ms', 'goodput per ms, Gb/s',
                         [Curve(f'flow {i + 1}', points, marks=False)
                          for i, points in enumerate(flows[0] if flows else [])],
                         yrange='0:105', xrange='0:80', key='top center')

        queue = curves('queue_mean_us')
        for i, curve in enumerate(curves('queue_p99_us')):
            curve.title += ', p99'
            curve.colour, curve.dashed = i, True
            queue.append(curve)
        return [Plot('cc', [
            Panel('Queue in front of the trunk', 'pairs', 'queueing delay, us', queue, log='xy',
                  yrange='5:2000', key='top left'),
            Panel('Fairness', 'pairs', "Jain's index", curves('jain_ppm', 1e-6), log='x',
                  yrange='0:1.05')]),
                Plot('cc-join', [joining(cc) for cc in self.JOINING], width=560)]

    def targets(self, got):
        found = []
        for n in (16, 256):
            found += target_if(f"Jain's index, {n} flows, swift",
                               got.mean('swift', n, 'jain_ppm', 1e-6), 0.95)
        return (found
                + target_if('mean queueing delay, 16 flows, swift, us',
                            got.mean('swift', 16, 'queue_mean_us'), 37.5, at_most=True)
                + target_if('mean queueing delay, 64 flows, swift, us',
                            got.mean('swift', 64, 'queue_mean_us'), 50, at_most=True))


# ---- 6: a path dies ----

class Path(Experiment):
    name = 'path'
    x = 'outage, ms'
    OUTAGES_MS = (5, 50, 500)
    BEFORE_MS, AFTER_MS = 20, 60        # of path.ini: fault.d.at
    BACK = 0.04                         # s after an outage: everybody has noticed its end
    CONTROL = {'path change': 5, 'fixed path': 0}
    WHERE = {'both ways': 'spine:1', 'to the spine': 'spine:1:down',
             'from the spine': 'spine:1:up'}
    DRAWN_MS = 50

    @staticmethod
    def variant(control, where):
        return f'{control}, {where}'

    def runs(self):
        for control, plb in self.CONTROL.items():
            for where, place in self.WHERE.items():
                for ms in self.OUTAGES_MS:
                    sets = {'fault.d.for': f'{ms} ms', 'fault.d.where': place, 'host.plb': plb,
                            'run.duration': f'{self.BEFORE_MS + ms + self.AFTER_MS} ms'}
                    for seed in SEEDS:
                        yield self.run(self.variant(control, where), ms, sets, seed=seed,
                                       series=True, cost=4 if ms == 500 else 1)

    def derive(self, run, conf, figures, series):
        begin = conf['fault.d']['at']
        end = begin + conf['fault.d']['for']
        figures['outage_gbps'] = rate(series, begin, end)
        figures['before_gbps'] = rate(series, 0, begin)
        figures['after_gbps'] = rate(series, end + self.BACK, conf['run']['duration'])
        figures['_gbps'] = rates(series, 'bytes', conf['run']['duration'])

    def table(self, got):
        rows = [[number(ms), where, control, number(got.most(v, ms, 'longest_silence_ns', 1e-6)),
                 *(number(got.mean(v, ms, f'{when}_gbps')) for when in ('before', 'outage',
                                                                          'after')),
                 number(got.mean(v, ms, 'path_changes')), number(got.mean(v, ms, 'rto')),
                 number(got.total(v, ms, 'broken'))]
                for ms in got.xs() for where in self.WHERE for control in self.CONTROL
                for v in [self.variant(control, where)]]
        return table(['outage, ms', 'spine 1 is dead', 'host', 'longest silence, ms',
                      'before, Gb/s', 'during, Gb/s', 'after, Gb/s', 'path changes', 'timeouts',
                      'broken'], rows)

    def plots(self, got):
        silence, over_time = [], []
        for i, control in enumerate(self.CONTROL):
            for where in self.WHERE if i == 0 else ('both ways',):   # for the others: the same
                silence.append(got.curve(f'{control}, {where}', self.variant(control, where),
                                         'longest_silence_ns', 1e-6, over='most', colour=i,
                                         dashed=where != 'both ways'))
            runs = got.values(self.variant(control, 'both ways'), self.DRAWN_MS, '_gbps')
            over_time.append(Curve(control, runs[0] if runs else [], marks=False))
        silence.append(Curve('as long as the outage', [(x, x) for x in got.xs()], colour=7,
                             dashed=True, marks=False))
        return [Plot('path', [
            Panel('Spine 1 of 4 is dead: longest silence of a connection', 'outage, ms',
                  'silence, ms', silence, log='xy', yrange='0.3:10000', key='top left'),
            Panel(f'Spine 1 is dead from {self.BEFORE_MS} to {self.BEFORE_MS + self.DRAWN_MS} ms',
                  'time, ms', 'goodput of eight connections, Gb/s', over_time,
                  yrange='0:45')], width=560)]

    def targets(self, got):
        silent = [got.most(self.variant('path change', 'both ways'), ms, 'longest_silence_ns', 1e-6)
                  for ms in got.xs()]
        silent = [ms for ms in silent if ms is not None]
        return target_if('longest silence of a connection whose path may change, ms',
                         max(silent) if silent else None, 10, at_most=True)


# ---- 7: head-of-line blocking ----

class Hol(Experiment):
    name = 'hol'
    x = 'share of packets lost'
    RATES = (0, 1e-3, 0.003, 0.01, 0.02, 0.03, 0.05)
    ORDERS = {'ordered': 0, 'unordered': 1}

    def runs(self):
        for order, unordered in self.ORDERS.items():
            for rate in self.RATES:
                for seed in SEEDS:
                    yield self.run(order, rate, {'load.unordered': unordered,
                                                 'fault.l.rate': f'{rate:.6f}'}, seed=seed)

    def table(self, got):
        rows = [[percent(rate), v, number(got.mean(v, rate, 'goodput_kbps', 1e-6)),
                 *(number(got.mean(v, rate, f'completion_{p}_ns', 1e-3), 4)
                   for p in ('mean', 'p50', 'p99', 'p999')),
                 number(got.most(v, rate, 'completion_max_ns', 1e-3), 4),
                 number(got.most(v, rate, 'cam_high')),
                 number(got.total(v, rate, 'tlp')), number(got.total(v, rate, 'rto'))]
                for rate in got.xs() for v in self.ORDERS]
        return table(['lost', 'connections', 'Gb/s', 'mean, us', 'p50, us', 'p99, us', 'p99.9, us',
                      'longest, us', 'CAM at most, entries', 'tail probes', 'timeouts'], rows)

    def plots(self, got):
        completion = []
        for p, name in (('p50', 'p50'), ('p99', 'p99'), ('p999', 'p99.9')):
            for i, order in enumerate(self.ORDERS):
                completion.append(got.curve(f'{order}, {name}', order, f'completion_{p}_ns', 1e-3,
                                            colour=i, dashed=p == 'p50'))
        percents = [[(100 * x, y) for x, y in c.points] for c in completion]
        for curve, points in zip(completion, percents):
            curve.points = points
        goodput = [got.curve(o, o, 'goodput_kbps', 1e-6) for o in self.ORDERS]
        for curve in goodput:
            curve.points = [(100 * x, y) for x, y in curve.points]
        return [Plot('hol', [
            Panel('Ten connections, 2 KiB pushes, 64 at once', 'packets lost, %', 'completion, us',
                  completion, yrange='100:220', key='top left'),
            Panel('Goodput', 'packets lost, %', 'Gb/s', goodput, yrange='0:105')])]


# ---- 8: slow and long ----

class Slow(Experiment):
    name = 'slow'
    x = 'link rate, Mb/s'
    RATES = {'100 Mb/s': 100, '1 Gb/s': 1000, '10 Gb/s': 10000, '100 Gb/s': 100000}
    DELAYS_US = (1, 50, 500)
    LINKS_PER_RTT = 8

    def runs(self):
        for delay in self.DELAYS_US:
            for rate, mbps in self.RATES.items():
                sets = {'link.rate': rate, 'link.delay': f'{delay} us'}
                yield self.run(f'{delay} us', mbps, sets,
                               cost=25 if mbps == 100000 and delay == 1 else 5)

    def derive(self, run, conf, figures, series):
        rtt = self.LINKS_PER_RTT * conf['link']['delay']
        figures['rtt_us'] = rtt * 1e6
        figures['share_of_link'] = figures['goodput_kbps'] * 1e3 / conf['link']['rate']
        # a solicited push takes two round trips at least: one for its grant
        asked = conf['load']['depth'] * conf['load']['size_max'] * 8 / (2 * rtt)
        figures['share_asked'] = min(asked / conf['link']['rate'], 1)

    def table(self, got):
        names = {mbps: name for name, mbps in self.RATES.items()}
        rows = [[names[x], v, number(got.mean(v, x, 'rtt_us')),
                 number(got.mean(v, x, 'goodput_kbps', 1e-3), 5),
                 number(got.mean(v, x, 'share_of_link'), 2),
                 number(got.mean(v, x, 'share_asked'), 2),
                 number(got.mean(v, x, 'inflight_high_pkts'), 5),
                 number(got.mean(v, x, 'completion_p50_ns', 1e-6)),
                 number(got.mean(v, x, 'switch_drops'), 6), number(got.mean(v, x, 'rto'), 6)]
                for x in got.xs() for v in [f'{us} us' for us in self.DELAYS_US]]
        return table(['link', 'delay of a link', 'round trip, us', 'goodput, Mb/s', 'of the link',
                      'requests allow', 'in flight at most, packets', 'p50, ms', 'drops',
                      'timeouts'], rows)

    def plots(self, got):
        curves = [got.curve(f'{us} us a link: round trip {us * self.LINKS_PER_RTT} us', f'{us} us',
                            'share_of_link', colour=i) for i, us in enumerate(self.DELAYS_US)]
        curves += [got.curve(f'{us} us: requests allow', f'{us} us', 'share_asked', colour=i,
                             dashed=True, marks=False) for i, us in enumerate(self.DELAYS_US)
                   if us != self.DELAYS_US[0]]
        return [Plot('slow', [Panel('One connection over a leaf-spine fabric', 'link rate',
                                    'goodput / link rate', curves, log='xy', yrange='0.001:1.5',
                                    xrange='70:150000', xtics=self.RATES)], width=720)]

    def targets(self, got):
        return target_if('goodput / what 32 requests allow, 100 Gb/s, 500 us',
                         share(got.mean('500 us', 100000, 'share_of_link'),
                               got.mean('500 us', 100000, 'share_asked')), 0.95)


# ---- 9: a long fat path ----

class Long(Experiment):
    name = 'long'
    x = 'connections'
    CONNECTIONS = (1, 4, 16, 64)
    VARIANTS = {'push': {}, 'pull': {'load.push': 0, 'load.pull': 1}}
    WINDOW_PKTS = 1024      # host.window, the default

    def runs(self):
        for variant, sets in self.VARIANTS.items():
            for n in self.CONNECTIONS:
                for seed in SEEDS:
                    yield self.run(variant, n, {'load.connections': n, **sets}, seed=seed,
                                   cost=1 + n / 4)

    def derive(self, run, conf, figures, series):
        rtt = 2 * conf['link']['delay']
        payload = conf['host']['mtu'] - IP_OVERHEAD_MAX
        figures['share_of_link'] = figures['goodput_kbps'] * 1e3 / conf['link']['rate']
        figures['window_bps'] = run.x * self.WINDOW_PKTS * payload * 8 / rtt
        figures['share_of_window'] = figures['goodput_kbps'] * 1e3 / figures['window_bps']

    def table(self, got):
        rows = [[number(x), v, number(got.mean(v, x, 'goodput_kbps', 1e-6)),
                 number(got.mean(v, x, 'window_bps', 1e-9)),
                 number(got.mean(v, x, 'path_high_bytes', 2**-20)),
                 number(got.mean(v, x, 'completion_p99_ns', 1e-6)),
                 number(got.mean(v, x, 'switch_drops'), 6), number(got.mean(v, x, 'rto'), 6)]
                for x in got.xs() for v in self.VARIANTS]
        return table(['connections', 'requests', 'goodput, Gb/s', 'windows allow, Gb/s',
                      'beyond the budget at most, MiB', 'p99, ms', 'drops', 'timeouts'], rows)

    def plots(self, got):
        limit = Curve('windows', [(x, min(got.mean('push', x, 'window_bps', 1e-9), 100))
                                  for x in got.xs() if got.values('push', x, 'window_bps')],
                      colour=7, dashed=True, marks=False)
        curves = [limit, *(got.curve(v, v, 'goodput_kbps', 1e-6) for v in self.VARIANTS)]
        return [Plot('long', [Panel('100 Gb/s, 10 ms one way: goodput', 'connections',
                                    'goodput, Gb/s', curves, log='x', yrange='0:105',
                                    xrange='0.8:80')], width=720)]

    def targets(self, got):
        found = target_if('goodput of 64 connections, push, Gb/s',
                          got.mean('push', 64, 'goodput_kbps', 1e-6), 80)
        for v in self.VARIANTS:
            found += target_if(f'goodput of one connection, {v} / (window / round trip)',
                               got.mean(v, 1, 'share_of_window'), 0.9)
        return found


# ---- 10: senders at unequal distances ----

class Rtt(Experiment):
    name = 'rtt'
    x = 'longest round trip, us'
    VARIANTS = {'solicited': 'always', 'unsolicited': 'never'}
    STAR = {'topology.type': 'star', 'topology.hosts': 12, 'load.connections': 11,
            'link.delay': '500 ns', 'link.doubling': 'on'}
    PLACES = {84: {}, 1025: STAR}
    SHORTEST_US = {84: 4, 1025: 2}
    FAIR = {84: 0.9, 1025: 0.7}

    def runs(self):
        for x, sets in self.PLACES.items():
            for variant, solicit in self.VARIANTS.items():
                yield self.run(variant, x, {**sets, 'load.solicit': solicit}, cost=5)

    def derive(self, run, conf, figures, series):
        figures['share_of_link'] = figures['goodput_kbps'] * 1e3 / conf['link']['rate']

    def table(self, got):
        rows = [[number(self.SHORTEST_US[x]), number(x, 4), v,
                 number(got.mean(v, x, 'jain_ppm', 1e-6)),
                 number(got.mean(v, x, 'goodput_kbps', 1e-6)),
                 number(got.mean(v, x, 'queue_high_bytes', 1 / 1024), 4),
                 number(got.mean(v, x, 'grants_expired'), 6),
                 number(got.mean(v, x, 'switch_drops'), 6), number(got.mean(v, x, 'rto'), 6)]
                for x in got.xs() for v in self.VARIANTS]
        return table(['shortest round trip, us', 'longest, us', 'pushes', "Jain's index", 'Gb/s',
                      'queue at most, KiB', 'expired grants', 'drops', 'timeouts'], rows)

    def plots(self, got):
        return []

    def targets(self, got):
        found = []
        for x, least in self.FAIR.items():
            who = f'{self.SHORTEST_US[x]} to {x:,} us, solicited'
            found += target_if(f"Jain's index, {who}",
                               got.mean('solicited', x, 'jain_ppm', 1e-6), least)
            found += target_if(f'goodput / link rate, {who}',
                               got.mean('solicited', x, 'share_of_link'), 0.91)
        return found


# ---- and the simulator itself ----

class Speed(Experiment):
    name = 'speed'
    x = 'hosts'
    SCENARIOS = {
        'a full link (loss)': (2, 'loss', {}),
        '16 pairs, one trunk (cc)': (32, 'cc', {'topology.hosts': 32, 'load.connections': 16}),
        'one host to 100 (vwin)': (101, 'vwin', {'load.connections': 1000}),
    }

    def runs(self):
        for variant, (hosts, scenario, sets) in self.SCENARIOS.items():
            for seed in SEEDS:
                sets = {**sets, 'run.duration': '300 ms'}   # starting up should not count
                yield Run(self.name, variant, hosts, tuple(f'{k}={v}' for k, v in sets.items()),
                          (scenario + '.ini',), seed=seed, alone=True)

    def derive(self, run, conf, figures, series):
        figures['events_per_s'] = figures['events'] / figures['cpu_s']

    def points(self, got):
        for variant, (hosts, _, _) in self.SCENARIOS.items():
            if got.values(variant, hosts, 'events'):
                yield variant, hosts

    def table(self, got):
        rows = [[v, number(hosts, 4), number(got.median(v, hosts, 'events', 1e-6)),
                 number(got.median(v, hosts, 'cpu_s')),
                 number(got.median(v, hosts, 'events_per_s', 1e-6))]
                for v, hosts in self.points(got)]
        return table(['scenario', 'hosts', 'packet events, millions', 'CPU, s',
                      'millions per second'], rows)

    def plots(self, got):
        return []


def needed():
    """What targets are judged by."""
    found = set()
    for experiment in ALL.values():
        asked = Asked(list(experiment.runs()))
        experiment.targets(asked)
        found |= asked.asked
    return found


def slow_ones(got, runs):
    """Those that cost more than they say, by what does not depend on the machine."""
    return [f'{run.experiment}: {run.variant}, {run.x:g}: {events / 1e6:.1f} million packet events, '
            f'{run.cost:g} are declared'
            for run in runs for events in got[run.experiment].values(run.variant, run.x, 'events')
            if events > run.cost * 1e6]


ALL = {e.name: e for e in (Loss(), Small(), Reorder(), Incast(), Vwin(), Cc(), Path(), Hol(), Slow(),
                           Long(), Rtt(), Speed())}
