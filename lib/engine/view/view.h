/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_H
#define VIEW_H

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

/** A field of an object, read from *member*. */
#define SAN_VIEW_FIELD(type, name, member, kind, unit, help)                \
	{                                                                   \
#name, unit, help, SAN_VIEW_##kind, offsetof(type, member), \
			sizeof(((type *)NULL)->member)                      \
	}
/** A field that is shown by a call. */
#define SAN_VIEW_NOTE(name, kind, unit, help)            \
	{                                                \
#name, unit, help, SAN_VIEW_##kind, 0, 0 \
	}

void san_view_u64(struct san_view *v, const char *name, uint64_t value);
void san_view_hex(struct san_view *v, const char *name, int digits, uint64_t value);
void san_view_string(struct san_view *v, const char *name, const char *value);
/** Show all *n* fields that *object* has. */
void san_view_fields(struct san_view *v, const struct san_view_field *fields, size_t n,
		     const void *object);
/** Answer with kind, unit and help of all fields, as in "counter packets: Packets sent again." */
int san_view_explain(struct rte_tel_data *d, const struct san_view_set *set);

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

/** Show the port. */
void san_view_port(const struct san_engine_port *p, struct san_view *v);
/** Show an lcore. */
void san_view_lcore(struct san_engine *e, struct san_view *v);

/* ---- view_stream.c ---- */

extern const struct san_view_set san_view_stream_set;

/** Show all streams. Call on their lcore. */
void san_view_stream_text(struct san_engine *e, FILE *f);
/** Answer telemetry about the stream of a connection. */
int san_view_stream_telemetry(struct san_engine_port *p, struct rte_tel_data *d,
			      const char *params);

/* ---- view_telemetry.c ---- */

/*
 * An answer has at most RTE_TEL_MAX_DICT_ENTRIES entries and 16 KiB. DPDK silently cuts off the
 * rest, so long answers come in pages. An invalid request is answered with a text under "error".
 */

/** Answer with an error text. */
int san_view_telemetry_error(struct rte_tel_data *d, const char *text);
/**
 * Parse the number at *text*, up to a comma or the end. Returns what follows it, or NULL if it is
 * not a number.
 */
const char *san_view_telemetry_number(const char *text, uint32_t max, uint32_t *out);
/**
 * Cut "port=NAME" and its comma off the front of *params*; *name* is empty if they begin with
 * something else. False: the name is invalid.
 */
bool san_view_telemetry_port_name(const char **params, char name[SAN_ENGINE_NAME]);
/** Answer telemetry about the port. */
void san_view_telemetry_add(struct san_engine_port *p);
/** On return no thread of telemetry reads the engines any more. */
void san_view_telemetry_del(struct san_engine_port *p);

/* ---- view_text.c ---- */

void san_view_text(struct san_engine_port *p, enum rtsan_dpdk_show what, FILE *f);

#endif /* VIEW_H */
