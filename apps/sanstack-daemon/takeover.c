/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_version.h>

#include "app_state.h"
#include "engine_clock.h"
#include "layout.h"
#include "ports.h"
#include "logging.h"
#include "san_log.h"
#include "shmq_guard.h"
#include "takeover.h"

#define WAIT_S      4 /* time for a step of the other daemon; below half of a usual watchdog's */
#define LEAVE_TRIES 5 /* times WAIT_S, for a daemon that has failed to end */
#define FIRST_PID   1

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

/* FNV-1a. */
static uint64_t
takeover_hash_text(uint64_t h, const char *text)
{
	do
		h = (h ^ (uint8_t)*text) * 0x100000001b3;
	while (*text++ != '\0');
	return h;
}

/* What must be equal in both daemons: structures, sections of ports, DPDK version. */
static void
takeover_describe_layout(const struct conf *conf, char text[SHMQ_LAYOUT])
{
	uint64_t h = 0xcbf29ce484222325;
	uint32_t i;
	int k;

	for (i = 0; i < conf->nb_ports; i++) {
		h = takeover_hash_text(h, conf->ports[i].name);
		for (k = 0; k < conf->ports[i].nb_words; k++)
			h = takeover_hash_text(h, conf->ports[i].words[k]);
	}
	h = takeover_hash_text(h, rte_version());
	snprintf(text, SHMQ_LAYOUT, "%s %016llx", layout, (unsigned long long)h);
}

static struct shmq_req
takeover_request_of(const struct conf *conf)
{
	struct shmq_req req = {.magic = SHMQ_MAGIC, .abi = SHMQ_ABI, .type = SHMQ_TAKEOVER};

	takeover_describe_layout(conf, req.layout);
	return req;
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
	if (sock >= 0)
		close(sock);
	return -1;
}

bool
san_takeover_find(const struct conf *conf)
{
	int sock = takeover_dial_old(conf);

	if (sock >= 0)
		close(sock);
	return sock >= 0;
}

/*
 * Prove CAP_SYS_ADMIN in the PID namespace: only a process that has it may send the credentials of
 * process 1. Without it send the own credentials explicitly, because the kernel adds none before
 * the other daemon has set SO_PASSCRED.
 */
