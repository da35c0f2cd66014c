/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "app_conv.h"

const struct rtsan_stream_attr *
san_app_conv_stream(const struct shmq_stream *from, struct rtsan_stream_attr *to)
{
	if (from->given == 0)
		return NULL;
	*to = (struct rtsan_stream_attr){
		.mode = from->mode,
		.read = from->read,
		.linger = from->linger != 0,
		.learn = from->learn,
		.scans = from->scans,
		.nb_recv = from->nb_recv,
		.nb_store = from->nb_store,
		.nb_send = from->nb_send,
		.t1 = from->t1,
		.t2 = from->t2,
		.frags = from->frags,
		.threshold = from->threshold,
		.msg_size = from->msg_size,
		.msg_max = from->msg_max,
		.send_buffer = from->send_buffer,
		.scan_us = from->scan_us,
		.hold_us = from->hold_us,
		.gather_us = from->gather_us,
	};
	return to;
}

void
san_app_conv_nets(const struct app_port *port, struct shmq_ctl *ctl)
{
	const struct san_inet_conf *conf = &san_engine_conf_of(port->ctx->port)->core.inet;
	uint32_t i;

	for (i = 0; i < conf->nb_addrs; i++, ctl->nb_addrs++) {
		memcpy(ctl->nets[i].ip, conf->addrs[i].ip.b, sizeof(ctl->nets[i].ip));
		ctl->nets[i].prefix_len = conf->addrs[i].prefix_len;
	}
	ctl->nb_nets = ctl->nb_addrs;
	for (i = 0; i < conf->nb_routes; i++) {
		struct shmq_net *net = &ctl->nets[ctl->nb_nets++];

		memcpy(net->ip, conf->routes[i].to.ip.b, sizeof(net->ip));
		net->prefix_len = conf->routes[i].to.prefix_len;
	}
}
