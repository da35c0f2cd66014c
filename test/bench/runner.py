# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of processes: this stack, the bare link, the kernel's sockets. One pair at a time."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import profile_core

EAL_MB = 256
START_S = 15            # time limit of a run besides its traffic
RESTART_S = 3           # traffic around a live restart, during which a process starts
ENDS_OPS = 4000         # requests of a whole end that is counted
IDLE_SHARE = 0.2        # of its instructions, in rounds without work
WHOLE_S = 120           # time limit of its run
KERNEL_IP = '10.99.0.2'
PORT = '4793'          # different from the stack's own
IPERF_PORT = '4792'     # separate: its TIME_WAIT would block sockperf for a minute
OFFLOADS = ('tso', 'gso', 'gro')
MEMIF_ROOM = {1500: 2048, 9000: 9216}   # size of a buffer, by MTU


class RunError(Exception):
    """A measurement failed; one line."""


def stop(process, with_signal=signal.SIGTERM):
    """End a process after its time."""
    if process.poll() is None:
        process.send_signal(with_signal)
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def said(pattern, text):
    """The number that *pattern* finds in sockperf's output."""
    found = re.search(pattern, text)
    if found is None:
        raise RunError(f'sockperf: no "{pattern}" in: {text.strip()[-300:]}')
    return float(found.group(1))


def divide(x, y, what):
    """x / y; fails if the run has not measured *what*."""
    if not y:
        raise RunError(f'{what}: 0')
    return x / y


