#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A machine boots the packages, and does what the documents say, literally: the commands are taken
out of them. (SYS-2, SYS-10)

The cases are one day of an operator and build on each other. What is not run has its reason in
NOT_RUN, what the journal may have in EXPLAINED. Skipped where no such machine can be made; the
reason is the last line.
"""

import glob
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '../guest'), os.path.join(HERE, '../e2e')]

import machine  # noqa: E402
from documents import Documents, read  # noqa: E402
from e2e import SOURCE, Tests, check, skip, until_true  # noqa: E402

README, USE, INSTALL, LIBFABRIC = 'README.md', 'doc/use.md', 'doc/install.md', 'doc/libfabric.md'
DEBIAN, AF_PACKET = 'debian/README.Debian', 'config/af-packet.conf'
SANCTL, SANSOCK, SANSIM, SANVERBS = (
    f'doc/man/{name}.1' for name in ('sanctl', 'sansock', 'sansim', 'sanverbs'))
PAGES = sorted(os.path.relpath(path, SOURCE) for path in glob.glob(f'{SOURCE}/doc/man/*.[1-8]'))

BUILDS = 'builds the sources: make demo, make check and the suites e2e and portability do'
CRATES = 'Rust: the suite e2e does'
IMAGES = 'containers: the suite containers does'
RDMA = 'needs an RDMA device: make check-verbs'
C = 'C: the programs in examples/ are compiled and run'
INSTALLED = 'the programs are installed'
NOT_RUN = {
    README: {
        'make demo       # builds, moves files and messages between two processes, then bytes by '
        'kernel TCP: two minutes': BUILDS,
        'make install                # below PREFIX, /usr/local; make uninstall removes it': BUILDS,
        'rtsan_open("dpdk:--vdev=net_memif0,... -- ip=10.0.0.1/24", &ctx);': C,
        'rtsan_stream_connect(ctx, "10.0.0.2", service, NULL, timeout_ms, &s);': C,
        '. usertools/env.sh      # what build/ has, as if it were installed': INSTALLED,
        '. usertools/env.sh': INSTALLED,
    },
    USE: {
        'rdma link add rxe0 type rxe netdev eth1        # as root, where there is no RDMA NIC':
            RDMA,
        'apt install bindgen cargo libclang1-14 libclang-common-14-dev': CRATES,
        '. usertools/env.sh': INSTALLED,
    },
    INSTALL: {
        'sh devtools/arm64-root.sh root-arm64': BUILDS,
        'make deb': BUILDS,
        'podman-compose -f usertools/container/compose.yaml up --build': IMAGES,
    },
    LIBFABRIC: {'make deb': BUILDS},
    DEBIAN: {'$nrconf{override_rc}->{qr(^sanstack-daemon)} = 0;': 'a line of a configuration'},
    SANSIM: {'sansim --swarm 0 --seconds 600 --seed 1000000 --shrink':
             'ten minutes of what doc/use.md has as --swarm 200'},
    'doc/man/rtsan-dpdk.7': {'dpdk:--lcores=0@0 --no-pci --no-huge --file-prefix=a -m 512':
                             'no commands: README.md has them, with the same link'},
    'doc/man/rtsan-verbs.7': {'pingpong server verbs:rxe0': RDMA},
    'doc/man/rtsan.7': {'struct rtsan_ctx *ctx;': C},
}

# What the journal has of our units at warning and above, and why that is right.
EXPLAINED = {
    r"\.sock stays at the end: its folder is another user's":
        'the folder is root\'s; the next start removes the socket: RIGHTS in sanstack-daemon(8)',
    r'\.sock: Permission denied; it stays': 'the same, at the end',
    r'memif_socket_remove_device\(\): Failed to remove socket file': 'the same, of a memif',
    r'multiq|tap_nl_dump_ext_ack|Disabling rte flow support':
        'DPDK\'s TAP driver, of queues that the kernel lacks a module for; it goes on without',
}

SOCKET = 'unix:/run/sanstack/sanstack.sock'
CONF = '/etc/sanstack/sanstack.conf'
EXAMPLES = '/usr/share/doc/sanstack/examples/config'
EXPOSURE = 3.0
FILES = 'find /etc /usr /run/sanstack /var/lib/systemd 2>/dev/null | grep -v __pycache__ | sort'


def unit_is(m, unit, state):
    said = m.run(f'systemctl is-active {unit}', status=None).strip()
    check(said == state, f'{unit} is {said}: {m.run(f"journalctl -n 30 -o cat -u {unit}")}')


# ---- installation, service ----

def boots(m, _):
    said = m.run('systemctl is-system-running --wait', status=None)
    check(said == 'running\n', said + m.run('systemctl --failed'))
    m.run(f'{FILES} >/tmp/before')


def installs(m, docs):
    """By apt, as the documents say. Nothing starts by itself."""
    m.run(docs.take(INSTALL, 'apt install'))
    unit_is(m, 'sanstack-daemon', 'inactive')
    said = m.run('systemctl is-enabled sanstack-daemon', status=None)
    check(said == 'disabled\n', f'it is {said}')
    m.run('id sanstack; getent group san; test -d /run/sanstack')
    m.run(docs.take(LIBFABRIC, 'apt install'))
    unit_is(m, 'sanstack-daemon', 'active')
    m.run('apt install ./build/deb/*.deb')
    unit_is(m, 'sanstack-daemon', 'active')
    m.run(docs.take(INSTALL, 'pkg-config'))


def serves(m, docs):
    """Started, stopped, started again: each time the daemon is the user of its configuration."""
    m.run('systemctl stop sanstack-daemon')
    unit_is(m, 'sanstack-daemon', 'inactive')
    m.run(docs.take(DEBIAN, 'sanctl apps'))
    for _ in range(2):
        unit_is(m, 'sanstack-daemon', 'active')
        user = m.run('ps -o user= -p $(systemctl show -P MainPID sanstack-daemon)').strip()
        check(user == 'sanstack', f'it is {user}')
        m.run('systemctl restart sanstack-daemon')


def exposed(m, _):
    """Little of the machine is open to the service, and its unit has a reason for each part."""
    for unit in ('sanstack-daemon', 'sanstack-daemon@x'):
        said = m.run(f'systemd-analyze security --no-pager {unit}; systemctl cat {unit}')
        level = float(re.search(r'exposure level .*: ([0-9.]+) ', said)[1])
        check(level <= EXPOSURE, said)
        reasons = ''.join(re.findall(r'^#.*\n', said, re.MULTILINE))
        for name in re.findall(r'^✗ (\S+)', said, re.MULTILINE):
            words = re.findall(r'@\w+|[A-Z]\w+=|(?!CAP_|AF_)[A-Z][A-Z_0-9]+',
                               name.partition('~')[2] or name)
            check(any(word in reasons for word in words), f'{unit}: no reason for {name}')


def by_a_user(m, docs):
    """A program of a user, who is in the group of the configuration."""
    docs.inline(LIBFABRIC, '`group = san`')
    m.run(f'sed -i "s/^user = .*/&\\ngroup = san/" {CONF}; systemctl stop "sanstack-daemon@*"; '
          'systemctl restart sanstack-daemon')
    m.run(docs.inline(LIBFABRIC, 'usermod -aG san NAME').replace('NAME', 'ann'))
    said = m.run(f'pingpong -w client {SOCKET} 10.0.0.1', 'bob', status=1)
    check('Permission denied' in said, said)
    said = m.run(f'pingpong -w server {SOCKET} & pingpong -w client {SOCKET} 10.0.0.1 1000', 'ann')
    check('1000 round trips' in said, said)


class Traffic:
    """Of a user's two programs, until told to end; use as a context."""

    def __init__(self, m):
        self.m = m

    def __enter__(self):
        self.server = self.m.start(f'exec pingpong -w server {SOCKET}', 'ann')
        self.client = self.m.start(f'exec pingpong -w client {SOCKET} 10.0.0.1 99999999', 'ann')
        self.server.wait_text('connected')
        return self

    def moves(self):
        """Messages arrive now."""
        def count():
            apps = self.m.run('sanctl apps')
            check(self.client.is_alive() and self.server.is_alive(),
                  self.client.tail() + self.server.tail())
            return apps
        before = count()
        until_true('messages', lambda: count() != before)

    def __exit__(self, *_):
        for program in (self.client, self.server):
            program.kill()
        self.m.run('pkill -x pingpong', status=None)


