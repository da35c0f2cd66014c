/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The instance: configuration, creation, destruction, and the queue of frames to send. (RT-31,
 * UDP-3)
 *
 * Timers: of neighbours (inet_neigh.c), of packets in fragments (inet_whole.c), of reports
 * (inet_group.c), of announcements (inet_route.c).
 */

#include "inet_priv.h"
#include "san_time.h"

#define OUT_MAX (1u << 16)

void
san_inet_conf_default(struct san_inet_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->max_neighbours = 1024;
	conf->reachable_ns = 5 * SAN_NS_PER_S;
	conf->retry_ns = 200 * SAN_NS_PER_MS;
	conf->max_retries = 5;
	conf->mtu = 1500;
	conf->max_out = 256;
	conf->max_waiting = 256;
	conf->max_groups = 64;
	conf->max_partial = 64;
	conf->max_frags = 1024;
	conf->max_paths = 64;
	conf->path_ns = 600 * SAN_NS_PER_S;
	conf->answers_per_s = 10000;
	conf->answers_burst = 1000;
}

static bool
inet_is_conf_valid(const struct san_inet_conf *conf)
{
	uint16_t i;

	if (conf->nb_addrs > RTE_DIM(conf->addrs) || conf->nb_routes > RTE_DIM(conf->routes) ||
	    conf->reachable_ns == 0 || conf->retry_ns == 0 || conf->pool == NULL ||
	    conf->max_neighbours == 0 || conf->max_neighbours > 1u << 20 ||
	    conf->max_out > OUT_MAX || !rte_is_power_of_2(conf->max_out) ||
	    conf->max_waiting > OUT_MAX || conf->max_groups == 0 || conf->max_paths == 0 ||
	    conf->answers_per_s == 0 || conf->answers_burst == 0 || conf->mtu < INET_MTU_MIN)
		return false;
	/* all fragments of a datagram must fit; of a received one, in its sender's half */
	if (conf->max_out < INET_NB_FRAGS ||
	    (conf->max_partial != 0 && conf->max_frags < 2 * INET_NB_FRAGS))
		return false;
	for (i = 0; i < conf->nb_addrs; i++) {
		if (!san_inet_is_unicast(&conf->addrs[i].ip) || conf->addrs[i].prefix_len > 128)
			return false;
	}
	for (i = 0; i < conf->nb_routes; i++) {
		const struct san_inet_route *r = &conf->routes[i];

		if (!san_inet_is_unicast(&r->gateway) || r->to.prefix_len > 128 ||
		    san_wire_ip_is_v4(&r->gateway) != san_wire_ip_is_v4(&r->to.ip))
			return false;
	}
	return true;
}

int
san_inet_create(const struct san_inet_conf *conf, struct san_inet **out)
{
	struct san_inet *in;
	uint32_t i;

	if (!inet_is_conf_valid(conf))
		return -EINVAL;
	in = calloc(1, sizeof(*in));
	if (in == NULL)
		return -ENOMEM;
	in->conf = *conf;
	san_prng_seed(&in->prng, conf->prng_seed);
	for (i = 0; i < INET_IDS; i++)
		in->ids[i] = (uint32_t)san_prng_u64(&in->prng);
	in->hash_seed = (uint32_t)san_prng_u64(&in->prng);
	for (i = 0; i < INET_ANSWER_MAX; i++)
		san_inet_rate_init(&in->answers[i], SAN_NS_PER_S / conf->answers_per_s,
				   conf->answers_burst, in->hash_seed + i);
	in->announce_ns = conf->announce && !conf->quiet ? 0 : SAN_TIME_NEVER;
	in->out = calloc(conf->max_out, sizeof(in->out[0]));
	if (in->out == NULL || san_inet_neigh_create(in) != 0 || san_inet_whole_create(in) != 0 ||
	    san_inet_path_create(in) != 0 || san_inet_group_create(in) != 0) {
		san_inet_destroy(in);
		return -ENOMEM;
	}
	*out = in;
	return 0;
}

