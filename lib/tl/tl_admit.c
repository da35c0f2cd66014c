/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Incast control (RT-13; RULE-6): limits the bytes that may be on their way to this lcore. This
 * file keeps the accounts; tl_admit_run.c chooses the connection of the next grant.
 *
 *   budget_used   bytes granted or pulled and not placed: never more than budget_bytes. With
 *                 several lcores budget_bytes changes as it is lent (tl_lend.c)
 *   path_used     the same on long paths, outside the budget (tl_path.c)
 *   pulled_used   part of budget_used that is pulled: at most three quarters
 *   slow_used     granted to slow hosts (below): one grant at a time
 *   expired_used  granted or pulled, but expired: unused for 4 RTT, in which nothing arrived that
 *                 may precede it
 *
 * Data that is placed ahead of its turn, or held, still counts: an RNR for a lower RSN drops it,
 * and then it is sent again without a new request (RULE-4).
 *
 * Pulls leave a quarter of the budget to grants; otherwise two hosts could wait for each other. A
 * pull may wait at its target behind an earlier push, which waits for a grant of that target. If
 * pulls of the target fill its budget, the grant waits for these pulls. They may wait at this host,
 * behind a push that waits for a grant of this host.
 *
 * Granted data needs no further grant (RT-16). So granted budget always returns, except behind a
 * send without a receive. If no grant is outstanding, the next one is given even if there is little
 * room. So the head of each queue is granted within a bounded time.
 *
 * A grant stays valid when it expires: only its bytes leave the account. A connection with expired
 * grants gets no further grant until it uses them and no more than half a grant of them is left. So
 * a peer that is only slow, because its window is small, always has something to send: its share is
 * what it uses. A silent peer that returns brings at most one grant for each connection. A
 * connection with expired pulls pulls one piece at a time.
 *
 * A host with more than expired_bytes of expired grants is slow (RT-35). This allowance keeps one
 * silent connection from stopping the others of its host.
 */

#include "tl_priv.h"

#define EXPIRY_RTTS    4
#define EXPIRY_MIN_NS  (100 * SAN_NS_PER_US)
#define EXPIRY_MAX_NS  (100 * SAN_NS_PER_MS)
#define QUEUE_EXPIRIES 64 /* longest queueing of a grant; 512 KiB at 1 Gb/s take 42 */

/* ---- accounts ---- */

uint32_t
san_tl_admit_budget_room(const struct san_tl *tl)
{
	uint32_t most = san_tl_admit_any_granted(tl) ? tl->limit_bytes : tl->budget_bytes;

	return san_tl_admit_room_in(most, tl->budget_used);
}

uint32_t
san_tl_admit_grant_room(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return san_tl_admit_budget_room(tl) + san_tl_path_left(tl, &tc->host->paths[true]);
}

uint32_t
san_tl_admit_pull_most(const struct san_tl *tl)
{
	return san_tl_admit_pull_part(tl->share_bytes);
}

uint32_t
san_tl_admit_pull_room(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t pulls = san_tl_admit_pull_part(tl->limit_bytes);

	return RTE_MIN(san_tl_admit_room_in(pulls, tl->pulled_used),
		       san_tl_admit_room_in(tl->limit_bytes, tl->budget_used)) +
		san_tl_path_left(tl, &tc->host->paths[false]);
}

bool
san_tl_admit_waits_for_budget(const struct san_tl *tl)
{
	const struct san_tl_conn *puller = TAILQ_FIRST(&tl->want_budget);

	return (tl->nb_admit != 0 && san_tl_admit_budget_room(tl) < tl->conf.grant_bytes) ||
		(puller != NULL && puller->want_bytes > san_tl_admit_pull_room(tl, puller));
}

