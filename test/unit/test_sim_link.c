/* SPDX-License-Identifier: BSD-3-Clause */

/* One direction of a cable: time, queue, marks, and the effect of faults. */

#include "test_sim.h"

#define EXTRA   24 /* bytes of time on the cable besides the frame */
#define LEN     1476
#define ON_WIRE (LEN + EXTRA)
#define MANY    20000
#define US      SAN_NS_PER_US

#define PAIR(...) test_sim_network(WORDS("link.rate=100 Gb/s", "link.delay=1 us", ##__VA_ARGS__))
/* A switch's port, which has a buffer: link 1 leads to host 0. */
#define STAR(...) PAIR("topology.type=star", ##__VA_ARGS__)
#define PORT      1

static struct rte_mbuf *
frame(struct sim_world *w)
{
	return test_sim_frame(w, 1, 0, 50000, LEN);
}

static void
send_n(struct sim_world *w, struct sim_link *l, uint32_t n)
{
	for (; n > 0; n--)
		test_sim_send(w, l, frame(w));
}

/* When the next packet arrives; SAN_TIME_NEVER: none. It is freed. */
static uint64_t
arrival_ns(struct sim_world *w)
{
	uint64_t was_ns = w->now_ns, at_ns;
	struct sim_link *l;
	struct rte_mbuf *m = test_sim_arrival(w, &l);

	if (m == NULL)
		return SAN_TIME_NEVER;
	rte_pktmbuf_free(m);
	at_ns = w->now_ns;
	w->now_ns = was_ns;
	return at_ns;
}

/* ---- time ---- */

NET_CASE(san_sim_link_send__serialisation)
{
	struct sim_world *w = PAIR(NULL);
	struct sim_link *l = &w->links[0];

	w->now_ns = 5000;
	send_n(w, l, 2);
	w->now_ns = 5100;
	send_n(w, l, 1); /* behind the first two */
	w->now_ns = 90000;
	send_n(w, l, 1); /* an idle cable */
	w->now_ns = 0;
	assert_int_equal(arrival_ns(w), 5000 + 120 + 1000);
	assert_int_equal(arrival_ns(w), 5000 + 240 + 1000);
	assert_int_equal(arrival_ns(w), 5000 + 360 + 1000);
	assert_int_equal(arrival_ns(w), 90000 + 120 + 1000);
	assert_int_equal(arrival_ns(w), SAN_TIME_NEVER);
	assert_int_equal(l->stats.nb_pkts, 4);
	assert_int_equal(l->stats.nb_bytes, 4 * ON_WIRE);
	/* the other direction has its own time */
	send_n(w, &w->links[1], 1);
	assert_int_equal(arrival_ns(w), 120 + 1000);
}

/* At any rate a thousand packets take as long as their bits, within a nanosecond. */
NET_CASE(san_sim_link_send__rates)
{
	static const struct {
		const char *word;
		double mbps;
	} rates[] = {
		{"link.rate=1 Mb/s", 1},
		{"link.rate=7 Mb/s", 7},
		{"link.rate=999 Mb/s", 999},
		{"link.rate=25 Gb/s", 25000},
		{"link.rate=400 Gb/s", 400000},
		{"link.rate=1333331 Mb/s", 1333331},
		{"link.rate=1600 Gb/s", 1600000},
	};

	UNIT_EACH(r, rates) {
		struct sim_world *w = PAIR(r->word, "link.delay=0");
		uint64_t last_ns = 0;
		double want_ns = 0;

		for (uint32_t k = 0; k < 1000; k++) {
			test_sim_send(w, &w->links[0],
				      test_sim_frame(w, 0, 1, 1, (uint16_t)(64 + k)));
			want_ns += (64 + k + EXTRA) * 8 * 1000 / r->mbps;
		}
		for (uint32_t k = 0; k < 1000; k++)
			last_ns = arrival_ns(w);
		assert_true(__builtin_fabs((double)last_ns - want_ns) <= 1 + 1e-9 * want_ns);
		test_sim_network_free();
	}
}

/* ---- queue ---- */

