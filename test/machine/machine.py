# SPDX-License-Identifier: BSD-3-Clause
"""A machine: Debian 12 with systemd in QEMU, without a network, and with packages to install.

Each of these is made in a folder of the build, and again only when what it is made of has changed:

- packages, by devtools/build-deb.sh;
- root, by mmdebstrap: what the packages and the documents need. The packages are not installed in
  it, but lie where `make deb` leaves them;
- disk, a file system of that. The guest writes to a copy, so each start finds the same.
"""

import base64
import glob
import hashlib
import os
import shlex
import shutil
import subprocess
import time

import guest
import remote
from e2e import BUILD, SOURCE, check

FOLDER = os.path.join(BUILD, 'test/machine')
KERNEL = os.path.join(BUILD, 'test/verbs/kernel')       # the same as that of the Soft-RoCE guests
TOOLS = ('qemu-system-x86_64', 'mmdebstrap', 'mke2fs', 'busybox', 'cpio', 'modprobe', 'depmod',
         'apt-get', 'dpkg-buildpackage', 'dh')
HOME = 'root'           # of the user whose commands run; the sources would be here
MEMORY_MB = 2048
DISK_MB = 4096
BOOT_S = 1200           # watchdogs, as all of them: emulation on a busy machine
remote.PATIENCE = 900

# What of the tree is in the packages.
SOURCES = ('CHANGELOG.md', 'README.md', 'VERSION', 'apps', 'config', 'debian',
           'devtools/build-deb.sh', 'devtools/counters.py', 'devtools/gen-man.py',
           'devtools/layout.c', 'devtools/layout.py', 'doc', 'drivers', 'examples', 'lib',
           'meson.build', 'meson_options.txt', 'usertools')
# The system; a compiler; what the documents' commands start.
PACKAGES = ('systemd-sysv', 'udev', 'kmod', 'iproute2', 'procps', 'gcc', 'libc6-dev', 'pkg-config',
            'libopenmpi-dev', 'openmpi-bin', 'libfabric-bin', 'ethtool', 'redis-server',
            'redis-tools', 'curl', 'memcached', 'sockperf', 'prometheus', 'librte-net-tap23',
            'ibverbs-utils', 'perftest')
