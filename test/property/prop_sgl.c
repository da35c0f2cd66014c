/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Gather and scatter through random scatter-gather lists against a flat copy of
 * the same bytes (RT-10, RT-11): parts of any length, empty ones included, in
 * any order in memory; offsets in sequence, as data comes, and at random, as
 * resends do; packets of any number of segments.
 */

#include "prop.h"

#include <rte_mbuf.h>

#include "ulp_priv.h"

#define AREA     4096 /* each part has an area of its own, so that a slip is seen */
#define NB_STEPS 60
#define MAX_SEGS 5
#define GUARD    0xa5

static uint8_t area[RTSAN_SGE_MAX][AREA];
static struct rtsan_sge sge[RTSAN_SGE_MAX];
static struct san_ulp_sgl list;
static uint8_t flat[RTSAN_SGE_MAX * AREA]; /* what the list must hold */
static uint8_t bytes[sizeof(flat) + AREA];
static uint8_t seg_mem[MAX_SEGS][AREA];
static struct rte_mbuf segs[MAX_SEGS];

static uint32_t
random_len(struct san_prng *g)
{
	static const uint32_t bound[] = {1, 4, 70, 1500, AREA - 64};

	return san_prng_below(g, bound[san_prng_below(g, 5)]);
}

static uint32_t
make_list(struct san_prng *g)
{
	uint32_t nb = san_prng_below(g, RTSAN_SGE_MAX + 1);
	uint32_t shift = san_prng_below(g, RTSAN_SGE_MAX);
	uint32_t len = 0;

	memset(area, GUARD, sizeof(area));
	for (uint32_t i = 0; i < nb; i++) {
		sge[i].addr = area[(i + shift) % RTSAN_SGE_MAX] + 1 + san_prng_below(g, 32);
		sge[i].length = random_len(g);
		len += sge[i].length;
	}
	san_ulp_sgl_init(&list, sge, nb);
	PROP_CHECK(san_ulp_sgl_len(&list) == len);
	memset(flat, GUARD, sizeof(flat));
	return len;
}

static void
fill_random(struct san_prng *g, uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)san_prng_u64(g);
}

/** A packet whose bytes from *off* on are bytes[0 .. len). */
static struct rte_mbuf *
make_packet(struct san_prng *g, uint16_t off, uint16_t len)
{
	uint32_t left = (uint32_t)off + len;
	uint32_t at = 0;

	for (uint32_t i = 0; i < MAX_SEGS; i++) {
		uint32_t n = i + 1 < MAX_SEGS ? san_prng_below(g, left + 1) : left;

		memset(&segs[i], 0, sizeof(segs[i]));
		segs[i].buf_addr = seg_mem[i];
		segs[i].data_off = (uint16_t)san_prng_below(g, 64);
		segs[i].data_len = (uint16_t)n;
		segs[i].next = i + 1 < MAX_SEGS ? &segs[i + 1] : NULL;
		for (uint32_t k = 0; k < n; k++, at++)
			seg_mem[i][segs[i].data_off + k] = at < off ? GUARD : bytes[at - off];
		left -= n;
	}
	return &segs[0];
}

/** Every byte of the list as the flat copy has it, and none around it touched. */
static void
check_all(uint32_t len)
{
	uint32_t at = 0, inside = 0, changed = 0;

	for (uint32_t i = 0; i < list.nb_sge; i++)
		for (uint32_t k = 0; k < sge[i].length; k++, at++) {
			PROP_CHECK(((uint8_t *)sge[i].addr)[k] == flat[at]);
			inside += flat[at] != GUARD;
		}
	PROP_CHECK(at == len);
	for (uint32_t i = 0; i < RTSAN_SGE_MAX; i++)
		for (uint32_t k = 0; k < AREA; k++)
			changed += area[i][k] != GUARD;
	PROP_CHECK(changed == inside);
}

/** Scatter or gather *n* bytes at *offset* of a list of *len*, and the model. */
static void
step(struct san_prng *g, uint32_t len, uint32_t offset, uint32_t n)
{
	uint32_t want = offset >= len ? 0 : n < len - offset ? n :
							       len - offset;
	uint16_t off = (uint16_t)san_prng_below(g, 100);
	uint32_t done;

	switch (san_prng_below(g, 3)) {
	case 0:
		memset(bytes, 0, n + 1);
		done = san_ulp_sgl_gather(&list, offset, bytes, n);
		PROP_CHECK(done == want);
		PROP_CHECK(memcmp(bytes, flat + offset, want) == 0);
		PROP_CHECK(bytes[want] == 0);
		break;
	case 1:
		fill_random(g, bytes, n);
		done = san_ulp_sgl_scatter(&list, offset, bytes, n);
		PROP_CHECK(done == want);
		memcpy(flat + offset, bytes, want);
		break;
	default:
		if (off + n > AREA - 64)
			n = AREA - 64 - off;
		want = n < want ? n : want;
		fill_random(g, bytes, n);
		done = san_ulp_sgl_scatter_mbuf(&list, offset,
						make_packet(g, off, (uint16_t)n), off, (uint16_t)n);
		PROP_CHECK(done <= want);
		/* what does not fit may end at a segment */
		PROP_CHECK(done == want || want < n);
		memcpy(flat + offset, bytes, want);
		PROP_CHECK(san_ulp_sgl_scatter(&list, offset, bytes, want) == want);
		break;
	}
}

static void
run(uint64_t seed)
{
	struct san_prng g;
	uint32_t len, offset = 0, n;

	san_prng_seed(&g, seed);
	len = make_list(&g);
	for (uint32_t i = 0; i < NB_STEPS; i++) {
		n = random_len(&g);
		if (san_prng_below(&g, 3) == 0)
			offset = san_prng_below(&g, len + 3);
		if (offset > len + 3)
			offset = 0;
		step(&g, len, offset, n);
		offset += n;
	}
	check_all(len);
}

PROP_MAIN("scatter-gather equals flat copy", run)
