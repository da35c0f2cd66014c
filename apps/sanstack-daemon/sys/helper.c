/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A helper occupies its place until its process has ended, not only until its last answer: it
 * closes the descriptors of a message after the answer, and close() may block.
 */

#include <sched.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include <rte_lcore.h>

#include "engine_clock.h"
#include "helper_priv.h"
#include "logging.h"
#include "san_time.h"

#define EVENTS      16
#define ANSWERS_MAX 32                   /* messages of one helper per turn */
#define AGAIN_NS    (10 * SAN_NS_PER_MS) /* delay before a message is sent again */
#define UNUSED_NS   SAN_NS_PER_S         /* a helper without a program waits for the next one */
#define TAG_DATA    ((uintptr_t)1)       /* tags an event of the data channel */

/** A question that waits for room in the channel, with a duplicate of its descriptor. */
struct outgoing {
	struct helper_msg m;
	int fd;
	STAILQ_ENTRY(outgoing) link;
};

struct helper {
	uid_t uid;
	int control, data;
	uint32_t nb_pending; /**< questions without an answer */
	uint32_t nb_closing; /**< those of them that close something */
	uint32_t nb_handles; /**< handles that the helper holds */
	uint64_t since_ns;   /**< time at which the oldest question became the next one */
	bool was_late;       /**< its delay has been logged */
	bool has_begun;      /**< the process runs, so it may have fetched messages */
	uint64_t end_ns;     /**< when it is to end; SAN_TIME_NEVER: its user has an application */
	bool is_ending;      /**< it was asked to end */
	bool has_ended;      /**< its process has ended */
	STAILQ_HEAD(, outgoing) outgoing;
	LIST_ENTRY(helper) link;
};

static struct {
	int forker;
	pid_t pid; /* of the forking process */
	int epoll;
	const struct helper_ops *ops;
	struct apps *apps;
	uint32_t nb;
	bool is_over; /* the forking process has ended */
	LIST_HEAD(, helper) all;
	int *unclosed; /* descriptors that another process is to close */
	uint32_t nb_unclosed;
} helpers;

int
san_helper_begin(const struct harden_user *user, bool seccomp)
{
	helpers.forker = san_helper_fork_init(user, seccomp, &helpers.pid);
	return helpers.forker < 0 ? helpers.forker : 0;
}

void
san_helper_avoid_lcores(void)
{
	unsigned int lcore;
	cpu_set_t cpus, of;

	if (sched_getaffinity(helpers.pid, sizeof(cpus), &cpus) != 0)
		return;
	RTE_LCORE_FOREACH_WORKER(lcore) {
		of = rte_lcore_cpuset(lcore);
		CPU_AND(&of, &of, &cpus);
		CPU_XOR(&cpus, &cpus, &of);
	}
	if (CPU_COUNT(&cpus) != 0)
		sched_setaffinity(helpers.pid, sizeof(cpus), &cpus);
}

int
san_helper_open(const struct helper_ops *ops, struct apps *all)
{
	helpers.ops = ops;
	helpers.apps = all;
	helpers.epoll = epoll_create1(EPOLL_CLOEXEC);
	return helpers.epoll < 0 ? -errno : helpers.epoll;
}

bool
san_helper_are_there(void)
{
	return !helpers.is_over;
}

uid_t
san_helper_uid(const struct helper *h)
{
	return h->uid;
}

/* ---- start and end of a helper ---- */

static struct helper *
helper_find(uid_t uid)
{
	struct helper *h;

	LIST_FOREACH(h, &helpers.all, link)
		if (h->uid == uid && !h->has_ended)
			return h;
	return NULL;
}

/*
 * Ask a helper to end that has been unused for UNUSED_NS: a program that comes and goes must not
 * cost a process each time (SYS-13). epoll reports its end. Returns when to call again.
 */
static uint64_t
end_unused(struct helper *h, uint64_t now_ns)
{
	if (h->is_ending || h->nb_handles != 0 || h->nb_pending != 0)
		return SAN_TIME_NEVER;
	if (now_ns < h->end_ns || h->end_ns == SAN_TIME_NEVER)
		return h->end_ns;
	h->is_ending = true;
	shutdown(h->control, SHUT_WR);
	return SAN_TIME_NEVER;
}

void
san_helper_leave(uid_t uid)
{
	struct helper *h = helper_find(uid);

	if (h != NULL)
		h->end_ns = san_engine_clock_monotonic() + UNUSED_NS;
}

/* Free a helper whose process has ended. */
static void
helper_discard(struct helper *h)
{
	struct outgoing *o;

	while ((o = STAILQ_FIRST(&h->outgoing)) != NULL) {
		STAILQ_REMOVE_HEAD(&h->outgoing, link);
		if (o->fd >= 0)
			/* it may now be the last reference to its file, and close() may block */
			san_helper_close_fd(o->fd);
		free(o);
	}
	close(h->control);
	close(h->data);
	LIST_REMOVE(h, link);
	helpers.nb--;
	free(h);
}

