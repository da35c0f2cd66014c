#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs give the same results when their sockets are carried at one end as when the
kernel carries them at both. (UDP-1, UDP-2, UDP-3, UDP-5)

Each case runs on the kernel and, if the library is built, with the library under the server and
under the client. See sock.py.
"""

import hashlib
import json
import os
import re
import signal
import sys

import sock
from e2e import Skipped, Tests, Work, check, need_namespaces, until_true
from sock import PEER, PYTHON, file_digest, need, sample


def line_with(text, pattern):
    """The part that matches *pattern*, which must exist."""
    found = re.search(pattern, text)
    check(found, f'no "{pattern}" in: {text[-1500:]}')
    return found[0]


# ---- UDP ----

def sockperf(pair):
    program, = need('sockperf')
    pair.server(program, 'server', '-i', pair.server_ip, '-p', 5001, port=5001)
    out = pair.client(program, 'ping-pong', '-i', pair.server_ip, '-p', 5001, '-t', 1, '-m', 64)
    return round_trips(pair, out)


def round_trips(pair, out):
    """The output of sockperf without the number of messages."""
    line_with(out, r'RoundTrip|Latency')
    pair.sent = int(line_with(out, r'SentMessages=\d+').partition('=')[2])
    check(pair.sent > 20, f'{pair.sent} round trips')
    return line_with(out, r'# dropped messages = \d+; # duplicated messages = \d+; '
                          r'# out-of-order messages = \d+')


def iperf_udp(pair):
    program, = need('iperf3')
    pair.server(program, '-s', '-1', '-B', pair.server_ip, port=5201, proto='tcp')
    out = json.loads(pair.client(program, '-u', '-c', pair.server_ip, '-t', 1, '-b', '8M', '-l',
                                 1000, '--json'))
    total = out['end']['sum']
    check(total['packets'] > 500, f'{total["packets"]} packets')
    # some are lost if the receiver does not get the CPU, carried or not
    return {'most arrive': total['lost_percent'] < 50}


def netcat(pair):
    program, = need('nc.openbsd')
    server = pair.server(program, '-u', '-l', pair.server_ip, 5002, port=5002)
    pair.client(program, '-u', '-w', 1, pair.server_ip, 5002, stdin='one\n' + 'x' * 1000 + '\n')
    until_true('all of it', lambda: len(server.out()) >= 1005)
    return server.out()


def length(path):
    """Bytes of a file that a program may not have created yet."""
    return os.path.getsize(path) if os.path.exists(path) else 0


def socat_udp(pair):
    program, = need('socat')
    want = sample(pair.path('in'), 60_000)
    pair.server(program, '-u', 'UDP-RECV:5003', f'CREATE:{pair.path("out")}', port=5003)
    pair.client(program, '-u', '-b', 1000, f'FILE:{pair.path("in")}',
                f'UDP:{pair.server_ip}:5003')
    until_true('the file', lambda: length(pair.path('out')) >= 60_000)
    check(file_digest(pair.path('out')) == want, 'the file differs')
    return want


def dnsmasq(pair):
    """Bound to a wildcard address, it answers through IP_PKTINFO."""
    program, dig, dnsperf = need('dnsmasq', 'dig', 'dnsperf')
    text = ','.join(['word' * 20] * 6)
    pair.server(program, '--no-daemon', '--no-resolv', '--no-hosts', '--port=5353', '--user=root',
                '--conf-file=/dev/null', '--pid-file=', '--address=/test.example/192.0.2.7',
                f'--txt-record=long.example,{text}', port=5353)
    ask = [dig, f'@{pair.server_ip}', '-p', 5353, '+short', '+tries=3', '+time=1']
    queries = pair.write('queries', 'a.test.example A\nb.test.example A\nlong.example TXT\n')
    answers = pair.client(*ask, 'www.test.example', 'A') + pair.client(*ask, 'long.example', 'TXT')
    out = pair.client(dnsperf, '-s', pair.server_ip, '-p', 5353, '-d', queries, '-n', 300, '-q',
                      20)
    return answers, re.findall(r'Queries (?:sent|completed|lost): +\d+|Response codes: .*', out)


def tftp(pair):
    server, client = need('in.tftpd', 'tftp')
    want = sample(pair.path('file'), 100_000)
    # in a chroot (--secure) its children would find no daemon
    pair.server(server, '--listen', '--foreground', '--address', f'{pair.server_ip}:6969',
                '--user', 'root', pair.folder, port=6969)
    pair.client(client, pair.server_ip, 6969, '-m', 'binary', '-c', 'get', pair.path('file'),
                pair.path('copy'))
    check(file_digest(pair.path('copy')) == want, 'the file differs')
    return want


def memcached_udp(pair):
    program, = need('memcached')
    pair.server(program, '-u', 'root', '-l', pair.server_ip, '-p', 0, '-U', 11211, '-t', 2,
                port=11211)
    return pair.client(PYTHON, PEER, 'memcached_udp', pair.server_ip, 11211)


def python_udp(pair, kind, ip=None, least=0):
    pair.server(PYTHON, PEER, f'echo_{kind}', ip or pair.server_ip, 5004, text='ready')
    return pair.client(PYTHON, PEER, 'ask', pair.server_ip, 5004, least)


def coturn(pair):
    """Several threads with sockets of one port, and options that are set late. What its relays send
    to each other does not leave the host."""
    server, client = need('turnserver', 'turnutils_uclient')
    pair.server(server, '-n', '--log-file=stdout', '--no-cli', '--no-tls', '--no-dtls', '-L',
                pair.server_ip, '-E', pair.server_ip, '-m', 2, '--lt-cred-mech', '-u', 'me:word',
                '-r', 'here', '--pidfile', pair.path('pid'), '--db', pair.path('db'), port=3478)
    pair.kernels = 250
    out = pair.client(client, '-y', '-u', 'me', '-w', 'word', '-n', 50, '-m', 4, '-L',
                      pair.client_ip, pair.server_ip)
    return line_with(out, r'Total lost packets \d+')


def echo_selectors(pair):
    return python_udp(pair, 'selectors')


def echo_wildcard(pair):
    return python_udp(pair, 'selectors', '0.0.0.0')


def echo_asyncio(pair):
    return python_udp(pair, 'asyncio', least=1)     # an empty datagram is never sent


def echo_socketserver(pair):
    return python_udp(pair, 'socketserver')


def echo_processes(pair):
    return python_udp(pair, 'processes')


def multicast(pair):
    """Two readers of a group and one without the library: each receives all datagrams once."""
    group = ['239.1.2.3', 5007]
    readers = [pair.server(PYTHON, PEER, 'mcast_read', *group, pair.server_ip, 100, text='ready',
                           plain=plain) for plain in (False, False, True)]
    pair.client(PYTHON, PEER, 'mcast_send', *group, pair.client_ip, 100)
    for reader in readers:
        reader.wait()
    # one reader is the kernel's, and the kernel sends what is sent to a group
    pair.kernels = 300 if pair.ours == sock.CLIENT else 100
    return [reader.out() for reader in readers]


# ---- TCP ----

def sockperf_tcp(pair):
    program, = need('sockperf')
    pair.server(program, 'server', '--tcp', '-i', pair.server_ip, '-p', 5001, port=5001)
    out = pair.client(program, 'ping-pong', '--tcp', '-i', pair.server_ip, '-p', 5001, '-t', 1,
                      '-m', 64)
    return round_trips(pair, out)


def netcat_tcp(pair):
    """Receive a whole answer and its end, and only then send a question and its end: a client
    continues when one direction is closed, and both sides end when the other is closed, too."""
    program, = need('nc.openbsd')
    want = [sample(pair.path(name), 1_000_000, name) for name in ('answer', 'question')]
    here = f'cd {pair.folder}; '
    server = pair.server('/bin/sh', '-c', f'{here} exec {program} -N -l {pair.server_ip} 5012 '
                         '<answer >got-question', port=5012)
    client = pair.background('nc', '/bin/sh', '-c', f'{here} '
                             f'{{ until test -e go; do sleep 0.05; done; cat question; }} | '
                             f'{program} -N {pair.server_ip} 5012 >got-answer')
    until_true('the answer', lambda: length(pair.path('got-answer')) == 1_000_000)
    check(client.is_alive() and server.is_alive(), 'gone before the question')
    pair.write('go', '')
    check((client.wait(), server.wait()) == (0, 0), client.tail() + server.tail())
    got = [file_digest(pair.path(name)) for name in ('got-answer', 'got-question')]
    check(got == want, f'what came differs: {got}, not {want}')
    return got


def python_tcp(pair, kind):
    pair.server(PYTHON, PEER, f'serve_{kind}', pair.server_ip, 5013, text='ready')
    return pair.client(PYTHON, PEER, 'talk', pair.server_ip, 5013)


def serve_selectors(pair):
    return python_tcp(pair, 'selectors')


def serve_asyncio(pair):
    return python_tcp(pair, 'asyncio')


def serve_threads(pair):
    return python_tcp(pair, 'threads')


def serve_forks(pair):
    return python_tcp(pair, 'forks')


def serve_processes(pair):
    return python_tcp(pair, 'processes')


def redis(pair):
    server, cli, benchmark = need('redis-server', 'redis-cli', 'redis-benchmark')
    pair.server(server, '--bind', pair.server_ip, '--port', 6379, '--protected-mode', 'no',
                '--save', '', '--appendonly', 'no', '--dir', pair.folder, port=6379)
    ask = [cli, '-h', pair.server_ip]
    sets = ''.join(f'SET key{i} value{i}\r\n' for i in range(5000))
    out = [line_with(pair.client(*ask, '--pipe', stdin=sets), r'errors: \d+, replies: \d+')]
    out += [pair.client(*ask, 'DBSIZE'), pair.client(*ask, 'GET', 'key4999')]
    out.append(pair.client(*ask, stdin='MULTI\nINCR n\nINCR n\nEXEC\nnonsense\n', status=None))
    # a child inherits the sockets and exits
    before = pair.client(*ask, 'LASTSAVE')
    until_true('a second of its own', lambda: pair.client(*ask, 'TIME').split()[0] > before)
    out.append(pair.client(*ask, 'BGSAVE'))
    until_true('a dump', lambda: pair.client(*ask, 'LASTSAVE') != before)
    speeds = pair.client(benchmark, '-h', pair.server_ip, '-n', 3000, '-c', 20, '-P', 8, '-t',
                         'set,get,lpush', '--csv')
    return out, re.findall(r'^"(\w+)"', speeds, re.MULTILINE)


NGINX = '''daemon off; user root; worker_processes 2; pid {0}/pid; error_log {0}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_timeout 5; default_type text/plain;
    client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/fcgi;
    uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
    server {{ listen {1}:8080; root {0}; }}
}}
'''


def nginx(pair):
    """Keep-alive, sendfile, two workers, and new workers in their place while requests arrive."""
    program, curl, wrk = need('nginx', 'curl', 'wrk')
    want = sample(pair.path('big'), 1_000_000)
    sample(pair.path('small'), 500)
    conf = pair.write('nginx.conf', NGINX.format(pair.folder, pair.server_ip))
    url = f'http://{pair.server_ip}:8080'
    server = pair.server(program, '-e', 'stderr', '-c', conf, '-p', pair.folder, port=8080)

    def get(what='%{http_code} %{size_download}'):
        got = pair.client(curl, '-sS', f'{url}/big', '-o', pair.path('got'), f'{url}/small', '-o',
                          '/dev/null', f'{url}/nosuch', '-o', '/dev/null', '-w', what + '\n')
        check(file_digest(pair.path('got')) == want, 'the file differs')
        return got

    out = [get('%{http_code} %{size_download} %{num_connects}')]
    workers = children(server.pid)
    server.popen.send_signal(signal.SIGHUP)
    out.append(get())
    until_true('new workers', lambda: len(children(server.pid)) == 2 and
             not set(children(server.pid)) & set(workers))
    out.append(get())
    load = pair.client(wrk, '-t', 1, '-c', 8, '-d', 1, f'{url}/small')
    line_with(load, r'\d{2,} requests in')
    return out, re.findall(r'Socket errors.*|Non-2xx.*', load)


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        return f.read().split()


def memcached_tcp(pair):
    program, = need('memcached')
    pair.server(program, '-u', 'root', '-l', pair.server_ip, '-p', 11211, '-U', 0, '-t', 4,
                port=11211)
    return pair.client(PYTHON, PEER, 'memcached_tcp', pair.server_ip, 11211)


def openssl(pair):
    program, = need('openssl')
    sample(pair.path('file'), 1_000_000)
    key = pair.path('key.pem')
    pair.client(program, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                '-nodes', '-subj', '/CN=test', '-days', 2, '-keyout', key, '-out', key, plain=True)
    # it serves files of its working directory
    pair.server('/usr/bin/env', '-C', pair.folder, program, 's_server', '-accept',
                f'{pair.server_ip}:4433', '-key', key, '-cert', key, '-WWW', port=4433)
    # it does not distinguish the end of the server from that of the answer
    out = pair.client(program, 's_client', '-connect', f'{pair.server_ip}:4433', '-quiet',
                      stdin=b'GET /file HTTP/1.0\r\n\r\n', status=None)
    body = out.partition(b'\r\n\r\n')[2]
    check(sock.digest(body) == file_digest(pair.path('file')), f'{len(body)} bytes differ')
    return sock.digest(body)


def rsync(pair):
    program, = need('rsync')
    os.makedirs(pair.path('from/sub'))
    for i in range(20):
        sample(pair.path(f'from/sub/file{i}'), 3000 * i, i)
    conf = pair.write('rsyncd.conf', f'use chroot = no\nuid = root\ngid = root\n'
                      f'[m]\npath = {pair.path("from")}\nread only = no\n')
    pair.server(program, '--daemon', '--no-detach', f'--config={conf}', '--port=8730',
                f'--address={pair.server_ip}', port=8730)
    url = f'rsync://{pair.server_ip}:8730/m/'
    pair.client(program, '-a', '--checksum', url, pair.path('copy/'))
    sample(pair.path('copy/new'), 200_000)
    pair.client(program, '-a', pair.path('copy/'), url)
    digests = [tree_digest(pair.path(name)) for name in ('from', 'copy')]
    check(digests[0] == digests[1], 'the trees differ')
    return digests, len(pair.client(program, '-r', url).splitlines())


def tree_digest(top):
    names = sorted(os.path.join(folder, name) for folder, _, files in os.walk(top)
                   for name in files)
    text = ' '.join(f'{os.path.relpath(name, top)}={file_digest(name)}' for name in names)
    return len(names), hashlib.sha256(text.encode()).hexdigest()[:16]


def iperf_tcp(pair):
    """iperf3 exits once all is written, without reading what the buffers still hold. So the test
    sends much more than they hold, limits the kernel's buffers, and requires the rest. With two
    directions the first one to finish ends the other."""
    program, = need('iperf3')
    size, held = 8 << 20, 1 << 20
    for ns in (pair.at_us, pair.at_peer):
        ns.run('sysctl', '-qw', 'net.ipv4.tcp_rmem=4096 131072 262144',
               'net.ipv4.tcp_wmem=4096 16384 262144')
    for streams, ways, more in ((1, [''], []), (1, [''], ['-R']),
                                (3, ['', '_bidir_reverse'], ['-P', '3', '--bidir'])):
        server = pair.server(program, '-s', '-1', '-B', pair.server_ip, port=5201)
        result = json.loads(pair.client(program, '-c', pair.server_ip, '-n', size, '--json',
                                        *more))
        check('error' not in result, f'{more}: {result.get("error")}: {server.tail()}')
        check(server.wait() == 0, server.tail())
        end = result['end']
        sent, came = ([end[f'sum_{what}{way}']['bytes'] for way in ways]
                      for what in ('sent', 'received'))
        text = f'{more}: {came} of {sent} bytes came'
        check(max(sent) >= size and min(came) > 0, text)
        check(all(s - c <= held * streams for s, c in zip(sent, came)), text)


def socat_tcp(pair):
    program, = need('socat')
    want = sample(pair.path('in'), 2_000_000)
    server = pair.server(program, '-u', 'TCP-LISTEN:5010,reuseaddr', f'CREATE:{pair.path("out")}',
                         port=5010)
    pair.client(program, '-u', f'FILE:{pair.path("in")}', f'TCP:{pair.server_ip}:5010')
    check(server.wait() == 0, server.tail())
    check(file_digest(pair.path('out')) == want, 'the file differs')
    return want


def http_server(pair):
    sample(pair.path('file'), 300_000)
    pair.server(PYTHON, '-m', 'http.server', 8000, '--bind', pair.server_ip, '--directory',
                pair.folder, port=8000)
    return pair.client(PYTHON, PEER, 'web', f'http://{pair.server_ip}:8000/file')


def sshd(pair):
    """Its child confines itself in a chroot before it reads from the connection. Keys are exchanged
    again after each MB."""
    server, client, keygen, scp = need('sshd', 'ssh', 'ssh-keygen', 'scp')
    want = sample(pair.path('file'), 100_000_000)
    for name in ('host', 'user'):
        pair.client(keygen, '-q', '-t', 'ed25519', '-N', '', '-f', pair.path(name), plain=True)
    os.makedirs('/run/sshd', exist_ok=True)
    pair.server(server, '-D', '-e', '-f', '/dev/null', '-p', 7309, '-h', pair.path('host'), *options(
        ListenAddress=pair.server_ip, AuthorizedKeysFile=pair.path('user.pub'), StrictModes='no',
        PermitRootLogin='yes', UsePAM='no', PidFile='none',
        Subsystem='sftp internal-sftp'), port=7309)
    how = ['-i', pair.path('user'), *options(
        StrictHostKeyChecking='no', UserKnownHostsFile='/dev/null', LogLevel='ERROR',
        BatchMode='yes', RekeyLimit='1M')]
    out = pair.client(client, '-p', 7309, *how, f'root@{pair.server_ip}', 'echo in; cat',
                      stdin='out')
    for source, to in ((f'root@{pair.server_ip}:{pair.path("file")}', pair.path('got')),
                       (pair.path('file'), f'root@{pair.server_ip}:{pair.path("put")}')):
        pair.client(scp, '-q', '-P', 7309, *how, source, to)
    check([file_digest(pair.path(name)) for name in ('got', 'put')] == [want, want], 'files differ')
    return out, want


def options(**values):
    return [f'-o{name}={value}' for name, value in values.items()]


def vsftpd(pair):
    """Its children come from clone() by number, and confine themselves. The one that accepts data
    connections is in an empty chroot without a daemon, so they are the kernel's."""
    server, curl = need('vsftpd', 'curl')
    want = [sample(pair.path(name), 3_000_000, name) for name in ('down', 'up')]
    os.makedirs(pair.path('in'))
    for path, mode in ((pair.folder, 0o755), (pair.path('in'), 0o777)):
        os.chmod(path, mode)
    os.makedirs('/run/vsftpd/empty', exist_ok=True)
    conf = pair.write('vsftpd.conf', '\n'.join((
        'listen=YES', 'background=NO', f'listen_address={pair.server_ip}', 'listen_port=2121',
        'anonymous_enable=YES', 'no_anon_password=YES', f'anon_root={pair.folder}',
        'write_enable=YES', 'anon_upload_enable=YES', 'secure_chroot_dir=/run/vsftpd/empty',
        'anon_umask=022', '')))
    pair.server(server, conf, port=2121)
    url = f'ftp://{pair.server_ip}:2121'
    pair.kernels = 100_000
    for mode in ([], ['--ftp-port', '-']):
        pair.client(curl, '-sS', *mode, f'{url}/down', '-o', pair.path('got'))
        name = f'up{len(mode)}'
        pair.client(curl, '-sS', *mode, '-T', pair.path('up'), f'{url}/in/{name}')
        got = [file_digest(pair.path(path)) for path in ('got', f'in/{name}')]
        check(got == want, f'{mode}: what came differs')
    return want, pair.client(curl, '-sS', '-l', f'{url}/in/')


