/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Event channels, identifiers and their addresses.
 */

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "sv_cm.h"

#define PORT_FIRST 32768 /* of those that nobody asked for */

pthread_mutex_t san_sv_cm_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

/* ---- channels ---- */

struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct sv_cm_channel *c;

	if (san_sv_devices() == 0)
		return SV_NEXT(rdma_create_event_channel);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	STAILQ_INIT(&c->events);
	c->ch.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (c->ch.fd >= 0)
		return &c->ch;
	free(c);
	return NULL;
}

void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	SV_CM_ELSE_NEXT(rdma_destroy_event_channel, channel);
	close(channel->fd);
	free(channel);
}

struct sv_cm_event *
san_sv_cm_report(struct sv_id *id, struct sv_id *listener, enum rdma_cm_event_type type, int status)
{
	struct sv_cm_channel *c = (struct sv_cm_channel *)id->id.channel;
	struct sv_cm_event *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->ev.id = &id->id;
	e->ev.listen_id = listener != NULL ? &listener->id : NULL;
	e->ev.event = type;
	e->ev.status = status;
	STAILQ_INSERT_TAIL(&c->events, e, link);
	eventfd_write(c->ch.fd, 1);
	return e;
}

/* The identifier that may not be destroyed before the event is acknowledged. */
static struct sv_id *
owner_of(const struct rdma_cm_event *event)
{
	return (struct sv_id *)(event->listen_id != NULL ? event->listen_id : event->id);
}

static bool
take_event(struct sv_cm_channel *c, struct rdma_cm_event **event)
{
	struct sv_cm_event *e;
	eventfd_t value;
	SAN_LOCKED(&san_sv_cm_lock);

	e = STAILQ_FIRST(&c->events);
	if (e == NULL)
		return false;
	STAILQ_REMOVE_HEAD(&c->events, link);
	eventfd_read(c->ch.fd, &value);
	owner_of(&e->ev)->nb_taken++;
	*event = &e->ev;
	return true;
}

int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct sv_cm_channel *c = (struct sv_cm_channel *)channel;

	SV_CM_ELSE_NEXT(rdma_get_cm_event, channel, event);
	while (!take_event(c, event))
		if (san_sv_wait(channel->fd) != 0)
			return -1;
	return 0;
}

int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	SV_CM_ELSE_NEXT(rdma_ack_cm_event, event);
	SAN_LOCKED(&san_sv_cm_lock);
	owner_of(event)->nb_taken--;
	pthread_cond_broadcast(&acked);
	free(event);
	return 0;
}

int
san_sv_cm_complete(struct sv_id *id)
{
	struct rdma_cm_event *event;

	if (!id->is_sync)
		return 0;
	if (id->id.event != NULL)
		rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
	if (rdma_get_cm_event(id->id.channel, &event) != 0)
		return -1;
	id->id.event = event;
	if (event->status == 0)
		return 0;
	errno = event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : -event->status;
	return -1;
}

/* ---- identifiers ---- */

int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	       enum rdma_port_space ps)
{
	struct sv_id *id;

	SV_CM_ELSE_NEXT(rdma_create_id, channel, out, context, ps);
	if (ps != RDMA_PS_TCP && ps != RDMA_PS_IB && ps != RDMA_PS_UDP)
		return san_sv_result(-EOPNOTSUPP, "rdma_create_id()");
	id = calloc(1, sizeof(*id));
	if (id == NULL)
		return -1;
	id->is_sync = channel == NULL;
	if (id->is_sync)
		channel = rdma_create_event_channel();
	if (channel == NULL) {
		free(id);
		return -1;
	}
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	*out = &id->id;
	return 0;
}

