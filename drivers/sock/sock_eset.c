/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The kernel knows of each carried socket in a set, with a number of ours (a cookie) in place of
 * the program's data. Who waits looks at the sockets, and at the kernel's other descriptors
 * without waiting; only if there is nothing he sleeps in the kernel. So he is in one of two ways:
 *
 * - *alone*: his sockets are a group (sock_shm.h), and the first that becomes readable wakes him;
 * - or as everybody: sockets are armed, and the kernel is told of each. So it is with more than
 *   NEAR sockets, with edges and other kinds of waiting, with two threads in one set, with sets in
 *   sets, and for sockets that several processes have.
 *
 * What an epoll_ctl() changes the kernel hears when somebody is about to sleep: programs that ask
 * for room only as long as they have something to send change it with each answer.
 */

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "sock_attach.h"
#include "sock_carry.h"
#include "sock_conf.h"
#include "sock_epoll.h"
#include "sock_eset.h"
#include "sock_real.h"
#include "sock_ring.h"
#include "sock_switch.h"

#define SETS     64
#define ITEMS    4096
#define NEAR     256 /* sockets that are looked at one by one */
#define READABLE ((uint32_t)EPOLLIN | EPOLLRDNORM | EPOLLRDHUP)
/* What is not as simple as: readable, writable, for whoever asks. */
#define KINDS ((uint32_t)EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)

static struct sock_eset sets[SETS];
static struct sock_eitem items[ITEMS];
static _Atomic uint8_t set_at[SOCK_FDS]; /* number of the set + 1 */
static _Atomic uint16_t hint;
static struct san_sock_lock sets_lock; /* to find a free one */

/* ---- cookies ---- */

/* Like nothing that a program has: no pointer, no number; the same one in children. */
static uint64_t
cookie(uint16_t number)
{
	static uint64_t base;
	uint64_t random;

	if (base == 0) {
		memcpy(&random, (const void *)getauxval(AT_RANDOM), sizeof(random));
		base = 0xa55a000000000000ull | (random & 0x0000ffffffff0000ull);
	}
	return base | number;
}

bool
sock_eset_is_cookie(uint64_t data)
{
	return (data & ~0xffffull) == cookie(0);
}

/* ---- sets ---- */

struct sock_eset *
sock_eset_of(int epfd)
{
	uint8_t at = (unsigned int)epfd < SOCK_FDS ? atomic_load(&set_at[epfd]) : 0;

	return at != 0 ? &sets[at - 1] : NULL;
}

static struct sock_eset *
make_set(int epfd)
{
	struct sock_eset *s = sock_eset_of(epfd);
	uint32_t key;

	if (s != NULL || (unsigned int)epfd >= SOCK_FDS || sock_lock(&sets_lock, false, &key) < 0)
		return s;
	s = sock_eset_of(epfd);
	if (s != NULL) { /* another thread was faster */
		sock_unlock(&sets_lock, key);
		return s;
	}
	for (s = sets; s < &sets[SETS] && s->nb_fds != 0; s++)
		;
	if (s < &sets[SETS]) {
		*s = (struct sock_eset){.epfd = epfd, .nb_fds = 1};
		atomic_store(&set_at[epfd], (uint8_t)(s - sets + 1));
	}
	sock_unlock(&sets_lock, key);
	return s < &sets[SETS] ? s : NULL;
}

/* ---- items; under the lock of their set ---- */

uint16_t
sock_eset_number(const struct sock_eitem *it)
{
	return (uint16_t)(it - items + 1);
}

static struct sock_eitem *
take_item(struct sock_file *f)
{
	struct sock_file *none = NULL;
	uint16_t i, at = atomic_load(&hint);

	for (i = 0; i < ITEMS; i++, none = NULL) {
		at = (uint16_t)((at + 1) % ITEMS);
		if (atomic_load_explicit(&items[at].f, memory_order_relaxed) == NULL &&
		    atomic_compare_exchange_strong(&items[at].f, &none, f)) {
			atomic_store(&hint, at);
			return &items[at];
		}
	}
	return NULL;
}

static struct sock_eitem *
item_of(const struct sock_eset *s, const struct sock_file *f, int fd)
{
	uint32_t number = atomic_load(&f->item);
	struct sock_eitem *it = number != 0 ? &items[number - 1] : NULL;

	return it != NULL && &sets[it->set] == s && it->fd == fd && atomic_load(&it->f) == f ?
		it :
		NULL;
}

struct sock_eitem *
sock_eset_item(const struct sock_eset *s, uint32_t number)
{
	struct sock_eitem *it = number != 0 && number <= ITEMS ? &items[number - 1] : NULL;

	return it != NULL && atomic_load(&it->f) != NULL && &sets[it->set] == s ? it : NULL;
}

