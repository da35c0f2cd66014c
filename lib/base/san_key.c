/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "san_key.h"

#define DIM(table) (sizeof(table) / sizeof((table)[0]))
#define DIGITS     1000000000 /* behind a point */
#define PARTS      1000000    /* digits behind the point that are written */
#define SHOWN      100        /* characters of a wrong value in a message */

static const struct unit {
	enum san_key_type type;
	const char *name;
	uint64_t factor;
} units[] = {
	{SAN_KEY_NUMBER, "K", 1 << 10},
	{SAN_KEY_NUMBER, "M", 1 << 20},
	{SAN_KEY_NUMBER, "G", 1 << 30},
	{SAN_KEY_TIME, "ns", 1},
	{SAN_KEY_TIME, "us", 1000},
	{SAN_KEY_TIME, "ms", 1000000},
	{SAN_KEY_TIME, "s", 1000000000},
	{SAN_KEY_SIZE, "K", 1 << 10},
	{SAN_KEY_SIZE, "M", 1 << 20},
	{SAN_KEY_SIZE, "G", 1 << 30},
	{SAN_KEY_SIZE, "B", 1},
	{SAN_KEY_SIZE, "KiB", 1 << 10},
	{SAN_KEY_SIZE, "MiB", 1 << 20},
	{SAN_KEY_SIZE, "GiB", 1 << 30},
	{SAN_KEY_RATE, "Mb/s", 1},
	{SAN_KEY_RATE, "Gb/s", 1000},
};

/* An even place is off. */
static const char *const bools[] = {"off", "on", "no", "yes", "0", "1"};

/* The unit behind the name of a time: "us" of rto_us; "": none. */
static const char *
key_unit(const char *name)
{
	size_t len = strlen(name);
	const char *unit = len > 3 ? &name[len - 2] : "";

	if ((strcmp(unit, "us") == 0 || strcmp(unit, "ms") == 0) && strchr("_-", unit[-1]) != NULL)
		return unit;
	return "";
}

const struct san_key *
san_key_find(const struct san_key *keys, const char *section, const char *name)
{
	const struct san_key *k;
	size_t len;

	for (k = keys; k->name != NULL; k++) {
		if (section != NULL && strcmp(k->section, section) != 0)
			continue;
		if (strcmp(k->name, name) == 0 || (k->old != NULL && strcmp(k->old, name) == 0))
			return k;
		len = strlen(k->name);
		if (k->type == SAN_KEY_TIME && strncmp(k->name, name, len) == 0 &&
		    name[len] != '\0' && &name[len + 1] == key_unit(name))
			return k;
	}
	return NULL;
}

/* ---- writing ---- */

/* Use the largest unit that is exact. */
static void
key_write(const struct san_key *k, uint64_t v, char *buf, size_t len)
{
	const struct unit *best = NULL;
	size_t i;

	if (k->type == SAN_KEY_PART) {
		v = (uint64_t)((unsigned __int128)v * PARTS / k->one);
		i = (size_t)snprintf(buf, len, "%" PRIu64 ".%06d", v / PARTS, (int)(v % PARTS));
		while (buf[i - 1] == '0')
			buf[--i] = '\0';
		if (buf[i - 1] == '.')
			buf[i - 1] = '\0';
		return;
	}
	for (i = 0; i < DIM(units) && v != 0; i++)
		if (units[i].type == k->type && v * k->per % units[i].factor == 0)
			best = &units[i];
	if (k->type == SAN_KEY_NUMBER)
		snprintf(buf, len, "%" PRIu64, v / k->one);
	else if (best == NULL)
		snprintf(buf, len, "%" PRIu64, v);
	else
		snprintf(buf, len, "%" PRIu64 "%s", v * k->per / best->factor, best->name);
}

