/* SPDX-License-Identifier: BSD-3-Clause */

#include <signal.h>
#include <sys/prctl.h>

#include <bsd/unistd.h>

#include "harden.h"
#include "helper_priv.h"

/** Sent with the helper's ends of its channels, or with the descriptors to close. */
struct request {
	uid_t uid;
	uint32_t closes;
};

/* ---- the forking process ---- */

/*
 * Release everything inherited from the daemon. An inherited pipe would keep its reader from seeing
 * the end. Signals are blocked, because those to the process group are meant for the daemon. The
 * process and its helpers end with the daemon.
 */
static void
helper_fork_separate(int sock)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	dup2(sock, STDERR_FILENO + 1);
	closefrom(STDERR_FILENO + 2);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps helpers */
	signal(SIGPIPE, SIG_IGN);
}

/*
 * The child's exit makes the last close() of each descriptor. So the child waits on two pipes:
 * until the daemon has closed its own descriptors (the first of *fds*), and this process has.
 */
static void
close_elsewhere(int sock, const int *fds, uint32_t nb)
{
	int ends[2];
	pid_t pid;
	char byte;

	/* without a descriptor the message has lost them, and they are closed */
	if (nb == 0 || pipe2(ends, O_CLOEXEC) != 0)
		return; /* they stay open until this process ends */
	pid = fork();
	if (pid == 0) {
		close(sock);
		close(ends[1]);
		_exit(read(fds[0], &byte, 1) != 0 || read(ends[0], &byte, 1) != 0);
	}
	while (pid > 0 && nb > 0)
		close(fds[--nb]);
	close(ends[0]);
	close(ends[1]);
}

static void __attribute__((noreturn))
helper_fork_main(int sock, bool seccomp)
{
	int fds[SHMQ_FDS];
	struct request req;
	char err[256];
	uint32_t nb;

	while (san_shmq_recv_fds(sock, &req, sizeof(req), fds, &nb, SHMQ_FDS, true) == 0) {
		if (req.closes != 0) {
			close_elsewhere(sock, fds, nb);
			continue;
		}
		if (nb == 2 && fork() == 0) {
			close(sock);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, "san-helper");
			setproctitle("helper of user %u", req.uid);
			if (seccomp && san_sandbox_enter(SANDBOX_HELPER, err, sizeof(err)) != 0)
				_exit(1);
			san_helper_run_begin(fds[0], fds[1]);
			while (san_helper_run_turn(true))
				;
			_exit(0);
		}
		while (nb > 0)
			close(fds[--nb]);
	}
	_exit(0);
}

int
san_helper_fork_init(const struct harden_user *user, bool seccomp, pid_t *pid)
{
	int fds[2], rc;
	char err[256];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	*pid = fork();
	if (*pid == 0) {
		if (san_harden_drop(user, err, sizeof(err)) != 0)
			_exit(1);
		helper_fork_separate(fds[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "san-helpers");
		setproctitle("helpers");
		if (seccomp && san_sandbox_enter(SANDBOX_FORKER, err, sizeof(err)) != 0)
			_exit(1);
		helper_fork_main(STDERR_FILENO + 1, seccomp);
	}
	rc = *pid < 0 ? -errno : fds[0];
	close(fds[1]);
	if (rc < 0)
		close(fds[0]);
	return rc;
}

/* ---- called by the daemon ---- */

int
san_helper_fork_close(int forker, const int *fds, uint32_t nb)
{
	const struct request req = {.closes = 1};
	int all[HELPER_CLOSE_MAX + 1], ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	all[0] = ends[0];
	memcpy(&all[1], fds, nb * sizeof(*fds));
	rc = san_shmq_send_many(forker, &req, sizeof(req), all, nb + 1, false);
	close(ends[0]);
	if (rc == 0)
		return ends[1];
	close(ends[1]);
	return rc;
}

int
san_helper_fork(int forker, uid_t uid, int *control, int *data)
{
	const struct request req = {.uid = uid};
	int ours[2] = {-1, -1}, theirs[2] = {-1, -1}, i, fds[2], rc = 0;

	for (i = 0; i < 2 && rc == 0; i++) {
		rc = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0 ? 0 : -errno;
		ours[i] = rc == 0 ? fds[0] : -1;
		theirs[i] = rc == 0 ? fds[1] : -1;
	}
	if (rc == 0)
		rc = san_shmq_send_many(forker, &req, sizeof(req), theirs, 2, false);
	for (i = 0; i < 2; i++) {
		san_fd_close(theirs[i]);
		if (rc != 0)
			san_fd_close(ours[i]);
	}
	*control = ours[0];
	*data = ours[1];
	return rc;
}
