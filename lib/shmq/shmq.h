/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHMQ_H
#define SHMQ_H

/**
 * @file
 * What the daemon and an application that links librtsan share: the messages of their
 * UNIX socket, and the layout of what lies in memory that both map. No DPDK. (SYS-2, SYS-5)
 *
 * The socket is SOCK_SEQPACKET: a request is one message and gets one answer, before the
 * next is sent. Descriptors go with the message that they belong to, one at most. Both
 * structs have one size for all types, so a message of another size is none.
 *
 * Work does not cross here: work requests, completions, bells and events lie in memory that
 * the daemon makes and seals, in the layouts of san_wr.h and san_bells.h and below. The
 * daemon believes nothing that it reads there; the application may believe the daemon.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "san_bells.h"
#include "san_spsc.h"
#include "san_wr.h"

struct ucred;

#define SHMQ_MAGIC   0x716d6873u /* "shmq" */
#define SHMQ_ABI     7           /**< changes with any layout of this file or what it includes */
#define SHMQ_TEXT    192         /* bytes of a reason, with its end */
#define SHMQ_PEER    48
#define SHMQ_PORT    32 /* bytes of a port's name, with its end */
#define SHMQ_PRIVATE 64
#define SHMQ_LAYOUT  40  /* bytes of what two daemons must have in common */
#define SHMQ_EVENTS  256 /* entries of the event ring */
#define SHMQ_FDS     253 /* descriptors of a message, as many as the kernel lets anybody send */

enum shmq_type {
	SHMQ_HELLO = 1, /**< the first; the answer brings struct shmq_ctl */
	SHMQ_MR_ADD = 2,
	SHMQ_MR_DEL = 3,
	SHMQ_CQ_CREATE = 4, /**< the answer brings struct san_cq */
	SHMQ_CQ_DESTROY = 5,
	SHMQ_QP_CREATE = 6, /**< the answer brings struct san_wq */
	SHMQ_QP_DESTROY = 7,
	SHMQ_LISTEN = 8,
	SHMQ_UNLISTEN = 9,
	SHMQ_CONNECT = 10,
	SHMQ_ACCEPT = 11,
	SHMQ_REJECT = 12,
	SHMQ_DISCONNECT = 13,
	SHMQ_CQ_FD = 14,    /**< the answer brings our end of a pair: see shmq_pair() */
	SHMQ_EVENT_FD = 15, /**< likewise, for events */
	SHMQ_WAKE_FD = 16,  /**< of an lcore: the answer brings an eventfd that wakes it */
	/*
	 * A socket that is carried (sock_shm.h). The kernel's own comes with the first, and is the
	 * daemon's from then on; what stands for it instead comes with the answer, and then with
	 * all others.
	 */
	SHMQ_SOCK_CARRY = 17,  /**< the answer brings what stands for it from now on */
	SHMQ_SOCK_FIND = 18,   /**< the answer brings its memory */
	SHMQ_SOCK_SYNC = 19,   /**< the kernel's was named anew, or has other options */
	SHMQ_SOCK_KERNEL = 20, /**< the answer brings the kernel's */
	SHMQ_SOCK_GROUP = 21,  /**< the kernel's has joined or left a group */
	/* TCP: the kernel's comes with each */
	SHMQ_SOCK_LISTEN = 22,  /**< the answer brings what is open as long as somebody listens */
	SHMQ_SOCK_CONNECT = 23, /**< the answer brings what is to stand for it, if it comes up */
	SHMQ_SOCK_ACCEPT = 24,  /**< the answer brings what stands for it from now on */
	SHMQ_SOCK_SETTLE = 25,  /**< sockets that have ended go now; -EBUSY: ask again */
	SHMQ_SOCK_CLOSED = 26,  /**< -EBUSY: what its user passed is not closed yet; ask again */
	SHMQ_TYPES,
	SHMQ_TAKEOVER = 256 /**< from another daemon, to that: nothing for applications */
};

/** struct rtsan_conn_param, with its private data. */
struct shmq_param {
	uint8_t order;
	uint8_t given; /**< else all of it is the default */
	uint16_t pkey;
	uint16_t window, first_window;
	uint16_t max_txn, msg_limit;
	uint16_t rnr_ms, keepalive_ms;
	uint16_t private_len;
	uint8_t pad[6];
	uint8_t private_data[SHMQ_PRIVATE];
};

/** struct rtsan_stream_attr, if *given*; else the queue pair is no stream. */
struct shmq_stream {
	uint8_t given;
	uint8_t mode, read, linger;
	uint8_t learn, scans;
	uint16_t nb_recv, nb_store, nb_send;
	uint16_t t1, t2;
	uint16_t frags;
	uint8_t pad[2];
	uint32_t threshold;
	uint32_t msg_size, msg_max;
	uint32_t send_buffer;
	uint32_t scan_us, hold_us, gather_us;
};

