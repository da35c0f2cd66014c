/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One stream for the messages of DPDK and of the daemon. EAL's own stream would write to standard
 * error and to syslog, so the journal of a service would have each message twice, without priority.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "engine_clock.h"
#include "logging.h"
#include "san_time.h"

#define LINE_BYTES ((size_t)3900) /* text of a message; with its prefix less than PIPE_BUF */
#define LINE_ROOM  4096
#define EACH_NS    (LOGGING_EACH * SAN_NS_PER_S)

static _Atomic uint32_t target;  /* atomic: threads of EAL log, too */
static bool to_journal;          /* standard error is the journal */
static _Atomic uint32_t nb_lost; /* messages that could not be written */
static int syslog_fd = -1;       /* written under the stream's lock */

static bool
to_stderr(int level, const char *text, int len)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	/*
	 * The write must not block. A pipe or stream that is ready has room for PIPE_BUF bytes,
	 * which is more than a message. A file is always ready.
	 */
	if (poll(&p, 1, 0) <= 0 || (p.revents & POLLOUT) == 0)
		return false;
	if (to_journal)
		return dprintf(STDERR_FILENO, "<%d>%.*s", level, len, text) > 0;
	return write(STDERR_FILENO, text, (size_t)len) > 0;
}

/* syslog(3) would block while its reader does not read. */
static bool
to_syslog(int level, const char *text, int len)
{
	const struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = _PATH_LOG};
	char line[LINE_ROOM], date[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(date, sizeof(date), "%b %e %T", localtime_r(&now, &tm));
	snprintf(line, sizeof(line), "<%d>%s %s[%d]: %.*s", LOG_DAEMON | level, date,
		 program_invocation_short_name, (int)getpid(), len, text);
	if (syslog_fd < 0) {
		syslog_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		connect(syslog_fd, (const struct sockaddr *)&addr, sizeof(addr));
	}
	len = (int)strnlen(line, sizeof(line));
	if (send(syslog_fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len)
		return true;
	if (errno == ECONNREFUSED || errno == ENOTCONN) { /* syslogd was restarted */
		close(syslog_fd);
		syslog_fd = -1;
	}
	return false;
}

static bool
logging_put_line(int level, const char *text, int len)
{
	return target == CONF_LOG_SYSLOG ? to_syslog(level, text, len) :
					   to_stderr(level, text, len);
}

static ssize_t
write_line(void *cookie, const char *text, size_t len)
{
	int level = rte_log_cur_msg_loglevel() - 1; /* syslog's levels start at 0 */
	uint32_t lost = nb_lost;
	char note[64];
	int n;

	n = snprintf(note, sizeof(note), "%u messages are lost\n", lost);
	if (lost != 0 && logging_put_line(LOG_WARNING, note, n))
		nb_lost -= lost;
	if ((lost != 0 && nb_lost >= lost) ||
	    !logging_put_line(level, text, (int)RTE_MIN(len, LINE_BYTES)))
		nb_lost++;
	/* an error would disable the stream for all further messages */
	return (ssize_t)len;
}

void
san_logging_printable(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			*text = '?';
}

/* ---- rate limit of each user ---- */

/* The entry of *uid*, or the one to replace: that of the user whose last message is the oldest. */
static struct logging_share *
share_of(struct logging_place *place, uid_t uid)
{
	struct logging_share *s = &place->of[0];
	int i;

	for (i = 0; i < LOGGING_USERS; i++) {
		if (place->of[i].last_ns != 0 && place->of[i].uid == uid)
			return &place->of[i];
		if (place->of[i].last_ns < s->last_ns)
			s = &place->of[i];
	}
	return s;
}

bool
san_logging_may(struct logging_place *place, uid_t uid)
{
	uint64_t now_ns = san_engine_clock_monotonic();
	struct logging_share *s = share_of(place, uid);

	if (s->uid != uid) /* users that replace each other share the rate of one */
		*s = (struct logging_share){.uid = uid, .taken_ns = s->taken_ns};
	s->last_ns = now_ns;
	if (!san_rate_take(&s->taken_ns, EACH_NS, LOGGING_BURST, now_ns)) {
		s->nb_lost++;
		return false;
	}
	if (s->nb_lost != 0)
		SAN_LOG(DRIVER, NOTICE, "uid=%u: %u messages like the next one were left out", uid,
			s->nb_lost);
	s->nb_lost = 0;
	return true;
}

int
san_logging_open(const struct conf *conf)
{
	const cookie_io_functions_t io = {.write = write_line};
	const char *journal = getenv("JOURNAL_STREAM");
	FILE *f = fopencookie(NULL, "w", io);
	unsigned long long dev, ino;
	struct stat st;

	if (f == NULL)
		return -ENOMEM;
	target = conf->log_target;
	/* systemd publishes the device and inode of the stream that it has connected */
	to_journal = journal != NULL && sscanf(journal, "%llu:%llu", &dev, &ino) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
	return rte_openlog_stream(f) == 0 ? 0 : -ENOMEM;
}

void
san_logging_apply(const struct conf *conf)
{
	static uint32_t at_start[SAN_LOG_MAX]; /* levels set by --log-level=; 0: not read yet */
	uint32_t i;

	target = conf->log_target;
	for (i = 0; i < SAN_LOG_MAX; i++) {
		if (at_start[i] == 0)
			at_start[i] = (uint32_t)rte_log_get_level((uint32_t)san_log_type[i]);
		rte_log_set_level((uint32_t)san_log_type[i],
				  conf->log_level[i] != 0 ? conf->log_level[i] : at_start[i]);
	}
}
