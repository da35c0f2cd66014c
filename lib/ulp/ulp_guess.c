/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer cannot find keys of regions by trying (SYS-5): a key has 31 random bits. Every forbidden
 * access is refused in the same way. The 64th refusal ends a connection. All connections of a host
 * to one application share a budget of refusals. When it is spent, a connection that never named a
 * region correctly is refused without looking at the regions, and one that did ends with its next
 * refusal.
 *
 * DESIGN NOTES
 *
 * Connections that have named a region go on, so that one program of a host that guesses cannot
 * lock out all others on that host.
 *
 * The table is a set-associative cache. A new host replaces the one that has spent the least of its
 * budget. An attacker cannot choose a set, because the hash has a secret seed. An entry outlives
 * its connections.
 */

#include <rte_jhash.h>

#include "san_time.h"
#include "ulp_priv.h"

#define SETS    128
#define WAYS    8
#define NET_LEN 8 /* bytes of an IPv6 address that identify the network */
#define HOUR_NS (3600 * SAN_NS_PER_S)

struct san_ulp_guesser {
	struct san_ip ip;
	uint64_t spent_ns; /**< see san_rate_take(); all times have an hour added */
	uint16_t owner;
	bool used;
};

int
san_ulp_guess_init(struct san_ulp *ulp)
{
	ulp->guessers = san_mem_calloc(ulp->conf.mem, SETS * WAYS, sizeof(*ulp->guessers));
	ulp->guess_seed = ulp->conf.secret32(ulp->conf.secret_arg);
	return ulp->guessers != NULL ? 0 : -ENOMEM;
}

/* In IPv6 a host may use all addresses of its network. */
static struct san_ip
guess_host_of(const struct san_ulp_qp *qp)
{
	struct san_ip ip = qp->peer;

	if (!san_wire_ip_is_v4(&ip))
		memset(&ip.b[NET_LEN], 0, sizeof(ip.b) - NET_LEN);
	return ip;
}

static bool
is_of(const struct san_ulp_guesser *g, const struct san_ulp_qp *qp)
{
	struct san_ip ip = guess_host_of(qp);

	return g->used && g->owner == qp->owner && san_wire_ip_eq(&g->ip, &ip);
}

/* Entry of the peer's host and our application, or the one to replace. */
static struct san_ulp_guesser *
guess_find(const struct san_ulp *ulp, const struct san_ulp_qp *qp)
{
	struct san_ip ip = guess_host_of(qp);
	uint32_t hash = rte_jhash(ip.b, sizeof(ip.b), ulp->guess_seed ^ qp->owner);
	struct san_ulp_guesser *set = &ulp->guessers[hash % SETS * WAYS], *least = set;
	uint32_t i;

	for (i = 0; i < WAYS; i++) {
		if (is_of(&set[i], qp))
			return &set[i];
		if (set[i].spent_ns < least->spent_ns)
			least = &set[i];
	}
	return least;
}

/* Time between refusals; half an hour's budget may be spent at once. */
static uint64_t
each_ns(const struct san_ulp *ulp)
{
	return 2 * HOUR_NS / ulp->conf.guesses_per_hour;
}

__rte_noinline bool
san_ulp_guess_is_over(const struct san_ulp *ulp, const struct san_ulp_qp *qp)
{
	const struct san_ulp_guesser *g = guess_find(ulp, qp);

	return is_of(g, qp) && g->spent_ns + each_ns(ulp) > ulp->tl->now_ns + HOUR_NS;
}

__rte_noinline void
san_ulp_guess(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	struct san_ulp_guesser *g = guess_find(ulp, qp);
	bool may;

	if (!is_of(g, qp))
		*g = (struct san_ulp_guesser){
			.ip = guess_host_of(qp), .owner = qp->owner, .used = true};
	may = san_rate_take(&g->spent_ns, each_ns(ulp), ulp->conf.guesses_per_hour / 2,
			    ulp->tl->now_ns + HOUR_NS);
	if ((++qp->nb_guesses < ulp->conf.guesses_per_conn && (may || !qp->is_known)) || qp->failed)
		return;
	ulp->stats.nb_guessers++;
	san_ulp_qp_fail(ulp, qp);
}
