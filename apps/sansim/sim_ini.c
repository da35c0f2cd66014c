/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_ini.h"

/* A line without comment and white space. */
struct trimmed {
	const char *text;
	size_t len;
};

static struct trimmed
trim(const char *line)
{
	struct trimmed t = {.text = line + strspn(line, " \t")};

	t.len = strcspn(t.text, "#\r\n");
	while (t.len > 0 && (t.text[t.len - 1] == ' ' || t.text[t.len - 1] == '\t'))
		t.len--;
	return t;
}

/* NULL: nothing. */
static const char *
what_is_wrong(const struct trimmed *t, bool *inside)
{
	const char *equals;

	if (t->len == 0)
		return NULL;
	if (t->text[0] == '[') {
		*inside = true;
		return t->len > 2 && t->text[t->len - 1] == ']' ? NULL : "is not [section]";
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
		struct trimmed t = trim(line);

		n++;
		if (strlen(line) != (size_t)len) {
			wrong = "not a text";
			snprintf(err, err_len, "%s:%u: %s", path, n, wrong);
		} else if (len >= SIM_INI_LINE) {
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

int
sim_ini_check(const char *path, char *err, size_t err_len)
{
	FILE *f = fopen(path, "r");
	int rc = 0;

	if (f != NULL)
		rc = check_lines(f, path, err, err_len);
	if (f == NULL || ferror(f)) { /* a directory can be opened, but not read */
		rc = -errno;
		snprintf(err, err_len, "%s: %s", path, strerror(errno));
	}
	if (f != NULL)
		fclose(f);
	return rc;
}

unsigned int
sim_ini_line(const char *path, const char *section, const char *key, int skip)
{
	char line[SIM_INI_LINE + 1];
	size_t len = key == NULL ? 0 : strlen(key);
	bool inside = false, found = false;
	unsigned int n = 0;
	FILE *f = fopen(path, "r");

	if (f == NULL)
		return 0;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		struct trimmed t = trim(line);

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
