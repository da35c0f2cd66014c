/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A system call that is not in the table fails with EPERM and appears in the audit log. Killing the
 * process instead would end all applications' connections, because of a call that a new C library
 * or driver makes and can do without. A call that the C library tries before an older equivalent
 * fails with ENOSYS, and the library falls back.
 *
 * Memory is never executable once the daemon serves: all libraries are loaded by then.
 */

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <seccomp.h>

#include <rte_common.h>

#include "harden.h"

#define CALL(name) SCMP_SYS(name)

/** Allowed with any arguments. */
static const int allowed[] = {
	/* lcores: yield, sleep, clocks without a vDSO */
	CALL(clock_getres), CALL(clock_gettime), CALL(clock_nanosleep), CALL(gettimeofday),
	CALL(nanosleep), CALL(sched_yield), CALL(time),
	/* descriptors, waiting; rings and doorbells of drivers */
	CALL(close), CALL(dup), CALL(dup2), CALL(dup3),
	CALL(epoll_create), /* EAL's interrupt thread, when its sources change */
	CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_pwait),
	CALL(epoll_pwait2), /* lcores that sleep */
	CALL(epoll_wait), CALL(eventfd2), CALL(fcntl), CALL(flock),
	CALL(ioctl),       /* link state of tap and af_packet, interrupts of vfio */
	CALL(userfaultfd), /* of memory that is shared, after a takeover */
	CALL(pipe2), CALL(poll), CALL(ppoll), CALL(pread64), CALL(pselect6), CALL(pwrite64),
	CALL(read), CALL(readv), CALL(select), CALL(timerfd_create), CALL(timerfd_gettime),
	CALL(timerfd_settime), CALL(write), CALL(writev),
	/* sockets; the next table limits the families of socket() */
	CALL(accept), CALL(accept4), CALL(bind), CALL(connect), CALL(getpeername),
	CALL(getsockname), CALL(getsockopt), CALL(listen), CALL(recvfrom), CALL(recvmmsg),
	CALL(recvmsg), CALL(sendmmsg), CALL(sendmsg), CALL(sendto), CALL(setsockopt),
	CALL(shutdown),
	/* memory shared with applications, and malloc() */
	CALL(brk), CALL(fallocate), CALL(ftruncate),
	CALL(get_mempolicy), /* EAL, when it adds hugepages */
	CALL(madvise), CALL(mbind), CALL(memfd_create), CALL(mincore), CALL(mlock),
	CALL(mremap), CALL(munlock), CALL(munmap), CALL(set_mempolicy),
	/* files: configuration, captures, /proc and /sys, removal of socket files */
	CALL(access), CALL(faccessat), CALL(fstat), CALL(fstatfs), CALL(fsync), CALL(getcwd),
	CALL(getdents64), CALL(lseek), CALL(lstat), CALL(mkdir), CALL(newfstatat), CALL(open),
	CALL(openat), CALL(readlink), CALL(readlinkat), CALL(rename), CALL(rmdir), CALL(stat),
	CALL(statfs), CALL(statx), CALL(umask), CALL(unlink), CALL(unlinkat),
	CALL(mkdirat), CALL(renameat), /* on arm64, which has no older ones */
	/* threads: telemetry starts one for each client */
	CALL(exit), CALL(exit_group), CALL(futex), CALL(get_robust_list), CALL(getcpu),
	CALL(pidfd_open), /* namespaces of a daemon that takes over */
	CALL(membarrier), CALL(restart_syscall), CALL(rseq), CALL(rt_sigaction),
	CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sched_getaffinity),
	CALL(sched_setaffinity), CALL(set_robust_list), CALL(set_tid_address),
	CALL(sigaltstack),
	/* identity of the process */
	CALL(getegid), CALL(geteuid), CALL(getgid), CALL(getpid), CALL(getppid),
	CALL(getrandom), CALL(getrlimit), CALL(getrusage), CALL(gettid), CALL(getuid),
	CALL(sysinfo), CALL(uname)};

#define TYPE_MASK 0xfu /* type of socket(), without SOCK_NONBLOCK and SOCK_CLOEXEC */

/** Allowed if the bits of *mask* in one argument equal *value*. */
static const struct sandbox_if {
	int call;
	unsigned int arg;
	uint64_t mask, value;
} allowed_if[] = {
	{CALL(clone), 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM}, /* threads only */
	{CALL(mmap), 2, PROT_EXEC, 0},
	{CALL(mprotect), 2, PROT_EXEC, 0},
	{CALL(prctl), 0, UINT32_MAX, PR_SET_NAME},
	{CALL(prctl), 0, UINT32_MAX, PR_GET_NAME},
	{CALL(prctl), 0, UINT32_MAX, PR_SET_VMA},
	{CALL(prlimit64), 2, UINT64_MAX, 0}, /* query only */
	/* memif, telemetry, syslog, the service manager */
	{CALL(socket), 0, UINT32_MAX, AF_UNIX},
	{CALL(socketpair), 0, UINT32_MAX, AF_UNIX},
};

