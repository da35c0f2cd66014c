/* SPDX-License-Identifier: BSD-3-Clause */

/* Adds, names and deletes sockets, and wakes threads that wait in the kernel. (UDP-6, UDP-7) */

#include <errno.h>

#include <rte_common.h>

#include "san_assert.h"
#include "sock_priv.h"

#define PORTS 65536u

int
san_sock_table_create(struct san_mem *mem, uint32_t max, struct san_socks **out)
{
	struct san_socks *all = san_mem_aligned(mem, sizeof(*all));
	uint32_t i;

	if (all == NULL)
		return -ENOMEM;
	all->mem = mem;
	all->max = max;
	all->socks = san_mem_calloc(mem, max, sizeof(*all->socks));
	all->ports = san_mem_calloc(mem, PORTS, sizeof(*all->ports));
	if (all->ports == NULL ||
	    san_pool_create(&all->free, mem, all->socks, max, sizeof(*all->socks))) {
		san_sock_table_destroy(all);
		return -ENOMEM;
	}
	for (i = 0; i < PORTS; i++)
		all->ports[i] = SOCK_NONE;
	LIST_INIT(&all->woken);
	TAILQ_INIT(&all->works);
	*out = all;
	return 0;
}

void
san_sock_table_destroy(struct san_socks *all)
{
	struct san_mem *mem = all->mem;

	san_pool_destroy(&all->free, mem);
	san_mem_end(mem, all->ports);
	san_mem_end(mem, all->socks);
	san_mem_end(mem, all);
}

void
san_sock_table_set_device(struct san_socks *all, uint32_t if_index)
{
	all->if_index = if_index;
}

int
san_sock_add(struct san_socks *all, struct san_sock_shm *shm, uint32_t rx_bytes, uint32_t tx_bytes,
	     int wake_fd, uint32_t *id)
{
	struct san_sock *s;

	if (all->free.nb == 0)
		return -ENOSPC;
	s = san_pool_take(&all->free);
	*id = san_sock_id(all, s);
	*s = (struct san_sock){
		.shm = shm,
		.rx = san_sock_shm_rx_ring(shm),
		.tx = san_sock_shm_tx_ring(shm, rx_bytes),
		.rx_mask = rx_bytes - 1,
		.tx_mask = tx_bytes - 1,
		.next = SOCK_NONE,
		.wake_fd = wake_fd,
		.stream = {.qp = SAN_QPN_NONE},
	};
	return 0;
}

void
san_sock_del(struct san_socks *all, uint32_t id)
{
	struct san_sock *s = &all->socks[id];

	SAN_VERIFY(id < all->max && s->shm != NULL);
	san_sock_find_unlink(all, s);
	if (s->is_woken)
		LIST_REMOVE(s, wake_link);
	if (s->is_work)
		TAILQ_REMOVE(&all->works, s, work_link);
	s->shm = NULL;
	san_pool_give(&all->free, s);
}

void
san_sock_name(struct san_socks *all, uint32_t id, const struct san_sock_names *names)
{
	struct san_sock *s = &all->socks[id];
	const struct san_sock_names *was = &s->names;
	/* An option keeps the place: senders stay with their socket of those that share a port. */
	bool keeps = was->port == names->port && was->peer_port == names->peer_port &&
		san_wire_ip_eq(&was->local, &names->local) &&
		san_wire_ip_eq(&was->peer, &names->peer);

	if (!keeps)
		san_sock_find_unlink(all, s);
	s->names = *names;
	s->nb_tx_named = s->stats.nb_tx;
	if (!keeps)
		san_sock_find_link(all, s);
}

bool
san_sock_uses_link(const struct san_socks *all, uint32_t id)
{
	const struct san_sock *s = &all->socks[id];

	return s->names.peer_port != 0 && s->stats.nb_tx != s->nb_tx_named;
}

