/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two stream sessions under random programs, against a pipe of bytes: what one side was told that
 * it sent is what the other has received, in order, once; peeks show the same bytes; each request
 * completes once and in order; no message goes without credit and nothing is written or read
 * outside of what is registered (stream_pair.h aborts). In the end, with programs that
 * read, all arrives: no deadlock, whatever the variant, the role, or the order in which messages
 * overtake each other. san_stream_show_check() after every step. (AFC-1 ... AFC-28)
 */

#include "prop.h"

#include "stream_pair.h"

#define NB_STEPS  1500
#define NB_SENDS  4096
#define BUF_BYTES (9u << 20) /* the largest send or receive, and a little more */
#define NB_SLOTS  16         /* buffers of a program's sends or receives */

struct send {
	uint32_t len, seed;
	bool cancelled; /* it was asked for: it may have gone in part */
	bool ended;
	bool urgent; /* its last byte is, and not part of the stream */
	uint32_t moved;
};

struct post {
	uint64_t id;
	uint8_t *buf;
	uint32_t len;
	uint8_t flags;
};

/* A program on one side. */
static struct app {
	struct pair_end *e;
	uint8_t *arena;
	uint32_t used;
	struct send send[NB_SENDS];
	uint32_t nb_sends, nb_ended;
	struct post recv[256];
	uint32_t recv_head, recv_tail;
	/* what the other side has received of our stream */
	uint32_t at_send, at_off;
	bool fin, got_fin;
	uint32_t nb_urgent;
	bool greedy; /* posts large receives */
} app[2];

static struct stream_pair pair;
static struct san_prng *prng = &pair.prng;
static bool dead; /* the connection has ended */

static uint32_t
below(uint32_t n)
{
	return san_prng_below(prng, n);
}

static uint8_t
byte_of(const struct send *s, uint32_t off)
{
	return (uint8_t)((s->seed + off) * 2654435761u >> 23);
}

/* ---- the pipe ---- */

/* Bytes of send *at* that are part of the stream, as far as the sender has decided. */
static uint32_t
part_of(const struct app *from, uint32_t at)
{
	const struct send *s = &from->send[at];
	const struct stream_sqe *e = san_stream_sqe(from->e->s, at);
	uint32_t part = s->len;

	if (s->ended)
		part = s->moved;
	else if (e->done && !dead)
		part = e->off;
	return part - (s->urgent && part == s->len);
}

/* Compare *len* bytes with the stream from where it is; move on if they are taken. */
static void
compare(struct app *from, const uint8_t *buf, uint32_t len, bool take)
{
	uint32_t at = from->at_send, off = from->at_off;

	for (uint32_t i = 0; i < len; i++, off++) {
		for (; at < from->nb_sends && off == part_of(from, at); at++)
			off = 0;
		PROP_CHECK(at < from->nb_sends);
		PROP_CHECK(buf[i] == byte_of(&from->send[at], off));
	}
	if (take) {
		from->at_send = at;
		from->at_off = off;
	}
}

/* ---- what a program does ---- */

static uint32_t
random_size(void)
{
	switch (below(8)) {
	case 0:
		return 1 + below(16);
	case 1:
	case 2:
		return 1 + below(300);
	case 3:
		return 1 + below(3000);
	case 4:
		return 3000 + below(3000);
	case 5:
	case 6:
		return 1 + below(70000);
	default:
		return below(20) == 0 ? 1 + below(8u << 20) : 1 + below(300000);
	}
}

/* Memory for one post; it is reused as a ring, so posts stay few. */
static uint8_t *
memory(struct app *a, uint32_t len)
{
	if (a->used + len > BUF_BYTES)
		a->used = 0;
	a->used += len;
	return a->arena + a->used - len;
}

/* Bytes that are still named by posted sends. */
static bool
has_memory(const struct app *a, uint32_t len)
{
	uint32_t sum = len;

	for (uint32_t i = a->nb_ended; i < a->nb_sends; i++)
		sum += a->send[i].len;
	return sum * 2 <= BUF_BYTES;
}

