#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""sanbench as a program: arguments, exit codes, prompt, JSON keys, signals. (SYS-3)"""

import os
import re
import signal
import subprocess
import sys

from e2e import BENCH, PATIENCE, SOURCE, Memif, Null, Process, Run, Server, Tests, Work, check

WRONG = [
    ['--bogus'],
    ['extra'],
    ['--size'],
    ['--size', '0'],
    ['--size', '10-5'],
    ['--size', '2G'],
    ['--size', '4x'],
    ['--size', '4 '],
    ['--depth', '0'],
    ['--depth', '-1'],
    ['--conns', '100000'],
    ['--mode', 'teleport'],
    ['--order', 'sorted'],
    ['--solicit', 'maybe'],
    ['--duration', '0'],
    ['--duration', 'soon'],
    ['--count', '0'],
    ['--ip', '10.0.0.256/24'],
    ['--ip', '10.0.0.1/33'],
    ['--connect', 'localhost'],
    ['--impair', 'drop=2'],
    ['--impair', 'drip=0.1'],
    ['--poll', 'somebody'],
    ['--set', 'novalue'],
    ['--server', '--connect', '10.0.0.1'],
    ['--server=yes'],
    ['--mode', 'push'],
    ['--attach', '/no/prefix'],
    ['--attach', 'dpdk:'],
    ['--attach', 'verbs:'],
    ['--attach', 'unix:/x'],    # with EAL arguments
    ['--connect', '10.0.0.1', '--mode', 'atomic', '--size', '16'],
    ['--connect', '10.0.0.1', '--mode', 'rpc', '--size', '7'],
    ['--connect', '10.0.0.1', '--mode', 'rpc', '--size', '65'],
    ['--connect', '10.0.0.1', '--mode', 'rpc', '--depth', '2000'],
    ['--connect', '10.0.0.1', '--mode', 'connect', '--count', '5'],
    ['--connect', '10.0.0.1', '--mode', 'stream', '--receive', 'never'],
    ['--connect', '10.0.0.1', '--mode', 'stream', '--buffers', '3'],
    ['--both', '--connect', '10.0.0.1', '--mode', 'push'],
    ['--connect', '10.0.0.1', '--batch', '33', '--depth', '32'],
    ['--connect', '10.0.0.1', '--turns', '33', '--depth', '32'],
    ['--connect', '10.0.0.1', '--turns', '4', '--batch', '4'],
    ['--connect', '10.0.0.1', '--mode', 'rpc', '--turns', '4'],
    ['--connect', '10.0.0.1', '--json', '/nonexistent/results.json'],
    ['--batch', '0'],
    ['--turns', '257'],
    ['--connect', '10.0.0.1', '--mode', 'send', '--verify', '--order', 'unordered', '--size', '4'],
]


def run(command, stdin=''):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, input=stdin)


def wrong_arguments():
    """One line on standard error that names the argument, exit status 2, nothing else."""
    for own in WRONG:
        done = run([BENCH, '--no-pci', '--', *own])
        lines = done.stderr.splitlines()
        check(done.returncode == 2, f'{own}: exit {done.returncode}: {done.stderr}')
        check(len(lines) == 1 and lines[0].startswith('sanbench: '), f'{own}: {done.stderr}')
        check(done.stdout == '', f'{own}: says {done.stdout}')
        check(own[0].split('=')[0] in lines[0] or own[-2] in lines[0] or '--connect' in lines[0]
              or '--size' in lines[0], f'{own}: does not say what: {lines}')


def wrong_attached():
    """Settings of the daemon or the device are refused, and attaching to nothing is reported."""
    for own in (['--ip', '10.0.0.1/24'], ['--set', 'mtu=1500'], ['--poll', 'lcore'],
                ['--impair', 'drop=0.1'], ['--capture', '/tmp/x']):
        for spec, manual in (('unix:/nobody', 'sanstack.conf(5)'), ('verbs:x', 'rtsan-verbs(7)')):
            done = run([BENCH, '--attach', spec, '--connect', '10.0.0.1', *own])
            check(done.returncode == 2, f'{own}: exit {done.returncode}: {done.stderr}')
            check(own[0] in done.stderr and manual in done.stderr, f'{own}: {done.stderr}')
    done = run([BENCH, '--attach=unix:/nobody', '--server'])
    check(done.returncode == 1 and '--attach unix:/nobody: ' in done.stderr,
          f'exit {done.returncode}: {done.stderr}')


