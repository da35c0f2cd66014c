/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connection records: creation and destruction, slots, the hash from the peer's name to ours,
 * events. (RT-1, RT-24)
 *
 * A slot is one index for all layers, allocated by packet delivery. The record of an accepting side
 * stays for a while as a ghost after its release. A ghost holds no slot, CID or timer. It only
 * recognises a REQ that the network delivers late, so that this does not create a second
 * connection. It is overwritten when its slot is taken again, after all slots freed before. A REQ
 * that arrives even later is a new request; the REP for it finds no connection and is rejected.
 *
 * The hash is needed where a message of the peer cannot name our CID: a repeated REQ, and RESET,
 * which echoes our packet. Its key is the full name of a connection at the peer: address, CID and
 * tag. A peer that uses one name twice is refused, so a peer cannot lengthen chains by what it
 * sends (RT-36).
 */

#include <errno.h>

#include <rte_common.h>
#include <sodium.h>

#include "cm_priv.h"
#include "san_assert.h"

/* Checks allowed for each cookie handed out: it may be returned several times. */
#define CHECKS_PER_COOKIE 4

static_assert(CM_HASH_KEY == crypto_shorthash_KEYBYTES, "key of the hash");
static_assert((int)SAN_CM_EV_CLOSED < 8, "events fit their bits");

void
san_cm_conf_default(struct san_cm_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->max_conns = 1024;
	conf->max_listeners = 256;
	conf->max_retries = 13; /* over 5 s */
	conf->keepalive_probes = 5;
	conf->retry_ns = 20 * SAN_NS_PER_MS;
	conf->cookie_slot_ns = 4 * SAN_NS_PER_S;
	conf->drain_ns = 5 * SAN_NS_PER_S;
	conf->timewait_ns = 8 * SAN_NS_PER_S; /* two cookie slots: the greatest age of a REQ */
	conf->rate_per_ms = 100;
	conf->features = SAN_CM_FEAT_PACK;
	conf->path.dst_port = SAN_WIRE_PORT;
}

static bool
cm_is_conf_valid(const struct san_cm_conf *conf, const struct san_pdl *pdl)
{
	static const uint8_t no_secret[SAN_CM_SECRET];

	/* A cookie under a publicly known key protects nothing. */
	if (memcmp(conf->secret, no_secret, sizeof(no_secret)) == 0)
		return false;
	return conf->max_conns != 0 && conf->max_conns == pdl->conf.max_conns &&
		conf->max_retries <= CM_RETRIES_MAX && conf->keepalive_probes != 0 &&
		conf->retry_ns != 0 && conf->retry_ns <= 60 * SAN_NS_PER_S &&
		conf->cookie_slot_ns != 0 && conf->rate_per_ms != 0 &&
		!san_cm_has_stream(conf->features) && conf->nb_ports <= SAN_WIRE_CM_PORTS &&
		conf->path.dst_port != 0 &&
		(conf->steer == NULL ||
		 (rte_is_power_of_2(conf->steer->table_size) &&
		  conf->steer->table_size <= SAN_STEER_TABLE_MAX));
}

static int
cm_alloc_tables(struct san_cm *cm)
{
	uint32_t nb_buckets = rte_align32pow2(cm->conf.max_conns);
	struct san_mem *mem = cm->conf.mem;
	uint32_t i;

	cm->conns = san_mem_calloc(mem, cm->conf.max_conns, sizeof(*cm->conns));
	cm->listeners =
		san_mem_calloc(mem, RTE_MAX(cm->conf.max_listeners, 1), sizeof(*cm->listeners));
	cm->buckets = san_mem_calloc(mem, nb_buckets, sizeof(*cm->buckets));
	cm->out = san_mem_calloc(mem, CM_OUT_MAX, sizeof(*cm->out));
	cm->privates = san_mem_calloc(mem, CM_PRIVATES, sizeof(*cm->privates));
	if (cm->conns == NULL || cm->listeners == NULL || cm->buckets == NULL || cm->out == NULL ||
	    san_pool_create(&cm->free_privates, mem, cm->privates, CM_PRIVATES,
			    sizeof(*cm->privates)))
		return -ENOMEM;
	for (i = 0; i < cm->conf.max_conns; i++) {
		cm->conns[i].slot = (uint16_t)i;
		cm->conns[i].private_idx = CM_NO_PRIVATE;
	}
	for (i = 0; i < nb_buckets; i++)
		cm->buckets[i] = CM_NO_SLOT;
	cm->bucket_mask = nb_buckets - 1;
	for (i = 0; i < CM_RESOLVING; i++)
		TAILQ_INIT(&cm->resolving[i]);
	return 0;
}

