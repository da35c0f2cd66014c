/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_LOGGING_H
#define DAEMON_LOGGING_H

/**
 * @file
 * Where messages go, and which.
 */

#include "conf.h"

/** Before EAL starts, whose messages go there, too. 0 or -ENOMEM. */
int logging_open(const struct conf *conf);
/** Once EAL runs, and whenever *conf* has changed. */
void logging_apply(const struct conf *conf);

#endif /* DAEMON_LOGGING_H */
