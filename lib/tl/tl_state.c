/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The changes of state that records of transactions make. san_tl_txn_set() and san_tl_rxn_set() in
 * tl_priv.h check them, in debug builds only. (RT-10, RULE-5)
 *
 *   initiator    POSTED -> SENDING -> SENT -> DONE; back to POSTED or SENDING if it is refused for
 *                now; ABORTING from each of them, then DONE
 *   target       AHEAD -> ACTIVE or PULLING; REFUSED or ABORTED until the base reaches it; back to
 *                AHEAD if the receiver is not ready
 */

#include "tl_priv.h"

#define TO(state) (1u << (state))

const uint8_t san_tl_state_txn[] = {
	[SAN_TXN_FREE] = 0,
	[SAN_TXN_POSTED] = TO(SAN_TXN_POSTED) | TO(SAN_TXN_SENDING) | TO(SAN_TXN_SENT) |
		TO(SAN_TXN_ABORTING) | TO(SAN_TXN_DONE),
	[SAN_TXN_SENDING] = TO(SAN_TXN_POSTED) | TO(SAN_TXN_SENDING) | TO(SAN_TXN_SENT) |
		TO(SAN_TXN_ABORTING) | TO(SAN_TXN_DONE),
	[SAN_TXN_SENT] = TO(SAN_TXN_POSTED) | TO(SAN_TXN_SENDING) | TO(SAN_TXN_ABORTING) |
		TO(SAN_TXN_DONE) | TO(SAN_TXN_FREE),
	[SAN_TXN_ABORTING] = TO(SAN_TXN_ABORTING) | TO(SAN_TXN_DONE),
	[SAN_TXN_DONE] = TO(SAN_TXN_FREE),
};

const uint8_t san_tl_state_rxn[] = {
	[SAN_RXN_FREE] = 0,
	[SAN_RXN_AHEAD] = TO(SAN_RXN_AHEAD) | TO(SAN_RXN_ACTIVE) | TO(SAN_RXN_PULLING) |
		TO(SAN_RXN_REFUSED) | TO(SAN_RXN_ABORTED) | TO(SAN_RXN_FREE),
	[SAN_RXN_ACTIVE] = TO(SAN_RXN_AHEAD) | TO(SAN_RXN_REFUSED) | TO(SAN_RXN_ABORTED) |
		TO(SAN_RXN_FREE),
	[SAN_RXN_PULLING] = TO(SAN_RXN_FREE),
	[SAN_RXN_REFUSED] = TO(SAN_RXN_ABORTED) | TO(SAN_RXN_FREE),
	[SAN_RXN_ABORTED] = TO(SAN_RXN_ABORTED) | TO(SAN_RXN_FREE),
};