static void
split(struct rtsan_sge *sge, uint8_t *nb, uint8_t *buf, uint32_t len)
{
	uint8_t parts = (uint8_t)(1 + below(RTSAN_SGE_MAX));

	*nb = 0;
	for (uint8_t i = 0; i < parts && len > 0; i++) {
		uint32_t n = i == parts - 1 ? len : 1 + below(len);

		sge[(*nb)++] = (struct rtsan_sge){.addr = buf, .length = n};
		buf += n;
		len -= n;
	}
}

static void
do_send(struct app *a)
{
	uint32_t len = random_size();
	struct send *s = &a->send[a->nb_sends];
	struct san_ulp_wr wr = {
		.wr_id = a->nb_sends, .op = RTSAN_WR_SEND, .flags = RTSAN_WR_SIGNALED};
	uint8_t *buf;

	if (a->fin || a->nb_sends == NB_SENDS || a->nb_sends - a->nb_ended >= NB_SLOTS)
		return;
	if (!has_memory(a, len))
		len = 1 + below(500);
	if (!has_memory(a, len))
		return;
	buf = memory(a, len);
	*s = (struct send){.len = len, .seed = (uint32_t)san_prng_u64(prng)};
	for (uint32_t i = 0; i < len; i++)
		buf[i] = byte_of(s, i);
	wr.length = len;
	if (len <= RTSAN_INLINE_MAX && below(2) == 0) {
		wr.flags |= RTSAN_WR_INLINE;
		wr.inline_len = (uint8_t)len;
		memcpy(wr.data, buf, len);
	} else {
		split(wr.sge, &wr.nb_sge, buf, len);
	}
	if (below(40) == 0) {
		s->urgent = true;
		wr.flags |= RTSAN_WR_OOB;
	}
	a->nb_sends++;
	PROP_CHECK(san_stream_post_send(a->e->s, &wr, 1) == 1);
}

static void
post_recv(struct app *a, uint32_t len, uint8_t flags)
{
	struct post *p = &a->recv[a->recv_tail % 256];
	struct san_ulp_recv r = {.wr_id = a->recv_tail, .flags = flags};

	if (a->recv_tail - a->recv_head >= 8)
		return;
	*p = (struct post){.id = a->recv_tail, .buf = malloc(len + 1), .len = len, .flags = flags};
	if ((flags & RTSAN_RECV_LOAN) == 0)
		split(r.sge, &r.nb_sge, p->buf, len);
	a->recv_tail++;
	PROP_CHECK(san_stream_recv_post(a->e->s, &r, 1) == 1);
}

static void
do_recv(struct app *a)
{
	static const uint8_t kinds[] = {0, 0, 0, 0, 0, RTSAN_RECV_PEEK, RTSAN_RECV_WAITALL,
					RTSAN_RECV_DONTWAIT, RTSAN_RECV_LOAN,
					RTSAN_RECV_PEEK | RTSAN_RECV_DONTWAIT,
					RTSAN_RECV_PEEK | RTSAN_RECV_WAITALL};
	uint8_t flags = kinds[below((sizeof(kinds) / sizeof(kinds[0])))];
	uint32_t len = a->greedy ? 4096 + below(300000) : random_size();

	post_recv(a, len > 400000 ? 400000 : len, flags);
}

