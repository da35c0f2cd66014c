/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Shared by the files of the embedded provider. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "engine.h"
#include "rtsan_dpdk.h"
#include "rtsan_provider.h"
#include "san_key.h"

#define DPDK_PORT_NAME "0" /* of a port without a name */
#define DPDK_PATH_MAX  256
#define DPDK_ARGS_MAX  128 /* words of a spec at most */
#define DPDK_WORD_MAX  512
#define DPDK_KEYS_MAX  96 /* of port arguments */

/** Port arguments after parsing. */
struct dpdk_conf {
	struct san_engine_conf engine;
	char port[64];                /**< number or name of the DPDK port */
	char capture[DPDK_PATH_MAX];  /**< file name; empty: none */
	struct san_cm_param param;    /**< defaults of connections */
	uint64_t first_psn;           /**< for tests; beyond 32 bits: any */
	uint32_t poll;                /**< enum dpdk_poll */
	bool has_lcores;              /**< lcores= is given; otherwise the first worker, if any */
	bool is_given[DPDK_KEYS_MAX]; /**< each key of the table */
};

enum dpdk_poll {
	DPDK_POLL_DEFAULT = 0, /**< the caller, unless lcores= is given */
	DPDK_POLL_CALLER,
	DPDK_POLL_LCORE,
};

/** An open context. */
struct dpdk_ctx {
	struct san_engine_port *port;
	const struct rtsan_host *host;
	struct san_cm_param param;
	uint32_t nb_engines;
	uint32_t qp_shift;    /**< index of a queue pair >> qp_shift: its engine */
	uint32_t next_engine; /**< for the next queue pair, if all are equal */
	uint32_t nb_qps[SAN_ENGINE_LCORES];
	char capture[DPDK_PATH_MAX]; /**< capture= of the port arguments */
	LIST_ENTRY(dpdk_ctx) link;
};

extern const struct rtsan_provider rtsan_provider_dpdk;

/* ---- dpdk_conf.c ---- */

/** Port arguments, rtsan-dpdk(7), over struct dpdk_conf. */
extern const struct san_key dpdk_conf_keys[];
void san_dpdk_conf_default(struct dpdk_conf *conf);
/** Derive values that were not given from others, and check them all. -EINVAL with a text. */
int san_dpdk_conf_derive(struct dpdk_conf *conf, const struct rtsan_host *host);
/** Read "key=value" words over the defaults, and derive the rest. -EINVAL with a text by *host*. */
int san_dpdk_conf_read(struct dpdk_conf *conf, char *const *words, int nb_words,
		       const struct rtsan_host *host);
/** Read "drop=0.01,dup=..." into *out*, a struct san_engine_impair_conf, as san_key.set_list(). */
int san_dpdk_conf_impair(void *out, const char *text, char *err, size_t err_len);

/* ---- dpdk_eal.c ---- */

/**
 * Split *text* at blanks into words; '...' and "..." keep blanks together. The words lie in *buf*.
 * Returns their number, or -EINVAL, -E2BIG.
 */
int san_dpdk_eal_split(const char *text, char *buf, size_t size, char **words, int max);
/**
 * Set *workers* to the lcores that EAL's arguments name, without the main lcore, on which the
 * program itself runs. False: they name none, and EAL takes the machine's CPUs.
 */
bool san_dpdk_eal_workers(char *const *words, int nb, bool workers[RTE_MAX_LCORE]);
/** Start EAL, or check that it runs with the same arguments. 0, or -errno with a text by *host*. */
int san_dpdk_eal_start(int argc, char *const *argv, const struct rtsan_host *host);
/**
 * The device of a port. san_dpdk_eal_remove() removes it, and san_dpdk_eal_start() adds it again.
 */
struct rte_device;
struct rte_device *san_dpdk_eal_device(uint16_t port_id);
void san_dpdk_eal_remove(struct rte_device *dev);
/**
 * Take the devices (--vdev, --allow) out of the *nb* words of EAL's arguments, for a process that
 * may have them only after another process has released them. *devices* has room for as many
 * pointers, which point into the words. Returns their number; *nb* is that of the words left.
 */
int san_dpdk_eal_take_devices(char **words, int *nb, char **devices);
/** Probe *device*, unless that was done. -ENODEV with a text by *host*. */
int san_dpdk_eal_probe(const char *device, const struct rtsan_host *host);

/* ---- dpdk_memif.c ---- */

/** Copy the value of *key* in "name,key=value,..."; false: it is missing or does not fit. */
bool san_dpdk_memif_device_value(const char *device, const char *key, char *to, size_t size);

/**
 * Before the driver makes *device* ("net_memif0,role=server,..."): remove a socket file that a
 * process has left. Does nothing for other devices. *is_first*: this process has made no device
 * yet, so it cannot have the socket itself. Returns like san_dpdk_memif_clear_path().
 */
int san_dpdk_memif_clear(const char *device, bool is_first, const struct rtsan_host *host);
/**
 * Before bind(): remove the socket file *path* that a process has left. *is_first*: this process
 * does not have the socket itself. 0, or with a text by *host* -EADDRINUSE: another process has it;
 * or see san_dpdk_memif_unlink().
 */
