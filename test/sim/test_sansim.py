#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""sansim as a program: the same scenario is the same run, what it writes, what it refuses.

The trace hashes of SCENARIOS go to hashes.txt in the build's folder: devtools/check.py
compares those of the plain and the sanitizer build.
"""

import csv
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../e2e'))

from e2e import BUILD, SANITIZE, SLOW, SOURCE, Tests, check, until_true  # noqa: E402

SANSIM = os.path.join(BUILD, 'apps/sansim/sansim')
MANUAL = os.path.join(SOURCE, 'doc/man/sansim.1')
HASHES = os.path.join(BUILD, 'test/sim/hashes.txt')
LUA = os.path.join(SOURCE, 'usertools/sanstack.lua')
SEEDS = range(700, 712)     # of a swarm, run alone
EVERY_KIND = ['load.send=1', 'load.push=1', 'load.push_imm=1', 'load.pull=1', 'load.fetch_add=1',
              'load.cmp_swap=1', 'load.size_min=1', 'load.size_max=64 KiB', 'load.both_ways=yes']
SHORT = ['run.duration=500 us']
MANY = ['topology.hosts=8', 'load.connections=12', 'load.pattern=random', 'load.unordered=50 %']
SETTLES_NOT = ['link.rate=10 Mb/s', 'run.duration=1 ms', 'run.settle=1 ms']

# Together every topology, pattern, fault and algorithm.
SCENARIOS = {
    'pair': [],
    'pair-ipv6': ['host.ipv6=yes', *EVERY_KIND],
    'star-incast': ['topology.type=star', 'topology.hosts=9', 'load.pattern=incast',
                    'load.connections=16', 'link.buffer=128 KiB'],
    'star-fan-marks': ['topology.type=star', 'topology.hosts=5', 'load.pattern=fan',
                       'load.connections=8', 'link.mark=32 KiB', 'host.cc=dcqcn'],
    'dumbbell-across': ['topology.type=dumbbell', 'topology.hosts=8', 'load.pattern=across',
                        'load.connections=8', 'core.rate=25 Gb/s', 'core.buffer=256 KiB'],
    'leaf-spine': ['topology.type=leaf-spine', 'topology.leaves=3', 'topology.spines=4', *MANY,
                   *EVERY_KIND],
    'permutation': ['topology.type=star', 'topology.hosts=6', 'load.pattern=permutation',
                    'load.connections=6', 'host.policy=srpt', 'load.solicit=always'],
    'fixed': ['host.cc=fixed', 'host.cwnd=16', 'load.solicit=never', *EVERY_KIND],
    'clocks': ['host.clock_drift=0.0002', 'host.poll=3 us', 'host.rx_ring=64', *EVERY_KIND],
    'tiny-pools': ['host.mbufs=600', 'host.held=40', 'host.held_conn=20', 'host.txns=8',
                   'host.rxns=8', 'host.budget=16', 'host.incast=32 KiB', *EVERY_KIND],
    'loss': ['fault.f.kind=loss', 'fault.f.rate=5 %', *EVERY_KIND],
    'burst': ['fault.f.kind=burst', 'fault.f.rate=3 %', *EVERY_KIND],
    'reorder': ['fault.f.kind=reorder', 'fault.f.rate=20 %', 'fault.f.arg=20 us',
                'load.unordered=1', *EVERY_KIND],
    'duplicate': ['fault.f.kind=duplicate', 'fault.f.rate=20 %', 'fault.f.arg=20 us', *EVERY_KIND],
    'corrupt': ['fault.f.kind=corrupt', 'fault.f.rate=2 %', *EVERY_KIND],
    'flow': ['fault.f.kind=flow', 'fault.f.rate=30 %', 'fault.f.for=10 ms', 'load.reconnect=yes',
             'topology.type=leaf-spine', *MANY],
    'down': ['fault.f.kind=down', 'fault.f.where=host:1:up', 'fault.f.at=100 us',
             'fault.f.for=3 ms', *EVERY_KIND],
    'pause': ['fault.f.kind=pause', 'fault.f.where=host:0', 'fault.f.at=100 us',
              'fault.f.for=3 ms', *EVERY_KIND],
    'restart': ['fault.f.kind=restart', 'fault.f.where=host:1', 'fault.f.at=100 us',
                'fault.f.for=2 ms', 'load.reconnect=yes', 'run.duration=20 ms', *EVERY_KIND],
    'narrow': ['fault.f.kind=narrow', 'fault.f.mtu=1280', 'fault.f.at=50 us', 'host.mtu=9000',
               *EVERY_KIND],
    'forge': ['fault.f.kind=forge', 'fault.f.rate=50 %', 'host.cc=dcqcn', *EVERY_KIND],
    'mute': ['fault.f.kind=mute', 'fault.f.where=host:1:up', 'fault.f.at=100 us',
             'fault.f.for=3 ms', 'load.solicit=always', *EVERY_KIND],
    'lie': ['fault.f.kind=lie', 'fault.f.where=host:1', 'fault.f.lie=partial',
            'topology.type=star', *MANY, *EVERY_KIND],
    'move': ['fault.f.kind=move', 'fault.f.where=host:1', 'fault.f.at=100 us',
             'fault.f.for=2 ms', *EVERY_KIND],
    'wrong-keys': ['load.bad_key=5 %', 'load.revoke=100 us', 'load.recv_delay=50 us', *EVERY_KIND],
    'wrap': ['host.wrap=yes', 'load.ops=300', *EVERY_KIND],
}


def sets(words):
    return [part for word in words for part in ('--set', word)]


def scenario(name):
    return sets([*SHORT, *SCENARIOS[name]])


def run(*own, seconds=120, **kwargs):
    return subprocess.run([SANSIM, *own], capture_output=True, text=True, check=False,
                          timeout=seconds * SLOW, stdin=subprocess.DEVNULL, **kwargs)


def run_ok(*own, **kwargs):
    done = run(*own, **kwargs)
    check(done.returncode == 0, f'{own}: exit {done.returncode}: {done.stdout}{done.stderr}')
    check(done.stderr == '', f'{own}: {done.stderr}')
    return done.stdout


def figures(*own, **kwargs):
    return json.loads(run_ok(*own, '--json', '-', **kwargs))


def manual():
    with open(MANUAL, encoding='utf-8') as f:
        return f.read().replace('\\-', '-').replace('\\fR', '').replace('\\fP', '')


def section(page, name):
    """Lines of a section of the manual page."""
    match = re.search(rf'^\.S[HS] {re.escape(name)}$(.*?)(?=^\.S[HS] |\Z)', page, re.M | re.S)
    check(match, f'the manual page has no section {name}')
    return match.group(1)


def terms(text):
    """What .TP entries are about."""
    found = []
    for line in re.findall(r'^\.TP\n\.B[RI]? (.*)$', text, re.M):
        found += re.findall(r'[a-z][a-z0-9_-]*', line)
    return found


# ---- the same again ----

def hashes():
    """Every scenario of the list passes; its hash is written down."""
    if os.path.exists(HASHES):
        os.unlink(HASHES)
    lines = [f"{name} {figures(*scenario(name))['trace_hash']}" for name in SCENARIOS]
    lines += [f"seed-{seed} {figures('--swarm-seed', str(seed))['trace_hash']}" for seed in SEEDS]
    check(len({line.split()[1] for line in lines}) == len(lines), f'not all different: {lines}')
    with open(HASHES, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


def same_again(folder):
    """Twice the same, to the last figure and byte; and not with another seed."""
    for name in ('leaf-spine', 'restart', 'clocks'):
        files, results = [], []
        for i in range(2):
            path = os.path.join(folder, f'{name}{i}')
            results.append(run_ok(*scenario(name), '--set', 'run.sample=20 us',
                                  '--trace', path + '.pcapng', '--series', path + '.csv'))
            for end in ('.pcapng', '.csv'):
                with open(path + end, 'rb') as f:
                    files.append(f.read())
        check(results[0] == results[1], f'{name}: {results}')
        check(files[:2] == files[2:], f'{name}: not the same files')
        # looking does not change what is looked at
        check(figures(*scenario(name))['trace_hash'] in results[0], f'{name}: watched')
        other = figures(*scenario(name), '--seed', '99')
        check(other['seed'] == 99 and other['trace_hash'] not in results[0], f'{name}: seed')


def swarm_hash(out):
    match = re.search(r'^(\d+) runs, 0 failed, .*trace hash ([0-9a-f]{16})', out, re.M)
    check(match, out)
    return int(match.group(1)), int(match.group(2), 16)


def swarm_and_alone():
    """Runs of a swarm are what they are alone, whoever ran before in the process."""
    alone = sum(int(figures('--swarm-seed', str(seed))['trace_hash'], 16) for seed in SEEDS)
    for workers in ('1', '2', '5'):
        out = run_ok('--swarm', str(len(SEEDS)), '--seed', str(SEEDS[0]), '--workers', workers)
        check(swarm_hash(out) == (len(SEEDS), alone % 2**64), f'{workers} workers: {out}')


def written_and_read(folder):
    """--print is the scenario: read back it is the same run."""
    path = os.path.join(folder, 'written.ini')
    for own in (scenario('leaf-spine'), scenario('flow'), scenario('dumbbell-across'),
                ['--swarm-seed', '12']):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(run_ok(*own, '--print'))
        check(run_ok('--scenario', path) == run_ok(*own), f'{own}: not the same')
        check(run_ok('--scenario', path, '--print') == run_ok(*own, '--print'), f'{own}: printed')


def files_add_up(folder):
    """Later files and words win; a word beats what was before it."""
    for name, text in (('a', '[host]\nmtu = 1500\n[load]\ndepth = 3\n'), ('b', '[host]\nmtu = 2000\n')):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
            f.write(text)
    out = run_ok('--scenario', os.path.join(folder, 'a'), '--set', 'load.depth=5',
                 '--scenario', os.path.join(folder, 'b'), '--print')
    check('\nmtu = 2000\n' in out and '\ndepth = 5\n' in out, out)
    # a drawn scenario is what they are put over, wherever it stands
    words = [['--swarm-seed', '12'], ['--set', 'load.depth=5'], ['--seed', '9']]
    outs = {run_ok(*sum(order, []), '--print') for order in itertools.permutations(words)}
    check(len(outs) == 1, f'the order matters: {outs}')
    check(all('\ndepth = 5\n' in out and '\nseed = 9\n' in out for out in outs), outs)


# ---- what it writes ----

def json_keys(folder):
    """Exactly the keys that the manual page lists, in the file, on the terminal, as text."""
    path = os.path.join(folder, 'out.json')
    text = run_ok(*scenario('star-incast'), '--json', path)
    with open(path, encoding='utf-8') as f:
        result = json.load(f)
    check(figures(*scenario('star-incast')) == result, 'file and standard output differ')
    documented = terms(section(manual(), 'JSON'))
    # the page names the first and the last one of the counters, which are explained elsewhere
    with open(os.path.join(HERE, '../../lib/base/san_counters.h'), encoding='utf-8') as f:
        lists = re.findall(r'#define SAN_(?:PDL|TL)_COUNTERS\(\w+\)(.*?[^\\])\n\n', f.read(), re.S)
    counters = re.findall(r'^\s*\w\((\w+),', '\n'.join(lists), re.M)
    check(counters[0] in documented and counters[-1] in documented, counters)
    documented += counters[1:-1]
    check(len(documented) == len(set(documented)), 'a key is listed twice')
    check(set(result) | {'why'} == set(documented), f'keys: {set(result) ^ set(documented)}')
    check('why' not in result, 'a reason of what did not fail')
    for key, value in result.items():
        if key in ('trace_hash', 'failed'):
            continue
        check(isinstance(value, int) and value >= 0, f'{key} is {value}')
        check(re.search(rf'^{key} +{value}$', text, re.M), f'{key} is not in the text')
    check(re.fullmatch('[0-9a-f]{16}', result['trace_hash']), result['trace_hash'])
    check(result['failed'] is False, 'failed')
    check(result['switch_drops'] > 0, 'no drops: not what it is for')
    times = [result[f'completion_{k}_ns'] for k in ('min', 'p50', 'p99', 'p999')]
    check(times == sorted(times) and times[0] > 0, f'times: {times}')
    check(result['ops'] >= result['ops_failed'] and result['goodput_kbps'] <= 10**8, 'figures')


def time_series(folder):
    path = os.path.join(folder, 'series.csv')
    run_ok(*sets(['run.duration=1 ms', 'run.sample=50 us', 'topology.type=star',
                  'topology.hosts=5', 'load.pattern=incast', 'load.connections=4']),
           '--series', path)
    with open(path, encoding='utf-8', newline='') as f:
        rows = list(csv.DictReader(f))
    columns = ['time_ns', 'queue_bytes', 'bytes', 'inflight', 'cam',
               'flow0', 'flow1', 'flow2', 'flow3']
    check(rows and list(rows[0]) == columns, f'columns: {list(rows[0])}')
    rows = [{key: int(value) for key, value in row.items()} for row in rows]
    check([row['time_ns'] for row in rows] == [50000 * i for i in range(len(rows))], 'times')
    check(len(rows) >= 20, f'{len(rows)} rows')
    for before, after in zip(rows, rows[1:]):
        for key in ('bytes', 'flow0', 'flow1', 'flow2', 'flow3'):
            check(after[key] >= before[key], f'{key} gets less: {before} {after}')
    for row in rows:
        check(row['bytes'] == sum(row[f'flow{i}'] for i in range(4)), f'sum: {row}')
    check(max(row['queue_bytes'] for row in rows) > 10000, 'no queue')
    check(max(row['inflight'] for row in rows) > 10, 'nothing in flight')


COMMENT = '1048576'     # the severity of a packet's comment: the only thing to say
FIELDS = ['frame.time_epoch', 'frame.interface_name', 'frame.comment', '_ws.malformed',
          '_ws.expert.severity', 'udp.dstport', 'san.version', 'san.bth.opcode', 'ip.version']


def packets(path, folder):
    """Rows of FIELDS, by tshark with our dissector."""
    command = ['tshark', '-X', f'lua_script:{LUA}', '-r', path, '-T', 'fields',
               '-o', 'udp.ignore_ipv6_zero_checksum:TRUE']
    for field in FIELDS:
        command += ['-e', field]
    # no personal configuration or plugins
    done = subprocess.run(command, capture_output=True, encoding='utf-8', check=False,
                          env=dict(os.environ, HOME=folder, XDG_CONFIG_HOME=folder))
    check(done.returncode == 0 and 'Lua' not in done.stderr, f'tshark: {done.stderr}')
    return [dict(zip(FIELDS, line.split('\t'))) for line in done.stdout.splitlines()]


def nanoseconds(row):
    whole, part = row['frame.time_epoch'].split('.')
    return int(whole) * 10**9 + int(part)


def check_times(rows, result):
    """Virtual time. A link's packets arrive in their order; one dropped is told when it comes."""
    latest = {}
    for row in rows:
        at_ns = nanoseconds(row)
        check(0 < at_ns <= result['virtual_ns'], f'time of {row}')
        if row['frame.comment'].startswith('dropped'):
            continue
        check(at_ns > latest.get(row['frame.interface_name'], 0), f'back in time: {row}')
        latest[row['frame.interface_name']] = at_ns
    times = [nanoseconds(row) for row in rows]
    highest, back = 0, 0
    for at_ns in times:
        back = max(back, highest - at_ns)
        highest = max(highest, at_ns)
    # what waits in the longest queue
    check(back < 1000000, f'{back} ns back')


