/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>

#include "sim_world.h"

#define SERIES_FLOWS 64
#define FIGURES      128 /* room for all */
#define SUM_BITS     54u /* (sum x)^2 times a million, which has 20 bits, fits into 128 bits */

/** A figure: its key and value. */
struct figure {
	const char *key;
	uint64_t value;
};

uint32_t
san_sim_report_jain_ppm(const uint64_t *x, uint32_t n)
{
	unsigned __int128 sum = 0, squares = 0;
	uint32_t i, bits, shift;
	uint64_t max = 0;

	for (i = 0; i < n; i++)
		max = x[i] > max ? x[i] : max;
	if (max == 0)
		return 0;
	bits = 128 - (uint32_t)(__builtin_clzll(max) + __builtin_clzll(n));
	shift = bits > SUM_BITS ? bits - SUM_BITS : 0;
	for (i = 0; i < n; i++) {
		unsigned __int128 value = x[i] >> shift;

		sum += value;
		squares += value * value;
	}
	return (uint32_t)(sum * sum * SIM_PPM / (squares * n));
}

uint32_t
san_sim_report_jain(const struct sim_world *w)
{
	const struct sim_load *ld = w->load;
	uint64_t *x = calloc(ld->nb_sides, sizeof(*x));
	uint32_t i, n = 0, jain = 0;

	if (x == NULL)
		return 0;
	for (i = 0; i < ld->nb_sides; i++)
		if (ld->sides[i].initiates)
			x[n++] = ld->sides[i].bytes_done;
	jain = san_sim_report_jain_ppm(x, n);
	free(x);
	return jain;
}

void
san_sim_report_add(void *sums, const void *counters, size_t size)
{
	const uint64_t *from = counters;
	uint64_t *to = sums;
	size_t i;

	for (i = 0; i < size / sizeof(*to); i++)
		to[i] += from[i];
}

void
san_sim_report_engine(struct sim_engine_sums *s, struct san_core *core)
{
	uint64_t budget_high = s->tl.budget_high, path_high = s->tl.path_high;
	const struct san_tl *tl = san_core_tl(core);

	san_sim_report_add(&s->pdl, &san_core_pdl(core)->stats, sizeof(s->pdl));
	san_sim_report_add(&s->tl, &tl->stats, sizeof(s->tl));
	s->tl.budget_high = RTE_MAX(budget_high, tl->stats.budget_high);
	s->tl.path_high = RTE_MAX(path_high, tl->stats.path_high);
	s->nb_express_rx += san_ulp_stats(san_core_ulp(core))->nb_express_rx;
	s->cam_high = RTE_MAX(s->cam_high, tl->cam.nb_high);
	s->cam_inserts += tl->cam.nb_inserts;
	s->cam_rejects += tl->cam.nb_rejects;
}

void
san_sim_report_links(struct sim_world *w)
{
	struct sim_link_stats *s = &w->on_links;
	uint64_t high_bytes = 0;
	uint32_t i;

	*s = (struct sim_link_stats){0};
	for (i = 0; i < w->nb_links; i++) {
		const struct sim_link *l = &w->links[i];

		san_sim_report_add(s, &l->stats, sizeof(*s));
		if (l->from >= w->nb_hosts)
			high_bytes = RTE_MAX(high_bytes, l->stats.high_bytes);
	}
	s->high_bytes = high_bytes;
}

static uint64_t
sum_bytes(const struct sim_world *w)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < w->load->nb_sides; i++)
		sum += w->load->sides[i].bytes_done;
	return sum;
}

static void
report_put_figures(FILE *out, const struct figure *f, size_t n, const char *fmt,
		   const char *between)
{
	size_t i;

	for (i = 0; i < n; i++) {
		fputs(i > 0 ? between : "", out);
		fprintf(out, fmt, f[i].key, f[i].value);
	}
}

static size_t
collect_engines(const struct sim_world *w, struct figure *f)
{
	struct sim_engine_sums sums = w->dead_engines;
	const struct sim_engine_sums *e = &sums;
	uint64_t inflight_high = 0;
	uint32_t i;

	for (i = 0; i < w->nb_hosts; i++) {
		inflight_high = RTE_MAX(inflight_high, w->hosts[i].inflight_high);
		if (w->hosts[i].core != NULL)
			san_sim_report_engine(&sums, w->hosts[i].core);
	}

#define OF_PDL(name, unit, help) {#name, e->pdl.nb_##name},
#define OF_TL(name, unit, help)  {#name, e->tl.nb_##name},
	const struct figure all[] = {
		SAN_PDL_COUNTERS(OF_PDL)
			SAN_TL_COUNTERS(OF_TL){"inflight_high_pkts", inflight_high},
		{"budget_high_bytes", e->tl.budget_high},
		{"path_high_bytes", e->tl.path_high},
		{"express_rx", e->nb_express_rx},
		{"cam_high", e->cam_high},
		{"cam_inserts", e->cam_inserts},
		{"cam_rejects", e->cam_rejects},
	};

	memcpy(f, all, sizeof(all));
	return RTE_DIM(all);
}

