# SPDX-License-Identifier: BSD-3-Clause
"""Cases of the libfabric provider: fi_info and fi_pingpong of libfabric, and calls of libfabric that
these do not make. test_ofi.py runs them over daemons and with the engine in the process,
test/verbs/test_verbs.py on an RDMA device. (OFI-1)

Programs run unmodified; FI_SANSTACK_SPEC and the folder of the provider are all that they are told.
"""

import os
import re
import shutil

import provider_cases
from e2e import BUILD, check, until_true

PROVIDER = os.path.join(BUILD, 'drivers/ofi/libsanstack-fi.so')
PROGRAMS = ('ofi_calls', 'ofi_pair', 'ofi_rdm', 'ofi_rdm_pair', 'ofi_hostile')
RXM = 'sanstack;ofi_rxm'
NO_RXM = {'FI_PROVIDER': '^ofi_rxm'}      # libfabric lists it before the provider
NO_PORT = '1'   # a port on which no program listens


class Ends(provider_cases.Ends):
    """The two ends of a link, where programs use the provider."""

    control_ip = None       # address of the kernel at the server, for fi_pingpong
    folder = None           # of the provider
    lets_in = None          # environment of a program that connects peers without its token

    def free_port(self):
        """A TCP port of the server, for fi_pingpong."""
        raise NotImplementedError

    def launch(self, role, command, env=None):
        """Start a program that uses the provider."""
        env = {'FI_PROVIDER_PATH': self.folder, 'FI_SANSTACK_SPEC': self.spec(role),
               'FI_LOG_LEVEL': 'warn', **(env or {})}
        return self.start(role, f'{role}-{command[0].rpartition("/")[2]}', command, env)

    def call(self, role, name, *args):
        """Start one of PROGRAMS."""
        return self.launch(role, [self.program(name), *args])


def can_run():
    return os.path.exists(PROVIDER) and shutil.which('fi_pingpong') is not None


def finish(process, *others):
    """Wait until it has ended well. Returns its output."""
    check(process.wait() == 0, '; '.join(f'{p.name}: {p.tail()}' for p in (process, *others)))
    return process.out()


def ends_well(ends, role, name, *args):
    """Run a program that prints "done" at its end. Returns it."""
    process = ends.call(role, name, *args)
    process.wait()
    check(process.out().endswith('done\n'), process.tail())
    return process


# ---- libfabric's own programs ----

def info(ends):
    out = finish(ends.launch('server', ['fi_info', '-p', 'sanstack']))
    for provider, kind in (('sanstack', 'FI_EP_MSG'), ('sanstack', 'FI_EP_RDM'),
                           (RXM, 'FI_EP_RDM')):
        check(re.search(rf'provider: {provider}\n(    .*\n)*    type: {kind}', out),
              f'no {provider} in: {out}')
    # MPI counts the bits of a tag
    out = finish(ends.launch('server', ['fi_info', '-v', '-p', 'sanstack', '-t', 'FI_EP_RDM']))
    check('mem_tag_format: 0xaaaaaaaaaaaaaaaa' in out, out)


def pingpong(ends, provider, kind, *options, env=None):
    port = ends.free_port()
    command = ['fi_pingpong', '-p', provider, '-e', kind, '-c', '-I', '20', *options]
    env = {'FI_LOG_LEVEL': 'info', **(env or {})}   # it says why a connection ends
    server = ends.launch('server', [*command, '-B', port], env)
    until_true(lambda: f'server does not listen: {server.tail()}',
               lambda: f':{int(port):04X} ' in ends.sh('server', 'cat /proc/net/tcp'))
    client = ends.launch('client', [*command, '-P', port, ends.control_ip], env)
    check('1m' in finish(client, server), client.tail())
    finish(server)


def pingpong_rdm(ends):
    pingpong(ends, 'sanstack', 'rdm', '-m', 'tagged', env=NO_RXM)


PINGPONGS = (('fi_pingpong msg', pingpong, 'sanstack', 'msg'),
             ('fi_pingpong rxm', pingpong, RXM, 'rdm', '-m', 'tagged'),
             ('fi_pingpong rdm', pingpong_rdm))


# ---- FI_EP_MSG ----

def serve(ends, *role):
    server = ends.call('server', 'ofi_calls', *(role or ['server']))
    server.wait_text('port ')
    return server, re.search(r'port (\d+)', server.out())[1]


def calls(ends, server_role='server', client_role='client'):
    server, port = serve(ends, server_role)
    finish(ends.call('client', 'ofi_calls', client_role, ends.server_ip, port), server)
    finish(server)


def alone(ends):
    """Calls that need no peer."""
    ends_well(ends, 'server', 'ofi_calls', 'alone')


def pair(ends):
    """Two endpoints of one process, and a child that dies in the middle of a message."""
    ends_well(ends, 'server', 'ofi_pair')


def leaves(ends):
    """It exits and closes nothing: the thread that drives its engine is in no unloaded code."""
    for _ in range(5):
        process = ends.call('server', 'ofi_pair', 'leave')
        check(process.wait() == 3, process.tail())


def refused(ends):
    """Nobody listens, and nobody is there: an error with a text, in bounded time."""
    out = finish(ends.call('client', 'ofi_calls', 'refused', ends.server_ip, NO_PORT))
    check('Connection refused: the peer has no listener' in out, out)
    absent = ends.server_ip.rpartition('.')[0] + '.77'
    out = finish(ends.call('client', 'ofi_calls', 'refused', absent, NO_PORT))
    check('Connection timed out: ' in out, out)


