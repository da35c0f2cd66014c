/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * TCP sockets of programs, carried as streams if both ends use the library. (UDP-1, AFC-1)
 *
 * DESIGN NOTES
 *
 * A listener stays a socket of the kernel. The daemon listens for a service whose number is derived
 * from the port. A program that connects asks its daemon first, which connects to that service at
 * the peer's daemon. If the service does not exist there, or no daemon answers, the program
 * continues with the kernel's connect(), and the peer gets an ordinary connection.
 *
 * How a program accepts a stream: socks_token.c.
 */

#include <arpa/inet.h>

#include "socks_priv.h"

#define COOKIE       0x80000000u         /* marks the daemon's listeners; lower bits: their port */
#define BACKLOG      64                  /* connection requests; the daemon accepts them soon */
#define LINGER_NS    (60 * SAN_NS_PER_S) /* for the peer to receive what was sent */
#define PROBE_MIN_NS (5 * SAN_NS_PER_MS) /* a shorter wait does not prove that no daemon answers */
#define UNKNOWN_NS   (30 * SAN_NS_PER_S) /* until a peer without an answer is asked again */
#define UNKNOWN_MAX  64

/* What the daemon of a connecting program sends, besides the peer's address. */
struct hello {
	uint8_t magic[4];
	uint8_t dst[16];
	uint16_t sport; /* big endian */
	uint8_t pad[2];
};

static const uint8_t magic[4] = {'S', 'T', 'C', '1'};

/* ---- peers that do not answer ---- */

static struct {
	struct san_ip ip;
	uid_t uid; /* an entry is of one user, so a user's failures do not affect others */
	uint64_t until_ns;
} unknown[UNKNOWN_MAX];
static uint32_t next_unknown;

/* No answer arrived while the program waited: remember the peer. */
static void
tcp_note_no_answer(const struct app_sock *s)
{
	san_socks_telemetry_refused(s->kernel_inode, "no daemon has answered at the peer");
	unknown[next_unknown].ip = s->ip;
	unknown[next_unknown].uid = s->uid;
	unknown[next_unknown].until_ns = san_engine_clock_monotonic() + UNKNOWN_NS;
	next_unknown = (next_unknown + 1) % UNKNOWN_MAX;
}

/* ---- a stream ---- */

static int
stream_make(struct app_sock *s, uint16_t guard, int *shadow)
{
	int rc;

	s->kind = SOCKS_STREAM;
	rc = san_apps_check(s->port, USERS_QPS, s->owner, 1);
	if (rc == 0)
		rc = san_socks_memory(s, guard, shadow);
	if (rc == 0)
		rc = san_socks_call(s, LCORE_ADD, NULL);
	if (rc != 0)
		return rc;
	s->port->qps[SAN_QPN_INDEX(s->qpn)].sock = s;
	san_users_count(s->port->index, s->owner, USERS_QPS, 1);
	return san_socks_watch(s, false);
}

void
san_socks_tcp_end(struct app_sock *s)
{
	struct shmq_req req = {.type = SHMQ_UNLISTEN};
	struct app_sock *other = NULL;

	if (s->kind == SOCKS_STREAM && s->has_id) {
		s->port->qps[SAN_QPN_INDEX(s->qpn)].sock = NULL;
		san_users_count(s->port->index, s->owner, USERS_QPS, -1);
	}
	if (s->kind != SOCKS_LISTENER || s->tcp_port == 0)
		return;
	san_users_count(s->port->index, s->owner, USERS_LISTENERS, -1);
	while ((other = san_socks_next(s->port, other)) != NULL)
		if (other != s && other->kind == SOCKS_LISTENER && other->tcp_port == s->tcp_port)
			return;
	req.conn.service = SOCKS_SERVICE | s->tcp_port;
	san_dpdk_call(s->port->ctx, &req);
}

bool
san_socks_tcp_may_end(struct app_sock *s, uint64_t now_ns)
{
	if (s->connects) {
		/* the program stopped waiting; a short wait does not show that no daemon answers */
		if (now_ns - s->began_ns >= PROBE_MIN_NS)
			tcp_note_no_answer(s);
		return true;
	}
	/* data written to the pair is appended once the ring is empty */
	if (s->has_sent && now_ns - s->over_ns < LINGER_NS &&
	    !san_socks_call(s, LCORE_IS_DEAD, NULL))
		return false;
	/* an accepted stream may not be up yet */
	return s->kind == SOCKS_LISTENER || s->held >= 0 || now_ns - s->over_ns > LINGER_NS ||
		san_socks_call(s, LCORE_SHUT, NULL) != 0;
}