/* A request that the program never learns of is rejected. */
static void
drop_child(const struct sv_cm_event *e)
{
	struct sv_id *child = (struct sv_id *)e->ev.id;

	if (e->ev.event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	rtsan_reject(child->dev->rt, child->request, NULL, 0);
	LIST_REMOVE(child, link);
	free(child);
}

/* Move the events of *id* to another channel; NULL: drop them. With the lock. */
static void
move_events(struct sv_id *id, struct sv_cm_channel *to)
{
	struct sv_cm_channel *c = (struct sv_cm_channel *)id->id.channel;
	struct sv_cm_event *e, *next;
	eventfd_t value;

	if (to == c)
		return;
	for (e = STAILQ_FIRST(&c->events); e != NULL; e = next) {
		next = STAILQ_NEXT(e, link);
		if (owner_of(&e->ev) != id && e->ev.id != &id->id)
			continue;
		STAILQ_REMOVE(&c->events, e, sv_cm_event, link);
		eventfd_read(c->ch.fd, &value);
		if (to == NULL) {
			drop_child(e);
			free(e);
			continue;
		}
		STAILQ_INSERT_TAIL(&to->events, e, link);
		eventfd_write(to->ch.fd, 1);
	}
}

int
rdma_destroy_id(struct rdma_cm_id *cm_id)
{
	struct sv_id *id = (struct sv_id *)cm_id;
	int i;

	SV_CM_ELSE_NEXT(rdma_destroy_id, cm_id);
	if (cm_id->event != NULL)
		rdma_ack_cm_event(cm_id->event);
	/* with these locks no request to it is being handled */
	for (i = 0; i < SV_DEVICES; i++) {
		if (id->listeners[i] == NULL)
			continue;
		SAN_LOCKED(&san_sv_device_at(i)->lock);
		rtsan_listener_destroy(id->listeners[i]);
		id->listeners[i] = NULL;
	}
	if (id->has_request)
		rtsan_reject(id->dev->rt, id->request, NULL, 0);
	if (id->q != NULL) {
		SAN_LOCKED(&id->dev->lock);
		id->q->id = NULL;
	}
	pthread_mutex_lock(&san_sv_cm_lock);
	if (id->link.le_prev != NULL)
		LIST_REMOVE(id, link);
	move_events(id, NULL);
	while (id->nb_taken != 0)
		pthread_cond_wait(&acked, &san_sv_cm_lock);
	pthread_mutex_unlock(&san_sv_cm_lock);
	if (id->is_sync)
		rdma_destroy_event_channel(cm_id->channel);
	free(cm_id->route.path_rec);
	free(id);
	return 0;
}

/* Without a channel the identifier becomes synchronous. */
int
rdma_migrate_id(struct rdma_cm_id *cm_id, struct rdma_event_channel *channel)
{
	struct sv_id *id = (struct sv_id *)cm_id;
	struct rdma_event_channel *before = cm_id->channel;
	bool was_sync = id->is_sync, is_sync = channel == NULL;

	SV_CM_ELSE_NEXT(rdma_migrate_id, cm_id, channel);
	if (is_sync)
		channel = rdma_create_event_channel();
	if (channel == NULL)
		return -1;
	id->is_sync = is_sync;
	pthread_mutex_lock(&san_sv_cm_lock);
	move_events(id, (struct sv_cm_channel *)channel);
	cm_id->channel = channel;
	pthread_mutex_unlock(&san_sv_cm_lock);
	if (was_sync)
		rdma_destroy_event_channel(before);
	return 0;
}

/* ---- addresses ---- */

__be16 *
san_sv_cm_port(struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? &((struct sockaddr_in6 *)addr)->sin6_port :
					     &((struct sockaddr_in *)addr)->sin_port;
}

void
san_sv_cm_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (addr->sa_family == AF_INET6) {
		memcpy(gid->raw, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
		return;
	}
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
}

void
san_sv_cm_addr(const union ibv_gid *gid, __be16 port, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = san_sv_is_v4(gid) ? AF_INET : AF_INET6;
	if (addr->ss_family == AF_INET)
		memcpy(&((struct sockaddr_in *)addr)->sin_addr, gid->raw + 12, 4);
	else
		memcpy(&((struct sockaddr_in6 *)addr)->sin6_addr, gid->raw, 16);
	*san_sv_cm_port((struct sockaddr *)addr) = port;
}

/* True for "any address", also if the family is not given. */
static bool
is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	return addr->sa_family == 0 || ((const struct sockaddr_in *)addr)->sin_addr.s_addr == 0;
}

static bool
is_loopback(const union ibv_gid *gid)
{
	return san_sv_is_v4(gid) ? gid->raw[12] == IN_LOOPBACKNET :
				   IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)gid->raw);
}

int
san_sv_cm_bind(struct sv_id *id, struct sv_device *dev)
{
	struct ibv_context *context;
	struct ibv_pd *pd;

	pthread_mutex_lock(&san_sv_cm_lock);
	pd = dev->cm_pd;
	pthread_mutex_unlock(&san_sv_cm_lock);
	/* opening takes the lock of the device, which comes first */
	if (pd == NULL) {
		context = ibv_open_device(&dev->ibv);
		pd = context != NULL ? ibv_alloc_pd(context) : NULL;
		if (pd == NULL)
			return -ENODEV;
	}
	SAN_LOCKED(&san_sv_cm_lock);
	if (dev->cm_pd == NULL)
		dev->cm_pd = pd;
	id->dev = dev;
	id->id.verbs = dev->cm_pd->context;
	id->id.pd = dev->cm_pd;
	id->id.port_num = SV_PORT;
	return 0;
}

/* Bind *id* to the device and GID of that address, or to any of the family of *dst*. */
static int
bind_to(struct sv_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct sv_device *dev;
	union ibv_gid wanted;
	int i, k;

	san_sv_cm_gid(src, &wanted);
	for (i = 0; (dev = san_sv_device_at(i)) != NULL; i++)
		for (k = 0; k < dev->nb_gids; k++) {
			const union ibv_gid *gid = &dev->gids[k];

			if (is_any(src) ? san_sv_is_v4(gid) != (dst->sa_family == AF_INET) :
					  memcmp(&wanted, gid, sizeof(wanted)) != 0)
				continue;
			id->id.route.addr.addr.ibaddr.sgid = *gid;
			return san_sv_cm_bind(id, dev);
		}
	return -EADDRNOTAVAIL;
}

