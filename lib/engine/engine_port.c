/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A port as the engines need it: a receive and a transmit queue for each engine, if the port has so
 * many and spreads received packets over them, otherwise one; and each frame in one mbuf. Other
 * features of a port are used where present, but no feature is required that memif or af_packet
 * lack (SYS-1).
 */

#define ALLOW_EXPERIMENTAL_API /* so are events of devices in DPDK 22.11 */

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sched.h>

#include <rte_alarm.h>
#include <rte_malloc.h>

#include "engine_priv.h"
#include "san_log.h"

#define MEMIF        "net_memif"
#define GROUP_ADDRS  128 /* most group addresses set on a device */
#define MTU_DEFAULT  1500
#define ROOM_MIN     2048 /* several drivers refuse less */
#define CACHE_MAX    256
#define VLAN_ROOM    8
#define LINK_MS      5000 /* longest wait for a memif client's link */
#define LINK_MS_TAKE 1000 /* in a takeover, for server and link each: it has 4 s */

/* Buffer size for the largest frame in one mbuf: memif breaks chains (DPDK 22.11). */
static uint16_t
data_room(uint16_t mtu)
{
	uint32_t frame = mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + VLAN_ROOM;

	return (uint16_t)(RTE_PKTMBUF_HEADROOM +
			  RTE_ALIGN_CEIL(RTE_MAX(frame, (uint32_t)ROOM_MIN), 64));
}

uint32_t
san_engine_port_pool_min(const struct san_engine_conf *conf)
{
	/*
	 * For each lcore: twice max_held, so that the reorder engine cannot hold all mbufs; both
	 * rings full; and the packets in processing: a burst each way, the backlog, the death row
	 * and the spare mbufs of the core. Packets handed over between lcores are in lanes.
	 */
	uint32_t each = 2 * conf->core.tl.max_held + conf->nb_rxd + conf->nb_txd +
		2 * ENGINE_BURST + ENGINE_OUT_MAX + SAN_DEATH_ROW + SAN_SPARE;
	uint32_t socks = 0;

	/* for datagrams: fragments, and packets that wait to be sent or for a neighbour */
	if (conf->core.max_socks != 0)
		socks = conf->core.inet.max_frags + conf->core.inet.max_out +
			conf->core.inet.max_waiting;
	return socks + conf->nb_lcores * (each + (conf->nb_lcores > 1 ? ENGINE_LANES : 0));
}

void
san_engine_port_warm(const struct san_engine_conf *conf)
{
	uint16_t mtu = conf->core.mtu != 0 ? conf->core.mtu : RTE_ETHER_MTU;
	size_t bytes = (size_t)conf->pool_size *
		(sizeof(struct rte_mbuf) + SAN_PKT_PRIV_SIZE + data_room(mtu));
	void *p;

	if (rte_eal_has_hugepages())
		return;
	p = rte_malloc(NULL, bytes, 0);
	if (p != NULL)
		memset(p, 0, bytes);
	rte_free(p);
}

static int
find_mtu(struct san_engine_port *p, const char **why)
{
	const struct rte_eth_dev_info *info = &p->info;
	struct san_core_conf *core = &p->conf.core;
	uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN, max = info->max_mtu;
	struct san_engine_mtu m;
	int rc;

	san_engine_mtu_ask(p->id, info,
			   RTE_ETHER_HDR_LEN + (p->conf.vlan != 0 ? RTE_VLAN_HLEN : 0), &m);
	rc = san_engine_mtu_choose(&m, core->mtu, p->conf.mtu_min, &core->mtu, why);
	p->whole_v4 = m.whole_v4;
	if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
		overhead = info->max_rx_pktlen - info->max_mtu;
	if (info->max_rx_pktlen != 0)
		max = RTE_MIN(max, info->max_rx_pktlen - overhead);
	/* the most that can be set: for memif 1500, but it carries more with buffers for it */
	p->declared = core->mtu <= max ? RTE_MAX(core->mtu, info->min_mtu) :
					 (uint16_t)RTE_MIN(max, (uint32_t)MTU_DEFAULT);
	return rc;
}

