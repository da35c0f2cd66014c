/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Several lcores on one port: the lcore of a received packet (SYS-1, ARCH-4).
 *
 * A CID names its lcore. A request to connect names none: all its copies must come to the same
 * lcore, whichever it is. RESET names the CID of its sender, so only the lcore with that peer can
 * check it: all get a copy. All also get neighbour messages, because each lcore has its own table;
 * only one answers.
 */

#include "core.h"

static uint32_t
of_cid(uint32_t cid, uint32_t nb_lcores)
{
	uint32_t lcore = san_pdl_cid_lcore(cid);

	return lcore < nb_lcores ? lcore : 0;
}

uint32_t
san_core_owner(struct rte_mbuf *m, uint16_t udp_port, uint32_t nb_lcores)
{
	struct san_wire_peek peek;

	if (unlikely(!san_wire_peek(m, udp_port, &peek)) &&
	    !(san_wire_peek_untag(m) && san_wire_peek(m, udp_port, &peek)))
		return san_wire_peek_is_neigh(m) ? SAN_OWNER_ALL : 0;
	if (likely(peek.cm_msg == 0))
		return of_cid(peek.cid, nb_lcores);
	if (peek.cm_msg == SAN_CM_RESET)
		return SAN_OWNER_ALL;
	if (peek.cm_msg == SAN_CM_REQ)
		return (uint32_t)((uint64_t)peek.cm_attempt * nb_lcores >> 32);
	return of_cid(peek.cm_cid, nb_lcores);
}
