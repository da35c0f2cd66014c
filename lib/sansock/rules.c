/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Evaluates rules: which one matches a socket, which ones never can, and how one is written as
 * text. rules_read.c parses them. No function here calls one that may allocate or that the library
 * intercepts.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "rules.h"

/** How much of a socket's local address a rule covers. */
enum fit {
	FIT_NOT = 0,
	FIT_PART, /* the socket is bound to a wildcard, the rule covers some addresses */
	FIT_ALL,
};

const char *const rules_action_names[SOCK_ACTIONS] = {
	[SOCK_KERNEL] = "kernel",
	[SOCK_CARRY] = "carry",
	[SOCK_BOTH] = "both",
	[SOCK_DROP] = "drop",
};

/* ---- programs ---- */

/*
 * Whether *glob* matches *text*. fnmatch(3) is not used because it may allocate. *text* may be a
 * pattern itself: then the result is whether *glob* matches all that *text* matches. For that a ?
 * must not match a *, which program names do not contain.
 */
static bool
is_glob_of(const char *glob, const char *text)
{
	const char *star = NULL, *again = NULL;

	while (*text != '\0') {
		if (*glob == '*') {
			star = glob++;
			again = text;
		} else if (*glob == *text || (*glob == '?' && *text != '*')) {
			glob++;
			text++;
		} else if (star != NULL) { /* the last * takes one more character */
			glob = star + 1;
			text = ++again;
		} else {
			return false;
		}
	}
	return glob[strspn(glob, "*")] == '\0';
}

/* ---- addresses ---- */

/* One end of a socket. An IPv4-mapped IPv6 address is read as IPv4. */
struct end {
	uint16_t family, service;
	bool is_wildcard;
	uint8_t address[16];
};

