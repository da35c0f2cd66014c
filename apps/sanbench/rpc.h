/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_H
#define RPC_H

/**
 * @file
 * One end of a connection that carries requests and answers, both as sends. An answer is the
 * request with a mark. Either end may send requests.
 *
 * All messages are inline and unsignaled: an answer proves that the request has arrived, and the
 * number of open requests is limited to the peer's receives.
 */

#include "net.h"

struct rpc;

/**
 * Create one end.
 *
 * @param is_server
 *   Selects the content of the requests: it differs between the two ends.
 * @param batch
 *   Requests that are posted together; 0: as many as may be in flight.
 * @return
 *   0 or a negative errno.
 */
int san_rpc_open(struct bench *b, struct bench_qp *q, const struct hello *hello, bool is_server,
		 uint32_t batch, struct hist *lat, struct rpc **out);
/** Call after the queue pair is closed. */
void san_rpc_close(struct rpc *r);
void san_rpc_on_wc(struct rpc *r, const struct rtsan_wc *wc);
/** Post answers and up to *max* new requests. */
void san_rpc_step(struct rpc *r, uint64_t max);

struct rpc_state {
	uint64_t asked;    /**< own requests */
	uint64_t answered; /**< those of them that are answered */
	uint64_t served;   /**< requests of the peer */
	const char *error; /**< text of the last error, or NULL */
};
const struct rpc_state *san_rpc_state(const struct rpc *r);

#endif /* RPC_H */
