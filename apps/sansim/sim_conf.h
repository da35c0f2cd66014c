/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_CONF_H
#define SIM_CONF_H

/**
 * @file
 * A scenario: everything that determines a run of the simulator. Equal scenarios give runs that are
 * equal packet by packet. A scenario comes from an INI file, from "section.key=value" words, or
 * from a seed (sim_swarm.c). One table in sim_conf.c has the name, unit, range and meaning of each
 * key.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core.h"
#include "san_wr.h"
#include "sim_link.h"

#define SIM_FAULTS_MAX 32
#define SIM_NAME_MAX   32

enum sim_topo_type {
	SIM_TOPO_PAIR,       /**< two hosts, one cable */
	SIM_TOPO_STAR,       /**< every host on one switch */
	SIM_TOPO_DUMBBELL,   /**< half of the hosts on each of two switches, one trunk between */
	SIM_TOPO_LEAF_SPINE, /**< two tiers; as many paths between leaves as spines */
	SIM_TOPO_MAX
};

struct sim_topo_conf {
	uint8_t type; /**< enum sim_topo_type */
	uint32_t hosts;
	uint32_t leaves;
	uint32_t spines;
	bool doubling; /**< cables of hosts have different lengths */
};

/** Settings of all hosts. */
struct sim_host_conf {
	bool ipv6;
	bool wrap; /**< sequence numbers start shortly before 2^32 */
	uint16_t mtu;
	uint64_t poll_ns;          /**< duration of a polling round: packets wait for the next */
	uint64_t clock_ppm_range;  /**< clocks deviate by up to this */
	uint32_t rx_ring;          /**< room for packets of a host that does not run */
	uint32_t nic_bytes;        /**< bytes queued on the host's port at a time */
	uint32_t mbufs;            /**< size of a pool per host; 0: one common pool */
	uint32_t cam;              /**< entries of the CAM; 0: enough */
	struct san_cm_param conn;  /**< of connections */
	struct san_core_conf core; /**< sim_host.c sets what depends on the load */
};

