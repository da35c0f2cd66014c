#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make bench: this stack against the bare link and the kernel, in one run.

Two processes on a CPU each, both polling. Each round measures every variant
of a figure once, in an order that rotates, so that what the machine does
meanwhile hits all of them; the table shows medians over the rounds, and the
median of each round's ratios. Everything happens inside namespaces of its own
that end with this process. How to read the table: doc/performance.md.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPORT = ROOT / 'doc/performance.md'
BEGIN, END = '<!-- bench:begin -->', '<!-- bench:end -->'
HUGEPAGES = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB')
NB_HUGEPAGES = 640
EAL_MB = 512
FULL_FRAME = 1514       # MTU 1500
START_S = 12            # longest that a run may take beside its traffic
BUSY_SHARE = 0.05       # of a CPU that something else takes
KERNEL_IP = '10.99.0.2'
PORT = '4791'


class RunError(Exception):
    """A measurement that did not work, in one line."""


class Runner:
    """Starts one pair of processes at a time and returns what one of them printed."""

    def __init__(self, args):
        self.build = pathlib.Path(args.build).resolve()
        self.tmp = pathlib.Path(args.tmp)
        self.ms = args.ms
        self.rounds = args.rounds
        self.huge = args.huge
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.peer = []  # what a command begins with that runs in the peer's namespace

    # ---- processes ----

    def start(self, command, name='alone'):
        """Output goes to files: one can look into them while the process runs."""
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
        """Last line of the output of a process that ends by itself."""
        try:
            process.wait(START_S + self.ms / 1000)
        except subprocess.TimeoutExpired:
            raise self.wrong(process, 'not finished in time') from None
        if process.returncode != 0:
            raise self.wrong(process, f'exit code {process.returncode}')
        return (self.output(process).strip().splitlines() or [''])[-1]

    def wait_ready(self, server):
        """Until it has printed a line: memif refuses a peer that comes before the port is up."""
        end = time.monotonic() + START_S
        while '\n' not in self.output(server):
            if server.poll() is not None or time.monotonic() > end:
                raise self.wrong(server, 'did not start')
            time.sleep(0.01)

    def pair(self, server, client, result, says_ready):
        """Run both; *result* names the one whose output counts; the other one is ended."""
        started = [self.start(server, 'server')]
        try:
            if says_ready:
                self.wait_ready(started[0])
            started.append(self.start(client, 'client'))
            return self.finish(started[0 if result == 'server' else 1])
        finally:
            for process in reversed(started):
                stop(process)

    # ---- this stack and the bare link: two EAL processes on memif ----

    def eal(self, role, cpu):
        memory = ['--in-memory'] if self.huge else ['--no-huge', '--no-shconf']
        mac = '02:00:00:00:00:' + ('01' if role == 'server' else '02')
        return ['--lcores', f'0@{cpu}', '--no-pci', '--no-telemetry', '--log-level=3',
                '--file-prefix', f'bench-{role}-{os.getpid()}', *memory, '-m', EAL_MB,
                f'--vdev=net_memif0,role={role},id=0,socket={self.socket()},'
                f'socket-abstract=no,bsize=2048,rsize=10,mac={mac}']

    def socket(self):
        return self.tmp / 'memif.sock'

    def memif(self, program, server, client, result):
        self.socket().unlink(missing_ok=True)
        program = self.build / program
        return self.pair([program, *self.eal('server', self.cpus[1]), '--', *server],
                         [program, *self.eal('client', self.cpus[0]), '--', *client],
                         result, True)

    def link(self, server, client, frame):
        """bench_link; the measuring role is the server of 'rx' and the client of 'ping'."""
        what = [frame, self.ms]
        out = self.memif('test/bench/bench_link', [server, *what], [client, *what],
                         'server' if server == 'rx' else 'client')
        got = json.loads(out)
        return {'mops': got.get('mpps'), **got}

    def san(self, mode, size, depth):
        report = self.tmp / 'sanbench.json'
        report.unlink(missing_ok=True)
        self.memif('apps/sanbench/sanbench',
                   ['--server', '--ip', '10.98.0.1/24', '--set', 'mtu=1500'],
                   ['--connect', '10.98.0.1', '--ip', '10.98.0.2/24', '--mode', mode,
                    '--set', 'mtu=1500',
                    '--size', size, '--depth', depth, '--duration', self.ms / 1000,
                    '--json', report], 'client')
        got = json.loads(report.read_text(encoding='utf-8'))
        if not got['ok'] or got['messages'] == 0:
            raise RunError(got['error'] or 'no message was moved')
        latency = got['latency_ns']
        return {'p50_us': latency['p50'] / 1e3, 'p99_us': latency['p99'] / 1e3,
                'mops': got['mps'], 'gbps': got['gbps']}

    # ---- the kernel: sockets between two namespaces ----

    def kernel(self, server, client, *what):
        program = self.build / 'test/bench/bench_kernel'
        there = [*self.peer, 'taskset', '-c', self.cpus[1], program]
        here = ['taskset', '-c', self.cpus[0], program]
        out = self.pair([*there, server, KERNEL_IP, PORT],
                        [*here, client, KERNEL_IP, PORT, self.ms, *what],
                        'server' if server == 'tcp-sink' else 'client', False)
        return json.loads(out)

    # ---- alone on a CPU ----

    def alone(self, program, cpu, *what):
        command = ['taskset', '-c', cpu, self.build / 'test/bench' / program, *what]
        return json.loads(self.finish(self.start(command)))


