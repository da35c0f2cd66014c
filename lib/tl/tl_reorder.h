/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TL_REORDER_H
#define TL_REORDER_H

/**
 * @file
 * The reorder engine's memory: one rte_hash per lcore as content-addressable
 * memory (CAM) for what is out of order, keyed by connection, kind and
 * sequence number (RT-19; design, rule 15).
 *
 * What comes in order never gets here: callers compare with their base first.
 * When they advance the base they take the next number out of the CAM until
 * it misses. The table is made by the owner (a process can't hold one per
 * simulated engine), so the engine id is part of the key.
 */

#include <stdint.h>

#include "san_mem.h"

struct rte_hash;

enum san_cam_kind {
	SAN_CAM_REQUEST = 1, /**< target: transaction by RSN, ahead of the base or in progress */
	SAN_CAM_SOLICIT = 2, /**< target: solicited request by SSN, ahead of the base SSN */
	SAN_CAM_GRANT = 3,   /**< initiator: grant by SSN, ahead of the base SSN */
	SAN_CAM_CMPL = 4,    /**< initiator: finished transaction by RSN, ahead of the base RSN */
};

struct san_cam_entry; /* tl_reorder.c */

struct san_cam {
	struct rte_hash *hash;
	uint32_t engine;
	uint32_t nb_used;
	uint32_t nb_high; /**< high-water mark */
	uint64_t nb_inserts;
	uint64_t nb_lookups;
	uint64_t nb_hits;
	uint64_t nb_rejects;          /**< no space: a red-zone rejection, not an error */
	struct san_cam_entry *parked; /**< *nb_used* of them, while no process has a table */
};

/** The table for *entries*; names must be unique in the process. NULL: see rte_errno. */
struct rte_hash *san_cam_table_create(const char *name, uint32_t entries, int socket_id);
void san_cam_init(struct san_cam *cam, struct rte_hash *table, uint32_t engine);
/** 0, -EEXIST, or -ENOSPC (counted). */
int san_cam_add(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq,
		void *value);
/** Value, left in place; NULL: miss. */
void *san_cam_find(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq);
/** Value, taken out; NULL: miss. */
void *san_cam_take(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq);
/** Everything is in *mem* from now on. The table is the owner's to free. */
void san_cam_park(struct san_cam *cam, struct san_mem *mem);
/** And back, into *table*. -ENOSPC; then it is still parked. */
int san_cam_resume(struct san_cam *cam, struct san_mem *mem, struct rte_hash *table);

#endif /* TL_REORDER_H */
