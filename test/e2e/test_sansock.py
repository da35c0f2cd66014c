#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command sansock: the rule for a socket, invalid rule files, and programs with the preloaded
library. (UDP-1, UDP-2)
"""

import os
import re
import shutil
import subprocess
import sys

from e2e import BUILD, PATIENCE, SANITIZE, SOURCE, Tests, Work, check

SANSOCK = os.path.join(BUILD, 'apps/sansock/sansock')
EXAMPLE = os.path.join(SOURCE, 'config/sansock.conf')
PRINT = ['sh', '-c', 'echo $LD_PRELOAD']


def run(*args, program=SANSOCK, **env):
    """(exit status, output, errors) of sansock, without any rules but those in *env*."""
    env = {'SANSOCK_CONF': '/dev/null', 'PATH': os.environ['PATH'], **env}
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=PATIENCE, env=env)
    return done.returncode, done.stdout, done.stderr


def same(got, want):
    check(got == want, f'{got}, not {want}')


def usage(_):
    """Wrong usage of the command line, and requests for help."""
    for args in ([], ['nosuch'], ['run'], ['run', '--'], ['run', '-x', 'true'], ['explain'],
                 ['explain', 'x'], ['explain', 'x', 'udp', '10.0.0.1'], ['check', 'a', 'b'],
                 ['check', '--x'], ['explain', 'x', 'udp', '--nosuch'],
                 ['explain', 'x', 'sctp'], ['explain', 'x', 'udp', '10.0.0.1', '65536'],
                 ['explain', 'x', 'udp', '10.0.0', '1'], ['explain', 'x', 'udp', '--local', 'x:1'],
                 ['explain', 'x', 'udp', '--local', '10.0.0.1:'],
                 ['explain', 'x', 'udp', '--user', 'nobody-of-this-name']):
        status, out, err = run(*args)
        check(status == 2 and out == '' and err, f'{args}: {status} {out} {err}')
    status, out, err = run('--help')
    check(status == 0 and 'usage: sansock run' in out, out + err)
    status, out, err = run('--version')
    check(status == 0 and out.startswith('sansock '), out + err)


def check_file(work):
    """A valid file, an invalid one, and one with a rule that is never reached."""
    same(run('check', EXAMPLE)[0], 0)
    path = work.path('sansock.conf')
    for text, status, says in (
            ('# nothing\n', 0, f'{path}: 0 rules\n'),
            ('carry\nbogus\n', 1, f'sansock: {path}:2: bogus: known are carry, kernel, both, drop, '
                                  'daemon, port, spin, probe, short, answer, log\n'),
            ('\ncarry proto udp\ndrop program x proto udp\ncarry\n', 3,
             f'{path}:3: never matches: all of it is in {path}:2\n{path}: 3 rules\n')):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        got = run('check', path)
        same((got[0], got[1] + got[2]), (status, says))
    # like for a program: rules of the environment come first
    with open(path, 'w', encoding='utf-8') as f:
        f.write('carry proto tcp\n')
    got = run('check', SANSOCK_CONF=path, SANSOCK_RULES='drop;')
    same(got[:2], (3, f'{path}:1: never matches: all of it is in SANSOCK_RULES:1\n'
                      f'{path}: 2 rules\n'))
    same(run('check', work.path('nosuch'))[0], 1)
    same(run('check', SANSOCK_CONF=work.path('nosuch'))[0], 1)


def explain(_):
    """Action and rule for a socket, and why earlier rules do not match."""
    def asked(rules, *args):
        status, out, err = run('explain', *args, SANSOCK_RULES=rules)
        check(status == 0, f'{args}: {status} {err}')
        # test_sock_reasons covers a missing daemon
        return re.sub('  but .*\n$', '', out)

    r = 'SANSOCK_RULES'
    same(asked('', 'x', 'udp', '10.0.0.1', '53'), "kernel\n  no rule matches: the kernel's\n")
    rules = ('kernel program y;kernel user 4000;kernel proto tcp;kernel local *:9;'
             'kernel remote [fd00::]/64:53;carry remote *:53')
    same(asked(rules, 'x', 'udp', '10.0.0.1', '53', '--local', '10.0.0.2:8', '--user', '4001'),
         f'carry {r}:6\n'
         f'  {r}:1: kernel program y: not its program\n'
         f'  {r}:2: kernel user 4000: not its user\n'
         f'  {r}:3: kernel proto tcp: not its proto\n'
         f'  {r}:4: kernel local *:9: not its local\n'
         f'  {r}:5: kernel remote [fd00::]/64:53: not its remote\n'
         f'  {r}:6: carry remote *:53: matches\n')
    for address in ('fd00::1', '[fd00::1]'):
        same(asked(rules, 'x', 'udp', address, '53', '--user', '4001').split('\n')[0],
             f'kernel {r}:5')
    same(asked('drop user 0', 'x', 'tcp', '--user', 'root').split('\n')[0], f'drop {r}:1')
    same(asked('drop user 0', 'x', 'tcp').split('\n')[0],
         f'drop {r}:1' if os.getuid() == 0 else 'kernel')
    wildcard = 'kernel local 127.0.0.0/8;carry local 10.0.0.1:53;carry;drop'
    for local in ('0.0.0.0:53', '*:53'):
        same(asked(wildcard, 'x', 'udp', '--local', local),
             f'both {r}:1\n'
             f'  {r}:1: kernel local 127.0.0.0/8: matches for some of its addresses\n'
             f'  {r}:2: carry local 10.0.0.1/32:53: for some of its addresses\n'
             f'  {r}:3: carry: matches for the rest\n')
    same(asked('carry local 10.0.0.1', 'x', 'udp', '--local', '[::]:53'),
         f'both {r}:1\n  {r}:1: carry local 10.0.0.1/32: matches for some of its addresses\n'
         "  no rule for the rest: the kernel's\n")
    same(asked('drop local 10.0.0.1;carry', 'x', 'udp', '--local', '0.0.0.0'),
         f'drop {r}:1\n  {r}:1: drop local 10.0.0.1/32: matches for some of its addresses\n')
    status, _, err = run('explain', 'x', 'udp', SANSOCK_RULES='carry;x')
    check(status == 1 and f'sansock: {r}:2: x: known are' in err, f'{status} {err}')


def explain_link(work):
    """A program called through a link is known by both names."""
    os.symlink('/bin/sh', work.path('alias'))
    real = os.path.basename(os.path.realpath('/bin/sh'))
    for name in ('alias', real):
        out = run('explain', work.path('alias'), 'udp', SANSOCK_RULES=f'carry program {name}')[1]
        check(out.startswith(f'carry SANSOCK_RULES:1\n  alias is {real}\n'), out)
    out = run('explain', 'alias', 'udp', SANSOCK_RULES='carry program alias',
              PATH=work.dir)[1]
    check(out.startswith('carry '), out)


def with_library(work):
    """A folder with sansock and any library of that name; (program, library)."""
    folder = work.path('bin')
    os.makedirs(folder, exist_ok=True)
    libraries = subprocess.run(['ldd', SANSOCK], capture_output=True, text=True).stdout
    libc = next(line.split()[2] for line in libraries.splitlines() if 'libc.so.6' in line)
    library = os.path.join(folder, 'libsansock.so')
    shutil.copy(os.path.join(os.path.dirname(libc), 'libm.so.6'), library)
    return shutil.copy(SANSOCK, folder), library


def run_program(work):
    """A program has the library first in its list; exit status of the program, and of one that
    can't run."""
    program, library = with_library(work)
    same(run('run', *PRINT, program=program), (0, library + '\n', ''))
    same(run('run', '--', *PRINT, program=program), (0, library + '\n', ''))
    same(run('run', 'sh', '-c', 'exit 5', program=program)[0], 5)
    same(run('run', 'nosuch-program', program=program)[0], 127)
    same(run('run', EXAMPLE, program=program)[0], 126)
    status, out, err = run('run', *PRINT, program=program, SANSOCK_RULES='carry program')
    same((status, out), (1, ''))
    check('SANSOCK_RULES:1: program: there is nothing behind it' in err, err)
    if SANITIZE:        # the sanitizer's library must be the first
        return
    other = shutil.copy(library, work.path('other.so'))
    same(run('run', *PRINT, program=program, LD_PRELOAD=other)[1], f'{library}:{other}\n')
    same(run('run', program, 'run', *PRINT, program=program, LD_PRELOAD=other)[1],
         f'{library}:{other}\n')
    same(run('run', *PRINT, program=program, LD_PRELOAD=library)[1], f'{library}\n')