static int
takeover_ask(int sock, const struct shmq_req *req)
{
	struct shmq_rep rep = {.rc = 0};
	int fd, rc;

	rc = san_shmq_send_as(sock, req, sizeof(*req), FIRST_PID);
	if (rc == -EPERM)
		rc = san_shmq_send_as(sock, req, sizeof(*req), getpid());
	if (rc == 0)
		rc = san_shmq_recv(sock, &rep, sizeof(rep), &fd, true);
	if (rc == 0 && rep.rc == 0)
		return 0;
	rep.text[sizeof(rep.text) - 1] = '\0';
	return rtsan_provider_host()->fail(rc != 0 ? rc : rep.rc, "the daemon that serves: %s",
					   rc != 0 ? strerror(-rc) : rep.text);
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
	struct given given;
	uint32_t i;
	int rc, fd;

	san_state_get(st, &given, sizeof(given));
	s->listener = san_state_get_fd(st, given.listener);
	if (s->listener < 0)
		return san_state_fail(st, "no socket to listen on");
	for (i = 0; i < SAN_ENGINE_GUARDS; i++) {
		fd = san_state_get_fd(st, given.guards[i]);
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

/* Refuse a folder in which another user could have created the socket. */
static int
check_folder(const struct server *s)
{
	char copy[sizeof(s->conf.socket)];
	const char *folder;
	struct stat st;

	strcpy(copy, s->conf.socket);
	folder = dirname(copy);
	if (stat(folder, &st) == 0 && (st.st_uid == 0 || st.st_uid == s->user) &&
	    (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return 0;
	return rtsan_provider_host()->fail(-EPERM,
					   "%s: others may write there; its socket may be theirs",
					   folder);
}

/* SO_PEERCRED is from the time of listen(). It must be root or the daemon's own user. */
static int
check_other(int sock)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (cred.uid == 0 || cred.uid == geteuid())
		return 0;
	return rtsan_provider_host()->fail(-EPERM, "it is served by user %u, not by root",
					   cred.uid);
}

int
san_takeover_receive(struct server *s)
{
	struct shmq_req req = takeover_request_of(&s->conf);
	int rc = check_folder(s);

	if (rc != 0)
		return rc;

	/* connect late, because a connection without a request is closed soon */
	s->other = takeover_dial_old(&s->conf);
	if (s->other < 0)
		return rtsan_provider_host()->fail(-ENOTCONN, "the daemon that served has ended");
	rc = check_other(s->other);
	if (rc == 0)
		rc = takeover_ask(s->other, &req);
	if (rc != 0)
		return rc;
	return takeover_receive_state(s, load_given);
}

int
san_takeover_load(struct server *s)
{
	return takeover_receive_state(s, load_apps);
}

int
san_takeover_commit(struct server *s)
{
	struct shmq_req req = takeover_request_of(&s->conf);
	int rc = takeover_ask(s->other, &req);

	close(s->other);
	s->other = -1;
	return rc;
}

void
san_takeover_log(const struct server *s)
{
	uint64_t ns = san_engine_clock_monotonic() - s->parked_ns;

	SAN_LOG(DRIVER, NOTICE, "taken over from pid=%d: applications=%u, blackout_us=%u",
		(int)s->other_pid, s->all.nb_attached, (unsigned int)(ns / SAN_NS_PER_US));
}

/* ---- old daemon ---- */

bool
san_takeover_is_request(const struct shmq_req *req)
{
	return req->magic == SHMQ_MAGIC && req->abi == SHMQ_ABI && req->type == SHMQ_TAKEOVER;
}

static bool
is_same_file(const char *a, const char *b)
{
	struct stat st[2];

	return stat(a, &st[0]) == 0 && stat(b, &st[1]) == 0 && st[0].st_dev == st[1].st_dev &&
		st[0].st_ino == st[1].st_ino;
}

/*
 * A PID is not reused while its process is alive. The pidfd proves at the end that it still is.
 */
static bool
is_of_our_namespaces(pid_t pid)
{
	static const char *const kinds[] = {"mnt", "pid", "user"};
	struct pollfd p = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	char theirs[64], ours[64];
	bool is_same = p.fd >= 0;
	size_t i;

	for (i = 0; i < RTE_DIM(kinds) && is_same; i++) {
		snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, kinds[i]);
		snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kinds[i]);
		is_same = is_same_file(theirs, ours);
	}
	is_same = is_same && poll(&p, 1, 0) == 0; /* it is alive */
	if (p.fd >= 0)
		close(p.fd);
	return is_same;
}

/*
 * A process that may send the credentials of process 1 has CAP_SYS_ADMIN in this PID namespace: it
 * is root of this host, not of a container. Any other one must have the same user and namespaces.
 */
static bool
may_take(const struct app *a)
{
	return (a->uid == 0 && a->sender.pid == FIRST_PID) ||
		(a->uid == geteuid() && is_of_our_namespaces(a->sender.pid));
}

/* The reason to refuse, or NULL. */
static const char *
takeover_objection_to(const struct server *s, const struct app *a, const struct shmq_req *req,
		      int *rc)
{
	char ours[SHMQ_LAYOUT];

	takeover_describe_layout(&s->conf, ours);
	*rc = -EPERM;
	if (!may_take(a))
		return "only root of this host, or the user that it runs as, may take over";
	*rc = -EBUSY;
	if (s->phase != SERVER_SERVING || a->attached || s->taker != NULL)
		return "it is ending, or another takeover is in progress";
	*rc = -EINVAL;
	if (strncmp(ours, req->layout, strlen(layout)) != 0)
		return "its structures are others: stop it, then start the new one";
	if (strncmp(ours, req->layout, sizeof(ours)) != 0)
		return "the [port] sections have changed: stop it, then start the new one";
	*rc = -ENOTSUP;
	return san_ports_can_park(s) ? NULL : "it can't be taken over; see takeover= and its log";
}

static int
takeover_reply(int sock, int rc, const char *why, bool wait)
{
	struct shmq_rep rep = {.magic = SHMQ_MAGIC, .abi = SHMQ_ABI, .rc = rc};

	snprintf(rep.text, sizeof(rep.text), "%s", why != NULL ? why : "");
	return san_shmq_send(sock, &rep, sizeof(rep), -1, wait);
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

static int
send_apps(const struct server *s, int sock)
{
	struct state st = {.failed = false};
	int rc;

	san_app_state_save(&s->all, &st);
	rc = san_state_send(&st, sock);
	san_state_free(&st, false);
	return rc;
}

/* 0: the new daemon has everything, and this one must not access it any more. */
static int
takeover_hand_over(const struct server *s, int sock, uint64_t parked_ns)
{
	int fd, rc = send_given(s, sock, parked_ns);
	struct shmq_req req;

	if (rc == 0)
		rc = send_apps(s, sock);
	if (rc == 0)
		rc = san_shmq_recv(sock, &req, sizeof(req), &fd, true);
	if (rc == 0 && fd >= 0)
		close(fd);
	if (rc == 0 && !san_takeover_is_request(&req))
		rc = -EPROTO;
	return rc == 0 ? takeover_reply(sock, 0, NULL, true) : rc;
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
		san_notify_alive();
		rc = san_shmq_recv(sock, &req, sizeof(req), &fd, true);
		if (rc == 0 && fd >= 0)
			close(fd);
	}
	return rc == -ENOTCONN ? 0 :
				 rtsan_provider_host()->fail(-EBUSY, "it still has the ports");
}

static int
open_again(struct server *s)
{
	int rc = san_ports_probe(&s->conf);

	if (rc == 0)
		rc = san_ports_open_devices(s);
	if (rc == 0)
		rc = san_ports_resume(s);
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
		rc = san_ports_begin(s);
	if (rc == 0)
		san_apps_wake(&s->all);
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
	takeover_reply(a->sock, rc, why, false);
	LOG_OF(a->owner, WARNING, "pid=%d can't take over: %s", (int)a->pid, why);
	a->over = true;
}

void
san_takeover_give(struct server *s)
{
	struct app *a = s->taker;
	uint64_t now_ns;
	int rc;

	s->taker = NULL;
	a->over = true; /* it is no application, and ends here */
	takeover_set_timeouts(a->sock);
	if (takeover_reply(a->sock, 0, NULL, true) != 0)
		return;
	san_notify_alive();
	now_ns = san_engine_clock_monotonic();
	san_ports_park(s);
	rc = takeover_hand_over(s, a->sock, now_ns);
	if (rc == 0) {
		s->is_taken = true;
		s->phase = SERVER_OVER;
		return;
	}
	SAN_LOG(DRIVER, ERR, "pid=%d did not take over (%s): this one continues", (int)a->pid,
		strerror(-rc));
	rc = go_on(s, a->sock);
	if (rc == 0)
		return;
	SAN_LOG(DRIVER, ERR, "this one cannot continue: %s", rtsan_error());
	s->is_taken = true; /* there are no ports to close */
	s->is_lost = true;
	s->phase = SERVER_OVER;
	san_apps_engines_end(&s->all);
}
