/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_TELEMETRY_H
#define VIEW_TELEMETRY_H

/**
 * @file
 * Commands that view_telemetry.c registers and view_telemetry_conn.c answers, under the lock
 * that protects the port. An answer has at most RTE_TEL_MAX_DICT_ENTRIES entries and 16 KiB. DPDK
 * silently cuts off the rest, so long answers come in pages. An invalid request is answered with a
 * text under "error".
 */

#include <rte_telemetry.h>

#include "engine.h"

/** Answer with an error text. */
int san_view_telemetry_error(struct rte_tel_data *d, const char *text);
/**
 * Parse the number at *text*, up to a comma or the end. Returns what follows it, or NULL if it is
 * not a number.
 */
const char *san_view_telemetry_conn_number(const char *text, uint32_t max, uint32_t *out);
/**
 * Cut "port=NAME" and its comma off the front of *params*; *name* is empty if they begin with
 * something else. False: the name is invalid.
 */
bool san_view_telemetry_port_name(const char **params, char name[SAN_ENGINE_NAME]);

int san_view_telemetry_conn_one(struct san_engine_port *p, struct rte_tel_data *d,
				const char *params);
int san_view_stream_telemetry(struct san_engine_port *p, struct rte_tel_data *d,
			      const char *params);
int san_view_telemetry_conn_list(struct san_engine_port *p, struct rte_tel_data *d,
				 const char *params);
int san_view_telemetry_conn_reasons(struct san_engine_port *p, struct rte_tel_data *d,
				    const char *params);
int san_view_telemetry_conn_hist(struct san_engine_port *p, struct rte_tel_data *d,
				 const char *params);
int san_view_telemetry_conn_capture(struct san_engine_port *p, struct rte_tel_data *d,
				    const char *params);
int san_view_telemetry_conn_capture_stop(struct san_engine_port *p, struct rte_tel_data *d,
					 const char *params);

#endif /* VIEW_TELEMETRY_H */
