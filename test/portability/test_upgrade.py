#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Live restart between daemons of different sources: from one to the other and back, under load.

One has fields in the room that records keep for them (doc/reliability.md), and uses them. The other
is the last release, by its tag: where its layouts are others, it must refuse and go on. (SYS-8)
"""

import functools
import io
import os
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../e2e'))

from daemon import DAEMON, Attached, alone  # noqa: E402
from e2e import BUILD, SOURCE, Process, Server, Tests, Work, check, need_namespaces  # noqa: E402
from test_takeover import MODES, end_load, must_move, start_load  # noqa: E402

FOLDER = os.path.join(BUILD, 'upgrade')
PROGRAM = 'apps/sanstack-daemon/sanstack-daemon'
REFUSED = 'its structures are others'

# A field of a connection, of a transaction and of an application's record: (file, old, new). Zero
# is what a daemon leaves that does not know them.
FIELDS = (
    ('lib/tl/tl.h', 'uint32_t later;', 'struct { uint16_t mark; uint8_t room[2]; } later;'),
    ('lib/tl/tl.h', 'uint64_t later;', 'struct { uint32_t nb_marked, room; } later;'),
    ('lib/tl/tl_txn.c', '.msg_counted = counted,', '.msg_counted = counted,\n.later = {.mark = 77},'),
    ('lib/tl/tl_txn.c', '\ttc->nb_issued += n;', '\ttc->nb_issued += n;\n\ttc->later.nb_marked += n;'),
    ('lib/tl/tl_txn.c', '\t\tnb_msgs += t[i]->msg_counted;',
     '\t\tnb_msgs += t[i]->msg_counted;\n\t\tif (t[i]->later.mark != 0)\n'
     '\t\t\tSAN_VERIFY(t[i]->later.mark == 77 && tc->later.nb_marked-- > 0);'),
    ('apps/sanstack-daemon/app/app_state.c', 'uint32_t later[3];',
     'struct { uint32_t nb_moves, room[2]; } later;'),
    ('apps/sanstack-daemon/app/app_state.c', '.hello_ns = a->hello_ns,',
     '.hello_ns = a->hello_ns, .later = {.nb_moves = 1},'),
    ('apps/sanstack-daemon/app/app_state.c', '\tstruct app_mem mem = s->ctl_mem;',
     '\tstruct app_mem mem = s->ctl_mem;\n'
     '\tSAN_LOG(DRIVER, NOTICE, "moves=%u", s->later.nb_moves);'),
)


def last_release():
    """The tag of the release before these sources, or ''."""
    done = subprocess.run(['git', '-C', SOURCE, 'describe', '--tags', '--match', 'v*', '--abbrev=0'],
                          check=False, capture_output=True, text=True)
    return done.stdout.strip()


def build(name, commit, edits=()):
    """Build the daemon of *commit* with changes. Returns the program."""
    folder = os.path.join(FOLDER, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    packed = subprocess.run(['git', '-C', SOURCE, 'archive', commit], check=True,
                            stdout=subprocess.PIPE)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder)
    for file, old, new in edits:
        path = os.path.join(folder, file)
        with open(path, encoding='utf-8') as f:
            text = f.read()
        check(text.count(old) == 1, f'{file} has {old!r} {text.count(old)} times')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text.replace(old, new))
    for command in (['meson', 'setup', f'{folder}/build', folder, '-Dtests=false'],
                    ['ninja', '-C', f'{folder}/build', PROGRAM]):
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT)
        check(done.returncode == 0, f'{command}: {done.stdout[-4000:]}')
    return f'{folder}/build/{PROGRAM}'


def with_program(command, program):
    """The command of a daemon, with another program."""
    return [program if word.endswith(PROGRAM) else word for word in command]


def there_and_back(work, program):
    """Takeovers by it and by this build under traffic of each mode: nothing is lost or wrong."""
    link = Attached(work)
    server = Server(link)
    for mode in MODES:
        client = start_load(link, mode)
        for other in program, program, DAEMON:
            old = link.daemons['client'].process
            old.popen.args = with_program(old.popen.args, other)
            link.daemons['client'] = link.daemons['client'].again('--takeover')
            check(old.wait() == 0, f'the old one: {old.tail()}')
            must_move(link.daemons['client'], client, server.process)
        end_load(client)
    check(server.process.stop() == 0, server.process.tail())
    link.stop()


def fields(work):
    there_and_back(work, build('fields', 'HEAD', FIELDS))
    said = ''.join(p.err() for p in work.processes)
    for nb in 0, 1:     # what one without the fields saved, and one with them
        check(f'moves={nb}\n' in said, f'no record with {nb}: {said[-2000:]}')


def is_refused(work, program):
    """Whether it may not take over from this build. Then traffic goes on."""
    link = Attached(work)
    daemon, server = link.daemons['client'], Server(link)
    client = start_load(link, MODES[0])
    command = [*with_program(daemon.process.popen.args, program), '--takeover']
    asks = Process(work, 'asks', [*command, '--check-config'])
    refused = asks.wait() != 0
    if refused:
        check(REFUSED in asks.err(), asks.tail())
        new = Process(work, 'new', command)
        check(new.wait() == 1 and REFUSED in new.err(), new.tail())
        must_move(daemon, client, server.process)
    end_load(client)
    check(server.process.stop() == 0, server.process.tail())
    link.stop()
    return refused


def release(tag, work):
    program = build('release', tag)
    with Work() as own:
        refused = is_refused(own, program)
    print(f'# {tag} is {"refused: other layouts" if refused else "one that hands over"}')
    if not refused:
        there_and_back(work, program)


def main():
    need_namespaces()
    tests = Tests()
    tests.add('fields in the room for them', alone, fields)
    tag = last_release()
    if tag:
        tests.add(f'from {tag} and back', alone, functools.partial(release, tag))
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
