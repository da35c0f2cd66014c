/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * pcapng (draft-ietf-opsawg-pcapng): one section, an interface description block per interface, an
 * enhanced packet block per packet. Numbers are written byte by byte in little endian, and nothing
 * depends on the machine.
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

#define SECTION_BYTES   28 /* sizes of blocks without options, including both lengths */
#define INTERFACE_BYTES 20
#define PACKET_BYTES    32
#define OPT_BYTES       4 /* code and length; also the size of OPT_END */

#define FILE_BUFFER (1u << 18)

struct sim_trace {
	FILE *file;
	int error;         /* first error, negative; nothing is written after it */
	uint32_t *snaplen; /* per interface */
	uint32_t nb_ifaces, nb_room;
	char buffer[FILE_BUFFER];
};

/* ---- bytes ---- */

static void
sim_trace_write(struct sim_trace *t, const void *bytes, size_t len)
{
	if (t->error != 0 || len == 0)
		return;
	errno = 0;
	if (fwrite(bytes, 1, len, t->file) != len)
		t->error = errno != 0 ? -errno : -EIO;
}

static void
put_pad(struct sim_trace *t, size_t len)
{
	static const uint8_t zero[3];

	sim_trace_write(t, zero, -len & 3);
}

static uint8_t *
sim_trace_put_le16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
	return at + 2;
}

static uint8_t *
sim_trace_put_le32(uint8_t *at, uint32_t value)
{
	return sim_trace_put_le16(sim_trace_put_le16(at, value), value >> 16);
}

/* ---- options ---- */

static uint32_t
sim_trace_padded_len(uint32_t len)
{
	return (len + 3) & ~3u;
}

static uint32_t
text_len(const char *text)
{
	return (uint32_t)strnlen(text, UINT16_MAX);
}

static void
put_option(struct sim_trace *t, uint32_t code, const void *value, uint32_t len)
{
	uint8_t head[OPT_BYTES];

	sim_trace_put_le16(sim_trace_put_le16(head, code), len);
	sim_trace_write(t, head, sizeof(head));
	sim_trace_write(t, value, len);
	put_pad(t, len);
}

/* End of the options and of the block. */
static void
put_end(struct sim_trace *t, uint32_t block_bytes)
{
	uint8_t bytes[4];

	put_option(t, OPT_END, NULL, 0);
	sim_trace_put_le32(bytes, block_bytes);
	sim_trace_write(t, bytes, sizeof(bytes));
}

/* ---- blocks ---- */

static void
put_section(struct sim_trace *t)
{
	static const char name[] = "sansim";
	uint32_t name_len = sizeof(name) - 1;
	uint32_t all = SECTION_BYTES + OPT_BYTES + sim_trace_padded_len(name_len) + OPT_BYTES;
	uint8_t head[SECTION_BYTES - 4], *at = head;

	at = sim_trace_put_le32(at, BLOCK_SECTION);
	at = sim_trace_put_le32(at, all);
	at = sim_trace_put_le32(at, BYTE_ORDER_MAGIC);
	at = sim_trace_put_le16(at, 1); /* version 1.0 */
	at = sim_trace_put_le16(at, 0);
	at = sim_trace_put_le32(at, UINT32_MAX); /* length of the section, 64 bits: unspecified */
	sim_trace_put_le32(at, UINT32_MAX);
	sim_trace_write(t, head, sizeof(head));
	put_option(t, OPT_SECTION_APPLICATION, name, name_len);
	put_end(t, all);
}

static void
put_interface(struct sim_trace *t, const char *name, uint32_t snaplen)
{
	static const uint8_t tsresol = TSRESOL_NS;
	uint32_t name_len = text_len(name);
	uint32_t all = INTERFACE_BYTES + OPT_BYTES + sim_trace_padded_len(name_len) +
		OPT_BYTES + sim_trace_padded_len(sizeof(tsresol)) + OPT_BYTES;
	uint8_t head[INTERFACE_BYTES - 4], *at = head;

	at = sim_trace_put_le32(at, BLOCK_INTERFACE);
	at = sim_trace_put_le32(at, all);
	at = sim_trace_put_le16(at, LINK_ETHERNET);
	at = sim_trace_put_le16(at, 0);
	sim_trace_put_le32(at, snaplen);
	sim_trace_write(t, head, sizeof(head));
	put_option(t, OPT_INTERFACE_NAME, name, name_len);
	put_option(t, OPT_INTERFACE_TSRESOL, &tsresol, sizeof(tsresol));
	put_end(t, all);
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
	put_section(t);
	*out = t;
	return 0;
}

int
san_sim_trace_interface(struct sim_trace *t, const char *name, uint32_t snaplen)
{
	uint32_t nb_room = t->nb_room == 0 ? 16 : 2 * t->nb_room;
	uint32_t *grown;

	if (t->nb_ifaces == t->nb_room) {
		SAN_VERIFY(nb_room <= INT32_MAX);
		grown = reallocarray(t->snaplen, nb_room, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		t->snaplen = grown;
		t->nb_room = nb_room;
	}
	t->snaplen[t->nb_ifaces] = snaplen != 0 && snaplen < SIM_TRACE_SNAPLEN_MAX ?
		snaplen :
		SIM_TRACE_SNAPLEN_MAX;
	put_interface(t, name, snaplen);
	return (int)t->nb_ifaces++;
}

void
san_sim_trace_packet(struct sim_trace *t, uint32_t iface, uint64_t at_ns, bool outbound,
		     const void *bytes, uint32_t len, const char *comment)
{
	uint32_t comment_len = comment != NULL ? text_len(comment) : 0;
	uint8_t head[PACKET_BYTES - 4], *at = head, flags[4];
	uint32_t kept, all;

	SAN_VERIFY(iface < t->nb_ifaces);
	kept = len < t->snaplen[iface] ? len : t->snaplen[iface];
	all = PACKET_BYTES + sim_trace_padded_len(kept) + OPT_BYTES + (uint32_t)sizeof(flags) +
		OPT_BYTES;
	if (comment != NULL)
		all += OPT_BYTES + sim_trace_padded_len(comment_len);

	at = sim_trace_put_le32(at, BLOCK_PACKET);
	at = sim_trace_put_le32(at, all);
	at = sim_trace_put_le32(at, iface);
	at = sim_trace_put_le32(at, (uint32_t)(at_ns >> 32));
	at = sim_trace_put_le32(at, (uint32_t)at_ns);
	at = sim_trace_put_le32(at, kept);
	sim_trace_put_le32(at, len);
	sim_trace_write(t, head, sizeof(head));
	sim_trace_write(t, bytes, kept);
	put_pad(t, kept);
	sim_trace_put_le32(flags, outbound ? FLAGS_OUTBOUND : FLAGS_INBOUND);
	put_option(t, OPT_PACKET_FLAGS, flags, sizeof(flags));
	if (comment != NULL)
		put_option(t, OPT_COMMENT, comment, comment_len);
	put_end(t, all);
}

int
san_sim_trace_close(struct sim_trace *t)
{
	int error = t->error;

	errno = 0;
	/* the rest of the buffer is written here, which can fail */
	if (fclose(t->file) != 0 && error == 0)
		error = errno != 0 ? -errno : -EIO;
	free(t->snaplen);
	free(t);
	return error;
}