static struct helper *
helper_start(uid_t uid)
{
	struct helper *h = calloc(1, sizeof(*h));
	int rc = h == NULL ? -ENOMEM : san_helper_fork(helpers.forker, uid, &h->control, &h->data);

	if (rc != 0) {
		helpers.is_over |= rc == -EPIPE;
		LOG_OF(uid, ERR, "uid=%u: no helper: %s", uid, strerror(-rc));
		free(h);
		return NULL;
	}
	h->uid = uid;
	h->end_ns = san_engine_clock_monotonic() + UNUSED_NS;
	STAILQ_INIT(&h->outgoing);
	LIST_INSERT_HEAD(&helpers.all, h, link);
	helpers.nb++;
	rc = san_fd_watch(helpers.epoll, h->control, EPOLLIN, h);
	if (rc == 0)
		rc = san_fd_watch(helpers.epoll, h->data, EPOLLIN,
				  (void *)((uintptr_t)h | TAG_DATA));
	if (rc == 0)
		return h;
	helper_discard(h);
	return NULL;
}

struct helper *
san_helper_of(uid_t uid, bool has_app)
{
	struct helper *h = helper_find(uid), *idle;

	if (h == NULL && helpers.nb == HELPERS_MAX) {
		/* end those without work: the next question starts them again */
		LIST_FOREACH(idle, &helpers.all, link) {
			if (idle->nb_handles == 0 && idle->nb_pending == 0)
				idle->end_ns = 0;
			end_unused(idle, 0);
		}
		LOG_OF(uid, WARNING, "uid=%u: no helper: all %u are in use", uid, helpers.nb);
	}
	if (h == NULL && helpers.nb < HELPERS_MAX)
		h = helper_start(uid);
	if (h == NULL || h->is_ending)
		return NULL;
	if (has_app)
		h->end_ns = SAN_TIME_NEVER;
	return h;
}

/* ---- questions ---- */

static bool
is_closing(uint32_t op)
{
	return op == HELPER_CLOSE || op == HELPER_DISCARD;
}

static int
put_off(struct helper *h, const struct helper_msg *m, int fd)
{
	struct outgoing *o = malloc(sizeof(*o));
	int own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (o == NULL || (fd >= 0 && own < 0)) {
		san_fd_close(own);
		free(o);
		return o == NULL ? -ENOMEM : -EMFILE;
	}
	o->m = *m;
	o->fd = own;
	STAILQ_INSERT_TAIL(&h->outgoing, o, link);
	return 0;
}

int
san_helper_ask(struct helper *h, const struct helper_msg *m, int fd)
{
	int rc = STAILQ_EMPTY(&h->outgoing) ? san_shmq_send(h->control, m, sizeof(*m), fd, false) :
					      -EAGAIN;

	if (rc == -EAGAIN || (rc != 0 && fd < 0))
		rc = put_off(h, m, fd); /* also if it has ended: epoll reports that soon */
	if (rc != 0)
		return rc;
	if (h->nb_pending++ == 0)
		h->since_ns = san_engine_clock_monotonic();
	h->nb_closing += is_closing(m->op);
	return 0;
}

void
san_helper_close(struct helper *h, int32_t handle)
{
	const struct helper_msg m = {.op = HELPER_CLOSE, .handle = handle};

	if (san_helper_ask(h, &m, -1) != 0)
		LOG_OF(h->uid, ERR, "uid=%u: no memory to close handle=%d", h->uid, handle);
}

