/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as what a peer's connection manager brings along. Input: its private data. (SYS-4)
 *
 * Checked: no access outside; what was taken is within its limits, can be written again, and then
 * reads the same.
 */

#include <string.h>

#include "fuzz.h"
#include "san_assert.h"
#include "verbs_hello.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t buf[VERBS_HELLO_MAX], len;
	struct verbs_hello h, again;

	if (san_verbs_hello_decode(data, size, &h) != RTSAN_R_NONE)
		return 0;
	SAN_VERIFY(h.len <= RTSAN_PRIVATE_MAX);
	len = san_verbs_hello_encode(&h, buf);
	SAN_VERIFY(len <= sizeof(buf) && len <= size);
	SAN_VERIFY(san_verbs_hello_decode(buf, len, &again) == RTSAN_R_NONE);
	SAN_VERIFY(memcmp(&h, &again, sizeof(h)) == 0);
	return 0;
}
