# SPDX-License-Identifier: BSD-3-Clause
"""Strict parser for OpenMetrics text, version 1.0: any violation of the format is an error."""

import re

from e2e import check

NAME = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
VALUE = re.compile(r'[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|Inf)|NaN')
SUFFIXES = {'counter': {'_total', '_created'}, 'gauge': {''}, 'info': {'_info'},
            'histogram': {'_bucket', '_count', '_sum', '_created'},
            'gaugehistogram': {'_bucket', '_gcount', '_gsum'}}


class Sample:
    def __init__(self, suffix, labels, value):
        self.suffix, self.labels, self.value = suffix, labels, value


def without_le(sample):
    return tuple(sorted((k, v) for k, v in sample.labels.items() if k != 'le'))


class Family:
    def __init__(self, name):
        self.name, self.kind, self.unit, self.help, self.samples = name, None, None, None, []

    def sample(self, line):
        """Parse a sample of this family."""
        match = NAME.match(line)
        check(match and match[0].startswith(self.name), f'not of {self.name}: {line}')
        suffix, rest, labels = match[0][len(self.name):], line[match.end():], {}
        check(suffix in SUFFIXES[self.kind], f'{self.kind}: suffix of {line}')
        if rest.startswith('{'):
            rest = rest[1:]
            while not rest.startswith('}'):
                label = LABEL.match(rest)
                check(label and label[1] not in labels, f'labels: {line}')
                labels[label[1]] = label[2]
                rest = rest[label.end():]
                check(rest[:1] == '}' or rest[:1] == ',' and rest[1:2] != '}', f'labels: {line}')
                rest = rest.removeprefix(',')
            rest = rest[1:]
        check(rest.startswith(' ') and VALUE.fullmatch(rest[1:]), f'value: {line}')
        value = float(rest[1:])
        check(self.kind not in ('counter', 'histogram') or value >= 0, f'negative: {line}')
        check(all(s.labels != labels or s.suffix != suffix for s in self.samples),
              f'twice: {line}')
        self.samples.append(Sample(suffix, labels, value))

    def finish(self):
        check(self.kind is not None and self.help, f'{self.name}: TYPE or HELP is missing')
        if self.unit:
            check(self.name.endswith('_' + self.unit), f'{self.name}: unit {self.unit}')
        if 'histogram' not in self.kind:
            return
        for names in {without_le(s) for s in self.samples}:
            self.finish_histogram([s for s in self.samples if without_le(s) == names])

    def finish_histogram(self, samples):
        """Check one histogram: the samples whose labels other than the bucket's are equal."""
        buckets = [(float(s.labels['le']), s.value) for s in samples if s.suffix == '_bucket']
        check(buckets == sorted(buckets) and len(set(b for b, _ in buckets)) == len(buckets),
              f'{self.name}: order of buckets')
        check([n for _, n in buckets] == sorted(n for _, n in buckets), f'{self.name}: cumulative')
        check(buckets[-1][0] == float('inf'), f'{self.name}: +Inf')
        (count,) = (s.value for s in samples if s.suffix in ('_count', '_gcount'))
        check(count == buckets[-1][1], f'{self.name}: count')


def parse(text):
    """Parse a text. Returns the families by name."""
    families, current = {}, None
    check(text.endswith('\n# EOF\n') and text.count('# EOF') == 1, 'the end')
    for line in text.splitlines()[:-1]:
        check(line and line == line.strip(), f'blanks: {line!r}')
        if not line.startswith('#'):
            check(current is not None, f'before any family: {line}')
            current.sample(line)
            continue
        match = re.fullmatch(r'# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)', line)
        check(match, f'comment: {line}')
        what, name, rest = match.groups()
        if current is None or current.name != name:
            check(name not in families, f'{name} in two places')
            current = families[name] = Family(name)
        check(not current.samples, f'{name}: {what} after samples')
        attribute = {'TYPE': 'kind', 'UNIT': 'unit', 'HELP': 'help'}[what]
        check(getattr(current, attribute) is None, f'{name}: two {what}')
        check(what != 'TYPE' or rest in SUFFIXES, f'{name}: type {rest}')
        setattr(current, attribute, rest)
    taken = {}
    for family in families.values():
        family.finish()
        for suffix in SUFFIXES[family.kind]:
            check(family.name + suffix not in taken, f'{family.name + suffix} is ambiguous')
            taken[family.name + suffix] = family
    return families