NET_CASE(san_sim_link_send__drops_beyond_the_buffer)
{
	struct sim_world *w = STAR("link.buffer=7476"); /* four on the wire and one more */
	struct sim_link *l = &w->links[PORT];

	send_n(w, l, 6);
	assert_int_equal(l->stats.nb_full, 1);
	assert_int_equal(l->stats.nb_pkts, 5);
	assert_int_equal(l->stats.high_bytes, 5 * ON_WIRE);
	/* the next one has room when one was sent, and not before */
	w->now_ns = 119;
	send_n(w, l, 1);
	assert_int_equal(l->stats.nb_full, 2);
	w->now_ns = 120;
	send_n(w, l, 2);
	assert_int_equal(l->stats.nb_full, 3);
	assert_int_equal(l->stats.nb_pkts, 6);
	w = STAR("link.buffer=7475");
	send_n(w, &w->links[PORT], 6);
	assert_int_equal(w->links[PORT].stats.nb_full, 2);
	/* a small packet fits where a large one does not */
	test_sim_send(w, &w->links[PORT], test_sim_frame(w, 1, 0, 1, LEN - 1));
	assert_int_equal(w->links[PORT].stats.nb_full, 2);
}

/* RT-31: longer packets are lost, and take no time on the cable. */
NET_CASE(san_sim_link_send__loses_what_is_too_long)
{
	struct sim_world *w = STAR("link.mtu=1000", "core.mtu=9000");
	struct sim_link *l = &w->links[PORT];

	test_sim_send(w, l, test_sim_frame(w, 1, 0, 1, 1015));
	assert_int_equal(l->stats.nb_lost, 1);
	assert_int_equal(l->stats.nb_pkts, 0);
	test_sim_send(w, l, test_sim_frame(w, 1, 0, 1, 1014));
	assert_int_equal(l->stats.nb_lost, 1);
	assert_int_equal(l->stats.nb_pkts, 1);
}

/* A host's own queue is bounded by its loop. */
NET_CASE(san_sim_link_send__hosts_do_not_drop)
{
	struct sim_world *w = STAR("link.buffer=2 KiB", "host.mtu=1500");

	send_n(w, san_sim_topo_uplink(w, 1), 1000);
	assert_int_equal(san_sim_topo_uplink(w, 1)->stats.nb_full, 0);
	assert_int_equal(san_sim_topo_uplink(w, 1)->stats.nb_pkts, 1000);
}

NET_CASE(san_sim_link_backlog__drains_at_the_rate)
{
	struct sim_world *w = STAR(NULL);
	struct sim_link *l = &w->links[PORT];

	assert_int_equal(san_sim_link_backlog(l, 0), 0);
	send_n(w, l, 10);
	for (uint32_t i = 0; i <= 10; i++)
		assert_int_equal(san_sim_link_backlog(l, 120 * i), (10 - i) * ON_WIRE);
	assert_int_equal(san_sim_link_backlog(l, 40), 10 * ON_WIRE - 500);
	assert_int_equal(san_sim_link_backlog(l, 1200), 0);
	assert_int_equal(san_sim_link_backlog(l, 1000000000), 0);
	assert_int_equal(l->stats.high_bytes, 10 * ON_WIRE);
}

/* ---- marks ---- */

static uint8_t
ecn_of(const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *v4 = (const void *)(eth + 1);
	const struct rte_ipv6_hdr *v6 = (const void *)(eth + 1);

	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) {
		/* the sum over a header with a valid checksum is all ones */
		assert_int_equal(rte_raw_cksum(v4, sizeof(*v4)), 0xffff);
		return v4->type_of_service & 3;
	}
	return rte_be_to_cpu_32(v6->vtc_flow) >> 20 & 3;
}

static void
marks(const char *ipv6)
{
	struct sim_world *w = STAR("link.mark=3000", ipv6);
	struct sim_link *l = &w->links[PORT];
	struct rte_mbuf *m;

	send_n(w, l, 6);
	for (uint32_t i = 0; i < 6; i++) {
		/* marked when more than two others were queued */
		m = test_sim_arrival(w, &l);
		assert_int_equal(ecn_of(m), i > 2 ? 3 : 2);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(l->stats.nb_marked, 3);
	assert_int_equal(l->stats.nb_lost + l->stats.nb_full, 0);
}

NET_CASE(san_sim_link_send__marks_beyond_the_threshold)
{
	marks("host.ipv6=no");
	marks("host.ipv6=yes");
}

NET_CASE(san_sim_link_send__marks_nothing_else)
{
	struct sim_world *w = STAR("link.mark=1");
	struct sim_link *l = &w->links[PORT];
	struct rte_mbuf *m;
	uint8_t was[LEN];

	send_n(w, l, 1);
	m = frame(w);
	memcpy(was, rte_pktmbuf_mtod(m, void *), LEN);
	test_sim_send(w, l, m);
	m = frame(w); /* ARP has no such bits */
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type =
		rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP);
	test_sim_send(w, l, m);
	arrival_ns(w);
	m = test_sim_arrival(w, &l);
	for (uint32_t i = 0; i < LEN; i++)
		/* type of service and checksum */
		assert_true(rte_pktmbuf_mtod(m, uint8_t *)[i] == was[i] || i == 15 || i == 24 ||
			    i == 25);
	rte_pktmbuf_free(m);
	m = test_sim_arrival(w, &l);
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *) + 14, &was[14], LEN - 14);
	rte_pktmbuf_free(m);
}

