/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Checkers of engines and of whole runs: a load runs, then a record is changed, a resource is
 * leaked, or time is too short.
 */

#include "test_sim_one.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ulp_priv.h"

/* ---- with a load that runs ---- */

static void
load_for(const char *const *words, uint64_t ns)
{
	world(words);
	connect_all();
	w->load_ns = w->unblocked_ns = w->now_ns;
	san_sim_load_start(w);
	san_sim_fault_arm(w);
	run_ns(ns);
	assert_true(w->load->nb_pending > 0);
}

SIM_CASE(sim_check_complete__completed_twice)
{
	struct san_ulp_wc wc = {.op = RTSAN_WC_PUSH};
	struct sim_side *s;

	load_for(WORDS("load.depth=4"), MS);
	s = side(0);
	wc.qp = s->qp;
	wc.wr_id = (s->nb_posted - 10) << 16 | s->ops[0].slot;
	assert_int_equal(san_ulp_cq_reserve_send(w->hosts[0].send_cq, 1), 1);
	san_ulp_cq_put(w->hosts[0].send_cq, &wc);
	san_sim_load_op_completions(w, &w->hosts[0]);
	assert_fails("complete", "which is not posted");
}

static void
cut_all(void)
{
	for (uint32_t i = 0; i < w->nb_links; i++)
		w->links[i].fault.nb_down = 1;
}

/* Everything is lost without a fault: as if the protocol did not send. */
SIM_CASE(sim_check_complete__broken_without_cause)
{
	world(WORDS("run.stall=60 s", "run.duration=60 s", "load.reconnect=yes"));
	connect_all();
	cut_all();
	san_sim_world_run(w);
	assert_fails("complete", "its connection broke without cause");
}

/* The same when the load is over and requests are still incomplete. */
SIM_CASE(sim_check_complete__broken_while_settling)
{
	load_for(WORDS("run.stall=60 s"), MS);
	w->load->ending = true;
	cut_all();
	while (san_sim_world_step(w, 60 * SAN_NS_PER_S))
		;
	assert_fails("complete", "its connection broke without cause");
}

/* What may break a connection, and how long it must last. */
SIM_CASE(san_sim_fault_may_break__causes)
{
	static const struct {
		const char *kind, *rate, *more;
		uint64_t ns;
		bool may;
	} cases[] = {
		{"none", "0", NULL, 60 * SAN_NS_PER_S, false},
		{"down", "0", NULL, 100 * MS, false},
		{"down", "0", NULL, 10 * SAN_NS_PER_S, true},
		{"down", "0", "host.keepalive_ms=10", 40 * MS, false},
		{"down", "0", "host.keepalive_ms=10", 60 * MS, true},
		{"down", "0", "host.rto_max=4 ms", 60 * MS, false},
		{"down", "0", "host.rto_max=4 ms", 90 * MS, true},
		{"down", "0", "host.retries=2", 0, true},
		{"pause", "0", "fault.f.where=host:1", 10 * SAN_NS_PER_S, true},
		{"restart", "0", "fault.f.where=host:0", 0, true},
		{"restart", "0", "fault.f.where=host:1", 0, true},
		{"flow", "1 %", NULL, 10 * SAN_NS_PER_S, true},
		{"burst", "1 %", NULL, 10 * SAN_NS_PER_S, true},
		{"loss", "1 %", NULL, 60 * SAN_NS_PER_S, false},
		{"loss", "10 %", NULL, 10 * SAN_NS_PER_S, true},
		{"corrupt", "1 %", NULL, 60 * SAN_NS_PER_S, false},
		{"reorder", "1", "fault.f.arg=1 us", 60 * SAN_NS_PER_S, false},
		{"duplicate", "1", NULL, 60 * SAN_NS_PER_S, false},
	};
	char kind[64], rate[64];

	for (uint32_t i = 0; i < RTE_DIM(cases); i++) {
		snprintf(kind, sizeof(kind), "fault.f.kind=%s", cases[i].kind);
		snprintf(rate, sizeof(rate), "fault.f.rate=%s", cases[i].rate);
		world(WORDS(kind, rate, "load.revoke=1 ms", "load.bad_key=1 %", cases[i].more));
		san_sim_fault_event(w, 0, true);
		w->now_ns += cases[i].ns;
		san_sim_fault_event(w, 0, false);
		w->now_ns += 60 * SAN_NS_PER_S; /* over, but remembered */
		if (san_sim_fault_may_break(w, side(0)) != cases[i].may)
			fail_msg("case %u: %s", i, kind);
	}
}

/* ---- place, leak: after the end ---- */

#define SHORT "run.duration=100 us"

