/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Parse and build RT packets in host order. No other module touches packet bytes.
 *
 * The byte layouts are in wire_priv.h; doc/wire.md is the authority. No state, no policy. (RT-3,
 * RT-29, RT-31, SYS-1, ARCH-3)
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "rtsan_abi.h"
#include "san_counters.h"

#define SAN_WIRE_PORT        4791 /**< UDP destination port unless configured */
#define SAN_WIRE_VERSION     1
#define SAN_WIRE_CID_CM      1 /**< well-known destination of CM packets */
#define SAN_WIRE_CID_BITS    24
#define SAN_WIRE_LENGTH_MAX  (1u << 31)                  /**< bytes of one transaction */
#define SAN_WIRE_REQ_WORDS   4                           /**< of the request bitmap, at most */
#define SAN_WIRE_DATA_WORDS  16                          /**< of each data bitmap, at most */
#define SAN_WIRE_CM_PRIVATE  RTSAN_PRIVATE_MAX           /**< bytes in a CM message */
#define SAN_WIRE_CM_PORTS    8                           /**< steering (RULE-13) */
#define SAN_WIRE_COOKIE      20                          /**< 16 bytes of MAC, 4 of time slot */
#define SAN_WIRE_ATOMIC_LEN  16                          /**< operand, swap value */
#define SAN_WIRE_IMM_LEN     4                           /**< before the data of LAST */
#define SAN_WIRE_OVERHEAD_V4 (20 + 8 + 12 + 28 + 20 + 4) /**< IP to ICRC, the longest header */
#define SAN_WIRE_OVERHEAD_V6 (40 + 8 + 12 + 28 + 20 + 4)
#define SAN_WIRE_TAIL_MAX    (3 + 4) /**< after the payload: padding to 4 bytes, ICRC */
#define SAN_WIRE_PACK_MIN    2       /**< messages of a packed packet (RT-34) */
#define SAN_WIRE_PACK_MAX    64
#define SAN_WIRE_PIECE_LEN   4 /**< before the data of a piece (RT-37) */

/** BTH opcodes: the manufacturer range, and CNP. */
enum san_wire_op {
	SAN_OP_PUSH_SLCTD_REQ = 0xC0,    /**< request window */
	SAN_OP_PULL_REQ = 0xC1,          /**< request window */
	SAN_OP_ATOMIC_REQ = 0xC2,        /**< request window */
	SAN_OP_PUSH_GRNT = 0xC3,         /**< data window */
	SAN_OP_PUSH_SLCTD_DATA = 0xC4,   /**< data window */
	SAN_OP_PUSH_UNSLCTD_DATA = 0xC5, /**< data window */
	SAN_OP_PULL_DATA = 0xC6,         /**< data window; atomic results too */
	SAN_OP_ACK = 0xC7,               /**< no window */
	SAN_OP_NACK = 0xC8,              /**< no window; refuses a packet of the window named */
	SAN_OP_RESYNC = 0xC9,            /**< in the window whose PSN it fills */
	SAN_OP_CM = 0xCA,                /**< to SAN_WIRE_CID_CM */
	SAN_OP_PROBE = 0xCB,             /**< no window; always answered by an ACK */
	SAN_OP_PUSH_PACKED = 0xCC,       /**< data window; several small pushes (RT-34) */
	SAN_OP_CNP = 0x81,               /**< RoCEv2 congestion notification */
};

enum san_wire_flag {
	SAN_F_LAST = 0x01,     /**< last packet of its push or pull piece */
	SAN_F_WIN_DATA = 0x02, /**< RESYNC, NACK: concerns the data window */
	SAN_F_KIND = 0x0c,     /**< enum san_wire_kind << 2; pushes only */
	SAN_F_UNPACK = 0x10,   /**< NACK RNR: send the messages of a packed packet alone */
	SAN_F_PIECE = 0x20,    /**< push and pull data: part of the payload of the PSN (RT-37) */
	SAN_F_ALL = 0x3f,
};
#define SAN_F_KIND_SHIFT 2

