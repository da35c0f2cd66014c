/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ULP_SGL_H
#define ULP_SGL_H

/**
 * @file
 * Scatter-gather lists: access to the bytes of a transaction by offset. A list remembers the
 * element used last, so ascending offsets cost O(1) each. Any other order is allowed too, for
 * resends. (RT-10, RT-11)
 */

#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#include "ulp.h"

struct rte_mbuf;

struct san_ulp_sgl {
	const struct rtsan_sge *sge;
	uint32_t start; /**< offset at which element *idx* starts */
	uint16_t idx;   /**< element used last */
	uint16_t nb_sge;
};

/** *sge* must stay valid while the list is used. */
static inline void
san_ulp_sgl_init(struct san_ulp_sgl *l, const struct rtsan_sge *sge, uint32_t nb_sge)
{
	*l = (struct san_ulp_sgl){.sge = sge, .nb_sge = (uint16_t)nb_sge};
}

/** Likewise over *mine*, which gets a copy of the first RTSAN_SGE_MAX elements of *sge*. */
static inline void
san_ulp_sgl_copy(struct san_ulp_sgl *l, struct rtsan_sge mine[RTSAN_SGE_MAX],
		 const struct rtsan_sge *sge, uint32_t nb_sge)
{
	uint32_t i, n = RTE_MIN(nb_sge, (uint32_t)RTSAN_SGE_MAX);

	mine[0] = sge[0];
	for (i = 1; unlikely(i < n); i++)
		mine[i] = sge[i];
	san_ulp_sgl_init(l, mine, n);
}

/** Total length. */
static inline uint64_t
san_ulp_sgl_len(const struct san_ulp_sgl *l)
{
	uint64_t len = 0;
	uint32_t i;

	for (i = 0; i < l->nb_sge; i++)
		len += l->sge[i].length;
	return len;
}

/** Address of the bytes if the list has one element that contains them, as usual; or NULL. */
static inline uint8_t *
san_ulp_sgl_only(const struct san_ulp_sgl *l, uint32_t offset, uint32_t len)
{
	bool has = l->nb_sge == 1 && (uint64_t)offset + len <= l->sge->length;

	return likely(has) ? (uint8_t *)l->sge->addr + offset : NULL;
}

/** Copy out of the list; returns the bytes copied, fewer than *len* at its end. */
uint32_t san_ulp_sgl_gather(struct san_ulp_sgl *l, uint32_t offset, void *dst, uint32_t len);
/** san_ulp_sgl_scatter() into a list of any form. */
uint32_t san_ulp_sgl_scatter_any(struct san_ulp_sgl *l, uint32_t offset, const void *src,
				 uint32_t len);
/** Copy into the list; returns the same. */
static inline uint32_t
san_ulp_sgl_scatter(struct san_ulp_sgl *l, uint32_t offset, const void *src, uint32_t len)
{
	uint8_t *only = san_ulp_sgl_only(l, offset, len);

	if (unlikely(only == NULL))
		return san_ulp_sgl_scatter_any(l, offset, src, len);
	memcpy(only, src, len);
	return len;
}
/** Copy *len* bytes from *off* of a packet of any number of segments into the list; likewise. */
uint32_t san_ulp_sgl_scatter_mbuf(struct san_ulp_sgl *l, uint32_t offset,
				  const struct rte_mbuf *m, uint16_t off, uint16_t len);

#endif /* ULP_SGL_H */
