/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The mode in which the data of an application is sent: discovery, and the three modes that it
 * leads to. The sender decides, by the buffers that the peer's application posts for the rest of
 * large sends (AFC-22). The receiver learns the mode from every header. Sends below the threshold
 * are messages in each mode and never count (AFC-6).
 *
 * mode           a large send without a known buffer    left by
 * discovery      initial portion + notice, then waits   `learn` transfers of one class
 * small receive  all of it in messages (AFC-9)          a large buffer (REDISCOVER)
 * large receive  waits for an advertisement             another class, a small buffer, a waiting
 *                (READ_ALWAYS: offers)                  application, nothing posted for `scans`
 * small-then-    initial portion + offer                another class, nothing posted for `scans`
 *   large        (without remote read: + notice)
 */

#include "stream_priv.h"

/* How a large send starts, by mode. */
static const uint8_t ways[SAN_SM_MODES] = {
	[SAN_SM_DISCOVERY] = STREAM_WAY_NOTICED,
	[SAN_SM_SMALL_RECV] = STREAM_WAY_MESSAGES,
	[SAN_SM_LARGE_RECV] = STREAM_WAY_NEW,
	[SAN_SM_SMALL_LARGE] = STREAM_WAY_OFFERED,
};

static void
stream_mode_set(struct san_stream *s, uint8_t mode, uint8_t why, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;

	if (s->conf.mode != SAN_STREAM_ADAPTIVE || mode == tx->mode)
		return;
	s->change[s->nb_change++ % SAN_STREAM_EVENTS] =
		(struct san_stream_change){now_ns, .from = tx->mode, .to = mode, .why = why};
	tx->mode = mode;
	tx->small_posted = false;
}

void
san_stream_mode_learn(struct san_stream *s, uint8_t cls, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;

	if (cls != tx->cls)
		tx->nb_cls = 0;
	tx->cls = cls;
	if (tx->nb_cls < UINT8_MAX)
		tx->nb_cls++;
	if (tx->mode == SAN_SM_DISCOVERY) {
		if (tx->nb_cls >= s->conf.learn)
			stream_mode_set(s, cls, SAN_STREAM_WHY_LEARNT, now_ns);
	} else if (cls != tx->mode) {
		stream_mode_set(s, SAN_SM_DISCOVERY, SAN_STREAM_WHY_CLASS, now_ns);
	}
}

void
san_stream_mode_leave(struct san_stream *s, uint8_t why, uint64_t now_ns)
{
	s->tx.nb_cls = 0;
	stream_mode_set(s, SAN_SM_DISCOVERY, why, now_ns);
}

uint8_t
san_stream_mode_way(struct san_stream *s, uint64_t now_ns)
{
	uint8_t way;

	/* The application is known not to post a buffer: do not wait for one (AFC-22). */
	if (s->tx.mode == SAN_SM_LARGE_RECV && s->tx.small_posted)
		san_stream_mode_leave(s, SAN_STREAM_WHY_SMALL, now_ns);
	way = ways[s->tx.mode];
	if (way == STREAM_WAY_NEW && s->tx.small_posted)
		way = STREAM_WAY_NOTICED; /* large receive mode was set by option */
	if (way == STREAM_WAY_NEW && s->conf.read == RTSAN_STREAM_READ_ALWAYS)
		way = STREAM_WAY_OFFERED;
	if (way == STREAM_WAY_OFFERED &&
	    (!s->peer_can_read || s->conf.read == RTSAN_STREAM_READ_NEVER))
		way = s->tx.mode == SAN_SM_LARGE_RECV ? STREAM_WAY_NEW : STREAM_WAY_NOTICED;
	return way;
}

/* ---- order in which the application receives and sends (AFC-11) ---- */

enum {
	SEEN_NOTHING = 0,
	SEEN_RECV,      /* a large receive */
	SEEN_RECV_SEND, /* then a small send */
	SEEN_RECV_DATA, /* or then data */
	SEEN_STATES
};

static const uint8_t seen[SEEN_STATES][STREAM_SEES] = {
	/* after a large receive, a small send, and data for a large receive */
	[SEEN_NOTHING] = {SEEN_RECV, SEEN_NOTHING, SEEN_NOTHING},
	[SEEN_RECV] = {SEEN_RECV, SEEN_RECV_SEND, SEEN_RECV_DATA},
	[SEEN_RECV_SEND] = {SEEN_RECV_SEND, SEEN_RECV_SEND, SEEN_NOTHING},
	[SEEN_RECV_DATA] = {SEEN_RECV, SEEN_NOTHING, SEEN_RECV_DATA},
};

void
san_stream_mode_see(struct san_stream *s, enum stream_see what)
{
	struct stream_rx *rx = &s->rx;

	if (rx->pattern_seen == SEEN_RECV_SEND && what == STREAM_SEE_DATA)
		rx->pattern = STREAM_PATTERN_RECV_SEND;
	if (rx->pattern_seen == SEEN_RECV_DATA && what == STREAM_SEE_SEND)
		rx->pattern = STREAM_PATTERN_SEND_RECV;
	rx->pattern_seen = seen[rx->pattern_seen][what];
}
