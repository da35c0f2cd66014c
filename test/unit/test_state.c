/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * State handed from one daemon to the next: everything that is put is got, over a socket, too, and
 * reading more than was put is an error. (SYS-2)
 */

#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shmq.h"
#include "state.h"

#define MANY (3 * SHMQ_FDS + 1) /* descriptors: more than two messages carry */
#define LONG 100000             /* bytes: more than the socket buffer of the daemon */

static int
count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* ---- put and get ---- */

UNIT_CASE(san_state_get__what_was_put)
{
	struct state st = {.failed = false};
	uint64_t number = 0x0123456789abcdef, got;
	char text[4], byte;

	san_state_put(&st, &number, sizeof(number));
	san_state_put(&st, "abc", 4);
	san_state_put(&st, "", 0);
	san_state_put(&st, "x", 1);
	assert_int_equal(st.len, 13);
	san_state_get(&st, &got, sizeof(got));
	san_state_get(&st, text, sizeof(text));
	san_state_get(&st, &byte, 0);
	san_state_get(&st, &byte, 1);
	assert_int_equal(got, number);
	assert_string_equal(text, "abc");
	assert_int_equal(byte, 'x');
	assert_false(st.failed);
	san_state_free(&st, false);
}

UNIT_CASE(san_state_get__too_much)
{
	const uint8_t zeros[8] = {0};
	struct state st = {.failed = false};
	uint8_t got[8];

	san_state_put(&st, "1234567", 7);
	memset(got, 0xff, sizeof(got));
	san_state_get(&st, got, sizeof(got));
	assert_true(st.failed);
	assert_memory_equal(got, zeros, sizeof(zeros));
	/* and no part of it is stored */
	memset(got, 0xff, sizeof(got));
	san_state_get(&st, got, 1);
	assert_int_equal(got[0], 0);
	san_state_free(&st, false);
}

