/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Each daemon proves to the other that it is root of this host: the new one by its request
 * (san_shmq_send_proof()); the old one, which has dropped its rights, by a note. The note is a
 * message that it sent to itself before, and that waits in a socket together with the credentials
 * that the kernel has checked. The old daemon passes the socket on, and the new one looks at the
 * message. No other message has this text, so a request of root is no note.
 *
 * A daemon without CAP_SYS_ADMIN must have the other one's user and namespaces, which /proc shows.
 * A PID may be reused: the new daemon asks again, and the same process must answer.
 */

#include <fcntl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <rte_common.h>
#include <rte_hash_crc.h>
#include <rte_version.h>
#include <systemd/sd-daemon.h>

#include "server.h"
#include "state.h"

#define HASH_OF(text, h) rte_hash_crc((text), (uint32_t)strlen(text) + 1, (h))

#define WAIT_S      4 /* time for a step of the other daemon; below half of a usual watchdog's */
#define LEAVE_TRIES 5 /* times WAIT_S, for a daemon that has failed to end */

static const char note_text[] = "sanstack-daemon: I have the ports";

/**
 * What a new daemon needs to open the ports' devices. All other state follows, and is read only
 * after rights are dropped.
 */
struct given {
	uint64_t parked_ns; /**< CLOCK_MONOTONIC; applications have been waiting since then */
	int32_t pid;
	int32_t listener; /**< index of the descriptor */
	/** Indices of descriptors that keep other programs from binding the ports' UDP ports. */
	int32_t guards[SAN_ENGINE_GUARDS];
	struct rte_ether_addr macs[CONF_PORTS_MAX];
};

/* ---- both ---- */

void
san_takeover_describe_layout(const struct conf *conf, char text[SHMQ_LAYOUT])
{
	uint32_t i, h = HASH_OF(rte_version(), 0);
	char *const *given;
	int k;

	for (i = 0; i < conf->nb_ports; i++) {
		h = HASH_OF(conf->ports[i].name, h);
		given = conf->ports[i].given;
		for (k = 0; k < DPDK_KEYS_MAX; k++) /* another version may have more keys */
			if (given[k] != NULL)
				h = HASH_OF(given[k], HASH_OF(dpdk_conf_keys[k].name, h));
	}
	snprintf(text, SHMQ_LAYOUT, "%s %08x", san_layout, h);
}

/* True if *fd* holds a note of root of this host. */
static bool
takeover_is_note(int fd)
{
	char text[sizeof(note_text)];
	struct ucred from;
	bool has_fds;

	return san_shmq_peek_init(fd) == 0 &&
		san_shmq_peek(fd, text, sizeof(text), &has_fds, &from) == 0 &&
		memcmp(text, note_text, sizeof(text)) == 0 && san_shmq_is_root(&from);
}

int
san_takeover_make_note(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	san_shmq_send_proof(ends[1], note_text, sizeof(note_text));
	close(ends[1]);
	return ends[0];
}

/* Open a process that has our user and namespaces. Returns a pidfd; or -1: it has others. */
static int
takeover_open_peer(const struct ucred *of)
{
	static const char *const kinds[] = {"mnt", "pid", "user"};
	int fd = of->uid == geteuid() ? pidfd_open(of->pid, 0) : -1;
	char theirs[64], ours[64];
	bool is_same = fd >= 0;
	struct stat st[2];
	size_t i;

	for (i = 0; i < RTE_DIM(kinds) && is_same; i++) {
		snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)of->pid, kinds[i]);
		snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kinds[i]);
		is_same = stat(theirs, &st[0]) == 0 && stat(ours, &st[1]) == 0 &&
			st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
	}
	if (is_same || fd < 0)
		return fd;
	close(fd);
	return -1;
}

/* While a process lives, its PID is not reused. */
static bool
takeover_is_alive(int pidfd)
{
	return pidfd >= 0 && san_fd_poll(pidfd, POLLIN) == 0;
}

/* Limit the time to wait for the other daemon. */
static void
takeover_set_timeouts(int sock)
{
	const struct timeval tv = {.tv_sec = WAIT_S};

	fcntl(sock, F_SETFL, fcntl(sock, F_GETFL) & ~O_NONBLOCK);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

/* ---- new daemon ---- */

/* -1: nothing serves the socket. */
static int
takeover_dial_old(const struct conf *conf)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, conf->socket);
	if (sock >= 0 && connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
		takeover_set_timeouts(sock);
		return sock;
	}
	san_fd_close(sock);
	return -1;
}