static void
do_ctl(struct app *a)
{
	switch (below(12)) {
	case 0:
		pair_ctl(a->e, 1, SAN_WR_WAIT, 1u << below(3), 0);
		break;
	case 1:
		if (below(4) == 0)
			pair_ctl(a->e, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
		break;
	case 2:
		if (below(8) == 0) {
			for (uint32_t i = a->nb_ended; i < a->nb_sends; i++)
				a->send[i].cancelled = true;
			pair_ctl(a->e, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
		}
		break;
	case 3:
		pair_ctl(a->e, 1, SAN_WR_CANCEL, RTSAN_STREAM_WAITS, 0);
		break;
	case 4:
		pair_ctl(a->e, 1, SAN_WR_OPTION, SAN_STREAM_OPT_READ, below(3));
		break;
	case 5:
		if (below(10) == 0)
			pair_ctl(a->e, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE,
				 below(2) ? SAN_STREAM_ADAPTIVE : below(SAN_SM_MODES));
		break;
	case 6:
		a->greedy = below(2) == 0;
		break;
	case 7:
		pair_ctl(a->e, 1, SAN_WR_URGENT, 0, 0);
		break;
	default:
		break;
	}
}

/* ---- what it hears ---- */

static bool
is_death(const struct san_ulp_wc *wc)
{
	return dead && (wc->status == RTSAN_WC_RETRY_EXC || wc->status == RTSAN_WC_FLUSHED);
}

static void
on_sent(struct app *a, const struct san_ulp_wc *wc)
{
	struct send *s = &a->send[a->nb_ended];

	PROP_CHECK(wc->wr_id == a->nb_ended);
	if (is_death(wc)) {
		s->cancelled = true;
	} else if (wc->status == RTSAN_WC_NO_BUFFERS) {
		PROP_CHECK(wc->byte_len == 0); /* nothing half sent (AFC-20) */
		s->cancelled = true;
	} else if (wc->status != 0) {
		PROP_CHECK(wc->status == RTSAN_WC_CANCELLED && s->cancelled);
	} else {
		PROP_CHECK(wc->byte_len == s->len);
	}
	/* at its death nobody told the sender how far the other had come */
	s->moved = is_death(wc) ? s->len : wc->byte_len;
	s->ended = true;
	a->nb_ended++;
}

/* A receive that waits for all ends in front of an urgent byte. */
static bool
has_urgent(const struct app *from)
{
	for (uint32_t i = 0; i < from->nb_sends; i++)
		if (from->send[i].urgent)
			return true;
	return false;
}

static void
on_received(struct app *a, const struct san_ulp_wc *wc)
{
	struct app *from = &app[a == &app[0]];
	struct post *p = &a->recv[a->recv_head % 256];
	bool peek = (p->flags & RTSAN_RECV_PEEK) != 0;

	PROP_CHECK(wc->wr_id == a->recv_head);
	a->recv_head++;
	if ((p->flags & RTSAN_RECV_LOAN) != 0 && wc->has_imm) {
		compare(from, san_stream_recv_loan(a->e->s, wc->imm), wc->byte_len, true);
		PROP_CHECK(san_stream_recv_give_back(a->e->s, wc->imm));
	} else if (wc->status == 0 && wc->byte_len == 0) {
		a->got_fin = a->got_fin || !peek;
		PROP_CHECK(from->fin);
	} else if (wc->status == 0) {
		PROP_CHECK(wc->byte_len <= p->len);
		/* how much a peek can wait for depends on the sizes of messages */
		PROP_CHECK((p->flags & RTSAN_RECV_WAITALL) == 0 || wc->byte_len == p->len || peek ||
			   dead || from->fin || has_urgent(from) ||
			   a->e->s->rx.rq[wc->wr_id & 127].cancelled);
		compare(from, p->buf, wc->byte_len, !peek);
	} else {
		PROP_CHECK(wc->status == RTSAN_WC_CANCELLED || wc->status == RTSAN_WC_AGAIN ||
			   is_death(wc));
		PROP_CHECK(wc->byte_len == 0);
	}
	free(p->buf);
}

static void
on_urgent(struct app *a, const struct san_ulp_wc *wc)
{
	struct app *from = &app[a == &app[0]];

	a->nb_urgent++;
	/* one of those that were sent */
	for (uint32_t i = 0; i < from->nb_sends; i++)
		if (from->send[i].urgent &&
		    byte_of(&from->send[i], from->send[i].len - 1) == (uint8_t)wc->imm)
			return;
	PROP_CHECK(!"it was sent");
}

static void
hear(struct app *a)
{
	struct san_ulp_wc wc;

	while (pair_poll(a->e, &wc)) {
		if (wc.op == RTSAN_WC_SEND)
			on_sent(a, &wc);
		else if (wc.op == RTSAN_WC_RECV)
			on_received(a, &wc);
		else if (wc.op == RTSAN_WC_STREAM_URGENT && wc.status == 0)
			on_urgent(a, &wc);
	}
}

/* ---- runs ---- */

static void
random_conf(struct san_stream_conf *c)
{
	static const uint16_t counts[] = {4, 5, 8, 12, 32};

	san_stream_conf_default(c);
	c->nb_recv = counts[below((sizeof(counts) / sizeof(counts[0])))];
	c->nb_store = counts[below((sizeof(counts) / sizeof(counts[0])))];
	c->nb_send = (uint16_t)(2 + below(12));
	c->msg_size = 512 + below(2000);
	c->msg_max = c->msg_size + below(6000);
	c->frags = (uint16_t)(1 + below(8));
	c->read = (uint8_t)below(3);
	c->hold_ns = below(2) * below(50000);
	c->gather_ns = below(2) * below(50000);
	c->send_buffer = below(2) == 0 ? 0 : 1u << (10 + below(8));
	c->threshold = below(2) == 0 ? 0 : 1000 + below(6000);
	if (below(4) == 0)
		c->mode = (uint8_t)below(SAN_SM_MODES);
}

static void
step(void)
{
	struct app *a = &app[below(2)];
	uint32_t n = below(4);

	switch (below(10)) {
	case 0:
	case 1:
		do_send(a);
		break;
	case 2:
	case 3:
		do_recv(a);
		break;
	case 4:
		do_ctl(a);
		break;
	case 5:
		pair.now_ns += below(100) == 0 ? below(30000000) : below(20000);
		break;
	default:
		while (n-- > 0)
			pair_step(&pair.end[below(2)]);
		break;
	}
}

/* True: there may be more to see at once. */
static bool
look(void)
{
	bool more = false;

	for (uint32_t i = 0; i < 2; i++) {
		if (san_stream_deadline_ns(pair.end[i].s) <= pair.now_ns)
			san_stream_tick(pair.end[i].s, pair.now_ns);
		more |= pair_pump_one(&pair.end[i]);
		PROP_CHECK(san_stream_fault(pair.end[i].s) == NULL);
		san_stream_show_check(pair.end[i].s);
		hear(&app[i]);
	}
	return more;
}

/* Both programs end what they send and read what comes: all of it comes. */
static void
drain(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		if (!app[i].fin)
			PROP_CHECK(pair_ctl(app[i].e, UINT64_MAX, SAN_WR_SHUTDOWN, 0, 0) == 1);
		app[i].fin = true;
	}
	for (uint32_t rounds = 0; rounds < 200000; rounds++) {
		for (uint32_t i = 0; i < 2; i++)
			if (!app[i].got_fin && app[i].recv_head == app[i].recv_tail)
				post_recv(&app[i], 1 + below(50000), 0);
		look();
		pair_step(&pair.end[0]);
		pair_step(&pair.end[1]);
		pair.now_ns += 5000;
		if (app[0].got_fin && app[1].got_fin && pair.end[0].nb_req == 0 &&
		    pair.end[1].nb_req == 0 && san_stream_is_drained(pair.end[0].s) &&
		    san_stream_is_drained(pair.end[1].s))
			return;
	}
	PROP_CHECK(!"all arrives");
}

static void
check_ends(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct app *a = &app[i];

		PROP_CHECK(a->nb_ended == a->nb_sends);
		/* the other side has had all that was moved */
		while (a->at_send < a->nb_sends && a->at_off == part_of(a, a->at_send)) {
			a->at_send++;
			a->at_off = 0;
		}
		PROP_CHECK(a->at_send == a->nb_sends);
		PROP_CHECK(pair.end[i].nb_regs == 0);
	}
}