def reloads(m, _):
    m.run(f"printf '[log]\\ndriver = info\\n' >>{CONF}; systemctl reload sanstack-daemon")
    unit_is(m, 'sanstack-daemon', 'active')
    m.run(f'pingpong -w client {SOCKET} 10.0.0.1', status=None)
    check(' attached' in m.run('journalctl -b -o cat -u sanstack-daemon'), 'the level is as before')


def restarts_live(m, docs):
    """A daemon takes over while programs of a user exchange messages."""
    docs.inline(USE, 'systemctl start sanstack-daemon@new')
    with Traffic(m) as traffic:
        m.run(docs.take(DEBIAN, '--takeover --check-config'))
        m.run(docs.take(DEBIAN, 'sanstack-daemon@new'))
        unit_is(m, 'sanstack-daemon@new', 'active')
        until_true('the old one ends', lambda: m.run(
            'systemctl is-active sanstack-daemon', status=None) == 'inactive\n')
        traffic.moves()
    m.run(docs.take(DEBIAN, 'sanstack-daemon@*'))
    unit_is(m, 'sanstack-daemon@new', 'inactive')
    unit_is(m, 'sanstack-daemon', 'active')


# ---- tools ----

def captures(m, docs):
    """The manual's own lines, with the number of a connection that there is."""
    watch, _, capture, metrics = docs.take(SANCTL, 'capture').splitlines()
    with Traffic(m) as traffic:
        watched = m.start(f'exec {watch}')
        cid = re.search(r'0x[0-9a-f]+', m.run('sanctl conns'))[0]
        watched.wait_text(cid)
        watched.kill()
        m.run(re.sub('0x[0-9a-f]+', cid, capture))
        traffic.moves()
        m.run('sanctl capture stop; test $(stat -c %s /var/tmp/one.pcapng) -gt 2000')
        served = m.start(f'exec {metrics}')
        served.wait_text('listening')
        m.run('curl -sf http://127.0.0.1:9464/metrics | grep sanstack_build_info')
        served.stop()