int
san_cm_create(const struct san_cm_conf *conf, struct san_pdl *pdl, struct san_cm **out)
{
	static const uint8_t purpose[] = "hash of (peer, CID, tag)";
	uint32_t seed[2];
	uint64_t each_ns;
	struct san_cm *cm;
	int rc;

	if (!cm_is_conf_valid(conf, pdl))
		return -EINVAL;
	cm = san_mem_calloc(conf->mem, 1, sizeof(*cm));
	if (cm == NULL)
		return -ENOMEM;
	cm->conf = *conf;
	cm->pdl = pdl;
	TAILQ_INIT(&cm->tx);
	TAILQ_INIT(&cm->ev);
	TAILQ_INIT(&cm->change);
	rc = cm_alloc_tables(cm);
	if (rc != 0) {
		san_cm_destroy(cm);
		return rc;
	}
	/* Peers choose the CIDs: without a key they could fill one bucket. */
	crypto_generichash(cm->hash_key, sizeof(cm->hash_key), purpose, sizeof(purpose),
			   conf->secret, sizeof(conf->secret));
	memcpy(seed, cm->hash_key, sizeof(seed));
	each_ns = SAN_NS_PER_MS / conf->rate_per_ms;
	san_inet_rate_init(&cm->answers, each_ns, conf->rate_per_ms, seed[0]);
	san_inet_rate_init(&cm->checks, each_ns / CHECKS_PER_COOKIE,
			   CHECKS_PER_COOKIE * conf->rate_per_ms, seed[1]);
	*out = cm;
	return 0;
}

void
san_cm_destroy(struct san_cm *cm)
{
	struct san_mem *mem;

	if (cm == NULL)
		return;
	mem = cm->conf.mem;
	san_pool_destroy(&cm->free_privates, mem);
	san_mem_end(mem, cm->privates);
	san_mem_end(mem, cm->out);
	san_mem_end(mem, cm->buckets);
	san_mem_end(mem, cm->listeners);
	san_mem_end(mem, cm->conns);
	sodium_memzero(cm, sizeof(*cm));
	san_mem_end(mem, cm);
}

void
san_cm_resume(struct san_cm *cm, const struct san_cm_conf *conf)
{
	cm->conf.steer = conf->steer;
	cm->conf.queue = conf->queue;
	san_cm_set_mac(cm, &conf->path.src_mac);
}

void
san_cm_set_mac(struct san_cm *cm, const struct rte_ether_addr *mac)
{
	uint32_t i;

	cm->conf.path.src_mac = *mac;
	for (i = cm->out_head; i != cm->out_tail; i++)
		cm->out[i & (CM_OUT_MAX - 1)].path.src_mac = *mac;
}

/* ---- parameters ---- */

static bool
is_window(uint16_t win, uint32_t max)
{
	return win >= SAN_WIN_MIN && win <= max && (win & (win - 1)) == 0;
}

