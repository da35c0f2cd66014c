/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sends with more elements, or more inline bytes, than librtsan takes, and datagrams: their bytes
 * are copied.
 */

#include "sv_priv.h"

/* Number of places: one for each request that librtsan holds, and for those of a burst. */
static uint32_t
nb_places(const struct sv_qp *q)
{
	uint32_t depth = 1;

	if (q->ibv.qp_type == IBV_QPT_UD)
		return q->sends.nb;
	while (depth < q->init.cap.max_send_wr + SV_BURST) /* as in create_rt(), rounded up */
		depth *= 2;
	return 2 * depth + SV_BURST; /* the ring and the lcore hold as many */
}

int
san_sv_bounce(struct sv_qp *q, struct rtsan_send_wr *wr, struct rtsan_sge *sge, uint64_t number)
{
	struct sv_device *dev = san_sv_device(q->ibv.context);
	uint64_t length = 0;
	uint8_t *to;
	uint32_t i;
	int rc;

	for (i = 0; i < wr->nb_sge; i++)
		length += wr->sge[i].length;
	if (q->ibv.qp_type == IBV_QPT_RC && wr->nb_sge <= RTSAN_SGE_MAX &&
	    ((wr->flags & RTSAN_WR_INLINE) == 0 || length <= RTSAN_INLINE_MAX))
		return 0;
	if (wr->opcode == RTSAN_WR_PULL || length > SV_MTU)
		return san_sv_refuse(-EINVAL, "a datagram, or what must be copied, is too long");
	if (q->bounce == NULL) {
		rc = rtsan_mr_alloc(dev->rt, (size_t)nb_places(q) * SV_MTU, 0, &q->bounce);
		if (rc != 0)
			return rc;
	}
	to = (uint8_t *)rtsan_mr_addr(q->bounce) + number % nb_places(q) * SV_MTU;
	*sge = (struct rtsan_sge){to, (uint32_t)length, rtsan_mr_lkey(q->bounce)};
	for (i = 0; i < wr->nb_sge; i++) {
		memcpy(to, wr->sge[i].addr, wr->sge[i].length);
		to += wr->sge[i].length;
	}
	wr->sge = sge;
	wr->nb_sge = 1;
	wr->flags &= (uint8_t)~RTSAN_WR_INLINE;
	return 0;
}

void
san_sv_bounce_end(struct sv_qp *q)
{
	if (q->bounce != NULL)
		rtsan_mr_dereg(q->bounce);
	q->bounce = NULL;
	q->nb_bounced = 0;
}
