/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests about listeners and connections. */

#include <inttypes.h>

#include "app_priv.h"

static struct app_request *
app_conn_find_request(const struct app *a, uint64_t request)
{
	struct app_request *r = san_app_port_request(a->port, request);

	return r->app == a && r->request == request ? r : NULL;
}

/*
 * Check that *a* may have one more connection. Those of applications of its user that have ended
 * count, too, until their numbers are reusable.
 */
static int
check_conns(struct app *a)
{
	struct users_want w = {.what = USERS_CONNS, .owner = a->owner, .nb = 1};
	uint32_t slots[SAN_ENGINE_APPS] = {0}, i;

	san_dpdk_ops_app_slots(a->port->ctx, slots);
	for (i = 0; i < SAN_ENGINE_APPS; i++)
		if (i != 0 && a->port->owners[i] == a->owner)
			w.own += slots[i];
		else
			w.others += slots[i];
	if (slots[a->id] >= san_app_port_each(a->port, USERS_CONNS))
		return san_app_refuse(a, -EAGAIN,
				      "connection: this application has %u, its limit",
				      slots[a->id]);
	return san_apps_check_beside(a->port, w) == 0 ? 0 : -EAGAIN;
}

/*
 * Check that the application may use this service and this partition (0: the port's). Services of
 * carried TCP sockets are for these alone.
 */
static int
app_conn_check(struct app *a, uint64_t service, uint16_t pkey)
{
	if (san_socks_is_service(service))
		return san_app_refuse(a, -EACCES,
				      "service 0x%016" PRIx64 ": kept for carried TCP sockets",
				      service);
	if (pkey == 0)
		pkey = a->port->ctx->param.pkey;
	if (san_partition_may(&a->port->conf->partitions, pkey, &a->user))
		return 0;
	return san_app_refuse(a, -EACCES, "partition 0x%04x: not for this user; see [partitions]",
			      pkey);
}

int
san_app_conn_listen(struct app *a, const struct shmq_req *req)
{
	struct app_port *port = a->port;
	struct shmq_req own = *req;
	struct app_listener *l;
	int rc;

	if (req->conn.backlog == 0)
		return san_app_refuse(a, -EINVAL, "listen: backlog must be at least 1");
	rc = app_conn_check(a, req->conn.service, req->conn.pkey);
	if (rc != 0)
		return rc;
	rc = san_app_check_one(a, USERS_LISTENERS, "listener", port->conf->app_listeners);
	if (rc != 0)
		return rc;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->app = a;
	own.id = l->id = ++port->next_listener;
	l->cookie = req->id;
	l->service = req->conn.service;
	l->pkey = req->conn.pkey;
	rc = san_dpdk_call(port->ctx, &own);
	if (rc != 0) {
		free(l);
		return rc;
	}
	LIST_INSERT_HEAD(&port->listeners, l, link);
	san_app_count(a, USERS_LISTENERS, 1, 0);
	return 0;
}

void
san_app_conn_del_listener(struct app_port *port, struct app_listener *l)
{
	const struct shmq_req req = {
		.type = SHMQ_UNLISTEN, .conn = {.service = l->service, .pkey = l->pkey}};

	san_dpdk_call(port->ctx, &req);
	LIST_REMOVE(l, link);
	san_app_count(l->app, USERS_LISTENERS, -1, 0);
	free(l);
}

int
san_app_conn_unlisten(struct app *a, const struct shmq_req *req)
{
	struct app_port *port = a->port;
	struct app_listener *l;

	LIST_FOREACH(l, &port->listeners, link) {
		if (l->app == a && l->service == req->conn.service && l->pkey == req->conn.pkey) {
			san_app_conn_del_listener(port, l);
			return 0;
		}
	}
	return san_app_refuse(a, -ENOENT, "unlisten: does not listen there");
}

/* Check the parameters like librtsan does. */
static int
app_conn_check_param(struct app *a, const struct shmq_conn *conn)
{
	if (conn->order > RTSAN_ENDING)
		return san_app_refuse(a, -EINVAL, "connection: order %u is unknown", conn->order);
	if (conn->private_len > RTSAN_PRIVATE_MAX)
		return san_app_refuse(a, -EINVAL,
				      "connection: private data of %u bytes, at most %u",
				      conn->private_len, RTSAN_PRIVATE_MAX);
	return 0;
}

int
san_app_conn_set_up(struct app *a, const struct shmq_req *req)
{
	bool accepts = req->type == SHMQ_ACCEPT;
	struct app_request *r = app_conn_find_request(a, req->conn.request);
	struct shmq_req own = *req;
	const char *fault;
	int rc;

	if (san_app_find(a, APP_QP, req->id) == NULL)
		return -ENOENT;
	fault = san_dpdk_ops_qp_fault(a->port->ctx, req->id);
	if (fault != NULL)
		return san_app_refuse(a, -EBADMSG, "queue pair: ended for an entry with %s", fault);
	rc = app_conn_check_param(a, &req->conn);
	if (rc == 0 && accepts && r == NULL)
		rc = san_app_refuse(a, -ENOENT, "accept: no such request");
	if (rc == 0)
		rc = check_conns(a);
	if (rc == 0 && !accepts)
		rc = app_conn_check(a, req->conn.service, req->conn.pkey);
	if (rc != 0)
		return rc;
	own.conn.uid = a->owner;
	rc = san_dpdk_call(a->port->ctx, &own);
	if (accepts && (rc == 0 || rc == -ENOENT))
		r->app = NULL;
	return rc;
}

int
san_app_conn_reject(struct app *a, const struct shmq_req *req)
{
	struct app_request *r = app_conn_find_request(a, req->conn.request);
	int rc = app_conn_check_param(a, &req->conn);

	if (rc != 0)
		return rc;
	if (r == NULL)
		return san_app_refuse(a, -ENOENT, "reject: no such request");
	r->app = NULL;
	return san_dpdk_call(a->port->ctx, req);
}

int
san_app_conn_disconnect(struct app *a, const struct shmq_req *req)
{
	return san_app_find(a, APP_QP, req->id) != NULL ? san_dpdk_call(a->port->ctx, req) :
							  -ENOENT;
}
