#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The first use of programs: an example prints what it waits for, and removes its socket when it is
terminated; a memif socket that a killed process left does no harm; without errors nothing is
logged. (SYS-2)
"""

import os
import re
import socket
import sys

from daemon import Daemon
from e2e import (BUILD, CLIENT_IP, OWN_MOUNTS, OWN_MOUNTS_SH, PATIENCE, SERVER_IP, Memif, Null,
                 SOURCE, Tests, Work, check, cpus, need_namespaces, until_true)

NAMES = ('pingpong', 'stream', 'kvget')


def start(work, link, name, role, *more):
    ip = SERVER_IP if role == 'server' else CLIENT_IP
    eal = ' '.join(work.eal(cpus()[0], link.vdev(role)))
    return work.start(f'{name}-{role}', [os.path.join(BUILD, f'examples/{name}'), role,
                                         f'dpdk:{eal} -- ip={ip}/24 idle=sleep', *more])


def says(process, text):
    def look():
        check(process.is_alive(), f'{process.name} has ended: {process.tail()}')
        return text in process.out() + process.err()
    until_true(lambda: f'{process.name} does not say "{text}": {process.tail()}', look)


def ends_by_signal(work):
    """An example prints what it waits for; a signal makes it remove its socket, and ends it."""
    for name in NAMES:
        for signal, number in (('TERM', 15), ('INT', 2)):
            link = Memif(work)
            server = start(work, link, name, 'server')
            says(server, f'{name}: waiting for a peer')
            check(os.path.exists(link.socket), f'{name} has no socket')
            server.signal(signal)
            check(server.wait() == -number, f'{name}, {signal}: {server.tail()}')
            check(not os.path.exists(link.socket), f'{name}, {signal}: the socket is still there')


def client_waits(work):
    """A client prints which peer it waits for, and a signal ends it at once."""
    for name in NAMES:
        client = start(work, Null(work), name, 'client', SERVER_IP)
        says(client, f'{name}: waiting for the peer at {SERVER_IP}')
        client.signal('INT')
        check(client.wait() == -2, f'{name}: {client.tail()}')


def leave_socket(path):
    """Leave a socket file like a killed process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
        s.listen()


def stale_socket(work):
    """A server replaces a socket file on which nothing listens."""
    link = Memif(work)
    leave_socket(link.socket)
    server = start(work, link, 'pingpong', 'server')
    says(server, 'waiting for a peer')
    client = start(work, link, 'pingpong', 'client', SERVER_IP, '100')
    check(client.wait() == 0 and server.wait() == 0, f'{client.tail()} {server.tail()}')

    link = Memif(work)
    leave_socket(link.socket)
    bench = work.start('sanbench', link.program('server', ['--server']))
    bench.wait_text('listening')
    check(bench.stop() == 0, bench.tail())

    link = Memif(work)
    leave_socket(link.socket)
    daemon = Daemon(work, 'server', vdev=link.vdev('server'))
    daemon.stop()


def not_ours(work):
    """A socket in use and a file that is no socket stay; both are reported."""
    link = Memif(work)
    first = start(work, link, 'pingpong', 'server')
    says(first, 'waiting for a peer')
    second = start(work, link, 'pingpong', 'server')
    check(second.wait() == 1, second.tail())
    check(f'{link.socket}: another process has this socket' in second.err(), second.tail())
    client = start(work, link, 'pingpong', 'client', SERVER_IP, '100')
    check(client.wait() == 0 and first.wait() == 0, f'{client.tail()} {first.tail()}')

    link = Memif(work)
    with open(link.socket, 'w', encoding='utf-8') as f:
        f.write('precious')
    bench = work.start('sanbench', link.program('server', ['--server']))
    check(bench.wait() != 0 and f'{link.socket}: is no socket' in bench.err(), bench.tail())
    with open(link.socket, encoding='utf-8') as f:
        check(f.read() == 'precious', 'the file was written to')


def quiet(work):
    """Without errors programs print nothing unless asked; test_providers checks the error case."""
    link = Memif(work)
    server = start(work, link, 'pingpong', 'server')
    says(server, 'waiting for a peer')
    client = start(work, link, 'pingpong', 'client', SERVER_IP, '100')
    check(client.wait() == 0 and server.wait() == 0, f'{client.tail()} {server.tail()}')
    for name, process in (('server', server), ('client', client)):
        lines = [line for line in process.err().splitlines() if not line.startswith('pingpong: waiting')]
        check(not lines, f'the {name} says {lines}')

    eal = ' '.join(a for a in work.eal(cpus()[0], Null(work).vdev('client')) if 'log-level' not in a)
    for more, is_told in (('', False), ('--log-level=lib.*:info', True)):
        asked = work.start('asked', [os.path.join(BUILD, 'examples/pingpong'), 'client',
                                     f'dpdk:{eal} {more} -- ip={CLIENT_IP}/24 idle=sleep', SERVER_IP])
        says(asked, 'waiting for the peer')
        asked.signal('INT')
        asked.wait()
        is_answered_since = 'EAL: ' in asked.err() and 'TELEMETRY: ' in asked.err()
        check(is_answered_since if is_told else 'EAL' not in asked.err() and 'TELE' not in asked.err(),
              f'{more}: {asked.err()}')