SIM_CASE(sim_check_place__after_the_end)
{
	ran(WORDS(SHORT));
	san_sim_check_end(w);
	assert_fine();
	san_sim_load_slot(w, side(1), 3)[0] = 0;
	san_sim_check_end(w);
	assert_fails("place", "side 1: bytes of slot 3 written after the end");
}

SIM_CASE(sim_check_leak__mbuf)
{
	struct rte_mbuf *m;

	ran(WORDS(SHORT));
	m = rte_pktmbuf_alloc(w->net.pool);
	san_sim_check_end(w);
	rte_pktmbuf_free(m);
	assert_fails("leak", "the network: 1 of");
}

SIM_CASE(sim_check_leak__mbuf_of_a_host)
{
	struct rte_mbuf *m;

	ran(WORDS(SHORT, "host.mbufs=1000"));
	m = rte_pktmbuf_alloc(w->hosts[1].pool);
	san_sim_check_end(w);
	rte_pktmbuf_free(m);
	assert_fails("leak", "host");
}

SIM_CASE(sim_check_leak__region)
{
	uint32_t key;

	ran(WORDS(SHORT));
	assert_int_equal(san_ulp_mr_add(san_core_ulp(w->hosts[1].core), &key, sizeof(key), 0,
					RTSAN_REMOTE_PUSH, 1, &key),
			 0);
	san_sim_check_end(w);
	assert_fails("leak", "host 1: 1 things in use");
}

SIM_CASE(sim_check_leak__entry_of_a_host_that_died)
{
	struct san_cam cam;
	int thing;

	ran(WORDS(SHORT));
	cam = (struct san_cam){.hash = w->cam, .engine = 1000};
	assert_int_equal(san_tl_reorder_add(&cam, 1, SAN_CAM_REQUEST, 1, &thing), 0);
	san_sim_check_end(w);
	assert_fails("leak", "1 entries in the CAM");
}

SIM_CASE(sim_check_leak__queue_pair_in_use)
{
	world(WORDS(SHORT));
	connect_all();
	san_sim_load_release(w);
	assert_fails("leak", "qp_destroy");
}

/* ---- grant ---- */

static struct san_tl_rxn *
granted_record(struct san_tl *tl)
{
	struct san_tl_rxn *r;

	for (uint32_t slot = 0; slot < tl->conf.max_conns; slot++) {
		if (!tl->conns[slot].open)
			continue;
		TAILQ_FOREACH(r, &tl->conns[slot].queues->rxns, all_link)
			if (r->solicited && r->granted > r->arrived)
				return r;
	}
	return NULL;
}

static struct san_tl *
granting(void)
{
	load_for(WORDS("load.solicit=always", "load.size_min=1 MiB", "load.size_max=1 MiB"), MS);
	san_sim_check_round(w, &w->hosts[1]);
	assert_fine();
	return san_core_tl(w->hosts[1].core);
}

SIM_CASE(sim_check_grant__records_above_the_budget)
{
	struct san_tl *tl = granting();
	struct san_tl_rxn *r = granted_record(tl);

	assert_non_null(r);
	r->granted += tl->conf.budget_bytes;
	assert_round_fails(1, "grant", "host 1: ");
}

SIM_CASE(sim_check_grant__expired_records_above_their_bound)
{
	struct san_tl *tl = granting();
	struct san_tl_rxn *r = granted_record(tl);
	uint32_t expired;

	assert_non_null(r);
	expired = r->charge.expired;
	r->charge.expired = tl->expired_used + 1;
	san_sim_check_round(w, &w->hosts[1]);
	r->charge.expired = expired;
	assert_fails("grant", "expired");
}

/* As when 1,024 senders of 64 KiB overran a switch with room for twice the budget. */
SIM_CASE(sim_check_grant__crumbs)
{
	struct san_tl *tl;
	struct san_tl_rxn *r;

	load_for(WORDS("topology.type=star", "topology.hosts=33", "load.pattern=incast",
		       "load.connections=32", "load.solicit=always", "load.size_min=1 MiB",
		       "load.size_max=1 MiB"),
		 MS);
	tl = san_core_tl(w->hosts[0].core);
	san_sim_check_round(w, &w->hosts[0]);
	assert_fine();
	r = TAILQ_FIRST(&TAILQ_FIRST(&TAILQ_FIRST(&tl->admit[0])->admit)->grants);
	assert_true(r->granted != 0);
	r->length = r->granted + 1472;
	assert_round_fails(0, "grant", "all but 1472 bytes");
}

/* RT-41: if the budget is enough for the path, nothing is granted beyond it. */
SIM_CASE(sim_check_grant__room_on_a_short_path)
{
	struct san_tl *tl = granting();

	tl->conns[0].host->paths[false].room = 1;
	san_sim_check_round(w, &w->hosts[1]);
	tl->conns[0].host->paths[false].room = 0;
	assert_fails("grant", "beyond the budget");
}