static void
port_lose(struct san_engine_port *p)
{
	if (atomic_exchange(&p->lost, true))
		return;
	SAN_LOG(ENGINE, ERR, "port=%u name=%s is being removed: no packets pass any more", p->id,
		p->name);
	san_engine_event_wake(p);
}

static int
on_removed(uint16_t port_id __rte_unused, enum rte_eth_event_type type __rte_unused, void *arg,
	   void *ret __rte_unused)
{
	port_lose(arg);
	return 0;
}

/* vfio asks for the device: the kernel waits for it until the port is closed. */
static void
on_device(const char *name __rte_unused, enum rte_dev_event_type type, void *arg)
{
	if (type == RTE_DEV_EVENT_REMOVE)
		port_lose(arg);
}

static bool
is_driver(const struct san_engine_port *p, const char *name)
{
	return strcmp(p->info.driver_name, name) == 0;
}

/* Hash types by which a port spreads the packets of connections by source port (RULE-13). */
#define RSS_PORTS (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)

/*
 * One queue for each lcore if the port can spread packets, or the operator says that it does;
 * otherwise one. memif has as many as its peer agrees to, without reporting it, and would send
 * packets of any other queue into the ring of the first one (DPDK 22.11).
 */
static int
choose_queues(struct san_engine_port *p, const char **why)
{
	uint32_t most = RTE_MIN(p->info.max_rx_queues, p->info.max_tx_queues);
	uint32_t want = p->conf.nb_queues;

	most = RTE_MIN(most, p->conf.nb_lcores);
	if (is_driver(p, MEMIF))
		most = 1;
	if (want == 0)
		want = (p->info.flow_type_rss_offloads & RSS_PORTS) != 0 ? most : 1;
	*why = "queues=: more than the port can have, or there are lcores";
	if (want == 0 || want > most)
		return -EINVAL;
	p->conf.nb_queues = (uint16_t)want;
	return 0;
}

static int
engine_port_make_queues(const struct san_engine_port *p)
{
	struct rte_eth_rxconf rxconf = p->info.default_rxconf;
	struct rte_eth_txconf txconf = p->info.default_txconf;
	unsigned int socket = (unsigned int)rte_eth_dev_socket_id(p->id);
	uint16_t q;
	int rc = 0;

	rxconf.offloads = p->rx_offloads;
	txconf.offloads = p->tx_offloads;
	for (q = 0; q < p->conf.nb_queues && rc == 0; q++) {
		rc = rte_eth_rx_queue_setup(p->id, q, p->conf.nb_rxd, socket, &rxconf, p->pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(p->id, q, p->conf.nb_txd, socket, &txconf);
	}
	return rc;
}

static int
engine_port_configure(struct san_engine_port *p, const char **why)
{
	struct rte_eth_conf conf = {0};
	int rc;

	conf.rxmode.mtu = p->declared;
	conf.rxmode.offloads = p->rx_offloads;
	conf.txmode.offloads = p->tx_offloads;
	conf.intr_conf.rxq = p->conf.idle == SAN_IDLE_INTERRUPT;
	if (p->conf.nb_queues > 1 && (p->info.flow_type_rss_offloads & RSS_PORTS) != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = p->info.flow_type_rss_offloads & RSS_PORTS;
	}
	*why = "the port refuses its configuration";
	rc = rte_eth_dev_configure(p->id, p->conf.nb_queues, p->conf.nb_queues, &conf);
	if (rc != 0)
		return rc;
	*why = "the port refuses its queues";
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &p->conf.nb_rxd, &p->conf.nb_txd);
	if (rc != 0 && rc != -ENOTSUP)
		return rc;
	return engine_port_make_queues(p);
}

/* ---- steering (RULE-13) ---- */

#define GROUPS_MAX (SAN_STEER_TABLE_MAX / RTE_ETH_RETA_GROUP_SIZE)

