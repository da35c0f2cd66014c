/* SPDX-License-Identifier: BSD-3-Clause */

#include <grp.h>
#include <string.h>

#include "conf.h"
#include "san_key.h"
#include "users.h"

/* Parse one word of a value. Returns NULL, or what is wrong. */
static const char *
partition_add_member(struct partition *p, const char *word)
{
	uint32_t *id = &p->members[p->nb_members].id;
	bool is_group = strncmp(word, "group:", 6) == 0;
	const struct group *gr;
	uint64_t gid = UINT32_MAX;

	if (strcmp(word, "all") == 0) {
		p->all = true;
		return NULL;
	}
	if (!is_group && strncmp(word, "user:", 5) != 0)
		return "neither user:NAME, group:NAME nor all";
	if (p->nb_members == PARTITION_MEMBERS)
		return "too many users and groups";
	if (!is_group && !san_users_find(word + 5, id))
		return "no such user";
	gr = is_group ? getgrnam(word + 6) : NULL;
	if (gr != NULL)
		*id = gr->gr_gid;
	else if (is_group && (!san_key_number(word + 6, &gid) || gid >= UINT32_MAX))
		return "no such group";
	else if (is_group)
		*id = (uint32_t)gid;
	p->members[p->nb_members++].is_group = is_group;
	return NULL;
}

int
san_partition_set(struct partitions *all, const char *name, const char *value, char *why,
		  size_t why_len)
{
	struct partition *p = &all->p[all->nb];
	char copy[256], *save = NULL, *word;
	const char *wrong = NULL;
	uint64_t pkey;
	uint32_t i;

	if (all->nb == PARTITIONS_MAX || strlen(value) >= sizeof(copy))
		return san_key_fail(why, why_len,
				    "%s: more than %d partitions, or a line that is too long", name,
				    PARTITIONS_MAX);
	if (!san_key_number(name, &pkey) || pkey == 0 || pkey > UINT16_MAX)
		return san_key_fail(why, why_len, "%s: a partition is a number, 1 to 0xffff", name);
	for (i = 0; i < all->nb; i++)
		if (all->p[i].pkey == pkey)
			wrong = "given twice";
	*p = (struct partition){.pkey = (uint16_t)pkey};
	strcpy(copy, value);
	for (word = strtok_r(copy, " \t,", &save); word != NULL && wrong == NULL;
	     word = strtok_r(NULL, " \t,", &save))
		wrong = partition_add_member(p, word);
	if (wrong != NULL)
		return san_key_fail(why, why_len, "%s = %s: %s", name, value, wrong);
	all->nb++;
	return 0;
}

bool
san_partition_may(const struct partitions *all, uint16_t pkey, const struct partition_user *user)
{
	const struct partition *p = NULL;
	uint32_t i, k;

	for (i = 0; i < all->nb; i++)
		if (all->p[i].pkey == pkey)
			p = &all->p[i];
	if (p == NULL)
		return all->nb == 0;
	for (i = 0; i < p->nb_members; i++) {
		if (!p->members[i].is_group && p->members[i].id == user->uid)
			return true;
		for (k = 0; p->members[i].is_group && k < user->nb_groups; k++)
			if (p->members[i].id == user->groups[k])
				return true;
	}
	return p->all;
}
