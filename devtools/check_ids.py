#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the IDs of doc/spec.md: each has one section, code and a test name it in a comment, and no
other ID is used. The files and functions that a section names exist, and so do those that a model
mirrors. Manual pages and messages of programs contain no IDs.

usage: check_ids.py [--map]     --map prints, for each ID, the files that name it
"""

import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ['apps', 'config', 'debian', 'devtools', 'doc', 'drivers', 'examples', 'lib', 'test',
           'usertools', 'CONTRIBUTING.md', 'Makefile', 'README.md', 'meson.build', 'meson_options.txt']
CODE = 'lib/', 'apps/', 'drivers/'
TESTS = 'test/', 'devtools/check'
SPEC = 'doc/spec.md'
ID = re.compile(r'\b(?:RT|PCB|AFC|UDP|SYS|OFI|RDMA|RULE|ARCH)\\?-\d+\b')
SECTION = re.compile(rf'^### ({ID.pattern}) ', re.M)
COMMENT = re.compile(r'/\*.*?\*/', re.S)
PLACE = re.compile(r'`([\w./-]+\.\w+|debian/rules)(?::(\w+))?`')
MIRRORED = re.compile(r'(\w+\.[ch])\b|(\w+)\(\)')
BY_NUMBER = re.compile(r'\bdesign,?[\s*#]+(?:rule|section)s?\s+\d', re.I)


def read_tree():
    """Text of each file, by path relative to the root."""
    texts = {}
    for folder in FOLDERS:
        top = os.path.join(ROOT, folder)
        walk = os.walk(top) if os.path.isdir(top) else [(ROOT, [], [folder])]
        for path, _, names in walk:
            for name in names:
                if not name.endswith(('.pyc', '.svg')):
                    file = os.path.join(path, name)
                    with open(file, encoding='utf-8', errors='replace') as f:
                        texts[os.path.relpath(file, ROOT)] = f.read()
    return texts


def check_files(texts, known):
    """Errors within single files."""
    for path, text in texts.items():
        for found in sorted(set(ID.findall(text)) - known):
            yield f'{path}: {found} is not in {SPEC}'
        for found in BY_NUMBER.findall(text):
            yield f'{path}: "{found}" is no ID'
        if path.startswith('doc/man/') and ID.search(text):
            yield f'{path}: a manual page names {ID.search(text)[0]}'
        if path.startswith(CODE) and path.endswith(('.c', '.h')):
            for found in ID.findall(COMMENT.sub('', text)):
                yield f'{path}: {found} stands outside of a comment'


def check_places(texts, name, section):
    """Errors in the places that the section of an ID names: name(), or CASE(name) of a test."""
    for key in ('Code: ', 'Test: '):
        if f'\n{key}`' not in section and '\nNot built yet.' not in section:
            yield f'{SPEC}: {name} has no line "{key}"'
    _, _, places = section.partition('\nCode: ')
    for path, function in PLACE.findall(places):
        if path not in texts:
            yield f'{SPEC}: {name}: there is no {path}'
        elif function and not re.search(rf'\b{function}\(|^\w+\({function}\b', texts[path], re.M):
            yield f'{SPEC}: {name}: there is no {function}() in {path}'


def check_model(texts, path):
    """Errors in what a model says that it mirrors: `file.c: one(), two(); other.c: three()`."""
    head, _, model = texts[path].partition('*/\n\n#')
    _, _, head = head.partition('What mirrors what')
    lib = {os.path.basename(name): text for name, text in texts.items() if name.startswith('lib/')}
    file = None
    for name, function in MIRRORED.findall(head.partition('What is abstracted')[0]):
        file = name or file
        if file and file not in lib:
            yield f'{path}: there is no {file}'
        elif function and not re.search(rf'\b{function}\(', model + lib.get(file, '')):
            yield f'{path}: there is no {function}() in {file}'


def check(texts, sections, names):
    for path in texts:
        if path.endswith('.pml'):
            yield from check_model(texts, path)
    for name, section in sections:
        yield from check_places(texts, name, section)
        if '\nNot built yet.' not in section:
            for folders in (CODE, TESTS):
                if not any(path.startswith(folders) for path in names[name]):
                    yield f'{name}: not named in {" ".join(folders)}'
    count = collections.Counter(name for name, _ in sections)
    for name in (name for name, n in count.items() if n > 1):
        yield f'{SPEC}: {name} has {count[name]} sections'
    yield from check_files(texts, set(count))


def main():
    texts = read_tree()
    parts = SECTION.split(texts[SPEC])
    sections = list(zip(parts[1::2], parts[2::2]))
    names = collections.defaultdict(list)
    for path, text in sorted(texts.items()):
        for name in set(ID.findall(text)):
            names[name].append(path)
    if sys.argv[1:] == ['--map']:
        for name, section in sections:
            print(f'{name} {section.splitlines()[0]}')
            print(*(f'    {path}' for path in names[name] if path != SPEC), sep='\n')
        return 0
    wrong = list(check(texts, sections, names))
    print(*wrong, sep='\n', end='\n' if wrong else '')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
