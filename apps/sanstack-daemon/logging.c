/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One stream for DPDK's messages and ours. EAL's own would write to standard error and to
 * syslog, so that a service's journal has everything twice and without its priority.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "logging.h"

static _Atomic uint32_t target; /* threads of EAL log, too */
static bool to_journal;         /* standard error is */

/* It says by which device and inode it knows the stream that it gave us. */
static bool
is_journal(void)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return text != NULL && sscanf(text, "%llu:%llu", &dev, &ino) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static ssize_t
write_line(void *cookie, const char *text, size_t len)
{
	int level = rte_log_cur_msg_loglevel() - 1; /* syslog's begin with 0 */
	ssize_t n = (ssize_t)len;

	(void)cookie;
	if (target == CONF_LOG_SYSLOG)
		syslog(level, "%.*s", (int)len, text);
	else if (to_journal)
		dprintf(STDERR_FILENO, "<%d>%.*s", level, (int)len, text);
	else
		n = write(STDERR_FILENO, text, len);
	/* one that can't be written is lost: a stream in error would lose all that follow */
	return n < 0 ? (ssize_t)len : n;
}

int
logging_open(const struct conf *conf)
{
	const cookie_io_functions_t io = {.write = write_line};
	FILE *f = fopencookie(NULL, "w", io);

	if (f == NULL)
		return -ENOMEM;
	target = conf->log_target;
	to_journal = is_journal();
	return rte_openlog_stream(f) == 0 ? 0 : -ENOMEM;
}

void
logging_apply(const struct conf *conf)
{
	static uint32_t at_start[SAN_LOG_MAX]; /* as --log-level= has them; 0: not asked yet */
	uint32_t i;

	target = conf->log_target;
	for (i = 0; i < SAN_LOG_MAX; i++) {
		if (at_start[i] == 0)
			at_start[i] = (uint32_t)rte_log_get_level((uint32_t)san_log_type[i]);
		rte_log_set_level((uint32_t)san_log_type[i],
				  conf->log_level[i] != 0 ? conf->log_level[i] : at_start[i]);
	}
}
