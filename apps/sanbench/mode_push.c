/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pushes (remote writes) into slots of the server's region. With verification the client reports
 * how many are complete, and reuses a slot only after the server has checked it. With immediates
 * each push also consumes a receive.
 */

#include <inttypes.h>

#include "mode.h"

void
san_mode_push_init(struct client_conn *c)
{
	const struct hello *h = &c->client->hello;

	san_content_fill(san_content_base(h->seed, c->index, 0), 0, c->mem,
			 san_net_slots_bytes(h, c->client->stride));
}

int
san_mode_push_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr,
		   struct rtsan_sge *sge)
{
	const struct hello *h = &c->client->hello;
	uint32_t len = san_content_size(h->seed, c->index, i, h->size_min, h->size_max);
	uint8_t *slot = san_client_slot(c, i);

	if ((h->flags & HELLO_VERIFY) != 0)
		san_content_fill(san_content_base(h->seed, c->index, i), 0, slot, len);
	*sge = (struct rtsan_sge){.addr = slot, .length = len, .lkey = c->client->lkey};
	*wr = (struct rtsan_send_wr){
		.opcode = (h->flags & HELLO_IMM) != 0 ? RTSAN_WR_PUSH_IMM : RTSAN_WR_PUSH,
		.flags = san_mode_wr_flags(&c->client->conf),
		.nb_sge = 1,
		.imm = (uint32_t)i,
		.sge = sge,
		.remote_addr = c->peer.addr + (uint64_t)san_net_slot(h, i) * c->client->stride,
		.rkey = c->peer.rkey,
	};
	return 0;
}

void
san_mode_push_on_recv(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf)
{
	/* the immediate has 32 bits of the number, more than messages in flight */
	uint64_t i = p->seen->base + (uint32_t)(wc->imm - (uint32_t)p->seen->base);

	(void)buf;
	if (wc->opcode != RTSAN_WC_RECV_PUSH_IMM || !wc->has_imm) {
		san_server_peer_error(p, "a receive without immediate");
		return;
	}
	if (p->hello.order != RTSAN_UNORDERED && i != p->seen->base)
		san_server_peer_error(p, "immediate %" PRIu64 " in place of %" PRIu64, i,
				      p->seen->base);
	if (!san_content_seen_add(p->seen, i))
		san_server_peer_error(p, "immediate %u came twice", wc->imm);
}

void
san_mode_push_on_slot(struct peer *p, uint64_t i, const uint8_t *slot)
{
	const struct hello *h = &p->hello;
	uint32_t len = san_content_size(h->seed, p->index, i, h->size_min, h->size_max);
	int64_t wrong = san_content_check(san_content_base(h->seed, p->index, i), 0, slot, len);

	p->msgs++;
	p->bytes += len;
	if (wrong >= 0)
		san_server_peer_error(p, "push %" PRIu64 " is wrong at byte %" PRIu64, i,
				      (uint64_t)wrong);
}

void
san_mode_push_end(struct peer *p)
{
	if ((p->hello.flags & HELLO_VERIFY) != 0 &&
	    (p->looked != p->end_msgs || p->bytes != p->end_bytes))
		san_server_peer_error(
			p, "%" PRIu64 " (%" PRIu64 " bytes) of %" PRIu64 " (%" PRIu64 ")",
			p->looked, p->bytes, p->end_msgs, p->end_bytes);
	if ((p->hello.flags & HELLO_IMM) != 0 && p->seen->base != p->end_msgs)
		san_server_peer_error(p, "%" PRIu64 " immediates came, %" PRIu64 " sent",
				      p->seen->count, p->end_msgs);
}

const struct bench_mode mode_push = {
	.name = "push",
	.help = "remote writes into the server's memory",
	.id = MODE_PUSH,
	.flags = MODE_SLOTS | MODE_SAME,
	.rights = RTSAN_REMOTE_PUSH,
	.size = 4096,
	.depth = 32,
	.conns = 1,
	.init = san_mode_push_init,
	.fill = san_mode_push_fill,
	.on_recv = san_mode_push_on_recv,
	.on_slot = san_mode_push_on_slot,
	.end = san_mode_push_end,
};