def is_scraped(m, docs):
    """Prometheus takes the metrics by the configuration that is installed. They are OpenMetrics, of
    which "promtool check metrics" does not know the type info."""
    m.run(docs.take(INSTALL, 'sanstack-metrics'))
    with Traffic(m):
        until_true('metrics', lambda: 'pingpong' in m.run(
            'curl -s http://127.0.0.1:9464/metrics', status=None))
    prometheus = m.start(f'exec prometheus --config.file={EXAMPLES}/prometheus.yml '
                         '--storage.tsdb.path=/tmp/tsdb --web.listen-address=127.0.0.1:9090')
    until_true('Prometheus has scraped', lambda: '"1"]' in m.run(
        "curl -s 'http://127.0.0.1:9090/api/v1/query?query=up'", status=None))
    said = m.run("curl -s 'http://127.0.0.1:9090/api/v1/query?query=sanstack_build_info'")
    check('"version"' in said, said)
    prometheus.kill()


def simulates(m, docs):
    said = m.run(docs.take(USE, 'sansim --swarm 200'))
    check('200 runs, 0 failed' in said, said)
    m.run('cd /tmp\n' + docs.take(SANSIM, 'incast.csv'))


def measures(m, docs):
    said = m.run(docs.take(USE, 'sanbench --lcores=0@0') + 'pkill sanbench')
    check('Gb/s' in said, said)


def rdma(m, docs):
    """Programs of rdma-core, of a user on the service."""
    said = m.run(docs.take(SANVERBS, 'ibv_devinfo'), 'ann')
    check('PORT_ACTIVE' in said and 't_typical' in said, said)


# ---- embedded, another daemon, MPI ----

def plays(m, docs):
    """Two engines, then a daemon that is started by hand, from which another one takes over."""
    said = m.run(docs.take(README, 'pingpong server "dpdk:') + 'wait')
    check('10000 round trips' in said, said)
    said = m.run(docs.take(README, 'socket = /run/san.sock'))
    check('10000 round trips' in said, said)
    check('ready' in m.run(docs.take(USE, '--takeover')), 'it does not take over')


