/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_STREAM_H
#define RTSAN_STREAM_H

/**
 * @file
 * Streams for who wants read(2) and write(2): connect, read, write, close, each of which waits.
 * Below it is a queue pair with attr.stream (rtsan.h) and a completion queue of its own. (AFC-1)
 *
 * Buffers need not be registered. With the engine in this process they are used where they are;
 * with the daemon they are copied through a region of the stream's.
 *
 * Times are in milliseconds; -1 is for ever, 0: do what goes at once. What did not go in time is
 * -EAGAIN, as of a socket with a timeout.
 *
 * Thread rule: any thread, several on one stream: a reader never waits for a writer. Where the
 * program itself drives the port (poll=caller), one thread per context, as everywhere. While a
 * program uses these calls its rtsan_event_poll() gets events of other queue pairs only.
 */

#include <sys/types.h>
#include <sys/uio.h>

#include "rtsan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rtsan_stream;

/**
 * Connect a stream to who accepts streams at *service* of *peer*. (AFC-2)
 *
 * @param peer
 *   IPv4 or IPv6 address, text.
 * @param attr
 *   May be NULL: all defaults.
 * @param stream
 *   Result; close it with rtsan_stream_close(), before the context.
 * @return
 *   0; what rtsan_qp_create() or rtsan_connect() say; or
 *   - -ECONNREFUSED: nobody listens there, it was refused, or is for no streams.
 *   - -EHOSTUNREACH: nobody answers.
 *   - -EAGAIN: not in time.
 *   - -EIO: the port, or the daemon, is gone.
 */
int rtsan_stream_connect(struct rtsan_ctx *ctx, const char *peer, uint64_t service,
			 const struct rtsan_stream_attr *attr, int timeout_ms,
			 struct rtsan_stream **stream);
/**
 * Accept the next stream that somebody asks for at *listener*. Requests for other queue pairs are
 * left to rtsan_event_poll(). One thread at a time per listener. (AFC-2)
 *
 * @return
 *   0; what rtsan_qp_create() or rtsan_accept() say; or
 *   - -ECONNABORTED: who asked has gone meanwhile; accept the next.
 *   - -EAGAIN: not in time.
 *   - -EIO: the port, or the daemon, is gone.
 */
int rtsan_stream_accept(struct rtsan_listener *listener, const struct rtsan_stream_attr *attr,
			int timeout_ms, struct rtsan_stream **stream);
/**
 * Close: what was written still goes, for which it waits; then the stream is no more. No other
 * thread may use it any more.
 *
 * @return
 *   0: it ended without an error. As with close(2), whether the peer's program has read all of it
 *   only an answer of its can say. Or
 *   - -EAGAIN: not all was with the peer in time. With attr.linger and the daemon it goes on
 *     without the program, if there is room for such streams; else it is lost, and the peer
 *     sees a reset.
 *   - -ETIMEDOUT: the peer does not answer any more, or has not for a while before.
 *   - -ECONNRESET: the connection was broken, for the reason that rtsan_error() has. (A peer
 *     that aborts gives none, and is not told from one that ends.)
 *   - -EIO: the port, or the daemon, is gone.
 */
int rtsan_stream_close(struct rtsan_stream *stream, int timeout_ms);
/**
 * How long read, write and so on wait; -1 until this is called. Memory that the peer may touch has
 * to come back first, which takes a round trip more; a write in parts has that time for each part.
 */
void rtsan_stream_set_timeout(struct rtsan_stream *stream, int timeout_ms);
/** Change an option while it works, see rtsan_stream_option(). 0, -EINVAL, or -EIO. */
int rtsan_stream_set_option(struct rtsan_stream *stream, enum rtsan_stream_option option,
			    uint32_t value);

/**
 * Read what is there, as read(2): waits for one byte at least.
 *
 * @param flags
 *   enum rtsan_recv_flags.
 * @return
 *   Bytes, 0 at the end of the stream, or
 *   - -EAGAIN: nothing in time, or at once with RTSAN_RECV_DONTWAIT.
 *   - -ECONNRESET: the connection ended before the stream did.
 *   - -ETIMEDOUT: so it did because the peer does not answer any more.
 *   - -EPROTO: ... or broke the rules of streams.
 *   - -EINVAL: unknown flags; -EIO: the port, or the daemon, is gone.
 */
