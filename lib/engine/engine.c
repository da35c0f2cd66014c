/* SPDX-License-Identifier: BSD-3-Clause */

/* A port with the engines of all its lcores: create, start and end them together. */

#define ALLOW_EXPERIMENTAL_API /* rte_trace is still marked so in DPDK 22.11 */

#include <sched.h>

#include <rte_cpuflags.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_trace.h>

#include "engine_priv.h"
#include "view.h"
#include "view_trace.h"

#define FAREWELL_LOOPS 64 /* rounds in which the last messages to peers are sent */
#define FAREWELL_NS    (20 * SAN_NS_PER_MS)
#define FAREWELL_US    1000 /* time to send what is queued: a stop drops it */
#define DESC_DEFAULT   1024
#define POOL_DEFAULT   16384
#define SLEEP_MAX_US   2000
#define CALIBRATE_NS   (10 * SAN_NS_PER_MS)
#define CLOCK_TRIES    8

void
san_engine_conf_default(struct san_engine_conf *conf, uint32_t max_conns)
{
	memset(conf, 0, sizeof(*conf));
	san_core_conf_default(&conf->core, max_conns, 0);
	conf->nb_lcores = 1;
	conf->nb_rxd = DESC_DEFAULT;
	conf->nb_txd = DESC_DEFAULT;
	conf->pool_size = POOL_DEFAULT;
	conf->sleep_max_us = SLEEP_MAX_US;
}

/* ---- the clock (engine_clock.h) ---- */

/* Read both clocks at the same moment: the attempt with the shortest time in between is used. */
static void
engine_clock_read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX, before, after, t;
	int i;

	for (i = 0; i < CLOCK_TRIES; i++) {
		before = san_engine_clock_monotonic();
		t = rte_rdtsc_precise();
		after = san_engine_clock_monotonic();
		if (after - before < best) {
			best = after - before;
			*tsc = t;
			*ns = before + (after - before) / 2;
		}
	}
}

void
san_engine_clock_init(struct san_engine_clock *c)
{
	uint64_t tsc1 = 0, ns1 = 0, ticks, ns;

	*c = (struct san_engine_clock){.is_tsc = false};
#ifdef RTE_ARCH_X86 /* others count below 1 GHz, and CLOCK_MONOTONIC is no system call there */
	c->is_tsc = rte_cpu_get_flag_enabled(RTE_CPUFLAG_INVTSC) == 1;
#endif
	engine_clock_read_both(&c->tsc0, &c->ns0);
	c->last_ns = c->ns0;
	if (!c->is_tsc)
		return;
	while (san_engine_clock_monotonic() < c->ns0 + CALIBRATE_NS)
		rte_pause();
	engine_clock_read_both(&tsc1, &ns1);
	ticks = tsc1 - c->tsc0;
	ns = ns1 - c->ns0;
	if (ticks <= ns || ns >> 32 != 0) { /* below 1 GHz, or interrupted for seconds */
		c->is_tsc = false;
		return;
	}
	c->mult = (uint32_t)((ns << 32) / ticks);
}

/* ---- open ---- */

int
san_engine_start(struct san_engine_port *p, const char **why)
{
	uint32_t i, lcore;
	int rc;

	*why = "no such worker lcore, or it is busy";
	for (i = 0; i < p->nb_engines; i++) {
		lcore = p->conf.lcores[i];
		p->engines[i]->launched = true;
		rc = rte_eal_remote_launch(san_engine_loop_main, p->engines[i], lcore);
		if (rc != 0) {
			p->engines[i]->launched = false;
			return rc;
		}
	}
	p->launched = true;
	return 0;
}

