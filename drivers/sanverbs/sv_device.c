/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Devices and contexts. SANVERBS_SPEC names the devices: specs of rtsan_open(), separated by ";".
 * They are opened when a program first asks for the list, and closed at its end, because an engine
 * can be opened once in a process, while programs open a device as often as they like.
 */

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sv_priv.h"

#define DEV_NAME     "sanverbs" /* as rdma-core's name for the device of the kernel */
#define DEFAULT_SPEC "unix:/run/sanstack/sanstack.sock"
#define NUMBERS      (1 << 14) /* of processes on a port; with SV_QPS they fill 24 bits */
#define NUMBER_TRIES 100
#define BACKLOG      SV_REQUESTS

static struct sv_device devices[SV_DEVICES];
static int nb_devices;
static pid_t owner;                   /* process that opened them */
static _Thread_local bool is_opening; /* a provider may look for RDMA devices itself */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the next library, errors ---- */

void *
san_sv_next(const char *name)
{
	static const char *const libraries[] = {"libibverbs.so.1", "librdmacm.so.1"};
	void *found = dlsym(RTLD_NEXT, name), *library;
	size_t i;

	/* a plugin's libraries are not among the next ones */
	for (i = 0; found == NULL && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		library = dlopen(libraries[i], RTLD_NOLOAD | RTLD_LAZY);
		found = library != NULL ? dlsym(library, name) : NULL;
	}
	if (found == NULL) {
		fprintf(stderr, "libsanverbs: no library has %s for a device of another kind\n",
			name);
		abort();
	}
	return found;
}

static _Thread_local const char *reason; /* of the last refusal of our own */

int
san_sv_refuse(int rc, const char *why)
{
	reason = why;
	return rc;
}

int
san_sv_explain(int rc, const char *what)
{
	if (rc < 0 && getenv("SANVERBS_DEBUG") != NULL)
		fprintf(stderr, "libsanverbs: %s: %s: %s\n", what, strerror(-rc),
			reason != NULL ? reason : rtsan_error());
	reason = NULL;
	return rc;
}

int
san_sv_result(int rc, const char *what)
{
	if (san_sv_explain(rc, what) >= 0)
		return 0;
	errno = -rc;
	return -1;
}

int
san_sv_wait(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if ((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0)
		return poll(&p, 1, -1) < 0 ? -1 : 0;
	errno = EAGAIN;
	return -1;
}

struct sv_device *
san_sv_device(const struct ibv_context *context)
{
	struct sv_device *dev = (struct sv_device *)context->device;

	return dev >= devices && dev < &devices[nb_devices] ? dev : NULL;
}

/* ---- the node of a device: UCX skips devices without one that it may open ---- */

/* True if that path was not found because it is ours. */
static bool
is_node(const char *path)
{
	static const char ours[] = "/dev/infiniband/" DEV_NAME;

	return errno == ENOENT && strncmp(path, ours, sizeof(ours) - 1) == 0;
}

/* stat() and stat64(), which take the same struct where int64_t is long. */
static int
stat_node(const char *path, struct stat *st)
{
	static __typeof__(&stat_node) next;

	if (next == NULL)
		next = (__typeof__(next))san_sv_next("stat");
	return next(path, st) == 0 ? 0 : is_node(path) ? next("/dev/null", st) :
							 -1;
}
extern __typeof__(stat_node) san_sv_stat __asm__("stat") __attribute__((alias("stat_node")));
extern __typeof__(stat_node) san_sv_stat64 __asm__("stat64") __attribute__((alias("stat_node")));

int
access(const char *path, int mode)
{
	static __typeof__(&access) next;

	if (next == NULL)
		next = san_sv_next("access");
	return next(path, mode) == 0 ? 0 : is_node(path) ? next("/dev/null", mode) :
							   -1;
}

/* ---- the list ---- */

void
san_sv_gid(const char *text, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return;
	memset(gid->raw + 10, 0xff, 2);
	inet_pton(AF_INET, text, gid->raw + 12);
}

int
san_sv_connect(struct rtsan_qp *rt, const union ibv_gid *gid, uint64_t service,
	       const struct rtsan_conn_param *param)
{
	bool v4 = san_sv_is_v4(gid);
	char peer[RTSAN_ADDRESS_MAX];

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &gid->raw[12] : gid->raw, peer, sizeof(peer));
	return rtsan_connect(rt, peer, service, param);
}

int
san_sv_gid_like(const struct sv_device *dev, const union ibv_gid *gid)
{
	int i;

	for (i = 0; i < dev->nb_gids; i++)
		if (san_sv_is_v4(&dev->gids[i]) == san_sv_is_v4(gid))
			return i;
	return 0;
}