ssize_t rtsan_stream_read(struct rtsan_stream *stream, void *buf, size_t len, uint8_t flags);
/**
 * Likewise into several buffers, in order, of which the first RTSAN_SGE_MAX are used. With the
 * daemon a call takes at most 256 KiB, also of one buffer and whatever *flags* say.
 */
ssize_t rtsan_stream_readv(struct rtsan_stream *stream, const struct iovec *iov, int nb_iov,
			   uint8_t flags);
/**
 * Read without a copy: the next bytes where they are, in the stream's own memory. They keep their
 * place until they are returned or the stream is closed, whatever becomes of the connection, and
 * count as unread until then: the peer's writes wait when all of nb_store are lent. Only
 * where the program has the engine in it (has_loan). (AFC-1, AFC-27)
 *
 * @param data
 *   Result, to be read only; NULL at the end of the stream.
 * @param loan
 *   Result, for rtsan_stream_return(); nothing is to be returned where *data* is NULL.
 * @param flags
 *   RTSAN_RECV_DONTWAIT, or 0.
 * @return
 *   What rtsan_stream_read() says, or -EOPNOTSUPP: the provider has no loans.
 */
ssize_t rtsan_stream_borrow(struct rtsan_stream *stream, const void **data, uint32_t *loan,
			    uint8_t flags);
/**
 * Return what was borrowed, in any order. 0; -EINVAL: none of that name is lent; -EOPNOTSUPP; or
 * -EIO: the port is gone.
 */
int rtsan_stream_return(struct rtsan_stream *stream, uint32_t loan);
/**
 * Write, as write(2): returns when the bytes are on their way and the buffer may be used again.
 * Who writes more than both sides store, to a program that does the same and reads later, waits
 * for ever, as over any stream.
 *
 * @return
 *   Bytes: all of them, but fewer if time is over; or
 *   - -EAGAIN: none went in time.
 *   - -EPIPE: behind rtsan_stream_shutdown_write().
 *   - -ENOBUFS: no memory or region for it: nothing was sent. (AFC-20)
 *   - -ECONNRESET, -ETIMEDOUT, -EPROTO, -EIO: see rtsan_stream_read().
 */
ssize_t rtsan_stream_write(struct rtsan_stream *stream, const void *buf, size_t len);
/** Likewise from several buffers, in order. -EINVAL: there are none at *iov*. */
ssize_t rtsan_stream_writev(struct rtsan_stream *stream, const struct iovec *iov, int nb_iov);
/**
 * Half-close, as shutdown(2): the peer reads the end behind what was written; reading goes on.
 * (AFC-1) Does not wait: neither for the peer, nor for another thread's write. A write that is
 * under way goes on with what it has handed over, and what it has not yet is -EPIPE, as is all
 * that comes later.
 *
 * @return
 *   0, also the second time; -EIO: the port is gone.
 */
int rtsan_stream_shutdown_write(struct rtsan_stream *stream);
/** Write one byte that is urgent. 0, or what rtsan_stream_write() says. (AFC-1) */
int rtsan_stream_send_urgent(struct rtsan_stream *stream, uint8_t byte);
/**
 * Take the urgent byte, out of order. Does not wait for one to be announced. (AFC-1)
 *
 * @return
 *   0; -EAGAIN: announced and not here yet; -EINVAL: there is none; or what
 *   rtsan_stream_read() says.
 */
int rtsan_stream_recv_urgent(struct rtsan_stream *stream, uint8_t *byte);

/** One stream of rtsan_stream_poll(). */
struct rtsan_stream_poll {
	struct rtsan_stream *stream;
	uint32_t events;  /**< enum rtsan_stream_event: what is waited for */
	uint32_t revents; /**< result; RTSAN_STREAM_ENDED also comes unasked */
};
/**
 * Wait until one of several streams is as wanted, as poll(2). One thread at a time per stream;
 * others may read, write and so on meanwhile. (AFC-1, AFC-19)
 *
 * @return
 *   Streams with *revents*; 0: time is over; -EINVAL, -EINTR (a signal came), -EIO, -ENOMEM; or
 *   - -EMFILE, -ENFILE: a stream that is waited for needs two descriptors of the process.
 */
int rtsan_stream_poll(struct rtsan_stream_poll *streams, uint32_t nb, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* RTSAN_STREAM_H */