/* A long path may have half of host.paths, be that less than the budget. (RT-41) */
SIM_CASE(sim_check_grant__room_on_a_long_path)
{
	struct san_tl_path *p;
	struct san_tl *tl;

	load_for(WORDS("load.solicit=always", "load.size_min=1 MiB", "load.size_max=1 MiB",
		       "link.delay=1 ms", "link.rate=10 Gb/s", "host.paths=300 KiB"),
		 50 * MS);
	tl = san_core_tl(w->hosts[1].core);
	p = &tl->conns[0].host->paths[true];
	assert_int_equal(p->room, tl->conf.path_bytes / 2);
	san_sim_check_round(w, &w->hosts[1]);
	assert_fine();
	p->room++;
	san_sim_check_round(w, &w->hosts[1]);
	p->room--;
	assert_fails("grant", "beyond the budget");
}

SIM_CASE(sim_check_grant__counters)
{
	struct san_tl *tl = granting();
	uint32_t expired;

	tl->budget_used = tl->conf.budget_bytes + 1;
	assert_round_fails(1, "grant", "the budget is");
	tl = granting();
	expired = tl->hosts[0].expired;
	tl->hosts[0].expired = UINT32_MAX;
	san_sim_check_round(w, &w->hosts[1]);
	tl->hosts[0].expired = expired;
	assert_fails("grant", "the bound is");
}

/* ---- pcb ---- */

SIM_CASE(sim_check_pcb__budget)
{
	struct san_pdl *pdl;

	load_for(WORDS("load.depth=4"), MS);
	pdl = san_core_pdl(w->hosts[0].core);
	pdl->inflight = pdl->conf.budget_pkts + 1;
	assert_round_fails(0, "pcb", "packets in flight, budget");
}

SIM_CASE(sim_check_pcb__messages)
{
	struct san_tl *tl;
	uint32_t slot = 0;

	load_for(WORDS("load.depth=4", "host.msg_limit=7"), MS);
	tl = san_core_tl(w->hosts[0].core);
	while (!tl->conns[slot].open)
		slot++;
	tl->conns[slot].nb_msgs = 8;
	assert_round_fails(0, "pcb", "has 8 messages, limit 7");
}

static struct san_pdl_conn *
open_conn(uint32_t host)
{
	struct san_pdl *pdl = san_core_pdl(w->hosts[host].core);
	uint32_t slot = 0;

	while (pdl->conns[slot].state != SAN_CONN_OPEN)
		slot++;
	return &pdl->conns[slot];
}

SIM_CASE(sim_check_pcb__virtual_window)
{
	struct san_pdl_conn *c;

	load_for(WORDS("load.depth=4", "host.first_window=10"), MS);
	c = open_conn(0);
	assert_true(c->pcb.inflight <= 9);
	c->pcb.inflight = 10;
	assert_round_fails(0, "pcb", "10 packets in flight, virtual window 9");
}

/* Retransmissions need no room. */
SIM_CASE(sim_check_pcb__retransmissions_may)
{
	struct san_pdl_conn *c;

	load_for(WORDS("load.depth=4", "host.first_window=10"), MS);
	san_sim_check_pcb_round(w, &w->hosts[0]);
	c = open_conn(0);
	c->pcb.inflight = 10;
	c->nb_rtx++;
	san_sim_check_pcb_round(w, &w->hosts[0]);
	assert_fine();
	/* shrinking withdraws nothing: it must not grow */
	san_sim_check_pcb_round(w, &w->hosts[0]);
	assert_fine();
	c->pcb.inflight = 11;
	san_sim_check_pcb_round(w, &w->hosts[0]);
	assert_fails("pcb", "11 packets in flight");
}

/* ---- core ---- */

/* It aborts, as the assertions of the code do. */
SIM_CASE(sim_check_core__aborts)
{
	int status, null;
	pid_t pid;

	load_for(WORDS("load.depth=4"), MS);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, STDERR_FILENO);
		san_core_pdl(w->hosts[0].core)->nb_active++;
		san_sim_check_round(w, &w->hosts[0]);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	san_sim_check_round(w, &w->hosts[0]); /* unchanged here */
	assert_fine();
}

SIM_CASE(san_sim_check_round__as_often_as_asked_for)
{
	load_for(WORDS("load.depth=4"), MS);
	san_core_pdl(w->hosts[0].core)->inflight += 1u << 20;
	w->conf.run.check_every = 0;
	san_sim_check_round(w, &w->hosts[0]);
	assert_fine();
	w->conf.run.check_every = 10;
	w->hosts[0].nb_rounds = 19;
	san_sim_check_round(w, &w->hosts[0]);
	assert_fine();
	w->hosts[0].nb_rounds = 20;
	assert_round_fails(0, "pcb", "in flight");
}

