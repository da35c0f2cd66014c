/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PDL_CC_H
#define PDL_CC_H

/**
 * @file
 * Congestion control: a const table of functions per algorithm, in fixed
 * point, fed with filtered samples (RT-9, RT-25; design, rule 12). One late
 * sample never cuts a window, a run of them does.
 */

#include <stdbool.h>
#include <stdint.h>

#define SAN_CC_ONE    65536u /**< one packet of congestion window, Q16 */
#define SAN_CC_STALL  32     /**< targets: longer delays are of a host, or a path, not of a queue */
#define SAN_CC_LEVELS 256    /**< congestion level: 0 none .. 255 */

/** What one ACK tells. */
struct san_pdl_cc_sample {
	uint64_t now_ns;
	uint64_t rtt_ns;   /**< smoothed round trip, host delay included; 0 = no sample yet */
	uint64_t delay_ns; /**< fabric delay of this sample; 0 = none in this ACK */
	uint32_t nb_acked; /**< packets newly received or acknowledged */
	uint32_t nb_lost;  /**< packets newly taken for lost */
	uint32_t nb_ce;    /**< of those, CE-marked, as the peer counts */
	uint16_t rx_level; /**< receiver's buffer level, 0 .. 1000 */
	bool limited;      /**< at least half the window was in use */
};

struct san_pdl_cc_conf {
	uint64_t target_ns;   /**< base target delay */
	uint32_t window_init; /**< Q16 packets */
	uint32_t window_min;  /**< Q16 packets, may be below one: paced */
	uint32_t window_max;  /**< Q16 packets */
};

struct san_pdl_cc {
	const struct san_pdl_cc_ops *ops;
	uint32_t window;      /**< congestion window, Q16 packets */
	uint32_t host_window; /**< second window: the receiver's host, Q16 packets */
	uint32_t level;       /**< congestion level, 0 .. 255: RT-12's C */
	uint32_t nb_cuts;
	uint64_t last_cut_ns;
	uint64_t host_cut_ns;
	uint64_t priv[6]; /**< the algorithm's own */
};

struct san_pdl_cc_ops {
	const char *name;
	void (*init)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf);
	void (*on_ack)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
		       const struct san_pdl_cc_sample *s);
	void (*on_loss)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
			uint64_t now_ns);
	void (*on_timeout)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
			   uint64_t now_ns);
	/**
	 * A CNP arrived while something was in flight. It has no tag: believe no more than one
	 * until an ACK confirms a mark. NULL: the algorithm has no use for CNPs.
	 */
	void (*on_cnp)(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
		       uint64_t now_ns);
};

extern const struct san_pdl_cc_ops san_pdl_cc_swift;
extern const struct san_pdl_cc_ops san_pdl_cc_dcqcn;
extern const struct san_pdl_cc_ops san_pdl_cc_fixed;

/**
 * The second window, common to the algorithms: it shrinks while the receiver's
 * buffers are three quarters full, at most once per round trip.
 */
void san_pdl_cc_host(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
		     const struct san_pdl_cc_sample *s);
/** cc->window := window * keep / 65536, not below *floor* nor the minimum; counts the cut. */
void san_pdl_cc_cut(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint32_t keep,
		    uint32_t floor, uint64_t now_ns);
/** At most one multiplicative decrease per round trip. */
bool san_pdl_cc_may_cut(const struct san_pdl_cc *cc, uint64_t rtt_ns, uint64_t now_ns);

/** By name ("swift", "dcqcn", "fixed"), or NULL. */
const struct san_pdl_cc_ops *san_pdl_cc_find(const char *name);

/** Effective window: the smaller of fabric and host window, Q16 packets. */
static inline uint32_t
san_pdl_cc_window(const struct san_pdl_cc *cc)
{
	return cc->window < cc->host_window ? cc->window : cc->host_window;
}

#endif /* PDL_CC_H */
