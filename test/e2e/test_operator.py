#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What an operator sees of two daemons and their programs: telemetry, sanctl, metrics, captures of
one connection, traces. (SYS-1, SYS-2, ARCH-7)"""

import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import urllib.request

import ctf
from daemon import DAEMON, IP, PINGPONG, Daemon, wait_listening
from daemon import eal as eal_of, embedded as embedded_at
from e2e import (BENCH, BUILD, PATIENCE, SOURCE, Failed, Process, Skipped, Tests, Work, check,
                 until_true)
from openmetrics import parse
from test_daemon import HELLO, ask, dial, request

OPERATOR = os.path.join(BUILD, 'test/e2e/operator')
SANCTL = os.path.join(SOURCE, 'usertools/sanctl')
IP6 = {'server': 'fd06::1', 'client': 'fd06::2'}
MANY = 1000
ESTABLISHED = 2     # RTSAN_EV_ESTABLISHED


class Engine(Daemon):
    """An engine that sanctl can query; of an embedded one only the prefix is known."""

    def __init__(self, prefix):
        self.prefix = prefix

    def sanctl(self, *args, status=0):
        """Standard output; with another *status* the error text."""
        done = subprocess.run([SANCTL, '--file-prefix', self.prefix, *map(str, args)],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        check(done.returncode == status, f'sanctl {args}: {done.returncode} {done.stderr}')
        return done.stdout if status == 0 else done.stderr

    def json(self, *args):
        return json.loads(self.sanctl(*args, '--json'))


class End(Engine):
    """A daemon at one end of a memif link."""

    def __init__(self, work, role, eal=''):
        memif = eal_of(work, role, '0').split()[-1]     # last argument
        Daemon.__init__(self, work, role, f'ip6 = {IP6[role]}/64\nconns = 2048',
                        f'qps = {MANY + 24}', vdev=f'{memif}\n{eal}')


@contextlib.contextmanager
def traffic(work, daemons, recvs=4, conns=1, sends=2, size=3000, peer=IP['server']):
    """Start a server and a client that are connected. Returns both processes."""
    server = Process(work, 'server', [OPERATOR, 'server', daemons[0].spec, str(recvs)])
    wait_listening(daemons[0], server)
    client = Process(work, 'client', [OPERATOR, 'client', daemons[1].spec, peer, str(conns),
                                      str(sends), str(size)])
    try:
        client.wait_text('connected')
        yield server, client
        check(server.is_alive() and client.is_alive(), f'{server.tail()} {client.tail()}')
    finally:
        client.kill()
        server.kill()
        until_true('connections end',
                   lambda: not any(d.ask('conn_list').keys() - {'next'} for d in daemons))


# ---- tests, which share two daemons ----

def numbers(work, daemons):
    """Every command with running programs: fields are plausible, and counters increase."""
    daemon = daemons[1]
    with traffic(work, daemons) as (_, client):
        first = daemon.ask('apps')
        rows = {k: v for k, v in first.items() if k not in ('next', 'limits')}
        check(len(rows) == 1, f'applications: {first}')
        number, app = next(iter(rows.items()))
        check(app['pid'] == client.pid and app['name'] == 'operator', f'{app}')
        check(app['uid'] == os.getuid(), f'{app}')
        want = {'qps': 1, 'cqs': 1, 'regions': 1, 'conns': 1, 'qp_faults': 0}
        check({k: app[k] for k in want} == want, f'{app}')
        check(app['memory_bytes'] > 65536, f'a region, and two queues: {app}')
        check(first['limits']['qps'] == MANY + 24, f'{first["limits"]}')
        (cid,) = daemon.ask('conn_list').keys() - {'next'}
        before, at = daemon.ask(f'conn,{cid}'), daemon.ask('lcores')['0']
        for key in ('tx_bytes', 'tx_messages', 'tx_pkts', 'rx_pkts'):
            until_true(f'{key} grows', lambda: daemon.ask(f'conn,{cid}')[key] > before[key])
        after, then = daemon.ask(f'conn,{cid}'), daemon.ask('lcores')['0']
        check(after['tx_bytes'] == 3000 * after['tx_messages'], f'{after}')
        check(after['peer'] == IP['server'] and after['state'] == 'open', f'{after}')
        check(after['app'] == int(number) and after['sends'] <= 2, f'{after}')
        check(0 < after['rtt_ns'] < 10 ** 10, f'{after}')
        check(after['in_flight'] <= after['limit'] <= after['virtual_window'], f'{after}')
        check(at['busy_ns'] < then['busy_ns'] < then['time_ns'], f'{at} {then}')
        busy = daemon.json('lcores')['0']['busy_percent']
        check(0 <= busy <= 100 and then['conns'] == 1, f'{busy} {then}')
        until_true('bytes grow', lambda: daemon.ask('apps')[number]['tx_bytes'] > app['tx_bytes'])
        # everything sent has arrived: the receiver counts the same bytes
        (other,) = daemons[0].ask('conn_list').keys() - {'next'}
        check(daemons[0].ask(f'conn,{other}')['rx_bytes'] >= after['tx_bytes'] - 2 * 3000, 'rx')
        check(after['peer_cid'] == other, f'{after["peer_cid"]} is not {other}')
        hist = daemon.ask('hist')
        check(sum(hist['rtt_ns']) == 1 and sum(hist['round_ns']) > 10, f'{hist}')
        bucket = hist['rtt_ns'].index(1)
        check(bucket > 9, f'round trips of {2 ** bucket} ns')
    check(daemon.ask('apps').keys() == {'next', 'limits'}, 'it is gone, and still told')


def reasons(work, daemons):
    """The reason why a connection sends nothing: its program, or the peer's missing receive."""
    with traffic(work, daemons, sends=0):
        (cid,) = daemons[1].ask('conn_list').keys() - {'next'}
        check(daemons[1].ask(f'conn,{cid}')['reason'] == 'application', 'idle')
        check(daemons[1].ask('reasons')['application'] == 1, f'{daemons[1].ask("reasons")}')
    with traffic(work, daemons, recvs=0, size=100):
        (cid,) = daemons[1].ask('conn_list').keys() - {'next'}
        until_true('receiver', lambda: daemons[1].ask(f'conn,{cid}')['reason'] == 'receiver')
        seen = [daemons[1].ask(f'conn,{cid}')['reason'] for _ in range(20)]
        check(seen.count('receiver') > 15, f'{seen}')
        share = daemons[1].json('why', cid, '--seconds', '0.3')
        check(share['receiver'] > 0.7 and 0.99 < sum(share.values()) < 1.01, f'{share}')
        check('receiver' in daemons[1].sanctl('why', cid, '-s', '0.1'), 'why')
        check(daemons[1].ask(f'conn,{cid}')['sends'] == 2, 'both wait')
        check(daemons[0].ask('conn,' + daemons[1].ask(f'conn,{cid}')['peer_cid'])['reason']
              == 'application', 'the other side has nothing to send')
    # long sends ask for a grant, which waits for a receive
    with traffic(work, daemons, recvs=0, size=65536):
        (cid,) = daemons[1].ask('conn_list').keys() - {'next'}
        until_true('grant', lambda: daemons[1].ask(f'conn,{cid}')['reason'] == 'grant')


