# SPDX-License-Identifier: BSD-3-Clause
"""Records of figures as a table and as plots."""

import html

WIDTH, BAR, GAP, LEFT, TOP = 640, 22, 12, 230, 44
COLOURS = ('#1f77b4', '#999999')


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


def plot(record):
    """Two bars with a dot for each round, and a line where the target is. SVG text."""
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
