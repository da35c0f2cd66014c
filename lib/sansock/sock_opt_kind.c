/* SPDX-License-Identifier: BSD-3-Clause */

#include <net/if.h>
#include <stdint.h>
#include <string.h>

#include "sock_opt_list.h"
#include "sock_opt.h"
#include "sock_real.h"

#define VALUE_MAX 128 /* longer values are not compared */

/*
 * Which options only the kernel has. A socket that gets one before it is carried stays with the
 * kernel. A carried UDP socket goes back to the kernel if that has the port's device. A stream, or
 * a socket of a port without such a device, refuses the option (ENOPROTOOPT). (UDP-9)
 */
static const struct {
	int level, name;
	enum sock_opt_kind udp, tcp;
	const char *text;
} known[] = {
#define SOCK_OPT_ROW(level, name, udp, tcp) \
	{level, name, SOCK_OPT_##udp, SOCK_OPT_##tcp, #name},
	SOCK_OPT_LIST(SOCK_OPT_ROW)
#undef SOCK_OPT_ROW
};

/* Options of a newer kernel may change how packets are sent, so they are the kernel's. */
static enum sock_opt_kind
kind_of(const struct fd_sock *f, int level, int name, const char **text)
{
	size_t i;

	*text = "an option that is not known";
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].level != level || known[i].name != name)
			continue;
		*text = known[i].text;
		return f->is_udp ? known[i].udp : known[i].tcp;
	}
	return level == SOL_SOCKET || level == IPPROTO_IP || level == IPPROTO_IPV6 ||
			level == (f->is_udp ? IPPROTO_UDP : IPPROTO_TCP) ?
		SOCK_OPT_KERNELS :
		SOCK_OPT_CARRIED;
}

static bool
sock_opt_kind_is_zero(const uint8_t *p, size_t from, size_t to)
{
	while (from < to && p[from] == 0)
		from++;
	return from >= to;
}

/* Whether the kernel's socket has that value already. */
static bool
has_it(int kernel, int level, int name, const void *value, socklen_t len)
{
	uint8_t now[VALUE_MAX];
	socklen_t got = sizeof(now);
	size_t both;

	/* the length of a filter would be a number of instructions */
	if (len == 0 || len > sizeof(now) || (level == SOL_SOCKET && name == SO_GET_FILTER) ||
	    REAL(getsockopt, kernel, level, name, now, &got) != 0 || got == 0)
		return false;
	both = got < len ? got : len;
	return memcmp(now, value, both) == 0 && sock_opt_kind_is_zero(now, both, got) &&
		sock_opt_kind_is_zero(value, both, len);
}

/* Whether the option names a device other than the port's. */
static bool
is_other_device(const struct fd_sock *f, int name, const void *value, socklen_t len)
{
	char device[IF_NAMESIZE] = "";
	uint32_t index;

	if (!atomic_load(&f->carried))
		return false; /* the daemon checks the device when the socket is carried */
	if (name == SO_BINDTOIFINDEX) {
		if (len < sizeof(index))
			return false;
		memcpy(&index, value, sizeof(index));
		return index != 0 && index != f->shm->if_index;
	}
	memcpy(device, value, len < sizeof(device) ? len : sizeof(device) - 1);
	return device[0] != '\0' && if_nametoindex(device) != f->shm->if_index;
}

bool
san_sock_opt_kind_is_kernels(int kernel, const struct fd_sock *f, int level, int name,
			     const void *value, socklen_t len, const char **text)
{
	enum sock_opt_kind kind = kind_of(f, level, name, text);
	int v = 0;

	if (len != 0 && san_sock_touch_is_bad(value, len))
		return false; /* the kernel returns the error */
	if (level == SOL_SOCKET && (name == SO_BINDTODEVICE || name == SO_BINDTOIFINDEX))
		return is_other_device(f, name, value, len);
	if (len >= sizeof(v))
		memcpy(&v, value, sizeof(v));
	if (level == SOL_SOCKET && name == SO_RCVLOWAT && v <= 1)
		return false;
	/* INTERFACE uses the device's MTU and not the path's; so does OMIT, which then fragments */
	if (f->is_udp && level == IPPROTO_IP && name == IP_MTU_DISCOVER)
		return v == IP_PMTUDISC_INTERFACE || v == IP_PMTUDISC_OMIT;
	if (f->is_udp && level == IPPROTO_IPV6 && name == IPV6_MTU_DISCOVER)
		return v == IPV6_PMTUDISC_INTERFACE || v == IPV6_PMTUDISC_OMIT;
	/* with 0 no packet leaves this host; in a record 0 means the socket's value */
	if (level == IPPROTO_IPV6 && name == IPV6_UNICAST_HOPS && len >= sizeof(v) && v == 0)
		return true;
	return kind == SOCK_OPT_KERNELS && !has_it(kernel, level, name, value, len);
}
