/* SPDX-License-Identifier: BSD-3-Clause */

/* Views as text for people. */

#include <inttypes.h>
#include <stdlib.h>

#include "engine_priv.h"
#include "view.h"

static void
text_port(const struct san_engine_port *p, FILE *f)
{
	struct san_view v = {.text = f};
	struct san_engine *e;
	uint32_t i;

	v.column = (uint32_t)fprintf(f, "port %u:", p->id);
	san_view_port(p, &v);
	fputc('\n', f);
	for (i = 0; i < p->nb_engines; i++) {
		e = p->engines[i];
		if (e->launched)
			v.column = (uint32_t)fprintf(f, "  lcore %u%s:", p->conf.lcores[i],
						     e->has_queue ? "" : ", no queue");
		else
			v.column = (uint32_t)fprintf(f, "  caller:");
		san_view_lcore(e, &v);
		fputc('\n', f);
	}
}

static int
text_conns(struct san_engine *e, void *file)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	struct san_view_conn c;
	FILE *f = file;
	struct san_view v;
	uint32_t i;

	fprintf(f, "%u connections, %u packets in flight, budget %u\n", pdl->nb_conns,
		pdl->inflight, pdl->conf.budget_pkts);
	for (i = 0; i < pdl->conf.max_conns; i++) {
		if (pdl->conns[i].state == SAN_CONN_FREE)
			continue;
		v = (struct san_view){.text = f};
		san_view_conn_of(e, i, true, &c);
		san_view_conn_full(&v, &c);
		fputc('\n', f);
	}
	return 0;
}

static void
text_counters(struct san_engine_port *p, const struct san_view_set *set, FILE *f)
{
	struct san_view v = {.text = f};

	san_view_counters_put(p, NULL, &v, set);
	fputc('\n', f);
}

static void
text_drops(struct san_engine_port *p, FILE *f)
{
	const struct san_view_field *drops = san_view_drops_set.fields;
	struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS];
	uint32_t i, first = san_view_counters(p, NULL, c) - san_view_drops_set.nb;
	bool is_any = false;

	for (i = 0; i < san_view_drops_set.nb; i++) {
		if (c[first + i].value == 0)
			continue;
		fprintf(f, "  %-16s %10" PRIu64 "  %s\n", san_drop_name((enum san_drop)(i + 1)),
			c[first + i].value, drops[i].help);
		is_any = true;
	}
	if (!is_any)
		fprintf(f, "  none\n");
}

/* Printing may block: the lcore prints into memory, the caller to *f*. */
static void
text_each(struct san_engine_port *p, san_engine_fn print, FILE *f)
{
	char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	uint32_t i;

	if (memory == NULL)
		return;
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_call(p->engines[i], print, memory);
	fclose(memory);
	fputs(text, f);
	free(text);
}

void
san_view_text(struct san_engine_port *p, enum rtsan_dpdk_show what, FILE *f)
{
	switch (what) {
	case RTSAN_SHOW_PORT:
		text_port(p, f);
		break;
	case RTSAN_SHOW_CONN:
		text_each(p, text_conns, f);
		break;
	case RTSAN_SHOW_STATS:
		text_counters(p, &san_view_counters_set, f);
		break;
	case RTSAN_SHOW_CAM:
		text_counters(p, &san_view_cam_set, f);
		break;
	case RTSAN_SHOW_DROPS:
		text_drops(p, f);
		break;
	case RTSAN_SHOW_STREAM:
		text_each(p, san_view_stream_text, f);
		break;
	}
}
