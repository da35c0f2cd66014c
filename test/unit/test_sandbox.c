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

static int (*volatile call)(void);
static volatile bool begin, other_thread;
static enum sandbox_role who;

/* 0 or -errno. */
static int
result(long rc)
{
	return rc < 0 ? -errno : 0;
}

static void *
thread_main(void *arg)
{
	int *rc = arg;

	while (!begin)
		sched_yield();
	*rc = other_thread ? call() : 0;
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
		rc = call();
	else
		pthread_join(thread, NULL);
	_exit(-rc);
}

static int
run(int (*fn)(void), bool by_other)
{
	int status;
	pid_t pid;

	call = fn;
	other_thread = by_other;
	pid = fork();
	if (pid == 0)
		child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* ---- what is refused ---- */

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
do_token(void)
{
	return result(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

static int
do_udp(void)
{
	return result(socket(AF_INET, SOCK_DGRAM, 0));
}

static int
do_tcp6(void)
{
	return result(socket(AF_INET6, SOCK_STREAM, 0));
}

static int
do_netlink(void)
{
	return result(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int
do_ptrace(void)
{
	return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int
do_exec_memory(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -errno : 0;
}

static int
do_exec_later(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int
do_read_other(void)
{
	char byte;
	struct iovec iov = {&byte, 1};

	return result(process_vm_readv(getppid(), &iov, 1, &iov, 1, 0));
}

static int
do_kill(void)
{
	return result(kill(getppid(), 0));
}

static int
do_setuid(void)
{
	return result(syscall(SYS_setresuid, 0, 0, 0));
}

static int
do_unshare(void)
{
	return result(unshare(CLONE_NEWUSER));
}

static int
do_bpf(void)
{
	return result(syscall(SYS_bpf, 0, NULL, 0));
}

static int
do_keyctl(void)
{
	return result(syscall(SYS_keyctl, 0, 0, 0));
}

static int
do_mount(void)
{
	return result(syscall(SYS_mount, "x", "/nowhere", "tmpfs", 0, NULL));
}

static int
do_clone3(void)
{
	return result(syscall(SYS_clone3, NULL, 0));
}

UNIT_CASE(san_sandbox_enter__refused)
{
	int (*const calls[])(void) = {
		do_exec,
		do_fork,
		do_udp,
		do_tcp6,
		do_netlink,
		do_ptrace,
		do_exec_memory,
		do_exec_later,
		do_read_other,
		do_kill,
		do_setuid,
		do_unshare,
		do_bpf,
		do_keyctl,
		do_mount,
	};

	who = SANDBOX_DAEMON;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		FAIL_IF(run(calls[i], false) != -EPERM, "call %zu is not refused", i);
		if (run(calls[i], true) != -EPERM)
			fail_msg("call %zu is not refused to a thread that was there", i);
	}
	/* as on a kernel without it: the C library continues without it */
	assert_int_equal(run(do_clone3, false), -ENOSYS);
}

/* ---- what is allowed ---- */

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

static int
do_unix(void)
{
	int ends[2];

	if (socket(AF_UNIX, SOCK_STREAM, 0) < 0 || epoll_create1(0) < 0)
		return -errno;
	return result(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
}

UNIT_CASE(san_sandbox_enter__allowed)
{
	who = SANDBOX_DAEMON;
	assert_int_equal(run(do_thread, false), 0);
	assert_int_equal(run(do_thread, true), 0);
	assert_int_equal(run(do_memfd, false), 0);
	assert_int_equal(run(do_file, false), 0);
	assert_int_equal(run(do_unix, false), 0);
	assert_int_equal(run(do_token, false), 0);
}

/* ---- a helper ---- */

/* Its usual work. */
static int
do_look(void)
{
	int ends[2], v;
	socklen_t len = sizeof(v);

	return result(getsockopt(STDIN_FILENO, SOL_SOCKET, SO_DOMAIN, &v, &len)) == -ENOTSOCK ?
		0 :
		result(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
}

UNIT_CASE(san_sandbox_enter__helper)
{
	int (*const calls[])(void) = {
		do_exec,
		do_fork,
		do_thread,
		do_udp,
		do_netlink,
		do_ptrace,
		do_exec_memory,
		do_read_other,
		do_kill,
		do_setuid,
		do_bpf,
		do_mount,
		do_memfd,
		do_file,
	};

	who = SANDBOX_HELPER;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		FAIL_IF(run(calls[i], false) >= 0, "call %zu is not refused", i);
	assert_int_equal(run(do_look, false), 0);
}