struct shmq_req {
	uint32_t magic; /**< these two stay where they are in every version */
	uint32_t abi;
	uint32_t type; /**< enum shmq_type */
	uint32_t pad;
	union {
		struct {
			char port[SHMQ_PORT]; /**< its name; empty: the daemon's first one */
		} hello;
		struct {
			uint64_t addr; /**< what the application calls its first byte */
			uint64_t length;
			uint64_t offset; /**< in the memfd that comes with it */
			uint32_t access;
		} mr;
		struct {
			uint32_t depth; /**< of a completion queue */
		} cq;
		struct {
			uint32_t send_cq, recv_cq;   /**< their ids */
			uint32_t sq_depth, rq_depth; /**< powers of two */
			struct shmq_stream stream;
		} qp;
		struct {
			uint32_t id; /**< queue pair, or cookie of a listener */
			uint16_t pkey, backlog;
			uint64_t service;
			uint64_t request;
			char peer[SHMQ_PEER];
			struct shmq_param param;
		} conn;
		struct {
			uint8_t local_only; /**< carried, and of the kernel's what is local */
			uint8_t leaves;     /**< the group; else it joins */
			uint8_t group[16];
			uint8_t peer[16]; /**< to connect to */
			uint16_t peer_port;
		} sock;
		uint32_t id; /**< key, completion queue, queue pair or lcore that it is about */
		char layout[SHMQ_LAYOUT];
	};
};

struct shmq_rep {
	uint32_t magic;
	uint32_t abi; /**< the daemon's */
	int32_t rc;   /**< 0 or a negative errno, with *text* */
	uint32_t pad;
	union {
		struct {
			uint64_t ctl_bytes; /**< of the memfd that comes with it */
			uint64_t max_msg;
			uint32_t max_qps, max_cqs, max_mrs, max_wr;
			uint32_t nb_lcores;
			uint32_t lcore_qps; /**< queue pairs of an lcore, at most */
			uint32_t qp_shift;  /**< of a queue pair's index: its lcore */
			uint8_t yields;     /**< the daemon works on our CPUs: who waits lets it */
			uint8_t sleeps;     /**< its lcores may sleep: who rings wakes them */
			uint16_t max_socks; /**< of the first lcore; their bells lie behind */
		} hello;
		uint32_t id; /**< key, completion queue or queue pair that came */
		struct {
			uint32_t id;
			uint32_t depth; /**< entries: more than asked for */
		} cq;
		struct {
			uint32_t id;
			uint32_t type;  /**< SOCK_DGRAM, SOCK_STREAM */
			uint64_t bytes; /**< of its memory */
		} sock;
	};
	char text[SHMQ_TEXT];
};

/** struct rtsan_event, and whom it is for. */
struct shmq_event {
	uint8_t type, reason;
	uint16_t private_len;
	uint32_t qp;
	uint32_t listener; /**< cookie */
	uint8_t stream;    /**< CONNECT_REQUEST: it is for one */
	uint8_t pad[3];
	uint64_t request;
	char peer[SHMQ_PEER];
	uint8_t private_data[SHMQ_PRIVATE];
};

/** An address, or a network. */
struct shmq_net {
	uint8_t ip[16];
	uint8_t prefix_len; /**< of 128 */
	uint8_t pad[7];
};

/** Of whom a listener's program accepts what is a stream in truth: SHMQ_SOCK_ACCEPT. */
#define SHMQ_TOKEN_IP 0x7f53414eu /* 127.83.65.78 */

#define SHMQ_NETS 24

/** The first page of what an application and the daemon share; bells of each lcore behind it. */
struct shmq_ctl {
	_Alignas(64) _Atomic uint32_t ev_tail; /**< the daemon's */
	_Atomic uint32_t gone;                 /**< the port is */
	_Alignas(64) _Atomic uint32_t ev_head; /**< the application's */
	_Atomic uint32_t ev_armed;             /**< see san_spsc_arm() */
	_Alignas(64) struct shmq_event events[SHMQ_EVENTS];
	/* the port's: its addresses, with what is on its link; and what is behind routers there */
	uint32_t nb_addrs, nb_nets; /**< the first are its addresses */
	struct shmq_net nets[SHMQ_NETS];
};

_Static_assert(sizeof(struct shmq_req) == 176, "SHMQ_ABI");
_Static_assert(sizeof(struct shmq_rep) == 256, "SHMQ_ABI");
_Static_assert(sizeof(struct shmq_event) == 136, "SHMQ_ABI");

/** With *nb_bells* of each lcore: lcore_qps and max_socks. */
static inline size_t
shmq_ctl_bytes(uint32_t nb_lcores, uint32_t nb_bells)
{
	return sizeof(struct shmq_ctl) + nb_lcores * san_bells_bytes(nb_bells);
}