/* ---- progress ---- */

/* Everything is lost without a fault: as if the protocol had stopped. */
SIM_CASE(sim_check_progress__stops)
{
	world(WORDS("run.stall=10 ms", "run.duration=100 ms"));
	connect_all();
	cut_all();
	san_sim_world_run(w);
	assert_fails("progress", "of 16 requests none is done");
	assert_true(w->now_ns < w->load_ns + 20 * MS);
}

/* The same with a fault, for longer than is allowed without one. */
SIM_CASE(sim_check_progress__faults_excuse)
{
	ran(WORDS("run.stall=2 s", "run.duration=10 s", "fault.f.kind=down", "fault.f.for=5 s",
		  "fault.f.at=1 ms", "load.reconnect=yes", "link.rate=10 Mb/s"));
	assert_true(w->longest_silence_ns > 1000 * MS);
}

#define SILENT                                                                            \
	"run.duration=20 ms", "fault.f.kind=down", "fault.f.for=5 ms", "fault.f.at=1 ms", \
		"load.reconnect=yes"

/* Less than a stall can be too much, if the scenario says so. */
SIM_CASE(sim_check_progress__silence)
{
	ran(WORDS(SILENT, "run.silence_max=1 s"));
	assert_true(w->longest_silence_ns > 5 * MS);
	world(WORDS(SILENT, "run.silence_max=5 ms"));
	san_sim_world_run(w);
	assert_fails("progress", "side 0 stood still for");
}

SIM_CASE(sim_check_progress__never_connects)
{
	world(WORDS(SHORT));
	cut_all();
	san_sim_world_run(w);
	assert_fails("progress", "0 of 2 sides connected");
}

SIM_CASE(sim_check_progress__does_not_settle)
{
	world(WORDS("link.rate=10 Mb/s", "run.duration=1 ms", "run.settle=1 ms"));
	san_sim_world_run(w);
	assert_fails("progress", "requests do not complete");
}

SIM_CASE(sim_check_progress__does_not_end)
{
	world(WORDS(SHORT, "load.ops=1", "run.settle=10 ns", "link.delay=100 us",
		    "run.duration=100 ms"));
	san_sim_world_run(w);
	assert_fails("progress", "sides do not end");
}

/* ---- fair ---- */

#define UNFAIR                                                                                 \
	"topology.type=star", "topology.hosts=3", "load.pattern=incast", "load.connections=2", \
		"run.duration=2 ms", "load.start_step=1 ms"

SIM_CASE(sim_check_fair__less_than_asked_for)
{
	world(WORDS(UNFAIR, "run.jain_min=1"));
	san_sim_world_run(w);
	assert_fails("fair", "asked for are 1000000");
}

SIM_CASE(sim_check_fair__enough)
{
	ran(WORDS(UNFAIR, "run.jain_min=0.51"));
	ran(WORDS(UNFAIR));
}

/* ---- the simulator's own ---- */

/* As many packets in flight as the windows allow: the pool follows the scenario. */
SIM_CASE(san_sim_world_run__long_fat_network)
{
	ran(WORDS("link.delay=2 ms", "load.connections=16", "host.cc=fixed", "host.cwnd=1024",
		  "load.solicit=never", "load.depth=64", "run.duration=5 ms"));
	assert_true(w->hosts[0].inflight_high > 8192);
}

/* A network without mbufs reports that, whatever else failed for lack of them. */
SIM_CASE(san_sim_world_run__pool_is_empty)
{
	static struct rte_mbuf *all[1 << 16];
	uint32_t n = 0;

	world(WORDS(SHORT));
	while (n < RTE_DIM(all) && (all[n] = rte_pktmbuf_alloc(w->net.pool)) != NULL)
		n++;
	san_sim_world_run(w);
	rte_pktmbuf_free_bulk(all, n);
	assert_fails("sansim", "too few");
}

/* ---- all of them ---- */

/* The first violation is reported, and ends the run. */
SIM_CASE(san_sim_world_fail__first_one_wins)
{
	load_for(WORDS("load.depth=4"), MS);
	w->now_ns = 1234567;
	san_sim_world_fail(w, "one", "%s %d", "first", 1);
	san_sim_world_fail(w, "two", "second");
	assert_string_equal(w->why, "one: at 0.001234567 s: first 1");
	assert_false(san_sim_world_step(w, UINT64_MAX - 1));
	assert_int_equal(w->now_ns, 1234567);
}

SIM_CASE(san_sim_world_fail__long)
{
	char text[2 * sizeof(w->why)];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	world(WORDS(SHORT));
	san_sim_world_fail(w, "long", "%s", text);
	assert_int_equal(strlen(w->why), sizeof(w->why) - 1);
}
