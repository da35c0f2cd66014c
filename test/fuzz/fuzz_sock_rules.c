/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as rules for sockets. Input: eight bytes that make a socket, then a text as in
 * SANSOCK_RULES.
 *
 * Checked: what was taken can be written and is taken again as the same; what is refused is told
 * with a place; a verdict is one that its rules allow; a rule that is never reached is never the
 * one.
 */

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rules.h"
#include "san_assert.h"

#define HEAD 8

static struct sock_rules rules;

static void
verify_text(const struct sock_rule *rule)
{
	static struct sock_rules again;
	char text[SOCK_LINE_MAX], err[SOCK_ERR_MAX];
	struct sock_rule *other = &again.rules[0];

	san_rules_rule_text(rule, text, sizeof(text));
	SAN_VERIFY(strlen(text) < sizeof(text) - 1);
	if (strpbrk(text, ";\n") != NULL)
		return; /* of a file only */
	again.nb_rules = 0;
	SAN_VERIFY(san_rules_read_text(&again, text, err, sizeof(err)) == 0);
	SAN_VERIFY(again.nb_rules == 1 && other->line == 1);
	SAN_VERIFY(other->action == rule->action && other->proto == rule->proto);
	SAN_VERIFY(other->has_user == rule->has_user && other->user == rule->user);
	SAN_VERIFY(strcmp(other->program, rule->program) == 0);
	SAN_VERIFY(memcmp(&other->local, &rule->local, sizeof(rule->local)) == 0);
	/* a port range of 1 to 65535 and any differ, and stay different */
	SAN_VERIFY(memcmp(&other->remote, &rule->remote, sizeof(rule->remote)) == 0);
}

/* Addresses near those that the corpus has. */
static void
make_end(const uint8_t *head, struct sockaddr_storage *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	if ((head[0] & 1) != 0) {
		in->sin_family = AF_INET;
		in->sin_port = htons(head[1]);
		in->sin_addr.s_addr = (head[0] & 2) != 0 ? 0 : htonl(0x0a000000u | head[2]);
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(head[1]);
		in6->sin6_addr.s6_addr[0] = (head[0] & 2) != 0 ? 0 : 0xfd;
		in6->sin6_addr.s6_addr[15] = (head[0] & 2) != 0 ? 0 : head[2];
	}
}

static void
verify_match(const uint8_t *head)
{
	struct sockaddr_storage local, remote;
	const struct sock_query q = {
		.program = (head[6] & 1) != 0 ? "nginx" : "a",
		.uid = head[7] & 3,
		.proto = (head[6] & 2) != 0 ? IPPROTO_UDP : IPPROTO_TCP,
		.is_v6only = (head[6] & 4) != 0,
		.local = (head[6] & 8) != 0 ? NULL : (struct sockaddr *)&local,
		.remote = (head[6] & 16) != 0 ? NULL : (struct sockaddr *)&remote,
	};
	struct sock_verdict v;

	make_end(head, &local);
	make_end(head + 3, &remote);
	v = san_rules_match(&rules, &q);
	SAN_VERIFY((unsigned int)v.action < SOCK_ACTIONS);
	if (v.rule == NULL) {
		SAN_VERIFY(v.action == SOCK_KERNEL && v.rest == NULL && !v.is_part);
	} else {
		SAN_VERIFY(san_rules_shadow(&rules, v.rule) == NULL);
		SAN_VERIFY(v.is_part || v.action == v.rule->action);
	}
	SAN_VERIFY(v.rest == NULL || (v.is_part && v.rest > v.rule));
	SAN_VERIFY(v.rest == NULL || san_rules_shadow(&rules, v.rest) == NULL);
	/* it is the first one */
	for (const struct sock_rule *rule = rules.rules;
	     rule < &rules.rules[rules.nb_rules] && rule != v.rule; rule++)
		SAN_VERIFY(san_rules_rule_misses(rule, &q) != NULL || v.action == SOCK_DROP);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[SOCK_ERR_MAX] = "", *text;
	int rc;

	if (size < HEAD)
		return 0;
	text = malloc(size - HEAD + 1);
	SAN_VERIFY(text != NULL);
	memcpy(text, data + HEAD, size - HEAD);
	text[size - HEAD] = '\0';
	san_rules_read_init(&rules);
	rc = san_rules_read_text(&rules, text, err, sizeof(err));
	free(text);
	SAN_VERIFY(rules.nb_rules <= SOCK_RULES_MAX);
	SAN_VERIFY((rc == 0) == (err[0] == '\0'));
	SAN_VERIFY(rc == 0 || strncmp(err, SOCK_ENV_RULES ":", strlen(SOCK_ENV_RULES) + 1) == 0);
	for (uint32_t i = 0; i < rules.nb_rules; i++)
		verify_text(&rules.rules[i]);
	verify_match(data);
	return 0;
}
