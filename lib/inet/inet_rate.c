/* SPDX-License-Identifier: BSD-3-Clause */

/* Rate limits for answers, by host. (RT-36) */

#include "inet_rate.h"
#include "san_time.h"

#define HOST_SHARE   4  /* one part in this many is guaranteed to each host */
#define REHASH_SHIFT 30 /* ns, about a second: then hosts get other budgets */

void
san_inet_rate_init(struct san_inet_rate *r, uint64_t each_ns, uint32_t burst, uint32_t seed)
{
	*r = (struct san_inet_rate){.each_ns = each_ns, .burst = burst, .seed = seed};
}

bool
san_inet_rate_take(struct san_inet_rate *r, const struct san_ip *host, enum san_inet_trust trust,
		   uint64_t now_ns)
{
	uint32_t key = r->seed + (uint32_t)(now_ns >> REHASH_SHIFT);
	uint32_t half = SAN_INET_RATE_HOSTS / 2;
	/* Unknown hosts have separate budgets. A flood of them leaves those of known hosts. */
	uint32_t i = (san_inet_hash(host, key) & (half - 1)) +
		(trust == SAN_INET_STRANGER ? half : 0);
	uint32_t burst = RTE_MAX(r->burst / HOST_SHARE, 1u);
	uint64_t kept_ns;

	if (!san_rate_take(&r->host_taken_ns[i], HOST_SHARE * r->each_ns, burst, now_ns))
		trust = SAN_INET_EXCESS;
	kept_ns = r->each_ns * (r->burst * (uint32_t)trust / 8);
	return r->taken_ns + kept_ns + r->each_ns <= now_ns &&
		san_rate_take(&r->taken_ns, r->each_ns, r->burst, now_ns);
}
