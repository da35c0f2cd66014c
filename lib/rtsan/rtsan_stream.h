/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_STREAM_H
#define RTSAN_STREAM_H

/**
 * @file
 * Streams with calls like read(2) and write(2): connect, read, write, close; each of them waits.
 * Below is a queue pair with attr.stream (rtsan.h) and a completion queue of its own. (AFC-1)
 *
 * Buffers need not be registered. With the engine in this process they are used in place; with the
 * daemon they are copied through a region of the stream.
 *
 * Times are in milliseconds; -1: no limit, 0: only what is possible at once. A timeout is reported
 * as -EAGAIN, as for a socket with a timeout.
 *
 * Thread rule: any thread, several on one stream: a reader never waits for a writer. If the
 * application itself drives the port (poll=caller), one thread per context, as for all calls. While
 * an application uses these calls, its rtsan_event_poll() gets events of other queue pairs only.
 */

#include <sys/types.h>
#include <sys/uio.h>

#include "rtsan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rtsan_stream;

/**
 * Connect a stream to a listener for streams at *service* of *peer*. (AFC-2)
 *
 * @param peer
 *   IPv4 or IPv6 address, text.
 * @param attr
 *   May be NULL: all defaults.
 * @param stream
 *   Result; close it with rtsan_stream_close(), before the context.
 * @return
 *   0; an error of rtsan_qp_create() or rtsan_connect(); or
 *   - -ECONNREFUSED: no listener, or it refused, or is not for streams.
 *   - -EHOSTUNREACH: no answer.
 *   - -EAGAIN: not in time.
 *   - -EIO: the port has failed, or the daemon has ended.
 */
int rtsan_stream_connect(struct rtsan_ctx *ctx, const char *peer, uint64_t service,
			 const struct rtsan_stream_attr *attr, int timeout_ms,
			 struct rtsan_stream **stream);
/**
 * Accept the next stream requested at *listener*. Requests for other queue pairs are left to
 * rtsan_event_poll(). One thread at a time per listener. (AFC-2)
 *
 * @return
 *   0; an error of rtsan_qp_create() or rtsan_accept(); or
 *   - -ECONNABORTED: the peer gave up meanwhile; accept the next.
 *   - -EAGAIN: not in time.
 *   - -EIO: the port has failed, or the daemon has ended.
 */
int rtsan_stream_accept(struct rtsan_listener *listener, const struct rtsan_stream_attr *attr,
			int timeout_ms, struct rtsan_stream **stream);
/**
 * Close a stream: waits until written data is sent, and frees the stream. No other thread may use
 * it any more.
 *
 * @return
 *   0: it ended without an error. As with close(2), only an answer of the peer's application
 *   shows that it has read everything. Or
 *   - -EAGAIN: the peer did not receive everything in time. With attr.linger and the daemon, the
 *     stream continues without the application, if there is room for such streams;
 *     otherwise the data is lost, and the peer sees a reset.
 *   - -ETIMEDOUT: the peer no longer answers, or did not for a while before.
 *   - -ECONNRESET: the connection broke, for the reason in rtsan_error(). (A peer that aborts
 *     gives no reason, and cannot be distinguished from one that ends.)
 *   - -EIO: the port has failed, or the daemon has ended.
 */
int rtsan_stream_close(struct rtsan_stream *stream, int timeout_ms);
/**
 * Set how long read, write etc. wait; initially -1. On a timeout, memory that the peer may access
 * must be revoked first, which takes one more round trip. A write in several parts has this time
 * for each part.
 */
void rtsan_stream_set_timeout(struct rtsan_stream *stream, int timeout_ms);
/** Change an option during operation, see rtsan_stream_option(). 0, -EINVAL, or -EIO. */
int rtsan_stream_set_option(struct rtsan_stream *stream, enum rtsan_stream_option option,
			    uint32_t value);

/**
 * Read available data, as read(2): waits for at least one byte.
 *
 * @param flags
 *   enum rtsan_recv_flags.
 * @return
 *   Bytes, 0 at the end of the stream, or
 *   - -EAGAIN: no data in time, or at once with RTSAN_RECV_DONTWAIT.
 *   - -ECONNRESET: the connection ended before the stream did.
 *   - -ETIMEDOUT: likewise, because the peer no longer answers.
 *   - -EPROTO: likewise, because the peer violated the protocol of streams.
 *   - -EINVAL: unknown flags; -EIO: the port has failed, or the daemon has ended.
 */