# The documents start them, or they have nothing to do here.
SLEEPING = ('redis-server', 'memcached', 'prometheus', 'prometheus-node-exporter',
            'getty.target', 'serial-getty@ttyS0', 'systemd-binfmt', 'apt-daily.timer',
            'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'fstrim.timer')
# Of the kernel: before the root is there, and in it.
EARLY = ('virtio_pci', 'virtio_blk', 'crc32c_generic', 'ext4')
LATE = ('virtio_console', 'af_packet', 'autofs4', 'inet_diag', 'tcp_diag', 'tun', 'udp_diag',
        'unix_diag', 'veth')

INIT = '''#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
while read module; do insmod /modules/$module; done < /modules/order
until [ -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /root
umount /dev /sys /proc
exec switch_root /root /sbin/init
'''
AGENT_UNIT = f'''[Unit]
Description=Runs the commands of the test
[Service]
Environment=HOME=/{HOME} LANG=C.UTF-8
WorkingDirectory=/{HOME}
ExecStartPre=/sbin/modprobe virtio_console
ExecStartPre=/bin/sh -c 'until ls /dev/vport*; do sleep 0.1; done'
ExecStart=/bin/bash /agent
KillMode=process
TasksMax=infinity
[Install]
WantedBy=multi-user.target
'''
# In the root, with the packages in /root/build/deb: their dependencies stay.
PREPARE = f'''
cd /{HOME}
apt-get install -y --no-install-recommends ./build/deb/*.deb
dpkg --purge $(for deb in build/deb/*.deb; do dpkg-deb -f $deb Package; done)
rm -rf build /etc/sanstack /run/sanstack
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes    # the operator's answer
systemctl enable machine
systemctl mask {' '.join(SLEEPING)}
userdel sanstack || :; groupdel san || :
useradd --create-home --shell /bin/bash --groups users ann
useradd --create-home --shell /bin/bash --no-user-group --gid nogroup bob
'''


class NoMachine(Exception):
    """There can be none here, and why."""


def run(*command, **how):
    done = subprocess.run(command, check=False, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)
    check(done.returncode == 0, f'{shlex.join(command)}: {done.stdout[-3000:]}')
    return done.stdout


def digest(paths, *words):
    """Of files, of all files below folders, and of words."""
    found = hashlib.sha256(repr(words).encode())
    for path in paths:
        names = [path] if os.path.isfile(path) else sorted(
            os.path.join(at, name) for at, _, files in os.walk(path) for name in files
            if '__pycache__' not in at)
        for name in names:
            with open(name, 'rb') as f:
                found.update(f'{name} {os.stat(name).st_mode}\n'.encode() + f.read())
    return found.hexdigest()


def make(name, what, function, *args):
    """*name* in the folder, made by *function* unless it is there and of the same *what*."""
    path = os.path.join(FOLDER, name)
    mark = path + '.of'
    if os.path.exists(mark):
        with open(mark, encoding='utf-8') as f:
            if f.read() == what:
                return path
        os.unlink(mark)
    print(f'# makes {path}', flush=True)
    function(path, *args)
    with open(mark, 'w', encoding='utf-8') as f:
        f.write(what)
    return path


def build_packages(path):
    run('sh', os.path.join(SOURCE, 'devtools/build-deb.sh'), path)
    for deb in glob.glob(f'{path}/*-dbgsym_*'):
        os.unlink(deb)


def build_root(path, packages):
    shutil.rmtree(path, ignore_errors=True)
    for name, text in (('agent', remote.AGENT), ('machine.service', AGENT_UNIT),
                       ('prepare', PREPARE)):
        with open(os.path.join(FOLDER, name), 'w', encoding='utf-8') as f:
            f.write(text)
    try:
        run('mmdebstrap', '--variant=apt', f'--include={",".join(PACKAGES)}',
            f'--customize-hook=mkdir -p "$1/{HOME}/build"; cp -r {packages} "$1/{HOME}/build/deb"; '
            f'cp {FOLDER}/agent {FOLDER}/prepare "$1"; '
            f'cp {FOLDER}/machine.service "$1/etc/systemd/system"',
            '--customize-hook=chroot "$1" sh -e /prepare', 'bookworm', path)
    except Exception as e:
        raise NoMachine(f'no root file system: {e}') from e


def add_modules(root, kernel):
    for file in kernel.modules(LATE):
        to = root + '/usr' + file.removeprefix(kernel.folder)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(file, to)
    for name in ('modules.builtin', 'modules.builtin.modinfo', 'modules.order'):
        shutil.copy(f'{kernel.folder}/lib/modules/{kernel.version}/{name}',
                    f'{root}/usr/lib/modules/{kernel.version}')
    guest.run('depmod', '-b', root, kernel.version)


class Initrd(guest.Image):
    """What finds the disk."""

    def __init__(self, path, kernel):
        self.root = path + '.root'
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ('bin', 'modules', 'proc', 'sys', 'dev', 'root'):
            os.makedirs(f'{self.root}/{name}')
        shutil.copy(shutil.which('busybox'), f'{self.root}/bin/busybox')
        files = kernel.modules(EARLY)
        for file in files:
            shutil.copy(file, f'{self.root}/modules')
        self.write('modules/order', ''.join(os.path.basename(f) + '\n' for f in files))
        self.write('init', INIT)
        os.chmod(f'{self.root}/init', 0o755)
        self.pack(path)


def build_disk(path, root, packages, kernel):
    add_modules(root, kernel)
    shutil.rmtree(f'{root}/{HOME}/build', ignore_errors=True)
    shutil.copytree(packages, f'{root}/{HOME}/build/deb',
                    ignore=shutil.ignore_patterns('log', '*.changes', '*.buildinfo'))
    if os.path.exists(path):
        os.unlink(path)
    guest.run('mke2fs', '-q', '-F', '-t', 'ext4', '-d', root, path, f'{DISK_MB}M')


class Disk:
    """Kernel, initial root and disk of the machine."""

    def __init__(self):
        path = os.environ['PATH'] + ':/usr/sbin:/sbin'
        lacks = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
        if lacks:
            raise NoMachine(f'not installed: {", ".join(lacks)}')
        if os.geteuid() != 0:
            raise NoMachine('the files of its root need root')
        os.makedirs(FOLDER, exist_ok=True)
        os.makedirs(os.path.dirname(KERNEL), exist_ok=True)
        try:
            self.kernel = guest.Kernel(KERNEL)
        except guest.NoKernel as e:
            raise NoMachine(f'no kernel: {e}') from e
        sources = digest([os.path.join(SOURCE, name) for name in SOURCES])
        packages = make('deb', sources, build_packages)
        debs = glob.glob(f'{packages}/*.deb')
        depends = [run('dpkg-deb', '-f', deb, 'Package', 'Depends') for deb in sorted(debs)]
        needs = digest([], PACKAGES, PREPARE, AGENT_UNIT, remote.AGENT, without_own(depends))
        root = make('root', needs, build_root, packages)
        version = self.kernel.version
        self.initrd = make('initrd', digest([], INIT, EARLY, version), Initrd, self.kernel)
        self.path = make('disk', digest([], sources, needs, LATE, version), build_disk, root,
                         packages, self.kernel)


def without_own(depends):
    """Those on each other name a version, which changes with each commit."""
    return [line for text in depends for line in sorted(text.replace(',', '\n').split('\n'))
            if '(= ' not in line]


class Machine(guest.Guest):
    """One that is up."""

    def __init__(self, disk, folder):
        self.log, self.control = f'{folder}/serial', f'{folder}/control'
        self.popen = subprocess.Popen(
            ['qemu-system-x86_64', '-M', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'max',
             '-smp', '2', '-m', str(MEMORY_MB), '-nodefaults', '-no-user-config', '-no-reboot',
             '-display', 'none', '-kernel', disk.kernel.image, '-initrd', disk.initrd, '-append',
             'console=ttyS0 quiet panic=-1 mitigations=off no_timer_check systemd.show_status=0',
             '-serial', f'file:{self.log}', '-drive',
             f'file={disk.path},format=raw,if=none,id=d0,snapshot=on,cache=unsafe',
             '-device', 'virtio-blk-pci,drive=d0',
             '-chardev', f'socket,id=c1,path={self.control},server=on,wait=off',
             '-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=c1'],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.nb = 0
        self.end = remote.End('machine', self)
        until = time.monotonic() + BOOT_S
        while 'ready' not in self.end.remotes[0].out():
            check(time.monotonic() < until and self.end.is_up(),
                  f'it does not boot: {self.output()[-2000:]}')
            self.end.wait(0.1)

    def start(self, script, user=None):
        """Start *script*, for bash, in the home of *user* (root). Returns it, as e2e.Process."""
        self.nb += 1
        path = f'/tmp/script.{self.nb}'
        shell = f'bash {path}' if user is None else f'runuser -l {user} -c "bash {path}"'
        text = base64.b64encode(f'set -eu\n{script}'.encode()).decode()
        return self.end.start(script.strip().splitlines()[-1],
                              f'echo {text} | base64 -d >{path}; exec {shell}')

    def run(self, script, user=None, status=0):
        """Run it to its end; what it says. What it leaves in the background may go on."""
        self.nb += 1
        out = f'/tmp/out.{self.nb}'
        own = f'exec >{out} 2>&1\n{script}'
        if user is not None:
            self.end.sh(f'install -o {user} /dev/null {out}')
        done = self.start(own, user)
        got = done.wait()
        said = self.end.sh(f'cat {out}')
        check(status is None or got == status, f'ended with {got}: {script}\n{said[-3000:]}')
        return said

    def stop(self):
        self.popen.kill()
        self.popen.wait()
        self.end.sock.close()
