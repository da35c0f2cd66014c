/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Operations of a core for its sessions: requests of the queue pair below, keys for the
 * application's memory, memory of their own.
 */

#include "core_priv.h"

#define THRESHOLD 4096 /* from this length on it is cheaper to send a location than bytes */
#define SOLICIT_X 4    /* writes from this many times longer on are solicited */

static int
core_stream_ops_recv(void *arg, uint64_t cookie, void *buf, uint32_t len)
{
	const struct san_ulp_recv r = {
		.wr_id = cookie,
		.nb_sge = 1,
		.sge = {{.addr = buf, .length = len}},
	};
	const struct core_stream *s = arg;
	struct san_core *core = s->core;

	return san_ulp_qp_post_recv(core->ulp, s->qpn, &r, 1, core->stream_now_ns) == 1 ? 0 :
											  -EAGAIN;
}

/*
 * A write goes to a buffer that the peer's application waits for. So a write of moderate length
 * needs no grant, which costs a round trip, as long as the path is not congested (RT-12).
 */
static uint8_t
write_flags(const struct core_stream *s, uint32_t len)
{
	const struct san_core *core = s->core;
	const struct san_tl_conf *conf = &core->conf.tl;
	uint32_t slot = core->slot_of_qp[san_ulp_qp_index(&core->conf.ulp, s->qpn)];

	if (slot == NO_SLOT || len >= (uint64_t)conf->solicit_len * SOLICIT_X ||
	    (conf->solicit_level != 0 && core->pdl->conns[slot].cc.level >= conf->solicit_level))
		return 0;
	return RTSAN_WR_UNSOLICITED;
}

static int
core_stream_ops_post(void *arg, struct san_ulp_wr *wr)
{
	const struct core_stream *s = arg;
	struct san_core *core = s->core;

	if (wr->op == RTSAN_WR_PUSH)
		wr->flags |= write_flags(s, wr->length);
	return san_ulp_wr_post(core->ulp, s->qpn, wr, 1, core->stream_now_ns) == 1 ? 0 : -EAGAIN;
}

/* AFC-24: only with the right requested, and only for the peer of this connection. */
static int
core_stream_ops_reg(void *arg, const struct rtsan_sge *part, enum san_stream_right right,
		    uint64_t *addr, uint32_t *key)
{
	static const uint8_t rights[] = {
		[SAN_STREAM_PUSH] = RTSAN_REMOTE_PUSH,
		[SAN_STREAM_PULL] = RTSAN_REMOTE_PULL,
	};
	const struct core_stream *s = arg;

	*addr = 0;
	*key = 0;
	if (right == SAN_STREAM_LOCAL) /* ulp accesses the application's memory directly */
		return 0;
	return san_ulp_mr_add_stream(s->core->ulp, s->qpn, part->addr, part->length, rights[right],
				     key);
}

static void
core_stream_ops_dereg(void *arg, uint32_t key)
{
	const struct core_stream *s = arg;

	san_ulp_mr_del(s->core->ulp, key);
}

static void *
core_stream_ops_alloc(void *arg, size_t bytes)
{
	struct core_stream *s = arg;
	void *mem;

	if (!san_core_share_take(s->core, &s->share, bytes))
		return NULL;
	mem = san_mem_aligned(s->core->conf.mem, bytes);
	if (mem == NULL)
		san_core_share_give(s->core, &s->share, bytes);
	return mem;
}

static void
core_stream_ops_free(void *arg, void *mem, size_t bytes)
{
	struct core_stream *s = arg;

	if (mem == NULL)
		return;
	san_mem_free(s->core->conf.mem, mem, bytes);
	san_core_share_give(s->core, &s->share, bytes);
}

const struct san_stream_ops san_core_stream_ops = {
	.caps = {.threshold = THRESHOLD, .can_read = true, .ordered = true},
	.recv = core_stream_ops_recv,
	.post = core_stream_ops_post,
	.reg = core_stream_ops_reg,
	.dereg = core_stream_ops_dereg,
	.alloc = core_stream_ops_alloc,
	.free = core_stream_ops_free,
};