def trace_is_read(folder, more):
    """Every packet is one of ours, or of ARP and its like; none is malformed."""
    path = os.path.join(folder, 'trace.pcapng')
    result = figures(*scenario('star-incast'), *sets([*EVERY_KIND, 'load.size_max=8 KiB',
                                                      'load.bad_key=2 %', 'fault.f.kind=loss',
                                                      'fault.f.rate=1 %', *more]),
                     '--trace', path)
    rows = packets(path, folder)
    check(len(rows) > 1000, f'{len(rows)} packets')
    for row in rows:
        check(row['_ws.malformed'] == '', f'malformed: {row}')
        check(row['_ws.expert.severity'] in ('', COMMENT), f'not well: {row}')
        check((row['udp.dstport'] == '4791') == (row['san.version'] == '1'), f'not ours: {row}')
    check_times(rows, result)
    links = {f'{a}-{b}' for i in range(9) for a, b in ((i, 9), (9, i))}
    check({row['frame.interface_name'] for row in rows} == links, 'not every link')
    comments = [row['frame.comment'] for row in rows]
    check(set(comments) == {'', 'lost: fault', 'dropped: queue full'}, f'{set(comments)}')
    # from the load's beginning on that is what was counted
    check(comments.count('lost: fault') >= result['fault_drops'] > 0, 'lost')
    check(comments.count('dropped: queue full') >= result['switch_drops'] > 0, 'dropped')
    opcodes = {row['san.bth.opcode'] for row in rows}
    check(len(opcodes) >= 10, f'only {opcodes}')