bool
san_cm_offer_valid(const struct san_wire_cm *msg)
{
	return is_window(msg->req_win, SAN_WIN_REQ_MAX) &&
		is_window(msg->data_win, SAN_WIN_DATA_MAX) && msg->first_win >= SAN_WIN_MIN &&
		msg->max_txn != 0 && msg->mtu >= CM_MTU_MIN &&
		(!san_cm_has_stream(msg->features) ||
		 (msg->flags & SAN_CM_F_ORDER) == SAN_CM_F_ORDERED);
}

bool
san_cm_param_valid(const struct san_cm_param *param)
{
	struct san_wire_cm offer = {
		.req_win = param->req_win,
		.data_win = param->data_win,
		.first_win = param->first_win,
		.max_txn = param->max_txn,
		.mtu = param->mtu,
	};

	return san_cm_offer_valid(&offer) && param->private_len <= SAN_WIRE_CM_PRIVATE &&
		param->msg_limit != 0 && (param->ordered || !(param->relaxed || param->ends)) &&
		!(param->relaxed && param->ends);
}

/* ---- hash ---- */

static uint32_t *
cm_bucket_of(const struct san_cm *cm, const struct san_ip *peer, uint32_t peer_cid,
	     uint32_t peer_tag)
{
	const struct {
		struct san_ip peer;
		uint32_t cid, tag;
	} in = {*peer, peer_cid, peer_tag};
	uint64_t h;

	static_assert(sizeof(in) == 24 && sizeof(h) == crypto_shorthash_BYTES, "no padding");
	crypto_shorthash((uint8_t *)&h, (const uint8_t *)&in, sizeof(in), cm->hash_key);
	return &cm->buckets[h & cm->bucket_mask];
}

struct san_cm_conn *
san_cm_hash_find(const struct san_cm *cm, const struct san_ip *peer, uint32_t peer_cid,
		 uint32_t peer_tag)
{
	uint32_t slot = *cm_bucket_of(cm, peer, peer_cid, peer_tag);

	while (slot != CM_NO_SLOT) {
		struct san_cm_conn *c = &cm->conns[slot];

		if (c->peer_cid == peer_cid && c->peer_tag == peer_tag &&
		    san_wire_ip_eq(san_cm_peer(cm, c), peer))
			return c;
		slot = c->hash_next;
	}
	return NULL;
}

bool
san_cm_hash_free(struct san_cm *cm, const struct san_ip *peer, uint32_t peer_cid,
		 uint32_t peer_tag)
{
	struct san_cm_conn *c = san_cm_hash_find(cm, peer, peer_cid, peer_tag);

	if (c == NULL)
		return true;
	if (!c->is_ghost)
		return false;
	/* A peer that uses this name again loses the ghost of it. */
	san_cm_hash_del(cm, c);
	c->is_ghost = false;
	c->state = SAN_CM_IDLE;
	return true;
}

void
san_cm_hash_add(struct san_cm *cm, struct san_cm_conn *c)
{
	uint32_t *bucket = cm_bucket_of(cm, san_cm_peer(cm, c), c->peer_cid, c->peer_tag);

	SAN_ASSERT(!c->in_hash);
	c->hash_next = *bucket;
	*bucket = c->slot;
	c->in_hash = true;
}

void
san_cm_hash_del(struct san_cm *cm, struct san_cm_conn *c)
{
	uint32_t *link;

	if (!c->in_hash)
		return;
	link = cm_bucket_of(cm, san_cm_peer(cm, c), c->peer_cid, c->peer_tag);
	while (*link != c->slot)
		link = &cm->conns[*link].hash_next;
	*link = c->hash_next;
	c->in_hash = false;
}

/* ---- slots ---- */

