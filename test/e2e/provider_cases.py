# SPDX-License-Identifier: BSD-3-Clause
"""Cases for every provider: the same programs with the same arguments, on different specs and
addresses. test_providers.py runs the list on this machine, test/verbs/test_verbs.py in guests with
an RDMA device. (SYS-4)
"""

import json

from e2e import SANITIZE, check

# name: path in the build
PROGRAMS = {
    **{name: f'examples/{name}' for name in ('pingpong', 'kvget', 'filecopy', 'stream')},
    **{name: f'test/e2e/{name}' for name in ('errors', 'streams', 'loans', 'comes_and_goes')},
    'sanbench': 'apps/sanbench/sanbench',
}
ERRORS = ('no-listener', 'refused', 'partition', 'key', 'bounds', 'rights', 'align', 'too-long',
          'not-ready', 'revoked-push', 'revoked-pull', 'local', 'late', 'unreachable')
FEW = 4 if SANITIZE else 1


class Ends:
    """The two ends of a link, 'server' and 'client', where the programs of a case run."""

    server_ip = None
    lacks = ()      # unsupported features: 'unordered', 'loans'
    ends_on_error = False
    max_msg = 1 << 31
    slow = 1        # factor by which to reduce the load
    stay = ()       # processes shared by several cases
    noise = ()      # texts in lines of an example beside its result

    def begin(self):
        """Start a case without remains of the previous one."""

    def end(self):
        """End a case that has passed: nothing may be left."""

    def program(self, name):
        """Path of a program."""
        raise NotImplementedError

    def spec(self, role):
        """The spec that a role opens."""
        raise NotImplementedError

    def own_spec(self):
        """The spec of a program that talks to itself, from several threads."""
        return self.spec('server')

    def start(self, role, name, command, env=None):
        """Start a process at an end. Returns an object like e2e.Process."""
        raise NotImplementedError

    def wait_listening(self, server):
        """Wait until the server listens, if it does not print that."""
        raise NotImplementedError

    def bench(self, role, own):
        """Command line of sanbench."""
        return [self.program('sanbench'), '--attach', self.spec(role), *own]

    def path(self, role, name):
        """Path of a file of this case."""
        raise NotImplementedError

    def sh(self, role, command):
        """Run a command. Returns its output."""
        raise NotImplementedError

    def held(self, role):
        """Resources of programs at the device, if they can be queried."""

    def settle(self, role, want):
        """Wait until these resources are *want*."""


# ---- examples ----

def example(ends, name, client=(), server=(), flags=()):
    """Run both ends of an example. Returns the client's output."""
    program = ends.program(name)
    one = ends.start('server', f'{name} server',
                     [program, *flags, 'server', ends.spec('server'), *server])
    ends.wait_listening(one)
    other = ends.start('client', f'{name} client',
                       [program, *flags, 'client', ends.spec('client'), ends.server_ip, *client])
    status = other.wait()
    check(status == 0, other.tail() + one.tail())
    check(one.wait() == 0, one.tail() + other.tail())
    lines = [line for line in other.out().splitlines() if not any(n in line for n in ends.noise)]
    check(len(lines) == 1, f'more than its result: {other.tail()}')
    return other.out()


