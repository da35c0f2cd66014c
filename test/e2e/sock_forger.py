#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program without the library that asks the daemon of its host directly for things of other
users.

sock_forger.py DAEMON. A listener of another user must have a token that is not accepted yet.
"""

import socket
import struct
import sys

from e2e import check
from test_daemon import HELLO, LISTEN, REP, ask, conn_body, request

FIND, SOCK_LISTEN, CONNECT, ACCEPT = 18, 22, 23, 24
TOKEN = '537F'          # its net in the form of /proc/net/tcp
SERVICE = 0x53414e5443500000


def refused(s, kind, fd, why, body=b''):
    rc, text = ask(s, request(kind, body), [fd] if fd is not None else [])
    check(rc < 0 and why in text, f'{kind}: {rc} {text}')


def token_port():
    with open('/proc/self/net/tcp', encoding='ascii') as f:
        ends = [line.split()[1].split(':') for line in f][1:]
    return next(int(port, 16) for ip, port in ends if ip.endswith(TOKEN))


def pair_on(port):
    """Both ends of a connection to *port* on the own host."""
    listener = socket.create_server(('127.0.0.1', port))
    client = socket.create_connection(('127.0.0.1', port))
    return client, listener.accept()[0]


def main():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(sys.argv[1])
    check(ask(s, request(HELLO))[0] == 0, 'hello')

    # its peer has the port number of another user's token
    ends = pair_on(token_port())
    for end in ends:
        refused(s, ACCEPT, end.fileno(), 'nothing of ours')

    # an established connection can't be carried as a new one
    refused(s, CONNECT, ends[0].fileno(), 'already',
            struct.pack('<BB16s16sH', 0, 0, b'', bytes(10) + b'\xff\xff\x0a\x4d\0\2', 80))

    # the program's end of a listener has no memory
    listener = socket.create_server(('0.0.0.0', 5999))
    socket.send_fds(s, [request(SOCK_LISTEN)], [listener.fileno()])
    data, lease, _, _ = socket.recv_fds(s, REP, 4)
    check(struct.unpack_from('<i', data, 8)[0] == 0 and len(lease) == 1, 'a lease')
    refused(s, FIND, lease[0], 'listener')

    # services of TCP ports are reserved for the daemon
    refused(s, LISTEN, None, 'kept for', conn_body(SERVICE + 22, backlog=16))
    print('refused')
    return 0


if __name__ == '__main__':
    sys.exit(main())
