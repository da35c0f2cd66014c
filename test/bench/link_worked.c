/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The worked link: per packet what any transport must do, and nothing that makes
 * it reliable. A header from a template, with its number; the payload copied from
 * one set of buffers and into another; the ICRC made at one end and checked at the
 * other; an acknowledgement for each burst that came; no
 * more than a window of packets under way. What our own figures are measured against.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "link.h"
#include "sample.h"
#include "wire_priv.h"
#include "wire_sample.h"

#define WINDOW       1024 /* packets under way */
#define HEADER_MAX   256
#define INTERVAL_MS  5 /* of which each has a rate of its own */
#define NB_INTERVALS 4096
#define PREFETCH     4 /* packets ahead */
#define PSN_BITS     24

/* What goes in front of a payload of one length, as lib/wire writes it. */
struct header {
	uint8_t bytes[HEADER_MAX];
	uint16_t len, payload;
	uint16_t tail; /* padding and ICRC */
};

struct side {
	struct link *l;
	/* whole packets of a message, its last one, and what answers them */
	struct header data, last, ack;
	uint32_t message, nb_messages;
	uint8_t *from, *to; /* nb_messages of *message* bytes each */
	/* sending: numbers, and where the next payload lies */
	uint32_t next, acked, tx_message, tx_offset;
	/* receiving */
	uint32_t expected, rx_message, rx_offset;
	bool sends, is_over;
	uint64_t errors;
	/* mbufs that the port did not take yet */
	struct rte_mbuf *out[LINK_BURST + 1];
	uint16_t nb_out, out_at;
};

/* ---- set-up ---- */

static int
header_take(struct header *h, struct rte_mbuf *m, uint16_t front, uint16_t payload)
{
	uint32_t behind = rte_pktmbuf_pkt_len(m) - front - payload;

	if (front > sizeof(h->bytes))
		return -1;
	memcpy(h->bytes, rte_pktmbuf_mtod(m, void *), front);
	h->len = front;
	h->payload = payload;
	h->tail = (uint16_t)behind;
	rte_pktmbuf_free(m);
	return 0;
}

/* A push: unsolicited if it is a message in itself. */
static int
header_data(struct side *s, struct header *h, uint16_t payload)
{
	uint8_t op = s->message == payload ? SAN_OP_PUSH_UNSLCTD_DATA : SAN_OP_PUSH_SLCTD_DATA;
	const struct wire_sample sample = {.op = op, .flags = SAN_F_LAST, .length = s->message};
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(&sample);
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->l->pool);

	if (m == NULL || rte_pktmbuf_append(m, payload) == NULL)
		return -1;
	san_wire_build(m, &path, &p);
	return header_take(h, m, san_wire_op_hdr_len(op, false), payload);
}

/* The bitmaps count as header: nothing is copied into them. */
static int
header_ack(struct side *s)
{
	const struct wire_sample sample = {.op = SAN_OP_ACK, .nb_req = 1, .nb_data = 1};
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(&sample);
	struct san_wire_ack ack = wire_sample_ack(&sample);
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->l->pool);

	if (m == NULL)
		return -1;
	san_wire_build_ack(m, &path, &p, &ack);
	return header_take(&s->ack, m, (uint16_t)(rte_pktmbuf_pkt_len(m) - WIRE_ICRC_LEN), 0);
}

/* Arguments: bytes of a message, buffers, MTU. */
static int
side_init(struct side *s, struct link *l, bool sends)
{
	uint32_t payload = san_wire_payload_max((uint16_t)atoi(l->argv[2]), false);
	size_t bytes;

	memset(s, 0, sizeof(*s));
	s->l = l;
	s->sends = sends;
	s->message = (uint32_t)atoi(l->argv[0]);
	s->nb_messages = (uint32_t)atoi(l->argv[1]);
	payload = RTE_MIN(payload, s->message);
	bytes = (size_t)s->nb_messages * s->message;
	s->from = malloc(bytes);
	s->to = malloc(bytes);
	if (s->from == NULL || s->to == NULL || payload == 0)
		return -1;
	memset(s->from, 0x5a, bytes);
	memset(s->to, 0, bytes);
	if (header_data(s, &s->data, (uint16_t)payload) != 0 || header_ack(s) != 0)
		return -1;
	s->last = s->data;
	if (s->message % payload == 0)
		return 0;
	return header_data(s, &s->last, (uint16_t)(s->message % payload));
}

static void
side_fini(struct side *s)
{
	free(s->from);
	free(s->to);
}

/* ---- packets ---- */

static inline struct wire_front_v4 *
front(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, struct wire_front_v4 *);
}

static inline struct wire_rt *
rt(struct rte_mbuf *m)
{
	return (struct wire_rt *)(front(m) + 1);
}

