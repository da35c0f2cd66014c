/* SPDX-License-Identifier: BSD-3-Clause */

/* Streams: how they move bytes, and why. (AFC-6, AFC-14) */

#include <errno.h>
#include <inttypes.h>

#include <rte_telemetry.h>

#include "engine_priv.h"
#include "view.h"

#define FIELD(name, member, kind, unit, help) \
	SAN_VIEW_FIELD(struct san_stream_view, name, member, kind, unit, help)

#define STAT(name, member, unit, help) FIELD(name, stats.member, COUNTER, unit, help)

#define OF_STATS(name, unit, help) STAT(name, nb_##name, unit, help),

/* clang-format off */

/** Stream */
static const struct san_view_field fields[] = {
	SAN_VIEW_NOTE(mode, INFO, "", "How this side sends."),
	SAN_VIEW_NOTE(peer_mode, INFO, "", "How the peer sends."),
	SAN_VIEW_NOTE(time_ns, INFO, "ns", "Time of the answer, on the clock of the changes."),
	SAN_VIEW_NOTE(changes, INFO, "", "The last changes of mode, each with time and cause."),
	FIELD(threshold, threshold, GAUGE, "bytes", "Length from which transfers are large."),
	FIELD(message_size, msg_size, GAUGE, "bytes", "Size of own message buffers."),
	FIELD(peer_message_size, peer_msg_size, GAUGE, "bytes", "Size of message buffers there."),
	FIELD(credit, credit, GAUGE, "messages", "Messages that may be sent to the peer now."),
	FIELD(peer_credit, peer_credit, GAUGE, "messages", "Messages that the peer may send now."),
	FIELD(unread_bytes, nb_unread_bytes, GAUGE, "bytes", "Bytes that were not read."),
	FIELD(sends, nb_sends, GAUGE, "requests", "Sends of the program that are not complete."),
	FIELD(recvs, nb_recvs, GAUGE, "requests", "Receives of the program that are not complete."),
	STAT(tx_message_bytes, tx.message, "bytes", "Bytes sent in messages."),
	STAT(tx_write_bytes, tx.write, "bytes", "Bytes sent by writes into the peer's buffers."),
	STAT(tx_read_bytes, tx.read, "bytes", "Bytes sent by reads of the peer."),
	STAT(rx_message_bytes, rx.message, "bytes", "Bytes received in messages."),
	STAT(rx_write_bytes, rx.write, "bytes", "Bytes received by writes of the peer."),
	STAT(rx_read_bytes, rx.read, "bytes", "Bytes received by reads from the peer."),
	SAN_STREAM_COUNTERS(OF_STATS)
};

/* clang-format on */

const struct san_view_set san_view_stream_set = {fields, RTE_DIM(fields)};

struct one {
	uint32_t cid;
	uint64_t now_ns;
	struct san_stream_view view;
};

/** Look at the stream of *c*. Only on its lcore, which may free the session at any time. */
static int
stream_look(const struct san_engine *e, const struct san_pdl_conn *c, struct one *one)
{
	const struct san_stream *s =
		san_core_stream(e->core, san_ulp_qp_of(san_core_ulp(e->core), c->slot));

	if (s == NULL)
		return -ENOENT;
	one->cid = c->cid;
	one->now_ns = e->now_ns;
	san_stream_show_view(s, &one->view);
	return 0;
}

static void
stream_put(struct san_view *v, const struct one *one)
{
	san_view_string(v, "mode", san_stream_show_mode_name(one->view.mode));
	san_view_string(v, "peer_mode", san_stream_show_mode_name(one->view.peer_mode));
	san_view_u64(v, "time_ns", one->now_ns);
	san_view_fields(v, fields, RTE_DIM(fields), &one->view);
}

/** A text like "1234567890: discovery > large (learnt)". The oldest is number 0. */
static const char *
stream_change(const struct one *one, uint32_t i, char text[RTE_TEL_MAX_STRING_LEN])
{
	snprintf(text, RTE_TEL_MAX_STRING_LEN, "%" PRIu64 ": %s > %s (%s)",
		 one->view.change[i].at_ns, san_stream_show_mode_name(one->view.change[i].from),
		 san_stream_show_mode_name(one->view.change[i].to),
		 san_stream_show_why_name(one->view.change[i].why));
	return text;
}

/* ---- text ---- */

int
san_view_stream_text(struct san_engine *e, void *file)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	char text[RTE_TEL_MAX_STRING_LEN];
	FILE *f = file;
	struct san_view v;
	struct one one;
	uint32_t i, k;

	fprintf(f, "%u streams\n", san_core_stream_nb(e->core));
	for (i = 0; i < pdl->conf.max_conns; i++) {
		if (pdl->conns[i].state == SAN_CONN_FREE ||
		    stream_look(e, &pdl->conns[i], &one) != 0)
			continue;
		v = (struct san_view){.text = f};
		v.column = (uint32_t)fprintf(f, "  cid=0x%06x", one.cid);
		stream_put(&v, &one);
		fputc('\n', f);
		for (k = 0; k < one.view.nb_change; k++)
			fprintf(f, "    %s\n", stream_change(&one, k, text));
	}
	return 0;
}

/* ---- telemetry ---- */

static int
do_stream(struct san_engine *e, void *arg)
{
	const struct san_pdl_conn *c;
	struct one *one = arg;

	if (!e->launched)
		return -ENOTSUP;
	c = san_pdl_conn_find(san_core_pdl(e->core), one->cid);
	return c != NULL ? stream_look(e, c, one) : -ENOENT;
}

int
san_view_stream_telemetry(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	struct rte_tel_data *changes;
	char text[RTE_TEL_MAX_STRING_LEN];
	struct one one = {0};
	const char *rest;
	uint32_t lcore, i;
	int rc;

	rest = san_view_telemetry_number(params, 0xffffff, &one.cid);
	if (rest == NULL || rest[0] != '\0')
		return san_view_telemetry_error(d, "stream: the parameter is a CID");
	lcore = san_pdl_cid_lcore(one.cid);
	rc = lcore < p->nb_engines ? san_engine_loop_read(p->engines[lcore], do_stream, &one) :
				     -ENOENT;
	if (rc == -ENOTSUP)
		return san_view_telemetry_error(d, "stream: this program polls itself");
	if (rc != 0)
		return san_view_telemetry_error(d, "there is no stream with this CID");
	stream_put(&(struct san_view){.dict = d}, &one);
	changes = rte_tel_data_alloc();
	if (changes == NULL)
		return -ENOMEM;
	rte_tel_data_start_array(changes, RTE_TEL_STRING_VAL);
	for (i = 0; i < one.view.nb_change; i++)
		rte_tel_data_add_array_string(changes, stream_change(&one, i, text));
	return rte_tel_data_add_dict_container(d, "changes", changes, 0);
}
