/* SPDX-License-Identifier: BSD-3-Clause */

/* The event loop, and the phases of a run: build, connect, load, settle, disconnect, leaks. */

#include <err.h>
#include <stdarg.h>

#include <rte_hash.h>

#include "sim_world.h"

#define CONNECT_LIMIT_NS (60 * SAN_NS_PER_S)
#define LOOK_NS          (100 * SAN_NS_PER_US) /* interval of checks for the end of a phase */
#define QUIET_NS         (20 * SAN_NS_PER_S)   /* until time-wait ends */
#define MBUFS_MIN        4096
#define MBUFS_MAX        262144
#define PKT_MIN          80 /* minimum packet length of a request */
#define COPIES           3  /* of a late packet, and of its acknowledgment */
#define CAM_ENTRIES      65536
#define MBUF_CACHE       256

enum sample_port {
	SAMPLE_SERIES,
	SAMPLE_PROGRESS,
};

void
san_sim_world_fail(struct sim_world *w, const char *check, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (w->failed)
		return;
	w->failed = true;
	n = snprintf(w->why, sizeof(w->why), "%s: at %.9f s: ", check, (double)w->now_ns / 1e9);
	va_start(ap, fmt);
	vsnprintf(&w->why[n], sizeof(w->why) - (size_t)n, fmt, ap);
	va_end(ap);
}

void
san_sim_world_at(struct sim_world *w, uint64_t at_ns, enum sim_event_kind kind, uint32_t obj,
		 uint16_t port, void *arg)
{
	const struct sim_event ev = {
		.at_ns = at_ns, .arg = arg, .obj = obj, .kind = (uint16_t)kind, .port = port};

	san_sim_event_push(&w->net.events, &ev);
}

bool
san_sim_world_step(struct sim_world *w, uint64_t end_ns)
{
	uint64_t every_ns;
	struct sim_event ev;

	if (w->failed || san_sim_event_next_ns(&w->net.events) > end_ns) {
		w->now_ns = w->failed ? w->now_ns : end_ns;
		return false;
	}
	san_sim_event_pop(&w->net.events, &ev);
	w->now_ns = ev.at_ns;
	switch (ev.kind) {
	case SIM_EV_ARRIVE:
		w->stats.nb_events++;
		w->hash = san_sim_pkt_hash(w->hash, ev.at_ns, ev.obj, ev.arg);
		san_sim_topo_arrive(w, &w->links[ev.obj], ev.arg);
		break;
	case SIM_EV_HOST:
		if (w->hosts[ev.obj].run_at_ns == ev.at_ns)
			san_sim_host_round(w, &w->hosts[ev.obj]);
		break;
	case SIM_EV_FAULT:
		san_sim_fault_event(w, ev.obj, ev.port != 0);
		break;
	case SIM_EV_LOAD:
		san_sim_load_event(w, ev.obj, ev.port, ev.arg);
		break;
	case SIM_EV_SAMPLE:
		if (ev.port == SAMPLE_SERIES)
			san_sim_report_series(w);
		else
			san_sim_check_sample(w);
		every_ns = ev.port == SAMPLE_SERIES ? w->conf.run.sample_ns :
						      w->conf.run.stall_ns / 4;
		if (!w->load->ending || w->load->nb_pending != 0)
			san_sim_world_at(w, w->now_ns + RTE_MAX(every_ns, 1u), SIM_EV_SAMPLE, 0,
					 ev.port, NULL);
		break;
	}
	return true;
}

/* ---- a run ---- */

static bool
all_up(const struct sim_world *w)
{
	return w->load->nb_up + w->load->nb_over >= w->load->nb_sides;
}

static bool
all_over(const struct sim_world *w)
{
	return w->load->nb_over == w->load->nb_sides;
}

/*
 * Run until *done*, if given, or the time is over; returns whether it is done. Checks at multiples
 * of LOOK_NS only, because an event that only samples must not change the end of a phase.
 */
