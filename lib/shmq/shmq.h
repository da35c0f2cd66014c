/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Interface between the daemon and an application that links librtsan: the messages of their UNIX
 * socket, and the layout of the memory that both map. It does not depend on DPDK. (SYS-2, SYS-5)
 *
 * The socket is a SOCK_SEQPACKET socket. A request is one message and gets one answer; the next
 * request is sent after that. A message carries at most one descriptor. Requests have one size for
 * all types, and answers too; a message of another size is invalid.
 *
 * The data path does not use the socket. Work requests, completions, doorbells and events lie in
 * memory that the daemon creates and seals, in the layouts of san_wr.h, of san_doorbells.h and of
 * this file. The daemon trusts nothing that it reads there; the application may trust the daemon.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "san_doorbells.h"
#include "san_line.h"
#include "san_spsc.h"
#include "san_wr.h"
#include "shmq_req.h"

struct ucred;

#define SHMQ_TEXT   192 /* bytes of an error text, with the final NUL */
#define SHMQ_EVENTS 256 /* entries of the event ring */
#define SHMQ_FDS    253 /* most descriptors of a message: the kernel's limit */

/** Text for people: why the kernel keeps TCP sockets. */
#define SHMQ_NO_TCP "the port leaves TCP to the kernel, see carry_tcp="

struct shmq_rep {
	uint32_t magic;
	uint32_t abi; /**< the daemon's */
	int32_t rc;   /**< 0 or a negative errno, with *text* */
	uint32_t pad;
	union {
		struct {
			uint64_t ctl_bytes; /**< bytes of the memfd that comes with the answer */
			uint64_t max_msg;
			uint32_t max_qps, max_cqs, max_mrs, max_wr;
			uint32_t nb_lcores;
			uint32_t lcore_qps; /**< most queue pairs of an lcore */
			uint32_t max_socks; /**< of the first lcore; their doorbells come last */
			uint8_t qp_shift;   /**< qp index >> qp_shift: its lcore */
			uint8_t yields;     /**< it shares our CPUs: waiting threads yield */
			uint8_t sleeps;     /**< its lcores may sleep: a doorbell must wake them */
			uint8_t no_tcp;     /**< TCP sockets are the kernel's: SHMQ_NO_TCP */
		} hello;
		uint32_t id; /**< of the region, completion queue or queue pair created */
		struct {
			uint32_t id;
			uint32_t depth; /**< entries: the requested depth or more */
		} cq;
		struct {
			uint32_t id;
			uint32_t type;  /**< SOCK_DGRAM, SOCK_STREAM */
			uint64_t bytes; /**< of its memory */
		} sock;
	};
	char text[SHMQ_TEXT];
};

/** An address, or a network. */
struct shmq_net {
	uint8_t ip[16];
	uint8_t prefix_len; /**< of 128 */
	uint8_t pad[7];
};

/** Source addresses of connections that stand for streams at accept(): SHMQ_SOCK_ACCEPT. */
#define SHMQ_TOKEN_NET  0x7f530000u /* 127.83.0.0/16 */
#define SHMQ_TOKEN_MASK 0x0000ffffu

#define SHMQ_NETS 24

/** First page of the shared memory; the doorbells of each lcore follow. */
struct shmq_ctl {
	_Alignas(SAN_LINE) _Atomic uint32_t ev_tail; /**< written by the daemon */
	_Atomic uint32_t orphaned;                   /**< set when the port has failed */
	_Alignas(SAN_LINE) _Atomic uint32_t ev_head; /**< written by the application */
	_Atomic uint32_t ev_armed;                   /**< see san_spsc_arm() */
	_Alignas(SAN_LINE) struct shmq_event events[SHMQ_EVENTS];
	/* addresses of the port with the networks on its link, then the networks behind routers */
	uint32_t nb_addrs, nb_nets; /**< of *nets*, the first nb_addrs are addresses of the port */
	struct shmq_net nets[SHMQ_NETS];
};

_Static_assert(sizeof(struct shmq_rep) == 256, "SHMQ_ABI");

/** Bytes of struct shmq_ctl and its doorbells, of which an lcore has lcore_qps + max_socks. */
static inline size_t
san_shmq_ctl_bytes(uint32_t nb_lcores, uint32_t nb_doorbells)
{
	return sizeof(struct shmq_ctl) + nb_lcores * san_doorbells_bytes(nb_doorbells);
}

/** The doorbells of lcore number *lcore*. */
static inline struct san_doorbells *
san_shmq_doorbells(struct shmq_ctl *ctl, uint32_t lcore, uint32_t nb_doorbells)
{
	uint8_t *first = (uint8_t *)(ctl + 1);

	return (struct san_doorbells *)(first + lcore * san_doorbells_bytes(nb_doorbells));
}

/* ---- shmq.c ---- */

/** Send a message with *nb* descriptors, at most SHMQ_FDS. Otherwise like san_shmq_send(). */
int san_shmq_send_many(int sock, const void *msg, size_t size, const int *fds, uint32_t nb,
		       bool wait);
/**
 * Send a message with descriptor *fd*, or without one (-1). Returns 0, -EAGAIN (no room, and *wait*
 * is false) or -errno.
 */
int san_shmq_send(int sock, const void *msg, size_t size, int fd, bool wait);
/**
 * Send a message, and with it the proof that the sender is root of this host, if it is: the
 * credentials of process 1, which the kernel sends only for a process with CAP_SYS_ADMIN in its PID
 * namespace. Other senders send their own. Returns 0 or -errno.
 */
int san_shmq_send_proof(int sock, const void *msg, size_t size);
/**
 * True if the credentials that came with a message prove that its sender is root of this host: user
 * 0 with CAP_SYS_ADMIN in the receiver's PID namespace. Root of a container is not.
 */
