/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connections of an lcore: memory, CIDs, tags, the wheel timer of each, and the invariant checks
 * (RT-1, RT-24).
 *
 * A CID consists of lcore, reuse counter and slot. The slot free for the longest time is taken
 * first, and its counter is incremented each time. A packet of an earlier incarnation that is still
 * in the network therefore names a CID that is not in use. After the counter has wrapped, only the
 * tag tells incarnations apart: it is compared before a packet changes anything. So no CID needs a
 * rest period, and a connection is refused only if all of *max_conns* are in use.
 */

#include <errno.h>
#include <string.h>

#include "pdl_priv.h"

#define LCORES_MAX (1u << (SAN_WIRE_CID_BITS - SAN_CID_LCORE_SHIFT))
#define CID_MIN    2 /* 0 means none, 1 is SAN_WIRE_CID_CM */

static_assert(SAN_WIRE_CID_CM < CID_MIN, "no connection has the well-known CID");

void
san_pdl_conf_default(struct san_pdl_conf *conf)
{
	*conf = (struct san_pdl_conf){
		.max_conns = 1024,
		.max_wide = 1024,
		.budget_pkts = 65536,
		/* With the timeouts below about 6 s: a host that is not scheduled is not dead. */
		.max_retries = 20,
		.ooo_distance = 3,
		.ackreq_window = 2,
		.ack_every = 10,
		.quantum = 32,
		.nb_owners = 1,
		.plb_bad_rtts = 5,
		.pmtu_after = 64,
		.ack_delay_ns = 8 * SAN_NS_PER_US,
		/* A machine that stalls for milliseconds must not cause timeouts. */
		.rto_init_ns = 4 * SAN_NS_PER_MS,
		.rto_min_ns = 1 * SAN_NS_PER_MS,
		.rto_max_ns = 500 * SAN_NS_PER_MS,
		.tlp_min_ns = 50 * SAN_NS_PER_US,
		.cc = SAN_CC_SWIFT,
		.cc_conf = {
			.target_ns = 25 * SAN_NS_PER_US,
			.window_init = 32 * SAN_CC_ONE,
			.window_min = SAN_CC_ONE / 100,
			.window_max = 1024 * SAN_CC_ONE,
		},
	};
}

static bool
pdl_conf_is_valid(const struct san_pdl_conf *conf)
{
	const struct san_pdl_cc_conf *cc = &conf->cc_conf;

	return conf->max_conns >= 1 && conf->max_conns <= SAN_CONNS_MAX &&
		conf->budget_pkts >= 1 && conf->lcore_id < LCORES_MAX && conf->ooo_distance >= 1 &&
		conf->ack_every >= 1 && conf->quantum >= 1 && conf->nb_owners >= 1 &&
		conf->nb_owners <= SAN_PDL_OWNERS_MAX && conf->rto_min_ns > 0 &&
		conf->rto_init_ns > 0 && conf->rto_min_ns <= conf->rto_max_ns &&
		conf->rto_init_ns <= conf->rto_max_ns && conf->secret32 != NULL &&
		conf->cc < SAN_CC_MAX && cc->window_min > 0 && cc->window_min <= cc->window_init &&
		cc->window_init <= cc->window_max && cc->target_ns > 0;
}

static int
pdl_alloc_tables(struct san_pdl *pdl)
{
	const struct san_pdl_conf *conf = &pdl->conf;
	uint32_t nb_wide = san_holders_nb_parts(conf->max_conns, conf->max_wide);
	uint32_t nb_words = SAN_WIN_MAX * nb_wide;
	struct san_mem *mem = conf->mem;

	pdl->conns = san_mem_aligned(mem, conf->max_conns * sizeof(*pdl->conns));
	pdl->wide = san_mem_calloc(mem, RTE_MAX(nb_wide, 1u), sizeof(*pdl->wide));
	pdl->rxwords = san_mem_calloc(mem, nb_words + 1, sizeof(*pdl->rxwords));
	pdl->free_slots = san_mem_calloc(mem, conf->max_conns, sizeof(*pdl->free_slots));
	pdl->slot_owner = san_mem_calloc(mem, conf->max_conns, sizeof(*pdl->slot_owner));
	pdl->next_cid = san_mem_calloc(mem, conf->max_conns, sizeof(*pdl->next_cid));
	pdl->owners = san_mem_calloc(mem, conf->nb_owners, sizeof(*pdl->owners));
	pdl->uses = san_mem_calloc(mem, conf->max_conns, sizeof(*pdl->uses));
	if (pdl->conns == NULL || pdl->free_slots == NULL || pdl->slot_owner == NULL ||
	    pdl->next_cid == NULL || pdl->owners == NULL || pdl->uses == NULL ||
	    san_pool_create(&pdl->free_wide, mem, pdl->wide, nb_wide, sizeof(*pdl->wide)) ||
	    san_pool_create(&pdl->free_rxwords, mem, pdl->rxwords, nb_words, sizeof(*pdl->rxwords)))
		return -ENOMEM;
	return 0;
}

