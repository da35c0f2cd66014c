/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Hosts that lie: what their peers see of each lie, and that pairs of innocent hosts keep all that
 * they are promised. (RT-35)
 */

#include "test_sim_one.h"

#define LIE(lie) "fault.f.kind=lie", "fault.f.where=host:1", "fault.f.lie=" lie

#define BOTH                                                                                 \
	"load.both_ways=yes", "load.depth=8", "load.size_min=2 KiB", "load.size_max=64 KiB", \
		"load.ops=8", "run.stall=10 s", "run.duration=10 s"

static struct san_pdl_conn *peer; /* connection 0 at the innocent host */
static uint32_t base;             /* ... and its base when the lie began */

/* Host 0 and host 1 push to each other while host 1 lies. */
static void
lied(const char *const *words)
{
	struct san_pdl *pdl;

	world(words);
	connect_all();
	pdl = san_core_pdl(w->hosts[0].core);
	for (peer = pdl->conns; peer->state != SAN_CONN_OPEN;)
		peer++;
	base = peer->tx[SAN_WIN_DATA].base;
	san_sim_load_start(w);
	san_sim_fault_arm(w);
	run_ns(10 * MS);
	assert_false(side(0)->innocent || side(1)->innocent);
	assert_int_equal(w->load->nb_pending, 0); /* nothing waits for them */
}

/* No falsified packet is one that the peer takes for a broken one. */
static void
assert_well_formed(void)
{
	uint64_t drops[SAN_DROP_MAX] = {0};

	san_core_drops(w->hosts[0].core, drops);
	assert_int_equal(drops[SAN_DROP_ICRC] + drops[SAN_DROP_FIELD], 0);
}

SIM_CASE(san_sim_lie_falsify__received)
{
	lied(WORDS(LIE("received"), BOTH));
	assert_well_formed();
	assert_int_equal(side(0)->nb_done, 0);
	assert_int_equal(peer->tx[SAN_WIN_DATA].base, base);
	assert_true(peer->tx[SAN_WIN_DATA].next - base > 64);
	assert_true(san_bitmap_get64(&peer->txb->rcvd[SAN_WIN_DATA], base) == UINT64_MAX);
	assert_true(san_bitmap_get64(&peer->txb->acked[SAN_WIN_DATA], base) == 0);
	assert_int_equal(side(1)->nb_done, 8); /* its own requests are honest */
}

SIM_CASE(san_sim_lie_falsify__partial)
{
	lied(WORDS(LIE("partial"), BOTH));
	assert_well_formed();
	assert_int_equal(side(0)->nb_done, 0);
	assert_int_equal(peer->tx[SAN_WIN_DATA].base, base);
	assert_true((san_bitmap_get64(&peer->txb->acked[SAN_WIN_DATA], base) & 0xf) == 0xa);
	assert_true((san_bitmap_get64(&peer->txb->rcvd[SAN_WIN_DATA], base) & 1) == 1);
	assert_int_equal(peer->pcb.first_win, SAN_WIN_MIN);
}

SIM_CASE(san_sim_lie_falsify__unacked)
{
	lied(WORDS(LIE("unacked"), BOTH));
	assert_well_formed();
	assert_int_equal(side(0)->nb_done, 0);
	assert_int_equal(peer->tx[SAN_WIN_DATA].base, base);
	assert_true(san_bitmap_get64(&peer->txb->rcvd[SAN_WIN_DATA], base) == 0);
}

/* The peer takes the refusals: it withdraws its data, and sends it again. */
SIM_CASE(san_sim_lie_falsify__refuse)
{
	lied(WORDS(LIE("refuse"), BOTH, "load.solicit=never"));
	assert_well_formed();
	assert_true(side(0)->nb_done < 8);
	assert_true(san_core_tl(w->hosts[0].core)->stats.nb_rnr_rx > 0);
}

SIM_CASE(san_sim_lie_falsify__refuse_receives)
{
	lied(WORDS(LIE("refuse"), BOTH, "load.send=1", "load.push=0"));
	assert_true(side(1)->nb_recvs < 8);
}

/* What it was granted stays granted, and what it began unfinished. */
SIM_CASE(san_sim_lie_falsify__begin)
{
	struct san_tl *tl;

	lied(WORDS(LIE("begin"), BOTH, "load.solicit=always"));
	tl = san_core_tl(w->hosts[0].core);
	assert_int_equal(side(1)->nb_done, 0);
	assert_true(tl->stats.nb_grants > 0 && tl->budget_used + tl->expired_used > 0);
	assert_int_equal(side(0)->nb_done, 8); /* it grants, and acknowledges */
}

SIM_CASE(san_sim_lie_falsify__quiet)
{
	lied(WORDS(LIE("quiet"), BOTH, "load.solicit=never"));
	assert_int_equal(side(0)->nb_done, 8);
	assert_int_equal(side(1)->nb_done, 0);
}

SIM_CASE(san_sim_lie_falsify__silent)
{
	lied(WORDS(LIE("silent"), BOTH));
	assert_int_equal(side(0)->nb_done + side(1)->nb_done, 0);
	assert_int_equal(peer->rx[SAN_WIN_DATA].base, peer->rx[SAN_WIN_DATA].high);
}

/* It is honest again when the fault ends: everything completes. */
SIM_CASE(san_sim_lie_falsify__until_it_ends)
{
	lied(WORDS(LIE("received"), BOTH, "fault.f.for=20 ms"));
	assert_int_equal(side(0)->nb_done, 0);
	run_ns(1000 * MS);
	assert_int_equal(side(0)->nb_done, 8);
}

/* ---- whole runs ---- */

#define STAR                                                                                   \
	"topology.type=star", "topology.hosts=4", "load.pattern=incast", "load.connections=6", \
		"load.send=1", "load.push_imm=1", "load.pull=1", "load.size_min=1", BOTH

/* Innocents complete, the end leaves nothing behind, and liars did not. */
SIM_CASE(san_sim_lie__innocents_complete)
{
	static const char *const lies[] = {"received", "partial", "unacked", "refuse",
					   "begin", "quiet", "silent"};
	char word[64];

	UNIT_EACH(r, lies) {
		snprintf(word, sizeof(word), "fault.f.lie=%s", *r);
		world(WORDS("fault.f.kind=lie", "fault.f.where=host:1", word, STAR));
		san_sim_world_run(w);
		assert_fine();
		assert_true(w->net.nb_faults > 10);
		for (uint32_t k = 0; k < w->load->nb_sides; k++) {
			assert_int_equal(side(k)->innocent, side(k & ~1u)->host != 1);
			if (side(k)->innocent)
				assert_int_equal(side(k)->nb_done - side(k)->nb_failed, 8);
		}
	}
}

/* The same requests, incomplete: a failure only of innocents. */
SIM_CASE(san_sim_check_note__innocents_only)
{
	world(WORDS(LIE("silent"), "topology.type=star", "topology.hosts=3", "load.pattern=fan",
		    "load.connections=2"));
	side(0)->nb_posted = side(2)->nb_posted = 1;
	san_sim_check_note(w, SIM_NOTE_DOWN, side(0), NULL, NULL);
	san_sim_check_sample(w);
	assert_fine();
	san_sim_check_note(w, SIM_NOTE_DOWN, side(2), NULL, NULL);
	assert_fails("complete", "side 2: ended before 1 requests");
}
