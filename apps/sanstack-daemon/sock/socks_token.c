/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs wait for connections, accept them and share listeners in many ways. So each stream must
 * come out of accept() on the kernel's listener. For each stream that is up, the daemon connects to
 * the listener from an address of this host that nothing else uses. This connection is the token.
 * It takes a place in the listener's queue, and waits if the queue is full. The kernel chooses for
 * it among listeners that share the port. When a program has accepted the token, the library
 * presents it to the daemon and gets the stream. (UDP-1)
 */

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine_clock.h"
#include "san_time.h"
#include "socks_priv.h"
#include "socks_relay.h"
#include "socks_telemetry.h"
#include "socks_token.h"

#define STATE_LISTEN 10 /* in /proc/net/tcp */
#define OFFER_NS     (10 * SAN_NS_PER_MS)
#define WAIT_NS      (60 * SAN_NS_PER_S)   /* for a place in the queue */
#define LOOK_NS      (500 * SAN_NS_PER_MS) /* until an accepted token is claimed; checked twice */
#define LOOK_MAX_NS  (8 * SAN_NS_PER_S)    /* maximum interval between checks of one token */
#define SCAN_NS      (20 * SAN_NS_PER_MS)  /* minimum interval between checks, of all tokens */
#define ASLEEP_NS    (60 * SAN_NS_PER_S)
#define CLAIM_NS     (5 * SAN_NS_PER_S) /* time to accept; then the listener gets no more streams */

/* Create a socket that is bound to the token address. 0 or -errno. */
static int
token_socket(int *fd, uint16_t *port)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(SHMQ_TOKEN_IP),
	};
	socklen_t len = sizeof(own);

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0 || bind(*fd, (const struct sockaddr *)&own, len) != 0 ||
	    getsockname(*fd, (struct sockaddr *)&own, &len) != 0)
		return -errno;
	*port = ntohs(own.sin_port);
	return 0;
}

/* False if the loopback device is down. */
bool
san_socks_token_can(void)
{
	uint16_t port;
	int fd, rc = token_socket(&fd, &port);

	if (fd >= 0)
		close(fd);
	return rc == 0;
}

/*
 * Set whether the listeners of *tcp_port* get streams. They get none while their program does not
 * claim those that it has.
 */
static void
set_asleep(const struct app_port *port, uint16_t tcp_port, bool is_asleep)
{
	struct app_sock *s;
	uint32_t i;

	for (i = 0; i < port->max_socks; i++) {
		s = &port->socks[i];
		if (s->port != NULL && s->kind == SOCKS_LISTENER && s->tcp_port == tcp_port)
			s->asleep_until_ns =
				is_asleep ? san_engine_clock_monotonic() + ASLEEP_NS : 0;
	}
}

/*
 * Connections within the host complete at once. Returns 0, -EAGAIN if the queue is full, or -errno.
 */
static int
token_connect_to(int fd, uint32_t ip, uint16_t tcp_port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(tcp_port),
		.sin_addr.s_addr = htonl(ip),
	};
	socklen_t len = sizeof(to), err_len = sizeof(int);
	int err = 0;

	if (connect(fd, (const struct sockaddr *)&to, len) != 0 && errno != EINPROGRESS)
		return -errno;
	if (getpeername(fd, (struct sockaddr *)&to, &len) == 0)
		return 0;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &err_len);
	return err != 0 ? -err : -EAGAIN;
}

/* True if the kernel's listener of *inode* listens on *tcp_port* of all addresses now. */
static bool
is_listening(const char *table, uint64_t inode, uint16_t tcp_port)
{
	unsigned int port, state;
	char line[256], ip[33];
	FILE *f = fopen(table, "re");
	bool is = false;
	uint64_t one;

	if (f == NULL)
		return false;
	while (!is && fgets(line, sizeof(line), f) != NULL)
		is = sscanf(line, " %*u: %32[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %" SCNu64, ip,
			    &port, &state, &one) == 4 &&
			one == inode && port == tcp_port && state == STATE_LISTEN &&
			strspn(ip, "0") == strlen(ip);
	fclose(f);
	return is;
}

/*
 * True if the token may go to the loopback address, because the kernel lacks the address that the
 * peer used. The listener must accept connections to any address.
 */
static bool
may_be_loopback(const struct app_sock *s)
{
	return s->to_any &&
		(is_listening("/proc/net/tcp", s->listener_inode, s->tcp_port) ||
		 is_listening("/proc/net/tcp6", s->listener_inode, s->tcp_port));
}

/* Connect to the address that the peer used. If the kernel lacks it, try the loopback address. */
static int
make_token(struct app_sock *s)
{
	struct san_ip dst;
	uint32_t ip;
	int rc;

	rc = token_socket(&s->token, &s->token_port);
	if (rc != 0)
		return rc;
	memcpy(dst.b, s->ip, sizeof(dst.b));
	memcpy(&ip, dst.b + 12, sizeof(ip));
	rc = san_wire_ip_is_v4(&dst) ? token_connect_to(s->token, ntohl(ip), s->tcp_port) :
				       -EADDRNOTAVAIL;
	if (rc != 0 && rc != -EAGAIN && may_be_loopback(s))
		rc = token_connect_to(s->token, INADDR_LOOPBACK, s->tcp_port);
	return rc == 0 ? san_socks_watch_token(s) : rc;
}

/*
 * A stream is up: put its token into the listener's queue. While the queue is full, try again
 * later, as TCP repeats its SYN.
 */