/* The tables of a parked engine, which another process has written, cannot be resized. */
static bool
has_room_of(const struct san_engine *e, const struct san_core_conf *core, const struct san_mem *mem)
{
	return san_mem_has(mem, e, sizeof(*e)) && e->conf.pdl.max_conns == core->pdl.max_conns &&
		e->conf.ulp.max_qps == core->ulp.max_qps &&
		e->conf.ulp.max_cqs == core->ulp.max_cqs &&
		e->conf.ulp.max_mrs == core->ulp.max_mrs && e->conf.max_socks == core->max_socks &&
		e->conf.ulp.max_stream_mrs == core->ulp.max_stream_mrs &&
		san_mem_has(mem, e->qps, core->ulp.max_qps * sizeof(*e->qps)) &&
		san_mem_has(mem, e->again, core->ulp.max_qps * sizeof(*e->again)) &&
		san_core_park_lies_in(e->core, mem);
}

void
san_engine_reclaim(struct san_mem *mem)
{
	struct san_engine_image *image = *san_mem_root(mem);
	uint32_t was = SAN_IMAGE_CLAIMED;

	atomic_compare_exchange_strong(&image->state, &was, SAN_IMAGE_PARKED);
}

/* Create the image of a new port. */
static int
make_image(struct san_engine_port *p, const char **why)
{
	struct san_mem *mem = p->conf.core.mem;

	*why = "no memory";
	p->image = san_mem_aligned(mem, sizeof(*p->image));
	if (p->image == NULL)
		return -ENOMEM;
	if (mem != NULL)
		*san_mem_root(mem) = p->image;
	p->image->nb_engines = p->conf.nb_lcores;
	san_engine_clock_init(&p->image->clock);
	san_tl_lend_init(&p->image->lend, p->conf.core.tl.budget_bytes, p->conf.nb_lcores);
	return 0;
}

/* Find and claim the image of a parked port. */
static int
find_image(struct san_engine_port *p, struct san_mem *mem, const char **why)
{
	struct san_engine_image *image = *san_mem_root(mem);
	uint32_t i, was = SAN_IMAGE_PARKED;

	*why = "nothing is parked there";
	if (!san_mem_has(mem, image, sizeof(*image)))
		return -EINVAL;
	*why = "parked with another number of lcores";
	if (image->nb_engines != p->conf.nb_lcores)
		return -EINVAL;
	*why = "parked with room for other numbers of connections, queues or regions";
	for (i = 0; i < p->conf.nb_lcores; i++)
		if (!has_room_of(image->engines[i], &p->conf.core, mem))
			return -EINVAL;
	/* one process succeeds, once */
	if (!atomic_compare_exchange_strong(&image->state, &was, SAN_IMAGE_CLAIMED)) {
		*why = was == SAN_IMAGE_CLAIMED ? "another process resumes it" :
						  "the process that took it over has died";
		return was == SAN_IMAGE_CLAIMED ? -EBUSY : -EOWNERDEAD;
	}
	p->image = image;
	p->conf.core.mem = mem;
	return 0;
}

/* Start the engines; the image exists. */
static int
engine_begin_lcores(struct san_engine_port *p, const char **why)
{
	uint32_t i;
	int rc;

	atomic_store(&p->stop, false);
	atomic_store(&p->image->state, SAN_IMAGE_IN_USE);
	for (i = 0; i < p->conf.nb_lcores; i++) {
		rc = san_engine_lcore_create(p, i, &p->engines[i], why);
		if (rc != 0)
			return rc;
		p->nb_engines++;
	}
	*why = "no memory for rings between lcores";
	rc = san_engine_handover_create(p);
	if (rc == 0 && p->conf.own_lcore && !p->conf.waits)
		rc = san_engine_start(p, why);
	if (rc == 0)
		san_view_telemetry_add(p);
	return rc;
}

