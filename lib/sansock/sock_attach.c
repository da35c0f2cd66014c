/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The process has one connection to the daemon, for one request at a time, under a lock. A signal
 * handler must not wait for a lock that its own thread holds, so signals are blocked while the lock
 * is held. Sending and receiving data need no request.
 */

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "sock_priv.h"

#define AGAIN_S 5 /* before the next attempt to reach a daemon */

/* State of the connection to one daemon. Never freed: another thread may be using its doorbells. */
struct view {
	struct shmq_ctl *ctl;
	struct shmq_rep hello;
	_Atomic int wake_fd; /* eventfd of an lcore that sleeps; otherwise -1 */
};

static struct {
	pthread_mutex_t lock;
	_Atomic int sock; /* -1: not attached */
	int64_t failed;   /* second of the last attempt, if it failed; or 0 */
	int rc;           /* result of the last attempt, and its text */
	char why[SHMQ_TEXT];
	struct view *_Atomic view; /* NULL: not attached */
	const struct view *before; /* the parent's, from before fork(); or NULL */
} us = {.lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1};

/* 0: *rep* is an answer. Its *rc* may still be an error, and *got* a descriptor. */
static int
attach_talk(struct shmq_req *req, int fd, struct shmq_rep *rep, int *got)
{
	int rc;

	*got = -1;
	req->magic = SHMQ_MAGIC;
	req->abi = SHMQ_ABI;
	rc = req->type == SHMQ_HELLO ? san_shmq_send_proof(us.sock, req, sizeof(*req)) :
				       san_shmq_send(us.sock, req, sizeof(*req), fd, true);
	if (rc == 0)
		rc = san_shmq_recv(us.sock, rep, sizeof(*rep), got, true);
	if (rc == 0 && (rep->magic != SHMQ_MAGIC || rep->abi != SHMQ_ABI))
		rc = -EPROTO;
	return rc;
}

/* Ask while the process attaches. 0 or -errno. */
static int
attach_exchange(struct shmq_req *req, struct shmq_rep *rep, int *got)
{
	int rc = attach_talk(req, -1, rep, got);

	if (rc == 0 && rep->rc != 0)
		snprintf(us.why, sizeof(us.why), "%s", rep->text);
	return rc == 0 ? rep->rc : rc;
}