def mosquitto(pair):
    server, read, publish = need('mosquitto', 'mosquitto_sub', 'mosquitto_pub')
    conf = pair.write('mosquitto.conf', f'listener 1883 {pair.server_ip}\nallow_anonymous true\n'
                      'user root\n')
    pair.server(server, '-c', conf, port=1883)
    to = ['-h', pair.server_ip, '-t', 'news', '-q', 2]
    pair.client(publish, *to, '-r', '-m', 'kept')
    reader = pair.background('reader', read, *to, '-C', 51)
    until_true('the reader', lambda: 'kept' in reader.out())
    pair.client(publish, *to, '-l', stdin=''.join(f'line {i}\n' for i in range(50)))
    check(reader.wait() == 0, reader.tail())
    return reader.out()


def nuttcp(pair):
    """A connection for control and another for data."""
    program, = need('nuttcp')
    pair.server(program, '-S', '--nofork', '-P', 5020, port=5020)
    out = [pair.client(program, *way, '-P', 5020, '-p', 5021, '-n', '20m', pair.server_ip)
           for way in (['-t'], ['-r'])]
    return [line_with(o, r'20\.0000 MB') for o in out]


def php(pair):
    server, curl = need('php', 'curl')
    pair.write('sum.php', '<?php echo strlen(file_get_contents("php://input")), " ", '
               'md5(file_get_contents("php://input"));')
    sample(pair.path('body'), 1_000_000)
    pair.server(server, '-S', f'{pair.server_ip}:8001', '-t', pair.folder, port=8001)
    return [pair.client(curl, '-sS', '--data-binary', f'@{pair.path("body")}',
                        f'http://{pair.server_ip}:8001/sum.php') for _ in range(3)]


