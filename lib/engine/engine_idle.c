/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What an lcore does when it finds no work (ARCH-6). On a CPU of its own it should only poll. If
 * lcores share a CPU, a loop that never yields delays the peer for which it waits.
 */

#define ALLOW_EXPERIMENTAL_API /* see view_trace.h: before the first header of DPDK */

#include <sched.h>
#include <sys/epoll.h>

#include <rte_lcore.h>

#include "engine_priv.h"
#include "view_trace.h"

#define EMPTY_ROUNDS       64 /* before it yields: a reply over a fast link arrives sooner */
#define EMPTY_ROUNDS_SLEEP 2  /* the same if lcores sleep: programs wait for this CPU */
#define SLEEP_MIN_NS       (20 * SAN_NS_PER_US)
#define INTERRUPT_MAX_NS   (100 * SAN_NS_PER_MS) /* to notice a removed port or a link change */
#define HEARS_MAX_NS       (20 * SAN_NS_PER_MS)  /* the same if packets wake it */
#define SPIN_MAX_NS        (100 * SAN_NS_PER_US)
#define WAKERS             8

const char *const san_engine_idle_words[SAN_IDLE_MAX] = {
	[SAN_IDLE_AUTO] = "auto",
	[SAN_IDLE_POLL] = "poll",
	[SAN_IDLE_PAUSE] = "pause",
	[SAN_IDLE_YIELD] = "yield",
	[SAN_IDLE_SLEEP] = "sleep",
	[SAN_IDLE_INTERRUPT] = "interrupt",
};

uint8_t
san_engine_idle_choose(uint8_t policy)
{
	unsigned int lcore, nb = rte_lcore_count();
	rte_cpuset_t all, own;

	if (policy != SAN_IDLE_AUTO)
		return policy;
	CPU_ZERO(&all);
	RTE_LCORE_FOREACH(lcore) {
		own = rte_lcore_cpuset(lcore);
		CPU_OR(&all, &all, &own);
	}
	/* lcores share CPUs, or outnumber them */
	if ((unsigned int)CPU_COUNT(&all) < nb || (unsigned int)sysconf(_SC_NPROCESSORS_ONLN) < nb)
		return SAN_IDLE_YIELD;
	return SAN_IDLE_POLL;
}

/* ---- descriptors that end a sleep ---- */

int
san_engine_idle_add(const struct san_engine *e, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

int
san_engine_idle_init(struct san_engine *e, const char **why)
{
	const struct san_engine_port *p = e->port;
	uint32_t i;
	int rc, fd;

	e->hears = false;
	if (p->conf.idle < SAN_IDLE_SLEEP)
		return 0;
	*why = "no descriptors to sleep on";
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->epoll < 0 || e->wake_fd < 0)
		return -errno;
	rc = san_engine_idle_add(e, e->wake_fd);
	if (rc != 0 || !e->has_queue)
		return rc;
	/* with several queues, a packet for another lcore wakes this one, too */
	for (i = 0; i < p->nb_driver_fds; i++)
		if (san_engine_idle_add(e, p->driver_fds[i]) == 0)
			e->hears = true;
	if (e->hears || p->conf.idle != SAN_IDLE_INTERRUPT)
		return 0;
	*why = "idle=interrupt: the port has no receive interrupts; idle=sleep needs none";
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd(e->port_id, e->id);
	if (fd < 0)
		return -ENOTSUP;
	/* some drivers need no enabling: their packets come by a descriptor */
	rc = rte_eth_dev_rx_intr_enable(e->port_id, e->id);
	if (rc != 0 && rc != -ENOTSUP)
		return rc;
	rte_eth_dev_rx_intr_disable(e->port_id, e->id);
	rc = san_engine_idle_add(e, fd);
	e->hears = rc == 0;
	return rc;
}

/* ---- sleeping ---- */