/** The bells that lcore number *lcore* hears. */
static inline struct san_bells *
shmq_bells(struct shmq_ctl *ctl, uint32_t lcore, uint32_t nb_bells)
{
	uint8_t *first = (uint8_t *)(ctl + 1);

	return (struct san_bells *)(first + lcore * san_bells_bytes(nb_bells));
}

/* ---- shmq_sock.c ---- */

/** A message with *nb* descriptors, SHMQ_FDS at most. Like shmq_send(). */
int shmq_send_many(int sock, const void *msg, size_t size, const int *fds, uint32_t nb, bool wait);
/** A message, with *fd* or without (-1). 0; -EAGAIN: no room, without waiting; or -errno. */
int shmq_send(int sock, const void *msg, size_t size, int fd, bool wait);
/**
 * A message that says it is from process *pid*: the kernel lets nobody do that for another process
 * without CAP_SYS_ADMIN in the PID namespace. 0, -EPERM or -errno.
 */
int shmq_send_as(int sock, const void *msg, size_t size, pid_t pid);
/**
 * A message of exactly *size* bytes, and the descriptor that came with it or -1.
 *
 * @return
 *   0; -EAGAIN: there is none, without waiting; -ENOTCONN: the other end is gone; -EPROTO:
 *   something else came, with more descriptors than one, cut off, or of another size, and is
 *   gone: the socket is of no use any more; or -errno.
 */
int shmq_recv(int sock, void *msg, size_t size, int *fd, bool wait);
/**
 * Likewise, without waiting: all descriptors that came are in *fds*, and the caller's, whatever is
 * returned. On 0 there is one at most.
 */
int shmq_recv_fds(int sock, void *msg, size_t size, int fds[SHMQ_FDS], uint32_t *nb_fds);
/** Before shmq_peek(): each message of *sock* says who sent it from now on. 0 or -errno. */
int shmq_peek_init(int sock);
/**
 * Look at the next message and leave it where it is, without waiting: so its descriptors do not
 * become ours. After shmq_peek_init() only.
 *
 * @param has_fds
 *   Descriptors come with it; also set if -EPROTO is returned.
 * @param from
 *   Who sent it, as the kernel has checked it; or NULL.
 * @return
 *   Like shmq_recv().
 */
int shmq_peek(int sock, void *msg, size_t size, bool *has_fds, struct ucred *from);
/** Take the message that shmq_peek() has seen to come without descriptors. */
void shmq_skip(int sock);
/** Likewise from who is trusted: waits, and there may be as many as a message has. */
int shmq_recv_many(int sock, void *msg, size_t size, int fds[SHMQ_FDS], uint32_t *nb_fds);
/**
 * Nothing more comes or goes. What came before is left for shmq_recv_fds(): of this socket it
 * takes a message of no bytes for what it is, -EPROTO, and says -ENOTCONN at the end only.
 */
void shmq_hang_up(int sock);

/**
 * How the daemon wakes who waits: a pair of sockets. A byte makes the waiter's end readable, and
 * the daemon's end makes it so when it closes. Not an eventfd, because both ends of that one can
 * change whether a write to it blocks.
 */
int shmq_pair(int *ours, int *theirs);
/** Wake who holds the other end. Does not block; no news if it is gone. */
void shmq_pair_wake(int ours);
/** The waiter: forget wake-ups. -EIO: the daemon's end is closed. */
int shmq_pair_drain(int theirs);

/* ---- shmq_memfd.c ---- */

/**
 * Memory for another process to map: zeros, all there, and of this size for ever.
 *
 * @param fd
 *   To pass on and close.
 * @return
 *   0, -ENOMEM or what memfd_create() says.
 */
int shmq_mem_create(const char *name, size_t bytes, void **out, int *fd);
/**
 * Can *bytes* from *offset* on of another process's descriptor be mapped: is it a memfd that does
 * not become shorter, with all of it there? May block, if it is none.
 *
 * @param why
 *   What is wrong with it, on error.
 * @return
 *   0; -EINVAL: no memfd, not sealed, too short, with holes, on huge pages, or an offset that is
 *   no multiple of a page.
 */
int shmq_mem_check(int fd, uint64_t offset, size_t bytes, const char **why);
/** Map what shmq_mem_check() has found right; then call shmq_mem_populate(). 0 or -errno. */
int shmq_mem_map(int fd, uint64_t offset, size_t bytes, void **out);
/** Fill in the page tables of a part of a mapping: 4 GiB take a second. 0 or -errno. */
int shmq_mem_populate(void *mem, size_t bytes);
void shmq_mem_unmap(void *mem, size_t bytes);

/**
 * Live restart: from now on what the two above map lies in *bytes* from *from* on, so that the
 * process that takes it over has these places free. One thread.
 */
void shmq_mem_place(uintptr_t from, size_t bytes);
/** Map what another process had at *at*, where nothing may be yet. 0, -EEXIST, ... */
int shmq_mem_map_at(int fd, uint64_t offset, size_t bytes, void *at);

#endif /* SHMQ_H */
