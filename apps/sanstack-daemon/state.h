/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_STATE_H
#define DAEMON_STATE_H

/**
 * @file
 * What one daemon gives the one that takes over: bytes and descriptors, in the order in which
 * they were put. The receiver checks both. (SYS-2, SYS-8)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state {
	uint8_t *data;
	size_t len, room;
	size_t at; /**< what is got next */
	int *fds;
	uint32_t nb_fds, fds_room;
	bool failed;     /**< no memory; or what was got is not as it should be */
	const char *why; /**< what was wrong with it first; or NULL */
};

void state_put(struct state *st, const void *p, size_t len);
/** Its place among the descriptors, which stay the caller's; -1 for -1. */
int state_put_fd(struct state *st, int fd);

/** The next *len* bytes; zeros if there are not so many. */
void state_get(struct state *st, void *p, size_t len);
/** The descriptor of a place, the caller's from now on; -1 for -1. */
int state_get_fd(struct state *st, int place);
/** Bytes that were not got yet. */
size_t state_left(const struct state *st);
/** What was got is not as it should be: *why*, a literal. -EPROTO. */
int state_fail(struct state *st, const char *why);

/** Over a SEQPACKET socket. 0, -ENOMEM, or -errno. */
int state_send(const struct state *st, int sock);
/** Waits. 0, -ENOTCONN: the other end has closed, -EPROTO; state_free() in either case. */
int state_recv(struct state *st, int sock);
/** Descriptors that were received and not got are closed; what was put stays open. */
void state_free(struct state *st, bool received);

#endif /* DAEMON_STATE_H */