bool
san_takeover_find(const struct conf *conf)
{
	int sock = takeover_dial_old(conf);

	san_fd_close(sock);
	return sock >= 0;
}

/* Ask, and get who answers after that. The caller owns *note*, which may be -1. */
static int
takeover_ask(struct server *s, struct ucred *from, int *note)
{
	struct shmq_req req = {.magic = SHMQ_MAGIC, .abi = SHMQ_ABI, .type = SHMQ_TAKEOVER};
	struct pollfd p = {.fd = s->other, .events = POLLIN};
	struct shmq_rep rep = {.rc = 0};
	bool has_fds;
	int rc;

	*note = -1;
	san_takeover_describe_layout(&s->conf, req.layout);
	rc = poll(&p, 1, 0) == 0 ? san_shmq_send_proof(s->other, &req, sizeof(req)) : -EPROTO;
	if (rc == 0 && poll(&p, 1, WAIT_S * 1000) != 1)
		rc = -ETIMEDOUT;
	if (rc == 0)
		rc = san_shmq_peek(s->other, &rep, sizeof(rep), &has_fds, from);
	if (rc == 0)
		rc = san_shmq_recv(s->other, &rep, sizeof(rep), note, false);
	if (rc == 0 && rep.rc == 0)
		return 0;
	rep.text[sizeof(rep.text) - 1] = '\0';
	san_logging_printable(rep.text);
	return rtsan_provider_host()->fail(rc != 0 ? rc : rep.rc, "the daemon that serves: %s",
					   rc != 0 ? strerror(-rc) : rep.text);
}

/* Ask until the other daemon has proved who it is. */
static int
takeover_ask_proof(struct server *s)
{
	struct ucred first, second;
	int note, none, peer, rc = takeover_ask(s, &first, &note);
	bool is_proved = rc == 0 && takeover_is_note(note);

	if (rc != 0)
		return rc;
	peer = is_proved ? -1 : takeover_open_peer(&first);
	if (is_proved || peer >= 0)
		rc = takeover_ask(s, &second, &none);
	if (rc == 0 && !is_proved && (!takeover_is_alive(peer) || second.pid != first.pid))
		rc = rtsan_provider_host()->fail(-EPERM,
						 "it is served by user %u, who is neither root of "
						 "this host nor has this user and namespaces",
						 first.uid);
	san_fd_close(peer);
	if (is_proved && !takeover_is_note(s->note))
		RTE_SWAP(s->note, note);
	san_fd_close(note);
	return rc;
}

/* Receive and load the next part of the other daemon's state. */
static int
takeover_receive_state(struct server *s, int (*load)(struct server *s, struct state *st))
{
	struct state st;
	int rc = san_state_recv(&st, s->other);
	const char *why;

	if (rc == 0)
		rc = load(s, &st);
	why = st.why;
	san_state_free(&st, true);
	return rc == 0 ? 0 :
			 rtsan_provider_host()->fail(rc, "its state: %s",
						     why != NULL ? why : strerror(-rc));
}

static int
load_given(struct server *s, struct state *st)
{
	uint64_t ours = san_helper_facts_option(s->other, SO_NETNS_COOKIE);
	struct given given;
	uint32_t i;
	int rc, fd;

	san_state_get(st, &given, sizeof(given));
	s->listener = san_state_get_fd(st, given.listener);
	if (san_helper_facts_option(s->listener, SO_DOMAIN) != AF_UNIX ||
	    san_helper_facts_option(s->listener, SO_TYPE) != SOCK_SEQPACKET ||
	    san_helper_facts_option(s->listener, SO_ACCEPTCONN) != 1)
		return san_state_fail(st, "no socket to listen on");
	if (san_helper_facts_option(s->listener, SO_NETNS_COOKIE) != ours)
		return san_state_fail(st, "a socket of another network namespace");
	for (i = 0; i < SAN_ENGINE_GUARDS; i++) {
		fd = san_state_get_fd(st, given.guards[i]);
		if (fd >= 0 && san_helper_facts_option(fd, SO_NETNS_COOKIE) != ours)
			return san_state_fail(st, "a guard of another network namespace");
		rc = fd >= 0 ? san_engine_kernel_guard_adopt(fd) : 0;
		if (rc != 0)
			return rc;
	}
	for (i = 0; i < s->conf.nb_ports; i++)
		s->all.ports[i].mac = given.macs[i];
	s->parked_ns = given.parked_ns;
	s->other_pid = given.pid;
	return st->failed ? -EPROTO : 0;
}

