/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The kernel decides about addresses: which one a program may bind, whether it is in use, which
 * port is free, which source address a route selects. Only a socket that the kernel has bound is
 * carried, and its address is read from the kernel, not from the program. So a program can carry
 * only a socket that it may bind.
 */

#include <fcntl.h>

#include "rtsan_priv.h"
#include "socks_priv.h"
#include "view.h"

#define LINGER_NS   (1 * SAN_NS_PER_S)  /* for datagrams that were sent before close() */
#define LINGER_STEP (1 * SAN_NS_PER_MS) /* delay before the next check */
#define POLL_MAX    64                  /* pairs per poll() */
#define SQ_DEPTH    16                  /* of streams */
#define RQ_DEPTH    4
#define TAG_PAIR    ((uintptr_t)1) /* tags in the pointer of an event */
#define TAG_TOKEN   ((uintptr_t)2)
#define TAGS        (TAG_PAIR | TAG_TOKEN)

/* All sockets belong to the first lcore. */
static struct san_engine *
socks_engine(const struct app_port *port)
{
	return san_engine_at(port->ctx->port, 0);
}

/* ---- on the lcore ---- */

/** A datagram, or an error, of the kernel's socket. */
struct socks_given {
	const struct helper_dgram *d;
	const void *data;
	uint32_t len;
};

struct socks_call {
	enum socks_op op;
	struct app_sock *s;
	void *arg;
};

/* Create the queue pair of a stream. */
static int
lcore_add_stream(struct app_sock *s, struct san_core *core, uint64_t now_ns)
{
	struct san_core_stream_conf conf = {
		.qp = {.sq_depth = SQ_DEPTH, .rq_depth = RQ_DEPTH},
		.is_sock = true,
		.sock = s->id,
		.user = s->owner,
	};
	int rc;

	san_stream_conf_default(&conf.stream);
	rc = san_core_stream_create(core, &conf, now_ns, &s->qpn);
	if (rc == 0)
		san_sock_stream(san_core_socks(core), s->id, s->qpn);
	else
		s->qpn = SAN_QPN_NONE;
	return rc;
}

static int
lcore_add(struct app_sock *s, struct san_core *core, const struct san_sock_names *names,
	  uint64_t now_ns)
{
	struct san_socks *all = san_core_socks(core);
	bool is_stream = s->kind == SOCKS_STREAM;
	struct san_sock_shm *shm = s->mem.mem;
	int rc = san_sock_add(all, shm,
			      is_stream ? SAN_SOCK_STREAM_RX_BYTES : SAN_SOCK_RX_BYTES,
			      is_stream ? SAN_SOCK_STREAM_TX_BYTES : SAN_SOCK_TX_BYTES, s->pair,
			      &s->id);

	if (rc != 0)
		return rc;
	shm->id = s->id;
	if (!is_stream)
		san_sock_name(all, s->id, names);
	else
		rc = lcore_add_stream(s, core, now_ns);
	s->has_id = rc == 0;
	if (rc != 0)
		san_sock_del(all, s->id);
	return rc;
}

static void
lcore_del(const struct app_sock *s, struct san_core *core, uint64_t now_ns)
{
	uint32_t i;

	if (s->kind == SOCKS_STREAM) {
		san_core_conn_abort(core, s->qpn, now_ns);
		san_core_stream_destroy(core, s->qpn);
	}
	for (i = 0; i < s->nb_groups; i++)
		san_inet_group_leave(san_core_inet(core), &s->groups[i], now_ns);
	san_sock_del(san_core_socks(core), s->id);
}

/* Join on the link and on the socket, or on neither. */
static int
lcore_join(const struct app_sock *s, struct san_core *core, const struct san_ip *group,
	   uint64_t now_ns)
{
	struct san_socks *all = san_core_socks(core);
	int rc = san_sock_find_join(all, s->id, group);

	if (rc != 0)
		return rc;
	rc = san_inet_group_join(san_core_inet(core), group, now_ns);
	if (rc != 0)
		san_sock_find_leave(all, s->id, group);
	return rc;
}

