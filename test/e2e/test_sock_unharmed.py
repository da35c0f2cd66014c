#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs without carried sockets run the same with the library, with any rules and without a
daemon; the cost of their start is printed. (UDP-2)
"""

import os
import shutil
import subprocess
import sys
import time

import sock
from e2e import PATIENCE, Skipped, Tests, Work, check

STARTS = 200

HELLO = '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n'
# Descriptors, pipes, children, threads and signals, which the library must not affect.
SHELL = '''
exec 5<>file; echo five >&5; exec 5>&-; cat file
for i in 1 2 3; do (echo $i; exit $i) | cat; echo "${PIPESTATUS[0]}"; done
coproc cat; echo through >&"${COPROC[1]}"; read -r x <&"${COPROC[0]}"; echo "$x"
trap 'echo trapped' USR1; kill -USR1 $$; timeout 0.1 sleep 5; echo $?
ls -l /proc/self/fd | awk 'NR > 1 {print $9}' | head -n 3
(ulimit -n 20; ls / >/dev/null; echo $?)
'''
PYTHON = '''
import asyncio, os, select, socket, subprocess, threading
a, b = socket.socketpair()
a.send(b"pair"); print(b.recv(9), select.select([a, b], [a, b], [], 0)[0])
s = socket.socket(socket.AF_UNIX); s.bind("unix"); s.listen(); print(s.getsockname())
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
print(subprocess.run(["sh", "-c", "echo child"], capture_output=True).stdout)
async def main():
    await asyncio.sleep(0.01)
    p = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print(await p.communicate(b"piped"))
asyncio.run(main())
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0))
u.sendto(b"self", u.getsockname()); print(u.recvfrom(9)[0], u.fileno())
try:
    os.read(99, 1)
except OSError as e:
    print(e)
if os.fork() == 0:
    os._exit(3)
print(os.wait()[1])
'''
GIT = '''
git init -q . && git config user.email a@b && git config user.name n
for i in 1 2 3; do echo $i >f$i; git add f$i
GIT_AUTHOR_DATE=2000-01-01T00:00:00Z GIT_COMMITTER_DATE=2000-01-01T00:00:00Z git commit -qm $i; done
git log --format=%H; git clone -q . copy; git -C copy fsck; git gc -q; git status --short
'''

COMMANDS = {
    'bash': ['bash', '-c', SHELL],
    'git': ['bash', '-c', GIT],
    'gcc': ['bash', '-c', 'gcc -pthread -o hello hello.c && ./hello && gcc -c nosuch.c; echo $?'],
    'python': [sock.PYTHON, '-c', PYTHON],
    'ls': ['ls', '/', '/nosuch'],
    'tar': ['bash', '-c', 'seq 99999 >n; tar czf - n | tar tzvf - | cut -c1-20; xargs -P4 -n1 echo '
                          '</dev/null; find . -name n'],
}
# All to the kernel; all to a missing daemon; invalid rules.
RULES = {'kernel': 'kernel', 'no daemon': 'log off;daemon /nosuch/daemon.sock;carry proto tcp',
         'wrong rules': 'log off;nonsense'}


def run(command, rules=None):
    """(exit status, output, errors), with the library if there are rules."""
    env = dict(os.environ, LC_ALL='C', HOME='/nonexistent')
    if rules is not None:
        env.update(LD_PRELOAD=sock.LIBRARY, SANSOCK_CONF='/dev/null', SANSOCK_RULES=rules)
    with Work() as work:
        with open(work.path('hello.c'), 'w', encoding='utf-8') as f:
            f.write(HELLO)
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=work.dir,
                              env=env)
        return done.returncode, *(t.replace(work.dir, '') for t in (done.stdout, done.stderr))


def unharmed(name):
    if not shutil.which(name) and name != 'python':
        raise Skipped(f'{name} is not installed')
    want = run(COMMANDS[name])
    check(run(COMMANDS[name]) == want, f'{name} differs without the library, too')
    check(name == 'ls' or want[0] == 0, f'{want}')
    if not sock.has_library():
        raise Skipped('the library is not built')
    for label, rules in RULES.items():
        got = run(COMMANDS[name], rules)
        check(got == want, f'{label}: {got}, not {want}')


def start_seconds(env):
    """The minimum of many runs, which other programs on the same CPUs do not prolong."""
    took = []
    for _ in range(STARTS):
        began = time.perf_counter()
        subprocess.run(['/bin/true'], env=env, check=True)
        took.append(time.perf_counter() - began)
    return min(took)


def start_cost():
    without = start_seconds({})
    print(f'# /bin/true without the library: {without * 1e6:.0f} us')
    if not sock.has_library():
        raise Skipped('the library is not built')
    for label, rules in RULES.items():
        took = start_seconds({'LD_PRELOAD': sock.LIBRARY, 'SANSOCK_CONF': '/dev/null',
                              'SANSOCK_RULES': rules})
        print(f'# with it, {label}: {(took - without) * 1e6:+.0f} us')


def main():
    tests = Tests()
    for name in COMMANDS:
        tests.add(name, unharmed, name)
    tests.add_long('cost of a start', start_cost)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
