/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Listeners: (service, P_Key) → backlog and the ULP's cookie. A handful, so a
 * flat array; looked at only on connection set-up. (RT-29)
 */

#include <errno.h>

#include "cm_priv.h"

struct cm_listener *
san_cm_listener_find(struct san_cm *cm, uint64_t service, uint16_t pkey, uint8_t *reason)
{
	struct cm_listener *l;
	uint16_t i;

	*reason = SAN_CM_R_NO_LISTENER;
	for (i = 0; i < cm->conf.max_listeners; i++) {
		l = &cm->listeners[i];
		if (!l->used || l->service != service)
			continue;
		if (l->pkey == pkey) {
			*reason = SAN_CM_R_NONE;
			return l;
		}
		*reason = SAN_CM_R_PKEY;
	}
	return NULL;
}

int
san_cm_listen(struct san_cm *cm, uint64_t service, uint16_t pkey, uint16_t backlog,
	      uint32_t cookie)
{
	struct cm_listener *l;
	uint8_t reason;
	uint16_t i;

	if (san_cm_listener_find(cm, service, pkey, &reason) != NULL)
		return -EADDRINUSE;
	for (i = 0; i < cm->conf.max_listeners; i++) {
		l = &cm->listeners[i];
		if (l->used)
			continue;
		l->used = true;
		l->service = service;
		l->pkey = pkey;
		l->backlog = backlog;
		l->cookie = cookie;
		l->nb_waiting = 0;
		return 0;
	}
	return -ENOSPC;
}

/** Requests that nobody will answer any more are refused. */
static void
refuse_waiting(struct san_cm *cm, uint16_t listener)
{
	struct cm_step s = {
		.in = CM_IN_REJECT,
		.reason = SAN_CM_R_NO_LISTENER,
		.now_ns = cm->now_ns,
	};
	uint32_t slot;

	for (slot = 0; slot < cm->conf.max_conns; slot++) {
		struct san_cm_conn *c = &cm->conns[slot];

		if (c->state == SAN_CM_WAIT_ACCEPT && c->listener == listener)
			san_cm_fsm_step(cm, c, &s);
	}
}

void
san_cm_unlisten(struct san_cm *cm, uint64_t service, uint16_t pkey)
{
	uint16_t i;

	for (i = 0; i < cm->conf.max_listeners; i++) {
		if (!cm->listeners[i].used || cm->listeners[i].service != service ||
		    cm->listeners[i].pkey != pkey)
			continue;
		refuse_waiting(cm, i);
		cm->listeners[i].used = false;
	}
}