void
san_inet_destroy(struct san_inet *in)
{
	if (in == NULL)
		return;
	while (in->out_head != in->out_tail)
		rte_pktmbuf_free(in->out[in->out_head++ & (in->conf.max_out - 1)]);
	free(in->groups);
	free(in->paths);
	san_inet_whole_destroy(in);
	san_inet_neigh_destroy(in);
	free(in->out);
	free(in);
}

/* ---- frames to send ---- */

uint32_t
san_inet_out_room(const struct san_inet *in)
{
	return in->conf.max_out - (in->out_tail - in->out_head);
}

struct rte_mbuf *
san_inet_out_alloc(struct san_inet *in)
{
	struct rte_mbuf *m;

	/* A frame that cannot be queued needs no mbuf. */
	if (san_inet_out_room(in) == 0)
		return NULL;
	m = rte_pktmbuf_alloc(in->conf.pool);
	in->drops[SAN_DROP_NO_MBUF] += m == NULL;
	return m;
}

struct rte_mbuf *
san_inet_out_frame(struct san_inet *in, rte_be16_t ether_type, uint32_t len)
{
	struct rte_mbuf *m = san_inet_out_alloc(in);
	struct rte_ether_hdr *eth;

	if (m == NULL)
		return NULL;
	eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, (uint16_t)(INET_ETH_LEN + len));
	if (eth == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	eth->src_addr = in->conf.mac;
	eth->ether_type = ether_type;
	return m;
}

struct rte_mbuf *
san_inet_out_copy(const struct san_inet *in, const struct rte_mbuf *from, uint32_t off,
		  uint32_t len, uint32_t hdr)
{
	struct rte_mbuf *m;

	m = san_inet_out_room(in) != 0 ? rte_pktmbuf_copy(from, in->conf.pool, off, len) : NULL;
	if (m == NULL)
		return NULL;
	if (rte_pktmbuf_prepend(m, (uint16_t)hdr) == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	/* Offload flags of the received packet do not apply to the copy. */
	m->ol_flags = 0;
	m->tx_offload = 0;
	return m;
}

enum san_drop
san_inet_out_add(struct san_inet *in, struct rte_mbuf *m)
{
	if (san_inet_out_room(in) == 0) {
		rte_pktmbuf_free(m);
		return SAN_DROP_TX_FULL;
	}
	in->out[in->out_tail++ & (in->conf.max_out - 1)] = m;
	return SAN_DROP_NONE;
}

bool
san_inet_may_answer(struct san_inet *in, enum inet_answer kind, const struct san_ip *host,
		    uint64_t now_ns)
{
	if (in->conf.quiet)
		return false;
	if (san_inet_rate_take(&in->answers[kind], host, SAN_INET_KNOWN, now_ns))
		return true;
	in->drops[SAN_DROP_INET_RATE]++;
	return false;
}

bool
san_inet_has_tx(const struct san_inet *in)
{
	return in->out_head != in->out_tail;
}

uint16_t
san_inet_tx_burst(struct san_inet *in, struct rte_mbuf **m, uint16_t n)
{
	uint16_t k = 0;

	while (k < n && in->out_head != in->out_tail)
		m[k++] = in->out[in->out_head++ & (in->conf.max_out - 1)];
	return k;
}

const uint64_t *
san_inet_drops(const struct san_inet *in)
{
	return in->drops;
}

/* ---- time ---- */

__rte_noinline uint64_t
san_inet_tick(struct san_inet *in, uint64_t now_ns)
{
	uint64_t next_ns = san_inet_neigh_tick(in, now_ns);

	next_ns = san_time_min(next_ns, san_inet_whole_tick(in, now_ns));
	next_ns = san_time_min(next_ns, san_inet_route_tick(in, now_ns));
	return san_time_min(next_ns, san_inet_group_tick(in, now_ns));
}