def wait_refused(work):
    """A program that polls the port itself can't sleep."""
    done = run(Null(work).program('client', ['--connect', '10.0.0.1', '--wait']))
    check(done.returncode == 2 and '--wait: needs --attach' in done.stderr,
          f'exit {done.returncode}: {done.stderr}')


def wrong_port_arguments(work):
    """Settings that only the provider checks are refused in the same form."""
    for own in (['--set', 'colour=blue'], ['--set', 'mtu=many'], ['--set', 'cc=none']):
        done = run(Null(work).program('client', own))
        check(done.returncode == 2, f'{own}: exit {done.returncode}: {done.stderr}')
        check(done.stderr.strip().splitlines()[-1].startswith('sanbench: '), done.stderr)


def no_port(work):
    """Without a port there is an error."""
    command = [BENCH, *work.eal(0, '--no-telemetry'), '--', '--ip', '10.0.0.1/24', '--server']
    done = run(command)
    check(done.returncode in (1, 2), f'exit {done.returncode}')
    check('port' in done.stderr.splitlines()[-1], done.stderr)


def usage():
    """--help has all options with their words; the manual page is checked by test_keys.py."""
    done = run([BENCH, '--help'])
    check(done.returncode == 0 and 'usage: sanbench' in done.stdout, done.stdout)
    told = dict(re.findall(r'^  --([a-z-]+)(.*\S)$', done.stdout, re.MULTILINE))
    keys = run([BENCH, '--keys']).stdout
    code = {name: valid for valid, name in re.findall(r' \(([^()]*)\)\n# (\S+) =', keys)}
    check(len(code) > 40 and set(told) == set(code), f'--help and the code: {set(told) ^ set(code)}')
    for name, valid in code.items():
        check(re.search(r'  .*\w', told[name]), f'--{name}: no help: {told[name]}')
        check(' or ' not in valid or valid == 'on or off' or valid in told[name], f'--{name}: {told[name]}')


def prompt_file(work):
    """Commands of a file: settings, a run in the background, every show."""
    link = Memif(work)
    server = Server(link)
    path = work.path('commands')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('help\nshow config\n'
                f'connect {link.server_ip}\n'
                'set mode push\nset size 100-5000\nset depth 16\nset count 2000\n'
                'set verify on\nset live off\n'
                'impair tx:drop=0.01\n'
                'start\nshow conn\nwait\n'
                'impair off\n'
                'set mode pull\nset duration 3600\nstart\nsleep 2\nstop\nwait\n'
                'show port\nshow conn\nshow stats\nshow cam\nshow drops\nshow histogram\n'
                'show config\nquit\n')
    done = run(link.program('client', ['--cmdline-file', path]))
    check(done.returncode == 0, f'exit {done.returncode}: {done.stdout}{done.stderr}')
    check(done.stdout.count('content verified by both sides') == 2, done.stdout)
    for text in ('client: push to', 'client: pull to', 'show port|conn|stream|stats', 'up to ns',
                 'mode pull size 100-5000 depth 16', 'duration 3600.000'):
        check(text in done.stdout, f'"{text}" is missing: {done.stdout}')
    server.process.wait_text('server: session 2 ')      # it may not have seen the end yet
    status, result = server.stop()
    check(status == 0 and result['sessions'] == 2, f'server: {status} {result["sessions"]}')


def prompt_stream(work):
    """show stream: the mode that was learned and why, and the path of the bytes. (AFC-6)"""
    link = Memif(work)
    server = Server(link)
    path = work.path('commands')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(f'connect {link.server_ip}\nset mode stream\nset size 50000\nset depth 1\n'
                'set verify on\nset duration 3600\nset way one\nset receive direct\n'
                'start\nsleep 2\nshow stream\nstop\nwait\n'
                'set stream-mode small\nstart\nsleep 2\nshow stream\nstop\nwait\n'
                'show stream\nquit\n')
    done = run(link.program('client', ['--cmdline-file', path]))
    check(done.returncode == 0, f'exit {done.returncode}: {done.stdout}{done.stderr}')
    shown = re.findall(r'^(\d) streams\n((?:  .*\n)*)', done.stdout, re.MULTILINE)
    check([n for n, _ in shown] == ['1', '1', '0'], done.stdout)
    learnt, small = shown[0][1], shown[1][1]
    for text, mode in ((learnt, 'large'), (small, 'small')):
        check(re.search(f'cid=0x[0-9a-f]{{6}} mode={mode} peer_mode=discovery ', text), text)
        check(re.search(r'\bthreshold=4096\s', text), text)
    moved = [dict((key, int(n)) for key, n in re.findall(r'tx_(\w+)_bytes=(\d+)', text))
             for text in (learnt, small)]
    # it may read while it discovers
    check(moved[0]['write'] > 10 * (moved[0]['message'] + moved[0]['read']), learnt)
    check(re.search(r'\d: discovery > large \(learnt\)', learnt), learnt)
    check(moved[1]['message'] > 0 and moved[1]['write'] == moved[1]['read'] == 0, small)
    server.stop()


