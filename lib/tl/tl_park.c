/* SPDX-License-Identifier: BSD-3-Clause */

/* See core_park.c. */

#include "tl_priv.h"

void
san_tl_park(struct san_tl *tl, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < tl->conf.max_conns; i++)
		if (tl->conns[i].open)
			san_tl_rxn_held_drop_all(tl, &tl->conns[i], SAN_DROP_HANDOVER, now_ns);
	san_tl_reorder_park(&tl->cam, tl->conf.mem);
}

int
san_tl_park_resume(struct san_tl *tl, const struct san_tl_conf *conf)
{
	tl->conf.cam = conf->cam;
	tl->conf.lend = conf->lend;
	return san_tl_reorder_resume(&tl->cam, tl->conf.mem, conf->cam);
}
