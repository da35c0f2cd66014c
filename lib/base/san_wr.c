/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "san_wr.h"

uint32_t
san_wr_cq_poll(struct san_spsc_cons *c, struct san_cq *q, struct san_ulp_wc *wc, uint32_t n)
{
	uint32_t count = san_spsc_count(c, &q->tail);
	uint32_t head, first;

	if (count == 0)
		return 0;
	if (count < n) /* a caller that asks for all gets all */
		count = san_spsc_count_now(c, &q->tail);
	n = n < count ? n : count;
	head = c->head & c->mask;
	first = c->mask + 1 - head;
	first = first < n ? first : n;
	memcpy(wc, &q->wc[head], first * sizeof(wc[0]));
	memcpy(wc + first, q->wc, (n - first) * sizeof(wc[0]));
	san_spsc_pop(c, &q->head, n);
	return n;
}
