/* SPDX-License-Identifier: BSD-3-Clause */

/* Conversion of addresses from and to text. (RT-31) */

#include <arpa/inet.h>

#include "inet_priv.h"

/** Parse digits only; the value is at most *max*. */
static int
parse_prefix(const char *text, unsigned int max, unsigned int *out)
{
	size_t len = strspn(text, "0123456789");

	if (len == 0 || len > 3 || text[len] != '\0')
		return -EINVAL;
	*out = (unsigned int)strtoul(text, NULL, 10);
	return *out <= max ? 0 : -EINVAL;
}

int
san_inet_addr_parse(const char *text, struct san_inet_addr *out)
{
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	char host[INET6_ADDRSTRLEN];
	unsigned int bits, prefix;
	struct in_addr v4;
	struct san_ip ip;

	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, &v4) == 1) {
		san_wire_ip_from_v4(&ip, &v4);
		bits = 32;
	} else if (inet_pton(AF_INET6, host, ip.b) == 1 && !san_wire_ip_is_v4(&ip)) {
		/* A v4-mapped address is refused: its prefix length would be ambiguous. */
		bits = 128;
	} else {
		return -EINVAL;
	}
	prefix = bits;
	if (slash != NULL && parse_prefix(slash + 1, bits, &prefix) != 0)
		return -EINVAL;
	out->ip = ip;
	out->prefix_len = (uint8_t)(128 - bits + prefix);
	return 0;
}

int
san_inet_addr_parse_own(const char *text, struct san_inet_addr *out)
{
	uint32_t host, last;
	bool is_v4;

	if (strchr(text, '/') == NULL || san_inet_addr_parse(text, out) != 0 ||
	    !san_inet_is_unicast(&out->ip))
		return -EINVAL;
	is_v4 = san_wire_ip_is_v4(&out->ip);
	if (out->prefix_len == (is_v4 ? 96 : 0))
		return -EINVAL;
	if (!is_v4 || out->prefix_len > 126) /* a link of two has no broadcast address (RFC 3021) */
		return 0;
	memcpy(&host, out->ip.b + INET_V4_OFF, sizeof(host));
	last = UINT32_MAX >> (out->prefix_len - 96);
	host = ntohl(host) & last;
	return host != 0 && host != last ? 0 : -EINVAL;
}

int
san_inet_addr_parse_route(const char *text, struct san_inet_route *out)
{
	const char *comma = strchr(text, ',');
	size_t len = comma != NULL ? (size_t)(comma - text) : 0;
	const char *gateway = comma != NULL ? comma + 1 : text;
	char prefix[INET6_ADDRSTRLEN + 4];
	struct san_inet_addr at;

	if (len >= sizeof(prefix) || strchr(gateway, '/') != NULL ||
	    san_inet_addr_parse(gateway, &at) != 0)
		return -EINVAL;
	out->gateway = at.ip;
	out->to = (struct san_inet_addr){.ip = at.ip,
					 .prefix_len = san_wire_ip_is_v4(&at.ip) ? 96 : 0};
	if (comma == NULL)
		return 0;
	memcpy(prefix, text, len);
	prefix[len] = '\0';
	if (san_inet_addr_parse(prefix, &out->to) != 0 ||
	    san_wire_ip_is_v4(&out->to.ip) != san_wire_ip_is_v4(&out->gateway))
		return -EINVAL;
	return 0;
}

const char *
san_inet_addr_text(const struct san_ip *ip, char buf[SAN_INET_TEXT])
{
	int family = san_wire_ip_is_v4(ip) ? AF_INET : AF_INET6;

	if (inet_ntop(family, san_inet_raw(ip), buf, SAN_INET_TEXT) == NULL)
		buf[0] = '\0';
	return buf;
}
