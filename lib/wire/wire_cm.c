/* SPDX-License-Identifier: BSD-3-Clause */

#include "san_assert.h"
#include "wire_priv.h"

/**
 * The user is in a field that has no other use in the message: the receiver's tag of a REQ, the
 * service of a REP. Programs can write neither.
 */
static bool
has_user(const struct san_wire_cm *cm)
{
	return (cm->features & SAN_CM_FEAT_USER) != 0 &&
		(cm->msg == SAN_CM_REQ || cm->msg == SAN_CM_REP);
}

/* Convert the numbers between host and network order, either way. */
static void
swap_numbers(struct san_wire_cm *cm)
{
	unsigned int i;

	cm->xid = rte_cpu_to_be_32(cm->xid);
	cm->src_cid = rte_cpu_to_be_32(cm->src_cid);
	cm->src_tag = rte_cpu_to_be_32(cm->src_tag);
	cm->dst_cid = rte_cpu_to_be_32(cm->dst_cid);
	cm->dst_tag = rte_cpu_to_be_32(cm->dst_tag);
	cm->req_psn = rte_cpu_to_be_32(cm->req_psn);
	cm->data_psn = rte_cpu_to_be_32(cm->data_psn);
	cm->first_rsn = rte_cpu_to_be_32(cm->first_rsn);
	cm->features = rte_cpu_to_be_32(cm->features);
	cm->mtu = rte_cpu_to_be_16(cm->mtu);
	cm->req_win = rte_cpu_to_be_16(cm->req_win);
	cm->data_win = rte_cpu_to_be_16(cm->data_win);
	cm->first_win = rte_cpu_to_be_16(cm->first_win);
	cm->max_txn = rte_cpu_to_be_16(cm->max_txn);
	cm->rnr_ms = rte_cpu_to_be_16(cm->rnr_ms);
	cm->keepalive_ms = rte_cpu_to_be_16(cm->keepalive_ms);
	cm->private_len = rte_cpu_to_be_16(cm->private_len);
	cm->service = rte_cpu_to_be_64(cm->service);
	for (i = 0; i < SAN_WIRE_CM_PORTS; i++)
		cm->ports[i] = rte_cpu_to_be_16(cm->ports[i]);
}

void
san_wire_cm_build(struct rte_mbuf *m, const struct san_wire_path *path,
		  const struct san_wire_pkt *p, const struct san_wire_cm *cm)
{
	struct san_wire_cm x = *cm;
	struct san_wire_pkt reset;
	char *payload;

	/*
	 * A RESET is only a common header, no longer than the shortest packet that it answers. So
	 * no sender can make us send more to a forged address than it sends to us. (RT-36)
	 */
	if (cm->msg == SAN_CM_RESET) {
		reset = *p;
		reset.psn = cm->data_psn;
		reset.rsn = cm->src_cid;
		reset.cmpl_rsn = cm->src_tag;
		san_wire_build(m, path, &reset);
		return;
	}
	payload = rte_pktmbuf_append(m, SAN_WIRE_CM_LEN);
	SAN_ASSERT(p->op == SAN_OP_CM && payload != NULL);
	SAN_ASSERT(cm->nb_ports <= SAN_WIRE_CM_PORTS && cm->private_len <= SAN_WIRE_CM_PRIVATE);
	if (has_user(cm) && cm->msg == SAN_CM_REQ)
		x.dst_tag = cm->uid;
	else if (has_user(cm))
		x.service = cm->uid;
	/* Unused fields are sent as zero, so that none of our memory leaks. */
	if (!(cm->flags & SAN_CM_F_COOKIE))
		memset(x.cookie, 0, sizeof(x.cookie));
	memset(x.ports + cm->nb_ports, 0, sizeof(x.ports) - cm->nb_ports * sizeof(x.ports[0]));
	memset(x.private_data + cm->private_len, 0, sizeof(x.private_data) - cm->private_len);
	swap_numbers(&x);
	memcpy(payload, &x, SAN_WIRE_CM_LEN);
	san_wire_build(m, path, p);
}

static bool
wire_cm_is_zero(const uint8_t *b, size_t len)
{
	uint8_t any = 0;
	size_t i;

	for (i = 0; i < len; i++)
		any |= b[i];
	return any == 0;
}

static bool
cm_valid(const struct san_wire_cm *cm)
{
	uint8_t order = cm->flags & SAN_CM_F_ORDER;
	unsigned int i;

	if (cm->msg == 0 || cm->msg >= SAN_CM_MSG_MAX || cm->reason >= SAN_CM_R_MAX)
		return false;
	if ((cm->flags & ~SAN_CM_F_ALL) != 0)
		return false;
	/* Relaxed placement and the end on error are variants of ordered; not both. */
	if (order != 0 && order != SAN_CM_F_ORDERED &&
	    order != (SAN_CM_F_ORDERED | SAN_CM_F_RELAXED) &&
	    order != (SAN_CM_F_ORDERED | SAN_CM_F_ENDS))
		return false;
	if (cm->msg == SAN_CM_COOKIE && !(cm->flags & SAN_CM_F_COOKIE))
		return false;
	if (!(cm->flags & SAN_CM_F_COOKIE) && !wire_cm_is_zero(cm->cookie, sizeof(cm->cookie)))
		return false;
	if ((cm->src_cid | cm->dst_cid) >> SAN_WIRE_CID_BITS != 0)
		return false;
	if (cm->nb_ports > SAN_WIRE_CM_PORTS)
		return false;
	for (i = 0; i < SAN_WIRE_CM_PORTS; i++) /* those that count are not zero, others are */
		if ((i < cm->nb_ports) != (cm->ports[i] != 0))
			return false;
	if (cm->msg == SAN_CM_REP && has_user(cm) && cm->service != 0)
		return false;
	if (cm->private_len > SAN_WIRE_CM_PRIVATE)
		return false;
	return wire_cm_is_zero(cm->private_data + cm->private_len,
			       (size_t)(SAN_WIRE_CM_PRIVATE - cm->private_len));
}

enum san_drop
san_wire_cm_parse(const struct rte_mbuf *m, const struct san_wire_pkt *p, struct san_wire_cm *cm)
{
	const void *x;

	if (p->payload_len == 0) {
		*cm = (struct san_wire_cm){
			.msg = SAN_CM_RESET,
			.reason = RTSAN_R_STALE,
			.src_cid = p->rsn,
			.src_tag = p->cmpl_rsn,
			.data_psn = p->psn,
		};
		return cm_valid(cm) ? SAN_DROP_NONE : SAN_DROP_CM_MALFORMED;
	}
	if (p->payload_len != SAN_WIRE_CM_LEN)
		return SAN_DROP_CM_MALFORMED;
	x = rte_pktmbuf_read(m, p->payload_off, SAN_WIRE_CM_LEN, cm);
	if (x == NULL)
		return SAN_DROP_CM_MALFORMED;
	if (x != cm)
		memcpy(cm, x, SAN_WIRE_CM_LEN);
	swap_numbers(cm);
	cm->uid = RTSAN_UID_NONE;
	if (has_user(cm) && cm->msg == SAN_CM_REQ) {
		cm->uid = cm->dst_tag;
		cm->dst_tag = 0;
	} else if (has_user(cm)) {
		cm->uid = (uint32_t)cm->service;
		cm->service &= ~(uint64_t)UINT32_MAX;
	}
	/* a RESET has no payload */
	return cm->msg != SAN_CM_RESET && cm_valid(cm) ? SAN_DROP_NONE : SAN_DROP_CM_MALFORMED;
}
