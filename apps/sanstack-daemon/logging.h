/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_LOGGING_H
#define DAEMON_LOGGING_H

/**
 * @file
 * Where messages go, and which. A message that can't be written at once is lost, and counted: the
 * thread that logs it never waits.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf.h"
#include "san_log.h"

#define LOGGING_USERS 8  /**< that are told apart at one place in the code */
#define LOGGING_BURST 10 /**< messages of one user there at once */
#define LOGGING_EACH  1  /**< second between more of them */

/** What a user may still log at one place in the code. */
struct logging_share {
	uid_t uid;
	uint32_t nb;       /**< messages that it may log now */
	uint32_t nb_lost;  /**< that it could not log since the last one */
	uint64_t since_ns; /**< when *nb* became what it is */
};

struct logging_place {
	struct logging_share of[LOGGING_USERS];
};

/** May *uid* cause one more message there? It says how many it could not log before. */
bool logging_may(struct logging_place *place, uid_t uid);

/** A message that a program of *uid* causes; by the main thread only. (SYS-9) */
#define LOG_OF(uid, level, ...)                                                             \
	do {                                                                                \
		static struct logging_place place_;                                         \
		uint32_t type_ = (uint32_t)san_log_type[SAN_LOG_DRIVER];                    \
		if (rte_log_can_log(type_, RTE_LOG_##level) && logging_may(&place_, (uid))) \
			SAN_LOG(DRIVER, level, __VA_ARGS__);                                \
	} while (0)

/** Before EAL starts, whose messages go there, too. 0 or -ENOMEM. */
int logging_open(const struct conf *conf);
/** Once EAL runs, and whenever *conf* has changed. */
void logging_apply(const struct conf *conf);

#endif /* DAEMON_LOGGING_H */
