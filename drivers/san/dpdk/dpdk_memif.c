/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The socket file of a memif server. A server that is killed does not remove its file, and for the
 * next one the driver (DPDK 22.11) only reports "Address already in use". So before the driver
 * runs, a file without a socket of any process is removed here. A socket in use, and a file that is
 * no socket, stay.
 *
 * The check is a connect() with another type of socket than memif's. The kernel answers EPROTOTYPE
 * if any process has a memif socket there, even before it listens, and ECONNREFUSED if none has. So
 * a running server does not notice the check. Two servers that start on one path at the same moment
 * may both find a stale file: then the first one cannot be reached.
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
san_dpdk_memif_device_value(const char *device, const char *key, char *to, size_t size)
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

/* Get the path of the socket file of *device*. False: it is not a server, or has no file. */
static bool
has_file(const char *device, struct sockaddr_un *addr)
{
	char word[16];

	return strncmp(device, "net_memif", strlen("net_memif")) == 0 &&
		san_dpdk_memif_device_value(device, "role", word, sizeof(word)) &&
		strcmp(word, "server") == 0 &&
		san_dpdk_memif_device_value(device, "socket-abstract", word, sizeof(word)) &&
		strcmp(word, "no") == 0 &&
		san_dpdk_memif_device_value(device, "socket", addr->sun_path,
					    sizeof(addr->sun_path));
}

/* 0: a process has a socket there; or a negative errno of connect(). */
static int
dpdk_memif_ask_server(const struct sockaddr_un *addr)
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
san_dpdk_memif_clear(const char *device, bool is_first, const struct rtsan_host *host)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	int rc;

	if (!has_file(device, &addr) || lstat(addr.sun_path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return host->fail(-ENOTSOCK, "%s: is no socket; name another file for memif",
				  addr.sun_path);
	rc = dpdk_memif_ask_server(&addr);
	if (rc == 0 && is_first)
		return host->fail(-EADDRINUSE, "%s: another process has this memif socket; end it, "
					       "or name another file",
				  addr.sun_path);
	if (rc != -ECONNREFUSED)
		return 0; /* the driver reports the error */
	if (unlink(addr.sun_path) != 0)
		return host->fail(-errno, "%s: the memif socket of a process that has ended; "
					  "remove it",
				  addr.sun_path);
	SAN_LOG(DRIVER, INFO, "memif=%s removed, a process that has ended left it", addr.sun_path);
	return 0;
}
