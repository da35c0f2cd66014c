/* SPDX-License-Identifier: BSD-3-Clause */

/* Telemetry commands for connections and captures. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "view_capture.h"
#include "view_conn.h"
#include "view_telemetry.h"

#define PAGE 32 /* connections in an answer: some 300 bytes each, of 16 KiB */

const char *
san_view_telemetry_conn_number(const char *text, uint32_t max, uint32_t *out)
{
	unsigned long v;
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return NULL;
	errno = 0;
	v = strtoul(text, &end, 0);
	if (errno != 0 || v > max || (*end != ',' && *end != '\0'))
		return NULL;
	*out = (uint32_t)v;
	return *end == ',' ? end + 1 : end;
}

/* ---- a list ---- */

static int
add_page(struct rte_tel_data *d, const struct san_view_conn *rows, uint32_t n)
{
	struct rte_tel_data *one;
	char name[16];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		one = rte_tel_data_alloc();
		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_start_dict(one);
		san_view_conn_brief(&(struct san_view){.dict = one}, &rows[i]);
		snprintf(name, sizeof(name), "0x%06x", rows[i].cid);
		rc = rte_tel_data_add_dict_container(d, name, one, 0);
	}
	return rc;
}

int
san_view_telemetry_conn_list(struct san_engine_port *p, struct rte_tel_data *d,
			     const char *params)
{
	struct san_view_conn rows[PAGE];
	uint32_t from = 0, app = VIEW_APP_ANY, n, next;
	const char *rest = params;

	if (rest != NULL && rest[0] != '\0') {
		rest = san_view_telemetry_conn_number(rest, UINT32_MAX, &from);
		if (rest != NULL && rest[0] != '\0')
			rest = san_view_telemetry_conn_number(rest, SAN_ENGINE_APPS - 1, &app);
		if (rest == NULL || rest[0] != '\0')
			return san_view_telemetry_error(d,
							"conn_list: parameters are OFFSET, APP");
	}
	n = san_view_conn_all(p, from, (uint16_t)app, rows, PAGE, &next);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "next", next);
	return add_page(d, rows, n);
}

/* ---- one ---- */

int
san_view_telemetry_conn_one(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	struct san_view_conn c;
	const char *rest;
	uint32_t cid;

	if (params == NULL || params[0] == '\0')
		return san_view_telemetry_conn_list(p, d, params);
	rest = san_view_telemetry_conn_number(params, 0xffffff, &cid);
	if (rest == NULL || rest[0] != '\0')
		return san_view_telemetry_error(d, "conn: the parameter is a CID");
	if (san_view_conn_one(p, cid, &c) != 0)
		return san_view_telemetry_error(d, "there is no connection with this CID");
	rte_tel_data_start_dict(d);
	san_view_conn_full(&(struct san_view){.dict = d}, &c);
	return 0;
}

/* ---- sums ---- */

int
san_view_telemetry_conn_reasons(struct san_engine_port *p, struct rte_tel_data *d,
				const char *params)
{
	struct san_view_census census;
	uint8_t i;

	(void)params;
	san_view_conn_count(p, &census);
	rte_tel_data_start_dict(d);
	for (i = 0; i <= SAN_HOLD_MAX; i++)
		rte_tel_data_add_dict_u64(d, san_hold_name(i), census.holds[i]);
	return 0;
}

static int
add_hist(struct rte_tel_data *d, const char *name, const uint64_t hist[ENGINE_HIST])
{
	struct rte_tel_data *array = rte_tel_data_alloc();
	uint32_t i;

	if (array == NULL)
		return -ENOMEM;
	rte_tel_data_start_array(array, RTE_TEL_U64_VAL);
	for (i = 0; i < ENGINE_HIST; i++)
		rte_tel_data_add_array_u64(array, hist[i]);
	return rte_tel_data_add_dict_container(d, name, array, 0);
}

struct rounds {
	uint64_t hist[ENGINE_HIST], busy_ns;
};

static int
do_rounds(struct san_engine *e, void *arg)
{
	struct rounds *sum = arg;
	uint32_t i;

	for (i = 0; i < ENGINE_HIST; i++)
		sum->hist[i] += e->busy.rounds[i];
	sum->busy_ns += e->busy.busy_ns;
	return 0;
}