static void
add_charged(struct san_tl *tl, struct san_tl_charge *ch, int64_t bytes)
{
	struct san_tl_conn *tc = &tl->conns[ch->slot];
	int64_t of_budget = san_tl_path_add(tl, ch, bytes);

	ch->charged = (uint32_t)(ch->charged + bytes);
	if (ch->granted)
		tc->charged = (uint32_t)(tc->charged + bytes);
	else
		tl->pulled_used = (uint32_t)(tl->pulled_used + of_budget);
	tl->budget_used = (uint32_t)(tl->budget_used + of_budget);
	if (unlikely(ch->slow)) {
		tl->slow_used = (uint32_t)(tl->slow_used + bytes);
		ch->slow = ch->charged != 0;
	}
}

static void
list_tail(struct san_tl *tl, struct san_tl_charge *ch)
{
	if (ch->listed)
		TAILQ_REMOVE(&tl->charges[ch->granted], ch, link);
	ch->listed = true;
	ch->queued_ns = ch->since_ns;
	TAILQ_INSERT_TAIL(&tl->charges[ch->granted], ch, link);
}

void
san_tl_admit_charge(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes, uint64_t now_ns)
{
	if (bytes == 0)
		return;
	SAN_ASSERT(bytes <= (ch->granted ? san_tl_admit_grant_room(tl, &tl->conns[ch->slot]) :
					   san_tl_admit_pull_room(tl, &tl->conns[ch->slot])));
	add_charged(tl, ch, bytes);
	if (unlikely(ch->granted && !ch->slow && tl->conns[ch->slot].host->slow)) {
		tl->slow_used += ch->charged;
		ch->slow = true;
	}
	ch->since_ns = now_ns;
	ch->since_use = tl->use;
	tl->stats.budget_high = RTE_MAX(tl->stats.budget_high, tl->budget_used);
	list_tail(tl, ch);
}

void
san_tl_admit_charge_use(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes,
			uint64_t now_ns)
{
	tl->use += bytes;
	tl->use_ns = now_ns;
	ch->since_ns = now_ns;
	ch->since_use = tl->use;
	san_tl_path_use(tl, ch, bytes, now_ns);
}

static void
charge_take_back(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes)
{
	if (bytes == 0)
		return;
	add_charged(tl, ch, -(int64_t)bytes);
	if (ch->charged == 0 && ch->listed) {
		ch->listed = false;
		TAILQ_REMOVE(&tl->charges[ch->granted], ch, link);
	}
}

/* Move the host to the list of slow hosts, to that of others, or to none: nothing to grant. */
static void
host_list(struct san_tl *tl, struct san_tl_host *h)
{
	bool in = !TAILQ_EMPTY(&h->admit), slow = h->expired > tl->conf.expired_bytes;

	if (in == h->in_admit && slow == h->slow)
		return;
	if (h->in_admit)
		TAILQ_REMOVE(&tl->admit[h->slow], h, link);
	h->in_admit = in;
	h->slow = slow;
	if (in)
		TAILQ_INSERT_TAIL(&tl->admit[slow], h, link);
}

static __rte_noinline void
charge_add_expired(struct san_tl *tl, struct san_tl_charge *ch, int64_t bytes)
{
	struct san_tl_conn *tc = &tl->conns[ch->slot];
	uint32_t *part = ch->granted ? &tc->expired : &tc->expired_pulled;

	ch->expired = (uint32_t)(ch->expired + bytes);
	*part = (uint32_t)(*part + bytes);
	tl->expired_used = (uint32_t)(tl->expired_used + bytes);
	if (!ch->granted)
		return;
	tc->using_expired = bytes < 0;
	tc->host->expired = (uint32_t)(tc->host->expired + bytes);
	host_list(tl, tc->host);
	san_tl_admit_update(tl, tc);
}

void
san_tl_admit_charge_done(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes)
{
	/* Bytes granted first arrive first and expire first. */
	uint32_t expired = RTE_MIN(bytes, ch->expired);

	if (expired != 0)
		charge_add_expired(tl, ch, -(int64_t)expired);
	charge_take_back(tl, ch, RTE_MIN(bytes - expired, ch->charged));
}

void
san_tl_admit_charge_release(struct san_tl *tl, struct san_tl_charge *ch)
{
	san_tl_admit_charge_done(tl, ch, ch->expired + ch->charged);
}

