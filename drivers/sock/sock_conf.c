/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "sock_conf.h"

const char *
sock_conf_daemon(void)
{
	const char *path = getenv("SANSOCK_DAEMON");

	return path != NULL ? path : "/run/sanstack/sanstack.sock";
}

const char *
sock_conf_port(void)
{
	return "";
}

uint32_t
sock_conf_spin_us(void)
{
	return 20;
}

enum sock_action
sock_conf_action(int proto, const struct sockaddr *local, const struct sockaddr *remote)
{
	(void)proto;
	(void)local;
	(void)remote;
	return SOCK_BOTH;
}
