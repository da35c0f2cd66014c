/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <string.h>

#include "inet.h"
#include "socks.h"
#include "view.h"
#include "view_compat.h"

#define PAGE    40  /* sockets per answer: some 300 bytes each, of at most 16 KiB */
#define REASONS 128 /* reasons kept, which fit one answer with 100 bytes each */

static struct {
	uint64_t inode;
	char why[64];
} reasons[REASONS];
static uint32_t next_reason;

void
san_socks_telemetry_refused(uint64_t inode, const char *why)
{
	uint32_t i;

	if (inode == 0)
		return;
	for (i = 0; i < REASONS && reasons[i].inode != inode; i++)
		;
	if (i == REASONS) {
		i = next_reason;
		next_reason = (next_reason + 1) % REASONS;
	}
	reasons[i].inode = inode;
	snprintf(reasons[i].why, sizeof(reasons[i].why), "%s", why);
}

#define FIELD(name, member, kind, unit, help) \
	SAN_VIEW_FIELD(struct app_port, name, member, kind, unit, help)

/** Carried sockets */
static const struct san_view_field sum_fields[] = {
	FIELD(sockets, nb_socks, GAUGE, "sockets", "Carried sockets."),
	FIELD(sockets_max, max_socks, GAUGE, "sockets", "Limit of carried sockets (sockets=)."),
	FIELD(streams_connected, nb_streams[false], GAUGE, "sockets", "Connected TCP sockets."),
	FIELD(streams_accepted, nb_streams[true], GAUGE, "sockets", "Accepted TCP sockets."),
	FIELD(refused, nb_socks_refused, COUNTER, "sockets", "Left to the kernel at a limit."),
	SAN_VIEW_NOTE(bytes, GAUGE, "bytes", "Memory of carried sockets."),
	SAN_VIEW_NOTE(bytes_user_max, GAUGE, "bytes", "Limit of one user (sock_bytes)."),
};
const struct san_view_set san_socks_telemetry_sum_set = {sum_fields, RTE_DIM(sum_fields)};

int
san_socks_telemetry_sum(struct rte_tel_data *d, const struct app_port *port, uint32_t from)
{
	san_view_fields(&(struct san_view){.dict = d}, sum_fields, RTE_DIM(sum_fields), port);
	rte_tel_data_add_dict_uint(d, "bytes", san_users_nb(port->index, NULL, USERS_SOCK_BYTES));
	return rte_tel_data_add_dict_uint(d, "bytes_user_max", port->conf->sock_bytes);
}

/* ---- lists ---- */

/** Carried socket */
static const struct san_view_field list_fields[] = {
	SAN_VIEW_NOTE(proto, INFO, "", "Protocol: tcp or udp."),
	SAN_VIEW_NOTE(state, INFO, "", "State of the socket."),
	SAN_VIEW_NOTE(local, INFO, "", "Own address and port."),
	SAN_VIEW_NOTE(peer, INFO, "", "Address and port of the peer."),
	SAN_VIEW_NOTE(unread, GAUGE, "bytes", "Bytes that the program has not read."),
	SAN_VIEW_NOTE(unsent, GAUGE, "bytes", "Bytes of the program that are not sent."),
	SAN_VIEW_NOTE(drops, COUNTER, "packets", "Packets dropped for lack of room."),
	SAN_VIEW_NOTE(uid, INFO, "", "User."),
	SAN_VIEW_NOTE(accepted, INFO, "", "1: accept() made it."),
	SAN_VIEW_NOTE(inode, INFO, "", "Inode of the program's socket."),
	SAN_VIEW_NOTE(kernel_inode, INFO, "", "Inode of the kernel's socket beside it."),
};
const struct san_view_set san_socks_telemetry_list_set = {list_fields, RTE_DIM(list_fields)};

/** States of a carried socket */
#define SOCK_STATES(X)                                                            \
	X(CONNECTING, connecting, "The connection is being established.")         \
	X(UP, up, "Data can be sent and received.")                               \
	X(REFUSED, refused, "The connection failed.")                             \
	X(OVER, over, "The connection has ended.")                                \
	X(CLOSING, closing, "The program has closed it; the rest is being sent.") \
	X(LISTENS, listens, "It accepts connections.")                            \
	X(UNACCEPTED, unaccepted, "It waits for accept().")