/* Not-ECT stays, CE stays, and a wrong checksum stays wrong by the same amount. */
NET_CASE(san_sim_link_send__marks_only_ect)
{
	static const uint8_t after[] = {0, 3, 3, 3};

	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		struct sim_world *w = STAR("link.mark=1");
		struct sim_link *l = &w->links[PORT];
		struct rte_mbuf *m = frame(w);
		struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(m, void *, sizeof(struct rte_ether_hdr));
		uint16_t sum;

		ip->type_of_service = 0xb8 | ecn;
		ip->packet_id = 0x1234; /* not covered by the checksum */
		sum = rte_raw_cksum(ip, sizeof(*ip));
		assert_int_not_equal(sum, 0xffff);
		send_n(w, l, 1);
		test_sim_send(w, l, m);
		arrival_ns(w);
		assert_ptr_equal(test_sim_arrival(w, &l), m);
		assert_int_equal(ip->type_of_service, 0xb8 | after[ecn]);
		assert_int_equal(rte_raw_cksum(ip, sizeof(*ip)), sum);
		assert_int_equal(l->stats.nb_marked, ecn == 1 || ecn == 2);
		rte_pktmbuf_free(m);
		test_sim_network_free();
	}
}

NET_CASE(san_sim_link_send__no_threshold_no_marks)
{
	struct sim_world *w = STAR("link.mark=0");

	send_n(w, &w->links[PORT], 100);
	assert_int_equal(w->links[PORT].stats.nb_marked, 0);
}

/* ---- faults ---- */

/* Send each one after the previous one arrived; returns which were lost, as digits. */
static uint32_t
lose(struct sim_world *w, uint32_t n, char *which)
{
	uint32_t lost = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool is_lost;

		test_sim_send(w, &w->links[0], frame(w));
		is_lost = arrival_ns(w) == SAN_TIME_NEVER;
		lost += is_lost;
		w->now_ns += 200;
		if (which != NULL)
			which[i] = is_lost ? '1' : '0';
	}
	assert_int_equal(w->links[0].stats.nb_lost, lost);
	assert_int_equal(w->net.nb_faults, lost + 1); /* and the fault itself */
	return lost;
}

/* *n* of *all*, each with probability *p*: within four standard deviations. */
static void
assert_share(uint32_t n, uint32_t all, double p)
{
	double off = n - all * p;

	FAIL_IF(off * off > 16 * all * p * (1 - p), "%u of %u, not %f", n, all, p);
}

static struct sim_world *
with_fault(const char *kind, const char *rate, const char *more)
{
	char words[2][64];
	struct sim_world *w;

	snprintf(words[0], sizeof(words[0]), "fault.f.kind=%s", kind);
	snprintf(words[1], sizeof(words[1]), "fault.f.rate=%s", rate);
	w = PAIR(words[0], words[1], more);
	san_sim_fault_event(w, 0, true);
	return w;
}

NET_CASE(san_sim_link_send__loss_rate)
{
	static const struct {
		const char *rate;
		double p;
	} rates[] = {{"0.1 %", 0.001}, {"1 %", 0.01}, {"20 %", 0.2}, {"50 %", 0.5}, {"99 %", 0.99}};

	UNIT_EACH(r, rates) {
		struct sim_world *w = with_fault("loss", r->rate, NULL);

		assert_share(lose(w, MANY, NULL), MANY, r->p);
		test_sim_network_free();
	}
}

