/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The kernel is asked by calls that read or write a word of the program without effect:
 * rt_sigprocmask() reads its set before it refuses an invalid operation, and a futex operation adds
 * 0. Filters of system calls usually allow both. They need neither a descriptor nor a signal
 * handler, which would be the program's. A confined program is trusted with its pointers.
 */

#include <linux/futex.h>
#include <sys/mman.h>

#include "sock_priv.h"

#define PAGE_BITS  12 /* of the smallest page */
#define SET_BITS   10
#define WAYS       2 /* two pages that are used in turn may have the same set */
#define READ_OK    1u
#define WRITE_OK   2u
#define TURN_BITS  26
#define USER_BEGIN 65536        /* vm.mmap_min_addr; callers often pass NULL, which is below */
#define USER_END   (1ull << 48) /* of arm64; that of others is lower, and the kernel knows it */

/* For a page: its number, the value of *turn* when it was good, and READ_OK or WRITE_OK. */
static _Atomic uint64_t good[1 << SET_BITS][WAYS];
static _Atomic uint64_t turn;

void
san_sock_touch_forget(void)
{
	atomic_fetch_add(&turn, 1);
}

/* False: it is not accessible in this way. True also if the kernel can't be asked. */
static bool
sock_touch_ask_kernel(uintptr_t at, uint64_t how)
{
	const int no_way = -1, add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, -1);
	static uint32_t no_waiters; /* a futex without waiters */
	long rc;
	KEEP_ERRNO;

	if (san_sock_box_is_closed())
		return true;
	if (how == READ_OK)
		rc = REAL(syscall, SYS_rt_sigprocmask, no_way, at & ~(uintptr_t)7, NULL, 8);
	else
		rc = REAL(syscall, SYS_futex, &no_waiters, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
			  at & ~(uintptr_t)3, add_nothing);
	return rc >= 0 || errno != EFAULT;
}

static bool
sock_touch_is_known(_Atomic uint64_t *set, uint64_t page, uint64_t how)
{
	uint64_t is;
	int i;

	for (i = 0; i < WAYS; i++) {
		is = atomic_load_explicit(&set[i], memory_order_relaxed);
		if ((is & ~(uint64_t)3) == page && (is & how) != 0)
			return true;
	}
	return false;
}

static bool
is_bad(const void *p, size_t len, uint64_t how)
{
	uintptr_t from = (uintptr_t)p, last = from + len - 1, page, at;
	uint64_t now = atomic_load_explicit(&turn, memory_order_acquire) & ((1u << TURN_BITS) - 1);
	_Atomic uint64_t *set;
	uint64_t mine, was;

	if (len == 0)
		return false;
	if (from < USER_BEGIN || last < from || last >= USER_END)
		return true;
	for (page = from >> PAGE_BITS; page <= last >> PAGE_BITS; page++) {
		mine = (uint64_t)page << (TURN_BITS + 2) | now << 2;
		set = good[page % (1 << SET_BITS)];
		if (sock_touch_is_known(set, mine, how))
			continue;
		at = page << PAGE_BITS;
		if (!sock_touch_ask_kernel(at > from ? at : from, how))
			return true;
		/* replace the entry that was added first; writable memory is readable, too */
		was = atomic_load_explicit(&set[0], memory_order_relaxed);
		if ((was & ~(uint64_t)3) != mine)
			atomic_store_explicit(&set[1], was, memory_order_relaxed);
		atomic_store_explicit(&set[0], mine | READ_OK | how, memory_order_relaxed);
	}
	return false;
}

bool
san_sock_touch_is_bad(const void *p, size_t len)
{
	return is_bad(p, len, READ_OK);
}

bool
san_sock_touch_is_bad_out(const void *p, size_t len)
{
	return is_bad(p, len, WRITE_OK);
}

/* ---- memory for one call ---- */

#define ROOMS      8
#define ROOM_BYTES 65536 /* larger ones are mapped */

/* Unused pages take no memory. */
static _Alignas(SAN_LINE) uint8_t pool[ROOMS][ROOM_BYTES];
static atomic_flag is_taken[ROOMS];

struct sock_room
san_sock_room_take(size_t bytes)
{
	struct sock_room room = {.bytes = bytes};
	int i;

	for (i = 0; i < ROOMS && bytes <= ROOM_BYTES && room.mem == NULL; i++)
		if (!atomic_flag_test_and_set(&is_taken[i]))
			room.mem = pool[i];
	if (room.mem == NULL)
		room.mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
	if (room.mem == MAP_FAILED)
		room.mem = NULL;
	return room;
}

void
san_sock_room_give(struct sock_room *room)
{
	uint8_t *mem = room->mem;
	KEEP_ERRNO;

	if (mem >= pool[0] && mem < pool[ROOMS - 1] + ROOM_BYTES)
		atomic_flag_clear(&is_taken[(mem - pool[0]) / ROOM_BYTES]);
	else if (mem != NULL)
		REAL(munmap, mem, room->bytes);
	san_sock_touch_forget();
}

void
san_sock_room_begin_child(void)
{
	int i;

	for (i = 0; i < ROOMS; i++)
		atomic_flag_clear(&is_taken[i]);
}
