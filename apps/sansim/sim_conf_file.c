/* SPDX-License-Identifier: BSD-3-Clause */

/* Reads the INI file of a scenario; errors name file and line. */

#include "app_ini.h"
#include "sim_conf.h"

static int
enter(void *conf, const char *section, char *why, size_t why_len)
{
	return sim_conf_enter(conf, section, why, why_len);
}

static int
set(void *conf, const char *section, const char *key, const char *value, char *why,
    size_t why_len)
{
	return sim_conf_set_key(conf, section, key, value, why, why_len);
}

int
sim_conf_load(struct sim_conf *conf, const char *path, char *err, size_t err_len)
{
	const struct app_ini ini = {.arg = conf, .enter = enter, .set = set};

	return app_ini_load(&ini, path, err, err_len);
}
