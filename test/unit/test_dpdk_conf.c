/* SPDX-License-Identifier: BSD-3-Clause */

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dpdk_priv.h"

static char text[512];
static struct dpdk_conf conf;

static int __attribute__((format(printf, 2, 3)))
keep(int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rc;
}

static const struct rtsan_host host = {.fail = keep};

static int
read_conf(const char *words)
{
	char buf[1024], *split[32];
	int n = san_dpdk_eal_split(words, buf, sizeof(buf), split, 32);

	assert_true(n >= 0);
	text[0] = '\0';
	return san_dpdk_conf_read(&conf, split, n, &host);
}

/* SYS-3: each wrong argument is refused with its key, its value and what is allowed. */
UNIT_CASE(san_dpdk_conf_read__says_what_is_wrong)
{
	static const struct {
		const char *words, *text;
	} cases[] = {
		{"", "ip= is missing"},
		{"ip=10.0.0.300/24", "ip: \"10.0.0.300/24\" is not an address"},
		{"ip=10.0.0.1/33", "ip: \"10.0.0.1/33\" is not an address"},
		{"ip=", "ip: \"\" is not an address"},
		{"ip=10.0.0.1/24 gw=10.0.0.1/24", "gw: \"10.0.0.1/24\" is not an address"},
		{"ip=10.0.0.1/24 speed=9", "speed: unknown argument"},
		{"ip=10.0.0.1/24 mtu", "\"mtu\": not key=value"},
		{"ip=10.0.0.1/24 =5", "\"=5\": not key=value"},
		{"ip=10.0.0.1/24 mtu=big", "mtu: \"big\" is not "},
		{"ip=10.0.0.1/24 mtu=-5", "mtu: \"-5\" is not "},
		{"ip=10.0.0.1/24 mtu=1500x", "mtu: \"1500x\" is not "},
		{"ip=10.0.0.1/24 mtu=576", "mtu: \"576\" is not 1024 to 9000"},
		{"ip=10.0.0.1/24 mtu=1023", "mtu: \"1023\" is not 1024 to 9000"},
		{"ip=fd00::1/64 mtu=1279", "mtu=1279: at least 1280 with an IPv6 address"},
		{"ip=10.0.0.1/24 mtu=9001", "mtu: \"9001\" is not 1024 to 9000"},
		{"ip=10.0.0.1/24 conns=0", "conns: \"0\" is not 1 to 65536"},
		{"ip=10.0.0.1/24 conns=99999999999999999999", "is not 1 to 65536"},
		{"ip=10.0.0.1/24 poll=both", "poll: \"both\" is not caller or lcore"},
		{"ip=10.0.0.1/24 lcores=1,x", "lcores: \"x\" in \"1,x\" is not the number"},
		{"ip=10.0.0.1/24 lcores=", "lcores: \"\" is not numbers of"},
		{"ip=10.0.0.1/24 lcores=1,4096", "lcores: \"4096\" in \"1,4096\" is not"},
		{"ip=10.0.0.1/24 lcores=1,2,1", "lcores: \"1\" in \"1,2,1\" is there already"},
		{"ip=10.0.0.1/24 lcores=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
		 "15,16\" is one lcore too many"},
		{"ip=10.0.0.1/24 lcores=1 poll=caller", "poll=caller: not with lcores="},
		{"ip=10.0.0.1/24 lcores=1,2,3 conns=20000", "conns=20000: at most 16384 with 3"},
		{"ip=10.0.0.1/24 gw=10.0.0.2/24", "gw: \"10.0.0.2/24\" is not an address"},
		{"ip=10.0.0.1/24 gw=10.1.0.2", "router 10.1.0.2: in no prefix of an address"},
		{"ip=10.0.0.1/24 route=10.0.0.9",
		 "route: \"10.0.0.9\" is not a prefix and a router"},
		{"ip=10.0.0.1/24 route=10.2.0.0/16,10.9.0.1", "router 10.9.0.1: in no prefix"},
		{"ip=10.0.0.1/24 queues=0", "queues: \"0\" is not 1 to 16"},
		{"ip=10.0.0.1/24 idle=nap", "idle: \"nap\" is not auto, poll, pause, yield, sleep"},
		{"ip=10.0.0.1/24 cc=reno", "cc: \"reno\" is not swift, dcqcn or fixed"},
		{"ip=10.0.0.1/24 policy=fifo", "policy: \"fifo\" is not rr or srpt"},
		{"ip=10.0.0.1/24 window=1", "window: \"1\" is not 2 to"},
		{"ip=10.0.0.1/24 pack=2", "pack: \"2\" is not on or off"},
		{"ip=10.0.0.1/24 stream_mem=1k", "stream_mem: \"1k\" is not 64KiB to"},
		{"ip=10.0.0.1/24 stream_mem=1M stream_mem_user=2M",
		 "stream_mem_user=2097152: more than stream_mem, 1048576"},
		{"ip=10.0.0.1/24 stream_mrs=0", "stream_mrs: \"0\" is not 1 to 524288"},
		{"ip=10.0.0.1/24 linger_ms=0", "linger_ms: \"0\" is not 1ms to 3600s"},
		{"ip=10.0.0.1/24 linger=1", "linger: \"1\" is not 1ms to 3600s"},
		{"ip=10.0.0.1/24 port=", "port: \"\" is not 1 to 63 characters"},
		{"ip=10.0.0.1/24 rto_us=1 rto_min_us=5", "rto_min <= rto"},
		{"ip=10.0.0.1/24 cwnd=100 cwnd_max=50", "cwnd is above"},
		{"ip=10.0.0.1/24 pool=500", "pool=500: at least"},
		{"ip=10.0.0.1/24 impair_tx=dup=0,drop=2", "impair_tx: drop: \"2\" is not 0 to 1"},
		{"ip=10.0.0.1/24 impair_rx=drop=1,loss=1",
		 "impair_rx: \"loss\" is none of drop=P,dup=P,"},
		{"ip=10.0.0.1/24 impair_rx=drop=1,dup", "impair_rx: \"dup\" is none of drop=P,"},
		{"ip=10.0.0.1/24 rnr=1.9ms", "rnr: \"1.9ms\" is not a multiple of 1ms"},
		{"ip=1.0.0.1/8 ip=1.0.0.2/8 ip=1.0.0.3/8 ip=1.0.0.4/8 ip=1.0.0.5/8 ip=1.0.0.6/8 "
		 "ip=1.0.0.7/8 ip=1.0.0.8/8 ip=1.0.0.9/8",
		 "ip: \"1.0.0.9/8\" is not one of at most 8"},
		{"ip=1.0.0.1/8 ip=1.0.0.1/16", "ip: \"1.0.0.1/16\" is not one of at most 8"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_conf(cases[i].words), -EINVAL);
		if (strstr(text, cases[i].text) == NULL)
			fail_msg("%s: \"%s\"", cases[i].words, text);
	}
}

