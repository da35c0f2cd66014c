/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any messages, in any order, mixed with what the ULP and the clock do, into a
 * connection manager with a listener and connections in every state. (RT-24)
 *
 * Input: records of one byte of what and what belongs to it. A message is 164 bytes
 * and two bytes that say which of its fields are made right: cookie, CIDs, tags,
 * address, so that a fuzzer gets past what nobody can guess.
 *
 * Checked: no access outside the message, every invariant after each record, and
 * that at the end all is released.
 */

#include "cm.h"
#include "cm_priv.h"
#include "fuzz.h"
#include "san_assert.h"
#include "unit/test_eal.h"

#define NB_CONNS 4
#define SERVICE  7
#define PKEY     1

/** Which fields of a message are made right. */
enum fix {
	FIX_PEER = 0x01, /* address of the connection's peer, or the usual one */
	FIX_DST = 0x02,  /* names the connection: CID, tag, xid */
	FIX_SRC = 0x04,  /* and itself */
	FIX_COOKIE = 0x08,
	FIX_PARAM = 0x10, /* windows and so on in range, service, flags */
	FIX_ECHO = 0x20,  /* RESET: source is where we send to */
	FIX_PKEY = 0x40,
	FIX_ZERO = 0x80, /* nothing behind the private data */
};

static struct rte_mempool *pool;
static struct san_prng secret;
static struct san_pdl *pdl;
static struct san_cm *cm;
static uint64_t now_ns;

static uint32_t
secret32(void *arg)
{
	return (uint32_t)san_prng_u64(arg);
}

static void
setup(void)
{
	struct san_pdl_conf pdl_conf;
	struct san_cm_conf conf;

	if (pool == NULL)
		pool = test_eal_pool("fuzz_cm", 63, 256);
	san_prng_seed(&secret, 1);
	now_ns = 100 * SAN_NS_PER_S;
	san_pdl_conf_default(&pdl_conf);
	pdl_conf.max_conns = NB_CONNS;
	pdl_conf.secret32 = secret32;
	pdl_conf.secret_arg = &secret;
	SAN_VERIFY(san_pdl_create(&pdl_conf, now_ns, &pdl) == 0);
	san_cm_conf_default(&conf);
	conf.max_conns = NB_CONNS;
	conf.max_listeners = 2;
	conf.secret[0] = 1;
	SAN_VERIFY(san_cm_create(&conf, pdl, &cm) == 0);
	SAN_VERIFY(san_cm_listen(cm, SERVICE, PKEY, 2, 1) == 0);
}

static struct san_ip
address(uint8_t host)
{
	return (struct san_ip){.b = {[10] = 0xff, [11] = 0xff, 10, 0, 0, host}};
}

static struct san_cm_param
parameters(void)
{
	return (struct san_cm_param){
		.pkey = PKEY,
		.mtu = 1024,
		.req_win = 2,
		.data_win = 2,
		.first_win = 2,
		.max_txn = 1,
		.msg_limit = 1,
		.keepalive_ms = 10,
	};
}

/* ---- messages ---- */

static void
fix_param(struct san_wire_cm *msg)
{
	msg->flags &= SAN_CM_F_COOKIE | SAN_CM_F_ORDERED;
	msg->reason %= SAN_CM_R_MAX;
	msg->mtu |= 0x400;
	msg->req_win = (uint16_t)(2u << (msg->req_win & 7));
	msg->data_win = (uint16_t)(2u << (msg->data_win & 7));
	msg->first_win |= 2;
	msg->max_txn |= 1;
	msg->service = SERVICE;
	msg->nb_ports = 0;
	memset(msg->ports, 0, sizeof(msg->ports));
}

static void
fix_names(struct san_wire_cm *msg, struct san_wire_pkt *p, uint8_t fix, uint8_t which)
{
	const struct san_cm_conn *c = &cm->conns[which % NB_CONNS];
	const struct san_pdl_conn *pc = &pdl->conns[which % NB_CONNS];

	if (fix & FIX_PEER) {
		p->src = c->state != SAN_CM_IDLE ? pc->path.dst : address(2);
		p->dst = address(1);
	}
	if (fix & FIX_DST) {
		msg->dst_cid = pc->cid;
		msg->dst_tag = pc->tag;
		msg->xid = c->xid;
	}
	if (fix & FIX_SRC) {
		msg->src_cid = c->peer_cid;
		msg->src_tag = c->peer_tag;
	}
	if (fix & FIX_ECHO)
		msg->data_psn = pc->tx[SAN_WIN_REQ].base;
	msg->src_cid &= (1u << SAN_WIRE_CID_BITS) - 1;
	msg->dst_cid &= (1u << SAN_WIRE_CID_BITS) - 1;
}