def stop(process):
    """End a process that has had its time."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# Figure: name: (rows of (title, key of the result, lower is better),
#                what it does: variants of this stack, then baselines by column).
COLUMNS = ['raw link', 'kernel TCP', 'kernel UDP']
FIGURES = {
    'latency': (
        [('64 B round trip, depth 1, p50, us', 'p50_us', True),
         ('64 B round trip, depth 1, p99, us', 'p99_us', True)],
        {'send': lambda r: r.san('send', 64, 1),
         'push': lambda r: r.san('push', 64, 1),
         'pull': lambda r: r.san('pull', 64, 1)},
        {'raw link': lambda r: r.link('pong', 'ping', 64),
         'kernel TCP': lambda r: r.kernel('tcp-echo', 'tcp-ping', 64, 1),
         'kernel UDP': lambda r: r.kernel('udp-echo', 'udp-ping', 64, 1)},
    ),
    'rate': (
        [('64 B operations, depth 64, M/s', 'mops', False)],
        {'send': lambda r: r.san('send', 64, 64),
         'push': lambda r: r.san('push', 64, 64),
         'pull': lambda r: r.san('pull', 64, 64)},
        {'raw link': lambda r: r.link('rx', 'tx', 64),
         'kernel TCP': lambda r: r.kernel('tcp-echo', 'tcp-ping', 64, 64),
         'kernel UDP': lambda r: r.kernel('udp-echo', 'udp-ping', 64, 64)},
    ),
    'bulk': (
        [('1 MiB transfers, MTU 1500, Gb/s', 'gbps', False)],
        {'push': lambda r: r.san('push', 1 << 20, 8),
         'pull': lambda r: r.san('pull', 1 << 20, 8)},
        {'raw link': lambda r: r.link('rx', 'tx', FULL_FRAME),
         'kernel TCP': lambda r: r.kernel('tcp-sink', 'tcp-bulk')},
    ),
}
WIRE = 'wire'   # the micro-benchmark, a table of its own


def measure(runner, figure, rounds, ours_only):
    """Alternate; per variant a list with one result per round, ended by None if it failed."""
    _, ours, base = FIGURES[figure]
    variants = {**{('sanstack', k): f for k, f in ours.items() if k in ours_only or not ours_only},
                **{('base', k): f for k, f in base.items()}}
    names = list(variants)
    results = {name: [] for name in names}
    errors = []
    for i in range(rounds):
        for name in names[i % len(names):] + names[:i % len(names)]:
            if None in results[name]:
                continue        # it would fail again, and take long for it
            try:
                results[name].append(variants[name](runner))
            except (RunError, OSError, ValueError) as error:
                results[name].append(None)
                errors.append(f'{figure}: {" ".join(name)}, round {i + 1}: {error}')
        print(f'{figure}: round {i + 1} of {rounds}', file=sys.stderr, flush=True)
    return results, errors


def number(x):
    return f'{x:.0f}' if x >= 100 else f'{x:.3g}'


def cell(values):
    """Median and range over the rounds."""
    if None in values:
        return 'failed'
    if len(values) == 1:
        return number(values[0])
    return f'{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})'


def ratio(ours, base, lower_is_better):
    """How many times better ours is: median of the ratios within each round."""
    pairs = [(b, o) if lower_is_better else (o, b)
             for o, b in zip(ours, base) if o and b]
    return f'{number(statistics.median(x / y for x, y in pairs))}x' if pairs else '–'


def table(all_results):
    lines = ['| | sanstack |' + ''.join(f' {c} | ratio |' for c in COLUMNS),
             '| --- |' + ' --- |' * (1 + 2 * len(COLUMNS))]
    for figure, results in all_results.items():
        for title, key, lower in FIGURES[figure][0]:
            values = {n: [r and r.get(key) for r in rs] for n, rs in results.items()}
            for (whose, variant), ours in values.items():
                if whose != 'sanstack':
                    continue
                line = f'| {variant}: {title} | {cell(ours)} |'
                for column in COLUMNS:
                    base = values.get(('base', column))
                    line += (f' {cell(base)} | {ratio(ours, base, lower)} |' if base
                             else ' | |')
                lines.append(line)
    return lines


def wire_table(runner):
    got = runner.alone('bench_wire', runner.cpus[0])
    lines = ['', '| ns per packet, warm cache | headers written | ICRC computed | '
             'parsed, ICRC checked | sum |', '| --- | --- | --- | --- | --- |']
    for payload, ns in got.items():
        parts = [ns['build_ns'], ns['icrc_ns'], ns['parse_ns']]
        lines.append(f'| {payload} B of payload | '
                     + ' | '.join(f'{x:.0f}' for x in [*parts, sum(parts)]) + ' |')
    return lines


def machine(runner):
    """What one has to know of the machine, in one line; how quiet it is, in another."""
    cpuinfo = pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8')
    model = next((line.split(':')[1].strip() for line in cpuinfo.splitlines()
                  if line.startswith('model name')), 'unknown CPU')
    dpdk = subprocess.run(['pkg-config', '--modversion', 'libdpdk'], stdout=subprocess.PIPE,
                          text=True, check=False).stdout.strip()
    pages = '2 MiB hugepages' if runner.huge else 'no hugepages'
    noise = [runner.alone('bench_noise', cpu, runner.ms) for cpu in runner.cpus]
    busy = [] if all(n['share'] < BUSY_SHARE for n in noise) else [
        '- **The machine was busy with something else: these figures say little.**']
    return [f'- {os.cpu_count()} CPUs ({model}), Linux {os.uname().release}, DPDK {dpdk}, {pages}, '
            f'memif copy mode, {runner.rounds} rounds, {runner.ms} ms per run.',
            '- Stolen from a busy loop in gaps over 10 us, per CPU, just before: '
            + ', '.join(f'{n["share"]:.1%} ({n["gaps_per_s"]:.0f}/s, longest '
                        f'{n["longest_us"]:.0f} us)' for n in noise) + '.', *busy, '']


def write_report(lines):
    text = REPORT.read_text(encoding='utf-8')
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    REPORT.write_text(head + BEGIN + '\n' + '\n'.join(lines) + '\n' + END + tail,
                      encoding='utf-8')


@contextlib.contextmanager
def peer_namespace():
    """The other end of the veth pair: a namespace that lives as long as a process in it."""
    def link(pid):
        return os.readlink(f'/proc/{pid}/ns/net')

    with subprocess.Popen(['unshare', '--net', 'cat'], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL) as holder:
        while holder.poll() is None and link(holder.pid) == link('self'):
            time.sleep(0.001)
        yield str(holder.pid)
        holder.stdin.close()


def inner(args):
    """Inside the namespaces: lay the veth pair, measure, print."""
    runner = Runner(args)
    with peer_namespace() as pid:
        runner.peer = ['nsenter', '--target', pid, '--net', '--']
        for command in ('ip link set lo up',
                        f'ip link add veth0 type veth peer name veth0 netns {pid}',
                        'ip addr add 10.99.0.1/24 dev veth0', 'ip link set veth0 up'):
            subprocess.run(command.split(), check=True)
        for command in (f'ip addr add {KERNEL_IP}/24 dev veth0', 'ip link set veth0 up'):
            subprocess.run([*runner.peer, *command.split()], check=True)
        return measure_all(args, runner)


def measure_all(args, runner):
    lines = machine(runner)
    all_results, errors = {}, []
    for figure in FIGURES:
        if args.only in (None, figure):
            all_results[figure], wrong = measure(runner, figure, args.rounds,
                                                 ['push'] if args.quick else [])
            errors += wrong
    if all_results:
        lines += table(all_results)
    if args.only in (None, WIRE):
        lines += wire_table(runner)
    print('\n'.join(lines), flush=True)
    for error in errors:
        print('bench: ' + error, file=sys.stderr)
    if args.write and not errors:
        write_report(lines)
    return 1 if errors else 0


@contextlib.contextmanager
def hugepages(wanted):
    """Reserve for the time of the run where that is possible; true if there are enough."""
    def read(name):
        return int((HUGEPAGES / name).read_text(encoding='ascii'))

    before = after = None
    try:
        if wanted and HUGEPAGES.exists() and read('free_hugepages') < NB_HUGEPAGES:
            before = read('nr_hugepages')
            with contextlib.suppress(OSError):
                (HUGEPAGES / 'nr_hugepages').write_text(str(before + NB_HUGEPAGES))
            after = read('nr_hugepages')
        yield wanted and HUGEPAGES.exists() and read('free_hugepages') >= NB_HUGEPAGES
    finally:
        # somebody who changed it meanwhile wants it so
        if before != after and read('nr_hugepages') == after:
            (HUGEPAGES / 'nr_hugepages').write_text(str(before))


def build_is_slow(build):
    """Why figures of this build would mislead, or None."""
    out = subprocess.run(['meson', 'introspect', '--buildoptions', build], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    options = {o['name']: o['value'] for o in json.loads(out)}
    if options['b_sanitize'] != 'none' or options['debug_asserts']:
        return 'it has sanitizers or assertions'
    return None if options['optimization'] in ('2', '3') else 'it is not optimized'


def outer(args):
    """Outside: what has to be undone even if the inside is killed."""
    # no mounts: a chroot forbids them
    unshare = ['unshare', '--net', '--fork', '--kill-child']
    if os.geteuid() != 0:
        unshare += ['--user', '--map-root-user']
    with tempfile.TemporaryDirectory(prefix='sanstack-bench-') as tmp, \
            hugepages(not args.quick and not args.no_huge) as huge:
        command = [*unshare, sys.executable, __file__, '--inner', '--tmp', tmp, *sys.argv[1:]]
        if huge:
            command.append('--huge')
        with subprocess.Popen(command) as process:
            try:
                return process.wait()
            finally:
                process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', nargs='?', default=str(ROOT / 'build'), help='build folder')
    parser.add_argument('--only', choices=[*FIGURES, WIRE], help='one figure')
    parser.add_argument('--rounds', type=int, help='alternations (7)')
    parser.add_argument('--ms', type=int, help='milliseconds per run (1000)')
    parser.add_argument('--no-huge', action='store_true', help='without hugepages')
    parser.add_argument('--quick', action='store_true',
                        help='one short round without hugepages: does it work?')
    parser.add_argument('--write', action='store_true', help=f'put the table into {REPORT.name}')
    for name in ('--inner', '--huge'):
        parser.add_argument(name, action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('--tmp', help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 7)
    args.ms = args.ms or (200 if args.quick else 1000)
    if args.write and (args.only or args.quick):
        parser.error('--write needs every figure, measured in full')
    if args.inner:
        return inner(args)
    if len(os.sched_getaffinity(0)) < 2:
        print('bench: needs two CPUs', file=sys.stderr)
        return 77
    slow = None if args.quick else build_is_slow(args.build)
    if slow:
        parser.error(f'{args.build}: {slow}')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return outer(args)


if __name__ == '__main__':
    sys.exit(main())
