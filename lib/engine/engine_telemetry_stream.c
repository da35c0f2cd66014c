/* SPDX-License-Identifier: BSD-3-Clause */

/* A telemetry command for one stream: how it moves bytes, and why. (AFC-6, AFC-14) */

#include <errno.h>
#include <stdio.h>

#include "engine_priv.h"
#include "engine_telemetry.h"

struct one {
	uint32_t cid;
	uint64_t now_ns;
	struct san_stream_view view;
};

/* Only on its lcore, which may free the session at any time. */
static int
do_stream(struct san_engine *e, void *arg)
{
	const struct san_pdl_conn *c;
	const struct san_stream *s;
	struct one *one = arg;

	if (!e->launched)
		return -ENOTSUP;
	c = san_pdl_conn_find(san_core_pdl(e->core), one->cid);
	s = c != NULL ? san_engine_show_stream_of(e, c) : NULL;
	if (s == NULL)
		return -ENOENT;
	one->now_ns = e->now_ns;
	san_stream_show_view(s, &one->view);
	return 0;
}

static void
add_bytes(struct rte_tel_data *d, const struct san_stream_stats *st)
{
	rte_tel_data_add_dict_u64(d, "tx_message_bytes", st->tx.message);
	rte_tel_data_add_dict_u64(d, "tx_write_bytes", st->tx.write);
	rte_tel_data_add_dict_u64(d, "tx_read_bytes", st->tx.read);
	rte_tel_data_add_dict_u64(d, "rx_message_bytes", st->rx.message);
	rte_tel_data_add_dict_u64(d, "rx_write_bytes", st->rx.write);
	rte_tel_data_add_dict_u64(d, "rx_read_bytes", st->rx.read);
	rte_tel_data_add_dict_u64(d, "tx_messages", st->nb_tx_msgs);
	rte_tel_data_add_dict_u64(d, "rx_messages", st->nb_rx_msgs);
	rte_tel_data_add_dict_u64(d, "updates", st->nb_updates);
	rte_tel_data_add_dict_u64(d, "advertisements", st->nb_advs);
	rte_tel_data_add_dict_u64(d, "advertisements_stale", st->nb_stale);
	rte_tel_data_add_dict_u64(d, "offers", st->nb_offers);
	rte_tel_data_add_dict_u64(d, "fallbacks", st->nb_fallbacks);
	rte_tel_data_add_dict_u64(d, "resizes", st->nb_resizes);
	rte_tel_data_add_dict_u64(d, "resizes_refused", st->nb_resizes_refused);
	rte_tel_data_add_dict_u64(d, "no_buffers", st->nb_no_buffers);
	rte_tel_data_add_dict_u64(d, "stalls_credit", st->nb_stall_credit);
	rte_tel_data_add_dict_u64(d, "stalls_store", st->nb_stall_store);
	rte_tel_data_add_dict_u64(d, "stalls_buffers", st->nb_stall_buffers);
	rte_tel_data_add_dict_u64(d, "stalls_set", st->nb_stall_set);
}

/* Texts like "1234567890: discovery > large (learnt)", oldest first. */
static int
add_changes(struct rte_tel_data *d, const struct san_stream_view *v)
{
	struct rte_tel_data *array = rte_tel_data_alloc();
	char text[RTE_TEL_MAX_STRING_LEN];
	uint32_t i;

	if (array == NULL)
		return -ENOMEM;
	rte_tel_data_start_array(array, RTE_TEL_STRING_VAL);
	for (i = 0; i < v->nb_change && i < SAN_STREAM_EVENTS; i++) {
		snprintf(text, sizeof(text), "%llu: %s > %s (%s)",
			 (unsigned long long)v->change[i].at_ns,
			 san_stream_show_mode_name(v->change[i].from),
			 san_stream_show_mode_name(v->change[i].to),
			 san_stream_show_why_name(v->change[i].why));
		rte_tel_data_add_array_string(array, text);
	}
	return rte_tel_data_add_dict_container(d, "changes", array, 0);
}

int
san_engine_telemetry_stream(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	const struct san_stream_view *v;
	struct one one = {0};
	const char *rest;
	uint32_t lcore;
	int rc;

	rest = san_engine_telemetry_conn_number(params, 0xffffff, &one.cid);
	if (rest == NULL || rest[0] != '\0')
		return san_engine_telemetry_error(d, "stream: the parameter is a CID");
	lcore = san_pdl_cid_lcore(one.cid);
	rc = lcore < p->nb_engines ? san_engine_loop_read(p->engines[lcore], do_stream, &one) :
				     -ENOENT;
	if (rc == -ENOTSUP)
		return san_engine_telemetry_error(d, "stream: this program polls itself");
	if (rc != 0)
		return san_engine_telemetry_error(d, "there is no stream with this CID");
	v = &one.view;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "mode", san_stream_show_mode_name(v->mode));
	rte_tel_data_add_dict_string(d, "peer_mode", san_stream_show_mode_name(v->peer_mode));
	rte_tel_data_add_dict_u64(d, "time_ns", one.now_ns);
	rte_tel_data_add_dict_u64(d, "threshold", v->threshold);
	rte_tel_data_add_dict_u64(d, "message_size", v->msg_size);
	rte_tel_data_add_dict_u64(d, "peer_message_size", v->peer_msg_size);
	rte_tel_data_add_dict_u64(d, "credit", v->credit);
	rte_tel_data_add_dict_u64(d, "peer_credit", v->peer_credit);
	rte_tel_data_add_dict_u64(d, "unread_bytes", v->nb_unread_bytes);
	rte_tel_data_add_dict_u64(d, "sends", v->nb_sends);
	rte_tel_data_add_dict_u64(d, "recvs", v->nb_recvs);
	add_bytes(d, &v->stats);
	return add_changes(d, v);
}