def run_asan(work):
    """A program with the AddressSanitizer of gcc starts, and so do its children."""
    program, library = with_library(work)
    option = 'verify_asan_link_order=0'
    shown = ['sh', '-c', 'echo $ASAN_OPTIONS']
    same(run('run', *shown, program=program)[1], option + '\n')
    same(run('run', program, 'run', *shown, program=program, ASAN_OPTIONS='log_path=x')[1],
         f'{option}:log_path=x\n')
    if SANITIZE or shutil.which('gcc') is None:
        return
    source, built = work.path('asan.c'), work.path('asan')
    with open(source, 'w', encoding='utf-8') as f:
        f.write('#include <stdlib.h>\nint main(int n, char **v) { return ((char *)malloc(1))[n - 1]; }')
    done = subprocess.run(['gcc', '-fsanitize=address', '-w', '-o', built, source], check=False)
    if done.returncode != 0:
        return
    quiet = {'ASAN_OPTIONS': 'malloc_fill_byte=0:max_malloc_fill_size=9:detect_leaks=0'}
    same(run('run', built, program=program, **quiet), (0, '', ''))
    status, _, err = run('run', 'sh', '-c', f'{built} 1 2; exit $?', program=program, **quiet)
    check(status == 1 and 'heap-buffer-overflow' in err, f'{status} {err}')