UNIT_CASE(san_dpdk_conf_read__values_arrive)
{
	const struct san_core_conf *core = &conf.engine.core;

	assert_int_equal(read_conf("ip=10.0.0.1/24 ip6=fd00::1/64 gw=10.0.0.254 "
				   "route=10.1.0.0/16,10.0.0.253 port=net_memif0 "
				   "mtu=9000 poll=lcore idle=sleep cc=fixed conns=10 solicit=16k "
				   "rto_us=500 rto_min_us=400 dscp=26 window=64 max_txn=8 "
				   "first_psn=0xffffff00 seed=7 capture=/tmp/x.pcapng pmtu=0"),
			 0);
	assert_int_equal(core->inet.nb_addrs, 2);
	assert_int_equal(core->inet.nb_routes, 2);
	assert_true(san_wire_ip_is_v4(&core->inet.routes[0].gateway));
	assert_string_equal(conf.port, "net_memif0");
	assert_int_equal(core->mtu, 9000);
	assert_int_equal(conf.engine.mtu_min, 1280); /* with an IPv6 address */
	assert_true(conf.engine.own_lcore);
	assert_int_equal(conf.engine.idle, SAN_IDLE_SLEEP);
	assert_int_equal(core->pdl.cc, SAN_CC_FIXED);
	assert_int_equal(core->pdl.max_conns, 10);
	assert_int_equal(core->ulp.max_qps, 10);
	assert_int_equal(core->tl.solicit_len, 16 * 1024);
	assert_int_equal(core->pdl.rto_init_ns, 500000);
	assert_int_equal(core->cm.path.dscp, 26);
	assert_int_equal(conf.param.data_win, 64);
	assert_int_equal(conf.param.first_win, 64);
	assert_int_equal(conf.param.msg_limit, 8);
	assert_int_equal(core->pdl.pmtu_after, 0);
	assert_true(core->pdl.fixed_psn);
	assert_true(core->pdl.first_psn == 0xffffff00);
	assert_int_equal(conf.engine.secret_seed, 7);
	assert_string_equal(conf.capture, "/tmp/x.pcapng");
	/* RT-34: on, unless it is said */
	assert_int_equal(core->cm.features, SAN_CM_FEAT_PACK);
	assert_int_equal(read_conf("ip=10.0.0.1/24 pack=0"), 0);
	assert_int_equal(core->cm.features, 0);
}