UNIT_CASE(san_state_get_fd__each_once)
{
	struct state st = {.failed = false};
	int fds[2] = {eventfd(0, 0), eventfd(0, 0)};

	assert_int_equal(san_state_put_fd(&st, -1), -1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(san_state_put_fd(&st, fds[i]), i);
	assert_int_equal(san_state_get_fd(&st, -1), -1);
	assert_false(st.failed);
	assert_int_equal(san_state_get_fd(&st, 1), fds[1]);
	assert_int_equal(san_state_get_fd(&st, 1), -1);
	assert_int_equal(san_state_get_fd(&st, 2), -1);
	assert_true(st.failed);
	/* as if received: the descriptor that was not taken is closed */
	san_state_free(&st, true);
	assert_int_equal(close(fds[0]), -1);
	assert_int_equal(close(fds[1]), 0);
}

/* ---- over a socket ---- */

struct sending {
	struct state st;
	int sock, rc;
};

static void *
send_main(void *arg)
{
	struct sending *s = arg;

	s->rc = san_state_send(&s->st, s->sock);
	return NULL;
}

/* Bytes that contain their position, and descriptors that identify themselves. */
static void
fill(struct state *st, uint32_t len, int nb_fds)
{
	int fd;

	for (uint32_t i = 0; i < len; i++)
		san_state_put(st, &(uint8_t){(uint8_t)(i * 7)}, 1);
	for (int k = 0; k < nb_fds; k++) {
		fd = eventfd((unsigned int)k + 1, EFD_NONBLOCK);
		assert_true(fd >= 0);
		assert_int_equal(san_state_put_fd(st, fd), k);
	}
}

static void
empty(struct state *st)
{
	for (uint32_t i = 0; i < st->nb_fds; i++)
		close(st->fds[i]);
	san_state_free(st, false);
}

static void
pass(uint32_t len, int nb_fds)
{
	struct sending s = {.st = {.failed = false}};
	struct state got;
	pthread_t thread;
	int fd, socks[2];
	eventfd_t value;
	uint8_t byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	s.sock = socks[0];
	fill(&s.st, len, nb_fds);
	assert_int_equal(pthread_create(&thread, NULL, send_main, &s), 0);
	assert_int_equal(san_state_recv(&got, socks[1]), 0);
	pthread_join(thread, NULL);
	assert_int_equal(s.rc, 0);
	empty(&s.st);
	assert_int_equal(got.len, len);
	assert_int_equal(got.nb_fds, nb_fds);
	for (uint32_t i = 0; i < len; i++) {
		san_state_get(&got, &byte, 1);
		assert_int_equal(byte, (uint8_t)(i * 7));
	}
	/* half of them are left for san_state_free() */
	for (int k = 0; k < nb_fds; k += 2) {
		fd = san_state_get_fd(&got, k);
		assert_int_equal(eventfd_read(fd, &value), 0);
		assert_int_equal(value, k + 1);
		close(fd);
	}
	assert_false(got.failed);
	san_state_get(&got, &byte, 1);
	assert_true(got.failed);
	san_state_free(&got, true);
	close(socks[0]);
	close(socks[1]);
}

UNIT_CASE(san_state_recv__all_that_was_sent)
{
	int before = count_fds();

	pass(0, 0);
	pass(1, 0);
	pass(LONG, 1);
	pass(100, SHMQ_FDS);
	pass(LONG, MANY);
	assert_int_equal(count_fds(), before);
}

UNIT_CASE(san_state_send__failed)
{
	struct state st = {.failed = true};
	int socks[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	assert_int_equal(san_state_send(&st, socks[0]), -ENOMEM);
	st.failed = false;
	close(socks[1]);
	assert_int_equal(san_state_send(&st, socks[0]), -EPIPE);
	close(socks[0]);
}

/* As in state.c. */
struct first {
	uint64_t len;
	uint32_t nb_fds, pad;
};

/* Message *m*, with a file of *bytes* and *nb_fds* descriptors, is refused. */
static void
refuse(struct first m, size_t bytes, uint32_t nb_fds, int want)
{
	int socks[2], before = count_fds(), fd = memfd_create("state", 0);
	struct state got;
	char buf[8] = "1234567";

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	assert_int_equal(write(fd, buf, bytes), bytes);
	assert_int_equal(san_shmq_send(socks[0], &m, sizeof(m), bytes != 0 ? fd : -1, true), 0);
	for (uint32_t i = 0; i < nb_fds; i++)
		assert_int_equal(san_shmq_send(socks[0], "", 1, fd, true), 0);
	close(socks[0]);
	close(fd);
	assert_int_equal(san_state_recv(&got, socks[1]), want);
	san_state_free(&got, true);
	close(socks[1]);
	assert_int_equal(count_fds(), before);
}

UNIT_CASE(san_state_recv__cut_short)
{
	int socks[2];
	struct state got;

	refuse((struct first){.len = 7}, 7, 0, 0);
	refuse((struct first){.len = 7, .nb_fds = 2}, 7, 2, 0);
	refuse((struct first){.len = 7}, 0, 0, -EPROTO); /* no file */
	refuse((struct first){.len = 8}, 7, 0, -EPROTO); /* a short one */
	refuse((struct first){.len = 7, .nb_fds = 1}, 7, 0, -ENOTCONN);
	refuse((struct first){.len = 7, .nb_fds = 3}, 7, 2, -ENOTCONN);
	/* the other side closes before the first word, or sends another one */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	assert_int_equal(san_shmq_send(socks[0], "1234", 4, -1, true), 0);
	assert_int_equal(san_state_recv(&got, socks[1]), -EPROTO);
	san_state_free(&got, true);
	close(socks[0]);
	assert_int_equal(san_state_recv(&got, socks[1]), -ENOTCONN);
	san_state_free(&got, true);
	close(socks[1]);
}

/* A message without the descriptors it announces. */
UNIT_CASE(san_state_recv__no_descriptor)
{
	const struct first m = {.len = 0, .nb_fds = 1};
	int socks[2], before = count_fds(), fd = memfd_create("state", 0);
	struct state got;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	assert_int_equal(san_shmq_send(socks[0], &m, sizeof(m), fd, true), 0);
	assert_int_equal(san_shmq_send(socks[0], "", 1, -1, true), 0);
	assert_int_equal(san_state_recv(&got, socks[1]), -EPROTO);
	san_state_free(&got, true);
	close(socks[0]);
	close(socks[1]);
	close(fd);
	assert_int_equal(count_fds(), before);
}
