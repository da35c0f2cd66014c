/* SPDX-License-Identifier: BSD-3-Clause */

/* What libfabric finds when it loads the provider. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

static char *init_spec, *init_users;

const char *
san_ofi_init_spec(void)
{
	return init_spec != NULL ? init_spec : OFI_DEFAULT_SPEC;
}

bool
san_ofi_init_has_spec(void)
{
	return init_spec != NULL;
}

bool
san_ofi_init_has_user(uint32_t uid)
{
	const char *p = init_users != NULL ? init_users : "";
	char *end;

	if (strcmp(p, "any") == 0)
		return true;
	for (; *p >= '0' && *p <= '9'; p = end + (*end == ','))
		if (strtoul(p, &end, 10) == uid)
			return true;
	return false;
}

struct fi_provider san_ofi_init_provider = {
	.version = FI_VERSION(0, 1),
	/* the headers' version: libfabric passes over a provider that is older than the call */
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = OFI_NAME,
	.getinfo = san_ofi_info_get,
	.fabric = san_ofi_fabric_open,
};

FI_EXT_INI
{
	fi_param_define(&san_ofi_init_provider, "spec", FI_PARAM_STRING,
			"Where the transport is, as for rtsan_open(): unix:PATH of a daemon, "
			"dpdk:EAL -- PORT, verbs:DEVICE (default: %s)",
			OFI_DEFAULT_SPEC);
	if (fi_param_get_str(&san_ofi_init_provider, "spec", &init_spec) != 0)
		init_spec = NULL;
	fi_param_define(&san_ofi_init_provider, "users", FI_PARAM_STRING,
			"Other users whose programs may connect: numbers with commas, or any "
			"(default: none)");
	if (fi_param_get_str(&san_ofi_init_provider, "users", &init_users) != 0)
		init_users = NULL;
	/* so that the lock is free in a child of fork() */
	pthread_atfork(san_ofi_ctx_lock, san_ofi_ctx_unlock, san_ofi_ctx_unlock);
	return &san_ofi_init_provider;
}