int
san_engine_open(const struct san_engine_conf *conf, struct san_engine_port **out, const char **why)
{
	struct san_engine_port *p;
	uint32_t i, lcore;
	int rc;

	*why = "number of lcores";
	if (conf->nb_lcores == 0 || conf->nb_lcores > SAN_ENGINE_LCORES ||
	    (conf->nb_lcores > 1 && !conf->own_lcore))
		return -EINVAL;
	*why = "pool is smaller than what the queues and the reorder engine may hold";
	if (conf->pool_size < san_engine_port_pool_min(conf))
		return -EINVAL;
	*why = "no such worker lcore, or it is busy";
	for (i = 0; conf->own_lcore && i < conf->nb_lcores; i++) {
		lcore = conf->lcores[i];
		if (!rte_lcore_is_enabled(lcore) || lcore == rte_get_main_lcore() ||
		    rte_eal_get_lcore_state(lcore) != WAIT)
			return -EINVAL;
	}
	/* only now the steps that must be undone */
	*why = "no memory";
	p = san_mem_aligned(NULL, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	p->conf = *conf;
	if (conf->resumes)
		p->conf.core.mem = NULL; /* see san_engine_resume() */
	p->event_fd = p->mac_fd = -1;
	p->id = conf->port_id;
	p->info.driver_name = "";
	p->conf.idle = san_engine_idle_choose(p->conf.idle);
	*why = "no descriptor for events";
	p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = p->event_fd >= 0 ? san_engine_port_open(p, why) : -errno;
	if (rc == 0 && !conf->resumes) {
		rc = make_image(p, why);
		if (rc == 0)
			rc = engine_begin_lcores(p, why);
	}
	if (rc != 0) {
		san_engine_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

int
san_engine_resume(struct san_engine_port *p, struct san_mem *mem, const char **why)
{
	int rc = find_image(p, mem, why);

	if (rc != 0)
		return rc;
	rc = engine_begin_lcores(p, why);
	if (rc != 0)
		san_engine_park(p);
	return rc;
}

/* ---- close ---- */

static void
stop_lcores(struct san_engine_port *p)
{
	uint32_t i;

	san_view_telemetry_del(p);
	atomic_store(&p->stop, true);
	for (i = 0; i < p->nb_engines; i++) {
		san_engine_wake(p->engines[i]);
		if (p->engines[i]->launched)
			rte_eal_wait_lcore(p->conf.lcores[i]);
		p->engines[i]->launched = false;
	}
	/* p->launched stays set: a poll of another thread must not run an engine now */
}

static void
end_recordings(struct san_engine_port *p)
{
	san_view_capture(p, NULL);
	/* EAL itself would do so only in its cleanup */
	if (rte_trace_is_enabled())
		rte_trace_save();
}

/* Run more rounds of all engines, to send the last messages to peers. */
static void
say_farewell(struct san_engine_port *p)
{
	uint64_t until_ns = san_engine_clock_monotonic() + FAREWELL_NS;
	uint32_t i, lcore;
	struct san_engine *e;

	/* delete all queue pairs: the next rounds notify the peers */
	for (lcore = 0; lcore < p->nb_engines; lcore++) {
		e = p->engines[lcore];
		for (i = 0; i < e->conf.ulp.max_qps; i++)
			if (e->qps[i].wq.wq != NULL)
				san_engine_lcore_qp_del(e, e->qps[i].qpn);
	}
	/* rounds in which bursts are not allowed do not count (engine_gate.c) */
	for (i = 0; i < FAREWELL_LOOPS && san_engine_clock_monotonic() < until_ns &&
	     !san_engine_is_lost(p);) {
		for (lcore = p->nb_engines; lcore-- > 0;)
			san_engine_loop_once(p->engines[lcore]);
		if (p->engines[0]->may_burst) /* it has a queue */
			i++;
		else
			sched_yield();
	}
	if (!san_engine_is_lost(p))
		rte_delay_us_sleep(FAREWELL_US);
}

void
san_engine_halt(struct san_engine_port *p)
{
	/* another thread may still poll */
	atomic_store(&p->lost, true);
	stop_lcores(p);
	end_recordings(p);
	san_engine_port_shut(p);
}

void
san_engine_close(struct san_engine_port *p)
{
	struct san_mem *mem = p->conf.core.mem;
	uint32_t i;

	stop_lcores(p);
	if (p->nb_engines != 0)
		say_farewell(p);
	end_recordings(p);
	for (i = 0; i < p->nb_engines; i++)
		san_engine_lcore_destroy(p->engines[i]);
	if (p->image != NULL && mem != NULL)
		*san_mem_root(mem) = NULL;
	san_mem_end(mem, p->image);
	san_engine_handover_destroy(p);
	san_engine_port_close(p);
	if (p->event_fd >= 0)
		close(p->event_fd);
	/* a process that resumes the port needs the guard */
	san_engine_kernel_unguard(p, p->conf.resumes);
	free(p);
}

void
san_engine_park(struct san_engine_port *p)
{
	uint32_t i;

	stop_lcores(p);
	end_recordings(p);
	for (i = 0; i < p->nb_engines; i++)
		san_engine_lcore_rest(p->engines[i]);
	p->nb_engines = 0;
	san_engine_handover_destroy(p);
	if (p->image != NULL)
		atomic_store(&p->image->state, SAN_IMAGE_PARKED);
	p->image = NULL;
	p->conf.core.mem = NULL;
	p->conf.resumes = true;
}

uint32_t
san_engine_count(const struct san_engine_port *p)
{
	return p->nb_engines;
}

struct san_engine *
san_engine_at(const struct san_engine_port *p, uint32_t id)
{
	return p->engines[id];
}

const struct san_engine_conf *
san_engine_conf_of(const struct san_engine_port *p)
{
	return &p->conf;
}

bool
san_engine_is_lost(const struct san_engine_port *p)
{
	return atomic_load_explicit(&p->lost, memory_order_relaxed);
}

int
san_engine_progress(struct san_engine_port *p)
{
	uint32_t work;

	if (san_engine_is_lost(p))
		return -EIO;
	if (p->launched) {
		/* a thread that waits here uses the lcore's CPU, and must let it run */
		if (p->conf.idle >= SAN_IDLE_YIELD)
			sched_yield();
		return 0;
	}
	work = san_engine_loop_once(p->engines[0]);
	san_engine_idle_after(p->engines[0], work);
	return (int)work;
}

int
san_engine_event_fd(const struct san_engine_port *p)
{
	return p->event_fd;
}

bool
san_engine_event_arm(struct san_engine_port *p)
{
	struct san_engine *e;
	eventfd_t n;
	uint32_t i;

	eventfd_read(p->event_fd, &n); /* does not block */
	atomic_store_explicit(&p->event_armed, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; i < p->nb_engines; i++) {
		e = p->engines[i];
		if (san_spsc_count_now(&e->event_q.cons, &e->event_q.tail) != 0)
			return true;
	}
	return false;
}

bool
san_engine_is_shareable(const struct san_engine_port *p)
{
	return strcmp(p->info.driver_name, "net_af_packet") == 0;
}

bool
san_engine_event(struct san_engine_port *p, struct san_core_event *ev)
{
	struct san_engine *e;
	struct san_spsc *q;
	uint32_t i;

	/* another engine is first each time, so that a busy one does not delay the others */
	for (i = 0; i < p->nb_engines; i++) {
		if (++p->next_event >= p->nb_engines)
			p->next_event = 0;
		e = p->engines[p->next_event];
		q = &e->event_q;
		if (san_spsc_count(&q->cons, &q->tail) == 0)
			continue;
		*ev = e->events[q->cons.head & q->cons.mask];
		san_spsc_pop(&q->cons, &q->head, 1);
		return true;
	}
	return false;
}

struct impair_call {
	bool tx;
	const struct san_engine_impair_conf *conf;
};

static int
engine_do_impair(struct san_engine *e, void *arg)
{
	const struct impair_call *call = arg;

	return san_engine_impair_set(call->tx ? &e->impair_tx : &e->impair_rx, call->conf);
}

int
san_engine_set_impair(struct san_engine_port *p, bool tx, const struct san_engine_impair_conf *conf)
{
	struct impair_call call = {.tx = tx, .conf = conf};
	int rc = 0;
	uint32_t i;

	/* all engines refuse the same values */
	for (i = 0; i < p->nb_engines && rc == 0; i++)
		rc = san_engine_loop_call(p->engines[i], engine_do_impair, &call);
	return rc;
}
