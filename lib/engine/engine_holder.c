/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Find the process that has a UDP port in the kernel. The kernel reports the inode of a socket, and
 * the inodes of a process's descriptors; for processes of other users only to root.
 */

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine_priv.h"

#define TEXT 160
#define NAME 32

/* Returns the inode of the port's socket, or 0. */
static uint64_t
inode_of(const char *table, uint16_t udp_port)
{
	uint64_t inode = 0, one;
	unsigned int port;
	char line[256];
	FILE *f = fopen(table, "re");

	if (f == NULL)
		return 0;
	while (inode == 0 && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, " %*u: %*[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %*s %" SCNu64, &port,
			   &one) == 2 &&
		    port == udp_port)
			inode = one;
	fclose(f);
	return inode;
}

/* Whether the process has a descriptor of the socket. */
static bool
has_socket(const char *pid, uint64_t inode)
{
	char path[300], name[64], want[64];
	const struct dirent *e;
	bool has = false;
	ssize_t n;
	DIR *d;

	snprintf(want, sizeof(want), "socket:[%" PRIu64 "]", inode);
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	d = opendir(path);
	while (d != NULL && !has && (e = readdir(d)) != NULL) {
		n = readlinkat(dirfd(d), e->d_name, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		has = strcmp(name, want) == 0;
	}
	if (d != NULL)
		closedir(d);
	return has;
}

const char *
san_engine_holder_kernel(uint16_t udp_port)
{
	static char text[TEXT];
	uint64_t inode = inode_of("/proc/net/udp", udp_port);
	const struct dirent *e;
	char path[300], name[NAME];
	FILE *f;
	DIR *d;

	if (inode == 0)
		inode = inode_of("/proc/net/udp6", udp_port);
	snprintf(text, sizeof(text), "UDP port %u can't be had from the kernel%s", udp_port,
		 inode != 0 ? ": another program has it" : "");
	d = inode != 0 ? opendir("/proc") : NULL;
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]) || !has_socket(e->d_name, inode))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (f == NULL || fgets(name, sizeof(name), f) == NULL)
			name[0] = '\0';
		name[strcspn(name, "\n")] = '\0';
		if (f != NULL)
			fclose(f);
		snprintf(text, sizeof(text), "UDP port %u is that of pid=%.20s (%s) in the kernel",
			 udp_port, e->d_name, name);
		break;
	}
	if (d != NULL)
		closedir(d);
	return text;
}
