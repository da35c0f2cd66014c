# SPDX-License-Identifier: BSD-3-Clause
"""Records of figures as a table and as plots."""

import html
import re

WIDTH, BAR, GAP, LEFT, TOP = 640, 22, 12, 230, 44
COLOURS = ('#1f77b4', '#999999')
# The chart of the README: title, end of the axis, and its figures.
CHART = (
    ('times as fast as the kernel on the same machine (dashed line)', 6, (
        ('echo_udp', '64 B and an answer, UDP'),
        ('bulk_tcp', '1 MiB, TCP with offloads'),
        ('bulk9000_tcp', 'the same, MTU 9000'),
        ('sock_tcp_echo_memif', 'sockperf, TCP, carried'),
        ('sock_redis_memif', 'redis, carried'),
        ('sock_memcached_memif', 'memcached, carried'),
        ('sock_tcp_bulk_memif', 'iperf3, carried'))),
    ('times as fast as the worked link (dashed line); dots: eRPC, elsewhere, without ICRC', 1.4, (
        ('rpc_worked', '32 B requests and answers'),
        ('push_worked', '64 B pushes'),
        ('push_packed', '64 B pushes, packed'),
        ('bulk_worked', '1 MiB'),
        ('bulk9000_worked', '1 MiB, MTU 9000'))),
)
# Rows of performance.md; the others are in figures.md only.
FRONT = ('send_worked', 'echo_worked', 'echo_udp', 'rpc_worked', 'rpc_packed', 'push_worked',
         'push_packed', 'bulk_worked', 'bulk_tcp', 'bulk9000_worked', 'connect', 'memory',
         'sock_tcp_echo_memif', 'sock_redis_memif')
# Rows of the README, and what they say there.
NUMBERS = {
    'echo_udp': '64 B message and an answer, p50; kernel: UDP',
    'push_udp': '64 B messages on one connection; kernel: UDP',
    'bulk_tcp': '1 MiB messages, MTU 1500; kernel: TCP with offloads',
    'sock_tcp_echo_memif': 'unmodified `sockperf`, 64 B and an answer, p50, TCP',
    'sock_redis_memif': 'unmodified `redis`, 16 clients, GET',
}
CHART_BAR, CHART_STEP, CHART_LEFT, CHART_RIGHT = 14, 20, 200, 60


def number(x):
    if x is None:
        return '–'
    return f'{x:.0f}' if abs(x) >= 100 else f'{x:.3g}'


def spread(value, samples):
    """Median and range over the rounds."""
    if value is None:
        return 'failed'
    if len(samples) < 2:
        return number(value)
    return f'{number(value)} ({number(min(samples))}–{number(max(samples))})'


def verdict(record):
    if record['ratio'] is None:
        return 'failed'
    if record['suspect']:
        return 'suspect'
    if not record['target']:
        return ''
    return 'met' if record['met'] else '**missed**'


