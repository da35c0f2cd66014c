# SPDX-License-Identifier: BSD-3-Clause
"""Guests with Debian's own kernel, in QEMU, with what a test brings along.

Nothing of it is installed. The kernel is a package that is unpacked into a folder of the build
(kept there: it is 70 MB); the rest of a guest is an archive of this machine's busybox, and the
programs and libraries that are asked for. A lab says which modules of the kernel its guests load,
and what they do before they are ready.
"""

import glob
import os
import re
import shutil
import socket
import subprocess

from e2e import BUILD

NEEDED = ('qemu-system-x86_64', 'busybox', 'cpio', 'modprobe', 'depmod', 'dpkg', 'apt-get', 'ldd')
KERNEL = os.path.join(BUILD, 'test/guest/kernel')

INIT = '''#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/usr/sbin:/sbin HOME=/ LD_LIBRARY_PATH=/lib/ours
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm; mount -t tmpfs tmp /tmp
while read module; do insmod /modules/$module; done < /modules/order
set -a; . /guest; set +a
/bin/busybox ip link set lo up
ulimit -l unlimited
. /setup
echo "guest: up"
sh /script
echo "guest: ended $?"
poweroff -f
'''


def missing(tools=(), files=()):
    """What this machine lacks for guests, and for what else a lab needs; '' if nothing."""
    path = os.environ['PATH'] + ':/usr/sbin:/sbin'
    return ', '.join([tool for tool in (*NEEDED, *tools) if shutil.which(tool, path=path) is None] +
                     [file for file in files if not os.path.exists(file)])


def run(*command, **how):
    env = dict(os.environ, PATH=os.environ['PATH'] + ':/usr/sbin:/sbin')
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=env, **how).stdout


class NoKernel(Exception):
    """It could not be fetched, and why."""


class Kernel:
    """Debian's, unpacked into *folder*; fetched once."""

    def __init__(self, folder=KERNEL):
        self.folder = folder
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if not os.path.exists(folder):
            try:
                self.fetch(folder + '.new')
            except subprocess.CalledProcessError as e:
                words = (e.stderr or '').strip().splitlines() or [f'exit status {e.returncode}']
                raise NoKernel(f'{" ".join(e.cmd[:2])}: {words[-1]}') from e
            # a fetch that was interrupted leaves none
            os.rename(folder + '.new', folder)
        self.image, = glob.glob(f'{folder}/boot/vmlinuz-*')
        self.version = os.path.basename(self.image).partition('-')[2]

    @staticmethod
    def fetch(folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        depends = re.search(r'Depends: (linux-image-\S+)',
                            run('apt-cache', 'depends', 'linux-image-amd64'))
        if depends is None:
            raise NoKernel('apt knows no package linux-image-amd64')
        run('apt-get', 'download', depends[1], cwd=folder)
        file, = glob.glob(f'{folder}/{depends[1]}_*.deb')
        run('dpkg', '-x', file, folder)
        os.unlink(file)
        run('depmod', '-b', folder, os.listdir(f'{folder}/lib/modules')[0])

    def modules(self, names):
        """Files of these and of what they need, in the order in which they go in."""
        files = []
        for name in names:
            out = run('modprobe', '-d', self.folder, '-S', self.version, '--show-depends', name)
            files += re.findall(r'^insmod (\S+)', out, re.MULTILINE)
        return list(dict.fromkeys(files))


class Image:
    """The folder that becomes a guest's root."""

    def __init__(self, folder, kernel, modules, setup):
        self.root = folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in ('bin', 'usr/bin', 'lib/ours', 'modules', 'proc', 'sys', 'dev', 'tmp', 'etc'):
            os.makedirs(f'{folder}/{name}')
        shutil.copy(shutil.which('busybox'), f'{folder}/bin/busybox')
        files = kernel.modules(('virtio_pci', 'virtio_console', *modules))
        for file in files:
            shutil.copy(file, f'{folder}/modules')
        self.write('modules/order', ''.join(os.path.basename(f) + '\n' for f in files))
        self.write('setup', setup)
        self.write('etc/hosts', '127.0.0.1 localhost\n')
        self.write('etc/passwd', 'root:x:0:0:root:/:/bin/sh\n')
        self.write('init', INIT)
        os.chmod(f'{folder}/init', 0o755)

    def write(self, name, text):
        with open(f'{self.root}/{name}', 'w', encoding='utf-8') as f:
            f.write(text)

    def with_libraries(self, path, to):
        """*path*, as *to*, and the libraries that it is linked with."""
        os.makedirs(os.path.dirname(f'{self.root}/{to}'), exist_ok=True)
        shutil.copy(path, f'{self.root}/{to}')
        for lib in re.findall(r'(?:=> )?(/\S+) \(0x', run('ldd', path)):
            # what is not installed is found by LD_LIBRARY_PATH
            at = lib if lib.startswith(('/lib', '/usr/')) else f'/lib/ours/{os.path.basename(lib)}'
            if not os.path.exists(self.root + at):
                os.makedirs(os.path.dirname(self.root + at), exist_ok=True)
                shutil.copy(lib, self.root + at)

    def program(self, path, to=None):
        self.with_libraries(path, to or f'bin/{os.path.basename(path)}')

    def library(self, path, name):
        """One that is loaded by *name*."""
        self.with_libraries(path, f'lib/ours/{name}')

    def pack(self, to):
        """As the kernel wants it."""
        names = run('find', '.', cwd=self.root)
        with open(to, 'wb') as f:
            subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet'], cwd=self.root, check=True,
                           input=names.encode(), stdout=f)