def prompt_errors(work):
    """Errors at the prompt are reported and set the exit code."""
    path = work.path('wrong')
    for text, expected in (('set depth 0', 'error: depth: "0" is not 1 to'),
                           ('start', 'error: where to?'),
                           ('stop', 'error: no traffic'),
                           ('show histogram', 'error: no traffic yet'),
                           ('unlisten', 'error: not listening'),
                           ('shwo', 'no such command'),
                           ('set', 'bad arguments')):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(f'{text}\nquit\n')
        done = run(Null(work).program('client', ['--cmdline-file', path]))
        check(expected in done.stdout + done.stderr, f'{text}: {done.stdout}{done.stderr}')
        check(done.returncode == 1, f'{text}: exit {done.returncode}')
    done = run(Null(work).program('client', ['--cmdline-file', '/dev/zero']))
    check('/dev/zero:1: not a text' in done.stderr, f'/dev/zero: {done.stdout}{done.stderr}')
    check(done.returncode == 1, f'/dev/zero: exit {done.returncode}')


def prompt_input(work):
    """A prompt on standard input, with completion by tab."""
    link = Null(work)
    command = link.program('client', [])
    done = run(command, stdin='help\nsho\tstat\t\nquit\n')
    check(done.returncode == 0, f'exit {done.returncode}: {done.stderr}')
    check('set NAME VALUE' in done.stdout, done.stdout)
    typed = re.sub(r'\x1b\[[0-9]*[A-Z]', '', done.stdout)
    check('show stats' in typed, f'no completion: {typed}')
    for keys, line in (('set mo\tpul\t', 'set mode pull'), ('set ord\ten\t', 'set order ending'),
                       ('set verify on', 'set verify on'), ('set way send\t', 'set way send-recv'),
                       ('set stream-mode small-\t', 'set stream-mode small-large'),
                       ('help thresh\t', 'help threshold'), ('help captu\t', 'help capture')):
        done = run(command, stdin=f'{keys}\nquit\n')
        typed = re.sub(r'\x1b\[[0-9]*[A-Z]', '', done.stdout)
        check(done.returncode == 0 and line in typed, f'{keys!r}: no {line}: {typed} {done.stderr}')
    # compare each option's text in --help with that of the prompt
    usage = re.findall(r'^  (--([a-z-]+).*\S)$', run([BENCH, '--help']).stdout, re.MULTILINE)
    done = run(command, stdin=''.join(f'help {name}\n' for _, name in usage) + 'quit\n')
    for text, name in usage:
        check(text in done.stdout, f'help {name}: {done.stdout}')
    done = run(command, stdin='help nonsense\nquit\n')
    check(done.returncode == 1 and 'nonsense: no such option' in done.stdout, done.stdout)
    done = run(command, stdin='set mode nonsense\nquit\n')
    check(done.returncode == 1 and 'mode: "nonsense" is not send' in done.stdout, done.stdout)
    done = run(link.program('client', []), stdin='')
    check(done.returncode == 0, 'the end of input is no error')


def prompt_listens(work):
    """Server commands at the prompt."""
    link = Memif(work)
    with subprocess.Popen(link.program('server', []), stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE) as server:
        server.stdin.write('listen\n')
        server.stdin.flush()
        while 'listening' not in server.stdout.readline():
            check(server.poll() is None, 'the server has ended')
        Run(link, ['--mode', 'send', '--count', '100', '--verify']).check_ok()
        server.communicate('unlisten\nquit\n', timeout=PATIENCE)
        check(server.returncode == 0, f'exit {server.returncode}')


KEYS = {'ok', 'error', 'mode', 'peer', 'order', 'solicit', 'verify', 'size_min', 'size_max', 'depth',
        'conns', 'seed', 'seconds', 'messages', 'bytes', 'gbps', 'mps', 'latency_ns', 'rtx',
        'server_rtx', 'server_messages', 'server_bytes', 'server_errors', 'server_calls',
        'server_mps', 'memory_begin', 'memory_up', 'own_per_conn', 'leaks', 'counters'}
