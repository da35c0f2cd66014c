# SPDX-License-Identifier: BSD-3-Clause
"""What the guests of a test are made of, and the pair that is up now."""

import os
import shutil
import subprocess
import tempfile

import guest
import ofi_cases
from e2e import BUILD, SANITIZE, check
from provider_cases import PROGRAMS
from remote import Pair

PROVIDER = os.path.join(BUILD, 'drivers/san/verbs/librtsan-verbs.so')
MODULES = ('virtio_net', 'rdma_rxe', 'rdma_ucm', 'ib_uverbs', 'crc32_generic')
SOFT_ROCE = '/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so'
SOFT_ROCE_CONF = '/etc/libibverbs.d/rxe.driver'
# name: where in the build; beside those that every provider has to do with
OWN_PROGRAMS = {name: f'test/verbs/{name}' for name in ('stock', 'hostile')}
POOR = os.path.join(BUILD, 'test/verbs/libpoor.so')
# of rdmacm-utils; and what threads that are cancelled load by name
FOREIGN = ('rping', 'ucmatose', 'rdma_server', 'rdma_client')
FOREIGN_LIBRARY = '/lib/x86_64-linux-gnu/libgcc_s.so.1'
OFI_FOLDER = 'lib/ofi'
MEMORY_MB = 1536 if SANITIZE else 768

# Each has a network device eth0, and rxe0 on that.
SETUP = '''
/bin/busybox ip link set eth0 mtu 1500
echo 20000 >/sys/class/net/eth0/tx_queue_len # what it drops costs a timeout each
/bin/busybox ip addr add $IP/24 dev eth0
/bin/busybox ip link set eth0 up
/usr/bin/rdma link add rxe0 type rxe netdev eth0
for i in $(seq 100); do
    grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null &&
        [ -e /dev/infiniband/uverbs0 ] && break
    sleep 0.1
done
for i in $(seq 100); do ping -c 1 -W 1 $PEER >/dev/null 2>&1 && break; done
'''


def devices(number, wire):
    role = 'on' if number == 0 else 'off'
    return ['-netdev', f'stream,id=n0,server={role},addr.type=unix,addr.path={wire}', '-device',
            f'virtio-net-pci,netdev=n0,mac=52:54:00:77:00:0{1 + number},romfile=']


class NoLab(Exception):
    """There can be no guests here, and why."""


class Lab:
    """A folder, the archive that guests are made of, and a pair of them; use as a context."""

    def __init__(self):
        if not os.path.exists(PROVIDER):
            raise NoLab('built without the verbs provider: libibverbs or librdmacm is missing')
        lacks = guest.missing(('rdma', *FOREIGN), (SOFT_ROCE, SOFT_ROCE_CONF))
        if lacks:
            raise NoLab(f'no guests without {lacks}')
        try:
            self.kernel = guest.Kernel()
        except guest.NoKernel as e:
            raise NoLab(f'no kernel for guests: {e}') from e
        self.dir = tempfile.mkdtemp(prefix='san-verbs.')
        self.base = f'{self.dir}/base.cpio'
        self.pair = None
        self.pack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.give_up()
        shutil.rmtree(self.dir, ignore_errors=True)

    def pack(self):
        image = guest.Image(f'{self.dir}/root', self.kernel, MODULES, SETUP)
        image.program(shutil.which('rdma', path='/usr/bin:/usr/sbin:/sbin:/bin'), 'usr/bin/rdma')
        image.with_libraries(SOFT_ROCE, SOFT_ROCE[1:])
        os.makedirs(f'{image.root}/etc/libibverbs.d')
        shutil.copy(SOFT_ROCE_CONF, f'{image.root}/etc/libibverbs.d')
        for name, path in {**PROGRAMS, **OWN_PROGRAMS}.items():
            image.program(os.path.join(BUILD, path), f'bin/{name}')
        for name in FOREIGN:
            image.program(shutil.which(name))
        image.library(FOREIGN_LIBRARY, 'libgcc_s.so.1')
        image.library(PROVIDER, 'librtsan-verbs.so')
        image.library(POOR, 'libpoor.so')
        if ofi_cases.can_run():
            for name in ofi_cases.PROGRAMS:
                image.program(os.path.join(BUILD, 'test/e2e', name))
            for name in ('fi_info', 'fi_pingpong'):
                image.program(shutil.which(name))
            image.with_libraries(ofi_cases.PROVIDER, f'{OFI_FOLDER}/libsanstack-fi.so')
        if not SANITIZE:
            # what a debugger wants is half of it
            subprocess.run(f'strip -g {self.dir}/root/bin/* 2>/dev/null; '
                           f'strip -g {self.dir}/root/lib/ours/*', shell=True, check=False)
        image.pack(self.base)
        shutil.rmtree(image.root)

    def up(self):
        """The pair; another one if there is none, or one of its guests has gone."""
        if self.pair is not None and not self.pair.is_up():
            self.give_up()
        if self.pair is None:
            self.pair = Pair(f'{self.dir}/pair', self.kernel, self.base, MEMORY_MB, devices)
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
        if pair is not None:
            check(not pair.oops(), f'a kernel complains: {pair.oops()}')
