/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * What a timing wheel should do, the slow way: a list sorted by the slot in
 * which a timer fires, equal ones in arming order.
 */

#include <stdint.h>
#include <string.h>

#define MODEL_WHEEL_MAX 64

struct model_wheel {
	uint32_t nb;
	struct {
		uint64_t fires_ns;    /**< start of its slot: deadline rounded up */
		uint64_t deadline_ns; /**< as asked for */
		uint32_t id;
	} e[MODEL_WHEEL_MAX];
};

static inline void
model_wheel_cancel(struct model_wheel *m, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < m->nb && m->e[i].id != id; i++)
		;
	if (i == m->nb)
		return;
	memmove(&m->e[i], &m->e[i + 1], (m->nb - i - 1) * sizeof(m->e[0]));
	m->nb--;
}

/** *first_ns* is the slot that the wheel stands at: what is overdue joins its end. */
static inline void
model_wheel_arm(struct model_wheel *m, uint32_t id, uint64_t deadline_ns, uint64_t slot_ns,
		uint64_t first_ns)
{
	uint64_t fires = (deadline_ns + slot_ns - 1) / slot_ns * slot_ns;
	uint32_t i;

	model_wheel_cancel(m, id);
	if (fires < first_ns)
		fires = first_ns;
	for (i = m->nb; i > 0 && m->e[i - 1].fires_ns > fires; i--)
		m->e[i] = m->e[i - 1];
	m->e[i].fires_ns = fires;
	m->e[i].deadline_ns = deadline_ns;
	m->e[i].id = id;
	m->nb++;
}
