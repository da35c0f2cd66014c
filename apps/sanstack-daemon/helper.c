/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine_clock.h"
#include "helper.h"
#include "helper_fork.h"
#include "logging.h"
#include "san_log.h"
#include "san_time.h"

#define EVENTS   16
#define HEAR_MAX 32                    /* messages of one helper before the next one's turn */
#define AGAIN_NS (100 * SAN_NS_PER_MS) /* until what no helper can close is tried again */
#define TAG_DATA ((uintptr_t)1)        /* of an event: the data channel */

/** A question for which the channel had no room; it has its own descriptor. */
struct outgoing {
	struct helper_msg m;
	int fd;
	STAILQ_ENTRY(outgoing)
	link;
};

struct helper {
	uid_t uid;
	int control, data;
	uint32_t nb_asked;   /**< and not answered */
	uint32_t nb_closing; /**< of these: to close something */
	uint32_t nb_handles; /**< that it has */
	uint64_t since_ns;   /**< when the oldest question became the next one to be answered */
	bool was_late;       /**< the log has it */
	bool is_unused;      /**< its user has no application */
	bool is_gone;
	STAILQ_HEAD(, outgoing)
	outgoing;
	LIST_ENTRY(helper)
	link;
};

/** A descriptor that no helper could close so far. */
struct unclosed {
	int fd;
	uid_t uid;
	STAILQ_ENTRY(unclosed)
	link;
};

static struct {
	int forker;
	int epoll;
	const struct helper_ops *ops;
	void *ctx;
	uint32_t nb;
	bool was_none; /* the log has it */
	bool is_over;  /* the process that forks them has ended */
	LIST_HEAD(, helper)
	all;
	STAILQ_HEAD(, unclosed)
	unclosed;
} helpers = {.unclosed = STAILQ_HEAD_INITIALIZER(helpers.unclosed)};

int
helpers_fork(const struct harden_user *user, bool seccomp)
{
	helpers.forker = helper_fork_init(user, seccomp);
	return helpers.forker < 0 ? helpers.forker : 0;
}

int
helpers_open(const struct helper_ops *ops, void *ctx)
{
	helpers.ops = ops;
	helpers.ctx = ctx;
	helpers.epoll = epoll_create1(EPOLL_CLOEXEC);
	return helpers.epoll < 0 ? -errno : helpers.epoll;
}

/* ---- one comes and goes ---- */

static struct helper *
find(uid_t uid)
{
	struct helper *h;

	LIST_FOREACH(h, &helpers.all, link)
		if (h->uid == uid && !h->is_gone)
			return h;
	return NULL;
}

bool
helpers_are_there(void)
{
	return !helpers.is_over;
}

uid_t
helper_uid(const struct helper *h)
{
	return h->uid;
}

static bool
is_idle(const struct helper *h)
{
	return h->nb_handles == 0 && h->nb_asked == 0;
}

static void
end(struct helper *h)
{
	struct outgoing *o;

	while ((o = STAILQ_FIRST(&h->outgoing)) != NULL) {
		STAILQ_REMOVE_HEAD(&h->outgoing, link);
		if (o->fd >= 0)
			close(o->fd);
		free(o);
	}
	close(h->control);
	close(h->data);
	LIST_REMOVE(h, link);
	free(h);
}

/* Events that name it may be under way: see bury(). */
static void
set_gone(struct helper *h)
{
	if (h->is_gone)
		return;
	h->is_gone = true;
	helpers.nb--;
}

static void
end_idle(void)
{
	struct helper *h;

	LIST_FOREACH(h, &helpers.all, link)
		if (is_idle(h))
			set_gone(h);
}

void
helpers_leave(uid_t uid)
{
	struct helper *h = find(uid);

	if (h == NULL)
		return;
	h->is_unused = true;
	if (is_idle(h))
		set_gone(h);
}

static int
watch(int op, int fd, uint32_t events, uintptr_t what)
{
	struct epoll_event ev = {.events = events, .data = {.ptr = (void *)what}};

	return epoll_ctl(helpers.epoll, op, fd, &ev) == 0 ? 0 : -errno;
}

/* Once, until one can be had again. */
static void
log_none(uid_t uid, const char *why)
{
	if (!helpers.was_none)
		SAN_LOG(DRIVER, ERR, "uid=%u: no helper: %s", uid,
			why);
	helpers.was_none = true;
}