def tables(work, daemons):
    """sanctl's own output: tables, rates, and problems."""
    daemon = daemons[1]
    with traffic(work, daemons, conns=2) as (_, client):
        check(f' {client.pid} ' in daemon.sanctl('apps'), daemon.sanctl('apps'))
        check('BUSY' in daemon.sanctl('lcores') and '%' in daemon.sanctl('lcores'), 'lcores')
        cids = [line.split()[0] for line in daemon.sanctl('conns').splitlines()[1:]]
        check(sorted(cids) == sorted(daemon.json('conns')), f'{cids}')
        check(daemon.json('conn', cids[0])['cid'] == cids[0], 'conn')
        check(daemon.json('conn', int(cids[0], 0))['cid'] == cids[0], 'a decimal CID')
        (app,) = daemon.json('apps')
        check(sorted(daemon.json('conns', '--app', app)) == sorted(cids), 'of the application')
        check(daemon.json('conns', '--app', int(app) + 1) == {}, 'of another one')
        for view in ('port', 'drops', 'cam', 'stats', 'hist', 'reasons'):
            check(daemon.sanctl(view) and isinstance(daemon.json(view), dict), view)
        check('memif' in daemon.sanctl('port'), daemon.sanctl('port'))
        check('#' in daemon.sanctl('hist'), daemon.sanctl('hist'))
        seen = daemon.sanctl('conns', '--watch', '0.1', '--count', '2')
        check('\x1b' not in seen and seen.count('sanctl conns') == 2, seen)
        check('TX/S' in seen, seen)
        until_true('a rate', lambda: daemon.sanctl('conns', '--watch', '0.1', '--count', '2')
                   .splitlines()[-1].split()[10][0] in '123456789')

        def sent():
            readings = daemon.sanctl('stats', '-j', '-w', '0.1', '-n', '3').splitlines()
            return [json.loads(line)['tx_pkts'] for line in readings]
        until_true('packets', lambda: len(seen := sent()) == 3 and seen[0] < seen[2])
    check('no connection' in daemon.sanctl('conn', '0x3fffff', status=1), 'unknown CID')
    for wrong in (['conn'], ['conn', 'x'], ['conn', '0'], ['nothing'], [], ['conns', '-w', '0'],
                  ['capture', 'start'], ['capture', 'stop', 'x'], ['conns', '--app', '256'],
                  ['metrics', '--listen', 'nowhere']):
        daemon.sanctl(*wrong, status=2)
    done = subprocess.run([SANCTL, '-f', 'nobody', 'port'], capture_output=True, text=True,
                          check=False)
    check(done.returncode == 1 and 'no daemon' in done.stderr, done.stderr)
    done = subprocess.run([SANCTL, '--config', daemon.conf, 'port'], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 0 and 'memif' in done.stdout, done.stderr)
    done = subprocess.run([SANCTL, '--config', '/nowhere', 'port'], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 1 and '/nowhere' in done.stderr, done.stderr)
    done = subprocess.run([SANCTL, '--config', '/dev/zero', 'port'], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 1 and '/dev/zero: is no configuration' in done.stderr, done.stderr)