static size_t
report_collect_figures(const struct sim_world *w, struct figure *f)
{
	struct hist_summary c;
	uint64_t ns = w->conf.run.duration_ns - w->conf.run.warmup_ns, bytes = sum_bytes(w);
	uint64_t last_ns = RTE_MAX(w->load->last_done_ns, w->load_ns) - w->load_ns;
	const struct sim_link_stats *l = &w->on_links;
	uint64_t side_min = UINT64_MAX, side_max = 0;
	uint32_t i;

	if (w->conf.load.ops != 0)
		ns = RTE_MAX(last_ns, 1u);
	for (i = 0; i < w->load->nb_sides; i++) {
		if (!w->load->sides[i].initiates)
			continue;
		side_min = RTE_MIN(side_min, w->load->sides[i].bytes_done);
		side_max = RTE_MAX(side_max, w->load->sides[i].bytes_done);
	}
	san_hist_summarize(&w->load->hist, &c);

	const struct figure all[] = {
		{"seed", w->conf.run.seed},
		{"events", w->stats.nb_events},
		{"virtual_ns", w->now_ns},
		{"measured_ns", ns},
		{"connections", w->stats.nb_conns / 2},
		{"broken", w->stats.nb_broken},
		{"faults", w->net.nb_faults},
		{"ops", w->stats.nb_ops},
		{"ops_failed", w->stats.nb_ops_failed},
		{"bytes", bytes},
		{"goodput_kbps", (uint64_t)((unsigned __int128)bytes * 8000000 / ns)},
		{"jain_ppm", san_sim_report_jain(w)},
		{"side_bytes_min", side_min == UINT64_MAX ? 0 : side_min},
		{"side_bytes_max", side_max},
		{"completion_mean_ns", c.mean_ns},
		{"completion_min_ns", c.min_ns},
		{"completion_p50_ns", c.p50_ns},
		{"completion_p99_ns", c.p99_ns},
		{"completion_p999_ns", c.p999_ns},
		{"completion_max_ns", c.max_ns},
		{"last_completion_ns", last_ns},
		{"longest_silence_ns", w->longest_silence_ns},
		{"packets", l->nb_pkts},
		{"wire_bytes", l->nb_bytes},
		{"switch_drops", l->nb_full},
		{"fault_drops", l->nb_lost},
		{"marked", l->nb_marked},
		{"queue_high_bytes", l->high_bytes},
	};

	memcpy(f, all, sizeof(all));
	return RTE_DIM(all) + collect_engines(w, f + RTE_DIM(all));
}

void
san_sim_report_text(const struct sim_world *w, FILE *out)
{
	struct figure f[FIGURES];

	report_put_figures(out, f, report_collect_figures(w, f), "%-24s %" PRIu64, "\n");
	fprintf(out, "\n%-24s %016" PRIx64 "\n", "trace_hash", w->hash);
	if (w->failed)
		fprintf(out, "%-24s %s\n", "failed", w->why);
}

void
san_sim_report_json(const struct sim_world *w, FILE *out)
{
	struct figure f[FIGURES];
	const char *why;

	fputs("{", out);
	report_put_figures(out, f, report_collect_figures(w, f), "\"%s\": %" PRIu64, ", ");
	fprintf(out, ", \"trace_hash\": \"%016" PRIx64 "\", \"failed\": %s", w->hash,
		w->failed ? "true" : "false");
	if (w->failed) {
		fputs(", \"why\": \"", out);
		for (why = w->why; *why != '\0'; why++) {
			if (*why == '"' || *why == '\\')
				fputc('\\', out);
			fputc((unsigned char)*why < ' ' ? ' ' : *why, out);
		}
		fputc('"', out);
	}
	fputs("}\n", out);
}

/* ---- time series ---- */

void
san_sim_report_series(struct sim_world *w)
{
	const struct sim_load *ld = w->load;
	uint64_t inflight = 0, cam = 0, queued = 0; /* the longest queue of a switch */
	uint32_t i;

	if (w->now_ns == w->load_ns) { /* the first line */
		fputs("time_ns,queue_bytes,bytes,inflight,cam", w->series);
		for (i = 0; i < RTE_MIN(w->conf.load.connections, (uint32_t)SERIES_FLOWS); i++)
			fprintf(w->series, ",flow%u", i);
		fputc('\n', w->series);
	}
	for (i = 0; i < w->nb_hosts; i++) {
		if (w->hosts[i].core == NULL)
			continue;
		inflight += san_core_pdl(w->hosts[i].core)->inflight;
		cam += san_core_tl(w->hosts[i].core)->cam.nb_used;
	}
	for (i = 0; i < w->nb_links; i++)
		if (w->links[i].from >= w->nb_hosts)
			queued = RTE_MAX(queued, san_sim_link_backlog(&w->links[i], w->now_ns));
	fprintf(w->series, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		w->now_ns - w->load_ns, queued, sum_bytes(w), inflight, cam);
	for (i = 0; i < RTE_MIN(w->conf.load.connections, (uint32_t)SERIES_FLOWS); i++)
		fprintf(w->series, ",%" PRIu64, ld->sides[SIM_SIDES * i].bytes_done);
	fputc('\n', w->series);
}
