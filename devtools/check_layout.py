#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the layouts that two daemons of a live restart compare (layout.py): what changes them, and
what does not, in small sources and in those of the daemon. (SYS-8)

usage: check_layout.py BUILD COMPILER...
"""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import layout  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMENT = re.compile(r'/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)
STRUCT = re.compile(r'^struct (\w+) \{\n(.*?)^\}', re.M | re.S)
KEPT_AS_INTEGER = re.compile(r'^\t+u?int\w* .*?/\*[^\n]*?\benum (\w+)', re.M)

SMALL = {
    'parts.h': '''
#pragma once
#define SLOTS 4
#define LONGEST 9
typedef unsigned int be32;
enum state { FREE = 0, OPEN = 1 };
enum mode { FAST = 0, SLOW = 1 };
struct inner { int x; };
struct peer { unsigned char ip[16]; };
struct window { unsigned char *bytes; };
struct process { int fd; };
struct other { int y; };
''',
    'conn.h': '''
#pragma once
#include "parts.h"
/** A connection. */
struct conn {
	unsigned int id;
	be32 key;
	unsigned char flags:3;
	unsigned char more:5;
	enum state state;
	unsigned char mode; /* enum mode */
	struct inner inner;
	struct peer *peer;
	unsigned int ring[SLOTS];
	struct process *process;
	int (*hook)(struct other *);
	struct rte_thing *thing;
	union {
		long a;
		char b[8];
	};
	struct {
		struct window *first;
	} windows;
	unsigned int later[2];
	unsigned short tail[];
};
int conn_add(int id);
''',
    'layout.c': '''
#include "parts.h"
#include "conn.h"
enum number { MEANING = 1, NB_PLACES = LONGEST };
void (*const layout_read)(struct conn *, enum mode, enum number);
void (*const layout_own)(struct process *);
''',
}

CHANGES = {
    'a field is added': ('be32 key;', 'be32 key; int late;'),
    'a field is removed': ('\tbe32 key;\n', ''),
    'a field moves': ('unsigned int id;\n\tbe32 key;', 'be32 key;\n\tunsigned int id;'),
    'a field is renamed': ('be32 key;', 'be32 token;'),
    'a field has another type of the same size': ('unsigned int id;', 'int id;'),
    'the type of a field has another name': ('be32 key;', 'unsigned int key;'),
    'a field has more bytes where there was room': ('char mode;', 'short mode;'),
    'bits of a word': ('flags:3;\n\tunsigned char more:5', 'flags:4;\n\tunsigned char more:4'),
    'the size of an array': ('SLOTS 4', 'SLOTS 8'),
    'the elements of a flexible array': ('unsigned short tail[]', 'short tail[]'),
    'a value of the enumeration of a field': ('OPEN = 1', 'OPEN = 2'),
    'a new value of it': ('OPEN = 1', 'OPEN = 1, SHUT = 2'),
    'a value of an enumeration kept as an integer': ('FAST = 0, SLOW = 1', 'SLOW = 0, FAST = 1'),
    'a number beside the structures': ('LONGEST 9', 'LONGEST 8'),
    'the meaning': ('MEANING = 1', 'MEANING = 2'),
    'a contained structure': ('{ int x; }', '{ int x, z; }'),
    'a structure behind a pointer': ('ip[16]', 'ip[4]'),
    'a structure behind a pointer in a part without a name': ('char *bytes', 'char **bytes'),
    'a member of a union': ('char b[8]', 'char b[4]'),
    'another structure behind a pointer': ('struct peer *peer', 'struct inner *peer'),
    'the room for later fields': ('later[2]', 'later[3]'),
    'the place of that room': ('unsigned int later[2]', '_Alignas(16) unsigned int later[2]'),
    'one structure more': ('enum mode, enum number)', 'enum mode, enum number, struct other *)'),
    'one enumeration less': ('enum mode, enum number)', 'enum number)'),
    'what belongs to a process is read': ('struct process *)', 'struct other *)'),
}

SAME = {
    'a comment': ('/** A connection. */', '/** One of the connections, with its peer. */'),
    'a comment of a field': ('/* enum mode */', '/* see enum mode */'),
    'a prototype': ('int conn_add(int', 'void conn_del(void);\nlong conn_add(int late, int'),
    'an inline function': ('int conn_add(int id);', 'static inline int one(void) { return 1; }'),
    'another macro': ('#define SLOTS 4', '#define SLOTS (2 + 2)\n#define OTHER 7'),
    'the order of includes': ('#include "parts.h"\n#include "conn.h"', '#include "conn.h"\n#include "parts.h"'),
    'another include': ('#include "parts.h"\n#include "conn.h"', '#include <stdio.h>\n#include "conn.h"'),
    'the order of structures': ('struct inner { int x; };\nstruct peer { unsigned char ip[16]; };',
                                'struct peer { unsigned char ip[16]; };\nstruct inner { int x; };'),
    'the order of the list': ('enum mode, enum number)', 'enum number, enum mode)'),
    'a parameter of a function that a field points to': ('(struct other *)', '(int)'),
    'a structure of the process': ('{ int fd; }', '{ int fd, other; }'),
    'a structure that is not reached': ('{ int y; }', '{ int y, z; }'),
    'a structure of DPDK behind a pointer': ('{ int y; };', '{ int y; };\nstruct rte_thing { int z; };'),
    'a field in the room for later ones': (
        'unsigned int later[2];', 'struct { unsigned int late; unsigned char room[4]; } later;'),
    'const': ('unsigned int id;', 'const unsigned int id;'),
    'white space': ('unsigned int id;', 'unsigned   int\n\tid;'),
}

# In the daemon's own sources. The comment is that of the commit "lib, drivers, daemon: reword
# comments that were read twice".
PDL = 'lib/pdl/pdl.h'
REWORDED = PDL, 'an answer from a peer that sends', 'an answer although the peer was heard'
DAEMON_CHANGES = {
    'a connection': (PDL, '\tuint32_t dtag;', '\tint32_t dtag;'),
    'an enumeration kept as an integer': (
        'lib/cm/cm.h', '\tSAN_CM_RESOLVING,', '\tSAN_CM_NEW,\n\tSAN_CM_RESOLVING,'),
    'the size of a table': ('lib/cm/cm_priv.h', 'CM_PRIVATES      1024', 'CM_PRIVATES      2048'),
    'a structure of a source': ('lib/ulp/ulp_guess.c', 'uint16_t owner;', 'uint32_t owner;'),
    'a record of the handover': (
        'apps/sanstack-daemon/takeover.c', 'int32_t listener;', 'int32_t listener, late;'),
}

failed = []


def expect(right, name):
    print(f'{"ok" if right else "FAILED"}: {name}')
    if not right:
        failed.append(name)


def compiled(command, folder):
    path = os.path.join(folder, 'layout.o')
    subprocess.run([*command, '-c', '-o', path], check=True)
    return layout.describe('readelf', path)


def edited(texts, old, new):
    """The texts with *old*, which one of them contains once, replaced."""
    where = [name for name, text in texts.items() if text.count(old) == 1]
    assert len(where) == 1, f'{old!r} is in {where}'
    return {**texts, where[0]: texts[where[0]].replace(old, new)}


def small(compiler, *edit):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (edited(SMALL, *edit) if edit else SMALL).items():
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
                f.write(text)
        return compiled([*compiler, '-g', '-gdwarf-4', os.path.join(folder, 'layout.c')], folder)


def check_small(compiler):
    base = small(compiler)
    for name, edit in CHANGES.items():
        expect(small(compiler, *edit) != base, f'it changes: {name}')
    for name, edit in SAME.items():
        expect(small(compiler, *edit) == base, f'it stays: {name}')
    why = ''
    try:
        small(compiler, 'struct peer { unsigned char ip[16]; };\n', '')
    except SystemExit as e:
        why = str(e)
    expect('struct peer is only declared' in why, f'a structure that is only declared: {why}')


class Sources:
    """A copy of the sources, compiled as the build compiles layout.c."""

    def __init__(self, build, folder):
        self.folder, self.build = folder, build
        for name in 'lib', 'drivers', 'apps', 'devtools':
            shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name))
        with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as f:
            words = next(shlex.split(c['command']) for c in json.load(f)
                         if c['file'].endswith('devtools/layout.c'))
        end = words.index('-o')     # and what make would need
        self.command = [self.moved(word) for word in words[:end] if not word.startswith('-M')]
        self.command = [word for word in self.command if not word.endswith(('.o', '.o.d'))]
        self.command.append(os.path.join(folder, 'devtools/layout.c'))

    def moved(self, word):
        if not word.startswith('-I'):
            return word
        path = os.path.normpath(os.path.join(self.build, word[2:]))
        if path.startswith(ROOT + '/') and not path.startswith(self.build + '/'):
            path = self.folder + path[len(ROOT):]
        return f'-I{path}'

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding='utf-8') as f:
            return f.read()

    def write(self, name, text):
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as f:
            f.write(text)

    def text(self):
        return compiled(self.command, self.folder)

    def text_with(self, name, old, new):
        before = self.read(name)
        assert before.count(old) == 1, f'{name}: {old!r}: {before.count(old)} times'
        self.write(name, before.replace(old, new))
        try:
            return self.text()
        finally:
            self.write(name, before)


def check_daemon(build):
    with open(os.path.join(build, 'apps/sanstack-daemon/layout.txt'), encoding='utf-8') as f:
        base = f.read()
    with tempfile.TemporaryDirectory() as folder:
        sources = Sources(build, folder)
        expect(sources.text_with(*REWORDED) == base, 'it stays: a comment of a connection')
        for name, edit in DAEMON_CHANGES.items():
            expect(sources.text_with(*edit) != base, f'it changes: {name}')
        number = re.search(r'LAYOUT_MEANING = \d+', sources.read('devtools/layout.c'))[0]
        expect(sources.text_with('devtools/layout.c', number, f'{number}0') != base,
               'it changes: the meaning')
        for path in glob.glob(f'{folder}/**/*.h', recursive=True):
            name = os.path.relpath(path, folder)
            sources.write(name, COMMENT.sub(lambda m: m[1] or ' ', sources.read(name)))
        sources.write(PDL, sources.read(PDL) + 'void unused(int);\n#define UNUSED 1\n')
        expect(sources.text() == base, 'it stays: headers without comments, and a prototype')
    check_integers(f'\n{base}')


def check_integers(base):
    """An enumeration that a field keeps as an integer, by its comment, is among the layouts."""
    for path in sorted(glob.glob(f'{ROOT}/lib/*/*.h') + glob.glob(f'{ROOT}/apps/*/*/*.h')):
        with open(path, encoding='utf-8') as f:
            structs = STRUCT.findall(f.read())
        for name, body in structs:
            if f'\nstruct {name}\n' in base:
                for kept in KEPT_AS_INTEGER.findall(body):
                    expect(f'\nenum {kept}\n' in base, f'struct {name}: enum {kept} is in layout.c')


def main(build, *compiler):
    check_small(compiler)
    check_daemon(os.path.abspath(build))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
