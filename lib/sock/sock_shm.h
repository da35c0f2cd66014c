/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_SHM_H
#define SOCK_SHM_H

/**
 * @file
 * A carried socket, as the lcore and the programs that have a descriptor of it share it: two
 * rings of datagrams, and what lets either side sleep. No DPDK. (UDP-6, UDP-8, AFC-19)
 *
 * The memory is a socket's, not a process's: whoever inherits or is sent the descriptor maps it,
 * too, so fork(), exec() and SCM_RIGHTS mean one reader more. Programs agree among themselves by
 * the locks at its end, which the lcore neither takes nor believes.
 *
 * Positions are bytes since the beginning, modulo 2^32; each is written by one side. A record is
 * a head of one cache line and its bytes; the next one begins at the next line. One that does
 * not fit before the ring's end is preceded by one of SAN_SOCK_PAD bytes there and begins at the
 * ring's start. So does one that comes to a ring which is empty, because then the producer moves
 * the start's position, the *base*: of a socket that is read in time the same few lines are used
 * again and again.
 *
 * A stream's rings have no records: a position is one of a byte, and *base* is 0.
 *
 * **The mirror.** Programs may wait in the kernel, for a descriptor that is one end of a pair of
 * sockets. Whoever will, or may without asking us, counts itself in *armed*. The lcore, when it
 * has put a record and then, behind a fence, finds *armed*, says in *mirrored* that it is about to
 * write a byte to its end of the pair, and at the end of its round that it does, unless somebody
 * has taken that back. Who takes the last record does so; or if the byte is written, reads it. Then
 * he clears *mirrored*, and if then, behind a fence, there are records again, rings. So the
 * kernel says readable while there is something to read, and not afterwards, and with nobody
 * waiting no system call is made on either side. With *edges*, for EPOLLET, there is a byte for
 * each burst that comes, also while there is something: each is an edge. A stream's end the kernel
 * is told by an end of the pair, behind which it stays readable.
 *
 * **Room.** A program that finds no room sets *full*, and sends from its end of the pair a message
 * of SAN_SOCK_FULL bytes that begins with SAN_SOCK_MARK, by which that is full, too: the kernel
 * does not say writable any more, and who sends one more, of SAN_SOCK_NUDGE bytes, sleeps. The
 * daemon reads them when half of the ring is free again. Each time it finds one it rings for
 * the sender, which may be a child for which the daemon had no place and which has no bell.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define SAN_SOCK_ABI      6
#define SAN_SOCK_PEER     "sansock." /**< how the name of the daemon's end of a pair begins */
#define SAN_SOCK_LINE     64u
#define SAN_SOCK_PAD      UINT32_MAX
#define SAN_SOCK_DGRAM    65507u /**< bytes of the longest datagram */
#define SAN_SOCK_FULL     65536u /**< more than a datagram can have */
#define SAN_SOCK_NUDGE    64u
#define SAN_SOCK_MARK     "sansock: full, and waits"
#define SAN_SOCK_ASIDE    69632u /**< bytes behind a stream's rings: see san_sock_aside() */
#define SAN_SOCK_RX_BYTES (256u << 10)
#define SAN_SOCK_TX_BYTES (256u << 10)

/* Of a stream: who writes has more to do with each byte than who only waits for it. */
#define SAN_SOCK_STREAM_RX_BYTES (256u << 10)
#define SAN_SOCK_STREAM_TX_BYTES (512u << 10)

#define SAN_SOCK_TIMEOUT_MS 924600u /**< Linux sends a segment so long (15 retries) */

/** An address as programs name it; IPv4 within IPv6. */
struct san_sock_addr {
	uint8_t ip[16];
	uint16_t port; /**< host byte order */
	uint16_t family;
	uint32_t scope;
};

/** The head of a datagram. */
struct san_sock_rec {
	_Alignas(64) uint32_t bytes; /**< of the datagram, behind this; or SAN_SOCK_PAD */
	uint32_t nb_drops;           /**< received: datagrams that had found no room before it */
	uint8_t src[16], dst[16];    /**< to send: *src* is all zero if not given */
	uint16_t sport, dport;       /**< to send: the socket's own, whatever is here; not 0 */
	uint8_t hops, tos;           /**< to send: 0: the socket's */
	uint8_t pad[2];
	uint32_t if_index; /**< received: of the kernel's device that it came by; 0: none */
	uint64_t ns;       /**< received: when, by the lcore's clock */
};