/* ---- listeners ---- */

static int
serve_listen(struct app *a, const struct helper_facts *facts)
{
	struct app_port *port = a->port;
	struct shmq_rep *rep = &a->ans.rep;
	struct shmq_req req = {.type = SHMQ_LISTEN, .conn.backlog = BACKLOG};
	struct app_sock *s;
	struct san_ip ip;
	uint16_t tcp_port;
	int rc;

	if (!facts->listens || facts->local.ss_family == 0)
		return san_socks_refuse(rep, -EINVAL, "it does not listen");
	san_helper_facts_addr(&facts->local, &ip, &tcp_port, NULL);
	if (!san_inet_is_any(&ip) && !san_socks_is_ours(port, &ip))
		return san_socks_refuse(rep, -EADDRNOTAVAIL,
					"bound to an address that is not the port's");
	if (facts->domain == AF_INET6 && !san_wire_ip_is_v4(&ip) &&
	    (!san_inet_is_any(&ip) || facts->v6only))
		return san_socks_refuse(rep, -EOPNOTSUPP,
					"tokens are of IPv4, and it takes IPv6 only");
	rc = san_socks_token_check(&ip, tcp_port);
	if (rc != 0)
		return san_socks_refuse(rep, rc,
					"no tokens: is the loopback device up, and the kernel's "
					"module tcp_diag there?");
	rc = san_apps_check(port, USERS_LISTENERS, a->owner, 1);
	if (rc != 0)
		return rc;
	s = san_socks_take(port, a->uid, a->owner, 0, rep);
	if (s == NULL)
		return -ENOSPC;
	s->kind = SOCKS_LISTENER;
	s->ip = ip;
	rc = san_socks_pair_make(s, &a->ans.fd);
	s->inode = facts->inode; /* a listener stays a socket of the kernel */
	s->cookie = facts->cookie;
	if (rc == 0)
		rc = san_socks_watch(s, false);
	req.id = COOKIE | tcp_port;
	req.conn.service = SOCKS_SERVICE | tcp_port;
	if (rc == 0)
		rc = san_dpdk_call(port->ctx, &req);
	if (rc == 0 || rc == -EADDRINUSE) { /* of another listener at this port */
		s->tcp_port = tcp_port;
		san_users_count(port->index, s->owner, USERS_LISTENERS, 1);
		return 0;
	}
	san_socks_discard(s);
	return rc;
}

/*
 * Check that the program that will accept the stream can attach. It may not have attached yet, and
 * the same holds for programs that will accept waiting streams. If there is no place, the peer
 * continues with the kernel's connect().
 */
static bool
socks_tcp_has_place(const struct app_port *port, const struct app_sock *listener)
{
	struct app_sock *s = NULL;
	uint32_t nb = 0;
	bool has;

	while ((s = san_socks_next(port, s)) != NULL)
		nb += s->kind == SOCKS_STREAM && s->held >= 0 && s->owner == listener->owner;
	/* with one program per user, the one that listens is attached already */
	has = port->conf->apps_per_uid == 1 || san_apps_have_place(port, listener->owner, nb);
	if (!has) {
		LOG_OF(listener->owner, WARNING,
		       "port=%s tcp=%u user=%u: no place for a program that accepts: the kernel's",
		       port->name, listener->tcp_port, listener->owner);
		san_socks_telemetry_refused(listener->inode, "no place for programs that accept");
	}
	return has;
}

/* ---- connections from peers ---- */