static void
add_device(const char *spec)
{
	struct sv_device *dev = &devices[nb_devices];
	char text[RTSAN_ADDRESS_MAX];
	int rc = rtsan_open(spec, &dev->rt);

	if (rc == 0) {
		rtsan_query(dev->rt, &dev->caps, sizeof(dev->caps));
		rc = rtsan_event_fd(dev->rt);
		if (rc < 0)
			rtsan_close(dev->rt);
	}
	if (rc < 0) {
		fprintf(stderr, "libsanverbs: %s\n", rtsan_error());
		return;
	}
	while (dev->nb_gids < SV_GIDS &&
	       rtsan_address(dev->rt, (uint32_t)dev->nb_gids, text) == 0)
		san_sv_gid(text, &dev->gids[dev->nb_gids++]);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_cond_init(&dev->ended, NULL);
	dev->ibv.node_type = IBV_NODE_CA;
	dev->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(dev->ibv.name, sizeof(dev->ibv.name), "san%d", nb_devices);
	snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), DEV_NAME "%d", nb_devices);
	snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path), "/sys/class/infiniband/san%d",
		 nb_devices);
	nb_devices++;
}

static void
find_devices(void)
{
	const char *specs = getenv("SANVERBS_SPEC");
	char *copy = strdup(specs != NULL && specs[0] != '\0' ? specs : DEFAULT_SPEC);
	char *spec, *rest = NULL;

	is_opening = true;
	owner = getpid();
	for (spec = copy != NULL ? strtok_r(copy, ";", &rest) : NULL;
	     spec != NULL && nb_devices < SV_DEVICES; spec = strtok_r(NULL, ";", &rest))
		add_device(spec);
	free(copy);
	is_opening = false;
}

int
san_sv_devices(void)
{
	if (is_opening)
		return 0;
	pthread_once(&once, find_devices);
	return nb_devices;
}

struct sv_device *
san_sv_device_at(int place)
{
	return place < nb_devices ? &devices[place] : NULL;
}

/* The list of the next library is kept behind the one that the program gets: some free() that. */
struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **(*next)(int *) = dlsym(RTLD_NEXT, "ibv_get_device_list");
	struct ibv_device **theirs, **list;
	int i, nb = 0;

	san_sv_devices();
	theirs = next != NULL ? next(&nb) : NULL;
	list = calloc((size_t)(nb_devices + nb + 2), sizeof(struct ibv_device *));
	if (list == NULL)
		return NULL;
	for (i = 0; i < nb_devices; i++)
		list[i] = &devices[i].ibv;
	for (i = 0; i < nb; i++)
		list[nb_devices + i] = theirs[i];
	list[nb_devices + nb + 1] = (struct ibv_device *)theirs;
	if (num_devices != NULL)
		*num_devices = nb_devices + nb;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	struct ibv_device **end = list;

	while (*end != NULL)
		end++;
	if (end[1] != NULL)
		SV_NEXT(ibv_free_device_list, (struct ibv_device **)end[1]);
	free(list);
}

static const struct sv_device *
device_of(const struct ibv_device *device)
{
	return san_sv_device(&(struct ibv_context){.device = (struct ibv_device *)device});
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	const struct sv_device *dev = device_of(device);
	__be64 guid = 0;

	SV_ELSE_NEXT(dev, ibv_get_device_guid, device);
	memcpy(&guid, dev->gids[0].raw + 8, sizeof(guid));
	return guid;
}

int
ibv_get_device_index(struct ibv_device *device)
{
	return device_of(device) != NULL ? -1 : SV_NEXT(ibv_get_device_index, device);
}

/* ---- events ---- */

/* Report the end of the daemon once to each context. With the lock of the device. */
static void
report_failure(struct sv_device *dev)
{
	struct sv_context *c;

	dev->has_failed = true;
	san_sv_qp_fail_all(dev);
	pthread_cond_broadcast(&dev->ended);
	LIST_FOREACH(c, &dev->contexts, link)
		san_sv_async(&c->verbs.context, IBV_EVENT_DEVICE_FATAL, NULL);
}

/* The thread takes connection events, because a program may do nothing while its peer connects. */
static void *
run_events(void *arg)
{
	struct sv_device *dev = arg;
	struct pollfd fds[] = {
		{.fd = rtsan_event_fd(dev->rt), .events = POLLIN},
		{.fd = dev->stop_fd, .events = POLLIN},
		{.fd = dev->groups_fd, .events = POLLIN},
	};
	struct rtsan_event ev;
	int rc = 0;

	while (rc >= 0 && fds[1].revents == 0) {
		rc = rtsan_event_arm(dev->rt);
		if (rc == 0)
			poll(fds, 3, -1);
		SAN_LOCKED(&dev->lock);
		san_sv_group_events(dev);
		while (rc >= 0 && (rc = rtsan_event_poll(dev->rt, &ev)) == 1)
			san_sv_qp_event(dev, &ev);
		if (rc < 0)
			report_failure(dev);
	}
	return NULL;
}