void
san_socks_token_offer(struct app_sock *s, uint64_t now_ns)
{
	int rc = make_token(s);

	s->wants_token = rc == -EAGAIN && now_ns - s->began_ns < WAIT_NS;
	if (rc == 0) {
		s->began_ns = now_ns;
		s->look_ns = now_ns + LOOK_NS;
		return;
	}
	if (s->token >= 0)
		close(s->token);
	s->token = -1;
	s->token_port = 0;
	s->is_over = !s->wants_token;
}

/* ---- unclaimed tokens ---- */

/*
 * True if a program has accepted the token. A connection in the listener's queue has no inode yet.
 */
static bool
is_accepted(const char *table, const struct app_sock *s)
{
	unsigned int port, peer_port;
	char line[256], peer[33], token[9];
	FILE *f = fopen(table, "re");
	uint64_t inode;
	bool is = false;

	if (f == NULL)
		return false;
	snprintf(token, sizeof(token), "%08X", htonl(SHMQ_TOKEN_IP));
	while (!is && fgets(line, sizeof(line), f) != NULL)
		is = sscanf(line,
			    " %*u: %*32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*s %*s %*s %*s %*s %" SCNu64,
			    &port, peer, &peer_port, &inode) == 4 &&
			port == s->tcp_port && peer_port == s->token_port && inode != 0 &&
			strcmp(peer + strlen(peer) - strlen(token), token) == 0;
	fclose(f);
	return is;
}

void
san_socks_token_unclaimed(struct app_sock *s)
{
	san_socks_telemetry_refused(s->listener_inode,
				    "its program accepts without the library, or by io_uring");
	set_asleep(s->port, s->tcp_port, true);
	san_socks_relay_begin(s);
}

bool
san_socks_token_has_data(const struct app_sock *s)
{
	char byte;

	return s->held >= 0 && recv(s->token, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Time of the next check. Intervals grow, and one check comes when the time to accept is over. */
static uint64_t
next_look(const struct app_sock *s, bool is_accepted, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns - s->began_ns;
	uint64_t ns = RTE_MIN(RTE_MAX(waited_ns, LOOK_NS), LOOK_MAX_NS);

	if (is_accepted)
		return now_ns + LOOK_NS;
	return now_ns + (waited_ns < CLAIM_NS ? RTE_MIN(ns, CLAIM_NS - waited_ns) : ns);
}

/* Find out whether the program has accepted the token and never claims it. */
static void
look_for_claim(struct app_sock *s, uint64_t now_ns)
{
	static uint64_t scan_ns; /* the tables may be long, and tokens numerous */
	bool is;

	if (now_ns < scan_ns) {
		s->look_ns = scan_ns;
		return;
	}
	scan_ns = now_ns + SCAN_NS;
	is = is_accepted("/proc/net/tcp", s) || is_accepted("/proc/net/tcp6", s);
	s->look_ns = next_look(s, is, now_ns);
	if (is && s->was_accepted)
		san_socks_token_unclaimed(s);
	s->was_accepted = is;
	if (s->was_missed || now_ns - s->began_ns < CLAIM_NS)
		return;
	/* the program is busy: send no more streams to its listener */
	set_asleep(s->port, s->tcp_port, true);
	s->was_missed = true;
}

uint64_t
san_socks_token_look(struct app_sock *s, uint64_t now_ns)
{
	if (s->kind != SOCKS_STREAM || s->held < 0)
		return SAN_TIME_NEVER;
	if (s->is_relayed)
		return san_socks_relay_step(s, now_ns);
	if (s->wants_token) {
		san_socks_token_offer(s, now_ns);
		return now_ns + OFFER_NS;
	}
	if (s->token_port == 0)
		return SAN_TIME_NEVER;
	if (now_ns >= s->look_ns)
		look_for_claim(s, now_ns);
	return s->is_relayed ? now_ns : s->look_ns;
}

/* ---- accepted tokens ---- */

static void
token_name_of(const struct sockaddr_storage *ss, struct san_ip *ip, uint16_t *port)
{
	uint32_t scope;

	san_socks_from_sockaddr(ss, ip, port, &scope);
}

static bool
token_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	uint16_t port[2];
	struct san_ip ip[2];

	token_name_of(a, &ip[0], &port[0]);
	token_name_of(b, &ip[1], &port[1]);
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

/* A program has accepted a socket: find its stream. */
int
san_socks_token_claim(struct app_port *port, struct passed *p, struct shmq_rep *rep, int *out_fd)
{
	struct app_sock *s = NULL, *one;
	struct san_ip ip;
	uint16_t token_port;
	uint32_t i;

	if (p->facts->peer.ss_family == 0)
		return san_socks_refuse(rep, -ENOTCONN, "not connected any more");
	token_name_of(&p->facts->peer, &ip, &token_port);
	for (i = 0; i < port->max_socks && s == NULL; i++) {
		one = &port->socks[i];
		if (one->port != NULL && one->token_port == token_port && one->held >= 0 &&
		    !one->is_over && !one->is_relayed && is_other_end(p->facts, one->token))
			s = one;
	}
	if (s == NULL)
		return san_socks_refuse(rep, -ENOENT, "nothing of ours");
	san_socks_keep(s, p);
	s->token_port = 0;
	set_asleep(port, s->tcp_port, false);
	rep->sock.id = s->id;
	rep->sock.bytes = s->mem.bytes;
	*out_fd = s->held;
	s->held = -1;
	return 0;
}
