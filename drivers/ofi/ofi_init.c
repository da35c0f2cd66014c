/* SPDX-License-Identifier: BSD-3-Clause */

/* What libfabric finds when it loads the provider. */

#include <pthread.h>
#include <stdlib.h>

#include "ofi_priv.h"

static char *init_spec;

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
	/* so that the lock is free in a child of fork() */
	pthread_atfork(san_ofi_ctx_lock, san_ofi_ctx_unlock, san_ofi_ctx_unlock);
	return &san_ofi_init_provider;
}
