/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_PRIV_H
#define CORE_PRIV_H

/**
 * @file
 * What core.c (packets, time) and core_conn.c (connections) share.
 */

#include "core.h"

#define NO_SLOT UINT32_MAX

/** A disconnect that waits for outstanding work. */
struct core_drain {
	uint16_t slot;
	uint64_t idle_ns; /**< since when only the peer has work; 0 = we have, too */
};

struct san_core {
	struct san_core_conf conf;
	struct san_pdl *pdl;
	struct san_tl *tl;
	struct san_cm *cm;
	struct san_ulp *ulp;
	struct san_inet *inet;
	struct san_death_row death;
	struct rte_mbuf *spare[SAN_CORE_SPARE]; /* empty, for packets to be built */
	uint32_t nb_spare;
	struct san_wire_ack acks[SAN_CORE_BURST]; /* of the burst being received */
	struct san_wire_ack ack_out;              /* of the ACK being built */
	struct san_wire_cm cm_out;
	uint32_t *slot_of_qp; /* NO_SLOT: not connecting or connected */
	struct core_drain *draining;
	uint32_t nb_draining;
	uint64_t inet_deadline_ns;
	uint64_t drops[SAN_DROP_MAX];
};

/** Take cm's events: open and close the other layers, tell the owner. */
void san_core_cm_events(struct san_core *core, uint64_t now_ns);
/** Disconnects that waited for outstanding work go on when it is done. */
void san_core_check_draining(struct san_core *core, uint64_t now_ns);

#endif /* CORE_PRIV_H */