ssize_t rtsan_stream_read(struct rtsan_stream *stream, void *buf, size_t len, uint8_t flags);
/**
 * Read into several buffers, in order, of which the first RTSAN_SGE_MAX are used. With the daemon a
 * call takes at most 256 KiB, also for one buffer and with any *flags*.
 */
ssize_t rtsan_stream_readv(struct rtsan_stream *stream, const struct iovec *iov, int nb_iov,
			   uint8_t flags);
/**
 * Read without a copy: the next bytes in place, in the stream's own memory. They stay valid until
 * they are returned or the stream is closed, even if the connection ends. Until then they count as
 * unread: the peer's writes wait when all of nb_store are lent. Only if the application contains
 * the engine (has_loan). (AFC-1, AFC-27)
 *
 * @param data
 *   Result, read-only; NULL at the end of the stream.
 * @param loan
 *   Result, for rtsan_stream_return(); nothing must be returned if *data* is NULL.
 * @param flags
 *   RTSAN_RECV_DONTWAIT, or 0.
 * @return
 *   As rtsan_stream_read(), or -EOPNOTSUPP: the provider has no loans.
 */
ssize_t rtsan_stream_borrow(struct rtsan_stream *stream, const void **data, uint32_t *loan,
			    uint8_t flags);
/**
 * Return a borrowed buffer, in any order. 0; -EINVAL: no such buffer is lent; -EOPNOTSUPP; or -EIO:
 * the port has failed.
 */
int rtsan_stream_return(struct rtsan_stream *stream, uint32_t loan);
/**
 * Write, as write(2): returns when the buffer may be reused, while the bytes are being sent. Two
 * applications wait forever if each writes more than both sides can store before it reads, as over
 * any stream.
 *
 * @return
 *   Bytes: all of them, or fewer after a timeout; or
 *   - -EAGAIN: none was sent in time.
 *   - -EPIPE: after rtsan_stream_shutdown_write().
 *   - -ENOBUFS: no memory or region for it: nothing was sent. (AFC-20)
 *   - -ECONNRESET, -ETIMEDOUT, -EPROTO, -EIO: see rtsan_stream_read().
 */
ssize_t rtsan_stream_write(struct rtsan_stream *stream, const void *buf, size_t len);
/** Write from several buffers, in order. -EINVAL: there are none at *iov*. */
ssize_t rtsan_stream_writev(struct rtsan_stream *stream, const struct iovec *iov, int nb_iov);
/**
 * Half-close, as shutdown(2): the peer reads the end after the written data; reading continues.
 * (AFC-1) Does not wait, neither for the peer nor for another thread's write. A write in progress
 * completes with the bytes that it has handed over; the rest is -EPIPE, as are all later writes.
 *
 * @return
 *   0, also the second time; -EIO: the port has failed.
 */
int rtsan_stream_shutdown_write(struct rtsan_stream *stream);
/** Write one urgent byte. 0, or an error of rtsan_stream_write(). (AFC-1) */
int rtsan_stream_send_urgent(struct rtsan_stream *stream, uint8_t byte);
/**
 * Take the urgent byte, out of order. Does not wait for an announcement. (AFC-1)
 *
 * @return
 *   0; -EAGAIN: announced and not arrived; -EINVAL: there is none; or an error of
 *   rtsan_stream_read().
 */
int rtsan_stream_recv_urgent(struct rtsan_stream *stream, uint8_t *byte);

/** One stream of rtsan_stream_poll(). */
struct rtsan_stream_poll {
	struct rtsan_stream *stream;
	uint32_t events;  /**< enum rtsan_stream_event: events to wait for */
	uint32_t revents; /**< result; RTSAN_STREAM_ENDED is always reported */
};
/**
 * Wait until one of several streams has a requested event, as poll(2). One thread at a time per
 * stream; others may read, write etc. meanwhile. (AFC-1, AFC-19)
 *
 * @return
 *   Number of streams with *revents*; 0: timeout; -EINVAL, -EINTR (a signal arrived), -EIO,
 *   -ENOMEM; or
 *   - -EMFILE, -ENFILE: a stream that is waited for needs two descriptors of the process.
 */
int rtsan_stream_poll(struct rtsan_stream_poll *streams, uint32_t nb, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* RTSAN_STREAM_H */
