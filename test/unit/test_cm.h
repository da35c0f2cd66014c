/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Fixtures of the tests of lib/cm: two hosts and the cable between them. */

#include <errno.h>

#include "unit.h"
#include "cm_net.h"

#define MS SAN_NS_PER_MS

static struct cm_net net;
static struct san_wire_path path; /* of what was sent last, or is forged */
static struct san_wire_pkt pkt;

/** Header of a connection message. */
static const struct san_wire_pkt cm_pkt = {
	.op = SAN_OP_CM, .dcid = SAN_WIRE_CID_CM, .pkey = CM_NET_PKEY};

/** Nobody listens. */
static inline void
cm_idle(void)
{
	cm_net_init(&net, test_pool(), 1, 16, false);
}

/** Host 1 listens. */
static inline void
cm_setup(void)
{
	cm_idle();
	cm_net_listen(&net, 1);
}

static inline void
cm_teardown(void)
{
	cm_net_fini(&net);
	assert_int_equal(rte_mempool_in_use_count(test_pool()), 0);
}

/** The next message that host *i* has to send, with its *path* and *pkt*. */
static inline bool
cm_next(int i, struct san_wire_cm *msg)
{
	return san_cm_tx_next(net.h[i].cm, &path, &pkt, msg, net.now_ns);
}

/** Begin anew with other random numbers; host 1 listens. */
static inline void
cm_anew(uint64_t seed)
{
	cm_teardown();
	cm_net_init(&net, test_pool(), seed, 16, false);
	cm_net_listen(&net, 1);
}

/** Host *i* restarts, and has forgotten everything. */
static inline void
cm_restart(int i)
{
	cm_net_start(&net, &net.h[i]);
}

/* ---- what the link does ---- */

/* arg[0]: message type; arg[1], arg[2]: the first and the last that is lost, from 1 on. */
static inline void
cm_on_loss(struct cm_net *n, int from, const struct san_wire_pkt *p, const struct san_wire_cm *msg,
	   struct cm_fate *fate)
{
	uint64_t nth = msg == NULL ? 0 : n->h[from].nb_tx[msg->msg] + 1;

	if (nth != 0 && msg->msg == n->arg[0] && nth >= n->arg[1] && nth <= n->arg[2])
		fate->copies = 0;
}

/** Of the messages of type *type* those from the *first* to the *last* are lost. */
static inline void
cm_lose(uint8_t type, uint64_t first, uint64_t last)
{
	net.hook = cm_on_loss;
	net.arg[0] = type;
	net.arg[1] = first;
	net.arg[2] = last;
}

/** Everything arrives twice, the second time later than any answer. */
static inline void
cm_twice(struct cm_net *n, int from, const struct san_wire_pkt *p, const struct san_wire_cm *msg,
	 struct cm_fate *fate)
{
	fate->copies = 2;
	fate->delay_ns[1] = 3 * CM_NET_LATENCY_NS + 1;
}

/* ---- requests ---- */

/** Host 0 requests a connection to *to* with these parameters. */
static inline int
cm_connect(const struct san_ip *to, const struct san_cm_param *param, uint16_t *slot)
{
	struct cm_host *h = &net.h[0];

	return san_cm_fsm_connect(h->cm, &h->ip, to, CM_NET_SERVICE, param, 0, net.now_ns, slot);
}

/** The slot at host 1 of the last request. */
static inline uint16_t
cm_requested(void)
{
	return net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].slot;
}

/** Host 0 requests a connection, about which host 1 does not decide. Returns its slot there. */
static inline uint16_t
cm_request(void)
{
	net.h[1].no_accept = true;
	cm_net_connect(&net, 0, 42);
	cm_net_run(&net, 1 * MS);
	return cm_requested();
}

/** Host 1 accepts or refuses the connection of *slot* with its parameters. */
static inline int
cm_accept(uint16_t slot)
{
	return san_cm_fsm_accept_peer(net.h[1].cm, slot, &net.h[1].param, 7, net.now_ns);
}

static inline int
cm_reject(uint16_t slot, const char *text)
{
	return san_cm_fsm_reject(net.h[1].cm, slot, text, (uint8_t)strlen(text), net.now_ns);
}

/* ---- what the hosts have seen ---- */

/** Host *i* has had *n* events of *type*, */
#define assert_events(i, type, n) assert_int_equal(net.h[i].nb[type], n)

/** and the last of them has this reason. */
#define assert_ended_by(i, type, why)                              \
	do {                                                       \
		assert_events(i, type, 1);                         \
		assert_int_equal(net.h[i].last[type].reason, why); \
	} while (0)

/** Host 1 has no connection. */
static inline void
cm_assert_nothing_kept(void)
{
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
	cm_net_check(&net);
}

/** Connections that host 0 and host 1 have seen established. */
#define assert_established(n0, n1)                           \
	do {                                                 \
		assert_events(0, SAN_CM_EV_ESTABLISHED, n0); \
		assert_events(1, SAN_CM_EV_ESTABLISHED, n1); \
	} while (0)
