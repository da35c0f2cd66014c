# SPDX-License-Identifier: BSD-3-Clause
"""Captures with tshark, and checks of their content."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

from e2e import SOURCE, Failed, check, skip, until_true

LUA = os.path.join(SOURCE, 'usertools/sanstack.lua')
CHECK_ICRC = os.path.join(SOURCE, 'usertools/check-icrc.py')
# RoCEv2 has no UDP checksum, also over IPv6; tell tshark that this is no error.
TSHARK = ['tshark', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE', '-X', f'lua_script:{LUA}']

PUSH_SLCTD_REQ, PULL_REQ, ATOMIC_REQ, PUSH_GRNT = 0xC0, 0xC1, 0xC2, 0xC3
PUSH_SLCTD_DATA, PUSH_UNSLCTD_DATA, PULL_DATA = 0xC4, 0xC5, 0xC6
ACK, NACK, RESYNC, CM, PROBE, PUSH_PACKED = 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCC


@contextlib.contextmanager
def bare_tshark():
    """Environment with an empty home: tshark runs without configuration and plugins."""
    if shutil.which('tshark') is None:
        skip('tshark is not installed')
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, XDG_CONFIG_HOME=folder, LC_ALL='C.UTF-8')
        yield folder


# A frame of an unused type. When it is in the file, all earlier frames are.
LAST = b'\x88\xb5the last one of this capture'
SEND_LAST = f'''
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
s.send(bytes(12) + {LAST} + bytes(60))
'''


class Watch:
    """tshark on an interface, as a context manager."""

    def __init__(self, work, ns, name, iface='pv0'):
        self.work, self.ns, self.iface = work, ns, iface
        self.path = work.path(f'{name}.pcapng')

    def __enter__(self):
        # dumpcap, the part of tshark that captures, reports its start and writes at once.
        dumpcap = shutil.which('dumpcap') or '/usr/bin/dumpcap'
        self.process = self.work.start('dumpcap', [
            *self.ns.exec(), dumpcap, '-q', '-i', self.iface, '-B', '64', '-s', '0',
            '-f', 'udp port 4791 or ether proto 0x88b5', '-w', self.path])
        until_true(f'a capture: {self.process.tail()}', lambda: 'File:' in self.process.err())
        return self

    def is_whole(self):
        with open(self.path, 'rb') as f:
            f.seek(-min(os.path.getsize(self.path), 65536), os.SEEK_END)
            return LAST in f.read()

    def __exit__(self, failure, *_):
        if failure is None:
            self.ns.run(sys.executable, '-c', SEND_LAST, self.iface)
            until_true('the end of the capture', self.is_whole)
        self.process.stop()


def fields(path, *names, display='san'):
    """Rows of the given fields, as tshark decodes them."""
    command = [*TSHARK, '-r', path, '-Y', display, '-T', 'fields']
    for name in names:
        command += ['-e', name]
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f'tshark: {done.stderr}')
    check('Lua' not in done.stderr, f'tshark: {done.stderr}')
    return [line.split('\t') for line in done.stdout.splitlines()]


def check_decodes(path):
    """Check that all packets decode without errors. Returns their number by opcode."""
    rows = fields(path, 'san.bth.opcode')
    found = {}
    for (opcode,) in rows:
        # A field repeats with several transactions in a packet, or an answer in a frame of its own.
        found[int(opcode.split(',')[0], 0)] = found.get(int(opcode.split(',')[0], 0), 0) + 1
    check(rows, 'tshark sees no packet of ours')
    all_udp = fields(path, 'frame.number', display='udp.dstport == 4791')
    check(len(all_udp) == len(rows), f'{len(all_udp)} packets to our port, {len(rows)} decoded')
    bad = fields(path, 'frame.number', '_ws.expert.message',
                 display='_ws.malformed || _ws.expert.severity >= 0x600000')
    check(not bad, f'malformed: {bad[:5]}')
    return found


def check_icrc(path, expected=True):
    """Check all ICRCs with an independent program."""
    done = subprocess.run([sys.executable, CHECK_ICRC, path], capture_output=True, text=True)
    check((done.returncode == 0) == expected, f'check-icrc: {done.stdout[-500:]}{done.stderr}')
    return done.stdout


def icrc_tool():
    """Import check-icrc.py as a module."""
    spec = importlib.util.spec_from_file_location('check_icrc', CHECK_ICRC)
    if spec is None:
        raise Failed('check-icrc.py is missing')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
