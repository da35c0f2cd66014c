/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Creation, connection and end of a session. A session is one block of memory that includes its
 * tables.
 *
 * Timers, which san_stream_deadline_ns() combines:
 *   scan      while the session waits for the peer's application (AFC-13)
 *   adv       an advertisement is held back until a data message can carry it
 *   posture   a posture is held back likewise
 *   gather    a small send is held back for an advertisement (AFC-11)
 */

#include <errno.h>

#include "san_time.h"
#include "stream_priv.h"

#define SENDS_BESIDE 32 /* entries for writes and reads, besides those for messages */

void
san_stream_conf_default(struct san_stream_conf *conf)
{
	*conf = (struct san_stream_conf){
		.sq_depth = 128,
		.rq_depth = 128,
		.msg_size = 1536,
		.msg_max = 8192,
		.nb_recv = 32,
		.nb_store = 32,
		.nb_send = 32,
		.mode = SAN_STREAM_ADAPTIVE,
		.learn = 3,
		.scans = 2,
		.frags = 8,
		.scan_ns = 10 * SAN_NS_PER_MS,
		.hold_ns = 20000,
		.gather_ns = 20000,
	};
}

void
san_stream_depths(const struct san_stream_conf *conf, uint32_t *sq, uint32_t *rq)
{
	*sq = san_spsc_size(conf->nb_send + SENDS_BESIDE);
	*rq = san_spsc_size(conf->nb_recv);
}