def zmq(pair):
    server = '''import sys, zmq
s = zmq.Context().socket(zmq.REP); s.bind(f"tcp://{sys.argv[1]}:5022"); print("ready", flush=True)
while True: s.send(s.recv()[::-1])'''
    client = '''import sys, zmq
s = zmq.Context().socket(zmq.REQ); s.connect(f"tcp://{sys.argv[1]}:5022")
for n in (1, 100, 100_000, 3_000_000):
    m = bytes(range(251)) * (n // 251 + 1); s.send(m); print(n, s.recv() == m[::-1])'''
    if not os.path.exists('/usr/lib/python3/dist-packages/zmq'):
        raise Skipped('python3-zmq not installed')
    pair.server(PYTHON, '-c', server, pair.server_ip, text='ready')
    return pair.client(PYTHON, '-c', client, pair.server_ip)


def slapd(pair):
    server, add, search = need('slapd', 'ldapadd', 'ldapsearch')
    conf = pair.write('slapd.conf', 'include /etc/ldap/schema/core.schema\nmodulepath /usr/lib/ldap\n'
                      'moduleload back_mdb\ndatabase mdb\nsuffix dc=test\nrootdn cn=me,dc=test\n'
                      f'rootpw word\ndirectory {pair.folder}\n')
    pair.server(server, '-d', 0, '-h', f'ldap://{pair.server_ip}:3890/', '-f', conf, port=3890)
    how = ['-x', '-H', f'ldap://{pair.server_ip}:3890', '-D', 'cn=me,dc=test', '-w', 'word']
    entries = ['dn: dc=test\nobjectClass: dcObject\nobjectClass: organization\no: test\ndc: test\n']
    entries += [f'dn: cn=n{i},dc=test\nobjectClass: person\ncn: n{i}\nsn: {"s" * i}\n' for i in range(1, 300)]
    pair.client(add, *how, stdin='\n'.join(entries))
    return sock.digest(pair.client(search, *how, '-LLL', '-b', 'dc=test').encode())


