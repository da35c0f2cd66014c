/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * What only observes the engine: counters, and connections, streams and lcores as operators see
 * them. A view is a set of names and values, of which a telemetry answer and a text for people are
 * two forms, so both have the same names. The engine itself reads nothing of this folder. (SYS-1,
 * ARCH-7)
 *
 * An engine on an lcore is asked by a call. Of an engine that the application polls another thread
 * may read single words, but must not follow pointers that the engine may free.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine.h"
#include "rtsan_abi.h"
#include "san_counters.h"

struct rte_tel_data;

/* ---- view.c ---- */

/** Where a view goes. */
struct san_view {
	struct rte_tel_data *dict; /**< NULL: to *text* */
	FILE *text;
	uint32_t column; /**< of the text, whose lines are broken */
};

/** OpenMetrics has these types, but for MARK: a gauge of which the highest counts, not the sum. */
enum san_view_kind {
	SAN_VIEW_COUNTER,
	SAN_VIEW_GAUGE,
	SAN_VIEW_MARK,
	SAN_VIEW_INFO, /**< a text or a number that names something */
	SAN_VIEW_HISTOGRAM,
	SAN_VIEW_GAUGEHISTOGRAM,
};

/** A value, what it means, and if it is a number of an object: 1, 2, 4 or 8 *bytes* at *offset*. */
struct san_view_field {
	const char *name, *unit, *help;
	uint8_t kind; /**< enum san_view_kind */
	uint16_t offset, bytes;
};

/** The fields of one kind of object. */
struct san_view_set {
	const struct san_view_field *fields;
	uint32_t nb;
};

/* clang-format off */