/* ---- expiry ---- */

static uint64_t
charge_expiry_ns(const struct san_tl *tl, const struct san_tl_charge *ch)
{
	uint64_t rtt_ns = tl->pdl->conns[ch->slot].rtt.srtt_ns;

	return RTE_MIN(RTE_MAX(EXPIRY_RTTS * rtt_ns, EXPIRY_MIN_NS), EXPIRY_MAX_NS);
}

void
san_tl_admit_set_expiry(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	uint64_t due_ns = SAN_TIME_NEVER;
	const struct san_tl_charge *ch;
	int granted;

	for (granted = 0; granted < 2; granted++) {
		ch = TAILQ_FIRST(&tl->charges[granted]);
		if (ch != NULL)
			due_ns = RTE_MIN(due_ns, ch->queued_ns + charge_expiry_ns(tl, ch));
	}
	if (due_ns != SAN_TIME_NEVER)
		san_tl_deadline(tl, tc, RTE_MAX(due_ns, now_ns + EXPIRY_MIN_NS));
}

/*
 * True if data of the grant may still be in a queue, behind data of earlier grants. The RTT of an
 * idle network does not include that queue. While data of earlier grants arrives, the initiator may
 * have sent this one. The last condition limits the time: otherwise a peer that sends its grant
 * byte by byte would keep the grants of others from expiring.
 */
static bool
is_queued(const struct san_tl *tl, const struct san_tl_charge *ch, uint64_t now_ns)
{
	return tl->use - ch->since_use < tl->budget_bytes + tl->path_room + tl->expired_used &&
		now_ns < tl->use_ns + charge_expiry_ns(tl, ch) &&
		now_ns < ch->since_ns + QUEUE_EXPIRIES * charge_expiry_ns(tl, ch);
}

static void
charge_expire_longest(struct san_tl *tl, bool granted, uint64_t now_ns)
{
	struct san_tl_charge *ch;
	uint32_t bytes;

	while ((ch = TAILQ_FIRST(&tl->charges[granted])) != NULL &&
	       now_ns >= ch->queued_ns + charge_expiry_ns(tl, ch)) {
		if (ch->since_ns != ch->queued_ns) { /* it was used since */
			list_tail(tl, ch);
			continue;
		}
		if (is_queued(tl, ch, now_ns))
			return;
		bytes = ch->charged;
		charge_add_expired(tl, ch, bytes);
		tl->stats.nb_grants_expired += granted;
		charge_take_back(tl, ch, bytes);
	}
}

void
san_tl_admit_expire(struct san_tl *tl, uint64_t now_ns)
{
	if (likely(TAILQ_EMPTY(&tl->charges[false]) && TAILQ_EMPTY(&tl->charges[true])))
		return;
	charge_expire_longest(tl, false, now_ns);
	charge_expire_longest(tl, true, now_ns);
}

/* ---- the grant list ---- */

void
san_tl_admit_list(struct san_tl *tl, struct san_tl_conn *tc, bool in)
{
	if (tc->in_admit == in)
		return;
	tc->in_admit = in;
	if (in) {
		TAILQ_INSERT_TAIL(&tc->host->admit, tc->queues, admit_link);
		tl->nb_admit++;
	} else {
		TAILQ_REMOVE(&tc->host->admit, tc->queues, admit_link);
		tl->nb_admit--;
	}
	host_list(tl, tc->host);
}

bool
san_tl_admit_may_grant(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t most = tc->using_expired ? tl->conf.grant_bytes / 2 : 0;

	/* A grant to a connection in RNR would stay unused. */
	return !TAILQ_EMPTY(&tc->queues->grants) && !tc->grant_wait && tc->expired <= most &&
		!san_tl_is_odd(tl, tc, SAN_ODD_RNR);
}

void
san_tl_admit_update(struct san_tl *tl, struct san_tl_conn *tc)
{
	san_tl_admit_list(tl, tc, san_tl_admit_may_grant(tl, tc));
}
