/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * libsanverbs: devices for programs of rdma-core, by the public interface of libibverbs alone. The
 * library is preloaded in front of libibverbs. It defines the same functions; those whose object
 * belongs to another device call the next library. An object here begins with its struct of
 * <infiniband/verbs.h>. (RDMA-1)
 *
 * Locks, in this order: of a device, of a queue pair, of a completion queue.
 */

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "rtsan.h"
#include "san_lock.h"

/* They are macros in front of the functions that this library defines. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SV_DEVICES   8
#define SV_GIDS      16
#define SV_QP_BITS   10                 /* of the number of a queue pair: its index */
#define SV_QPS       (1u << SV_QP_BITS) /* of a process on a device */
#define SV_REQUESTS  1024               /* connections of queue pairs that wait for their program */
#define SV_BURST     32
#define SV_SGES      16  /* elements of a send; librtsan takes RTSAN_SGE_MAX, see san_sv_bounce() */
#define SV_INLINE    256 /* likewise bytes that are copied, of RTSAN_INLINE_MAX */
#define SV_PORT      1
#define SV_MTU       4096 /* bytes of a datagram or a copied send; the port's MTU in reports */
#define SV_HELLO_LEN 8    /* private data of a request for an RC queue pair */

/** Call the function of that name of the next library. */
#define SV_NEXT(name, ...) ((__typeof__(&(name)))san_sv_next(#name))(__VA_ARGS__)
/** Call it if the object is not *ours*, and return what it returns. */
#define SV_ELSE_NEXT(ours, name, ...)                      \
	do {                                               \
		if (!(ours))                               \
			return SV_NEXT(name, __VA_ARGS__); \
	} while (0)

struct sv_id;
struct sv_qp;

/** A request for a queue pair whose program has not modified it to RTR yet. */
struct sv_request {
	uint64_t request;
	uint32_t dest, src; /**< numbers of queue pairs: ours, theirs */
	union ibv_gid gid;  /**< address of its sender */
};

/** A port of a provider of librtsan. It exists from the first look at the list until the end. */
struct sv_device {
	struct ibv_device ibv;
	struct rtsan_ctx *rt;
	struct rtsan_caps caps;
	union ibv_gid gids[SV_GIDS];
	int nb_gids;
	pthread_mutex_t lock; /**< protects all below, and connections of queue pairs */
	pthread_cond_t ended; /**< a connection has ended */
	bool is_open;         /**< the thread for events is running */
	bool has_failed;      /**< the daemon has ended */
	pthread_t thread;
	int stop_fd;
	int groups_fd;   /**< epoll of the sockets of groups */
	uint32_t number; /**< of this process: the upper bits of numbers of queue pairs */
	struct rtsan_listener *listener;
	struct sv_qp *qps[SV_QPS];
	uint32_t qp_next; /**< where the search for a free place starts */
	struct sv_request requests[SV_REQUESTS];
	uint32_t nb_requests;
	LIST_HEAD(, sv_context) contexts;
	LIST_HEAD(, sv_mr) waiting_mrs; /**< deregistered, while posted work names them */
	struct ibv_pd *cm_pd;           /**< of its identifiers; under san_sv_cm_lock */
};

struct sv_async {
	struct ibv_async_event event;
	STAILQ_ENTRY(sv_async) link;
};

struct sv_context {
	LIST_ENTRY(sv_context) link;
	STAILQ_HEAD(, sv_async) events; /**< that async_fd counts; under the lock of sv_async.c */
	struct verbs_context verbs;     /**< last: its own last member is the ibv_context */
};

static inline struct sv_context *
san_sv_context(struct ibv_context *context)
{
	return (struct sv_context *)((char *)context - offsetof(struct sv_context, verbs.context));
}

struct sv_mr {
	struct ibv_mr ibv;
	struct rtsan_mr *rt;
	LIST_ENTRY(sv_mr) link; /**< in the list of those that wait for the end of posted work */
};

struct sv_cq {
	struct ibv_cq ibv;
	struct rtsan_cq *rt;
	pthread_mutex_t lock;
	bool is_armed;
	int wake_fd;        /**< of librtsan; -1: no channel */
	int due_fd;         /**< readable: there is an event, without librtsan */
	uint32_t nb_events; /**< that ibv_get_cq_event() has returned */
	struct ibv_wc *own; /**< completions of work that librtsan no longer has */
	uint32_t nb_own, own_max;
};

/** What is known of posted work, for the completion that it gets if librtsan has none for it. */
struct sv_work {
	uint64_t wr_id;
	enum ibv_wc_opcode opcode;
};

/** A list that grows. */
struct sv_works {
	struct sv_work *list;
	uint32_t nb, max;
};