class Runner:
    """Starts one pair of processes at a time, and returns their results."""

    def __init__(self, build, tmp, ms, huge):
        self.use(build)
        self.tmp = pathlib.Path(tmp)
        self.ms = ms
        self.huge = huge
        self.cpus = sorted(os.sched_getaffinity(0))[:2]     # client, server
        self.peer = []          # prefix of a command that runs in the peer's namespace
        self.library = {}       # per role: prefix of a program whose sockets are carried
        self.kernel_state = None
        self.under = []         # prefix of the client's program
        self.counted = {}       # per build and case: what core() found

    def use(self, build):
        """Use the programs of that build from now on."""
        self.build = pathlib.Path(build).resolve()
        os.environ['RTSAN_PROVIDER_PATH'] = str(self.build / 'drivers/san/unix')

    # ---- processes ----

    def start(self, command, name='alone'):
        """Output goes to files, so that it can be read while the process runs."""
        with open(self.tmp / f'{name}.out', 'wb') as out, \
                open(self.tmp / f'{name}.err', 'wb') as err:
            process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err)
        process.name = name
        return process

    def output(self, process, suffix='out'):
        return (self.tmp / f'{process.name}.{suffix}').read_text(encoding='utf-8')

    def wrong(self, process, what):
        lines = self.output(process, 'err').strip().splitlines() or ['no message']
        return RunError(f'{process.name}: {what}: {lines[-1]}')

    def finish(self, process):
        """Wait for a process to end. Returns its output."""
        try:
            process.wait(START_S + self.ms / 1000)
        except subprocess.TimeoutExpired:
            raise self.wrong(process, 'not finished in time') from None
        if process.returncode != 0:
            raise self.wrong(process, f'exit code {process.returncode}')
        return self.output(process)

    def wait_ready(self, server, line='\n'):
        """Wait until it has printed *line*: memif refuses a peer that connects before the port is
        up."""
        end = time.monotonic() + START_S
        while line not in self.output(server):
            if server.poll() is not None or time.monotonic() > end:
                raise self.wrong(server, 'did not start')
            time.sleep(0.005)

    def pair(self, server, client, ready, ends=signal.SIGTERM):
        """Run both until the client ends. *ends* is the signal for the server; None: it ends by
        itself."""
        started = [self.start(server, 'server')]
        try:
            ready(started[0])
            started.append(self.start(client, 'client'))
            self.finish(started[1])
            if ends is None:
                self.finish(started[0])
            else:
                stop(started[0], ends)
            return [self.output(p) for p in started]
        finally:
            for process in reversed(started):
                stop(process)

    def at(self, role):
        """Prefix of a command with sockets: "server" runs in the peer's namespace."""
        where, cpu = (self.peer, 1) if role == 'server' else ([], 0)
        return [*where, 'taskset', '-c', self.cpus[cpu], *self.library.get(role, ())]

    # ---- this stack and the bare link: two EAL processes on memif ----

    def eal(self, role, mtu, huge, lcore=False):
        """On the CPU of that role; *lcore*: another thread there drives the port."""
        cpu = self.cpus[role == 'server']
        lcores = f'0@{cpu},1@{cpu}' if lcore else f'0@{cpu}'
        memory = ['--in-memory'] if huge else ['--no-huge', '--no-shconf']
        mac = '02:00:00:00:00:' + ('01' if role == 'server' else '02')
        return ['--lcores', lcores, '--no-pci', '--no-telemetry', '--log-level=3',
                '--file-prefix', f'bench-{role}-{os.getpid()}', *memory, '-m', EAL_MB,
                f'--vdev=net_memif0,role={role},id=0,socket={self.tmp / "memif.sock"},'
                f'socket-abstract=no,bsize={MEMIF_ROOM[mtu]},rsize=10,mac={mac}']

    def memif(self, program, server, client, mtu, huge):
        (self.tmp / 'memif.sock').unlink(missing_ok=True)
        program = self.build / program
        return self.pair(
            [program, *self.eal('server', mtu, huge), '--', *server],
            [*self.under, program, *self.eal('client', mtu, huge), '--', *client],
            self.wait_ready, None)

    def link(self, server, client, *what, mtu=1500, answer=()):
        """bench_link; the role that measures prints JSON."""
        out = self.memif('test/bench/bench_link', [server, self.ms, *what, *answer],
                         [client, self.ms, *what], mtu, self.huge)
        return json.loads(next(o.strip().splitlines()[-1] for o in out if '{' in o))

    def san(self, mode, *client, server=(), mtu=1500, huge=True):
        """sanbench; *client* and *server* are additional arguments."""
        reports = [self.tmp / 'server.json', self.tmp / 'client.json']
        for report in reports:
            report.unlink(missing_ok=True)
        common = ['--set', f'mtu={mtu}']    # the link's buffers would need more
        self.memif('apps/sanbench/sanbench',
                   ['--server', '--sessions', 1, '--ip', '10.98.0.1/24', *common,
                    '--json', reports[0], *server],
                   ['--connect', '10.98.0.1', '--ip', '10.98.0.2/24', '--mode', mode,
                    '--duration', self.ms / 1000, *common, '--json', reports[1], *client],
                   mtu, self.huge and huge)
        return self.result(reports)

    @staticmethod
    def result(reports):
        """The client's result, with the server's."""
        served, got = [json.loads(r.read_text(encoding='utf-8')) for r in reports]
        if not got['ok'] or not served['ok']:
            raise RunError(got['error'] or 'the server found errors')
        latency = got['latency_ns']
        got.update(p50_us=latency['p50'] / 1e3, p99_us=latency['p99'] / 1e3, mpps=got.pop('mps'),
                   server=served)
        return got

    # ---- an application of a daemon, against the same server ----

    def daemon(self, mtu, *port, vdev=None, role='client', ip='10.98.0.2'):
        """A daemon whose lcore is on the CPU of that role."""
        words = [str(w) for w in self.eal(role, mtu, self.huge, lcore=True)]
        words[-1] = vdev or words[-1]
        conf = self.tmp / f'{role}.conf'
        lines = ['[eal]', *(f'args = {" ".join(words[i:i + 4])}' for i in range(0, len(words), 4)),
                 '[port]', f'ip = {ip}/24', f'mtu = {mtu}', *port,
                 '[daemon]', f'socket = {self.socket(role)}']
        conf.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        where = self.peer if role == 'server' else []
        process = self.start([*where, self.build / 'apps/sanstack-daemon/sanstack-daemon',
                              '--config', conf], f'daemon of the {role}')
        self.wait_ready(process)
        return process

    def socket(self, role='client'):
        """Socket of the daemon of that role."""
        return self.tmp / f'{role}.sock'

    def attached(self, mode, *client, server=(), mtu=1500, during=None, both=False):
        """Like san(), with the client attached to a daemon, for which *during* is called; with
        *both* the server is attached, too.
        """
        reports = [self.tmp / 'server.json', self.tmp / 'client.json']
        (self.tmp / 'memif.sock').unlink(missing_ok=True)
        program = self.build / 'apps/sanbench/sanbench'
        eal = [*self.eal('server', mtu, self.huge), '--']
        port = ['--ip', '10.98.0.1/24', '--set', f'mtu={mtu}']
        started = []
        try:
            if both:
                started.append(self.daemon(mtu, 'idle = yield', role='server', ip='10.98.0.1'))
                eal, port = ['--attach', f'unix:{self.socket("server")}'], []
            serving = self.start(['taskset', '-c', self.cpus[1], program, *eal, '--server',
                                  '--sessions', 1, *port, '--json', reports[0], *server], 'server')
            started.append(serving)
            self.wait_ready(serving)
            daemon = self.daemon(mtu, 'idle = yield')
            started.append(daemon)
            asking = self.start(
                ['taskset', '-c', self.cpus[0], program, '--attach',
                 f'unix:{self.socket()}', '--connect', '10.98.0.1', '--mode', mode,
                 '--duration', self.ms / 1000, '--json', reports[1], *client], 'client')
            started.append(asking)
            if during:
                started.append(during(daemon))
            self.finish(asking)
            self.finish(serving)
        finally:
            for process in reversed(started):
                stop(process)
        return self.result(reports)

    def restarted(self, mode, *client):
        """Attached, while a new daemon takes over: the longest pause of the application."""
        def take_over(old):
            time.sleep(RESTART_S / 4)
            new = self.start([*old.args, '--takeover'], 'daemon-2')
            self.wait_ready(new)
            if old.wait(10) != 0:
                raise RunError('the old daemon has ended with an error')
            return new

        # two daemons need memory
        huge, self.huge = self.huge, False
        try:
            got = self.attached(mode, *client, '--duration', RESTART_S, during=take_over)
        finally:
            self.huge = huge
        return {**got, 'blackout_ms': got['latency_ns']['max'] / 1e6}

    def crowd(self, pairs, conns, rounds, size):
        """Pairs of applications of one daemon, which send data back and forth through its lcore."""
        daemon = self.daemon(9000, 'idle = yield', f'conns = {4 * pairs * conns}',
                             vdev='--vdev=net_null0,no-rx=1')
        try:
            out = self.finish(self.start(
                ['taskset', '-c', self.cpus[1], self.build / 'test/bench/crowd',
                 f'unix:{self.socket()}', '10.98.0.2', pairs, conns, rounds, size]))
        finally:
            stop(daemon)
        first, last = (int(word) for word in out.split())
        bits = 2 * pairs * conns * rounds * size * 8
        return {'gbps': divide(bits, last, 'milliseconds') / 1e6,
                'even': divide(first, last, 'milliseconds')}

    def idle(self, seconds=3):
        """CPU share of a sleeping daemon with a link and without applications."""
        (self.tmp / 'memif.sock').unlink(missing_ok=True)
        started = [self.start([self.build / 'apps/sanbench/sanbench',
                               *self.eal('server', 1500, self.huge), '--', '--server',
                               '--ip', '10.98.0.1/24', '--set', 'idle=sleep'], 'server')]
        try:
            self.wait_ready(started[0])
            started.append(self.daemon(1500, 'idle = sleep'))
            time.sleep(1)
            before = self.used_ns(started[1].pid)
            time.sleep(seconds)
            return {'percent': (self.used_ns(started[1].pid) - before) / seconds / 1e7}
        finally:
            for process in reversed(started):
                stop(process)

    @staticmethod
    def used_ns(pid):
        return sum(int((task / 'schedstat').read_text(encoding='utf-8').split()[0])
                   for task in pathlib.Path(f'/proc/{pid}/task').iterdir())

    # ---- the kernel: sockets between two namespaces ----

    def set_kernel(self, mtu, offloads, checksums=True):
        """Set MTU and offloads at both ends of the veth pair; *checksums*: left to the receiver."""
        if self.kernel_state == (mtu, offloads, checksums):
            return
        switch = ['tx', 'on' if checksums else 'off']
        switch += [w for o in OFFLOADS for w in (o, 'on' if offloads else 'off')]
        for where in ([], self.peer):
            for command in (['ip', 'link', 'set', 'veth0', 'mtu', str(mtu)],
                            ['ethtool', '-K', 'veth0', *switch]):
                subprocess.run([*where, *command], check=True, stdout=subprocess.DEVNULL)
        self.kernel_state = (mtu, offloads, checksums)

    def tcp(self, mtu, offloads, streams=1, length='128K'):
        self.set_kernel(mtu, offloads, not self.library)
        out = self.pair([*self.at('server'), 'iperf3', '--server', '--one-off', '--forceflush',
                         '--port', IPERF_PORT],
                        [*self.at('client'), 'iperf3', '--client', KERNEL_IP, '--port', IPERF_PORT,
                         '--time', 1, '--parallel', streams, '--length', length, '--json'],
                        self.wait_ready)
        got = json.loads(out[1])['end']
        return {'gbps': got['sum_received']['bits_per_second'] / 1e9,
                'congestion_control': got['sender_tcp_congestion']}

    def sockperf(self, what, *words, how='--nonblocked', size=64, tcp=False):
        """sockperf with polling or blocking sockets."""
        self.set_kernel(1500, not self.library, not self.library)
        where = ['-i', KERNEL_IP, '-p', PORT, *([how] if how else []), *(['--tcp'] if tcp else [])]
        out = self.pair([*self.at('server'), 'sockperf', 'server', *where],
                        [*self.at('client'), 'sockperf', what, *where, '-t', 1, '-m', size,
                         *words], lambda server: self.wait_ready(server, 'Warmup'), signal.SIGINT)
        return [re.sub(r'\x1b\[[0-9;]*m', '', o) for o in out]

    def ping(self, **how):
        out = self.sockperf('ping-pong', '--full-rtt', **how)[1]
        return {f'p{p}_us': said(rf'percentile {p}\.000 = +([0-9.]+)', out) for p in (50, 99)}

    def udp_rate(self, **how):
        """The rate that arrived, not the rate that was sent."""
        served, sent = self.sockperf('throughput', **how)
        seconds = said(r'messages sent in ([0-9.]+) sec', sent)
        arrived = said(r'Total ([0-9]+) messages received', served)
        return {'mpps': divide(arrived, seconds, 'seconds') / 1e6}

    # ---- two CPUs, one process ----

    def hop(self):
        return json.loads(self.finish(self.start(
            [self.build / 'test/bench/bench_hop', *self.cpus, self.ms])))

    # ---- instructions ----

    def core(self, case):
        """Per operation of both sides; "round": the client core's share of it; "express_tx" and
        "express_rx": per cent of the packets that are no ACKs."""
        if (self.build, case) in self.counted:
            return self.counted[self.build, case]
        try:
            found = profile_core.count(self.build, self.tmp, case, False)
        except profile_core.ProfileError as error:
            raise RunError(str(error)) from None
        client, server = (found[side] for side in profile_core.SIDES)
        got, said = {'ask': client.total('Ir'), 'serve': server.total('Ir')}, client.result
        got.update(both=got['ask'] + got['serve'], packets=said['packets'] / said['operations'],
                   round=sum(client.stage(f, 'Ir')
                             for f in ('san_core_tick', 'san_core_tx_burst')))
        if content := said['packets'] - said['acks']:
            got.update({way: 100 * said[way] / content for way in ('express_tx', 'express_rx')})
        self.counted[self.build, case] = got
        return got

    def whole_end(self, packed):
        """Instructions of one end, sanbench and memif included, for a request asked and one served.
        The client runs under callgrind, where time passes some fifty times too fast for it: so the
        timers and congestion control are out of the way. Rounds without work are subtracted: a
        server on the client's CPU makes many, which gives the cost of one.
        """
        (few, begin, idle), (same, wait, waits), (more, total, rest) = (
            self.whole_run(packed, *how) for how in ((ENDS_OPS, False), (ENDS_OPS, True),
                                                     (4 * ENDS_OPS, False)))
        # begin = set-up + few x each + idle x round, and so on
        ops, extra = (more - few, same - few), (rest - idle, waits - idle)
        costs = total - begin, wait - begin
        area = ops[0] * extra[1] - ops[1] * extra[0]
        a_round = divide(ops[0] * costs[1] - ops[1] * costs[0], area, 'rounds without work')
        each = (costs[0] - extra[0] * a_round) / ops[0]
        if abs(extra[0]) * a_round > IDLE_SHARE * costs[0]:
            raise RunError('the machine is too busy to count the instructions of a whole end')
        return {'both': each, 'idle': a_round}

    def whole_run(self, packed, count, shared):
        """Requests asked and served by a client that is counted, its instructions, and its rounds
        without work; *shared*: the server has the same CPU."""
        still = [w for key in ('cc=fixed', 'rto=2s', 'rto_min=2s', 'rto_max=4s', 'tlp=2s',
                               f'pack={int(packed)}') for w in ('--set', key)]
        cpus, ms = self.cpus, self.ms
        self.under = ['valgrind', '--tool=callgrind', '--fair-sched=yes',
                      '--callgrind-out-file=/dev/null']
        self.ms, self.cpus = WHOLE_S * 1000, [cpus[0], cpus[not shared]]
        try:
            got = self.san('rpc', '--size', 32, '--depth', 64, '--both', '--count', count, *still,
                           server=still, huge=False)
        finally:
            self.under, self.cpus, self.ms = [], cpus, ms
        text = (self.tmp / 'client.err').read_text(encoding='utf-8')
        instructions = re.search(r'Collected : (\d+)', text)
        if instructions is None or got['rtx'] != 0:
            raise RunError(f'counted end: {got["rtx"]} packets resent')
        return got['counters']['wrs'] / 2, int(instructions[1]), got['counters']['loops_idle']

    # ---- one process alone on a CPU ----

    def alone(self, program, cpu, *what):
        command = ['taskset', '-c', cpu, self.build / 'test/bench' / program, *what]
        return json.loads(self.finish(self.start(command)))
