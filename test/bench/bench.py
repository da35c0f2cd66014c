#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make bench: this stack against the link, against the minimum that any transport must do on it,
and against the kernel.

Two processes on a CPU each, both polling. Each round measures every variant of a group once, in a
rotating order, so that disturbances of the machine affect all of them. A ratio is the median of the
rounds' ratios. Everything runs in namespaces that end with this process. Results:
BUILD/bench/results.json, a plot per figure beside it, and a table. With --base: compare a commit
with this tree instead, BUILD/bench/base.json. See doc/bench.md for how to read the results.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import compare                                      # noqa: E402
import fabric                                       # noqa: E402
import profile_core                                 # noqa: E402
import store                                        # noqa: E402
import verbs                                        # noqa: E402
from figures import COUNTED, FIGURES, VARIANTS, judge   # noqa: E402
from report import CHARTED, FRONT, NUMBERS, chart, counted, numbers, plot, table    # noqa: E402
from runner import KERNEL_IP, RunError, Runner      # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / 'README.md'
REPORT = ROOT / 'doc/performance.md'
ALL = ROOT / 'doc/figures.md'
STORE = ROOT / 'doc/figures.json'
CHART = ROOT / 'doc/performance.svg'
HUGEPAGES = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB')
NB_HUGEPAGES = 300      # two processes of 256 MiB, and a reserve
BUSY_SHARE = 0.05       # share of a CPU used by something else
ROUNDS, QUICK_ROUNDS = 5, 1
RUN_MS, QUICK_MS = 400, 60
NOISE_MS = 1000
TOOLS = ('ethtool', 'iperf3', 'memcached', 'memcaslap', 'redis-benchmark', 'redis-server', 'socat',
         'sockperf', 'valgrind')
WIRE = 'wire'           # the micro-benchmark, which has its own table
TEXTS = 'texts'         # nothing is measured: the texts are drawn again


# ---- measuring ----

def measure(runner, group, figures, rounds):
    """Measure the variants in turn. Returns for each a list with one result per round, ended by
    None if it failed."""
    names = list(dict.fromkeys(n for f in figures for n in (f.ours, f.base)))
    results = {name: [] for name in names}
    errors = []
    for i in range(rounds):
        for name in names[i % len(names):] + names[:i % len(names)]:
            if None in results[name]:
                continue        # it would fail again, after a long time
            try:
                results[name].append(VARIANTS[name](runner))
            except (RunError, OSError, ValueError, KeyError) as error:
                results[name].append(None)
                errors.append(f'{group}: {name}, round {i + 1}: {error}')
        print(f'{group}: round {i + 1} of {rounds}', file=sys.stderr, flush=True)
    return results, errors


def measure_all(args, runner):
    """Records of the requested figures."""
    records, errors = [], []
    wanted = possible(args, runner)
    for group in dict.fromkeys(f.group for f in wanted):
        figures = [f for f in wanted if f.group == group]
        rounds = 1 if all(f.once for f in figures) else args.rounds
        results, wrong = measure(runner, group, figures, rounds)
        found = [judge(f, results) for f in figures]
        errors += wrong + [f'{r["name"]}: the baseline is 0' for r in found
                           if r['value'] is not None and r['ratio'] is None]
        records += found
    return records, errors


def chosen(args, figure):
    if args.only:
        return args.only in (figure.name, figure.group)
    return figure.quick if args.quick else True


def possible(args, runner):
    """The requested figures, without those whose programs are not here."""
    wanted = [f for f in FIGURES if chosen(args, f)]
    for part in (fabric, verbs):
        lacking = part.missing(runner)
        if lacking and any(f.group == part.GROUP for f in wanted):
            wanted = [f for f in wanted if f.group != part.GROUP]
            print(f'bench: {part.GROUP} is skipped: no {", ".join(lacking)}', file=sys.stderr)
    return wanted


# ---- environment of the figures ----

def wire_table(got):
    lines = ['', '| ns per packet, warm cache | headers written | ICRC computed | '
             'parsed, ICRC checked | sum |', '| --- | --- | --- | --- | --- |']
    for payload, ns in got.items():
        parts = [ns['build_ns'], ns['icrc_ns'], ns['parse_ns']]
        lines.append(f'| {payload} B of payload | '
                     + ' | '.join(f'{x:.0f}' for x in [*parts, sum(parts)]) + ' |')
    return lines


def said(*command):
    """First line of a command's output; empty if it fails or is missing."""
    if shutil.which(command[0]) is None:
        return ''
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return (done.stdout.strip().splitlines() or [''])[0]