static int
socks_tcp_accept_request(struct app_port *port, const struct shmq_event *ev, uint16_t tcp_port)
{
	struct shmq_req req = {.type = SHMQ_ACCEPT, .conn = {.request = ev->request}};
	struct sockaddr_in name;
	struct app_sock *l, *s = NULL;
	struct san_inet_addr peer;
	struct san_sock_shm *shm;
	struct shmq_rep no_answer;
	struct san_ip dst;
	struct hello h;
	int rc, token;

	if (!ev->stream || ev->private_len < sizeof(h))
		return -EPROTO;
	memcpy(&h, ev->private_data, sizeof(h));
	memcpy(dst.b, h.dst, sizeof(dst.b));
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 || !san_socks_is_ours(port, &dst))
		return -ECONNREFUSED;
	token = san_socks_token_create(&name);
	if (token < 0)
		return token;
	l = san_socks_token_listener(port, &name, &dst, tcp_port);
	if (l != NULL && socks_tcp_has_place(port, l))
		s = san_socks_take(port, l->uid, l->owner, SOCKS_STREAM_BYTES, &no_answer);
	if (s == NULL) {
		close(token);
		return -ECONNREFUSED;
	}
	s->token = token;
	s->token_name = name;
	s->listener = l->cookie;
	rc = stream_make(s, 0, &s->held);
	if (rc == 0) {
		shm = s->mem.mem;
		san_socks_fill_addr(&shm->local, &dst, tcp_port,
				    san_wire_ip_is_v4(&dst) ? AF_INET : AF_INET6, 0);
		/* its address comes from the link, not from the message */
		if (san_inet_addr_parse(ev->peer, &peer) == 0)
			san_socks_fill_addr(&shm->peer, &peer.ip, ntohs(h.sport),
					    shm->local.family, 0);
		s->ip = dst;
		s->tcp_port = tcp_port;
		req.id = s->qpn;
		req.conn.uid = s->owner;
		rc = san_dpdk_call(port->ctx, &req);
	}
	if (rc != 0)
		san_socks_discard(s);
	return rc;
}

/* ---- connections to peers ---- */

/* Have the kernel bind it to a port, at the source address of the route to the peer. */
static int
ask_name(struct app_sock *s, const struct app *a, uint16_t family)
{
	struct helper_msg m = {.op = HELPER_BIND, .source = {.ss_family = family}};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&m.source;
	struct sockaddr_in *in = (struct sockaddr_in *)&m.source;
	struct san_ip ip = s->ip;
	int rc;

	rc = san_socks_call(s, LCORE_SOURCE, &ip);
	if (rc != 0)
		return rc;
	if (family == AF_INET)
		memcpy(&in->sin_addr, ip.b + 12, sizeof(in->sin_addr));
	else
		memcpy(&in6->sin6_addr, ip.b, sizeof(in6->sin6_addr));
	return san_socks_ask(s, &m, a);
}

/* True if it has ended, or its program has closed it and the event is still pending. */
static bool
is_ending(const struct app_sock *s)
{
	const struct san_sock_shm *shm = s->mem.mem;

	return atomic_load(&shm->state) > SAN_SOCK_UP || (san_fd_poll(s->pair, 0) & POLLHUP) != 0;
}

/* True if another stream connects the same two addresses and ports. */
static bool
is_twice(const struct app_sock *s)
{
	struct app_sock *o = NULL;

	while ((o = san_socks_next(s->port, o)) != NULL)
		if (o != s && o->kind == SOCKS_STREAM && !o->is_over &&
		    o->own_port == s->own_port && o->tcp_port == s->tcp_port &&
		    san_wire_ip_eq(&o->own_ip, &s->own_ip) && san_wire_ip_eq(&o->ip, &s->ip) &&
		    !is_ending(o))
			return true;
	return false;
}

/* The local address is known: connect. */
static int
begin_connect(struct app_sock *s, const struct helper_facts *facts, struct shmq_rep *rep)
{
	struct san_sock_shm *shm = s->mem.mem;
	struct hello h = {.sport = 0};
	struct shmq_req req = {
		.type = SHMQ_CONNECT,
		.id = s->qpn,
		.conn = {.service = SOCKS_SERVICE | s->tcp_port, .private_len = sizeof(h)},
	};
	char text[SAN_INET_TEXT];
	struct san_ip ip;
	uint16_t port;
	uint32_t scope;
	int rc = 0;

	san_helper_facts_addr(&facts->local, &ip, &port, &scope);
	if (san_inet_is_any(&ip)) { /* the program bound the port only */
		ip = s->ip;
		rc = san_socks_call(s, LCORE_SOURCE, &ip);
	}
	if (rc != 0 || port == 0 || !san_socks_is_ours(s->port, &ip))
		return san_socks_refuse(rep, -EADDRNOTAVAIL,
					"bound to an address that is not the port's");
	s->own_ip = ip;
	s->own_port = port;
	if (is_twice(s))
		return san_socks_refuse(rep, -EALREADY, "another stream has these two addresses");
	san_socks_fill_addr(&shm->local, &ip, port, facts->local.ss_family, scope);
	san_socks_fill_addr(&shm->peer, &s->ip, s->tcp_port, facts->local.ss_family, 0);
	memcpy(h.magic, magic, sizeof(h.magic));
	memcpy(h.dst, s->ip.b, sizeof(h.dst));
	h.sport = htons(port);
	memcpy(req.conn.private_data, &h, sizeof(h));
	req.conn.uid = s->owner;
	snprintf(req.conn.peer, sizeof(req.conn.peer), "%s", san_inet_addr_text(&s->ip, text));
	s->connects = true;
	s->began_ns = san_engine_clock_monotonic();
	return san_dpdk_call(s->port->ctx, &req);
}

