/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Reads and writes of rtsan_stream.h. A call posts one request and waits for its completion. After
 * a timeout it cancels the request, and returns when the memory belongs to the caller again. All
 * completions of a stream are in one queue; one waiting thread takes them for all threads
 * (rtsan_wait.c).
 */

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "rtsan_priv.h"

#define AT_ONCE_MS 1 /* time in which a write that must not wait has to start */
#define ALL_EVENTS (RTSAN_STREAM_READABLE | RTSAN_STREAM_WRITABLE | RTSAN_STREAM_URGENT)

/* ---- completions ---- */

static bool
stream_io_is_done(const void *what)
{
	return !((const struct rtsan_stream_op *)what)->posted;
}

static int
stream_io_take_wc(void *of)
{
	struct rtsan_stream *s = of;
	struct rtsan_wc wc[8];
	int i, n;

	while ((n = rtsan_cq_poll(s->cq, wc, 8)) > 0) {
		for (i = 0; i < n; i++) {
			struct rtsan_stream_op *op =
				(struct rtsan_stream_op *)(uintptr_t)wc[i].wr_id;

			op->wc = wc[i];
			op->posted = false;
		}
	}
	/* A poll may wait for what was taken, or for another thread to check in our place. */
	if (s->is_polled)
		eventfd_write(s->doorbell, 1);
	s->is_polled = false;
	return 0;
}

/*
 * Sleep. Without a descriptor for that it polls, because the request is posted: a call that
 * returned now would leave the caller's buffer to the lcore.
 */
static int
stream_io_nap(void *of, int timeout_ms)
{
	int rc = rtsan_cq_wait(((struct rtsan_stream *)of)->cq, timeout_ms);

	if (rc != -EMFILE && rc != -ENFILE && rc != -ENOMEM)
		return rc;
	poll(NULL, 0, 1);
	return 0;
}

/* With the lock. */
static int
wait_op(struct rtsan_stream *s, const struct rtsan_stream_op *op, int64_t end_ms)
{
	static const struct rtsan_turn_ops ops = {
		.done = stream_io_is_done, .take = stream_io_take_wc, .sleep = stream_io_nap};

	return rtsan_turn_wait(&s->turn, &ops, s, op, end_ms);
}

/* The error of a status in terms of sockets. */
static int
rc_of(uint8_t status)
{
	static const int rcs[] = {
		[RTSAN_WC_RETRY_EXC] = -ETIMEDOUT,
		[RTSAN_WC_NO_BUFFERS] = -ENOBUFS,
		[RTSAN_WC_CANCELLED] = -EAGAIN,
		[RTSAN_WC_AGAIN] = -EAGAIN,
		[RTSAN_WC_SHUTDOWN] = -EPIPE,
		[RTSAN_WC_PROTOCOL] = -EPROTO,
		[RTSAN_WC_INVALID] = -EINVAL,
	};
	int rc = status < sizeof(rcs) / sizeof(rcs[0]) ? rcs[status] : 0;

	if (status == RTSAN_WC_SUCCESS)
		return 0;
	return rtsan_fail(rc != 0 ? rc : -ECONNRESET, "stream: %s",
			  rc == -EAGAIN ? "not in time" : rtsan_status_text(status));
}

/* Reserve *ctl*: a stream has one control request at a time. The caller posts it next. */
static void
begin_ctl(struct rtsan_stream *s)
{
	while (s->ctl_used) /* the thread that uses it also takes completions */
		pthread_cond_wait(&s->turn.seen, &s->turn.lock);
	s->ctl_used = true;
	s->ctl.posted = true;
}

/*
 * Wait for the control request. The lcore completes it soon, so there is no timeout. Its completion
 * is valid until the lock is released.
 */
static int
finish_ctl(struct rtsan_stream *s, int posted)
{
	int rc = posted == 0 ? wait_op(s, &s->ctl, -1) : posted;

	s->ctl_used = false;
	pthread_cond_broadcast(&s->turn.seen);
	return rc;
}

/* Cancel *op*, which is part of *work*, and wait until its memory belongs to the caller again. */
static int
stream_io_cancel_op(struct rtsan_stream *s, const struct rtsan_stream_op *op, uint32_t work)
{
	int rc;

	begin_ctl(s);
	rc = finish_ctl(s, rtsan_stream_cancel(s->qp, work, (uintptr_t)&s->ctl));
	return rc == 0 && op->posted ? wait_op(s, op, -1) : rc;
}

/* Wait for the request just posted. Returns bytes, or -errno. */
static ssize_t
finish_op(struct rtsan_stream *s, struct rtsan_stream_op *op, uint32_t work, int timeout_ms)
{
	int rc = wait_op(s, op, rtsan_turn_end_ms(timeout_ms));

	if (rc == -EAGAIN)
		rc = stream_io_cancel_op(s, op, work);
	if (rc != 0)
		return rc;
	if (op->wc.byte_len != 0)
		return op->wc.byte_len;
	return rc_of(op->wc.status);
}

