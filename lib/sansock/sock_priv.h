/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Shared by the files of this folder, lowest file first: each calls only those before it. The
 * table of descriptors is in sock_fd.h, the C library's functions are in sock_real.h.
 */

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "rules.h"
#include "shmq.h"
#include "sock_fd.h"
#include "sock_opt_list.h"
#include "sock_real.h"

/* ---- addresses: IPv4 as an IPv4-mapped IPv6 address; ports in host byte order ---- */

static inline void
san_sock_from_v4(uint8_t ip[16], const void *v4)
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, v4, 4);
}

static inline bool
san_sock_is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

/** The address and the port of a name of IPv6, otherwise of IPv4. */
static inline void
san_sock_read_name(const void *name, uint8_t ip[16], uint16_t *service)
{
	const struct sockaddr_in *in = name;

	if (in->sin_family == AF_INET6)
		memcpy(ip, &((const struct sockaddr_in6 *)name)->sin6_addr, 16);
	else
		san_sock_from_v4(ip, &in->sin_addr);
	*service = ntohs(in->sin_port); /* IPv6 has it at the same place */
}

/* ---- clocks, for what waits or is valid for a while ---- */

#define NS_PER_MS 1000000ll
#define NS_PER_S  1000000000ll

static inline int64_t
san_sock_time_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/** When *timeout* (NULL: none) is over, by CLOCK_MONOTONIC; INT64_MAX: never, or in centuries. */
static inline int64_t
san_sock_time_until(const struct timespec *timeout)
{
	if (timeout == NULL || timeout->tv_sec > INT64_MAX / NS_PER_S / 2)
		return INT64_MAX;
	return san_sock_time_ns(CLOCK_MONOTONIC) + timeout->tv_sec * NS_PER_S + timeout->tv_nsec;
}