int
san_view_telemetry_conn_hist(struct san_engine_port *p, struct rte_tel_data *d,
			     const char *params)
{
	struct san_view_census census;
	struct rounds rounds = {0};
	uint32_t i;

	(void)params;
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_read(p->engines[i], do_rounds, &rounds);
	san_view_conn_count(p, &census);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "round_sum_ns", rounds.busy_ns);
	rte_tel_data_add_dict_u64(d, "rtt_sum_ns", census.rtt_sum_ns);
	if (add_hist(d, "round_ns", rounds.hist) != 0 || add_hist(d, "rtt_ns", census.rtt) != 0)
		return -ENOMEM;
	return 0;
}

/* ---- captures ---- */

static int
add_capture(struct rte_tel_data *d, bool is_on, const struct san_view_capture_view *v)
{
	char cid[16];

	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "active", is_on);
	if (v->file[0] == '\0')
		return 0;
	rte_tel_data_add_dict_string(d, "file", v->file);
	snprintf(cid, sizeof(cid), "0x%06x", v->cid);
	rte_tel_data_add_dict_string(d, "cid", v->cid != 0 ? cid : "all");
	rte_tel_data_add_dict_u64(d, "snap", v->snap);
	rte_tel_data_add_dict_u64(d, "packets", v->nb_pkts);
	rte_tel_data_add_dict_u64(d, "missed", v->nb_missed);
	return 0;
}

static int
show_capture(struct san_engine_port *p, struct rte_tel_data *d)
{
	struct san_view_capture_view v = {0};
	bool is_on = san_view_capture_show(p, &v);

	return add_capture(d, is_on, &v);
}

/* Parse FILE, CID, SNAP. Returns NULL, or what is wrong. */
static const char *
parse_capture(struct san_engine_port *p, char *params, struct san_view_capture_conf *conf)
{
	char *comma = strchr(params, ',');
	const char *rest = "";
	struct san_view_conn c;

	conf->file = params;
	if (comma != NULL) {
		*comma = '\0';
		rest = san_view_telemetry_conn_number(comma + 1, 0xffffff, &conf->cid);
		if (rest != NULL && rest[0] != '\0')
			rest = san_view_telemetry_conn_number(rest, UINT32_MAX, &conf->snap);
	}
	if (rest == NULL || rest[0] != '\0')
		return "capture: parameters are FILE, CID, SNAP";
	if (params[0] != '/')
		return "capture: the file's path must be absolute";
	if (strlen(params) >= RTE_TEL_MAX_STRING_LEN) /* longer than telemetry can show */
		return "capture: the file's path is too long";
	if (conf->cid == 0)
		return NULL;
	if (san_view_conn_one(p, conf->cid, &c) != 0)
		return "there is no connection with this CID";
	conf->dcid = c.dcid;
	conf->peer = c.peer;
	return NULL;
}

int
san_view_telemetry_conn_capture(struct san_engine_port *p, struct rte_tel_data *d,
				const char *params)
{
	struct san_view_capture_conf conf = {0};
	char buf[VIEW_CAPTURE_NAME];
	const char *why;
	int rc;

	if (params == NULL || params[0] == '\0')
		return show_capture(p, d);
	if (strlen(params) >= sizeof(buf))
		return san_view_telemetry_error(d, "capture: the file's path is too long");
	why = parse_capture(p, strcpy(buf, params), &conf);
	if (why != NULL)
		return san_view_telemetry_error(d, why);
	rc = san_view_capture_start(p, &conf);
	if (rc == -EBUSY)
		return san_view_telemetry_error(d, "capture: there is one already");
	if (rc == -ENOTSUP)
		return san_view_telemetry_error(
			d, "capture: this program polls itself; see capture=");
	return rc != 0 ? san_view_telemetry_error(d, strerror(-rc)) : show_capture(p, d);
}

int
san_view_telemetry_conn_capture_stop(struct san_engine_port *p, struct rte_tel_data *d,
				     const char *params)
{
	struct san_view_capture_view v = {0};

	(void)params;
	if (!san_view_capture_stop(p, &v))
		return san_view_telemetry_error(d, "capture: there is none");
	return add_capture(d, false, &v);
}