def trace_of_a_place(folder):
    path = os.path.join(folder, 'place.pcapng')
    for where, links in (('host:2:up', {'2-5'}), ('host:0', {'0-5', '5-0'}), ('trunk', {'5-6', '6-5'})):
        kind = 'dumbbell' if where == 'trunk' else 'star'
        run_ok(*sets([*SHORT, f'topology.type={kind}', 'topology.hosts=5', 'load.connections=4',
                      'load.pattern=permutation', 'load.size_max=4 KiB', 'load.size_min=4 KiB']),
               '--trace', path, '--trace-at', where)
        got = {row['frame.interface_name'] for row in packets(path, folder)}
        check(got == links, f'{where}: {got}')


# ---- what it refuses ----

WRONG = [
    (['--bogus'], '--bogus'),
    (['extra'], 'options'),
    (['--set'], '--set'),
    (['--set', 'mtu'], 'section.key=value'),
    (['--set', 'host.mtu=10'], 'host.mtu: "10" is not 1024 to 9000'),
    (['--set', 'host.colour=red'], 'unknown key "colour" in [host]'),
    (['--set', 'topology.hosts=3'], 'topology.hosts 3 is not the 2 of topology.type pair'),
    (['--set', 'fault.f.kind=meteor'], 'fault.f.kind'),
    (['--set', 'fault.f.kind=down', '--set', 'fault.f.where=spine:0'], 'fault.f.where: "spine:0"'),
    (['--set', 'fault.f.kind=pause', '--set', 'fault.f.where=all'], 'fault.f.where: "all"'),
    (['--set', 'fault.f.kind=loss'], '[fault.f] of kind loss wants a rate'),
    (['--set', 'fault.kind=loss'], 'faults have names: [fault.NAME]'),
    (['--set', 'garden.mtu=1500'], 'unknown section [garden]'),
    (['--seed', 'x'], '--seed: "x" is not a number'),
    (['--seed', '-1'], '--seed'),
    (['--seed', '0x10'], '--seed: "0x10" is not a number'),
    (['--seed', '+1'], '--seed: "+1" is not a number'),
    (['--seed', ' 1'], '--seed: " 1" is not a number'),
    (['--seconds', '1'], '--seconds and --workers want --swarm'),
    (['--workers', '1'], '--seconds and --workers want --swarm'),
    (['--trace-at', 'host:0'], '--trace-at wants --trace'),
    (['--swarm', '1', '--trace-at', 'host:0'], '--swarm has its own scenarios'),
    (['--trace', '-'], '--trace: wants a file, not -'),
    (['--series', '-', '--set', 'run.sample=1 us'], '--series: wants a file, not -'),
    (['--shrink', '--print'], '--shrink takes no'),
    (['--shrink', '--json', '-'], '--shrink takes no'),
    (['--shrink', '--trace', '/tmp/never-written'], '--shrink takes no'),
    (['--shrink', '--series', '/tmp/never-written'], '--shrink takes no'),
    (['--swarm', 'many'], '--swarm'),
    (['--swarm', '0'], '--swarm 0 wants --seconds'),
    (['--swarm', '1', '--workers', '0'], '--workers: 1 to 16'),
    (['--swarm', '1', '--workers', '17'], '--workers: 1 to 16'),
    (['--swarm', '1', '--workers', '4294967297'], '--workers: 1 to 16'),
    (['--swarm', '1', '--set', 'host.mtu=1500'], '--swarm has its own scenarios'),
    (['--scenario', '/nonexistent/x.ini', '--swarm', '1'], '--swarm has its own scenarios'),
    (['--swarm', '1', '--json', '/tmp/never-written'], '--swarm has its own scenarios'),
    (['--swarm', '1', '--swarm-seed', '2'], '--swarm has its own scenarios'),
    (['--swarm-seed', ''], '--swarm-seed'),
    (['--scenario', '/nonexistent/x.ini'], '/nonexistent/x.ini: No such file'),
    (['--scenario', '/'], '/: Is a directory'),
    (['--series', '/tmp/never-written'], 'run.sample'),
    (['--trace', '/tmp/never-written', '--trace-at', 'host:7'], '--trace-at: "host:7"'),
    (['--trace', '/tmp/never-written', '--trace-at', 'trunk'], '--trace-at: "trunk"'),
]


