/* SPDX-License-Identifier: BSD-3-Clause */

#include "express.h"

bool
san_express_rx(struct san_express *x, struct rte_mbuf *m, uint64_t now_ns)
{
	struct san_pdl_conn *c;
	struct san_ulp_express u;
	struct san_wire_pkt p;

	if (!x->is_on)
		return false;
	c = san_pdl_conn_find(x->pdl, san_wire_cid_at(m));
	if (c == NULL || c->odd != 0 || !san_wire_express(m, &c->path, x->udp_port, &p) ||
	    !san_pdl_express(c, &p) || !san_tl_express(x->tl, c->slot, &p) ||
	    !san_wire_express_sum(m, &p) || !san_ulp_express(x->ulp, c->slot, &p, &u))
		return false;
	san_pdl_express_ack(x->pdl, c, &p, now_ns);
	san_tl_on_ack(x->tl, c, now_ns);
	san_ulp_express_take(x->ulp, &u, &p, m);
	san_pdl_express_take(x->pdl, c, &p, now_ns);
	san_tl_express_take(x->tl, c->slot, p.rsn, now_ns);
	san_death_add(x->tl->death, m);
	return true;
}
