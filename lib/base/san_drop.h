/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_DROP_H
#define SAN_DROP_H

/**
 * @file
 * Every reason for which a packet is not taken, each with its own counter
 * (RT-21). A packet ends in exactly one of them; zero means taken.
 */

#include <stdint.h>

enum san_drop {
	SAN_DROP_NONE = 0,
	/* wire: the bytes are not a packet of ours */
	SAN_DROP_NOT_OURS,     /**< not IP/UDP to our port: for inet, not an error */
	SAN_DROP_SHORT,        /**< shorter than its headers say */
	SAN_DROP_SPLIT_HEADER, /**< headers not contiguous and no room to pull them up */
	SAN_DROP_IP_HEADER,    /**< bad IP version, length, options or fragment */
	SAN_DROP_IP_CHECKSUM,
	SAN_DROP_UDP_LENGTH,
	SAN_DROP_BTH,      /**< BTH version or reserved bits */
	SAN_DROP_OPCODE,   /**< opcode unknown, or not agreed on */
	SAN_DROP_VERSION,  /**< unknown version of the RT header */
	SAN_DROP_RESERVED, /**< a reserved field or bit is not zero */
	SAN_DROP_FIELD,    /**< a field has a value that no sender makes */
	SAN_DROP_ICRC,
	/* inet */
	SAN_DROP_NOT_FOR_US, /**< another host's MAC or IP address */
	SAN_DROP_INET_MALFORMED,
	SAN_DROP_INET_UNWANTED, /**< well formed, nobody listens */
	SAN_DROP_INET_FRAG,     /**< a fragment whose packet did not become whole, or a copy */
	SAN_DROP_INET_NEIGH,    /**< a datagram of ours that waited for a neighbour's answer */
	SAN_DROP_INET_RATE,     /**< its sender gets no more answers now (RT-36) */
	/* pdl: the packet matches no connection, or not now */
	SAN_DROP_CID,         /**< no such connection */
	SAN_DROP_TAG,         /**< wrong connection tag (RT-24) */
	SAN_DROP_PEER,        /**< wrong source address */
	SAN_DROP_PKEY,        /**< another partition (RT-29) */
	SAN_DROP_STATE,       /**< connection is not open for this packet */
	SAN_DROP_OLD,         /**< PSN below the base (RT-5) */
	SAN_DROP_DUPLICATE,   /**< bit already set (RT-5) */
	SAN_DROP_BEYOND,      /**< beyond the window (RT-5) */
	SAN_DROP_ACK_BEYOND,  /**< eBSN beyond NSN (RT-6) */
	SAN_DROP_NACK_STALE,  /**< NACK of an older round or a PSN not outstanding */
	SAN_DROP_RESET_STALE, /**< RESET that does not match what is outstanding */
	/* tl */
	SAN_DROP_RSN,      /**< RSN never issued or too far ahead (RT-32) */
	SAN_DROP_SSN,      /**< SSN never issued (RT-21) */
	SAN_DROP_RANGE,    /**< outside what was granted or asked for */
	SAN_DROP_FINISHED, /**< content of a finished transaction, discarded (RT-32) */
	SAN_DROP_RNR,      /**< refused: receiver not ready */
	SAN_DROP_ROUND,    /**< refused: sent before the last RNR */
	SAN_DROP_RED,      /**< refused: reorder buffer in the red zone */
	SAN_DROP_NO_TXN,   /**< refused: no transaction record free */
	SAN_DROP_ABORTED,  /**< refused: transaction completed in error (RT-27) */
	/* cm */
	SAN_DROP_CM_MALFORMED,
	SAN_DROP_CM_COOKIE, /**< wrong or old cookie */
	SAN_DROP_CM_STALE,  /**< no connection attempt matches */
	SAN_DROP_CM_RATE,   /**< over the rate limit */
	/* core and engine */
	SAN_DROP_NO_MBUF,  /**< an answer could not be built for lack of mbufs */
	SAN_DROP_IMPAIRED, /**< dropped on purpose by the impairment stage */
	SAN_DROP_TX_FULL,  /**< the port did not take it */
	SAN_DROP_VLAN,     /**< of another VLAN, or untagged on a port that is in one */
	SAN_DROP_HANDOVER, /**< the lcore that it belongs to did not take it */
	SAN_DROP_HELD,     /**< held, and what is before it did not come */
	SAN_DROP_MAX
};

/** Short lower-case name, e.g. "icrc"; stable, used by show and telemetry. */
const char *san_drop_name(enum san_drop reason);

/** One sentence for people. */
const char *san_drop_text(enum san_drop reason);

#endif /* SAN_DROP_H */
