#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A socket that rules would carry but that stays with the kernel: the library at "log info",
`sansock explain` and `sanctl sockets` report the actual reason, not the closest rule. (UDP-2)
"""

import os
import re
import subprocess
import sys

from e2e import BUILD, SOURCE, Tests, Work, check, need_namespaces
from sock import OUR_IP, PYTHON, SERVER, Pair, has_library

SANCTL = os.path.join(SOURCE, 'usertools/sanctl')
SANSOCK = os.path.join(BUILD, 'apps/sansock/sansock')
OTHER_IP = '192.0.2.1'      # also an address of our end, but not of the port
PORT = 7300
NOBODY = 65534

HEAD = """
import socket, time
def ready():
    print('ready', flush=True)
    time.sleep(10000)
"""
LOOP = HEAD + """
l = socket.create_server(('{ip}', {port}))
c = socket.create_connection(('{ip}', {port}))
ready()
"""
UDP = HEAD + """
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(('{ip}', {port}))
ready()
"""
LISTEN = HEAD + """
l = socket.create_server(('{ip}', {port}))
ready()
"""
LISTEN6 = HEAD + """
l = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
l.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
l.bind(('::', {port}))
l.listen()
ready()
"""

# name: (program, address, user, rules before, message of the library, row of sanctl, its text)
CASES = {
    'no right, udp': (UDP, OUR_IP, NOBODY, '', r'no right to the daemon at \S+/server.sock',
                      'udp', r'no right to the daemon at \S+/server.sock'),
    'no right, tcp': (LOOP, OUR_IP, NOBODY, '', r'no right to the daemon at \S+/server.sock',
                      'tcp', r'no right to the daemon at \S+/server.sock'),
    'no daemon': (UDP, OUR_IP, 0, 'daemon /nowhere/x.sock', 'no daemon at /nowhere/x.sock',
                  'udp', 'no daemon at /nowhere/x.sock'),
    'no such port': (UDP, OUR_IP, 0, 'port elsewhere', 'port elsewhere: there is none', '', ''),
    'own address': (LOOP, OUR_IP, 0, '', f"{OUR_IP} is this host's own address",
                    f'tcp .* {OUR_IP}:{PORT} up ', f"{OUR_IP} is this host's own address"),
    'no link of the port': (LOOP, OTHER_IP, 0, '', f'{OTHER_IP} is in no prefix of the port',
                            f'tcp .* {OTHER_IP}:{PORT} up ',
                            f"{OTHER_IP} is this host's own address"),
    "not the port's address": (UDP, OTHER_IP, 0, '', "an address that is not the port's", 'udp',
                               "an address that is not the port's"),
    'IPv6 only': (LISTEN6, '::', 0, '', 'tokens are of IPv4', 'tcp', 'tokens are of IPv4'),
    'no rule': (UDP, OUR_IP, 0, 'kernel proto udp', r'kernel \(SANSOCK_RULES', 'udp',
                'SANSOCK_RULES'),
}


def sockets_of(pair, end, p):
    """What sanctl shows of the sockets of *p*."""
    ns = pair.at_us if end == 'us' else pair.at_peer
    seen = subprocess.run([*ns.exec(), '/usr/bin/env', f'PATH={BUILD}/apps/sansock:/usr/bin',
                           PYTHON, SANCTL, '--socket',
                           f'{pair.daemons[end].runtime_dir()}/dpdk_telemetry.v2', 'sockets'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return [one for one in seen.stdout.splitlines() if f' {p.pid} ' in one]


def reason(pair, name):
    code, ip, user, rules, told, row, says = CASES[name]
    pair.next_case()
    before, pair.rules = pair.rules, f'{rules};log info;carry proto udp;carry proto tcp'
    become = ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups'] if user else []
    try:
        command = pair.command('server', *become, PYTHON, '-c', code.format(ip=ip, port=PORT))
    finally:
        pair.rules = before
    if 'daemon' in rules:       # in place of the usual one
        command = [w.replace(f'daemon {pair.daemons["us"].path};', '') for w in command]
    p = pair.work.start('program', command)
    pair.servers.append(p)
    p.wait_text('ready')
    check(re.search(told, p.err()), f'the library says: {p.err()}')
    if row:
        lines = [one for one in sockets_of(pair, 'us', p) if re.search(row, one)]
        check(lines and all(' no ' in one for one in lines), f'sanctl: {lines}')
        check(any(re.search(says, one) for one in lines), f'sanctl: {lines}')


CONNECT = HEAD + """
c = socket.create_connection(('{ip}', {port}))
ready()
"""
LEFT = 'the port leaves TCP to the kernel'


def tcp_is_left(mode):
    """Over af_packet the daemon leaves TCP to the kernel, in both directions; datagrams are carried.
    (UDP-13)"""
    with Work() as work, Pair(work, SERVER, 'tcp', 2, rules='log info;carry', port=mode) as pair:
        def begin(role, code):
            p = pair.work.start(role, pair.command(role, PYTHON, '-c',
                                                   code.format(ip=OUR_IP, port=PORT)))
            pair.servers.append(p)
            p.wait_text('ready')
            return p

        listens = begin('server', LISTEN)
        connects = begin('client', CONNECT)
        begin('server', UDP)
        for end, p in (('us', listens), ('peer', connects)):
            lines = sockets_of(pair, end, p)
            check(lines and all(' no ' in one and LEFT in one for one in lines), f'{lines}')
            check(LEFT in p.err(), p.err())
        check(pair.daemons['us'].ask('sockets')['sockets'] == 1, 'the datagrams are carried')
        done = subprocess.run([SANSOCK, 'explain', 'x', 'tcp', '--local', OUR_IP],
                              env=dict(os.environ, SANSOCK_CONF='/dev/null', SANSOCK_RULES=
                                       f'daemon {pair.daemons["us"].path};carry'),
                              stdout=subprocess.PIPE, text=True, check=True)
        check(LEFT in done.stdout, done.stdout)


def explain(pair):
    """The reason now, by user."""
    path = pair.daemons['us'].path
    env = dict(os.environ, SANSOCK_CONF='/dev/null', SANSOCK_RULES=f'daemon {path};carry proto udp')

    def asked(*more):
        return subprocess.run([SANSOCK, 'explain', *more, 'x', 'udp', '--local', OUR_IP], env=env,
                              stdout=subprocess.PIPE, text=True, check=True).stdout
    check('but ' not in asked(), asked())
    check(f'but no right to the daemon at {path}' in asked('--user', str(NOBODY)),
          asked('--user', str(NOBODY)))
    env['SANSOCK_RULES'] = 'daemon /nowhere/x.sock;carry proto udp'
    check('but no daemon at /nowhere/x.sock' in asked(), asked())
    env['SANSOCK_RULES'] = 'daemon /nowhere/x.sock'
    check('but ' not in asked(), asked())


def main():
    need_namespaces('setpriv', 'ethtool')
    if not has_library():
        print('no library')
        return 77
    tests = Tests()
    with Work() as work, Pair(work, SERVER, 'tcp', rules='carry proto tcp') as pair:
        pair.at_us.run('ip', 'link', 'add', 'd0', 'type', 'veth', 'peer', 'name', 'd1')
        pair.at_us.run('ip', 'address', 'add', f'{OTHER_IP}/32', 'dev', 'd0')
        pair.at_us.run('ip', 'link', 'set', 'd0', 'up')
        pair.at_us.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=0')
        for name in CASES:
            tests.add(name, reason, pair, name)
        tests.add('explain', explain, pair)
        for mode in ('# no carry_tcp', 'carry_tcp = auto', 'carry_tcp = off'):
            tests.add(mode, tcp_is_left, mode)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
