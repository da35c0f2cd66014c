/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_INI_H
#define APP_INI_H

/**
 * @file
 * INI files of our programs: rte_cfgfile reads them, and what it would pass over, refuse
 * without a place, or give to nobody is told with file and line.
 */

#include <stddef.h>

#define APP_INI_LINE 256 /**< bytes of a line, with its end */

/** Who takes what is in it. All return 0, or -errno and write why. */
struct app_ini {
	void *arg;
	int (*enter)(void *arg, const char *section, char *why, size_t why_len);
	/** All of its keys are set; may be NULL. */
	int (*leave)(void *arg, const char *section, char *why, size_t why_len);
	int (*set)(void *arg, const char *section, const char *key, const char *value, char *why,
		   size_t why_len);
};

/**
 * Read *path*: "[section]", "key = value", "# comment"; keys in the order in which they stand,
 * also several times, sections once.
 *
 * @return
 *   0; -EINVAL, or what one of *ini* returned, or -errno of opening or reading. What is wrong
 *   is in *err*, with file and line.
 */
int app_ini_load(const struct app_ini *ini, const char *path, char *err, size_t err_len);

#endif /* APP_INI_H */