struct ibv_context **
rdma_get_devices(int *nb)
{
	struct ibv_context **list;
	struct sv_id id = {0};
	int i;

	SV_CM_ELSE_NEXT(rdma_get_devices, nb);
	list = calloc((size_t)san_sv_devices() + 1, sizeof(*list));
	for (i = 0; list != NULL && i < san_sv_devices(); i++) {
		san_sv_cm_bind(&id, san_sv_device_at(i));
		list[i] = id.id.verbs;
	}
	if (nb != NULL)
		*nb = list != NULL ? san_sv_devices() : 0;
	return list;
}

void
rdma_free_devices(struct ibv_context **list)
{
	SV_CM_ELSE_NEXT(rdma_free_devices, list);
	free(list);
}

static size_t
size_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

__be16
san_sv_cm_choose_port(void)
{
	uint16_t number = 0;

	if (getrandom(&number, sizeof(number), 0) < 0)
		number = (uint16_t)getpid();
	return htons((uint16_t)(PORT_FIRST | number));
}

int
rdma_bind_addr(struct rdma_cm_id *cm_id, struct sockaddr *addr)
{
	SV_CM_ELSE_NEXT(rdma_bind_addr, cm_id, addr);
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return san_sv_result(-EAFNOSUPPORT, "rdma_bind_addr()");
	memcpy(&cm_id->route.addr.src_storage, addr, size_of(addr));
	if (*san_sv_cm_port(addr) == 0) /* programs tell it to their peers before they listen */
		*san_sv_cm_port(&cm_id->route.addr.src_addr) = san_sv_cm_choose_port();
	if (is_any(addr))
		return 0;
	return san_sv_result(bind_to((struct sv_id *)cm_id, addr, NULL), "rdma_bind_addr()");
}

int
rdma_resolve_addr(struct rdma_cm_id *cm_id, struct sockaddr *src, struct sockaddr *dst,
		  int timeout_ms)
{
	struct rdma_addr *a = &cm_id->route.addr;
	struct sv_id *id = (struct sv_id *)cm_id;
	__be16 port;
	int rc;

	SV_CM_ELSE_NEXT(rdma_resolve_addr, cm_id, src, dst, timeout_ms);
	if (dst->sa_family != AF_INET && dst->sa_family != AF_INET6)
		return san_sv_result(-EAFNOSUPPORT, "rdma_resolve_addr()");
	if (src != NULL && src->sa_family != 0)
		memcpy(&a->src_storage, src, size_of(src));
	rc = bind_to(id, &a->src_addr, dst);
	if (rc != 0)
		return san_sv_result(rc, "rdma_resolve_addr()");
	memcpy(&a->dst_storage, dst, size_of(dst));
	san_sv_cm_gid(dst, &a->addr.ibaddr.dgid);
	if (is_loopback(&a->addr.ibaddr.dgid))
		a->addr.ibaddr.dgid = a->addr.ibaddr.sgid;
	a->addr.ibaddr.pkey = htons(0xffff);
	port = a->src_addr.sa_family != 0 ? *san_sv_cm_port(&a->src_addr) : 0;
	san_sv_cm_addr(&a->addr.ibaddr.sgid, port != 0 ? port : san_sv_cm_choose_port(),
		       &a->src_storage);
	pthread_mutex_lock(&san_sv_cm_lock);
	san_sv_cm_report(id, NULL, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	pthread_mutex_unlock(&san_sv_cm_lock);
	return san_sv_cm_complete(id);
}

/* There is one way to a peer, which librtsan finds. */
int
rdma_resolve_route(struct rdma_cm_id *cm_id, int timeout_ms)
{
	struct sv_id *id = (struct sv_id *)cm_id;

	SV_CM_ELSE_NEXT(rdma_resolve_route, cm_id, timeout_ms);
	if (cm_id->route.path_rec == NULL)
		cm_id->route.path_rec = calloc(1, sizeof(*cm_id->route.path_rec));
	if (cm_id->route.path_rec == NULL)
		return -1;
	cm_id->route.num_paths = 1;
	pthread_mutex_lock(&san_sv_cm_lock);
	san_sv_cm_report(id, NULL, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	pthread_mutex_unlock(&san_sv_cm_lock);
	return san_sv_cm_complete(id);
}

/* The options tune what librtsan does by itself. */
int
rdma_set_option(struct rdma_cm_id *cm_id, int level, int name, void *value, size_t length)
{
	SV_CM_ELSE_NEXT(rdma_set_option, cm_id, level, name, value, length);
	return san_sv_result(level == RDMA_OPTION_ID ? 0 : -ENOSYS, "rdma_set_option()");
}
