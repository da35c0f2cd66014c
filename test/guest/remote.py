# SPDX-License-Identifier: BSD-3-Clause
"""Two guests that do what they are told: processes in them look like those of e2e.Process.

Each runs a loop that reads commands from a port of QEMU's, runs them, and writes there what they
print, each line behind the number that the command was given.
"""

import os
import shlex
import socket
import threading
import time

import guest
from e2e import PATIENCE, Failed, check, until_true

AGENT = '''
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
exec 3<>"$(echo /dev/vport*)"
run() {
    { sh -c "echo \\$\\$ >/tmp/pid.$1; $2"; echo $? >/tmp/status.$1; } 2>&1 </dev/null 3<&- |
        while IFS= read -r text || [ -n "$text" ]; do echo "$1|$text" >&3; done
    echo "$1=$(cat /tmp/status.$1)" >&3
}
echo "0|ready" >&3
while IFS= read -r line <&3; do
    run "${line%% *}" "${line#* }" &
    echo "${line%% *}+" >&3
done
'''
LAST_LINES = 16      # of what a process said, when it failed


class Remote:
    """A program in a guest."""

    def __init__(self, end, name, number, command):
        self.end, self.name, self.number, self.command = end, name, number, command
        self.lines = []
        self.status = None
        self.is_taken = False

    def out(self):
        with self.end.changed:
            return ''.join(line + '\n' for line in self.lines)

    def err(self):
        """A guest's console has both kinds of output."""
        return self.out()

    def is_alive(self):
        return self.status is None and self.end.is_up()

    def wait_text(self, text):
        """Until *text* is in its output."""
        until = time.monotonic() + PATIENCE
        while text not in self.out():
            check(self.is_alive(), f'{self.name} has ended: {self.tail()}')
            check(time.monotonic() < until, f'{self.name} does not say "{text}": {self.tail()}')
            self.end.wait(0.1)

    def wait(self):
        """Its exit status; fails if it does not end."""
        until = time.monotonic() + PATIENCE
        while self.status is None:
            check(self.end.is_up(), f'the guest of {self.name} has gone: {self.tail()}')
            if time.monotonic() > until:
                self.kill()
                raise Failed(f'{self.name} hangs: {self.tail()}')
            self.end.wait(0.1)
        return self.status

    def signal(self, name):
        self.end.sh(f'kill -{name} $(cat /tmp/pid.{self.number})', may_fail=True)

    def stop(self):
        """End it orderly; its exit status."""
        if self.is_alive():
            self.signal('TERM')
        return self.wait()

    def kill(self):
        if self.is_alive():
            self.signal('KILL')

    def tail(self):
        text = '\n'.join(self.lines[-LAST_LINES:])
        return f'[{self.end.role}: {self.name}, status {self.status}]\n{text or "(no output)"}\n'


class End:
    """One of the guests."""

    def __init__(self, role, machine):
        self.role, self.machine = role, machine
        self.changed = threading.Condition()
        self.remotes = {}
        self.nb = 0
        self.sock = socket.socket(socket.AF_UNIX)
        until_true('a guest', lambda: self.sock.connect_ex(machine.control) == 0)
        self.remotes[0] = Remote(self, 'agent', 0, '')
        threading.Thread(target=self.read, daemon=True).start()

    def is_up(self):
        return self.machine.popen.poll() is None

    def wait(self, seconds):
        with self.changed:
            self.changed.wait(seconds)

    def read(self):
        """What the guest says, until its end."""
        rest = b''
        while True:
            try:
                data = self.sock.recv(65536)
            except OSError:
                data = b''
            if data == b'':
                break
            *lines, rest = (rest + data).split(b'\n')
            with self.changed:
                for line in lines:
                    self.take(line.decode(errors='replace').rstrip('\r'))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def take(self, line):
        for mark in '|=+':
            number, found, text = line.partition(mark)
            remote = self.remotes.get(int(number)) if found and number.isdigit() else None
            if remote is None:
                continue
            if mark == '|':
                remote.lines.append(text)
            elif mark == '=':
                remote.status = int(text or 255)
            else:
                remote.is_taken = True
            return

    def start(self, name, command, env=None):
        """Start *command*, a list; a text is for the shell."""
        check(self.is_up(), f'the guest for {name} has gone')
        if not isinstance(command, str):
            command = 'exec ' + shlex.join(command)
        for key, value in (env or {}).items():
            command = f'export {key}={shlex.quote(str(value))}; {command}'
        self.nb += 1
        remote = self.remotes[self.nb] = Remote(self, name, self.nb, command)
        self.sock.sendall(f'{self.nb} {command}\n'.encode())
        until = time.monotonic() + PATIENCE
        while not remote.is_taken:
            check(time.monotonic() < until and self.is_up(), f'{name} is not started')
            self.wait(0.1)
        return remote

    def sh(self, command, may_fail=False):
        """Run it to its end; what it says."""
        done = self.start('sh', command)
        status = done.wait()
        check(may_fail or status == 0, f'{command}: {done.tail()}')
        return done.out()

    def alive(self):
        return [r for r in list(self.remotes.values()) if r.number != 0 and r.is_alive()]


class Pair:
    """Two guests that run, one for each role; or one of them. Use as a context."""

    address = {'server': '10.77.0.1', 'client': '10.77.0.2'}

    def __init__(self, folder, kernel, base, memory_mb, devices, append='', wrap=(), roles=2):
        """*devices*: a function of a guest's number and the path of the wire, for QEMU, in front of
        which *wrap* is; *append*: for the kernel."""
        self.ends, self.machines = {}, []
        wire = f'{folder}/wire'
        os.makedirs(folder, exist_ok=True)
        for old in os.listdir(folder):
            if old.startswith(('serial.', 'control.', 'monitor.', 'wire')):
                os.unlink(f'{folder}/{old}')
        try:
            for number, role in enumerate(list(self.address)[:roles]):
                args = devices(number, wire)
                machine = guest.Guest(folder, number, kernel, base, AGENT, memory_mb, args, append,
                                      wrap)
                self.machines.append(machine)
                self.ends[role] = End(role, machine)
                while number == 0 and wire in ' '.join(args) and not os.path.exists(wire):
                    check(machine.popen.poll() is None, 'QEMU does not start')
                    time.sleep(0.01)
            for role in self.ends:
                self.wait_ready(role)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def wait_ready(self, role):
        end = self.ends[role]
        until = time.monotonic() + 4 * PATIENCE     # without KVM, on a machine that has other work
        while 'ready' not in end.remotes[0].out():
            check(time.monotonic() < until and end.is_up(),
                  f'the guest does not boot: {end.machine.output()[-2000:]}')
            end.wait(0.1)

    def is_up(self):
        return all(end.is_up() for end in self.ends.values())

    def oops(self):
        """What kernels complained of."""
        words = ('Oops', 'BUG:', 'Call Trace', 'Kernel panic', 'WARNING: CPU')
        return [line for m in self.machines for line in m.output().splitlines()
                if any(word in line for word in words)]

    def unplug(self, role):
        """From now on what is sent to it is lost, and it sends nothing."""
        self.ends[role].machine.unplug()

    def power_off(self, role):
        machine = self.ends[role].machine
        machine.popen.kill()
        machine.popen.wait()

    def stop(self):
        for machine in self.machines:
            if machine.popen.poll() is None:
                machine.popen.kill()
            machine.popen.wait()
        for end in self.ends.values():
            end.sock.close()