# A user without access to files of root's programs, and without /sbin in PATH.
AS_USER = """
set -eu
demo=$(cat usertools/demo.sh)      # now: the sources may be below /tmp
mount -t tmpfs -o mode=1777 tmp /tmp; mount -t tmpfs -o mode=755 run /run
mkdir -m 700 /run/dpdk
mkdir -p /tmp/build/apps/sanbench /tmp/build/examples
for program in apps/sanbench/sanbench examples/filecopy; do
  printf '#!/bin/sh\\necho no program; exit 1\\n' >/tmp/build/$program
  chmod +x /tmp/build/$program
done
echo "$demo" >/tmp/demo.sh
cd /tmp
PATH=/usr/local/bin:/usr/bin:/bin exec setpriv --reuid=65534 --regid=65534 --clear-groups bash /tmp/demo.sh /tmp/build
"""


def demo_of_a_user(work):
    """As an ordinary user the demo finds the files to copy, and cleans up without an error."""
    need_namespaces('setpriv')
    demo = work.start('demo', [*OWN_MOUNTS, 'bash', '-c', OWN_MOUNTS_SH + AS_USER.replace(
        'usertools', os.path.join(SOURCE, 'usertools'))])
    check(demo.wait() == 1, demo.tail())
    check('the server did not start' in demo.err() and 'no program' in demo.err(), demo.tail())
    for what in ('rm:', 'not found', 'denied'):
        check(what not in demo.err(), demo.tail())


# Tools that install-deps.sh calls: nothing is installed, the user is root, apt is slow.
DEPS = """
set -eu
mount -t tmpfs tmp /usr/sbin
mkdir {dir}/bin
cd {dir}/bin
printf '#!/bin/sh\\nexit 1\\n' >dpkg-query
printf '#!/bin/sh\\necho 0\\n' >id
printf '#!/bin/sh\\necho "$0 says: Unpacking"; until test -e {dir}/go; do sleep 0.1; done\\n' >apt-get
chmod +x *
HEARTBEAT=1 PATH={dir}/bin:$PATH exec sh {source}/devtools/install-deps.sh build
"""


def progress(work):
    """A command that runs long without output prints progress."""
    need_namespaces()
    deps = work.start('deps', [*OWN_MOUNTS, 'sh', '-c',
                               OWN_MOUNTS_SH + DEPS.format(dir=work.dir, source=SOURCE)])
    deps.wait_text(' s: ')
    check('Unpacking' in deps.out(), deps.tail())
    with open(work.path('go'), 'w', encoding='utf-8'):
        pass
    check(deps.wait() == 0, deps.tail())

    failing = work.start('failing', ['sh', os.path.join(SOURCE, 'devtools/heartbeat.sh'),
                                     work.path('log'), 'sh', '-c', 'echo because; exit 3'])
    check(failing.wait() == 3 and 'because' in failing.out(), failing.tail())

    plan = work.start('plan', ['make', '-n', '-C', SOURCE, 'soak', f'BUILD={work.dir}'])
    check(plan.wait() == 0, plan.tail())
    for what in ('--swarm', 'prop_stream'):
        check(any('heartbeat.sh' in step and what in step
                  for step in plan.out().replace('\\\n', '').splitlines()), f'{what}: {plan.out()}')


def demo(work):
    """The whole output of make demo, as a new user sees it."""
    shown = work.start('demo', ['bash', os.path.join(SOURCE, 'usertools/demo.sh'), BUILD])
    status = shown.popen.wait(5 * PATIENCE)     # 14 phases of at most a minute
    check(status == 0 and 'demo: OK' in shown.out(), shown.tail())
    for link in ('clean', 'bad'):
        for way in ('push', 'send'):
            check(f'file by {way}, {link} link' in shown.out(), shown.out())
    check(re.search('^kernel TCP, bytes +veth +[0-9.]+$', shown.out(), re.MULTILINE), shown.out())
    for row in ('send +clean', 'pull +bad', '64 B asked +clean'):
        check(re.search(f'^{row} +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+$', shown.out(), re.MULTILINE),
              f'{row}: {shown.out()}')


def main():
    tests = Tests()
    with Work() as work:
        tests.add('ended by a signal', ends_by_signal, work)
        tests.add('a client that waits', client_waits, work)
        tests.add('a socket left behind', stale_socket, work)
        tests.add("what is another's stays", not_ours, work)
        tests.add('quiet', quiet, work)
        tests.add('demo of a user', demo_of_a_user, work)
        tests.add('progress', progress, work)
        tests.add_long('demo', demo, work)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
