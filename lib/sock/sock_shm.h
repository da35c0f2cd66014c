/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Memory of a carried socket, which its lcore shares with the programs that have a descriptor of
 * it: two rings, and the state that lets either side sleep. No DPDK. (UDP-6, UDP-8, AFC-19)
 *
 * The memory belongs to a socket, not to a process. A process that inherits or receives the
 * descriptor maps it, too: fork(), exec() and SCM_RIGHTS add one more user. Programs serialize
 * themselves by the locks at its end, which the lcore neither takes nor trusts.
 *
 * Positions count bytes since the beginning, modulo 2^32. Each is written by one side. A record is
 * a head of one cache line and its bytes; the next record begins at the next line. A record that
 * does not fit before the ring's end begins at the ring's start; one of SAN_SOCK_PAD bytes fills
 * the space before it. A record that is put into an empty ring begins at the start, too: the
 * producer moves the position of the start, the *base*. So a socket that is read in time uses the
 * same few lines again and again.
 *
 * A stream's rings have no records: positions count its bytes, and *base* is 0.
 *
 * **The mirror.** Programs may wait in the kernel for a descriptor, which is one end of a pair of
 * sockets. A program that waits there increments *armed*; so does one that could wait without our
 * library. After the lcore has put a record, it reads *armed* behind a fence. If it is set, the
 * lcore announces a byte in *mirrored*. At the end of its round it writes the byte to its end of
 * the pair, unless the announcement was withdrawn. A program that takes the last record withdraws
 * it; if the byte was already written, the program reads the byte. Then it clears *mirrored*, and
 * notifies the lcore if, behind a fence, there are records again. So the kernel reports the
 * descriptor readable exactly while there are records. Without a waiter neither side makes a system
 * call. With *edges*, for EPOLLET, each burst that arrives brings a byte, also while records are
 * unread: each byte is an edge. At the end of a stream the pair's other end is shut down, so the
 * descriptor stays readable.
 *
 * **Room.** A program that finds no room sets *full* and sends a message of SAN_SOCK_FULL bytes,
 * beginning with SAN_SOCK_MARK, from its end of the pair. The message fills the pair: the kernel
 * no longer reports it writable, and a thread that sends one more message, of SAN_SOCK_NUDGE
 * bytes, sleeps. The daemon reads these messages when half of the ring is free again. For each
 * message it notifies the lcore in place of the sender. The sender may be a child process that has
 * no doorbell, because the daemon had no place for it.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "san_line.h"

#define SAN_SOCK_ABI      6
#define SAN_SOCK_PEER     "sansock." /**< how the name of the daemon's end of a pair begins */
#define SAN_SOCK_PAD      UINT32_MAX
#define SAN_SOCK_DGRAM    65507u /**< bytes of the longest datagram */
#define SAN_SOCK_FULL     65536u /**< longer than any datagram */
#define SAN_SOCK_NUDGE    64u
#define SAN_SOCK_MARK     "sansock: full, and waits"
#define SAN_SOCK_APPEND   69632u /**< bytes behind a stream's rings: see san_sock_stream_append() */
#define SAN_SOCK_RX_BYTES (256u << 10)
#define SAN_SOCK_TX_BYTES (256u << 10)

/* Of a stream. The send ring is larger: a writer spends more time per byte than a waiter. */
#define SAN_SOCK_STREAM_RX_BYTES (256u << 10)
#define SAN_SOCK_STREAM_TX_BYTES (512u << 10)

#define SAN_SOCK_TIMEOUT_MS 924600u /**< Linux resends a segment for so long (15 retries) */

/** An address of a program; IPv4 as an IPv4-mapped IPv6 address. */
struct san_sock_addr {
	uint8_t ip[16];
	uint16_t port; /**< host byte order */
	uint16_t family;
	uint32_t scope;
};

/** The head of a datagram. */
struct san_sock_rec {
	_Alignas(SAN_LINE) uint32_t bytes; /**< of the datagram, behind the head; or SAN_SOCK_PAD */
	uint32_t nb_drops;                 /**< received: dropped before it for lack of room */
	uint8_t src[16], dst[16];          /**< to send: *src* is all zero if not given */
	uint16_t sport, dport;             /**< to send: *sport* is ignored, *dport* is not 0 */
	uint8_t hops, tos;                 /**< to send: 0: the socket's */
	uint8_t pad[2];
	uint32_t if_index; /**< received: the kernel's device that it came by; 0: none */
	uint64_t ns;       /**< received: time by the lcore's clock */
};

_Static_assert(sizeof(struct san_sock_rec) == SAN_LINE, "SAN_SOCK_ABI");

