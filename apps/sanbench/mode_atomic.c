/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Atomics on 8-byte words of the server (RT-30). Each connection has a word of its own, and every
 * fourth request uses a word that all share. On an ordered connection requests to the own word
 * alternate between fetch-and-add and compare-and-swap, and every old value is known in advance. On
 * an unordered one the sum of the old values proves that each addition was executed once.
 */

#include <inttypes.h>
#include <string.h>

#include "mode.h"

#define SHARED_EVERY 4

static bool
mode_atomic_is_shared(uint64_t i)
{
	return i % SHARED_EVERY == SHARED_EVERY - 1;
}

/* Number of requests below *i* that use the own word. */
static uint64_t
own_before(uint64_t i)
{
	return i - i / SHARED_EVERY;
}

static const char *
atomic_check(const struct bench_conf *conf)
{
	return conf->size_min != 8 || conf->size_max != 8 ? "--size: atomics have 8 bytes" : NULL;
}

static int
atomic_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr, struct rtsan_sge *sge)
{
	*sge = (struct rtsan_sge){
		.addr = san_client_slot(c, i),
		.length = 8,
		.lkey = c->client->lkey,
	};
	*wr = (struct rtsan_send_wr){
		.opcode = RTSAN_WR_FETCH_ADD,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = sge,
		.remote_addr = c->peer.addr,
		.rkey = c->peer.rkey,
		.operand = 1,
	};
	if (mode_atomic_is_shared(i)) {
		wr->remote_addr = c->peer.shared_addr;
		wr->rkey = c->peer.shared_rkey;
	} else if (c->client->conf.order == RTSAN_ORDERED && own_before(i) % 2 == 1) {
		wr->opcode = RTSAN_WR_CMP_SWAP;
		wr->operand = own_before(i);
		wr->swap = own_before(i) + 1;
	}
	return 0;
}

static const char *
atomic_complete(struct client_conn *c, uint64_t i, const struct rtsan_wc *wc)
{
	uint64_t old;

	(void)wc;
	memcpy(&old, san_client_slot(c, i), sizeof(old));
	if (mode_atomic_is_shared(i)) {
		c->client->shared++;
		return NULL;
	}
	if (c->client->conf.order == RTSAN_ORDERED && old != own_before(i))
		return "an atomic returned an old value that it can't have met";
	c->value++;
	c->sum += old;
	return NULL;
}

static void
atomic_end(struct peer *p)
{
	uint64_t value;

	memcpy(&value, p->mem, sizeof(value));
	p->msgs = p->end_msgs;
	p->bytes = p->end_bytes;
	if (value != own_before(p->end_msgs))
		san_server_peer_error(p, "counter is %" PRIu64 " and not %" PRIu64, value,
				      own_before(p->end_msgs));
	if (p->end_value != value * (value - 1) / 2)
		san_server_peer_error(p, "old values are not 0 to %" PRIu64,
				      value - 1);
}

const struct bench_mode mode_atomic = {
	.name = "atomic",
	.help = "fetch-and-add and compare-and-swap on the server's memory",
	.id = MODE_ATOMIC,
	.flags = MODE_SHARED,
	.rights = RTSAN_REMOTE_ATOMIC,
	.size = 8,
	.depth = 32,
	.conns = 1,
	.check = atomic_check,
	.fill = atomic_fill,
	.complete = atomic_complete,
	.end = atomic_end,
};