def unnamed(work, daemons):
    """Without a name sanctl uses the only running daemon, or the default one; else it
    asks which."""
    folder = work.path('run/dpdk')
    os.makedirs(folder)

    def ask(status, text):
        done = subprocess.run([SANCTL, 'port'], capture_output=True, text=True, check=False,
                              env={**os.environ, 'RUNTIME_DIRECTORY': work.path('run')})
        check(done.returncode == status and text in done.stdout + done.stderr,
              f'no "{text}": {done.returncode} {done.stdout} {done.stderr}')

    def add(name, daemon):
        run = '/var/run' if os.getuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp')
        os.symlink(f'{run}/dpdk/{daemon.prefix}', os.path.join(folder, name))

    ask(1, 'no daemon')
    os.makedirs(os.path.join(folder, 'rte'))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        # of a killed one
        other.bind(os.path.join(folder, 'rte/dpdk_telemetry.v2'))
        ask(1, 'no daemon')
    add('left', daemons[0])
    ask(0, 'memif')
    add('right', daemons[1])
    ask(1, 'which one? --file-prefix may be left, right')
    shutil.rmtree(os.path.join(folder, 'rte'))
    add('rte', daemons[1])
    ask(0, 'memif')


EVIL = '\x1b]0;title\x07\x1b[2J\x9b1m\u202eevil\nline'
FALSE = """
import json, os, socket, sys, threading
path, uid, evil = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
l = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
l.bind(path)
l.listen()
print('serves', flush=True)
answers = {'ports': ['0', evil], 'drops': {'drop_' + evil: 1}, 'reasons': {evil: evil},
           'port': {'port_name': evil, 'mtu': evil}, 'cam': {'error': evil},
           'capture': dict.fromkeys(('file', 'active', 'cid', 'packets', 'missed'), evil)}
def serve(s):
    s.send(json.dumps({'pid': 1, 'max_output_len': 16384}).encode())
    while question := s.recv(1000).decode():
        name = question.split(',')[0]
        s.send(json.dumps({name: answers.get(name.split('/')[2])}).encode())
while True:
    threading.Thread(target=serve, args=l.accept()[:1], daemon=True).start()
"""