static struct helper *
start(uid_t uid)
{
	struct helper *h = calloc(1, sizeof(*h));
	int rc = h == NULL ? -ENOMEM : helper_fork(helpers.forker, uid, &h->control, &h->data);

	if (rc != 0) {
		helpers.is_over = rc == -EPIPE;
		log_none(uid, strerror(-rc));
		free(h);
		return NULL;
	}
	helpers.was_none = false;
	h->uid = uid;
	h->is_unused = true;
	STAILQ_INIT(&h->outgoing);
	LIST_INSERT_HEAD(&helpers.all, h, link);
	helpers.nb++;
	rc = watch(EPOLL_CTL_ADD, h->control, EPOLLIN, (uintptr_t)h);
	if (rc == 0)
		rc = watch(EPOLL_CTL_ADD, h->data, EPOLLIN, (uintptr_t)h | TAG_DATA);
	if (rc == 0)
		return h;
	helpers.nb--;
	end(h);
	return NULL;
}

/* It ends when it has nothing to do, unless its user has an application. */
static struct helper *
find_or_start(uid_t uid)
{
	struct helper *h = find(uid);

	if (h != NULL)
		return h;
	if (helpers.nb == HELPERS_MAX)
		end_idle();
	if (helpers.nb < HELPERS_MAX)
		return start(uid);
	log_none(uid, "all are in use");
	return NULL;
}

struct helper *
helper_of(uid_t uid)
{
	struct helper *h = find_or_start(uid);

	if (h != NULL)
		h->is_unused = false;
	return h;
}

/* ---- questions ---- */

static bool
is_closing(uint32_t op)
{
	return op == HELPER_CLOSE || op == HELPER_CLOSE_FD || op == HELPER_DISCARD;
}

static int
put_off(struct helper *h, const struct helper_msg *m, int fd)
{
	struct outgoing *o = malloc(sizeof(*o));
	int own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (o == NULL || (fd >= 0 && own < 0)) {
		if (own >= 0)
			close(own);
		free(o);
		return o == NULL ? -ENOMEM : -EMFILE;
	}
	o->m = *m;
	o->fd = own;
	if (STAILQ_EMPTY(&h->outgoing))
		watch(EPOLL_CTL_MOD, h->control, EPOLLIN | EPOLLOUT, (uintptr_t)h);
	STAILQ_INSERT_TAIL(&h->outgoing, o, link);
	return 0;
}

int
helper_ask(struct helper *h, const struct helper_msg *m, int fd)
{
	int rc = STAILQ_EMPTY(&h->outgoing) ? shmq_send(h->control, m, sizeof(*m), fd, false) :
					      -EAGAIN;

	/* of one that has ended its end is heard soon */
	if (rc != 0 && rc != -EPIPE && rc != -ECONNRESET)
		rc = put_off(h, m, fd);
	if (rc == -ENOMEM || rc == -EMFILE)
		return rc;
	if (h->nb_asked++ == 0)
		h->since_ns = san_engine_clock_monotonic();
	h->nb_closing += is_closing(m->op);
	return 0;
}

static void
send_outgoing(struct helper *h)
{
	struct outgoing *o;

	while ((o = STAILQ_FIRST(&h->outgoing)) != NULL &&
	       shmq_send(h->control, &o->m, sizeof(o->m), o->fd, false) == 0) {
		STAILQ_REMOVE_HEAD(&h->outgoing, link);
		if (o->fd >= 0)
			close(o->fd);
		free(o);
	}
	if (o == NULL)
		watch(EPOLL_CTL_MOD, h->control, EPOLLIN, (uintptr_t)h);
}

void
helper_close(struct helper *h, int32_t handle)
{
	const struct helper_msg m = {.op = HELPER_CLOSE, .handle = handle};

	if (helper_ask(h, &m, -1) != 0)
		SAN_LOG(DRIVER, ERR, "uid=%u: no memory to close handle=%d", h->uid, handle);
}

