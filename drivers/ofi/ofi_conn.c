/* SPDX-License-Identifier: BSD-3-Clause */

/* What an endpoint has of the transport: a queue pair, a pool of receives, a connection. */

#include "ofi_priv.h"

#define CONN_BURST 32

/* ---- the pool ---- */

void
san_ofi_conn_consume(struct ofi_ep *ep, struct ofi_rx *rx, enum ofi_class class)
{
	rx->class = class;
	STAILQ_INSERT_TAIL(&ep->consumed, rx, link);
	san_ofi_ctx_mark(ep);
}

/* Credits are returned only after their receives are posted, which may have to wait for room. */
void
san_ofi_conn_repost(struct ofi_ep *ep)
{
	struct rtsan_recv_wr wr[CONN_BURST];
	struct rtsan_sge sge[CONN_BURST];
	struct ofi_rx *rx;
	int i, n, posted;

	while (!STAILQ_EMPTY(&ep->consumed)) {
		n = 0;
		STAILQ_FOREACH(rx, &ep->consumed, link) {
			sge[n] = (struct rtsan_sge){
				rx->data, OFI_BUF_SIZE, rtsan_mr_lkey(ep->rx_mr)};
			wr[n] = (struct rtsan_recv_wr){
				.wr_id = (uintptr_t)rx | OFI_WR_RX, .sge = &sge[n], .nb_sge = 1};
			if (++n == CONN_BURST)
				break;
		}
		posted = rtsan_post_recv(ep->qp, wr, n);
		for (i = 0; i < posted; i++) {
			rx = STAILQ_FIRST(&ep->consumed);
			STAILQ_REMOVE_HEAD(&ep->consumed, link);
			if (rx->class < OFI_CLASSES)
				ep->due[rx->class]++;
		}
		if (posted != n) {
			san_ofi_ctx_need_room(ep);
			return;
		}
	}
}

/* ---- beginning, end ---- */

int
san_ofi_conn_enable(struct ofi_ep *ep)
{
	struct ofi_ctx *ctx = ep->domain->ctx;
	struct rtsan_qp_attr attr = {
		.sq_depth = OFI_SQ_DEPTH,
		.rq_depth = OFI_RQ_DEPTH,
		.context = ep,
	};
	uint32_t i;
	int rc;

	if (ep->eq == NULL && ep->rdm == NULL && ep->owner == NULL)
		return -FI_ENOEQ;
	/* counters do not report errors, and one queue at least makes progress */
	if (((ep->caps & (FI_SEND | FI_READ | FI_WRITE)) != 0 && ep->tx_cq == NULL) ||
	    ((ep->caps & FI_RECV) != 0 && ep->rx_cq == NULL) ||
	    (ep->tx_cq == NULL && ep->rx_cq == NULL))
		return -FI_ENOCQ;
	if (ep->state != OFI_EP_NEW || ep->rdm != NULL) /* its connections have what follows */
		return 0;
	rc = san_ofi_ctx_lane_get(ctx, &ep->lane);
	if (rc != 0)
		return rc;
	attr.send_cq = attr.recv_cq = ep->lane->cq;
	rc = rtsan_mr_alloc(ctx->san, OFI_NB_RX * OFI_BUF_SIZE, 0, &ep->rx_mr);
	if (rc == 0) {
		rc = rtsan_qp_create(ctx->san, &attr, &ep->qp);
		if (rc != 0)
			rtsan_mr_dereg(ep->rx_mr);
	}
	if (rc != 0) {
		san_ofi_ctx_lane_put(ep->lane);
		return san_ofi_ctx_fail(rc, "endpoint and its receives");
	}
	for (i = 0; i < OFI_NB_RX; i++) {
		ep->rx[i].ep = ep;
		ep->rx[i].data = (uint8_t *)rtsan_mr_addr(ep->rx_mr) + i * OFI_BUF_SIZE;
		ep->rx[i].class = OFI_CLASS_NONE; /* private data has these credits */
		STAILQ_INSERT_TAIL(&ep->consumed, &ep->rx[i], link);
	}
	san_ofi_conn_repost(ep);
	ep->state = OFI_EP_ENABLED;
	LIST_INSERT_HEAD(&ctx->eps, ep, link);
	return 0;
}