def foreign(work, _):
    """A socket of another user, or in its folder, is used only by name. What a process answers has
    no effect on a terminal."""
    def ask(status, *args):
        done = subprocess.run([SANCTL, *args], capture_output=True, text=True, check=False,
                              timeout=PATIENCE,
                              env={**os.environ, 'RUNTIME_DIRECTORY': work.path('foreign')})
        check(done.returncode == status, f'{args}: {done.returncode} {done.stdout} {done.stderr}')
        return done.stdout + done.stderr

    if os.geteuid() != 0:
        raise Skipped('another user: needs root')
    folder = work.path('foreign/dpdk/rte')
    os.makedirs(folder)
    os.chmod(work.dir, 0o755)
    path = os.path.join(folder, 'dpdk_telemetry.v2')
    for user, owner, mode in ((65534, 65534, 0o755), (0, 65534, 0o755), (0, 0, 0o777),
                              (0, 0, 0o755)):
        os.chown(folder, user, -1)
        os.chmod(folder, 0o755)
        false = Process(work, 'false', [sys.executable, '-c', FALSE, path, str(user),
                                        json.dumps(EVIL)])
        false.wait_text('serves')
        os.chown(folder, owner, -1)
        os.chmod(folder, mode)
        if (user, owner, mode) == (0, 0, 0o755):
            check('evil' in ask(0, 'port'), 'one of root is not used')
        for args in () if (user, owner, mode) == (0, 0, 0o755) else ((), ('-f', 'rte')):
            said = ask(1, *args, 'port')
            check('another user serves it' in said and 'evil' not in said, said)
        for command, status in (('drops', 0), ('reasons', 0), ('port', 0), ('cam', 1),
                                ('capture show', 0), ('hist', 1)):
            said = ask(status, '--socket', path, *command.split())
            check(all(c.isprintable() or c == '\n' for c in said), repr(said))
            check(command == 'hist' or '\\x1b]0;title\\x07' in said, repr(said))
            check('\nline' not in said, repr(said))
        false.kill()
        os.unlink(path)


@contextlib.contextmanager
def stream(work, daemons):
    """sanbench sends bytes from the second daemon to the first one."""
    server = Process(work, 'server', [BENCH, '--attach', daemons[0].spec, '--wait', '--server'])
    server.wait_text('listening')
    client = Process(work, 'client', [
        BENCH, '--attach', daemons[1].spec, '--wait', '--connect', IP['server'], '--mode', 'stream',
        '--size', '50000', '--depth', '1', '--receive', 'direct', '--duration', '3600'])
    try:
        yield
        check(client.stop() == 0 and server.stop() == 0, f'{client.tail()} {server.tail()}')
    finally:
        client.kill()
        server.kill()


def streams(work, daemons):
    """How a stream moves bytes and why, at both ends; and connections that are no
    streams. (AFC-6)"""
    with stream(work, daemons):
        check_stream_views(daemons)


def check_stream_views(daemons):
    ends = []

    def are_streams():
        ends[:] = [(d, cid) for d in daemons for cid in d.json('conns')
                   if 'error' not in d.ask(f'stream,{cid}')]
        return len(ends) == 2

    until_true('a stream', are_streams)
    (receiver, rx_cid), (sender, tx_cid) = ends
    tx, rx = {}, {}

    def is_direct():
        tx.update(sender.json('stream', tx_cid))
        rx.update(receiver.json('stream', rx_cid))
        return (tx['tx_write_bytes'] > 10 ** 6 and tx['mode'] == rx['peer_mode'] == 'large' and
                rx['rx_write_bytes'] > 10 * rx['rx_message_bytes'] > 0)

    # a server that is slow for a moment leaves this mode
    until_true(lambda: f'direct: {tx} {rx}', is_direct)
    check(rx['mode'] == 'discovery' and rx['tx_write_bytes'] == 0, f'{rx}')
    check(tx['credit'] > 0 and tx['threshold'] == 4096 and rx['advertisements'] > 0, f'{tx} {rx}')
    learnt = [c for c in tx['changes'] if c.endswith(': discovery > large (learnt)')]
    check(learnt and 0 < int(learnt[0].split(':')[0]) < tx['time_ns'], f'{tx}')
    seen = sender.sanctl('stream', tx_cid, '--watch', '0.1', '--count', '2')
    check('s ago: discovery > large (learnt)' in seen, seen)
    until_true('a rate', lambda: re.search(r'^tx_write_bytes +\d+  [1-9]\d*/s$', sender.sanctl(
        'stream', tx_cid, '--watch', '0.1', '--count', '2'), re.MULTILINE))
    check(re.search(r'^credit +\d+$', seen, re.MULTILINE) and 'stalls_set ' in seen, seen)
    (control,) = sender.json('conns').keys() - {tx_cid}
    for cid in (control, '0x3fffff'):
        check('no stream' in sender.sanctl('stream', cid, status=1), cid)
    sender.sanctl('stream', status=2)
    for wrong in ('x', '', '0x1000000', '4294967297', '1,2'):
        check('is a CID' in sender.ask(f'stream,{wrong}')['error'], wrong)


