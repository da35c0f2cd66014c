/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_H
#define RPC_H

/**
 * @file
 * One end of a connection that carries requests and answers, both as sends: each
 * request is answered by the same bytes, with a mark. Either end may ask.
 *
 * Everything is sent inline and without a completion: the answer tells that the
 * request has arrived, and nobody asks more than there are receives for.
 */

#include "net.h"

struct rpc;

/**
 * Make one end.
 *
 * @param is_server
 *   Whose requests these are: the two ends send other bytes.
 * @param batch
 *   Requests that are posted together; 0: as many as may be under way.
 * @return
 *   0 or a negative errno.
 */
int rpc_open(struct bench *b, struct bench_qp *q, const struct hello *hello, bool is_server,
	     uint32_t batch, struct app_hist *lat, struct rpc **out);
/** After its queue pair. */
void rpc_close(struct rpc *r);
void rpc_on_wc(struct rpc *r, const struct rtsan_wc *wc);
/** Post answers and up to *max* new requests; how many of the latter, UINT32_MAX: it failed. */
uint32_t rpc_step(struct rpc *r, uint64_t max);
/** What went wrong, or NULL. */
const char *rpc_error(const struct rpc *r);

struct rpc_counts {
	uint64_t asked;    /**< requests of ours */
	uint64_t answered; /**< of those */
	uint64_t served;   /**< requests of the peer */
};
const struct rpc_counts *rpc_counts(const struct rpc *r);

#endif /* RPC_H */
