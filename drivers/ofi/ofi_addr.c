/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses: libfabric has sockaddrs, rtsan.h has text and a service. */

#include <arpa/inet.h>
#include <netdb.h>

#include "ofi_priv.h"

size_t
san_ofi_addr_len(const union ofi_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

/* IPv4 and IPv6 have the port at the same offset. */
uint16_t
san_ofi_addr_port(const union ofi_addr *a)
{
	return ntohs(a->in.sin_port);
}

void
san_ofi_addr_set_port(union ofi_addr *a, uint16_t port)
{
	a->in.sin_port = htons(port);
}

uint64_t
san_ofi_addr_token(const union ofi_addr *a)
{
	uint64_t token = (uint64_t)a->in6.sin6_flowinfo << 32 | a->in6.sin6_scope_id;

	if (a->sa.sa_family != AF_INET6)
		memcpy(&token, a->in.sin_zero, sizeof(token));
	else if (a->in6.sin6_flowinfo == 0) /* an address on a link has a scope, but no flow */
		token = 0;
	return token;
}

void
san_ofi_addr_set_token(union ofi_addr *a, uint64_t token)
{
	if (a->sa.sa_family == AF_INET6) {
		a->in6.sin6_flowinfo = (uint32_t)(token >> 32);
		a->in6.sin6_scope_id = (uint32_t)token;
	} else {
		memcpy(a->in.sin_zero, &token, sizeof(token));
	}
}

bool
san_ofi_addr_is_any(const union ofi_addr *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
	return a->in.sin_addr.s_addr == INADDR_ANY;
}

bool
san_ofi_addr_is_same_ip(const union ofi_addr *a, const union ofi_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
	return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

int
san_ofi_addr_read(union ofi_addr *to, const void *from, size_t len)
{
	sa_family_t family;

	if (from == NULL || len < sizeof(struct sockaddr_in))
		return -FI_EINVAL;
	memcpy(&family, from, sizeof(family));
	if (family != AF_INET && (family != AF_INET6 || len < sizeof(to->in6)))
		return -FI_EINVAL;
	memset(to, 0, sizeof(*to));
	memcpy(to, from, family == AF_INET6 ? sizeof(to->in6) : sizeof(to->in));
	return 0;
}

int
san_ofi_addr_parse(union ofi_addr *to, const char *text, uint16_t port)
{
	memset(to, 0, sizeof(*to));
	if (inet_pton(AF_INET, text, &to->in.sin_addr) == 1)
		to->sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &to->in6.sin6_addr) == 1)
		to->sa.sa_family = AF_INET6;
	else
		return -FI_EINVAL;
	san_ofi_addr_set_port(to, port);
	return 0;
}

void
san_ofi_addr_text(const union ofi_addr *a, char text[RTSAN_ADDRESS_MAX])
{
	bool v6 = a->sa.sa_family == AF_INET6;

	inet_ntop(a->sa.sa_family, v6 ? (const void *)&a->in6.sin6_addr : &a->in.sin_addr, text,
		  RTSAN_ADDRESS_MAX);
}

int
san_ofi_addr_copy(const union ofi_addr *a, void *to, size_t *len)
{
	size_t need = san_ofi_addr_len(a), room = *len;

	memcpy(to, a, room < need ? room : need);
	*len = need;
	return room < need ? -FI_ETOOSMALL : 0;
}

int
san_ofi_addr_resolve(union ofi_addr *to, const char *node, const char *service, bool numeric,
		     int family)
{
	const struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = (numeric ? AI_NUMERICHOST : 0) | (node == NULL ? AI_PASSIVE : 0),
	};
	struct addrinfo *found;
	int rc = getaddrinfo(node, service, &hints, &found);

	if (rc != 0) {
		OFI_INFO(FI_LOG_CORE, "%s:%s: %s\n", node != NULL ? node : "",
			 service != NULL ? service : "", gai_strerror(rc));
		return -FI_ENODATA;
	}
	rc = san_ofi_addr_read(to, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return rc == 0 ? 0 : -FI_ENODATA;
}