def metrics(work, daemons):
    """OpenMetrics with a strict parser; then over HTTP."""
    daemon = daemons[1]
    with traffic(work, daemons) as (_, client):
        first = parse(daemon.sanctl('metrics'))['sanstack_app_tx_bytes'].samples[0].value
        second = until_true('bytes grow', lambda: (now := parse(daemon.sanctl('metrics')))[
            'sanstack_app_tx_bytes'].samples[0].value > first and now)
        app = second['sanstack_app_tx_bytes'].samples
        # a pid would make a series of each process
        check([s.labels for s in app] == [{'port': '0', 'app': app[0].labels['app'], 'name': 'operator',
                                           'uid': str(os.getuid())}], f'{app}')
        held = second['sanstack_conns_held'].samples
        check(sum(s.value for s in held) == 1, f'{held}')
        check_is_explained(daemon, second)
        build = second['sanstack_build'].samples
        says = subprocess.run([DAEMON, '--version'], stdout=subprocess.PIPE, text=True).stdout.split()
        check(len(build) == 1 and build[0].value == 1 and build[0].labels ==
              {'version': says[1], 'commit': says[2].strip('()')}, f'{build} {says}')
        check({'port', 'lcore', 'reason'} == set(second['sanstack_drops'].samples[0].labels), 'drops')
        check(second['sanstack_tx_pkts'].kind == 'counter', 'packets')
        check(second['sanstack_budget_bytes'].kind == 'gauge', 'budget')
        http = Process(work, 'http', [SANCTL, '-f', daemon.prefix, 'metrics', '--listen',
                                      '127.0.0.1:0'])
        http.wait_text('listening')
        url = f'http://127.0.0.1:{http.out().strip().rpartition(":")[2]}'
        kind = 'application/openmetrics-text'
        asks = urllib.request.Request(f'{url}/metrics', headers={'Accept': f'{kind}, */*'})
        with urllib.request.urlopen(asks, timeout=PATIENCE) as answer:
            check(answer.headers['Content-Type'].startswith(kind), answer.headers['Content-Type'])
            parse(answer.read().decode())
        check_older(f'{url}/metrics', second)
        try:
            urllib.request.urlopen(f'{url}/other', timeout=PATIENCE)
            raise Failed('/other is there')
        except urllib.error.HTTPError as e:
            check(e.code == 404, f'{e.code}')
        http.kill()


