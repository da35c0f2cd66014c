/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_byteorder.h>

#include "bench.h"

#define GOLDEN 0x9e3779b97f4a7c15ull

/* A hash: each bit of the result depends on all bits of *x*. */
static uint64_t
content_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t
content_base(uint64_t seed, uint16_t conn, uint64_t msg)
{
	return content_mix(content_mix(seed + conn * GOLDEN) + msg * GOLDEN);
}

uint64_t
san_content_base(const struct hello *h, bool of_server, uint64_t i)
{
	return content_base(h->seed + of_server, h->index, i);
}

/* The multiplications are independent of each other, so that compilers can vectorize them. */
static inline uint64_t
word_at(uint64_t base, uint64_t index)
{
	uint64_t x = base + index * GOLDEN;

	return rte_cpu_to_le_64(x ^ (x >> 32));
}

void
san_content_fill(uint64_t base, uint64_t off, void *buf, size_t len)
{
	/* bytes up to the next word boundary of the stream; 0 if *off* is aligned */
	size_t head = RTE_MIN((size_t)(-off & 7), len), i, words = (len - head) / 8;
	uint8_t *p = buf;
	uint64_t w;

	w = word_at(base, off / 8);
	memcpy(p, (uint8_t *)&w + off % 8, head);
	p += head;
	off += head;
	for (i = 0; i < words; i++) {
		w = word_at(base, off / 8 + i);
		memcpy(p + i * 8, &w, 8);
	}
	w = word_at(base, off / 8 + words);
	memcpy(p + words * 8, &w, len - head - words * 8);
}

int64_t
san_content_check(const struct hello *h, bool of_server, uint64_t msg, uint64_t off,
		  const void *buf, size_t len)
{
	uint64_t base = san_content_base(h, of_server, msg);
	uint8_t expected[512];
	const uint8_t *p = buf;
	size_t at, n, i;

	if ((h->flags & HELLO_VERIFY) == 0)
		return -1;
	for (at = 0; at < len; at += n) {
		n = len - at < sizeof(expected) ? len - at : sizeof(expected);
		san_content_fill(base, off + at, expected, n);
		if (memcmp(expected, p + at, n) == 0)
			continue;
		for (i = 0; expected[i] == p[at + i]; i++)
			;
		return (int64_t)(at + i);
	}
	return -1;
}

uint32_t
san_content_size(const struct hello *h, uint64_t i)
{
	uint64_t sizes = (uint64_t)h->size_max - h->size_min + 1;

	if (sizes == 1)
		return h->size_min;
	return h->size_min + (uint32_t)(content_base(~h->seed, h->index, i) % sizes);
}

bool
san_content_seen_add(struct seen *s, uint64_t msg)
{
	uint64_t bit = 1ull << (msg % 64), *word = &s->bits[msg % SEEN_WINDOW / 64];

	if (msg < s->base || msg - s->base >= SEEN_WINDOW || (*word & bit) != 0)
		return false;
	*word |= bit;
	s->count++;
	while ((s->bits[s->base % SEEN_WINDOW / 64] >> (s->base % 64)) & 1) {
		s->bits[s->base % SEEN_WINDOW / 64] &= ~(1ull << (s->base % 64));
		s->base++;
	}
	return true;
}
