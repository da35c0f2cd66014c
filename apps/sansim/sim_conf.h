/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_CONF_H
#define SIM_CONF_H

/**
 * @file
 * A scenario: everything that decides a run of the simulator. Two runs of
 * equal scenarios are equal packet by packet. It comes from an INI file, from
 * "section.key=value" words, or from a seed (sim_swarm.c); one table in
 * sim_conf.c names every key, its unit, its range and its meaning.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "san_wr.h"
#include "sim_link.h"

#define SIM_FAULTS_MAX 32
#define SIM_NAME_MAX   32

enum sim_topo_type {
	SIM_TOPO_PAIR,       /**< two hosts, one cable */
	SIM_TOPO_STAR,       /**< every host on one switch */
	SIM_TOPO_DUMBBELL,   /**< half of the hosts on each of two switches, one trunk between */
	SIM_TOPO_LEAF_SPINE, /**< two tiers; between leaves as many paths as spines */
	SIM_TOPO_MAX
};

struct sim_topo_conf {
	uint8_t type; /**< enum sim_topo_type */
	uint32_t hosts;
	uint32_t leaves;
	uint32_t spines;
};

enum sim_cc {
	SIM_CC_SWIFT,
	SIM_CC_DCQCN,
	SIM_CC_FIXED,
	SIM_CC_MAX
};

enum sim_policy {
	SIM_POLICY_RR,
	SIM_POLICY_SRPT,
	SIM_POLICY_MAX
};

/** What every host is given; zero of a number: the stack's default. */
struct sim_host_conf {
	bool ipv6;
	bool wrap;    /**< sequence numbers start shortly before 2^32 */
	bool pack;    /**< small requests share packets (RT-34) */
	bool express; /**< ordinary packets go straight (express.h) */
	uint16_t mtu;
	uint8_t cc;               /**< enum sim_cc */
	uint8_t policy;           /**< enum sim_policy: whom to grant first */
	uint64_t poll_ns;         /**< a round of the polling loop: packets wait for the next */
	uint64_t clock_ppm_range; /**< clocks run wrong by up to this */
	uint32_t rx_ring;         /**< packets that wait for a host that does not run */
	uint32_t nic_bytes;       /**< bytes that a host queues on its own port at once */
	uint32_t mbufs;           /**< a pool of its own for each host; 0: a common one */
	uint32_t cam;             /**< entries of the CAM; 0: enough */
	/* of connections */
	uint16_t req_win, data_win, first_win, max_txn, msg_limit, rnr_ms, keepalive_ms, pmtu;
	/* of the core */
	uint32_t budget_pkts, incast_bytes, path_bytes, lapsed_bytes, grant_bytes, solicit_len;
	uint32_t max_wide, max_txns, max_rxns, max_held, max_held_conn, pull_piece;
	uint32_t cwnd, cwnd_max, ack_every, ooo_distance, max_retries, plb_bad_rtts;
	uint32_t solicit_level; /**< + 1, so that 0 is the default */
	uint64_t target_ns, rto_init_ns, rto_min_ns, rto_max_ns, tlp_min_ns, ack_delay_ns;
	uint64_t cm_retry_ns, cm_drain_ns, cm_timewait_ns;
};

enum sim_pattern {
	SIM_PATTERN_PAIRS,       /**< host 2i talks to host 2i + 1 */
	SIM_PATTERN_INCAST,      /**< everybody to host 0 */
	SIM_PATTERN_FAN,         /**< host 0 to everybody */
	SIM_PATTERN_ACROSS,      /**< host i to host i + hosts/2: over the trunk or the spines */
	SIM_PATTERN_RANDOM,      /**< each connection between two hosts drawn from the seed */
	SIM_PATTERN_PERMUTATION, /**< host i to host i + 1 */
	SIM_PATTERN_MAX
};

enum sim_solicit {
	SIM_SOLICIT_AUTO,
	SIM_SOLICIT_ALWAYS,
	SIM_SOLICIT_NEVER,
	SIM_SOLICIT_MAX
};

#define SIM_KINDS 6 /**< enum san_ulp_op, from SAN_WR_SEND on */

struct sim_load_conf {
	uint8_t pattern; /**< enum sim_pattern */
	uint8_t solicit; /**< enum sim_solicit */
	bool both_ways;  /**< the accepting side initiates as well */
	bool relaxed;
	uint32_t connections;        /**< in all */
	uint32_t unordered_ppm;      /**< share of connections that are unordered */
	uint32_t streams_ppm;        /**< share of connections that are streams, always ordered */
	uint32_t weights[SIM_KINDS]; /**< of send, push, push-imm, pull, fetch-add, cmp-swap */
	uint32_t size_min, size_max; /**< bytes, log-uniform */
	uint32_t depth;              /**< requests of a connection at once */
	uint64_t ops;                /**< requests of each side; 0: until the duration is over */
	uint64_t start_step_ns;      /**< each next connection starts so much later */
	uint64_t stop_step_ns;       /**< and, if not 0, each next stops so much earlier */
	uint64_t recv_delay_ns;      /**< a receive is posted again so late, at most */
	uint32_t bad_ppm;            /**< requests with a wrong key: refused */
	uint64_t revoke_ns;          /**< each target revokes its region about so often; 0: never */
	bool reconnect;              /**< a connection that broke is made again */
};

