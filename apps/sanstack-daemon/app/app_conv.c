/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "app_conv.h"

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