int
san_pdl_create(const struct san_pdl_conf *conf, uint64_t now_ns, struct san_pdl **out)
{
	struct san_pdl *pdl;
	uint32_t i;

	if (!pdl_conf_is_valid(conf))
		return -EINVAL;
	pdl = san_mem_aligned(conf->mem, sizeof(*pdl));
	if (pdl == NULL)
		return -ENOMEM;
	pdl->conf = *conf;
	pdl->conf.max_wide = RTE_MIN(conf->max_wide, conf->max_conns);
	pdl->slot_mask = san_pdl_slot_mask(conf->max_conns);
	if (pdl_alloc_tables(pdl) != 0) {
		san_pdl_destroy(pdl);
		return -ENOMEM;
	}
	san_wheel_init(&pdl->wheel, now_ns);
	san_prng_seed(&pdl->prng, conf->prng_seed);
	TAILQ_INIT(&pdl->turns);
	for (i = 0; i < pdl->conf.nb_owners; i++)
		TAILQ_INIT(&pdl->owners[i].ready);
	TAILQ_INIT(&pdl->wait);
	TAILQ_INIT(&pdl->used_rxwords);
	TAILQ_INIT(&pdl->acks);
	TAILQ_INIT(&pdl->held_acks);
	pdl->share = RTE_MIN(conf->budget_pkts, (uint32_t)SAN_WIN_DATA_MAX);
	for (i = 0; i < conf->max_conns; i++) {
		pdl->free_slots[i] = i;
		pdl->next_cid[i] = i;
		pdl->conns[i].slot = (uint16_t)i;
		pdl->conns[i].odd = SAN_ODD_STATE;
	}
	pdl->free_count = conf->max_conns;
	*out = pdl;
	return 0;
}

void
san_pdl_destroy(struct san_pdl *pdl)
{
	struct san_mem *mem;

	if (pdl == NULL)
		return;
	mem = pdl->conf.mem;
	san_mem_end(mem, pdl->uses);
	san_mem_end(mem, pdl->owners);
	san_mem_end(mem, pdl->next_cid);
	san_mem_end(mem, pdl->slot_owner);
	san_mem_end(mem, pdl->free_slots);
	san_pool_destroy(&pdl->free_rxwords, mem);
	san_mem_end(mem, pdl->rxwords);
	san_pool_destroy(&pdl->free_wide, mem);
	san_mem_end(mem, pdl->wide);
	san_mem_end(mem, pdl->conns);
	san_mem_end(mem, pdl);
}

int
san_pdl_resume(struct san_pdl *pdl, const struct san_pdl_conf *conf)
{
	uint32_t i;

	if (pdl->conf.cc >= SAN_CC_MAX)
		return -EINVAL;
	pdl->conf.secret32 = conf->secret32;
	pdl->conf.secret_arg = conf->secret_arg;
	pdl->conf.link_mbps = conf->link_mbps;
	for (i = 0; i < pdl->conf.max_conns; i++)
		if (pdl->conns[i].state != SAN_CONN_FREE)
			pdl->conns[i].cc.ops = san_pdl_cc_kinds[pdl->conf.cc];
	return 0;
}

void
san_pdl_set_mac(struct san_pdl *pdl, const struct rte_ether_addr *old,
		const struct rte_ether_addr *mac)
{
	struct san_pdl_conn *c;
	uint32_t i;

	for (i = 0; i < pdl->conf.max_conns; i++) {
		c = &pdl->conns[i];
		if (c->state == SAN_CONN_FREE)
			continue;
		c->path.src_mac = *mac;
		if (rte_is_same_ether_addr(&c->path.dst_mac, old))
			c->path.dst_mac = *mac; /* a connection to our own port */
	}
}

