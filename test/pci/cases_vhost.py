# SPDX-License-Identifier: BSD-3-Clause
"""A guest and its host: net_vhost in a daemon of the host is what QEMU gives the guest as a NIC. And
net_virtio_user, the same NIC for a program of the host."""

import os

import provider_cases
from daemon import Daemon
from e2e import BUILD, CLIENT_IP, SERVER_IP, Work, check
from ends import Embedded
from lab import VIRTIO, Nic
from provider_cases import PROGRAMS


class Vhost(Nic):
    """QEMU joins the guest to a socket that the daemon serves; both use the guest's memory."""

    guests = 1

    def __init__(self, socket):
        super().__init__('vhost-user', f'{VIRTIO},ats=on', can_unplug=False)
        self.socket = socket

    def netdev(self, number, wire):
        return ['-object', 'memory-backend-memfd,id=ram,size=1536M,share=on',
                '-machine', 'memory-backend=ram', '-chardev', f'socket,id=v0,path={self.socket}',
                '-netdev', 'vhost-user,id=n0,chardev=v0']


def daemon_of_host(work, options):
    return Daemon(work, 'client', ip=CLIENT_IP, vdev=f'--vdev=net_vhost0,'
                  f'iface={work.path("vhost")}{options}')


class GuestAndHost(Embedded):
    """The server is in the guest, the client a program of the host's daemon."""

    def __init__(self, lab, work, daemon):
        super().__init__(lab, Vhost(work.path('vhost')))
        self.work, self.daemon = work, daemon

    def start(self, role, name, command, env=None):
        if role == 'server':
            return super().start(role, name, command, env)
        program = os.path.join(BUILD, PROGRAMS[os.path.basename(command[0])])
        return self.work.start(name, [program, *command[1:]], env)

    def spec(self, role):
        return super().spec(role) if role == 'server' else self.daemon.spec


def guest_and_host(lab):
    with Work() as work:
        daemon = daemon_of_host(work, ',iommu-support=1')
        ends = GuestAndHost(lab, work, daemon)
        ends.run(provider_cases.pingpong, (), 2000)
        daemon.stop()
        lab.stop()


def virtio_user():
    """The same socket, for a program of the host; no guest is needed."""
    with Work() as work:
        daemon = daemon_of_host(work, '')
        eal = work.eal(0, f'--vdev=net_virtio_user0,path={work.path("vhost")}')
        spec = f'dpdk:{" ".join(eal)} -- ip={SERVER_IP}/24 idle=sleep'
        pingpong = os.path.join(BUILD, PROGRAMS['pingpong'])
        server = work.start('server', [pingpong, 'server', spec])
        client = work.start('client', [pingpong, '-w', 'client', daemon.spec, SERVER_IP, '2000'])
        check(client.wait() == 0, client.tail() + server.tail())
        check(server.wait() == 0, server.tail())
        daemon.stop()


def add_all(tests, lab):
    tests.add('vhost-user: a guest and its host', guest_and_host, lab)
    tests.add('virtio_user: a program and a daemon', virtio_user)