struct ofi_ep *
san_ofi_conn_alloc(struct ofi_domain *domain)
{
	struct ofi_ep *ep = calloc(1, sizeof(*ep));

	if (ep == NULL)
		return NULL;
	ep->domain = domain;
	ep->from = FI_ADDR_NOTAVAIL;
	ep->rxq = &ep->own_rxq;
	STAILQ_INIT(&ep->consumed);
	STAILQ_INIT(&ep->early);
	STAILQ_INIT(&ep->fetches);
	STAILQ_INIT(&ep->sends);
	STAILQ_INIT(&ep->answers);
	return ep;
}

void
san_ofi_conn_release(struct ofi_ep *ep)
{
	struct ofi_ctx *ctx = ep->domain->ctx;
	struct ofi_buf *buf;

	if (ep->state == OFI_EP_NEW)
		return;
	LIST_REMOVE(ep, link);
	rtsan_qp_destroy(ep->qp);
	ep->state = OFI_EP_ENDED;
	san_ofi_op_cancel_all(ep, true);
	while ((buf = LIST_FIRST(&ep->bufs)) != NULL) {
		LIST_REMOVE(buf, link);
		LIST_INSERT_HEAD(&ctx->bufs, buf, link);
	}
	if (ep->is_dirty) /* last: a message that ends marks its endpoint */
		STAILQ_REMOVE(&ctx->dirty, ep, ofi_ep, dirty);
	rtsan_mr_dereg(ep->rx_mr);
	san_ofi_ctx_lane_put(ep->lane);
}

struct ofi_ep *
san_ofi_conn_open(struct ofi_ep *owner)
{
	struct ofi_ep *conn = san_ofi_conn_alloc(owner->domain);

	if (conn == NULL)
		return NULL;
	conn->owner = owner;
	conn->local = owner->local;
	conn->tx_size = owner->tx_size;
	conn->tx_selective = owner->tx_selective;
	conn->rx_selective = owner->rx_selective;
	/* the owner, which lives longer, has the references */
	conn->rxq = owner->rxq;
	conn->tx_cq = owner->tx_cq;
	conn->rx_cq = owner->rx_cq;
	memcpy(conn->cntrs, owner->cntrs, sizeof(conn->cntrs));
	LIST_INSERT_HEAD(&owner->rdm->conns, conn, conn_link);
	return conn;
}

void
san_ofi_conn_close(struct ofi_ep *conn)
{
	LIST_REMOVE(conn, conn_link);
	san_ofi_conn_release(conn);
	free(conn);
}

/* ---- connecting ---- */

int
san_ofi_conn_begin(struct ofi_ep *ep, uint64_t at, const struct ofi_cm_hdr *request,
		   const void *param, size_t paramlen)
{
	char text[RTSAN_ADDRESS_MAX] = "fi_accept";
	uint8_t data[RTSAN_PRIVATE_MAX];
	struct rtsan_conn_param conn = {.private_data = data};
	int rc = san_ofi_conn_enable(ep);

	if (rc == 0 && ep->state != OFI_EP_ENABLED)
		rc = -FI_EISCONN;
	/* an own address of the peer's family, if the program has not chosen one */
	if (rc == 0 && request == NULL)
		rc = san_ofi_ctx_addr(ep->peer.sa.sa_family, &ep->local);
	if (rc != 0)
		return rc;
	conn.private_len = san_ofi_cm_fill(data, san_ofi_addr_port(&ep->local), param, paramlen);
	if (request == NULL) {
		san_ofi_addr_text(&ep->peer, text);
		rc = rtsan_connect(ep->qp, text, at, &conn);
	} else {
		rc = rtsan_accept(ep->domain->ctx->san, at, ep->qp, &conn);
	}
	if (rc != 0)
		return san_ofi_ctx_fail(rc, text);
	if (request != NULL) {
		ep->credit[OFI_CLASS_MSG] += request->nb_msg;
		ep->credit[OFI_CLASS_RMA] += request->nb_rma;
		ep->is_accepted = true;
	}
	ep->state = OFI_EP_CONNECTING;
	ep->conn = OFI_CONN_BEGUN;
	return 0;
}