/* ---- CIDs ---- */

uint8_t
san_pdl_cid_lcore(uint32_t cid)
{
	return (uint8_t)((cid >> SAN_CID_LCORE_SHIFT) % LCORES_MAX);
}

static uint32_t
next_cid(struct san_pdl *pdl, uint32_t slot)
{
	uint32_t cid;

	do {
		cid = (uint32_t)pdl->conf.lcore_id << SAN_CID_LCORE_SHIFT | pdl->next_cid[slot];
		pdl->next_cid[slot] += pdl->slot_mask + 1;
		pdl->next_cid[slot] %= 1u << SAN_CID_LCORE_SHIFT;
	} while (cid < CID_MIN);
	return cid;
}

struct san_pdl_conn *
san_pdl_conn_find(struct san_pdl *pdl, uint32_t cid)
{
	uint32_t slot = cid & pdl->slot_mask;
	struct san_pdl_conn *c;

	if (slot >= pdl->conf.max_conns)
		return NULL;
	c = &pdl->conns[slot];
	return c->state != SAN_CONN_FREE && c->cid == cid ? c : NULL;
}

/* ---- life ---- */

void
san_pdl_conn_give(struct san_pdl *pdl, struct san_pdl_conn *c, uint8_t owner)
{
	SAN_ASSERT(pdl->slot_owner[c->slot] == 0);
	c->owner = owner;
	pdl->slot_owner[c->slot] = owner;
	if (owner != 0)
		pdl->owners[owner].nb_slots++;
}

uint32_t
san_pdl_owner_slots(const struct san_pdl *pdl, uint8_t owner)
{
	return pdl->owners[owner].nb_slots;
}

int
san_pdl_conn_add(struct san_pdl *pdl, struct san_pdl_conn **out)
{
	const struct san_pdl_conf *conf = &pdl->conf;
	struct san_pdl_conn *c;
	uint32_t slot, psn[SAN_WIN_MAX], win;

	if (pdl->free_count == 0)
		return -ENOSPC;
	slot = pdl->free_slots[pdl->free_head];
	pdl->free_head = (pdl->free_head + 1) % conf->max_conns;
	pdl->free_count--;
	pdl->nb_conns++;
	c = &pdl->conns[slot];
	*c = (struct san_pdl_conn){
		.slot = (uint16_t)slot,
		.path = c->path,
		.state = SAN_CONN_SETUP,
		.odd = SAN_ODD_STATE,
		.is_lent = true,
		.ack = {.deadline_ns = SAN_TIME_NEVER, .nb_doubts = SAN_PDL_DOUBTS},
		.rtt = {.rto_ns = conf->rto_init_ns},
		.rtx_deadline_ns = SAN_TIME_NEVER,
		.gap_deadline_ns = SAN_TIME_NEVER,
		.tlp_deadline_ns = SAN_TIME_NEVER,
		.tl_deadline_ns = SAN_TIME_NEVER,
		.cm_deadline_ns = SAN_TIME_NEVER,
	};
	c->cid = next_cid(pdl, slot);
	do
		c->tag = conf->secret32(conf->secret_arg);
	while (c->tag == 0);
	for (win = 0; win < SAN_WIN_MAX; win++) {
		psn[win] = conf->secret32(conf->secret_arg);
		if (conf->fixed_psn)
			psn[win] = conf->first_psn;
		san_pdl_win_tx_init(&c->tx[win], psn[win], 0);
	}
	san_pdl_cc_init(&c->cc, san_pdl_cc_kinds[conf->cc], &conf->cc_conf);
	*out = c;
	return 0;
}