static bool
run_until(struct sim_world *w, bool (*done)(const struct sim_world *w), uint64_t end_ns)
{
	uint64_t began_ns = w->now_ns;

	while (!(done != NULL && done(w)) && !w->failed && w->now_ns < end_ns) {
		uint64_t next_ns = RTE_MIN(san_sim_event_next_ns(&w->net.events), end_ns);
		uint64_t after_ns = RTE_MAX(next_ns, w->now_ns + 1) - began_ns;
		uint64_t look_ns = began_ns + RTE_ALIGN_MUL_CEIL(after_ns, LOOK_NS);

		while (san_sim_world_step(w, RTE_MIN(look_ns, end_ns)))
			;
	}
	return done == NULL || done(w);
}

static void
start_load(struct sim_world *w)
{
	uint32_t i;

	/* exclude the connection set-up from the measurement */
	for (i = 0; i < w->nb_links; i++)
		w->links[i].stats = (struct sim_link_stats){0};
	for (i = 0; i < w->nb_hosts; i++)
		w->hosts[i].inflight_high = 0;
	w->load_ns = w->now_ns;
	w->unblocked_ns = w->now_ns;
	san_sim_load_start(w);
	san_sim_fault_arm(w);
	if (w->series != NULL && w->conf.run.sample_ns != 0)
		san_sim_world_at(w, w->now_ns, SIM_EV_SAMPLE, 0, SAMPLE_SERIES, NULL);
	san_sim_world_at(w, w->now_ns, SIM_EV_SAMPLE, 0, SAMPLE_PROGRESS, NULL);
}

static void
world_run_load(struct sim_world *w)
{
	if (!run_until(w, all_up, w->now_ns + CONNECT_LIMIT_NS))
		san_sim_world_fail(w, "progress", "%u of %u sides connected", w->load->nb_up,
				   w->load->nb_sides);
	start_load(w);
	run_until(w, san_sim_load_is_done, w->now_ns + w->conf.run.duration_ns);
	w->load->ending = true;
	san_sim_fault_end(w);
	if (!run_until(w, san_sim_load_is_done, w->now_ns + w->conf.run.settle_ns))
		san_sim_world_fail(w, "progress", "%lu requests do not complete",
				   (unsigned long)w->load->nb_pending);
	san_sim_report_links(w); /* disconnecting is not part of the load */
	san_sim_check_settled(w);
	san_sim_load_disconnect_all(w);
	if (!run_until(w, all_over, w->now_ns + w->conf.run.settle_ns))
		san_sim_world_fail(w, "progress", "%u of %u sides do not end",
				   w->load->nb_sides - w->load->nb_over, w->load->nb_sides);
	run_until(w, NULL, w->now_ns + QUIET_NS);
	if (w->failed)
		return;
	san_sim_load_release(w);
	san_sim_check_end(w);
}

void
san_sim_world_run(struct sim_world *w)
{
	uint64_t n;
	uint32_t i;

	world_run_load(w);
	/* those of the common pool: small pools of hosts are empty on purpose */
	n = w->net.nb_no_mbuf;
	for (i = 0; i < w->nb_hosts; i++)
		n += san_sim_host_no_mbuf(w, &w->hosts[i]);
	if (n == 0)
		return;
	w->failed = false; /* this may be the cause of the other failure */
	san_sim_world_fail(w, "sansim", "%u mbufs for all are too few: %lu times none was left",
			   w->net.pool->size, (unsigned long)n);
}

/* ---- building ---- */

/* Sum of rings, packets held for order, and packets in flight as far as links hold them. */
static uint32_t
nb_mbufs(const struct sim_world *w)
{
	const struct sim_conf *conf = &w->conf;
	uint64_t sides = conf->load.connections * (conf->load.both_ways ? 2ull : 1);
	uint64_t windows = sides * (conf->host.conn.req_win + conf->host.conn.data_win);
	uint64_t requests = sides * conf->load.depth * (2 + conf->load.size_max / conf->host.mtu);
	uint64_t n, links = 0;
	uint32_t i;

	for (i = 0; i < w->nb_links; i++) { /* shortest packets in a cable and its queue */
		const struct sim_link *l = &w->links[i];
		uint64_t queue = l->from < w->nb_hosts ? conf->host.nic_bytes :
							 l->conf->buffer_bytes;

		queue += l->conf->rate_mbps * (l->conf->delay_ns + l->more_ns) / 8000;
		links += queue / PKT_MIN;
	}
	n = MBUFS_MIN + (uint64_t)conf->topo.hosts * 64 + conf->load.connections * 16ull +
		RTE_MIN(COPIES * RTE_MIN(windows, requests), links);
	return (uint32_t)RTE_MIN(n, (uint64_t)MBUFS_MAX);
}

