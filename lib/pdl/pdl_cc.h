/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Congestion control: each algorithm is a const table of functions in fixed point, fed with
 * filtered samples (RT-9, RT-25; RULE-12). One late sample never cuts a window, several in
 * a row do.
 */

#include <stdbool.h>
#include <stdint.h>

#define SAN_CC_ONE    65536u /**< one packet of congestion window, Q16 */
#define SAN_CC_STALL  32     /**< in targets: a longer delay comes from a host or the path */
#define SAN_CC_LEVELS 256    /**< number of congestion levels: 0 none .. 255 */

/** What one ACK reports. */
struct san_pdl_cc_sample {
	uint64_t now_ns;
	uint64_t rtt_ns;   /**< smoothed round trip, host delay included; 0 = no sample yet */
	uint64_t delay_ns; /**< fabric delay of this sample; 0 = none in this ACK */
	uint32_t nb_acked; /**< packets newly received or acknowledged */
	uint32_t nb_lost;  /**< packets newly counted as lost */
	uint32_t nb_ce;    /**< packets newly CE-marked, by the peer's count */
	uint16_t rx_level; /**< receiver's buffer level, 0 .. 1000 */
	bool limited;      /**< at least half the window was in flight */
};

struct san_pdl_cc_conf {
	uint64_t target_ns;   /**< target delay without the part for many flows */
	uint32_t window_init; /**< Q16 packets */
	uint32_t window_min;  /**< Q16 packets, may be below one: paced */
	uint32_t window_max;  /**< Q16 packets */
};

struct san_pdl_cc {
	const struct san_pdl_cc_ops *ops;
	uint32_t window;      /**< congestion window, Q16 packets */
	uint32_t host_window; /**< window for the receiver's host, Q16 packets */
	uint16_t level;       /**< congestion level, 0 .. 255: C of RT-12 */
	bool limited;         /**< there was a sign of a limit */
	uint32_t nb_cuts;
	uint64_t last_cut_ns;
	uint64_t host_cut_ns;
	uint32_t gain;    /**< growth per round trip in packets, more on a long path, Q16 */
	uint32_t floor;   /**< least window of the path, Q16 packets */
	uint64_t priv[5]; /**< private to the algorithm */
};

struct san_pdl_cc_ops {
	/** Set the private part, which is zero; NULL: nothing to set. */
	void (*init)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf);
	void (*on_ack)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
		       const struct san_pdl_cc_sample *s);
	/** NULL, as for on_timeout: the algorithm ignores losses. */
	void (*on_loss)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
			uint64_t now_ns);
	void (*on_timeout)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
			   uint64_t now_ns);
	/**
	 * A CNP arrived while something was in flight. CNPs are unauthenticated: the algorithm
	 * follows at most one until an ACK confirms a mark. NULL: the algorithm ignores CNPs.
	 */
	void (*on_cnp)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
		       uint64_t now_ns);
};

enum san_pdl_cc_kind {
	SAN_CC_SWIFT = 0,
	SAN_CC_DCQCN = 1,
	SAN_CC_FIXED = 2,
	SAN_CC_MAX
};

extern const struct san_pdl_cc_ops san_pdl_cc_swift;
extern const struct san_pdl_cc_ops san_pdl_cc_dcqcn;
extern const struct san_pdl_cc_ops san_pdl_cc_fixed;
extern const struct san_pdl_cc_ops *const san_pdl_cc_kinds[SAN_CC_MAX];
/** Their names. */
extern const char *const san_pdl_cc_words[SAN_CC_MAX];

/** Start with the initial window, by the algorithm *ops*. */
void san_pdl_cc_init(struct san_pdl_cc *cc, const struct san_pdl_cc_ops *ops,
		     const struct san_pdl_cc_conf *conf);
/**
 * Update the window for the receiver's host, common to all algorithms: it shrinks while the
 * receiver's buffers are three quarters full, at most once per round trip.
 */
void san_pdl_cc_host(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
		     const struct san_pdl_cc_sample *s);
/** Set gain and floor of a path whose round trip without a queue is *path_ns*; 0 = unknown. */
void san_pdl_cc_set_path(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
			 uint64_t path_ns);
/** Set cc->window to window * keep / 65536, at least *floor* and that of the path. */
void san_pdl_cc_cut(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint32_t keep,
		    uint32_t floor, uint64_t now_ns);
/** True if a cut is allowed: at most one multiplicative decrease per round trip. */
bool san_pdl_cc_may_cut(const struct san_pdl_cc *cc, uint64_t rtt_ns, uint64_t now_ns);

/** Effective window: the smaller of fabric and host window, Q16 packets. */
static inline uint32_t
san_pdl_cc_window(const struct san_pdl_cc *cc)
{
	return cc->window < cc->host_window ? cc->window : cc->host_window;
}
