/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "sock_priv.h"

#define NB 8

/* Unused pages take no memory. */
static _Alignas(64) uint8_t pool[NB][SOCK_ROOM_BYTES];
static atomic_flag is_taken[NB];

void
san_sock_room_take(struct sock_room *room, size_t bytes)
{
	int i, was = errno;

	room->bytes = bytes;
	for (i = 0; i < NB && bytes <= SOCK_ROOM_BYTES; i++) {
		if (!atomic_flag_test_and_set(&is_taken[i])) {
			room->mem = pool[i];
			return;
		}
	}
	room->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room->mem == MAP_FAILED)
		room->mem = NULL;
	errno = was;
}

void
san_sock_room_give(void *arg)
{
	struct sock_room *room = arg;
	uint8_t *mem = room->mem;

	if (mem >= pool[0] && mem < pool[NB - 1] + SOCK_ROOM_BYTES)
		atomic_flag_clear(&is_taken[(mem - pool[0]) / SOCK_ROOM_BYTES]);
	else if (mem != NULL)
		munmap(mem, room->bytes);
	room->mem = NULL;
}

void
san_sock_room_begin_child(void)
{
	int i;

	for (i = 0; i < NB; i++)
		atomic_flag_clear(&is_taken[i]);
}