class Guest:
    """One that runs *script* and powers off. A port of it, /dev/vport*, is the socket *control*.
    *devices* and *append* are what a lab adds to QEMU's arguments and to the kernel's."""

    def __init__(self, folder, number, kernel, base, script, memory_mb, devices, append='', wrap=()):
        self.name = 'ab'[number]
        self.log = f'{folder}/serial.{self.name}'
        self.control = f'{folder}/control.{self.name}'
        self.monitor = f'{folder}/monitor.{self.name}'
        own = Own(f'{folder}/own.{self.name}', script, f'10.77.0.{1 + number}',
                  f'10.77.0.{2 - number}')
        initrd = f'{folder}/initrd.{self.name}'
        with open(initrd, 'wb') as to:
            for part in (base, own.archive):
                with open(part, 'rb') as f:
                    shutil.copyfileobj(f, to)
        self.popen = subprocess.Popen(
            [*wrap, 'qemu-system-x86_64', '-M', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'max',
             '-smp', '1', '-m', str(memory_mb), '-nodefaults', '-no-user-config', '-no-reboot',
             '-display', 'none', '-kernel', kernel.image, '-initrd', initrd, '-append',
             # on a busy machine the kernel's check of its timers fails
             f'console=ttyS0 quiet panic=-1 mitigations=off no_timer_check {append}',
             '-serial', f'file:{self.log}',
             '-monitor', f'unix:{self.monitor},server=on,wait=off', *devices,
             '-chardev', f'socket,id=c1,path={self.control},server=on,wait=off',
             '-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=c1'],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ask(self, command):
        """What QEMU's monitor says to it."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.monitor)
            s.sendall(f'{command}\n'.encode())
            said = b''
            while said.count(b'(qemu)') < 2:
                part = s.recv(65536)
                if not part:
                    raise OSError(f'QEMU has ended: {said}')
                said += part
        return said.decode(errors='replace').split('\n', 2)[-1].rpartition('(qemu)')[0].strip()

    def unplug(self):
        """Nothing comes to it any more, or from it."""
        self.ask('set_link n0 off')

    def output(self):
        if not os.path.exists(self.log):
            return ''
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read().replace('\r', '')


class Own:
    """What a guest has for itself: an archive behind the common one."""

    def __init__(self, folder, script, ip, peer):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name, text in (('guest', f'IP={ip}\nPEER={peer}\n'), ('script', script)):
            with open(f'{folder}/{name}', 'w', encoding='utf-8') as f:
                f.write(text)
        self.archive = folder + '.cpio'
        with open(self.archive, 'wb') as f:
            subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet'], cwd=folder, check=True,
                           input=b'guest\nscript\n', stdout=f)
