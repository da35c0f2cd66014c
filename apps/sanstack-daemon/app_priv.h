/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_PRIV_H
#define DAEMON_APP_PRIV_H

/**
 * @file
 * What the files of applications share: how requests are answered, and how what an application
 * holds goes.
 */

#include "app.h"

/** A request about what *port* has; *p* is NULL if nothing came with it. Like app_answer()'s rc. */
typedef int app_serve_fn(struct app_port *port, struct app *a, const struct shmq_req *req,
			 struct passed *p, struct answer *ans);

app_serve_fn app_conn_listen, app_conn_unlisten, app_conn_connect, app_conn_accept,
	app_conn_reject, app_conn_disconnect;

/** Whose socket it is, as the kernel says; it has said nothing. NULL: no memory. */
struct app *app_add(struct apps *all, int sock);
/** *rc*, with a text. */
int app_refuse(struct answer *ans, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** NULL: *a* has none of that number. */
struct app_qp *app_find_qp(struct app_port *port, const struct app *a, uint32_t qpn);
/** app_serve(), with what came with the request: socket or memory. */
void app_serve_passed(struct apps *all, struct app *a, const struct shmq_req *req,
		      struct passed *p);
/** A step of the region that it waits for: for app_answer(). */
int app_grow(struct app *a);
/** The answer to its request; -EINPROGRESS: there is none yet. */
void app_answer(struct apps *all, struct app *a, int rc);
/** Send the answer that it has, now or as soon as its descriptor may be under way. */
void app_send(struct apps *all, struct app *a);
/** Its request is answered: the next one may come. */
void app_end_job(struct apps *all, struct app *a);

/** -EBUSY: posted work names it. */
int app_del_mr(struct app_port *port, struct app_mr *mr);
/** -EBUSY: a queue pair uses it. */
int app_del_cq(struct app_port *port, struct app_cq *q);
void app_del_qp(struct app_port *port, struct app_qp *q);
void app_del_listener(struct app_port *port, struct app_listener *l);

#endif /* DAEMON_APP_PRIV_H */
