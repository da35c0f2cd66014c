/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_PRIV_H
#define DAEMON_APP_PRIV_H

/**
 * @file
 * What app.c and apps.c share: how what an application holds goes.
 */

#include "app.h"

/** -EBUSY: posted work names it. */
int app_del_mr(struct app_port *port, struct app_mr *mr);
/** -EBUSY: a queue pair uses it. */
int app_del_cq(struct app_port *port, struct app_cq *q);
void app_del_qp(struct app_port *port, struct app_qp *q);
void app_del_listener(struct app_port *port, struct app_listener *l);

#endif /* DAEMON_APP_PRIV_H */
