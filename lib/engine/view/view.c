/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>

#include "engine_priv.h"
#include "view.h"
#include "view_compat.h"

#define COLUMNS 96
#define NUMBER  21 /* characters of a number, with its end */

const char *san_view_build = "unknown";

void
san_view_string(struct san_view *v, const char *name, const char *value)
{
	if (v->dict != NULL) {
		rte_tel_data_add_dict_string(v->dict, name, value);
		return;
	}
	if (v->column + strlen(name) + strlen(value) + 2 > COLUMNS)
		v->column = (uint32_t)fprintf(v->text, "\n    ") - 1;
	v->column += (uint32_t)fprintf(v->text, " %s=%s", name, value);
}

void
san_view_u64(struct san_view *v, const char *name, uint64_t value)
{
	char text[NUMBER];

	if (v->dict != NULL) {
		rte_tel_data_add_dict_uint(v->dict, name, value);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64, value);
	san_view_string(v, name, text);
}

void
san_view_hex(struct san_view *v, const char *name, int digits, uint64_t value)
{
	char text[NUMBER];

	snprintf(text, sizeof(text), "0x%0*" PRIx64, digits, value);
	san_view_string(v, name, text);
}

void
san_view_fields(struct san_view *v, const struct san_view_field *fields, size_t n,
		const void *object)
{
	uint64_t value;
	size_t i;

	for (i = 0; i < n; i++) {
		if (fields[i].bytes == 0)
			continue;
		value = 0; /* little-endian, like DPDK's processors */
		memcpy(&value, (const uint8_t *)object + fields[i].offset, fields[i].bytes);
		san_view_u64(v, fields[i].name, value);
	}
}

int
san_view_explain(struct rte_tel_data *d, const struct san_view_set *set)
{
	static const char *const kinds[] = {
		[SAN_VIEW_COUNTER] = "counter",
		[SAN_VIEW_GAUGE] = "gauge",
		[SAN_VIEW_MARK] = "gauge",
		[SAN_VIEW_INFO] = "info",
		[SAN_VIEW_HISTOGRAM] = "histogram",
		[SAN_VIEW_GAUGEHISTOGRAM] = "gaugehistogram",
	};
	char text[RTE_TEL_MAX_STRING_LEN];
	uint32_t i;

	rte_tel_data_start_dict(d);
	for (i = 0; i < set->nb; i++) {
		const struct san_view_field *f = &set->fields[i];

		snprintf(text, sizeof(text), "%s%s%s: %s", kinds[f->kind],
			 f->unit[0] != '\0' ? " " : "", f->unit, f->help);
		rte_tel_data_add_dict_string(d, f->name, text);
	}
	return 0;
}

/* ---- text for people ---- */

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

/** What an lcore prints about its connections: themselves, or their streams. */
struct text_job {
	bool streams;
	FILE *f;
};

static int
text_conns(struct san_engine *e, void *arg)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	const struct text_job *job = arg;
	struct san_view_stream s;
	struct san_view_conn c;
	struct san_view v;
	uint32_t i;

	if (job->streams)
		fprintf(job->f, "%u streams\n", san_core_share_use(e->core)->nb);
	else
		fprintf(job->f, "%u connections, %u packets in flight, budget %u\n", pdl->nb_conns,
			pdl->inflight, pdl->conf.budget_pkts);
	for (i = 0; i < pdl->conf.max_conns; i++) {
		if (pdl->conns[i].state == SAN_CONN_FREE ||
		    (job->streams && san_view_stream_of(e, &pdl->conns[i], &s) != 0))
			continue;
		v = (struct san_view){.text = job->f};
		if (job->streams) {
			v.column = (uint32_t)fprintf(job->f, "  cid=0x%06x", s.cid);
			san_view_stream(&v, &s);
		} else {
			san_view_conn_of(e, i, true, &c);
			san_view_conn_full(&v, &c);
		}
		fputc('\n', job->f);
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
text_each(struct san_engine_port *p, bool streams, FILE *f)
{
	char *text = NULL;
	size_t len = 0;
	struct text_job job = {.streams = streams, .f = open_memstream(&text, &len)};
	uint32_t i;

	if (job.f == NULL)
		return;
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_call(p->engines[i], text_conns, &job);
	fclose(job.f);
	fputs(text, f);
	free(text);
}

void
san_view_text(struct san_engine_port *p, enum rtsan_dpdk_show what, FILE *f)
{
	if (what == RTSAN_SHOW_PORT)
		text_port(p, f);
	else if (what == RTSAN_SHOW_CONN || what == RTSAN_SHOW_STREAM)
		text_each(p, what == RTSAN_SHOW_STREAM, f);
	else if (what == RTSAN_SHOW_STATS)
		text_counters(p, &san_view_counters_set, f);
	else if (what == RTSAN_SHOW_CAM)
		text_counters(p, &san_view_cam_set, f);
	else if (what == RTSAN_SHOW_DROPS)
		text_drops(p, f);
}