static void
lcore_give(const struct app_sock *s, struct san_socks *all, const struct socks_given *g,
	   uint64_t now_ns)
{
	const struct san_sock_shm *shm = s->mem.mem;
	const struct san_inet_dgram dgram = {
		.src = g->d->src,
		.dst = g->d->dst,
		.sport = g->d->sport,
		.dport = shm->local.port,
		.hops = g->d->hops,
		.tos = g->d->tos,
	};

	if (g->d->err == 0)
		san_sock_dgram_put(all, s->id, &dgram, g->d->if_index, g->data, g->len, now_ns);
	/* the kernel sees the errors of its device, too; the lcore reports those itself */
	else if (!san_sock_uses_link(all, s->id))
		san_sock_dgram_fail(all, s->id, g->d->err);
}

/* True if it can be released. If that loses data, the peer gets a reset, as with TCP. */
static bool
lcore_shut(const struct app_sock *s, struct san_core *core)
{
	struct san_socks *all = san_core_socks(core);
	const struct san_stream *session;

	if (san_sock_stream_is_reset(all, s->id))
		return true;
	san_sock_stream_shut(all, s->id);
	session = san_core_stream(core, s->qpn);
	if (san_sock_stream_is_over(all, s->id) || session == NULL)
		return true;
	/* data that only the stream has accepted could still be lost */
	return san_sock_stream_is_drained(all, s->id) && san_stream_is_drained(session);
}

static int
lcore_execute(struct san_engine *e, void *arg)
{
	const struct socks_call *c = arg;
	struct san_core *core = san_engine_lcore_core(e);
	struct san_inet *inet = san_core_inet(core);
	struct san_socks *all = san_core_socks(core);
	uint64_t now_ns = san_engine_lcore_now_ns(e);
	const struct iovec *bytes = c->arg;
	struct app_sock *s = c->s;
	int rc = 0;

	switch (c->op) {
	case LCORE_ADD:
		return lcore_add(s, core, c->arg, now_ns);
	case LCORE_DEL:
		lcore_del(s, core, now_ns);
		break;
	case LCORE_SOURCE:
		return san_inet_route_source(inet, c->arg, c->arg);
	case LCORE_DOORBELL:
		san_sock_doorbell(all, s->id);
		break;
	case LCORE_NAME:
		san_sock_name(all, s->id, c->arg);
		break;
	case LCORE_JOIN:
		return lcore_join(s, core, c->arg, now_ns);
	case LCORE_LEAVE:
		rc = san_sock_find_leave(all, s->id, c->arg);
		if (rc == 0)
			san_inet_group_leave(inet, c->arg, now_ns);
		break;
	case LCORE_GIVE:
		lcore_give(s, all, c->arg, now_ns);
		break;
	case LCORE_HAS_SENT:
		san_sock_doorbell(all, s->id);
		return san_sock_dgram_has_sent(all, s->id);
	case LCORE_UP:
		san_sock_stream_up(all, s->id, now_ns);
		break;
	case LCORE_REFUSE:
		san_sock_stream_over(all, s->id, ECONNREFUSED);
		break;
	case LCORE_SHUT:
		return lcore_shut(s, core);
	case LCORE_IS_DEAD:
		return san_sock_stream_is_over(all, s->id) || san_core_stream(core, s->qpn) == NULL;
	case LCORE_MAY_APPEND:
		return san_sock_stream_may_append(all, s->id);
	default: /* LCORE_APPEND */
		san_sock_stream_append(all, s->id, bytes->iov_base, (uint32_t)bytes->iov_len,
				       now_ns);
		break;
	}
	return rc;
}

int
san_socks_call(struct app_sock *s, enum socks_op op, void *arg)
{
	struct socks_call c = {op, s, arg};

	return san_engine_loop_call(socks_engine(s->port), lcore_execute, &c);
}

/* ---- properties from the kernel ---- */

