#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""CPython's own socket tests have the same results with and without the preloaded library, one by
one: both if it leaves all sockets to the kernel, and if it carries what it can. (UDP-1, UDP-2)
"""

import collections
import os
import signal
import sys
import time

import sock
from e2e import SLOW, Skipped, Tests, Work, check, need_namespaces
from sock import PYTHON

MODULES = ['test_socket', 'test_socketserver', 'test_selectors', 'test_asyncio']
SUITE = '/usr/lib/python3.11/test'      # Debian: libpython3.11-testsuite
SILENCE_S = 30                          # limit for one test
HANGING = 5                             # hanging tests of a module, after which the rest is skipped

# Allowed differences of modules whose sockets are carried: {'Class.test': 'reason'}.
ALLOWED = {}
# Excluded classes: they communicate with other hosts.
LEFT_OUT = ['ThreadedVSOCKSocketStreamTest']
# Tests with varying results even without the library.
UNSTABLE = {}

# Runs a module's tests and prints "result name" lines. `python -m test -v` is not used, because the
# tests' own output appears among its results. Tests with host names and big files are excluded.
RUNNER = '''
import signal, sys, unittest
from test import support
from test.support import socket_helper

support.use_resources = ["network"]
module, path, host, *left_out = sys.argv[1:]
if host:
    socket_helper.HOST = socket_helper.HOSTv4 = host
    socket_helper.bind_port.__defaults__ = (host,)

def too_long(*_):
    raise TimeoutError("the test hangs")
signal.signal(signal.SIGUSR1, too_long)

class Result(unittest.TestResult):
    def note(self, test, what):
        name = test.id() if "." in test.id() else str(test)
        out.write(what + " " + name.replace("\\n", " ") + "\\n")
        out.flush()
    def addSuccess(self, test):
        self.note(test, "ok")
    def addError(self, test, err):
        self.note(test, "error")
        print(self._exc_info_to_string(err, test))
    def addFailure(self, test, err):
        self.note(test, "fail")
        print(self._exc_info_to_string(err, test))
    def addSkip(self, test, reason):
        self.note(test, "skipped")
    def addExpectedFailure(self, test, err):
        self.note(test, "expected")
    def addUnexpectedSuccess(self, test):
        self.note(test, "unexpected")
    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "fail")
            print(self._exc_info_to_string(err, test))

def each(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from each(part)
        elif type(part).__name__ not in left_out:
            yield part

with open(path, "w") as out:
    # Nothing else may hold the tests: what is done goes, or collecting garbage takes minutes.
    suite = unittest.TestSuite(each(unittest.defaultTestLoader.loadTestsFromName("test." + module)))
    suite.run(Result())
'''


def results(pair, module, host=''):
    """{name: result} of a module's tests, separately for subtests that fail; and the output."""
    path = pair.write('results', '')
    p = pair.server('/usr/bin/env', '-C', pair.folder, PYTHON, '-c', RUNNER, module, path, host,
                    *LEFT_OUT)
    watch(p, path)
    got = {}
    with open(path, encoding='utf-8') as f:
        lines = f.read().splitlines()
    check(p.wait() == 0, f'{module} ended behind {lines[-1:]}: {p.err()[-1500:]}')
    for line in lines:
        result, _, name = line.partition(' ')
        name = '.'.join(name.split('.')[-2:])
        if got.get(name) not in ('fail', 'error'):
            got[name] = result
    return got, p.out()


def watch(p, path):
    """Wait for the end. A hanging test is interrupted and fails."""
    nb_hanging, size, since = 0, 0, time.monotonic()
    while p.is_alive():
        time.sleep(0.05)
        if os.path.getsize(path) != size:
            size, since = os.path.getsize(path), time.monotonic()
        elif time.monotonic() - since > SILENCE_S * SLOW:
            nb_hanging += 1
            p.popen.send_signal(signal.SIGUSR1 if nb_hanging <= HANGING else signal.SIGKILL)
            since = time.monotonic()


def report(module, got):
    counts = collections.Counter(got.values())
    print(f'# {module}: ' + ', '.join(f'{n} {what}' for what, n in sorted(counts.items())))


def compare(want, got, out):
    """Tests whose results differ, except those in the tables."""
    differ = [f'{name}: {got.get(name, "missing")}, not {want.get(name, "there")}'
              for name in sorted(want.keys() | got.keys())
              if want.get(name) != got.get(name) and name not in UNSTABLE]
    unknown = [d for d in differ if d.partition(':')[0] not in ALLOWED]
    check(not unknown, '\n'.join(unknown) + '\n' + out[-4000:])


def module_results(module, ours, rules=None, host=''):
    with Work() as work, sock.Pair(work, ours, rules=rules) as pair:
        # tests skip what the host does not have
        pair.at_us.run('sysctl', '-qw', 'net.ipv6.conf.lo.disable_ipv6=0')
        return results(pair, module, host)


def same_results(module):
    want, _ = module_results(module, sock.KERNEL)
    report(module, want)
    check(len(want) >= 20, f'only {len(want)} tests')
    if not sock.has_library():
        broken = [name for name, what in want.items()
                  if what in ('fail', 'error') and name not in UNSTABLE]
        check(not broken, f'fail without the library: {" ".join(broken)}')
        return
    compare(want, *module_results(module, sock.SERVER, 'kernel'))
    # Carried as well: then the tests' own address is ours.
    want, _ = module_results(module, sock.KERNEL, host=sock.OUR_IP)
    compare(want, *module_results(module, sock.SERVER, f'carry local {sock.OUR_IP};'
                                  f'carry remote {sock.OUR_IP}', sock.OUR_IP))


def has_suite(module):
    if not os.path.exists(os.path.join(SUITE, 'test_socket.py')):
        raise Skipped('libpython3.11-testsuite is not installed')
    same_results(module)


def main():
    need_namespaces('ethtool', 'sysctl')
    tests = Tests()
    for module in MODULES:
        tests.add_long(module, has_suite, module)
    return tests.run()


if __name__ == '__main__':
    sys.exit(main())
