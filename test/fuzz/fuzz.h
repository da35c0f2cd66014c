/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Entry of a fuzz target, and its input read piece by piece: what is missing is zero. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

static inline void
take(struct fuzz_input *in, void *to, size_t n)
{
	size_t have = n < in->size ? n : in->size;

	memset(to, 0, n);
	if (have != 0)
		memcpy(to, in->data, have);
	in->data += have;
	in->size -= have;
}

static inline uint8_t
take8(struct fuzz_input *in)
{
	uint8_t v;

	take(in, &v, sizeof(v));
	return v;
}

static inline uint32_t
take32(struct fuzz_input *in)
{
	uint32_t v;

	take(in, &v, sizeof(v));
	return v;
}