static int
load_apps(struct server *s, struct state *st)
{
	int rc = san_app_state_load_ports(&s->all, st);

	if (rc == 0 && san_shmq_guard_init(san_apps_ranges(&s->all), &s->guard) != 0)
		rc = -errno;
	return rc == 0 ? san_app_state_load(&s->all, st) : rc;
}

/* Connect late, because a connection without a request is closed soon. */
static int
takeover_connect(struct server *s)
{
	s->other = takeover_dial_old(&s->conf);
	if (s->other < 0)
		return rtsan_provider_host()->fail(-ENOTCONN, "no daemon serves %s",
						   s->conf.socket);
	return san_shmq_peek_init(s->other);
}

int
san_takeover_receive(struct server *s)
{
	int rc = takeover_connect(s);

	if (rc == 0)
		rc = takeover_ask_proof(s);
	return rc == 0 ? takeover_receive_state(s, load_given) : rc;
}

int
san_takeover_load(struct server *s)
{
	return takeover_receive_state(s, load_apps);
}

int
san_takeover_commit(struct server *s)
{
	struct ucred from;
	int note, rc = takeover_ask(s, &from, &note);

	san_fd_close(note);
	close(s->other);
	s->other = -1;
	return rc;
}

int
san_takeover_try(struct server *s)
{
	int rc = takeover_connect(s);

	return rc == 0 ? san_takeover_commit(s) : rc;
}

/* ---- old daemon ---- */

bool
san_takeover_is_request(const struct shmq_req *req)
{
	return req->magic == SHMQ_MAGIC && req->abi == SHMQ_ABI && req->type == SHMQ_TAKEOVER;
}

/* Root of this host may, and a process with our user and namespaces. */
static bool
may_take(const struct app *a)
{
	int peer;
	bool may;

	if (san_shmq_is_root(&a->sender))
		return true;
	peer = takeover_open_peer(&a->sender);
	may = takeover_is_alive(peer);
	san_fd_close(peer);
	return may;
}

/* The reason to refuse, or NULL. */
static const char *
takeover_objection_to(const struct server *s, const struct app *a, const struct shmq_req *req,
		      int *rc)
{
	char ours[SHMQ_LAYOUT];

	san_takeover_describe_layout(&s->conf, ours);
	*rc = -EPERM;
	if (!may_take(a))
		return "only root of this host, or the user that it runs as, may take over";
	*rc = -EBUSY;
	if (s->phase != SERVER_SERVING || a->attached || s->taker != NULL)
		return "it is ending, or another takeover is in progress";
	*rc = -EINVAL;
	if (strncmp(ours, req->layout, strlen(san_layout)) != 0)
		return "its structures are others: stop it, then start the new one";
	if (strncmp(ours, req->layout, sizeof(ours)) != 0)
		return "the [port] sections have changed: stop it, then start the new one";
	*rc = -ENOTSUP;
	return san_ports_can_park(s) ? NULL : "it can't be taken over; see takeover= and its log";
}

static int
takeover_reply(int sock, int rc, const char *why, int note, bool wait)
{
	struct shmq_rep rep = {.magic = SHMQ_MAGIC, .abi = SHMQ_ABI, .rc = rc};

	snprintf(rep.text, sizeof(rep.text), "%s", why != NULL ? why : "");
	return san_shmq_send(sock, &rep, sizeof(rep), note, wait);
}

static int
send_given(const struct server *s, int sock, uint64_t parked_ns)
{
	struct given given = {.parked_ns = parked_ns, .pid = getpid()};
	struct state st = {.failed = false};
	int rc, guards[SAN_ENGINE_GUARDS];
	uint32_t i, nb = san_engine_kernel_guards(guards);

	given.listener = san_state_put_fd(&st, s->listener);
	for (i = 0; i < SAN_ENGINE_GUARDS; i++)
		given.guards[i] = san_state_put_fd(&st, i < nb ? guards[i] : -1);
	for (i = 0; i < s->conf.nb_ports; i++)
		given.macs[i] = s->all.ports[i].mac;
	san_state_put(&st, &given, sizeof(given));
	rc = san_state_send(&st, sock);
	san_state_free(&st, false);
	return rc;
}

