/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file
 * How long to poll before sleeping. To sleep and wake costs system calls and two context switches.
 * So a short wait should not sleep, and a long one should not poll. Earlier waits predict the next
 * one. (UDP-13)
 */

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define SAN_SPIN_MIN_NS 10000u

/** Initially zero. Threads may share one: a lost update costs one sleep. */
struct san_spin {
	_Atomic uint32_t ns; /**< time to poll in the next wait */
};

static inline uint32_t
san_spin_ns(const struct san_spin *s)
{
	return atomic_load_explicit(&s->ns, memory_order_relaxed);
}

/** Learn from a wait of *waited_ns*. No wait polls for more than *max_ns*. */
static inline void
san_spin_learn(struct san_spin *s, uint64_t waited_ns, uint32_t max_ns)
{
	uint32_t ns = san_spin_ns(s);

	if (waited_ns > max_ns) /* polling was in vain */
		ns = ns / 2 < SAN_SPIN_MIN_NS ? 0 : ns / 2;
	else if (waited_ns > ns)
		ns = ns < SAN_SPIN_MIN_NS ? SAN_SPIN_MIN_NS : 2 * ns;
	ns = ns < max_ns ? ns : max_ns;
	if (ns != san_spin_ns(s))
		atomic_store_explicit(&s->ns, ns, memory_order_relaxed);
}
