/* SPDX-License-Identifier: BSD-3-Clause */

/* Keys that contradict each other are refused, with their names and values. */

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim_conf.h"

static char err[512];
static struct sim_conf conf;

struct rule {
	const char *words[4];
	const char *text; /* NULL: accepted */
};

static void
assert_rule(const struct rule *r)
{
	san_sim_conf_default(&conf);
	err[0] = '\0';
	for (size_t k = 0; k < 4 && r->words[k] != NULL; k++)
		if (san_sim_conf_set(&conf, r->words[k], err, sizeof(err)) != 0)
			fail_msg("%s", err);
	if (san_sim_conf_rules_check(&conf, err, sizeof(err)) != (r->text == NULL ? 0 : -EINVAL))
		fail_msg("%s: \"%s\"", r->words[0], err);
	if (r->text != NULL && strcmp(err, r->text) != 0)
		fail_msg("%s: \"%s\" is not \"%s\"", r->words[0], err, r->text);
}

#define ASSERT_RULES(rules)                                                 \
	do {                                                                \
		size_t at;                                                  \
		for (at = 0; at < sizeof(rules) / sizeof((rules)[0]); at++) \
			assert_rule(&(rules)[at]);                          \
	} while (0)

UNIT_CASE(san_sim_conf_rules_check__combinations)
{
	static const struct rule rules[] = {
		{{"topology.hosts=3"}, "topology.hosts 3 is not the 2 of topology.type pair"},
		{{"topology.hosts=3", "topology.type=star"}, NULL},
		{{"topology.type=leaf-spine", "topology.leaves=3"},
		 "topology.leaves 3 is more than topology.hosts 2"},
		{{"topology.type=leaf-spine", "topology.leaves=3", "topology.hosts=3"}, NULL},
		{{"topology.type=star", "topology.leaves=3"}, NULL},
		{{"topology.type=star", "topology.hosts=5", "load.pattern=across"},
		 "load.pattern across wants an even number, not topology.hosts 5"},
		{{"link.buffer=4109"},
		 "link.buffer 4109B is less than a packet of host.mtu 4096"},
		{{"link.buffer=4110"}, NULL},
		{{"core.buffer=4109"},
		 "core.buffer 4109B is less than a packet of host.mtu 4096"},
		{{"load.size_min=64KiB", "load.size_max=65535"},
		 "load.size_min 64KiB is more than load.size_max 65535B"},
		{{"load.size_min=64KiB", "load.size_max=65536"}, NULL},
		{{"load.push=0"}, "load.push 0 leaves no kind of request with a weight"},
		{{"load.push=0", "load.cmp_swap=1"}, NULL},
		{{"run.warmup=10ms"}, "run.warmup 10ms is not less than run.duration 10ms"},
		{{"run.warmup=9999999ns"}, NULL},
		{{"run.duration=1ns"}, NULL},
		{{"host.ipv6=yes", "host.mtu=1279"},
		 "host.mtu 1279 is less than the 1280 of host.ipv6 on"},
		{{"host.ipv6=yes", "host.mtu=1280"}, NULL},
		{{"host.mtu=9000", "host.nic_queue=8999"},
		 "host.nic_queue 8999B is less than a packet of host.mtu 9000"},
		{{"host.mtu=9000", "host.nic_queue=9000"}, NULL},
	};

	ASSERT_RULES(rules);
}

UNIT_CASE(san_sim_conf_rules_check__windows)
{
	static const struct rule rules[] = {
		{{"host.window=100"}, "host.window 100 is not a power of two"},
		{{"host.window=128"}, NULL},
		{{"host.req_window=3"}, "host.req_window 3 is not a power of two"},
		{{"host.req_window=2"}, NULL},
		{{"host.first_window=100"}, NULL},
	};

	ASSERT_RULES(rules);
}

/* The stack's defaults are 4 ms, 1 ms and 500 ms. */
UNIT_CASE(san_sim_conf_rules_check__timeouts)
{
	static const struct rule rules[] = {
		{{"host.rto_min=2ms", "host.rto_max=1ms"},
		 "host.rto_min 2ms is more than host.rto_max 1ms"},
		{{"host.rto=3ms", "host.rto_max=2ms"},
		 "host.rto 3ms is more than host.rto_max 2ms"},
		{{"host.rto=2ms", "host.rto_min=2ms", "host.rto_max=2ms"}, NULL},
		{{"host.rto_max=3ms"}, "host.rto 4ms is more than host.rto_max 3ms"},
		{{"host.rto_max=4ms"}, NULL},
		{{"host.rto_min=501ms"}, "host.rto_min 501ms is more than host.rto_max 500ms"},
		{{"host.rto=1us"}, NULL},
	};

	ASSERT_RULES(rules);
}

UNIT_CASE(san_sim_conf_rules_check__cam)
{
	static const struct rule rules[] = {
		{{"host.cam=0"}, NULL},
		{{"host.cam=1"}, "host.cam 1 is not 0 or at least 8"},
		{{"host.cam=7"}, "host.cam 7 is not 0 or at least 8"},
		{{"host.cam=8"}, NULL},
	};

	ASSERT_RULES(rules);
}

/* A rate of 0 is allowed if it was written, for sweeps. */
UNIT_CASE(san_sim_conf_rules_check__faults_that_do_nothing)
{
	static const struct rule rules[] = {
		{{"fault.a.rate=1 %"}, "[fault.a] wants a kind"},
		{{"fault.a.kind=none"}, NULL},
		{{"fault.a.kind=loss"}, "[fault.a] of kind loss wants a rate"},
		{{"fault.a.kind=loss", "fault.a.rate=0"}, NULL},
		{{"fault.a.kind=burst"}, "[fault.a] of kind burst wants a rate"},
		{{"fault.a.kind=flow"}, "[fault.a] of kind flow wants a rate"},
		{{"fault.a.kind=reorder", "fault.a.arg=1us"},
		 "[fault.a] of kind reorder wants a rate"},
		{{"fault.a.kind=reorder", "fault.a.rate=1 %"},
		 "[fault.a] of kind reorder wants an arg, by how much packets come later"},
		{{"fault.a.kind=reorder", "fault.a.rate=1 %", "fault.a.arg=1ns"}, NULL},
		{{"fault.a.kind=reorder", "fault.a.rate=0"}, NULL},
		{{"fault.a.kind=duplicate"}, "[fault.a] of kind duplicate wants a rate"},
		{{"fault.a.kind=duplicate", "fault.a.rate=1 %"}, NULL},
		{{"fault.a.kind=corrupt"}, "[fault.a] of kind corrupt wants a rate"},
		{{"fault.a.kind=down"}, NULL},
		{{"fault.a.kind=pause"}, NULL},
		{{"fault.a.kind=restart"}, NULL},
		{{"fault.a.kind=down", "fault.b.at=1us"}, "[fault.b] wants a kind"},
	};

	ASSERT_RULES(rules);
}