def commit():
    """That of this tree."""
    dirty = said('git', 'status', '--porcelain', '--', 'lib', 'drivers', 'apps')
    return (said('git', 'rev-parse', '--short', 'HEAD') or 'unknown') + ('-dirty' if dirty else '')


def flags(build):
    """Compiler and optimization flags of lib/core in this build."""
    commands = json.loads((pathlib.Path(build) / 'compile_commands.json').read_text('utf-8'))
    words = next(shlex.split(c['command']) for c in commands if c['file'].endswith('/core.c'))
    words = words[pathlib.Path(words[0]).name == 'ccache':]     # it would tell its own version
    return {'compiler': said(words[0], '--version'),
            'options': [w for w in words if re.match(r'-(O|m|f|g$|std=|DSAN|DNDEBUG|flto)', w)]}


def machine(args, runner):
    cpuinfo = pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8')
    model = next((line.split(':')[1].strip() for line in cpuinfo.splitlines()
                  if line.startswith('model name')), 'unknown CPU')
    noise = [runner.alone('bench_noise', cpu, args.noise_ms) for cpu in runner.cpus]
    return {'cpus': os.cpu_count(), 'model': model, 'kernel': os.uname().release,
            'dpdk': said('pkg-config', '--modversion', 'libdpdk'), 'hugepages': runner.huge,
            'rounds': args.rounds, 'run_ms': runner.ms, 'stolen': noise}


def build_line(found):
    return (f"- {found['flags']['compiler']}, {' '.join(found['flags']['options'])}; "
            f"commit {found['commit']}, {found['date']}.")


def head(found, is_counted=False):
    """A line about the machine, one about the build, and one about other load."""
    if is_counted:
        return [build_line(found),
                '- Counted by callgrind: the same on any machine, under any load.', '']
    m = found['machine']
    pages = '2 MiB hugepages' if m['hugepages'] else 'no hugepages'
    busy = [] if all(n['share'] < BUSY_SHARE for n in m['stolen']) else [
        '- **The machine was busy with something else: these figures say little.**']
    return [f"- {m['cpus']} CPUs ({m['model']}), Linux {m['kernel']}, DPDK {m['dpdk']}, {pages}, "
            f"memif copy mode, {m['rounds']} rounds, {m['run_ms']} ms per run.",
            build_line(found),
            '- Stolen from a busy loop in gaps over 10 us, per CPU, just before: '
            + ', '.join(f'{n["share"]:.1%} ({n["gaps_per_s"]:.0f}/s, longest '
                        f'{n["longest_us"]:.0f} us)' for n in m['stolen']) + '.', *busy, '']


def footer(stored, names):
    """The machine and the runs of these figures."""
    runs = sorted({stored['figures'][n]['run'] for n in names if n in stored['figures']})
    m = stored['runs'][runs[0]]['machine']
    return (f"{m['cpus']} CPUs ({m['model']}), two processes, memif; "
            + '; '.join(f"{stored['runs'][r]['date']}, commit {store.measured(stored, r)}"
                        for r in runs))


def fill(path, lines, mark='bench'):
    """Replace what is between the marks in *path*."""
    begin, end = f'<!-- {mark}:begin -->', f'<!-- {mark}:end -->'
    front, rest = path.read_text(encoding='utf-8').split(begin, 1)
    tail = rest.split(end, 1)[1]
    path.write_text(front + begin + '\n' + '\n'.join(lines) + '\n' + end + tail,
                    encoding='utf-8')


def heads(stored, runs):
    """The heads of these runs."""
    return [line for r in sorted(set(runs))
            for line in [f'{"Counted" if r.endswith(COUNTED) else "Measured"} at '
                         f'{store.measured(stored, r)}:', '',
                         *head(stored['runs'][r], r.endswith(COUNTED))]]


def write_texts(stored):
    """Draw the texts and the chart from what is stored."""
    figures = store.records(stored)
    front = [r for r in figures if r['name'] in FRONT]
    CHART.write_text(chart(figures, footer(stored, CHARTED)), encoding='utf-8')
    fill(README, [*numbers(figures), '', f'Measured on {footer(stored, NUMBERS)}.'])
    fill(REPORT, heads(stored, [r['run'] for r in front if r['ratio']]) + table(front))
    counts, wire, compared = (stored[part] for part in ('counts', 'wire', 'comparison'))
    if counts:
        fill(REPORT, heads(stored, [counts['run']]) + counted(counts['rows']), COUNTED)
    lines = heads(stored, [s['run'] for s in stored['figures'].values()]) + table(figures)
    lines += wire_table(wire['rows']) if wire else []
    fill(ALL, lines + (['', '## Before and after', '', *compared] if compared else []))


