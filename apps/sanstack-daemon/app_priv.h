/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_PRIV_H
#define DAEMON_APP_PRIV_H

/**
 * @file
 * What app.c and apps.c share: how what an application holds goes.
 */

#include "app.h"

/** The place of a connection request, whoever was told of the one that stands there. */
struct app_request *apps_request(struct apps *all, uint64_t request);

/** -EBUSY: posted work names it. */
int app_del_mr(struct apps *all, struct app_mr *mr);
/** -EBUSY: a queue pair uses it. */
int app_del_cq(struct apps *all, struct app_cq *q);
void app_del_qp(struct apps *all, struct app_qp *q);
void app_del_listener(struct apps *all, struct app_listener *l);

#endif /* DAEMON_APP_PRIV_H */
