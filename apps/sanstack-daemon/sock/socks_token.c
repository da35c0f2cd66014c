/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs wait for connections, accept them and share listeners in many ways. So each stream must
 * come out of accept() on the kernel's listener. For each stream that is up, the daemon connects to
 * the listener from a loopback address that it chooses at random. This connection is the token. It
 * takes a place in the listener's queue, and waits if the queue is full. The kernel chooses for it
 * among listeners that share the port. When a program has accepted the token, the library presents
 * it to the daemon and gets the stream. (UDP-1)
 *
 * The kernel proves each claim (SYS-7):
 * - It names the socket that would accept the token. Only a listener that a program has registered
 *   gets one: the cookie shows that it is this very socket.
 * - The socket that a program presents must be the other end of the token's connection.
 *
 * The token has its name before the peer gets an answer. Without a name, or without a listener, the
 * peer continues with the kernel's connect().
 */

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include "socks_priv.h"

#define OFFER_NS  (10 * SAN_NS_PER_MS)
#define WAIT_NS   (60 * SAN_NS_PER_S) /* for a place in the queue */
#define LOOK_NS   (500 * SAN_NS_PER_MS)
#define ASLEEP_NS (60 * SAN_NS_PER_S)
#define UNHEARD   "its program accepts without the library, or by io_uring"
#define CLAIM_NS  (5 * SAN_NS_PER_S) /* to accept a token, and to claim an accepted one */

/* ---- the kernel's TCP sockets over IPv4 in our network namespace, by sock_diag(7) ---- */

struct tcp_diag {
	uint64_t cookie; /**< SO_COOKIE: the kernel never gives it to another socket */
	uint32_t inode;  /**< 0: a connection that is not accepted yet */
};

static int diag = -1; /* channel to the kernel */
static uint32_t last_seq;

void
san_socks_token_init(void)
{
	diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

/*
 * Find the socket at *local* that is connected to *peer*. If there is none, find the listener that
 * would accept a connection from there. The time does not depend on the number of sockets. 0;
 * -ENOENT: neither exists; or -errno, without the channel or the kernel's module tcp_diag.
 */
static int
token_diag(const struct sockaddr_in *local, const struct sockaddr_in *peer, struct tcp_diag *out)
{
	struct {
		struct nlmsghdr hdr;
		struct inet_diag_req_v2 body;
	} req = {
		.hdr = {
			.nlmsg_len = sizeof(req),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.body = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.id = {
				.idiag_sport = local->sin_port,
				.idiag_dport = peer->sin_port,
				.idiag_src = {local->sin_addr.s_addr},
				.idiag_dst = {peer->sin_addr.s_addr},
				.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE},
			},
		},
	};
	struct {
		struct nlmsghdr hdr;
		union {
			struct nlmsgerr err;
			struct inet_diag_msg found;
			char all[1024]; /* attributes follow */
		};
	} rep;
	struct sockaddr_nl from;
	socklen_t len;
	ssize_t n;

	req.hdr.nlmsg_seq = ++last_seq;
	/* the kernel answers within the call */
	if (send(diag, &req, sizeof(req), 0) < 0)
		return -errno;
	do { /* another process may send messages, too */
		len = sizeof(from);
		n = recvfrom(diag, &rep, sizeof(rep), 0, (struct sockaddr *)&from, &len);
		if (n < 0)
			return -errno;
	} while (from.nl_pid != 0 || rep.hdr.nlmsg_seq != last_seq);
	if (rep.hdr.nlmsg_type == NLMSG_ERROR && n >= (ssize_t)NLMSG_LENGTH(sizeof(rep.err)))
		return rep.err.error;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(rep.found)))
		return -EPROTO;
	out->inode = rep.found.idiag_inode;
	memcpy(&out->cookie, rep.found.id.idiag_cookie, sizeof(out->cookie));
	return 0;
}

/* ---- offers ---- */

int
san_socks_token_create(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int rc, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*name = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(SHMQ_TOKEN_NET | arc4random_uniform(SHMQ_TOKEN_MASK)),
	};
	if (fd >= 0 && bind(fd, (const struct sockaddr *)name, len) == 0 &&
	    getsockname(fd, (struct sockaddr *)name, &len) == 0)
		return fd;
	rc = -errno;
	LOG_OF(0, WARNING, "no tokens, so the kernel serves TCP: %s", strerror(-rc));
	san_fd_close(fd);
	return rc;
}