def mpi(m, docs):
    """On that daemon as root and as a user of its group, then on the service."""
    block = docs.take(README, 'mpicc')
    check(m.run(block).count('sum 1') == 2, 'sums')
    docs.inline(README, 'omit `--allow-run-as-root`')
    docs.inline(README, 'usermod -aG users NAME')   # ann is in it
    user = block.replace('--allow-run-as-root ', '').replace('/tmp/sum', '/tmp/sum-of-ann')
    check(m.run(user, 'ann').count('sum 1') == 2, 'sums of a user')
    m.run('kill $(pgrep -f "on /run/san.sock"); cp /tmp/sum-of-ann /home/ann/program')
    said = m.run(docs.take(LIBFABRIC, 'fi_info').replace('--allow-run-as-root ', ''), 'ann')
    check('provider: sanstack' in said and said.count('sum 6') == 4, said)


# ---- a second host: a namespace with its own /run and /etc/sanstack ----

OTHER = """
ip link add eth1 type veth peer name peer1
unshare --net --mount sh -c 'mount -t tmpfs run /run; mount -t tmpfs etc /etc/sanstack
    echo up >/tmp/other.up; exec sleep infinity' &
echo $! >/tmp/other; until [ -s /tmp/other.up ]; do sleep 0.1; done
ip link set peer1 netns $(cat /tmp/other)
nsenter -n -t $(cat /tmp/other) ip link set peer1 name eth1
for enter in '' "nsenter -n -t $(cat /tmp/other)"; do
    $enter ip link set lo up; $enter ip link set eth1 up; $enter ethtool -K eth1 tx off >/dev/null
done
ip address add 10.0.0.1/24 dev eth1
nsenter -n -t $(cat /tmp/other) ip address add 10.0.0.2/24 dev eth1
"""


def there(script):
    """*script* on the other host."""
    return f"nsenter -m -n -t $(cat /tmp/other) bash -eu <<'THERE'\n{script}\nTHERE\n"


def two_hosts(m, docs):
    """Sockets of unmodified programs between two hosts, each line on the one that it names."""
    m.run(f"systemctl stop 'sanstack-daemon*'; cp {CONF} /tmp/conf\n{OTHER}")
    conf = docs.take(USE, 'carry_tcp = on').replace(
        'sanstack-daemon &', 'sanstack-daemon >/tmp/$host.log 2>&1 &')
    wait = 'until grep ready /tmp/$host.log; do kill -0 $!; sleep 0.1; done\n'
    m.run(f'host=here\n{conf}{wait}')
    m.run(there(f'host=there\n{conf.replace("10.0.0.1/24", "10.0.0.2/24")}{wait}'))
    server, client, sockets = docs.take(USE, 'redis-server').splitlines()
    check(server.endswith('# on 10.0.0.1') and client.endswith('# on 10.0.0.2'), server)
    m.run(server)
    until_true('a greeting', lambda: 'OK' in m.run(there(client), status=None))
    check(re.search('tcp .* yes', m.run(sockets)), m.run('sanctl sockets'))
    m.run('pkill redis-server || :')


def manual_of_sansock(m, docs):
    server, client, explain = docs.take(SANSOCK, 'memcached').splitlines()
    redis = m.start(f'exec {server}')
    until_true('redis is carried', lambda: re.search('redis.* yes', m.run('sanctl sockets')))
    redis.kill()
    m.run('pkill redis-server || :', status=None)
    m.run(there("""cd /usr/share/common-licenses
        sansock run python3 -um http.server --bind 10.0.0.2 80 >/tmp/http.log 2>&1 &
        until grep Serving /tmp/http.log; do kill -0 $!; sleep 0.1; done"""))
    check('BSD' in m.run(client), 'no page')
    check("carry" in m.run(explain), m.run(explain))
    serve, run, explain, sockets = docs.take(README, 'sockperf server').splitlines()
    m.run(serve)
    sockperf = m.start(f'exec {run}')
    until_true('sockperf is carried', lambda: re.search('sockperf.* yes', m.run(sockets)))
    check('both' in m.run(explain), m.run(explain))
    sockperf.kill()
    m.run('pkill sockperf', status=None)