def check_older(url, families):
    """A client that does not ask for OpenMetrics gets the older format, with the same families."""
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        kind, text = answer.headers['Content-Type'], answer.read().decode()
    check(kind.startswith('text/plain; version=0.0.4'), kind)
    kinds = dict(re.findall(r'^# TYPE (\S+) (\w+)$', text, re.M))
    helps = set(re.findall(r'^# HELP (\S+) .', text, re.M))
    wanted = {'counter': ('_total', 'counter'), 'info': ('_info', 'gauge'),
              'gaugehistogram': ('', 'histogram')}
    for name, family in families.items():
        suffix, kind = wanted.get(family.kind, ('', family.kind))
        check(kinds.get(name + suffix) == kind and name + suffix in helps, f'{name}: {kinds}')
    check(len(kinds) == len(families), f'{set(kinds)}')
    check(not re.search(r'^# (UNIT|EOF)|_g(count|sum)\b', text, re.M), 'what only OpenMetrics has')
    if shutil.which('promtool'):
        said = subprocess.run(['promtool', 'check', 'metrics'], input=text, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(said.returncode == 0, said.stdout)


def page_rows():
    """Of the manual page sanstack-counters(7): (kind, unit, help) by name, and names of reasons."""
    with open(os.path.join(BUILD, 'doc/sanstack-counters.7'), encoding='utf-8') as f:
        text = f.read().replace('\\-', '-').replace('\\&', '')
    measured = re.findall(r'^([^\t\n]+)\t(\w+)\t(.*)\tT{\n(.+)\nT}$', text, re.M)
    named = re.findall(r'^([^\t\n]+)\tT{\n(.+)\nT}$', text, re.M)
    return measured, dict(named)


def check_is_explained(daemon, families):
    """Each family, drop reason and state is in the manual page, with help and unit of its own."""
    measured, named = page_rows()
    pages = {(name, text): (kind, unit) for name, kind, unit, text in measured}
    check(all(text.endswith('.') for _, text in pages) and all(named.values()), 'without help')
    for name, family in families.items():
        name = name.removeprefix('sanstack_')
        if family.unit == 'seconds':
            name = name.removesuffix('_seconds') + '_ns'
        text, _, counted = family.help.partition(' Unit: ')
        found = [about for prefix in ('', 'app_', 'lcore_')
                 if (about := pages.get((name.removeprefix(prefix), text)))]
        check(found, f'not in the page: {name}: {family.help}')
        kind, unit = found[0]
        want = {'ns': 'seconds', 'bytes': 'bytes'}.get(unit)
        check(kind == family.kind and family.unit == want, f'{name}: {kind} {unit}')
        check(kind == 'info' or want or counted == unit + '.' != '.', f'{name}: {family.help}')
    texts = [f.help for name, f in families.items()
             if not name.startswith(('sanstack_lcore_', 'sanstack_app_'))]
    check(len(texts) == len(set(texts)), 'a help twice')
    for family in ('drops', 'conns_held'):
        reasons = {s.labels['reason'] for s in families[f'sanstack_{family}'].samples}
        check(len(reasons) > 10 and reasons <= named.keys(), f'{reasons - named.keys()}')
    states = {row[key] for row in daemon.json('conns').values() for key in ('state', 'reason')}
    check(states <= named.keys() and daemon.json('port')['link'] in named, f'{states}')
    for view in ('port', 'lcores', 'apps', 'conns', 'conn', 'stream', 'sockets', 'stats', 'drops'):
        word = ['0x1'] if view in ('conn', 'stream') else []
        for name, about in daemon.json(view, *word, '--explain').items():
            known = named.get(name.removeprefix('drop_')) if view == 'drops' else \
                about['help'] if (name, about['help']) in pages else None
            check(known == about['help'], f'{view}: {name}: {about}')
    check('icrc' in daemon.sanctl('drops', '--all') and named['icrc'] in
          daemon.sanctl('drops', '--all'), daemon.sanctl('drops', '--all'))


# ---- captures ----

def packets(path):
    """(direction, captured bytes, destination CID) of each packet to our port in a pcapng file."""
    with open(path, 'rb') as f:
        data = f.read()
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from('<II', data, at)
        check(size >= 12 and at + size <= len(data), f'{path}: block of {size} bytes at {at}')
        if kind == 6:
            _, _, _, caught, length = struct.unpack_from('<IIIII', data, at + 8)
            frame = data[at + 28:at + 28 + caught]
            options = data[at + 28 + (caught + 3) // 4 * 4:at + size - 4]
            flags = struct.unpack_from('<I', options, options.index(b'\x02\0\x04\0') + 4)[0]
            udp = {b'\x08\0': 34, b'\x86\xdd': 54}.get(frame[12:14])
            if udp and frame[udp + 2:udp + 4] == b'\x12\xb7':
                yield flags & 3, caught, length, int.from_bytes(frame[udp + 13:udp + 16], 'big')
        at += size


def captures(work, daemons):
    """One of two connections, both directions, truncated; then all; and refused captures."""
    daemon = daemons[1]
    path = work.path('one.pcapng')
    with traffic(work, daemons, conns=2):
        cid, other = sorted(daemon.json('conns'))
        peer, other_peer = (int(daemon.json('conn', c)['peer_cid'], 0) for c in (cid, other))
        check('no capture' in daemon.sanctl('capture', 'show'), 'none')
        out = daemon.sanctl('capture', 'start', path, '--cid', cid, '--snap', 100)
        check(f'capturing {cid}' in out, out)
        check('already' in daemon.sanctl('capture', 'start', path + '2', status=1), 'a second')
        check(not os.path.exists(path + '2'), 'the file of a second')
        until_true('packets', lambda: daemon.json('capture', 'show')['packets'] > 50)
        state = daemon.json('capture', 'stop')
        seen = list(packets(path))
        check(len(seen) == state['packets'] > 50, f'{state} {len(seen)}')
        check({(d, c) for d, _, _, c in seen} == {(1, int(cid, 0)), (2, peer)},
              f'{cid} {peer:#x}: { {(d, hex(c)) for d, _, _, c in seen} }')
        check(max(n for _, n, _, _ in seen) == 100, 'cut off at 100 bytes')
        check(max(n for _, _, n, _ in seen) > 1000, 'the length is told')
        check('none' in daemon.sanctl('capture', 'stop', status=1), 'stopped twice')
        check('exists' in daemon.sanctl('capture', 'start', path, status=1), 'overwritten')
        check(len(list(packets(path))) == len(seen), 'the old file is as it was')
        check('No such file' in daemon.sanctl('capture', 'start', '/nowhere/x', status=1), 'path')
        check('no connection' in daemon.sanctl('capture', 'start', path + '3', '--cid',
                                               '0x3fffff', status=1), 'unknown CID')
        check(not os.path.exists(path + '3'), 'a file without a capture')
        for bad in ('x,y', '/x', '@x', '@x:/x,1,2,3', '@x:/x,-1', '@x:/x,0x1000000', '@x:/' + 'x' * 400,
                    '@nobody:/x', '@:/x'):
            check('error' in daemon.ask(f'capture,{bad}'), bad)
        if os.geteuid() == 0:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
                os.seteuid(65534)
                door.bind('')
                door.listen()
                os.seteuid(0)
                name = door.getsockname()[1:].decode()
                check(daemon.ask(f'capture,@{name}:/x')['error'] == 'Operation not permitted',
                      'a file of another user')
        daemon.sanctl('capture', 'start', path + '4')
        until_true('packets', lambda: daemon.json('capture', 'show')['packets'] > 200)
        daemon.sanctl('capture', 'stop')
        found = {c for _, _, _, c in packets(path + '4')}
        check({int(cid, 0), int(other, 0), peer, other_peer} <= found, f'{found}')
    with traffic(work, daemons, peer=IP6['server']):
        ((cid, row),) = daemon.json('conns').items()
        check(row['peer'] == IP6['server'], f'{row}')
        peer = int(daemon.json('conn', cid)['peer_cid'], 0)
        daemon.sanctl('capture', 'start', path + '6', '--cid', cid)
        until_true('packets', lambda: daemon.json('capture', 'show')['packets'] > 50)
        daemon.sanctl('capture', 'stop')
        seen = {(d, c) for d, _, _, c in packets(path + '6')}
        check(seen == {(1, int(cid, 0)), (2, peer)}, f'{cid} {peer:#x}: {seen}')
    if shutil.which('tshark'):
        from capture import bare_tshark, fields
        with bare_tshark():
            rows = fields(path + '4', 'san.bth.dcid')
            check(len(rows) == len(list(packets(path + '4'))), 'tshark sees all of them')


def pages(work, daemons):
    """A thousand connections: complete, each once, in answers of limited size."""
    with traffic(work, daemons, conns=MANY, sends=0):
        for daemon in daemons:
            listed, at, nb_pages = {}, 0, 0
            while True:
                page = daemon.ask(f'conn_list,{at}')
                at = page.pop('next')
                check(not listed.keys() & page.keys(), 'a connection in two pages')
                listed.update(page)
                nb_pages += 1
                if at == 0:
                    break
            check(len(listed) == MANY and nb_pages > 10, f'{len(listed)} in {nb_pages}')
            check(len(daemon.json('conns')) == MANY, 'sanctl')
            check(daemon.ask('reasons')['application'] == MANY, f'{daemon.ask("reasons")}')
            check(daemon.ask('conn_list,999999') == {'next': 0}, 'beyond the end')
            for wrong in ('x', '-1', '0,x', '0,256', '0,1,2', '99999999999999999999'):
                check('error' in daemon.ask(f'conn_list,{wrong}'), wrong)
            for wrong in ('x', '0x1000000', '1,2'):
                check('error' in daemon.ask(f'conn,{wrong}'), wrong)
            check('error' in daemon.ask('apps,x') and 'error' in daemon.ask('apps,256'), 'apps')


def applications(work, daemons):
    """More applications than an answer holds; and names that programs chose."""
    with open('/proc/self/comm', 'rb+', buffering=0) as comm:
        name = comm.read()
        comm.write(b'a"b\\c\xff\n')
        attached = [dial(daemons[0]) for _ in range(40)]
        check(all(ask(s, request(HELLO))[0] == 0 for s in attached), 'hello')
        comm.write(name)
    check(len(daemons[0].ask('apps')) == 24 + 2, 'a page')
    apps = daemons[0].json('apps')
    check(len(apps) == 40 and {a['pid'] for a in apps.values()} == {os.getpid()}, f'{len(apps)}')
    check({a['name'] for a in apps.values()} == {'a?b?c?'}, f'{apps}')
    for s in attached:
        s.close()
    until_true('gone', lambda: not daemons[0].json('apps'))


def embedded():
    """A program that polls its own engine: another thread reports only what it may."""
    with Work() as work:
        daemon = End(work, 'server')
        server = Process(work, 'server', [PINGPONG, '-w', 'server', daemon.spec])
        wait_listening(daemon, server)
        other = Engine(f'{work.tag}x{work.nb_prefixes}')
        client = Process(work, 'client', [PINGPONG, '-w', 'client', embedded_at(work, 'client'),
                                          IP['server'], '100000000'])
        server.wait_text('connected')
        (cid,) = other.json('conns')
        before = other.json('conn', cid)
        check(before['reason'] == 'unknown' and before['peer'] == IP['server'], f'{before}')
        until_true('packets', lambda: other.json('conn', cid)['tx_pkts'] > before['tx_pkts'])
        check(other.json('lcores')['0']['lcore'] == -1, 'the caller is no lcore')
        parse(other.sanctl('metrics'))
        path = work.path('x.pcapng')
        check('polls itself' in other.sanctl('capture', 'start', path, status=1), 'capture')
        check('does not know' in other.sanctl('apps', status=1), 'applications')
        check(client.is_alive(), client.tail())
        client.kill()
        server.wait()
        daemon.stop()


def traces():
    """--trace=sanstack.*: a CTF directory with the names and the events."""
    with Work() as work:
        folder = work.path('trace')
        os.mkdir(folder)
        daemons = (End(work, 'server'),
                   End(work, 'client', f'args = --trace=sanstack.* --trace-dir={folder}'))
        with traffic(work, daemons):
            (cid,) = daemons[1].ask('conn_list').keys() - {'next'}
        for d in daemons:
            d.stop()
        (of_this_run,) = os.listdir(folder)
        names, events = ctf.read(os.path.join(folder, of_this_run))
        names = {name for name in names if name.startswith('sanstack.')}
        check(names == {'sanstack.conn.event', 'sanstack.conn.rto', 'sanstack.app.attach',
                        'sanstack.app.detach', 'sanstack.qp.fault', 'sanstack.lcore.sleep'},
              f'{names}')
        check(all(fields['lcore'] == 0 for _, _, fields in events), f'{events}')
        # the first application is the daemon itself
        apps = [(name, fields['app']) for _, name, fields in events if '.app.' in name]
        check(apps == [('sanstack.app.attach', 0), ('sanstack.app.attach', 1),
                       ('sanstack.app.detach', 1)], f'{events}')
        conns = [fields for _, name, fields in events if name == 'sanstack.conn.event']
        check(len(conns) > 0 and (conns[0]['_event'], conns[0]['reason'], conns[0]['cid']) ==
              (ESTABLISHED, 0, int(cid, 0)), f'{events}, connection {cid}')
        check(all(c['qp'] == conns[0]['qp'] for c in conns), f'{events}')


def main():
    tests = Tests()
    with Work() as work:
        daemons = End(work, 'server'), End(work, 'client')
        for add, name, test in [
                (tests.add, 'numbers that grow', numbers),
                (tests.add, 'reasons', reasons),
                (tests.add_long, 'tables of sanctl', tables),
                (tests.add_long, 'sanctl without a name', unnamed),
                (tests.add, 'a socket of another user', foreign),
                (tests.add, 'streams', streams),
                (tests.add_long, 'OpenMetrics', metrics),
                (tests.add, 'captures', captures),
                (tests.add_long, 'a thousand connections', pages),
                (tests.add_long, 'forty applications', applications),
        ]:
            add(name, test, work, daemons)
        tests.add('daemons end', lambda: [d.stop() for d in daemons])
        tests.add_long('embedded', embedded)
        tests.add_long('traces', traces)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