def wrong_options():
    """Exit 2, and standard error says what; nothing runs."""
    for own, text in WRONG:
        done = run(*own)
        check(done.returncode == 2, f'{own}: exit {done.returncode}: {done.stderr}')
        check(text in done.stderr, f'{own}: "{done.stderr}" does not say "{text}"')
        check(done.stdout == '', f'{own}: says {done.stdout}')
        check(done.stderr.count('\n') == 1 or '--help' in done.stderr, f'{own}: {done.stderr}')
    check(not os.path.exists('/tmp/never-written'), 'a file of what was refused')


def wrong_files(folder):
    """File and line."""
    path = os.path.join(folder, 'wrong.ini')
    for text, line, says in (('[host]\n\nmtu = 10\n', 3, 'host.mtu'), ('[host]\nmtu\n', 2, 'key = value'),
                             ('[host]\nmtu = 1500\n[fault.x]\nkind = no\n', 4, 'fault.x.kind')):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        done = run('--scenario', path)
        check(done.returncode == 2 and done.stderr.startswith(f'sansim: {path}:{line}: '),
              f'{text}: {done.returncode} {done.stderr}')
        check(says in done.stderr and done.stderr.count('\n') == 1, done.stderr)


def files_not_written():
    nowhere = '/nonexistent/file'
    sample = ['--set', 'run.sample=100 us', *sets(SHORT)]
    for option in ('--json', '--series', '--trace'):
        done = run(*sample, option, nowhere)
        check(done.returncode != 0 and nowhere in done.stderr, f'{option}: {done.stderr}')
        if os.path.exists('/dev/full'):
            done = run(*sample, option, '/dev/full')
            check(done.returncode == 1 and 'sansim: ' in done.stderr, f'{option}: {done.stderr}')
    if os.path.exists('/dev/full'):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            done = subprocess.run([SANSIM, *sets(SHORT)], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        check(done.returncode == 1 and b'standard output' in done.stderr, f'{done}')


# ---- what fails ----

def failure_is_repeated(folder):
    """Exit 1, the reason, and one command line that does it again."""
    odd = os.path.join(folder, "it's a file.json")
    first = run(*sets(SETTLES_NOT), '--json', odd)
    check(first.returncode == 1, f'exit {first.returncode}')
    lines = first.stderr.splitlines()
    check(len(lines) == 2 and lines[0].startswith('sansim: progress: at '), first.stderr)
    check(lines[1].startswith('  repeat: '), first.stderr)
    with open(odd, encoding='utf-8') as f:
        result = json.load(f)
    check(result['failed'] is True, 'JSON does not say so')
    check(f"sansim: {result['why']}" == lines[0], result['why'])
    os.unlink(odd)
    again = subprocess.run(['sh', '-c', lines[1].split(': ', 1)[1]], capture_output=True, text=True,
                           check=False)
    check((again.returncode, again.stdout, again.stderr) == (1, first.stdout, first.stderr),
          f'not repeated: {again.stderr}')
    with open(odd, encoding='utf-8') as f:
        check(json.load(f) == result, 'not the same figures')


def failure_is_shrunk(folder):
    done = run('--shrink', *sets([*SETTLES_NOT, 'load.connections=4', 'fault.f.kind=loss',
                                  'fault.f.rate=1 %']))
    check(done.returncode == 0, f'exit {done.returncode}: {done.stderr}')
    path = os.path.join(folder, 'shrunk.ini')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(done.stdout)
    check(done.stdout.startswith('# progress: at '), done.stdout)
    check('connections = 1\n' in done.stdout and '[fault' not in done.stdout, done.stdout)
    again = run('--scenario', path)
    check(again.returncode == 1 and 'sansim: progress: ' in again.stderr, again.stderr)
    done = run('--shrink', *sets(SHORT))
    check(done.returncode == 1 and 'does not fail' in done.stderr, f'{done}')


def swarm_fails():
    """A run whose process dies is told with its seed, and the others go on."""
    if SANITIZE:
        return      # the sanitizer wants all address space that there is
    done = run('--swarm', '3', '--seed', '40', '--workers', '2',
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)))
    check(done.returncode == 1, f'exit {done.returncode}: {done.stdout}')
    for seed in (40, 41, 42):
        check(f'repeat: {SANSIM} --swarm-seed {seed}\n' in done.stdout, done.stdout)
    check('3 runs, 3 failed' in done.stdout, done.stdout)


