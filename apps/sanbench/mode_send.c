/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sends into the server's receives. A message of 8 bytes or more starts with its number, so that
 * unordered connections can be checked as well.
 */

#include <inttypes.h>
#include <string.h>

#include "mode.h"

static const char *
send_check(const struct bench_conf *conf)
{
	if (conf->verify && conf->order == RTSAN_UNORDERED && conf->size_min < 8)
		return "--size: unordered sends that are verified need at least 8 bytes";
	return NULL;
}

static int
send_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr, struct rtsan_sge *sge)
{
	const struct hello *h = &c->client->hello;
	uint32_t len = san_content_size(h->seed, c->index, i, h->size_min, h->size_max);
	uint64_t base = san_content_base(h->seed, c->index, i);
	uint8_t *slot = san_client_slot(c, i);

	if ((h->flags & HELLO_VERIFY) != 0)
		san_content_fill(base, 0, slot, len);
	if (len >= sizeof(i))
		memcpy(slot, &i, sizeof(i));
	*sge = (struct rtsan_sge){.addr = slot, .length = len, .lkey = c->client->lkey};
	*wr = (struct rtsan_send_wr){
		.opcode = RTSAN_WR_SEND,
		.flags = san_mode_wr_flags(&c->client->conf),
		.nb_sge = 1,
		.sge = sge,
	};
	return 0;
}

static void
send_on_recv(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf)
{
	const struct hello *h = &p->hello;
	uint64_t i = p->seen->count, skip = 0;
	int64_t wrong;

	if (wc->byte_len >= sizeof(i)) {
		memcpy(&i, buf, sizeof(i));
		skip = sizeof(i);
	}
	if (h->order != RTSAN_UNORDERED && i != p->seen->base)
		san_server_peer_error(p, "message %" PRIu64 " came in place of %" PRIu64, i,
				      p->seen->base);
	if (!san_content_seen_add(p->seen, i)) {
		san_server_peer_error(p, "message %" PRIu64 " came twice", i);
		return;
	}
	if ((h->flags & HELLO_VERIFY) == 0)
		return;
	if (wc->byte_len != san_content_size(h->seed, p->index, i, h->size_min, h->size_max)) {
		san_server_peer_error(p, "message %" PRIu64 " has %u bytes",
				      i, wc->byte_len);
		return;
	}
	wrong = san_content_check(san_content_base(h->seed, p->index, i), skip, buf + skip,
				  wc->byte_len - skip);
	if (wrong >= 0)
		san_server_peer_error(p, "message %" PRIu64 " is wrong at byte %" PRIu64, i,
				      (uint64_t)wrong + skip);
}

static void
send_end(struct peer *p)
{
	if (p->seen->base != p->end_msgs || p->msgs != p->end_msgs || p->bytes != p->end_bytes)
		san_server_peer_error(
			p, "got %" PRIu64 " (%" PRIu64 " bytes) of %" PRIu64 " (%" PRIu64 ")",
			p->msgs, p->bytes, p->end_msgs, p->end_bytes);
}

const struct bench_mode mode_send = {
	.name = "send",
	.help = "messages into receives that the server posts",
	.id = MODE_SEND,
	.flags = MODE_RECVS,
	.size = 4096,
	.depth = 32,
	.conns = 1,
	.check = send_check,
	.fill = send_fill,
	.on_recv = send_on_recv,
	.end = send_end,
};
