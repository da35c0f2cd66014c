/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Capabilities belong to a thread, and EAL has already started threads. glibc changes the user ID
 * of all threads. libpsx would do the same for capabilities, but the libpsx of Debian 12 knows only
 * threads of objects that are linked with its wrapper of pthread_create(). The threads of
 * librte_eal.so are not among them and would keep their capabilities. So each thread gets a signal
 * and drops its own, and /proc confirms the result.
 */

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harden.h"
#include "san_key.h"

#define TRIES        20000 /* of TRY_NS: a thread may not run for seconds on a busy machine */
#define TRY_NS       1000000
#define CLEAN_PASSES 2 /* one pass may miss a thread that an unfinished thread creates */
#define SIGNAL       (SIGRTMAX - 1)

int
san_harden_find(struct harden_user *u, const char *name, char *err, size_t err_len)
{
	const struct passwd *pw;

	*u = (struct harden_user){.given = false};
	if (name[0] == '\0')
		return 0;
	pw = getpwnam(name);
	if (pw == NULL)
		return san_key_fail(err, err_len, "[daemon] user = %s: no such user", name);
	if (pw->pw_uid == geteuid())
		return 0;
	if (geteuid() != 0) {
		snprintf(err, err_len, "[daemon] user = %s: only root can switch to another user",
			 name);
		return -EPERM;
	}
	u->given = true;
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	u->nb_groups = HARDEN_GROUPS;
	if (getgrouplist(name, u->gid, u->groups, &u->nb_groups) < 0)
		return san_key_fail(err, err_len, "[daemon] user = %s: in more than %d groups",
				    name, HARDEN_GROUPS);
	return 0;
}

/* ---- each thread ---- */

/* Signal handler, runs in each thread. It may only make system calls. */
static void
drop_own(int sig)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	int before = errno;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_capset, &head, none);
	errno = before;
}

/* Check that thread *tid* has dropped all rights, or has ended. */
static bool
harden_thread_is_done(long tid)
{
	unsigned long long permitted = 1, effective = 1;
	int no_new = 0, uid = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/status", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return errno == ENOENT || errno == ESRCH;
	while (fgets(line, sizeof(line), f) != NULL) {
		sscanf(line, "CapPrm: %llx", &permitted);
		sscanf(line, "CapEff: %llx", &effective);
		sscanf(line, "NoNewPrivs: %d", &no_new);
		sscanf(line, "Uid: %d", &uid);
	}
	fclose(f);
	return permitted == 0 && effective == 0 && no_new == 1 && uid == (int)getuid();
}

/* Signal the threads that still have rights, in one pass. Returns their number. */
static int
harden_signal_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	int nb = 0;
	long tid;

	if (dir == NULL)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		tid = strtol(entry->d_name, NULL, 10);
		if (tid > 0 && !harden_thread_is_done(tid)) {
			nb++;
			syscall(SYS_tgkill, getpid(), tid, SIGNAL);
		}
	}
	closedir(dir);
	return nb;
}

static int
drop_all_threads(void)
{
	/* restart interrupted calls: EAL's threads do not expect EINTR */
	struct sigaction act = {.sa_handler = drop_own, .sa_flags = SA_RESTART};
	const struct timespec pause = {.tv_nsec = TRY_NS};
	int i, nb, clean = 0;

	if (sigaction(SIGNAL, &act, NULL) != 0)
		return -errno;
	for (i = 0; i < TRIES && clean < CLEAN_PASSES; i++) {
		nb = harden_signal_threads();
		if (nb < 0)
			return nb;
		clean = nb == 0 ? clean + 1 : 0;
		if (nb != 0)
			nanosleep(&pause, NULL);
	}
	act.sa_handler = SIG_IGN;
	sigaction(SIGNAL, &act, NULL);
	return clean == CLEAN_PASSES ? 0 : -ETIME;
}

int
san_harden_drop(const struct harden_user *u, char *err, size_t err_len)
{
	int rc;

	if (u->given &&
	    (setgroups((size_t)u->nb_groups, u->groups) != 0 ||
	     setresgid(u->gid, u->gid, u->gid) != 0 || setresuid(u->uid, u->uid, u->uid) != 0)) {
		rc = -errno;
		snprintf(err, err_len, "[daemon] user: %s", strerror(errno));
		return rc;
	}
	rc = drop_all_threads();
	if (rc != 0)
		snprintf(err, err_len, "capabilities: not every thread has dropped them: %s",
			 strerror(-rc));
	return rc;
}
