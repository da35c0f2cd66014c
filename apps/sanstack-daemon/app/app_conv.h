/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_CONV_H
#define DAEMON_APP_CONV_H

/** @file Conversion between the daemon's structures and those that cross its socket. (SYS-2) */

#include "app_port.h"
#include "shmq.h"

/** Publish the port's addresses and routes, so that a program need not ask for them. */
void san_app_conv_nets(const struct app_port *port, struct shmq_ctl *ctl);

#endif /* DAEMON_APP_CONV_H */
