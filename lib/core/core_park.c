/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Handing over a core from one process to another (live restart). Its state is in memory that both
 * map at the same address, so nothing is copied or translated. The first process releases what the
 * second cannot use, mbufs and DPDK objects, and the second provides its own. Only the reorder
 * engine holds packets; they are dropped, and peers resend them (RULE-2).
 */

#include "core_priv.h"

void
san_core_park(struct san_core *core, uint64_t now_ns)
{
	san_tl_park(core->tl, now_ns);
	san_tl_death_flush(&core->death);
	san_visit_spare_empty(&core->spare);
	san_inet_destroy(core->inet);
	core->inet = NULL;
}

bool
san_core_park_lies_in(const struct san_core *core, const struct san_mem *mem)
{
	if (!san_mem_has(mem, core, sizeof(*core)))
		return false;
	return san_mem_has(mem, core->pdl, 1) && san_mem_has(mem, core->tl, 1) &&
		san_mem_has(mem, core->cm, 1) && san_mem_has(mem, core->ulp, 1) &&
		(core->socks == NULL || san_mem_has(mem, core->socks, 1));
}

int
san_core_park_resume(struct san_core *core, const struct san_core_conf *conf)
{
	const struct rte_ether_addr old = core->conf.inet.mac;
	int rc;

	core->conf.pool = core->conf.inet.pool = conf->pool;
	core->conf.inet.mac = conf->inet.mac;
	core->inet_deadline_ns = 0;
	rc = san_inet_create(&core->conf.inet, &core->inet);
	if (rc == 0)
		rc = san_tl_park_resume(core->tl, &conf->tl);
	if (rc != 0) {
		san_inet_destroy(core->inet);
		core->inet = NULL;
		return rc;
	}
	san_pdl_resume(core->pdl, &conf->pdl);
	san_pdl_set_mac(core->pdl, &old, &conf->inet.mac);
	san_core_set_sock_work(core);
	san_ulp_resume(core->ulp, &conf->ulp);
	san_core_stream_resume_all(core);
	san_cm_resume(core->cm, &conf->cm);
	return 0;
}
