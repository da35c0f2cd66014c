/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Any system call here may block for as long as a hostile program likes: the socket is locked while
 * the kernel reads from a file of the program's own FUSE mount, or close() of its descriptor takes
 * long. Then this process stalls, and only programs of the same user wait for it. Questions come
 * before datagrams, and an answer is sent before the descriptors of its message are closed.
 */

#include <netinet/in.h>
#include <stdio.h>
#include <sys/queue.h>

#include "engine_clock.h"
#include "helper_priv.h"

#define EVENTS     32
#define PUMP_MAX   32   /* datagrams of one socket per turn */
#define VERIFY_MS  1000 /* period of checking the addresses of carried sockets */
#define OPTIONS    3    /* options of a carried socket that are turned on */
#define SEND_TRIES 100
#define SEND_MS    10  /* delay before an answer is sent again */
#define BIND_TRIES 100 /* for a port that another socket gets first */

/** A carried UDP socket. */
struct carried {
	int fd;
	struct helper_sock sock;
	struct helper_facts facts;
	int had[OPTIONS]; /**< the options' values before */
	bool is_ready;    /**< it may have datagrams */
	LIST_ENTRY(carried) link;
};

static struct {
	int control, data, epoll;
	bool is_full;  /* no room in the data channel: the daemon has not read it */
	bool has_more; /* datagrams of carried sockets */
	bool is_over;  /* the daemon has ended, or has asked the helper to end */
	uint64_t verified_ns;
	LIST_HEAD(, carried) carried;
} us;

/* ---- messages to the daemon ---- */

/* If too many descriptors of the daemon's user are in flight the answer is sent without one. */
static void
helper_run_answer(struct helper_msg *m, int fd)
{
	int i, rc = san_shmq_send(us.control, m, sizeof(*m), fd, true);

	for (i = 0; i < SEND_TRIES && rc == -ETOOMANYREFS; i++) {
		poll(NULL, 0, SEND_MS);
		rc = san_shmq_send(us.control, m, sizeof(*m), fd, true);
	}
	if (rc != 0 && fd >= 0) {
		snprintf(m->why, sizeof(m->why), "can't be passed on: %s", strerror(-rc));
		rc = san_shmq_send(us.control, m, sizeof(*m), -1, true);
	}
	if (rc != 0)
		_exit(0); /* the daemon has ended */
}

static void
close_all(const int *fds, uint32_t nb)
{
	while (nb > 0)
		close(fds[--nb]);
}

/* ---- questions ---- */

static void
serve_fetch(struct helper_msg *m, int sock)
{
	int fds[SHMQ_FDS], memory = -1;
	const char *why;
	uint32_t nb;

	memset(&m->req, 0, sizeof(m->req));
	m->why[0] = '\0';
	m->handle = -1;
	m->rc = san_shmq_recv_fds(sock, &m->req, sizeof(m->req), fds, &nb, 1, false);
	if (m->rc == 0 && nb == 1 && m->req.type == SHMQ_MR_ADD) {
		/* its seals must keep the program from harming the daemon */
		if (san_shmq_mem_check(fds[0], m->req.mr.offset, m->req.mr.length, &why) == 0)
			memory = fds[0];
		else
			snprintf(m->why, sizeof(m->why), "%s", why);
	}
	if (m->rc == 0 && nb == 1 && m->req.type >= SHMQ_SOCK_CARRY && m->req.type < SHMQ_TYPES) {
		san_helper_facts_read(fds[0], &m->facts);
		m->handle = fds[--nb];
	}
	helper_run_answer(m, memory);
	close_all(fds, nb);
}

/* ---- carried sockets ---- */

/* Each datagram needs these values; by family. */
static const struct {
	int level, name;
} options[2][OPTIONS] = {
	{{IPPROTO_IP, IP_PKTINFO}, {IPPROTO_IP, IP_RECVTTL}, {IPPROTO_IP, IP_RECVTOS}},
	{{IPPROTO_IPV6, IPV6_RECVPKTINFO},
	 {IPPROTO_IPV6, IPV6_RECVHOPLIMIT},
	 {IPPROTO_IPV6, IPV6_RECVTCLASS}},
};

static struct carried *
helper_run_find(int fd)
{
	struct carried *c;

	LIST_FOREACH(c, &us.carried, link)
		if (c->fd == fd)
			return c;
	return NULL;
}

/* Restore the options: other processes may share the socket, or the program keeps it. */
static void
helper_run_restore_fd(int fd)
{
	struct carried *c = helper_run_find(fd);
	const int none = 0;
	int i;

	if (c == NULL)
		return;
	/* close() does not remove it from epoll while others have the socket */
	epoll_ctl(us.epoll, EPOLL_CTL_DEL, fd, NULL);
	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
	for (i = 0; i < OPTIONS; i++)
		setsockopt(fd, options[c->facts.domain == AF_INET6][i].level,
			   options[c->facts.domain == AF_INET6][i].name, &c->had[i], sizeof(int));
	LIST_REMOVE(c, link);
	free(c);
}

