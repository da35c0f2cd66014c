#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The sequence diagrams of doc/stream.md, generated from captures of two cores
(test/e2e/stream_story.c) with our dissector, so they always show what the stack does. The output
stands between "<!-- story NAME -->" and "<!-- end -->".

usage: stream_diagrams.py BUILD [--write]     without --write: status 1 if the document differs
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOC = os.path.join(ROOT, 'doc', 'stream.md')
LUA = os.path.join(ROOT, 'usertools', 'sanstack.lua')
FIELDS = ['frame.interface_id', 'frame.comment', 'san.length', '_ws.col.Info']
STORY = re.compile(r'(<!-- story (\S+) -->\n)(.*?)(<!-- end -->)', re.DOTALL)
COUNTS = re.compile(r'\b(seq|lrsq|pr)=\d+ ?')


def frames(path):
    """(side, preceding calls of the programs, length of the transaction, info) of each packet."""
    command = ['tshark', '-X', f'lua_script:{LUA}', '-r', path, '-T', 'fields', '-E', 'separator=\t']
    for field in FIELDS:
        command += ['-e', field]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        yield line.split('\t')


def arrows(side, length, info):
    """The meaning of a packet for the session; empty if only the transport uses it."""
    a, b = ('A', 'B') if side == '0' else ('B', 'A')
    op, *messages = info.split(' | ')
    if messages:
        return [f'{a}->>{b}: {COUNTS.sub("", message)}' for message in messages]
    if op.startswith('PUSH_SLCTD_REQ '):
        return [f'{a}-->>{b}: writes {length} bytes']
    if op.startswith('PUSH_UNSLCTD_DATA ') and ' send ' not in op and ' Offset=0 ' in op:
        return [f'{a}-->>{b}: writes {length} bytes']
    if op.startswith('PULL_REQ '):
        return [f'{b}-->>{a}: reads {length} bytes']
    return []


def diagram(path):
    lines = []
    for side, comment, length, info in frames(path):
        for what in filter(None, comment.split('; ')):
            if what.startswith('after '):
                lines = [f'Note over A,B: {what}']
            else:
                lines.append(f'Note over {what}')
        lines += arrows(side, length, info)
    return ['sequenceDiagram', '    participant A', '    participant B',
            *(f'    {line}' for line in folded(lines))]


def folded(lines):
    """Fold repeated lines into one."""
    for line, same in itertools.groupby(lines):
        n = len(list(same))
        yield line if n == 1 else f'{line} ({n} times)'


def draw(build, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'story.pcapng')
        subprocess.run([os.path.join(build, 'test/e2e/stream_story'), name, path], check=True,
                       stdout=subprocess.DEVNULL)
        return '\n'.join(['```mermaid', *diagram(path), '```', ''])


def main():
    build, write = sys.argv[1], sys.argv[2:] == ['--write']
    with open(DOC, encoding='utf-8') as f:
        old = f.read()
    told = [m.group(2) for m in STORY.finditer(old)]
    known = subprocess.run([os.path.join(build, 'test/e2e/stream_story'), '--list'], check=True,
                           capture_output=True, text=True).stdout.split()
    for name in sorted(set(known) ^ set(told)):
        print(f'{DOC}: story {name} stands only {"there" if name in told else "in stream_story"}')
        return 1
    new = STORY.sub(lambda m: m.group(1) + draw(build, m.group(2)) + m.group(4), old)
    if new == old:
        return 0
    if not write:
        print(f'{DOC} has drifted: devtools/stream_diagrams.py BUILD --write')
        return 1
    with open(DOC, 'w', encoding='utf-8') as f:
        f.write(new)
    return 0


if __name__ == '__main__':
    sys.exit(main())
