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

void
san_view_hex(struct san_view *v, const char *name, int digits, uint64_t value)
{
	char text[NUMBER];

	snprintf(text, sizeof(text), "0x%0*" PRIx64, digits, value);
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
		if (fields[i].bytes != 0)
			san_view_u64(v, fields[i].name,
				     view_value_of((const uint8_t *)object + fields[i].offset,
						   fields[i].bytes));
}

int
san_view_explain(struct rte_tel_data *d, const struct san_view_set *set)
{
	static const char *const kinds[] = {
		[SAN_VIEW_COUNTER] = "counter",
		[SAN_VIEW_GAUGE] = "gauge",
		[SAN_VIEW_MARK] = "gauge",
		[SAN_VIEW_INFO] = "info",
		[SAN_VIEW_HISTOGRAM] = "histogram",
		[SAN_VIEW_GAUGEHISTOGRAM] = "gaugehistogram",
	};
	char text[RTE_TEL_MAX_STRING_LEN];
	uint32_t i;

	rte_tel_data_start_dict(d);
	for (i = 0; i < set->nb; i++) {
		const struct san_view_field *f = &set->fields[i];

		snprintf(text, sizeof(text), "%s%s%s: %s", kinds[f->kind],
			 f->unit[0] != '\0' ? " " : "", f->unit, f->help);
		rte_tel_data_add_dict_string(d, f->name, text);
	}
	return 0;
}
