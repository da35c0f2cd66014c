#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is made from the program's own tables of counters, gauges, reasons and states.

usage: counters.py man SOURCE... OUTPUT        the page sanstack-counters(7)
       counters.py grafana SOURCE... OUTPUT    the dashboard

A table is a macro or an array behind a comment of one line, its title. A row has a name, the kind
if it is no counter, the unit, and help; a row of a reason or state has its constant, name and help.
"""

import collections
import json
import re
import sys

KINDS = {'COUNTER': 'counter', 'GAUGE': 'gauge', 'MARK': 'gauge', 'INFO': 'info',
         'HISTOGRAM': 'histogram', 'GAUGEHISTOGRAM': 'gaugehistogram'}
TABLE = re.compile(r'^/\*\* ([^*\n]+) \*/\n(#define \w+\(X\)(?:.*\\\n)*.*|'
                   r'static const struct san_view_field \w+\[\] = \{\n(?:\t.*\n)*\};)', re.M)
ROW = re.compile(r'\b(?:X|FIELD|STAT|SAN_VIEW_NOTE)\(([^"()]*)((?:"[^"]*"(?:,\s*)?)+)')
# Tables whose rows are families of OpenMetrics, and how their names begin.
FAMILIES = {'Engine of an lcore': '', 'Packet delivery': '', 'Transactions': '',
            'Placement of data': '', 'States, and counters of faults': '', 'Reorder table': '',
            'Metrics with labels of their own': '', 'Lcore': 'lcore_', 'Application': 'app_'}

Row = collections.namedtuple('Row', 'name kind unit help')


def tables(paths):
    """Rows by title."""
    found = {}
    for path in paths:
        with open(path, encoding='utf-8') as f:
            for title, body in TABLE.findall(f.read()):
                found[title] = [row_of(*match) for match in ROW.findall(body)]
    return found


def row_of(words, strings):
    words = [word.strip() for word in words.split(',') if word.strip()]
    strings = re.findall('"([^"]*)"', strings)
    if words[0].isupper():              # a reason or a state
        return Row([*words, *strings][1], '', '', strings[-1])
    kind = next((KINDS[word] for word in words if word in KINDS), 'counter')
    unit, text = strings
    return Row(words[0], kind, unit, text)


# ---- the manual page ----

HEAD = r"""'\" t
.\" SPDX-License-Identifier: BSD-3-Clause
.TH SANSTACK\-COUNTERS 7 "" "sanstack" "sanstack"
.SH NAME
sanstack\-counters \- counters, gauges, drop reasons and states of sanstack
.SH DESCRIPTION
.BR sanctl (1),
DPDK's telemetry (see
.BR rtsan\-dpdk (7)),
.BR sanbench (1)
and
.BR sansim (1)
use these names. A counter only grows, from zero when the engine starts; a gauge is a state; an info is a name. A port has the
sums of its lcores, and of high\-water marks the highest.
.PP
In
.B sanctl metrics
a counter
.I NAME
is sanstack_\fINAME\fP_total, a gauge sanstack_\fINAME\fP, both with the labels port and lcore. Those of the table
Lcore begin with sanstack_lcore_, those of the table Application with sanstack_app_. What is measured in ns is in seconds there:
_ns becomes _seconds. Drop reasons are labels of sanstack_drops_total, and reasons of waiting connections of sanstack_conns_held.
Values of single ports, connections, streams and sockets are not in metrics.
"""
TAIL = r""".SH SEE ALSO
.BR rtsan\-dpdk (7),
.BR sanbench (1),
.BR sanctl (1),
.BR sansim (1),
.BR sanstack\-daemon (8)
"""


def roff(text):
    return text.replace('\\', '\\e').replace('-', '\\-')


def man(found):
    lines = [HEAD]
    for title, rows in found.items():
        is_measured = any(row.kind for row in rows)
        lines.append(f'.SH {roff(title).upper()}\n.na\n.TS\n' +
                     ('lB l l lx.\n' if is_measured else 'lB lx.\n'))
        for row in rows:
            middle = f'\t{row.kind}\t{row.unit or chr(92) + "&"}' if is_measured else ''
            lines.append(f'{roff(row.name)}{roff(middle)}\tT{{\n{roff(row.help)}\nT}}\n')
        lines.append('.TE\n.ad\n')
    return ''.join([*lines, TAIL])


# ---- the dashboard ----

# Title, what to know beyond the help of the names, and queries with legends. {NAME} is a family.
RATE = 'sum(rate({%s}[$__rate_interval]))'
PORT_RATE = 'sum by (port) (rate({%s}[$__rate_interval]))'
PANELS = [
    ('How busy each lcore is', 'Above 0.9 an lcore has no reserve.',
     [('rate({lcore_busy_ns}[$__rate_interval]) / rate({lcore_time_ns}[$__rate_interval])',
       'port {{port}}, lcore {{lcore}}')]),
    ('Packets', '', [(PORT_RATE % 'rx_pkts', 'received, port {{port}}'),
                     (PORT_RATE % 'tx_pkts', 'sent, port {{port}}')]),
    ('Bytes placed', '', [(PORT_RATE % 'placed_bytes', 'port {{port}}')]),
    ('Applications: bytes sent', '',
     [('sum by (name) (rate({app_tx_bytes}[$__rate_interval]))', '{{name}}')]),
    ('Packets sent again', 'Timeouts are the last resort: a rate above zero for long is a bad path '
     'or a peer that is not scheduled.',
     [(RATE % 'fast_rtx', 'fast retransmit'), (RATE % 'tlp', 'tail-loss probe'),
      (RATE % 'rto', 'timeout'), (RATE % 'rtx', 'all')]),
    ('Packets dropped, by reason', 'sanstack-counters(7) explains the reasons.',
     [('sum by (reason) (rate({drops}[$__rate_interval])) > 0', '{{reason}}')]),
    ('Connections and streams', '',
     [('sum({conns})', 'connections'), ('sum({streams})', 'streams'),
      ('sum({orphans})', 'orphaned streams')]),
    ('Round-trip time', '',
     [(f'histogram_quantile({q}, sum by (le) ({{rtt_ns}}))', legend)
      for q, legend in ((0.5, 'median of the connections'), (0.99, '99 %'))]),
    ('Time of a round of an lcore', '',
     [('histogram_quantile(0.99, sum by (le) (rate({round_ns}[$__rate_interval])))', '99 %')]),
    ('Incast budget', '', [('sum by (port) ({budget_bytes})', 'budget, port {{port}}'),
                           ('max by (port) ({budget_high_bytes})', 'most granted, port {{port}}')]),
    ('Refusals', 'A peer that guesses tries wrong keys.',
     [(RATE % 'refused', 'refused'), (RATE % 'key_errors', 'wrong keys'),
      (RATE % 'app_faults', 'faults of applications')]),
    ('Sleeps and wake-ups', '', [(RATE % 'sleeps', 'sleeps of lcores'),
                                 (RATE % 'wakes', 'wake-ups of programs')]),
]
# Grafana's name of a unit, and of its rate.
UNITS = {'ns': ('s', 'percentunit'), 'bytes': ('bytes', 'Bps'), 'packets': ('short', 'pps')}
DASHBOARD = {
    'title': 'sanstack', 'uid': 'sanstack', 'tags': ['sanstack'], 'timezone': 'browser',
    'schemaVersion': 37, 'version': 1, 'refresh': '10s', 'time': {'from': 'now-1h', 'to': 'now'},
    'templating': {'list': [{'name': 'datasource', 'type': 'datasource', 'query': 'prometheus',
                             'label': 'Data source'}]},
}


def sample_of(name, row):
    suffix = {'counter': '_total', 'histogram': '_bucket', 'gaugehistogram': '_bucket'}
    return 'sanstack_' + re.sub('_ns$', '_seconds', name) + suffix.get(row.kind, '')


def panel(number, title, note, queries, families):
    names = [name for query, _ in queries for name in re.findall(r'\{(\w+)\}', query)]
    is_rate = queries[0][0].startswith(('rate', 'sum')) and 'rate(' in queries[0][0]
    unit = UNITS.get(families[names[0]].unit, ('short', 'ops'))[is_rate]
    helps = [f'{name}: {families[name].help}' for name in dict.fromkeys(names)]
    return {
        'id': number + 1, 'type': 'timeseries', 'title': title,
        'description': ' '.join([*helps, note]).strip(),
        'datasource': {'type': 'prometheus', 'uid': '${datasource}'},
        'gridPos': {'h': 8, 'w': 12, 'x': number % 2 * 12, 'y': number // 2 * 8},
        'fieldConfig': {'defaults': {'unit': unit, 'min': 0}, 'overrides': []},
        'targets': [{'refId': chr(ord('A') + i), 'legendFormat': legend,
                     'expr': re.sub(r'\{(\w+)\}',
                                    lambda m: sample_of(m[1], families[m[1]]), query)}
                    for i, (query, legend) in enumerate(queries)],
    }


def grafana(found):
    families = {prefix + row.name: row for title, prefix in FAMILIES.items()
                for row in found[title]}
    panels = [panel(i, *one, families) for i, one in enumerate(PANELS)]
    return json.dumps({**DASHBOARD, 'panels': panels}, indent=2) + '\n'


def main(what, *paths):
    text = {'man': man, 'grafana': grafana}[what](tables(paths[:-1]))
    with open(paths[-1], 'w', encoding='utf-8') as f:
        f.write(text)


if __name__ == '__main__':
    main(*sys.argv[1:])
