/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>
#include <rte_common.h>

#include "ini.h"

#define WHY_MAX 320

/* A line without its comment and surrounding white space. */
struct trimmed {
	const char *text;
	size_t len;
};

static struct trimmed
ini_trim(const char *line)
{
	struct trimmed t = {.text = line + strspn(line, " \t")};

	t.len = strcspn(t.text, "#\r\n");
	while (t.len > 0 && (t.text[t.len - 1] == ' ' || t.text[t.len - 1] == '\t'))
		t.len--;
	return t;
}

/* Check a line. NULL: no error. */
static const char *
what_is_wrong(const struct trimmed *t, bool *inside)
{
	const char *equals;

	if (t->len == 0)
		return NULL;
	if (t->text[0] == '[') {
		*inside = true;
		if (t->len <= 2 || t->text[t->len - 1] != ']')
			return "is not [section]";
		return t->len - 2 < CFG_NAME_LEN ? NULL : "is too long a name";
	}
	if (!*inside)
		return "has no [section] before it";
	equals = memchr(t->text, '=', t->len);
	if (equals == NULL || equals == t->text || equals == &t->text[t->len - 1])
		return "is not key = value";
	return NULL;
}

static int
check_lines(FILE *f, const char *path, char *err, size_t err_len)
{
	const char *wrong = NULL;
	unsigned int n = 0;
	bool inside = false;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while (wrong == NULL && (len = getline(&line, &room, f)) > 0) {
		struct trimmed t = ini_trim(line);

		n++;
		if (strlen(line) != (size_t)len) {
			wrong = "not a text";
			snprintf(err, err_len, "%s:%u: %s", path, n, wrong);
		} else if (len >= INI_LINE) {
			wrong = "too long";
			snprintf(err, err_len, "%s:%u: line %s", path, n, wrong);
		} else if ((wrong = what_is_wrong(&t, &inside)) != NULL) {
			snprintf(err, err_len, "%s:%u: \"%.*s\" %s", path, n, (int)t.len, t.text,
				 wrong);
		}
	}
	free(line);
	return wrong == NULL ? 0 : -EINVAL;
}

static int
check_file(const char *path, char *err, size_t err_len)
{
	FILE *f = fopen(path, "r");
	int rc = 0;

	if (f != NULL)
		rc = check_lines(f, path, err, err_len);
	if (f == NULL || ferror(f)) { /* fopen() of a directory succeeds, but reading fails */
		rc = -errno;
		snprintf(err, err_len, "%s: %s", path, strerror(errno));
	}
	if (f != NULL)
		fclose(f);
	return rc;
}

static unsigned int
ini_line_of(const char *path, const char *section, const char *key, int skip)
{
	char line[INI_LINE + 1];
	size_t len = key == NULL ? 0 : strlen(key);
	bool inside = false, found = false;
	unsigned int n = 0;
	FILE *f = fopen(path, "r");

	if (f == NULL)
		return 0;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		struct trimmed t = ini_trim(line);

		n++;
		if (t.len > 0 && t.text[0] == '[') {
			inside = t.len == strlen(section) + 2 &&
				strncmp(&t.text[1], section, t.len - 2) == 0;
			found = inside && key == NULL;
		} else if (inside && key != NULL && t.len > len) {
			found = strncmp(t.text, key, len) == 0 &&
				strchr("= \t", t.text[len]) != NULL;
		}
		found = found && skip-- == 0;
	}
	fclose(f);
	return n;
}

static int
load_section(const struct ini *ini, struct rte_cfgfile *file, const char *section,
	     const char *path, char *err, size_t err_len)
{
	int i, n = rte_cfgfile_section_num_entries(file, section);
	struct rte_cfgfile_entry *e = calloc((size_t)RTE_MAX(n, 1), sizeof(*e));
	char why[WHY_MAX];
	int rc = 0;

	if (e == NULL)
		return -ENOMEM;
	rte_cfgfile_section_entries(file, section, e, n);
	rc = ini->enter(ini->arg, section, why, sizeof(why));
	if (rc != 0)
		snprintf(err, err_len, "%s:%u: %s", path, ini_line_of(path, section, NULL, 0),
			 why);
	for (i = 0; i < n && rc == 0; i++) {
		int k, before = 0;

		rc = ini->set(ini->arg, section, e[i].name, e[i].value, why, sizeof(why));
		for (k = 0; k < i; k++)
			before += strcmp(e[k].name, e[i].name) == 0;
		if (rc != 0)
			snprintf(err, err_len, "%s:%u: %s", path,
				 ini_line_of(path, section, e[i].name, before), why);
	}
	if (rc == 0 && ini->leave != NULL) {
		rc = ini->leave(ini->arg, section, why, sizeof(why));
		if (rc != 0)
			snprintf(err, err_len, "%s:%u: %s", path,
				 ini_line_of(path, section, NULL, 0), why);
	}
	free(e);
	return rc;
}

/* Refuse repeated sections: rte_cfgfile would return the keys of the first one for each. */
static int
check_twice(char *const *sections, int n, const char *path, char *err, size_t err_len)
{
	int i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < i; k++) {
			if (strcmp(sections[i], sections[k]) != 0)
				continue;
			snprintf(err, err_len, "%s:%u: [%s] is there already", path,
				 ini_line_of(path, sections[i], NULL, 1), sections[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int
load_sections(const struct ini *ini, struct rte_cfgfile *file, const char *path, char *err,
	      size_t err_len)
{
	int i, rc, n = rte_cfgfile_num_sections(file, NULL, 0);
	char(*names)[CFG_NAME_LEN] = calloc((size_t)RTE_MAX(n, 1), sizeof(*names));
	char **list = calloc((size_t)RTE_MAX(n, 1), sizeof(*list));

	if (names == NULL || list == NULL) {
		free(names);
		free(list);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		list[i] = names[i];
	rte_cfgfile_sections(file, list, n);
	rc = check_twice(list, n, path, err, err_len);
	for (i = 0; i < n && rc == 0; i++)
		rc = load_section(ini, file, list[i], path, err, err_len);
	free(names);
	free(list);
	return rc;
}

int
san_ini_load(const struct ini *ini, const char *path, char *err, size_t err_len)
{
	struct rte_cfgfile_parameters params = {.comment_character = '#'};
	struct rte_cfgfile *file;
	int rc = check_file(path, err, err_len);

	if (rc != 0)
		return rc;
	file = rte_cfgfile_load_with_params(path, 0, &params);
	if (file == NULL) {
		snprintf(err, err_len, "%s: not an INI file: [section], key = value, # comment",
			 path);
		return -EINVAL;
	}
	rc = load_sections(ini, file, path, err, err_len);
	rte_cfgfile_close(file);
	return rc;
}
