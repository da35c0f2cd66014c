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

#include "rtsan_abi.h"

struct rte_tel_data;
struct san_engine;
struct san_engine_port;

/* ---- view.c ---- */

/** Where a view goes. */
struct san_view {
	struct rte_tel_data *dict; /**< NULL: to *text* */
	FILE *text;
	uint32_t column; /**< of the text, whose lines are broken */
};

/** A number of an object: 1, 2, 4 or 8 *bytes* at *offset*. */
struct san_view_field {
	const char *name;
	uint16_t offset, bytes;
};

#define SAN_VIEW_FIELD(type, name, member)                                   \
	{                                                                    \
		name, offsetof(type, member), sizeof(((type *)NULL)->member) \
	}

void san_view_u64(struct san_view *v, const char *name, uint64_t value);
void san_view_string(struct san_view *v, const char *name, const char *value);
/** All *n* fields of *object*. */
void san_view_fields(struct san_view *v, const struct san_view_field *fields, size_t n,
		     const void *object);

/* ---- view_counters.c ---- */

#define SAN_VIEW_COUNTERS 256 /**< room for all */

/**
 * Get the counters of *e*; NULL: of all engines, summed. Returns their number. The last
 * SAN_DROP_MAX - 1 are dropped packets by reason.
 */
uint32_t san_view_counters(struct san_engine_port *p, struct san_engine *e,
			   struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS]);
/** Show those whose name begins with *prefix*, or those whose name does not. */
void san_view_counters_put(struct san_engine_port *p, struct san_engine *e, struct san_view *v,
			   const char *prefix, bool want);
/** True of a state, false of a count. */
bool san_view_counters_is_gauge(const char *name);
uint64_t san_view_counters_leaks(struct san_engine_port *p);

/* ---- view_lcore.c ---- */

struct san_view_busy {
	uint64_t time_ns, busy_ns; /**< since the engine was started */
};

/** Show an lcore. Returns its times. */
struct san_view_busy san_view_lcore(struct san_engine *e, struct san_view *v);

/* ---- view_stream.c ---- */

/** Show all streams. Call on their lcore. */
void san_view_stream_text(struct san_engine *e, FILE *f);

/* ---- view_telemetry.c ---- */

/** Answer telemetry about the port. */
void san_view_telemetry_add(struct san_engine_port *p);
/** On return no thread of telemetry reads the engines any more. */
void san_view_telemetry_del(struct san_engine_port *p);

/* ---- view_text.c ---- */

void san_view_text(struct san_engine_port *p, enum rtsan_dpdk_show what, FILE *f);

#endif /* VIEW_H */
