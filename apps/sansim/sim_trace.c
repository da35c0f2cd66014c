/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * pcapng (draft-ietf-opsawg-pcapng): one section, an interface description block per interface, an
 * enhanced packet block per packet. A block is built in memory, byte by byte in little endian, so
 * that nothing depends on the machine.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "san_assert.h"
#include "sim_trace.h"

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 6,
};
enum {
	OPT_END = 0,
	OPT_COMMENT = 1,
	OPT_SECTION_APPLICATION = 4,
	OPT_INTERFACE_NAME = 2,
	OPT_INTERFACE_TSRESOL = 9,
	OPT_PACKET_FLAGS = 2,
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define LINK_ETHERNET    1
#define TSRESOL_NS       9 /* unit of time: 10^-9 s */
#define FLAGS_INBOUND    1
#define FLAGS_OUTBOUND   2

#define OPTIONS_MAX (2 * (4 + UINT16_MAX + 1)) /* two texts of a block, with their heads */
#define BLOCK_MAX   (SIM_TRACE_SNAPLEN_MAX + OPTIONS_MAX + 128)
#define FILE_BUFFER (1u << 18)

struct sim_trace {
	FILE *file;
	int error; /* first error, negative; nothing is written after it */
	uint32_t nb_ifaces;
	uint32_t len; /* of the block that is being built */
	uint8_t block[BLOCK_MAX];
	char buffer[FILE_BUFFER];
};

/* ---- blocks ---- */

static void
put_le16(struct sim_trace *t, uint32_t value)
{
	t->block[t->len++] = (uint8_t)value;
	t->block[t->len++] = (uint8_t)(value >> 8);
}

static void
put_le32(struct sim_trace *t, uint32_t value)
{
	put_le16(t, value);
	put_le16(t, value >> 16);
}

/* Bytes, padded to a multiple of four. */
static void
put_bytes(struct sim_trace *t, const void *bytes, uint32_t len)
{
	if (len > 0)
		memcpy(&t->block[t->len], bytes, len);
	t->len += len;
	while (t->len % 4 != 0)
		t->block[t->len++] = 0;
}

static void
put_option(struct sim_trace *t, uint32_t code, const void *value, uint32_t len)
{
	put_le16(t, code);
	put_le16(t, len);
	put_bytes(t, value, len);
}

static void
put_text(struct sim_trace *t, uint32_t code, const char *text)
{
	put_option(t, code, text, (uint32_t)strnlen(text, UINT16_MAX));
}

static void
block_begin(struct sim_trace *t, uint32_t type)
{
	t->len = 0;
	put_le32(t, type);
	put_le32(t, 0); /* the length, when it is known */
}

/* End the options and the block, and write it. */
static void
block_end(struct sim_trace *t)
{
	uint32_t len;

	put_option(t, OPT_END, NULL, 0);
	len = t->len + 4;
	put_le32(t, len);
	t->len = 4;
	put_le32(t, len);
	errno = 0;
	if (t->error == 0 && fwrite(t->block, 1, len, t->file) != len)
		t->error = errno != 0 ? -errno : -EIO;
}

/* ---- public functions ---- */

int
san_sim_trace_open(const char *path, struct sim_trace **out)
{
	struct sim_trace *t = calloc(1, sizeof(*t));
	int error;

	if (t == NULL)
		return -ENOMEM;
	t->file = fopen(path, "wbe");
	if (t->file == NULL) {
		error = -errno;
		free(t);
		return error;
	}
	/* a run writes millions of small blocks */
	setvbuf(t->file, t->buffer, _IOFBF, sizeof(t->buffer));
	block_begin(t, BLOCK_SECTION);
	put_le32(t, BYTE_ORDER_MAGIC);
	put_le16(t, 1); /* version 1.0 */
	put_le16(t, 0);
	put_le32(t, UINT32_MAX); /* length of the section, 64 bits: unspecified */
	put_le32(t, UINT32_MAX);
	put_text(t, OPT_SECTION_APPLICATION, "sansim");
	block_end(t);
	*out = t;
	return 0;
}

int32_t
san_sim_trace_interface(struct sim_trace *t, const char *name)
{
	static const uint8_t tsresol = TSRESOL_NS;

	block_begin(t, BLOCK_INTERFACE);
	put_le16(t, LINK_ETHERNET);
	put_le16(t, 0);
	put_le32(t, 0); /* packets are whole */
	put_text(t, OPT_INTERFACE_NAME, name);
	put_option(t, OPT_INTERFACE_TSRESOL, &tsresol, sizeof(tsresol));
	block_end(t);
	return (int32_t)t->nb_ifaces++;
}

void
san_sim_trace_packet(struct sim_trace *t, uint32_t iface, uint64_t at_ns, bool outbound,
		     const void *bytes, uint32_t len, const char *comment)
{
	const uint8_t flags[4] = {outbound ? FLAGS_OUTBOUND : FLAGS_INBOUND};
	uint32_t kept = len < SIM_TRACE_SNAPLEN_MAX ? len : SIM_TRACE_SNAPLEN_MAX;

	SAN_VERIFY(iface < t->nb_ifaces);
	block_begin(t, BLOCK_PACKET);
	put_le32(t, iface);
	put_le32(t, (uint32_t)(at_ns >> 32));
	put_le32(t, (uint32_t)at_ns);
	put_le32(t, kept);
	put_le32(t, len);
	put_bytes(t, bytes, kept);
	put_option(t, OPT_PACKET_FLAGS, flags, sizeof(flags));
	if (comment != NULL)
		put_text(t, OPT_COMMENT, comment);
	block_end(t);
}

int
san_sim_trace_close(struct sim_trace *t)
{
	int error = t->error;

	errno = 0;
	/* the rest of the buffer is written here, which can fail */
	if (fclose(t->file) != 0 && error == 0)
		error = errno != 0 ? -errno : -EIO;
	free(t);
	return error;
}