def keep(folder, found):
    """Write results.json and the plots."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob('*.svg'):
        old.unlink()
    for record in found['figures']:
        if record['value'] is not None:
            (folder / f"{record['name']}.svg").write_text(plot(record), encoding='utf-8')
    (folder / 'results.json').write_text(json.dumps(found, indent=1) + '\n', encoding='utf-8')


def facts(args, runner):
    """Facts without which the results can't be interpreted."""
    return {'commit': commit(),
            'date': time.strftime('%Y-%m-%d'),
            'flags': flags(args.build),
            'cpus': dict(zip(('client', 'server'), runner.cpus)),
            'machine': machine(args, runner)}


def end_comparison(args, lines, records, errors):
    """Print the comparison. Returns the exit status."""
    lines = lines + compare.table(records)
    print('\n'.join(lines), flush=True)
    if args.write and not errors:
        stored = {**store.read(STORE), 'comparison': lines}
        store.write(STORE, stored)
        write_texts(stored)
    for error in errors:
        print('bench: ' + error, file=sys.stderr)
    folder = pathlib.Path(args.build) / 'bench'
    folder.mkdir(exist_ok=True)
    (folder / 'base.json').write_text(json.dumps(records, indent=1) + '\n', encoding='utf-8')
    return compare.status(records)


def run_comparison(args, runner):
    """Compare the base and this tree."""
    base = pathlib.Path(args.base_build)
    found = facts(args, runner)
    lines = [*head(found)[:-1], f'- base: {args.base}, {base.parent.name}.']
    if flags(base) != found['flags']:
        lines.append(f'- its flags: {" ".join(flags(base)["options"])}.')
    records, errors = compare.compare(runner, base, possible(args, runner), args.rounds,
                                      args.within / 100)
    return end_comparison(args, [*lines, ''], records, errors)


def run(args, runner):
    found = facts(args, runner)
    found['figures'], errors = measure_all(args, runner)
    if found['figures']:
        keep(pathlib.Path(args.build) / 'bench', found)
    if args.only in (None, WIRE):
        found['wire'] = runner.alone('bench_wire', runner.cpus[0])
    lines = head(found) + (table(found['figures']) if found['figures'] else [])
    if args.only in (None, COUNTED) and not args.quick:
        found['counts'] = {case: runner.core(case) for case in profile_core.CASES}
        lines += ['', *counted(found['counts'])]
    print('\n'.join(lines + (wire_table(found['wire']) if 'wire' in found else [])), flush=True)
    for error in errors:
        print('bench: ' + error, file=sys.stderr)
    if args.write and not errors:
        stored = store.read(STORE)
        store.merge(stored, found)
        store.write(STORE, stored)
        write_texts(stored)
    return 1 if errors else 0


# ---- namespaces, hugepages ----

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
    """Runs inside the namespaces: create the veth pair, measure, print."""
    runner = Runner(args.build, args.tmp, args.ms, args.huge)
    with peer_namespace() as pid:
        runner.peer = ['nsenter', '--target', pid, '--net', '--']
        for command in ('ip link set lo up',
                        f'ip link add veth0 type veth peer name veth0 netns {pid}',
                        'ip addr add 10.99.0.1/24 dev veth0', 'ip link set veth0 up'):
            subprocess.run(command.split(), check=True)
        for command in ('ip link set lo up', f'ip addr add {KERNEL_IP}/24 dev veth0',
                        'ip link set veth0 up'):
            subprocess.run([*runner.peer, *command.split()], check=True)
        return (run_comparison if args.base else run)(args, runner)


@contextlib.contextmanager
def hugepages(wanted):
    """Reserve hugepages during the run if possible. True if there are enough."""
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
        # do not undo a change that was made meanwhile
        if before != after and read('nr_hugepages') == after:
            (HUGEPAGES / 'nr_hugepages').write_text(str(before))