struct sv_srq {
	struct ibv_srq ibv;
	struct rtsan_qp *rt; /**< never connected; *cq* has its completions, which nobody polls */
	struct rtsan_cq *cq;
	uint32_t max_wr, max_sge;
	_Atomic uint32_t nb_posted; /**< receives without a completion */
	_Atomic uint32_t limit;     /**< an event is due when there are fewer; 0: none */
	uint32_t nb_qps;            /**< that use it; under the lock of the device */
	pthread_mutex_t lock;       /**< protects posting */
};

/** An end of a connection: the context of a queue pair of librtsan. */
struct sv_end {
	struct sv_qp *q;
};

struct sv_ah {
	struct ibv_ah ibv;
	union ibv_gid dgid;
};

/** Where a datagram goes. */
struct sv_dest {
	const struct ibv_ah *ah;
	uint32_t qpn, qkey;
};

/** A queue pair that gets datagrams. */
struct sv_target {
	union ibv_gid gid, mgid; /**< *mgid*: the group by which it gets them, or 0 */
	uint32_t qpn, qkey;
};

/** Connection between two queue pairs for datagrams. */
struct sv_flow {
	struct sv_end end; /**< first */
	struct rtsan_qp *rt;
	bool is_ours;        /**< it was made for datagrams to the other one */
	bool is_up;          /**< its connection is established */
	bool is_question;    /**< for the number of a queue pair, by an identifier of librdmacm */
	struct sv_target to; /**< the other one */
	LIST_ENTRY(sv_flow) link;
};

#define SV_MEMBERS 64 /* of a group */

/** A group to which a queue pair belongs or sends. */
struct sv_group {
	struct sv_qp *q;
	union ibv_gid mgid;
	int fd; /**< socket of the kernel, by which members find each other */
	bool is_member;
	uint64_t asked_ns, answered_ns;
	uint32_t nb_members, next;
	struct sv_target members[SV_MEMBERS]; /**< GIDs and numbers; under the lock of *q* */
	LIST_ENTRY(sv_group) link;
};

/** Posted work of a queue pair for datagrams. */
struct sv_slots {
	struct sv_slot {
		uint64_t wr_id;
		const void *of; /**< sends: the flow; receives: the 40 bytes in front of the data */
		bool is_signaled, is_used;
	} * slot;
	uint32_t nb, next;
	pthread_mutex_t lock;
};

enum sv_link {
	SV_LINK_NONE = 0,
	SV_LINK_WAITS = 1, /**< requested or to be accepted; not established */
	SV_LINK_UP = 2,
	SV_LINK_ENDED = 3,
};

struct sv_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	struct rtsan_qp *rt; /**< datagrams: never connected, has the receives of all flows */
	struct sv_end end;
	struct rtsan_qp *mirror;    /**< peer of *rt* if that is its own; takes its receives */
	LIST_HEAD(, sv_flow) flows; /**< datagrams; under *lock* */
	uint32_t nb_flows;
	LIST_HEAD(, sv_group) groups; /**< under *lock*; removed under the device's, too */
	bool blocks_self;             /**< it gets nothing that it sends to a group */
	struct sv_slots sends, recvs; /**< datagrams */
	struct ibv_qp_init_attr init; /**< as created */
	struct ibv_qp_attr attr;      /**< as modified */
	pthread_mutex_t lock;         /**< protects posting */
	struct sv_id *id;             /**< identifier that connects it; NULL: the program */
	enum sv_link link;            /**< under the lock of the device */
	bool is_failing;              /**< a send has failed because the peer has gone */
	bool is_last;                 /**< LAST_WQE_REACHED is reported: no more from its SRQ */
	/** Work posted before the connection was there. */
	struct sv_works early_sends, early_recvs;
	/**
	 * Receives that librtsan flushed because the peer has gone: here they are flushed only when
	 * the program learns of the end. Protected by the lock of recv_cq.
	 */
	struct sv_works late_recvs;
	/* memory for sends that librtsan does not take as they are; NULL: not needed yet */
	struct rtsan_mr *bounce;
	uint64_t nb_bounced; /**< so far; they complete in order */
	/* requests between ibv_wr_start() and ibv_wr_complete(); NULL: it is no struct ibv_qp_ex */
	struct rtsan_send_wr *staged;
	struct rtsan_sge *staged_sges; /**< SV_SGES for each */
	uint8_t *staged_bytes;         /**< SV_INLINE for each */
	struct sv_dest *staged_dests;  /**< datagrams */
	uint32_t nb_staged;
	int staged_rc;
};

/* ---- sv_device.c ---- */

extern _Atomic int rtsan_nb_threads; /**< of librtsan: threads that change no globals */

