/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Shared by both sides of errors.c. */

#include <signal.h>

#include "rt.h"

#define SERVICE    17
#define REGION     (1u << 20)
#define RECV_BYTES 256
#define NB_RECVS   8

enum behaviour {
	PLAIN = 1,     /* accept, post receives */
	REFUSE = 2,    /* reject, with private data */
	NOT_READY = 3, /* accept, post no receives before the byte at READY_AT is set, clear it */
	REVOKE = 4,    /* accept, revoke a region REVOKE_MS after a message */
	SHORT = 5,     /* accept, receives of 16 bytes */
};

#define READY_AT  (REGION / 2) /* in ALL */
#define REVOKE_MS 200

/* Regions that the server offers, by the rights they have. */
enum region {
	ALL,
	PULL_ONLY,
	PUSH_ONLY,
	NO_RIGHTS,
	TO_REVOKE,
	REGIONS
};

struct offer {
	uint64_t addr[REGIONS];
	uint32_t rkey[REGIONS];
};
_Static_assert(sizeof(struct offer) <= RTSAN_PRIVATE_MAX, "fits into private data");

extern volatile sig_atomic_t errors_stop;

/** Serve until errors_stop; exit status. */
int errors_serve(const char *spec);
