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

struct san_core_stream_conf {
	struct san_ulp_qp_conf qp;     /**< queues and depths as the program sees them */
	struct san_stream_conf stream; /**< depths are those of *qp*, whatever stands here */
};

/**
 * A queue pair that is a stream. It is connected, posted to and disconnected as others are; its
 * connection must be ordered, and not relaxed.
 *
 * @return
 *   0; -EINVAL: see san_stream_conf_check(), or too many messages under way; -ENOSPC, -ENOMEM.
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
 *   False: there is nothing to go on with, or it needs memory of the program's. Nothing changed.
 */
bool san_core_stream_orphan(struct san_core *core, uint32_t qp, uint64_t now_ns);
/** The session of *qp*; NULL: it is no stream. */
const struct san_stream *san_core_stream(const struct san_core *core, uint32_t qp);
/** Does a work request or receive of a stream name *key*? Looks at all of them. */
bool san_core_streams_name_key(const struct san_core *core, uint32_t key);
/** Streams, and of these those whose programs have gone. */
uint32_t san_core_nb_streams(const struct san_core *core);
uint32_t san_core_nb_orphans(const struct san_core *core);

#endif /* CORE_STREAM_H */