static int
helper_run_carry(struct helper_msg *m)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data = {.fd = m->handle}};
	struct helper_filter filter = m->filter;
	struct carried *c = calloc(1, sizeof(*c));
	int i, v6, rc = c != NULL ? san_helper_facts_hold_name(m->handle) : -ENOMEM;
	const int on = 1;

	if (rc != 0) {
		free(c);
		return rc;
	}
	san_helper_facts_read(m->handle, &m->facts);
	c->fd = m->handle;
	c->sock = m->sock;
	c->facts = m->facts;
	c->is_ready = true;
	v6 = c->facts.domain == AF_INET6;
	for (i = 0; i < OPTIONS; i++) {
		c->had[i] = san_helper_facts_int(c->fd, options[v6][i].level, options[v6][i].name);
		setsockopt(c->fd, options[v6][i].level, options[v6][i].name, &on, sizeof(on));
	}
	LIST_INSERT_HEAD(&us.carried, c, link);
	rc = san_sock_filter_port(m->handle, &filter);
	/* edge-triggered: it stays readable after its end, and while it has an unread error */
	if (rc == 0 && epoll_ctl(us.epoll, EPOLL_CTL_ADD, m->handle, &ev) != 0)
		rc = -errno;
	if (rc != 0)
		helper_run_restore_fd(m->handle);
	return rc;
}

/*
 * Bind to the address of *m* and a free port. Naming the port keeps the program from releasing it.
 */
static int
bind_once(const struct helper_msg *m)
{
	struct sockaddr_storage name = m->source;
	socklen_t len = sizeof(name);
	int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0 || bind(fd, (const struct sockaddr *)&name, sizeof(name)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		rc = -errno;
	san_fd_close(fd);
	if (rc == 0 && bind(m->handle, (const struct sockaddr *)&name, sizeof(name)) != 0)
		rc = -errno;
	return rc;
}

/*
 * Send one datagram that a program wrote without the library. It is lost if the kernel has no room.
 * False: none is left.
 */
static bool
helper_run_send_dgram(void)
{
	static uint8_t in[sizeof(struct helper_dgram) + HELPER_DGRAM];
	const struct carried *c;
	struct helper_dgram d;
	ssize_t n = recv(us.data, in, sizeof(in), MSG_DONTWAIT);

	if (n < (ssize_t)sizeof(d))
		return false;
	memcpy(&d, in, sizeof(d));
	c = helper_run_find(d.handle);
	if (c != NULL && c->sock.number == d.sock.number)
		send(d.handle, in + sizeof(d), (size_t)n - sizeof(d), MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

static void
helper_run_serve(struct helper_msg *m, int sock)
{
	int i, fds[SHMQ_FDS];
	struct shmq_req any;
	uint32_t nb;

	switch (m->op) {
	case HELPER_FETCH:
		serve_fetch(m, sock);
		close(sock);
		return;
	case HELPER_DISCARD:
		san_shmq_recv_fds(sock, &any, sizeof(any), fds, &nb, 1, false);
		close_all(fds, nb); /* the answer promises that the descriptors are closed */
		break;
	case HELPER_GIVE:
		m->rc = san_shmq_send(sock, &m->rep, sizeof(m->rep), m->handle, false);
		if (m->rc == -ETOOMANYREFS) { /* the application gets the error instead */
			m->rep.rc = m->rc;
			m->rc = san_shmq_send(sock, &m->rep, sizeof(m->rep), -1, false);
		}
		break;
	case HELPER_LOOK:
		san_helper_facts_read(m->handle, &m->facts);
		break;
	case HELPER_CARRY:
		m->rc = helper_run_carry(m);
		break;
	case HELPER_BIND:
		m->rc = -EADDRINUSE;
		for (i = 0; i < BIND_TRIES && m->rc == -EADDRINUSE; i++)
			m->rc = bind_once(m);
		san_helper_facts_read(m->handle, &m->facts);
		break;
	default: /* CLOSE: answer when it is done */
		while (helper_run_send_dgram())
			;
		helper_run_restore_fd(m->handle);
		close(m->handle);
		break;
	}
	helper_run_answer(m, -1);
	san_fd_close(sock);
}

/* ---- datagrams ---- */

static void
helper_run_read_control(struct msghdr *msg, struct helper_dgram *d)
{
	struct cmsghdr *c;
	int v;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			const struct in_pktinfo *info = (const void *)CMSG_DATA(c);

			memcpy(d->dst.b + 12, &info->ipi_addr, 4);
			d->if_index = (uint32_t)info->ipi_ifindex;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			const struct in6_pktinfo *info = (const void *)CMSG_DATA(c);

			memcpy(d->dst.b, &info->ipi6_addr, 16);
			d->if_index = info->ipi6_ifindex;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
			memcpy(&v, CMSG_DATA(c), sizeof(v));
			d->hops = (uint8_t)v;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			d->tos = *CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&v, CMSG_DATA(c), sizeof(v));
			d->tos = (uint8_t)v;
		}
	}
}

