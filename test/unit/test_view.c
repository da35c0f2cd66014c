/* SPDX-License-Identifier: BSD-3-Clause */

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "view.h"

struct object {
	uint8_t one;
	uint16_t two;
	uint32_t four;
	uint64_t eight;
};

static const struct san_view_field fields[] = {
	SAN_VIEW_FIELD(struct object, "eight", eight),
	SAN_VIEW_FIELD(struct object, "four", four),
	SAN_VIEW_FIELD(struct object, "two", two),
	SAN_VIEW_FIELD(struct object, "one", one),
};

UNIT_CASE(san_view_fields__of_every_size)
{
	const struct object o = {UINT8_MAX, UINT16_MAX, UINT32_MAX, UINT64_MAX};
	struct san_view v = {0};
	char *text;
	size_t len;

	v.text = open_memstream(&text, &len);
	san_view_fields(&v, fields, RTE_DIM(fields), &o);
	fclose(v.text);
	assert_string_equal(text, " eight=18446744073709551615 four=4294967295 two=65535 one=255");
	free(text);
}

UNIT_CASE(san_view_string__breaks_lines)
{
	struct san_view v = {0};
	char *text, *line, *rest;
	uint32_t i, nb = 0;
	size_t len;

	v.text = open_memstream(&text, &len);
	for (i = 0; i < 40; i++)
		san_view_string(&v, "name", "value");
	fclose(v.text);
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		assert_true(strlen(line) <= 96);
		for (; (line = strstr(line, " name=value")) != NULL; line++)
			nb++;
	}
	assert_int_equal(nb, 40);
	free(text);
}
