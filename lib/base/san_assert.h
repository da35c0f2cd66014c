/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two assertions for our own errors, never for input from the wire, an application or an operator.
 *
 * SAN_VERIFY is always on (control path, once per burst). SAN_ASSERT costs nothing unless SAN_DEBUG
 * is defined (debug, simulation and sanitizer builds).
 */

#include <stdio.h>
#include <stdlib.h>

#define SAN_VERIFY(cond)                                                     \
	do {                                                                 \
		if (__builtin_expect(!(cond), 0)) {                          \
			fprintf(stderr, "%s:%d: %s: broken: %s\n", __FILE__, \
				__LINE__, __func__, #cond);                  \
			abort();                                             \
		}                                                            \
	} while (0)

#ifdef SAN_DEBUG
#define SAN_ASSERT(cond) SAN_VERIFY(cond)
#else
#define SAN_ASSERT(cond) ((void)sizeof(!(cond)))
#endif