/** A lock between programs, described in lib/sansock/sock_lock.c. All zero: free. */
struct san_sock_lock {
	_Atomic uint32_t word;
	_Atomic uint32_t space; /**< PID namespace of its owner's number; 0: unknown */
};

struct san_sock_shm {
	/* written by the daemon before a program maps it */
	uint32_t abi, id;
	uint32_t rx_bytes, tx_bytes; /**< powers of two */
	uint32_t if_index;           /**< of the kernel's device behind the port; 0: none */
	uint32_t type;               /**< SOCK_DGRAM, SOCK_STREAM */
	uint32_t mtu;                /**< of IP, of the port */
	/* ... and after the program has named it */
	struct san_sock_addr local, peer; /**< family 0: none */
	_Atomic uint32_t df;              /**< datagrams longer than *mtu* are refused */
	_Atomic uint32_t closing;         /**< no program has it any more */
	/* written by the lcore */
	_Alignas(SAN_LINE) _Atomic uint32_t rx_tail;
	_Atomic uint32_t rx_base;
	_Atomic uint32_t tx_head;
	_Atomic uint32_t error;    /**< errno that the next call returns and clears */
	_Atomic uint32_t orphaned; /**< nothing is received or sent any more */
	_Atomic uint64_t nb_drops; /**< datagrams dropped for lack of room */
	_Atomic uint32_t state;    /**< of a stream: enum san_sock_state */
	_Atomic uint32_t fin;      /**< of a stream: rx_tail is the end */
	_Atomic uint32_t rx_waits; /**< of a stream: a reader that makes room must notify */
	/* written by programs */
	_Alignas(SAN_LINE) _Atomic uint32_t rx_head;
	_Atomic uint32_t armed;
	_Atomic uint32_t edges; /**< a program wants a byte for each burst */
	_Alignas(SAN_LINE) _Atomic uint32_t tx_tail;
	_Atomic uint32_t tx_base;
	_Atomic uint32_t full; /**< a thread waits for room; the lcore clears it if there is */
	/* written by both sides */
	_Alignas(SAN_LINE) _Atomic uint32_t mirrored; /**< enum san_sock_mirrored */
	/* used among programs */
	_Alignas(SAN_LINE) struct san_sock_lock rx_lock;
	_Alignas(SAN_LINE) struct san_sock_lock tx_lock;
	_Alignas(SAN_LINE) _Atomic uint32_t nonblock;
	_Atomic uint32_t options;     /**< enum san_sock_option */
	_Atomic uint32_t shut;        /**< SHUT_RD + 1, SHUT_WR + 1, or both: SHUT_RDWR + 1 */
	_Atomic uint32_t linger;      /**< SO_LINGER of a stream: seconds + 1; or 0 */
	_Atomic uint32_t is_returned; /**< enum san_sock_returned */
	/* of a stream: see struct san_sock_timeouts */
	_Atomic uint32_t nb_timeout_changes;      /**< number of changes of the next fields */
	_Atomic uint32_t timeout_ms;              /**< TCP_USER_TIMEOUT; 0: SAN_SOCK_TIMEOUT_MS */
	_Atomic uint32_t idle_s, every_s, probes; /**< keep-alive; idle_s 0: none */
};

enum san_sock_mirrored {
	SAN_SOCK_UNNOTIFIED = 0,
	SAN_SOCK_TO_NOTIFY, /**< a byte follows, unless this is cleared before */
	SAN_SOCK_NOTIFIED,  /**< the byte is in the pair, or will be at once */
};

/** Whether the kernel serves the socket again, and for which processes. Zero: it does not. */
enum san_sock_returned {
	SAN_SOCK_RETURNED = 1, /**< for one process: the daemon has ended */
	SAN_SOCK_GIVEN_BACK,   /**< for all of them: a program asked for it */
};

/** State of a stream. */
enum san_sock_state {
	SAN_SOCK_CONNECTING = 0,
	SAN_SOCK_UP,
	SAN_SOCK_REFUSED, /**< it was never up: the peer does not carry its socket */
	SAN_SOCK_OVER,    /**< nothing is sent any more; received bytes can be read */
};

/** Options of a program that the library needs for each datagram. */
enum san_sock_option {
	SAN_SOCK_PKTINFO = 1 << 0,
	SAN_SOCK_TIMESTAMP = 1 << 1,
	SAN_SOCK_TIMESTAMPNS = 1 << 2,
	SAN_SOCK_RECVTTL = 1 << 3,
	SAN_SOCK_RECVTOS = 1 << 4,
	SAN_SOCK_PKTINFO6 = 1 << 5,
	SAN_SOCK_RECVHOPS6 = 1 << 6,
	SAN_SOCK_RECVTCLASS6 = 1 << 7,
	SAN_SOCK_RXQ_OVFL = 1 << 8,
};