bool
san_key_value(const struct san_key *k, const void *base, char *buf, size_t len)
{
	const char *field = (const char *)base + k->offset;
	uint64_t v = 0;

	buf[0] = '\0';
	if (k->type == SAN_KEY_STRING || k->type == SAN_KEY_OWN) {
		snprintf(buf, len, "%s", k->size != 0 ? field : "");
		return buf[0] != '\0';
	}
	memcpy(&v, field, k->size);
	if (v < k->min || v > k->max)
		return false;
	if (k->type == SAN_KEY_WORD)
		snprintf(buf, len, "%s", k->words[v]);
	else if (k->type == SAN_KEY_BOOL)
		snprintf(buf, len, "%s", bools[v != 0]);
	else
		key_write(k, v, buf, len);
	return true;
}

void
san_key_valid(const struct san_key *k, char *buf, size_t len)
{
	char min[32], max[32];
	uint64_t i;
	size_t n = 0;

	if (k->type == SAN_KEY_OWN) {
		snprintf(buf, len, "%s", k->form);
	} else if (k->type == SAN_KEY_STRING) {
		snprintf(buf, len, "1 to %zu characters", k->size - 1);
	} else if (k->type == SAN_KEY_BOOL) {
		snprintf(buf, len, "on or off");
	} else if (k->type == SAN_KEY_WORD) {
		for (i = k->min; i <= k->max && n < len; i++)
			n += (size_t)snprintf(buf + n, len - n, "%s%s",
					      i == k->min         ? "" :
						      i == k->max ? " or " :
								    ", ",
					      k->words[i]);
	} else {
		key_write(k, k->min, min, sizeof(min));
		key_write(k, k->max, max, sizeof(max));
		snprintf(buf, len, k->max == UINT64_MAX ? "%s or more" : "%s to %s", min, max);
	}
}

/* ---- reading ---- */

/* A text without a unit counts *one* each; *mul* / *div* is the field for 1 of the unit. */
static bool
key_factor(const struct san_key *k, const char *unit, uint64_t *mul, uint64_t *div)
{
	/* 64k is as usual as 64K */
	int (*compare)(const char *, const char *) =
		k->type == SAN_KEY_NUMBER || k->type == SAN_KEY_SIZE ? strcasecmp : strcmp;
	size_t i;

	*mul = k->one;
	*div = k->type == SAN_KEY_PART && unit[0] == '%' ? 100 : 1;
	if (unit[0] == '\0' || (*div == 100 && unit[1] == '\0'))
		return k->one != 0;
	for (i = 0; i < DIM(units); i++) {
		if (units[i].type != k->type || compare(units[i].name, unit) != 0)
			continue;
		*mul = units[i].factor * (k->type == SAN_KEY_NUMBER ? k->one : 1);
		*div = k->per;
		return true;
	}
	return false;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits and their point: *whole* + *part* / *scale*. Returns their end, or NULL. */
static const char *
key_digits(const struct san_key *k, const char *text, uint64_t *whole, uint64_t *part,
	   uint64_t *scale)
{
	bool is_hex = text[0] == '0' && (text[1] | 0x20) == 'x';
	bool has_point = k->type != SAN_KEY_NUMBER;
	char *end = (char *)(uintptr_t)text;

	*whole = *part = 0;
	*scale = 1;
	errno = 0;
	if (is_digit(text[0])) /* no sign, no blank */
		*whole = strtoull(text, &end, is_hex ? 16 : 10);
	else if (!has_point || text[0] != '.' || !is_digit(text[1]))
		return NULL;
	/* 010 is octal for some programs and ten for others */
	if (errno != 0 || (text[0] == '0' && is_digit(text[1])))
		return NULL;
	if (*end != '.' || !has_point)
		return end;
	for (end++; is_digit(*end) && *scale < DIGITS; end++, *scale *= 10)
		*part = *part * 10 + (uint64_t)(*end - '0');
	return end + strspn(end, k->type == SAN_KEY_PART ? "0123456789" : "0");
}

/* "1e-3": the text behind the exponent, which divides by 10 so often. */
static const char *
key_exponent(const struct san_key *k, const char *text, uint64_t *by)
{
	*by = 1;
	if (k->type != SAN_KEY_PART || (*text | 0x20) != 'e' || text[1] != '-' ||
	    !is_digit(text[2]) || is_digit(text[3]))
		return text;
	for (char n = text[2]; n > '0'; n--)
		*by *= 10;
	return text + 3;
}

/* 0; -EINVAL; -EDOM: a fraction of 1 of the field. Only a SAN_KEY_PART is rounded. */
static int
key_quantity(const struct san_key *k, const char *name, const char *text, uint64_t *out)
{
	uint64_t whole, part, scale, mul, div, by;
	unsigned __int128 v, one;
	const char *end = key_digits(k, text, &whole, &part, &scale);

	if (end == NULL)
		return -EINVAL;
	end = key_exponent(k, end, &by);
	if (end[strspn(end, " ")] != '\0') /* a blank before the unit, but none at the end */
		end += strspn(end, " ");
	if (*end == '\0' && k->type == SAN_KEY_TIME)
		end = key_unit(name);
	*out = 0;
	if (whole == 0 && part == 0 && *end == '\0')
		return 0; /* 0 of any unit */
	if (!key_factor(k, end, &mul, &div))
		return -EINVAL;
	v = ((unsigned __int128)whole * scale + part) * mul;
	one = (unsigned __int128)scale * div * by;
	if (k->type != SAN_KEY_PART && v % one != 0)
		return -EDOM;
	*out = (uint64_t)(v / one);
	/* a small value must not round to 0, which often means "default" */
	return v / one <= UINT64_MAX && (v < one) == (whole == 0 && part == 0) ? 0 : -EINVAL;
}

static int
key_word(const char *const *words, uint64_t min, uint64_t max, const char *text, uint64_t *out)
{
	for (*out = min; *out <= max; (*out)++)
		if (strcmp(words[*out], text) == 0)
			return 0;
	return -EINVAL;
}

bool
san_key_number(const char *text, uint64_t *out)
{
	static const struct san_key number = {.type = SAN_KEY_NUMBER, .one = 1, .per = 1};

	return key_quantity(&number, "", text, out) == 0;
}

static int
key_string(const struct san_key *k, void *base, const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len >= k->size)
		return -EINVAL;
	memset((char *)base + k->offset, 0, k->size); /* a caller may compare the field */
	memcpy((char *)base + k->offset, text, len);
	return 0;
}

