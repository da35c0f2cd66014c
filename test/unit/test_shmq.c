/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages with their descriptors, and memory for two processes. (SYS-5) */

#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shmq.h"

#define SIZE 64

static int ends[2];

static int
nb_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
setup(void)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void
teardown(void)
{
	close(ends[0]);
	close(ends[1]);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

UNIT_CASE(san_shmq_recv__with_and_without_descriptor)
{
	char out[SIZE] = "hello", in[SIZE];
	int fd;

	assert_int_equal(san_shmq_recv(ends[1], in, SIZE, &fd, false), -EAGAIN);
	assert_int_equal(san_shmq_send(ends[0], out, SIZE, -1, true), 0);
	assert_int_equal(san_shmq_recv(ends[1], in, SIZE, &fd, false), 0);
	assert_string_equal(in, "hello");
	assert_int_equal(fd, -1);
	assert_int_equal(san_shmq_send(ends[0], out, SIZE, ends[0], true), 0);
	assert_int_equal(san_shmq_recv(ends[1], in, SIZE, &fd, false), 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(san_shmq_recv(ends[1], in, SIZE, &fd, true), -ENOTCONN);
}

/* *n* descriptors and *size* bytes, as our code never sends them. */
static void
send_raw(size_t size, int n)
{
	char buf[CMSG_SPACE(64 * sizeof(int))] = {0}, bytes[2 * SIZE] = {0};
	struct iovec iov = {.iov_base = bytes, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	const int any = STDERR_FILENO;
	struct cmsghdr *c;

	m.msg_control = buf;
	m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &any, sizeof(int));
	assert_int_equal(sendmsg(ends[0], &m, 0), size);
}

/* Descriptors that came with it are closed. */
UNIT_CASE(san_shmq_recv__something_else)
{
	static const struct {
		size_t size;
		int fds;
	} cases[] = {{SIZE, 2}, {SIZE, 4}, {SIZE, 5}, {SIZE, 64}, {SIZE - 1, 1}, {SIZE + 1, 1}};
	char in[SIZE];
	int before = nb_fds(), fd;

	UNIT_EACH(r, cases) {
		send_raw(r->size, r->fds);
		assert_int_equal(san_shmq_recv(ends[1], in, SIZE, &fd, true), -EPROTO);
		assert_int_equal(fd, -1);
		assert_int_equal(nb_fds(), before);
	}
}

/* Receive, and close the descriptors that came. */
static void
assert_received(int rc, uint32_t nb)
{
	int fds[SHMQ_FDS];
	char in[SIZE];
	uint32_t got;

	assert_int_equal(san_shmq_recv_fds(ends[1], in, SIZE, fds, &got, 1, false), rc);
	assert_int_equal(got, nb);
	while (got > 0)
		assert_int_equal(close(fds[--got]), 0);
}

static void
assert_peeked(int rc, bool with_fds)
{
	char in[SIZE];
	bool has_fds;

	assert_int_equal(san_shmq_peek(ends[1], in, SIZE, &has_fds, NULL), rc);
	assert_int_equal(has_fds, with_fds);
}

/* The caller owns all descriptors, also those of an invalid message. */
UNIT_CASE(san_shmq_recv_fds__all_of_them)
{
	int before = nb_fds();

	assert_received(-EAGAIN, 0);
	send_raw(SIZE, 1);
	assert_received(0, 1);
	send_raw(2 * SIZE, 60);
	assert_received(-EPROTO, 60);
	assert_int_equal(nb_fds(), before);
}

/* Descriptors of a peeked message stay in it. */
UNIT_CASE(san_shmq_peek__leaves_descriptors)
{
	int before = nb_fds();
	struct ucred from = {.pid = 0};
	char in[SIZE];
	bool has_fds;

	assert_int_equal(san_shmq_peek_init(ends[1]), 0);
	assert_peeked(-EAGAIN, false);
	send_raw(SIZE, 0);
	send_raw(SIZE, 1);
	send_raw(0, 64);
	send_raw(0, 0);
	send_raw(2 * SIZE, 0);
	assert_int_equal(san_shmq_peek(ends[1], in, SIZE, &has_fds, &from), 0);
	assert_false(has_fds);
	assert_int_equal(from.pid, getpid());
	assert_int_equal(from.uid, getuid());
	assert_false(san_shmq_is_root(&from));
	san_shmq_skip(ends[1]);
	assert_peeked(0, true);
	assert_int_equal(nb_fds(), before);
	assert_received(0, 1);
	assert_peeked(-EPROTO, true);
	assert_received(-EPROTO, 64);
	/* an empty message is not the end */
	assert_peeked(-EPROTO, false);
	san_shmq_skip(ends[1]);
	assert_peeked(-EPROTO, false);
	san_shmq_skip(ends[1]);
	san_shmq_hang_up(ends[1]);
	assert_peeked(-ENOTCONN, false);
	assert_int_equal(nb_fds(), before);
}

/* Send a message, and close with an unread answer. That causes an error ahead of the message. */
static void
peer_leaves(int nb_fds)
{
	const char answer[SIZE] = "";

	assert_int_equal(san_shmq_peek_init(ends[1]), 0);
	assert_int_equal(san_shmq_send(ends[1], answer, SIZE, -1, false), 0);
	send_raw(SIZE, nb_fds);
	close(ends[0]);
	ends[0] = open("/dev/null", O_RDWR); /* for the teardown */
}

UNIT_CASE(san_shmq_peek__peer_left)
{
	peer_leaves(1);
	assert_peeked(0, true);
}

UNIT_CASE(san_shmq_recv_fds__peer_left)
{
	peer_leaves(1);
	assert_received(0, 1);
}

UNIT_CASE(san_shmq_recv_bytes__peer_left)
{
	char in[SIZE];

	peer_leaves(0);
	assert_int_equal(san_shmq_recv_bytes(ends[1], in, SIZE, MSG_PEEK), SIZE);
}

UNIT_CASE(san_shmq_skip__peer_left)
{
	peer_leaves(0);
	san_shmq_skip(ends[1]);
	assert_peeked(-ENOTCONN, false);
}

/* Empty messages are not the end; after it nothing is received. */
UNIT_CASE(san_shmq_hang_up__all_that_came)
{
	int before = nb_fds();
	char in[SIZE];

	send_raw(0, 1);
	assert_int_equal(send(ends[0], in, 0, 0), 0);
	send_raw(0, 64);
	send_raw(SIZE, 1);
	san_shmq_hang_up(ends[1]);
	assert_int_equal(send(ends[0], in, SIZE, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_received(-EPROTO, 1);
	assert_received(-EPROTO, 0);
	assert_received(-EPROTO, 64);
	assert_received(0, 1);
	assert_received(-ENOTCONN, 0);
	assert_int_equal(nb_fds(), before);
}

UNIT_CASE(san_shmq_mem_create__sealed)
{
	void *mem, *again;
	const char *why;
	int fd;

	assert_int_equal(san_shmq_mem_create("test", 5000, &mem, &fd), 0);
	assert_int_equal(san_shmq_mem_check(fd, 0, 5000, &why), 0);
	((uint8_t *)mem)[4999] = 42;
	assert_int_equal(ftruncate(fd, 100), -1);
	assert_int_equal(ftruncate(fd, 100000), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(san_shmq_mem_map(fd, 0, 5000, 0, &again), 0);
	assert_int_equal(san_shmq_mem_populate(again, 5000), 0);
	assert_int_equal(((uint8_t *)again)[4999], 42);
	munmap(again, 5000);
	munmap(mem, 5000);
	close(fd);
}

static void
assert_refused(int fd, uint64_t offset, size_t bytes, const char *text)
{
	const char *why = "";

	assert_int_equal(san_shmq_mem_check(fd, offset, bytes, &why), -EINVAL);
	FAIL_IF(strstr(why, text) == NULL, "\"%s\", not \"%s\"", why, text);
}

UNIT_CASE(san_shmq_mem_check__of_others)
{
	int bare = memfd_create("bare", MFD_ALLOW_SEALING);
	int good = memfd_create("good", MFD_ALLOW_SEALING);
	int holes = memfd_create("holes", MFD_ALLOW_SEALING);
	int null = open("/dev/null", O_RDWR);
	const char *why;

	assert_int_equal(posix_fallocate(bare, 0, 8192), 0);
	assert_int_equal(posix_fallocate(good, 0, 8192), 0);
	assert_int_equal(ftruncate(holes, 8192), 0);
	assert_int_equal(fcntl(holes, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(fcntl(good, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_refused(-1, 0, 4096, "no memfd");
	assert_refused(null, 0, 4096, "no memfd");
	assert_refused(bare, 0, 4096, "F_SEAL_SHRINK");
	assert_refused(good, 0, 8193, "fewer bytes");
	assert_refused(good, 4096, 4097, "fewer bytes");
	assert_refused(good, UINT64_MAX, 4096, "fewer bytes");
	assert_refused(good, 4096, SIZE_MAX, "fewer bytes");
	assert_refused(holes, 0, 4096, "has holes");
	/* a large file may have holes elsewhere */
	assert_int_equal(pwrite(holes, &why, 1, 5000), 1);
	assert_int_equal(san_shmq_mem_check(holes, 4100, 4092, &why), 0);
	assert_refused(holes, 4095, 2, "has holes");
	/* it becomes read-only */
	assert_int_equal(fcntl(good, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_refused(good, 0, 4096, "can't be written to");
	close(bare);
	close(good);
	close(holes);
	close(null);
}
