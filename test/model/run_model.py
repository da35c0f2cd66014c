#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One verification run of a spin model, as TAP.

usage: run_model.py [--progress] [--breaks PROPERTY] [--part] MODEL [-DNAME[=VALUE] ...]

Passes if the search was exhaustive and found no error, and if every step of the
model was reached that is not marked "never": a step that nothing reaches proves
nothing. --part leaves the latter out, for options that are meant to cut something off.

With --breaks it passes if the search finds an error, and the assertion that fails
names just this property in its comment. Everything happens in a folder of its own.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CFLAGS = ['-w', '-DNOREDUCE', '-DNOFAIR', '-DMEMLIM=2000']
DEPTH = 10000   # far more than any run of these models is long
TRAIL_MAX = 200

INCOMPLETE = re.compile(r'truncated|max search depth too small|reached -DMEMLIM|out of memory'
                        r'|interrupted|hash-table full|VECTORSZ', re.IGNORECASE)
PROPERTY = re.compile(r'property: (\w+)')


class Failed(Exception):
    """The run did not show what it was to show."""


def run(command, work):
    """Output of a program; what it says on stderr, too."""
    done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors='replace')
    return done.returncode, done.stdout


def build(args, model, work):
    """From the model to ./pan."""
    code, out = run(['spin', '-a', *args.define, model], work)
    if code != 0 or not os.path.exists(os.path.join(work, 'pan.c')):
        raise Failed('spin -a:\n' + out)
    what = '-DNP' if args.progress else '-DSAFETY'
    # an error is found in less time than it takes to optimise
    speed = '-O0' if args.breaks else '-O2'
    code, out = run(['gcc', speed, *CFLAGS, what, '-o', 'pan', 'pan.c'], work)
    if code != 0:
        raise Failed('gcc:\n' + out)


def number(pattern, out):
    match = re.search(pattern, out)
    return int(match.group(1)) if match else None


def source_line(lines, nr):
    return lines[nr - 1] if 0 < nr <= len(lines) else ''


def trail(args, model, work):
    """Each step of the error trail, once, and where an assertion failed, or 0."""
    name = os.path.basename(model)
    _, out = run(['spin', '-t', '-p', '-k', name + '.trail', *args.define, model], work)
    with open(model, encoding='utf-8') as file:
        lines = file.read().splitlines()
    steps, failed, last = [], None, None
    for text in out.splitlines():
        match = re.search(r':(\d+), Error: assertion violated', text)
        if match and failed is None:
            failed = int(match.group(1))
        match = re.match(r'\s*(\d+):\s+proc\s+(\d+) \((\w+):\d+\) \S+:(\d+) .*\[', text)
        if not match or match.group(1) == last:
            continue
        last = match.group(1)
        step = (f'{match.group(3)} {match.group(2)}, line {match.group(4)}: '
                + source_line(lines, int(match.group(4))).strip())
        if not steps or steps[-1] != step:
            steps.append(step)
    return steps[:TRAIL_MAX], failed or 0


def unreached(out, model):
    """Lines of the model that nothing reached, though they are not marked."""
    with open(model, encoding='utf-8') as file:
        lines = file.read().splitlines()
    found = []
    for match in re.finditer(r'\S+\.pml:(\d+), state \d+, "(.*)"', out):
        text = source_line(lines, int(match.group(1)))
        if match.group(2) != '-end-' and 'never' not in text:
            found.append(f'line {match.group(1)}: {text.strip()}')
    return found


def broken_property(args, out, model, work):
    """Which property the error is about, and how it comes about."""
    steps, nr = trail(args, model, work)
    if 'non-progress cycle (' in out:
        return 'progress', steps
    if 'invalid end state (' in out:
        return 'deadlock', steps
    with open(model, encoding='utf-8') as file:
        lines = file.read().splitlines()
    # within a macro or an inline spin's count may be off by one
    for text in (source_line(lines, nr), source_line(lines, nr + 1), source_line(lines, nr - 1)):
        match = PROPERTY.search(text)
        if match:
            return match.group(1), steps
    return f'of line {nr}', steps


def verify(args, model, work):
    """Run the search; a line that says what it found."""
    build(args, model, work)
    start = time.monotonic()
    _, out = run(['./pan', f'-m{DEPTH}', *(['-l'] if args.progress else [])], work)
    seconds = time.monotonic() - start
    errors = number(r'errors: (\d+)', out)
    states = number(r'(\d+) states, stored', out)
    if errors is None or states is None or INCOMPLETE.search(out):
        raise Failed('the search is not complete:\n' + out)
    depth = number(r'depth reached (\d+)', out)
    found = f'{states} states, depth {depth}, {seconds:.1f} s'
    if errors == 0:
        if 'Search not completed' in out:
            raise Failed('the search is not complete:\n' + out)
        if args.breaks:
            raise Failed(f'{found}: no error was found, property "{args.breaks}" was to fail')
        missing = [] if args.part or args.progress else unreached(out, model)
        if missing:
            raise Failed('\n'.join([f'{found}: never reached:', *missing]))
        return found
    name, steps = broken_property(args, out, model, work)
    if name != args.breaks:
        raise Failed('\n'.join([f'{found}: property "{name}" fails:', *steps]))
    return f'{found}: property "{name}" fails after {len(steps)} steps, as it must'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--progress', action='store_true', help='search for non-progress cycles')
    parser.add_argument('--breaks', metavar='PROPERTY', help='this property must fail')
    parser.add_argument('--part', action='store_true', help='not every step can be reached')
    parser.add_argument('model', help='file in this folder')
    args, args.define = parser.parse_known_args()
    if any(not flag.startswith('-D') for flag in args.define):
        parser.error('only -DNAME[=VALUE] after the model')
    for program in ('spin', 'gcc'):
        if shutil.which(program) is None:
            print(f'1..0 # SKIP {program} is not installed')
            return 0
    model = os.path.join(HERE, args.model)
    name = ' '.join([args.model, *args.define])
    print('1..1', flush=True)
    with tempfile.TemporaryDirectory(prefix='sanstack-model.') as work:
        try:
            print(f'ok 1 - {name}: {verify(args, model, work)}')
        except Failed as error:
            print(f'not ok 1 - {name}')
            print('\n'.join('# ' + line for line in str(error).splitlines()))
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
