/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file What a connection sends in its turn: the packets of one visit, and the mbufs for them. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "pdl.h"
#include "wire.h"

/** Empty mbufs, taken from the pool several at a time. Unused ones stay for the next visit. */
#define SAN_SPARE 8
struct san_spare {
	uint32_t n;
	struct rte_mbuf *m[SAN_SPARE];
};

/** Returns false if there is none, here and in the pool. */
static inline bool
san_visit_spare_fill(struct san_spare *s, struct rte_mempool *pool)
{
	if (likely(s->n != 0))
		return true;
	if (likely(rte_pktmbuf_alloc_bulk(pool, s->m, SAN_SPARE) == 0))
		s->n = SAN_SPARE;
	else if ((s->m[0] = rte_pktmbuf_alloc(pool)) != NULL)
		s->n = 1;
	return s->n != 0;
}

static inline struct rte_mbuf *
san_visit_spare_take(struct san_spare *s)
{
	return s->m[--s->n];
}

static inline void
san_visit_spare_empty(struct san_spare *s)
{
	rte_pktmbuf_free_bulk(s->m, s->n);
	s->n = 0;
}

/**
 * One visit: *tmpl* has the common part of the headers, *p* the fields of the last packet. Neither
 * is written before the first packet.
 */
struct san_visit {
	struct san_pdl_conn *c;
	struct rte_mbuf **pkts;
	uint16_t nb, max;
	uint32_t limit;        /**< result of san_pdl_tx_header() */
	struct san_wire_pkt p; /**< fields that the type of packet does not use are not written */
	struct san_wire_tmpl tmpl;
};

/** Write the headers of *m*, which has its payload; tl has set the fields in v->p. */
static inline void
san_visit_add(struct san_visit *v, struct san_pdl *pdl, struct rte_mbuf *m, uint64_t now_ns)
{
	if (v->nb == 0) {
		v->limit = san_pdl_tx_header(pdl, v->c, &v->p, now_ns);
		san_wire_build_tmpl_init(&v->tmpl, &v->c->path, &v->p);
	} else {
		san_pdl_tx_header_next(pdl, v->c, &v->p, v->limit);
	}
	san_wire_build_next(m, &v->tmpl, &v->p);
	v->pkts[v->nb++] = m;
}
