/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Write packets of the port, all or those of one connection, to a pcapng file as they are on the
 * wire: received packets before impairment, sent ones after it. This is for debugging: packets are
 * copied and written on the lcore, by one lcore at a time. Other connections' packets are skipped
 * by their headers, without a copy. Copies have a pool of their own, so that a capture cannot
 * starve the transport; packets that find the pool empty are counted.
 */

#define ALLOW_EXPERIMENTAL_API /* rte_pcapng is still marked so in DPDK 22.11 */

#include <fcntl.h>
#include <sys/stat.h>

#include <rte_spinlock.h>

#include "engine_priv.h"
#include "san_lock.h"
#include "view.h"
#include "view_compat.h"

#define CAPTURE_POOL (4 * ENGINE_OUT_MAX)
#define PCAPNG_FIRST 0x0a0d0d0au /* type of the first block, the same in both byte orders */

struct san_view_capture {
	rte_pcapng_t *file;
	rte_spinlock_t lock; /* of *file* */
	struct rte_mempool *pool;
	struct san_view_capture_conf conf;
	char name[VIEW_CAPTURE_NAME];
	uint16_t udp_port;
	_Atomic uint64_t nb_pkts, nb_missed;
};

/* Serialises start and stop, which applications and telemetry call from different threads. */
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;

/* A receiver chooses its CID: that of a sent packet is unique only with the peer's address. */
static bool
capture_is_wanted(const struct san_view_capture *cap, const struct rte_mbuf *m, bool tx)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *v4 = (const void *)(eth + 1);
	const struct rte_ipv6_hdr *v6 = (const void *)(eth + 1);
	const uint8_t *peer = cap->conf.peer.b;
	struct san_wire_peek peek;

	if (cap->conf.cid == 0)
		return true;
	if (!san_wire_peek(m, cap->udp_port, &peek))
		return false;
	if (!tx || peek.cid != cap->conf.dcid)
		return !tx && peek.cid == cap->conf.cid;
	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return memcmp(&v4->dst_addr, &peer[12], sizeof(v4->dst_addr)) == 0;
	return memcmp(&v6->dst_addr, peer, sizeof(v6->dst_addr)) == 0;
}

void
san_view_capture_pkts(struct san_engine *e, struct rte_mbuf **m, uint16_t n, bool tx)
{
	struct san_view_capture *cap = e->port->capture;
	enum rte_pcapng_direction dir = tx ? RTE_PCAPNG_DIRECTION_OUT : RTE_PCAPNG_DIRECTION_IN;
	struct rte_mbuf *copies[ENGINE_OUT_MAX];
	uint16_t i, k = 0;

	for (i = 0; i < n; i++) {
		if (!capture_is_wanted(cap, m[i], tx))
			continue;
		copies[k] = rte_pcapng_copy(e->port_id, e->id, m[i], cap->pool, cap->conf.snap,
					    dir, NULL);
		if (copies[k] != NULL)
			k++;
		else
			atomic_fetch_add(&cap->nb_missed, 1);
	}
	if (k == 0)
		return;
	rte_spinlock_lock(&cap->lock);
	rte_pcapng_write_packets(cap->file, copies, k);
	rte_spinlock_unlock(&cap->lock);
	atomic_fetch_add(&cap->nb_pkts, k);
	/* the documentation differs, but DPDK leaves the copies to the caller */
	rte_pktmbuf_free_bulk(copies, k);
}

static int
do_capturing(struct san_engine *e, void *arg)
{
	e->capturing = arg != NULL;
	return 0;
}

/* On return no engine uses a capture other than *cap*; NULL: none. */
static void
capture_set_engines(struct san_engine_port *p, struct san_view_capture *cap)
{
	uint32_t i;

	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_call(p->engines[i], do_capturing, cap);
}

static void
capture_free(struct san_view_capture *cap)
{
	if (cap->file != NULL)
		rte_pcapng_close(cap->file);
	rte_mempool_free(cap->pool);
	free(cap);
}

static void
capture_stop(struct san_engine_port *p)
{
	struct san_view_capture *cap = p->capture;

	if (cap == NULL)
		return;
	capture_set_engines(p, NULL);
	p->capture = NULL;
	capture_free(cap);
}

