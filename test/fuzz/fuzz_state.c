/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a new daemon gets from the one that it takes over from: the first message, the bytes and the
 * descriptors. It is that of a real daemon, changed by the input. Each three bytes of the input are
 * a place and what stands there; the first byte says where it ends. Whatever it is, it is taken or
 * refused, and nothing stays. (SYS-8)
 */

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "app_priv.h"
#include "app.h"
#include "state.h"
#include "server.h"
#include "san_assert.h"
#include "shmq.h"

#define TEST_EAL_MB "128"
#include "unit/test_eal.h"

#define OWN_IP  "10.0.0.1"
#define BYTES   ((size_t)64 << 10)
#define STATE   ((size_t)64 << 20)
#define NB_APPS 2

static struct conf conf = {.nb_ports = 1, .ports = {{.name = "0"}}};
static struct apps all;
static struct dpdk_ctx *ctx;
static struct state base; /* as it is saved */

/** The first message, as state.c has it. */
union first {
	struct {
		uint64_t len;
		uint32_t nb_fds, pad;
	};
	uint8_t bytes[16];
};

/* ---- a daemon with two applications ---- */

static void
make_mem(struct app_mem *m)
{
	int fd;

	SAN_VERIFY(san_app_mem_create(m, "fuzz-state", BYTES, 1, &fd) == 0);
	close(fd);
}

static int
some_socket(void)
{
	int ends[2];

	SAN_VERIFY(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	close(ends[1]);
	return ends[0];
}

static void
make_app(uint16_t id)
{
	struct app_event *late = calloc(1, sizeof(*late));
	struct app_port *port = &all.ports[0];
	struct app *a = san_apps_add(&all, some_socket());
	size_t bytes = san_shmq_ctl_bytes(port->caps.nb_lcores, port->nb_doorbells);
	int fd;

	SAN_VERIFY(late != NULL && a != NULL);
	a->port = port;
	a->id = id;
	a->attached = true;
	SAN_VERIFY(san_app_mem_create(&a->ctl_mem, "fuzz-state", bytes, id, &fd) == 0);
	close(fd);
	a->wake_sock = some_socket();
	STAILQ_INSERT_TAIL(&a->late, late, link);
	a->nb_late = 1;
}

static void
make_things(uint16_t id)
{
	struct app_listener *l = calloc(1, sizeof(*l));
	struct app_port *port = &all.ports[0];
	struct app *a = LIST_FIRST(&all.list);
	uint64_t request = id; /* slot and generation */

	SAN_VERIFY(l != NULL);
	*l = (struct app_listener){.app = a, .id = id, .service = 7};
	LIST_INSERT_HEAD(&port->listeners, l, link);
	*san_app_port_request(port, request) = (struct app_request){.request = request, .app = a};
	port->qps[id] = (struct app_thing){.app = a, .number = id};
	make_mem(&port->qps[id].mem);
	port->cqs[id] = (struct app_thing){
		.app = a,
		.number = id,
		.cq = san_mem_aligned(port->mem, 4096),
		.wake_sock = some_socket(),
	};
	make_mem(&port->cqs[id].mem);
	port->mrs[id] = (struct app_thing){.app = a, .number = id};
	make_mem(&port->mrs[id].mem);
}

static void
make_port(void)
{
	struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 1}};
	char *words[] = {
		"port=net_ring0",
		"ip=" OWN_IP "/24",
		"poll=caller",
		"conns=16",
		"cqs=16",
		"regions=16",
		"held=64",
		"rxd=64",
		"txd=64",
	};
	static struct dpdk_conf port;
	uint16_t id;

	test_eal_init();
	SAN_VERIFY(rte_eal_hotplug_add("vdev", "net_ring0", "") == 0);
	SAN_VERIFY(rte_eth_dev_get_port_by_name("net_ring0", &id) == 0);
	SAN_VERIFY(rte_eth_dev_mac_addr_add(id, &mac, 0) == 0);
	SAN_VERIFY(san_dpdk_conf_read(&port, words, (int)RTE_DIM(words), rtsan_provider_host()) ==
		   0);
	SAN_VERIFY(san_dpdk_ctx_open("0", &port, NULL, NULL, rtsan_provider_host(), &ctx) == 0);
}

/* ---- what is taken goes again ---- */

static void
drop_mem(struct app_mem *m)
{
	if (m->mem == NULL)
		return;
	san_shmq_guard_del(m->guard);
	munmap(m->mem, m->bytes);
	close(m->fd);
	m->mem = NULL;
}

