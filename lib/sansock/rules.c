/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Evaluates rules: which one matches a socket, which ones never can, and how one is written as
 * text. rules_read.c parses them. No function here calls one that may allocate or that the library
 * intercepts.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rules.h"

#define MAPPED_BYTES 12 /* bytes of ::ffff:10.0.0.1 before the IPv4 address */

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
	static const uint8_t mapped[MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};
	static const uint8_t zeros[16];
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	*end = (struct end){.family = AF_UNSPEC};
	if (sa == NULL)
		return false;
	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in)); /* a program's address need not be aligned */
		end->service = ntohs(in.sin_port);
		memcpy(end->address, &in.sin_addr, sizeof(in.sin_addr));
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		end->service = ntohs(in6.sin6_port);
		memcpy(end->address, &in6.sin6_addr, sizeof(in6.sin6_addr));
	} else {
		return false;
	}
	end->family = sa->sa_family;
	if (end->family == AF_INET6 && memcmp(end->address, mapped, sizeof(mapped)) == 0) {
		end->family = AF_INET;
		memmove(end->address, end->address + MAPPED_BYTES, 4);
		memset(end->address + 4, 0, MAPPED_BYTES);
	}
	end->is_wildcard = memcmp(end->address, zeros, sizeof(zeros)) == 0;
	return true;
}

static bool
is_prefix_of(const struct sock_range *range, const uint8_t *address)
{
	uint32_t bytes = range->bits / 8, rest = range->bits % 8;

	return memcmp(range->address, address, bytes) == 0 &&
		(rest == 0 || ((range->address[bytes] ^ address[bytes]) >> (8 - rest)) == 0);
}

static bool
range_has_service(const struct sock_range *range, uint16_t service)
{
	return range->port_min <= service && service <= range->port_max;
}

static enum fit
fit_remote(const struct sock_range *range, const struct sockaddr *sa)
{
	struct end end;

	if (!range->is_set)
		return FIT_ALL;
	if (!read_end(sa, &end) || !range_has_service(range, end.service))
		return FIT_NOT;
	if (range->family == AF_UNSPEC)
		return FIT_ALL;
	return range->family == end.family && is_prefix_of(range, end.address) ? FIT_ALL : FIT_NOT;
}

static enum fit
fit_local(const struct sock_range *range, const struct sock_query *q)
{
	struct end end;
	bool stands_for_both;

	if (!read_end(q->local, &end) || !end.is_wildcard || range->family == AF_UNSPEC)
		return fit_remote(range, q->local);
	if (!range->is_set)
		return FIT_ALL;
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
		 is_prefix_of(range, inner->address));
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
	if (fit_remote(&rule->remote, q->remote) == FIT_NOT)
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
is_decided(const struct sock_rules *rules, const struct sock_rule *rule,
	   const struct sock_query *q)
{
	const struct sock_rule *r;

	for (r = rules->rules; r < rule; r++)
		if (fit_rule(r, q) != FIT_NOT && range_covers(&r->local, &rule->local))
			return true;
	return false;
}

/*
 * The action for a socket bound to a wildcard. Some of its addresses have the actions in *parts*,
 * all others have *rest*.
 */
static enum sock_action
rules_join_parts(const bool *parts, enum sock_action rest)
{
	bool is_carried = parts[SOCK_CARRY] || rest == SOCK_CARRY;
	bool is_kernels = parts[SOCK_KERNEL] || rest == SOCK_KERNEL;

	if (rest == SOCK_DROP) /* a socket that is only carried gets nothing by the others */
		return parts[SOCK_CARRY] && !parts[SOCK_KERNEL] && !parts[SOCK_BOTH] ? SOCK_CARRY :
										       SOCK_DROP;
	if (parts[SOCK_BOTH] || rest == SOCK_BOTH || (is_carried && is_kernels))
		return SOCK_BOTH;
	return is_carried ? SOCK_CARRY : SOCK_KERNEL;
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
	v.action = rules_join_parts(parts, rule < end ? rule->action : SOCK_KERNEL);
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

struct words {
	char *text;
	size_t len, room;
};

static void __attribute__((format(printf, 2, 3)))
rules_put_words(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->len, w->room - w->len, fmt, ap);
	va_end(ap);
	w->len += n < 0 ? 0 : (size_t)n;
	if (w->len >= w->room)
		w->len = w->room - 1;
}

static void
put_range(struct words *w, const char *name, const struct sock_range *range)
{
	char address[INET6_ADDRSTRLEN];

	if (!range->is_set)
		return;
	if (range->family == AF_UNSPEC) {
		rules_put_words(w, " %s *", name);
	} else {
		inet_ntop(range->family, range->address, address, sizeof(address));
		rules_put_words(w, range->family == AF_INET ? " %s %s/%u" : " %s [%s]/%u", name,
				address, range->bits);
	}
	if (range->port_min != 0)
		rules_put_words(w, ":%u", range->port_min);
	if (range->port_min != 0 && range->port_max != range->port_min)
		rules_put_words(w, "-%u", range->port_max);
}

void
san_rules_rule_text(const struct sock_rule *rule, char *text, size_t len)
{
	struct words w = {.text = text, .room = len};

	rules_put_words(&w, "%s", rules_action_names[rule->action]);
	if (rule->program[0] != '\0')
		rules_put_words(&w, " program %s", rule->program);
	if (rule->has_user)
		rules_put_words(&w, " user %u", rule->user);
	if (rule->proto != 0)
		rules_put_words(&w, " proto %s", rule->proto == IPPROTO_UDP ? "udp" : "tcp");
	put_range(&w, "local", &rule->local);
	put_range(&w, "remote", &rule->remote);
}
