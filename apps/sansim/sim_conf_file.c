/* SPDX-License-Identifier: BSD-3-Clause */

/* A scenario's INI file; what is wrong is told with file and line. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>
#include <rte_common.h>

#include "sim_conf.h"
#include "sim_ini.h"

#define WHY_MAX 320

static int
load_section(struct sim_conf *conf, struct rte_cfgfile *file, const char *section, const char *path,
	     char *err, size_t err_len)
{
	int i, n = rte_cfgfile_section_num_entries(file, section);
	struct rte_cfgfile_entry *e = calloc((size_t)RTE_MAX(n, 1), sizeof(*e));
	char why[WHY_MAX];
	int rc = 0;

	if (e == NULL)
		return -ENOMEM;
	rte_cfgfile_section_entries(file, section, e, n);
	rc = sim_conf_enter(conf, section, why, sizeof(why));
	if (rc != 0)
		snprintf(err, err_len, "%s:%u: %s", path, sim_ini_line(path, section, NULL, 0),
			 why);
	for (i = 0; i < n && rc == 0; i++) {
		int k, before = 0;

		rc = sim_conf_set_key(conf, section, e[i].name, e[i].value, why, sizeof(why));
		for (k = 0; k < i; k++)
			before += strcmp(e[k].name, e[i].name) == 0;
		if (rc != 0)
			snprintf(err, err_len, "%s:%u: %s", path,
				 sim_ini_line(path, section, e[i].name, before), why);
	}
	free(e);
	return rc;
}

/* The cfgfile library would give the first one's keys for each. */
static int
check_twice(char *const *sections, int n, const char *path, char *err, size_t err_len)
{
	int i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < i; k++) {
			if (strcmp(sections[i], sections[k]) != 0)
				continue;
			snprintf(err, err_len, "%s:%u: [%s] is there already", path,
				 sim_ini_line(path, sections[i], NULL, 1), sections[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int
load_sections(struct sim_conf *conf, struct rte_cfgfile *file, const char *path, char *err,
	      size_t err_len)
{
	int i, rc, n = rte_cfgfile_num_sections(file, NULL, 0);
	char(*names)[CFG_NAME_LEN] = calloc((size_t)RTE_MAX(n, 1), sizeof(*names));
	char **list = calloc((size_t)RTE_MAX(n, 1), sizeof(*list));

	if (names == NULL || list == NULL) {
		free(names);
		free(list);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		list[i] = names[i];
	rte_cfgfile_sections(file, list, n);
	rc = check_twice(list, n, path, err, err_len);
	for (i = 0; i < n && rc == 0; i++)
		rc = load_section(conf, file, list[i], path, err, err_len);
	free(names);
	free(list);
	return rc;
}

int
sim_conf_load(struct sim_conf *conf, const char *path, char *err, size_t err_len)
{
	struct rte_cfgfile_parameters params = {.comment_character = '#'};
	struct rte_cfgfile *file;
	int rc = sim_ini_check(path, err, err_len);

	if (rc != 0)
		return rc;
	file = rte_cfgfile_load_with_params(path, 0, &params);
	if (file == NULL) {
		snprintf(err, err_len, "%s: not an INI file: [section], key = value, # comment",
			 path);
		return -EINVAL;
	}
	rc = load_sections(conf, file, path, err, err_len);
	rte_cfgfile_close(file);
	return rc;
}