def on_nics(m, _):
    """The service on a NIC, a memif and a TAP, by the files that the package has for that."""
    m.run(f"""pkill -x sanstack-daemon; while pgrep -x sanstack-daemon; do sleep 0.1; done
        sed 's/^# group/group/' {EXAMPLES}/af-packet.conf >{CONF}
        systemctl start sanstack-daemon""")
    m.run(there(f"""sed 's|10.0.0.1/24|10.0.0.2/24|' {EXAMPLES}/af-packet.conf >{CONF}
        sanstack-daemon >/tmp/there.log 2>&1 &
        until grep ready /tmp/there.log; do kill -0 $!; sleep 0.1; done
        pingpong -w server {SOCKET} >/tmp/served 2>&1 &"""))
    said = m.run(f'pingpong -w client {SOCKET} 10.0.0.2 1000', 'ann')
    check('1000 round trips' in said, said)
    said = m.run(f"""cp {EXAMPLES}/memif-server.conf {CONF}; systemctl restart sanstack-daemon
        sanstack-daemon --config {EXAMPLES}/memif-client.conf >/tmp/client.log 2>&1 &
        until grep ready /tmp/client.log; do kill -0 $!; sleep 0.1; done
        pingpong -w server unix:/run/sanstack/server.sock &
        pingpong -w client unix:/run/sanstack/client.sock 10.0.0.1 1000""")
    check('1000 round trips' in said, said)
    m.run(f"""pkill -x sanstack-daemon || :
        sed 's/net_af_packet0,iface=eth1/net_tap0,iface=tap7/' {EXAMPLES}/af-packet.conf >{CONF}
        systemctl restart sanstack-daemon; ip link show tap7
        cp /tmp/conf {CONF}; systemctl restart sanstack-daemon""")


def examples_of_files(m, docs):
    """Configurations in manual pages are valid."""
    for word in ('conns = 1024', '[port east]'):
        m.run(f"cat >/tmp/example.conf <<'END'\n{docs.take('doc/man/sanstack.conf.5', word)}END\n"
              'sanstack-daemon --check-config --config /tmp/example.conf')
    m.run(f"useradd guest; cat >/tmp/rules <<'END'\n{docs.take('doc/man/sansock.conf.5', 'memcached')}END\n"
          'sansock check /tmp/rules')


# ---- at the end ----

def journal(m, _):
    """Nothing but what EXPLAINED has."""
    said = m.run("journalctl -b -o cat -q -p warning -u 'sanstack*'")
    left = [line for line in said.splitlines()
            if not any(re.search(known, line) for known in EXPLAINED)]
    check(not left, '\n'.join(left))
    check(m.run('systemctl --failed -q') == '', m.run('systemctl --failed'))


def documents(_, docs):
    """Each command has been run, or has a reason."""
    docs.check()


def purged(m, _):
    """Purging stops what runs, and leaves nothing."""
    m.run('systemctl start sanstack-daemon sanstack-metrics; systemctl start sanstack-daemon@last; '
          'rm /usr/local/bin/pingpong /etc/sanstack/sansock.conf; '
          'apt purge -y $(for deb in build/deb/*.deb; do dpkg-deb -f $deb Package; done)')
    m.run(f'''systemctl daemon-reload
        if pgrep -a san || systemctl list-units --all -q 'sanstack*' | grep .; then exit 1; fi
        {FILES} | diff /tmp/before -''')


CASES = (
    ('it boots', boots),
    ('apt installs the packages', installs),
    ('start, stop, restart', serves),
    ('what is open to the service', exposed),
    ('a program of a user', by_a_user),
    ('reload', reloads),
    ('live restart', restarts_live),
    ('capture', captures),
    ('metrics, and Prometheus', is_scraped),
    ('RDMA programs', rdma),
    ('embedded engines, a daemon by hand', plays),
    ('MPI', mpi),
    ('sanbench', measures),
    ('sansim', simulates),
    ('sockets between two hosts', two_hosts),
    ('sansock(1)', manual_of_sansock),
    ('NICs', on_nics),
    ('configurations in manual pages', examples_of_files),
    ('every command has been run', documents),
    ('the journal', journal),
    ('purge', purged),
)


def main():
    try:
        disk = machine.Disk()
    except machine.NoMachine as e:
        skip(str(e))
    docs = Documents((README, USE, INSTALL, LIBFABRIC, DEBIAN, *PAGES), NOT_RUN)
    tests = Tests()
    with tempfile.TemporaryDirectory(prefix='san-machine.') as folder:
        m = machine.Machine(disk, folder)
        for name, case in CASES:
            tests.add(name, case, m, docs)
        try:
            return tests.run()
        finally:
            m.stop()


if __name__ == '__main__':
    sys.exit(main())