/* ---- memory that the provider can use: the caller's, or a region for copies ---- */

/* Fill the elements with *iov* after the first *skip* bytes; returns their number. */
static uint8_t
stream_io_parts(const struct rtsan_stream *s, const struct iovec *iov, int nb_iov, size_t skip,
		struct rtsan_sge sge[RTSAN_SGE_MAX])
{
	size_t room = s->mr != NULL ? rtsan_mr_length(s->mr) / 2 : RTSAN_LENGTH_MAX, len;
	uint8_t nb = 0;
	int i;

	for (i = 0; i < nb_iov && nb < RTSAN_SGE_MAX && room > 0; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		len = iov[i].iov_len - skip < room ? iov[i].iov_len - skip : room;
		sge[nb++] = (struct rtsan_sge){
			.addr = (uint8_t *)iov[i].iov_base + skip,
			.length = (uint32_t)len,
		};
		skip = 0;
		room -= len;
	}
	return nb;
}

/* The element of the region, in half 0 or 1, that stands for *nb* others. */
static struct rtsan_sge
stream_io_copy_of(const struct rtsan_stream *s, int half, const struct rtsan_sge *sge, uint8_t nb)
{
	struct rtsan_sge copy = {
		.addr = (uint8_t *)rtsan_mr_addr(s->mr) + (half ? rtsan_mr_length(s->mr) / 2 : 0),
		.lkey = rtsan_mr_lkey(s->mr),
	};

	while (nb > 0)
		copy.length += sge[--nb].length;
	return copy;
}

/* ---- reading ---- */

static ssize_t
read_once(struct rtsan_stream *s, struct rtsan_recv_wr *wr)
{
	int rc, timeout_ms = atomic_load(&s->timeout_ms);
	SAN_LOCKED(&s->turn.lock);

	if (timeout_ms == 0)
		wr->flags |= RTSAN_RECV_DONTWAIT;
	if ((wr->flags & RTSAN_RECV_DONTWAIT) != 0)
		timeout_ms = -1; /* completes at once */
	s->read.posted = true;
	rc = rtsan_post_recv(s->qp, wr, 1);
	return rc == 1 ? finish_op(s, &s->read, RTSAN_STREAM_RECVS, timeout_ms) : rc;
}

ssize_t
rtsan_stream_readv(struct rtsan_stream *s, const struct iovec *iov, int nb_iov, uint8_t flags)
{
	struct rtsan_sge sge[RTSAN_SGE_MAX], copy;
	struct rtsan_recv_wr wr = {.wr_id = (uintptr_t)&s->read, .sge = sge, .flags = flags};
	const uint8_t *from;
	size_t len, left;
	ssize_t n;
	int i;

	if (nb_iov < 0 || (nb_iov != 0 && iov == NULL))
		return rtsan_fail(-EINVAL, "stream: %d buffers", nb_iov);
	SAN_LOCKED(&s->rd);
	wr.nb_sge = stream_io_parts(s, iov, nb_iov, 0, sge);
	if (wr.nb_sge != 0 && s->mr != NULL) {
		copy = stream_io_copy_of(s, 0, sge, wr.nb_sge);
		wr.sge = &copy;
		wr.nb_sge = 1;
	}
	n = wr.nb_sge != 0 ? read_once(s, &wr) : 0;
	if (n > 0 && s->mr != NULL) {
		from = copy.addr;
		for (i = 0, left = (size_t)n; left > 0; i++) {
			len = sge[i].length < left ? sge[i].length : left;
			memcpy(sge[i].addr, from, len);
			from += len;
			left -= len;
		}
	}
	return n;
}

ssize_t
rtsan_stream_read(struct rtsan_stream *s, void *buf, size_t len, uint8_t flags)
{
	const struct iovec iov = {.iov_base = buf, .iov_len = len};

	return rtsan_stream_readv(s, &iov, 1, flags);
}

ssize_t
rtsan_stream_borrow(struct rtsan_stream *s, const void **data, uint32_t *loan, uint8_t flags)
{
	struct rtsan_recv_wr wr = {
		.wr_id = (uintptr_t)&s->read,
		.flags = flags | RTSAN_RECV_LOAN,
	};
	ssize_t n;
	SAN_LOCKED(&s->rd);

	n = read_once(s, &wr);
	*data = n > 0 ? s->read.wc.loan : NULL;
	*loan = n > 0 ? s->read.wc.imm : 0;
	return n;
}

/* ---- writing ---- */