def run_musl(work):
    """A program whose loader is musl's starts, without the library."""
    program, library = with_library(work)
    with open('/usr/bin/env', 'rb') as f:
        binary = f.read()
    loader = b'/lib64/ld-linux-x86-64.so.2'
    if binary.count(loader) != 1:
        print('# no loader to replace in /usr/bin/env')
        return
    os.symlink(loader, work.path('ld-musl-x86_64.so.1'))
    os.chdir(work.dir)
    env = work.path('env')
    with open(env, 'wb') as f:
        f.write(binary.replace(loader, b'./ld-musl-x86_64.so.1'.ljust(len(loader), b'\0')))
    os.chmod(env, 0o755)
    status, out, err = run('run', './env', program=program)
    os.chdir(SOURCE)
    check(status == 0 and 'LD_PRELOAD' not in out, f'{status} {out}')
    same(err, 'sansock: ./env is linked with musl: its sockets stay with the kernel\n')
    check(f'LD_PRELOAD={library}\n' in run('run', 'env', program=program)[1], 'not the library')


def run_without(work):
    """The library is missing, or has an invalid path."""
    program, library = with_library(work)
    folder = work.path('a b')
    shutil.move(os.path.dirname(program), folder)
    status, _, err = run('run', 'true', program=os.path.join(folder, 'sansock'))
    check(status == 1 and 'no path with a colon or space' in err, f'{status} {err}')
    os.unlink(os.path.join(folder, os.path.basename(library)))
    status, _, err = run('run', 'true', program=os.path.join(folder, 'sansock'))
    # unless it is installed
    check(status == 0 or 'libsansock.so: No such file' in err, f'{status} {err}')


def set_uid(work):
    """A set-uid program ignores the user's rules; sansock warns that the library is not loaded."""
    if os.getuid() != 0 or SANITIZE or os.statvfs(work.dir).f_flag & os.ST_NOSUID:
        print('# set-uid: needs root, a file system that knows it, and no sanitizer')
        return
    path = work.path('conf')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('carry\n')
    os.chmod(work.dir, 0o755)
    copy = shutil.copy(SANSOCK, work.path('set-uid'))
    for env in ({'SANSOCK_RULES': 'carry'}, {'SANSOCK_CONF': path}):
        os.chmod(copy, 0o755)
        check(run('explain', 'x', 'udp', program=copy, **env)[1].startswith('carry '), env)
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o4755)
        got = run('explain', 'x', 'udp', program=copy, **env)
        check(not any(of in got[1] for of in ('SANSOCK_RULES', path)), f'{env}: {got}')
        os.chown(copy, 0, 0)
    program, _ = with_library(work)
    os.chmod(copy, 0o4755)
    status, _, err = run('run', copy, '--version', program=program)
    check(status == 0 and f'{copy} is set-uid' in err, f'{status} {err}')


def main():
    tests = Tests()
    for name, function in (('usage', usage), ('check', check_file), ('explain', explain),
                           ('explain a link', explain_link), ('run', run_program),
                           ('run with ASan', run_asan), ('run with musl', run_musl),
                           ('run without the library', run_without), ('set-uid', set_uid)):
        tests.add(name, alone, function)
    return tests.run()


def alone(function):
    with Work() as work:
        function(work)


if __name__ == '__main__':
    sys.exit(main())