static bool
is_power(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

const char *
san_stream_conf_check(const struct san_stream_conf *conf)
{
	if (!is_power(conf->sq_depth) || !is_power(conf->rq_depth) || conf->sq_depth > 4096 ||
	    conf->rq_depth > 4096)
		return "depth: a power of two, at most 4096";
	if (conf->threshold != 0 && (conf->threshold < 256 || conf->threshold > SAN_STREAM_MSG_MAX))
		return "threshold: 256 to 65536 bytes";
	if (conf->msg_size < SAN_STREAM_MSG_MIN || conf->msg_max > SAN_STREAM_MSG_MAX ||
	    conf->msg_size > conf->msg_max)
		return "message size: 512 to 65536 bytes, and no more than it may grow to";
	if (conf->nb_recv > 1024 || conf->nb_store > 1024 || conf->nb_send > 1024 ||
	    conf->nb_store < 2 || conf->nb_send < 2)
		return "message buffers: 2 to 1024";
	if (conf->t2 == 1)
		return "T2: more than 1";
	if (conf->nb_recv < 4 || conf->nb_recv < conf->t2 + 2u || conf->nb_store < conf->t2)
		return "message buffers: T2 + 2 to receive at least, T2 that may be unread";
	if (conf->t1 > conf->nb_recv || (conf->t1 == 1))
		return "T1: 2 to the number of receive buffers";
	if (conf->mode != SAN_STREAM_ADAPTIVE && conf->mode >= SAN_SM_MODES)
		return "mode: unknown";
	if (conf->read > RTSAN_STREAM_READ_ALWAYS)
		return "read: unknown";
	if (conf->learn == 0 || conf->scans == 0 || conf->scan_ns == 0)
		return "transfers to learn from, scans and their time: at least 1";
	if (conf->send_buffer != 0 &&
	    (!is_power(conf->send_buffer) || conf->send_buffer > 1u << 30))
		return "send buffer: a power of two, at most 1 GiB";
	return NULL;
}

/* Size of a session with its tables. *at*: offsets of the tables. */
static size_t
stream_mem_layout(const struct san_stream_conf *conf, size_t at[5])
{
	uint32_t nb = (uint32_t)conf->nb_recv + conf->nb_store;

	at[0] = (sizeof(struct san_stream) + 63) & ~(size_t)63;
	at[1] = at[0] + conf->sq_depth * sizeof(struct stream_sqe);
	at[2] = at[1] + conf->rq_depth * sizeof(struct stream_rqe);
	at[3] = at[2] + nb * sizeof(struct stream_buf);
	at[4] = at[3] + conf->nb_send * sizeof(struct stream_buf);
	return at[4] + san_spsc_size(nb) * sizeof(uint16_t);
}

uint64_t
san_stream_bytes_max(const struct san_stream_conf *conf)
{
	uint64_t nb = (uint64_t)conf->nb_recv + conf->nb_store + conf->nb_send;
	uint64_t nb_sizes = conf->msg_max > conf->msg_size ? 2 : 1;
	size_t at[5], tables = stream_mem_layout(conf, at);

	return tables + nb * nb_sizes * conf->msg_max + conf->send_buffer +
		tables + nb * conf->msg_size;
}

static void
set_conf(struct san_stream *s, const struct san_stream_conf *conf)
{
	s->conf = *conf;
	s->caps = s->ops->caps;
	s->threshold = conf->threshold != 0 ? conf->threshold : s->caps.threshold;
	/*
	 * Defaults of AFC-15: 12 buffers give t1 = 4 and t2 = 6. An update is sent when the peer's
	 * credit is below t1 and the update adds more than t2.
	 */
	if (conf->t2 == 0)
		s->conf.t2 = (uint16_t)san_stream_min(conf->nb_recv / 2u, conf->nb_store);
	if (conf->t1 == 0)
		s->conf.t1 = conf->nb_recv < 6 ? 2 : conf->nb_recv / 3;
	s->tx.mode = conf->mode == SAN_STREAM_ADAPTIVE ? SAN_SM_DISCOVERY : conf->mode;
}

int
san_stream_create(const struct san_stream_conf *conf, const struct san_stream_ops *ops, void *arg,
		  struct san_stream **out)
{
	struct san_stream *s;
	size_t at[5], bytes;
	uint8_t *mem;

	if (san_stream_conf_check(conf) != NULL)
		return -EINVAL;
	bytes = stream_mem_layout(conf, at);
	s = ops->alloc(arg, bytes);
	if (s == NULL)
		return -ENOMEM;
	s->bytes = bytes;
	s->ops = ops;
	s->arg = arg;
	s->stuck = STREAM_NONE;
	s->rx.cls = SAN_SM_MODES;
	mem = (uint8_t *)s;
	s->tx.sq = (struct stream_sqe *)(mem + at[0]);
	s->rx.rq = (struct stream_rqe *)(mem + at[1]);
	s->rpool.bufs = (struct stream_buf *)(mem + at[2]);
	s->spool.bufs = (struct stream_buf *)(mem + at[3]);
	s->cr.held = (uint16_t *)(mem + at[4]);
	s->cr.held_mask = (uint32_t)((s->bytes - at[4]) / sizeof(uint16_t)) - 1;
	set_conf(s, conf);
	if (san_stream_pool_init(s, &s->rpool, (uint16_t)(conf->nb_recv + conf->nb_store),
				 conf->msg_size) != 0 ||
	    san_stream_pool_init(s, &s->spool, conf->nb_send, conf->msg_size) != 0) {
		san_stream_destroy(s);
		return -ENOMEM;
	}
	san_stream_credit_init(s);
	*out = s;
	return 0;
}

/* Revoke the peer's access to all memory of the application. */
static void
stream_unregister_mem(struct san_stream *s)
{
	uint32_t at;

	for (at = s->rx.cur; at != s->rx.tail; at++)
		san_stream_adv_end(s, san_stream_rqe(s, at));
	for (at = s->tx.head; at != s->tx.tail; at++)
		san_stream_dereg(s, san_stream_sqe(s, at)->keys, &san_stream_sqe(s, at)->nb_keys);
}

void
san_stream_destroy(struct san_stream *s)
{
	if (s == NULL)
		return;
	stream_unregister_mem(s);
	san_stream_pool_fini(s, &s->rpool);
	san_stream_pool_fini(s, &s->spool);
	if (s->tx.buffer != NULL)
		s->ops->free(s->arg, s->tx.buffer, s->conf.send_buffer);
	s->ops->free(s->arg, s, s->bytes);
}

void
san_stream_resume(struct san_stream *s, const struct san_stream_ops *ops, void *arg)
{
	s->ops = ops;
	s->arg = arg;
}

/* ---- pieces of memory ---- */

uint8_t
san_stream_slice(const struct rtsan_sge *sge, uint8_t nb, uint32_t off, uint32_t len,
		 struct rtsan_sge *out)
{
	uint8_t i, n = 0;

	for (i = 0; i < nb && len > 0; i++) {
		uint32_t bytes;

		if (off >= sge[i].length) {
			off -= sge[i].length;
			continue;
		}
		bytes = san_stream_min(sge[i].length - off, len);
		out[n++] = (struct rtsan_sge){
			.addr = (uint8_t *)sge[i].addr + off,
			.length = bytes,
			.lkey = sge[i].lkey,
		};
		len -= bytes;
		off = 0;
	}
	return n;
}

void
san_stream_copy(struct san_stream *s, const struct rtsan_sge *sge, uint8_t nb, uint32_t off,
		uint32_t len, uint8_t *mem, bool fills)
{
	struct rtsan_sge part[RTSAN_SGE_MAX];
	uint8_t i, n = san_stream_slice(sge, nb, off, len, part);

	san_stream_spend(s, len);
	for (i = 0; i < n; i++) {
		if (fills)
			memcpy(part[i].addr, mem, part[i].length);
		else
			memcpy(mem, part[i].addr, part[i].length);
		mem += part[i].length;
	}
}

int
san_stream_reg(struct san_stream *s, const struct rtsan_sge *sge, uint8_t nb,
	       enum san_stream_right right, uint64_t *addrs, uint32_t *keys)
{
	uint8_t i;
	int rc;

	for (i = 0; i < nb; i++) {
		rc = s->ops->reg(s->arg, &sge[i], right, &addrs[i], &keys[i]);
		if (rc == 0)
			continue;
		if (right != SAN_STREAM_LOCAL)
			san_stream_dereg(s, keys, &i);
		return rc;
	}
	return 0;
}

void
san_stream_dereg(struct san_stream *s, uint32_t *keys, uint8_t *nb)
{
	while (*nb > 0)
		s->ops->dereg(s->arg, keys[--*nb]);
}

void
san_stream_skip(struct san_sm_where *where, uint32_t bytes)
{
	uint8_t i, nb = 0;

	for (i = 0; i < where->nb_seg; i++) {
		struct san_sm_seg seg = where->seg[i];
		uint32_t n = san_stream_min(bytes, seg.len);

		bytes -= n;
		if (seg.len > n)
			where->seg[nb++] = (struct san_sm_seg){seg.addr + n, seg.len - n, seg.key};
	}
	where->nb_seg = nb;
}

/* ---- events ---- */

void
san_stream_on_open(struct san_stream *s, bool accepted)
{
	s->open = true;
	s->accepted = accepted;
}

void
san_stream_on_done(struct san_stream *s, const struct san_ulp_wc *wc, uint64_t now_ns)
{
	enum stream_req req = (enum stream_req)((wc->wr_id & ~SAN_STREAM_COOKIE) >> 32);
	uint16_t high = (uint16_t)(wc->wr_id >> 16), low = (uint16_t)wc->wr_id;
	static const char *const faults[] = {
		[STREAM_REQ_RECV] = "sends a message longer than our buffers",
		[STREAM_REQ_SEND] = "refuses a message",
		[STREAM_REQ_WRITE] = "advertised memory that can't be written",
		[STREAM_REQ_READ] = "offered memory that can't be read",
	};

	if (wc->status != 0 && wc->status != RTSAN_WC_FLUSHED && wc->status != RTSAN_WC_RETRY_EXC)
		san_stream_break(s, faults[req]);
	switch (req) {
	case STREAM_REQ_RECV:
		s->cr.nb_posted--;
		if (wc->status != 0 || s->fault != NULL) {
			san_stream_pool_put(s, &s->rpool, low);
			break;
		}
		s->cr.other--;
		san_stream_msg_receive(s, low, wc->byte_len, now_ns);
		break;
	case STREAM_REQ_SEND:
		san_stream_pool_put(s, &s->spool, low);
		break;
	case STREAM_REQ_WRITE:
		san_stream_send_on_written(s, low, high, wc->status);
		break;
	case STREAM_REQ_READ:
		san_stream_offer_on_read(s, &s->rx.rq[low], wc->status);
		break;
	}
}

void
san_stream_on_over(struct san_stream *s, uint8_t status, uint64_t now_ns)
{
	s->open = false;
	s->over = true;
	s->over_status = s->fault != NULL ? RTSAN_WC_PROTOCOL : status;
	if (s->stuck != STREAM_NONE)
		san_stream_pool_put(s, &s->spool, s->stuck);
	s->stuck = STREAM_NONE;
	stream_unregister_mem(s);
	san_stream_send_over(s);
	san_stream_offer_rest_void(s);
	s->fault = NULL;
	san_stream_recv_run(s, now_ns);
	san_stream_wait_run(s);
}

/* ---- time ---- */

uint64_t
san_stream_deadline_ns(const struct san_stream *s)
{
	const uint64_t held[] = {s->rx.adv_due, s->rx.posture_due, s->tx.gather_until};
	uint64_t at = s->scan_at != 0 ? s->scan_at : SAN_TIME_NEVER;
	unsigned int i;

	if (!s->open || s->fault != NULL)
		return SAN_TIME_NEVER;
	for (i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		/* what was due at the last pump waits for something else now, e.g. credit */
		if (held[i] > s->pumped_ns)
			at = san_time_min(at, held[i]);
	return at;
}

void
san_stream_tick(struct san_stream *s, uint64_t now_ns)
{
	if (!s->open || s->scan_at == 0 || now_ns < s->scan_at)
		return;
	s->scan_at = 0;
	san_stream_send_scan(s, now_ns);
	san_stream_recv_scan(s);
}

/* ---- results ---- */

uint32_t
san_stream_pump(struct san_stream *s, uint32_t budget, uint64_t now_ns)
{
	static const struct san_ulp_wr end = {.op = SAN_WR_SHUTDOWN}; /* unsignaled */

	if (s->fault != NULL)
		return budget;
	if (s->open && s->is_closing && !s->tx.fin_posted)
		san_stream_send_post(s, &end);
	s->budget = budget;
	s->pumped_ns = now_ns;
	if (!s->over)
		san_stream_pool_post_recvs(s);
	san_stream_recv_run(s, now_ns);
	san_stream_resize_run(s);
	do {
		san_stream_send_run(s, now_ns);
	} while (s->budget > 0 && san_stream_msg_send(s, now_ns));
	san_stream_wait_run(s);
	if (!s->open || (!san_stream_send_waits(s) && s->rx.way != STREAM_RX_OFFER))
		s->scan_at = 0;
	else if (s->scan_at == 0)
		s->scan_at = now_ns + s->conf.scan_ns;
	return s->budget;
}

uint32_t
san_stream_post_send(struct san_stream *s, const struct san_ulp_wr *wr, uint32_t n)
{
	uint32_t i;
	bool taken;

	for (i = 0; i < n; i++) {
		if (wr[i].op == RTSAN_WR_SEND || wr[i].op == SAN_WR_SHUTDOWN)
			taken = san_stream_send_post(s, &wr[i]);
		else
			taken = san_stream_wait_ctl_post(s, &wr[i]);
		if (!taken)
			break;
	}
	return i;
}

/*
 * The oldest send whose completion the application has not taken, if it is complete. Unsignaled
 * sends are skipped, unless they fail; an unsignaled end is not of the application.
 */
static bool
peek_send(struct san_stream *s, struct san_ulp_wc *wc)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e;

	for (; tx->notified != tx->tail; tx->notified++) {
		e = san_stream_sqe(s, tx->notified);
		if (!e->done && !e->copied && !e->let_go)
			return false;
		if (!e->signaled && (e->fin || !e->done || e->status == 0))
			continue;
		*wc = (struct san_ulp_wc){
			.wr_id = e->wr_id,
			.op = e->fin ? RTSAN_WC_STREAM_SHUTDOWN : RTSAN_WC_SEND,
			.status = e->copied || e->let_go ? 0 : e->status,
			.byte_len = e->copied || e->let_go ? e->len : e->off,
		};
		return true;
	}
	return false;
}

static bool
peek_recv(struct san_stream *s, struct san_ulp_wc *wc)
{
	const struct stream_rqe *q = san_stream_rqe(s, s->rx.head);

	if (s->rx.head == s->rx.cur)
		return false;
	*wc = (struct san_ulp_wc){
		.wr_id = q->wr_id,
		.op = RTSAN_WC_RECV,
		.status = q->status,
		.byte_len = q->filled,
		.imm = q->loan,
		.has_imm = q->loan != 0,
		.loan = san_stream_recv_loan(s, q->loan),
	};
	return true;
}

bool
san_stream_peek(struct san_stream *s, bool recv, struct san_ulp_wc *wc)
{
	if (recv)
		return peek_recv(s, wc);
	if (s->done_head != s->done_tail) {
		*wc = s->dones[s->done_head % STREAM_DONES];
		return true;
	}
	return peek_send(s, wc);
}

void
san_stream_take(struct san_stream *s, bool recv)
{
	if (recv)
		s->rx.head++;
	else if (s->done_head != s->done_tail)
		s->done_head++;
	else
		s->tx.notified++;
}

const char *
san_stream_fault(const struct san_stream *s)
{
	return s->fault;
}

bool
san_stream_is_drained(const struct san_stream *s)
{
	return s->over || (s->tx.fin_sent && s->spool.nb_free == s->spool.nb);
}

void
san_stream_close(struct san_stream *s)
{
	s->is_closing = true;
}

bool
san_stream_has_ended(const struct san_stream *s)
{
	return (s->is_closing || s->rx.fin) && san_stream_is_drained(s);
}

bool
san_stream_orphan(struct san_stream *s)
{
	uint32_t at;
	const struct stream_rqe *first = san_stream_recv_first(s);
	bool clean = first == NULL || first->nb_io == 0;

	for (at = s->tx.head; at != s->tx.tail; at++) {
		const struct stream_sqe *e = san_stream_sqe(s, at);

		clean = clean && (e->done || e->copied || e->inlined || e->fin);
	}
	if (!clean || s->over || !s->hello_rcvd)
		return false;
	for (at = s->rx.cur; at != s->rx.tail; at++)
		san_stream_adv_end(s, san_stream_rqe(s, at));
	s->rx.head = s->rx.cur = s->rx.tail;
	while (s->rx.nb_unread > 0)
		san_stream_recv_drop(s);
	for (at = 1; at <= s->rpool.nb; at++)
		san_stream_recv_give_back(s, at);
	s->orphan = s->is_closing = true;
	s->nb_waits = 0;
	s->done_head = s->done_tail;
	s->tx.notified = s->tx.tail;
	return true;
}