/* SYS-5: one user gets at most three quarters, unless configured otherwise. */
UNIT_CASE(san_dpdk_conf_read__streams)
{
	const struct san_core_conf *core = &conf.engine.core;

	assert_int_equal(read_conf("ip=10.0.0.1/24"), 0);
	assert_int_equal(core->stream_mem, 64 << 20);
	assert_int_equal(core->stream_mem_user, 48 << 20);
	assert_int_equal(core->linger_ns, 60000000000);
	assert_int_equal(read_conf("ip=10.0.0.1/24 stream_mem=8M stream_mrs=100 linger_ms=5"), 0);
	assert_int_equal(core->stream_mem, 8 << 20);
	assert_int_equal(core->stream_mem_user, 6 << 20);
	assert_int_equal(core->ulp.max_stream_mrs, 128);
	assert_int_equal(core->linger_ns, 5000000);
	assert_int_equal(read_conf("ip=10.0.0.1/24 stream_mem=8M stream_mem_user=8M"), 0);
	assert_int_equal(core->stream_mem_user, 8 << 20);
}

/* RT-9: a sleeping peer is not congestion. */
UNIT_CASE(san_dpdk_conf_read__sleep_is_no_congestion)
{
	const struct san_pdl_cc_conf *cc = &conf.engine.core.pdl.cc_conf;
	uint64_t target_ns;

	assert_int_equal(read_conf("ip=10.0.0.1/24"), 0);
	assert_true(cc->window_min < SAN_CC_ONE);
	target_ns = cc->target_ns;
	assert_int_equal(read_conf("ip=10.0.0.1/24 idle=sleep sleep_us=100"), 0);
	assert_int_equal(cc->target_ns, target_ns + 200000); /* 50 us each while it is active */
	assert_int_equal(cc->window_min, SAN_CC_ONE);
	assert_int_equal(read_conf("ip=10.0.0.1/24 idle=sleep target_us=30 cwnd_min=50"), 0);
	assert_int_equal(cc->target_ns, 30000);
	assert_int_equal(cc->window_min, SAN_CC_ONE / 100 * 50);
}

/* RT-8: where lcores sleep, an ACK waits for the answer of a program that must be woken. */
UNIT_CASE(san_dpdk_conf_read__sleep_waits_for_answers)
{
	const struct san_pdl_conf *pdl = &conf.engine.core.pdl;
	uint64_t tlp_ns;

	assert_int_equal(read_conf("ip=10.0.0.1/24"), 0);
	tlp_ns = pdl->tlp_min_ns;
	assert_int_equal(read_conf("ip=10.0.0.1/24 idle=sleep"), 0);
	assert_int_equal(pdl->ack_delay_ns, 100000);
	assert_int_equal(pdl->tlp_min_ns, tlp_ns + 100000);
	assert_int_equal(read_conf("ip=10.0.0.1/24 idle=sleep ack_delay_us=5000 tlp_us=70"), 0);
	assert_int_equal(pdl->ack_delay_ns, 5000000);
	assert_int_equal(pdl->tlp_min_ns, 70000);
}