void
helper_send(struct helper *h, const struct helper_dgram *d, const void *data, size_t len)
{
	struct iovec iov[2] = {{(void *)(uintptr_t)d, sizeof(*d)},
			       {(void *)(uintptr_t)data, len}};
	const struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	sendmsg(h->data, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- answers ---- */

static void
hear(struct helper *h, const struct helper_msg *m, int fd)
{
	if (m->op != HELPER_CHANGED) {
		h->nb_asked--;
		h->nb_closing -= is_closing(m->op);
		h->since_ns = san_engine_clock_monotonic();
	}
	if (m->op == HELPER_FETCH && m->handle >= 0)
		h->nb_handles++;
	if (m->op == HELPER_CLOSE)
		h->nb_handles--;
	if (h->was_late)
		LOG_OF(h->uid, NOTICE, "uid=%u: its helper goes on", h->uid);
	h->was_late = false;
	helpers.ops->heard(helpers.ctx, h, m, fd);
}

static void
hear_control(struct helper *h)
{
	struct helper_msg m;
	int i, fd, rc = 0;

	for (i = 0; i < HEAR_MAX && rc == 0; i++) {
		rc = shmq_recv(h->control, &m, sizeof(m), &fd, false);
		if (rc == 0)
			hear(h, &m, fd);
	}
	if ((rc != 0 && rc != -EAGAIN) || (h->is_unused && is_idle(h)))
		set_gone(h);
}

static void
hear_data(const struct helper *h)
{
	static uint8_t in[sizeof(struct helper_dgram) + HELPER_DGRAM];
	struct helper_dgram d;
	ssize_t n;
	int i;

	for (i = 0; i < HEAR_MAX; i++) {
		n = recv(h->data, in, sizeof(in), MSG_DONTWAIT);
		if (n < (ssize_t)sizeof(d))
			return;
		memcpy(&d, in, sizeof(d));
		helpers.ops->dgram(helpers.ctx, &d, in + sizeof(d), (uint32_t)n - sizeof(d));
	}
}

static void
bury(void)
{
	struct helper *h, *next;

	for (h = LIST_FIRST(&helpers.all); h != NULL; h = next) {
		next = LIST_NEXT(h, link);
		if (!h->is_gone)
			continue;
		if (!is_idle(h)) {
			SAN_LOG(DRIVER, ERR, "uid=%u: its helper has ended", h->uid);
			helpers.ops->gone(helpers.ctx, h);
		}
		end(h);
	}
}

void
helpers_serve(void)
{
	struct epoll_event ev[EVENTS];
	int i, n = epoll_wait(helpers.epoll, ev, EVENTS, 0);

	for (i = 0; i < n; i++) {
		uintptr_t what = (uintptr_t)ev[i].data.ptr;
		struct helper *h = (struct helper *)(what & ~TAG_DATA);

		if ((what & TAG_DATA) != 0) {
			hear_data(h);
			continue;
		}
		if ((ev[i].events & EPOLLOUT) != 0)
			send_outgoing(h);
		if ((ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
			hear_control(h);
	}
	bury();
}

bool
helper_is_late(const struct helper *h, uint64_t now_ns)
{
	return h->nb_asked != 0 && now_ns > h->since_ns && now_ns - h->since_ns >= HELPER_LATE_NS;
}

bool
helpers_are_closing(uid_t uid)
{
	const struct helper *h = find(uid);

	return h != NULL && h->nb_closing != 0;
}

/* ---- what is to be closed ---- */

/* True: closed; else descriptors lie in it. */
static bool
close_empty(int sock)
{
	struct shmq_req any;
	bool has_fds;
	int rc;

	while ((rc = shmq_peek(sock, &any, sizeof(any), &has_fds)) == 0 || rc == -EPROTO) {
		if (has_fds)
			return false;
		shmq_skip(sock);
	}
	close(sock);
	return true;
}

static bool
have_closed(int fd, uid_t uid)
{
	const struct helper_msg m = {.op = HELPER_CLOSE_FD};
	struct helper *h = find_or_start(uid);

	if (h == NULL || helper_ask(h, &m, fd) != 0)
		return false;
	close(fd); /* not the last one: the helper's is under way */
	return true;
}

void
helpers_close(int fd, uid_t uid)
{
	struct unclosed *u;

	if (have_closed(fd, uid))
		return;
	u = malloc(sizeof(*u));
	if (u == NULL)
		return; /* it stays open: there is nothing better */
	*u = (struct unclosed){.fd = fd, .uid = uid};
	STAILQ_INSERT_TAIL(&helpers.unclosed, u, link);
}

void
helpers_hang_up(int sock, uid_t uid)
{
	shmq_hang_up(sock);
	if (!close_empty(sock))
		helpers_close(sock, uid);
}

static void
log_late(struct helper *h, uint64_t now_ns)
{
	if (h->was_late || !helper_is_late(h, now_ns))
		return;
	LOG_OF(h->uid, WARNING, "uid=%u: a descriptor of its programs holds up its helper; "
				"requests with descriptors wait",
	       h->uid);
	h->was_late = true;
}

uint64_t
helpers_step(uint64_t now_ns)
{
	struct unclosed *u, *next;
	struct helper *h;

	for (u = STAILQ_FIRST(&helpers.unclosed); u != NULL; u = next) {
		next = STAILQ_NEXT(u, link);
		if (!have_closed(u->fd, u->uid))
			continue;
		STAILQ_REMOVE(&helpers.unclosed, u, unclosed, link);
		free(u);
	}
	LIST_FOREACH(h, &helpers.all, link)
		log_late(h, now_ns);
	bury();
	return STAILQ_EMPTY(&helpers.unclosed) ? SAN_TIME_NEVER : now_ns + AGAIN_NS;
}
