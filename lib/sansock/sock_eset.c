/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * An epoll set is *ours* if this process has created it and a single thread waits for it, by
 * epoll_wait(). That thread checks the carried sockets itself, in the memory that it shares with
 * the lcore. It checks other descriptors by the kernel, now and then and before it sleeps. It
 * sleeps in the kernel. The kernel's set also contains the carried sockets, with a number of ours
 * (a cookie) in place of the program's data. While the thread sleeps, each carried socket is
 * *armed*, as in poll() (sock_shm.h). Changes by epoll_ctl() are passed to the kernel only before
 * the thread sleeps, because some programs change the events of a socket with each answer that they
 * send.
 *
 * Any other use gives the set to the kernel for good: a second thread waits for it, it gets a
 * second descriptor, it is put into another set or passed to poll() or select(), it has more than
 * NEAR sockets, or another process gets it. The kernel then has the program's own data, the sockets
 * stay armed, and the library keeps no state of the set. If a call that is not intercepted creates
 * a set, the set is the kernel's from the beginning.
 *
 * With EPOLLET a socket is reported if it has changed since it was last checked: data has arrived,
 * the socket has ended, it has room again, or a write was refused.
 *
 * A child process also has its parent's sets, but few children use them. A child that uses a set
 * gives it to the kernel and sets a flag in shared memory. Then the parent gives it to the kernel,
 * too.
 */

#include <sys/auxv.h>
#include <sys/mman.h>

#include "sock_priv.h"

#define SETS  64
#define FRESH 255 /* in set_at: created here, without carried sockets yet */
#define ITEMS 4096
#define NEAR  256 /* sockets that are checked one by one */
#define READ  ((uint32_t)EPOLLIN | EPOLLRDNORM)
#define ROOM  ((uint32_t)EPOLLOUT | EPOLLWRNORM)

static struct sock_eset sets[SETS];
static struct sock_eitem items[ITEMS];
static _Atomic uint8_t set_at[SOCK_FDS]; /* number of the set + 1; FRESH; 0: the kernel's */
static _Atomic uint32_t nb_set_at;       /* numbers from this on are 0 */
static _Atomic uint16_t hint;
static struct san_sock_lock sets_lock; /* held to find a free set */
static _Atomic uint8_t *used;          /* one flag for each set; a child makes new ones */

/* ---- cookies ---- */

/* A value that programs do not use: no pointer, no small number. Children use the same. */
static uint64_t
eset_cookie_of(uint16_t number)
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
san_sock_eset_is_cookie(uint64_t data)
{
	return (data & ~0xffffull) == eset_cookie_of(0);
}

/* ---- sets ---- */

static uint8_t
what_is_at(int epfd)
{
	return (unsigned int)epfd < SOCK_FDS ? atomic_load(&set_at[epfd]) : 0;
}

struct sock_eset *
san_sock_eset_of(int epfd)
{
	uint8_t at = what_is_at(epfd);

	return at != 0 && at != FRESH ? &sets[at - 1] : NULL;
}

void
san_sock_eset_note_new(int epfd)
{
	uint32_t nb = atomic_load(&nb_set_at), need = (uint32_t)epfd + 1;

	if (need > SOCK_FDS || san_sock_box_is_closed() || !san_sock_fd_is_us())
		return;
	while (nb < need && !atomic_compare_exchange_weak(&nb_set_at, &nb, need))
		;
	atomic_store(&set_at[epfd], FRESH);
}

