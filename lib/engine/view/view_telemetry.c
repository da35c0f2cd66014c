/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * rte_telemetry commands, so that dpdk-telemetry.py shows everything that "show" does. Telemetry
 * has a thread of its own. An engine on an lcore is asked by a call. Of an engine that the
 * application polls the thread reads only counters, one word each, while the lock keeps the engine
 * from being destroyed. (ARCH-7)
 */

#include <stddef.h>
#include <sys/time.h>
#include <sys/un.h>

#include "engine_priv.h"
#include "san_lock.h"
#include "view.h"
#include "view_compat.h"

#define PAGE   32 /* connections in an answer: some 300 bytes each, of 16 KiB */
#define FILE_S 1  /* to connect, and for the descriptor, which the caller sends at once */

static const uint32_t max_cid = 0xffffff;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The first one is used for requests that name no port. */
static struct san_engine_port *ports[RTE_MAX_ETHPORTS];
static uint32_t nb_ports;

int
san_view_telemetry_error(struct rte_tel_data *d, const char *text)
{
	rte_tel_data_start_dict(d);
	return rte_tel_data_add_dict_string(d, "error", text);
}

/** A command, with its parameters behind the name of the port. */
struct request {
	struct san_engine_port *port;
	struct san_view v; /**< into a dict, which is the answer */
	const char *params;
};

static int
tel_error(const struct request *r, const char *text)
{
	return san_view_telemetry_error(r->v.dict, text);
}

/* Parse at most *n* numbers, with commas between, each at most *max*. Returns how many, or -1. */
static int
tel_numbers(const char *text, const uint32_t *max, int n, uint32_t *out)
{
	unsigned long v;
	char *end;
	int i;

	for (i = 0; text != NULL && text[0] != '\0'; i++) {
		if (i == n || text[0] < '0' || text[0] > '9')
			return -1;
		errno = 0;
		v = strtoul(text, &end, 0);
		if (errno != 0 || v > max[i] || (*end != ',' && *end != '\0'))
			return -1;
		out[i] = (uint32_t)v;
		text = *end == ',' ? end + 1 : end;
	}
	return i;
}

/* ---- counters, lcores, ports ---- */

/* Show the counters of one engine; without a number, list the lcores. */
static int
tel_lcore(struct request *r)
{
	const uint32_t max = r->port->nb_engines - 1;
	uint32_t id, k;

	switch (tel_numbers(r->params, &max, 1, &id)) {
	case 0:
		rte_tel_data_start_array(r->v.dict, RTE_TEL_INT_VAL);
		for (k = 0; k < r->port->nb_engines; k++)
			rte_tel_data_add_array_int(r->v.dict, (int)k);
		return 0;
	case 1:
		san_view_counters_put(r->port, r->port->engines[id], &r->v, &san_view_all_set);
		return 0;
	default:
		return -EINVAL;
	}
}

/* Add an empty dict to *d*. NULL: no memory or room. */
static struct rte_tel_data *
add_dict(struct rte_tel_data *d, const char *name)
{
	struct rte_tel_data *one = rte_tel_data_alloc();

	if (one == NULL)
		return NULL;
	rte_tel_data_start_dict(one);
	if (rte_tel_data_add_dict_container(d, name, one, 0) == 0)
		return one;
	rte_tel_data_free(one);
	return NULL;
}