void *san_sv_next(const char *name);
/** Number of devices; the first call opens them. */
int san_sv_devices(void);
/** NULL: there are not so many. */
struct sv_device *san_sv_device_at(int place);

/** Returns *rc*; *why*, a literal, is what san_sv_explain() says of it. */
int san_sv_refuse(int rc, const char *why);
/** Explain a negative *rc* if SANVERBS_DEBUG is set: our reason, or librtsan's. Returns *rc*. */
int san_sv_explain(int rc, const char *what);
/** Sleep until *fd* is readable. -1 with errno: EAGAIN, if it is non-blocking; or EINTR. */
int san_sv_wait(int fd);
/** 0, or -1 with errno for a negative *rc*, which it explains. */
int san_sv_result(int rc, const char *what);

static inline bool
san_sv_is_v4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw);
}

/** *text*, as librtsan has it, as a GID of RoCE v2: IPv4 is mapped. */
void san_sv_gid(const char *text, union ibv_gid *gid);
/** rtsan_connect(), to a GID. */
int san_sv_connect(struct rtsan_qp *rt, const union ibv_gid *gid, uint64_t service,
		   const struct rtsan_conn_param *param);

/** Index of our first GID of the family of *gid*, or 0. */
int san_sv_gid_like(const struct sv_device *dev, const union ibv_gid *gid);

/**
 * Complete a way without a GRH, which programs of InfiniBand give: the LID is the last two bytes of
 * the first address, whose other bytes all hosts must share. 0 or -EINVAL.
 */
int san_sv_way(const struct sv_device *dev, struct ibv_ah_attr *attr);

/** The device of *context*, or NULL if it is another library's. */
struct sv_device *san_sv_device(const struct ibv_context *context);

/* ---- sv_async.c ---- */

/** Report an event of *element*, an object of *context*, or of the device. */
void san_sv_async(struct ibv_context *context, enum ibv_event_type type, void *element);
/**
 * *element* is destroyed: drop its events, and wait until those that the program has are
 * acknowledged; with no lock. NULL: drop all of the context.
 */
void san_sv_async_forget(struct ibv_context *context, const void *element);

/* ---- sv_mr.c ---- */

/** A queue pair has gone, and with it work that named regions; with the lock of the device. */
void san_sv_mr_retry(struct sv_device *dev);

/* ---- sv_cq.c ---- */

int san_sv_poll_cq(struct ibv_cq *ibcq, int nb, struct ibv_wc *wc);
int san_sv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
/** Move the completions that librtsan has to the program's; with the lock of *cq*. */
void san_sv_cq_move(struct sv_cq *cq);
/**
 * Complete *works* of *q* itself, and empty them: all with success, or the first with *status* and
 * the others as flushed.
 */
void san_sv_complete(struct ibv_cq *cq, const struct sv_qp *q, struct sv_works *works,
		     enum ibv_wc_status status);
/** Lock both completion queues of *q*, in the order of their addresses, and unlock them. */
void san_sv_cqs_lock(const struct sv_qp *q);
void san_sv_cqs_unlock(const struct sv_qp *q);
/** Remove the completions of queue pair *qp_num*; with the lock of *cq*. */
void san_sv_cq_forget(struct sv_cq *cq, uint32_t qp_num);
void san_sv_works_add(struct sv_works *works, uint64_t wr_id, enum ibv_wc_opcode opcode);

/* ---- sv_qp.c ---- */

struct ibv_qp *san_sv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/** The queue pair of that number; with the lock of the device. */
struct sv_qp *san_sv_qp_find(const struct sv_device *dev, uint32_t qp_num);
/** Its connection has failed or ended: state ERR, all its work completes. With that lock. */
void san_sv_qp_fail(struct sv_qp *q, enum ibv_wc_status status);
/** All connections of the device have ended; with its lock. */
void san_sv_qp_fail_all(struct sv_device *dev);
/** Handle an event of the device; with its lock. */
void san_sv_qp_event(struct sv_device *dev, const struct rtsan_event *ev);
/** What a program must set with a change to that state. */
int san_sv_qp_mask(enum ibv_qp_type type, enum ibv_qp_state to);
/** Connect *q* to *service* of *gid*; with the lock of the device. 0 or -errno. */
int san_sv_qp_connect(struct sv_qp *q, const union ibv_gid *gid, uint64_t service,
		      const struct rtsan_conn_param *param);
/** Create a queue pair of librtsan whose work completes in the queues of *q*. 0 or -errno. */
int san_sv_rt_create(struct sv_qp *q, struct sv_end *end, uint32_t sq_depth, uint32_t rq_depth,
		     struct rtsan_qp *recv_from, struct rtsan_qp **rt);
/** Number of the listener of process *number*. */
uint64_t san_sv_service(uint32_t number);