NET_CASE(san_sim_link_send__loss_of_all_and_none)
{
	struct sim_world *w = with_fault("loss", "1", NULL);

	assert_int_equal(lose(w, 1000, NULL), 1000);
	w = with_fault("loss", "0", NULL);
	assert_int_equal(lose(w, 1000, NULL), 0);
}

/* Equal seeds lose the same packets, other seeds others. */
NET_CASE(san_sim_link_send__loss_follows_from_the_seed)
{
	char which[3][1001] = {""};

	for (uint32_t i = 0; i < 3; i++) {
		struct sim_world *w =
			with_fault("loss", "30 %", i < 2 ? "run.seed=5" : "run.seed=6");

		lose(w, 1000, which[i]);
		test_sim_network_free();
	}
	assert_string_equal(which[0], which[1]);
	assert_string_not_equal(which[0], which[2]);
}

NET_CASE(san_sim_link_send__burst_rate_and_length)
{
	static const struct {
		const char *rate;
		double p;
	} rates[] = {{"1 %", 0.01}, {"10 %", 0.1}, {"50 %", 0.5}};
	static char which[10 * MANY + 1];
	uint32_t k, runs;

	UNIT_EACH(r, rates) {
		struct sim_world *w = with_fault("burst", r->rate, NULL);
		uint32_t n = lose(w, 10 * MANY, which);
		double length;

		for (k = 1, runs = which[0] == '1'; k < 10 * MANY; k++)
			runs += which[k] == '1' && which[k - 1] == '0';
		length = (double)n / runs;
		assert_true(__builtin_fabs(n / (10.0 * MANY) - r->p) < 0.15 * r->p);
		assert_true(length > 7.2 && length < 8.8);
		test_sim_network_free();
	}
}

NET_CASE(san_sim_link_send__burst_of_all)
{
	struct sim_world *w = with_fault("burst", "1", NULL);

	assert_int_equal(lose(w, 1000, NULL), 1000);
}

/* A flow is lost as a whole, or not at all. */
NET_CASE(san_sim_link_send__flows)
{
	struct sim_world *w = with_fault("flow", "30 %", NULL);
	uint32_t k, lost, flows = 0;

	for (uint32_t port = 0; port < 5000; port++) {
		for (k = lost = 0; k < 4; k++) {
			uint16_t len = (uint16_t)(100 + 50 * k);

			test_sim_send(w, &w->links[0],
				      test_sim_frame(w, 0, 1, (uint16_t)(40000 + port), len));
			lost += arrival_ns(w) == SAN_TIME_NEVER;
			w->now_ns += 100;
		}
		assert_true(lost == 0 || lost == 4);
		flows += lost == 4;
	}
	assert_in_range(flows, 1500 - 160, 1500 + 160);
}

NET_CASE(san_sim_link_send__down)
{
	struct sim_world *w = with_fault("down", "0", "fault.f.where=host:0:up");

	assert_int_equal(lose(w, 100, NULL), 100);
	/* the way back works */
	test_sim_send(w, &w->links[1], frame(w));
	assert_int_not_equal(arrival_ns(w), SAN_TIME_NEVER);
	assert_int_equal(w->links[1].fault.nb_down, 0);
	san_sim_fault_event(w, 0, false);
	assert_int_equal(w->links[0].fault.nb_down, 0);
	test_sim_send(w, &w->links[0], frame(w));
	assert_int_not_equal(arrival_ns(w), SAN_TIME_NEVER);
}

NET_CASE(san_sim_link_send__duplicate)
{
	struct sim_world *w = with_fault("duplicate", "1", "fault.f.arg=5 us");
	uint64_t late_ns, latest_ns = 0, earliest_ns = UINT64_MAX;
	struct rte_mbuf *m[2];
	struct sim_link *l;

	for (uint32_t i = 0; i < 2000; i++) {
		uint64_t sent_ns = w->now_ns;

		test_sim_send(w, &w->links[0], frame(w));
		m[0] = test_sim_arrival(w, &l);
		assert_int_equal(w->now_ns, sent_ns + 1120);
		m[1] = test_sim_arrival(w, &l);
		assert_non_null(m[1]);
		late_ns = w->now_ns - sent_ns - 1120;
		latest_ns = RTE_MAX(latest_ns, late_ns);
		earliest_ns = RTE_MIN(earliest_ns, late_ns);
		assert_int_equal(m[0]->pkt_len, LEN);
		assert_int_equal(m[1]->pkt_len, LEN);
		assert_memory_equal(rte_pktmbuf_mtod(m[0], void *), rte_pktmbuf_mtod(m[1], void *),
				    LEN);
		rte_pktmbuf_free(m[0]);
		rte_pktmbuf_free(m[1]);
		assert_int_equal(arrival_ns(w), SAN_TIME_NEVER);
	}
	assert_in_range(latest_ns, 4900, 5000);
	assert_in_range(earliest_ns, 0, 100);
	assert_int_equal(w->links[0].stats.nb_lost, 0);
}