/* Spread evenly over the queues, if the port allows it, and read the resulting table back. */
static int
read_table(struct san_engine_port *p)
{
	struct rte_eth_rss_reta_entry64 reta[GROUPS_MAX] = {0};
	uint16_t i;
	int rc;

	for (i = 0; i < p->info.reta_size; i++) {
		reta[i / RTE_ETH_RETA_GROUP_SIZE].mask = UINT64_MAX;
		reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] =
			i % p->conf.nb_queues;
	}
	rte_eth_dev_rss_reta_update(p->id, reta, p->info.reta_size);
	rc = rte_eth_dev_rss_reta_query(p->id, reta, p->info.reta_size);
	if (rc != 0)
		return rc;
	p->steer.table_size = p->info.reta_size;
	for (i = 0; i < p->info.reta_size; i++)
		p->steer.table[i] = reta[i / RTE_ETH_RETA_GROUP_SIZE]
					    .reta[i % RTE_ETH_RETA_GROUP_SIZE];
	return 0;
}

/* Read key and table of the port's hash. Without them packets are handed over: this is slower. */
static void
read_steering(struct san_engine_port *p)
{
	/* a port that does not report the size has the usual one */
	uint8_t len = p->info.hash_key_size != 0 ? p->info.hash_key_size : SAN_STEER_KEY_MIN;
	struct rte_eth_rss_conf rss = {.rss_key = p->steer.key, .rss_key_len = len};
	int rc = -ENOTSUP;

	if (p->conf.nb_queues < 2)
		return;
	if (len >= SAN_STEER_KEY_MIN && len <= SAN_STEER_KEY_MAX &&
	    rte_is_power_of_2(p->info.reta_size) && p->info.reta_size <= SAN_STEER_TABLE_MAX)
		rc = rte_eth_dev_rss_hash_conf_get(p->id, &rss);
	if (rc == 0)
		rc = read_table(p);
	p->steer.v4 = (rss.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0;
	p->steer.v6 = (rss.rss_hf & RTE_ETH_RSS_NONFRAG_IPV6_UDP) != 0;
	p->is_steered = rc == 0 && (p->steer.v4 || p->steer.v6);
	SAN_LOG(ENGINE, INFO, "port=%u queues=%u steered=%u", p->id, p->conf.nb_queues,
		p->is_steered);
}

/*
 * ---- sockets of the drivers af_packet and af_xdp ----
 *
 * The drivers have no receive interrupts and do not name their descriptors, but the kernel reports
 * a packet on them.
 */

/*
 * Whether *fd* is a socket of the driver. The kernel does not report the device of an AF_XDP one: a
 * packet of another port ends the sleep, too.
 */
static bool
is_driver_fd(const struct san_engine_port *p, int fd, int family)
{
	struct sockaddr_ll name = {0};
	socklen_t len = sizeof(int);
	int domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != family)
		return false;
	len = sizeof(name);
	return family == AF_XDP ||
		(getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
		 name.sll_protocol == htons(ETH_P_ALL) &&
		 (uint32_t)name.sll_ifindex == p->info.if_index);
}

static void
find_driver_fds(struct san_engine_port *p)
{
	bool is_packet = is_driver(p, "net_af_packet");
	const struct dirent *entry;
	DIR *dir;
	int fd;

	p->nb_driver_fds = 0;
	if (!is_packet && !is_driver(p, "net_af_xdp"))
		return;
	dir = opendir("/proc/self/fd");
	if (dir == NULL) {
		SAN_LOG(ENGINE, NOTICE, "port=%u driver=%s: without /proc no packet ends a sleep",
			p->id, p->info.driver_name);
		return;
	}
	while ((entry = readdir(dir)) != NULL && p->nb_driver_fds < RTE_DIM(p->driver_fds)) {
		fd = atoi(entry->d_name);
		if (entry->d_name[0] != '.' && is_driver_fd(p, fd, is_packet ? AF_PACKET : AF_XDP))
			p->driver_fds[p->nb_driver_fds++] = fd;
	}
	closedir(dir);
}

/* ---- open, close ---- */

