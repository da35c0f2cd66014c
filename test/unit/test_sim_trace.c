/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unit.h"
#include "sim_trace.h"

#define FILE_MAX (1u << 20)

static char path[32];
static uint8_t content[FILE_MAX];

static void
setup(void)
{
	strcpy(path, "/tmp/test_sim_trace.XXXXXX");
	assert_int_equal(close(mkstemp(path)), 0);
}

static void
teardown(void)
{
	assert_int_equal(unlink(path), 0);
}

static size_t
read_back(void)
{
	FILE *f = fopen(path, "rb");
	size_t len;

	assert_non_null(f);
	len = fread(content, 1, sizeof(content), f);
	assert_int_equal(fclose(f), 0);
	return len;
}

static uint32_t
le32_at(size_t at)
{
	return (uint32_t)content[at] | (uint32_t)content[at + 1] << 8 |
		(uint32_t)content[at + 2] << 16 | (uint32_t)content[at + 3] << 24;
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

UNIT_CASE(san_sim_trace_open__no_such_folder)
{
	struct sim_trace *t = NULL;

	assert_int_equal(san_sim_trace_open("/nonexistent/folder/file", &t), -ENOENT);
	assert_null(t);
}

/* One interface, one packet each way; every byte as in the pcapng draft. */
static const uint8_t every_byte[] = {
	/* section header block */
	0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0,
	0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	4, 0, 6, 0, 's', 'a', 'n', 's', 'i', 'm', 0, 0,
	0, 0, 0, 0,
	44, 0, 0, 0,
	/* interface description block */
	1, 0, 0, 0, 40, 0, 0, 0,
	1, 0, 0, 0, 0, 0, 0, 0,
	2, 0, 2, 0, 'h', '0', 0, 0,
	9, 0, 1, 0, 9, 0, 0, 0,
	0, 0, 0, 0,
	40, 0, 0, 0,
	/* enhanced packet block: received, with a comment */
	6, 0, 0, 0, 60, 0, 0, 0,
	0, 0, 0, 0,
	0x04, 0x03, 0x02, 0x01, 0x08, 0x07, 0x06, 0x05,
	5, 0, 0, 0, 5, 0, 0, 0,
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0,
	2, 0, 4, 0, 1, 0, 0, 0,
	1, 0, 4, 0, 'l', 'o', 's', 't',
	0, 0, 0, 0,
	60, 0, 0, 0,
	/* enhanced packet block: sent, without one */
	6, 0, 0, 0, 48, 0, 0, 0,
	0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0,
	4, 0, 0, 0, 4, 0, 0, 0,
	0xa0, 0xa1, 0xa2, 0xa3,
	2, 0, 4, 0, 2, 0, 0, 0,
	0, 0, 0, 0,
	48, 0, 0, 0};

UNIT_CASE(san_sim_trace_packet__every_byte)
{
	static const uint8_t frame[] = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4};
	struct sim_trace *t;

	/* Equal calls give equal bytes; the second time over the first file. */
	for (int round = 0; round < 2; round++) {
		assert_int_equal(san_sim_trace_open(path, &t), 0);
		assert_int_equal(san_sim_trace_interface(t, "h0"), 0);
		san_sim_trace_packet(t, 0, 0x0102030405060708, false, frame, 5, "lost");
		san_sim_trace_packet(t, 0, 0, true, frame, 4, NULL);
		assert_int_equal(san_sim_trace_close(t), 0);
		assert_int_equal(read_back(), sizeof(every_byte));
		assert_memory_equal(content, every_byte, sizeof(every_byte));
	}
}

UNIT_CASE(san_sim_trace_interface__numbers)
{
	uint8_t frame[1] = {0};
	struct sim_trace *t;
	size_t at, len;
	char name[24];
	int nb = 0;

	assert_int_equal(san_sim_trace_open(path, &t), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "port %d", i);
		assert_int_equal(san_sim_trace_interface(t, name), i);
		san_sim_trace_packet(t, (uint32_t)i, 0, true, frame, sizeof(frame), NULL);
	}
	assert_int_equal(san_sim_trace_close(t), 0);
	len = read_back();
	for (at = 0; at < len; at += le32_at(at + 4)) {
		/* Both lengths of a block are equal. */
		assert_int_equal(le32_at(at + le32_at(at + 4) - 4), le32_at(at + 4));
		if (le32_at(at) == 6)
			assert_int_equal(le32_at(at + 8), nb++);
	}
	assert_int_equal(at, len);
	assert_int_equal(nb, 1000);
}

