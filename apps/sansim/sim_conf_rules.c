/* SPDX-License-Identifier: BSD-3-Clause */

/* Rules for combinations of keys: inherited values and contradictions. */

#include <errno.h>
#include <inttypes.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "sim_conf.h"

#define KEY_MAX      96
#define IPV6_MTU_MIN 1280
#define CAM_MIN      8 /* minimum of its hash table */

/* "load.size_min 1MiB is more than load.size_max 64KiB" */
static int
conf_rules_clash(const struct sim_conf *conf, const char *a, const char *how, const char *b,
		 char *err, size_t err_len)
{
	char first[KEY_MAX], second[KEY_MAX];

	san_sim_conf_text(conf, a, first, sizeof(first));
	san_sim_conf_text(conf, b, second, sizeof(second));
	snprintf(err, err_len, "%s %s %s", first, how, second);
	return -EINVAL;
}

static int
check_window(const char *name, uint32_t pkts, char *err, size_t err_len)
{
	if (rte_is_power_of_2(pkts))
		return 0;
	snprintf(err, err_len, "host.%s: %" PRIu32 " is not a power of two", name, pkts);
	return -EINVAL;
}

static int
check_timeouts(const struct sim_conf *conf, char *err, size_t err_len)
{
	const struct san_pdl_conf *pdl = &conf->host.core.pdl;

	if (pdl->rto_min_ns > pdl->rto_max_ns)
		return conf_rules_clash(conf, "host.rto_min", "is more than", "host.rto_max", err,
					err_len);
	if (pdl->rto_init_ns > pdl->rto_max_ns)
		return conf_rules_clash(conf, "host.rto", "is more than", "host.rto_max", err,
					err_len);
	return 0;
}

static int
conf_rules_host(const struct sim_conf *conf, char *err, size_t err_len)
{
	const struct sim_host_conf *h = &conf->host;
	int rc = check_window("req_window", h->conn.req_win, err, err_len);

	if (rc == 0)
		rc = check_window("window", h->conn.data_win, err, err_len);
	if (rc == 0)
		rc = check_timeouts(conf, err, err_len);
	if (rc == 0 && h->cam != 0 && h->cam < CAM_MIN) {
		snprintf(err, err_len, "host.cam: %" PRIu32 " is not 0 or at least %d", h->cam,
			 CAM_MIN);
		rc = -EINVAL;
	}
	return rc;
}

/* Refuse a fault without effect, unless that was set explicitly. */
static int
check_fault(struct sim_fault_conf *f, char *err, size_t err_len)
{
	const char *why = NULL;
	bool has_rate = (f->kind >= SIM_FAULT_LOSS && f->kind <= SIM_FAULT_CORRUPT) ||
		f->kind == SIM_FAULT_FORGE;

	if (f->rate_ppm == UINT32_MAX && !has_rate)
		f->rate_ppm = 0;
	if (f->kind == SIM_FAULT_MAX)
		why = "wants a kind";
	else if (f->rate_ppm == UINT32_MAX)
		why = "wants a rate";
	else if (f->kind == SIM_FAULT_REORDER && f->rate_ppm != 0 && f->arg_ns == 0)
		why = "wants an arg, by how much packets come later";
	else if (f->kind == SIM_FAULT_NARROW && f->mtu == 0)
		why = "wants an mtu, what is left of the path's";
	else if (f->kind == SIM_FAULT_LIE && f->lie == SIM_LIE_NONE)
		why = "wants a lie";
	if (why == NULL)
		return 0;
	snprintf(err, err_len, "[fault.%s]%s%s %s", f->name,
		 f->kind == SIM_FAULT_MAX ? "" : " of kind ",
		 f->kind == SIM_FAULT_MAX ? "" : san_sim_conf_fault_name(f->kind), why);
	return -EINVAL;
}

static int
check_network(const struct sim_conf *conf, char *err, size_t err_len)
{
	uint32_t hosts = conf->topo.hosts;

	if (conf->topo.type == SIM_TOPO_PAIR && hosts != 2) {
		snprintf(err, err_len, "topology.hosts: a pair has 2, not %" PRIu32, hosts);
		return -EINVAL;
	}
	if (conf->topo.type == SIM_TOPO_LEAF_SPINE && conf->topo.leaves > hosts)
		return conf_rules_clash(conf, "topology.leaves", "is more than", "topology.hosts",
					err, err_len);
	if (conf->load.pattern == SIM_PATTERN_ACROSS && hosts % 2 != 0)
		return conf_rules_clash(conf, "load.pattern", "wants an even number, not",
					"topology.hosts", err, err_len);
	return 0;
}

/* Each queue must have room for one packet. */
static int
check_mtu(const struct sim_conf *conf, char *err, size_t err_len)
{
	static const char *const less = "is less than a packet of";
	uint32_t frame = conf->host.mtu + (uint32_t)RTE_ETHER_HDR_LEN;

	if (conf->host.ipv6 && conf->host.mtu < IPV6_MTU_MIN)
		return conf_rules_clash(conf, "host.mtu", "is less than the 1280 of", "host.ipv6",
					err, err_len);
	if (conf->host.nic_bytes < conf->host.mtu)
		return conf_rules_clash(conf, "host.nic_queue", less, "host.mtu", err, err_len);
	if (conf->edge.buffer_bytes < frame)
		return conf_rules_clash(conf, "link.buffer", less, "host.mtu", err, err_len);
	if (conf->core.buffer_bytes < frame)
		return conf_rules_clash(conf, "core.buffer", less, "host.mtu", err, err_len);
	return 0;
}

static int
check_load(const struct sim_conf *conf, char *err, size_t err_len)
{
	uint32_t i;

	if (conf->load.size_min > conf->load.size_max)
		return conf_rules_clash(conf, "load.size_min", "is more than", "load.size_max", err,
					err_len);
	if (conf->run.warmup_ns >= conf->run.duration_ns)
		return conf_rules_clash(conf, "run.warmup", "is not less than", "run.duration", err,
					err_len);
	for (i = 0; i < SIM_KINDS; i++)
		if (conf->load.weights[i] != 0)
			return 0;
	snprintf(err, err_len, "load: no kind has a weight");
	return -EINVAL;
}

int
san_sim_conf_rules_check(struct sim_conf *conf, char *err, size_t err_len)
{
	const struct sim_link_conf *edge = &conf->edge;
	struct sim_link_conf *core = &conf->core;
	uint32_t i;
	int rc;

	/* each key separately, because a delay or a mark of 0 is valid */
	if (core->rate_mbps == UINT32_MAX)
		core->rate_mbps = edge->rate_mbps;
	if (core->delay_ns == UINT64_MAX)
		core->delay_ns = edge->delay_ns;
	if (core->buffer_bytes == UINT32_MAX)
		core->buffer_bytes = edge->buffer_bytes;
	if (core->mark_bytes == UINT32_MAX)
		core->mark_bytes = edge->mark_bytes;
	if (core->mtu == UINT32_MAX)
		core->mtu = edge->mtu;
	rc = check_network(conf, err, err_len);
	if (rc == 0)
		rc = check_load(conf, err, err_len);
	if (rc == 0)
		rc = check_mtu(conf, err, err_len);
	if (rc == 0)
		rc = conf_rules_host(conf, err, err_len);
	for (i = 0; i < conf->nb_faults && rc == 0; i++)
		rc = check_fault(&conf->faults[i], err, err_len);
	return rc;
}
