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
	SAN_VIEW_FIELD(struct object, eight, eight, GAUGE, "", ""),
	SAN_VIEW_FIELD(struct object, four, four, GAUGE, "", ""),
	SAN_VIEW_FIELD(struct object, two, two, GAUGE, "", ""),
	SAN_VIEW_FIELD(struct object, one, one, GAUGE, "", ""),
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
	uint32_t nb = 0;
	size_t len;

	v.text = open_memstream(&text, &len);
	for (uint32_t i = 0; i < 40; i++)
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

/* SYS-1: each counter, gauge and reason has a name of its own, a unit and a sentence of help. */
UNIT_CASE(san_view_set__is_explained)
{
	const struct san_view_set *const sets[] = {
		&san_view_counters_set,
		&san_view_drops_set,
		&san_view_reasons_set,
		&san_view_port_set,
		&san_view_lcore_set,
		&san_view_stream_set,
		&san_view_conn_set,
		&san_view_conn_list_set,
	};

	for (size_t s = 0; s < RTE_DIM(sets); s++) {
		assert_true(sets[s]->nb > 0);
		for (uint32_t i = 0; i < sets[s]->nb; i++) {
			const struct san_view_field *f = &sets[s]->fields[i];

			assert_true(f->unit[0] != '\0' || f->kind == SAN_VIEW_INFO ||
				    strcmp(f->name, "level") == 0);
			assert_true(f->help[0] != '\0' && f->help[strlen(f->help) - 1] == '.');
			/* an answer of telemetry has room for it, with its kind */
			assert_true(strlen(f->unit) + strlen(f->help) < 100);
			for (uint32_t k = 0; k < i; k++)
				assert_string_not_equal(f->name, sets[s]->fields[k].name);
		}
	}
}