static inline void
put_data(struct side *s, struct rte_mbuf *m)
{
	const struct header *h =
		s->message - s->tx_offset >= s->data.payload ? &s->data : &s->last;
	uint8_t *at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(h->len + h->payload + h->tail));
	uint32_t psn = s->next++;

	rte_memcpy(at, h->bytes, h->len);
	san_wire_bth_put24(front(m)->bth.psn, psn);
	rt(m)->psn_hi = (uint8_t)(psn >> PSN_BITS);
	rte_memcpy(at + h->len, s->from + (size_t)s->tx_message * s->message + s->tx_offset,
		   h->payload);
	memset(at + h->len + h->payload, 0, h->tail);
	link_seal(m);
	s->tx_offset += h->payload;
	if (s->tx_offset == s->message) {
		s->tx_offset = 0;
		s->tx_message = s->tx_message + 1 == s->nb_messages ? 0 : s->tx_message + 1;
	}
}

static inline void
put_ack(struct side *s, struct rte_mbuf *m)
{
	uint8_t *at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(s->ack.len + s->ack.tail));

	rte_memcpy(at, s->ack.bytes, s->ack.len);
	rt(m)->data_ebsn = rte_cpu_to_be_32(s->expected);
	link_seal(m);
}

static inline void
take_data(struct side *s, struct rte_mbuf *m)
{
	const struct header *h =
		s->message - s->rx_offset >= s->data.payload ? &s->data : &s->last;
	uint32_t psn = san_wire_bth_psn(&front(m)->bth) | (uint32_t)rt(m)->psn_hi << PSN_BITS;

	if (rte_pktmbuf_pkt_len(m) != (uint32_t)(h->len + h->payload + h->tail) ||
	    psn != s->expected) {
		s->errors++;
		return;
	}
	rte_memcpy(s->to + (size_t)s->rx_message * s->message + s->rx_offset,
		   rte_pktmbuf_mtod_offset(m, const uint8_t *, h->len), h->payload);
	s->expected++;
	s->rx_offset += h->payload;
	if (s->rx_offset == s->message) {
		s->rx_offset = 0;
		s->rx_message = s->rx_message + 1 == s->nb_messages ? 0 : s->rx_message + 1;
	}
}

/* Returns how many of the packets brought a payload. */
static inline uint16_t
take(struct side *s, struct rte_mbuf **pkts, uint16_t nb)
{
	uint16_t nb_data = 0;

	for (uint16_t i = 0; i < nb && i < PREFETCH; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	for (uint16_t i = 0; i < nb; i++) {
		if (i + PREFETCH < nb)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH], void *));
		if (unlikely(link_is_bye(pkts[i]))) {
			s->is_over = true;
		} else if (unlikely(!link_is_sealed(pkts[i]))) {
			s->errors++;
		} else if (front(pkts[i])->bth.opcode == SAN_OP_ACK) {
			s->acked = rte_be_to_cpu_32(rt(pkts[i])->data_ebsn);
		} else {
			take_data(s, pkts[i]);
			nb_data++;
		}
	}
	rte_pktmbuf_free_bulk(pkts, nb);
	return nb_data;
}

/* ---- as fast as it goes ---- */

static inline uint16_t
flush(struct side *s)
{
	uint16_t sent = rte_eth_tx_burst(LINK_PORT, 0, s->out + s->out_at, s->nb_out);

	s->nb_out -= sent;
	s->out_at = s->nb_out != 0 ? (uint16_t)(s->out_at + sent) : 0;
	return sent;
}

