/* SPDX-License-Identifier: BSD-3-Clause */

/* See core_park.c. */

#include "tl_priv.h"

static void
drop_held(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	struct san_tl_rxn *r, *next;

	for (r = TAILQ_FIRST(&tc->rxns); r != NULL; r = next) {
		next = TAILQ_NEXT(r, all_link);
		if (r->held_head != NULL)
			san_tl_push_reset(tl, tc, r, SAN_DROP_HANDOVER, now_ns);
	}
}

void
san_tl_park(struct san_tl *tl, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < tl->conf.max_conns; i++)
		if (tl->conns[i].open)
			drop_held(tl, &tl->conns[i], now_ns);
	san_cam_park(&tl->cam, tl->conf.mem);
}

int
san_tl_resume(struct san_tl *tl, const struct san_tl_conf *conf)
{
	tl->conf.cam = conf->cam;
	tl->conf.lend = conf->lend;
	return san_cam_resume(&tl->cam, tl->conf.mem, conf->cam);
}
