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

static uint16_t *
cm_listen_list_of(struct san_cm *cm, uint64_t service)
{
	/* Fibonacci hashing: services often have consecutive numbers. */
	return &cm->services[service * 0x9e3779b97f4a7c15ULL >> (64 - CM_SERVICES_BITS)];
}

struct cm_listener *
san_cm_listen_find(struct san_cm *cm, uint64_t service, uint16_t pkey, uint8_t *reason)
{
	struct cm_listener *l;
	uint16_t i;

	*reason = RTSAN_R_NO_LISTENER;
	for (i = *cm_listen_list_of(cm, service); i != CM_NO_LISTENER; i = l->next) {
		l = &cm->listeners[i];
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
	uint16_t i, *list = cm_listen_list_of(cm, service);
	uint8_t reason;

	if (san_cm_listen_find(cm, service, pkey, &reason) != NULL)
		return -EADDRINUSE;
	for (i = 0; i < cm->conf.max_listeners; i++) {
		if (cm->listeners[i].used)
			continue;
		cm->listeners[i] = (struct cm_listener){
			.used = true,
			.next = *list,
			.service = service,
			.pkey = pkey,
			.backlog = backlog,
			.cookie = cookie,
		};
		*list = i;
		return 0;
	}
	return -ENOSPC;
}

/** Reject requests that no listener will answer any more. */
static void
refuse_waiting(struct san_cm *cm, uint16_t listener)
{
	const struct cm_step s = {
		.in = CM_IN_REJECT, .reason = RTSAN_R_NO_LISTENER, .now_ns = cm->now_ns};
	uint32_t slot;

	for (slot = 0; slot < cm->conf.max_conns; slot++) {
		struct san_cm_conn *c = &cm->conns[slot];

		if (c->state == SAN_CM_WAIT_ACCEPT && c->listener == listener)
			san_cm_fsm_step(cm, c, &s);
	}
}

void
san_cm_listen_end(struct san_cm *cm, uint64_t service, uint16_t pkey)
{
	uint16_t *link = cm_listen_list_of(cm, service);
	struct cm_listener *l;

	for (; *link != CM_NO_LISTENER; link = &l->next) {
		l = &cm->listeners[*link];
		if (l->service != service || l->pkey != pkey)
			continue;
		refuse_waiting(cm, *link);
		*link = l->next;
		l->used = false;
		return;
	}
}