int
san_cm_conn_add(struct san_cm *cm, const struct san_ip *local, const struct san_ip *peer,
		uint16_t pkey, struct san_cm_conn **out)
{
	struct san_pdl_conn *pc;
	struct san_cm_conn *c;
	uint16_t slot;
	int rc;

	rc = san_pdl_conn_add(cm->pdl, &pc);
	if (rc != 0)
		return rc;
	slot = pc->slot;
	c = &cm->conns[slot];
	san_cm_hash_del(cm, c);
	memset(c, 0, sizeof(*c));
	c->slot = slot;
	c->private_idx = CM_NO_PRIVATE;
	c->hash_next = CM_NO_SLOT;
	pc->path = cm->conf.path;
	pc->path.src = *local;
	pc->path.dst = *peer;
	memset(&pc->path.dst_mac, 0, sizeof(pc->path.dst_mac));
	/* until the peer has sent its ports: any of the entropy range (RULE-13) */
	pc->path.src_port = (uint16_t)(49152 + san_prng_below(&cm->pdl->prng, 16384));
	pc->pkey = pkey;
	pc->cm_deadline_ns = SAN_TIME_NEVER;
	*out = c;
	return 0;
}

bool
san_cm_private_keep(struct san_cm *cm, struct san_cm_conn *c, const struct san_wire_cm *msg)
{
	struct cm_private *p;

	if (msg->private_len == 0)
		return true;
	if (cm->free_privates.nb == 0)
		return false;
	p = san_pool_take(&cm->free_privates);
	c->private_idx = (uint16_t)(p - cm->privates);
	p->len = msg->private_len;
	memcpy(p->data, msg->private_data, p->len);
	return true;
}

struct san_cm_conn *
san_cm_conn_at(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	cm->now_ns = now_ns;
	if (slot >= cm->conf.max_conns || cm->conns[slot].is_ghost)
		return NULL;
	return &cm->conns[slot];
}

static void
events_take(struct san_cm *cm, struct san_cm_conn *c, unsigned int events)
{
	if (c->events == 0)
		return;
	c->events &= (uint8_t)~events;
	if (c->events == 0)
		TAILQ_REMOVE(&cm->ev, c, ev_link);
}

void
san_cm_conn_free(struct san_cm *cm, struct san_cm_conn *c, uint64_t ghost_ns, uint64_t now_ns)
{
	/* The state machine has let it go, so no counter includes it. */
	SAN_ASSERT(c->state == SAN_CM_IDLE || c->state == SAN_CM_TIMEWAIT);
	san_cm_tx_del(cm, c);
	if (c->changes != 0)
		TAILQ_REMOVE(&cm->change, c, change_link);
	c->changes = 0;
	c->is_agreed = false;
	c->is_ghost = ghost_ns != 0 && c->passive && c->in_hash;
	if (c->is_ghost) {
		c->state = SAN_CM_TIMEWAIT;
		c->expires_ns = now_ns + ghost_ns;
	} else {
		san_cm_hash_del(cm, c);
		c->state = SAN_CM_IDLE;
	}
	/* A request that no longer exists is not reported; all other events are. */
	events_take(cm, c, 1u << SAN_CM_EV_CONNECT_REQUEST);
	san_pdl_conn_del(cm->pdl, san_cm_pdl_conn(cm, c));
	if (c->events == 0)
		san_pdl_slot_give(cm->pdl, c->slot);
}

void
san_cm_release(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	/* Before TIMEWAIT the connection is still counted: it must be ended first. */
	if (c != NULL && c->state == SAN_CM_TIMEWAIT)
		san_cm_conn_free(cm, c, cm->conf.timewait_ns, now_ns);
}

struct cm_conn_list *
san_cm_resolving(struct san_cm *cm, const struct san_ip *peer)
{
	return &cm->resolving[san_inet_hash(peer, 0) & (CM_RESOLVING - 1)];
}

void
san_cm_timer(struct san_cm *cm, struct san_cm_conn *c, uint64_t deadline_ns)
{
	struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);

	pc->cm_deadline_ns = deadline_ns;
	san_pdl_conn_arm(cm->pdl, pc);
}

/* ---- events ---- */

