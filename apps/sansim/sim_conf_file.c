/* SPDX-License-Identifier: BSD-3-Clause */

/* Reads the INI file of a scenario; errors name file and line. */

#include "ini.h"
#include "sim_conf.h"

static int
sim_conf_file_section(void *conf, const char *section, char *why, size_t why_len)
{
	return san_sim_conf_enter(conf, section, why, why_len);
}

static int
sim_conf_file_set(void *conf, const char *section, const char *key, const char *value, char *why,
		  size_t why_len)
{
	return san_sim_conf_set_key(conf, section, key, value, why, why_len);
}

int
san_sim_conf_file_load(struct sim_conf *conf, const char *path, char *err, size_t err_len)
{
	const struct ini ini = {
		.arg = conf, .enter = sim_conf_file_section, .set = sim_conf_file_set};

	return san_ini_load(&ini, path, err, err_len);
}