void
san_pdl_conn_open(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_peer *peer,
		  uint16_t rx_req_win, uint16_t rx_data_win, uint64_t now_ns)
{
	uint32_t req = RTE_MIN(rx_req_win, SAN_WIN_REQ_MAX);
	uint32_t data = RTE_MIN(rx_data_win, SAN_WIN_DATA_MAX);

	SAN_VERIFY(c->state == SAN_CONN_SETUP);
	c->dcid = peer->dcid;
	c->dtag = peer->dtag;
	san_pdl_pmtu_init(pdl, c, peer->mtu);
	c->ordered = peer->ordered;
	c->limited = true; /* until a visit finds nothing left */
	c->relaxed = peer->relaxed;
	c->tx[SAN_WIN_REQ].size = RTE_MIN(peer->tx_req_win, SAN_WIN_REQ_MAX);
	c->tx[SAN_WIN_DATA].size = RTE_MIN(peer->tx_data_win, SAN_WIN_DATA_MAX);
	san_pdl_win_rx_init(&c->rx[SAN_WIN_REQ], peer->req_psn, RTE_MAX(req, SAN_WIN_MIN));
	san_pdl_win_rx_init(&c->rx[SAN_WIN_DATA], peer->data_psn, RTE_MAX(data, SAN_WIN_MIN));
	c->pcb.first_win = RTE_MAX(peer->first_win, SAN_WIN_MIN);
	c->pcb.msg_limit = peer->msg_limit;
	c->rx_first_win = (uint16_t)(c->rx[SAN_WIN_REQ].size + c->rx[SAN_WIN_DATA].size + 1);
	c->nb_ports = (uint8_t)RTE_MIN(peer->nb_ports, SAN_WIRE_CM_PORTS);
	memcpy(c->ports, peer->ports, c->nb_ports * sizeof(c->ports[0]));
	if (c->nb_ports != 0) {
		c->port_idx = (uint8_t)(c->slot % c->nb_ports); /* spread over the paths */
		c->path.src_port = c->ports[c->port_idx];
	}
	c->last_rx_ns = now_ns;
	c->state = SAN_CONN_OPEN;
	san_pdl_odd_put(&c->odd, SAN_ODD_STATE, false);
}

void
san_pdl_conn_close(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (c->state != SAN_CONN_OPEN)
		return;
	c->state = SAN_CONN_CLOSING;
	san_pdl_odd_put(&c->odd, SAN_ODD_STATE, true);
	san_pdl_pmtu_stop(c, SAN_TIME_NEVER);
	/* It sends no more: free what it waits for, for other connections. */
	san_pdl_pcb_withdraw(pdl, c);
}

void
san_pdl_rxwords_return(struct san_pdl *pdl, struct san_pdl_rxwords *words)
{
	pdl->uses[words->conn->host].nb_words--;
	TAILQ_REMOVE(&pdl->used_rxwords, &words->holder, link);
	san_pool_give(&pdl->free_rxwords, words);
}

void
san_pdl_conn_fail(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	c->failed = true;
	c->tl_deadline_ns = 0;
	san_pdl_conn_arm(pdl, c);
}

static void
forget_outstanding(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	uint32_t win;

	for (win = 0; win < SAN_WIN_MAX; win++) {
		san_pdl_win_tx_init(&c->tx[win], c->tx[win].next, c->tx[win].size);
		if (san_bitmap_is_wide(&c->rx[win].rcvd)) {
			struct san_pdl_rxwords *words = san_pdl_win_rx_close(&c->rx[win]);

			san_pdl_rxwords_return(pdl, words);
			memset(words, 0, sizeof(*words));
		}
	}
	if (san_pdl_is_wide(c))
		memset(san_pdl_wide_of(c)->words, 0, sizeof(san_pdl_wide_of(c)->words));
}

void
san_pdl_conn_del(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_wire_path path = c->path;
	uint16_t slot = c->slot;

	SAN_VERIFY(c->state != SAN_CONN_FREE);
	c->state = SAN_CONN_FREE; /* keeps the functions below from putting it on a list again */
	san_wheel_cancel(&pdl->wheel, &c->timer);
	san_pdl_sched_remove(pdl, c);
	san_pdl_ack_unlist(pdl, c);
	forget_outstanding(pdl, c);
	san_pdl_pcb_leave(pdl, c, c->pcb.inflight);
	san_pdl_pcb_withdraw(pdl, c);
	memset(c, 0, offsetof(struct san_pdl_conn, setup));
	c->slot = slot;
	c->path = path;
	c->odd = SAN_ODD_STATE;
	pdl->nb_conns--;
	pdl->nb_kept++;
}