def read_of(process, name):
    with open(f'/proc/{process}/{name}', encoding='utf-8') as f:
        return f.read()


def swarm_worker_stops():
    """A worker that was stopped has not failed: what is limited is its time on the CPU."""
    with subprocess.Popen([SANSIM, '--swarm', '1', '--seed', '40', '--workers', '1'], text=True,
                          stdout=subprocess.PIPE) as swarm:
        children = f'task/{swarm.pid}/children'
        until_true('a worker', lambda: read_of(swarm.pid, children).split())
        worker = int(read_of(swarm.pid, children))
        until_true('its limit', lambda: re.search(r'^Max cpu time +6\d\d ',
                                                  read_of(worker, 'limits'), re.M))
        os.kill(worker, signal.SIGSTOP)
        until_true('stopped', lambda: read_of(worker, 'stat').rsplit(')', 1)[1].split()[0] == 'T')
        os.kill(worker, signal.SIGCONT)
        out = swarm.communicate(timeout=120 * SLOW)[0]
    check('1 runs, 0 failed' in out, out)


def swarm_cannot_write(folder):
    """What is shorter has no place; said on standard error, not on the way to nowhere."""
    if SANITIZE:
        return
    os.mkdir(os.path.join(folder, 'sansim-40.ini'))
    done = run('--swarm', '1', '--seed', '40', '--workers', '1', '--shrink', cwd=folder,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)))
    check(done.returncode == 1, f'exit {done.returncode}: {done.stdout}')
    check('sansim: sansim-40.ini: Is a directory' in done.stderr, done.stderr)
    check('shorter' not in done.stdout, done.stdout)