#define SOCK_STATES_MEMBER(state, name, help) STATE_##state,
#define SOCK_STATES_NAME(state, name, help)   #name,

/* The first ones are those of enum san_sock_state. */
enum shown_state {
	SOCK_STATES(SOCK_STATES_MEMBER)
};
static const char *const state_names[] = {SOCK_STATES(SOCK_STATES_NAME)};

static void
add_name(struct rte_tel_data *d, const char *key, const uint8_t ip[16], uint16_t port)
{
	char addr[SAN_INET_TEXT], text[SAN_INET_TEXT + 16];
	struct san_ip a;

	memcpy(a.b, ip, sizeof(a.b));
	san_inet_addr_text(&a, addr);
	snprintf(text, sizeof(text), san_wire_ip_is_v4(&a) ? "%s:%u" : "[%s]:%u", addr, port);
	rte_tel_data_add_dict_string(d, key, text);
}

static enum shown_state
state_of(const struct app_sock *s, const struct san_sock_shm *shm)
{
	if (s->is_over)
		return STATE_CLOSING;
	if (s->kind != SOCKS_STREAM)
		return s->kind == SOCKS_LISTENER ? STATE_LISTENS : STATE_UP;
	if (s->held >= 0)
		return STATE_UNACCEPTED;
	/* the program may have written anything */
	return RTE_MIN(atomic_load_explicit(&shm->state, memory_order_relaxed), STATE_OVER);
}

static int
add_sock(struct rte_tel_data *d, const struct app_sock *s, uint32_t number)
{
	const struct san_sock_shm *shm = s->mem.mem;
	struct rte_tel_data *one = rte_tel_data_alloc();
	char name[16];

	if (one == NULL)
		return -ENOMEM;
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_string(one, "proto", s->kind == SOCKS_DGRAM ? "udp" : "tcp");
	rte_tel_data_add_dict_string(one, "state", state_names[state_of(s, shm)]);
	if (shm == NULL) {
		add_name(one, "local", s->ip.b, s->tcp_port);
	} else {
		add_name(one, "local", shm->local.ip, shm->local.port);
		if (shm->peer.family != 0)
			add_name(one, "peer", shm->peer.ip, shm->peer.port);
		/* the state of the rings; the program's positions may be wrong */
		rte_tel_data_add_dict_uint(one, "unread",
					   (uint32_t)(atomic_load(&shm->rx_tail) -
						      atomic_load(&shm->rx_head)));
		rte_tel_data_add_dict_uint(one, "unsent",
					   (uint32_t)(atomic_load(&shm->tx_tail) -
						      atomic_load(&shm->tx_head)));
		rte_tel_data_add_dict_uint(one, "drops", atomic_load(&shm->nb_drops));
	}
	rte_tel_data_add_dict_uint(one, "uid", s->uid);
	rte_tel_data_add_dict_uint(one, "accepted", s->token >= 0);
	rte_tel_data_add_dict_uint(one, "inode", s->inode);
	rte_tel_data_add_dict_uint(one, "kernel_inode", s->kernel_inode);
	snprintf(name, sizeof(name), "%u", number);
	return rte_tel_data_add_dict_container(d, name, one, 0);
}

int
san_socks_telemetry_list(struct rte_tel_data *d, const struct app_port *port, uint32_t from)
{
	uint32_t i, nb_listed = 0;
	int rc = 0;

	for (i = from; i < port->max_socks && nb_listed < PAGE && rc == 0; i++) {
		if (port->socks[i].port == NULL)
			continue;
		rc = add_sock(d, &port->socks[i], i);
		nb_listed++;
	}
	rte_tel_data_add_dict_uint(d, "next", i < port->max_socks ? i : 0);
	return rc;
}

int
san_socks_telemetry_reasons(struct rte_tel_data *d, const struct app_port *port, uint32_t from)
{
	char name[24];
	uint32_t i;

	for (i = 0; i < REASONS; i++) {
		if (reasons[i].inode == 0)
			continue;
		snprintf(name, sizeof(name), "%" PRIu64, reasons[i].inode);
		rte_tel_data_add_dict_string(d, name, reasons[i].why);
	}
	return 0;
}