/* Nobody is left waiting, whatever was under way (AFC-1). */
static void
die(void)
{
	dead = true;
	for (uint32_t i = 0; i < 2; i++)
		pair_end_now(&pair.end[i], i == 0 ? RTSAN_WC_RETRY_EXC : RTSAN_WC_FLUSHED);
	while (look())
		;
	for (uint32_t i = 0; i < 2; i++) {
		PROP_CHECK(app[i].nb_ended == app[i].nb_sends);
		PROP_CHECK(app[i].recv_head == app[i].recv_tail);
		PROP_CHECK(pair.end[i].s->nb_waits == 0);
		PROP_CHECK(pair.end[i].nb_regs == 0);
	}
}

/* What all runs together did: a test of what never happens would not be one. */
static void
count_all(void)
{
	static struct san_stream_stats sum;
	static uint32_t to[SAN_SM_MODES], whys[SAN_STREAM_WHYS], nb_urgent, nb_runs;
	struct san_stream_view v;

	for (uint32_t i = 0; i < 2; i++) {
		san_stream_show_view(pair.end[i].s, &v);
		sum.tx.write += v.stats.tx.write;
		sum.tx.read += v.stats.tx.read;
		sum.nb_advertisements_piggybacked += v.stats.nb_advertisements_piggybacked;
		sum.nb_advertisements_stale += v.stats.nb_advertisements_stale;
		sum.nb_offers_void += v.stats.nb_offers_void;
		sum.nb_fallbacks += v.stats.nb_fallbacks;
		sum.nb_resizes += v.stats.nb_resizes;
		sum.nb_no_buffers += v.stats.nb_no_buffers;
		sum.nb_messages_held += v.stats.nb_messages_held;
		nb_urgent += app[i].nb_urgent;
		for (uint32_t k = 0; k < v.nb_change; k++) {
			to[v.change[k].to]++;
			whys[v.change[k].why]++;
		}
	}
	if (++nb_runs != 200)
		return;
	PROP_CHECK(sum.tx.write > 0 && sum.tx.read > 0 && sum.nb_advertisements_piggybacked > 0);
	PROP_CHECK(sum.nb_advertisements_stale > 0 && sum.nb_offers_void > 0);
	PROP_CHECK(sum.nb_fallbacks > 0);
	PROP_CHECK(sum.nb_resizes > 0 && sum.nb_no_buffers > 0 && sum.nb_messages_held > 0);
	PROP_CHECK(nb_urgent > 0);
	for (uint32_t i = 0; i < SAN_SM_MODES; i++)
		PROP_CHECK(to[i] > 0);
	for (uint32_t i = SAN_STREAM_WHY_LEARNT; i < SAN_STREAM_WHYS; i++)
		PROP_CHECK(whys[i] > 0);
}

