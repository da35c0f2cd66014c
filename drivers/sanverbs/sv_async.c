/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Asynchronous events: DEVICE_FATAL when the daemon has ended, SRQ_LIMIT_REACHED, and
 * QP_LAST_WQE_REACHED. Other devices' come from the next library.
 */

#include <dlfcn.h>
#include <sys/eventfd.h>

#include "sv_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;
/* Events of objects that programs have and did not acknowledge. */
static STAILQ_HEAD(, sv_async) taken = STAILQ_HEAD_INITIALIZER(taken);

/* The first one of *element*, from *e* on. */
static struct sv_async *
find(struct sv_async *e, const void *element)
{
	while (e != NULL && e->event.element.qp != element)
		e = STAILQ_NEXT(e, link);
	return e;
}

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
	while (element != NULL && find(STAILQ_FIRST(&taken), element) != NULL)
		pthread_cond_wait(&acked, &lock);
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
	if (event->event_type == IBV_EVENT_DEVICE_FATAL)
		free(e);
	else
		STAILQ_INSERT_TAIL(&taken, e, link);
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

/* Ours are in the list, or are DEVICE_FATAL, of which nothing is to be acknowledged anywhere. */
void
ibv_ack_async_event(struct ibv_async_event *event)
{
	void (*next)(struct ibv_async_event *) = dlsym(RTLD_NEXT, "ibv_ack_async_event");
	struct sv_async *e;

	pthread_mutex_lock(&lock);
	e = find(STAILQ_FIRST(&taken), event->element.qp);
	if (e != NULL) {
		STAILQ_REMOVE(&taken, e, sv_async, link);
		pthread_cond_broadcast(&acked);
	}
	pthread_mutex_unlock(&lock);
	if (e == NULL && event->event_type != IBV_EVENT_DEVICE_FATAL && next != NULL)
		next(event);
	free(e);
}
