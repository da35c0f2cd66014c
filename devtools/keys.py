#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the tables of keys into doc/man and config/sanstack.conf, as the programs explain them.

    devtools/keys.py BUILD

A program explains a key by two comments: "# MEANING (VALID)" and "# KEY = DEFAULT". In a page,
'.\\" keys SECTION' begins a table, and '.\\" end' ends it. test/e2e/test_keys.py
fails while a file is not as this would write it.
"""

import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DAEMON = ('apps/sanstack-daemon/sanstack-daemon', '--keys')
PAGES = {
    'rtsan-dpdk.7': DAEMON,
    'sanbench.1': ('apps/sanbench/sanbench', '--keys'),
    'sansim.1': ('apps/sansim/sansim', '--keys'),
    'sansock.conf.5': ('apps/sansock/sansock', '--keys'),
    'sanstack.conf.5': DAEMON,
}
CONFIG = 'config/sanstack.conf'
CONFIG_HEAD = """\
# sanstack.conf(5): all keys as comments, with their defaults. It is no configuration to run as it
# stands: at least args and ip must be given. Others in this folder are.

"""
CONFIG_TAIL = """
[partitions]
# a line for each partition: all, or users and groups
# 0xffff = all
# 0x8001 = group:operator
"""


def explained(build, program, *words):
    return subprocess.run([os.path.join(build, program), *words], capture_output=True, text=True,
                          check=True).stdout


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def roff(text):
    return text.replace('\\', '\\e').replace('-', '\\-')


def tables(text):
    """Section: its table."""
    found = {}
    for name, body in re.findall(r'^\[(.*)\]\n((?:#.*\n)*)', text, re.M):
        rows = [f'{roff(key)}\t{roff(default) or "&"}\tT{{\n{roff(meaning)}\nT}}\n'.replace('&', '\\&')
                for meaning, key, default in re.findall(r'^# (.*)\n# (\S+) = ?(.*)\n', body, re.M)]
        found[name] = '.na\n.TS\nlB l lx.\n' + ''.join(rows) + '.TE\n.ad\n.PP\n'
    return found


def page(text, found):
    return re.sub(r'(?ms)^(\.\\" keys (.*?)\n).*?(?=^\.\\" end$)',
                  lambda m: m.group(1) + found[m.group(2)], text)


def outdated(build):
    """Each file that is not as it should be, with what it should be."""
    config = explained(build, *DAEMON).split('\n[program]')[0]
    wrong = {os.path.join(SOURCE, CONFIG): CONFIG_HEAD + config + CONFIG_TAIL}
    for name, command in PAGES.items():
        path = os.path.join(SOURCE, 'doc/man', name)
        wrong[path] = page(read(path), tables(explained(build, *command)))
    return {path: text for path, text in wrong.items() if text != read(path)}


def main(build):
    for path, text in outdated(build).items():
        print(f'wrote {path}')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)


if __name__ == '__main__':
    main(sys.argv[1])