/* Choose a number for this process and listen for its queue pairs. 0 or -errno. */
static int
choose_number(struct sv_device *dev)
{
	uint32_t i, number;
	int rc = -EADDRINUSE;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	for (i = 0; i < NUMBER_TRIES && rc == -EADDRINUSE; i++) {
		dev->number = 1 + (number + i) % (NUMBERS - 1); /* 0 has special queue pairs */
		rc = rtsan_listen(dev->rt, san_sv_service(dev->number), 0, BACKLOG, &dev->listener);
	}
	return rc;
}

/* Start what an open device needs; with its lock. 0 or -errno. */
static int
open_device(struct sv_device *dev)
{
	sigset_t all, before;
	int rc;

	if (dev->is_open)
		return 0;
	rc = choose_number(dev);
	if (rc != 0)
		return rc;
	dev->stop_fd = eventfd(0, EFD_CLOEXEC);
	dev->groups_fd = epoll_create1(EPOLL_CLOEXEC);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&dev->thread, NULL, run_events, dev);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		close(dev->stop_fd);
		close(dev->groups_fd);
		rtsan_listener_destroy(dev->listener);
	}
	dev->is_open = rc == 0;
	rtsan_nb_threads += dev->is_open;
	return rc;
}

/*
 * Peers learn at once that the process has ended. What a child of fork() has of a device is its
 * parent's.
 */
static void __attribute__((destructor))
close_devices(void)
{
	int i;

	for (i = 0; i < nb_devices && getpid() == owner; i++) {
		struct sv_device *dev = &devices[i];

		if (dev->is_open) {
			eventfd_write(dev->stop_fd, 1);
			pthread_join(dev->thread, NULL);
		}
		/* a daemon learns of the end by itself, and other threads may be running */
		if (dev->caps.has_mr_reg)
			rtsan_close(dev->rt);
	}
}

/* ---- addresses ---- */

int
san_sv_way(const struct sv_device *dev, struct ibv_ah_attr *attr)
{
	if (!attr->is_global) {
		if (attr->dlid == 0)
			return -EINVAL;
		attr->is_global = 1;
		attr->grh = (struct ibv_global_route){.dgid = dev->gids[0], .hop_limit = 64};
		attr->grh.dgid.raw[14] = (uint8_t)(attr->dlid >> 8);
		attr->grh.dgid.raw[15] = (uint8_t)attr->dlid;
	}
	return attr->grh.sgid_index < dev->nb_gids ? 0 : -EINVAL;
}

/* ---- queries ---- */

static int
query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t size)
{
	const struct sv_device *dev = san_sv_device(context);
	struct ibv_device_attr_ex all = {
		.orig_attr = {
			.node_guid = ibv_get_device_guid(context->device),
			.sys_image_guid = ibv_get_device_guid(context->device),
			.max_mr_size = UINT64_MAX >> 17, /* what a process can address */
			.page_size_cap = 4096,
			.max_qp = (int)dev->caps.max_qps,
			.max_qp_wr = (int)dev->caps.max_wr,
			.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN,
			.max_sge = (int)dev->caps.max_sge,
			.max_sge_rd = (int)dev->caps.max_sge,
			.max_cq = (int)dev->caps.max_cqs,
			.max_cqe = (int)dev->caps.max_wr,
			.max_mr = (int)dev->caps.max_mrs,
			.max_pd = UINT16_MAX,
			.max_qp_rd_atom = 16,
			.max_res_rd_atom = 16 * (int)dev->caps.max_qps,
			.max_qp_init_rd_atom = 16,
			.atomic_cap = dev->caps.has_atomic ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE,
			.max_ah = UINT16_MAX,
			.max_pkeys = 1,
			.max_srq = dev->caps.has_recv_from ? (int)dev->caps.max_qps : 0,
			.max_srq_wr = dev->caps.has_recv_from ? (int)dev->caps.max_wr : 0,
			.max_srq_sge = dev->caps.has_recv_from ? (int)dev->caps.max_sge : 0,
			.phys_port_cnt = 1,
		},
	};

	if (input != NULL && input->comp_mask != 0)
		return EINVAL;
	snprintf(all.orig_attr.fw_ver, sizeof(all.orig_attr.fw_ver), "%s", rtsan_version());
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex all;

	SV_ELSE_NEXT(san_sv_device(context), ibv_query_device, context, attr);
	query_device_ex(context, NULL, &all, sizeof(all));
	*attr = all.orig_attr;
	return 0;
}