def build_is_slow(build):
    """Why the figures of this build would be misleading, or None."""
    out = subprocess.run(['meson', 'introspect', '--buildoptions', build], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    options = {o['name']: o['value'] for o in json.loads(out)}
    if options['b_sanitize'] != 'none' or options['debug_asserts']:
        return 'it has sanitizers or assertions'
    return None if options['optimization'] in ('2', '3') else 'it is not optimized'


def outer(args):
    """Runs outside: undo changes even if the inner process is killed."""
    # no mounts, which a chroot forbids
    unshare = ['unshare', '--net', '--fork', '--kill-child']
    if os.geteuid() != 0:
        unshare += ['--user', '--map-root-user']
    with tempfile.TemporaryDirectory(prefix='sanstack-bench-') as tmp, \
            hugepages(not args.quick and not args.no_huge and args.only != COUNTED) as huge:
        command = [*unshare, sys.executable, __file__, '--inner', '--tmp', tmp, *sys.argv[1:]]
        if huge:
            command.append('--huge')
        if args.base:
            command += ['--base-build', args.base_build]
        with subprocess.Popen(command) as process:
            try:
                return process.wait()
            finally:
                process.kill()


def profile(args):
    """Count instructions. Other load has no effect, so there are no namespaces and rounds."""
    cases = [args.only] if args.only else profile_core.CASES
    with tempfile.TemporaryDirectory(prefix='sanstack-bench-') as tmp:
        tmp, build = pathlib.Path(tmp), pathlib.Path(args.build)
        if args.base:
            builds = {'base': args.base_build, 'new': build}
            lines = [f'- base: {args.base}, {pathlib.Path(args.base_build).parent.name}; this: '
                     f'{commit()}; counted, {time.strftime("%Y-%m-%d")}.', '']
            return end_comparison(args, lines,
                                  *compare.count(tmp, builds, cases, args.within / 100))
        try:
            print('\n'.join(profile_core.report(build, tmp, cases)))
        except profile_core.ProfileError as error:
            print(f'bench: {error}', file=sys.stderr)
            return 1
    return 0


def base_build(args):
    try:
        return compare.build_base(ROOT, pathlib.Path(args.build).resolve(), args.base)
    except (compare.BaseError, OSError) as error:
        sys.exit(f'bench: no base: {error}')


def main():
    names = [*dict.fromkeys(f.group for f in FIGURES), *(f.name for f in FIGURES), WIRE, TEXTS,
             *profile_core.CASES]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', nargs='?', default=str(ROOT / 'build'), help='build folder')
    parser.add_argument('--only', choices=names, metavar='NAME',
                        help=f'one figure or group: {", ".join(dict.fromkeys(names))}')
    parser.add_argument('--profile', action='store_true',
                        help='instructions and cache misses per operation instead')
    parser.add_argument('--base', metavar='COMMIT', help='that commit against this tree instead; '
                        'exit status 1 if this tree is slower')
    parser.add_argument('--within', type=float, default=0, metavar='PERCENT',
                        help='with --base: so much is no loss (0)')
    parser.add_argument('--rounds', type=int,
                        help=f'alternations ({ROUNDS}; with --base {compare.ROUNDS})')
    parser.add_argument('--ms', type=int, help=f'milliseconds per run ({RUN_MS})')
    parser.add_argument('--no-huge', action='store_true', help='without hugepages')
    parser.add_argument('--quick', action='store_true',
                        help='some figures, one short round without hugepages: does it work?')
    parser.add_argument('--write', action='store_true',
                        help=f'put what was measured into {STORE.name}, and draw the texts and the '
                        f'chart from it; with --only {TEXTS}: measure nothing')
    for name in ('--inner', '--huge'):
        parser.add_argument(name, action='store_true', help=argparse.SUPPRESS)
    for name in ('--tmp', '--base-build'):
        parser.add_argument(name, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.rounds = args.rounds or (QUICK_ROUNDS if args.quick else
                                  compare.ROUNDS if args.base else ROUNDS)
    args.ms = args.ms or (QUICK_MS if args.quick else RUN_MS)
    args.noise_ms = QUICK_MS if args.quick else NOISE_MS
    if args.write and args.quick:
        parser.error('--write needs figures that are measured in full')
    if args.inner:
        return inner(args)
    if args.only == TEXTS:
        return write_texts(store.read(STORE))
    if args.profile:
        if args.only not in (None, *profile_core.CASES):
            parser.error(f'--profile has {", ".join(profile_core.CASES)}')
        args.base_build = args.base and base_build(args)
        return profile(args)
    if args.base and not any(chosen(args, f) for f in FIGURES):
        parser.error(f'--base has figures, not {args.only}')
    if len(os.sched_getaffinity(0)) < 2:
        print('bench: needs two CPUs', file=sys.stderr)
        return 77
    missing = [t for t in TOOLS if shutil.which(t) is None
               and (args.only != COUNTED or t == 'valgrind')]
    if missing:
        print(f'bench: {", ".join(missing)} not installed: make deps FOR=bench', file=sys.stderr)
        return 77
    slow = None if args.quick else build_is_slow(args.build)
    if slow:
        parser.error(f'{args.build}: {slow}')
    args.base_build = args.base and base_build(args)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return outer(args)


if __name__ == '__main__':
    sys.exit(main())