void
san_pdl_slot_give(struct san_pdl *pdl, uint16_t slot)
{
	uint32_t tail = pdl->free_head + pdl->free_count;

	if (tail >= pdl->conf.max_conns)
		tail -= pdl->conf.max_conns;
	SAN_ASSERT(pdl->conns[slot].state == SAN_CONN_FREE && pdl->nb_kept != 0);
	if (pdl->slot_owner[slot] != 0)
		pdl->owners[pdl->slot_owner[slot]].nb_slots--;
	pdl->slot_owner[slot] = 0;
	pdl->free_slots[tail] = slot;
	pdl->free_count++;
	pdl->nb_kept--;
}

void
san_pdl_conn_arm(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	uint64_t answer_ns = c->pmtu.size != 0 ? c->pmtu.at_ns : SAN_TIME_NEVER;
	uint64_t t = san_pdl_ack_timer_ns(c);

	if (c->probe_due || c->cnp_due || c->pmtu_due)
		san_pdl_ack_list(pdl, c);
	t = san_time_min(t, c->tl_deadline_ns);
	if (c->pace_wait)
		t = san_time_min(t, c->pace_ns);
	/* what concerns packets that the peer has not answered */
	answer_ns = san_time_min(answer_ns, c->rtx_deadline_ns);
	answer_ns = san_time_min(answer_ns, c->gap_deadline_ns);
	answer_ns = san_time_min(answer_ns, c->tlp_deadline_ns);
	answer_ns = san_time_min(answer_ns, c->cm_deadline_ns);
	t = san_time_min(t, RTE_MAX(answer_ns, pdl->grace_ns));
	/* A needless expiry costs less than moving the timer with every ACK. */
	if (t != SAN_TIME_NEVER && c->state != SAN_CONN_FREE)
		san_pdl_arm_for(pdl, c, t);
}

/* ---- check ---- */

/*
 * Returns the packets in flight; verifies that each PSN neither acknowledged nor lost has a scan
 * ahead.
 */
static uint32_t
check_outstanding(const struct san_pdl_conn *c, enum san_win win)
{
	uint32_t psn, n = 0;

	for (psn = c->tx[win].base; psn != c->tx[win].next; psn++) {
		const struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);

		n += san_bitmap_test(&c->txb->flight[win], psn);
		if (san_bitmap_test(&c->txb->acked[win], psn) ||
		    san_bitmap_test(&c->txb->lost[win], psn) || c->failed)
			continue;
		SAN_VERIFY(c->rtx_deadline_ns != SAN_TIME_NEVER);
		SAN_VERIFY(san_seq_le(san_pdl_tick(c->rtx_deadline_ns), e->due));
	}
	return n;
}

static void
pdl_check_conn(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	uint32_t win, flight = 0;

	SAN_VERIFY(c->tag != 0 && c->cid >= CID_MIN);
	SAN_VERIFY(c->slot == (c->cid & pdl->slot_mask));
	SAN_VERIFY(san_pdl_cid_lcore(c->cid) == pdl->conf.lcore_id);
	for (win = 0; win < SAN_WIN_MAX; win++) {
		san_pdl_win_tx_check(&c->tx[win], c->txb, win);
		flight += check_outstanding(c, win);
		if (c->state == SAN_CONN_OPEN || c->state == SAN_CONN_CLOSING)
			san_pdl_win_rx_check(&c->rx[win]);
	}
	SAN_VERIFY(flight == c->pcb.inflight);
	/*
	 * PCB-2 counts connections with unreceived packets; waiting connections have queued ones.
	 */
	SAN_VERIFY(c->active || (flight == 0 && !c->in_wait));
	SAN_VERIFY(!c->in_wait || c->txb != NULL);
	SAN_VERIFY(!c->token || !c->in_wait);
	SAN_VERIFY(!san_pdl_ack_owes(c) || c->ack.listed || c->state == SAN_CONN_SETUP);
	SAN_VERIFY(c->mtu <= c->mtu_max && c->pmtu.size <= c->mtu_max);
	SAN_VERIFY(c->pmtu.size == 0 || c->pmtu.size > c->mtu);
	SAN_VERIFY(c->mtu == c->mtu_max || c->mtu_watch <= c->mtu);
	SAN_VERIFY(c->pmtu.size != 0 || !c->pmtu_due);
	/* The timer is armed no later than any deadline, except during a grace. */
	SAN_VERIFY(c->rtx_deadline_ns == SAN_TIME_NEVER || c->failed ||
		   (san_wheel_timer_is_armed(&c->timer) &&
		    c->timer.deadline_ns <= RTE_MAX(c->rtx_deadline_ns, pdl->grace_ns)));
	SAN_VERIFY(san_pdl_ack_timer_ns(c) == SAN_TIME_NEVER ||
		   (san_wheel_timer_is_armed(&c->timer) &&
		    c->timer.deadline_ns <= c->ack.deadline_ns));
}