/* Wait until the new daemon asks again, and answer it. */
static int
takeover_confirm(int sock)
{
	struct shmq_req req;
	int fd, rc = san_shmq_recv(sock, &req, sizeof(req), &fd, true);

	san_fd_close(fd);
	if (rc == 0 && !san_takeover_is_request(&req))
		rc = -EPROTO;
	return rc == 0 ? takeover_reply(sock, 0, NULL, -1, true) : rc;
}

/*
 * The new daemon may still run, and have the ports. After the shutdown it cannot commit. When its
 * end of the socket closes, it has parked the ports or has ended.
 */
static int
takeover_wait_for_end(int sock)
{
	struct shmq_req req;
	int i, fd, rc = 0;

	shutdown(sock, SHUT_WR);
	for (i = 0; i < LEAVE_TRIES && rc != -ENOTCONN; i++) {
		sd_notify(0, "WATCHDOG=1"); /* what follows may take some seconds */
		rc = san_shmq_recv(sock, &req, sizeof(req), &fd, true);
		san_fd_close(fd);
	}
	return rc == -ENOTCONN ? 0 :
				 rtsan_provider_host()->fail(-EBUSY, "it still has the ports");
}

static int
open_again(struct server *s)
{
	int rc = san_ports_probe(&s->conf, false);

	if (rc == 0)
		rc = san_ports_each(s, san_ports_open_device);
	if (rc == 0)
		rc = san_ports_each(s, san_ports_resume);
	if (rc == 0)
		rc = san_app_state_attach(&s->all);
	return rc;
}

/* Continue to serve as before the takeover. */
static int
go_on(struct server *s, int sock)
{
	int rc = open_again(s);

	if (rc != 0) { /* the new daemon may have opened a port or a device */
		san_ports_park(s);
		rc = takeover_wait_for_end(sock);
		if (rc == 0)
			san_ports_reclaim(s);
		if (rc == 0)
			rc = open_again(s);
	}
	if (rc == 0)
		rc = san_ports_each(s, san_ports_begin);
	if (rc == 0)
		san_apps_wake(&s->all, NULL, false);
	return rc;
}

void
san_takeover_on_request(struct server *s, struct app *a, const struct shmq_req *req)
{
	const char *why;
	int rc;

	why = takeover_objection_to(s, a, req, &rc);
	if (why == NULL) {
		s->taker = a;
		return;
	}
	/* do not wait for a process that has no right to ask */
	takeover_reply(a->sock, rc, why, -1, false);
	LOG_OF(a->owner, WARNING, "pid=%d can't take over: %s", (int)a->pid, why);
	a->over = true;
}

void
san_takeover_give(struct server *s)
{
	struct state st = {.failed = false};
	struct app *a = s->taker;
	bool is_parked;
	uint64_t now_ns;
	int rc;

	s->taker = NULL;
	a->over = true; /* it is no application, and ends here */
	takeover_set_timeouts(a->sock);
	rc = takeover_reply(a->sock, 0, NULL, s->note, true);
	if (rc == 0)
		rc = takeover_confirm(a->sock);
	if (rc == -ENOTCONN) {
		SAN_LOG(DRIVER, NOTICE, "pid=%d has asked whether it could take over", (int)a->pid);
		return;
	}
	is_parked = rc == 0;
	sd_notify(0, "WATCHDOG=1"); /* what follows may take some seconds */
	now_ns = san_engine_clock_monotonic();
	if (is_parked) {
		san_ports_park(s);
		rc = send_given(s, a->sock, now_ns);
	}
	if (rc == 0) {
		san_app_state_save(&s->all, &st);
		rc = san_state_send(&st, a->sock);
		san_state_free(&st, false);
	}
	if (rc == 0)
		rc = takeover_confirm(a->sock);
	if (rc == 0) { /* the new daemon has everything, which this one must not access any more */
		s->is_taken = true;
		s->phase = SERVER_OVER;
		return;
	}
	SAN_LOG(DRIVER, ERR, "pid=%d did not take over (%s): this one continues", (int)a->pid,
		strerror(-rc));
	if (!is_parked || go_on(s, a->sock) == 0)
		return;
	SAN_LOG(DRIVER, ERR, "this one cannot continue: %s", rtsan_error());
	s->is_taken = true; /* there are no ports to close */
	s->is_lost = true;
	s->phase = SERVER_OVER;
	san_apps_wake(&s->all, NULL, true);
}