/* The last block of the file: an enhanced packet block of a frame of *len* bytes. */
static size_t
one_packet(uint32_t len, const char *comment)
{
	static const uint8_t frame[SIM_TRACE_SNAPLEN_MAX + 1];
	struct sim_trace *t;
	size_t file_len;

	assert_int_equal(san_sim_trace_open(path, &t), 0);
	assert_int_equal(san_sim_trace_interface(t, "other"), 0);
	assert_int_equal(san_sim_trace_interface(t, ""), 1);
	san_sim_trace_packet(t, 1, 0, true, frame, len, comment);
	assert_int_equal(san_sim_trace_close(t), 0);
	file_len = read_back();
	return file_len - le32_at(file_len - 4);
}

UNIT_CASE(san_sim_trace_packet__snaplen)
{
	static const struct {
		uint32_t len, kept;
	} table[] = {
		{0, 0},
		{1, 1},
		{1500, 1500},
		{SIM_TRACE_SNAPLEN_MAX, SIM_TRACE_SNAPLEN_MAX},
		{SIM_TRACE_SNAPLEN_MAX + 1, SIM_TRACE_SNAPLEN_MAX},
	};
	size_t at;

	UNIT_EACH(r, table) {
		at = one_packet(r->len, NULL);
		assert_int_equal(le32_at(at), 6);
		assert_int_equal(le32_at(at + 8), 1);
		assert_int_equal(le32_at(at + 20), r->kept);
		assert_int_equal(le32_at(at + 24), r->len);
		assert_int_equal(le32_at(at + 4), 44 + (r->kept + 3) / 4 * 4);
	}
}

UNIT_CASE(san_sim_trace_packet__comment_cut)
{
	char *comment = malloc(UINT16_MAX + 2);
	size_t at;

	assert_non_null(comment);
	memset(comment, 'x', UINT16_MAX + 1);
	comment[UINT16_MAX + 1] = '\0';
	at = one_packet(0, comment);
	assert_int_equal(le32_at(at), 6);
	assert_int_equal(le32_at(at + 4), 44 + 4 + 65536);
	assert_int_equal(le32_at(at + 36), 0xffff0001);
	/* An empty comment is a comment. */
	at = one_packet(0, "");
	assert_int_equal(le32_at(at + 4), 44 + 4);
	free(comment);
}

/* A full disk is detected at an early write, or only when the buffer is flushed. */
UNIT_CASE(san_sim_trace_close__disk_full)
{
	static const uint8_t frame[1500];
	static const int nb_packets[] = {0, 1, 1000};
	struct sim_trace *t;

	UNIT_EACH(nb_packet, nb_packets) {
		assert_int_equal(san_sim_trace_open("/dev/full", &t), 0);
		assert_int_equal(san_sim_trace_interface(t, "h0"), 0);
		for (int n = 0; n < *nb_packet; n++)
			san_sim_trace_packet(t, 0, 0, true, frame, sizeof(frame), NULL);
		errno = EINTR;
		assert_int_equal(san_sim_trace_close(t), -ENOSPC);
	}
}

static void
write_packets(struct sim_trace *t, uint32_t first, uint32_t n)
{
	uint32_t frame[375];

	memset(frame, 0, sizeof(frame));
	for (uint32_t i = first; i < first + n; i++) {
		frame[0] = i;
		san_sim_trace_packet(t, 0, i, true, frame, sizeof(frame), NULL);
	}
}

/* Later free space does not help: a file with a gap would be worse than a short one. */
UNIT_CASE(san_sim_trace_close__disk_full_for_a_while)
{
	enum {
		NB = 400,
		ROOM = 300000
	};
	static uint8_t whole[FILE_MAX];
	struct rlimit all, little;
	struct sim_trace *t;

	assert_int_equal(san_sim_trace_open(path, &t), 0);
	assert_int_equal(san_sim_trace_interface(t, "h0"), 0);
	write_packets(t, 0, NB);
	assert_int_equal(san_sim_trace_close(t), 0);
	assert_true(read_back() > ROOM);
	memcpy(whole, content, sizeof(whole));

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	little = (struct rlimit){.rlim_cur = ROOM, .rlim_max = all.rlim_max};
	assert_int_equal(san_sim_trace_open(path, &t), 0);
	assert_int_equal(san_sim_trace_interface(t, "h0"), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	write_packets(t, 0, NB);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	write_packets(t, NB, NB);
	assert_int_equal(san_sim_trace_close(t), -EFBIG);
	assert_int_equal(read_back(), ROOM);
	assert_memory_equal(content, whole, ROOM);
}
