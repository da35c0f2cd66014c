# SPDX-License-Identifier: BSD-3-Clause
"""What every provider must pass: the same programs with the same arguments, only specs and
addresses differ. test_providers.py runs the list on this machine, test/verbs/test_verbs.py in
guests with an RDMA device. (SYS-4)
"""

import json
import os

from e2e import SANITIZE, check

# name: where in the build
PROGRAMS = {
    **{name: f'examples/{name}' for name in ('pingpong', 'kvget', 'filecopy', 'stream')},
    **{name: f'test/e2e/{name}' for name in ('errors', 'streams', 'loans')},
    'sanbench': 'apps/sanbench/sanbench',
}
ERRORS = ('no-listener', 'refused', 'partition', 'key', 'bounds', 'rights', 'align', 'too-long',
          'not-ready', 'revoked-push', 'revoked-pull', 'local', 'unreachable')
FEW = 4 if SANITIZE else 1


class Ends:
    """Where the programs of a case run: two ends of one link, 'server' and 'client'."""

    server_ip = None
    lacks = ()      # of what a case may need: 'unordered', 'loans'
    slow = 1        # how much less to do
    stay = ()       # processes that serve several cases

    def begin(self):
        """A case begins: nothing of the one before is there."""

    def end(self):
        """It has passed: nothing of it may be left."""

    def program(self, name):
        """Where that program is."""
        raise NotImplementedError

    def spec(self, role):
        """What it opens."""
        raise NotImplementedError

    def own_spec(self):
        """What a program opens that talks to itself; several threads use it."""
        return self.spec('server')

    def start(self, role, name, command):
        """A process there: what e2e.Process can do."""
        raise NotImplementedError

    def wait_listening(self, server):
        """Until it does, if it does not say so."""
        raise NotImplementedError

    def bench(self, role, own):
        """Command line of sanbench."""
        return [self.program('sanbench'), '--attach', self.spec(role), *own]

    def path(self, role, name):
        """A file of this case."""
        raise NotImplementedError

    def sh(self, role, command):
        """Run it; what it prints."""
        raise NotImplementedError


# ---- examples ----

def example(ends, name, client=(), server=(), flags=()):
    """Both ends of it, to their ends; what the client said."""
    program = ends.program(name)
    one = ends.start('server', f'{name} server',
                     [program, *flags, 'server', ends.spec('server'), *server])
    ends.wait_listening(one)
    other = ends.start('client', f'{name} client',
                       [program, *flags, 'client', ends.spec('client'), ends.server_ip, *client])
    status = other.wait(60)
    check(status == 0, other.tail() + one.tail())
    check(one.wait(20) == 0, one.tail() + other.tail())
    check(other.out().count('\n') == 1, f'more than its result: {other.tail()}')
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


# ---- bad input ----

class Errors:
    """errors.c: one server for all its cases."""

    def __init__(self, ends):
        self.ends, self.server = ends, None

    def case(self, name):
        ends = self.ends
        if self.server is None or not self.server.is_alive():
            self.server = ends.start('server', 'errors server', [
                ends.program('errors'), 'server', ends.spec('server')])
            ends.stay = [self.server]
            self.server.wait_text('listening', 60)
        client = ends.start('client', 'errors client', [
            ends.program('errors'), 'client', ends.spec('client'), ends.server_ip, name])
        status = client.wait(60)
        check(status == 0 and f'\nok {name} ' in f'\n{client.out()}',
              client.tail() + self.server.tail())
        check(self.server.is_alive(), f'the server has died: {self.server.tail()}')

    def told(self):
        """The receiving side of what is too long is told, and all is given back."""
        check(self.server is not None, 'there is no server')
        # a device's word for it is another one
        words = ('receive local_length', 'receive invalid')
        check(any(w in self.server.out() for w in words), self.server.tail())
        check(self.server.stop() == 0, self.server.tail())
        self.ends.stay = []


def add_all(tests, ends, run):
    """Add every case; *run* is called with its function and arguments."""
    def add(name, function, *args):
        tests.add(f'{ends.name}: {name}', run, ends, function, *args)

    add('pingpong', pingpong, (), 2000)
    add('pingpong that sleeps', pingpong, ('-w',), 1000)
    add('kvget', kvget)
    for how in ('push', 'send'):
        add(f'filecopy by {how}', filecopy, how, 1000001)
    add('filecopy of nothing', filecopy, 'send', 0)
    add('stream', stream)
    errors = Errors(ends)
    for name in ERRORS:
        add(f'errors: {name}', lambda _, n: errors.case(n), name)
    add('errors: the receiver is told', lambda _: errors.told())
