#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the tables of doc/security.md: each row has a claim, who makes it, its proof, code and a
hostile test. The files and tests that it names exist. A claim that nothing holds back says "none" in
place of code, and has a test only if one shows what it leads to. (SYS-6)

usage: check_security.py
"""

import os
import re
import sys

import check_ids

DOC = 'doc/security.md'
HOME = 'apps/sanstack-daemon/'      # of files that are named without a folder
COLUMNS = ['claim', 'who makes it', 'proof', 'code', 'hostile test']
NAME = re.compile(r'`([^`]+)`')


def has_code(texts, name):
    """True if *name* is a file or folder of the tree, or a file of the daemon."""
    return any(path == name or path.startswith(name.rstrip('/') + '/') or
               (path.startswith(HOME) and path.endswith('/' + name)) for path in texts)


def has_test(texts, name):
    """True if *name* is a file of tests, with or without its ending, or one of their functions or cases."""
    tests = {path: text for path, text in texts.items() if path.startswith('test/')}
    files = {part for path in tests
             for part in (os.path.basename(path), os.path.splitext(os.path.basename(path))[0])}
    file, _, function = name.rpartition(':')
    if file:
        return any(os.path.basename(path) == file and re.search(rf'\b{function}\b', text)
                   for path, text in tests.items())
    return name in files or any(re.search(rf'^(?:def |\w+\()?{re.escape(name)}[(),]', text, re.M)
                                for text in tests.values())


def check_row(texts, cells):
    if len(cells) != len(COLUMNS):
        yield f'{len(cells)} cells instead of {len(COLUMNS)}'
        return
    *said, code, tests = cells
    yield from (f'no {column}' for column, cell in zip(COLUMNS, said) if not cell)
    for column, cell, has in (('code', code, has_code), ('hostile test', tests, has_test)):
        names = NAME.findall(cell)
        if not names and code != 'none':
            yield f'no {column}'
        yield from (f'there is no {column} {name}' for name in names if not has(texts, name))


def check(texts):
    is_row, nb = False, 0
    for number, line in enumerate(texts[DOC].splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', line.strip().strip('|'))]
        if not line.startswith('|'):
            is_row = False
        elif cells == COLUMNS:
            is_row = True
        elif is_row and set(line) - set('|-: '):
            nb += 1
            yield from (f'{DOC}:{number}: {wrong}' for wrong in check_row(texts, cells))
    if nb == 0:
        yield f'{DOC}: no table with the columns {" | ".join(COLUMNS)}'


def main():
    wrong = list(check(check_ids.read_tree()))
    print(*wrong, sep='\n', end='\n' if wrong else '')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
