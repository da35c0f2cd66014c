/* SPDX-License-Identifier: BSD-3-Clause */

/* The sizes that doc/architecture.md states: "What a connection costs". (ARCH-9) */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"
#include "core_priv.h"
#include "engine_priv.h"
#include "rtsan_priv.h"
#include "stream_priv.h"
#include "tl.h"
#include "ulp_priv.h"

#define ENTRY(table) sizeof(*(table))

static const struct san_pdl *pdl;
static const struct san_tl *tl;
static const struct san_cm *cm;
static const struct san_ulp *ulp;
static const struct san_core *core;
static const struct san_engine *engine;

enum {
	TABLES = ENTRY(pdl->free_slots) + ENTRY(pdl->slot_owner) + ENTRY(pdl->next_cid) +
		ENTRY(pdl->uses) + ENTRY(tl->buckets) + ENTRY(cm->buckets) + ENTRY(ulp->qps) +
		ENTRY(ulp->qp_gens) + ENTRY(ulp->qp_of_slot) + ENTRY(core->slot_of_qp) +
		ENTRY(core->draining) + ENTRY(core->streams) + ENTRY(engine->again) +
		sizeof(struct rtsan_qp_place),
};

#define SIZE(type) "`" #type "`", sizeof(type)

/* *nb*: how many an idle connection has, with a queue pair of one entry each way. */
static const struct {
	const char *name;
	size_t bytes, nb;
} sizes[] = {
	{SIZE(struct san_pdl_conn), 1},
	{SIZE(struct san_tl_conn), 1},
	{SIZE(struct san_tl_host), 1},
	{SIZE(struct san_cm_conn), 1},
	{SIZE(struct rtsan_qp), 1},
	{SIZE(struct san_wq), 1},
	{SIZE(struct san_engine_qp), 1},
	{SIZE(struct san_ulp_qp), 1},
	{SIZE(struct san_ulp_wr), 1},
	{SIZE(struct san_ulp_wqe), 1},
	{SIZE(struct san_ulp_recv), 1},
	{SIZE(struct san_ulp_rqe), 1},
	{"indices in lists of a queue pair", 2 * sizeof(uint16_t), 2},
	{"entries of tables", TABLES, 1},
	{SIZE(struct san_pdl_wide), 0},
	{SIZE(struct san_pdl_rxwords), 0},
	{SIZE(struct san_tl_txn), 0},
	{SIZE(struct san_tl_extra), 0},
	{SIZE(struct san_tl_rxn), 0},
	{SIZE(struct san_tl_queues), 0},
	{SIZE(struct san_tl_memo), 0},
	{SIZE(struct san_tl_refused), 0},
	{SIZE(struct cm_private), 0},
	{SIZE(struct san_stream), 0},
	{SIZE(struct stream_sqe), 0},
	{SIZE(struct stream_rqe), 0},
};

static char text[1 << 16];

/* The number in the row of *name*: "| 1,234 | name ..." */
static size_t
documented(const char *name)
{
	size_t bytes = 0, len = strlen(name);
	char *row, *cell;

	for (row = text; row != NULL; row = strchr(row + 1, '\n')) {
		cell = row[0] == '\n' && row[1] == '|' ? strchr(row + 2, '|') : NULL;
		if (cell == NULL || strncmp(cell + 2, name, len) != 0)
			continue;
		for (; row < cell; row++)
			if (*row >= '0' && *row <= '9')
				bytes = 10 * bytes + (size_t)(*row - '0');
		return bytes;
	}
	return 0;
}

static void
setup(void)
{
	FILE *f = fopen(SOURCE_ROOT "/doc/architecture.md", "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
}

UNIT_FIXTURE(.setup = setup);

UNIT_CASE(sizes__as_documented)
{
	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		unit_row(sizes[i].name);
		assert_int_equal(documented(sizes[i].name), sizes[i].bytes);
	}
}

/* Every structure in the first cell after a size is one that is compared. */
UNIT_CASE(sizes__all_compared)
{
	uint32_t nb = 0, nb_known = 0;

	for (const char *row = text; (row = strstr(row, " | `struct ")) != NULL; row++)
		nb++;
	for (size_t i = 0; i < RTE_DIM(sizes); i++)
		nb_known += sizes[i].name[0] == '`';
	assert_int_equal(nb, nb_known);
}

/* ARCH-9: an idle connection, as make bench counts it, but for what malloc() adds. */
UNIT_CASE(sizes__sum)
{
	size_t sum = 0;

	for (size_t i = 0; i < RTE_DIM(sizes); i++)
		sum += sizes[i].nb * sizes[i].bytes;
	assert_int_equal(documented("an idle connection"), sum);
	assert_true(sum <= 2608);
}