static struct sockaddr_in
token_destination(const struct san_ip *dst, uint16_t tcp_port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(tcp_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (san_wire_ip_is_v4(dst) && !san_inet_is_any(dst))
		memcpy(&to.sin_addr, dst->b + 12, sizeof(to.sin_addr));
	return to;
}

/* Programs that share a listener may have a lease each: the one behind *s*, or (NULL) the first. */
static struct app_sock *
next_lease(const struct app_port *port, uint64_t cookie, struct app_sock *s)
{
	while ((s = san_socks_next(port, s)) != NULL &&
	       (s->kind != SOCKS_LISTENER || s->cookie != cookie || s->is_over))
		;
	return s;
}

/* The lease of the kernel's listener that would accept the token, if there is one. */
static struct app_sock *
find_listener(const struct app_port *port, const struct sockaddr_in *name,
	      const struct sockaddr_in *to)
{
	struct app_sock *found = NULL, *s = NULL;
	struct tcp_diag d;

	if (token_diag(to, name, &d) != 0)
		return NULL;
	while ((found == NULL || !found->is_waited_for) &&
	       (s = next_lease(port, d.cookie, s)) != NULL)
		found = s;
	return found;
}

int
san_socks_token_check(const struct san_ip *ip, uint16_t tcp_port)
{
	const struct sockaddr_in to = token_destination(ip, tcp_port);
	struct sockaddr_in name;
	struct tcp_diag d;
	int fd = san_socks_token_create(&name);

	if (fd < 0)
		return fd;
	close(fd);
	return token_diag(&to, &name, &d);
}

struct app_sock *
san_socks_token_listener(const struct app_port *port, const struct sockaddr_in *name,
			 const struct san_ip *dst, uint16_t tcp_port)
{
	const struct sockaddr_in to = token_destination(dst, tcp_port);
	struct app_sock *s = find_listener(port, name, &to);

	if (s != NULL && !s->is_waited_for)
		san_socks_telemetry_refused(s->inode, UNHEARD);
	return s != NULL && s->is_waited_for &&
			s->asleep_until_ns <= san_engine_clock_monotonic() ?
		s :
		NULL;
}

/*
 * Connections within the host complete at once. Returns 0, -EAGAIN if the queue is full, or -errno.
 */
static int
token_connect_to(int fd, struct sockaddr_in *to)
{
	socklen_t len = sizeof(*to), err_len = sizeof(int);
	int err = 0;

	if (connect(fd, (const struct sockaddr *)to, len) != 0 && errno != EINPROGRESS)
		return -errno;
	if (getpeername(fd, (struct sockaddr *)to, &len) == 0)
		return 0;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &err_len);
	return err != 0 ? -err : -EAGAIN;
}

/*
 * Connect to the address that the peer used. If the kernel lacks it, use the loopback address. The
 * same listener must accept it.
 */
static int
token_connect(const struct app_sock *s)
{
	const struct app_sock *l;
	struct sockaddr_in to = token_destination(&s->ip, s->tcp_port);
	int i, rc = 0;

	for (i = 0; i < 2; i++) {
		l = find_listener(s->port, &s->token_name, &to);
		if (l == NULL || l->cookie != s->listener)
			return -ECONNREFUSED;
		rc = token_connect_to(s->token, &to);
		if (rc == 0 || rc == -EAGAIN)
			break;
		to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	return rc == 0 ? san_socks_watch(s, true) : rc;
}

/*
 * Put the token into the listener's queue. While the queue is full, try again later, as TCP repeats
 * its SYN.
 */
void
san_socks_token_offer(struct app_sock *s, uint64_t now_ns)
{
	int rc = s->token >= 0 ? token_connect(s) : -EAGAIN;

	s->is_offered = rc == 0;
	s->wants_token = rc == -EAGAIN && now_ns - s->began_ns < WAIT_NS;
	if (s->is_offered) {
		s->began_ns = now_ns;
		s->look_ns = now_ns + LOOK_NS;
		return;
	}
	san_fd_close(s->token);
	s->token = s->wants_token ? san_socks_token_create(&s->token_name) : -1;
	s->is_over = !s->wants_token;
}

/* ---- unclaimed tokens ---- */

/* The listener of *s* gets no more streams until then. */
static void
set_asleep(const struct app_sock *s, uint64_t until_ns, const char *why)
{
	struct app_sock *l = NULL;

	while ((l = next_lease(s->port, s->listener, l)) != NULL) {
		/* a program that accepts without the library may do so again */
		if (l->asleep_until_ns != SAN_TIME_NEVER)
			l->asleep_until_ns = until_ns;
		if (why != NULL)
			san_socks_telemetry_refused(l->inode, why);
	}
}

/* True if a program has accepted the token: while it is in the queue it has no inode. */
static bool
is_accepted(const struct app_sock *s)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	struct tcp_diag d;

	return getpeername(s->token, (struct sockaddr *)&at, &len) == 0 &&
		token_diag(&at, &s->token_name, &d) == 0 && d.inode != 0;
}

