/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Fragments in any order, more than once, of liars and of those who fall silent, against a model
 * that keeps each packet's fragments as a list and compares every two of them (UDP-3): the same
 * packets become whole, with the same bytes, and the rest is dropped at the same moment. There
 * room is never lacking; then many more come than there is room for: what is held stays within
 * its bounds (san_inet_whole_check()), and nothing is lost that was not counted.
 */

#include "prop.h"

#include "inet_host.h"

#define NB_STEPS  600
#define NB_NAMES  6   /* two for each of three senders */
#define UNITS_MAX 24  /* of 8 bytes, in a packet */
#define NB_FRAGS  256 /* at most UNITS_MAX of each name */

/** A fragment that the model has. */
struct model_frag {
	uint32_t at, end;
	bool more;
	uint8_t data[UNITS_MAX * 8 + 8];
};

/** A packet of it. */
struct model {
	bool is_used, is_broken;
	uint64_t until_ns;
	uint32_t nb;
	struct model_frag frags[UNITS_MAX + 1];
};

static struct rte_mempool *pool;
static struct inet_host h;
static struct model models[NB_NAMES];
static struct san_prng g;

enum verdict {
	WAITS,
	DROPPED,
	WHOLE,
};

/** Can both be of one packet? */
static bool
agree(const struct model_frag *a, const struct model_frag *b)
{
	if (a->at < b->end && b->at < a->end)
		return false;
	if (!a->more && b->end > a->at)
		return false;
	return b->more || a->end <= b->at;
}

static uint32_t
model_len(const struct model *m)
{
	uint32_t sum = 0, len = 0;

	for (uint32_t i = 0; i < m->nb; i++) {
		sum += m->frags[i].end - m->frags[i].at;
		if (!m->frags[i].more)
			len = m->frags[i].end;
	}
	return sum == len ? len : 0;
}

static enum verdict
model_rx(struct model *m, const struct model_frag *f, uint64_t wait_ns)
{
	if (!m->is_used) {
		m->is_used = true;
		m->is_broken = false;
		m->nb = 0;
		m->until_ns = h.now_ns + wait_ns;
	}
	if (m->is_broken)
		return DROPPED;
	for (uint32_t i = 0; i < m->nb; i++) {
		const struct model_frag *o = &m->frags[i];

		if (o->at == f->at && o->end == f->end && o->more == f->more)
			return DROPPED;
		if (!agree(o, f)) {
			m->is_broken = true;
			return DROPPED;
		}
	}
	m->frags[m->nb++] = *f;
	return model_len(m) != 0 ? WHOLE : WAITS;
}

static void
model_tick(void)
{
	for (uint32_t i = 0; i < NB_NAMES; i++)
		if (models[i].is_used && models[i].until_ns <= h.now_ns)
			models[i].is_used = false;
}

/** Any bytes, but the first fragment's are a header that says nothing of the rest. */
static void
random_frag(struct model_frag *f)
{
	/* mostly one of the same few cuts, so that packets do become whole */
	uint32_t unit = san_prng_below(&g, 4) != 0 ? 6 : 1, n;

	n = UNITS_MAX / unit;
	f->at = san_prng_below(&g, n) * unit * 8;
	f->end = f->at + unit * 8;
	if (san_prng_below(&g, 12) == 0)
		f->end = RTE_MIN(f->end + 8 * san_prng_below(&g, 9), UNITS_MAX * 8u);
	f->more = f->end != UNITS_MAX * 8;
	if (san_prng_below(&g, 25) == 0)
		f->more = !f->more;
	/* the last one need not be a multiple of 8 */
	if (!f->more && san_prng_below(&g, 4) == 0)
		f->end -= san_prng_below(&g, 8);
	if (f->at == 0 && !f->more)
		f->more = f->end % 8 == 0; /* alone, it would be no fragment */
	if (f->at == 0 && !f->more)
		f->at = 8, f->end += 8;
	for (uint32_t i = 0; i < f->end - f->at; i++)
		f->data[i] = (uint8_t)san_prng_u64(&g);
	if (f->at == 0)
		memcpy(f->data, "\x03\xe8\x07\xd0\x00\x08\x00\x00", 8);
}

/** Names 0 to 3 are of two hosts with IPv4, 4 and 5 of one with IPv6. */
static void
make_frame(struct inet_frame *x, uint32_t name, const struct model_frag *f)
{
	struct san_ip src = inet_ip(name < 4 ? "10.0.0.2" : "fd00::2");
	struct san_ip dst = inet_ip(name < 4 ? "10.0.0.1" : "fd00::1");
	uint16_t n = (uint16_t)(f->end - f->at);

	src.b[15] = (uint8_t)(src.b[15] + name / 2);
	inet_put_eth(x, inet_our_mac, inet_peer_mac, name < 4 ? 0x0800 : 0x86dd);
	if (name < 4) {
		const uint8_t v4[12] = {0x45, 0, 0, 0, 0, (uint8_t)name, 0, 0, 64, 17};

		inet_put(x, v4, sizeof(v4));
		inet_put(x, src.b + 12, 4);
		inet_put(x, dst.b + 12, 4);
		inet_set16(x->b + 16, (uint16_t)(20 + n));
		inet_set16(x->b + 20, (uint16_t)(f->at / 8 | (f->more ? 0x2000 : 0)));
		inet_set16(x->b + 24, inet_sum(x->b + 14, 20, 0));
	} else {
		const uint8_t v6[8] = {0x60, 0, 0, 0, 0, 0, 44, 64};
		const uint8_t head[8] = {17, 0, 0, 0, 0, 0, 0, (uint8_t)name};

		inet_put(x, v6, sizeof(v6));
		inet_put(x, src.b, 16);
		inet_put(x, dst.b, 16);
		inet_put(x, head, sizeof(head));
		inet_set16(x->b + 18, (uint16_t)(8 + n));
		inet_set16(x->b + 56, (uint16_t)(f->at | f->more));
	}
	inet_put(x, f->data, n);
}

