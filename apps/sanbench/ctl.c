/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "ctl.h"

#define CTL_STRIDE (sizeof(struct ctl_msg) + CTL_PAYLOAD)

static int
post_rx(struct ctl *c, uint64_t i)
{
	struct rtsan_sge sge = {
		.addr = c->rx + i * CTL_STRIDE,
		.length = CTL_STRIDE,
		.lkey = rtsan_mr_lkey(c->mr),
	};
	struct rtsan_recv_wr wr = {.wr_id = i, .sge = &sge, .nb_sge = 1};
	int ret = rtsan_post_recv(c->q.qp, &wr, 1);

	return ret == 1 ? 0 : ret < 0 ? ret :
					-ENOBUFS;
}

static void
on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	struct ctl *c = (struct ctl *)q;
	const uint8_t *at = c->rx + wc->wr_id * CTL_STRIDE;
	struct ctl_msg msg;

	if (wc->opcode != RTSAN_WC_RECV)
		c->free_tx[c->nb_free_tx++] = (uint32_t)wc->wr_id;
	if (wc->status != RTSAN_WC_SUCCESS || wc->opcode != RTSAN_WC_RECV)
		return;
	if (wc->byte_len >= sizeof(msg)) {
		memcpy(&msg, at, sizeof(msg));
		if (msg.len == wc->byte_len - sizeof(msg))
			c->on_msg(c->owner, &msg, at + sizeof(msg));
	}
	if (c->q.is_up)
		post_rx(c, wc->wr_id);
}

static void
ctl_on_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct ctl *c = (struct ctl *)q;

	c->on_event(c->owner, ev);
}

int
san_ctl_open(struct bench *b, struct ctl *c)
{
	uint32_t i;
	int ret;

	ret = rtsan_mr_alloc(b->ctx, (CTL_RX + CTL_TX) * CTL_STRIDE, 0, &c->mr);
	if (ret < 0)
		return ret;
	c->rx = rtsan_mr_addr(c->mr);
	c->tx = c->rx + CTL_RX * CTL_STRIDE;
	c->q.is_over = false;
	c->nb_free_tx = 0;
	for (i = 0; i < CTL_TX; i++)
		c->free_tx[c->nb_free_tx++] = i;
	c->q.on_wc = on_wc;
	c->q.on_event = ctl_on_event;
	ret = san_net_qp_open(b, &c->q, CTL_TX, CTL_RX, CTL_TX + CTL_RX);
	for (i = 0; i < CTL_RX && ret == 0; i++)
		ret = post_rx(c, i);
	if (ret < 0)
		san_ctl_close(c);
	return ret;
}

void
san_ctl_close(struct ctl *c)
{
	san_net_qp_close(&c->q);
	if (c->mr != NULL)
		rtsan_mr_dereg(c->mr);
	c->mr = NULL;
}

int
san_ctl_send(struct ctl *c, const struct ctl_msg *msg, const void *payload)
{
	struct rtsan_sge sge = {.lkey = rtsan_mr_lkey(c->mr)};
	struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = &sge,
	};
	int ret;

	if (!c->q.is_up)
		return -ENOTCONN;
	if (c->nb_free_tx == 0)
		return -EAGAIN;
	wr.wr_id = c->free_tx[c->nb_free_tx - 1];
	sge.addr = c->tx + wr.wr_id * CTL_STRIDE;
	sge.length = (uint32_t)sizeof(*msg) + msg->len;
	memcpy(sge.addr, msg, sizeof(*msg));
	if (msg->len > 0)
		memcpy((uint8_t *)sge.addr + sizeof(*msg), payload, msg->len);
	ret = rtsan_post_send(c->q.qp, &wr, 1);
	if (ret == 1)
		c->nb_free_tx--;
	return ret == 1 ? 0 : ret < 0 ? ret :
					-EAGAIN;
}
