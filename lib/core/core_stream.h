/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_STREAM_H
#define CORE_STREAM_H

/**
 * @file
 * Streams of one core: queue pairs whose work is done by a session (lib/stream) for the
 * application. Work, connections and time use the calls of core.h; the calls here are for streams
 * only. (AFC-1 ... AFC-28)
 */

#include <stdbool.h>
#include <stdint.h>

#include "stream.h"
#include "ulp.h"

struct san_core;

#define SAN_CORE_ALONE UINT32_MAX /**< user: the application owns the core; no limits apply */

struct san_core_stream_conf {
	struct san_ulp_qp_conf qp;     /**< queues and depths for the application */
	struct san_stream_conf stream; /**< the depths are ignored; those of *qp* count */
	bool is_sock;                  /**< completions go to carried socket *sock* instead */
	uint32_t sock;
	uint32_t user; /**< user that the stream counts for; or SAN_CORE_ALONE */
};

/**
 * Create a queue pair that is a stream. It is connected, posted to and disconnected as others are;
 * its connection must be ordered and not relaxed.
 *
 * @return
 *   0; -EINVAL: see san_stream_conf_check(); -ENOSPC; -ENOMEM: also if conf.stream_mem or the
 *   user's part of it is used up.
 */
int san_core_stream_create(struct san_core *core, const struct san_core_stream_conf *conf,
			   uint64_t now_ns, uint32_t *qp);
/**
 * It must have no connection (see san_core_conn_abort()). Posted work is flushed. -EBUSY,
 * -EINVAL.
 */
int san_core_stream_destroy(struct san_core *core, uint32_t qp);
/**
 * The application has ended: its memory and queues are no longer accessed. The stream continues
 * sending for at most conf.linger_ns; then the queue pair is destroyed.
 *
 * @return
 *   False: nothing is left to send, or it needs memory of the application, or orphaned streams
 *   already have half of the queue pairs or of conf.stream_mem. Nothing changed.
 */
bool san_core_stream_orphan(struct san_core *core, uint32_t qp, uint64_t now_ns);
/** End all orphaned streams now, whatever they still have to send. */
void san_core_stream_cut_all(struct san_core *core, uint64_t now_ns);
/** The session of *qp*; NULL: it is not a stream. */
const struct san_stream *san_core_stream(const struct san_core *core, uint32_t qp);
/** True if a work request or receive of a stream names *key*. Scans all of them. */
bool san_core_stream_names_key(const struct san_core *core, uint32_t key);
/** Number of streams, and used bytes of conf.stream_mem; then those of orphaned streams. */
uint32_t san_core_stream_nb(const struct san_core *core);
uint64_t san_core_share_stream_bytes(const struct san_core *core);
uint32_t san_core_share_nb_orphans(const struct san_core *core);
uint64_t san_core_share_orphan_bytes(const struct san_core *core);
/** Orphaned streams of *user*. */
uint32_t san_core_share_user_orphans(const struct san_core *core, uint32_t user);
/** Most bytes that a stream holds at any time. (SYS-5) */
uint64_t san_core_stream_bytes_max(const struct san_stream_conf *conf);

#endif /* CORE_STREAM_H */