static int
engine_port_start_dev(struct san_engine_port *p, const char **why)
{
	bool is_client = san_engine_memif_is_client(&p->info);
	uint32_t ms = p->conf.resumes ? LINK_MS_TAKE : LINK_MS;
	uint32_t server_ms = p->conf.resumes ? LINK_MS_TAKE : 0;
	struct rte_ether_addr mac;
	int rc;

	*why = is_driver(p, MEMIF) ? "the port does not start; is the other side there first?" :
				     "the port does not start";
	/* a memif's server may not yet have noticed that the previous process has ended */
	rc = san_engine_memif_start(&p->memif, p->id, is_client, server_ms);
	if (rc != 0)
		return rc;
	while (is_client && !san_engine_port_is_up(p) && ms-- > 0)
		rte_delay_us_sleep(1000);
	if (is_client && !san_engine_port_is_up(p))
		SAN_LOG(ENGINE, NOTICE, "port=%u memif=waits for its server", p->id);
	p->started = true;
	rte_eth_dev_callback_register(p->id, RTE_ETH_EVENT_INTR_RMV, on_removed, p);
	rte_dev_event_callback_register(rte_dev_name(p->info.device), on_device, p);
	/* neighbour discovery is multicast; a driver without this switch receives it anyway */
	rte_eth_allmulticast_enable(p->id);
	if ((p->rx_offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0) {
		*why = "the port refuses its VLAN";
		rc = rte_eth_dev_vlan_filter(p->id, p->conf.vlan, 1);
		if (rc != 0)
			return rc;
	}
	*why = "the port has no MAC address";
	rc = rte_eth_macaddr_get(p->id, &mac);
	if (rc != 0)
		return rc;
	/* the device may have a new random address; the address of a kernel's device is kept */
	if (!rte_is_zero_ether_addr(&p->conf.mac) && !rte_is_same_ether_addr(&mac, &p->conf.mac) &&
	    san_engine_mac_is_own(p) && rte_eth_dev_default_mac_addr_set(p->id, &p->conf.mac) == 0)
		mac = p->conf.mac;
	san_engine_mac_set(p, &mac);
	san_engine_mac_watch(p);
	return 0;
}

int
san_engine_port_open(struct san_engine_port *p, const char **why)
{
	uint32_t cache = RTE_MIN(p->conf.pool_size / 16, (uint32_t)CACHE_MAX), kernel_mtu;
	char name[RTE_MEMPOOL_NAMESIZE];
	int rc;

	*why = "no such port";
	if (!rte_eth_dev_is_valid_port(p->id))
		return -ENODEV;
	*why = "the port says nothing about itself";
	rc = rte_eth_dev_info_get(p->id, &p->info);
	if (rc != 0) {
		p->info.driver_name = ""; /* the call has cleared it */
		return rc;
	}
	rte_eth_dev_get_name_by_port(p->id, p->name);
	if (p->conf.carry_tcp == SAN_CARRY_TCP_AUTO)
		p->conf.carry_tcp = is_driver(p, "net_af_packet") ? SAN_CARRY_TCP_OFF :
								    SAN_CARRY_TCP_ON;
	/* one pool and no shared mbufs, so a driver may free in bulk without checks */
	p->tx_offloads = p->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	p->rx_offloads = p->info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	/* QEMU's virtio filters in any case, so a NIC that can filter is told the port's VLAN */
	if (p->conf.vlan != 0)
		p->rx_offloads |= p->info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	p->is_shared = san_engine_kernel_shares(p);
	rc = p->is_shared ? san_engine_kernel_guard(p, why) : 0;
	if (rc != 0)
		return rc;
	rc = find_mtu(p, why);
	if (rc != 0)
		return rc;
	*why = "no memory for packet buffers: lower pool=, or raise -m";
	snprintf(name, sizeof(name), "san_pkt_%u", p->id);
	p->pool = rte_pktmbuf_pool_create(name, p->conf.pool_size, cache, SAN_PKT_PRIV_SIZE,
					  data_room(p->conf.core.mtu),
					  rte_eth_dev_socket_id(p->id));
	if (p->pool == NULL)
		return -ENOMEM;
	rc = choose_queues(p, why);
	if (rc == 0)
		rc = engine_port_configure(p, why);
	kernel_mtu = san_engine_mtu_of_kernel(p->info.if_index);
	if (rc == 0 && kernel_mtu != 0 && kernel_mtu < p->conf.core.mtu) {
		*why = "mtu= is more than the kernel's device has: ip link set ... mtu";
		rc = rte_eth_dev_set_mtu(p->id, p->conf.core.mtu) == 0 ? 0 : -EMSGSIZE;
	}
	if (rc == 0)
		rc = engine_port_start_dev(p, why);
	if (rc == 0)
		read_steering(p);
	if (rc == 0)
		find_driver_fds(p);
	/* EAL's interrupt thread handles memif's control channel, whatever bursts run */
	if (rc == 0)
		san_engine_gate_init(&p->gate, is_driver(p, MEMIF));
	if (rc == 0)
		SAN_LOG(ENGINE, INFO, "port=%u name=%s driver=%s mtu=%u", p->id, p->name,
			p->info.driver_name, p->conf.core.mtu);
	return rc;
}

static void
engine_port_shut_dev(struct san_engine_port *p)
{
	san_engine_memif_stop(&p->memif);
	san_engine_mac_unwatch(p);
	if (p->started) {
		while (rte_dev_event_callback_unregister(rte_dev_name(p->info.device), on_device,
							 p) == -EAGAIN)
			rte_pause(); /* it is being called, with *p* */
		rte_eth_dev_callback_unregister(p->id, RTE_ETH_EVENT_INTR_RMV, on_removed, p);
		rte_eth_dev_stop(p->id);
	}
	p->started = false;
	rte_eth_dev_close(p->id);
}

static void
shut_there(void *arg)
{
	struct san_engine_port *p = arg;

	engine_port_shut_dev(p);
	atomic_store(&p->shut, true);
}

/*
 * EAL's interrupt thread handles memif's control channel. If the peer disconnects while another
 * thread closes the port, both release the channel (DPDK 22.11), so the port is closed in that
 * thread.
 */
void
san_engine_port_shut(struct san_engine_port *p)
{
	san_engine_gate_fini(&p->gate);
	if (!rte_eth_dev_is_valid_port(p->id))
		return;
	atomic_store(&p->shut, false);
	if (!is_driver(p, MEMIF) || rte_eal_alarm_set(1, shut_there, p) != 0) {
		engine_port_shut_dev(p);
		return;
	}
	while (!atomic_load(&p->shut))
		sched_yield();
}

void
san_engine_port_close(struct san_engine_port *p)
{
	san_engine_port_shut(p);
	/* not earlier: the port's rings held some of its buffers */
	rte_mempool_free(p->pool);
	p->pool = NULL;
}

uint32_t
san_engine_port_mbps(const struct san_engine_port *p)
{
	struct rte_eth_link link = {0};

	if (rte_eth_link_get_nowait(p->id, &link) != 0 ||
	    link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
}

bool
san_engine_port_is_up(const struct san_engine_port *p)
{
	struct rte_eth_link link = {0};

	if (rte_eth_link_get_nowait(p->id, &link) != 0)
		return true; /* the port does not report it */
	return link.link_status == RTE_ETH_LINK_UP;
}

/* ---- sockets on lcore 0 (UDP-6, UDP-8) ---- */

uint32_t
san_engine_sock_if_index(const struct san_engine_port *p)
{
	return p->info.if_index;
}

uint32_t
san_engine_sock_whole_v4(const struct san_engine_port *p)
{
	return p->whole_v4;
}

/* Fill *macs*. Returns how many addresses there are, which may be more than fit. */
static int
do_groups(struct san_engine *e, void *macs)
{
	return (int)san_inet_group_all(san_core_inet(e->core), macs, GROUP_ADDRS);
}

/* Set the device's list of addresses. If it has none, or a short one, it receives all multicast. */
int
san_engine_sock_groups(struct san_engine_port *p)
{
	struct rte_ether_addr macs[GROUP_ADDRS];
	int nb = san_engine_loop_call(p->engines[0], do_groups, macs), rc = -ENOSPC;

	if (nb <= GROUP_ADDRS)
		rc = rte_eth_dev_set_mc_addr_list(p->id, macs, (uint32_t)nb);
	if (rc != 0)
		rc = rte_eth_allmulticast_enable(p->id);
	/* a port whose kernel device joins the group as well needs neither */
	return rc == -ENOTSUP && p->info.if_index != 0 ? 0 : rc;
}