void
san_socks_fill_addr(struct san_sock_addr *a, const struct san_ip *ip, uint16_t port,
		    uint16_t family, uint32_t scope)
{
	memcpy(a->ip, ip->b, sizeof(a->ip));
	a->port = port;
	a->family = family;
	a->scope = scope;
}

bool
san_socks_is_ours(const struct app_port *port, const struct san_ip *ip)
{
	const struct san_inet_conf *conf = &san_engine_conf_of(port->ctx->port)->core.inet;
	uint16_t i;

	for (i = 0; i < conf->nb_addrs; i++)
		if (san_wire_ip_eq(&conf->addrs[i].ip, ip))
			return true;
	return false;
}

int
san_socks_refuse(struct shmq_rep *rep, int rc, const char *text)
{
	snprintf(rep->text, sizeof(rep->text), "socket: %s", text);
	return rc;
}

int
san_socks_check_kernel(const struct app_port *port, const struct helper_facts *facts, int protocol,
		       struct shmq_rep *rep)
{
	if ((facts->domain != AF_INET && facts->domain != AF_INET6) || facts->protocol != protocol)
		return san_socks_refuse(rep, -EPROTONOSUPPORT,
					"neither IPv4 nor IPv6, or of another protocol");
	if (!facts->is_our_net)
		return san_socks_refuse(rep, -EXDEV,
					"of another network namespace than the daemon's");
	/* the kernel allows the same address on two devices, but the port belongs to one of them */
	if (facts->device != 0 && facts->device != (int)san_engine_sock_if_index(port->ctx->port))
		return san_socks_refuse(rep, -EXDEV, "bound to a device that is not the port's");
	if (facts->has_filter)
		return san_socks_refuse(rep, -EOPNOTSUPP, "it has a filter of its own");
	return 0;
}

/* ---- helpers ---- */

struct helper_sock
san_socks_name(const struct app_sock *s)
{
	return (struct helper_sock){
		.port = s->port->index,
		.place = (uint32_t)(s - s->port->socks),
		.number = s->number,
	};
}

int
san_socks_ask(const struct app_sock *s, struct helper_msg *m, const struct app *a)
{
	int rc;

	m->job = a->job;
	m->handle = s->kernel;
	m->sock = san_socks_name(s);
	rc = san_helper_ask(s->helper, m, m->op == HELPER_GIVE ? a->sock : -1);
	return rc == 0 ? -EINPROGRESS : rc;
}

void
san_socks_keep(struct app_sock *s, struct passed *p)
{
	s->helper = p->helper;
	s->kernel = p->handle;
	s->kernel_inode = p->facts->inode;
	p->handle = -1;
}

/* ---- creation ---- */

int
san_socks_watch(const struct app_sock *s, bool is_token)
{
	/*
	 * A program without the library may have accepted the token, and written. The pair is
	 * edge-triggered: a message may stay there for a while.
	 */
	uint32_t events = EPOLLIN | (uint32_t)(is_token ? EPOLLRDHUP : EPOLLET);
	uintptr_t what = (uintptr_t)s | (is_token ? TAG_TOKEN : TAG_PAIR);
	int fd = is_token ? s->token : s->pair;

	return san_fd_watch(s->port->all->epoll, fd, events, (void *)what);
}

struct app_sock *
san_socks_take(struct app_port *port, uid_t uid, uid_t owner, size_t bytes, struct shmq_rep *rep)
{
	uint64_t has = san_users_nb(port->index, &owner, USERS_SOCK_BYTES);
	struct app_sock *s = port->socks;
	int rc = san_apps_check(port, USERS_SOCKS, owner, 1);

	if (rc == 0)
		rc = san_apps_check(port, USERS_SOCK_BYTES, owner, bytes);
	if (rc == 0 && has + bytes > port->conf->sock_bytes)
		rc = san_socks_refuse(rep, -ENOSPC,
				      "its user's sockets have reached their limit; see "
				      "sock_bytes=");
	if (rc != 0) {
		port->nb_socks_refused++;
		return NULL;
	}
	while (s->port != NULL)
		s++;
	*s = (struct app_sock){
		.port = port,
		.number = ++port->last_sock,
		.uid = uid,
		.owner = owner,
		.kernel = -1,
		.pair = -1,
		.held = -1,
		.token = -1,
		.qpn = SAN_QPN_NONE,
	};
	port->nb_socks++;
	san_users_count(port->index, s->owner, USERS_SOCKS, 1);
	return s;
}

