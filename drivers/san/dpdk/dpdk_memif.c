/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Socket files of a memif server and of the daemon. A server that is killed does not remove its
 * file, and for the next memif server the driver (DPDK 22.11) only reports "Address already in
 * use". So before the driver runs, a socket file without a socket of any process is removed here. A
 * socket in use, a socket of another user, and a file that is no socket stay.
 *
 * The check is a connect() with another type of socket than the server's. The kernel answers
 * EPROTOTYPE if any process has a socket there, even before it listens, and ECONNREFUSED if none
 * has, or if the file is no socket. So a running server does not notice the check. Two servers that
 * start on one path at the same moment may both find a stale file: then the first one cannot be
 * reached.
 */

#include <fcntl.h>
#include <libgen.h>
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

int
san_dpdk_memif_unlink(const char *path, uid_t owner, const struct rtsan_host *host)
{
	char copy[2][sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *name = basename(strcpy(copy[0], path));
	/* another user may be able to replace the folder, but not what this descriptor refers to */
	int folder = open(dirname(strcpy(copy[1], path)), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = -ENOENT;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		rc = S_ISSOCK(st.st_mode) &&
				(st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == owner) ?
			0 :
			-ENOTSOCK;
	if (rc == 0 && unlinkat(folder, name, 0) != 0)
		rc = -errno;
	if (folder >= 0)
		close(folder);
	if (rc == 0 || rc == -ENOENT)
		return 0;
	return host->fail(rc, "%s: %s; it stays", path,
			  rc == -ENOTSOCK ? "is no socket of root or of this user" : strerror(-rc));
}

int
san_dpdk_memif_clear_path(const char *path, uid_t owner, bool is_first,
			  const struct rtsan_host *host)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	uid_t own = geteuid();
	int rc;

	if (fd < 0)
		return 0;
	strcpy(addr.sun_path, path);
	rc = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : -errno;
	/* root without CAP_DAC_OVERRIDE, as in a service, may not connect to a socket of *owner* */
	if (rc == -EACCES && seteuid(owner) == 0) {
		rc = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : -errno;
		if (seteuid(own) != 0)
			rc = -errno;
	}
	close(fd);
	if ((rc == 0 || rc == -EPROTOTYPE) && is_first)
		return host->fail(-EADDRINUSE, "%s: another process has this socket; end it, or "
					       "name another file",
				  path);
	if (rc != -ECONNREFUSED)
		return 0; /* the caller's bind() reports the error */
	rc = san_dpdk_memif_unlink(path, owner, host);
	if (rc == 0)
		SAN_LOG(DRIVER, INFO, "socket=%s removed, a process that has ended left it", path);
	return rc;
}

int
san_dpdk_memif_clear(const char *device, bool is_first, const struct rtsan_host *host)
{
	struct sockaddr_un addr;
	char word[16];

	/* others are no servers, or have no file */
	if (strncmp(device, "net_memif", strlen("net_memif")) != 0 ||
	    !san_dpdk_memif_device_value(device, "role", word, sizeof(word)) ||
	    strcmp(word, "server") != 0 ||
	    !san_dpdk_memif_device_value(device, "socket-abstract", word, sizeof(word)) ||
	    strcmp(word, "no") != 0 ||
	    !san_dpdk_memif_device_value(device, "socket", addr.sun_path, sizeof(addr.sun_path)))
		return 0;
	return san_dpdk_memif_clear_path(addr.sun_path, geteuid(), is_first, host);
}
