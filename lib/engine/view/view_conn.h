/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_CONN_H
#define VIEW_CONN_H

/**
 * @file
 * Connections as operators see them: copies, made on the lcore. A port may have tens of thousands,
 * so they are visited in slices, one call for each, to keep no lcore from its packets for long.
 * (SYS-1)
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "engine_busy.h"
#include "san_counters.h"
#include "view.h"

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

/** Sums over all connections of a port at this moment. */
struct san_view_census {
	uint32_t holds[SAN_HOLD_MAX + 1];
	uint64_t rtt[ENGINE_HIST];
	uint64_t rtt_sum_ns;
};

/** Sums of an application over all lcores. */
struct san_view_app {
	uint32_t nb_conns, nb_qps, nb_faults;
	struct san_ulp_traffic traffic;
};

/** Fields of a connection in lists, and further ones; reasons why connections wait. */
extern const struct san_view_set san_view_conn_list_set, san_view_conn_set, san_view_reasons_set;

/**
 * Get the connection of *slot*. Unless this is the thread that owns the engine, queue pair and
 * reason are unknown.
 */
void san_view_conn_of(struct san_engine *e, uint32_t slot, bool is_owner,
		      struct san_view_conn *out);
/** Show what a list has of a connection. */
void san_view_conn_brief(struct san_view *v, const struct san_view_conn *c);
/** Show all of a connection. */
void san_view_conn_full(struct san_view *v, const struct san_view_conn *c);
/**
 * Get the next connections; only those of *app* unless it is VIEW_APP_ANY.
 *
 * @param from
 *   0, or the last *next*.
 * @param next
 *   Where to continue; 0: there are no more.
 * @return
 *   Number in *out*, at most *max*.
 */
uint32_t san_view_conn_all(struct san_engine_port *p, uint32_t from, uint16_t app,
			   struct san_view_conn *out, uint32_t max, uint32_t *next);
/** Get one connection by its CID. -ENOENT. */
int san_view_conn_one(struct san_engine_port *p, uint32_t cid, struct san_view_conn *out);
void san_view_conn_count(struct san_engine_port *p, struct san_view_census *out);
/** Fill SAN_ENGINE_APPS entries of *out*, indexed by application. */
void san_view_conn_count_apps(struct san_engine_port *p, struct san_view_app *out);

#endif /* VIEW_CONN_H */