int san_dpdk_memif_clear_path(const char *path, uid_t owner, bool is_first,
			      const struct rtsan_host *host);
/**
 * Remove the socket file *path*, shorter than sun_path. 0, also if there is none; or with a text by
 * *host* -ENOTSOCK: it is no socket of root, of the own user or of *owner*; -errno of unlink().
 */
int san_dpdk_memif_unlink(const char *path, uid_t owner, const struct rtsan_host *host);

/* ---- dpdk_ctx.c: for one thread ---- */

/**
 * Open a port and its engines from derived port arguments; EAL runs already. *name* is the name for
 * operators. With *mem* the port's state lies there (san_engine_park()), and san_dpdk_ctx_start()
 * starts its lcores. With *mac*, the address by which peers know a port that was parked, only the
 * device is opened, and san_dpdk_ctx_resume() follows. -EBUSY: another context has its device.
 */
int san_dpdk_ctx_open(const char *name, struct dpdk_conf *conf, struct san_mem *mem,
		      const struct rte_ether_addr *mac, const struct rtsan_host *host,
		      struct dpdk_ctx **out);
/** Start EAL and open the only context of the process. -EBUSY: there is one already. */
int san_dpdk_ctx_open_alone(int argc, char *const *argv, char *const *words, int nb_words,
			    const struct rtsan_host *host, struct dpdk_ctx **out);
void san_dpdk_ctx_close_alone(void *ctx);
/** Resume what was parked in *mem*; san_dpdk_ctx_start() follows. 0, or see san_engine_resume(). */
int san_dpdk_ctx_resume(struct dpdk_ctx *ctx, struct san_mem *mem);
/** Start the lcores of a context with *mem*. */
int san_dpdk_ctx_start(struct dpdk_ctx *ctx);
void san_dpdk_ctx_close(struct dpdk_ctx *ctx);
/** The process ends with open contexts: stop their engines. */
void san_dpdk_ctx_halt(void);

/* ---- dpdk_ops.c ---- */

/*
 * For applications in other processes, whose queues lie in memory of the caller: what the
 * operations of the provider do for the program itself. For one thread.
 */

/**
 * Add an application of *user*. *doorbells*, *wake_fds*: one per engine; see san_engine_app_add().
 */
int san_dpdk_ops_app_add(struct dpdk_ctx *ctx, uint16_t app, uint32_t user,
			 struct san_doorbells *const doorbells[], const int wake_fds[]);
/** Remove it, when it has nothing any more. */
void san_dpdk_ops_app_del(struct dpdk_ctx *ctx, uint16_t app);
/**
 * Add to *nb* the connections of each application, on all engines, with those whose numbers are not
 * reusable yet.
 */
void san_dpdk_ops_app_slots(struct dpdk_ctx *ctx, uint32_t nb[SAN_ENGINE_APPS]);
/** Orphaned queue pairs of streams of *user*, on all engines. */
uint32_t san_dpdk_ops_user_orphans(struct dpdk_ctx *ctx, uint32_t user);
/** Execute SHMQ_MR_ADD for *mem* in this process, to be named by mr.addr, also by peers. */
int san_dpdk_ops_mr_add(struct dpdk_ctx *ctx, uint16_t app, const struct shmq_req *req, void *mem,
			uint32_t *key);
/** NULL, or zeroed memory for the queue: then *depth* is a power of two, at least 2. */
int san_dpdk_ops_cq_create(struct dpdk_ctx *ctx, uint32_t depth, struct san_cq *mem, void **cq);
int san_dpdk_ops_cq_destroy(void *priv, void *cq);
/** Write to *fd*, the caller's, to wake a thread that waits for completions; -1: none waits. */
void san_dpdk_ops_cq_watch(struct dpdk_ctx *ctx, void *cq, int fd);
/** Create it with conf->wq, which is zeroed. */
int san_dpdk_ops_qp_create(struct dpdk_ctx *ctx, uint16_t app, struct rtsan_provider_qp *conf);
/** Destroy it. Returns its wq, which is not accessed any more. */
struct san_wq *san_dpdk_ops_qp_destroy(struct dpdk_ctx *ctx, uint32_t qp);
/** Text: the invalid entry of its application that ended the queue pair; NULL: none. */
const char *san_dpdk_ops_qp_fault(struct dpdk_ctx *ctx, uint32_t qp);

/** Memory that this stream may take at most, beside its program's; 0: not a stream. */
uint64_t san_dpdk_ops_stream_bytes(const struct shmq_qp *qp);

/* ---- dpdk_call.c ---- */

/**
 * Execute a record: SHMQ_MR_DEL, or SHMQ_LISTEN to SHMQ_DISCONNECT. It is valid, and its
 * application owns everything that it names. 0 or -errno; most errors have a text.
 */
int san_dpdk_call(void *priv, const struct shmq_req *req);
/** SHMQ_REJECT without private data. */
int san_dpdk_call_reject(struct dpdk_ctx *ctx, uint64_t request);
int san_dpdk_call_event_poll(void *priv, struct shmq_event *ev);
