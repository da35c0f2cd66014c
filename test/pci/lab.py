# SPDX-License-Identifier: BSD-3-Clause
"""What the guests with a NIC on a PCI bus are made of, and the pair that is up now.

The NIC is behind an emulated IOMMU and bound to vfio-pci, as on a real machine, and DPDK's own
driver runs it. Nothing of a guest's kernel sees its packets.
"""

import glob
import os
import shutil
import subprocess
import tempfile

import guest
from e2e import BUILD, Namespace, check
from provider_cases import PROGRAMS
from remote import Pair

MODULES = ('vfio_pci', 'vfio_iommu_type1')
DRIVERS = ('bus_pci', 'bus_vdev', 'mempool_ring', 'net_virtio', 'net_e1000', 'net_vmxnet3')
DAEMON = os.path.join(BUILD, 'apps/sanstack-daemon/sanstack-daemon')
PROVIDERS = {name: os.path.join(BUILD, f'drivers/san/{name}/librtsan-{name}.so')
             for name in ('dpdk', 'unix')}
MEMORY_MB = 1536
HUGEPAGES = 256     # of 2 MiB
# Interrupts are not remapped: QEMU can do that only without its own interrupt controller.
IOMMU = ['-device', 'intel-iommu,intremap=off,caching-mode=on']
APPEND = 'intel_iommu=on'

SETUP = f'''
mkdir -p /dev/hugepages /run /var
ln -s /run /var/run
{{ grep -q default_hugepagesz /proc/cmdline ||
    echo {HUGEPAGES} >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages; }}
mount -t hugetlbfs hugetlbfs /dev/hugepages
echo Y >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts
sh /bin/take-nic
'''

# Bind the NIC to vfio-pci; its address is in /tmp/nic.
TAKE_NIC = '''
rm -f /tmp/nic
for dev in /sys/bus/pci/devices/*; do
    [ "$(cat $dev/class)" = 0x020000 ] || continue
    address=${dev##*/}
    echo vfio-pci >$dev/driver_override
    [ ! -e $dev/driver ] || echo $address >$dev/driver/unbind
    echo $address >/sys/bus/pci/drivers_probe
    echo $address >/tmp/nic
done
'''


class NoLab(Exception):
    """There can be no guests here, and why."""


def driver_folder():
    """Where EAL finds its drivers."""
    found = glob.glob('/usr/lib/*/dpdk/pmds-*')
    if not found:
        raise NoLab('no drivers of DPDK')
    return found[0]


class Nic:
    """A model of QEMU's, and what it can do."""

    guests = 2

    def __init__(self, name, device=None, jumbo=True, can_unplug=True):
        self.name, self.device = name, device or name
        self.jumbo, self.can_unplug = jumbo, can_unplug

    def plugged(self, number):
        """QEMU's argument."""
        bus = ',bus=p0' if self.can_unplug else ''
        return f'{self.device},id=nic0,netdev=n0,mac=52:54:00:77:00:0{1 + number},romfile={bus}'

    def wrap(self, lab):
        """What is in front of QEMU's command."""
        return []

    def netdev(self, number, wire):
        """What the NIC is joined to: the other one."""
        role = 'on' if number == 0 else 'off'
        return ['-netdev', f'stream,id=n0,server={role},addr.type=unix,addr.path={wire}']

    def devices(self, number, wire):
        return [*IOMMU, '-device', 'pcie-root-port,id=p0,chassis=1', *self.netdev(number, wire),
                '-device', self.plugged(number)]


class Bridged(Nic):
    """One with several queues, for which QEMU wants a device of the kernel's; a bridge joins them."""

    queues = 2

    def wrap(self, lab):
        return lab.bridge(self.queues)

    def netdev(self, number, wire):
        return ['-netdev', f'tap,id=n0,ifname=tap{number},script=no,downscript=no,'
                           f'queues={self.queues}']


VIRTIO = 'virtio-net-pci,disable-legacy=on,iommu_platform=on'
NICS = (
    Nic('virtio', f'{VIRTIO},host_mtu=9000'),
    Nic('e1000', jumbo=False, can_unplug=False),
    Nic('e1000e'),
    Nic('vmxnet3'),
)

RSS = Bridged('virtio with RSS', f'{VIRTIO},mq=on,rss=on,vectors={2 * Bridged.queues + 2}')


class Lab:
    """A folder, the archive that guests are made of, and a pair of them; use as a context."""

    def __init__(self):
        lacks = guest.missing()
        if lacks:
            raise NoLab(f'no guests without {lacks}')
        try:
            self.kernel = guest.Kernel()
        except guest.NoKernel as e:
            raise NoLab(f'no kernel for guests: {e}') from e
        self.dir = tempfile.mkdtemp(prefix='san-pci.')
        self.base = f'{self.dir}/base.cpio'
        self.pair, self.how = None, None
        self.namespaces = []
        self.pack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.give_up()
        for ns in self.namespaces:
            ns.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def pack(self):
        image = guest.Image(f'{self.dir}/root', self.kernel, MODULES, SETUP)
        image.write('bin/take-nic', TAKE_NIC)
        for name, path in PROGRAMS.items():
            image.program(os.path.join(BUILD, path), f'bin/{name}')
        image.program(DAEMON)
        for name, path in PROVIDERS.items():
            image.library(path, f'librtsan-{name}.so')
        folder = driver_folder()
        os.makedirs(image.root + folder)
        for name in DRIVERS:
            # by the path by which others are linked with it: loaded twice it would fail
            path = f'/lib/x86_64-linux-gnu/librte_{name}.so.{folder.rpartition("-")[2].split(".")[0]}'
            image.with_libraries(path, path[1:])
            os.symlink(path, f'{image.root}{folder}/librte_{name}.so')
        # what a debugger wants is half of it
        subprocess.run(f'strip -g {self.dir}/root/bin/* 2>/dev/null; '
                       f'strip -g {self.dir}/root/lib/ours/*', shell=True, check=False)
        image.pack(self.base)
        shutil.rmtree(image.root)

    def bridge(self, nb_queues):
        """A namespace with two devices for QEMU, joined. Returns what runs a command there."""
        if not self.namespaces:
            ns = Namespace(self)
            ns.run('ip', 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0',
                   'mcast_snooping', '0')
            for tap in ('tap0', 'tap1'):
                ns.run('ip', 'tuntap', 'add', tap, 'mode', 'tap',
                       *(['multi_queue'] if nb_queues > 1 else []))
                ns.run('ip', 'link', 'set', tap, 'master', 'br0', 'mtu', '9000', 'up')
            ns.run('ip', 'link', 'set', 'br0', 'up')
        return self.namespaces[0].exec()

    def up(self, nic, memory_mb=MEMORY_MB, append=''):
        """A pair with this NIC; another one if it has another, or one of its guests has gone."""
        how = (nic, memory_mb, append)
        if self.pair is not None and not (self.pair.is_up() and self.how == how):
            self.stop()
        if self.pair is None:
            self.how = how
            self.pair = Pair(f'{self.dir}/pair', self.kernel, self.base, memory_mb, nic.devices,
                             f'{APPEND} {append}', nic.wrap(self), nic.guests)
        return self.pair

    def give_up(self):
        """End the guests, whatever they are doing."""
        pair, self.pair = self.pair, None
        if pair is not None:
            pair.stop()

    def stop(self):
        """End the guests; their kernels may not have complained."""
        pair = self.pair
        self.give_up()
        check(pair is None or not pair.oops(), f'a kernel complains: {pair and pair.oops()}')