/*
 * A connection has at most one event of each type, in the order of their numbers: request,
 * established, one final event. So bits and one list store them all, whatever a peer does. There
 * are two copies: one for the other layers, which follow at once, and one for the owner, which may
 * read it at any time.
 */
void
san_cm_event_add(struct san_cm *cm, struct san_cm_conn *c, enum san_cm_event_type type)
{
	SAN_ASSERT(c->events >> type == 0);
	if (c->events == 0)
		TAILQ_INSERT_TAIL(&cm->ev, c, ev_link);
	c->events |= (uint8_t)(1u << type);
	if (type == SAN_CM_EV_CONNECT_REQUEST)
		return;                           /* this event concerns the owner only */
	SAN_ASSERT(c->state != SAN_CM_RESOLVING); /* that list has the same links */
	if (c->changes == 0)
		TAILQ_INSERT_TAIL(&cm->change, c, change_link);
	c->changes |= (uint8_t)(1u << type);
}

bool
san_cm_has_change(const struct san_cm *cm)
{
	return !TAILQ_EMPTY(&cm->change);
}

bool
san_cm_change_next(struct san_cm *cm, struct san_cm_change *change)
{
	struct san_cm_conn *c = TAILQ_FIRST(&cm->change);

	if (c == NULL)
		return false;
	*change = (struct san_cm_change){
		.type = (uint8_t)__builtin_ctz(c->changes),
		.reason = c->reason,
		.slot = c->slot,
		.cookie = c->cookie,
	};
	c->changes &= (uint8_t)(c->changes - 1);
	if (c->changes == 0)
		TAILQ_REMOVE(&cm->change, c, change_link);
	return true;
}

static void
fill_event(const struct san_cm *cm, const struct san_cm_conn *c, struct san_cm_event *ev)
{
	const struct cm_setup *s = san_cm_setup(cm, c);
	const struct cm_private *p;

	*ev = (struct san_cm_event){
		.type = (uint8_t)__builtin_ctz(c->events),
		.slot = c->slot,
		.cookie = c->cookie,
		.peer = *san_cm_peer(cm, c),
	};
	if (ev->type == SAN_CM_EV_CONNECT_REQUEST) {
		ev->listener = cm->listeners[c->listener].cookie;
		ev->stream = san_cm_has_stream(s->agreed.features);
		ev->uid = c->peer_uid;
	} else if (ev->type == SAN_CM_EV_ESTABLISHED) {
		ev->uid = c->peer_uid;
		if (c->private_idx != CM_NO_PRIVATE) {
			p = &cm->privates[c->private_idx];
			ev->private_len = p->len;
			memcpy(ev->private_data, p->data, p->len);
		}
	} else {
		ev->reason = c->reason;
	}
	if (ev->type == SAN_CM_EV_CONNECT_REQUEST || ev->type == SAN_CM_EV_REJECTED) {
		ev->private_len = s->private_len;
		memcpy(ev->private_data, s->private_data, s->private_len);
	}
}

bool
san_cm_event_next(struct san_cm *cm, struct san_cm_event *ev)
{
	struct san_cm_conn *c = TAILQ_FIRST(&cm->ev);

	if (c == NULL)
		return false;
	fill_event(cm, c, ev);
	if (ev->type == SAN_CM_EV_ESTABLISHED && c->private_idx != CM_NO_PRIVATE) {
		san_pool_give(&cm->free_privates, &cm->privates[c->private_idx]);
		c->private_idx = CM_NO_PRIVATE;
	}
	events_take(cm, c, 1u << ev->type);
	/* A connection that was never open holds nothing in other layers. */
	if (ev->type == SAN_CM_EV_REJECTED || ev->type == SAN_CM_EV_UNREACHABLE)
		san_cm_conn_free(cm, c, 0, cm->now_ns);
	else if (c->events == 0 && san_cm_pdl_conn(cm, c)->state == SAN_CONN_FREE)
		san_pdl_slot_give(cm->pdl, c->slot);
	return true;
}