static bool
read_end(const struct sockaddr *sa, struct end *end)
{
	static const uint8_t zeros[16];
	union {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
	const struct in6_addr *ip = &u.in6.sin6_addr;

	*end = (struct end){.family = AF_UNSPEC};
	if (sa == NULL || (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
		return false;
	/* a program's address need not be aligned */
	memcpy(&u, sa, sa->sa_family == AF_INET ? sizeof(u.in) : sizeof(u.in6));
	end->service = ntohs(u.in.sin_port); /* IPv6 has it at the same place */
	end->family = AF_INET;
	if (sa->sa_family == AF_INET) {
		memcpy(end->address, &u.in.sin_addr, sizeof(u.in.sin_addr));
	} else if (IN6_IS_ADDR_V4MAPPED(ip)) {
		memcpy(end->address, &ip->s6_addr[12], sizeof(u.in.sin_addr));
	} else {
		end->family = AF_INET6;
		memcpy(end->address, ip, sizeof(*ip));
	}
	end->is_wildcard = memcmp(end->address, zeros, sizeof(zeros)) == 0;
	return true;
}

bool
san_rules_is_prefix(const uint8_t *prefix, uint32_t bits, const uint8_t *address)
{
	uint32_t bytes = bits / 8, rest = bits % 8;

	return memcmp(prefix, address, bytes) == 0 &&
		(rest == 0 || ((prefix[bytes] ^ address[bytes]) >> (8 - rest)) == 0);
}

static bool
range_has_service(const struct sock_range *range, uint16_t service)
{
	return range->port_min <= service && service <= range->port_max;
}

static bool
range_has(const struct sock_range *range, const struct sockaddr *sa)
{
	struct end end;

	if (!range->is_set)
		return true;
	if (!read_end(sa, &end) || !range_has_service(range, end.service))
		return false;
	return range->family == AF_UNSPEC ||
		(range->family == end.family &&
		 san_rules_is_prefix(range->address, range->bits, end.address));
}

static enum fit
fit_local(const struct sock_range *range, const struct sock_query *q)
{
	struct end end;
	bool stands_for_both;

	if (!read_end(q->local, &end) || !end.is_wildcard || range->family == AF_UNSPEC)
		return range_has(range, q->local) ? FIT_ALL : FIT_NOT;
	stands_for_both = end.family == AF_INET6 && !q->is_v6only;
	if (!range_has_service(range, end.service) ||
	    (range->family != end.family && !stands_for_both))
		return FIT_NOT;
	return range->bits == 0 && !stands_for_both ? FIT_ALL : FIT_PART;
}

/* Whether *range* contains all of *inner*. */
static bool
range_covers(const struct sock_range *range, const struct sock_range *inner)
{
	if (!range->is_set)
		return true;
	if (!inner->is_set || inner->port_min < range->port_min ||
	    inner->port_max > range->port_max)
		return false;
	return range->family == AF_UNSPEC ||
		(range->family == inner->family && range->bits <= inner->bits &&
		 san_rules_is_prefix(range->address, range->bits, inner->address));
}

/* ---- matching ---- */

const char *
san_rules_rule_misses(const struct sock_rule *rule, const struct sock_query *q)
{
	if (rule->program[0] != '\0' &&
	    (q->program == NULL || !is_glob_of(rule->program, q->program)) &&
	    (q->called == NULL || !is_glob_of(rule->program, q->called)))
		return "program";
	if (rule->has_user && rule->user != q->uid)
		return "user";
	if (rule->proto != 0 && rule->proto != q->proto)
		return "proto";
	if (fit_local(&rule->local, q) == FIT_NOT)
		return "local";
	if (!range_has(&rule->remote, q->remote))
		return "remote";
	return NULL;
}

static enum fit
fit_rule(const struct sock_rule *rule, const struct sock_query *q)
{
	return san_rules_rule_misses(rule, q) == NULL ? fit_local(&rule->local, q) : FIT_NOT;
}

/* Whether earlier rules decide for all addresses that *rule* covers. */
static bool
is_decided(const struct sock_rules *rules, const struct sock_rule *rule, const struct sock_query *q)
{
	const struct sock_rule *r;

	for (r = rules->rules; r < rule; r++)
		if (fit_rule(r, q) != FIT_NOT && range_covers(&r->local, &rule->local))
			return true;
	return false;
}

/* The action for a socket bound to a wildcard, of whose addresses some have each of *parts*. */
static enum sock_action
rules_join_parts(const bool *parts)
{
	bool is_kernels = parts[SOCK_KERNEL] || parts[SOCK_BOTH];

	if (parts[SOCK_DROP]) /* a socket that is only carried gets nothing by the others */
		return parts[SOCK_CARRY] && !is_kernels ? SOCK_CARRY : SOCK_DROP;
	if (parts[SOCK_BOTH] || (parts[SOCK_CARRY] && is_kernels))
		return SOCK_BOTH;
	return parts[SOCK_CARRY] ? SOCK_CARRY : SOCK_KERNEL;
}

struct sock_verdict
san_rules_match(const struct sock_rules *rules, const struct sock_query *q)
{
	struct sock_verdict v = {.action = SOCK_KERNEL};
	bool parts[SOCK_ACTIONS] = {false};
	const struct sock_rule *rule, *end = &rules->rules[rules->nb_rules];
	enum fit fit = FIT_NOT;

	for (rule = rules->rules; rule < end; rule++) {
		fit = fit_rule(rule, q);
		if (fit == FIT_ALL)
			break;
		if (fit == FIT_NOT || is_decided(rules, rule, q))
			continue;
		if (rule->action == SOCK_DROP)
			return (struct sock_verdict){SOCK_DROP, rule, .is_part = true};
		if (v.rule == NULL)
			v.rule = rule;
		parts[rule->action] = true;
	}
	v.is_part = v.rule != NULL;
	if (rule < end && v.is_part)
		v.rest = rule;
	else if (rule < end)
		v.rule = rule;
	parts[rule < end ? rule->action : SOCK_KERNEL] = true;
	v.action = rules_join_parts(parts);
	return v;
}

const struct sock_rule *
san_rules_shadow(const struct sock_rules *rules, const struct sock_rule *rule)
{
	const struct sock_rule *r;

	for (r = rules->rules; r < rule; r++) {
		if (r->program[0] != '\0' &&
		    (rule->program[0] == '\0' || !is_glob_of(r->program, rule->program)))
			continue;
		if (r->has_user && (!rule->has_user || r->user != rule->user))
			continue;
		if (r->proto != 0 && r->proto != rule->proto)
			continue;
		if (range_covers(&r->local, &rule->local) &&
		    range_covers(&r->remote, &rule->remote))
			return r;
	}
	return NULL;
}

/* ---- as text ---- */

void
san_rules_place(const struct sock_rules *rules, const struct sock_rule *rule, char *text,
		size_t len)
{
	snprintf(text, len, "%s:%u", rule->is_from_env ? SOCK_ENV_RULES : rules->file, rule->line);
}

/* Text of a condition, such as " local [fd00::]/8:1-9"; "" if there is none. */
static const char *
range_text(const char *name, const struct sock_range *range, char *text, size_t len)
{
	char address[INET6_ADDRSTRLEN] = "*", bits[8] = "", ports[16] = "";
	bool is_v6 = range->family == AF_INET6;

	text[0] = '\0';
	if (!range->is_set)
		return text;
	if (range->family != AF_UNSPEC) {
		inet_ntop(range->family, range->address, address, sizeof(address));
		snprintf(bits, sizeof(bits), "/%u", range->bits);
	}
	if (range->port_min != 0 && range->port_max == range->port_min)
		snprintf(ports, sizeof(ports), ":%u", range->port_min);
	else if (range->port_min != 0)
		snprintf(ports, sizeof(ports), ":%u-%u", range->port_min, range->port_max);
	snprintf(text, len, " %s %s%s%s%s%s", name, is_v6 ? "[" : "", address, is_v6 ? "]" : "",
		 bits, ports);
	return text;
}

void
san_rules_rule_text(const struct sock_rule *rule, char *text, size_t len)
{
	char user[24] = "", local[96], remote[96];

	if (rule->has_user)
		snprintf(user, sizeof(user), " user %u", rule->user);
	snprintf(text, len, "%s%s%s%s%s%s%s", rules_action_names[rule->action],
		 rule->program[0] != '\0' ? " program " : "", rule->program, user,
		 rule->proto == 0                   ? "" :
			 rule->proto == IPPROTO_UDP ? " proto udp" :
						      " proto tcp",
		 range_text("local", &rule->local, local, sizeof(local)),
		 range_text("remote", &rule->remote, remote, sizeof(remote)));
}
