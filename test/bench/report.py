# SPDX-License-Identifier: BSD-3-Clause
"""Records of figures as a table and as plots."""

import html

WIDTH, BAR, GAP, LEFT, TOP = 640, 22, 12, 230, 44
COLOURS = ('#1f77b4', '#999999')
DOTS = ('#d62728', '#ffffff')     # eRPC as shipped, and with its mempool cache
# The chart of the README: title, what is 1 on the axis, end of the axis, and its figures.
CHART = (
    ('Against the kernel on the same machine', 'the kernel', 6, (
        ('echo_udp', '64 B and an answer, UDP'),
        ('bulk_tcp', '1 MiB, TCP with offloads'),
        ('bulk9000_tcp', 'the same, MTU 9000'),
        ('sock_tcp_echo_memif', 'sockperf, TCP, carried'),
        ('sock_redis_memif', 'redis, carried'),
        ('sock_memcached_memif', 'memcached, carried'),
        ('sock_tcp_bulk_memif', 'iperf3, carried'))),
    ('Against the worked link, which does for a packet what any transport must', 'the worked link',
     1.4, (
        ('rpc_worked', '32 B requests and answers'),
        ('push_worked', '64 B pushes'),
        ('push_packed', '64 B pushes, packed'),
        ('bulk_worked', '1 MiB'),
        ('bulk9000_worked', '1 MiB, MTU 9000'))),
)
CHARTED = [name for *_, figures in CHART for name, _ in figures]
# Rows of performance.md; the others are in figures.md only.
FRONT = ('send_worked', 'echo_worked', 'rpc_worked', 'instructions_rpc', 'whole_end_both',
         'push_worked', 'push_packed', 'one_each', 'bulk_worked', 'bulk_tcp', 'memory',
         'sock_tcp_echo_memif')
# Cases of profile_core.py in the table of instructions.
OPERATIONS = {
    'push': 'a push of 64 bytes, 16 posted together',
    'packed': 'the same, packed',
    'one each': 'a push of 64 bytes, one on each of 1,000 connections in turn',
    'send': 'a send of 64 bytes, 16 posted together',
    'rpc': 'a request of 32 bytes and its answer, 16 posted together',
    'rpc packed': 'the same, packed',
    'request': 'a request of 64 bytes and its answer, one at a time',
    'request slow': 'the same, where a round of each end takes 1,500 ns, not 500',
    'pull': 'a pull of 64 bytes, 16 posted together',
    'bulk': 'a push of 1 MiB in packets of 1,408 bytes, solicited',
}
# Rows of the README, and what they say there.
NUMBERS = {
    'echo_udp': '64 B message and an answer, p50; kernel: UDP',
    'push_udp': '64 B messages on one connection; kernel: UDP',
    'bulk_tcp': '1 MiB messages, MTU 1500; kernel: TCP with offloads',
    'sock_tcp_echo_memif': 'unmodified `sockperf`, 64 B and an answer, p50, TCP',
    'sock_redis_memif': 'unmodified `redis`, 16 clients, GET',
}
CHART_BAR, CHART_STEP, CHART_LEFT, CHART_RIGHT = 14, 20, 200, 110


def number(x):
    if x is None:
        return '–'
    return f'{x:.0f}' if abs(x) >= 100 else f'{x:.3g}'


def spread(value, samples):
    """Median and range over the rounds."""
    if value is None:
        return '–'
    if len(samples) < 2:
        return number(value)
    return f'{number(value)} ({number(min(samples))}–{number(max(samples))})'


def verdict(record):
    if 'measured' in record and record['measured'] is None:
        return 'not measured'
    if record['ratio'] is None:
        return 'failed'
    if record['suspect']:
        return 'suspect'
    if not record['target']:
        return ''
    return 'met' if record['met'] else '**missed**'


def elsewhere(record):
    return ' as shipped, '.join(f'{x:.2f}' for x in record['elsewhere']) + (
        ' with its mempool cache' if len(record['elsewhere']) > 1 else '')