static int
key_integer(const struct san_key *k, void *base, const char *name, const char *text)
{
	uint64_t v;
	int rc;

	if (k->type == SAN_KEY_WORD)
		rc = key_word(k->words, k->min, k->max, text, &v);
	else if (k->type == SAN_KEY_BOOL)
		rc = key_word(bools, 0, DIM(bools) - 1, text, &v);
	else
		rc = key_quantity(k, name, text, &v);
	if (rc != 0)
		return rc;
	if (k->type == SAN_KEY_BOOL)
		v = v % 2 * k->one;
	else if (v < k->min || v > k->max)
		return -EINVAL;
	memcpy((char *)base + k->offset, &v, k->size); /* little-endian, like DPDK's processors */
	return 0;
}

int
san_key_fail(char *err, size_t err_len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, err_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int
san_key_set(const struct san_key *k, void *base, const char *name, const char *text, char *err,
	    size_t err_len)
{
	char buf[SAN_KEY_TEXT], one[32];
	const char *valid = buf;
	int rc, n;

	if (k->set_list != NULL) {
		n = snprintf(err, err_len, "%s: ", name);
		return k->set_list((char *)base + k->offset, text, err + n, err_len - (size_t)n);
	}
	if (k->type == SAN_KEY_OWN) {
		valid = k->set(base, text);
		rc = valid == NULL ? 0 : -EINVAL;
	} else {
		rc = k->type == SAN_KEY_STRING ? key_string(k, base, text) :
						 key_integer(k, base, name, text);
	}
	if (rc == 0)
		return 0;
	if (rc == -EDOM) {
		key_write(k, 1, one, sizeof(one));
		snprintf(buf, sizeof(buf), "a multiple of %s", one);
	} else if (valid == buf) {
		san_key_valid(k, buf, sizeof(buf));
	}
	return san_key_fail(err, err_len, "%s: \"%.*s\" is not %s", name, SHOWN, text, valid);
}