/* SYS-1: each lcore gets its part of the queue pairs, and its own buffers. */
UNIT_CASE(san_dpdk_conf_read__lcores)
{
	uint32_t need;

	assert_int_equal(read_conf("ip=10.0.0.1/24"), 0);
	assert_int_equal(conf.engine.nb_lcores, 1);
	assert_false(conf.engine.own_lcore);
	need = san_engine_port_pool_min(&conf.engine);
	assert_int_equal(read_conf("ip=10.0.0.1/24 lcores=3,5 queues=2 conns=1000"), 0);
	assert_true(conf.engine.own_lcore && conf.has_lcores);
	assert_int_equal(conf.engine.nb_lcores, 2);
	assert_int_equal(conf.engine.lcores[0], 3);
	assert_int_equal(conf.engine.lcores[1], 5);
	assert_int_equal(conf.engine.nb_queues, 2);
	assert_int_equal(conf.engine.core.pdl.max_conns, 1000);
	assert_int_equal(conf.engine.core.ulp.max_qps, 1024);
	assert_true(san_engine_port_pool_min(&conf.engine) > 2 * need);
	assert_int_equal(read_conf("ip=10.0.0.1/24 lcores=7 poll=lcore conns=65536"), 0);
	assert_int_equal(conf.engine.nb_lcores, 1);
	assert_int_equal(read_conf("ip=10.0.0.1/24 lcores=1,2,3,4 conns=16384"), 0);
}

/* RT-26: the pool size follows the limits of held packets, unless it is given. */
UNIT_CASE(san_dpdk_conf_read__pool_covers_held)
{
	assert_int_equal(read_conf("ip=10.0.0.1/24"), 0);
	assert_false(conf.engine.core.pdl.fixed_psn);
	assert_true(conf.engine.pool_size >= san_engine_port_pool_min(&conf.engine));
	assert_int_equal(read_conf("ip=10.0.0.1/24 held=50000"), 0);
	assert_true(conf.engine.pool_size > 100000);
	assert_int_equal(read_conf("ip=10.0.0.1/24 held=64 rxd=64 txd=64 pool=1024"), 0);
	assert_int_equal(conf.engine.pool_size, 1024);
	assert_int_equal(conf.engine.core.tl.max_held_conn <= 64, 1);
}

/* SYS-11: every default that is written is read, and is what it was. */
UNIT_CASE(dpdk_conf_keys__defaults)
{
	static struct dpdk_conf before;
	char value[SAN_KEY_TEXT];
	uint32_t nb = 0;

	san_dpdk_conf_default(&before);
	san_dpdk_conf_default(&conf);
	for (const struct san_key *k = dpdk_conf_keys; k->name != NULL; k++) {
		assert_true(k->help[0] != '\0');
		if (!san_key_value(k, &before, value, sizeof(value)))
			continue;
		if (san_key_set(k, &conf, k->name, value, text, sizeof(text)) != 0)
			fail_msg("%s", text);
		assert_memory_equal(&conf, &before, sizeof(conf));
		nb++;
	}
	assert_true(nb > 50);
}

/* One spelling of units, and the old one: the unit behind the key, plain numbers. */
UNIT_CASE(san_dpdk_conf_read__units)
{
	const struct san_core_conf *core = &conf.engine.core;

	if (read_conf("ip=10.0.0.1/24 rto_us=1500 linger=2s rnr_ms=20 keepalive=3s "
		      "cm_retry=30ms idle=sleep sleep=1ms target=40us incast=256KiB "
		      "pack=off cwnd=64 cwnd_min=50") != 0)
		fail_msg("%s", text);
	assert_int_equal(core->pdl.rto_init_ns, 1500000);
	assert_int_equal(core->linger_ns, 2000000000);
	assert_int_equal(conf.param.rnr_ms, 20);
	assert_int_equal(conf.param.keepalive_ms, 3000);
	assert_int_equal(core->cm.retry_ns, 30000000);
	assert_int_equal(conf.engine.sleep_max_us, 1000);
	assert_int_equal(core->pdl.cc_conf.target_ns, 40000); /* given: no sleep is added */
	assert_int_equal(core->tl.budget_bytes, 256 << 10);
	assert_int_equal(core->cm.features, 0);
	assert_int_equal(core->pdl.cc_conf.window_init, 64 * SAN_CC_ONE);
	assert_int_equal(core->pdl.cc_conf.window_min, SAN_CC_ONE / 100 * 50);
}

static int
impair(const char *spec, struct san_engine_impair_conf *out)
{
	return san_dpdk_conf_impair(out, spec, text, sizeof(text));
}