void
san_socks_token_unclaimed(struct app_sock *s)
{
	set_asleep(s, SAN_TIME_NEVER, UNHEARD);
	s->is_over = true;
}

/* Find out whether the program has accepted the token and never claims it. */
static void
look_for_claim(struct app_sock *s, uint64_t now_ns)
{
	bool is = is_accepted(s);

	if (is && !s->is_accepted) {
		s->is_accepted = true;
		s->began_ns = now_ns;
	}
	s->look_ns = now_ns + LOOK_NS;
	if (now_ns - s->began_ns < CLAIM_NS) {
		s->look_ns = RTE_MIN(s->look_ns, s->began_ns + CLAIM_NS);
		return;
	}
	if (is)
		san_socks_token_unclaimed(s);
	else /* the program is busy: send no more streams to its listener */
		set_asleep(s, now_ns + ASLEEP_NS, NULL);
}

uint64_t
san_socks_token_look(struct app_sock *s, uint64_t now_ns)
{
	if (s->kind != SOCKS_STREAM || s->held < 0)
		return SAN_TIME_NEVER;
	if (s->wants_token) {
		san_socks_token_offer(s, now_ns);
		return now_ns + OFFER_NS;
	}
	if (!s->is_offered)
		return SAN_TIME_NEVER;
	if (now_ns >= s->look_ns)
		look_for_claim(s, now_ns);
	return s->is_over ? now_ns : s->look_ns;
}

/* ---- accepted tokens ---- */

static bool
token_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	uint16_t port[2];
	struct san_ip ip[2];

	san_helper_facts_addr(a, &ip[0], &port[0], NULL);
	san_helper_facts_addr(b, &ip[1], &port[1], NULL);
	return port[0] == port[1] && san_wire_ip_eq(&ip[0], &ip[1]);
}

/*
 * True if *facts* describe the other end of the token's connection. Addresses suffice, because both
 * ends are in this network namespace.
 */
static bool
is_other_end(const struct helper_facts *facts, int token)
{
	struct sockaddr_storage own, peer;
	socklen_t len = sizeof(own);

	if (getsockname(token, (struct sockaddr *)&own, &len) != 0)
		return false;
	len = sizeof(peer);
	return getpeername(token, (struct sockaddr *)&peer, &len) == 0 &&
		token_is_same(&facts->local, &peer) && token_is_same(&facts->peer, &own);
}

int
san_socks_token_claim(struct app *a, struct shmq_rep *rep, int *out_fd)
{
	const struct app_port *port = a->port;
	struct passed *p = a->passed;
	struct app_sock *s = NULL;
	struct san_ip ip;
	uint16_t token_port;

	if (p->facts->peer.ss_family == 0)
		return san_socks_refuse(rep, -ENOTCONN, "not connected any more");
	san_helper_facts_addr(&p->facts->peer, &ip, &token_port, NULL);
	while ((s = san_socks_next(port, s)) != NULL &&
	       (!s->is_offered || s->is_over || ntohs(s->token_name.sin_port) != token_port ||
		!is_other_end(p->facts, s->token)))
		;
	if (s == NULL)
		return san_socks_refuse(rep, -ENOENT, "nothing of ours");
	s->app = a;
	san_socks_keep(s, p);
	s->is_offered = false;
	set_asleep(s, 0, NULL);
	*out_fd = s->held;
	s->held = -1;
	return 0;
}
