/* SPDX-License-Identifier: BSD-3-Clause */

/* Pulls (remote reads) from any place in the server's region, which never changes. */

#include <stdio.h>

#include "mode.h"

static uint64_t
region_bytes(const struct hello *h)
{
	return san_net_slots_bytes(h, san_net_stride(h->size_max));
}

/* Offset of message *i*: any byte, so that reads are unaligned. */
static uint64_t
pull_offset(const struct client_conn *c, uint64_t i, uint32_t len)
{
	const struct hello *h = &c->client->hello;

	return san_content_base(h->seed + 1, c->index, i) % (region_bytes(h) - len + 1);
}

static int
pull_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr, struct rtsan_sge *sge)
{
	const struct hello *h = &c->client->hello;
	uint32_t len = san_content_size(h->seed, c->index, i, h->size_min, h->size_max);

	*sge = (struct rtsan_sge){
		.addr = san_client_slot(c, i),
		.length = len,
		.lkey = c->client->lkey,
	};
	*wr = (struct rtsan_send_wr){
		.opcode = RTSAN_WR_PULL,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = sge,
		.remote_addr = c->peer.addr + pull_offset(c, i, len),
		.rkey = c->peer.rkey,
	};
	return 0;
}

static const char *
pull_complete(struct client_conn *c, uint64_t i, const struct rtsan_wc *wc)
{
	const struct hello *h = &c->client->hello;
	uint32_t len = san_content_size(h->seed, c->index, i, h->size_min, h->size_max);

	if (wc->byte_len != len)
		return "a pull has the wrong length";
	if ((h->flags & HELLO_VERIFY) != 0 &&
	    san_content_check(san_content_base(h->seed, c->index, 0), pull_offset(c, i, len),
			      san_client_slot(c, i), len) >= 0)
		return "a pull has the wrong content";
	return NULL;
}

static void
pull_serve(struct peer *p)
{
	san_content_fill(san_content_base(p->hello.seed, p->index, 0), 0, p->mem,
			 region_bytes(&p->hello));
}

/* The client has checked the data. Check that the region is unchanged. */
static void
pull_end(struct peer *p)
{
	p->msgs = p->end_msgs;
	p->bytes = p->end_bytes;
	if ((p->hello.flags & HELLO_VERIFY) != 0 &&
	    san_content_check(san_content_base(p->hello.seed, p->index, 0), 0, p->mem,
			      region_bytes(&p->hello)) >= 0)
		san_server_peer_error(p, "a pull changed the region");
}

const struct bench_mode mode_pull = {
	.name = "pull",
	.help = "remote reads from the server's memory",
	.id = MODE_PULL,
	.rights = RTSAN_REMOTE_PULL,
	.size = 4096,
	.depth = 32,
	.conns = 1,
	.fill = pull_fill,
	.complete = pull_complete,
	.serve = pull_serve,
	.end = pull_end,
};