_Static_assert(sizeof(struct san_sock_rec) == SAN_SOCK_LINE, "SAN_SOCK_ABI");

/** A lock of programs: drivers/sock/sock_lock.c says how. Zeros: nobody has it. */
struct san_sock_lock {
	_Atomic uint32_t word;
	_Atomic uint32_t space; /**< in which its owner's number means something; 0: unknown */
};

struct san_sock_shm {
	/* the daemon's, before anybody sees it */
	uint32_t abi, id;
	uint32_t rx_bytes, tx_bytes; /**< powers of two */
	uint32_t if_index;           /**< of the kernel's device behind the port; 0: none */
	uint32_t type;               /**< SOCK_DGRAM, SOCK_STREAM */
	uint32_t mtu;                /**< of IP, of the port */
	/* ... and when its program has named it */
	struct san_sock_addr local, peer; /**< family 0: none */
	_Atomic uint32_t df;              /**< what is longer than *mtu* is not sent */
	_Atomic uint32_t closing;         /**< nobody has it any more */
	/* the lcore's */
	_Alignas(64) _Atomic uint32_t rx_tail;
	_Atomic uint32_t rx_base;
	_Atomic uint32_t tx_head;
	_Atomic uint32_t error;    /**< errno that the next call returns; who takes it clears it */
	_Atomic uint32_t gone;     /**< nothing comes or goes any more */
	_Atomic uint64_t nb_drops; /**< datagrams that found no room */
	_Atomic uint32_t state;    /**< of a stream: enum san_sock_state */
	_Atomic uint32_t fin;      /**< of a stream: nothing comes behind rx_tail */
	_Atomic uint32_t rx_waits; /**< of a stream: who makes room rings */
	/* the programs' */
	_Alignas(64) _Atomic uint32_t rx_head;
	_Atomic uint32_t armed;
	_Atomic uint32_t edges; /**< somebody is to be told of each burst */
	_Alignas(64) _Atomic uint32_t tx_tail;
	_Atomic uint32_t tx_base;
	_Atomic uint32_t full; /**< somebody waits for room; the lcore clears it when there is */
	/* both sides' */
	_Alignas(64) _Atomic uint32_t mirrored; /**< enum san_sock_mirrored */
	/* among programs */
	_Alignas(64) struct san_sock_lock rx_lock;
	_Alignas(64) struct san_sock_lock tx_lock;
	_Alignas(64) _Atomic uint32_t nonblock;
	_Atomic uint32_t options;     /**< enum san_sock_option */
	_Atomic uint32_t shut;        /**< SHUT_RD + 1 and SHUT_WR + 1, or both */
	_Atomic uint32_t linger;      /**< SO_LINGER of a stream: seconds + 1; or 0 */
	_Atomic uint32_t is_returned; /**< enum san_sock_returned */
	/* of a stream: how long a silence it bears; see struct san_sock_patience */
	_Atomic uint32_t nb_patience;             /**< how often what follows was written */
	_Atomic uint32_t timeout_ms;              /**< TCP_USER_TIMEOUT; 0: SAN_SOCK_TIMEOUT_MS */
	_Atomic uint32_t idle_s, every_s, probes; /**< keep-alive; idle_s 0: none */
};

enum san_sock_mirrored {
	SAN_SOCK_UNTOLD = 0,
	SAN_SOCK_TO_TELL, /**< there will be a byte, unless this is cleared before */
	SAN_SOCK_TOLD,    /**< there is one, or will be at once */
};

/** Does the kernel serve it again? */
enum san_sock_returned {
	SAN_SOCK_RETURNED = 1, /**< the daemon has gone: to one of the processes that have it */
	SAN_SOCK_GIVEN_BACK,   /**< a program wanted it: to all of them */
};

/** Where a stream is in its life. */
enum san_sock_state {
	SAN_SOCK_CONNECTING = 0,
	SAN_SOCK_UP,
	SAN_SOCK_REFUSED, /**< it was never up: the peer has nobody who carries it */
	SAN_SOCK_OVER,    /**< nothing is sent any more; what has come can be read */
};

/** What a program asked for that its switch has to know with each datagram. */
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

/** The rings lie behind, from a page on. */
#define SAN_SOCK_HEAD 4096u

_Static_assert(sizeof(struct san_sock_shm) <= SAN_SOCK_HEAD, "SAN_SOCK_HEAD");

