# SPDX-License-Identifier: BSD-3-Clause
"""Commands in documents: blocks of Markdown and of plain text, EXAMPLES of manual pages."""

import os
import re
import textwrap

from e2e import SOURCE, Failed

FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r'(?:\A|(?<=\n\n))((?:    .*\n|\n(?=    ))+)')
EXAMPLES = re.compile(r'^\.SH EXAMPLES?\n(.*?)(?=^\.SH|\Z)', re.DOTALL | re.MULTILINE)
NO_FILL = re.compile(r'^\.nf\n(.*?)^\.fi$', re.DOTALL | re.MULTILINE)
ROFF = {r'\-': '-', r'\e': '\\', r'\(aq': "'", r'\&': ''}


def read(path):
    with open(os.path.join(SOURCE, path), encoding='utf-8') as f:
        return f.read()


def sh_blocks(path):
    """Blocks of Markdown that say that they are for a shell."""
    return [text for kind, text in FENCE.findall(read(path)) if kind == 'sh']


def blocks(path):
    """All blocks of a document, in its order."""
    text = read(path)
    if re.search(r'\.[1-8]$', path):
        found = ''.join(EXAMPLES.findall(text))
        for escape, char in ROFF.items():
            found = found.replace(escape, char)
        return [textwrap.dedent(block) for block in NO_FILL.findall(found)]
    at = [(m.start(), m[2]) for m in FENCE.finditer(text) if m[1] == 'sh']
    # a fenced block becomes blank, so that places stay the same
    rest = FENCE.sub(lambda m: '\n' * len(m[0]), text)
    at += [(m.start(), textwrap.dedent(m[1])) for m in INDENTED.finditer(rest)]
    return [block for _, block in sorted(at)]


class Documents:
    """The blocks of some documents, of which each is taken, or has a reason why it is not.

    *not_run*: {document: {line: reason}}. A block that is not taken is there by its first line; of
    one that is, lines that are there are left out.
    """

    def __init__(self, paths, not_run):
        self.not_run = not_run
        self.left = {path: blocks(path) for path in paths}
        self.all = {path: list(found) for path, found in self.left.items()}

    def take(self, path, word):
        """The block with *word* in it, as it is to be run."""
        found = [block for block in self.all[path] if word in block]
        if len(found) != 1:
            raise Failed(f'{path}: {len(found)} blocks have "{word}"')
        if found[0] in self.left[path]:
            self.left[path].remove(found[0])
        lines = [line for line in found[0].splitlines()
                 if line not in self.not_run.get(path, {})]
        return '\n'.join(lines) + '\n'

    @staticmethod
    def inline(path, command):
        """A command within a sentence of the document."""
        text = read(path).replace('\\-', '-')
        if command not in re.sub(r'\s+', ' ', text):
            raise Failed(f'{path} does not say "{command}"')
        return command

    def check(self):
        """Fails if a block is neither taken nor has a reason, or a reason has no line."""
        wrong = [f'{path}: not run, without a reason: {block}' for path, left in self.left.items()
                 for block in left if block.splitlines()[0] not in self.not_run.get(path, {})]
        for path, lines in self.not_run.items():
            has = {line for block in self.all[path] for line in block.splitlines()}
            wrong += [f'{path}: there is no line: {line}' for line in lines if line not in has]
        if wrong:
            raise Failed('\n'.join(wrong))
