#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check that calls run one way in each folder whose meson.build says so by the comment MARK: a file
calls only functions of those above it in the list of sources below the comment.
"""

import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARK = '# each file calls only those above it'
LISTED = re.compile(r"\s*'(\w+\.c)',?")
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DEFINED = re.compile(r'^(?!static )\w[^\n;]*\n(\w+)\([^;{]*\)\n\{', re.MULTILINE)
CALLED = re.compile(r'\b(\w+)\(')


def sources(path):
    """The files that stand below the comment in *path*."""
    names = []
    with open(path, encoding='utf-8') as f:
        _, found, below = f.read().partition(MARK)
    for line in below.split('\n')[1:]:
        listed = LISTED.fullmatch(line)
        if listed is None:
            break
        names.append(listed.group(1))
    if found and not names:
        sys.exit(f'{path}: no file stands below the comment')
    return names


def upward_calls(folder, names):
    texts = []
    for name in names:
        with open(os.path.join(folder, name), encoding='utf-8') as f:
            texts.append(COMMENT_OR_TEXT.sub('', f.read()))
    place = {function: i for i, text in enumerate(texts) for function in DEFINED.findall(text)}
    for i, text in enumerate(texts):
        for function in sorted(set(CALLED.findall(text))):
            if place.get(function, i) > i:
                yield names[i], function, names[place[function]]


def main():
    wrong = False
    for folder, _, files in os.walk(SOURCE):
        names = sources(os.path.join(folder, 'meson.build')) if 'meson.build' in files else []
        for caller, function, callee in upward_calls(folder, names):
            print(f'{os.path.relpath(folder, SOURCE)}/{caller} calls {function}() of {callee}, '
                  'which stands below it in meson.build')
            wrong = True
    return wrong


if __name__ == '__main__':
    sys.exit(main())
