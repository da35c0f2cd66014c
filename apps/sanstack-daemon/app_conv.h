/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_CONV_H
#define DAEMON_APP_CONV_H

/** @file What crosses the daemon's socket, as both sides have it. (SYS-2) */

#include "app_port.h"
#include "shmq.h"

/** NULL: it is to be none. What is out of range is refused further down, with a text. */
const struct rtsan_stream_attr *app_conv_stream(const struct shmq_stream *from,
						struct rtsan_stream_attr *to);
/** Where packets go by the port, so that a program need not ask. */
void app_conv_nets(const struct app_port *port, struct shmq_ctl *ctl);

#endif /* DAEMON_APP_CONV_H */
