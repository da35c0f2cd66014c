/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Settings of the protocol: name, meaning, unit and range of each. A port and a simulated host have
 * all of them, under the same names. They cannot change at run time. (SYS-11)
 *
 * The macros are entries of a table of keys (san_key.h) of section *section*. The structure is
 * field *f* of struct *s*. Its defaults are those of san_core_conf_default().
 */

#include "core.h"
#include "san_key.h"

/* clang-format off */

/** Of a struct san_core_conf. */
#define SAN_CORE_KEYS(section, s, f) \
	/* packet delivery */ \
	{section, "wide", "connections with more than the smallest windows at a time", \
	 SAN_KEY_NUM(s, f.pdl.max_wide, 1, SAN_CONNS_MAX)}, \
	{section, "pmtu", "full packets before the search for the path MTU; 0: no search", \
	 SAN_KEY_NUM(s, f.pdl.pmtu_after, 0, UINT16_MAX)}, \
	{section, "cc", "congestion control", SAN_KEY_CHOICE(s, f.pdl.cc, san_pdl_cc_words)}, \
	{section, "target", "target delay; more for an engine that sleeps", \
	 SAN_KEY_NS(s, f.pdl.cc_conf.target_ns, SAN_NS_PER_US, SAN_NS_PER_S)}, \
	{section, "cwnd", "packets of the first congestion window", \
	 SAN_KEY_NUM_OF(s, f.pdl.cc_conf.window_init, 1, 16384, SAN_CC_ONE)}, \
	{section, "cwnd_max", "packets of the largest congestion window", \
	 SAN_KEY_NUM_OF(s, f.pdl.cc_conf.window_max, 1, 16384, SAN_CC_ONE)}, \
	{section, "cwnd_min", \
	 "hundredths of a packet of the smallest window; 100 for an engine that sleeps", \
	 SAN_KEY_NUM_OF(s, f.pdl.cc_conf.window_min, 1, 100, SAN_CC_ONE / 100)}, \
	{section, "budget", "packets in flight over all connections", \
	 SAN_KEY_NUM(s, f.pdl.budget_pkts, 1, 1u << 24)}, \
	{section, "rto", "timeout before a round trip was measured", \
	 SAN_KEY_NS(s, f.pdl.rto_init_ns, SAN_NS_PER_US, 60 * SAN_NS_PER_S)}, \
	{section, "rto_min", "least timeout", \
	 SAN_KEY_NS(s, f.pdl.rto_min_ns, SAN_NS_PER_US, 60 * SAN_NS_PER_S)}, \
	{section, "rto_max", "longest timeout", \
	 SAN_KEY_NS(s, f.pdl.rto_max_ns, SAN_NS_PER_US, 60 * SAN_NS_PER_S)}, \
	{section, "tlp", "least time before a tail-loss probe; more for an engine that sleeps", \
	 SAN_KEY_NS(s, f.pdl.tlp_min_ns, SAN_NS_PER_US, 60 * SAN_NS_PER_S)}, \
	{section, "retries", "timeouts of one packet until the connection ends", \
	 SAN_KEY_NUM(s, f.pdl.max_retries, 1, 255)}, \
	{section, "ack_every", "packets until an ACK", SAN_KEY_NUM(s, f.pdl.ack_every, 1, 65535)}, \
	{section, "ack_delay", "time until an ACK; 100us for an engine that sleeps", \
	 SAN_KEY_NS(s, f.pdl.ack_delay_ns, 0, SAN_NS_PER_S)}, \
	{section, "ackreq_window", "packets in flight up to which every packet asks for an ACK", \
	 SAN_KEY_NUM(s, f.pdl.ackreq_window, 0, 255)}, \
	{section, "ooo", "packets beyond a gap before the missing one is resent", \
	 SAN_KEY_NUM(s, f.pdl.ooo_distance, 1, 255)}, \
	{section, "plb", "bad round trips until the path is changed; 0: never", \
	 SAN_KEY_NUM(s, f.pdl.plb_bad_rtts, 0, 255)}, \
	{section, "quantum", "packets of one connection in a turn", \
	 SAN_KEY_NUM(s, f.pdl.quantum, 1, 65535)}, \
	/* transactions */ \
	{section, "solicit", "bytes from which a push asks for a grant", \
	 SAN_KEY_BYTES(s, f.tl.solicit_len, 0, UINT32_MAX)}, \
	{section, "level", "congestion level from which all pushes ask for a grant; 0: none", \
	 SAN_KEY_NUM(s, f.tl.solicit_level, 0, 255)}, \
	{section, "incast", "bytes granted or pulled and not yet placed", \
	 SAN_KEY_BYTES(s, f.tl.budget_bytes, 1, UINT32_MAX)}, \
	{section, "paths", "bytes granted beyond incast, on long paths; 0: none", \
	 SAN_KEY_BYTES(s, f.tl.path_bytes, 0, UINT32_MAX)}, \
	{section, "grant", "largest single grant", \
	 SAN_KEY_BYTES(s, f.tl.grant_bytes, 1, UINT32_MAX)}, \
	{section, "expired", \
	 "bytes of expired grants above which a peer host is granted slowly", \
	 SAN_KEY_BYTES(s, f.tl.expired_bytes, 0, UINT32_MAX), .old = "lapsed"}, \
	{section, "policy", "order of grants: in turns, or shortest remaining", \
	 SAN_KEY_CHOICE(s, f.tl.policy, san_tl_policy_words)}, \
	{section, "held", "out-of-order packets held, of all connections", \
	 SAN_KEY_NUM(s, f.tl.max_held, 1, 1u << 24)}, \
	{section, "held_conn", "out-of-order packets held, of one connection", \
	 SAN_KEY_NUM(s, f.tl.max_held_conn, 1, 1u << 24)}, \
	{section, "txns", "transactions as initiator, beyond one for each wide connection", \
	 SAN_KEY_NUM(s, f.tl.max_txns, 1, 1u << 24)}, \
	{section, "rxns", "transactions as target; unset: at least four for each wide connection", \
	 SAN_KEY_NUM(s, f.tl.max_rxns, 1, 1u << 24)}, \
	{section, "rnr_delay", "delay that an RNR asks of a sender", \
	 SAN_KEY_US(s, f.tl.rnr_delay_us, 1, 1000000)}, \
	/* pulls */ \
	{section, "pull_piece", "bytes of one piece of a long pull", \
	 SAN_KEY_BYTES(s, f.ulp.pull_piece, 1, SAN_WIRE_LENGTH_MAX)}, \
	/* set-up and end of connections */ \
	{section, "keepalive_probes", "unanswered probes until a peer counts as lost", \
	 SAN_KEY_NUM(s, f.cm.keepalive_probes, 1, 255)}, \
	{section, "cm_retry", \
	 "interval of repeated connection messages at first, doubled to 500ms", \
	 SAN_KEY_NS(s, f.cm.retry_ns, SAN_NS_PER_MS, 60 * SAN_NS_PER_S)}, \
	{section, "cm_retries", "repetitions of a connection message", \
	 SAN_KEY_NUM(s, f.cm.max_retries, 1, 20)}, \
	{section, "cm_drain", "time without progress until a disconnect gives up", \
	 SAN_KEY_NS(s, f.cm.drain_ns, SAN_NS_PER_MS, 600 * SAN_NS_PER_S)}, \
	{section, "cm_rate", "stateless answers per millisecond", \
	 SAN_KEY_NUM(s, f.cm.rate_per_ms, 1, 1000000)}, \
	{section, "pack", "small sends and pushes that are posted together share packets", \
	 SAN_KEY_UINT(SAN_KEY_BOOL, s, f.cm.features, 0, SAN_CM_FEAT_PACK, SAN_CM_FEAT_PACK, 1)}

/** Of a struct san_cm_param: what one side offers for each of its connections. */
#define SAN_CONN_KEYS(section, s, f) \
	{section, "window", "packets that this side can receive; a power of two", \
	 SAN_KEY_NUM(s, f.data_win, SAN_WIN_MIN, SAN_WIN_DATA_MAX)}, \
	{section, "first_window", "packets that the peer may send at first; unset: window", \
	 SAN_KEY_NUM(s, f.first_win, SAN_WIN_MIN, SAN_WIN_DATA_MAX)}, \
	{section, "max_txn", "transactions in flight of a connection", \
	 SAN_KEY_NUM(s, f.max_txn, 1, SAN_TL_N_MAX)}, \
	{section, "msg_limit", "unacknowledged messages of a connection; unset: max_txn", \
	 SAN_KEY_NUM(s, f.msg_limit, 1, UINT16_MAX)}, \
	{section, "rnr", "wait for a receiver that is not ready", \
	 SAN_KEY_MS(s, f.rnr_ms, 1, UINT16_MAX)}, \
	{section, "keepalive", "silence after which a peer is probed; 0: never", \
	 SAN_KEY_MS(s, f.keepalive_ms, 0, UINT16_MAX)}

/* clang-format on */
