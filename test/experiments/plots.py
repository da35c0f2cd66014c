# SPDX-License-Identifier: BSD-3-Clause
"""Plots of the experiments: data, a gnuplot script, an SVG. Equal data give equal files."""

import dataclasses
import subprocess

WIDTH, HEIGHT = 480, 400    # of a panel
COLOURS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#8c564b', '#17becf', '#7f7f7f']


class PlotError(Exception):
    """gnuplot did not make a plot, in one line."""


@dataclasses.dataclass
class Curve:
    """Points without a value, and on a logarithmic axis those not above zero, are left out."""
    title: str
    points: list            # of (x, y)
    colour: int = None      # default: the next one
    dashed: bool = False
    marks: bool = True
    lines: bool = True


@dataclasses.dataclass
class Panel:
    title: str
    x: str                  # what the axes show, with units
    y: str
    curves: list
    log: str = ''           # 'x', 'y', 'xy'
    xrange: str = ''
    yrange: str = ''
    key: str = 'bottom left'
    xtics: dict = None      # {label: x} instead of gnuplot's own
    ytics: tuple = ()
    xformat: str = '%g'


@dataclasses.dataclass
class Plot:
    name: str               # of the file
    panels: list
    width: int = WIDTH


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def visible(panel, curve):
    return [(x, y) for x, y in curve.points
            if y is not None and not ('y' in panel.log and y <= 0)
            and not ('x' in panel.log and x <= 0)]


def style(curve, index):
    colour = COLOURS[(index if curve.colour is None else curve.colour) % len(COLOURS)]
    kind = {(True, True): 'linespoints', (True, False): 'lines'}.get(
        (curve.lines, curve.marks), 'points')
    words = [f'with {kind} lc rgb {quoted(colour)}']
    if curve.lines:
        words.append(f'lw 1.5 dt {2 if curve.dashed else 1}')
    if curve.marks:
        words.append(f'pt {4 + 2 * (index % 5)} ps {0.6 if curve.lines else 1}')
    return ' '.join(words)


def panel_script(panel, data, blocks):
    """The commands of a panel; adds the points of its curves to *blocks* of the data file."""
    lines = [f'set title {quoted(panel.title)}',
             f'set xlabel {quoted(panel.x)}', f'set ylabel {quoted(panel.y)}',
             'unset logscale', 'set autoscale', f'set format x {quoted(panel.xformat)}',
             f'set key {panel.key}', 'set xtics auto', 'set ytics auto']
    if panel.log:
        lines.append(f'set logscale {panel.log}')
    if panel.xrange:
        lines.append(f'set xrange [{panel.xrange}]')
    if panel.yrange:
        lines.append(f'set yrange [{panel.yrange}]')
    if panel.xtics:
        lines.append('set xtics ('
                     + ', '.join(f'{quoted(k)} {v:g}' for k, v in panel.xtics.items()) + ')')
    if panel.ytics:
        lines.append('set ytics (' + ', '.join(f'{v:g}' for v in panel.ytics) + ')')
    drawn = []
    for i, curve in enumerate(panel.curves):
        points = visible(panel, curve)
        if points:
            drawn.append(f'{quoted(data)} index {len(blocks)} title {quoted(curve.title)} '
                         + style(curve, i))
            blocks.append(f'# {panel.title}: {curve.title}\n'
                          + ''.join(f'{x:.9g} {y:.9g}\n' for x, y in points))
    if not drawn:
        raise PlotError(f'{panel.title}: nothing to draw')
    lines.append('plot ' + ', \\\n     '.join(drawn))
    return lines


def draw(plot, folder):
    """NAME.dat, NAME.gp and NAME.svg in *folder*; the path of the latter."""
    count = len(plot.panels)
    identifier = plot.name.replace('-', '_')
    lines = [f"set terminal svg size {count * plot.width},{HEIGHT} font 'sans-serif,12' "
             f"background '#ffffff' name '{identifier}'",
             f'set output {quoted(plot.name + ".svg")}', 'set encoding utf8',
             "set grid lc rgb '#dddddd'", "set border lc rgb '#555555'",
             'set key spacing 1.1 samplen 2 opaque', f'set multiplot layout 1,{count}']
    blocks = []
    for panel in plot.panels:
        lines += panel_script(panel, plot.name + '.dat', blocks)
    lines.append('unset multiplot')
    (folder / f'{plot.name}.dat').write_text('\n\n'.join(blocks), encoding='utf-8')
    (folder / f'{plot.name}.gp').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    svg = folder / f'{plot.name}.svg'
    svg.unlink(missing_ok=True)
    try:
        run = subprocess.run(['gnuplot', f'{plot.name}.gp'], cwd=folder, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, check=False)
    except FileNotFoundError:
        raise PlotError('there is no gnuplot: make deps FOR=experiments') from None
    if run.returncode != 0 or not svg.exists() or svg.stat().st_size == 0:
        last = (run.stdout.strip().splitlines() or ['no message'])[-1]
        raise PlotError(f'gnuplot {plot.name}.gp: {last}')
    return svg
