/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file INI files. An error has file and line. */

#include <stddef.h>
#include <stdio.h>

#include "san_key.h"

#define INI_LINE 256 /**< bytes of a line, including its end */

/** Callbacks. They return 0, or -errno with a text in *why*. */
struct ini {
	void *arg;
	int (*enter)(void *arg, const char *section, char *why, size_t why_len);
	/** Called after all keys of a section; may be NULL. */
	int (*leave)(void *arg, const char *section, char *why, size_t why_len);
	int (*set)(void *arg, const char *section, const char *key, const char *value, char *why,
		   size_t why_len);
};

/**
 * Read *path*: "[section]", "key = value", "# comment". Keys are passed in the order of the file
 * and may repeat; sections may not. 0; or -EINVAL, the error of a callback, or -errno of opening
 * or reading, and a text with file and line in *err*.
 */
int san_ini_load(const struct ini *ini, const char *path, char *err, size_t err_len);

/** Write the keys that are set in *base*. *section*: instead of that in the table, or NULL. */
void san_ini_write(FILE *out, const struct san_key *keys, const void *base, const char *section);
/** Write all keys as comments, with their meaning, what is valid, and the value in *base*. */
void san_ini_explain(FILE *out, const struct san_key *keys, const void *base);
