/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Memory of the reorder engine: one rte_hash per lcore as content-addressable memory (CAM) for
 * everything out of order, keyed by connection, kind and sequence number (RT-19; RULE-15).
 *
 * Anything in order never gets here: callers compare with their base first. When they advance the
 * base they take the next number out of the CAM until it misses. The owner creates the table, and
 * several simulated engines of a process share one, so the engine id is part of the key.
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
	uint64_t nb_rejects;          /**< CAM full: a red-zone rejection, not an error */
	struct san_cam_entry *parked; /**< *nb_used* entries, while no process has a table */
};

/** Create the table for *entries*; *name* must be unique in the process. NULL: see rte_errno. */
struct rte_hash *san_tl_reorder_create_table(const char *name, uint32_t entries, int socket_id);
/** 0, -EEXIST, or -ENOSPC (counted). */
int san_tl_reorder_add(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq,
		       void *value);
/** Look up a value and leave it in place; NULL: miss. */
void *san_tl_reorder_find(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq);
/** Take a value out; NULL: miss. */
void *san_tl_reorder_take(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq);
/** Move all entries to *mem*. The owner frees the table. */
void san_tl_reorder_park(struct san_cam *cam, struct san_mem *mem);
/** Move them back into *table*. -ENOSPC: they are still parked. */
int san_tl_reorder_resume(struct san_cam *cam, struct san_mem *mem, struct rte_hash *table);