/* Check for room in the data channel before receiving: a datagram without room would be lost. */
static bool
helper_run_has_room(void)
{
	us.is_full = san_fd_poll(us.data, POLLOUT) == 0;
	return !us.is_full;
}

/* Forward one datagram or error. False: none is left. */
static bool
pump_one(const struct carried *c)
{
	static uint8_t control[512];
	static struct {
		struct helper_dgram d;
		uint8_t bytes[HELPER_DGRAM];
	} out;
	struct sockaddr_storage from = {.ss_family = AF_INET};
	struct iovec iov = {out.bytes, sizeof(out.bytes)};
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return false;
	out.d = (struct helper_dgram){
		.sock = c->sock,
		.handle = c->fd,
		.err = n < 0 ? errno : 0,
		.dst = {.b = {[10] = 0xff, [11] = 0xff}},
	};
	if (n >= 0) {
		san_helper_facts_addr(&from, &out.d.src, &out.d.sport, NULL);
		helper_run_read_control(&msg, &out.d);
	}
	send(us.data, &out, sizeof(out.d) + (n > 0 ? (size_t)n : 0), MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

/* ---- changes of addresses ---- */

/* The program still has the socket and may change its address or device. */
static void
helper_run_verify(void)
{
	struct helper_msg m = {.op = HELPER_CHANGED};
	struct carried *c;

	LIST_FOREACH(c, &us.carried, link) {
		san_helper_facts_read(c->fd, &m.facts);
		if (m.facts.device == c->facts.device &&
		    memcmp(&m.facts.local, &c->facts.local, sizeof(m.facts.local)) == 0)
			continue;
		c->facts = m.facts;
		m.handle = c->fd;
		m.sock = c->sock;
		helper_run_answer(&m, -1);
	}
}

/* ---- the loop ---- */

static void
helper_run_on_event(const struct epoll_event *ev)
{
	struct helper_msg m;
	struct carried *c;
	int sock, rc;

	if (ev->data.fd == us.control) {
		while ((rc = san_shmq_recv(us.control, &m, sizeof(m), &sock, false)) == 0)
			helper_run_serve(&m, sock);
		us.is_over = rc != -EAGAIN;
	} else if (ev->data.fd == us.data) {
		us.is_full = us.is_full && (ev->events & EPOLLOUT) == 0;
		helper_run_send_dgram();
	} else {
		c = helper_run_find(ev->data.fd);
		if (c != NULL)
			c->is_ready = true;
	}
}

int
san_helper_run_begin(int control, int data)
{
	struct epoll_event in = {.events = EPOLLIN, .data = {.fd = control}};
	struct helper_msg begun = {.op = HELPER_BEGUN};

	us.control = control;
	us.data = data;
	us.epoll = epoll_create1(EPOLL_CLOEXEC);
	us.is_over = us.has_more = us.is_full = false;
	us.verified_ns = san_engine_clock_monotonic();
	helper_run_answer(&begun, -1);
	epoll_ctl(us.epoll, EPOLL_CTL_ADD, control, &in);
	in.data.fd = data;
	epoll_ctl(us.epoll, EPOLL_CTL_ADD, data, &in);
	return us.epoll;
}

bool
san_helper_run_turn(bool waits)
{
	struct epoll_event ev[EVENTS], in = {.events = EPOLLIN, .data = {.fd = us.data}};
	int i, n, wait_ms = LIST_EMPTY(&us.carried) ? -1 : VERIFY_MS;
	struct carried *c;

	in.events |= us.is_full ? EPOLLOUT : 0;
	epoll_ctl(us.epoll, EPOLL_CTL_MOD, us.data, &in);
	n = epoll_wait(us.epoll, ev, EVENTS, !waits || us.has_more ? 0 : wait_ms);
	for (i = 0; i < n; i++)
		helper_run_on_event(&ev[i]);
	us.has_more = false; /* one turn for each carried socket */
	LIST_FOREACH(c, &us.carried, link) {
		for (i = 0; i < PUMP_MAX && c->is_ready && helper_run_has_room(); i++)
			c->is_ready = pump_one(c);
		us.has_more |= c->is_ready;
	}
	us.has_more = us.has_more && !us.is_full;
	if (san_engine_clock_monotonic() - us.verified_ns >= VERIFY_MS * SAN_NS_PER_MS) {
		helper_run_verify();
		us.verified_ns = san_engine_clock_monotonic();
	}
	return !us.is_over;
}