# For make check: a cheap one of each kind.
QUICK = [socat_udp, dnsmasq, echo_processes, multicast, socat_tcp, serve_asyncio]
UDP = [sockperf, iperf_udp, netcat, socat_udp, dnsmasq, tftp, memcached_udp, coturn, echo_selectors,
       echo_wildcard, echo_asyncio, echo_socketserver, echo_processes, multicast]
TCP = [redis, nginx, sshd, vsftpd, mosquitto, nuttcp, php, zmq, slapd, memcached_tcp, openssl, rsync, iperf_tcp, socat_tcp, http_server, sockperf_tcp,
       netcat_tcp, serve_selectors, serve_asyncio, serve_threads, serve_forks, serve_processes]


def run(case, proto, *how):
    """One run: its ends, the output of the programs, and the increase of our end's counters."""
    pair = sock.shared(how[0], proto, *how[1:])
    return pair, case(pair), pair.grown()


@sock.may_fail
def all_runs(case, proto):
    """UDP is carried at either end with any peer. TCP is carried if both ends can; otherwise the
    kernel carries it as if the library were absent."""
    _, want, by_kernel = run(case, proto, sock.KERNEL)
    if not sock.has_library():
        return
    for ours, daemons in ((sock.SERVER, 1), (sock.CLIENT, 1), (sock.SERVER, 2)):
        pair, got, grown = run(case, proto, ours, daemons)
        check(got == want, f'{ours} carried, {daemons} daemons: {got}, not {want}')
        if proto == 'udp' or daemons == 2:
            sock.carried(pair, by_kernel, grown)