uint32_t
san_sim_world_mb(const struct sim_conf *conf)
{
	uint64_t own = (uint64_t)conf->host.mbufs * conf->topo.hosts;
	uint64_t cam = conf->host.cam != 0 ? conf->host.cam : CAM_ENTRIES;

	/* mbufs lie elsewhere (sim_pkt.c), but their free lists do not */
	return (uint32_t)(128 + (MBUFS_MAX + own) * 16 / 1000000 + cam / 4096);
}

/* Open the files to which the run is recorded. 0, or 1 with a message on stderr. */
static int
open_watch(struct sim_world *w, const struct sim_watch *watch)
{
	struct sim_link *l;
	uint32_t i = 0;
	char name[32];

	if (watch->series_path != NULL) {
		w->series = fopen(watch->series_path, "w");
		if (w->series == NULL) {
			warn("%s", watch->series_path);
			return 1;
		}
	}
	if (watch->trace_path == NULL)
		return 0;
	if (!san_sim_topo_is_place(w, watch->trace_where)) {
		warnx("--trace-at: \"%s\" is not a place of this topology", watch->trace_where);
		return 1;
	}
	errno = -san_sim_trace_open(watch->trace_path, &w->net.trace);
	if (w->net.trace == NULL) {
		warn("%s", watch->trace_path);
		return 1;
	}
	while ((l = san_sim_topo_match(w, watch->trace_where, &i)) != NULL) {
		snprintf(name, sizeof(name), "%u-%u", l->from, l->to);
		l->trace_if = san_sim_trace_interface(w->net.trace, name);
	}
	return 0;
}

/* 0, or a negative errno; 1: a message is on stderr already. */
static int
world_build(struct sim_world *w, const struct sim_watch *watch)
{
	uint32_t i, cam = w->conf.host.cam != 0 ? w->conf.host.cam : CAM_ENTRIES;
	int rc;

	rc = san_sim_topo_create(w);
	if (rc != 0)
		return rc;
	w->net.pool = san_sim_pkt_pool_create("network", nb_mbufs(w), MBUF_CACHE, w->conf.host.mtu);
	w->cam = san_tl_reorder_create_table("cam", cam, SOCKET_ID_ANY);
	w->hosts = calloc(w->nb_hosts, sizeof(*w->hosts));
	if (w->net.pool == NULL || w->cam == NULL || w->hosts == NULL)
		return -ENOMEM;
	rc = san_sim_fault_create(w);
	if (rc == 0)
		rc = open_watch(w, watch);
	if (rc == 0)
		rc = san_sim_load_create(w);
	for (i = 0; i < w->nb_hosts && rc == 0; i++)
		rc = san_sim_host_create(w, i);
	return rc;
}

int
san_sim_world_create(const struct sim_conf *conf, const struct sim_watch *watch,
		     struct sim_world **out)
{
	struct sim_world *w = calloc(1, sizeof(*w));
	int rc;

	if (w == NULL)
		return -ENOMEM;
	w->conf = *conf;
	san_sim_link_net_init(&w->net, conf->run.seed);
	rc = world_build(w, watch);
	if (rc != 0) {
		if (rc < 0)
			warnx("the simulation could not be built: %s", strerror(-rc));
		san_sim_world_destroy(w);
		return rc;
	}
	*out = w;
	return 0;
}

int
san_sim_world_destroy(struct sim_world *w)
{
	uint32_t i;
	int rc = 0;

	if (w->net.trace != NULL)
		rc = san_sim_trace_close(w->net.trace);
	if (w->series != NULL && (fflush(w->series) != 0 || ferror(w->series)))
		rc = -EIO;
	if (w->series != NULL)
		fclose(w->series);
	for (i = 0; w->hosts != NULL && i < w->nb_hosts; i++)
		san_sim_host_destroy(w, &w->hosts[i]);
	san_sim_link_net_fini(&w->net);
	san_sim_load_destroy(w);
	free(w->hosts);
	free(w->links);
	rte_hash_free(w->cam);
	rte_mempool_free(w->net.pool);
	free(w);
	return rc;
}