SERVER_KEYS = {'ok', 'sessions', 'sessions_failed', 'messages', 'bytes', 'leaks', 'counters'}


def json_keys(work):
    """Exactly the keys that the manual page lists."""
    link = Memif(work)
    server = Server(link)
    result = Run(link, ['--mode', 'send', '--count', '200', '--size', '64']).check_ok()
    check(set(result) == KEYS, f'keys: {set(result) ^ KEYS}')
    check(set(result['latency_ns']) == {'count', 'mean', 'min', 'p50', 'p90', 'p99', 'p999', 'max'},
          'latency keys')
    lat = result['latency_ns']
    check(0 < lat['min'] <= lat['p50'] <= lat['p90'] <= lat['p99'] <= lat['p999'] <= lat['max'],
          f'latency: {lat}')
    check(result['messages'] == 200 and result['bytes'] == 12800, 'counts')
    status, served = server.stop()
    check(status == 0 and set(served) == SERVER_KEYS, f'keys: {set(served) ^ SERVER_KEYS}')
    check(served['sessions'] == 1 and served['messages'] == 200, 'server counts')
    with open(os.path.join(SOURCE, 'doc/man/sanbench.1'), encoding='utf-8') as f:
        page = f.read()
    for key in KEYS | SERVER_KEYS:
        check(key in page, f'{key} is not in the manual page')


def json_link(work):
    """The check that results can be written removes no link, even one to a missing file."""
    path = work.path('link.json')
    os.symlink(work.path('missing.json'), path)
    done = run([BENCH, '--no-pci', '--', '--connect', '10.0.0.1', '--json', path])
    check(done.returncode == 2 and '--json' in done.stderr, f'{done.returncode}: {done.stderr}')
    check(os.path.islink(path) and not os.path.exists(path), 'the link has changed')


def interrupted(work):
    """SIGINT ends both sides in order, with a result and without leaks."""
    link = Memif(work)
    server = Server(link)
    path = work.path('interrupted.json')
    client = Process(work, 'client', link.program('client', [
        '--connect', link.server_ip, '--mode', 'push', '--verify', '--duration', '600', '--live',
        '--json', path]))
    client.wait_text('Gb/s')
    client.popen.send_signal(signal.SIGINT)
    check(client.wait() == 0, client.tail())
    check('no errors' in client.out(), client.tail())
    server.process.popen.send_signal(signal.SIGINT)
    check(server.process.wait() == 0, server.process.tail())


def unreachable(work):
    """Unreachable server: one line, exit status 1."""
    link = Null(work)
    done = run(link.program('client', ['--connect', link.server_ip, '--mode', 'push',
                                       '--timeout', '1500']))
    check(done.returncode == 1, f'exit {done.returncode}: {done.stderr}')
    last = done.stderr.strip().splitlines()[-1]
    check(last.startswith('sanbench: ') and link.server_ip in last, done.stderr)


def refusals(work):
    """The server rejects, with a reason."""
    link = Memif(work)
    server = Server(link, ['--memory', '1'])
    for own, expected in ((['--mode', 'push', '--size', '4M'], 'no memory'),
                          (['--mode', 'push', '--service', '99'], 'refused')):
        client = Run(link, own)
        check(client.status == 1, f'{own}: exit {client.status}')
        check(expected in client.err, f'{own}: {client.err}')
        check(client.json['ok'] is False and client.json['error'] != '', 'JSON')
    check(server.process.is_alive(), 'the server has ended')
    Run(link, ['--mode', 'push', '--count', '10']).check_ok()


def main():
    tests = Tests()
    with Work() as work:
        tests.add('wrong arguments', wrong_arguments)
        tests.add('wrong arguments, attached', wrong_attached)
        tests.add('no sleep without an lcore', wait_refused, work)
        tests.add('wrong port arguments', wrong_port_arguments, work)
        tests.add('no port', no_port, work)
        tests.add('usage', usage)
        tests.add('commands from a file', prompt_file, work)
        tests.add('streams at the prompt', prompt_stream, work)
        tests.add('errors at the prompt', prompt_errors, work)
        tests.add('prompt on standard input', prompt_input, work)
        tests.add('prompt listens', prompt_listens, work)
        tests.add('JSON keys', json_keys, work)
        tests.add('JSON into a link', json_link, work)
        tests.add('SIGINT', interrupted, work)
        tests.add('unreachable server', unreachable, work)
        tests.add('refusals', refusals, work)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
