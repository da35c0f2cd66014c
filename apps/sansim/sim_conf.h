/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

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
#include "san_prng.h"
#include "san_wr.h"
#include "sim_link.h"

#define SIM_FAULTS_MAX 32
#define SIM_NAME_MAX   32

/* clang-format off */

/* Values that are words in a scenario: X(constant, word ...) */

#define SIM_TOPOS(X) \
	X(PAIR, "pair")             /* two hosts, one cable */ \
	X(STAR, "star")             /* every host on one switch */ \
	X(DUMBBELL, "dumbbell")     /* half of the hosts on each of two switches, one trunk */ \
	X(LEAF_SPINE, "leaf-spine") /* two tiers; as many paths between leaves as spines */

#define SIM_PATTERNS(X) \
	X(PAIRS, "pairs")             /* host 2i talks to host 2i + 1 */ \
	X(INCAST, "incast")           /* all hosts to host 0 */ \
	X(FAN, "fan")                 /* host 0 to all */ \
	X(ACROSS, "across")           /* host i to i + hosts/2: over the trunk or the spines */ \
	X(RANDOM, "random")           /* each connection between two hosts drawn from the seed */ \
	X(PERMUTATION, "permutation") /* host i to host i + 1 */

#define SIM_SOLICITS(X) \
	X(AUTO, "auto") X(ALWAYS, "always") X(NEVER, "never")

/*
 * Faults. After the word: the rate from which connections may stall, and that from which a packet
 * and all its retransmissions can be lost: in a burst, too, because on an idle link it does not end
 * by other packets. True: a host has it, not a link.
 */
#define SIM_ANY_RATE     0
#define SIM_NO_RATE      UINT32_MAX
#define SIM_STALLS_PPM   (SIM_PPM / 5 + 1)   /* from that on no progress is required */
#define SIM_SILENCES_PPM (SIM_PPM / 100 + 1) /* below that no packet is lost repeatedly */

#define SIM_FAULTS(X) \
	X(NONE, "none", SIM_STALLS_PPM, SIM_NO_RATE, false) \
	/* rate: of packets, independently */ \
	X(LOSS, "loss", SIM_STALLS_PPM, SIM_SILENCES_PPM, false) \
	/* rate: of packets, in bursts of 8 on average */ \
	X(BURST, "burst", SIM_STALLS_PPM, SIM_ANY_RATE, false) \
	/* rate: of flows (path and UDP source port) lose all packets */ \
	X(FLOW, "flow", SIM_ANY_RATE, SIM_ANY_RATE, false) \
	/* rate: of packets are delayed by up to arg */ \
	X(REORDER, "reorder", SIM_STALLS_PPM, SIM_NO_RATE, false) \
	/* rate: of packets are duplicated, the copy up to arg later */ \
	X(DUPLICATE, "duplicate", SIM_STALLS_PPM, SIM_NO_RATE, false) \
	/* rate: of packets have a bit inverted */ \
	X(CORRUPT, "corrupt", SIM_STALLS_PPM, SIM_SILENCES_PPM, false) \
	/* nothing passes; :up or :down for one direction */ \
	X(DOWN, "down", SIM_ANY_RATE, SIM_ANY_RATE, false) \
	/* the host does not run */ \
	X(PAUSE, "pause", SIM_ANY_RATE, SIM_ANY_RATE, true) \
	/* the process of the host dies and is replaced after "for" */ \
	X(RESTART, "restart", SIM_ANY_RATE, SIM_NO_RATE, true) \
	/* packets longer than mtu (IP bytes) are lost */ \
	X(NARROW, "narrow", SIM_STALLS_PPM, SIM_NO_RATE, false) \
	/* a forged CNP follows each so many packets */ \
	X(FORGE, "forge", SIM_NO_RATE, SIM_NO_RATE, false) \
	/* data is lost, all else passes: a peer that does not continue */ \
	X(MUTE, "mute", SIM_ANY_RATE, SIM_ANY_RATE, false) \
	/* the host changes its MAC address silently */ \
	X(MOVE, "move", SIM_STALLS_PPM, SIM_NO_RATE, true) \
	/* the host falsifies what it sends */ \
	X(LIE, "lie", SIM_STALLS_PPM, SIM_NO_RATE, true)

#define SIM_LIES(X) \
	X(NONE, "none") \
	X(RECEIVED, "received") /* it reports data as received, and acknowledges none */ \
	X(PARTIAL, "partial")   /* likewise, but acknowledges every second packet; tiny window */ \
	X(UNACKED, "unacked")   /* reports nothing; tiny window */ \
	X(REFUSE, "refuse")     /* refuses data, and posts no receives */ \
	X(BEGIN, "begin")       /* does not use grants, nor continue what it began */ \
	X(QUIET, "quiet")       /* sends ACKs only */ \
	X(SILENT, "silent")     /* sends nothing */

#define SIM_TOPO_MEMBER(name, word)    SIM_TOPO_##name,
#define SIM_PATTERN_MEMBER(name, word) SIM_PATTERN_##name,
#define SIM_SOLICIT_MEMBER(name, word) SIM_SOLICIT_##name,
#define SIM_FAULT_MEMBER(name, ...)    SIM_FAULT_##name,
#define SIM_LIE_MEMBER(name, word)     SIM_LIE_##name,

enum sim_topo_type { SIM_TOPOS(SIM_TOPO_MEMBER) SIM_TOPO_MAX };
enum sim_pattern { SIM_PATTERNS(SIM_PATTERN_MEMBER) };
enum sim_solicit { SIM_SOLICITS(SIM_SOLICIT_MEMBER) SIM_SOLICIT_MAX };
enum sim_fault_kind { SIM_FAULTS(SIM_FAULT_MEMBER) SIM_FAULT_MAX };
enum sim_lie { SIM_LIES(SIM_LIE_MEMBER) SIM_LIE_MAX };

/* clang-format on */

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

/** A place: all links, those of a host, a spine or the trunk; or a host itself. */
struct sim_place {
	enum {
		SIM_PLACE_ALL,
		SIM_PLACE_HOST,
		SIM_PLACE_SPINE,
		SIM_PLACE_TRUNK
	} kind;
	uint32_t id;   /**< of the host or spine */
	bool from, to; /**< outgoing links, incoming links */
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
/** Print every key as a comment, with meaning, range and default. */
void san_sim_conf_help(FILE *out);
/** Parse the name of a place, which need not exist. False: it is not of this form. */
bool san_sim_conf_place(const char *text, struct sim_place *p);
/** Names of kinds of requests, as in files. */
extern const char *const san_sim_conf_kinds[SIM_KINDS];

/* ---- sim_core.c: what simulated cores need, also those of test/sim and bench_core ---- */

void san_sim_core_ip(struct san_ip *ip, uint32_t id, bool ipv6);
/** Turn defaults into the configuration of host *id*. *prng* supplies secrets, also later. */
void san_sim_core_conf(struct san_core_conf *conf, uint32_t id, bool ipv6, struct san_prng *prng);

#define SIM_EAL_SWARM_MB 768 /**< sufficient for any scenario of a swarm */

/**
 * Start EAL with *mb* megabytes: memory only, no devices, no hugepages, nothing shared. On failure
 * print a message and exit.
 */
void san_sim_core_eal_init(uint32_t mb);