/** The rings begin here, at the second page. */
#define SAN_SOCK_HEAD 4096u

_Static_assert(sizeof(struct san_sock_shm) <= SAN_SOCK_HEAD, "SAN_SOCK_HEAD");

static inline size_t
san_sock_shm_bytes(uint32_t rx_bytes, uint32_t tx_bytes)
{
	return SAN_SOCK_HEAD + (size_t)rx_bytes + tx_bytes;
}

static inline size_t
san_sock_shm_stream_bytes(uint32_t rx_bytes, uint32_t tx_bytes)
{
	return san_sock_shm_bytes(rx_bytes, tx_bytes) + SAN_SOCK_APPEND;
}

static inline uint8_t *
san_sock_shm_rx_ring(struct san_sock_shm *shm)
{
	return (uint8_t *)shm + SAN_SOCK_HEAD;
}

/** Not for the lcore, which must not use the *rx_bytes* that programs can write. */
static inline uint8_t *
san_sock_shm_tx_ring(struct san_sock_shm *shm, uint32_t rx_bytes)
{
	return (uint8_t *)shm + SAN_SOCK_HEAD + rx_bytes;
}

/** Bytes of a ring that a record of *bytes* occupies. */
static inline uint32_t
san_sock_shm_rec_bytes(uint32_t bytes)
{
	return SAN_LINE + ((bytes + SAN_LINE - 1) & ~(SAN_LINE - 1));
}

/** Offset of position *at* in a ring of *size* bytes whose start is position *base*. */
static inline uint32_t
san_sock_shm_off(uint32_t size, uint32_t base, uint32_t at)
{
	return (at - base) & (size - 1) & ~(SAN_LINE - 1);
}

/**
 * Find the place of a record of *bytes* and write the padding before it. The new tail is *at* plus
 * san_sock_shm_rec_bytes().
 *
 * @param ring
 *   *size* bytes. Its start is position *base*, which is moved to *tail* if the ring is empty.
 * @param at
 *   Becomes the record's position.
 * @return
 *   0; -1: no room.
 */
static inline int
san_sock_shm_place(uint8_t *ring, uint32_t size, uint32_t tail, uint32_t head, uint32_t *base,
		   uint32_t bytes, uint32_t *at)
{
	uint32_t used = tail - head, need = san_sock_shm_rec_bytes(bytes), skip = 0, off;

	if (used == 0)
		*base = tail;
	off = san_sock_shm_off(size, *base, tail);
	if (need > size - off)
		skip = size - off;
	if (used > size || skip + need > size - used)
		return -1;
	if (skip != 0)
		((struct san_sock_rec *)(ring + off))->bytes = SAN_SOCK_PAD;
	*at = tail + skip;
	return 0;
}

_Static_assert(SAN_SOCK_TX_BYTES / 2 + 4 * SAN_LINE >=
		       2 * (SAN_SOCK_DGRAM + 2 * SAN_LINE),
	       "room for any datagram");

/** Whether a send ring of *size* bytes has room for any datagram, or for much of a stream. */
static inline bool
san_sock_shm_has_room(const struct san_sock_shm *shm, uint32_t size)
{
	uint32_t head = atomic_load_explicit(&shm->tx_head, memory_order_acquire);

	/* a datagram may need its size once more, for the padding before it */
	return atomic_load_explicit(&shm->tx_tail, memory_order_relaxed) - head <=
		size / 2 - 4 * SAN_LINE;
}

/** Whether a writer need not wait for room; after shutdown() it never needs to. (UDP-10) */
static inline bool
san_sock_shm_need_not_wait(const struct san_sock_shm *shm, uint32_t size)
{
	return san_sock_shm_has_room(shm, size) ||
		(atomic_load_explicit(&shm->shut, memory_order_acquire) & (SHUT_WR + 1)) != 0;
}

/** Whether a message of *len* bytes that begins with *data* says that its sender waits for room. */
static inline bool
san_sock_shm_is_full(const uint8_t data[SAN_SOCK_NUDGE], size_t len)
{
	return (len == SAN_SOCK_FULL || len == SAN_SOCK_NUDGE) &&
		memcmp(data, SAN_SOCK_MARK, sizeof(SAN_SOCK_MARK)) == 0;
}

/** Position of a consumer at *head*, behind the padding that *bytes*, read there, may announce. */
static inline uint32_t
san_sock_shm_skip(uint32_t size, uint32_t base, uint32_t head, uint32_t bytes)
{
	return bytes == SAN_SOCK_PAD ? head + size - san_sock_shm_off(size, base, head) : head;
}
