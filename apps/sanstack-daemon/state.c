/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#include "shmq.h"
#include "state.h"

/** The first message, sent with a memfd of all bytes. Messages with the descriptors follow. */
struct state_msg {
	uint64_t len;
	uint32_t nb_fds;
	uint32_t pad;
};

#define BYTES_MAX ((uint64_t)1 << 30)
#define FDS_MAX   (1u << 20) /* default of the kernel's limit per process (fs.nr_open) */

/* ---- save ---- */

void
san_state_put(struct state *st, const void *p, size_t len)
{
	uint8_t *data = st->failed ? NULL : realloc(st->data, st->len + len);

	st->failed = data == NULL;
	if (st->failed)
		return;
	st->data = data;
	memcpy(&data[st->len], p, len);
	st->len += len;
}

int
san_state_put_fd(struct state *st, int fd)
{
	int *fds;

	if (fd < 0 || st->failed)
		return -1;
	fds = realloc(st->fds, (st->nb_fds + 1u) * sizeof(*fds));
	st->failed = fds == NULL;
	if (st->failed)
		return -1;
	st->fds = fds;
	fds[st->nb_fds] = fd;
	return (int)st->nb_fds++;
}

/* ---- load ---- */

void
san_state_get(struct state *st, void *p, size_t len)
{
	if (len > st->len - st->at) {
		san_state_fail(st, "too short");
		st->at = st->len;
		memset(p, 0, len);
		return;
	}
	memcpy(p, &st->data[st->at], len);
	st->at += len;
}

int
san_state_get_fd(struct state *st, int place)
{
	int fd;

	if (place < 0)
		return -1;
	fd = (uint32_t)place < st->nb_fds ? st->fds[place] : -1;
	if (fd < 0) {
		san_state_fail(st, "a descriptor that did not come, or came once");
		return -1;
	}
	st->fds[place] = -1;
	return fd;
}

int
san_state_fail(struct state *st, const char *why)
{
	if (!st->failed)
		st->why = why;
	st->failed = true;
	return -EPROTO;
}

/* ---- transfer ---- */

int
san_state_send(const struct state *st, int sock)
{
	struct state_msg msg = {.len = st->len, .nb_fds = st->nb_fds};
	const char byte = 0;
	uint32_t at, nb;
	int fd, rc;

	if (st->failed)
		return -ENOMEM;
	fd = memfd_create("sanstack-takeover", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write(fd, st->data, st->len) == (ssize_t)st->len ?
		san_shmq_send(sock, &msg, sizeof(msg), fd, true) :
		-ENOSPC;
	close(fd);
	for (at = 0; rc == 0 && at < st->nb_fds; at += nb) {
		nb = RTE_MIN(st->nb_fds - at, (uint32_t)SHMQ_FDS);
		rc = san_shmq_send_many(sock, &byte, 1, &st->fds[at], nb, true);
	}
	return rc;
}

/* Receive the next descriptors, *max* in all. */
static int
recv_some(struct state *st, int sock, uint32_t max)
{
	int fds[SHMQ_FDS], rc;
	uint32_t nb, i;
	char byte;

	rc = san_shmq_recv_fds(sock, &byte, 1, fds, &nb, SHMQ_FDS, true);
	if (rc == 0 && (nb == 0 || nb > max - st->nb_fds))
		rc = -EPROTO;
	for (i = 0; i < nb; i++) {
		if (rc == 0)
			st->fds[st->nb_fds++] = fds[i];
		else
			close(fds[i]);
	}
	return rc;
}

int
san_state_recv(struct state *st, int sock)
{
	struct state_msg msg;
	struct stat file;
	int fd, rc;

	*st = (struct state){.failed = false};
	rc = san_shmq_recv(sock, &msg, sizeof(msg), &fd, true);
	if (rc != 0)
		return rc;
	if (fd < 0 || fstat(fd, &file) != 0 || msg.len > (uint64_t)file.st_size ||
	    msg.len > BYTES_MAX || msg.nb_fds > FDS_MAX) {
		rc = -EPROTO;
	} else {
		st->len = msg.len;
		st->data = malloc(msg.len + 1);
		st->fds = malloc(((size_t)msg.nb_fds + 1) * sizeof(int));
		rc = st->data != NULL && st->fds != NULL ? 0 : -ENOMEM;
		if (rc == 0 && pread(fd, st->data, st->len, 0) != (ssize_t)st->len)
			rc = -EPROTO;
	}
	if (fd >= 0)
		close(fd);
	while (rc == 0 && st->nb_fds < msg.nb_fds)
		rc = recv_some(st, sock, msg.nb_fds);
	return rc;
}

void
san_state_free(struct state *st, bool received)
{
	uint32_t i;

	for (i = 0; received && i < st->nb_fds; i++)
		if (st->fds[i] >= 0)
			close(st->fds[i]);
	free(st->data);
	free(st->fds);
	*st = (struct state){.failed = false};
}
