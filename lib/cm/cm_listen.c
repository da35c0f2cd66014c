/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Listeners: (service, P_Key) → backlog and the ULP's cookie. They are found by a hash of the
 * service, because requests to connect are unauthenticated (RT-36). (RT-29)
 *
 * The last quarter of a backlog is for hosts that have less of it than is left (RT-35): if an
 * application accepts slowly, other hosts than the busiest one can still connect. The requests of a
 * host are counted by a keyed hash of its address, for all listeners together, so that no host
 * needs a record.
 */

#include <errno.h>

#include "cm_priv.h"

static struct cm_listeners *
cm_listen_list_of(struct san_cm *cm, uint64_t service)
{
	/* Fibonacci hashing: services often have consecutive numbers. */
	return &cm->services[service * 0x9e3779b97f4a7c15ULL >> (64 - CM_SERVICES_BITS)];
}

struct cm_listener *
san_cm_listen_find(struct san_cm *cm, uint64_t service, uint16_t pkey, uint8_t *reason)
{
	struct cm_listener *l;

	*reason = RTSAN_R_NO_LISTENER;
	SLIST_FOREACH(l, cm_listen_list_of(cm, service), link) {
		if (l->service != service)
			continue;
		if (l->pkey == pkey) {
			*reason = RTSAN_R_NONE;
			return l;
		}
		*reason = RTSAN_R_PKEY;
	}
	return NULL;
}

bool
san_cm_listen_may_wait(struct san_cm *cm, const struct cm_listener *l, const struct san_ip *host)
{
	uint32_t left = l->backlog - l->nb_waiting;

	return left > l->backlog / 4u || *san_cm_waiting(cm, host) < left;
}

int
san_cm_listen(struct san_cm *cm, uint64_t service, uint16_t pkey, uint16_t backlog,
	      uint32_t cookie)
{
	struct cm_listener *l;
	uint8_t reason;

	if (san_cm_listen_find(cm, service, pkey, &reason) != NULL)
		return -EADDRINUSE;
	for (l = cm->listeners; l < cm->listeners + cm->conf.max_listeners; l++) {
		if (l->used)
			continue;
		*l = (struct cm_listener){
			.used = true,
			.service = service,
			.pkey = pkey,
			.backlog = backlog,
			.cookie = cookie,
		};
		SLIST_INSERT_HEAD(cm_listen_list_of(cm, service), l, link);
		return 0;
	}
	return -ENOSPC;
}

void
san_cm_listen_end(struct san_cm *cm, uint64_t service, uint16_t pkey)
{
	const struct cm_step s = {
		.in = CM_IN_REJECT, .reason = RTSAN_R_NO_LISTENER, .now_ns = cm->now_ns};
	struct cm_listener *l;
	uint8_t reason;
	uint32_t slot;

	l = san_cm_listen_find(cm, service, pkey, &reason);
	if (l == NULL)
		return;
	/* Reject requests that no listener will answer any more. */
	for (slot = 0; slot < cm->conf.max_conns; slot++) {
		struct san_cm_conn *c = &cm->conns[slot];

		if (c->state == SAN_CM_WAIT_ACCEPT && &cm->listeners[c->listener] == l)
			san_cm_fsm_step(cm, c, &s);
	}
	SLIST_REMOVE(cm_listen_list_of(cm, service), l, cm_listener, link);
	l->used = false;
}
