/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_DROP_H
#define SAN_DROP_H

/**
 * @file
 * Reasons why a packet is dropped, each with its own counter (RT-21). Every packet is counted under
 * exactly one; zero means accepted.
 */

#include <stdint.h>

enum san_drop {
	SAN_DROP_NONE = 0,
	/* wire: not a valid packet of ours */
	SAN_DROP_NOT_OURS,     /**< not IP/UDP to our port: passed to inet, not an error */
	SAN_DROP_SHORT,        /**< shorter than its headers say */
	SAN_DROP_SPLIT_HEADER, /**< headers not contiguous and no room to pull them up */
	SAN_DROP_IP_HEADER,    /**< bad IP version, length, options or fragment */
	SAN_DROP_IP_CHECKSUM,
	SAN_DROP_UDP_LENGTH,
	SAN_DROP_BTH,      /**< BTH version or reserved bits */
	SAN_DROP_OPCODE,   /**< opcode unknown, or not negotiated */
	SAN_DROP_VERSION,  /**< unknown version of the RT header */
	SAN_DROP_RESERVED, /**< a reserved field or bit is not zero */
	SAN_DROP_FIELD,    /**< a field has a value that no sender uses */
	SAN_DROP_ICRC,
	/* inet */
	SAN_DROP_NOT_FOR_US, /**< another host's MAC or IP address */
	SAN_DROP_INET_MALFORMED,
	SAN_DROP_INET_UNWANTED, /**< well formed, but there is no listener */
	SAN_DROP_INET_FRAG,     /**< a fragment of an incomplete packet, or a duplicate */
	SAN_DROP_INET_NEIGH,    /**< our datagram; the neighbour did not answer */
	SAN_DROP_INET_RATE,     /**< answers to its sender are rate-limited (RT-36) */
	/* pdl: no connection matches, or its state does not allow it */
	SAN_DROP_CID,         /**< no such connection */
	SAN_DROP_TAG,         /**< wrong connection tag (RT-24) */
	SAN_DROP_PEER,        /**< wrong source address */
	SAN_DROP_PKEY,        /**< another partition (RT-29) */
	SAN_DROP_STATE,       /**< the connection's state does not allow the packet */
	SAN_DROP_OLD,         /**< PSN below the base (RT-5) */
	SAN_DROP_DUPLICATE,   /**< bit already set (RT-5) */
	SAN_DROP_BEYOND,      /**< beyond the window (RT-5) */
	SAN_DROP_ACK_BEYOND,  /**< eBSN beyond NSN (RT-6) */
	SAN_DROP_NACK_STALE,  /**< NACK of an older round or a PSN not outstanding */
	SAN_DROP_RESET_STALE, /**< RESET that does not match what is outstanding */
	/* tl */
	SAN_DROP_RSN,      /**< RSN never issued or too far ahead (RT-32) */
	SAN_DROP_SSN,      /**< SSN never issued (RT-21) */
	SAN_DROP_RANGE,    /**< outside what was granted or requested */
	SAN_DROP_FINISHED, /**< data of a finished transaction, discarded (RT-32) */
	SAN_DROP_RNR,      /**< refused: receiver not ready */
	SAN_DROP_ROUND,    /**< refused: sent before the last RNR */
	SAN_DROP_RED,      /**< refused: reorder buffer in the red zone */
	SAN_DROP_NO_TXN,   /**< refused: no transaction record free */
	SAN_DROP_ABORTED,  /**< refused: transaction completed in error (RT-27) */
	/* cm */
	SAN_DROP_CM_MALFORMED,
	SAN_DROP_CM_COOKIE, /**< wrong or old cookie */
	SAN_DROP_CM_STALE,  /**< no connection attempt matches */
	SAN_DROP_CM_RATE,   /**< above the rate limit */
	/* core and engine */
	SAN_DROP_NO_MBUF,  /**< no mbuf for an answer */
	SAN_DROP_IMPAIRED, /**< dropped on purpose by the impairment stage */
	SAN_DROP_TX_FULL,  /**< the port did not accept it */
	SAN_DROP_VLAN,     /**< of another VLAN, or untagged on a port with a VLAN */
	SAN_DROP_HANDOVER, /**< its lcore did not accept it */
	SAN_DROP_HELD,     /**< held, and the packets before it did not come */
	SAN_DROP_MAX
};

/** Short lower-case name, e.g. "icrc"; stable, used by show and telemetry. */
const char *san_drop_name(enum san_drop reason);

/** One sentence for operators. */
const char *san_drop_text(enum san_drop reason);

#endif /* SAN_DROP_H */
