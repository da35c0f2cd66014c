/* SPDX-License-Identifier: BSD-3-Clause */

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock_real.h"

struct sock_real sock_real;

static const struct {
	size_t offset;
	const char *name;
} names[] = {
#define SOCK_REAL_NAME(name, result, params) {offsetof(struct sock_real, name), #name},
	SOCK_REALS(SOCK_REAL_NAME)
#undef SOCK_REAL_NAME
};

void
san_sock_real_find(size_t offset)
{
	static const char text[] = "libsansock: the C library lacks a function that it must have\n";
	void *found = NULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].offset == offset)
			found = dlsym(RTLD_NEXT, names[i].name);
	if (found == NULL) {
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			abort();
		abort();
	}
	/* other threads may store the same value */
	__atomic_store_n((void **)((char *)&sock_real + offset), found, __ATOMIC_RELEASE);
}