NET_CASE(san_sim_link_send__reorder)
{
	struct sim_world *w = with_fault("reorder", "30 %", "fault.f.arg=7 us");
	uint64_t latest_ns = 0;
	uint32_t late = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		uint64_t at_ns;

		test_sim_send(w, &w->links[0], frame(w));
		at_ns = arrival_ns(w) - w->now_ns;
		assert_in_range(at_ns, 1120, 1120 + 7000);
		late += at_ns != 1120;
		latest_ns = RTE_MAX(latest_ns, at_ns);
		w->now_ns += 10 * US;
	}
	assert_true(latest_ns > 1120 + 6900);
	assert_share(late, MANY, 0.3);
}

/* Without delay: no fault happened. */
NET_CASE(san_sim_link_send__reorder_counts_what_is_late)
{
	struct sim_world *w = with_fault("reorder", "1", "fault.f.arg=1 ns");
	uint64_t before = w->net.nb_faults;
	uint32_t late = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		test_sim_send(w, &w->links[0], frame(w));
		late += arrival_ns(w) - w->now_ns != 1120;
		w->now_ns += 10 * US;
	}
	assert_share(late, MANY, 0.5);
	assert_int_equal(w->net.nb_faults - before, late);
}

NET_CASE(san_sim_link_send__corruption_of_one_bit)
{
	struct sim_world *w = with_fault("corrupt", "1", NULL);
	uint32_t i, k, bytes[LEN] = {0}, touched = 0;
	struct rte_mbuf *m, *want = frame(w);
	struct sim_link *l;

	for (i = 0; i < 5000; i++) {
		uint32_t bits = 0;

		test_sim_send(w, &w->links[0], frame(w));
		m = test_sim_arrival(w, &l);
		assert_int_equal(m->pkt_len, LEN);
		for (k = 0; k < LEN; k++) {
			uint8_t diff = rte_pktmbuf_mtod(m, uint8_t *)[k] ^
				rte_pktmbuf_mtod(want, uint8_t *)[k];

			bits += (uint32_t)__builtin_popcount(diff);
			bytes[k] += diff != 0;
		}
		assert_int_equal(bits, 1);
		rte_pktmbuf_free(m);
	}
	/* anywhere in the frame */
	for (k = 0; k < LEN; k++)
		touched += bytes[k] != 0;
	assert_true(touched > LEN * 9 / 10);
	rte_pktmbuf_free(want);
}

/* ---- sim_fault.c on links ---- */

/* Faults add up; each removes what it added, in whatever order they end. */
NET_CASE(san_sim_fault_event__add_up)
{
	struct sim_world *w = PAIR("fault.a.kind=loss", "fault.a.rate=10 %", "fault.b.kind=loss",
				   "fault.b.rate=20 %", "fault.b.where=host:0:up",
				   "fault.c.kind=down", "fault.d.kind=down");
	const struct sim_link_fault *f = &w->links[0].fault;

	san_sim_fault_event(w, 0, true);
	san_sim_fault_event(w, 1, true);
	san_sim_fault_event(w, 1, true); /* has begun already */
	assert_int_equal(f->loss_ppm, 300000);
	assert_int_equal(w->links[1].fault.loss_ppm, 100000);
	san_sim_fault_event(w, 2, true);
	san_sim_fault_event(w, 3, true);
	assert_int_equal(f->nb_down, 2);
	san_sim_fault_event(w, 2, false);
	assert_int_equal(f->nb_down, 1);
	san_sim_fault_event(w, 0, false);
	assert_int_equal(f->loss_ppm, 200000);
	san_sim_fault_end(w);
	assert_int_equal(f->loss_ppm | f->nb_down, 0);
	assert_int_equal(w->links[1].fault.loss_ppm, 0);
	/* and none begins any more */
	san_sim_fault_event(w, 0, true);
	assert_int_equal(f->loss_ppm, 0);
}