static int
attach_dial(void)
{
	const struct timeval timeout = {.tv_sec = san_sock_conf()->answer_s};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	strncpy(addr.sun_path, san_sock_conf()->daemon, sizeof(addr.sun_path) - 1);
	fd = san_sock_own(REAL(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), &us.sock);
	if (fd < 0)
		return -errno;
	REAL(setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	REAL(setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	us.sock = fd; /* after an error it is closed, too */
	return REAL(connect, fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0 ? -errno : 0;
}

static void
attach_hang_up(void)
{
	san_sock_own_close(us.sock);
	us.sock = -1;
	atomic_store(&us.view, NULL);
}

static int
attach_hello(struct view *v)
{
	struct shmq_req req = {.type = SHMQ_HELLO};
	struct shmq_rep rep;
	void *ctl;
	int rc, fd;

	v->wake_fd = -1;
	strncpy(req.hello.port, san_sock_conf()->port, SHMQ_PORT - 1);
	strncpy(req.hello.name, program_invocation_short_name, SHMQ_NAME - 1);
	rc = attach_exchange(&req, &v->hello, &fd);
	if (rc != 0)
		return rc;
	ctl = mmap(NULL, v->hello.hello.ctl_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REAL(close, fd);
	if (ctl == MAP_FAILED)
		return -ENOMEM;
	v->ctl = ctl;
	if (v->hello.hello.max_socks == 0)
		return -EOPNOTSUPP;
	if (v->hello.hello.sleeps == 0)
		return 0;
	req = (struct shmq_req){.type = SHMQ_WAKE_FD};
	rc = attach_exchange(&req, &rep, &fd);
	v->wake_fd = san_sock_own(fd, &v->wake_fd);
	return rc;
}

static int
attach_locked(void)
{
	int64_t now_s = san_sock_time_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_S;
	const char *what;
	struct view *v;
	int rc;

	if (us.sock >= 0)
		return 0;
	if (us.failed != 0 && now_s - us.failed < AGAIN_S)
		return us.rc;
	us.why[0] = '\0';
	v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rc = v == MAP_FAILED ? -ENOMEM : attach_dial();
	if (rc == 0)
		rc = attach_hello(v);
	us.failed = rc == 0 ? 0 : now_s;
	us.rc = rc;
	if (rc == 0) {
		atomic_store_explicit(&us.view, v, memory_order_release);
		return 0;
	}
	what = rc == -EACCES || rc == -EPERM         ? "no right to the daemon" :
		rc == -ENOENT || rc == -ECONNREFUSED ? "no daemon" :
		rc == -EAGAIN                        ? "no answer of the daemon" :
		rc == -EOPNOTSUPP                    ? "no sockets= at the daemon" :
						       strerror(-rc);
	if (us.why[0] == '\0') /* the daemon has sent no text; the path, last, may be cut off */
		snprintf(us.why, sizeof(us.why), "%s at %s", what, san_sock_conf()->daemon);
	attach_hang_up();
	if (v != MAP_FAILED && v->ctl != NULL)
		REAL(munmap, v->ctl, v->hello.hello.ctl_bytes);
	if (v != MAP_FAILED)
		REAL(munmap, v, sizeof(*v));
	return rc;
}

/* Out of line: each doorbell checks whether the process is attached. */
static __attribute__((noinline)) int
attach_now(void)
{
	struct sock_quiet was;
	int rc;
	KEEP_ERRNO;

	if (san_sock_box_is_closed())
		return -EPERM;
	san_sock_lock_begin_quiet(&was);
	pthread_mutex_lock(&us.lock);
	rc = attach_locked();
	pthread_mutex_unlock(&us.lock);
	san_sock_lock_end_quiet(&was);
	return rc;
}

int
san_sock_attach(void)
{
	return atomic_load(&us.view) != NULL ? 0 : attach_now();
}

void
san_sock_attach_end(void)
{
	const struct view *v = atomic_load(&us.view);

	/* only this thread is left in the child, so no other one holds the lock */
	pthread_mutex_init(&us.lock, NULL);
	us.failed = 0;
	if (v != NULL) {
		san_sock_own_close(v->wake_fd);
		us.before = v;
	}
	attach_hang_up();
}

bool
san_sock_attach_is_daemons(int fd)
{
	return fd == us.sock;
}

static bool
attach_rc_is_lost(int rc)
{
	return rc == -ENOTCONN || rc == -EPIPE || rc == -ECONNRESET;
}

int
san_sock_attach_ask(enum shmq_type type, int fd, struct shmq_req *req, struct shmq_rep *rep,
		    int *got)
{
	struct shmq_req none = {0};
	struct shmq_rep unused;
	struct sock_quiet was;
	int rc, rx_fd;
	KEEP_ERRNO;

	req = req != NULL ? req : &none;
	rep = rep != NULL ? rep : &unused;
	if (san_sock_box_is_closed()) {
		snprintf(rep->text, sizeof(rep->text), "the program confines itself");
		return -EPERM;
	}
	req->type = type;
	rep->text[0] = '\0';
	san_sock_lock_begin_quiet(&was);
	pthread_mutex_lock(&us.lock);
	rc = attach_locked();
	if (rc == 0) {
		rc = attach_talk(req, fd, rep, &rx_fd);
		if (attach_rc_is_lost(rc)) { /* a new daemon may have started */
			attach_hang_up();
			rc = attach_locked();
			rc = rc == 0 ? attach_talk(req, fd, rep, &rx_fd) : rc;
		}
		/* a late answer would be taken for that of the next request */
		if (attach_rc_is_lost(rc) || rc == -EAGAIN)
			attach_hang_up();
		else if (rc == 0)
			rc = rep->rc;
		if (rc == 0 && got != NULL)
			*got = rx_fd;
		else if (rx_fd >= 0)
			REAL(close, rx_fd);
	}
	if (rc != 0 && rep->text[0] == '\0')
		snprintf(rep->text, sizeof(rep->text), "%s", us.rc != 0 ? us.why : strerror(-rc));
	pthread_mutex_unlock(&us.lock);
	san_sock_lock_end_quiet(&was);
	return rc;
}

void
san_sock_attach_doorbell(const struct fd_sock *f)
{
	static const uint8_t mark[SAN_SOCK_NUDGE] = SAN_SOCK_MARK;
	const struct view *v;
	struct san_doorbells *doorbells;
	uint32_t nb_qps;
	int fd, wake_fd;

	if (san_sock_attach() != 0) {
		KEEP_ERRNO;

		/* a child for which the daemon has no place: through the pair, which it reads */
		fd = san_sock_fd_next(f, 0);
		if (fd >= 0)
			san_sock_box_send(fd, mark, sizeof(mark));
		return;
	}
	v = atomic_load(&us.view);
	if (v == NULL || f->id >= v->hello.hello.max_socks)
		return; /* it belongs to another daemon */
	nb_qps = v->hello.hello.lcore_qps;
	doorbells = san_shmq_doorbells(v->ctl, 0, nb_qps + v->hello.hello.max_socks);
	if (san_doorbells_ring(doorbells, nb_qps + f->id) && (wake_fd = v->wake_fd) >= 0)
		eventfd_write(wake_fd, 1);
}

bool
san_sock_attach_yields(void)
{
	const struct view *v = atomic_load(&us.view);

	return v != NULL && v->hello.hello.yields != 0;
}

bool
san_sock_attach_carries_tcp(void)
{
	const struct view *v = atomic_load(&us.view);

	return v == NULL || v->hello.hello.no_tcp == 0;
}

static bool
attach_is_in(const struct shmq_net *net, const uint8_t ip[16])
{
	/* a prefix shorter than 96 bits is of IPv6, and does not contain IPv4 addresses */
	return (net->prefix_len >= 96 || !san_sock_is_v4(ip)) &&
		san_rules_is_prefix(net->ip, net->prefix_len, ip);
}

/* Whether it is the link's broadcast address. The kernel decides which sockets may send to it. */
static bool
is_broadcast(const struct shmq_net *net, const uint8_t ip[16])
{
	uint32_t i = net->prefix_len;

	if (i < 96 || i > 126 || !attach_is_in(net, ip))
		return false;
	while (i < 128 && (ip[i / 8] >> (7 - i % 8) & 1) != 0)
		i++;
	return i == 128;
}

/* The memory shared with the daemon, or NULL. */
static const struct shmq_ctl *
attach_shared_ctl(void)
{
	const struct view *v;

	/* a child that inherited a socket is not attached yet, and the daemon may have no place */
	v = san_sock_attach() == 0 ? atomic_load(&us.view) : us.before;
	return v != NULL ? v->ctl : NULL;
}

bool
san_sock_attach_is_ports(const uint8_t ip[16])
{
	const struct shmq_ctl *ctl = attach_shared_ctl();
	uint32_t i;

	for (i = 0; ctl != NULL && i < ctl->nb_addrs; i++)
		if (memcmp(ctl->nets[i].ip, ip, 16) == 0)
			return true;
	return false;
}

const char *
san_sock_attach_why_not_reached(const uint8_t ip[16])
{
	const struct shmq_ctl *ctl = attach_shared_ctl();
	uint32_t i;

	if (ctl == NULL)
		return us.why;
	for (i = 0; i < ctl->nb_addrs; i++)
		if (memcmp(ctl->nets[i].ip, ip, 16) == 0)
			return "is this host's own address";
		else if (is_broadcast(&ctl->nets[i], ip))
			return "is a broadcast address";
	for (i = 0; i < ctl->nb_nets; i++)
		if (attach_is_in(&ctl->nets[i], ip))
			return san_sock_route_is_ports(ctl, ip, i < ctl->nb_addrs) ?
				NULL :
				"is not reached by the port, the kernel's routes say";
	return "is in no prefix of the port";
}