const struct san_sock_stats *
san_sock_stats(const struct san_socks *all, uint32_t id)
{
	return &all->socks[id].stats;
}

/* Whether nothing more can be read from the stream. The kernel must then report it readable. */
static bool
sock_has_end(const struct san_sock *s)
{
	return s->stream.has_fin ||
		(san_sock_is_stream(s) &&
		 (atomic_load_explicit(&s->shm->shut, memory_order_relaxed) & (SHUT_RD + 1)) != 0);
}

void
san_sock_mirror(struct san_socks *all, struct san_sock *s, bool is_new)
{
	uint32_t unnotified = SAN_SOCK_UNNOTIFIED;

	/* pairs with the fence of an arming program: it sees the record, or we *armed* (AFC-19) */
	atomic_thread_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&s->shm->armed, memory_order_relaxed) == 0))
		return;
	is_new = is_new && atomic_load_explicit(&s->shm->edges, memory_order_relaxed) != 0;
	is_new = is_new || (sock_has_end(s) && !s->stream.fin_notified);
	if ((!atomic_compare_exchange_strong(&s->shm->mirrored, &unnotified, SAN_SOCK_TO_NOTIFY) &&
	     !is_new) ||
	    s->is_woken)
		return;
	s->is_woken = true;
	LIST_INSERT_HEAD(&all->woken, s, wake_link);
}

void
san_sock_mirror_again(struct san_socks *all, struct san_sock *s)
{
	if (atomic_load_explicit(&s->shm->rx_head, memory_order_acquire) != s->rx_tail ||
	    s->stream.has_fin || s->stream.is_over ||
	    atomic_load_explicit(&s->shm->error, memory_order_relaxed) != 0 ||
	    atomic_load_explicit(&s->shm->shut, memory_order_relaxed) != 0)
		san_sock_mirror(all, s, false);
}

int
san_sock_wake_next(struct san_socks *all, bool *ends)
{
	uint32_t state;
	struct san_sock *s;

	while (unlikely((s = LIST_FIRST(&all->woken)) != NULL)) {
		LIST_REMOVE(s, wake_link);
		s->is_woken = false;
		state = SAN_SOCK_TO_NOTIFY;
		*ends = sock_has_end(s);
		if (*ends) { /* the end of a stream stays */
			s->stream.fin_notified = true;
			atomic_store(&s->shm->mirrored, SAN_SOCK_NOTIFIED);
			return s->wake_fd;
		}
		/* a program may have read all data since */
		if (atomic_compare_exchange_strong(&s->shm->mirrored, &state, SAN_SOCK_NOTIFIED) ||
		    state == SAN_SOCK_NOTIFIED)
			return s->wake_fd;
	}
	return -1;
}

void
san_sock_doorbell(struct san_socks *all, uint32_t id)
{
	struct san_sock *s = &all->socks[id];

	if (id >= all->max || s->shm == NULL || s->is_work)
		return;
	s->is_work = true;
	TAILQ_INSERT_TAIL(&all->works, s, work_link);
}

void
san_sock_doorbell_all(struct san_socks *all)
{
	uint32_t i;

	for (i = 0; i < all->max; i++)
		san_sock_doorbell(all, i);
}

void
san_sock_on_room(struct san_socks *all, struct san_sock *s)
{
	/* no fence: a thread that begins to wait now is not seen, but checks again by itself */
	if (likely(atomic_load_explicit(&s->shm->full, memory_order_relaxed) == 0) ||
	    !san_sock_shm_need_not_wait(s->shm, s->tx_mask + 1))
		return;
	atomic_store_explicit(&s->shm->full, 0, memory_order_relaxed);
	all->has_room = true;
}

bool
san_sock_table_has_room(struct san_socks *all)
{
	bool has = all->has_room;

	all->has_room = false;
	return has;
}

bool
san_sock_table_has_work(const struct san_socks *all)
{
	return !TAILQ_EMPTY(&all->works);
}