def pingpong(ends, flags, rounds):
    out = example(ends, 'pingpong', [str(rounds // ends.slow)], flags=flags)
    check(f'{rounds // ends.slow} round trips' in out, out)


def kvget(ends):
    example(ends, 'kvget', [str(1000 // ends.slow)])


def stream(ends):
    example(ends, 'stream', ['1'])


def filecopy(ends, how, nb_bytes):
    source, copy = ends.path('client', 'in'), ends.path('server', 'out')
    ends.sh('client', f'head -c {nb_bytes} /dev/urandom >{source}')
    example(ends, 'filecopy', [source, how], [copy])
    sums = [ends.sh(role, f'md5sum <{path}')
            for role, path in (('client', source), ('server', copy))]
    check(sums[0] == sums[1], f'the copy differs: {sums}')


def streams(ends):
    """Threads, timeouts and other properties of streams, in a program that talks to itself."""
    program = ends.start('server', 'streams',
                         [ends.program('streams'), ends.own_spec(), ends.server_ip])
    check(program.wait() == 0, program.tail())


def loans(ends):
    """Streams read in place by loans; or each call reports that this is not supported."""
    program = ends.start('server', 'loans',
                         [ends.program('loans'), ends.own_spec(), ends.server_ip])
    check(program.wait() == 0, program.tail())
    says = 'refused' if 'loans' in ends.lacks else 'all by loans'
    check(program.out() == f'loans: {says}\n', program.tail())


def comes_and_goes(ends):
    """Contexts, queue pairs, regions; one program exits without closing anything."""
    program = ends.program('comes_and_goes')
    one = ends.start('server', 'comes_and_goes server', [program, 'server', ends.spec('server')])
    one.wait_text('listening')
    other = ends.start('client', 'comes_and_goes client',
                       [program, 'client', ends.spec('client'), ends.server_ip])
    check(other.wait() == 0, other.tail() + one.tail())
    check(one.wait() == 0, one.tail() + other.tail())


def nobody_waits(ends):
    """Connection requests whose peer has ended before the program reads them leave
    nothing behind."""
    program = ends.program('comes_and_goes')
    one = ends.start('server', 'comes_and_goes deaf', [program, 'deaf', ends.spec('server')])
    one.wait_text('listening')
    before = ends.held('server')
    other = ends.start('client', 'comes_and_goes leaves',
                       [program, 'leaves', ends.spec('client'), ends.server_ip])
    check(other.wait() == 0, other.tail() + one.tail())
    one.signal('TERM')
    one.wait_text('have gone')
    ends.settle('server', before)
    check(one.stop() == 0, one.tail() + other.tail())


def caps(ends):
    """The limits of rtsan_query() match the abilities that cases rely on."""
    done = ends.start('server', 'caps', [ends.program('comes_and_goes'), 'caps',
                                         ends.spec('server')])
    check(done.wait() == 0, done.tail())
    has = dict(line.split(' ', 1) for line in done.out().splitlines())
    check(has['provider'].split()[0] == ends.name, done.out())
    for name in ('unordered', 'loans'):
        check(has[name] == str(int(name not in ends.lacks)), f'{name}: {done.out()}')
    check(has['ends_on_error'] == str(int(ends.ends_on_error)), done.out())
    check(has['msg'] == str(ends.max_msg), done.out())


# ---- sanbench ----

MODES = {
    'send': ['--mode', 'send', '--size', '1-20000', '--count', '300'],
    'push': ['--mode', 'push', '--size', '1-100000', '--count', '100'],
    'push with immediate': ['--mode', 'push', '--imm', '--size', '1-5000', '--count', '300'],
    'pull': ['--mode', 'pull', '--size', '1-100000', '--count', '100'],
    'atomic': ['--mode', 'atomic', '--conns', '4', '--count', '400'],
    'rpc': ['--mode', 'rpc', '--depth', '8', '--count', '1000'],
    'rpc both ways': ['--mode', 'rpc', '--both', '--count', '500'],
    'incast': ['--mode', 'incast', '--conns', '8', '--count', '64'],
    'connect': ['--mode', 'connect', '--conns', '4', '--duration', '1'],
    'stream, small': ['--mode', 'stream', '--size', '1-2000', '--depth', '16', '--count', '500'],
    **{f'stream, {manner}': ['--mode', 'stream', '--size', '1-60000', '--way', way, '--receive',
                             manner, '--count', '60']
       for manner, way in (('direct', 'one'), ('wait', 'both'), ('mixed', 'send-recv'))},
    **{f'stream, mode {mode}': ['--mode', 'stream', '--size', '1-60000', '--stream-mode', mode,
                                '--count', '40'] for mode in ('small', 'large', 'small-large')},
}


class Bench:
    """One server for all clients."""

    def __init__(self, ends):
        self.ends, self.server, self.client, self.nb = ends, None, None, 0

    def serve(self):
        ends = self.ends
        if self.server is None or not self.server.is_alive():
            self.server = ends.start('server', 'sanbench server', ends.bench('server', [
                '--server', '--json', ends.path('server', 'server.json')]))
            ends.stay = [self.server]
            self.server.wait_text('listening')

    def mode(self, ends, own):
        self.serve()
        self.nb += 1
        path = ends.path('client', f'client{self.nb}.json')
        client = ends.start('client', 'sanbench client', ends.bench('client', [
            '--connect', ends.server_ip, '--verify', '--json', path, *own]))
        self.client = client
        status = client.wait()
        check(status == 0, client.tail() + self.server.tail())
        result = json.loads(ends.sh('client', f'cat {path}'))
        check(result['ok'] and result['server_errors'] == 0 and not result['leaks'], f'{result}')
        check(result['messages'] > 0, f'{result}')
        if '--count' in own:
            check(result['messages'] == int(own[own.index('--count') + 1]), f'{result}')

    def over(self, ends):
        """The server has found no errors, and its results agree."""
        check(self.server is not None, 'there is no server')
        check(self.server.stop() == 0, self.server.tail())
        ends.stay = []
        result = json.loads(ends.sh('server', f'cat {ends.path("server", "server.json")}'))
        check(result['ok'] and not result['leaks'], f'{result}')


# ---- bad input ----

class Errors:
    """errors.c: one server for all its cases."""

    def __init__(self, ends):
        self.ends, self.server = ends, None

    def case(self, ends, name):
        if self.server is None or not self.server.is_alive():
            self.server = ends.start('server', 'errors server', [
                ends.program('errors'), 'server', ends.spec('server')])
            ends.stay = [self.server]
            self.server.wait_text('listening')
        client = ends.start('client', 'errors client', [
            ends.program('errors'), 'client', ends.spec('client'), ends.server_ip, name])
        status = client.wait()
        check(status == 0 and f'\nok {name} ' in f'\n{client.out()}',
              client.tail() + self.server.tail())
        check(self.server.is_alive(), f'the server has died: {self.server.tail()}')

    def told(self, _):
        """The receiver of a message that is too long gets an error, and everything is released."""
        check(self.server is not None, 'there is no server')
        # a device uses another error text
        words = ('receive local_length', 'receive invalid')
        check(any(w in self.server.out() for w in words), self.server.tail())
        check(self.server.stop() == 0, self.server.tail())
        self.ends.stay = []


def add_examples(add):
    add('pingpong', pingpong, (), 2000)
    add('pingpong that sleeps', pingpong, ('-w',), 1000)
    add('kvget', kvget)
    for how in ('push', 'send'):
        add(f'filecopy by {how}', filecopy, how, 1000001)
    add('filecopy of nothing', filecopy, 'send', 0)
    add('stream', stream)
    add('streams of several threads', streams)


def add_all(tests, ends, run, add_bench=None):
    """Add all cases; *run* is called with the function and arguments of each. *add_bench* adds
    those of sanbench, if given."""
    def add(name, function, *args):
        to = add_bench if add_bench and name.startswith('sanbench') else tests.add
        to(f'{ends.name}: {name}', run, function, *args)

    add('what it can do', caps)
    add_examples(add)
    add('loans', loans)
    add('contexts come and go', comes_and_goes)
    add('nobody waits for the answer', nobody_waits)
    bench = Bench(ends)
    for name, own in MODES.items():
        add(f'sanbench: {name}', bench.mode, own)
    add('sanbench: the server ends', bench.over)
    errors = Errors(ends)
    for name in ERRORS:
        add(f'errors: {name}', errors.case, name)
    add('errors: the receiver is told', errors.told)