/** Tried first by the C library, which falls back. */
static const int absent[] = {
	CALL(clone3), /* a filter can't read its flags */
	CALL(close_range), CALL(faccessat2), CALL(futex_waitv), CALL(openat2)};

/**
 * The calls of helper_run.c and helper_facts.c, and no others. The process that forks helpers has
 * them, too.
 */
static const int of_helpers[] = {
	CALL(bind), CALL(brk), CALL(clock_gettime), CALL(close), CALL(connect),
	CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_pwait), CALL(epoll_wait), CALL(exit),
	CALL(exit_group), CALL(fcntl), CALL(fstat), CALL(fstatfs), CALL(futex),
	CALL(getpeername), CALL(getpid), CALL(getrandom), CALL(getsockname), CALL(getsockopt),
	CALL(lseek), CALL(munmap), CALL(newfstatat), CALL(poll), CALL(ppoll), CALL(read),
	CALL(recvfrom), CALL(recvmsg), CALL(restart_syscall), CALL(rt_sigaction),
	CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sendmsg), CALL(sendto), CALL(setsockopt)};

static const struct sandbox_if of_helpers_if[] = {
	{CALL(mmap), 2, PROT_EXEC, 0},
	{CALL(socket), 0, UINT32_MAX, AF_UNIX}, /* to query the own network namespace */
};

/** For the process that forks helpers: no new namespaces. */
#define CLONE_NEW                                                                     \
	(CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | \
	 CLONE_NEWUSER | CLONE_NEWUTS)

static const struct sandbox_if of_forker_if[] = {
	{CALL(clone), 0, CLONE_NEW, 0},
	{CALL(mprotect), 2, PROT_EXEC, 0},
	{CALL(prctl), 0, UINT32_MAX, PR_SET_NAME},
	{CALL(prctl), 0, UINT32_MAX, PR_SET_NO_NEW_PRIVS},
	{CALL(prctl), 0, UINT32_MAX, PR_SET_PDEATHSIG},
	{CALL(prctl), 0, UINT32_MAX, PR_SET_SECCOMP},
};

/** Further calls of the process that forks helpers. */
static const int of_forker[] = {
	CALL(gettid), CALL(pipe2), CALL(rseq), CALL(seccomp), CALL(set_robust_list),
	CALL(set_tid_address)};

static int
sandbox_allow(scmp_filter_ctx ctx, const int *calls, size_t nb_calls, const struct sandbox_if *ifs,
	      size_t nb_ifs)
{
	int rc = 0;
	size_t i;

	for (i = 0; i < nb_calls && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
	for (i = 0; i < nb_ifs && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, ifs[i].call, 1,
				      SCMP_CMP64(ifs[i].arg, SCMP_CMP_MASKED_EQ, ifs[i].mask,
						 ifs[i].value));
	return rc;
}

#define ALLOW(ctx, calls, ifs) sandbox_allow(ctx, calls, RTE_DIM(calls), ifs, RTE_DIM(ifs))

static int
allow_tcp(scmp_filter_ctx ctx, int family)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, CALL(socket), 3,
				SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)family),
				SCMP_A1(SCMP_CMP_MASKED_EQ, TYPE_MASK, SOCK_STREAM),
				SCMP_A2(SCMP_CMP_MASKED_EQ, UINT32_MAX, 0));
}

static int
add_helper_rules(scmp_filter_ctx ctx, enum sandbox_role role)
{
	int rc = ALLOW(ctx, of_helpers, of_helpers_if);

	if (rc == 0 && role == SANDBOX_FORKER)
		rc = ALLOW(ctx, of_forker, of_forker_if);
	if (rc == 0)
		rc = allow_tcp(ctx, AF_INET);
	if (rc == 0)
		rc = allow_tcp(ctx, AF_INET6);
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), CALL(clone3), 0);
	return rc;
}

static int
add_rules(scmp_filter_ctx ctx)
{
	int rc = ALLOW(ctx, allowed, allowed_if);
	size_t i;

	for (i = 0; i < RTE_DIM(absent) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), absent[i], 0);
	if (rc == 0) /* for tokens of carried TCP sockets */
		rc = allow_tcp(ctx, AF_INET);
	if (rc == 0) /* for abort(): signals to this process only */
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, CALL(tgkill), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	return rc;
}

int
san_sandbox_enter(enum sandbox_role role, char *err, size_t err_len)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = ctx == NULL ? -ENOMEM : 0;

	if (rc == 0) /* applies to EAL's threads, too */
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, 1);
	if (rc == 0) /* the kernel searches a binary tree instead of a list */
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = role == SANDBOX_DAEMON ? add_rules(ctx) : add_helper_rules(ctx, role);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc != 0)
		snprintf(err, err_len, "seccomp: %s; [daemon] seccomp = off goes without",
			 strerror(-rc));
	return rc;
}