static inline size_t
san_sock_shm_bytes(uint32_t rx_bytes, uint32_t tx_bytes)
{
	return SAN_SOCK_HEAD + (size_t)rx_bytes + tx_bytes;
}

static inline size_t
san_sock_stream_bytes(uint32_t rx_bytes, uint32_t tx_bytes)
{
	return san_sock_shm_bytes(rx_bytes, tx_bytes) + SAN_SOCK_ASIDE;
}

static inline uint8_t *
san_sock_rx_ring(struct san_sock_shm *shm)
{
	return (uint8_t *)shm + SAN_SOCK_HEAD;
}

/** Not by the lcore, for which *rx_bytes* is no word of its own. */
static inline uint8_t *
san_sock_tx_ring(struct san_sock_shm *shm, uint32_t rx_bytes)
{
	return (uint8_t *)shm + SAN_SOCK_HEAD + rx_bytes;
}

/** Of a ring: what a record of *bytes* takes. */
static inline uint32_t
san_sock_rec_bytes(uint32_t bytes)
{
	return SAN_SOCK_LINE + ((bytes + SAN_SOCK_LINE - 1) & ~(SAN_SOCK_LINE - 1));
}

/** Where position *at* is in a ring of *size* bytes whose start is position *base*. */
static inline uint32_t
san_sock_off(uint32_t size, uint32_t base, uint32_t at)
{
	return (at - base) & (size - 1) & ~(SAN_SOCK_LINE - 1);
}

/**
 * Where a producer puts a record of *bytes*: its position, from which *tail* goes on to that plus
 * san_sock_rec_bytes(). Writes the padding that is before it.
 *
 * @param ring
 *   Of *size* bytes, whose start is position *base*: of an empty one that is where the next
 *   record begins.
 * @return
 *   0; -1: no room.
 */
static inline int
san_sock_place(uint8_t *ring, uint32_t size, uint32_t tail, uint32_t head, uint32_t *base,
	       uint32_t bytes, uint32_t *at)
{
	uint32_t used = tail - head, need = san_sock_rec_bytes(bytes), skip = 0, off;

	if (used == 0)
		*base = tail;
	off = san_sock_off(size, *base, tail);
	if (need > size - off)
		skip = size - off;
	if (used > size || skip + need > size - used)
		return -1;
	if (skip != 0)
		((struct san_sock_rec *)(ring + off))->bytes = SAN_SOCK_PAD;
	*at = tail + skip;
	return 0;
}

/** What may be used of a ring of *size* bytes that has room for any datagram. */
static inline uint32_t
san_sock_roomy(uint32_t size)
{
	/* one may need as much once more, for the padding before it */
	return size / 2 - 4 * SAN_SOCK_LINE;
}

_Static_assert(SAN_SOCK_TX_BYTES / 2 + 4 * SAN_SOCK_LINE >=
		       2 * (SAN_SOCK_DGRAM + 2 * SAN_SOCK_LINE),
	       "room for any datagram");

/** Is there room, for any datagram or much of a stream, in a ring of *size* bytes to send? */
static inline bool
san_sock_has_room(const struct san_sock_shm *shm, uint32_t size)
{
	uint32_t head = atomic_load_explicit(&shm->tx_head, memory_order_acquire);

	return atomic_load_explicit(&shm->tx_tail, memory_order_relaxed) - head <=
		san_sock_roomy(size);
}

/** Need a writer not wait for room, or no longer? Behind shutdown() none comes. (UDP-10) */
static inline bool
san_sock_need_not_wait(const struct san_sock_shm *shm, uint32_t size)
{
	return san_sock_has_room(shm, size) ||
		(atomic_load_explicit(&shm->shut, memory_order_acquire) & (SHUT_WR + 1)) != 0;
}

/** Is a message of *len* bytes, that begins with *data*, what waits for room? */
static inline bool
san_sock_is_full(const uint8_t data[SAN_SOCK_NUDGE], size_t len)
{
	return (len == SAN_SOCK_FULL || len == SAN_SOCK_NUDGE) &&
		memcmp(data, SAN_SOCK_MARK, sizeof(SAN_SOCK_MARK)) == 0;
}

/** Of a consumer at *head*, behind padding that *bytes*, copied from there, says there is. */
static inline uint32_t
san_sock_skip(uint32_t size, uint32_t base, uint32_t head, uint32_t bytes)
{
	return bytes == SAN_SOCK_PAD ? head + size - san_sock_off(size, base, head) : head;
}

#endif /* SOCK_SHM_H */
