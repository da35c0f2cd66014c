/* SPDX-License-Identifier: BSD-3-Clause */

/* Reported numbers: what they count, and for which part. */

#include "test_sim_one.h"

static uint64_t
figure(const char *key)
{
	char *text = NULL, *at, want[64];
	uint64_t value;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	san_sim_report_json(w, f);
	fclose(f);
	snprintf(want, sizeof(want), "\"%s\": ", key);
	at = strstr(text, want);
	assert_non_null(at);
	value = strtoull(at + strlen(want), NULL, 10);
	free(text);
	return value;
}

/* The counters of a process that died are kept. */
SIM_CASE(san_sim_report_engine__of_the_dead)
{
	uint64_t acks, inserts;

	ran(WORDS("load.solicit=always", "load.both_ways=yes"));
	acks = figure("acks_tx");
	inserts = figure("cam_inserts");
	assert_true(acks > 100 && inserts > 100);
	san_sim_host_kill(w, &w->hosts[0]);
	san_sim_host_kill(w, &w->hosts[1]);
	assert_int_equal(figure("acks_tx"), acks);
	assert_int_equal(figure("cam_inserts"), inserts);
	assert_true(figure("budget_high_bytes") > 0);
}

/* Without the packets of connecting and disconnecting. */
SIM_CASE(san_sim_report_links__of_the_load)
{
	uint64_t sent = 0;

	ran(WORDS("load.ops=1", "load.size_min=1000", "load.size_max=1000", "load.connections=50"));
	for (uint32_t i = 0; i < w->nb_links; i++)
		sent += w->links[i].stats.nb_pkts;
	assert_in_range(figure("packets"), 50, 150);
	assert_true(sent >= figure("packets") + 50);
}

/* The load of a slow link is more than zero. */
SIM_CASE(san_sim_report_json__slow_link)
{
	ran(WORDS("link.rate=1 Mb/s", "run.duration=2 s", "load.size_min=4 KiB",
		  "load.size_max=4 KiB", "load.depth=4"));
	assert_in_range(figure("goodput_kbps"), 700, 999);
}