static void
run(uint64_t seed)
{
	struct san_stream_conf conf[2];
	uint32_t steps;
	uint8_t *arena[2] = {app[0].arena, app[1].arena};

	pair_init(&pair, seed);
	pair_ops.caps.ordered = below(2) == 0;
	pair_ops.caps.can_read = below(3) != 0;
	pair.reorder = pair_ops.caps.ordered ? 0 : below(6);
	pair.budget = below(2) == 0 ? 1u << 20 : 1 + below(20000);
	dead = false;
	for (uint32_t i = 0; i < 2; i++) {
		memset(&app[i], 0, sizeof(app[i]));
		app[i].arena = arena[i] != NULL ? arena[i] : malloc(BUF_BYTES);
		app[i].e = &pair.end[i];
		random_conf(&conf[i]);
		pair.end[i].max_regs = below(5) == 0 ? below(6) : PAIR_REGS;
		pair.end[i].max_req = below(3) == 0 ? 1 + below(5) : PAIR_REQS;
		pair.end[i].no_local = below(20) == 0;
	}
	conf[0].first_seq = conf[1].first_seq = below(2) ? UINT32_MAX - below(100) : 0;
	pair_create(&pair, &conf[0], &conf[1]);
	steps = below(NB_STEPS);
	for (uint32_t i = 0; i < steps; i++) {
		if (i == steps / 50)
			pair_open(&pair);
		step();
		look();
	}
	if (!pair.end[0].s->open)
		pair_open(&pair);
	if (below(4) == 0) {
		die();
	} else {
		drain();
		check_ends();
		die();
	}
	count_all();
	for (uint32_t i = 0; i < 2; i++)
		while (app[i].recv_head != app[i].recv_tail)
			free(app[i].recv[app[i].recv_head++ % 256].buf);
	pair_fini(&pair);
}

PROP_MAIN("stream", run)