/* Find a free set, under sets_lock. A set that is or was the parent's is not free. */
static struct sock_eset *
free_set(void)
{
	struct sock_eset *s;
	void *mem;

	if (used == NULL) {
		mem = mmap(NULL, SETS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		used = mem != MAP_FAILED ? mem : NULL;
	}
	for (s = sets; s < &sets[SETS] && used != NULL; s++)
		if (s->nb == 0 && !s->is_parents && san_sock_eset_of(s->epfd) != s)
			return s;
	return NULL;
}

struct sock_eset *
san_sock_eset_make(int epfd)
{
	uint8_t fresh = FRESH;
	struct sock_eset *s;
	uint32_t key;

	if (what_is_at(epfd) != FRESH || !san_sock_lock_wait(&sets_lock, &key))
		return san_sock_eset_of(epfd);
	s = free_set();
	if (s != NULL) {
		s->epfd = epfd;
		s->thread = s->late = 0;
		s->is_asleep = false;
		s->is_used = &used[s - sets];
		atomic_store(s->is_used, 0);
	}
	/* another thread may have done it first; without a free place the set is the kernel's */
	atomic_compare_exchange_strong(&set_at[epfd], &fresh,
				       s != NULL ? (uint8_t)(s - sets + 1) : 0);
	san_sock_lock_unlock(&sets_lock, key);
	return san_sock_eset_of(epfd);
}

/* ---- items, under the lock of their set ---- */

static uint16_t
number_of(const struct sock_eitem *it)
{
	return (uint16_t)(it - items + 1);
}

static struct sock_eitem *
take_item(struct fd_sock *f)
{
	struct fd_sock *none = NULL;
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
item_of(const struct sock_eset *s, const struct fd_sock *f, int fd)
{
	struct sock_eitem *it = san_sock_eset_item(s, atomic_load(&f->item));

	return it != NULL && it->fd == fd && atomic_load(&it->f) == f ? it : NULL;
}

struct sock_eitem *
san_sock_eset_item(const struct sock_eset *s, uint32_t number)
{
	struct sock_eitem *it = number != 0 && number <= ITEMS ? &items[number - 1] : NULL;

	return it != NULL && atomic_load(&it->f) != NULL && &sets[it->set] == s ? it : NULL;
}

/* Append the item: it is checked last. */
static void
link_item(struct sock_eset *s, struct sock_eitem *it)
{
	uint16_t number = number_of(it);

	it->set = (uint8_t)(s - sets);
	it->next = it->prev = number;
	if (s->nb++ == 0) {
		s->first = number;
		return;
	}
	it->next = s->first;
	it->prev = items[s->first - 1].prev;
	items[it->prev - 1].next = items[it->next - 1].prev = number;
}

static void
arm_item(struct sock_eitem *it, bool is_armed)
{
	if (it->is_armed != is_armed)
		atomic_fetch_add(&atomic_load(&it->f)->shm->armed, is_armed ? 1u : -1u);
	it->is_armed = is_armed;
}

static void
eset_item_drop(struct sock_eset *s, struct sock_eitem *it)
{
	struct fd_sock *f = atomic_load(&it->f);

	arm_item(it, false);
	items[it->prev - 1].next = it->next;
	items[it->next - 1].prev = it->prev;
	if (s->first == number_of(it))
		s->first = it->next;
	s->nb--;
	atomic_store(&f->item, 0);
	atomic_store(&it->f, NULL);
	san_sock_fd_put(f);
}

void
san_sock_eset_arm(struct sock_eset *s, bool is_asleep)
{
	struct sock_eitem *it = san_sock_eset_item(s, s->first);
	uint32_t left;

	s->is_asleep = is_asleep;
	for (left = s->nb; left != 0; left--, it = &items[it->next - 1])
		arm_item(it, is_asleep);
	/* pairs with the fence of san_sock_mirror(): the lcore sees *armed*, or we the record */
	atomic_thread_fence(memory_order_seq_cst);
}

static bool
has_changed(uint32_t *was, uint32_t is)
{
	bool has = *was != is;

	*was = is;
	return has;
}

bool
san_sock_eset_has_edge(struct sock_eitem *it)
{
	struct fd_sock *f = atomic_load(&it->f);
	struct san_sock_shm *shm = f->shm;
	bool room = (it->events & ROOM) != 0 && san_sock_shm_has_room(shm, f->tx_bytes);
	/* each value fits its bits */
	uint32_t ends = (atomic_load(&shm->fin) != 0) | (atomic_load(&shm->orphaned) != 0) << 1 |
		(atomic_load(&shm->error) != 0) << 2 | atomic_load(&shm->shut) << 4 |
		atomic_load(&shm->state) << 8;
	bool has = it->is_new || (room && (!it->had_room || it->nb_refused != f->nb_refused));

	it->is_new = false;
	it->had_room = room;
	it->nb_refused = f->nb_refused;
	has |= has_changed(&it->ends, ends);
	has |= has_changed(&it->nb_errors, f->nb_errors) && atomic_load(&shm->error) != 0;
	has |= has_changed(&it->rx_tail, atomic_load(&shm->rx_tail)) && (it->events & READ) != 0;
	return has;
}

static void
eset_item_sync(struct sock_eset *s, struct sock_eitem *it)
{
	/* EPOLLONESHOT is implemented here */
	struct epoll_event ev = {
		it->is_off ? EPOLLONESHOT : it->events & ~(uint32_t)EPOLLONESHOT,
		{.u64 = eset_cookie_of(number_of(it))},
	};

	if (it->is_out) {
		REAL(epoll_ctl, s->epfd, EPOLL_CTL_DEL, it->fd, NULL);
		eset_item_drop(s, it);
	} else if (it->known != ev.events) {
		it->known = ev.events;
		REAL(epoll_ctl, s->epfd, EPOLL_CTL_MOD, it->fd, &ev);
	}
}

void
san_sock_eset_sync(struct sock_eset *s)
{
	struct sock_eitem *it = san_sock_eset_item(s, s->first), *next;
	uint32_t left;

	for (left = s->nb; left != 0; left--, it = next) {
		next = &items[it->next - 1];
		eset_item_sync(s, it);
	}
}

/* Give the item to the kernel, with the program's events and data. */
static int
eset_item_hand_over(struct sock_eset *s, struct sock_eitem *it, struct epoll_event *ev)
{
	int rc = REAL(epoll_ctl, s->epfd, EPOLL_CTL_MOD, it->fd, ev);

	if (rc != 0)
		return rc;
	san_sock_ring_arm(it->f, ev->events, true);
	eset_item_drop(s, it);
	return 0;
}

void
san_sock_eset_give(struct sock_eset *s)
{
	struct epoll_event ev;
	struct sock_eitem *it;

	atomic_store(&set_at[s->epfd], 0);
	if (s->is_parents)
		atomic_store(s->is_used, 1);
	while ((it = san_sock_eset_item(s, s->first)) != NULL && s->nb != 0) {
		ev = (struct epoll_event){it->is_off ? EPOLLONESHOT : it->events,
					  {.u64 = it->data}};
		if (it->is_out)
			eset_item_sync(s, it);
		else if (eset_item_hand_over(s, it, &ev) != 0)
			eset_item_drop(s, it); /* the descriptor has been closed */
	}
}

/* ---- epoll_ctl ---- */

static int
eset_ctl_by_kernel(int epfd, int op, int fd, struct fd_sock *f, struct epoll_event *ev)
{
	int rc = REAL(epoll_ctl, epfd, op, fd, ev);

	if (rc == 0 && op != EPOLL_CTL_DEL)
		san_sock_ring_arm(f, ev->events, op == EPOLL_CTL_ADD);
	return rc;
}

/* If the waiting thread sleeps, wake it for events that are there already. */
static void
eset_item_wake(const struct sock_eset *s, struct sock_eitem *it)
{
	if (!s->is_asleep)
		return;
	arm_item(it, true);
	atomic_thread_fence(memory_order_seq_cst);
	if (san_sock_ring_has_something(it->f->shm))
		san_sock_attach_doorbell(it->f);
}

/* Store new events and data of the program. */
static void
eset_item_set(struct sock_eitem *it, const struct epoll_event *ev)
{
	it->data = ev->data.u64;
	it->events = ev->events;
	it->is_out = it->is_off = false;
	it->is_new = true;
	if ((ev->events & EPOLLET) != 0)
		atomic_store(&it->f->shm->edges, 1);
}

static int
eset_item_add(struct sock_eset *s, int fd, struct fd_sock *f, struct epoll_event *ev)
{
	struct epoll_event ours = {ev->events & ~(uint32_t)EPOLLONESHOT, {.u64 = 0}};
	uint32_t none = 0;
	struct sock_eitem *it;

	/* EPOLLEXCLUSIVE cannot be changed later, and only one set may check a socket */
	if ((ev->events & EPOLLEXCLUSIVE) != 0 || (it = take_item(f)) == NULL)
		return eset_ctl_by_kernel(s->epfd, EPOLL_CTL_ADD, fd, f, ev);
	if (!atomic_compare_exchange_strong(&f->item, &none, number_of(it))) {
		atomic_store(&it->f, NULL);
		return eset_ctl_by_kernel(s->epfd, EPOLL_CTL_ADD, fd, f, ev);
	}
	ours.data.u64 = eset_cookie_of(number_of(it));
	if (REAL(epoll_ctl, s->epfd, EPOLL_CTL_ADD, fd, &ours) != 0) {
		atomic_store(&f->item, 0);
		atomic_store(&it->f, NULL);
		return -1;
	}
	san_sock_fd_hold(f);
	eset_item_set(it, ev);
	it->known = ours.events;
	it->fd = fd;
	it->is_armed = false;
	link_item(s, it);
	eset_item_wake(s, it);
	if (s->nb > NEAR)
		san_sock_eset_give(s);
	return 0;
}

static int
eset_item_change(struct sock_eset *s, int op, int fd, struct fd_sock *f, struct epoll_event *ev)
{
	struct sock_eitem *it = item_of(s, f, fd);
	bool is_in = it != NULL && !it->is_out;

	if (it == NULL)
		return op == EPOLL_CTL_ADD ? eset_item_add(s, fd, f, ev) :
					     eset_ctl_by_kernel(s->epfd, op, fd, f, ev);
	if (op == EPOLL_CTL_ADD ? is_in : !is_in)
		return san_sock_real_fail(is_in ? EEXIST : ENOENT);
	if (op == EPOLL_CTL_DEL) {
		it->is_out = true;
		if (s->is_asleep)
			eset_item_sync(s, it);
		return 0;
	}
	if ((ev->events & EPOLLEXCLUSIVE) != 0)
		return eset_item_hand_over(s, it, ev); /* the kernel returns its error */
	eset_item_set(it, ev);
	if (s->is_asleep) {
		it->known = ~ev->events; /* always differs, so the thread is woken */
		eset_item_sync(s, it);
	}
	eset_item_wake(s, it);
	return 0;
}

int
san_sock_eset_ctl(int epfd, int op, int fd, struct fd_sock *f, struct epoll_event *ev)
{
	bool is_known = op == EPOLL_CTL_ADD || op == EPOLL_CTL_MOD || op == EPOLL_CTL_DEL;
	struct sock_eset *s = op == EPOLL_CTL_ADD ? san_sock_eset_make(epfd) :
						    san_sock_eset_of(epfd);
	uint32_t key;
	int rc;

	if (s != NULL && san_sock_eset_is_shared(s)) {
		san_sock_eset_expose(epfd);
		s = NULL;
	}
	if (s == NULL || !is_known ||
	    (op != EPOLL_CTL_DEL && san_sock_touch_is_bad(ev, sizeof(*ev))) ||
	    !san_sock_lock_wait(&s->lock, &key))
		return eset_ctl_by_kernel(epfd, op, fd, f, ev);
	/* another thread may have given the set to the kernel meanwhile */
	rc = san_sock_eset_of(epfd) == s ? eset_item_change(s, op, fd, f, ev) :
					   eset_ctl_by_kernel(epfd, op, fd, f, ev);
	san_sock_lock_unlock(&s->lock, key);
	return rc;
}

/* ---- descriptors and processes ---- */

void
san_sock_eset_expose(int fd)
{
	uint8_t fresh = FRESH;
	struct sock_eset *s;
	uint32_t key;

	if (what_is_at(fd) == 0 || atomic_compare_exchange_strong(&set_at[fd], &fresh, 0))
		return;
	s = san_sock_eset_of(fd);
	if (s == NULL || !san_sock_lock_wait(&s->lock, &key))
		return;
	if (san_sock_eset_of(fd) == s)
		san_sock_eset_give(s);
	san_sock_lock_unlock(&s->lock, key);
}

/* Remove the descriptor *fd* of *f* from its set. Other processes may keep the socket. */
static void
eset_leave_all(int fd, struct fd_sock *f)
{
	uint32_t number = atomic_load(&f->item), key;
	struct sock_eitem *it = number != 0 ? &items[number - 1] : NULL;
	struct sock_eset *s;

	if (it == NULL || it->fd != fd)
		return;
	s = &sets[it->set];
	if (!s->is_parents)
		REAL(epoll_ctl, s->epfd, EPOLL_CTL_DEL, fd, NULL);
	if (!san_sock_lock_wait(&s->lock, &key)) {
		/*
		 * This is a signal handler, which has interrupted the owner of the lock. The next
		 * change to the kernel's set drops the item.
		 */
		it->fd = -1;
		it->is_out = true;
		return;
	}
	it = item_of(s, f, fd);
	if (it != NULL)
		eset_item_drop(s, it);
	san_sock_lock_unlock(&s->lock, key);
}

/*
 * *fd* is closed or replaced. *f* is its carried socket; NULL: it is something else. If it is the
 * only descriptor of a set, the set ends.
 */
static void
eset_on_fd_leaves(int fd, struct fd_sock *f)
{
	struct sock_eset *s = san_sock_eset_of(fd);
	uint32_t key;
	bool is_locked = s != NULL && san_sock_lock_wait(&s->lock, &key);

	if (what_is_at(fd) != 0)
		atomic_store(&set_at[fd], 0);
	while (is_locked && s->nb != 0)
		eset_item_drop(s, &items[s->first - 1]);
	if (is_locked)
		san_sock_lock_unlock(&s->lock, key);
	if (f != NULL)
		eset_leave_all(fd, f);
}

void
san_sock_eset_leave(int fd)
{
	HELD struct fd_sock *f = san_sock_fd_get(fd);

	if (f != NULL)
		eset_leave_all(fd, f);
}

void
san_sock_eset_hold(void)
{
	struct sock_eitem *it;

	for (it = items; it < &items[ITEMS]; it++)
		if (atomic_load(&it->f) != NULL)
			san_sock_fd_hold(it->f);
}

/* Give sets without carried sockets to the kernel: parent or child may use them. */
void
san_sock_eset_share(void)
{
	uint32_t fd, nb = atomic_load(&nb_set_at);
	uint8_t fresh;

	for (fd = 0; fd < nb; fd++) {
		fresh = FRESH;
		atomic_compare_exchange_strong(&set_at[fd], &fresh, 0);
	}
}

void
san_sock_eset_begin_child(void)
{
	struct sock_eitem *it;
	struct sock_eset *s;

	san_sock_eset_share(); /* another thread may have created a set since */
	memset(&sets_lock, 0, sizeof(sets_lock));
	used = NULL;
	for (s = sets; s < &sets[SETS]; s++) {
		memset(&s->lock, 0, sizeof(s->lock));
		s->is_parents |= san_sock_eset_of(s->epfd) == s;
		s->is_asleep = false;
	}
	for (it = items; it < &items[ITEMS]; it++)
		it->is_armed = false;
}

static __attribute__((constructor)) void
eset_begin(void)
{
	sock_fd_leaves = eset_on_fd_leaves;
}