static int
tel_lcores(struct request *r)
{
	struct san_view v = {0};
	struct san_engine *e;
	char name[16];
	uint32_t i;

	for (i = 0; i < r->port->nb_engines; i++) {
		e = r->port->engines[i];
		snprintf(name, sizeof(name), "%u", i);
		v.dict = add_dict(r->v.dict, name);
		if (v.dict == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_int(v.dict, "lcore",
					  e->launched ? (int)r->port->conf.lcores[i] : -1);
		san_view_lcore(e, &v);
	}
	return 0;
}

static int
tel_port(struct request *r)
{
	san_view_port(r->port, &r->v);
	return 0;
}

static int
tel_ports(struct request *r)
{
	uint32_t i;

	rte_tel_data_start_array(r->v.dict, RTE_TEL_STRING_VAL);
	for (i = 0; i < nb_ports; i++)
		rte_tel_data_add_array_string(r->v.dict, ports[i]->conf.name);
	return 0;
}

/* ---- connections ---- */

static int
tel_conn_list(struct request *r)
{
	static const uint32_t max[] = {UINT32_MAX, SAN_ENGINE_APPS - 1};
	uint32_t from_app[] = {0, VIEW_APP_ANY}, i, n, next;
	struct san_view_conn rows[PAGE];
	struct san_view v = {0};
	char name[16];

	if (tel_numbers(r->params, max, RTE_DIM(max), from_app) < 0)
		return tel_error(r, "conn_list: parameters are OFFSET, APP");
	n = san_view_conn_all(r->port, from_app[0], (uint16_t)from_app[1], rows, PAGE, &next);
	san_view_u64(&r->v, "next", next);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "0x%06x", rows[i].pdl.cid);
		v.dict = add_dict(r->v.dict, name);
		if (v.dict == NULL)
			return -ENOMEM;
		san_view_conn_brief(&v, &rows[i]);
	}
	return 0;
}

static int
tel_conn(struct request *r)
{
	struct san_view_conn c;
	uint32_t cid;
	int n = tel_numbers(r->params, &max_cid, 1, &cid);

	if (n == 0)
		return tel_conn_list(r);
	if (n < 0)
		return tel_error(r, "conn: the parameter is a CID");
	if (san_view_conn_one(r->port, cid, &c) != 0)
		return tel_error(r, "there is no connection with this CID");
	san_view_conn_full(&r->v, &c);
	return 0;
}

static int
tel_stream(struct request *r)
{
	struct san_view_stream s;
	uint32_t cid;

	if (tel_numbers(r->params, &max_cid, 1, &cid) != 1)
		return tel_error(r, "stream: the parameter is a CID");
	switch (san_view_stream_one(r->port, cid, &s)) {
	case 0:
		return san_view_stream(&r->v, &s);
	case -ENOTSUP:
		return tel_error(r, "stream: this program polls itself");
	default:
		return tel_error(r, "there is no stream with this CID");
	}
}

/* ---- sums ---- */

static int
tel_reasons(struct request *r)
{
	struct san_view_census census;
	uint8_t i;

	san_view_conn_count(r->port, &census);
	for (i = 0; i <= SAN_HOLD_MAX; i++)
		san_view_u64(&r->v, san_hold_name(i), census.holds[i]);
	return 0;
}

static int
add_hist(struct rte_tel_data *d, const char *name, const uint64_t hist[SAN_ENGINE_HIST])
{
	struct rte_tel_data *array = rte_tel_data_alloc();
	uint32_t i;

	if (array == NULL)
		return -ENOMEM;
	rte_tel_data_start_array(array, RTE_TEL_U64_VAL);
	for (i = 0; i < SAN_ENGINE_HIST; i++)
		rte_tel_data_add_array_uint(array, hist[i]);
	return rte_tel_data_add_dict_container(d, name, array, 0);
}

static int
tel_hist(struct request *r)
{
	struct san_view_census census;

	san_view_conn_count(r->port, &census);
	san_view_u64(&r->v, "round_sum_ns", census.busy_ns);
	san_view_u64(&r->v, "rtt_sum_ns", census.rtt_sum_ns);
	return add_hist(r->v.dict, "round_ns", census.rounds) == 0 ?
		add_hist(r->v.dict, "rtt_ns", census.rtt) :
		-ENOMEM;
}

/* ---- captures ---- */

/*
 * The descriptor of a file that the caller has opened, because its rights and folders are others
 * than ours. It comes by a socket of the caller with this abstract name. Only the user of this
 * process and root can send commands, so the socket must be theirs.
 */
static int
receive_file(const char *name)
{
	const struct timeval timeout = {.tv_sec = FILE_S};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strnlen(name, sizeof(addr.sun_path) - 1);
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.head.cmsg_len = 0};
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int)), /* one: the kernel keeps more */
	};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd = -ENOMSG;
	socklen_t cred_len = sizeof(struct ucred);
	struct ucred cred;

	memcpy(&addr.sun_path[1], name, len);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    connect(sock, (const struct sockaddr *)&addr, (socklen_t)len) != 0 ||
	    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0)
		fd = -errno;
	else if (cred.uid != 0 && cred.uid != geteuid())
		fd = -EPERM;
	else if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) < 0)
		fd = -errno;
	else if (control.head.cmsg_len == CMSG_LEN(sizeof(int)) &&
		 control.head.cmsg_level == SOL_SOCKET && control.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	if (sock >= 0)
		close(sock);
	return fd;
}