static void
drop_app(struct app *a)
{
	struct app_event *late;

	while ((late = STAILQ_FIRST(&a->late)) != NULL) {
		STAILQ_REMOVE_HEAD(&a->late, link);
		free(late);
	}
	drop_mem(&a->ctl_mem);
	san_fd_close(a->sock);
	san_fd_close(a->wake_sock);
	for (int i = 0; i < SAN_ENGINE_LCORES; i++)
		san_fd_close(a->wake_fds[i]);
	LIST_REMOVE(a, link);
	free(a);
}

static void
drop_port(struct app_port *port)
{
	struct app_listener *l;

	for (enum app_kind kind = 0; kind < APP_KINDS; kind++) {
		for (uint32_t i = 0; i < san_app_port_nb(port, kind); i++) {
			struct app_thing *t = &port->things[kind][i];

			drop_mem(&t->mem);
			if (kind == APP_CQ && t->app != NULL)
				san_fd_close(t->wake_sock);
		}
	}
	while ((l = LIST_FIRST(&port->listeners)) != NULL) {
		LIST_REMOVE(l, link);
		free(l);
	}
	san_mem_close(port->mem);
	close(port->mem_fd);
	san_app_port_fini(port);
}

static void
drop_all(void)
{
	struct app *a;

	while ((a = LIST_FIRST(&all.list)) != NULL)
		drop_app(a);
	while (all.nb_ports > 0)
		drop_port(&all.ports[--all.nb_ports]);
	san_apps_init(&all, &conf);
	all.ports[0].ctx = ctx;
}

/* ---- once ---- */

static uint32_t
nb_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* *st* is as it was put, with descriptors of its own. */
static void
copy_base(struct state *st)
{
	*st = base;
	st->data = malloc(base.len + 1);
	st->fds = malloc(base.nb_fds * sizeof(int));
	SAN_VERIFY(st->data != NULL && st->fds != NULL);
	memcpy(st->data, base.data, base.len);
	for (uint32_t i = 0; i < base.nb_fds; i++)
		SAN_VERIFY((st->fds[i] = fcntl(base.fds[i], F_DUPFD_CLOEXEC, 0)) >= 0);
}

static int
take(struct state *st)
{
	int rc = san_app_state_load_ports(&all, st);

	return rc == 0 ? san_app_state_load(&all, st) : rc;
}

static bool
lies_in(const void *p, uint64_t from, uint64_t bytes)
{
	return (uintptr_t)p >= from && (uintptr_t)p - from < bytes;
}

/* What was taken is ours, and counted. */
static void
check(void)
{
	const struct app_port *port = &all.ports[0];
	uint32_t nb = 0, nb_mrs = 0;
	const struct app *a;

	for (uint32_t i = 0; i < port->caps.max_cqs && all.nb_ports != 0; i++)
		SAN_VERIFY(port->cqs[i].app == NULL ||
			   lies_in(port->cqs[i].cq, (uintptr_t)port->mem, STATE));
	for (uint32_t i = 0; i < port->caps.max_mrs && all.nb_ports != 0; i++) {
		if (port->mrs[i].app == NULL)
			continue;
		SAN_VERIFY(lies_in(port->mrs[i].mem.mem, PORTS_SHARE_FROM, PORTS_SHARE_BYTES));
		nb_mrs++;
	}
	LIST_FOREACH(a, &all.list, link) {
		SAN_VERIFY(!a->attached || (a->id != 0 && a->id < SAN_ENGINE_APPS));
		for (const struct app *other = LIST_NEXT(a, link); other != NULL;
		     other = LIST_NEXT(other, link))
			SAN_VERIFY(!a->attached || !other->attached || a->id != other->id);
		nb += a->attached;
		nb_mrs -= (uint32_t)a->nb[USERS_MRS];
	}
	SAN_VERIFY(nb == all.nb_attached && nb_mrs == 0);
}

/* What a daemon saves, another one has: it would save the same. */
static void
check_base(void)
{
	struct state st, again = {.failed = false};

	copy_base(&st);
	SAN_VERIFY(take(&st) == 0 && !st.failed);
	SAN_VERIFY(all.nb == NB_APPS && all.nb_attached == NB_APPS);
	san_app_state_save(&all, &again);
	SAN_VERIFY(again.len == base.len && again.nb_fds == base.nb_fds);
	san_state_free(&again, false);
	san_state_free(&st, true);
	drop_all();
}

