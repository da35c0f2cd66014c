/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * One request at a time goes over the process's connection, under a lock. A signal handler that
 * interrupts the thread that holds it, and needs the daemon itself, must not wait for it: so
 * signals are held back meanwhile. No request is made to send or to receive.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sock_attach.h"
#include "sock_conf.h"
#include "sock_fd.h"
#include "sock_real.h"

#define AGAIN_S 5   /* until a daemon that was not there is asked for again */
#define HIGH_FD 700 /* our descriptors are out of the way of the program's, if they can */

static struct {
	pthread_mutex_t lock;
	int sock;    /* -1: not attached */
	int wake_fd; /* of the lcore, if it sleeps */
	struct shmq_ctl *ctl;
	size_t ctl_bytes;
	struct shmq_rep hello;
	time_t failed;
	_Atomic bool attached;
} us = {.lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1, .wake_fd = -1};

static void
lock(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, old);
	pthread_mutex_lock(&us.lock);
}

static void
unlock(const sigset_t *old)
{
	pthread_mutex_unlock(&us.lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* The program counts on low numbers. */
static int
move_up(int fd)
{
	int high = fd < 0 ? -1 : REAL(fcntl)(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd;
	REAL(close)
	(fd);
	return high;
}

static int
exchange(struct shmq_req *req, int fd, struct shmq_rep *rep, int *got)
{
	int rc;

	*got = -1;
	req->magic = SHMQ_MAGIC;
	req->abi = SHMQ_ABI;
	rc = shmq_send(us.sock, req, sizeof(*req), fd, true);
	if (rc == 0)
		rc = shmq_recv(us.sock, rep, sizeof(*rep), got, true);
	if (rc == 0 && (rep->magic != SHMQ_MAGIC || rep->abi != SHMQ_ABI))
		rc = -EPROTO;
	return rc == 0 ? rep->rc : rc;
}

static int
dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, rc;

	strncpy(addr.sun_path, sock_conf_daemon(), sizeof(addr.sun_path) - 1);
	fd = move_up(REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	if (REAL(connect)(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0) {
		rc = -errno;
		REAL(close)
		(fd);
		return rc;
	}
	us.sock = fd;
	return 0;
}

static void
hang_up(void)
{
	/* another thread may be ringing: what was mapped stays so */
	if (us.sock >= 0)
		REAL(close)
	(us.sock);
	if (us.wake_fd >= 0)
		REAL(close)
	(us.wake_fd);
	us.ctl = NULL;
	us.sock = us.wake_fd = -1;
	atomic_store(&us.attached, false);
}

static int
introduce(void)
{
	struct shmq_req req = {.type = SHMQ_HELLO};
	struct shmq_rep rep;
	void *ctl;
	int rc, fd;

	strncpy(req.hello.port, sock_conf_port(), SHMQ_PORT - 1);
	rc = exchange(&req, -1, &us.hello, &fd);
	if (rc != 0)
		return rc;
	us.ctl_bytes = us.hello.hello.ctl_bytes;
	ctl = mmap(NULL, us.ctl_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REAL(close)
	(fd);
	if (ctl == MAP_FAILED)
		return -ENOMEM;
	us.ctl = ctl;
	if (us.hello.hello.max_socks == 0)
		return -EOPNOTSUPP;
	if (us.hello.hello.sleeps == 0)
		return 0;
	req = (struct shmq_req){.type = SHMQ_WAKE_FD};
	rc = exchange(&req, -1, &rep, &fd);
	us.wake_fd = move_up(fd);
	return rc;
}

static int
attach_locked(void)
{
	struct timespec now;
	int rc;

	if (us.sock >= 0)
		return 0;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (us.failed != 0 && now.tv_sec - us.failed < AGAIN_S)
		return -ECONNREFUSED;
	rc = dial();
	if (rc == 0)
		rc = introduce();
	us.failed = rc == 0 ? 0 : now.tv_sec;
	if (rc != 0)
		hang_up();
	else
		atomic_store_explicit(&us.attached, true, memory_order_release);
	return rc;
}

int
sock_attach(void)
{
	int rc, was = errno;
	sigset_t old;

	if (atomic_load_explicit(&us.attached, memory_order_acquire))
		return 0;
	lock(&old);
	rc = attach_locked();
	unlock(&old);
	errno = was;
	return rc;
}

void
sock_detach(void)
{
	/* of the threads that the parent had only we are left, and nobody held the lock but us */
	pthread_mutex_init(&us.lock, NULL);
	us.failed = 0;
	hang_up();
}

bool
sock_is_daemons(int fd)
{
	return fd == us.sock;
}

int
sock_ask(enum shmq_type type, int fd, struct shmq_req *req, struct shmq_rep *rep, int *got)
{
	int rc, came, was = errno;
	sigset_t old;

	req->type = type;
	lock(&old);
	rc = attach_locked();
	if (rc == 0) {
		rc = exchange(req, fd, rep, &came);
		if (rc == -ENOTCONN || rc == -EPIPE || rc == -ECONNRESET)
			hang_up();
		if (rc == 0 && got != NULL)
			*got = came;
		else if (came >= 0)
			REAL(close)
		(came);
	}
	unlock(&old);
	errno = was;
	return rc;
}

void
sock_bell(const struct sock_file *f)
{
	struct san_bells *bells;

	if (sock_attach() != 0)
		return;
	bells = shmq_bells(us.ctl, 0, us.hello.hello.lcore_qps + us.hello.hello.max_socks);
	if (san_bells_ring(bells, us.hello.hello.lcore_qps + f->shm->id) && us.wake_fd >= 0)
		eventfd_write(us.wake_fd, 1);
}

bool
sock_yields(void)
{
	return us.hello.hello.yields != 0;
}

static bool
is_in(const struct shmq_net *net, const uint8_t ip[16])
{
	uint8_t bits = net->prefix_len % 8, bytes = net->prefix_len / 8;

	if (memcmp(net->ip, ip, bytes) != 0)
		return false;
	return bits == 0 || ((net->ip[bytes] ^ ip[bytes]) & (uint8_t)(0xff00 >> bits)) == 0;
}

bool
sock_is_reached(const uint8_t ip[16])
{
	const struct shmq_ctl *ctl = us.ctl;
	uint32_t i;

	if (ctl == NULL)
		return false;
	for (i = 0; i < ctl->nb_addrs; i++)
		if (memcmp(ctl->nets[i].ip, ip, 16) == 0)
			return false;
	for (i = 0; i < ctl->nb_nets; i++)
		if (is_in(&ctl->nets[i], ip))
			return true;
	return false;
}
