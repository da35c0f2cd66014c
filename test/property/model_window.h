/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Both ends of one PSN window as plain arrays over all PSNs ever used, indexed
 * from the first: no ring, no wrap, no bitmap. Follows
 * RULE-1 and RULE-2, one loop each.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MODEL_WINDOW_MAX 3000

struct model_window {
	uint32_t first_psn, size;
	uint32_t nb; /**< PSNs assigned by the sender */
	/* receiver */
	bool received[MODEL_WINDOW_MAX]; /**< includes acknowledged */
	bool acked[MODEL_WINDOW_MAX];
	/* what the sender knows */
	bool known[MODEL_WINDOW_MAX]; /**< acknowledged: final */
	bool hint[MODEL_WINDOW_MAX];  /**< received, as of the newest ACK */
	uint32_t serial;              /**< of the newest ACK, 0 = none */
};

/** An ACK as the receiver would say it at some time. */
struct model_ack {
	uint32_t serial, base;
	bool received[MODEL_WINDOW_MAX], acked[MODEL_WINDOW_MAX];
};

static inline uint32_t
model_window_base(const bool *acked)
{
	uint32_t i = 0;

	while (acked[i])
		i++;
	return i;
}

static inline uint32_t
model_window_high(const struct model_window *m)
{
	uint32_t high = model_window_base(m->acked);

	for (uint32_t i = high; i < MODEL_WINDOW_MAX; i++) {
		if (m->received[i])
			high = i + 1;
	}
	return high;
}

static inline void
model_window_say(const struct model_window *m, uint32_t serial, struct model_ack *a)
{
	a->serial = serial;
	a->base = model_window_base(m->acked);
	memcpy(a->received, m->received, sizeof(a->received));
	memcpy(a->acked, m->acked, sizeof(a->acked));
}

static inline void
model_window_hear(struct model_window *m, const struct model_ack *a)
{
	bool newest = a->serial > m->serial;

	if (newest)
		m->serial = a->serial;
	if (a->base < model_window_base(m->known))
		return;
	for (uint32_t i = 0; i < m->nb; i++) {
		m->known[i] |= a->acked[i];
		if (newest)
			m->hint[i] = a->received[i];
	}
}