UNIT_CASE(san_dpdk_conf_impair__values)
{
	struct san_engine_impair_conf fixed;

	assert_int_equal(impair("drop=0.01,dup=2%,reorder=0.05,delay=100,corrupt=0.001,ecn=0.1,"
				"seed=7",
				&fixed),
			 0);
	assert_int_equal(fixed.drop, (uint64_t)(0.01 * 4294967296.0));
	assert_int_equal(fixed.duplicate, (uint64_t)(0.02 * 4294967296.0));
	assert_int_equal(fixed.reorder, (uint64_t)(0.05 * 4294967296.0));
	assert_int_equal(fixed.corrupt, (uint64_t)(0.001 * 4294967296.0));
	assert_int_equal(fixed.ecn, (uint64_t)(0.1 * 4294967296.0));
	assert_int_equal(fixed.delay_ns, 100000);
	assert_int_equal(fixed.seed, 7);
	assert_int_equal(impair("delay=1ms,drop=1", &fixed), 0);
	assert_int_equal(fixed.delay_ns, 1000000);
	assert_true(fixed.drop == SAN_IMPAIR_ALWAYS);
}

UNIT_CASE(san_dpdk_conf_impair__wrong)
{
	static const char *const wrong[] = {"drop", "drop=", "drop=x", "drop=1.5",
					    "drop=-1", "drop=nan", "foo=1", "seed=x",
					    "delay=-1", "drop=0.1,x", "delay=1e9", "delay=11s"};
	struct san_engine_impair_conf fixed;

	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
		if (impair(wrong[k], &fixed) != -EINVAL)
			fail_msg("%s was taken", wrong[k]);
}

UNIT_CASE(san_dpdk_eal_split__words)
{
	char buf[64], *w[4];

	assert_int_equal(san_dpdk_eal_split("  a 'b c'd \"e'f\"\t", buf, sizeof(buf), w, 4), 3);
	assert_string_equal(w[0], "a");
	assert_string_equal(w[1], "b cd");
	assert_string_equal(w[2], "e'f");
	assert_int_equal(san_dpdk_eal_split("", buf, sizeof(buf), w, 4), 0);
	assert_int_equal(san_dpdk_eal_split("''", buf, sizeof(buf), w, 4), 1);
	assert_string_equal(w[0], "");
	assert_int_equal(san_dpdk_eal_split("a b c d e", buf, sizeof(buf), w, 4), -E2BIG);
	assert_int_equal(san_dpdk_eal_split("'open", buf, sizeof(buf), w, 4), -EINVAL);
	assert_int_equal(san_dpdk_eal_split("abcd", buf, 4, w, 4), -EINVAL);
	assert_int_equal(san_dpdk_eal_split("abc", buf, 4, w, 4), 1);
}

/* Lcores of EAL's arguments, without the main one, which is the first unless it is named. */
UNIT_CASE(san_dpdk_eal_workers__named)
{
	static const struct {
		const char *args, *workers; /* NULL: none are named */
	} cases[] = {
		{"", NULL},
		{"--no-pci --log-level=debug", NULL},
		{"--lcores=0@0", ""},
		{"--lcores=0@0,1@0,2@3", "1,2,"},
		{"--lcores 3@0,1@0", "3,"},
		{"-l 1-3 --no-pci", "2,3,"},
		{"-l0,2", "2,"},
		{"--lcores=(0-2)@0", "1,2,"},
		{"--lcores='0,1@(4,5),(2,6)@(0-3),4'", "1,2,4,6,"},
		{"--lcores=0@0,1@0,2@0 --main-lcore=1", "0,2,"},
		{"--main-lcore 2 -l 1-2", "1,"},
		{"--lcores=0@0,127@0,999@0", "127,"},
	};
	char buf[256], got[64], *words[16];
	bool workers[RTE_MAX_LCORE];
	size_t k, len;
	int n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		n = san_dpdk_eal_split(cases[i].args, buf, sizeof(buf), words, 16);
		assert_true(n >= 0);
		assert_int_equal(san_dpdk_eal_workers(words, n, workers),
				 cases[i].workers != NULL);
		for (k = 0, len = 0, got[0] = '\0'; k < RTE_MAX_LCORE; k++)
			if (workers[k])
				len += (size_t)sprintf(got + len, "%zu,", k);
		if (cases[i].workers != NULL && strcmp(got, cases[i].workers) != 0)
			fail_msg("%s: %s", cases[i].args, got);
	}
}