def swarm_cannot_start():
    done = run('--swarm', '3', '--workers', '2',
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)))
    check(done.returncode == 1, f'exit {done.returncode}: {done.stdout}')
    check(done.stderr.count('no process for a run: Too many open files') == 2, done.stderr)


def swarm_ends_in_time():
    out = run_ok('--swarm', '0', '--seconds', '3', '--workers', '2')
    runs, _ = swarm_hash(out)
    check(runs > 0, out)
    # a run of about a second is not over in time, and counts
    runs, _ = swarm_hash(run_ok('--swarm', '0', '--seed', '224', '--seconds', '1', '--workers', '1'))
    check(runs > 0, 'what was under way is lost')


# ---- the manual page ----

def manual_lists_options():
    out = run_ok('--help')
    check(out.startswith('Usage: sansim '), out)
    known = set(re.findall(r'--[a-z-]+', out))
    listed = set(re.findall(r'--[a-z-]+', section(manual(), 'OPTIONS')))
    check(known == listed, f'options: {known ^ listed}')
    check(run_ok('--version').startswith('sansim '), 'version')
    for option in '--help', '--version', '--keys':
        for wrong in ['--bogus'], ['--seed', 'x'], ['--swarm', 'many'], ['extra']:
            check(run_ok(*wrong, option) == run_ok(option, *wrong) == run_ok(option),
                  f'{option} beside {wrong}')


