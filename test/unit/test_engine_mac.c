/* SPDX-License-Identifier: BSD-3-Clause */

/* A port whose MAC address changes at runtime. (RT-38) */

#include "test_engine_loop.h"

#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const struct rte_ether_addr moved = {{2, 0, 0, 0, 9, 9}};

static bool
has(const struct rte_ether_addr *mac)
{
	return rte_is_same_ether_addr(mac, &moved);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = group_setup, .last = group_teardown);

/* The lcore uses the new address from its next round on: in its core, and for loopback. */
UNIT_CASE(san_engine_mac_follow__in_the_next_round)
{
	uint64_t nb_local = e->stats.nb_loopback;
	struct san_ulp_wr wr = good_push();
	const struct san_pdl *pdl;
	uint32_t n = 0;

	san_engine_mac_set(port, &moved);
	assert_false(has(&e->conf.inet.mac));
	san_engine_progress(port);
	assert_true(has(&e->conf.inet.mac));
	pdl = san_core_pdl(e->core);
	for (uint32_t i = 0; i < pdl->conf.max_conns; i++) {
		if (pdl->conns[i].state == SAN_CONN_FREE)
			continue;
		assert_true(has(&pdl->conns[i].path.src_mac));
		assert_true(has(&pdl->conns[i].path.dst_mac));
		n++;
	}
	assert_int_equal(n, 2);
	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	assert_true(e->stats.nb_loopback > nb_local);
}

static bool
set_mac(const char *name, const struct rte_ether_addr *mac)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
	struct ifreq req = {.ifr_hwaddr.sa_family = ARPHRD_LOOPBACK};

	assert_true(fd >= 0);
	strcpy(req.ifr_name, name);
	memcpy(req.ifr_hwaddr.sa_data, mac, sizeof(*mac));
	rc = ioctl(fd, SIOCSIFHWADDR, &req);
	close(fd);
	return rc == 0;
}

/* The kernel's device gets a new address: it is seen soon, and not after unwatching. */
UNIT_CASE_ALONE(san_engine_mac_watch__of_the_kernel)
{
	static const struct rte_ether_addr other = {{2, 0, 0, 0, 8, 8}};
	static struct san_engine_port p = {.mac_fd = -1};
	struct rte_ether_addr mac;

	if (unshare(CLONE_NEWNET) != 0)
		skip(); /* not allowed here */
	p.info.driver_name = "";
	p.info.if_index = if_nametoindex("lo");
	san_engine_mac_watch(&p);
	assert_true(set_mac("lo", &moved));
	for (uint32_t ms = 0; ms < 10000; ms += 10) {
		mac = san_engine_mac(&p);
		if (has(&mac))
			break;
		usleep(10000);
	}
	assert_true(has(&mac));
	san_engine_mac_unwatch(&p);
	assert_int_equal(p.mac_fd, -1);
	assert_true(set_mac("lo", &other));
	usleep(300000);
	mac = san_engine_mac(&p);
	assert_true(has(&mac));
}
