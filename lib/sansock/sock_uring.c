/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A ring that is created by syscall(3) is refused (sock_switch_number.c): then the program uses
 * ordinary calls. A ring that is created by the program's own instruction is found here, if it
 * exists when a socket gets its name.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sock_priv.h"
#include "sock_real.h"

#define HOLDS_NS 100000000 /* validity of an answer, for programs that connect often */
#define FDS_MAX  256       /* only the lowest descriptors are checked */

static bool
is_ring(int dir, int fd)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char name[12], link[sizeof(ring)];
	char *p = name + sizeof(name);

	*--p = '\0';
	do
		*--p = (char)('0' + fd % 10);
	while ((fd /= 10) != 0);
	return REAL(syscall, SYS_readlinkat, dir, p, link, sizeof(link)) == sizeof(ring) - 1 &&
		memcmp(link, ring, sizeof(ring) - 1) == 0;
}

static bool
has_ring(void)
{
	int dir, fd;

	dir = (int)REAL(syscall, SYS_openat, AT_FDCWD, "/proc/self/fd",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return false;
	for (fd = 0; fd < FDS_MAX && !is_ring(dir, fd); fd++)
		;
	REAL(syscall, SYS_close, dir);
	return fd < FDS_MAX;
}

bool
san_sock_uring_is_used(void)
{
	static _Atomic int64_t until_ns;
	static _Atomic bool has;

	if (atomic_load(&has)) /* what it has asked for may concern later sockets */
		return true;
	if (san_sock_time_ns(CLOCK_MONOTONIC_COARSE) < atomic_load(&until_ns))
		return false;
	atomic_store(&has, dlsym(RTLD_DEFAULT, "io_uring_queue_init") != NULL || has_ring());
	atomic_store(&until_ns, san_sock_time_ns(CLOCK_MONOTONIC_COARSE) + HOLDS_NS);
	return atomic_load(&has);
}