/* While an lcore dozes, work for it must wake it. It runs one more round before it sleeps. */
static void
set_dozing(struct san_engine *e, bool dozes)
{
	uint32_t i;

	for (i = 0; i < e->nb_apps; i++)
		if (e->apps[i].doorbells != NULL)
			san_doorbells_set_asleep(e->apps[i].doorbells, dozes);
	if (e->port->conf.idle == SAN_IDLE_INTERRUPT && e->has_queue)
		(dozes ? rte_eth_dev_rx_intr_enable : rte_eth_dev_rx_intr_disable)(e->port_id,
										   e->id);
	e->dozes = dozes;
	/* pairs with san_doorbells_ring() and san_engine_wake() */
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Longest sleep. Work of programs and of other lcores ends it sooner, and so do packets if the port
 * reports them. If not, the sleep is a quarter of the time since the last work: a dialogue resumes
 * soon, and an idle lcore needs little CPU time.
 */
static uint64_t
sleep_max_ns(const struct san_engine *e)
{
	uint64_t ns = (e->now_ns - e->idle_ns) / 4;

	if (e->port->conf.idle == SAN_IDLE_INTERRUPT)
		return INTERRUPT_MAX_NS;
	/* other lcores may want budget back, and the caller may have other ports */
	if (e->hears && e->is_alone && e->launched)
		return HEARS_MAX_NS;
	ns = RTE_MAX(ns, (uint64_t)SLEEP_MIN_NS);
	return RTE_MIN(ns, e->port->conf.sleep_max_us * SAN_NS_PER_US);
}

static void
sleep_until_due(struct san_engine *e)
{
	uint64_t due_ns = san_core_deadline_ns(e->core);
	struct epoll_event ev[WAKERS];
	struct timespec ts = {0};

	due_ns = san_time_min(due_ns, san_engine_impair_deadline_ns(&e->impair_tx));
	due_ns = san_time_min(due_ns, san_engine_impair_deadline_ns(&e->impair_rx));
	if (unlikely(san_engine_is_lost(e->port)))
		due_ns = SAN_TIME_NEVER; /* a lost port has no deadlines */
	if (due_ns <= e->now_ns)
		return;
	ts.tv_nsec = (long)san_time_min(due_ns - e->now_ns, sleep_max_ns(e));
	san_trace_sleep(e->id, (uint64_t)ts.tv_nsec);
	/* which one it was does not matter: the next round checks everything */
	epoll_pwait2(e->epoll, ev, WAKERS, &ts, NULL);
	e->slept_ns = (uint64_t)ts.tv_nsec;
	if (e->hears) /* a packet would have ended the sleep, so none is waiting */
		e->rx_ns = san_engine_clock_now(&e->clock);
	e->stats.nb_sleeps++;
}

void
san_engine_idle_after(struct san_engine *e, uint32_t work)
{
	const uint8_t idle = e->port->conf.idle;
	uint64_t nb_wcs;

	if (work != 0) {
		if (e->idle_loops != 0 && idle >= SAN_IDLE_SLEEP)
			san_spin_learn(&e->spin, e->now_ns - e->idle_ns, SPIN_MAX_NS);
		e->idle_loops = 0;
		/* programs on this CPU that wait for a completion run now, not some rounds later */
		if (idle == SAN_IDLE_YIELD && e->launched) {
			nb_wcs = san_ulp_stats(san_core_ulp(e->core))->nb_wcs;
			if (nb_wcs != e->nb_wcs_notified)
				sched_yield();
			e->nb_wcs_notified = nb_wcs;
		}
		if (unlikely(e->dozes))
			set_dozing(e, false);
		return;
	}
	e->stats.nb_loops_idle++;
	if (idle == SAN_IDLE_PAUSE)
		rte_pause();
	if (e->idle_loops < (idle >= SAN_IDLE_SLEEP ? EMPTY_ROUNDS_SLEEP : EMPTY_ROUNDS)) {
		if (e->idle_loops++ == 0)
			e->idle_ns = e->now_ns;
		return;
	}
	if (idle < SAN_IDLE_YIELD)
		return;
	/* it stays awake while work is expected soon, or waits for room, which nothing reports */
	if (idle == SAN_IDLE_YIELD || e->nb_again != 0 || e->nb_backlog != 0 ||
	    e->now_ns - e->idle_ns < san_spin_ns(&e->spin))
		sched_yield();
	else if (!e->dozes)
		set_dozing(e, true);
	else
		sleep_until_due(e);
}

/* ---- waking threads of programs ---- */

void
san_engine_idle_wake_waiters(struct san_engine *e)
{
	const uint64_t one = 1; /* an eventfd takes 8 bytes */
	int fd;

	/* a full descriptor is readable, as intended; a closed one has no waiter */
	while ((fd = san_ulp_cq_wake_next(san_core_ulp(e->core))) >= 0)
		e->stats.nb_wakes += write(fd, &one, sizeof(one)) > 0;
}

void
san_engine_idle_wake_socks(struct san_engine *e)
{
	struct san_socks *all = san_core_socks(e->core);
	const char byte = 0;
	bool ends;
	int fd;

	if (likely(all == NULL))
		return;
	/* if the pair is full it is readable; if it is closed, no thread waits there */
	while ((fd = san_sock_wake_next(all, &ends)) >= 0)
		e->stats.nb_wakes += (ends ? shutdown(fd, SHUT_WR) == 0 :
					     send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0);
	if (unlikely(san_sock_table_has_room(all)))
		san_engine_event_wake(e->port);
}