static ssize_t
write_once(struct rtsan_stream *s, const struct rtsan_send_wr *wr)
{
	int rc, timeout_ms = atomic_load(&s->timeout_ms);
	SAN_LOCKED(&s->turn.lock);

	s->write.posted = true;
	/* behind the end a write would wait, perhaps for the peer */
	rc = s->is_shut ? rc_of(RTSAN_WC_SHUTDOWN) : rtsan_post_send(s->qp, wr, 1);
	if (rc != 1)
		return rc;
	return finish_op(s, &s->write, RTSAN_STREAM_SENDS,
			 timeout_ms == 0 ? AT_ONCE_MS : timeout_ms);
}

ssize_t
rtsan_stream_writev(struct rtsan_stream *s, const struct iovec *iov, int nb_iov)
{
	struct rtsan_sge sge[RTSAN_SGE_MAX], copy;
	struct rtsan_send_wr wr = {
		.wr_id = (uintptr_t)&s->write,
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED,
		.sge = sge,
	};
	size_t done = 0;
	uint8_t *to, i;
	ssize_t n;

	if (nb_iov < 0 || (nb_iov != 0 && iov == NULL))
		return rtsan_fail(-EINVAL, "stream: %d buffers", nb_iov);
	SAN_LOCKED(&s->wr);
	while ((wr.nb_sge = stream_io_parts(s, iov, nb_iov, done, sge)) != 0) {
		if (s->mr != NULL) {
			copy = stream_io_copy_of(s, 1, sge, wr.nb_sge);
			to = copy.addr;
			for (i = 0; i < wr.nb_sge; to += sge[i++].length)
				memcpy(to, sge[i].addr, sge[i].length);
			wr.sge = &copy;
			wr.nb_sge = 1;
		}
		n = write_once(s, &wr);
		if (n < 0)
			return done != 0 ? (ssize_t)done : n;
		done += (size_t)n;
		if (s->write.wc.status != RTSAN_WC_SUCCESS)
			break; /* cancelled after some bytes were sent */
	}
	return (ssize_t)done;
}

ssize_t
rtsan_stream_write(struct rtsan_stream *s, const void *buf, size_t len)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

	return rtsan_stream_writev(s, &iov, 1);
}

int
rtsan_stream_send_urgent(struct rtsan_stream *s, uint8_t byte)
{
	struct rtsan_sge sge = {.addr = &byte, .length = sizeof(byte)};
	const struct rtsan_send_wr wr = {
		.wr_id = (uintptr_t)&s->write,
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED | RTSAN_WR_INLINE | RTSAN_WR_OOB,
		.sge = &sge,
		.nb_sge = 1,
	};
	ssize_t n;
	SAN_LOCKED(&s->wr);

	n = write_once(s, &wr);
	return n < 0 ? (int)n : 0;
}

/* ---- requests besides the data ---- */

/* Wait for the answer. *posted*: result of posting the request. */
static int
stream_io_finish_ask(struct rtsan_stream *s, int posted)
{
	int rc = finish_ctl(s, posted);

	return rc == 0 ? rc_of(s->ctl.wc.status) : rc;
}

int
rtsan_stream_shutdown_write(struct rtsan_stream *s)
{
	int rc = 0;

	/* do not wait: the peer decides when it completes */
	pthread_mutex_lock(&s->turn.lock);
	if (!s->is_shut) {
		s->end.posted = true;
		rc = rtsan_stream_shutdown(s->qp, (uintptr_t)&s->end);
		s->is_shut = rc == 0;
	}
	pthread_mutex_unlock(&s->turn.lock);
	/* an application that polls the engine itself may not poll again for some time */
	if (rc == 0 && rtsan_progress(s->ctx) < 0)
		return rtsan_fail(-EIO, "stream: the port has failed");
	return rc;
}

int
rtsan_stream_recv_urgent(struct rtsan_stream *s, uint8_t *byte)
{
	int rc;
	SAN_LOCKED(&s->turn.lock);

	begin_ctl(s);
	rc = stream_io_finish_ask(s, rtsan_stream_urgent(s->qp, (uintptr_t)&s->ctl));
	if (rc == 0)
		*byte = (uint8_t)s->ctl.wc.imm;
	return rc;
}

int
rtsan_stream_return(struct rtsan_stream *s, uint32_t loan)
{
	SAN_LOCKED(&s->turn.lock);

	begin_ctl(s);
	return stream_io_finish_ask(s, rtsan_stream_give_back(s->qp, loan, (uintptr_t)&s->ctl));
}

int
rtsan_stream_set_option(struct rtsan_stream *s, enum rtsan_stream_option option, uint32_t value)
{
	SAN_LOCKED(&s->turn.lock);

	begin_ctl(s);
	return stream_io_finish_ask(
		s, rtsan_stream_option(s->qp, option, value, (uintptr_t)&s->ctl));
}

/* ---- poll ---- */