/** Make right what *fix* says, in a message in network order. */
static void
fix_message(struct san_wire_cm *x, struct san_wire_pkt *p, uint8_t fix, uint8_t which)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct san_wire_path path = {.src = address(1), .dst = address(2), .dst_port = 4791};
	struct san_wire_pkt q = {.op = SAN_OP_CM, .dcid = SAN_WIRE_CID_CM};
	struct san_wire_cm msg;

	SAN_VERIFY(m != NULL);
	if (fix & FIX_PKEY)
		p->pkey = PKEY;
	if (fix & FIX_ZERO) {
		x->private_len = rte_cpu_to_be_16(rte_be_to_cpu_16(x->private_len) & 63);
		memset(x->private_data + rte_be_to_cpu_16(x->private_len), 0,
		       sizeof(x->private_data) - rte_be_to_cpu_16(x->private_len));
		x->msg = (uint8_t)(1 + x->msg % (SAN_CM_MSG_MAX - 1));
		if (!(x->flags & SAN_CM_F_COOKIE))
			memset(x->cookie, 0, sizeof(x->cookie));
	}
	memcpy(rte_pktmbuf_append(m, SAN_WIRE_CM_LEN), x, SAN_WIRE_CM_LEN);
	/* what is not to be fixed may be malformed: it goes in as it is */
	memset(&msg, 0, sizeof(msg));
	san_wire_cm_parse(m, p, &msg);
	if (msg.msg != 0 && msg.private_len <= SAN_WIRE_CM_PRIVATE) {
		if (fix & FIX_PARAM)
			fix_param(&msg);
		fix_names(&msg, p, fix, which);
		if (fix & FIX_COOKIE) {
			msg.flags |= SAN_CM_F_COOKIE;
			san_cm_cookie_make(cm, p, &msg, now_ns, msg.cookie);
		}
		if (msg.nb_ports <= SAN_WIRE_CM_PORTS) {
			rte_pktmbuf_reset(m);
			san_wire_cm_build(m, &path, &q, &msg);
			rte_pktmbuf_adj(m, san_wire_op_hdr_len(SAN_OP_CM, false));
			memcpy(x, rte_pktmbuf_mtod(m, uint8_t *), SAN_WIRE_CM_LEN);
		}
	}
	rte_pktmbuf_free(m);
}

static void
rx_message(struct fuzz_input *in)
{
	struct san_wire_cm raw; /* in network order */
	struct san_wire_pkt p = {
		.op = SAN_OP_CM,
		.dcid = SAN_WIRE_CID_CM,
		.payload_len = SAN_WIRE_CM_LEN,
		.src = address(9),
		.dst = address(1),
		.src_port = 50000,
	};
	uint8_t fix = take8(in);
	uint8_t which = take8(in);
	struct rte_mbuf *m;

	take(in, &raw, SAN_WIRE_CM_LEN);
	fix_message(&raw, &p, fix, which);
	m = test_eal_exact(pool, &raw, SAN_WIRE_CM_LEN);
	if (which & 0x80)
		p.payload_len = (uint16_t)(which & 0x7f);
	san_cm_rx(cm, m, &p, now_ns);
	rte_pktmbuf_free(m);
}

/** A packet for a connection that may or may not be there. */
static void
rx_stray(struct fuzz_input *in)
{
	struct san_wire_pkt p = {.src = address(2), .dst = address(1)};

	p.op = take8(in);
	p.dcid = take8(in);
	p.psn = take8(in);
	san_cm_rx_answer_reset(cm, &p, now_ns);
	san_cm_rx_implicit_rtu(cm, (uint16_t)(p.dcid % (NB_CONNS + 1)), now_ns);
}

/* ---- what the ULP and the core do ---- */

