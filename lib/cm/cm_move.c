/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A request to connect arrives on any lcore and may be accepted with a queue pair of another: then
 * it moves there. A ghost stays, as after any end, so that a REQ repeated by the peer or the
 * network creates no second connection. It answers nothing, because the lcore that has the request
 * sends and repeats the REP. (SYS-1)
 *
 * The rejected alternative forwards the messages of an attempt for its whole duration: state and
 * work on two lcores for what one of them can do alone.
 */

#include <errno.h>

#include "cm_priv.h"

int
san_cm_move_out(struct san_cm *cm, uint16_t slot, struct san_cm_moved *out, uint64_t now_ns)
{
	struct san_cm_conn *c = san_cm_fsm_request_at(cm, slot, now_ns);

	if (c == NULL)
		return -ENOENT;
	c->is_taken = true;
	*out = (struct san_cm_moved){
		.path = san_cm_pdl_conn(cm, c)->path,
		.pkey = san_cm_pdl_conn(cm, c)->pkey,
		.flags = san_cm_setup(cm, c)->flags,
		.xid = c->xid,
		.peer_uid = c->peer_uid,
		.offer = san_cm_setup(cm, c)->agreed,
	};
	return 0;
}

int
san_cm_move_in(struct san_cm *cm, const struct san_cm_moved *in, const struct san_cm_param *param,
	       uint64_t cookie, uint64_t now_ns, uint16_t *slot)
{
	struct cm_setup *setup;
	struct san_cm_conn *c;
	int rc;

	cm->now_ns = now_ns;
	if (!san_cm_param_valid(param))
		return -EINVAL;
	if (san_cm_has_stream(in->offer.features) != param->stream)
		return -EPROTOTYPE;
	if (!san_cm_hash_free(cm, &in->path.dst, in->offer.pdl.dcid, in->offer.pdl.dtag))
		return -ENOSPC;
	rc = san_cm_conn_add(cm, &in->path.src, &in->path.dst, in->pkey, &c);
	if (rc != 0)
		return rc;
	san_cm_pdl_conn(cm, c)->path = in->path;
	c->passive = true;
	c->peer_cid = in->offer.pdl.dcid;
	c->peer_tag = in->offer.pdl.dtag;
	c->peer_uid = in->peer_uid;
	c->xid = in->xid;
	setup = san_cm_setup(cm, c);
	setup->agreed = in->offer;
	setup->flags = in->flags;
	san_cm_hash_add(cm, c);
	san_cm_fsm_accept(cm, c, param, cookie, CM_IN_ADOPT, now_ns);
	*slot = c->slot;
	return 0;
}

void
san_cm_move_done(struct san_cm *cm, uint16_t slot, bool adopted, uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_MOVED, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	if (c == NULL || !c->is_taken)
		return;
	c->is_taken = false;
	if (adopted)
		san_cm_fsm_step(cm, c, &s);
}