/* The descriptor of *file*. A regular file is only overwritten if it is empty or a capture. */
static int
capture_open(const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0640), in, rc;
	uint32_t block = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return fd < 0 ? -errno : fd;
	in = open(file, O_RDONLY | O_CLOEXEC);
	rc = pread(in, &block, sizeof(block), 0) == sizeof(block) && block == PCAPNG_FIRST ?
		0 :
		-EEXIST;
	if (in >= 0)
		close(in);
	if (rc == 0 && ftruncate(fd, 0) != 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static int
capture_start(struct san_engine_port *p, const struct san_view_capture_conf *conf)
{
	uint32_t frame = p->conf.core.mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	char pool[RTE_MEMPOOL_NAMESIZE];
	struct san_view_capture *cap;
	int fd, rc = -ENOMEM;

	if (strlen(conf->file) >= sizeof(cap->name))
		return -ENAMETOOLONG;
	cap = calloc(1, sizeof(*cap));
	if (cap == NULL)
		return -ENOMEM;
	cap->conf = *conf;
	cap->conf.file = strcpy(cap->name, conf->file);
	if (conf->snap == 0)
		cap->conf.snap = UINT32_MAX;
	cap->udp_port = p->conf.core.udp_port;
	rte_spinlock_init(&cap->lock);
	snprintf(pool, sizeof(pool), "san_cap_%u", p->id);
	cap->pool = rte_pktmbuf_pool_create(pool, CAPTURE_POOL * p->conf.nb_lcores, 0, 0,
					    (uint16_t)rte_pcapng_mbuf_size(frame), SOCKET_ID_ANY);
	if (cap->pool == NULL)
		goto fail;
	fd = fcntl(conf->fd, F_DUPFD_CLOEXEC, 0);
	cap->file = fd >= 0 ? rte_pcapng_fdopen(fd, NULL, NULL, "sanstack", NULL) : NULL;
	if (cap->file == NULL)
		rc = errno != 0 ? -errno : -EIO; /* of the first write */
	if (cap->file == NULL && fd >= 0)
		close(fd);
	if (cap->file == NULL || rte_pcapng_add_interface(cap->file, p->id, NULL, NULL, NULL) < 0)
		goto fail;
	p->capture = cap;
	capture_set_engines(p, cap);
	return 0;
fail:
	capture_free(cap);
	return rc;
}

int
san_view_capture(struct san_engine_port *p, const char *file)
{
	struct san_view_capture_conf conf = {.file = file};
	int rc;
	SAN_LOCKED(&control);

	capture_stop(p);
	if (file == NULL)
		return 0;
	conf.fd = capture_open(file);
	if (conf.fd < 0)
		return conf.fd;
	rc = capture_start(p, &conf);
	close(conf.fd);
	return rc;
}

int
san_view_capture_start(struct san_engine_port *p, const struct san_view_capture_conf *conf)
{
	SAN_LOCKED(&control);

	/* an engine that the application polls cannot be called from here */
	if (!p->launched)
		return -ENOTSUP;
	return p->capture == NULL ? capture_start(p, conf) : -EBUSY;
}

bool
san_view_capture_show(struct san_engine_port *p, struct san_view *v, bool ends)
{
	const struct san_view_capture *cap;
	SAN_LOCKED(&control);

	if (ends && !p->launched)
		return false;
	cap = p->capture;
	if (ends)
		capture_set_engines(p, NULL); /* afterwards the counters are final */
	if (cap != NULL && v != NULL) {
		san_view_u64(v, "active", !ends);
		san_view_string(v, "file", cap->name);
		if (cap->conf.cid != 0)
			san_view_hex(v, "cid", 6, cap->conf.cid);
		else
			san_view_string(v, "cid", "all");
		san_view_u64(v, "snap", cap->conf.snap);
		san_view_u64(v, "packets", atomic_load(&cap->nb_pkts));
		san_view_u64(v, "missed", atomic_load(&cap->nb_missed));
	}
	if (ends)
		capture_stop(p);
	return cap != NULL;
}