/* Post one wait per stream, for the requested events. With the lock. */
static int
begin_wait(struct rtsan_stream *s, uint32_t events)
{
	int rc;

	/* A wait of an earlier call may still be posted: use it, or cancel it. */
	if (s->wait.posted && s->wait_events == events)
		return 0;
	rc = s->wait.posted ? stream_io_cancel_op(s, &s->wait, RTSAN_STREAM_WAITS) : 0;
	if (rc != 0)
		return rc;
	s->wait.posted = true;
	s->wait_events = events;
	rc = rtsan_stream_wait(s->qp, events, (uintptr_t)&s->wait);
	if (rc != 0)
		s->wait.posted = false;
	return rc;
}

/* Requested events that are true; 0: none yet. With the lock. */
static uint32_t
stream_io_happened(const struct rtsan_stream *s)
{
	return s->wait.posted ? 0 : s->wait.wc.imm;
}

/* Set revents of all streams. If another thread takes completions, use those it has taken. */
static int
stream_io_set_revents(struct rtsan_stream_poll *p, uint32_t nb)
{
	uint32_t i;
	int ready = 0;

	for (i = 0; i < nb; i++) {
		struct rtsan_stream *s = p[i].stream;
		SAN_LOCKED(&s->turn.lock);

		s->is_polled = false;
		if (!s->turn.busy)
			stream_io_take_wc(s);
		pthread_cond_broadcast(&s->turn.seen);
		p[i].revents = stream_io_happened(s);
		ready += p[i].revents != 0;
	}
	return ready;
}

/*
 * Prepare the wake-up: by the queue, unless another thread waits there, and by the thread that
 * takes completions. 0; 1: an event is true; -errno. With the lock.
 */
static int
begin_sleep(struct rtsan_stream *s, struct pollfd fds[2])
{
	bool is_shared = s->turn.busy;
	int rc = is_shared ? 0 : rtsan_cq_arm(s->cq);

	if (rc != 0)
		return rc;
	if (stream_io_happened(s) != 0)
		return 1;
	if (s->doorbell < 0)
		s->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->doorbell < 0)
		return -errno;
	fds[0] = (struct pollfd){.fd = is_shared ? -1 : rtsan_cq_fd(s->cq), .events = POLLIN};
	fds[1] = (struct pollfd){.fd = s->doorbell, .events = POLLIN};
	s->is_polled = true;
	return 0;
}

/* Sleep until one of them may have an event; *fds*: two each. 0; 1: one has; -errno. */
static int
sleep_all(const struct rtsan_stream_poll *p, struct pollfd *fds, uint32_t nb, int timeout_ms)
{
	eventfd_t count;
	uint32_t i;
	int rc;

	for (i = 0; i < nb; i++) {
		pthread_mutex_lock(&p[i].stream->turn.lock);
		rc = begin_sleep(p[i].stream, &fds[2 * i]);
		pthread_mutex_unlock(&p[i].stream->turn.lock);
		if (rc == -ENOTSUP) { /* this thread polls the engine */
			sched_yield();
			return rtsan_progress(p[i].stream->ctx) < 0 ? -EIO : 0;
		}
		if (rc != 0)
			return rc;
	}
	if (poll(fds, 2 * nb, timeout_ms) < 0)
		return -errno;
	for (i = 0; i < nb; i++)
		if (fds[2 * i + 1].revents != 0)
			eventfd_read(fds[2 * i + 1].fd, &count);
	return 0;
}

int
rtsan_stream_poll(struct rtsan_stream_poll *p, uint32_t nb, int timeout_ms)
{
	int64_t end_ms = rtsan_turn_end_ms(timeout_ms);
	struct pollfd *fds;
	uint32_t i;
	int left, rc = 0;

	if (nb == 0 || p == NULL || nb > INT_MAX / (2 * sizeof(*fds)))
		return rtsan_fail(-EINVAL, "stream: poll of %u streams", nb);
	for (i = 0; i < nb; i++)
		if ((p[i].events & ~ALL_EVENTS) != 0)
			return rtsan_fail(-EINVAL, "stream: events 0x%x", p[i].events);
	fds = malloc(2 * nb * sizeof(*fds));
	if (fds == NULL)
		return rtsan_fail(-ENOMEM, "stream: no memory");
	for (i = 0; i < nb && rc == 0; i++) {
		struct rtsan_stream *s = p[i].stream;
		SAN_LOCKED(&s->turn.lock);

		rc = begin_wait(s, p[i].events);
	}
	while (rc >= 0) {
		rc = stream_io_set_revents(p, nb);
		left = rtsan_turn_left_ms(end_ms);
		if (rc != 0 || left == 0)
			break;
		rc = sleep_all(p, fds, nb, left);
		if (rc < 0)
			rtsan_fail(rc, "stream: poll: %s", strerror(-rc));
	}
	free(fds);
	return rc;
}
