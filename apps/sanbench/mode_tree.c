/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Copies a file tree from the client to the server: as sends, as pushes into slots of the server,
 * or pulled by the server from slots of the client. Message *i* is piece *i* of the stream of all
 * files; see tree.h.
 */

#include <inttypes.h>
#include <string.h>

#include "mode.h"

static const char *
tree_check(const struct bench_conf *conf)
{
	if (conf->size_min != conf->size_max)
		return "--size: trees are cut into pieces of one size";
	if (conf->conns != 1)
		return "--conns: a tree takes one connection";
	if (conf->peer[0] != '\0' && conf->tree[0] == '\0')
		return "--tree: is missing: which folder?";
	return NULL;
}

static uint32_t
piece_len(uint64_t total, uint64_t i, uint32_t size)
{
	uint64_t left = total - i * size;

	return left < size ? (uint32_t)left : size;
}

/* Read piece *i* into its slot after *skip* bytes. Returns its length, or 0 on failure. */
static uint32_t
tree_load(struct client_conn *c, uint64_t i, uint32_t skip)
{
	struct client *cl = c->client;
	uint32_t len = piece_len(san_tree_list_bytes(cl->tree), i, cl->hello.size_max);
	int ret;

	ret = san_tree_list_read(cl->tree, i * cl->hello.size_max, san_client_slot(c, i) + skip,
				 len);
	if (ret < 0) {
		san_client_fail(cl, "%s: %s", cl->conf.tree, strerror(-ret));
		return 0;
	}
	return len;
}

static int
tree_fill_send(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr, struct rtsan_sge *sge)
{
	uint32_t len = tree_load(c, i, sizeof(i));

	memcpy(san_client_slot(c, i), &i, sizeof(i));
	*sge = (struct rtsan_sge){
		.addr = san_client_slot(c, i),
		.length = (uint32_t)sizeof(i) + len,
		.lkey = c->client->lkey,
	};
	*wr = (struct rtsan_send_wr){
		.opcode = RTSAN_WR_SEND,
		.flags = san_mode_wr_flags(&c->client->conf),
		.nb_sge = 1,
		.sge = sge,
	};
	return len > 0 ? 0 : -1;
}

static int
tree_fill_push(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr, struct rtsan_sge *sge)
{
	uint32_t len = tree_load(c, i, 0), size = c->client->hello.size_max;

	*sge = (struct rtsan_sge){
		.addr = san_client_slot(c, i),
		.length = len,
		.lkey = c->client->lkey,
	};
	*wr = (struct rtsan_send_wr){
		.opcode = RTSAN_WR_PUSH,
		.flags = san_mode_wr_flags(&c->client->conf),
		.nb_sge = 1,
		.sge = sge,
		.remote_addr = c->peer.addr +
			(uint64_t)san_net_slot(&c->client->hello, i) * san_net_stride(size),
		.rkey = c->peer.rkey,
	};
	return len > 0 ? 0 : -1;
}

/* Nothing is posted: the server pulls the piece. */
static int
tree_fill_pull(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr, struct rtsan_sge *sge)
{
	sge->length = tree_load(c, i, 0);
	wr->sge = sge;
	return sge->length > 0 ? 0 : -1;
}

static void
mode_tree_write_piece(struct peer *p, uint64_t i, const uint8_t *buf, uint32_t len)
{
	int ret = san_tree_write_file(p->session->out, i * p->hello.size_max, buf, len);

	if (ret < 0)
		san_server_session_error(p->session, "piece %" PRIu64 ": %s", i, strerror(-ret));
	p->bytes += len;
}

static void
tree_on_recv(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf)
{
	uint64_t i;

	if (wc->byte_len <= sizeof(i)) {
		san_server_session_error(p->session, "a piece without content");
		return;
	}
	memcpy(&i, buf, sizeof(i));
	if (!san_content_seen_add(p->seen, i)) {
		san_server_session_error(p->session, "piece %" PRIu64 " came twice", i);
		return;
	}
	mode_tree_write_piece(p, i, buf + sizeof(i), wc->byte_len - (uint32_t)sizeof(i));
	p->looked = p->seen->base;
}

static void
tree_on_slot(struct peer *p, uint64_t i, const uint8_t *slot)
{
	uint64_t total = san_tree_write_bytes(p->session->out);

	if (i * p->hello.size_max >= total) {
		san_server_session_error(p->session, "piece %" PRIu64 " is beyond the end", i);
		return;
	}
	p->msgs++;
	mode_tree_write_piece(p, i, slot, piece_len(total, i, p->hello.size_max));
}

static void
tree_end(struct peer *p)
{
	if (p->looked != p->end_msgs || p->bytes != p->end_bytes ||
	    p->bytes != san_tree_write_bytes(p->session->out))
		san_server_session_error(
			p->session,
			"%" PRIu64 " bytes written, %" PRIu64 " sent, %" PRIu64 " announced",
			p->bytes, p->end_bytes, san_tree_write_bytes(p->session->out));
}

const struct bench_mode mode_tree_send = {
	.name = "tree-send",
	.help = "copy a file tree to the server by sends",
	.id = MODE_TREE_SEND,
	.flags = MODE_TREE | MODE_RECVS,
	.size = 65536,
	.depth = 16,
	.conns = 1,
	.check = tree_check,
	.fill = tree_fill_send,
	.on_recv = tree_on_recv,
	.end = tree_end,
};

const struct bench_mode mode_tree_push = {
	.name = "tree-push",
	.help = "copy a file tree to the server by pushes",
	.id = MODE_TREE_PUSH,
	.flags = MODE_TREE | MODE_SLOTS,
	.rights = RTSAN_REMOTE_PUSH,
	.size = 65536,
	.depth = 16,
	.conns = 1,
	.check = tree_check,
	.fill = tree_fill_push,
	.on_slot = tree_on_slot,
	.end = tree_end,
};

const struct bench_mode mode_tree_pull = {
	.name = "tree-pull",
	.help = "copy a file tree to the server, which pulls",
	.id = MODE_TREE_PULL,
	.flags = MODE_TREE | MODE_SERVER_PULLS,
	.size = 65536,
	.depth = 16,
	.conns = 1,
	.check = tree_check,
	.fill = tree_fill_pull,
	.on_slot = tree_on_slot,
	.end = tree_end,
};
