/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The state that one daemon gives the next: a sequence of bytes, and one of descriptors. The
 * receiver checks both. (SYS-2, SYS-8)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state {
	uint8_t *data;
	size_t len;
	size_t at; /**< position of the next read */
	int *fds;
	uint32_t nb_fds;
	bool failed;     /**< no memory, or the received state is wrong */
	const char *why; /**< the first error, or NULL */
};

void san_state_put(struct state *st, const void *p, size_t len);
/** Add a descriptor, which stays the caller's. Returns its index; -1 for -1. */
int san_state_put_fd(struct state *st, int fd);

/** Read the next *len* bytes; zeros if fewer are left. */
void san_state_get(struct state *st, void *p, size_t len);
/** Take the descriptor of an index. The caller owns it; -1 for -1. */
int san_state_get_fd(struct state *st, int place);
/** Record that the received state is wrong; *why* is a literal. Returns -EPROTO. */
int san_state_fail(struct state *st, const char *why);

/** Send through a SEQPACKET socket. 0, -ENOMEM, or -errno. */
int san_state_send(const struct state *st, int sock);
/**
 * Receive, and wait for it. 0, -ENOTCONN (the other end has closed), -EPROTO. Call
 * san_state_free() in either case.
 */
int san_state_recv(struct state *st, int sock);
/** If *received*, close the descriptors that were not taken. Added ones stay open. */
void san_state_free(struct state *st, bool received);
