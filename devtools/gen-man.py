#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages of the public calls, one each, from the comments of a header.

usage: gen-man.py [--list] HEADER... OUTPUT_DIR

--list prints the names and writes nothing. A function without a comment is an error, because the
header is the manual.
"""

import os
import re
import sys

SEE_ALSO = {'rtsan.h': ['rtsan(7)'], 'rtsan_dpdk.h': ['rtsan(7)', 'rtsan-dpdk(7)'],
            'rtsan_stream.h': ['rtsan(7)']}
LIBRARY = {'rtsan.h': 'librtsan', 'rtsan_dpdk.h': 'librtsan-dpdk',
           'rtsan_stream.h': 'librtsan'}
ID = r'(?:RT|PCB|AFC|UDP|SYS|OFI|RULE|ARCH)-\d+'
REFERENCES = rf'\s*(?:\n[ \t]*\*[ \t]*)?\({ID}(?:(?:[,;]| \.\.\.)\s+{ID})*\)'


def functions(path):
    """(name, prototype, comment lines) of every declared function, in order."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    comment, found = None, []
    # comments, declarations up to the semicolon, blank lines, in order
    token = re.compile(r'(?P<comment>/\*\*.*?\*/)|(?P<blank>\n[ \t]*\n)|'
                       r'(?P<fn>^[a-z][\w \t\*]*?\b(?P<name>rtsan_\w+)\((?P<args>[^{};]*?)\)'
                       r'[^;{]*;)|(?P<block>^(?:struct|enum)\b[^;]*?\{.*?^\};)', re.S | re.M)
    for m in token.finditer(text):
        if m['comment']:
            comment = m['comment']
        elif m['blank'] or m['block']:
            comment = None
        elif m['fn']:
            prototype = re.sub(r'\s+', ' ', re.sub(r'__attribute__.*', ';', m['fn'], flags=re.S))
            found.append((m['name'], prototype.replace(' ;', ';').strip(), lines_of(comment)))
            comment = None
    return found


def lines_of(comment):
    """Text of a comment, without comment marks and IDs of doc/spec.md."""
    if comment is None:
        return []
    body = re.sub(REFERENCES, '', comment[3:-2]).strip('\n')
    return [re.sub(r'^[ \t]*\*? ?', '', line).rstrip() for line in body.split('\n')]


def escape(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    text = re.sub(r'\*(\w+(?:, \w+)*)\*', r'\\fI\1\\fR', text)
    text = re.sub(r'\b(rtsan_\w+)\(\)', r'\\fB\1\\fR()', text)
    return '\\&' + text if text[:1] in ".'" else text


def sections(lines):
    """Description, [(parameter, text)], return text: each a list of lines."""
    description, params, result = [], [], []
    into = description
    for line in lines:
        param = re.match(r'@param (\w+(?:, \w+)*)\s*(.*)', line)
        if param:
            params.append((param[1], [param[2]] if param[2] else []))
            into = params[-1][1]
        elif line.startswith('@return'):
            into = result
            if line[8:].strip():
                into.append(line[8:].strip())
        else:
            into.append(line)
    return description, params, result


def roff(lines):
    """Format paragraphs and lists of a comment."""
    out = []
    for line in (x.strip() for x in lines):
        item = re.match(r'- (-?E[A-Z]+|[^:]{1,40}): (.*)', line)
        if not line:
            if out and out[-1] != '.PP':
                out.append('.PP')
        elif item:
            out += ['.TP', f'.B {escape(item[1])}', escape(item[2])]
        elif line.startswith('- '):
            out += ['.IP \\(bu 2', escape(line[2:])]
        else:
            out.append(escape(line))
    while out and out[-1] == '.PP':
        out.pop()
    return out


def summary(description):
    """First sentence."""
    text = ' '.join(x.strip() for x in description).strip()
    return re.split(r'(?<=\.)\s', text, maxsplit=1)[0].rstrip('.') or 'see the description'


def wrap_prototype(prototype):
    """Lines of at most 70 columns, continued after the opening parenthesis."""
    lines, indent = [''], ' ' * 8
    for part in re.split(r'(?<=,) ', prototype):
        joined = f'{lines[-1]} {part}' if lines[-1].strip() else lines[-1] + part
        if len(joined) > 70 and lines[-1].strip():
            lines.append(indent + part)
        else:
            lines[-1] = joined
    return [f'.B "{escape(line)}"' for line in lines]


def page(header, name, prototype, lines, peers, version):
    description, params, result = sections(lines)
    out = ['.\\" SPDX-License-Identifier: BSD-3-Clause',
           f'.TH {name.upper()} 3 "" "sanstack {version}" "sanstack"',
           '.SH NAME', f'{name} \\- {escape(summary(description))}',
           '.SH LIBRARY', f'{LIBRARY[header]} (pkg\\-config {escape(LIBRARY[header])})',
           '.SH SYNOPSIS', '.nf', f'.B #include <{header}>', '.PP', *wrap_prototype(prototype),
           '.fi', '.SH DESCRIPTION', *roff(description)]
    for param, text in params:
        out += ['.TP', f'.I {param}', *roff(text)]
    if result:
        out += ['.SH RETURN VALUE', *roff(result)]
    others = [f'.BR {p} (3)' for p in peers if p != name][:8]
    out += ['.SH SEE ALSO', *[x + ' ,' for x in others],
            *[f'.BR {s[:-3]} {s[-3:]}' + (' ,' if s != SEE_ALSO[header][-1] else '')
              for s in SEE_ALSO[header]]]
    return '\n'.join(out) + '\n'


def main():
    args = sys.argv[1:]
    only_list = args[:1] == ['--list']
    headers = args[1:] if only_list else args[:-1]
    failed = False
    for path in headers:
        header = os.path.basename(path)
        found = functions(path)
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../VERSION'),
                  encoding='utf-8') as f:
            version = f.read().strip()
        for name, prototype, lines in found:
            if not lines:
                print(f'{path}: {name}() has no comment', file=sys.stderr)
                failed = True
            elif only_list:
                print(name)
            else:
                word = name.split('_')[1]
                peers = [n for n, _, _ in found if n.split('_')[1] == word]
                with open(os.path.join(args[-1], name + '.3'), 'w', encoding='utf-8') as f:
                    f.write(page(header, name, prototype, lines, peers, version))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
