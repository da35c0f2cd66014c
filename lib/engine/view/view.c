/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <string.h>

#include <rte_telemetry.h>

#include "view.h"

#define COLUMNS 96
#define NUMBER  21 /* characters of a number, with its end */

void
san_view_string(struct san_view *v, const char *name, const char *value)
{
	if (v->dict != NULL) {
		rte_tel_data_add_dict_string(v->dict, name, value);
		return;
	}
	if (v->column + strlen(name) + strlen(value) + 2 > COLUMNS)
		v->column = (uint32_t)fprintf(v->text, "\n    ") - 1;
	v->column += (uint32_t)fprintf(v->text, " %s=%s", name, value);
}

void
san_view_u64(struct san_view *v, const char *name, uint64_t value)
{
	char text[NUMBER];

	if (v->dict != NULL) {
		rte_tel_data_add_dict_u64(v->dict, name, value);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64, value);
	san_view_string(v, name, text);
}

static uint64_t
view_value_of(const void *p, uint16_t bytes)
{
	switch (bytes) {
	case sizeof(uint8_t):
		return *(const uint8_t *)p;
	case sizeof(uint16_t):
		return *(const uint16_t *)p;
	case sizeof(uint32_t):
		return *(const uint32_t *)p;
	default:
		return *(const uint64_t *)p;
	}
}

void
san_view_fields(struct san_view *v, const struct san_view_field *fields, size_t n,
		const void *object)
{
	size_t i;

	for (i = 0; i < n; i++)
		san_view_u64(v, fields[i].name,
			     view_value_of((const uint8_t *)object + fields[i].offset,
					   fields[i].bytes));
}
