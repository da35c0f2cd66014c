#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The crate in bindings/rust, as it is installed: Debian's cargo builds it without a network, it has
every public call and C's layout of each struct, its example runs with the daemon and with engines of
its own, and what would misuse memory does not compile. (SYS-2)
"""

import os
import re
import shutil
import subprocess
import sys

from daemon import Daemon
from e2e import BUILD, CLIENT_IP, SERVER_IP, SOURCE, Memif, Null, Tests, Work, check, cpus, sh, skip

TOOLS = ('cargo', 'rustc', 'bindgen')       # those in /usr/bin: there may be others
SAYS = {'server': 'echo: 1000 messages and 1048576 bytes of a stream returned',
        'client': 'echo: 1000 messages and 1048576 bytes came back, by '}

# The compiler's error, None: it is right, for what follows the beginning of a program.
USES = {
    'a buffer that came back': (None, """
        qp.post_recv(buffer)?;
        let mut done = qp.wait(-1)?;
        done.buffer[0] = 1;"""),
    'a posted buffer': ('E0382', 'qp.post_recv(buffer)?; buffer[0] = 1;'),
    'a buffer of a closed context': ('E0505', 'drop(qp); drop(ctx); buffer[0] = 1;'),
    'a queue pair of a closed context': ('E0505', 'drop(buffer); drop(ctx); qp.wait(-1)?;'),
    'a stream of a closed context': ('E0505', """
        drop((buffer, qp));
        let stream = Stream::connect(&ctx, "10.0.0.1", 1, -1)?;
        drop(ctx);
        stream.close(-1)?;"""),
    'a context in another thread': ('E0277', 'std::thread::spawn(|| Context::buffer(&ctx, 1));'),
    'a buffer in another thread': (
        'E0277', 'std::thread::scope(|s| { s.spawn(|| buffer[0] = 1); });'),
}
PROGRAM = """#![allow(dead_code, unused)]
#[path = "echo/rtsan.rs"]
mod rtsan;
use rtsan::*;

fn main() -> std::io::Result<()> {{
    let ctx = Context::open("unix:x")?;
    let mut qp = QueuePair::new(&ctx, 1)?;
    let mut buffer = ctx.buffer(1)?;
    {}
    Ok(())
}}
"""


class Crate:
    """A copy of the installed crate, and what it is built from."""

    def __init__(self, work):
        root = work.path('root')
        sh('meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', root)
        pc = sh('find', root, '-name', 'librtsan.pc').strip()
        installed = sh('find', root, '-path', '*/examples/rust').strip()
        check(pc and installed, f'not installed: "{pc}", "{installed}"')
        self.dir, self.target = work.path('crate'), work.path('target')
        shutil.copytree(installed, self.dir)
        self.env = {
            'PATH': '/usr/bin:/bin', 'HOME': work.dir, 'CARGO_TARGET_DIR': self.target,
            'RUSTFLAGS': '-D warnings', 'PKG_CONFIG_PATH': os.path.dirname(pc),
            'PKG_CONFIG_SYSROOT_DIR': root, 'LD_LIBRARY_PATH': os.path.join(BUILD, 'lib/rtsan')}

    def cargo(self, *command):
        """Run it. Returns its status and what it prints."""
        done = subprocess.run(['/usr/bin/cargo', *command, '--offline'], cwd=self.dir, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, check=False)
        # a line of the bindings is long
        return done.returncode, '\n'.join(line[:200] for line in done.stdout.splitlines())


def builds(crate):
    """Without a warning, with each call of the library's map."""
    status, said = crate.cargo('build', '--examples')
    check(status == 0, said)
    bindings = sh('find', crate.target, '-name', 'bindings.rs').strip()
    with open(bindings, encoding='utf-8') as f:
        bound = set(re.findall(r'pub fn (\w+)', f.read()))
    with open(os.path.join(SOURCE, 'lib/rtsan/librtsan.map'), encoding='utf-8') as f:
        calls = set(re.findall(r'(rtsan_\w+);', f.read().partition('RTSAN_PROVIDER')[0]))
    check(len(calls) > 50 and calls == bound, f'not in both: {calls ^ bound}')


def layouts(crate):
    """bindgen writes a test for each struct."""
    status, said = crate.cargo('test', '--lib')
    match = re.search(r'test result: ok. (\d+) passed; 0 failed', said)
    check(status == 0 and match and int(match.group(1)) >= 12, said)


def talk(work, crate, server, client, peer, provider):
    """The example as server and as client of these providers."""
    echo = os.path.join(crate.target, 'debug/examples/echo')
    first = work.start('server', [echo, 'server', server])
    first.wait_text('listening')
    second = work.start('client', [echo, 'client', client, peer])
    check(second.wait() == 0 and first.wait() == 0, f'{second.tail()} {first.tail()}')
    check(SAYS['server'] in first.out(), first.tail())
    check(SAYS['client'] + provider in second.out(), second.tail())


def by_daemon(work, crate):
    daemon = Daemon(work, 'server', vdev=Null(work).vdev('server'))
    talk(work, crate, daemon.spec, daemon.spec, '10.5.0.1', 'unix')
    daemon.settle_engine()
    daemon.stop()


def by_engines(work, crate):
    link = Memif(work)
    specs = [f'dpdk:{" ".join(work.eal(cpu, link.vdev(role)))} -- ip={ip}/24 idle=sleep'
             for cpu, role, ip in zip(cpus(), ('server', 'client'), (SERVER_IP, CLIENT_IP))]
    talk(work, crate, *specs, SERVER_IP, 'dpdk')


def refused(work, crate):
    """The reason of the library is shown."""
    echo = os.path.join(crate.target, 'debug/examples/echo')
    client = work.start('client', [echo, 'client', 'unix:/nosuch/daemon', SERVER_IP])
    check(client.wait() == 1 and '/nosuch/daemon' in client.err(), client.tail())


def uses(crate):
    for what, (error, text) in USES.items():
        with open(os.path.join(crate.dir, 'examples/use.rs'), 'w', encoding='utf-8') as f:
            f.write(PROGRAM.format(text))
        status, said = crate.cargo('check', '--example', 'use')
        found = set(re.findall(r'error\[(E\d+)\]', said))
        check(found == ({error} if error else set()) and (status == 0) == (error is None),
              f'{what}: {found}, not {error}: {said}')


def main():
    missing = [tool for tool in TOOLS if not os.path.exists(f'/usr/bin/{tool}')]
    if missing:
        skip(f'not installed: {" ".join(missing)}')
    tests = Tests()
    with Work() as work:
        crate = Crate(work)
        tests.add('builds', builds, crate)
        tests.add('layouts', layouts, crate)
        tests.add('by the daemon', by_daemon, work, crate)
        tests.add('by engines of its own', by_engines, work, crate)
        tests.add('a reason', refused, work, crate)
        tests.add('uses that compile, and those that do not', uses, crate)
        return tests.run()


if __name__ == '__main__':
    sys.exit(main())