/**
 * How the target executes a push: two bits, for a send and for an immediate. An immediate is the
 * first 4 payload bytes of LAST.
 */
enum san_wire_kind {
	SAN_KIND_PUSH = 0,     /**< to an address and key */
	SAN_KIND_SEND = 1,     /**< into the next posted receive */
	SAN_KIND_PUSH_IMM = 2, /**< to an address and key; consumes a receive */
	SAN_KIND_SEND_IMM = 3,
};

static inline bool
san_wire_is_send(uint8_t kind)
{
	return (kind & SAN_KIND_SEND) != 0;
}

static inline bool
san_wire_has_imm(uint8_t kind)
{
	return (kind & SAN_KIND_PUSH_IMM) != 0;
}

/** Bytes before the data in a push packet with these flags: the immediate, in the last packet. */
static inline uint16_t
san_wire_imm_len(uint8_t flags)
{
	const uint8_t last = SAN_KIND_PUSH_IMM << SAN_F_KIND_SHIFT | SAN_F_LAST;

	return (flags & last) == last ? SAN_WIRE_IMM_LEN : 0;
}

enum san_wire_atomic {
	SAN_ATOMIC_FETCH_ADD = 1,
	SAN_ATOMIC_CMP_SWAP = 2,
};

/** Status in PUSH_GRNT and PULL_DATA, and code of a NACK; completions report it as well. */
enum san_wire_status {
	SAN_ST_OK = RTSAN_WC_SUCCESS,
	SAN_ST_RNR = RTSAN_WC_RNR_RETRY_EXC, /**< NACK: withdraw, wait, resend; grant: too late */
	SAN_ST_ACCESS = RTSAN_WC_REM_ACCESS, /**< no region has this key and allows this access */
	SAN_ST_LENGTH = RTSAN_WC_REM_LENGTH, /**< 3 and 4 are not used */
	SAN_ST_REVOKED = RTSAN_WC_REM_REVOKED,
	SAN_ST_ALIGN = RTSAN_WC_REM_ALIGN,
	SAN_ST_RESOURCE = RTSAN_WC_REM_RESOURCE, /**< a retry may help */
	SAN_ST_REFUSED = RTSAN_WC_REM_REFUSED,   /**< this transaction only (RT-27) */
	SAN_ST_ABORTED = RTSAN_WC_ABORTED,       /**< by the initiator */
	SAN_ST_MAX
};

enum san_wire_resync {
	SAN_RESYNC_FILL = 0,  /**< the PSN no longer carries anything */
	SAN_RESYNC_ABORT = 1, /**< ... and the initiator gives up the RSN */
};

enum san_wire_oow {
	SAN_OOW_REQ = 0x1,  /**< a request packet arrived beyond the window */
	SAN_OOW_DATA = 0x2, /**< a data packet arrived beyond the window */
};

/** An IP address of either family; IPv4 as ::ffff:a.b.c.d. Network byte order. */
struct san_ip {
	uint8_t b[16];
};

static inline bool
san_wire_ip_is_v4(const struct san_ip *ip)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(ip->b, prefix, sizeof(prefix)) == 0;
}

/** Set *ip* to the IPv4 address of four bytes at *addr*. */
static inline void
san_wire_ip_from_v4(struct san_ip *ip, const void *addr)
{
	*ip = (struct san_ip){.b = {[10] = 0xff, [11] = 0xff}};
	memcpy(&ip->b[12], addr, 4);
}

