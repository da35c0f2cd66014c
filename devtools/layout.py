#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""layout.py OUT.c OUT.txt READELF OBJECT: describe what a new daemon reads of an old one's memory.

OBJECT is layout.c with debug information, which has the layouts as the compiler sees them: without
comments, prototypes and the order of includes. OUT.txt has every structure and enumeration that is
reached from there, OUT.c a digest of that text, which two daemons compare (takeover.c).
"""

import hashlib
import os
import re
import subprocess
import sys

HEAD = re.compile(r' <(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)')
ATTRIBUTE = re.compile(r' {4}<[0-9a-f]+> +DW_AT_(\w+) *: (?:\([^)]*\): )?(.*)')    # (where): text
PLACE = re.compile(r'<0x([0-9a-f]+)>')
SAME_LAYOUT = 'const_type', 'volatile_type', 'atomic_type', 'restrict_type'
KINDS = {'structure_type': 'struct', 'union_type': 'union', 'enumeration_type': 'enum'}
BITS = 'bit_size', 'bit_offset', 'data_bit_offset'
FOREIGN = 'rte_'    # DPDK's, whose version the daemons compare
LATER = 'later'     # a field in which another version may have fields of its own: only its place counts


def read_entries(readelf, path):
    """The entries of the debug information, by place: dicts of attributes, with tag and parts."""
    shown = subprocess.run([readelf, '--debug-dump=info', path], check=True,
                           stdout=subprocess.PIPE, env={**os.environ, 'LC_ALL': 'C'})
    entries, above = {}, []
    for line in shown.stdout.decode(errors='replace').splitlines():
        head = HEAD.match(line)
        attribute = ATTRIBUTE.match(line)
        if head:
            del above[int(head[1]):]
            entry = {'tag': head[3], 'parts': []}
            entries[int(head[2], 16)] = entry
            if above:
                above[-1]['parts'].append(entry)
            above.append(entry)
        elif attribute and above:
            above[-1][attribute[1]] = attribute[2].strip()
    return entries


class Layouts:
    """Text of each structure and enumeration that is reached, by kind and name."""

    def __init__(self, entries):
        self.entries = entries
        self.texts = {}
        self.waiting = []
        self.own = {p['name'] for p in self.parameters('layout_own')}
        for parameter in self.parameters('layout_read'):
            self.name_of(parameter)
        while self.waiting:
            name, entry = self.waiting.pop()
            if 'declaration' in entry:
                sys.exit(f'{name} is only declared: include its header, or name it in layout_own')
            self.texts[name] = self.body(entry, '\n\t')

    def type_of(self, entry):
        """The entry of its type; None: void."""
        place = PLACE.search(entry.get('type', ''))
        return self.entries[int(place[1], 16)] if place else None

    def parameters(self, name):
        """Types of the parameters of a function pointer; of pointers, what they point to."""
        wanted = {'tag': 'variable', 'name': name}.items()
        entry = next((e for e in self.entries.values() if wanted <= e.items()), None)
        if entry is None:
            sys.exit(f'there is no variable {name}, or no debug information')
        while entry['tag'] != 'subroutine_type':
            entry = self.type_of(entry)
        for part in entry['parts']:
            entry = self.type_of(part)
            yield self.type_of(entry) if entry['tag'] == 'pointer_type' else entry

    def name_of(self, entry, behind_pointer=False):
        """How a field's type is written. What it names is described, too."""
        if entry is None:
            return 'void'
        tag, below = entry['tag'], self.type_of(entry)
        if tag in SAME_LAYOUT:
            return self.name_of(below, behind_pointer)
        if tag == 'pointer_type':
            return f'*{self.name_of(below, True)}'
        if tag == 'subroutine_type':
            return 'function'
        if tag == 'typedef':    # not the C library's, below its own types
            own = '' if entry['name'].startswith('__') else f'{entry["name"]}='
            return own + self.name_of(below, behind_pointer)
        if tag == 'base_type':
            return f'{entry["name"].replace(" ", "_")}:{entry["byte_size"]}'
        if tag == 'array_type':
            sizes = ''.join(f'[{size_of(part)}]' for part in entry['parts'])
            return f'{self.name_of(below, behind_pointer)}{sizes}'
        if 'name' not in entry:
            return f'{KINDS[tag]} {{{self.body(entry, "; ")}}}'
        name = f'{KINDS[tag]} {entry["name"]}'
        if name in self.texts or behind_pointer and (
                entry['name'] in self.own or entry['name'].startswith(FOREIGN)):
            return name
        self.texts[name] = None
        self.waiting.append((name, entry))
        return name

    def bytes_of(self, entry):
        """Size of a type."""
        if 'byte_size' in entry:
            return int(entry['byte_size'])
        size = self.bytes_of(self.type_of(entry))
        for part in entry['parts']:
            size *= size_of(part)
        return size

    def body(self, entry, between):
        lines = [f'{entry["byte_size"]} bytes']
        for part in entry['parts']:
            if part['tag'] == 'enumerator':
                lines.append(f'{part["name"]}={part["const_value"]}')
            elif part.get('name') == LATER:
                lines.append(f'{part["data_member_location"]} {LATER} '
                             f'{self.bytes_of(self.type_of(part))} bytes')
            elif part['tag'] == 'member':
                bits = ''.join(f':{part[key]}' for key in BITS if key in part)
                lines.append(f'{part.get("data_member_location", 0)}{bits} {part.get("name", "")} '
                             f'{self.name_of(self.type_of(part))}')
        return between.join(lines)


def size_of(part):
    """Number of elements of an array; empty: a flexible one."""
    if 'upper_bound' in part:
        return int(part['upper_bound'], 0) + 1
    return part.get('count', '')


def describe(readelf, path):
    texts = Layouts(read_entries(readelf, path)).texts
    return ''.join(f'{name}\n\t{text}\n' for name, text in sorted(texts.items()))


def main(out_c, out_txt, readelf, path):
    text = describe(readelf, path)
    with open(out_txt, 'w', encoding='utf-8') as f:
        f.write(text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    with open(out_c, 'w', encoding='ascii') as f:
        f.write(f'extern const char san_layout[];\nconst char san_layout[] = "{digest}";\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