/** A field of an object, read from *member*. */
#define SAN_VIEW_FIELD(type, name, member, kind, unit, help) \
	{#name, unit, help, SAN_VIEW_##kind, offsetof(type, member), sizeof(((type *)0)->member)}
/** A field that is shown by a call. */
#define SAN_VIEW_NOTE(name, kind, unit, help) {#name, unit, help, SAN_VIEW_##kind, 0, 0}

/* clang-format on */

/** Version and commit of the program with the engine, which sets it: see rtsan_build(). */
extern const char *san_view_build;

void san_view_u64(struct san_view *v, const char *name, uint64_t value);
void san_view_hex(struct san_view *v, const char *name, int digits, uint64_t value);
void san_view_string(struct san_view *v, const char *name, const char *value);
/** Show all *n* fields that *object* has. */
void san_view_fields(struct san_view *v, const struct san_view_field *fields, size_t n,
		     const void *object);
/** Show a port, or what its engines have, as text for people. */
void san_view_text(struct san_engine_port *p, enum rtsan_dpdk_show what, FILE *f);
/** Answer with kind, unit and help of all fields, as in "counter packets: Packets sent again." */
int san_view_explain(struct rte_tel_data *d, const struct san_view_set *set);

/*
 * ---- view_capture.c ----
 *
 * Captures that an operator starts and stops while applications run. Applications use
 * san_view_capture().
 */

#define VIEW_CAPTURE_NAME 256

struct san_view_capture_conf {
	const char *file; /**< its name, for operators */
	int fd;           /**< of the file, open for writing; it stays the caller's */
	uint32_t snap;    /**< bytes kept of each packet; 0: all */
	/* both CIDs of one connection; cid 0: the whole port */
	uint32_t cid, dcid;
	struct san_ip peer;
};

/**
 * Start a capture. Any thread. -EBUSY: one is active; -ENOTSUP: the application polls the port, and
 * must capture itself; -ENAMETOOLONG, -ENOMEM.
 */
int san_view_capture_start(struct san_engine_port *p, const struct san_view_capture_conf *conf);
/**
 * Show its state in *v* (NULL: do not), and with *ends* end it. Any thread. False: there is none,
 * or with *ends* only the application's own.
 */
bool san_view_capture_show(struct san_engine_port *p, struct san_view *v, bool ends);

/**
 * Write every packet of the port to *file* (pcapng), until NULL is given. An earlier capture there
 * is replaced. -EEXIST: the file has other contents, and stays; or another error of open().
 */
int san_view_capture(struct san_engine_port *p, const char *file);

/** For the engine: write those of *m* that are wanted. */
void san_view_capture_pkts(struct san_engine *e, struct rte_mbuf **m, uint16_t n, bool tx);

/*
 * ---- view_conn.c ----
 *
 * Connections as operators see them: copies, made on the lcore. A port may have tens of thousands,
 * so they are visited in slices, one call for each, to keep no lcore from its packets for long.
 */

#define VIEW_APP_ANY UINT16_MAX

struct san_view_conn {
	struct san_pdl_conn pdl; /**< a copy; its pointers must not be followed */
	uint64_t cwnd_milli;     /**< thousandths of a packet */
	uint32_t virtual_win, limit, nb_messages;
	uint32_t qpn; /**< SAN_QPN_NONE: none, or unknown */
	uint16_t lcore, app;
	uint8_t hold;              /**< enum san_hold; SAN_HOLD_MAX: unknown */
	bool packs;                /**< small messages share a packet */
	struct san_ulp_qp_view qp; /**< zeros without a queue pair */
};

/** Sums over a port: its connections at this moment, and rounds of its lcores that found work. */
struct san_view_census {
	uint32_t holds[SAN_HOLD_MAX + 1];
	uint64_t rtt[SAN_ENGINE_HIST], rounds[SAN_ENGINE_HIST];
	uint64_t rtt_sum_ns, busy_ns;
};

/** Sums of an application over all lcores. */
struct san_view_app {
	uint32_t nb_conns, nb_qps, nb_faults;
	struct san_ulp_traffic traffic;
};

/** Fields of a connection in lists, and further ones; reasons why connections wait. */
extern const struct san_view_set san_view_conn_list_set, san_view_conn_set, san_view_reasons_set;
extern const struct san_view_set san_view_stream_set;

/** Get that of *slot*. Only the thread of the engine learns queue pair and reason. */
void san_view_conn_of(struct san_engine *e, uint32_t slot, bool is_owner,
		      struct san_view_conn *out);
/** Show a connection as in lists, or all of it. */
void san_view_conn_brief(struct san_view *v, const struct san_view_conn *c);
void san_view_conn_full(struct san_view *v, const struct san_view_conn *c);
/**
 * Get at most *max* connections; only those of *app* unless it is VIEW_APP_ANY. *from* is 0, or the
 * last *next*, which is 0 if there are no more. Returns the number in *out*.
 */
uint32_t san_view_conn_all(struct san_engine_port *p, uint32_t from, uint16_t app,
			   struct san_view_conn *out, uint32_t max, uint32_t *next);
/** Get one connection by its CID. -ENOENT. */
int san_view_conn_one(struct san_engine_port *p, uint32_t cid, struct san_view_conn *out);

/** The stream of a connection. */
struct san_view_stream {
	uint32_t cid;
	uint64_t now_ns;
	struct san_stream_view view;
};

/** Get that of *c*. Only on its lcore, which may free the session at any time. -ENOENT. */
int san_view_stream_of(const struct san_engine *e, const struct san_pdl_conn *c,
		       struct san_view_stream *out);
/** Get one by its CID. -ENOENT, -ENOTSUP: the program polls the engine itself. */
int san_view_stream_one(struct san_engine_port *p, uint32_t cid, struct san_view_stream *out);
/** Show it. 0, or -ENOMEM. */
int san_view_stream(struct san_view *v, const struct san_view_stream *s);

void san_view_conn_count(struct san_engine_port *p, struct san_view_census *out);
/** Fill SAN_ENGINE_APPS entries of *out*, indexed by application. */
void san_view_conn_count_apps(struct san_engine_port *p, struct san_view_app *out);

/* ---- view_counters.c ---- */

#define SAN_VIEW_COUNTERS 256 /**< room for all */

/**
 * Get the counters of *e*; NULL: of all engines, summed. Returns their number. The last
 * SAN_DROP_MAX - 1 are dropped packets by reason.
 */
uint32_t san_view_counters(struct san_engine_port *p, struct san_engine *e,
			   struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS]);
extern const struct san_view_set san_view_all_set;
extern const struct san_view_set san_view_counters_set; /**< all but drops */
extern const struct san_view_set san_view_drops_set, san_view_cam_set;

/** Show those of *set*, which is one of these. */
void san_view_counters_put(struct san_engine_port *p, struct san_engine *e, struct san_view *v,
			   const struct san_view_set *set);
uint64_t san_view_counters_leaks(struct san_engine_port *p);

/* ---- view_port.c ---- */

extern const struct san_view_set san_view_port_set, san_view_lcore_set;

void san_view_port(const struct san_engine_port *p, struct san_view *v);
void san_view_lcore(struct san_engine *e, struct san_view *v);

/* ---- view_telemetry.c ---- */

/*
 * An answer has at most RTE_TEL_MAX_DICT_ENTRIES entries and 16 KiB. DPDK silently cuts off the
 * rest, so long answers come in pages. An invalid request is answered with a text under "error".
 */

int san_view_telemetry_error(struct rte_tel_data *d, const char *text);
/**
 * Cut "port=NAME" and its comma off the front of *params*; *name* is empty if they begin with
 * something else. False: the name is invalid.
 */
bool san_view_telemetry_port_name(const char **params, char name[SAN_ENGINE_NAME]);
/** Answer telemetry about the port. */
void san_view_telemetry_add(struct san_engine_port *p);
/** On return no thread of telemetry reads the engines any more. */
void san_view_telemetry_del(struct san_engine_port *p);
