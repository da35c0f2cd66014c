/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * What reliable delivery promises, without windows or timers: per direction and
 * window a plain list of everything sent, what its receiver took, and how often
 * its sender was told that it is acknowledged.
 */

#include <stdbool.h>
#include <stdint.h>

#define MODEL_RTX_MAX 400

struct model_rtx_item {
	uint8_t op;
	uint32_t rsn;
	bool held;       /**< the receiver has it, not acknowledged */
	bool acked;      /**< the receiver acknowledged it: final */
	bool withdrawn;  /**< the sender made it a RESYNC */
	uint8_t nb_done; /**< times the sender heard of it: must become 1 */
};

/** Items by PSN - first PSN: no wrap, no ring. */
struct model_rtx {
	uint32_t first_psn, nb;
	struct model_rtx_item item[MODEL_RTX_MAX];
};

static inline struct model_rtx_item *
model_rtx_item(struct model_rtx *m, uint32_t psn)
{
	uint32_t i = psn - m->first_psn;

	return i < m->nb ? &m->item[i] : NULL;
}

static inline void
model_rtx_sent(struct model_rtx *m, uint8_t op, uint32_t rsn)
{
	m->item[m->nb++] = (struct model_rtx_item){.op = op, .rsn = rsn};
}

/** Lowest item that the receiver did not acknowledge: where its base must be. */
static inline uint32_t
model_rtx_base(const struct model_rtx *m)
{
	uint32_t i = 0;

	while (i < m->nb && m->item[i].acked)
		i++;
	return m->first_psn + i;
}