static void
check_lists(const struct san_pdl *pdl)
{
	const struct san_pdl_conn *c;
	uint32_t ready = 0, turns = 0, wait = 0, acks = 0;
	const struct san_pdl_owner *o;
	uint32_t i;

	for (i = 0; i < pdl->conf.nb_owners; i++) {
		TAILQ_FOREACH(c, &pdl->owners[i].ready, ready_link) {
			SAN_VERIFY(c->in_ready && c->state != SAN_CONN_FREE && c->owner == i);
			ready++;
		}
		turns += !TAILQ_EMPTY(&pdl->owners[i].ready);
	}
	TAILQ_FOREACH(o, &pdl->turns, link) {
		SAN_VERIFY(!TAILQ_EMPTY(&o->ready));
		turns--;
	}
	TAILQ_FOREACH(c, &pdl->wait, wait_link) {
		SAN_VERIFY(c->in_wait);
		wait++;
	}
	TAILQ_FOREACH(c, &pdl->acks, ack_link) {
		SAN_VERIFY(c->ack.listed);
		acks++;
	}
	TAILQ_FOREACH(c, &pdl->held_acks, ack_link) {
		SAN_VERIFY(c->ack.held && !c->ack.listed && !c->ack.now);
		acks++;
	}
	for (i = 0; i < pdl->conf.max_conns; i++) {
		c = &pdl->conns[i];
		ready -= c->in_ready;
		wait -= c->in_wait;
		acks -= c->ack.listed + c->ack.held;
	}
	SAN_VERIFY(ready == 0 && turns == 0 && wait == 0 && acks == 0);
}

void
san_pdl_check(const struct san_pdl *pdl)
{
	uint32_t i, conns = 0, active = 0, inflight = 0, wide = 0, words = 0, tokens = 0;
	uint32_t used[2] = {0}, owned = 0;

	for (i = 0; i < pdl->conf.max_conns; i++) {
		const struct san_pdl_conn *c = &pdl->conns[i];

		owned += pdl->slot_owner[i] != 0;
		SAN_VERIFY(c->slot == i);
		SAN_VERIFY(((c->odd & SAN_ODD_STATE) == 0) == (c->state == SAN_CONN_OPEN));
		if (c->state == SAN_CONN_FREE) {
			SAN_VERIFY(c->txb == NULL && !san_wheel_timer_is_armed(&c->timer));
			continue;
		}
		pdl_check_conn(pdl, c);
		conns++;
		active += c->active;
		inflight += c->pcb.inflight;
		wide += san_pdl_is_wide(c);
		words += san_bitmap_is_wide(&c->rx[SAN_WIN_REQ].rcvd);
		words += san_bitmap_is_wide(&c->rx[SAN_WIN_DATA].rcvd);
		tokens += c->token;
	}
	for (i = 0; i < pdl->conf.nb_owners; i++)
		owned -= pdl->owners[i].nb_slots;
	SAN_VERIFY(owned == 0);
	check_lists(pdl);
	SAN_VERIFY(conns == pdl->nb_conns &&
		   conns + pdl->nb_kept + pdl->free_count == pdl->conf.max_conns);
	SAN_VERIFY(active == pdl->nb_active && tokens == pdl->nb_tokens);
	for (i = 0; i < pdl->conf.max_conns; i++) {
		used[0] += pdl->uses[i].nb_wide;
		used[1] += pdl->uses[i].nb_words;
	}
	SAN_VERIFY(wide == used[0] && words == used[1]);
	SAN_VERIFY(wide + pdl->free_wide.nb == pdl->free_wide.max);
	SAN_VERIFY(words + pdl->free_rxwords.nb == pdl->free_rxwords.max);
	SAN_VERIFY(inflight == pdl->inflight);
	/* PCB-4: at most the host's budget */
	SAN_VERIFY(inflight + tokens <= pdl->conf.budget_pkts);
	SAN_VERIFY(TAILQ_EMPTY(&pdl->wait) || inflight + tokens == pdl->conf.budget_pkts);
}