/* Taken, or refused; nothing stays. *st* is the caller's copy. */
static void
try(struct state *st)
{
	int rc = take(st);

	SAN_VERIFY(st->failed == (st->why != NULL) && (!st->failed || rc != 0));
	check();
	san_state_free(st, true);
	drop_all();
}

/* Each byte has another value. */
static void
check_bytes(void)
{
	static const uint8_t values[] = {0, 1, 2, 0x7f, 0xff};
	struct state st;

	for (size_t at = 0; at < base.len; at++) {
		for (size_t i = 0; i < RTE_DIM(values); i++) {
			copy_base(&st);
			st.data[at] = values[i];
			try(&st);
		}
	}
}

static void
make_base(void)
{
	struct app_port *port = &all.ports[0];
	uint32_t ranges;
	int event_fd;

	make_port();
	san_apps_init(&all, &conf);
	san_shmq_mem_place(PORTS_SHARE_FROM, PORTS_SHARE_BYTES);
	SAN_VERIFY(san_mem_create(PORTS_STATE_FROM, STATE, &port->mem_fd, &port->mem) == 0);
	SAN_VERIFY(san_apps_add_port(&all, "0", port->mem, ctx) == 0);
	ranges = san_apps_ranges(&all);
	SAN_VERIFY(san_shmq_guard_init(ranges, &event_fd) == 0);
	for (uint16_t id = 1; id <= NB_APPS; id++) {
		make_app(id);
		make_things(id);
	}
	san_app_state_save(&all, &base);
	SAN_VERIFY(!base.failed);
	for (uint32_t i = 0; i < base.nb_fds; i++)
		SAN_VERIFY((base.fds[i] = fcntl(base.fds[i], F_DUPFD_CLOEXEC, 0)) >= 0);
	drop_all();
	check_base();
	check_bytes();
}

static int
other_fd(uint8_t kind)
{
	switch (kind % 4) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		return memfd_create("fuzz-state", MFD_CLOEXEC);
	case 2:
		return some_socket();
	default:
		return fcntl(base.fds[kind / 4 % base.nb_fds], F_DUPFD_CLOEXEC, 0);
	}
}

static void
change(struct state *st, union first *first, uint32_t at, uint8_t value)
{
	at %= (uint32_t)base.len + base.nb_fds + (uint32_t)sizeof(first->bytes);
	if (at < base.len) {
		st->data[at] = value;
	} else if ((at -= (uint32_t)base.len) < base.nb_fds) {
		close(st->fds[at]);
		st->fds[at] = other_fd(value);
	} else {
		first->bytes[at - base.nb_fds] = value;
	}
}

/* *st* goes through a socket, behind that first message. */
static int
hand_over(struct state *st, const union first *first, struct state *got)
{
	int rc, socks[2], fd = memfd_create("fuzz-state", MFD_CLOEXEC);
	uint32_t nb;

	SAN_VERIFY(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) == 0);
	SAN_VERIFY(write(fd, st->data, st->len) == (ssize_t)st->len);
	SAN_VERIFY(san_shmq_send(socks[0], first, sizeof(*first), fd, false) == 0);
	close(fd);
	for (uint32_t at = 0; at < st->nb_fds; at += nb) {
		nb = RTE_MIN(st->nb_fds - at, (uint32_t)SHMQ_FDS);
		SAN_VERIFY(san_shmq_send_many(socks[0], "", 1, &st->fds[at], nb, false) == 0);
	}
	close(socks[0]);
	san_state_free(st, true);
	rc = san_state_recv(got, socks[1]);
	close(socks[1]);
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint32_t fds;
	struct state st, got;
	union first first;

	if (base.data == NULL) {
		make_base();
		fds = nb_fds();
	}
	copy_base(&st);
	if (size > 0 && data[0] != 0)
		st.len = st.len * data[0] / UINT8_MAX;
	first = (union first){.len = st.len, .nb_fds = st.nb_fds};
	for (size_t i = 1; i + 2 < size; i += 3)
		change(&st, &first, data[i] | (uint32_t)data[i + 1] << 8, data[i + 2]);
	if (hand_over(&st, &first, &got) == 0)
		try(&got);
	else
		san_state_free(&got, true);
	SAN_VERIFY(nb_fds() == fds);
	return 0;
}
