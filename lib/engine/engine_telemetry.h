/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TELEMETRY_H
#define ENGINE_TELEMETRY_H

/**
 * @file
 * Commands that engine_telemetry.c knows and engine_telemetry_conn.c answers, under the
 * lock that keeps the port. An answer has at most RTE_TEL_MAX_DICT_ENTRIES entries and 16 KiB;
 * DPDK cuts off silently what is more, so what can be long comes in pages. What is wrong
 * with a request is told in words, under "error".
 */

#include <rte_telemetry.h>

#include "engine.h"

/** An answer that says what is wrong. */
int san_engine_tel_error(struct rte_tel_data *d, const char *text);
/** The number at *text*, up to a comma or the end, and what follows; NULL: it is none. */
const char *san_engine_tel_number(const char *text, uint32_t max, uint32_t *out);
/**
 * Cut "port=NAME" and its comma off the front of *params*; *name* is empty if they begin with
 * something else. False: it is no name.
 */
bool san_engine_tel_port_name(const char **params, char name[SAN_ENGINE_NAME]);

int san_engine_tel_conn(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
int san_engine_tel_stream(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
int san_engine_tel_conn_list(struct san_engine_port *p, struct rte_tel_data *d,
			     const char *params);
int san_engine_tel_reasons(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
int san_engine_tel_hist(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
int san_engine_tel_capture(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
int san_engine_tel_capture_stop(struct san_engine_port *p, struct rte_tel_data *d,
				const char *params);

#endif /* ENGINE_TELEMETRY_H */