static void
link_item(struct sock_eset *s, struct sock_eitem *it)
{
	it->set = (uint8_t)(s - sets);
	it->prev = 0;
	it->next = s->first;
	if (s->first != 0)
		items[s->first - 1].prev = sock_eset_number(it);
	s->first = sock_eset_number(it);
	s->nb++;
}

static void
unlink_item(struct sock_eset *s, struct sock_eitem *it)
{
	if (it->prev != 0)
		items[it->prev - 1].next = it->next;
	else
		s->first = it->next;
	if (it->next != 0)
		items[it->next - 1].prev = it->prev;
	s->nb--;
}

void
sock_eset_first(struct sock_eset *s, struct sock_eitem *it)
{
	unlink_item(s, it);
	link_item(s, it);
}

/* ---- groups ---- */

static bool
is_in_group(const struct sock_eitem *it)
{
	return !it->is_armed && !it->is_out && (it->events & READABLE) != 0;
}

void
sock_eset_fall_asleep(const struct sock_eset *s)
{
	if (s->head != 0)
		atomic_store(&items[s->head - 1].f->shm->asleep, SAN_SOCK_ASLEEP);
	/* pairs with the fence of san_sock_mirror(): it sees that we sleep, or we what there is */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Another thread, who sleeps: the next one wakes him, and what is there already. */
static void
sleep_on(const struct sock_eset *s)
{
	const struct sock_eitem *it;

	sock_eset_fall_asleep(s);
	for (SOCK_ESET_EACH(s, it))
		if (sock_has_something(it->f->shm))
			sock_bell(it->f);
}

void
sock_eset_wake(struct sock_eset *s)
{
	atomic_store(&s->is_waited, false);
	if (s->head != 0)
		atomic_store(&items[s->head - 1].f->shm->asleep, SAN_SOCK_AWAKE);
}

/* All that may be are in one group, whose head is any of them. */
static void
regroup(struct sock_eset *s)
{
	struct sock_eitem *it;
	uint32_t group = 0;

	s->head = 0;
	for (SOCK_ESET_EACH(s, it)) {
		if (is_in_group(it) && s->head == 0) {
			s->head = sock_eset_number(it);
			group = it->f->id + 1;
			atomic_store(&it->f->shm->asleep, SAN_SOCK_AWAKE);
		}
		atomic_store(&it->f->shm->group, is_in_group(it) ? group : 0);
	}
	if (atomic_load(&s->is_waited))
		sleep_on(s);
}

static void
leave_group(struct sock_eset *s, struct sock_eitem *it)
{
	atomic_store(&it->f->shm->group, 0);
	if (s->head == sock_eset_number(it))
		regroup(s);
}

static void
join_group(struct sock_eset *s, struct sock_eitem *it)
{
	if (!is_in_group(it))
		return;
	if (s->head == 0)
		regroup(s);
	else
		atomic_store(&it->f->shm->group, items[s->head - 1].f->id + 1);
}

/* From now on the kernel is told of it. */
static void
arm_item(struct sock_eset *s, struct sock_eitem *it)
{
	if (it->is_armed || it->is_out)
		return;
	it->is_armed = true;
	sock_arm(it->f, it->events & ~(uint32_t)EPOLLET);
	leave_group(s, it);
}

static void
drop(struct sock_eset *s, struct sock_eitem *it)
{
	struct sock_file *f = atomic_load(&it->f);

	unlink_item(s, it);
	leave_group(s, it);
	atomic_store(&f->item, 0);
	if (atomic_load(&s->is_waited))
		sleep_on(s); /* it may be what was to wake him */
	atomic_store(&it->f, NULL);
	sock_put(f);
}

void
sock_eset_tell_kernel(struct sock_eset *s)
{
	struct sock_eitem *it, *next;
	struct epoll_event ev;

	for (it = sock_eset_item(s, s->first); it != NULL; it = next) {
		next = sock_eset_item(s, it->next);
		if (it->is_out) {
			REAL(epoll_ctl)
			(s->epfd, EPOLL_CTL_DEL, it->fd, NULL);
			drop(s, it);
		} else if (it->known != it->events) {
			it->known = it->events;
			ev = (struct epoll_event){it->events,
						  {.u64 = cookie(sock_eset_number(it))}};
			REAL(epoll_ctl)
			(s->epfd, EPOLL_CTL_MOD, it->fd, &ev);
		}
	}
}

void
sock_eset_be_everybody(struct sock_eset *s)
{
	struct sock_eitem *it;

	if (atomic_load(&s->is_everybody))
		return;
	atomic_store(&s->is_everybody, true);
	sock_eset_tell_kernel(s);
	for (SOCK_ESET_EACH(s, it))
		arm_item(s, it);
}

/* ---- epoll_ctl ---- */

static int
by_kernel(int epfd, int op, int fd, struct sock_file *f, struct epoll_event *ev)
{
	int rc = REAL(epoll_ctl)(epfd, op, fd, ev);

	if (rc == 0 && op != EPOLL_CTL_DEL)
		sock_arm(f, ev->events);
	return rc;
}

static int
add(struct sock_eset *s, int fd, struct sock_file *f, struct epoll_event *ev)
{
	struct epoll_event ours = *ev;
	uint32_t none = 0;
	struct sock_eitem *it;

	/* in one set only, and of one process only, it is looked at */
	if ((ev->events & KINDS) != 0 || atomic_load(&f->shm->group) != 0 ||
	    (it = take_item(f)) == NULL)
		return by_kernel(s->epfd, EPOLL_CTL_ADD, fd, f, ev);
	if (!atomic_compare_exchange_strong(&f->item, &none, sock_eset_number(it))) {
		atomic_store(&it->f, NULL);
		return by_kernel(s->epfd, EPOLL_CTL_ADD, fd, f, ev);
	}
	ours.data.u64 = cookie(sock_eset_number(it));
	if (REAL(epoll_ctl)(s->epfd, EPOLL_CTL_ADD, fd, &ours) != 0) {
		atomic_store(&f->item, 0);
		atomic_store(&it->f, NULL);
		return -1;
	}
	sock_hold(f);
	it->data = ev->data.u64;
	it->events = it->known = ev->events;
	it->fd = fd;
	it->is_out = it->is_armed = false;
	link_item(s, it);
	if (s->nb > NEAR)
		sock_eset_be_everybody(s);
	if (atomic_load(&s->is_everybody) || f->is_stdio)
		arm_item(s, it);
	else
		join_group(s, it);
	if (sock_has_something(f->shm))
		sock_bell(f); /* another thread may sleep there */
	return 0;
}

/* What is not simple any more is the kernel's from now on. */
static int
hand_over(struct sock_eset *s, struct sock_eitem *it, struct epoll_event *ev)
{
	int rc = REAL(epoll_ctl)(s->epfd, EPOLL_CTL_MOD, it->fd, ev);

	if (rc != 0)
		return rc;
	sock_arm(it->f, ev->events);
	drop(s, it);
	return 0;
}

/* Its events are others. Somebody who sleeps there hears of it now. */
static int
modify(struct sock_eset *s, struct sock_eitem *it, struct epoll_event *ev)
{
	if ((ev->events & KINDS) != 0)
		return hand_over(s, it, ev);
	it->data = ev->data.u64;
	if (it->events == ev->events && !it->is_out)
		return 0;
	it->events = ev->events;
	it->is_out = false;
	if (atomic_load(&s->is_everybody))
		arm_item(s, it);
	else if (is_in_group(it))
		join_group(s, it);
	else
		leave_group(s, it);
	if (atomic_load(&s->is_everybody) || atomic_load(&s->is_waited))
		sock_eset_tell_kernel(s);
	if (atomic_load(&s->is_waited))
		sleep_on(s);
	return 0;
}

static int
take_out(struct sock_eset *s, struct sock_eitem *it)
{
	it->is_out = true;
	leave_group(s, it);
	if (atomic_load(&s->is_everybody) || atomic_load(&s->is_waited))
		sock_eset_tell_kernel(s);
	return 0;
}

static int
change(struct sock_eset *s, int op, int fd, struct sock_file *f, struct epoll_event *ev)
{
	struct sock_eitem *it = item_of(s, f, fd);
	bool is_in = it != NULL && !it->is_out;

	if (it == NULL)
		return op == EPOLL_CTL_ADD ? add(s, fd, f, ev) :
					     by_kernel(s->epfd, op, fd, f, ev);
	if (op == EPOLL_CTL_ADD ? is_in : !is_in) {
		errno = is_in ? EEXIST : ENOENT;
		return -1;
	}
	return op == EPOLL_CTL_DEL ? take_out(s, it) : modify(s, it, ev);
}

int
sock_epoll_ctl(int epfd, int op, int fd, struct sock_file *f, struct epoll_event *ev)
{
	bool is_known = op == EPOLL_CTL_ADD || op == EPOLL_CTL_MOD || op == EPOLL_CTL_DEL;
	struct sock_eset *s = op == EPOLL_CTL_ADD && sock_conf_epoll_alone() ? make_set(epfd) :
									       sock_eset_of(epfd);
	uint32_t key;
	int rc;

	if (s == NULL || !is_known || (op != EPOLL_CTL_DEL && sock_is_bad(ev, sizeof(*ev))) ||
	    sock_lock(&s->lock, false, &key) < 0)
		return by_kernel(epfd, op, fd, f, ev);
	rc = change(s, op, fd, f, ev);
	sock_unlock(&s->lock, key);
	return rc;
}

/* ---- what happens to descriptors and processes ---- */

void
sock_epoll_expose(int fd)
{
	struct sock_eset *s = sock_eset_of(fd);
	uint32_t key;

	if (s == NULL || sock_lock(&s->lock, false, &key) < 0)
		return;
	sock_eset_be_everybody(s);
	sock_unlock(&s->lock, key);
}

void
sock_epoll_dup(int from, int to)
{
	struct sock_eset *s = sock_eset_of(from);
	uint32_t key;

	if (s == NULL || (unsigned int)to >= SOCK_FDS || from == to ||
	    sock_lock(&s->lock, false, &key) < 0)
		return;
	s->nb_fds++;
	atomic_store(&set_at[to], (uint8_t)(s - sets + 1));
	sock_eset_be_everybody(s);
	sock_unlock(&s->lock, key);
}

/* A descriptor of a set was closed: with the last one the set has gone. */
static void
leave_set(int fd, struct sock_eset *s)
{
	struct sock_eitem *it;
	uint32_t key;
	int i;

	if (sock_lock(&s->lock, false, &key) < 0)
		return;
	atomic_store(&set_at[fd], 0);
	for (i = 0; s->epfd == fd && i < (int)SOCK_FDS && s->nb_fds > 1; i++)
		if (sock_eset_of(i) == s)
			s->epfd = i;
	if (s->nb_fds == 1)
		while (s->first != 0) {
			it = &items[s->first - 1];
			drop(s, it);
		}
	s->nb_fds--;
	sock_unlock(&s->lock, key);
}

/* *fd*, which is *f* or none of ours, is not that any more. */
static void
forgotten(int fd, struct sock_file *f)
{
	struct sock_eset *s = sock_eset_of(fd);
	uint32_t number, key;
	struct sock_eitem *it;

	if (s != NULL)
		leave_set(fd, s);
	number = f != NULL ? atomic_load(&f->item) : 0;
	if (number == 0 || items[number - 1].fd != fd)
		return;
	s = &sets[items[number - 1].set];
	if (sock_lock(&s->lock, false, &key) < 0)
		return;
	it = item_of(s, f, fd);
	if (it != NULL) {
		/* others may have the socket: of the set it is none any more */
		REAL(epoll_ctl)
		(s->epfd, EPOLL_CTL_DEL, fd, NULL);
		drop(s, it);
	}
	sock_unlock(&s->lock, key);
}

void
sock_epoll_share(void)
{
	struct sock_eitem *it;
	struct sock_eset *s;
	uint32_t key;

	for (s = sets; s < &sets[SETS]; s++) {
		if (s->nb_fds == 0 || sock_lock(&s->lock, false, &key) < 0)
			continue;
		for (SOCK_ESET_EACH(s, it))
			arm_item(s, it);
		sock_unlock(&s->lock, key);
	}
}

/* Descriptors are about to be sent: carried sockets may be among them. */
void
sock_epoll_sent(const struct msghdr *msg)
{
	struct msghdr m = *msg; /* CMSG_NXTHDR() wants one that may be written */
	struct sock_file *f;
	struct cmsghdr *c;
	size_t at;
	int fd;

	for (c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = CMSG_LEN(0); at + sizeof(fd) <= c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (const char *)c + at, sizeof(fd));
			f = carried(fd);
			if (f == NULL)
				continue;
			sock_put(f);
			sock_epoll_share();
		}
	}
}

void
sock_epoll_begin_child(void)
{
	struct sock_eset *s;

	memset(&sets_lock, 0, sizeof(sets_lock));
	for (s = sets; s < &sets[SETS]; s++) {
		memset(&s->lock, 0, sizeof(s->lock));
		atomic_store(&s->is_waited, false);
	}
}

void
sock_epoll_taken(struct sock_file *f)
{
	uint32_t number = atomic_load_explicit(&f->item, memory_order_relaxed), key;
	struct sock_eset *s;

	if (number == 0)
		return;
	s = &sets[items[number - 1].set];
	if (!atomic_load(&s->is_waited) || sock_lock(&s->lock, false, &key) < 0)
		return;
	if (atomic_load(&s->is_waited))
		sleep_on(s);
	sock_unlock(&s->lock, key);
}

static __attribute__((constructor)) void
begin(void)
{
	sock_fd_leaves = forgotten;
}
