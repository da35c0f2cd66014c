/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_STREAM_H
#define CORE_STREAM_H

/**
 * @file
 * Streams of one core: queue pairs whose work is a session's (lib/stream), not the program's.
 * Work for them, connections and time come by the calls of core.h; here are those that only
 * streams have. (AFC-1 ... AFC-28)
 */

#include <stdbool.h>
#include <stdint.h>

#include "stream.h"
#include "ulp.h"

struct san_core;

#define SAN_CORE_ALONE UINT32_MAX /**< user: the core is its program's own, which has no limit */

struct san_core_stream_conf {
	struct san_ulp_qp_conf qp;     /**< queues and depths as the program sees them */
	struct san_stream_conf stream; /**< depths are those of *qp*, whatever stands here */
	bool is_sock;                  /**< carried socket *sock* has its completions, no queues */
	uint32_t sock;
	uint32_t user; /**< for whom it counts, to its end; or SAN_CORE_ALONE */
};

/**
 * A queue pair that is a stream. It is connected, posted to and disconnected as others are; its
 * connection must be ordered, and not relaxed.
 *
 * @return
 *   0; -EINVAL: see san_stream_conf_check(); -ENOSPC; -ENOMEM: also if
 *   conf.stream_mem, or its user's part of it, is used up.
 */
int san_core_stream_create(struct san_core *core, const struct san_core_stream_conf *conf,
			   uint64_t now_ns, uint32_t *qp);
/** It has no connection (see san_core_abort()). What is posted is flushed. -EBUSY, -EINVAL. */
int san_core_stream_destroy(struct san_core *core, uint32_t qp);
/**
 * The program has gone: memory and queues of its are not touched any more. What it has sent goes
 * on to the peer, at most conf.linger_ns, then the queue pair is destroyed.
 *
 * @return
 *   False: there is nothing to go on with, or it needs memory of the program's, or half of the
 *   queue pairs or of conf.stream_mem are such streams' already. Nothing changed.
 */
bool san_core_stream_orphan(struct san_core *core, uint32_t qp, uint64_t now_ns);
/** All whose programs have gone end now, whatever they still have to send. */
void san_core_streams_cut(struct san_core *core, uint64_t now_ns);
/** The session of *qp*; NULL: it is no stream. */
const struct san_stream *san_core_stream(const struct san_core *core, uint32_t qp);
/** Does a work request or receive of a stream name *key*? Looks at all of them. */
bool san_core_streams_name_key(const struct san_core *core, uint32_t key);
/** Streams, and bytes of conf.stream_mem; and of these those whose programs have gone. */
uint32_t san_core_nb_streams(const struct san_core *core);
uint64_t san_core_stream_bytes(const struct san_core *core);
uint32_t san_core_nb_orphans(const struct san_core *core);
uint64_t san_core_orphan_bytes(const struct san_core *core);
/** Streams that programs of *user* have left behind. */
uint32_t san_core_user_orphans(const struct san_core *core, uint32_t user);
/** Bytes that a stream may have at any time in its life, in all. (SYS-5) */
uint64_t san_core_stream_bytes_max(const struct san_stream_conf *conf);

#endif /* CORE_STREAM_H */