struct app_sock *
san_socks_next(const struct app_port *port, struct app_sock *s)
{
	for (s = s == NULL ? port->socks : s + 1; s < port->socks + port->max_socks; s++)
		if (s->port != NULL)
			return s;
	return NULL;
}

struct app_sock *
san_socks_find(const struct app_port *port, uint64_t cookie, bool is_kernel)
{
	struct app_sock *s = NULL;

	while (cookie != 0 && (s = san_socks_next(port, s)) != NULL)
		if ((is_kernel ? s->cookie : s->shadow) == cookie)
			return s;
	return NULL;
}

static void
socks_add_traffic(const struct app_sock *s, struct san_ulp_traffic *sum)
{
	struct san_core *core = san_engine_lcore_core(socks_engine(s->port));
	const struct san_sock_stats *is = san_sock_stats(san_core_socks(core), s->id);
	const struct san_ulp_traffic t = {is->nb_tx, is->nb_tx_bytes, is->nb_rx, is->nb_rx_bytes};

	if (s->has_id)
		san_ulp_traffic_add(sum, &t);
}

int
san_socks_memory(struct app_sock *s, uint16_t guard, int *shadow)
{
	bool is_stream = s->kind == SOCKS_STREAM;
	struct san_sock_shm *shm;
	int rc, mem_fd = -1;

	rc = san_app_mem_create(&s->mem, "sanstack-sock",
				is_stream ? SOCKS_STREAM_BYTES : SOCKS_BYTES, guard, &mem_fd);
	san_fd_close(mem_fd); /* *mem* has a duplicate */
	if (rc != 0)
		return rc;
	san_users_count(s->port->index, s->owner, USERS_SOCK_BYTES, (int64_t)s->mem.bytes);
	shm = s->mem.mem;
	shm->abi = SAN_SOCK_ABI;
	shm->rx_bytes = is_stream ? SAN_SOCK_STREAM_RX_BYTES : SAN_SOCK_RX_BYTES;
	shm->tx_bytes = is_stream ? SAN_SOCK_STREAM_TX_BYTES : SAN_SOCK_TX_BYTES;
	shm->type = is_stream ? SOCK_STREAM : SOCK_DGRAM;
	shm->if_index = san_engine_sock_if_index(s->port->ctx->port);
	shm->mtu = san_engine_conf_of(s->port->ctx->port)->core.mtu;
	return san_socks_pair_make(s, shadow);
}

/* ---- events ---- */

/* The last program that had the socket has closed it. */
static void
socks_hang_up(struct app_sock *s)
{
	s->has_sent = true; /* the program may have written before it closed the socket */
	s->is_over = true;
	if (s->mem.mem != NULL)
		atomic_store(&((struct san_sock_shm *)s->mem.mem)->closing, 1);
	epoll_ctl(s->port->all->epoll, EPOLL_CTL_DEL, s->pair, NULL);
}

