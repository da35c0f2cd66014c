/* SPDX-License-Identifier: BSD-3-Clause */

/* A table to read: streams, how they move bytes, and why. (AFC-6, AFC-14) */

#include <inttypes.h>

#include "engine_priv.h"

const struct san_stream *
san_engine_show_stream_of(const struct san_engine *e, const struct san_pdl_conn *c)
{
	return san_core_stream(e->core, san_ulp_qp_of(san_core_ulp(e->core), c->slot));
}

static void
show_bytes(const char *what, const struct san_stream_bytes *b, FILE *f)
{
	fprintf(f, "    %s bytes: %" PRIu64 " message, %" PRIu64 " write, %" PRIu64 " read\n", what,
		b->message, b->write, b->read);
}

static void
show_counts(const struct san_stream_stats *st, FILE *f)
{
	show_bytes("tx", &st->tx, f);
	show_bytes("rx", &st->rx, f);
	fprintf(f, "    messages %" PRIu64 " tx, %" PRIu64 " rx, credit updates %" PRIu64 "\n",
		st->nb_tx_msgs, st->nb_rx_msgs, st->nb_updates);
	fprintf(f, "    advertisements %" PRIu64 ", stale %" PRIu64 ", read offers %" PRIu64,
		st->nb_advs, st->nb_stale, st->nb_offers);
	fprintf(f, ", fallbacks %" PRIu64 "\n", st->nb_fallbacks);
	fprintf(f, "    resizes %" PRIu64 ", refused %" PRIu64 "\n", st->nb_resizes,
		st->nb_resizes_refused);
	fprintf(f, "    stalls: credit %" PRIu64 ", store %" PRIu64 ", buffers %" PRIu64,
		st->nb_stall_credit, st->nb_stall_store, st->nb_stall_buffers);
	fprintf(f, ", set %" PRIu64 "; no buffers %" PRIu64 "\n", st->nb_stall_set,
		st->nb_no_buffers);
}

static void
show_one(const struct san_engine *e, const struct san_pdl_conn *c, const struct san_stream *s,
	 FILE *f)
{
	struct san_stream_view v;
	uint32_t i;

	san_stream_show_view(s, &v);
	fprintf(f, "  cid 0x%06x tx %s, rx %s, threshold %u, message size %u, peer's %u\n", c->cid,
		san_stream_show_mode_name(v.mode), san_stream_show_mode_name(v.peer_mode),
		v.threshold, v.msg_size, v.peer_msg_size);
	fprintf(f, "    credit %u, peer's %u, unread %u, sends %u, receives %u\n", v.credit,
		v.peer_credit, v.nb_unread_bytes, v.nb_sends, v.nb_recvs);
	show_counts(&v.stats, f);
	for (i = 0; i < v.nb_change; i++)
		fprintf(f, "    %" PRIu64 " us ago: %s > %s (%s)\n",
			(uint64_t)((e->now_ns - v.change[i].at_ns) / SAN_NS_PER_US),
			san_stream_show_mode_name(v.change[i].from),
			san_stream_show_mode_name(v.change[i].to),
			san_stream_show_why_name(v.change[i].why));
}

void
san_engine_show_stream_list(struct san_engine *e, FILE *f)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	const struct san_stream *s;
	uint32_t i;

	fprintf(f, "%u streams\n", san_core_stream_nb(e->core));
	for (i = 0; i < pdl->conf.max_conns; i++) {
		if (pdl->conns[i].state == SAN_CONN_FREE)
			continue;
		s = san_engine_show_stream_of(e, &pdl->conns[i]);
		if (s != NULL)
			show_one(e, &pdl->conns[i], s, f);
	}
}
