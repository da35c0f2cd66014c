/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Asynchronous events: DEVICE_FATAL when the daemon has ended, SRQ_LIMIT_REACHED, and
 * QP_LAST_WQE_REACHED. Other devices' come from the next library.
 */

#include <dlfcn.h>
#include <sys/eventfd.h>

#include "sv_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
san_sv_async(struct ibv_context *context, enum ibv_event_type type, void *element)
{
	struct sv_async *e = calloc(1, sizeof(*e));
	SAN_LOCKED(&lock);

	if (e == NULL)
		return;
	e->event.event_type = type;
	if (element != NULL)
		e->event.element.qp = element;
	else
		e->event.element.port_num = SV_PORT;
	STAILQ_INSERT_TAIL(&san_sv_context(context)->events, e, link);
	eventfd_write(context->async_fd, 1);
}

void
san_sv_async_forget(struct ibv_context *context, const void *element)
{
	struct sv_context *c = san_sv_context(context);
	struct sv_async *e, *next;
	eventfd_t value;
	SAN_LOCKED(&lock);

	for (e = STAILQ_FIRST(&c->events); e != NULL; e = next) {
		next = STAILQ_NEXT(e, link);
		if (element != NULL && e->event.element.qp != element)
			continue;
		STAILQ_REMOVE(&c->events, e, sv_async, link);
		eventfd_read(context->async_fd, &value);
		free(e);
	}
}

static bool
take(struct ibv_context *context, struct ibv_async_event *event)
{
	struct sv_context *c = san_sv_context(context);
	struct sv_async *e;
	eventfd_t value;
	SAN_LOCKED(&lock);

	e = STAILQ_FIRST(&c->events);
	if (e == NULL)
		return false;
	STAILQ_REMOVE_HEAD(&c->events, link);
	eventfd_read(context->async_fd, &value);
	*event = e->event;
	free(e);
	return true;
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	SV_ELSE_NEXT(san_sv_device(context), ibv_get_async_event, context, event);
	while (!take(context, event))
		if (san_sv_wait(context->async_fd) != 0)
			return -1;
	return 0;
}

/* Ours need nothing: an object may be destroyed at once. */
void
ibv_ack_async_event(struct ibv_async_event *event)
{
	void (*next)(struct ibv_async_event *) = dlsym(RTLD_NEXT, "ibv_ack_async_event");
	const struct ibv_context *context = NULL;

	if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
		context = event->element.srq->context;
	else if (event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
		context = event->element.qp->context;
	else if (event->event_type == IBV_EVENT_DEVICE_FATAL)
		return;
	if (next != NULL && (context == NULL || san_sv_device(context) == NULL))
		next(event);
}