def table(records):
    lines = ['| figure | unit | sanstack | baseline | | ratio | target | | eRPC, elsewhere | '
             'measured at |', '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |']
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
                     f'{verdict(r)} | {elsewhere(r)} | {r.get("measured") or ""} |')
    return lines


def counted(rows):
    """Table of the instructions and packets of each operation."""
    return ['| operation | client, instructions | server, instructions | both | packets | '
            'sent and received by express |', '| --- | ---: | ---: | ---: | ---: | ---: |',
            *(f"| {text} | {r['ask']:,.0f} | {r['serve']:,.0f} | {r['both']:,.0f} | "
              f"{r['packets']:.3f} | {r['express_tx']:.0f} %, {r['express_rx']:.0f} % |"
              for case, text in OPERATIONS.items() if (r := rows.get(case)))]


def numbers(records):
    """The README's table."""
    by_name = {r['name']: r for r in records}
    return ['| what | unit | sanstack | kernel |', '| --- | --- | ---: | ---: |',
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
           f'<text x="{WIDTH - 8}" y="{y + 11}" text-anchor="end">{better(record):.2f}: '
           f'{number(record["value"])} {record["unit"]}</text>']
    for ratio, fill in zip(record['elsewhere'], DOTS):
        out.append(dot(CHART_LEFT + ratio * scale, y + CHART_BAR // 2, fill))
    return out


def dot(x, y, fill):
    return f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{fill}" stroke="{DOTS[0]}"/>'


def chart_axis(most, one, top, y, scale):
    """The axis below the bars, and the dashed line at the baseline, which is called *one*."""
    step = 1 if most > 2 else 0.2
    out = [f'<line x1="{CHART_LEFT}" y1="{y}" x2="{CHART_LEFT + most * scale:.1f}" y2="{y}" '
           'stroke="#333333"/>',
           f'<line x1="{CHART_LEFT + scale:.1f}" y1="{top}" x2="{CHART_LEFT + scale:.1f}" y2="{y}" '
           'stroke="#333333" stroke-dasharray="4 3"/>',
           f'<text x="{CHART_LEFT + scale:.1f}" y="{top - 4}" text-anchor="middle" font-size="10">'
           f'{one} = 1</text>',
           f'<text x="{CHART_LEFT - 8}" y="{y + 17}" text-anchor="end" font-size="10">'
           f'times as fast as {one}</text>']
    for i in range(round(most / step) + 1):
        x = CHART_LEFT + i * step * scale
        out += [f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 4}" stroke="#333333"/>',
                f'<text x="{x:.1f}" y="{y + 17}" text-anchor="middle" font-size="10">{i * step:g}'
                '</text>']
    return out


def chart(records, footer):
    """The README's chart: a bar for each figure of CHART, whose text says how many times as fast
    it is as the baseline, and its value; dots for eRPC. Returns SVG."""
    by_name = {r['name']: r for r in records if r['ratio']}
    out, y = [], 10
    for title, one, most, figures in CHART:
        scale = (WIDTH - CHART_LEFT - CHART_RIGHT) / most
        top = y + 34
        out.append(f'<text x="10" y="{y + 12}" font-weight="bold">{html.escape(title)}</text>')
        y = top
        for name, text in figures:
            if name in by_name:
                out += chart_row(by_name[name], text, y, scale)
                y += CHART_STEP
        out += chart_axis(most, one, top, y, scale)
        y += 30
    out += [dot(14, y, DOTS[0]), f'<text x="24" y="{y + 4}" font-size="10">eRPC elsewhere, without '
            'ICRC; requests and answers count, as ours do</text>',
            dot(390, y, DOTS[1]), f'<text x="400" y="{y + 4}" font-size="10">with its mempool '
            'cache</text>',
            f'<text x="10" y="{y + 20}" font-size="10">{html.escape(footer)}</text>']
    y += 30
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