int
san_socks_tcp_bound(struct app_sock *s, const struct helper_msg *m, struct shmq_rep *rep)
{
	return m->rc == 0 ? begin_connect(s, &m->facts, rep) : m->rc;
}

static int
serve_connect(struct app *a, const struct shmq_req *req)
{
	struct passed *p = a->passed;
	struct shmq_rep *rep = &a->ans.rep;
	const struct sockaddr_in *local = (const struct sockaddr_in *)&p->facts->local;
	uint64_t now_ns = san_engine_clock_monotonic();
	struct app_sock *s;
	struct san_ip dst;
	uint32_t i;
	int rc;

	memcpy(dst.b, req->sock.peer, sizeof(dst.b));
	for (i = 0; i < UNKNOWN_MAX; i++)
		if (unknown[i].until_ns > now_ns && unknown[i].uid == a->uid &&
		    san_wire_ip_eq(&unknown[i].ip, &dst))
			return san_socks_refuse(rep, -EHOSTUNREACH, "no daemon has answered there");
	if (!p->facts->is_closed || p->facts->local.ss_family == 0)
		return san_socks_refuse(rep, -EISCONN, "it connects, or listens, already");
	s = san_socks_take(a->port, a->uid, a->owner, SOCKS_STREAM_BYTES, rep);
	if (s == NULL)
		return -ENOSPC;
	s->app = a;
	s->tcp_port = req->sock.peer_port;
	s->ip = dst;
	san_socks_keep(s, p);
	rc = stream_make(s, san_app_guard_id(a), &a->ans.fd);
	if (rc == 0) /* IPv6 has the port at the same offset */
		rc = local->sin_port == 0 ? ask_name(s, a, p->facts->local.ss_family) :
					    begin_connect(s, p->facts, rep);
	if (rc != 0 && rc != -EINPROGRESS)
		san_socks_discard(s);
	return rc;
}

int
san_socks_tcp_serve(struct app *a, const struct shmq_req *req)
{
	struct app_port *port = a->port;
	struct shmq_rep *rep = &a->ans.rep;
	int rc = san_socks_check_kernel(port, a->passed->facts, IPPROTO_TCP, rep);

	if (rc != 0)
		return rc;
	if (req->type == SHMQ_SOCK_ACCEPT)
		return san_socks_token_claim(a, rep, &a->ans.fd);
	if (!san_partition_may(&port->conf->partitions, port->ctx->param.pkey, &a->user))
		return san_socks_refuse(rep, -EACCES, "the partition is not for this user");
	if (san_engine_conf_of(port->ctx->port)->carry_tcp != SAN_CARRY_TCP_ON)
		return san_socks_refuse(rep, -EOPNOTSUPP, SHMQ_NO_TCP);
	if (req->type == SHMQ_SOCK_LISTEN)
		return serve_listen(a, a->passed->facts);
	return serve_connect(a, req);
}

/* ---- events of the engine ---- */

bool
san_socks_tcp_conn_event(struct app_port *port, const struct shmq_event *ev)
{
	struct app_sock *s;

	if (ev->type == RTSAN_EV_CONNECT_REQUEST) {
		if ((ev->listener & COOKIE) == 0)
			return false;
		if (socks_tcp_accept_request(port, ev, (uint16_t)ev->listener) != 0)
			san_dpdk_call_reject(port->ctx, ev->request);
		return true;
	}
	s = port->qps[SAN_QPN_INDEX(ev->qp)].sock;
	if (s == NULL || s->qpn != ev->qp)
		return false;
	s->connects = false;
	if (ev->type == RTSAN_EV_ESTABLISHED) {
		port->nb_streams[s->held >= 0]++;
		san_socks_call(s, LCORE_UP, NULL);
		s->began_ns = san_engine_clock_monotonic();
		if (s->held >= 0)
			san_socks_token_offer(s, s->began_ns);
	} else if (ev->type != RTSAN_EV_DISCONNECTED) {
		if (ev->type == RTSAN_EV_UNREACHABLE)
			tcp_note_no_answer(s);
		else
			san_socks_telemetry_refused(s->kernel_inode,
						    "no listener there uses the library");
		san_socks_call(s, LCORE_REFUSE, NULL);
	}
	return true;
}