/* ---- queries and check ---- */

enum san_cm_state
san_cm_state(const struct san_cm *cm, uint16_t slot)
{
	if (slot >= cm->conf.max_conns || cm->conns[slot].is_ghost)
		return SAN_CM_IDLE;
	return (enum san_cm_state)cm->conns[slot].state;
}

bool
san_cm_is_ordered(const struct san_cm *cm, uint16_t slot)
{
	return san_cm_setup(cm, &cm->conns[slot])->agreed.pdl.ordered;
}

const struct san_cm_agreed *
san_cm_agreed(const struct san_cm *cm, uint16_t slot)
{
	if (slot >= cm->conf.max_conns || !cm->conns[slot].is_agreed)
		return NULL;
	return &san_cm_setup(cm, &cm->conns[slot])->agreed;
}

const uint64_t *
san_cm_drops(const struct san_cm *cm)
{
	return cm->drops;
}

static void
cm_check_conn(const struct san_cm *cm, const struct san_cm_conn *c)
{
	const struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);
	bool live = c->state != SAN_CM_IDLE && !c->is_ghost;

	SAN_VERIFY(c->state < SAN_CM_STATE_MAX);
	SAN_VERIFY((pc->state != SAN_CONN_FREE) == live);
	SAN_VERIFY(!c->is_ghost || (c->state == SAN_CM_TIMEWAIT && c->in_hash && c->passive));
	SAN_VERIFY(live || !(c->in_tx || c->changes != 0 || c->is_agreed));
	SAN_VERIFY((c->private_idx == CM_NO_PRIVATE) ||
		   (c->events & 1u << SAN_CM_EV_ESTABLISHED) != 0);
	SAN_VERIFY(c->retries <= cm->conf.max_retries);
	SAN_VERIFY(c->probes <= RTE_MAX(c->keepalive.probes, 1));
	SAN_VERIFY(!c->in_hash ||
		   san_cm_hash_find(cm, san_cm_peer(cm, c), c->peer_cid, c->peer_tag) == c);
}

void
san_cm_check(const struct san_cm *cm)
{
	uint64_t nb_live = 0, nb_waiting = 0, nb_listed = 0, nb_of_hosts = 0;
	const struct san_cm_conn *c;
	uint32_t i;

	for (i = 0; i < CM_WAIT_HOSTS; i++)
		nb_of_hosts += cm->waiting[i];
	for (i = 0; i < cm->conf.max_conns; i++) {
		c = &cm->conns[i];
		SAN_VERIFY(c->slot == i);
		cm_check_conn(cm, c);
		nb_live += c->state != SAN_CM_IDLE && !c->is_ghost;
		nb_waiting += c->state == SAN_CM_WAIT_ACCEPT;
		nb_listed += (uint64_t)c->in_tx + (c->events != 0) + (c->changes != 0) +
			(c->state == SAN_CM_RESOLVING);
	}
	SAN_VERIFY(nb_waiting == nb_of_hosts);
	for (i = 0; i < cm->conf.max_listeners; i++) {
		SAN_VERIFY(cm->listeners[i].nb_waiting <= cm->listeners[i].backlog);
		nb_waiting -= cm->listeners[i].nb_waiting;
	}
	TAILQ_FOREACH(c, &cm->tx, tx_link)
		nb_listed--;
	TAILQ_FOREACH(c, &cm->ev, ev_link)
		nb_listed--;
	TAILQ_FOREACH(c, &cm->change, change_link)
		nb_listed--;
	for (i = 0; i < CM_RESOLVING; i++)
		TAILQ_FOREACH(c, &cm->resolving[i], change_link)
			nb_listed--;
	SAN_VERIFY(nb_waiting == 0 && nb_listed == 0);
	SAN_VERIFY(nb_live == cm->pdl->nb_conns);
	SAN_VERIFY(cm->out_tail - cm->out_head <= CM_OUT_MAX);
}