static void
take_events(void)
{
	struct san_cm_event ev;

	while (san_cm_event_next(cm, &ev)) {
		SAN_VERIFY(ev.slot < NB_CONNS && ev.private_len <= SAN_WIRE_CM_PRIVATE);
		if (ev.type == SAN_CM_EV_ESTABLISHED)
			SAN_VERIFY(san_cm_agreed(cm, ev.slot) != NULL ||
				   san_cm_state(cm, ev.slot) == SAN_CM_TIMEWAIT);
		if (ev.type >= SAN_CM_EV_DISCONNECTED)
			san_cm_release(cm, ev.slot, now_ns);
	}
}

static void
take_messages(uint8_t n)
{
	struct san_wire_path path;
	struct san_wire_pkt p;
	struct san_wire_cm msg;
	struct san_wire_cm back;
	struct san_wire_ack ack;
	struct rte_mbuf *m;

	while (n-- != 0 && san_cm_tx_next(cm, &path, &p, &msg, now_ns)) {
		/* what we send is what a peer can parse */
		m = rte_pktmbuf_alloc(pool);
		SAN_VERIFY(m != NULL);
		san_wire_cm_build(m, &path, &p, &msg);
		san_wire_icrc_seal(m);
		SAN_VERIFY(san_wire_parse(m, path.dst_port, &p, &ack) == SAN_DROP_NONE);
		SAN_VERIFY(san_wire_cm_parse(m, &p, &back) == SAN_DROP_NONE);
		rte_pktmbuf_free(m);
	}
}

static void
run_timers(void)
{
	struct san_pdl_conn *c;
	struct san_timer *t;

	while ((t = san_wheel_poll(&pdl->wheel, now_ns)) != NULL) {
		c = container_of(t, struct san_pdl_conn, timer);
		san_cm_fsm_on_timer(cm, c->slot, now_ns);
		if (c->state != SAN_CONN_FREE)
			san_pdl_conn_arm(pdl, c);
		take_events();
	}
}

static void
do_ulp(struct fuzz_input *in)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 2}};
	struct san_cm_param param = parameters();
	struct san_ip peer = address(2), local = address(1);
	uint8_t what = take8(in);
	uint16_t slot = take8(in) % (NB_CONNS + 1);

	switch (what % 9) {
	case 0:
		san_cm_fsm_connect(cm, &local, &peer, SERVICE, &param, 1, now_ns, &slot);
		break;
	case 1:
		san_cm_fsm_resolved(cm, &peer, &mac, now_ns);
		break;
	case 2:
		san_cm_fsm_accept_peer(cm, slot, &param, 2, now_ns);
		break;
	case 3:
		san_cm_fsm_reject(cm, slot, &param, 20, now_ns);
		break;
	case 4:
		san_cm_fsm_disconnect(cm, slot, what & 0x80, now_ns);
		break;
	case 5:
		san_cm_fsm_drained(cm, slot, now_ns);
		break;
	case 6:
		san_cm_fsm_failed(cm, slot, RTSAN_R_TIMEOUT, now_ns);
		break;
	case 7:
		san_cm_release(cm, slot, now_ns);
		break;
	default:
		san_cm_listen_end(cm, SERVICE, PKEY);
		san_cm_listen(cm, SERVICE, PKEY, 2, 1);
		break;
	}
}

/** Everything ends, and then nothing is left. */
static void
teardown(void)
{
	take_events();
	for (uint16_t slot = 0; slot < NB_CONNS; slot++)
		san_cm_fsm_disconnect(cm, slot, true, now_ns);
	for (int i = 0; i < 40; i++) {
		now_ns += 2 * SAN_NS_PER_S;
		run_timers();
		take_events();
		take_messages(255);
	}
	san_cm_check(cm);
	SAN_VERIFY(pdl->nb_conns == 0);
	san_cm_destroy(cm);
	san_pdl_destroy(pdl);
	SAN_VERIFY(rte_mempool_in_use_count(pool) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};

	setup();
	while (in.size != 0) {
		switch (take8(&in) % 8) {
		case 0:
		case 1:
		case 2:
			rx_message(&in);
			break;
		case 3:
			do_ulp(&in);
			break;
		case 4:
			now_ns += (uint64_t)take8(&in) * SAN_NS_PER_MS;
			run_timers();
			break;
		case 5:
			take_messages(take8(&in));
			break;
		case 6:
			take_events();
			break;
		default:
			rx_stray(&in);
			break;
		}
		san_cm_check(cm);
	}
	teardown();
	return 0;
}