static inline bool
san_wire_ip_eq(const struct san_ip *a, const struct san_ip *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

struct san_wire_ack {
	uint32_t serial;                          /**< newer ACK = higher serial (RULE-2) */
	uint32_t echo_tx;                         /**< t1: tx_time of the newest packet received */
	uint32_t echo_rx;                         /**< t2: when it arrived; t3 is tx_time */
	uint16_t ecn_count;                       /**< CE-marked packets received, mod 2^16 */
	uint16_t rx_level;                        /**< receive-buffer fill, 0 empty .. 1000 full */
	uint16_t first_win;                       /**< first window of the peer, packets */
	uint8_t oow;                              /**< enum san_wire_oow */
	uint8_t nb_req;                           /**< words in req[] */
	uint8_t nb_data;                          /**< words in data_acked[] and data_rcvd[] */
	uint64_t req[SAN_WIRE_REQ_WORDS];         /**< bit i = PSN req_ebsn + i acknowledged */
	uint64_t data_acked[SAN_WIRE_DATA_WORDS]; /**< bit i = PSN data_ebsn + i acknowledged */
	uint64_t data_rcvd[SAN_WIRE_DATA_WORDS];  /**< ... received (including acknowledged) */
};

/** All of a packet but its payload, in host order. */
struct san_wire_pkt {
	uint8_t op;    /**< enum san_wire_op */
	uint8_t flags; /**< enum san_wire_flag */
	uint8_t round; /**< RNR round (RULE-4) */
	bool ackreq;   /**< BTH AckReq */
	bool ce;       /**< parse only: arrived CE-marked */
	bool v6;       /**< parse only */
	uint16_t pkey;
	uint16_t src_port;    /**< parse only (build: from the path): UDP source port */
	uint16_t payload_off; /**< parse only: offset from the start of the mbuf's data */
	uint16_t payload_len; /**< parse only (build: from the mbuf); without padding */
	uint32_t dcid;
	uint32_t tag;
	uint32_t psn;
	uint32_t rsn;
	uint32_t req_ebsn;  /**< piggybacked ACK, exclusive */
	uint32_t data_ebsn; /**< piggybacked ACK, exclusive */
	uint32_t cmpl_rsn;  /**< message ACK: every RSN below is complete (PCB-5) */
	uint32_t tx_time;   /**< low 32 bits of the sender's clock, ns */
	/* extended header: the opcode decides which fields are valid */
	uint64_t addr;   /**< pushes, pulls, atomics: remote address */
	uint32_t key;    /**< pushes, pulls, atomics */
	uint32_t length; /**< requests, unsolicited data: of the transaction;
					*   packed: number of messages */
	uint32_t offset; /**< data: of the payload; grant: end of the granted bytes */
	union {
		uint32_t ssn; /**< PUSH_SLCTD_REQ, PUSH_GRNT */
		struct {
			uint16_t whole_len; /**< SAN_F_PIECE: payload bytes of the whole packet */
			uint16_t piece_off; /**< ... and the offset of this payload in it */
		};
	};
	uint32_t nack_psn;             /**< NACK: the PSN refused */
	uint32_t delay_us;             /**< NACK RNR: retry after */
	uint8_t status;                /**< enum san_wire_status: grant, pull data, NACK;
			   *   enum san_wire_resync: RESYNC; enum san_wire_atomic: ATOMIC_REQ */
	struct san_ip src;             /**< parse only */
	struct san_ip dst;             /**< parse only */
	struct rte_ether_addr src_mac; /**< parse only */
};

/**
 * Stored in the private area of a received mbuf: parsed once, read by every layer, and kept while
 * the reorder engine holds the packet. Every mbuf pool that feeds a core has SAN_PKT_PRIV_SIZE
 * bytes of private data.
 */
struct san_pkt {
	struct san_wire_pkt w;
	struct rte_mbuf *next; /**< chain of held packets (RT-19) */
};
#define SAN_PKT_PRIV_SIZE RTE_ALIGN_CEIL(sizeof(struct san_pkt), RTE_MBUF_PRIV_ALIGN)

static inline struct san_pkt *
san_wire_pkt(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

/** Addresses of a flow: filled in once per connection, copied into every packet. */
struct san_wire_path {
	struct rte_ether_addr src_mac;
	struct rte_ether_addr dst_mac;
	struct san_ip src;
	struct san_ip dst;
	uint16_t src_port;
	uint16_t dst_port;
	uint8_t dscp;
};

enum san_wire_cm_msg {
	SAN_CM_REQ = 1,    /**< without cookie: requests one; with: requests a connection */
	SAN_CM_COOKIE = 2, /**< stateless answer to a REQ without cookie */
	SAN_CM_REP = 3,    /**< accepted; carries the acceptor's parameters */
	SAN_CM_RTU = 4,    /**< ready to use */
	SAN_CM_REJ = 5,    /**< refused, with a reason */
	SAN_CM_DREQ = 6,   /**< disconnect, after draining */
	SAN_CM_DREP = 7,   /**< disconnected */
	SAN_CM_RESET = 8,  /**< the CID of your packet is not, or no longer, valid here */
	SAN_CM_MSG_MAX
};

/** Reasons of SAN_CM_REJ, SAN_CM_DREQ and SAN_CM_RESET. */
#define SAN_CM_R_MAX (RTSAN_R_PATH_MTU + 1) /**< enum rtsan_reason: those on the wire */

enum san_wire_cm_flag {
	SAN_CM_F_ORDERED = 0x01,
	SAN_CM_F_RELAXED = 0x02, /**< ordered, but data is placed on arrival */
	SAN_CM_F_COOKIE = 0x04,  /**< the cookie field is meaningful */
	SAN_CM_F_ENDS = 0x08,    /**< ordered, but nothing is executed after an error (RT-40) */
	SAN_CM_F_ALL = 0x0f,
	SAN_CM_F_ORDER = SAN_CM_F_ORDERED | SAN_CM_F_RELAXED | SAN_CM_F_ENDS,
};

/**
 * Features of a side; a connection has those of both sides. STREAM must be set by both or neither.
 */
enum san_wire_cm_feature {
	SAN_CM_FEAT_PACK = 0x1,   /**< PUSH_PACKED (RT-34) */
	SAN_CM_FEAT_STREAM = 0x2, /**< its sends carry a stream's session (AFC-2; wire_stream.h) */
	SAN_CM_FEAT_USER = 0x4,   /**< not negotiated: REQ and REP name the sender's user */
};

/**
 * A CM message in host order: the payload of a SAN_OP_CM packet. Up to the user its fields are at
 * the offsets of the wire. All messages have the same structure and are sent whole, so that no
 * answer is longer than its request (RULE-17).
 */
struct san_wire_cm {
	uint8_t msg;    /**< enum san_wire_cm_msg */
	uint8_t flags;  /**< enum san_wire_cm_flag */
	uint8_t reason; /**< enum rtsan_reason */
	uint8_t nb_ports;
	uint32_t xid;     /**< chosen by the connecting side; identifies the attempt */
	uint32_t src_cid; /**< the CID on which the sender of this message receives */
	uint32_t src_tag;
	uint32_t dst_cid; /**< CID of the receiver, if known; 0 = unknown */
	uint32_t dst_tag;
	uint32_t req_psn;   /**< first PSNs that the sender will use */
	uint32_t data_psn;  /**< RESET: echo of the offending packet's PSN */
	uint32_t first_rsn; /**< first RSN and SSN that the sender will use */
	uint32_t features;  /**< enum san_wire_cm_feature; unknown bits are ignored */
	uint16_t mtu;       /**< largest payload of a packet that the sender accepts */
	uint16_t req_win;   /**< receive windows of the sender, packets */
	uint16_t data_win;
	uint16_t first_win; /**< first window, PCB-1 */
	uint16_t max_txn;   /**< N of RULE-6 */
	uint16_t rnr_ms;    /**< how long the sender retries while the receiver is not ready */
	uint16_t keepalive_ms;
	uint16_t private_len;
	uint64_t service;                /**< service that the connecting side requests */
	uint8_t cookie[SAN_WIRE_COOKIE]; /**< sent only with SAN_CM_F_COOKIE */
	uint16_t ports[SAN_WIRE_CM_PORTS];
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
	uint32_t uid; /**< REQ, REP with SAN_CM_FEAT_USER; otherwise RTSAN_UID_NONE */
};
#define SAN_WIRE_CM_LEN offsetof(struct san_wire_cm, uid)
static_assert(offsetof(struct san_wire_cm, mtu) == 40, "CM mtu");
static_assert(offsetof(struct san_wire_cm, service) == 56, "CM service");
static_assert(offsetof(struct san_wire_cm, cookie) == 64, "CM cookie");
static_assert(offsetof(struct san_wire_cm, ports) == 84, "CM ports");
static_assert(SAN_WIRE_CM_LEN == 164, "CM message");

/**
 * Parse and verify one packet, a whole Ethernet frame, including its ICRC. Reads only inside the
 * mbuf, whatever the bytes are. Headers split over segments are pulled up if there is room. On
 * success Ethernet padding is trimmed. *udp_port*: that of the transport. *ack* is filled for
 * SAN_OP_ACK only. SAN_DROP_NONE, SAN_DROP_NOT_OURS (pass it to inet) or the reason to drop it.
 */
enum san_drop san_wire_parse(struct rte_mbuf *m, uint16_t udp_port, struct san_wire_pkt *p,
			     struct san_wire_ack *ack);

/**
 * Express: true if *m* is a whole, well-formed unsolicited push in one segment, from the peer of
 * *path*. Then *p* has the fields of such a packet, and no others; its ICRC is not checked yet. If
 * false, san_wire_parse() decides. *m* is not changed.
 */
bool san_wire_express(const struct rte_mbuf *m, const struct san_wire_path *path,
		      uint16_t udp_port, struct san_wire_pkt *p);
/**
 * True if *m* differs from *last*, which express accepted and *p* describes, only in its numbers,
 * address and length. Then *p* describes *m*. If false, *p* is undefined, and nothing is known of
 * *m*.
 */
bool san_wire_express_next(const struct rte_mbuf *m, const struct rte_mbuf *last,
			   struct san_wire_pkt *p);
/**
 * Likewise for data of a solicited push, not empty, after *last*, which the parser accepted: *m* is
 * as long, differs only in AckReq, PSN and offset, and its ICRC is right; any offset may be there.
 */
bool san_wire_express_data(struct rte_mbuf *m, const struct rte_mbuf *last, struct san_wire_pkt *p);
/** Bytes of the longest frame of an ACK without bitmaps. */
#define SAN_WIRE_BARE_ACK_MAX 126
/** Express: true if *m* is a whole, well-formed ACK without bitmaps of *path*, ICRC included. */
bool san_wire_express_ack(struct rte_mbuf *m, const struct san_wire_path *path, uint16_t udp_port,
			  struct san_wire_pkt *p, struct san_wire_ack *ack);
/** For a push: true if its padding and ICRC are right. */
bool san_wire_express_sum(struct rte_mbuf *m, const struct san_wire_pkt *p);
/**
 * The CID that a frame of ours is for; the frame is not checked. SAN_WIRE_CID_CM: the frame is too
 * short.
 */
uint32_t san_wire_express_cid_at(const struct rte_mbuf *m);

/** Fields that determine the lcore of a packet. */
struct san_wire_peek {
	uint32_t cid;        /**< destination */
	uint8_t cm_msg;      /**< enum san_wire_cm_msg; 0: not a CM message */
	uint32_t cm_cid;     /**< CID that the message names; 0: none */
	uint32_t cm_attempt; /**< equal in all messages with one peer, CID and xid */
};
/** Trim the frame to *len* bytes; it has at least that many. */
void san_wire_parse_trim(struct rte_mbuf *m, uint32_t len);

/**
 * Read the fields that determine the lcore of a packet, without any other check. False: not a
 * datagram to *udp_port*, or its headers are not contiguous.
 */
bool san_wire_peek(const struct rte_mbuf *m, uint16_t udp_port, struct san_wire_peek *out);
/**
 * Remove the tag of a priority-tagged frame (VLAN 0), which makes it untagged (RT-38). False: it is
 * not priority-tagged, and unchanged.
 */
bool san_wire_peek_untag(struct rte_mbuf *m);
/** True for ARP, neighbour solicitation and neighbour advertisement. */
bool san_wire_peek_is_neigh(const struct rte_mbuf *m);

/** Parse the payload of a SAN_OP_CM packet that san_wire_parse() accepted. */
enum san_drop san_wire_cm_parse(const struct rte_mbuf *m, const struct san_wire_pkt *p,
				struct san_wire_cm *cm);

/** Bytes from the start of the Ethernet header to the payload for *op* over v4/v6. */
uint16_t san_wire_op_hdr_len(uint8_t op, bool v6);

/**
 * Largest payload of a packet over a link of *mtu*. Padding fills up to a multiple of 4, so only a
 * multiple of 4 always fits. (RT-31)
 */
static inline uint16_t
san_wire_payload_max(uint16_t mtu, bool v6)
{
	uint16_t overhead = v6 ? SAN_WIRE_OVERHEAD_V6 : SAN_WIRE_OVERHEAD_V4;

	return mtu > overhead ? (uint16_t)(mtu - overhead) & ~3u : 0;
}

/**
 * Write all headers before the payload that *m* already holds, set lengths, IP checksum and UDP
 * checksum 0 (for both families, as RoCEv2 allows: the ICRC covers more), pad the payload to a
 * multiple of 4 bytes, and append 4 bytes for the ICRC that san_wire_icrc_seal() fills.
 *
 * *m* is one segment with san_wire_op_hdr_len() bytes of headroom and SAN_WIRE_TAIL_MAX of
 * tailroom.
 */
void san_wire_build(struct rte_mbuf *m, const struct san_wire_path *path,
		    const struct san_wire_pkt *p);

/** Most payload bytes of a packet that fit in a piece of *mtu* payload bytes. (RT-37) */
static inline uint16_t
san_wire_piece_max(uint16_t mtu)
{
	return (uint16_t)(mtu - SAN_WIRE_PIECE_LEN) & ~3u;
}

/**
 * Turn the payload in *m*, of a packet to be built from *p*, into a piece: *len* bytes from *from*
 * on. It is in one segment. (RT-37)
 */
void san_wire_build_cut(struct rte_mbuf *m, struct san_wire_pkt *p, uint16_t from, uint16_t len);

/** Headers common to the packets of a path: written once, copied for each packet. */
struct san_wire_tmpl {
	uint8_t front[74]; /**< up to and including the BTH; sized for IPv6 */
	uint8_t rt[28];    /**< the common RT header */
	bool v6;
	uint32_t ipv4_sum; /**< checksum of the IPv4 header without its length */
};

/** Take from *p* what a connection's packets of one visit share: CID, tag, P_Key, eBSNs, times. */
void san_wire_build_tmpl_init(struct san_wire_tmpl *t, const struct san_wire_path *path,
			      const struct san_wire_pkt *p);
/** Like san_wire_build(), with a template of the same path and visit; not for ACK and CNP. */
void san_wire_build_next(struct rte_mbuf *m, const struct san_wire_tmpl *t,
			 const struct san_wire_pkt *p);

/** Reserve *len* bytes of payload in the empty *m*; NULL: no room. */
static inline void *
san_wire_payload(struct rte_mbuf *m, uint16_t len)
{
	if (unlikely(len > m->buf_len - m->data_off))
		return NULL;
	m->data_len = len;
	m->pkt_len = len;
	return rte_pktmbuf_mtod(m, void *);
}

/** Set AckReq in a packet that is built and not sealed yet. */
void san_wire_build_ask_ack(struct rte_mbuf *m);

/** Empty mbuf → complete ACK packet (bitmaps are its payload), not yet sealed. */
void san_wire_build_ack(struct rte_mbuf *m, const struct san_wire_path *path,
			const struct san_wire_pkt *p, const struct san_wire_ack *ack);

/** Empty mbuf → CM packet (CM message as payload), not yet sealed. */
void san_wire_cm_build(struct rte_mbuf *m, const struct san_wire_path *path,
		       const struct san_wire_pkt *p, const struct san_wire_cm *cm);

/** Compute the ICRC of a packet that was built, and store it. */
void san_wire_icrc_seal(struct rte_mbuf *m);