/* The delays of two faults do not depend on which one ended last. */
NET_CASE(san_sim_fault_event__delays_of_several)
{
	struct sim_world *w =
		PAIR("fault.a.kind=reorder", "fault.a.rate=10 %", "fault.a.arg=9 us",
		     "fault.b.kind=reorder", "fault.b.rate=90 %", "fault.b.arg=1 us",
		     "fault.c.kind=duplicate", "fault.c.rate=90 %", "fault.c.arg=2 us",
		     "fault.d.kind=duplicate", "fault.d.rate=90 %", "fault.d.arg=3 us");
	const struct sim_link_fault *f = &w->links[0].fault;

	san_sim_fault_event(w, 0, true);
	san_sim_fault_event(w, 1, true);
	assert_true(f->reorder_ns >= 9 * US);
	san_sim_fault_event(w, 0, false);
	assert_int_equal(f->reorder_ns, 1 * US);
	assert_int_equal(f->reorder_ppm, 900000);
	san_sim_fault_event(w, 2, true);
	san_sim_fault_event(w, 3, true);
	san_sim_fault_event(w, 3, false);
	assert_int_equal(f->dup_ns, 2 * US);
	san_sim_fault_end(w);
	assert_int_equal(f->reorder_ns | f->dup_ns, 0);
}

/* During which of them connections may stall. */
NET_CASE(san_sim_fault_event__blocking)
{
	static const struct {
		const char *kind, *rate;
		bool blocks;
	} cases[] = {
		{"loss", "20 %", false},
		{"loss", "21 %", true},
		{"burst", "1 %", false},
		{"reorder", "5 %", false},
		{"corrupt", "90 %", true},
		{"flow", "1 %", true},
		{"duplicate", "5 %", false},
		{"down", "0", true},
	};

	UNIT_EACH(r, cases) {
		struct sim_world *w = with_fault(r->kind, r->rate, "fault.f.arg=1 us");

		assert_int_equal(w->nb_blocking, r->blocks);
		w->now_ns = 77;
		san_sim_fault_event(w, 0, false);
		assert_int_equal(w->nb_blocking, 0);
		assert_int_equal(w->unblocked_ns, r->blocks ? 77 : 0);
		test_sim_network_free();
	}
}

/* Packets may wait as long as a host does not run, for any overlapping pauses. */
NET_CASE(san_sim_fault_event__pauses_overlap)
{
	struct sim_world *w =
		PAIR("fault.a.kind=pause", "fault.a.where=host:1", "fault.b.kind=pause",
		     "fault.b.where=host:1", "fault.b.for=5 us");
	struct sim_host *h = &w->hosts[1];

	w->now_ns = 10 * US;
	san_sim_fault_event(w, 0, true);
	w->now_ns = 18 * US;
	san_sim_fault_event(w, 1, true);
	w->now_ns = 20 * US;
	san_sim_fault_event(w, 0, false);
	assert_int_equal(h->held_ns, 0);
	w->now_ns = 23 * US;
	san_sim_fault_event(w, 1, false);
	assert_int_equal(h->nb_paused, 0);
	assert_int_equal(h->held_ns, 13 * US);
	/* again, before it has run */
	w->now_ns = 24 * US;
	san_sim_fault_event(w, 0, true);
	w->now_ns = 30 * US;
	san_sim_fault_end(w);
	assert_int_equal(h->held_ns, 19 * US);
}

NET_CASE(san_sim_fault_create__wrong_places)
{
	static const struct {
		const char *kind, *where;
		bool fine;
	} cases[] = {
		{"loss", "all", true},
		{"loss", "host:1:up", true},
		{"loss", "host:2", false},
		{"loss", "trunk", false},
		{"pause", "host:1", true},
		{"pause", "all", false},
		{"restart", "host:0", true},
		{"restart", "host:2", false},
		{"pause", "host:1:up", false},
		{"restart", "spine:0", false},
	};
	char kind[64], where[64];

	UNIT_EACH(r, cases) {
		struct sim_world *w;

		snprintf(kind, sizeof(kind), "fault.f.kind=%s", r->kind);
		snprintf(where, sizeof(where), "fault.f.where=%s", r->where);
		w = PAIR(kind, where, "fault.f.rate=1 %");
		FAIL_IF((san_sim_fault_create(w) == 0) != r->fine, "%s %s", kind, where);
		test_sim_network_free();
	}
}
