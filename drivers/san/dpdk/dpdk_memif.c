/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The socket file of a memif server. One that ends in order removes it; one that was killed can't,
 * and the driver (DPDK 22.11) says no more than "Address already in use" to the next. So a file
 * where no process has a socket any more is removed here, before the driver looks: that hurts
 * nobody, and every program that opens a port comes along here. A socket that somebody has, and a
 * file that is none, stay.
 *
 * The question is a connect() of another type of socket than memif's. The kernel answers
 * EPROTOTYPE if any process has a memif socket there, even before it listens, and ECONNREFUSED if
 * none has; so the server that runs there does not notice that it was asked. Two servers that start
 * on one path at the same moment may both find a stale file: the first one is not reached then.
 */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dpdk_priv.h"
#include "san_log.h"

bool
dpdk_device_value(const char *device, const char *key, char *to, size_t size)
{
	size_t len = strlen(key), n;
	const char *at = device;

	while ((at = strchr(at, ',')) != NULL) {
		at++;
		if (strncmp(at, key, len) != 0 || at[len] != '=')
			continue;
		at += len + 1;
		n = strcspn(at, ",");
		if (n >= size)
			return false;
		memcpy(to, at, n);
		to[n] = '\0';
		return true;
	}
	return false;
}

/* Where the server of *device* has its file; false: it is no server, or has none. */
static bool
has_file(const char *device, struct sockaddr_un *addr)
{
	char word[16];

	return strncmp(device, "net_memif", strlen("net_memif")) == 0 &&
		dpdk_device_value(device, "role", word, sizeof(word)) &&
		strcmp(word, "server") == 0 &&
		dpdk_device_value(device, "socket-abstract", word, sizeof(word)) &&
		strcmp(word, "no") == 0 &&
		dpdk_device_value(device, "socket", addr->sun_path, sizeof(addr->sun_path));
}

/* 0: some process has a socket there; or a negative errno of connect(). */
static int
ask(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : -errno;
	close(fd);
	return rc == -EPROTOTYPE ? 0 : rc;
}

int
dpdk_memif_clear(const char *device, bool is_first, const struct rtsan_host *host)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	int rc;

	if (!has_file(device, &addr) || lstat(addr.sun_path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return host->fail(-ENOTSOCK, "%s: is no socket; name another file for memif",
				  addr.sun_path);
	rc = ask(&addr);
	if (rc == 0 && is_first)
		return host->fail(-EADDRINUSE, "%s: another process has this memif socket; end it, "
					       "or name another file",
				  addr.sun_path);
	if (rc != -ECONNREFUSED)
		return 0; /* the driver says what is wrong */
	if (unlink(addr.sun_path) != 0)
		return host->fail(-errno, "%s: the memif socket of a process that has ended; "
					  "remove it",
				  addr.sun_path);
	SAN_LOG(DRIVER, INFO, "memif=%s removed, a process that has ended left it", addr.sun_path);
	return 0;
}