/* One round: a burst in, its acknowledgement and a burst out. False: the peer is gone. */
static inline bool
step(struct side *s)
{
	struct rte_mbuf *in[LINK_BURST];
	uint32_t room = WINDOW - (s->next - s->acked);
	uint16_t nb_in, nb_data, n, i, sent = 0;

	nb_in = rte_eth_rx_burst(LINK_PORT, 0, in, LINK_BURST);
	nb_data = take(s, in, nb_in);
	/* an acknowledgement that finds no room is left out: the next one says more */
	if (s->nb_out == 0) {
		n = s->sends ? (uint16_t)RTE_MIN(room, (uint32_t)LINK_BURST) : 0;
		n += nb_data != 0;
		if (n != 0 && rte_pktmbuf_alloc_bulk(s->l->pool, s->out, n) == 0) {
			s->nb_out = n;
			for (i = 0; i < n - (nb_data != 0); i++)
				put_data(s, s->out[i]);
			if (nb_data != 0)
				put_ack(s, s->out[i]);
		}
	}
	if (s->nb_out != 0)
		sent = flush(s);
	return nb_in != 0 || sent != 0 || link_idle(s->l);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * *rate* has the packets of each interval, in millions per second. The link has two
 * modes at times: the medians of the slower and the faster half tell.
 */
static int
report(struct side *s, double *rate, uint32_t nb)
{
	double sum = 0;

	if (nb == 0 || s->errors != 0) {
		fprintf(stderr, "%" PRIu64 " packets were wrong, %u intervals\n", s->errors, nb);
		return -1;
	}
	for (uint32_t i = 0; i < nb; i++)
		sum += rate[i];
	qsort(rate, nb, sizeof(*rate), compare);
	printf("{\"mpps\": %.4f, \"slow_mpps\": %.4f, \"fast_mpps\": %.4f, \"gbps\": %.4f}\n",
	       sum / nb, rate[nb / 4], rate[nb - 1 - nb / 4],
	       sum / nb * s->message / ((s->message + s->data.payload - 1) / s->data.payload) * 8 /
		       1e3);
	return 0;
}

/* Packets with payload that came, and of our own those that were acknowledged. */
static int
measure(struct side *s)
{
	static double rate[NB_INTERVALS];
	const uint64_t interval = link_ticks(s->l, INTERVAL_MS);
	uint32_t directions = s->sends ? 2 : 1, nb = 0;
	uint64_t now, next = 0, before = 0, after;

	while (s->expected == 0)
		if (!step(s))
			return -1;
	next = rte_rdtsc() + link_ticks(s->l, LINK_WARM_MS);
	while (rte_rdtsc() < next)
		if (!step(s))
			return -1;
	before = (uint64_t)s->expected + s->acked;
	for (next += interval; nb < NB_INTERVALS && nb * interval < s->l->duration;) {
		if (!step(s))
			return -1;
		now = rte_rdtsc();
		if (now < next)
			continue;
		after = (uint64_t)s->expected + s->acked;
		rate[nb++] = (double)(after - before) * (double)s->l->hz / 1e6 / directions /
			(double)(now - next + interval);
		before = after;
		next = now + interval;
	}
	link_say_bye(s->l);
	return report(s, rate, nb);
}

static int
serve(struct side *s)
{
	while (!s->is_over)
		if (!step(s))
			return -1;
	return 0;
}

static int
run(struct link *l, bool sends, int (*role)(struct side *s))
{
	static struct side s;
	int ret = side_init(&s, l, sends);

	if (ret == 0)
		ret = role(&s);
	side_fini(&s);
	return ret;
}

int
worked_tx(struct link *l)
{
	return run(l, true, serve);
}

int
worked_rx(struct link *l)
{
	return run(l, false, measure);
}

int
worked_both(struct link *l)
{
	return run(l, true, measure);
}

int
worked_both_peer(struct link *l)
{
	return run(l, true, serve);
}

/* ---- one at a time ---- */

/* Send what *put* writes; false: the peer is gone. */
static bool
send_one(struct side *s, void (*put)(struct side *s, struct rte_mbuf *m))
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->l->pool);

	if (m == NULL)
		return false;
	put(s, m);
	while (rte_eth_tx_burst(LINK_PORT, 0, &m, 1) == 0)
		if (!link_idle(s->l))
			return false;
	return true;
}

static bool
wait_one(struct side *s)
{
	struct rte_mbuf *m;

	while (rte_eth_rx_burst(LINK_PORT, 0, &m, 1) == 0)
		if (!link_idle(s->l))
			return false;
	take(s, &m, 1);
	return s->errors == 0;
}

static int
ping_all(struct side *s)
{
	uint64_t start = rte_rdtsc(), now;
	uint64_t begin = start + link_ticks(s->l, LINK_WARM_MS);
	uint64_t end = begin + s->l->duration;
	struct sample sample;

	if (sample_init(&sample) != 0)
		return -1;
	for (; start < end; start = now) {
		if (!send_one(s, put_data) || !wait_one(s))
			return -1;
		now = rte_rdtsc();
		if (start >= begin && !sample_add(&sample, now - start))
			break;
	}
	link_say_bye(s->l);
	return sample_report(&sample, (double)s->l->hz / 1e6,
			     (double)(start - begin) / (double)s->l->hz);
}

/* Answers with an acknowledgement, or with a message of its own ("echo"). */
static int
pong_all(struct side *s)
{
	bool echo = strcmp(s->l->argv[3], "echo") == 0;

	for (;;) {
		if (!wait_one(s))
			return -1;
		if (s->is_over)
			return 0;
		if (!send_one(s, echo ? put_data : put_ack))
			return -1;
	}
}

int
worked_ping(struct link *l)
{
	return run(l, true, ping_all);
}

int
worked_pong(struct link *l)
{
	return run(l, true, pong_all);
}
