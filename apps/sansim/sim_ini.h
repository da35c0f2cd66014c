/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_INI_H
#define SIM_INI_H

/**
 * @file
 * The lines of an INI file, which rte_cfgfile does not keep: what it would pass
 * over or refuse without a place is found here before, and said with its line.
 */

#include <stddef.h>

#define SIM_INI_LINE 256 /**< bytes of a line, with its end */

/**
 * Is every line a comment, "[section]", or "key = value" in a section?
 *
 * @return
 *   0; -EINVAL: a line is not; or -errno of opening or reading. What is wrong
 *   is in *err*, with file and line.
 */
int sim_ini_check(const char *path, char *err, size_t err_len);

/**
 * Line of a key of a section, after *skip* others of the same name; without a
 * key (NULL) of the section itself.
 */
unsigned int sim_ini_line(const char *path, const char *section, const char *key, int skip);

#endif /* SIM_INI_H */
