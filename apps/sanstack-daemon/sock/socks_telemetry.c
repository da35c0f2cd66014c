/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "inet.h"
#include "socks.h"
#include "socks_telemetry.h"

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

int
san_socks_telemetry_sum(struct rte_tel_data *d, const struct app_port *port, uint32_t from)
{
	(void)from;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "sockets", port->nb_socks);
	rte_tel_data_add_dict_u64(d, "sockets_max", port->max_socks);
	rte_tel_data_add_dict_u64(d, "streams_connected", port->nb_streams[false]);
	rte_tel_data_add_dict_u64(d, "streams_accepted", port->nb_streams[true]);
	rte_tel_data_add_dict_u64(d, "bytes", san_users_nb(port->index, NULL, USERS_SOCK_BYTES));
	rte_tel_data_add_dict_u64(d, "bytes_user_max", port->conf->sock_bytes);
	return rte_tel_data_add_dict_u64(d, "refused", port->nb_socks_refused);
}

/* ---- lists ---- */

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

static const char *
state_of(const struct app_sock *s, const struct san_sock_shm *shm)
{
	static const char *const names[] = {"connecting", "up", "refused", "over"};
	uint32_t state;

	if (s->is_over)
		return "closing";
	if (s->kind != SOCKS_STREAM)
		return s->kind == SOCKS_LISTENER ? "listens" : "up";
	if (s->held >= 0)
		return "waits for accept";
	state = atomic_load_explicit(&shm->state, memory_order_relaxed);
	return names[RTE_MIN(state, RTE_DIM(names) - 1)];
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
	rte_tel_data_add_dict_string(one, "state", state_of(s, shm));
	if (shm == NULL) {
		add_name(one, "local", s->ip.b, s->tcp_port);
	} else {
		add_name(one, "local", shm->local.ip, shm->local.port);
		if (shm->peer.family != 0)
			add_name(one, "peer", shm->peer.ip, shm->peer.port);
		/* the state of the rings; the program's positions may be wrong */
		rte_tel_data_add_dict_u64(one, "unread",
					  (uint32_t)(atomic_load(&shm->rx_tail) -
						     atomic_load(&shm->rx_head)));
		rte_tel_data_add_dict_u64(one, "unsent",
					  (uint32_t)(atomic_load(&shm->tx_tail) -
						     atomic_load(&shm->tx_head)));
		rte_tel_data_add_dict_u64(one, "drops", atomic_load(&shm->nb_drops));
	}
	rte_tel_data_add_dict_u64(one, "uid", s->uid);
	rte_tel_data_add_dict_u64(one, "accepted", s->token >= 0);
	rte_tel_data_add_dict_u64(one, "inode", s->inode);
	rte_tel_data_add_dict_u64(one, "kernel_inode", s->kernel_inode);
	snprintf(name, sizeof(name), "%u", number);
	return rte_tel_data_add_dict_container(d, name, one, 0);
}

int
san_socks_telemetry_list(struct rte_tel_data *d, const struct app_port *port, uint32_t from)
{
	uint32_t i, nb_listed = 0;
	int rc = 0;

	rte_tel_data_start_dict(d);
	for (i = from; i < port->max_socks && nb_listed < PAGE && rc == 0; i++) {
		if (port->socks[i].port == NULL)
			continue;
		rc = add_sock(d, &port->socks[i], i);
		nb_listed++;
	}
	rte_tel_data_add_dict_u64(d, "next", i < port->max_socks ? i : 0);
	return rc;
}

int
san_socks_telemetry_reasons(struct rte_tel_data *d, const struct app_port *port, uint32_t from)
{
	char name[24];
	uint32_t i;

	(void)port;
	(void)from;
	rte_tel_data_start_dict(d);
	for (i = 0; i < REASONS; i++) {
		if (reasons[i].inode == 0)
			continue;
		snprintf(name, sizeof(name), "%" PRIu64, reasons[i].inode);
		rte_tel_data_add_dict_string(d, name, reasons[i].why);
	}
	return 0;
}