bool san_shmq_is_root(const struct ucred *from);
/**
 * Receive a message of exactly *size* bytes, and the descriptor that came with it or -1.
 *
 * @return
 *   0; -EAGAIN: there is none, and *wait* is false; -ENOTCONN: the other end is closed; -EPROTO:
 *   the message had more than one descriptor, was cut off or had another size; it is consumed, and
 *   the socket must not be used any more; or -errno.
 */
int san_shmq_recv(int sock, void *msg, size_t size, int *fd, bool wait);
/**
 * The same, with all descriptors that came in *fds*. The caller owns them, whatever is returned. On
 * 0 there are at most *max*.
 */
int san_shmq_recv_fds(int sock, void *msg, size_t size, int fds[SHMQ_FDS], uint32_t *nb_fds,
		      uint32_t max, bool wait);
/** Before san_shmq_peek(): let each message carry its sender's credentials. 0 or -errno. */
int san_shmq_peek_init(int sock);
/**
 * Look at the next message and leave it in the socket, without waiting. Its descriptors are not
 * received; *has_fds*: there are some, also set with -EPROTO. *from*: credentials of the sender,
 * checked by the kernel; or NULL. Only after san_shmq_peek_init(). Returns like san_shmq_recv().
 */
int san_shmq_peek(int sock, void *msg, size_t size, bool *has_fds, struct ucred *from);
/**
 * recv() without waiting. A peer that closes with unread messages does not make it fail while there
 * are messages of the peer's.
 */
ssize_t san_shmq_recv_bytes(int sock, void *bytes, size_t size, int flags);
/** Consume a message that san_shmq_peek() has shown to have no descriptors. */
void san_shmq_skip(int sock);
/**
 * Shut the socket down in both directions. Messages that came before stay for san_shmq_recv_fds(),
 * which from now on returns -EPROTO for an empty message and -ENOTCONN only at the end.
 */
void san_shmq_hang_up(int sock);

/**
 * Create the pair of sockets by which the daemon wakes a waiting application. A byte, or the end of
 * the daemon, makes the waiter's end readable. An eventfd would not do: either process could change
 * whether the daemon's write blocks.
 */
int san_shmq_pair(int *ours, int *theirs);
/** Wake the holder of the other end. Does not block; no error if that end is closed. */
void san_shmq_pair_wake(int ours);
/** For the waiter: consume the wake-ups. -EIO: the daemon's end is closed. */
int san_shmq_pair_drain(int theirs);

/* ---- shmq_mem.c ---- */

/**
 * Create memory for another process to map: zeroed, fully allocated, of a fixed size. The caller
 * passes *fd* on and closes it. 0, -ENOMEM or an error of memfd_create().
 */
int san_shmq_mem_create(const char *name, size_t bytes, void **out, int *fd);
/**
 * Check that *bytes* at *offset* of another process's descriptor can be mapped safely: that it is a
 * memfd that cannot shrink and has all its pages. May block, if it is not a memfd. 0, or -EINVAL
 * and in *why* what is wrong with it.
 */
int san_shmq_mem_check(int fd, uint64_t offset, size_t bytes, const char **why);
/**
 * Map what san_shmq_mem_check() has accepted. *flags*: MAP_POPULATE; or 0, then call
 * san_shmq_mem_populate(). 0 or -errno.
 */
int san_shmq_mem_map(int fd, uint64_t offset, size_t bytes, int flags, void **out);
/** Fill in the page tables of a part of a mapping; 4 GiB take a second. 0 or -errno. */
int san_shmq_mem_populate(void *mem, size_t bytes);

/**
 * For a live restart: san_shmq_mem_create() and san_shmq_mem_map() use addresses in [from, from +
 * bytes) from now on, so that they are free in the process that takes over. For one thread.
 */
void san_shmq_mem_place(uintptr_t from, size_t bytes);
/** Map at *at* what another process had mapped there. 0, -EEXIST (*at* is in use) or -errno. */
int san_shmq_mem_map_at(int fd, uint64_t offset, size_t bytes, void *at);

/*
 * ---- shmq_guard.c ----
 *
 * Memory that is shared with another process may fail: the kernel has no page for it, the page is
 * broken, the other process has punched a hole, or the file shrank in spite of its seals. SIGBUS
 * would then end the daemon, and the service of all applications with it. Therefore each shared
 * range is guarded. A page that fails is replaced, with those around it, by private pages of zeros,
 * the thread that touched it continues, and the owner of the range is reported. (SYS-5)
 *
 * One thread adds and removes ranges; any thread may touch them.
 */

#define SHMQ_GUARD_NONE   UINT32_MAX
#define SHMQ_GUARD_NOBODY 0 /**< owner of a range whose owner has ended */

/**
 * Install the handler for SIGBUS, once in a process, for at most *max* ranges. Outside of them
 * SIGBUS ends the process as before. *event_fd* is readable when a page has failed, until
 * san_shmq_guard_failed() has reported all of them. 0 or -errno.
 */
int san_shmq_guard_init(uint32_t max, int *event_fd);
/**
 * Guard [mem, mem + bytes), whole pages, for *owner*. Returns the range's number; SHMQ_GUARD_NONE:
 * the table is full, or san_shmq_guard_init() was not called.
 */
uint32_t san_shmq_guard_add(void *mem, size_t bytes, uint16_t owner);
/** Remove a range, before it is unmapped and when no thread touches it any more. */
void san_shmq_guard_del(uint32_t range);
/** Detach the ranges of *owner*, before its number is reused. */
void san_shmq_guard_disown(uint16_t owner);
/** True: memory of *owner* has failed. Each range is reported once. */
bool san_shmq_guard_failed(uint16_t *owner);