def peer_dies(ends):
    server, port = serve(ends)
    client = ends.call('client', 'ofi_calls', 'hold', ends.server_ip, port)
    client.wait_text('connected')
    server.kill()
    check('done' in finish(client), client.tail())


def shared(ends):
    """Two endpoints with shared receives: one buffer serves both, and a long message whose sender
    is dead takes none."""
    file = ends.path('server', 'under-way')
    server, port = serve(ends, 'shared', file)
    client = ends.call('client', 'ofi_calls', 'two', ends.server_ip, port)
    for number, text in ((1, 'sent'), (2, 'half')):
        client.wait_text(text)
        ends.sh('server', f'>{file}.{number}')
    server.wait_text('held')
    client.kill()
    check('done' in finish(server), server.tail())


def hostile(ends):
    """A peer sends messages behind one that it never completes: a bounded number is taken."""
    server = ends.call('server', 'ofi_pair', 'victim')
    server.wait_text('port ')
    port = re.search(r'port (\d+)', server.out())[1]
    ends_well(ends, 'server', 'ofi_hostile', 'msg', ends.spec('server'), ends.server_ip, port)
    finish(server)


def deserted(ends):
    """The sender of a long message stops before its bytes are read: the endpoint can be closed."""
    server = ends.call('server', 'ofi_pair', 'deserted')
    server.wait_text('port ')
    port = re.search(r'port (\d+)', server.out())[1]
    client = ends.call('client', 'ofi_hostile', 'mute', ends.spec('client'), ends.server_ip, port)
    server.wait_text('begun')
    client.signal('STOP')
    check('done' in finish(server), server.tail())
    client.kill()


def few_regions(ends):
    """More long messages than the engine has regions."""
    ends_well(ends, 'server', 'ofi_pair', 'regions')


# ---- FI_EP_RDM ----

def rdm(ends):
    """Endpoints of one process. The log says why two kinds do not connect to each other."""
    err = ends_well(ends, 'server', 'ofi_rdm').err()
    for text in ('it is FI_EP_RDM, this endpoint is FI_EP_MSG', 'no FI_EP_RDM listens there'):
        check(re.search(rf'\d port \d+: {text}.*FI_PROVIDER', err), f'no "{text}" in {err}')


def rdm_huge(ends):
    """More than 2 GiB at once."""
    ends_well(ends, 'server', 'ofi_rdm', 'huge')


def rdm_server(ends, *args, env=None):
    """Returns it, its address, and its name with the token."""
    server = ends.launch('server', [ends.program('ofi_rdm_pair'), *args], env)
    server.wait_text(' name ')
    return server, *re.search(r'address (\S+) name (\S+)', server.out()).groups()


def rdm_peer_dies(ends):
    """Both sleep while they exchange messages; then one is killed."""
    server, _, name = rdm_server(ends, 'peer')
    client = ends.call('client', 'ofi_rdm_pair', 'hold', name)
    client.wait_text('holding')
    server.kill()
    check('done' in finish(client), client.tail())


def rdm_early(ends):
    """The first message comes before the report of its connection, short or long."""
    for length in ('1', '3000000'):
        server, _, name = rdm_server(ends, 'slow')
        ends_well(ends, 'client', 'ofi_rdm_pair', 'one', name, length)
        finish(server)


def rdm_hostile(ends):
    """A peer that breaks the protocol loses its connection, and its victim goes on."""
    server, address, _ = rdm_server(ends, 'victim', env=ends.lets_in)
    ends_well(ends, 'server', 'ofi_hostile', 'rdm', ends.spec('server'), *address.rsplit(':', 1))
    finish(server)


def rdm_false_name(ends):
    """The same, but what it says of itself is not the name that its victim knows: messages for that
    name wait."""
    server, address, _ = rdm_server(ends, 'wary', env=ends.lets_in)
    ends_well(ends, 'server', 'ofi_hostile', 'rdm', ends.spec('server'), *address.rsplit(':', 1))
    finish(server)


def forge(ends, role, name, address, *user):
    ends_well(ends, role, 'ofi_hostile', name, ends.spec(role), *address.rsplit(':', 1), *user)


def rdm_forged(ends, role, *user):
    """A program that does not know the token, of another user or on another host, is refused."""
    go = ends.path('server', 'go')
    server, address, _ = rdm_server(ends, 'alone', go)
    forge(ends, role, 'forge', address, *user)
    ends.sh('server', f'>{go}')
    finish(server)


def rdm_other_user(ends, user):
    """A program of another user is refused, although it knows the token, and its log says so."""
    server, _, name = rdm_server(ends, 'peer')
    client = ends.launch('client', ['setpriv', '--reuid', user, '--regid', user, '--clear-groups',
                                    ends.program('ofi_rdm_pair'), 'one', name, '1'])
    check(client.wait() != 0, 'it is not refused')
    check(re.search(r"\d port \d+: refused by the peer's application", client.err()), client.tail())
    server.kill()


def rdm_allowed(ends, user):
    """The program allows that user."""
    server, address, _ = rdm_server(ends, 'victim', env={'FI_SANSTACK_USERS': f'7,{user}'})
    forge(ends, 'server', 'rdm', address, user)
    finish(server)


def other_user(ends, user):
    """Requests to an endpoint FI_EP_MSG."""
    server, port = serve(ends)
    forge(ends, 'server', 'forge-msg', f'{ends.server_ip}:{port}', user)
    finish(ends.call('client', 'ofi_calls', 'client', ends.server_ip, port), server)
    finish(server)