def table(records):
    lines = ['| figure | unit | sanstack | baseline | | ratio | target | | eRPC, elsewhere |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for r in records:
        base, samples = r['baseline'], r['samples']
        title = r['title']
        against = spread(base['value'], samples.get('baseline', []))
        if 'modes' in base:
            against += f", modes {number(base['modes']['slow'])}, {number(base['modes']['fast'])}"
        if r.get('dropped') is not None:
            title += f" ({r['dropped']:.3%} counted)"
        lines.append(f"| {title} | {r['unit']} | {spread(r['value'], samples.get('ours', []))} | "
                     f"{base['name']} | {against} | {number(r['ratio'])} | "
                     f"{(r['target'] or '').replace('>=', '≥').replace('<=', '≤')} | "
                     f'{verdict(r)} | {r["elsewhere"]} |')
    return lines


def numbers(records):
    """The README's table."""
    by_name = {r['name']: r for r in records}
    return ['| what | | sanstack | kernel |', '| --- | --- | ---: | ---: |',
            *(f"| {text} | {r['unit']} | {number(r['value'])} | {number(r['baseline']['value'])} |"
              for name, text in NUMBERS.items() if (r := by_name.get(name)))]


def better(record):
    """Factor by which it is better than the baseline; for times the inverse ratio."""
    return 1 / record['ratio'] if record['unit'] in ('us', 'ms') else record['ratio']


def chart_row(record, title, y, scale):
    x = CHART_LEFT + better(record) * scale
    out = [f'<text x="{CHART_LEFT - 8}" y="{y + 11}" text-anchor="end">{html.escape(title)}</text>',
           f'<rect x="{CHART_LEFT}" y="{y}" width="{x - CHART_LEFT:.1f}" height="{CHART_BAR}" '
           f'fill="{COLOURS[0]}" fill-opacity="0.6"/>',
           f'<text x="{x + 6:.1f}" y="{y + 11}">{better(record):.2f}</text>']
    if elsewhere := re.search(r'[\d.]+', record['elsewhere']):
        out.append(f'<circle cx="{CHART_LEFT + float(elsewhere.group()) * scale:.1f}" '
                   f'cy="{y + CHART_BAR // 2}" r="4" fill="#d62728"/>')
    return out


def chart_axis(most, top, y, scale):
    """The axis below the bars, and the dashed line at the baseline."""
    step = 1 if most > 2 else 0.2
    out = [f'<line x1="{CHART_LEFT}" y1="{y}" x2="{CHART_LEFT + most * scale:.1f}" y2="{y}" '
           'stroke="#333333"/>',
           f'<line x1="{CHART_LEFT + scale:.1f}" y1="{top}" x2="{CHART_LEFT + scale:.1f}" y2="{y}" '
           'stroke="#333333" stroke-dasharray="4 3"/>']
    for i in range(round(most / step) + 1):
        x = CHART_LEFT + i * step * scale
        out += [f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 4}" stroke="#333333"/>',
                f'<text x="{x:.1f}" y="{y + 17}" text-anchor="middle" font-size="10">{i * step:g} x'
                '</text>']
    return out


def chart(records, footer):
    """The README's chart: a bar for each figure of CHART. Returns SVG."""
    by_name = {r['name']: r for r in records if r['ratio']}
    out, y = [], 10
    for title, most, figures in CHART:
        scale = (WIDTH - CHART_LEFT - CHART_RIGHT) / most
        top = y + 18
        out.append(f'<text x="10" y="{y + 12}" font-weight="bold">{html.escape(title)}</text>')
        y = top
        for name, text in figures:
            if name in by_name:
                out += chart_row(by_name[name], text, y, scale)
                y += CHART_STEP
        out += chart_axis(most, top, y, scale)
        y += 30
    out.append(f'<text x="10" y="{y + 4}" font-size="10">{html.escape(footer)}</text>')
    y += 14
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
                      'font-family="sans-serif" font-size="12">',
                      f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>', *out, '</svg>\n'])


def plot(record):
    """Two bars with a dot for each round, and a line at the target. Returns SVG."""
    rows = [('sanstack', record['value'], record['samples']['ours']),
            (record['baseline']['name'], record['baseline']['value'],
             record['samples']['baseline'])]
    goal = None
    if record['target']:
        goal = float(record['target'].split()[1]) * record['baseline']['value']
    top = max([goal or 0] + [max([value, *samples]) for _, value, samples in rows]) or 1
    scale = (WIDTH - LEFT - 90) / top
    height = TOP + len(rows) * (BAR + GAP) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           f'<text x="10" y="20" font-size="13">{html.escape(record["title"])}, '
           f'{html.escape(record["unit"])}</text>']
    for i, (name, value, samples) in enumerate(rows):
        y = TOP + i * (BAR + GAP)
        out += [f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{html.escape(name)}</text>',
                f'<rect x="{LEFT}" y="{y}" width="{value * scale:.1f}" height="{BAR}" '
                f'fill="{COLOURS[i]}" fill-opacity="0.6"/>',
                f'<text x="{LEFT + max([value, *samples]) * scale + 8:.1f}" y="{y + 15}">'
                f'{number(value)}</text>']
        out += [f'<circle cx="{LEFT + s * scale:.1f}" cy="{y + BAR / 2:.0f}" r="3" '
                f'fill="{COLOURS[i]}" stroke="#333333"/>' for s in samples]
    low = TOP + len(rows) * (BAR + GAP)
    if goal:
        x = LEFT + goal * scale
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{low}" stroke="#d62728" '
                   'stroke-dasharray="4 3"/>')
    wanted = f', wanted {record["target"]}' if record['target'] else ''
    out += [f'<text x="{LEFT}" y="{low + 16}">ratio {number(record["ratio"])}'
            f'{html.escape(wanted)}</text>', '</svg>']
    return '\n'.join(out) + '\n'
