/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file
 * How long to look for something before sleeping. Sleeping and waking cost some ten microseconds
 * and two context switches, so a wait that ends soon should not sleep, and one that
 * lasts should not spin. The last waits say which one the next will be.
 * (UDP-13)
 */

#ifndef SAN_SPIN_H
#define SAN_SPIN_H

#include <stdatomic.h>
#include <stdint.h>

#define SAN_SPIN_MIN_NS 10000u

/** All zero at first. Threads may share one: a lost update costs one sleep. */
struct san_spin {
	_Atomic uint32_t ns; /**< to spin in the next wait */
};

static inline uint32_t
san_spin_ns(const struct san_spin *s)
{
	return atomic_load_explicit(&s->ns, memory_order_relaxed);
}

/** A wait has ended after *waited_ns*. No wait spins for more than *max_ns*. */
static inline void
san_spin_learn(struct san_spin *s, uint64_t waited_ns, uint32_t max_ns)
{
	uint32_t ns = san_spin_ns(s);

	if (waited_ns > max_ns) /* it would have been in vain */
		ns = ns / 2 < SAN_SPIN_MIN_NS ? 0 : ns / 2;
	else if (waited_ns > ns)
		ns = ns < SAN_SPIN_MIN_NS ? SAN_SPIN_MIN_NS : 2 * ns;
	ns = ns < max_ns ? ns : max_ns;
	if (ns != san_spin_ns(s))
		atomic_store_explicit(&s->ns, ns, memory_order_relaxed);
}

#endif /* SAN_SPIN_H */
