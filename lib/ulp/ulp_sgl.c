/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_mbuf.h>

#include "ulp_priv.h"

/** Move to the element that holds *offset*; false: the list ends before it. */
static bool
sgl_seek(struct san_ulp_sgl *l, uint64_t offset)
{
	if (offset < l->start) {
		l->idx = 0;
		l->start = 0;
	}
	while (l->idx < l->nb_sge && offset - l->start >= l->sge[l->idx].length) {
		l->start += l->sge[l->idx].length;
		l->idx++;
	}
	return l->idx < l->nb_sge;
}

/** The contiguous bytes at *offset*, after sgl_seek(): address, and length up to *want*. */
static uint8_t *
sgl_piece_at(const struct san_ulp_sgl *l, uint64_t offset, uint32_t want, uint32_t *len)
{
	const struct rtsan_sge *s = &l->sge[l->idx];
	uint32_t skip = (uint32_t)(offset - l->start);

	*len = RTE_MIN(want, s->length - skip);
	return (uint8_t *)s->addr + skip;
}

uint32_t
san_ulp_sgl_gather(struct san_ulp_sgl *l, uint32_t offset, void *dst, uint32_t len)
{
	const uint8_t *only = san_ulp_sgl_only(l, offset, len);
	uint32_t done = 0, n;

	if (likely(only != NULL)) {
		memcpy(dst, only, len);
		return len;
	}
	while (done < len && sgl_seek(l, (uint64_t)offset + done)) {
		const uint8_t *src = sgl_piece_at(l, (uint64_t)offset + done, len - done, &n);

		memcpy((uint8_t *)dst + done, src, n);
		done += n;
	}
	return done;
}

uint32_t
san_ulp_sgl_scatter_any(struct san_ulp_sgl *l, uint32_t offset, const void *src, uint32_t len)
{
	uint32_t done = 0, n;

	while (done < len && sgl_seek(l, (uint64_t)offset + done)) {
		uint8_t *dst = sgl_piece_at(l, (uint64_t)offset + done, len - done, &n);

		memcpy(dst, (const uint8_t *)src + done, n);
		done += n;
	}
	return done;
}

uint32_t
san_ulp_sgl_scatter_mbuf(struct san_ulp_sgl *l, uint32_t offset, const struct rte_mbuf *m,
			 uint16_t off, uint16_t len)
{
	uint32_t skip = off, done = 0, n;

	for (; m != NULL && done < len; m = m->next) {
		if (skip >= m->data_len) {
			skip -= m->data_len;
			continue;
		}
		n = RTE_MIN((uint32_t)len - done, m->data_len - skip);
		if (san_ulp_sgl_scatter(l, offset + done,
					rte_pktmbuf_mtod_offset(m, const void *, skip), n) != n)
			break;
		done += n;
		skip = 0;
	}
	return done;
}