/** What *r* has is what the model has. */
static void
check_bytes(const struct san_inet_result *r, const struct model *m)
{
	uint8_t copy[UNITS_MAX * 8 + 8];
	uint32_t len = model_len(m);

	PROP_CHECK(r->what == SAN_INET_UDP && r->off == 42 && r->len == 0);
	PROP_CHECK(rte_pktmbuf_pkt_len(r->m) == 34 + len && r->m->nb_segs == m->nb);
	for (uint32_t i = 0; i < m->nb; i++) {
		const struct model_frag *f = &m->frags[i];
		const void *data = rte_pktmbuf_read(r->m, 34 + f->at, f->end - f->at, copy);

		PROP_CHECK(memcmp(data, f->data, f->end - f->at) == 0);
	}
}

static void
rx_both(uint32_t name)
{
	struct model *m = &models[name];
	struct san_inet_result r;
	struct model_frag f = {0};
	struct inet_frame x;
	enum verdict want;
	enum san_drop drop;

	random_frag(&f);
	if (m->is_used && m->nb != 0 && san_prng_below(&g, 6) == 0)
		f = m->frags[san_prng_below(&g, m->nb)]; /* once more */
	want = model_rx(m, &f, (name < 4 ? 30 : 60) * SAN_NS_PER_S);
	make_frame(&x, name, &f);
	drop = san_inet_ip_rx(h.in, test_eal_exact(pool, x.b, x.len), h.now_ns, &r);
	PROP_CHECK((drop == SAN_DROP_INET_FRAG) == (want == DROPPED));
	PROP_CHECK(want != WAITS || (drop == SAN_DROP_NONE && r.what == SAN_INET_NOTHING));
	if (want == WHOLE && name < 4)
		check_bytes(&r, m);
	else if (want == WHOLE) /* there is no IPv6 without a checksum, and nobody made one */
		PROP_CHECK(drop == SAN_DROP_INET_MALFORMED);
	if (want == WHOLE)
		m->is_used = false;
	rte_pktmbuf_free(r.m);
}

static uint32_t
nb_held(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < NB_NAMES; i++)
		n += models[i].is_used && !models[i].is_broken ? models[i].nb : 0;
	return n;
}

static void
open_host(uint16_t max_partial)
{
	struct san_inet_conf conf;

	inet_host_conf(pool, &conf);
	conf.max_partial = max_partial;
	conf.max_frags = NB_FRAGS;
	inet_host_init(&h, pool, &conf);
}

static void
compare(void)
{
	memset(models, 0, sizeof(models));
	open_host(2 * NB_NAMES);
	for (uint32_t step = 0; step < NB_STEPS; step++) {
		if (san_prng_below(&g, 20) == 0) {
			h.now_ns += san_prng_below(&g, 20) * SAN_NS_PER_S;
			san_inet_tick(h.in, h.now_ns);
			model_tick();
		} else {
			rx_both(san_prng_below(&g, NB_NAMES));
		}
		san_inet_whole_check(h.in);
		PROP_CHECK(rte_mempool_in_use_count(pool) == nb_held());
	}
	san_inet_destroy(h.in);
	PROP_CHECK(rte_mempool_in_use_count(pool) == 0);
}

/** Of more packets than there may be, in as small pieces as there are. */
static void
crowd(void)
{
	uint64_t dropped = 0, came = 0, lost;
	struct model_frag f = {0};
	struct san_inet_result r;
	struct inet_frame x;
	uint32_t name;

	open_host((uint16_t)(1 + san_prng_below(&g, 6)));
	for (uint32_t step = 0; step < NB_STEPS; step++) {
		name = san_prng_below(&g, NB_NAMES);
		f.at = 8 + 8 * san_prng_below(&g, 250);
		f.end = f.at + 8;
		f.more = true;
		make_frame(&x, name, &f);
		x.b[name < 4 ? 18 : 58] = (uint8_t)(san_prng_below(&g, 8) / 7); /* its name */
		if (name < 4) {
			inet_set16(x.b + 24, 0);
			inet_set16(x.b + 24, inet_sum(x.b + 14, 20, 0));
		}
		h.now_ns += san_prng_below(&g, 2) * SAN_NS_PER_MS;
		came++;
		dropped += san_inet_ip_rx(h.in, test_eal_exact(pool, x.b, x.len), h.now_ns, &r) !=
			SAN_DROP_NONE;
		san_inet_whole_check(h.in);
		PROP_CHECK(rte_mempool_in_use_count(pool) <= NB_FRAGS);
		lost = dropped + san_inet_drops(h.in)[SAN_DROP_INET_FRAG];
		PROP_CHECK(came == lost + rte_mempool_in_use_count(pool));
	}
	san_inet_destroy(h.in);
	PROP_CHECK(rte_mempool_in_use_count(pool) == 0);
}

static void
run(uint64_t seed)
{
	if (pool == NULL)
		pool = test_eal_pool("prop_whole", 511, 2048);
	san_prng_seed(&g, seed);
	compare();
	crowd();
}

PROP_MAIN("inet_whole", run)