enum sim_pattern {
	SIM_PATTERN_PAIRS,       /**< host 2i talks to host 2i + 1 */
	SIM_PATTERN_INCAST,      /**< all hosts to host 0 */
	SIM_PATTERN_FAN,         /**< host 0 to all */
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

#define SIM_KINDS 6 /**< enum rtsan_wr_opcode, from RTSAN_WR_SEND on */

struct sim_load_conf {
	uint8_t pattern; /**< enum sim_pattern */
	uint8_t solicit; /**< enum sim_solicit */
	bool both_ways;  /**< the accepting side initiates as well */
	bool relaxed;
	uint32_t connections;        /**< total number */
	uint32_t unordered_ppm;      /**< share of connections that are unordered */
	uint32_t streams_ppm;        /**< share of streams, which are always ordered */
	uint32_t weights[SIM_KINDS]; /**< for send, push, push-imm, pull, fetch-add, cmp-swap */
	uint32_t size_min, size_max; /**< bytes, log-uniform */
	uint32_t depth;              /**< open requests of a connection */
	uint64_t ops;                /**< requests of each side; 0: until the end of the duration */
	uint64_t start_step_ns;      /**< delay between the starts of two connections */
	uint64_t stop_step_ns;       /**< between their stops, in reverse order; 0: stop together */
	uint64_t recv_delay_ns;      /**< maximum delay of posting a receive again */
	uint32_t bad_ppm;            /**< requests with a wrong key, which are refused */
	uint64_t revoke_ns;          /**< mean interval of revocations per target; 0: never */
	bool reconnect;              /**< a broken connection is set up again */
};

enum sim_fault_kind {
	SIM_FAULT_NONE,
	SIM_FAULT_LOSS,      /**< rate: of packets, independently */
	SIM_FAULT_BURST,     /**< rate: of packets, in bursts of 8 on average */
	SIM_FAULT_FLOW,      /**< rate: of flows (path and UDP source port) lose all packets */
	SIM_FAULT_REORDER,   /**< rate: of packets are delayed by up to arg */
	SIM_FAULT_DUPLICATE, /**< rate: of packets are duplicated, the copy up to arg later */
	SIM_FAULT_CORRUPT,   /**< rate: of packets have a bit inverted */
	SIM_FAULT_DOWN,      /**< nothing passes; :up or :down for one direction */
	SIM_FAULT_PAUSE,     /**< the host does not run */
	SIM_FAULT_RESTART,   /**< the process of the host dies and is replaced after "for" */
	SIM_FAULT_NARROW,    /**< packets longer than mtu (IP bytes) are lost */
	SIM_FAULT_FORGE,     /**< a forged CNP follows each so many packets */
	SIM_FAULT_MUTE,      /**< data is lost, all else passes: a peer that does not continue */
	SIM_FAULT_MOVE,      /**< the host changes its MAC address silently */
	SIM_FAULT_LIE,       /**< the host falsifies what it sends */
	SIM_FAULT_MAX
};

enum sim_lie {
	SIM_LIE_NONE,
	SIM_LIE_RECEIVED, /**< it reports data as received, and acknowledges none */
	SIM_LIE_PARTIAL,  /**< likewise, but acknowledges every second packet; tiny window */
	SIM_LIE_UNACKED,  /**< reports nothing; tiny window */
	SIM_LIE_REFUSE,   /**< refuses data, and posts no receives */
	SIM_LIE_BEGIN,    /**< does not use grants, nor continue what it began */
	SIM_LIE_QUIET,    /**< sends ACKs only */
	SIM_LIE_SILENT,   /**< sends nothing */
	SIM_LIE_MAX
};

struct sim_fault_conf {
	char name[SIM_NAME_MAX];
	uint8_t kind;             /**< enum sim_fault_kind; SIM_FAULT_MAX: not set */
	char where[SIM_NAME_MAX]; /**< all, host:N, spine:N, trunk; :up or :down */
	uint64_t at_ns;           /**< relative to the start of the load */
	uint64_t for_ns;          /**< 0: until the end of the run */
	uint32_t rate_ppm;        /**< UINT32_MAX: not set */
	uint64_t arg_ns;
	uint16_t mtu; /**< narrow */
	uint8_t lie;  /**< enum sim_lie */
};

struct sim_run_conf {
	uint64_t seed;
	uint64_t warmup_ns;      /**< part of the load before the measurement */
	uint64_t duration_ns;    /**< time in which requests are posted */
	uint64_t settle_ns;      /**< time limit for all to complete afterwards */
	uint64_t stall_ns;       /**< a connection without progress for so long is an error */
	uint64_t silence_max_ns; /**< likewise, even with faults; 0: no limit */
	uint64_t sample_ns;      /**< interval of time series and Jain's index; 0: none */
	uint32_t check_every;    /**< check a host after so many rounds; 0: never */
	uint32_t jain_min_ppm;   /**< minimum fairness during the measurement; 0: not checked */
};

struct sim_conf {
	struct sim_run_conf run;
	struct sim_topo_conf topo;
	struct sim_link_conf edge; /**< between a host and its switch */
	struct sim_link_conf core; /**< between switches; unset values are those of edge */
	struct sim_host_conf host;
	struct sim_load_conf load;
	uint32_t nb_faults;
	struct sim_fault_conf faults[SIM_FAULTS_MAX];
};

void san_sim_conf_default(struct sim_conf *conf);
/** Read an INI file into *conf*. 0, or -errno with the error and its place in *err*. */
int san_sim_conf_file_load(struct sim_conf *conf, const char *path, char *err, size_t err_len);
/** Set "section.key=value"; for faults "fault.NAME.key=value". 0, or -EINVAL with *err*. */
int san_sim_conf_set(struct sim_conf *conf, const char *word, char *err, size_t err_len);
/** Derive unset values, and check the combination of keys. 0, or -EINVAL with *err*. */
int san_sim_conf_rules_check(struct sim_conf *conf, char *err, size_t err_len);
/**
 * Print as INI all keys that are set. In a checked scenario these are all keys, so the file repeats
 * the run even if defaults change.
 */
void san_sim_conf_print(const struct sim_conf *conf, FILE *out);
/** "section.key value" for messages; not for faults. */
void san_sim_conf_text(const struct sim_conf *conf, const char *key, char *buf, size_t len);
/** Print every key as a comment, with meaning, range and default. */
void san_sim_conf_help(FILE *out);
/** Names of values, as in files. */
const char *san_sim_conf_fault_name(uint8_t kind);
const char *san_sim_conf_kind_name(uint32_t kind);

#endif /* SIM_CONF_H */