static int
query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	const struct sv_device *dev = san_sv_device(context);
	struct ibv_port_attr all = {
		.state = dev->has_failed ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096, /* SV_MTU */
		.gid_tbl_len = dev->nb_gids,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = (uint32_t)dev->caps.max_msg,
		.pkey_tbl_len = 1,
		.lid = (uint16_t)(dev->gids[0].raw[14] << 8 | dev->gids[0].raw[15]),
		.max_vl_num = 1,
		.active_width = 2, /* 4 lanes */
		.active_speed = 4, /* of 10 Gb/s: the speed of the link is not known */
		.phys_state = 5,   /* the link is up */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};

	if (port != SV_PORT)
		return EINVAL;
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

/* Programs of headers from before 2018 call it; the others get here by verbs_context. */
int
ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	SV_ELSE_NEXT(san_sv_device(context), ibv_query_port, context, port, attr);
	return query_port(context, port, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		  struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	const struct sv_device *dev = san_sv_device(context);

	SV_ELSE_NEXT(dev, _ibv_query_gid_ex, context, port, index, entry, flags, size);
	if (flags != 0 || port != SV_PORT || size < sizeof(*entry))
		return EINVAL;
	if (index >= (uint32_t)dev->nb_gids)
		return ENODATA;
	*entry = (struct ibv_gid_entry){
		.gid = dev->gids[index],
		.gid_index = index,
		.port_num = SV_PORT,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
	};
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
		     uint32_t flags, size_t size)
{
	const struct sv_device *dev = san_sv_device(context);
	size_t i;

	SV_ELSE_NEXT(dev, _ibv_query_gid_table, context, entries, max, flags, size);
	if (size != sizeof(*entries))
		return -EINVAL;
	for (i = 0; i < max && i < (size_t)dev->nb_gids; i++)
		_ibv_query_gid_ex(context, SV_PORT, (uint32_t)i, &entries[i], flags, size);
	return (ssize_t)i;
}

int
ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	const struct sv_device *dev = san_sv_device(context);

	SV_ELSE_NEXT(dev, ibv_query_gid, context, port, index, gid);
	if (port != SV_PORT || index < 0 || index >= dev->nb_gids) {
		errno = EINVAL;
		return -1;
	}
	*gid = dev->gids[index];
	return 0;
}

/* No header has it, but ibv_devinfo calls it. *type*: 0: RoCE v1, 1: RoCE v2. */
int
ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	SV_ELSE_NEXT(san_sv_device(context), ibv_query_gid_type, context, port, index, type);
	*type = 1;
	return 0;
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	SV_ELSE_NEXT(san_sv_device(context), ibv_query_pkey, context, port, index, pkey);
	if (port != SV_PORT || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htons(0xffff);
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	SV_ELSE_NEXT(san_sv_device(context), ibv_get_pkey_index, context, port, pkey);
	return port == SV_PORT && pkey == htons(0xffff) ? 0 : -1;
}

/* ---- contexts ---- */

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct sv_device *dev = (struct sv_device *)device_of(device);
	struct sv_context *c;
	struct ibv_context *v;
	int rc;

	SV_ELSE_NEXT(dev, ibv_open_device, device);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	v = &c->verbs.context;
	c->verbs.sz = sizeof(c->verbs);
	c->verbs.query_port = query_port;
	c->verbs.query_device_ex = query_device_ex;
	c->verbs.create_qp_ex = san_sv_create_qp_ex;
	v->device = device;
	v->ops.poll_cq = san_sv_poll_cq;
	v->ops.req_notify_cq = san_sv_req_notify_cq;
	v->ops.post_send = san_sv_post_send;
	v->ops.post_recv = san_sv_post_recv;
	v->ops.post_srq_recv = san_sv_post_srq_recv;
	v->cmd_fd = -1;
	v->num_comp_vectors = 1;
	v->abi_compat = __VERBS_ABI_IS_EXTENDED;
	STAILQ_INIT(&c->events);
	v->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	SAN_LOCKED(&dev->lock);
	rc = v->async_fd < 0 ? -errno : open_device(dev);
	if (rc != 0) {
		close(v->async_fd);
		free(c);
		san_sv_result(rc, device->name);
		return NULL;
	}
	LIST_INSERT_HEAD(&dev->contexts, c, link);
	return v;
}

int
ibv_close_device(struct ibv_context *context)
{
	struct sv_device *dev = san_sv_device(context);
	struct sv_context *c = san_sv_context(context);

	SV_ELSE_NEXT(dev, ibv_close_device, context);
	SAN_LOCKED(&dev->lock);
	LIST_REMOVE(c, link);
	san_sv_async_forget(context, NULL);
	close(context->async_fd);
	free(c);
	return 0;
}
