/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ini.h"

#define WHY_MAX   512
#define INI_LINES 100000 /* of a file: a device or a pipe may have no end */

struct reader {
	const struct ini *ini;
	unsigned int line, head; /* numbers of this line, and of that of the section */
	char section[INI_LINE];  /* empty: none yet */
	char *seen;              /* "[one][two]" */
	char why[WHY_MAX];
};

static int
ini_wrong(struct reader *rd, const char *text, const char *why)
{
	snprintf(rd->why, sizeof(rd->why), "\"%s\" %s", text, why);
	return -EINVAL;
}

static int
ini_leave(struct reader *rd)
{
	int rc = 0;

	if (rd->section[0] != '\0' && rd->ini->leave != NULL)
		rc = rd->ini->leave(rd->ini->arg, rd->section, rd->why, sizeof(rd->why));
	if (rc != 0)
		rd->line = rd->head;
	return rc;
}

static int
ini_enter(struct reader *rd, const char *text, size_t len)
{
	char *seen = NULL;
	int rc;

	if (len <= 2 || text[len - 1] != ']')
		return ini_wrong(rd, text, "is not [section]");
	if (rd->seen != NULL && strstr(rd->seen, text) != NULL) {
		snprintf(rd->why, sizeof(rd->why), "%s is there already", text);
		return -EINVAL;
	}
	rc = ini_leave(rd);
	if (rc != 0)
		return rc;
	if (asprintf(&seen, "%s%s", rd->seen != NULL ? rd->seen : "", text) < 0)
		return -ENOMEM;
	free(rd->seen);
	rd->seen = seen;
	rd->head = rd->line;
	snprintf(rd->section, sizeof(rd->section), "%.*s", (int)len - 2, text + 1);
	return rd->ini->enter(rd->ini->arg, rd->section, rd->why, sizeof(rd->why));
}

static size_t
ini_trim(const char *text, size_t len)
{
	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	return len;
}

static int
ini_read_line(struct reader *rd, char *line)
{
	char *text = line + strspn(line, " \t"), *value;
	size_t len = ini_trim(text, strcspn(text, "#\r\n")), key;

	text[len] = '\0';
	if (len == 0)
		return 0;
	if (text[0] == '[')
		return ini_enter(rd, text, len);
	if (rd->section[0] == '\0')
		return ini_wrong(rd, text, "has no [section] before it");
	value = strchr(text, '=');
	if (value == NULL || value == text || value[1] == '\0')
		return ini_wrong(rd, text, "is not key = value");
	key = ini_trim(text, (size_t)(value - text));
	value++;
	text[key] = '\0';
	return rd->ini->set(rd->ini->arg, rd->section, text, value + strspn(value, " \t"), rd->why,
			    sizeof(rd->why));
}

static int
ini_read(struct reader *rd, FILE *f)
{
	char line[INI_LINE];
	int rc = 0;

	while (rc == 0 && fgets(line, sizeof(line), f) != NULL) {
		if (rd->line++ < INI_LINES &&
		    (strchr(line, '\n') != NULL || (feof(f) && line[0] != '\0'))) {
			rc = ini_read_line(rd, line);
			continue;
		}
		snprintf(rd->why, sizeof(rd->why),
			 rd->line > INI_LINES                ? "too many lines" :
				 strlen(line) + 1 < INI_LINE ? "not a text" :
							       "line too long");
		rc = -EINVAL;
	}
	return rc != 0 || ferror(f) ? rc : ini_leave(rd);
}

int
san_ini_load(const struct ini *ini, const char *path, char *err, size_t err_len)
{
	struct reader rd = {.ini = ini};
	FILE *f = fopen(path, "r");
	int rc = 0;

	if (f != NULL)
		rc = ini_read(&rd, f);
	if (rc != 0) {
		snprintf(err, err_len, "%s:%u: %s", path, rd.line, rd.why);
	} else if (f == NULL || ferror(f)) { /* fopen() of a directory succeeds, reading fails */
		rc = -errno;
		snprintf(err, err_len, "%s: %s", path, strerror(errno));
	}
	if (f != NULL)
		fclose(f);
	free(rd.seen);
	return rc;
}

/* ---- writing ---- */

static void
ini_write_head(FILE *out, const struct san_key *keys, const struct san_key *k, const char *section)
{
	if (k == keys || strcmp(k->section, k[-1].section) != 0)
		fprintf(out, "%s[%s]\n", k == keys && section == NULL ? "" : "\n",
			section != NULL ? section : k->section);
}

void
san_ini_write(FILE *out, const struct san_key *keys, const void *base, const char *section)
{
	char value[SAN_KEY_TEXT];
	const struct san_key *k;

	for (k = keys; k->name != NULL; k++) {
		ini_write_head(out, keys, k, section);
		if (san_key_value(k, base, value, sizeof(value)))
			fprintf(out, "%s = %s\n", k->name, value);
	}
}

void
san_ini_explain(FILE *out, const struct san_key *keys, const void *base)
{
	char value[SAN_KEY_TEXT], valid[SAN_KEY_TEXT];
	const struct san_key *k;

	for (k = keys; k->name != NULL; k++) {
		ini_write_head(out, keys, k, NULL);
		san_key_value(k, base, value, sizeof(value));
		san_key_valid(k, valid, sizeof(valid));
		fprintf(out, "# %s (%s)\n# %s =%s%s\n", k->help, valid, k->name,
			value[0] != '\0' ? " " : "", value);
	}
}