enum sim_fault_kind {
	SIM_FAULT_NONE,
	SIM_FAULT_LOSS,      /**< rate: of packets, independently */
	SIM_FAULT_BURST,     /**< rate: of packets, in runs of 8 on average */
	SIM_FAULT_FLOW,      /**< rate: of flows (path and UDP source port) lose everything */
	SIM_FAULT_REORDER,   /**< rate: of packets come later by up to arg */
	SIM_FAULT_DUPLICATE, /**< rate: of packets come twice, the copy later by up to arg */
	SIM_FAULT_CORRUPT,   /**< rate: of packets have one bit wrong */
	SIM_FAULT_DOWN,      /**< nothing passes; one direction only with :up or :down */
	SIM_FAULT_PAUSE,     /**< the host does not run */
	SIM_FAULT_RESTART,   /**< the host's process dies and, after "for", is there again, empty */
	SIM_FAULT_NARROW,    /**< packets of more than mtu IP bytes are lost */
	SIM_FAULT_FORGE,     /**< behind that many packets comes a CNP that the sender never sent */
	SIM_FAULT_MUTE,      /**< data is lost, all else passes: a peer that does not go on */
	SIM_FAULT_MOVE,      /**< the host has another MAC address, and tells nobody */
	SIM_FAULT_MAX
};

struct sim_fault_conf {
	char name[SIM_NAME_MAX];
	uint8_t kind;             /**< enum sim_fault_kind; SIM_FAULT_MAX: not set */
	char where[SIM_NAME_MAX]; /**< all, host:N, spine:N, trunk; :up or :down */
	uint64_t at_ns;           /**< after the load starts */
	uint64_t for_ns;          /**< 0: to the end of the run */
	uint32_t rate_ppm;        /**< UINT32_MAX: not set */
	uint64_t arg_ns;
	uint16_t mtu; /**< narrow */
};

struct sim_run_conf {
	uint64_t seed;
	uint64_t warmup_ns;      /**< of the load, not measured */
	uint64_t duration_ns;    /**< requests are posted for so long */
	uint64_t settle_ns;      /**< then everything must complete within this */
	uint64_t stall_ns;       /**< a connection without progress for so long is broken */
	uint64_t silence_max_ns; /**< likewise, whatever the faults; 0: any */
	uint64_t sample_ns;      /**< of time series and Jain's index; 0: none */
	uint32_t check_every;    /**< look at a host after so many rounds; 0: never */
	uint32_t jain_min_ppm;   /**< least fairness in the measured time; 0: not checked */
};

struct sim_conf {
	struct sim_run_conf run;
	struct sim_topo_conf topo;
	struct sim_link_conf edge; /**< between a host and its switch */
	struct sim_link_conf core; /**< between switches; what is not set: as the edge */
	struct sim_host_conf host;
	struct sim_load_conf load;
	uint32_t nb_faults;
	struct sim_fault_conf faults[SIM_FAULTS_MAX];
};

void sim_conf_default(struct sim_conf *conf);
/** An INI file over *conf*. 0 or -errno; what is wrong and where is in *err*. */
int sim_conf_load(struct sim_conf *conf, const char *path, char *err, size_t err_len);
/** "section.key=value"; faults: "fault.NAME.key=value". 0 or -EINVAL with *err*. */
int sim_conf_set(struct sim_conf *conf, const char *word, char *err, size_t err_len);
/** A section as such: that of a fault makes one, which may say nothing. 0 or -EINVAL with *err*. */
int sim_conf_enter(struct sim_conf *conf, const char *section, char *err, size_t err_len);
/** One key of a section. 0 or -EINVAL with *err*. */
int sim_conf_set_key(struct sim_conf *conf, const char *section, const char *name,
		     const char *value, char *err, size_t err_len);
/** Fill in what follows from other keys. Do all fit together? 0 or -EINVAL with *err*. */
int sim_conf_check(struct sim_conf *conf, char *err, size_t err_len);
/**
 * As INI; every key that is set, which of a checked scenario are all: the file repeats
 * the run, whatever defaults become.
 */
void sim_conf_print(const struct sim_conf *conf, FILE *out);
/** "section.key value" of a "section.key", for messages; no key of a fault. */
void sim_conf_text(const struct sim_conf *conf, const char *key, char *buf, size_t len);
/** Every key with unit, range, default and meaning. */
void sim_conf_help(FILE *out);
/** Names of values, as in the file. */
const char *sim_fault_name(uint8_t kind);
const char *sim_kind_name(uint32_t kind);

#endif /* SIM_CONF_H */