bool
san_socks_event(const struct epoll_event *ev)
{
	uintptr_t what = (uintptr_t)ev->data.ptr;
	struct app_sock *s = (struct app_sock *)(what & ~TAGS);
	char byte;

	if ((what & TAGS) == 0)
		return false;
	if (s->port == NULL)
		return true; /* it was released */
	s->has_sent = true;
	/*
	 * An event that ends a socket may be of one that serve_settle() has released since, whose
	 * entry has a new socket.
	 */
	if ((what & TAGS) == TAG_TOKEN && s->held >= 0 &&
	    recv(s->token, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		/* a program has written to it without having claimed it */
		san_socks_token_unclaimed(s);
	} else if ((what & TAGS) == TAG_TOKEN &&
		   (san_fd_poll(s->token, POLLIN) & (POLLIN | POLLHUP)) != 0) {
		s->is_over = s->held >= 0; /* the listener closed before accepting it */
		epoll_ctl(s->port->all->epoll, EPOLL_CTL_DEL, s->token, NULL);
	} else if ((what & TAGS) == TAG_PAIR && (ev->events & EPOLLHUP) != 0 &&
		   (san_fd_poll(s->pair, 0) & POLLHUP) != 0) {
		socks_hang_up(s);
	}
	return true;
}

/* ---- release ---- */

void
san_socks_discard(struct app_sock *s)
{
	if (s->has_id)
		san_socks_call(s, LCORE_DEL, NULL);
	if (s->nb_groups != 0)
		san_engine_sock_groups(s->port->ctx->port);
	if (s->kind != SOCKS_DGRAM)
		san_socks_tcp_end(s);
	if (s->pair >= 0) {
		epoll_ctl(s->port->all->epoll, EPOLL_CTL_DEL, s->pair, NULL);
		san_helper_hang_up(s->pair);
	}
	san_fd_close(s->token);
	if (s->kernel >= 0)
		san_helper_close(s->helper, s->kernel);
	san_fd_close(s->held);
	if (s->mem.mem != NULL)
		san_users_count(s->port->index, s->owner, USERS_SOCK_BYTES, -(int64_t)s->mem.bytes);
	if (s->app != NULL)
		socks_add_traffic(s, &s->app->socks_traffic);
	san_app_mem_end(&s->mem);
	san_users_count(s->port->index, s->owner, USERS_SOCKS, -1);
	s->port->nb_socks--;
	s->port = NULL;
}

/* Returns when to call again. */
static uint64_t
socks_step(struct app_sock *s, uint64_t now_ns)
{
	bool may_end;

	if (s->has_sent)
		s->has_sent = san_socks_pair_read(s);
	if (!s->is_over)
		return s->has_sent ? now_ns + LINGER_STEP : san_socks_token_look(s, now_ns);
	if (s->over_ns == 0)
		s->over_ns = now_ns;
	/* data that was sent before close() is still delivered */
	may_end = s->kind == SOCKS_DGRAM ?
		now_ns - s->over_ns > LINGER_NS || san_socks_call(s, LCORE_HAS_SENT, NULL) != 0 :
		san_socks_tcp_may_end(s, now_ns);
	if (!may_end)
		return now_ns + LINGER_STEP;
	san_socks_discard(s);
	return SAN_TIME_NEVER;
}

/* Poll the pairs for closed sockets, before their events arrive. */
static void
socks_poll_pairs(struct app_port *port)
{
	struct pollfd p[POLL_MAX];
	struct app_sock *s;
	uint32_t i, k, n;

	for (i = 0; i < port->max_socks; i += n) {
		n = RTE_MIN(port->max_socks - i, (uint32_t)POLL_MAX);
		for (k = 0; k < n; k++) {
			s = &port->socks[i + k];
			p[k] = (struct pollfd){
				.fd = s->port != NULL && !s->is_over ? s->pair : -1,
			};
		}
		if (poll(p, n, 0) <= 0)
			continue;
		for (k = 0; k < n; k++)
			if ((p[k].revents & POLLHUP) != 0)
				socks_hang_up(&port->socks[i + k]);
	}
}

/*
 * A program that has closed a socket, or has waited for another program's end, may bind the port at
 * once. So release closed sockets before their events arrive. -EBUSY: a socket of the user still
 * has its port; the program repeats the request.
 */
static int
serve_settle(struct app_port *port, uid_t owner)
{
	/* check it first: the descriptor that a helper closes may be a socket's last */
	bool is_soon = san_helper_are_closing(owner);
	uint64_t now_ns = san_engine_clock_monotonic();
	struct app_sock *s = NULL;

	socks_poll_pairs(port);
	while ((s = san_socks_next(port, s)) != NULL) {
		if (!s->is_over)
			continue;
		socks_step(s, now_ns);
		/* the lcore may have yet to send its last datagrams */
		is_soon |= s->port != NULL && s->kind == SOCKS_DGRAM && s->owner == owner;
	}
	return is_soon || san_helper_are_closing(owner) ? -EBUSY : 0;
}

uint64_t
san_socks_expire(struct apps *all, uint64_t now_ns)
{
	uint64_t due_ns = SAN_TIME_NEVER;
	struct app_port *port;
	struct app_sock *s;

	for (port = all->ports; port < all->ports + all->nb_ports; port++)
		for (s = NULL; port->nb_socks != 0 && (s = san_socks_next(port, s)) != NULL;)
			due_ns = san_time_min(due_ns, socks_step(s, now_ns));
	return due_ns;
}

/* ---- requests ---- */

/* Serve a request about a carried socket. */
static int
serve_carried(struct app_sock *s, struct app *a, const struct shmq_req *req)
{
	struct helper_msg m = {.op = HELPER_LOOK};
	struct shmq_rep *rep = &a->ans.rep;
	int rc;

	switch (req->type) {
	case SHMQ_SOCK_FIND:
		if (s->mem.mem == NULL)
			return san_socks_refuse(rep, -EINVAL, "it is a listener");
		rep->sock.id = s->id;
		rep->sock.type = s->kind == SOCKS_STREAM ? SOCK_STREAM : SOCK_DGRAM;
		rep->sock.bytes = s->mem.bytes;
		a->ans.fd = fcntl(s->mem.fd, F_DUPFD_CLOEXEC, 0);
		return a->ans.fd < 0 ? -errno : 0;
	case SHMQ_SOCK_KERNEL: /* the helper sends the answer */
		m.op = HELPER_GIVE;
		m.rep.magic = SHMQ_MAGIC;
		m.rep.abi = SHMQ_ABI;
		rc = s->kernel >= 0 ? san_socks_ask(s, &m, a) : -EBADF;
		a->is_answered = rc == -EINPROGRESS;
		return rc;
	case SHMQ_SOCK_SYNC:
		/* the properties of a stream do not change */
		return s->kind == SOCKS_DGRAM ? san_socks_ask(s, &m, a) : 0;
	default:
		return s->kind == SOCKS_DGRAM ? san_socks_udp_group(s, req, rep) : 0;
	}
}

static int
socks_serve_one(struct app *a, const struct shmq_req *req)
{
	struct shmq_rep *rep = &a->ans.rep;
	struct app_sock *s;

	if (a->port->max_socks == 0)
		return san_socks_refuse(rep, -EOPNOTSUPP, "the port carries none; see sockets=");
	if (req->type == SHMQ_SOCK_SETTLE)
		return serve_settle(a->port, a->owner);
	if (req->type == SHMQ_SOCK_CLOSED)
		return san_helper_are_closing(a->owner) ? -EBUSY : 0;
	if (a->passed == NULL || a->passed->handle < 0)
		return san_socks_refuse(rep, -EBADF, "no descriptor of it");
	if (req->type == SHMQ_SOCK_CARRY)
		return san_socks_udp_carry(a, req);
	if (req->type >= SHMQ_SOCK_LISTEN)
		return san_socks_tcp_serve(a, req);
	s = san_socks_find(a->port, a->passed->facts->cookie, false);
	if (s == NULL)
		return san_socks_refuse(rep, -ENOENT, "not carried here");
	return serve_carried(s, a, req);
}

/* Record why a socket is not carried. */
static void
socks_note_refusal(int rc, uint64_t inode, struct shmq_rep *rep)
{
	if (rc == 0 || rc == -EINPROGRESS)
		return;
	if (rep->text[0] == '\0')
		snprintf(rep->text, sizeof(rep->text), "%s",
			 rtsan_error_is_set() ? rtsan_error() : strerror(-rc));
	san_socks_telemetry_refused(inode, rep->text);
}

int
san_socks_serve(struct app *a, const struct shmq_req *req)
{
	int rc = socks_serve_one(a, req);

	/* other requests carry no socket */
	if ((req->type == SHMQ_SOCK_CARRY || req->type == SHMQ_SOCK_LISTEN ||
	     req->type == SHMQ_SOCK_CONNECT) &&
	    a->passed != NULL)
		socks_note_refusal(rc, a->passed->facts->inode, &a->ans.rep);
	return rc;
}

/* ---- answers of helpers ---- */

/* NULL: the socket was released. */
static struct app_sock *
socks_find_named(const struct apps *all, const struct helper_sock *name)
{
	struct app_sock *s;

	if (name->port >= all->nb_ports || name->place >= all->ports[name->port].max_socks)
		return NULL;
	s = &all->ports[name->port].socks[name->place];
	return s->port != NULL && s->number == name->number ? s : NULL;
}

int
san_socks_on_answer(struct apps *all, const struct helper_msg *m, struct shmq_rep *rep,
		    bool is_wanted)
{
	struct app_sock *s = socks_find_named(all, &m->sock);
	int rc = -ECANCELED;

	if (s == NULL)
		return rc;
	if (m->op == HELPER_CARRY || m->op == HELPER_BIND) {
		if (is_wanted) {
			rc = m->op == HELPER_CARRY ? san_socks_udp_carried(s, m, rep) :
						     san_socks_tcp_bound(s, m, rep);
			socks_note_refusal(rc, s->kernel_inode, rep);
		}
		if (rc != 0)
			san_socks_discard(s);
		return rc;
	}
	if (m->op != HELPER_DISCARD)
		return san_socks_udp_rename(s, &m->facts, rep);
	s->is_discarding = false;
	s->has_sent = true; /* more messages may follow */
	return 0;
}

void
san_socks_dgram(struct apps *all, const struct helper_dgram *d, const void *data, uint32_t len)
{
	struct app_sock *s = socks_find_named(all, &d->sock);
	struct socks_given given = {d, data, len};

	if (s != NULL && s->kind == SOCKS_DGRAM && !s->is_over)
		san_socks_call(s, LCORE_GIVE, &given);
}

void
san_socks_helper_ended(struct apps *all, const struct helper *h, bool has_begun)
{
	struct app_sock *s;
	uint32_t i;

	for (i = 0; i < all->nb_ports; i++) {
		for (s = NULL; (s = san_socks_next(&all->ports[i], s)) != NULL;) {
			if (s->helper == h)
				s->kernel = -1;
			if (!has_begun && s->owner == san_helper_uid(h))
				s->is_discarding = false;
			/*
			 * The helper may have forwarded the message already, so the pair must not
			 * be read further.
			 */
			if (s->helper == h || (s->is_discarding && s->owner == san_helper_uid(h)))
				san_socks_discard(s);
		}
	}
}

static int
socks_do_doorbell(struct san_engine *e, void *arg)
{
	san_sock_doorbell_all(san_core_socks(san_engine_lcore_core(e)));
	return 0;
}

void
san_socks_app_ended(struct app *a)
{
	struct app_sock *s = NULL;

	if (a->port->nb_socks != 0)
		san_engine_loop_call(socks_engine(a->port), socks_do_doorbell, NULL);
	while ((s = san_socks_next(a->port, s)) != NULL)
		if (s->app == a)
			s->app = NULL;
}

void
san_socks_count(const struct app_port *port, struct san_view_app *of)
{
	struct app_sock *s = NULL;

	while ((s = san_socks_next(port, s)) != NULL)
		if (s->app != NULL)
			socks_add_traffic(s, &of[s->app->id].traffic);
}

void
san_socks_close(struct app_port *port)
{
	struct app_sock *s = NULL;

	while ((s = san_socks_next(port, s)) != NULL)
		san_socks_discard(s);
}