/** What is left until then. */
static inline struct timespec
san_sock_time_left(int64_t until_ns)
{
	int64_t now_ns = san_sock_time_ns(CLOCK_MONOTONIC);
	int64_t ns = until_ns < now_ns ? 0 : until_ns - now_ns;

	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/*
 * ---- sock_real.c: a process that confines itself by a filter of system calls (seccomp) ----
 *
 * What it has carried stays carried, by read(), write() and poll() of its descriptors alone.
 * Nothing else is carried any more, and the daemon is not asked. Its children are confined, too.
 * (UDP-11)
 */

extern _Atomic bool sock_box_is_closed;

static inline bool
san_sock_box_is_closed(void)
{
	return __builtin_expect(atomic_load_explicit(&sock_box_is_closed, memory_order_relaxed), 0);
}

/** Receive one byte; no cancellation point. 1; 0: the other end is closed; -1: nothing is there. */
long san_sock_box_recv(int fd, bool peeks);
/** Send one message without waiting; no cancellation point. As send(). */
long san_sock_box_send(int fd, const void *data, size_t len);

/* ---- sock_conf.c: settings and rules of sansock.conf(5) for this process (UDP-2) ---- */

const struct sock_settings *san_sock_conf(void);
/** Whether there are no rules. */
bool san_sock_conf_is_idle(void);
/** Whether a rule refuses something: then the address of each datagram is checked. */
bool san_sock_conf_may_drop(void);
/**
 * The action for a socket. Either address may be NULL: not known yet. *is_logged*: log the decision
 * if the setting says so.
 */
enum sock_action san_sock_conf_action(int proto, bool is_v6only, const struct sockaddr *local,
				      const struct sockaddr *remote, bool is_logged);
/** Log, at level info, what was done with a socket against its rule. */
void san_sock_conf_info(const char *what, const char *why);
/** Log an error, unless logging is off. */
void san_sock_conf_error(const char *what, const char *why);

/*
 * ---- sock_touch.c: memory of the program, and for one call ----
 *
 * Checks whether pointers that a program passes are accessible. If not, a call on a carried socket
 * returns EFAULT, as the kernel does. (UDP-9)
 *
 * A page that was found good is remembered, so no system call is made in the steady state (UDP-8).
 * Pages are forgotten when the program calls munmap(), mprotect() or mremap(). What the C library
 * itself unmaps, for free() or for a thread's stack, is not noticed.
 */

/** Whether some of these bytes can't be read. False if *len* is 0. */
bool san_sock_touch_is_bad(const void *p, size_t len);
/** Whether some of these bytes can't be written. They keep their values. */
bool san_sock_touch_is_bad_out(const void *p, size_t len);
/** Call it before or after memory is unmapped or protected. */
void san_sock_touch_forget(void);

/*
 * A thread may have a stack of 16 KiB, and a signal handler must not call malloc(): buffers that
 * are too large for a stack come from here. (UDP-1)
 */

struct sock_room {
	void *mem; /**< NULL: out of memory; errno is ENOMEM */
	size_t bytes;
};

/** Take *bytes*. May be called by any thread, also in signal handlers. */
struct sock_room san_sock_room_take(size_t bytes);
void san_sock_room_give(struct sock_room *room);
/** Of a variable, before its type: its memory is released where its block ends. */
#define POOLED __attribute__((cleanup(san_sock_room_give)))
/** In a child of fork(): release what other threads of the parent had taken. */
void san_sock_room_begin_child(void);

/* ---- sock_lock.c: a lock in memory that programs share (UDP-7, SYS-5) ---- */
/* None of these programs can rely on the others. A wait is bounded, whatever is written there. */

/** A result of san_sock_lock(): the last owner has died, or has not released the lock in time. */
#define SOCK_LOCK_TAKEN 1

/**
 * Take *l*. *takes*: also from an owner that lives but does not release it in time; only for uses
 * in which that owner notices, before it does harm, that it has lost the lock.
 *
 * @return
 *   0; SOCK_LOCK_TAKEN; -EDEADLK: this thread holds it, in the call that a signal handler
 *   interrupted, or a thread that lives holds it for too long.
 */
int san_sock_lock(struct san_sock_lock *l, bool takes, uint32_t *key);
/**
 * Take *l*, and wait for a living owner up to a minute. False: it still holds the lock, or it is
 * this thread, in the call that a signal handler interrupted.
 */
bool san_sock_lock_wait(struct san_sock_lock *l, uint32_t *key);
void san_sock_lock_unlock(struct san_sock_lock *l, uint32_t key);
/** Look up this thread and process now, so that the first lock needs no system call. */
void san_sock_lock_attach(void);
/** Number of the calling thread; not 0. */
uint32_t san_sock_lock_thread(void);
/** In the child, after fork(): the numbers have changed. */
void san_sock_lock_detach(void);

/** State to restore: signals are blocked and cancellation is disabled. */
struct sock_quiet {
	sigset_t signals;
	int cancel;
};

/** A signal handler that calls the library would wait for the thread that it interrupts. */
void san_sock_lock_begin_quiet(struct sock_quiet *was);
void san_sock_lock_end_quiet(const struct sock_quiet *was);

/* ---- sock_fd.c: descriptors of the library itself, which programs can't close (UDP-1) ---- */

/**
 * Make *fd*, which may be -1, a descriptor of the library, and move it to a high number, which is
 * returned. It is, or will be, kept at *holder*, and updated there if the program wants the number.
 */
int san_sock_own(int fd, _Atomic int *holder);
/** Duplicate *fd* for the library; -1: no number is free, or few are left for the program. */
int san_sock_own_dup(int fd, _Atomic int *holder);
/** Close a descriptor of the library; -1: do nothing. */
void san_sock_own_close(int fd);
bool san_sock_own_is(int fd);
/** The program wants the number *fd*: move the library's descriptor away. */
void san_sock_own_vacate(int fd);
/** close_range(2) for all descriptors except the library's. */
int san_sock_own_close_others(unsigned int first, unsigned int last, int flags);

/* ---- sock_route.c: the kernel's routes (UDP-4) ---- */

/** Convert *ip* and *service* to a name of *domain*. Returns its length. */
socklen_t san_sock_route_name(int domain, const uint8_t ip[16], uint16_t service,
			      struct sockaddr_storage *out);

/** Whether the kernel's routes leave *ip*, on the port's link or behind a router, to the port. */
bool san_sock_route_is_ports(const struct shmq_ctl *ctl, const uint8_t ip[16], bool is_on_link);

/* ---- sock_attach.c: the connection of the process to the daemon (UDP-1) ---- */

/**
 * Attach to the daemon: when the first socket is to be carried, and again after fork(). 0;
 * -ECONNREFUSED, -EACCES and the like: no daemon serves this process, and the next attempt is made
 * some seconds later.
 */
int san_sock_attach(void);
/** In the child, after fork(): drop the parent's connection. */
void san_sock_attach_end(void);
/** Whether *fd* is the connection to the daemon. */
bool san_sock_attach_is_daemons(int fd);
/**
 * Make a request about socket *fd*, see enum shmq_type. *req* NULL: it has no parameters. *rep* has
 * the answer, after an error its text has the reason; NULL: it is not used. *got*: the descriptor
 * of the answer, if one may come.
 */
int san_sock_attach_ask(enum shmq_type type, int fd, struct shmq_req *req, struct shmq_rep *rep,
			int *got);
/** Notify the lcore: the rings of *f* have something for it. */
void san_sock_attach_doorbell(const struct fd_sock *f);
/** Whether the lcore shares the CPUs of programs, so that a waiting thread should yield to it. */
bool san_sock_attach_yields(void);
/** Whether the port carries TCP sockets: SHMQ_NO_TCP. */
bool san_sock_attach_carries_tcp(void);
/** Whether *ip* is an address of the port. */
bool san_sock_attach_is_ports(const uint8_t ip[16]);
/**
 * NULL: the port leads to *ip*, which is no own address, and the kernel's routes agree. Otherwise
 * the reason, as the end of a sentence that begins with the address.
 */
const char *san_sock_attach_why_not_reached(const uint8_t ip[16]);

/* ---- sock_ring.c: rings of datagrams and streams: locks, waits, buffers (UDP-8, AFC-19) ---- */

/** One receiver at a time. False: a signal handler interrupted this thread's own receive. */
bool san_sock_ring_lock_rx(struct fd_sock *f, uint32_t *key);

/**
 * Move *position* from *from* to *to*, for the lcore, which acquires it. False: another thread took
 * the lock.
 */
static inline bool
san_sock_ring_publish(_Atomic uint32_t *position, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(position, &from, to, memory_order_release,
						       memory_order_relaxed);
}

/** Take the error that the next call would return; 0: none. */
int san_sock_ring_take_error(struct fd_sock *f);
/** Whether more than *seen* bytes can be read, or nothing comes behind them. */
static inline bool
san_sock_ring_has_more(const struct san_sock_shm *shm, uint32_t seen)
{
	return atomic_load(&shm->rx_tail) - atomic_load(&shm->rx_head) > seen ||
		atomic_load(&shm->error) != 0 || atomic_load(&shm->orphaned) != 0 ||
		atomic_load(&shm->fin) != 0 || (atomic_load(&shm->shut) & (SHUT_RD + 1)) != 0;
}
/** Whether a call that receives would return. */
static inline bool
san_sock_ring_has_something(const struct san_sock_shm *shm)
{
	return san_sock_ring_has_more(shm, 0);
}
/** Learn from a wait that began at *began_ns*; *is_over* false: a timeout or a signal ended it. */
void san_sock_ring_learn(struct san_spin *s, int64_t began_ns, bool is_over);
/** Whether the daemon has ended, checked once a second. Calls that never wait need it, too. */
bool san_sock_ring_is_deserted(int fd, struct fd_sock *f);
/** Wait until a call that receives would return, as a blocking read of *fd*. 0 or errno. */
int san_sock_ring_wait_something(int fd, struct fd_sock *f);
/**
 * Of a stream: wait for more than *seen* bytes or an end. 0 or errno. Afterwards the kernel may not
 * report it readable until san_sock_attach_doorbell().
 */
int san_sock_ring_wait_more(int fd, struct fd_sock *f, uint32_t seen);
/** Wait for room to send, as a blocking write. 0 or errno; EAGAIN if it must not block. */
int san_sock_ring_wait_room(int fd, struct fd_sock *f, int flags);
/** A send took all room: from now on the kernel does not report it writable to waiters. */
void san_sock_ring_note_filled(int fd, struct fd_sock *f);
/** Whether there is room. If not, the kernel does not report it writable until there is. */
bool san_sock_ring_is_writable(int fd, struct fd_sock *f);
/** Under the lock to receive: if nothing is left, the kernel stops reporting it readable. */
void san_sock_ring_unmirror(int fd, struct fd_sock *f);
/** If nothing is left to read, the kernel stops reporting it readable. *is_notified*: it does. */
void san_sock_ring_settle(int fd, struct fd_sock *f, bool is_notified);
/** Wait up to a second until bytes that the C library wrote to the descriptor are on their way. */
void san_sock_ring_wait_pair(int fd, const struct fd_sock *f);

/** Whether the kernel refuses control message *c* of *msg* for its length. */
static inline bool
san_sock_ring_is_cmsg_bad(const struct msghdr *msg, const struct cmsghdr *c)
{
	return c->cmsg_len < sizeof(*c) ||
		c->cmsg_len > (size_t)((const uint8_t *)msg->msg_control +
				       msg->msg_controllen - (const uint8_t *)c);
}

/** Bytes of all buffers; or -errno. */
ssize_t san_sock_ring_length(const struct msghdr *msg);
/**
 * Copy *len* bytes of the buffers behind their first *skip* to *mem*, or (*sends* is false) from
 * there. Returns the number of bytes copied: less if a buffer is not accessible, which is EFAULT.
 */
size_t san_sock_ring_copy(const struct msghdr *msg, size_t skip, void *mem, size_t len, bool sends);
/**
 * From now on the kernel reports when it is readable, for a waiter that asked for *events*.
 * *is_new*: for the first time.
 */
void san_sock_ring_arm(struct fd_sock *f, uint32_t events, bool is_new);

/* ---- sock_opt.c: which options are the kernel's; those of the kernel's socket (UDP-9) ---- */

/**
 * The bit of enum san_sock_option of an option that adds control messages to each datagram of *f*,
 * which the library does; 0: another option. *is_message*: *name* is that of the message.
 */
uint32_t san_sock_opt_bit(const struct fd_sock *f, int level, int name, bool is_message);
/** The group in *value*, and whether it is left. False: the option is not about a group. */
bool san_sock_opt_group(int level, int name, const void *value, socklen_t len, uint8_t group[16],
			bool *leaves);
/** Join or leave the group for the carried socket at *fd*, as for the kernel's. */
int san_sock_opt_follow_group(int fd, const uint8_t group[16], bool leaves);
/**
 * Whether this value makes *f* the kernel's. It does not if the kernel's socket, *kernel*, has it
 * already. *text* is set to the option's name.
 */
bool san_sock_opt_is_kernels(int kernel, const struct fd_sock *f, int level, int name,
			     const void *value, socklen_t len, char text[SOCK_OPT_TEXT]);
/** Remember an option that was set for the kernel's socket before it is carried. */
void san_sock_opt_note(struct fd_sock *f, int level, int name, const void *value, socklen_t len);
/** A number that the kernel's socket *fd* has; *otherwise* if it has no such option. */
int san_sock_opt_int(int fd, int level, int name, int otherwise);
/** Bits of enum san_sock_option that the kernel's socket has on. */
uint32_t san_sock_opt_bits(int fd);
/** Give the kernel's socket the options that the program has set; remove the daemon's filter. */
void san_sock_opt_restore(int kernel, const struct fd_sock *f);
/** Copy the timeouts of the kernel's socket to *shadow*, by which calls wait. */
void san_sock_opt_times(int fd, int shadow);
/** Copy SO_LINGER and the timeouts (UDP-12) of the kernel's socket to the stream *f*. */
void san_sock_opt_stream(int kernel, struct fd_sock *f);

/*
 * ---- sock_owner.c: which side serves a socket, the kernel or the daemon (UDP-10) ----
 *
 * A call that the kernel serves *pins* the socket until it returns. The owner changes only while no
 * call pins the socket, and a call that comes then waits for the end of the change. So each call is
 * served by one owner from beginning to end. A change takes one request to the daemon.
 *
 * A call that waits for datagrams would pin a socket for long. Before a UDP socket has a name it
 * cannot receive any. Then the call waits at the socket's *gate* (sock_switch_io.c), which opens
 * when the owner is chosen.
 */

struct sock_change {
	struct fd_sock *f;
	struct sock_quiet quiet;
};

/** Pin *f*, to which the caller has a reference. False: the daemon serves it from now on. */
bool san_sock_owner_pin(struct fd_sock *f);
/** Pin the file at *fd*, whichever side serves it, because its descriptors change. NULL: none. */
struct fd_sock *san_sock_owner_pin_at(int fd);
/** Unpin **f* and release the reference, and clear it; NULL: do nothing. */
void san_sock_owner_unpin(struct fd_sock **f);
/** Of a variable, before its type: its socket is unpinned where its block ends. */
#define PINNED __attribute__((cleanup(san_sock_owner_unpin)))
/**
 * Decrement the number of calls, but not below 0: in a child that a signal handler has made, the
 * call that the handler interrupted is not counted any more.
 */
void san_sock_owner_count_down(_Atomic uint32_t *count);

/** Begin a change of the owner of *f*. False: another thread's call pins it for too long. */
bool san_sock_owner_change_begin(struct sock_change *change, struct fd_sock *f);
/** Wait for the end of a change of *f*. Returns its number of pins. */
uint32_t san_sock_owner_change_wait(const struct fd_sock *f);
/** End the change; *f->carried* says which side serves *f*. */
void san_sock_owner_change_end(struct sock_change *change);
/** The owner of *f* has been chosen by its name. Wakes the threads that wait at its gate. */
void san_sock_owner_chosen(struct fd_sock *f);
/** Wait until then, for 20 ms at most. */
void san_sock_owner_await_choice(const struct fd_sock *f);
/** Around fork(): no socket is being changed when the child is created. */
void san_sock_owner_change_hold(void);
void san_sock_owner_change_release(void);
void san_sock_owner_change_begin_child(void);

/* ---- sock_eset.c: carried sockets in epoll sets (UDP-6, UDP-8, AFC-19) ---- */
/* The kernel has all of these sets, so they can be inherited, nested and shared as usual. */

/** epoll_ctl() for the carried socket *f*. */
int san_sock_eset_ctl(int epfd, int op, int fd, struct fd_sock *f, struct epoll_event *ev);
/** The process has created the set *epfd*. */
void san_sock_eset_note_new(int epfd);
/** If *fd* is a set, give it to the kernel: the kernel will wait for it as for any descriptor. */
void san_sock_eset_expose(int fd);
/** *fd* is about to be replaced: remove it from its set. */
void san_sock_eset_leave(int fd);
/** Before fork(), and in the child after it. */
void san_sock_eset_share(void);
void san_sock_eset_begin_child(void);
/** Take a reference to each socket in a set of this process. */
void san_sock_eset_hold(void);

/** A socket in a set. Items are numbered from 1; 0: none. */
struct sock_eitem {
	_Atomic(struct fd_sock *) f; /**< NULL: free; otherwise the item has a reference */
	uint64_t data;
	uint32_t events;
	uint32_t known; /**< events in the kernel's set */
	int fd;
	uint16_t next, prev; /**< of a ring of the set's items */
	uint8_t set;
	bool is_out;   /**< removed, but still in the kernel's set */
	bool is_armed; /**< counted in *armed* of the socket */
	bool is_off;   /**< EPOLLONESHOT: it was reported */
	/* EPOLLET: state of the socket when it was last checked */
	bool is_new; /**< not checked yet: every event counts as an edge */
	bool had_room;
	uint32_t rx_tail, ends, nb_refused, nb_errors;
};

/** A set of this process; sock_eset.c has the rules. */
struct sock_eset {
	struct san_sock_lock lock;
	int epfd;
	uint32_t nb;
	struct san_spin spin;
	uint16_t first;           /**< the item that is checked next */
	uint16_t late;            /**< calls since the kernel was last asked */
	uint32_t thread;          /**< the thread that waits; 0: none yet */
	bool is_asleep;           /**< that thread sleeps */
	bool is_parents;          /**< the parent process also has the set */
	_Atomic uint8_t *is_used; /**< set by a child that uses it; in shared memory */
};

/** The set at *epfd*; NULL: it is the kernel's, or has no carried sockets yet. */
struct sock_eset *san_sock_eset_of(int epfd);
/** Under the lock of *s*: its item *number*, or NULL. */
struct sock_eitem *san_sock_eset_item(const struct sock_eset *s, uint32_t number);
/** Whether an event's data is a cookie. Its lower 16 bits are the number of an item. */
bool san_sock_eset_is_cookie(uint64_t data);
/** Under the lock, for EPOLLET: whether the socket has changed since the last call. */
bool san_sock_eset_has_edge(struct sock_eitem *it);
/** Arm all sockets of the set, before its thread sleeps, or disarm them. */
void san_sock_eset_arm(struct sock_eset *s, bool is_asleep);
/** Pass changes by epoll_ctl() to the kernel. */
void san_sock_eset_sync(struct sock_eset *s);
/** Whether the set must be given to the kernel: the parent has it, or a child uses it. */
static inline bool
san_sock_eset_is_shared(const struct sock_eset *s)
{
	return s->is_parents || atomic_load_explicit(s->is_used, memory_order_relaxed) != 0;
}

/** The set at *epfd*, which becomes ours now if it is new; NULL: the kernel's. */
struct sock_eset *san_sock_eset_make(int epfd);
/** Give the set to the kernel for good. Its sockets stay armed. */
void san_sock_eset_give(struct sock_eset *s);

/* ---- sock_carry.c: turns sockets of the kernel into carried ones, and back (UDP-1, UDP-2) ---- */

/**
 * *fd* has just been bound or connected: carry it if a rule says so. After an error it stays with
 * the kernel. *to*: where it is about to send, if that is known before its peer is; or NULL.
 */
void san_sock_carry(int fd, struct fd_sock *f, const struct sockaddr *to);
/**
 * *fd* is about to send, to *to* or (NULL) to its peer. If it is not bound yet, bind it and carry
 * it if a rule says so, before the datagram is sent. Later destinations do not count: a socket is
 * carried as a whole or not at all.
 */
void san_sock_carry_first(int fd, struct fd_sock *f, const struct sockaddr *to);
/**
 * The kernel's bind(). If the name is in use, its program may just have closed it while the daemon
 * still has the socket: then it is tried again for a while.
 */
int san_sock_carry_bind(int fd, const struct sockaddr *sa, socklen_t len);
/** Most SETTLE or CLOSED requests until the daemon has released this process's sockets: 2 s. */
#define SOCK_SETTLE_STEPS 1000
/** Make request *type*. True, after a pause: not everything has been released yet. */
bool san_sock_carry_is_ending(enum shmq_type type);
/** The process has received or inherited *fd*: if it is a carried socket, use it as one. */
void san_sock_carry_adopt(int fd);
/** Do so for all descriptors that the process starts with. */
void san_sock_carry_adopt_all(void);
/** The local name of the kernel's *fd*, in *ss*; NULL: it has no port. */
const struct sockaddr *san_sock_carry_bound_to(int fd, struct sockaddr_storage *ss);
/** Whether a rule refuses to bind *fd*, or to send or connect to *remote* (NULL: its peer). */
bool san_sock_carry_is_refused(int fd, const struct fd_sock *f, const struct sockaddr *local,
			       const struct sockaddr *remote);
/** Map the memory of the carried socket whose stand-in is *shadow*, for *f*. 0 or -errno. */
int san_sock_carry_map(struct fd_sock *f, int shadow);
/** Replace the kernel's socket, whose options stay valid, by *shadow* at all descriptors of *f*. */
void san_sock_carry_replace(struct fd_sock *f, int shadow);
/**
 * The daemon that served the UDP socket *f* at *fd* has ended: from now on the kernel serves it, or
 * a new daemon. Datagrams in flight are lost, as UDP may lose them. False: nothing has changed.
 * True: the file that is at *fd* now serves the call, not *f*. (UDP-10)
 */
bool san_sock_carry_return(int fd, struct fd_sock *f);
/**
 * Return the carried *f* to the kernel, because its program uses *why*. Unread datagrams are lost.
 * False: nothing has changed, because *f* is a stream or the kernel lacks the port's device. True:
 * the file that is at *fd* now is the kernel's for good; *f* is not used any more.
 */
bool san_sock_carry_give_back(int fd, struct fd_sock *f, const char *why);
static inline bool
san_sock_carry_can_give_back(const struct fd_sock *f)
{
	return f->is_udp && f->shm->if_index != 0;
}
/** connect() to AF_UNSPEC: reset the stream and make *fd* a new TCP socket. 0 or -1. */
int san_sock_carry_disconnect(int fd, struct fd_sock *f);
/** Leave *f*, which the kernel serves, to it for good, because its program uses *why*. */
void san_sock_carry_stay(struct fd_sock *f, const char *why);
/** Whether san_sock_carry_return() would return it now. */
bool san_sock_carry_may_return(const struct fd_sock *f);
/** Whether to offer *f*, whose daemon has ended, to a new one now: once in a second at most. */
bool san_sock_carry_is_due(struct fd_sock *f);
/** A socket that was returned is in use: offer it to a new daemon. */
static inline void
san_sock_carry_again(int fd, struct fd_sock *f)
{
	if (atomic_load_explicit(&f->retry_s, memory_order_relaxed) != 0 &&
	    !atomic_load(&f->carried) && atomic_load(&f->pins) == 0 && san_sock_carry_is_due(f))
		san_sock_carry(fd, f, NULL);
}
/** The kernel's socket behind a carried one, valid as long as *f*; -1 and ENETDOWN: none now. */
int san_sock_carry_kernel(int fd, struct fd_sock *f);
/** Result of the C library's *name* with that socket in place of *fd*. */
#define KERNEL_OF(fd, f, name, ...)                                  \
	({                                                           \
		int kernel_ = san_sock_carry_kernel(fd, f);          \
		kernel_ < 0 ? -1 : REAL(name, kernel_, __VA_ARGS__); \
	})
/** The kernel's socket has a new name or other options: update the daemon. */
void san_sock_carry_sync(int fd, struct fd_sock *f);
/** *f* was added to an epoll set, modified there, or (events NULL) removed. */
void san_sock_carry_set(struct fd_sock *f, int epfd, int fd, const struct epoll_event *ev);
/** How to carry *f*, with these addresses (NULL: not known): SOCK_KERNEL: not at all. */
enum sock_action san_sock_carry_how(int fd, struct fd_sock *f, const struct sockaddr *local,
				    const struct sockaddr *remote);

/*
 * ---- sock_hooks.c: what may keep a socket with the kernel ----
 *
 * Security modules, Landlock, hooks of control groups check connect() and sendto(). They are called
 * for carried sockets, too; a connection for which that is impossible is left to the kernel.
 * (UDP-9, SYS-7)
 */

/**
 * Whether the program may connect the TCP socket *f* to *sa*. No packet is sent. False: it may not,
 * or the check is not possible; the kernel's connect() decides.
 */
bool san_sock_hooks_connect(const struct fd_sock *f, const struct sockaddr *sa, socklen_t len);
/** Whether *f* may send to *to*, as in *rec*; checked once per address. 0 or errno. */
int san_sock_hooks_send(const struct fd_sock *f, const struct san_sock_rec *rec,
			const struct sockaddr *to, socklen_t len);
/** Whether the process has an io_uring, or the library that creates them. (UDP-11) */
bool san_sock_hooks_has_ring(void);

/*
 * ---- sock_udp.c, sock_tcp.c: datagrams and streams ----
 *
 * Results and errno are those of the kernel's calls. Moving bytes takes no system call, unless one
 * side must wait or be woken. (UDP-1, UDP-3, UDP-8, AFC-1, AFC-19)
 */

ssize_t san_sock_udp_send(int fd, struct fd_sock *f, const struct msghdr *msg, int flags);
/** Sets in *msg* what recvmsg(2) sets. */
ssize_t san_sock_udp_recv(int fd, struct fd_sock *f, struct msghdr *msg, int flags);
/** Bytes of the next datagram (FIONREAD). */
int san_sock_udp_next(struct fd_sock *f);
/** Time of the last datagram that was received: SIOCGSTAMP, SIOCGSTAMPNS. 0, or -1 and errno. */
int san_sock_udp_stamp(const struct fd_sock *f, bool in_ns, void *arg);

ssize_t san_sock_tcp_send(int fd, struct fd_sock *f, const struct msghdr *msg, int flags);
ssize_t san_sock_tcp_recv(int fd, struct fd_sock *f, struct msghdr *msg, int flags);
int san_sock_tcp_shutdown(int fd, struct fd_sock *f, int how);
/** A descriptor was closed: if it was the last one and has SO_LINGER, wait until all is sent. */
void san_sock_tcp_linger(struct fd_sock *f);
/** getsockname() and getpeername(): the kernel's socket does not have these names. */
int san_sock_tcp_name(const struct fd_sock *f, bool peer, struct sockaddr *sa, socklen_t *len);
/** State as in the kernel: TCP_ESTABLISHED and so on. */
int san_sock_tcp_state(const struct fd_sock *f);
/** Bytes that are not read yet (FIONREAD), and bytes that are not sent yet. */
int san_sock_tcp_unread(const struct fd_sock *f);
int san_sock_tcp_unsent(const struct fd_sock *f);

/**
 * Connect *fd* as a stream, if a rule and the peer carry it. 0: it is connected. -EINPROGRESS: call
 * the kernel's connect(). -EADDRNOTAVAIL: another stream has the same addresses and ports.
 */
int san_sock_tcp_connect(int fd, struct fd_sock *f, const struct sockaddr *sa, socklen_t len);
/** A descriptor of *f* was closed: learn how long connections to its peer are. */
void san_sock_tcp_closed(const struct fd_sock *f);
/** The kernel's *fd* listens: register it at the daemon if a rule carries it. */
void san_sock_tcp_listen(int fd, struct fd_sock *f);
/**
 * The program waits for connections of listener *f*, or accepts one: from now on the daemon offers
 * it streams. A program that waits without the library never gets any.
 */
void san_sock_tcp_wait(int fd, struct fd_sock *f);
/**
 * *fd* was accepted from a listener of the kernel. If it is a token, replace it by the stream, and
 * set *sa* to the stream's peer. *room*: bytes of *sa*.
 */
void san_sock_tcp_accepted(int fd, struct sockaddr *sa, socklen_t *len, socklen_t room);

/* ---- sock_wait.c: poll(), select() ---- */

/**
 * POLLIN and so on of the carried *f*: those of *events*, and those that are always reported.
 * *is_notified*: the kernel reports the descriptor readable.
 */
short san_sock_wait_events(int fd, struct fd_sock *f, short events, bool is_notified);
/** Whether the kernel, to which an invalid time is left, returns an error for *ts*. */
bool san_sock_wait_is_bad_time(const struct timespec *ts);

/* ---- the files with intercepted functions (UDP-1) ---- */

#define EXPORT __attribute__((visibility("default")))
/** The function *name* in the same file has another name, too. */
#define EXPORT_AS(name, other) EXPORT __typeof__(name) other __attribute__((alias(#name)))
/** *name* of fortified programs: the compiler knows the room of the buffer. */
#define EXPORT_CHK(type, name, params, is_bad, call) \
	EXPORT type __##name##_chk params;           \
	EXPORT type __##name##_chk params            \
	{                                            \
		if (is_bad)                          \
			__builtin_trap();            \
		return call;                         \
	}

/**
 * Returns *f*, to which the caller has a reference, if the daemon serves it. NULL: the kernel does.
 * Then *f* is pinned and *pinned* is *f*; or, if it is the kernel's for good, the reference is
 * released and *pinned* is NULL.
 */
static inline struct fd_sock *
san_sock_switch_pin(struct fd_sock *f, struct fd_sock **pinned)
{
	*pinned = NULL;
	f->nb_calls++;
	if (atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	if (atomic_load_explicit(&f->stays, memory_order_relaxed))
		san_sock_fd_put(f);
	else if (!san_sock_owner_pin(f))
		return f;
	else
		*pinned = f;
	return NULL;
}

/**
 * The carried socket at *fd*, with a reference. NULL: the kernel serves *fd*; *pinned* may be NULL,
 * too.
 */
static inline struct fd_sock *
san_sock_switch_carried(int fd, struct fd_sock **pinned)
{
	struct fd_sock *f = san_sock_fd_get(fd);

	if (__builtin_expect(f != NULL, 0))
		return san_sock_switch_pin(f, pinned);
	*pinned = NULL;
	return NULL;
}

/** The carried socket at *fd*, with a reference. NULL: it is not carried, but may come to be. */
static inline struct fd_sock *
san_sock_switch_carried_now(int fd)
{
	struct fd_sock *f = san_sock_fd_get(fd);

	if (__builtin_expect(f == NULL, 1) ||
	    atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	san_sock_fd_put(f);
	return NULL;
}

/**
 * Result of a call after *begin*, which sets *f* and *pin_* and returns -1 if the call fails: of
 * *kernel* if the kernel serves it, otherwise of *carried*, which uses the carried socket *f*. Both
 * are released afterwards, also if the thread is cancelled.
 */
#define SERVE_AFTER(begin, kernel, carried)                \
	({                                                 \
		PINNED struct fd_sock *pin_ = NULL;        \
		HELD struct fd_sock *f = NULL;             \
		(begin) != 0 ? -1 : f == NULL ? (kernel) : \
						(carried); \
	})
/** The same for a call with *fd*. */
#define SERVE(fd, kernel, carried) \
	SERVE_AFTER((f = san_sock_switch_carried(fd, &pin_), 0), kernel, carried)

/* ---- sock_stdio.c: streams of the C library ---- */

/** The process starts: prepare standard streams for carried sockets. */
void san_sock_stdio_begin(void);
/** *fd* has changed: if it is a carried socket now, so is its standard stream. */
void san_sock_stdio_at(int fd);