/* ---- sv_post.c ---- */

int san_sv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int san_sv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** Post a list by *post*, a call like rtsan_post_recv(); *wr* becomes the rest. 0 or an errno. */
int san_sv_post_recv_list(int (*post)(void *arg, const struct rtsan_recv_wr *wr, int nb), void *arg,
			  uint32_t max_sge, struct ibv_recv_wr **wr);
/** Set the functions of ibv_wr_*(). 0 or -ENOMEM. */
int san_sv_wr_init(struct sv_qp *q);

/**
 * If librtsan does not take *wr* as it is, or it is a datagram, copy its bytes to memory of *q*,
 * which *sge* names then. It has at most SV_MTU bytes. *number* counts those of *q*, or is the slot
 * of a datagram. 0 or -errno.
 */
int san_sv_bounce(struct sv_qp *q, struct rtsan_send_wr *wr, struct rtsan_sge *sge,
		  uint64_t number);

/* ---- sv_ud.c ---- */

/** Create what only queue pairs for datagrams have. 0 or -ENOMEM. */
int san_sv_ud_init(struct sv_qp *q);
/** Handle a request for a datagram's flow; with the lock of the device. */
void san_sv_ud_request(struct sv_device *dev, const struct rtsan_event *ev);
/** Handle an event of a flow; with that lock. */
void san_sv_ud_event(struct sv_end *end, const struct rtsan_event *ev);
/** End all flows of *q*, with its lock. Its receives become early_recvs. */
void san_sv_ud_end(struct sv_qp *q);
/**
 * Ask *service* of *gid* for a queue pair, for the identifier of *q*; with the lock of the device.
 * 0 or -errno.
 */
int san_sv_ud_ask(struct sv_qp *q, const union ibv_gid *gid, uint64_t service,
		  const struct rtsan_conn_param *param);
/** True if *q* waits for an answer; without its lock. */
bool san_sv_ud_is_asking(struct sv_qp *q);
/** Take no more datagrams of a group; with the lock of *q*. */
void san_sv_ud_leave(struct sv_qp *q, const union ibv_gid *mgid);
/** Wait for the datagrams under way; with the lock of the device, released meanwhile. */
void san_sv_ud_drain(struct sv_device *dev, struct sv_qp *q);
/** Post, with the lock of *q*: the number, or -errno. */
int san_sv_ud_post_sends(struct sv_qp *q, struct rtsan_send_wr *wr,
			 const struct sv_dest *dests, int nb);
int san_sv_ud_post_recvs(struct sv_qp *q, const struct rtsan_recv_wr *wr, int nb);
/** Complete *to*, the completion of a flow's work. True if the program gets it. */
bool san_sv_ud_convert(struct sv_end *end, const struct rtsan_wc *from, struct ibv_wc *to);

/* ---- sv_group.c; with the lock of the queue pair ---- */

bool san_sv_is_group(const union ibv_gid *gid);
/** The group of *q*, or NULL. */
struct sv_group *san_sv_group_find(struct sv_qp *q, const union ibv_gid *mgid);
/** The same; the first call looks for its members. NULL: it cannot. */
struct sv_group *san_sv_group_get(struct sv_qp *q, const union ibv_gid *mgid);
/** *q* joins a group as a member, or only to send; with no lock. 0 or -errno. */
int san_sv_group_join(struct sv_qp *q, const union ibv_gid *mgid, bool is_member);
/** *q* leaves it; with no lock. 0 or -EADDRNOTAVAIL. */
int san_sv_group_leave(struct sv_qp *q, const union ibv_gid *mgid);
/** A member does not exist. */
void san_sv_group_forget(struct sv_qp *q, const struct sv_target *member);
/** *q* leaves all groups; with the lock of the device alone. */
void san_sv_group_end(struct sv_qp *q);
/** Members have announced themselves; with the lock of the device alone. */
void san_sv_group_events(struct sv_device *dev);

/* ---- sv_srq.c ---- */

/** A receive of *srq* has completed. */
void san_sv_srq_taken(struct ibv_srq *srq);
int san_sv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- sv_cm_conn.c; with the lock of the device ---- */

/** A request to connect: true if an identifier listens there, which gets it. */
bool san_sv_cm_request(struct sv_device *dev, const struct rtsan_event *ev);
/** An identifier connects *q*, or is about to accept a request of the peer that *q* names. */
bool san_sv_cm_has_qp(struct sv_device *dev, const struct sv_qp *q);
/** The queue pair of an identifier is destroyed. */
void san_sv_cm_forget_qp(struct sv_qp *q);
/** An event of the connection of *q*, which an identifier has. */
void san_sv_cm_qp_event(struct sv_qp *q, const struct rtsan_event *ev);
