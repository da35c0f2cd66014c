/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the daemon can do behind its filter, and what it cannot. Each case runs in its own process,
 * with a thread that existed before: the filter applies to it, too. (SYS-5)
 */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harden.h"

/** A function, or one system call. */
struct call {
	const char *name;
	int (*fn)(void);
	long nr, args[6];
	bool of_helper; /**< a helper may not make it, either */
};

static struct call call;
static volatile bool begin, other_thread;
static enum sandbox_role who;

/* 0 or -errno. */
static int
result(long rc)
{
	return rc < 0 ? -errno : 0;
}

static int
execute(void)
{
	const long *a = call.args;

	return call.fn != NULL ? call.fn() :
				 result(syscall(call.nr, a[0], a[1], a[2], a[3], a[4], a[5]));
}

static void *
thread_main(void *arg)
{
	int *rc = arg;

	while (!begin)
		sched_yield();
	*rc = other_thread ? execute() : 0;
	return NULL;
}

/* Behind the filter, in the thread that set it or in one that existed before. */
static void
child(void)
{
	pthread_t thread;
	char err[256];
	int rc = 0;

	/* a helper has no other thread: creating one behind its filter ends the process */
	if (who == SANDBOX_DAEMON && pthread_create(&thread, NULL, thread_main, &rc) != 0)
		_exit(200);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (san_sandbox_enter(who, err, sizeof(err)) != 0)
		_exit(201);
	begin = true;
	if (!other_thread)
		rc = execute();
	else
		pthread_join(thread, NULL);
	_exit(-rc);
}

static int
run(const struct call *what, bool by_other)
{
	int status;
	pid_t pid;

	call = *what;
	other_thread = by_other;
	pid = fork();
	if (pid == 0)
		child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static int
do_exec(void)
{
	return result(execl("/bin/true", "true", NULL));
}

static int
do_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int
do_exec_later(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static void *
nothing(void *arg)
{
	return arg;
}

static int
do_thread(void)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, nothing, NULL);

	return rc != 0 ? -rc : -pthread_join(thread, NULL);
}

static int
do_memfd(void)
{
	int fd = memfd_create("x", MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, 4096) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0) ==
		    MAP_FAILED)
		return -errno;
	return 0;
}

static int
do_file(void)
{
	int fd = open("/proc/self/status", O_RDONLY);
	char byte;

	return fd < 0 || read(fd, &byte, 1) != 1 ? -errno : 0;
}

/* By the only calls for it that arm64 has. */
static int
do_names(void)
{
	int made = result(syscall(SYS_mkdirat, AT_FDCWD, "/", 0));
	int moved = result(syscall(SYS_renameat, AT_FDCWD, "/none", AT_FDCWD, "/none"));

	return made == -EEXIST && moved == -ENOENT ? 0 : -EPERM;
}

static int
do_unix(void)
{
	int ends[2];

	if (socket(AF_UNIX, SOCK_STREAM, 0) < 0 || epoll_create1(0) < 0)
		return -errno;
	return result(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
}

/* The usual work of a helper. */
static int
do_look(void)
{
	int ends[2], v;
	socklen_t len = sizeof(v);

	return result(getsockopt(STDIN_FILENO, SOL_SOCKET, SO_DOMAIN, &v, &len)) == -ENOTSOCK ?
		0 :
		result(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
}

UNIT_CASE(san_sandbox_enter__refused)
{
	char byte;
	struct iovec iov = {&byte, 1};
	const struct call calls[] = {
		{"exec", do_exec, .of_helper = true},
		{"fork", do_fork, .of_helper = true},
		{"UDP", .nr = SYS_socket, .args = {AF_INET, SOCK_DGRAM}, .of_helper = true},
		{"TCP over IPv6", .nr = SYS_socket, .args = {AF_INET6, SOCK_STREAM}},
		{"netlink", .nr = SYS_socket, .args = {AF_NETLINK, SOCK_RAW}, .of_helper = true},
		{"ptrace", .nr = SYS_ptrace, .args = {PTRACE_TRACEME}, .of_helper = true},
		{"executable memory", .nr = SYS_mmap, .of_helper = true,
		 .args = {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1}},
		{"memory made executable", do_exec_later},
		{"another's memory", .nr = SYS_process_vm_readv, .of_helper = true,
		 .args = {getpid(), (long)&iov, 1, (long)&iov, 1}},
		{"kill", .nr = SYS_kill, .args = {getpid()}, .of_helper = true},
		{"setresuid", .nr = SYS_setresuid, .of_helper = true},
		{"unshare", .nr = SYS_unshare, .args = {CLONE_NEWUSER}},
		{"bpf", .nr = SYS_bpf, .of_helper = true},
		{"keyctl", .nr = SYS_keyctl},
		{"mount", .nr = SYS_mount, .args = {(long)"x", (long)"/nowhere", (long)"tmpfs"},
		 .of_helper = true},
	};
	const struct call clone3 = {.nr = SYS_clone3};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		who = SANDBOX_DAEMON;
		FAIL_IF(run(&calls[i], false) != -EPERM, "%s is not refused", calls[i].name);
		FAIL_IF(run(&calls[i], true) != -EPERM,
			"%s is not refused to a thread that was there", calls[i].name);
		who = SANDBOX_HELPER;
		FAIL_IF(calls[i].of_helper && run(&calls[i], false) >= 0,
			"%s is not refused to a helper", calls[i].name);
	}
	who = SANDBOX_DAEMON;
	/* as on a kernel without it: the C library continues without it */
	assert_int_equal(run(&clone3, false), -ENOSYS);
}

UNIT_CASE(san_sandbox_enter__allowed)
{
	const struct call calls[] = {
		{"thread", do_thread, .of_helper = true},
		{"memory to share", do_memfd, .of_helper = true},
		{"file", do_file, .of_helper = true},
		{"names of files", do_names, .of_helper = true},
		{"UNIX sockets", do_unix},
		{"token", .nr = SYS_socket,
		 .args = {AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC}},
	};
	const struct call look = {.fn = do_look};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		who = SANDBOX_DAEMON;
		FAIL_IF(run(&calls[i], false) < 0, "%s is refused", calls[i].name);
		FAIL_IF(i == 0 && run(&calls[i], true) < 0, "%s is refused later", calls[i].name);
		who = SANDBOX_HELPER;
		FAIL_IF(calls[i].of_helper && run(&calls[i], false) >= 0,
			"%s is not refused to a helper", calls[i].name);
	}
	assert_int_equal(run(&look, false), 0);
}