# ---- through ends of daemons ----

ENDS = 40
# Three clients that connect again after an error, and check each answer. A wait of 30 s is a hang.
SURVIVORS = '''
import hashlib, http.client, os, socket, sys, threading, time
ip, folder, want = sys.argv[1:]
counts, failed = {}, []
def count(name):
    counts[name] = counts.get(name, 0) + 1
    with open(f"{folder}/{name}.new", "w") as f: f.write(str(counts[name]))
    os.rename(f"{folder}/{name}.new", f"{folder}/{name}.count")
def run(name, port, step):
    while not os.path.exists(f"{folder}/stop") and not failed:
        try:
            s = socket.create_connection((ip, port), timeout=30)
            while not os.path.exists(f"{folder}/stop"): step(s); count(name)
        except TimeoutError: failed.append(f"{name} hangs after {counts.get(name)}")
        except OSError as e: count(name) if str(e) == "another one" else time.sleep(0.05)
        except http.client.HTTPException: time.sleep(0.05)
        except AssertionError as e: failed.append(f"{name}: {e}")
def web(s):
    s.sendall(b"GET /file HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    r = http.client.HTTPResponse(s); r.begin()
    got = hashlib.sha256(r.read()).hexdigest()[:16]; assert got == want, got
    if counts.get("web", 0) % 50 == 49: raise OSError("another one")
def lines(s, n):
    f = b""
    while f.count(b"\\r\\n") < n:
        d = s.recv(4096)
        if not d: raise OSError("closed")
        f += d
    return f
nb = 0
def redis(s):
    global nb
    nb += 1; text = b"value%d" % nb
    s.sendall(b"SET key%d %b\\r\\nGET key%d\\r\\n" % (nb, text, nb)); got = lines(s, 3)
    assert got.startswith(b"+OK") and text in got, got
    time.sleep(0.01)
def idle(s):
    """It waits for what the server sends once in a while."""
    d = s.recv(1)
    if not d: raise OSError("closed")
    assert d == b"t", d
jobs = [threading.Thread(target=run, args=a) for a in (("web", 8080, web), ("redis", 6379, redis), ("idle", 5013, idle))]
for j in jobs: j.start()
for j in jobs: j.join()
print(failed)
'''
TICKS = '''
import socket, sys, threading, time
def ticks(s):
    try:
        while True: time.sleep(0.5); s.send(b"t")
    except OSError: pass
l = socket.create_server((sys.argv[1], 5013)); print("ready", flush=True)
while True: threading.Thread(target=ticks, args=l.accept()[:1], daemon=True).start()
'''