def manual_lists_the_rest(folder):
    page, keys = manual(), run_ok('--keys')
    faults = re.split(', | or ', re.search(r'\((.*)\)\n# kind =', keys).group(1))
    check(set(terms(section(page, 'FAULTS'))) == set(faults), 'faults')
    with open(os.path.join(SOURCE, 'apps/sansim/sim_check.c'), encoding='utf-8') as f:
        checkers = set(re.findall(r'san_sim_(?:world_fail|fail_side|fail_host)\('
                                  r'\s*w, (?:\w+, )?"(\w+)"', f.read()))
    checkers = checkers - {'sansim'} | {'core'}     # the layers' own checks abort
    check(set(terms(section(page, 'CHECKERS'))) == checkers, 'checkers')
    path = os.path.join(folder, 'head.csv')
    run_ok(*sets([*SHORT, 'run.sample=1 ms']), '--series', path)
    with open(path, encoding='utf-8') as f:
        columns = set(f.readline().strip().split(','))
    check(columns <= set(terms(section(page, 'TIME SERIES'))), f'columns: {columns}')


def main():
    tests = Tests()
    with tempfile.TemporaryDirectory(prefix='sansim.') as folder:
        tests.add('hashes of all scenarios', hashes)
        tests.add_long('twice the same', same_again, folder)
        tests.add_long('a swarm and its runs alone', swarm_and_alone)
        tests.add('written and read', written_and_read, folder)
        tests.add('files add up', files_add_up, folder)
        tests.add('JSON', json_keys, folder)
        tests.add('time series', time_series, folder)
        if shutil.which('tshark') is None:
            print('# tshark is not installed: traces are not read')
        elif not SANITIZE:      # it is tshark that works
            tests.add('trace over IPv4', trace_is_read, folder, [])
            tests.add_long('trace over IPv6', trace_is_read, folder, ['host.ipv6=yes'])
            tests.add('trace of a place', trace_of_a_place, folder)
        tests.add('wrong options', wrong_options)
        tests.add('wrong files', wrong_files, folder)
        tests.add('files that cannot be written', files_not_written)
        tests.add('a failed run is repeated', failure_is_repeated, folder)
        tests.add('a failed run is shrunk', failure_is_shrunk, folder)
        tests.add('a swarm fails', swarm_fails)
        tests.add('a worker of a swarm stops', swarm_worker_stops)
        tests.add('a swarm cannot write', swarm_cannot_write, folder)
        tests.add('a swarm cannot start', swarm_cannot_start)
        tests.add_long('a swarm ends in time', swarm_ends_in_time)
        tests.add('manual page: options', manual_lists_options)
        tests.add('manual page: faults, checkers, columns', manual_lists_the_rest, folder)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