void
san_helper_send(struct helper *h, const struct helper_dgram *d, const void *data, size_t len)
{
	struct iovec iov[2] = {{(void *)(uintptr_t)d, sizeof(*d)},
			       {(void *)(uintptr_t)data, len}};
	const struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	sendmsg(h->data, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- answers ---- */

static void
helper_hear_msg(struct helper *h, const struct helper_msg *m, int fd)
{
	h->has_begun = true;
	if (m->op != HELPER_BEGUN && m->op != HELPER_CHANGED) { /* they answer no question */
		h->nb_pending--;
		h->nb_closing -= is_closing(m->op);
		h->since_ns = san_engine_clock_monotonic();
	}
	if (m->op == HELPER_FETCH && m->handle >= 0)
		h->nb_handles++;
	if (m->op == HELPER_CLOSE)
		h->nb_handles--;
	if (h->was_late)
		LOG_OF(h->uid, NOTICE, "uid=%u: its helper answers again", h->uid);
	h->was_late = false;
	if (m->op != HELPER_BEGUN)
		helpers.ops->on_answer(helpers.apps, h, m, fd);
}

static void
hear_control(struct helper *h)
{
	struct helper_msg m;
	int i, fd, rc = 0;

	for (i = 0; i < ANSWERS_MAX && rc == 0; i++) {
		rc = san_shmq_recv(h->control, &m, sizeof(m), &fd, false);
		if (rc == -EPROTO)
			rc = 0; /* the descriptor was lost: the daemon's limit is reached */
		if (rc == 0)
			helper_hear_msg(h, &m, fd);
	}
	h->has_ended |= rc != 0 && rc != -EAGAIN;
}

static void
hear_data(const struct helper *h)
{
	static uint8_t in[sizeof(struct helper_dgram) + HELPER_DGRAM];
	struct helper_dgram d;
	ssize_t n;
	int i;

	for (i = 0; i < ANSWERS_MAX; i++) {
		n = san_shmq_recv_bytes(h->data, in, sizeof(in), 0);
		if (n < (ssize_t)sizeof(d))
			return;
		memcpy(&d, in, sizeof(d));
		helpers.ops->dgram(helpers.apps, &d, in + sizeof(d), (uint32_t)n - sizeof(d));
	}
}

/*
 * Free helpers that have ended. Called after all events of epoll_wait(), which may refer to them.
 */
static void
helper_reap(void)
{
	struct helper *h, *next;

	for (h = LIST_FIRST(&helpers.all); h != NULL; h = next) {
		next = LIST_NEXT(h, link);
		if (!h->has_ended)
			continue;
		if (!h->is_ending) {
			LOG_OF(h->uid, ERR, "uid=%u: its helper has ended", h->uid);
			helpers.ops->ended(helpers.apps, h, h->has_begun);
		}
		helper_discard(h);
	}
}

void
san_helper_serve(void)
{
	struct epoll_event ev[EVENTS];
	int i, n = epoll_wait(helpers.epoll, ev, EVENTS, 0);

	for (i = 0; i < n; i++) {
		uintptr_t what = (uintptr_t)ev[i].data.ptr;
		struct helper *h = (struct helper *)(what & ~TAG_DATA);

		if ((what & TAG_DATA) != 0)
			hear_data(h);
		else
			hear_control(h);
	}
	helper_reap();
}

bool
san_helper_is_late(const struct helper *h, uint64_t now_ns)
{
	return h->nb_pending != 0 && now_ns > h->since_ns && now_ns - h->since_ns >= HELPER_LATE_NS;
}

bool
san_helper_are_closing(uid_t uid)
{
	const struct helper *h = helper_find(uid);

	return h != NULL && h->nb_closing != 0;
}

/* ---- closing of descriptors ---- */

/* Close *sock* if no descriptors lie in its queue. Returns true if closed. */
static bool
close_empty(int sock)
{
	struct shmq_req any;
	bool has_fds;
	int rc;

	while ((rc = san_shmq_peek(sock, &any, sizeof(any), &has_fds, NULL)) == 0 ||
	       rc == -EPROTO) {
		if (has_fds)
			return false;
		san_shmq_skip(sock);
	}
	close(sock);
	return true;
}

void
san_helper_close_fd(int fd)
{
	int *all = realloc(helpers.unclosed, (helpers.nb_unclosed + 1) * sizeof(*all));

	if (all == NULL)
		return; /* the descriptor leaks: there is no alternative */
	all[helpers.nb_unclosed++] = fd;
	helpers.unclosed = all;
}

void
san_helper_hang_up(int sock)
{
	san_shmq_hang_up(sock);
	if (!close_empty(sock))
		san_helper_close_fd(sock);
}

/* Start a process that closes the next descriptors. False: none are left, or try later. */
static bool
close_some(void)
{
	uint32_t nb = RTE_MIN(helpers.nb_unclosed, (uint32_t)HELPER_CLOSE_MAX), i;
	int *fds = helpers.unclosed, first, last;

	if (nb == 0)
		return false;
	first = fds[0];
	last = san_helper_fork_close(helpers.forker, fds, nb);
	if (last < 0 && last != -EAGAIN && nb > 1)
		last = san_helper_fork_close(helpers.forker, fds, nb = 1);
	if (last == -EAGAIN)
		return false;
	for (i = 0; i < nb && last >= 0; i++)
		close(fds[i]); /* the other process holds a reference to the file */
	san_fd_close(last);
	helpers.nb_unclosed -= last >= 0 ? nb : 1;
	memmove(fds, &fds[last >= 0 ? nb : 1], helpers.nb_unclosed * sizeof(*fds));
	if (last < 0) /* retry it after the others */
		fds[helpers.nb_unclosed++] = first;
	return last >= 0;
}

/* ---- timeouts ---- */

uint64_t
san_helper_step(uint64_t now_ns)
{
	uint64_t due_ns = SAN_TIME_NEVER;
	struct outgoing *o;
	struct helper *h;
	bool waits;

	while (close_some())
		;
	waits = helpers.nb_unclosed != 0;
	LIST_FOREACH(h, &helpers.all, link) {
		while ((o = STAILQ_FIRST(&h->outgoing)) != NULL &&
		       san_shmq_send(h->control, &o->m, sizeof(o->m), o->fd, false) == 0) {
			STAILQ_REMOVE_HEAD(&h->outgoing, link);
			san_fd_close(o->fd); /* the message holds a reference to the file */
			free(o);
		}
		waits |= o != NULL;
		due_ns = san_time_min(due_ns, end_unused(h, now_ns));
		if (h->was_late || !san_helper_is_late(h, now_ns))
			continue;
		LOG_OF(h->uid, WARNING,
		       "uid=%u: a descriptor of its programs holds up its helper; requests with "
		       "descriptors wait",
		       h->uid);
		h->was_late = true;
	}
	helper_reap();
	return waits ? san_time_min(due_ns, now_ns + AGAIN_NS) : due_ns;
}