def survivors():
    """nginx, redis and a client that waits go on through takeovers and kills of either daemon."""
    nginx_, redis_ = need('nginx', 'redis-server')
    with Work() as work, sock.Pair(work, sock.SERVER, 'tcp', 2) as pair:
        want = sample(pair.path('file'), 300_000)
        conf = pair.write('nginx.conf', NGINX.format(pair.folder, pair.server_ip))
        pair.server(nginx_, '-e', 'stderr', '-c', conf, '-p', pair.folder, port=8080)
        pair.server(redis_, '--bind', pair.server_ip, '--port', 6379, '--protected-mode', 'no',
                    '--save', '', '--dir', pair.folder, port=6379)
        pair.server(PYTHON, '-c', TICKS, pair.server_ip, text='ready')
        client = pair.background('clients', PYTHON, '-c', SURVIVORS, pair.server_ip, pair.folder, want)

        def counts():
            names = [pair.path(f'{name}.count') for name in ('web', 'redis', 'idle')]
            return [int(open(n, encoding='ascii').read()) if os.path.exists(n) else 0 for n in names]
        streams = 0
        for i in range(ENDS):
            before = counts()
            until_true(lambda: f'all go on, end {i}: {before}, {counts()}, {client.tail()}',
                       lambda: not client.is_alive() or all(a + 2 < b for a, b in zip(before, counts())))
            check(client.is_alive(), client.tail())
            end = 'us' if i % 4 < 2 else 'peer'
            old = pair.daemons[end]
            streams += pair.daemons['us'].ask('sockets')['streams_accepted'] if end == 'us' else 0
            if i % 2 == 0:
                old.process.kill()
            pair.daemons[end] = old.again(*(['--takeover'] if i % 2 else []))
            check(old.process.wait() == 0 or i % 2 == 0, f'the old one: {old.process.tail()}')
        pair.write('stop', '')
        check(client.wait() == 0 and client.out() == '[]\n', client.tail())
        print(f'# {ENDS} ends of daemons, {streams} streams, answers: {counts()}')
        check(streams > ENDS, f'not carried again: {streams}')


def main():
    need_namespaces('ethtool', 'sysctl')
    tests = Tests()
    for proto, cases in (('udp', UDP), ('tcp', TCP)):
        for case in cases:
            add = tests.add if case in QUICK else tests.add_long
            add(f'{proto} {case.__name__}', all_runs, case, proto)
    tests.add_long('survivors', survivors)
    tests.add('daemons end', sock.stop_shared)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