/* Parse @SOCKET:FILE, CID, SNAP, without opening anything. Returns NULL, or what is wrong. */
static const char *
parse_capture(struct san_engine_port *p, char *params, struct san_view_capture_conf *conf,
	      const char **from)
{
	const uint32_t max[] = {max_cid, UINT32_MAX};
	uint32_t cid_snap[2] = {0};
	struct san_view_conn c;

	*from = strsep(&params, ":");
	conf->file = strsep(&params, ",");
	if (**from != '@' || conf->file == NULL ||
	    tel_numbers(params, max, RTE_DIM(max), cid_snap) < 0)
		return "capture: parameters are @SOCKET:FILE, CID, SNAP; see sanctl(1)";
	if (strlen(conf->file) >= RTE_TEL_MAX_STRING_LEN) /* longer than telemetry can show */
		return "capture: the file's path is too long";
	conf->cid = cid_snap[0];
	conf->snap = cid_snap[1];
	if (conf->cid == 0)
		return NULL;
	if (san_view_conn_one(p, conf->cid, &c) != 0)
		return "there is no connection with this CID";
	conf->dcid = c.pdl.dcid;
	conf->peer = c.pdl.path.dst;
	return NULL;
}

static int
tel_capture(struct request *r)
{
	struct san_view_capture_conf conf = {0};
	char buf[VIEW_CAPTURE_NAME + sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *why, *from;
	int rc = 0;

	if (r->params != NULL && r->params[0] != '\0') {
		if (strlen(r->params) >= sizeof(buf))
			return tel_error(r, "capture: the file's path is too long");
		why = parse_capture(r->port, strcpy(buf, r->params), &conf, &from);
		if (why != NULL)
			return tel_error(r, why);
		rc = conf.fd = receive_file(&from[1]);
		if (rc >= 0) {
			rc = san_view_capture_start(r->port, &conf);
			close(conf.fd);
		}
	}
	if (rc == -EBUSY)
		return tel_error(r, "capture: there is one already");
	if (rc == -ENOTSUP)
		return tel_error(r, "capture: this program polls itself; see capture=");
	if (rc != 0)
		return tel_error(r, strerror(-rc));
	if (!san_view_capture_show(r->port, &r->v, false))
		san_view_u64(&r->v, "active", 0);
	return 0;
}

static int
tel_capture_stop(struct request *r)
{
	return san_view_capture_show(r->port, &r->v, true) ?
		0 :
		tel_error(r, "capture: there is none");
}

/* ---- commands ---- */

/** Metrics with labels of their own */
static const struct san_view_field families[] = {
	SAN_VIEW_NOTE(build, INFO, "", "Version and commit that run, as labels."),
	SAN_VIEW_NOTE(port, INFO, "", "The ports."),
	SAN_VIEW_NOTE(drops, COUNTER, "packets", "Packets dropped, by reason."),
	SAN_VIEW_NOTE(conns_held, GAUGE, "connections", "Connections by what holds them back now."),
	SAN_VIEW_NOTE(round_ns, HISTOGRAM, "ns", "Time of rounds of the lcores that found work."),
	SAN_VIEW_NOTE(rtt_ns, GAUGEHISTOGRAM, "ns", "Round-trip times of the connections now."),
};
static const struct san_view_set families_set = {families, RTE_DIM(families)};

static const struct command {
	const char *name;
	int (*fn)(struct request *r); /**< NULL: counters */
	const char *help;
	const struct san_view_set *set; /**< explained if the parameter is "help" */
} commands[] = {
	{"/sanstack/ports", tel_ports,
	 "Names of the ports. Every other command takes port=NAME as its first parameter; without "
	 "it, it is about the first one"},
	{"/sanstack/port", tel_port, "The port. No parameters", &san_view_port_set},
	{"/sanstack/conn", tel_conn,
	 "One connection. Parameter: CID; none: conn_list", &san_view_conn_set},
	{"/sanstack/stream", tel_stream, "One stream. Parameter: CID", &san_view_stream_set},
	{"/sanstack/conn_list", tel_conn_list,
	 "Connections, a page of them. Parameters: OFFSET (0 or the last *next*), APP",
	 &san_view_conn_list_set},
	{"/sanstack/reasons", tel_reasons,
	 "Connections by what holds them back now. No parameters", &san_view_reasons_set},
	{"/sanstack/hist", tel_hist,
	 "Histograms: rounds with work, round trips now. Bucket i: from 2^i ns. No parameters",
	 &families_set},
	{"/sanstack/lcores", tel_lcores, "All lcores and how busy they are. No parameters",
	 &san_view_lcore_set},
	{"/sanstack/capture", tel_capture,
	 "Packets into a pcapng file. Parameters: @SOCKET:FILE, CID (0: all), SNAP; none: show"},
	{"/sanstack/capture_stop", tel_capture_stop, "End capturing. No parameters"},
	{"/sanstack/lcore", tel_lcore, "Counters of one lcore. Parameter: its number, from 0",
	 &san_view_all_set},
	{"/sanstack/stats", NULL, "Counters of every layer. No parameters", &san_view_counters_set},
	{"/sanstack/drops", NULL, "Dropped packets by reason. No parameters", &san_view_drops_set},
	{"/sanstack/cam", NULL, "The reorder engine's table. No parameters", &san_view_cam_set},
};

#define PORT_KEY "port="

bool
san_view_telemetry_port_name(const char **params, char name[SAN_ENGINE_NAME])
{
	const char *from = *params;
	size_t len;

	name[0] = '\0';
	if (from == NULL || strncmp(from, PORT_KEY, strlen(PORT_KEY)) != 0)
		return true;
	from += strlen(PORT_KEY);
	len = strcspn(from, ",");
	if (len == 0 || len >= SAN_ENGINE_NAME)
		return false;
	memcpy(name, from, len);
	name[len] = '\0';
	*params = from[len] == ',' ? &from[len + 1] : &from[len];
	return true;
}

/* Find the port that *params* begin with, and cut it off. NULL: there is none. */
static struct san_engine_port *
telemetry_find_port(const char **params)
{
	char name[SAN_ENGINE_NAME];
	uint32_t i;

	if (!san_view_telemetry_port_name(params, name))
		return NULL;
	for (i = 0; i < nb_ports; i++)
		if (name[0] == '\0' || strcmp(ports[i]->conf.name, name) == 0)
			return ports[i];
	return NULL;
}

static int
telemetry_handle_cmd(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct request r = {.v.dict = d};
	const struct command *c = commands;
	SAN_LOCKED(&lock);

	if (nb_ports == 0)
		return -ENODEV;
	r.port = telemetry_find_port(&params);
	if (r.port == NULL)
		return san_view_telemetry_error(d, "there is no port with this name");
	while (strcmp(cmd, c->name) != 0)
		c++;
	if (c->set != NULL && params != NULL && strcmp(params, "help") == 0)
		return san_view_explain(d, c->set);
	rte_tel_data_start_dict(d);
	r.params = params;
	if (c->fn != NULL)
		return c->fn(&r);
	san_view_counters_put(r.port, NULL, &r.v, c->set);
	return 0;
}

RTE_INIT(view_telemetry_register)
{
	size_t i;

	for (i = 0; i < RTE_DIM(commands); i++)
		rte_telemetry_register_cmd(commands[i].name, telemetry_handle_cmd,
					   commands[i].help);
}

void
san_view_telemetry_add(struct san_engine_port *p)
{
	SAN_LOCKED(&lock);

	if (nb_ports < RTE_DIM(ports))
		ports[nb_ports++] = p;
}

void
san_view_telemetry_del(struct san_engine_port *p)
{
	uint32_t i = 0;
	SAN_LOCKED(&lock);

	while (i < nb_ports && ports[i] != p)
		i++;
	if (i < nb_ports) /* keep the order of the others */
		memmove(&ports[i], &ports[i + 1], (--nb_ports - i) * sizeof(ports[0]));
}
