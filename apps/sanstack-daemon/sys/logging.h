/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Log target and levels. A message that can't be written at once is lost and counted, so a thread
 * never blocks on its log messages.
 */

#include "conf.h"

#define LOGGING_USERS 8  /**< users with a limit of their own, per place in the code */
#define LOGGING_BURST 10 /**< messages of one user at once, per place */
#define LOGGING_EACH  1  /**< seconds per further message */

/** Rate limit of one user at one place in the code. */
struct logging_share {
	uid_t uid;
	uint32_t nb_lost;  /**< suppressed since the last message */
	uint64_t taken_ns; /**< see san_rate_take() */
	uint64_t last_ns;  /**< time of the last message, suppressed or not; 0: none */
};

struct logging_place {
	struct logging_share of[LOGGING_USERS];
};

/** True if *uid* may cause one more message at *place*. Logs how many were suppressed before. */
bool san_logging_may(struct logging_place *place, uid_t uid);

/** A message that a program of *uid* causes. Thread rule: the main thread. (SYS-9) */
#define LOG_OF(uid, level, ...)                                                                 \
	do {                                                                                    \
		static struct logging_place place_;                                             \
		uint32_t type_ = (uint32_t)san_log_type[SAN_LOG_DRIVER];                        \
		if (rte_log_can_log(type_, RTE_LOG_##level) && san_logging_may(&place_, (uid))) \
			SAN_LOG(DRIVER, level, __VA_ARGS__);                                    \
	} while (0)

/** Replace each character of another party's *text* that could be taken for the log's own. */
void san_logging_printable(char *text);
/** Call before EAL starts, whose messages use the stream, too. 0 or -ENOMEM. */
int san_logging_open(const struct conf *conf);
/** Set levels: after EAL has started, and when *conf* has changed. */
void san_logging_apply(const struct conf *conf);
