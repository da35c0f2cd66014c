/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DPDK_PRIV_H
#define DPDK_PRIV_H

/**
 * @file
 * What the files of the embedded provider share.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine.h"
#include "rtsan_dpdk.h"
#include "rtsan_provider.h"

#define DPDK_PORT_NAME "0" /* of a port that nobody named */
#define DPDK_PATH_MAX  256
#define DPDK_ARGS_MAX  128 /* words of a spec */
#define DPDK_WORD_MAX  512

/** The port arguments, as read. */
struct dpdk_conf {
	struct san_engine_conf engine;
	char port[64];                 /**< number or name */
	char capture[DPDK_PATH_MAX];   /**< empty: none */
	struct rtsan_conn_param param; /**< defaults of connections */
	uint32_t poll;                 /**< enum dpdk_poll */
	bool has_lcores;               /**< were named; else the first worker, if any */
};

enum dpdk_poll {
	DPDK_POLL_DEFAULT = 0, /**< the caller, unless there are lcores */
	DPDK_POLL_CALLER,
	DPDK_POLL_LCORE,
};

/** An open context. */
struct dpdk_ctx {
	struct san_engine_port *port;
	const struct rtsan_host *host;
	struct rtsan_conn_param param;
	uint32_t max_qps, max_cqs, max_mrs;
	uint32_t nb_engines;
	uint32_t qp_shift;    /**< of the index in a queue pair's number: its engine */
	uint32_t next_engine; /**< where the next queue pair goes, if nothing else decides */
	uint32_t nb_qps[SAN_ENGINE_LCORES];
	char capture[DPDK_PATH_MAX]; /**< of the port arguments */
	LIST_ENTRY(dpdk_ctx)
	link;
};

/** The engine that has *qp*. */
static inline struct san_engine *
dpdk_engine_of(const struct dpdk_ctx *ctx, uint32_t qp)
{
	return san_engine_at(ctx->port, SAN_QPN_INDEX(qp) >> ctx->qp_shift);
}

extern const struct rtsan_provider rtsan_provider_dpdk;

/* ---- dpdk_conf.c ---- */

/** 123, 0x7b, 64k, 1M, 1G. */
bool dpdk_conf_number(const char *text, uint64_t *out);
/** One "key=value". -EINVAL with a text by *host*. */
int dpdk_conf_word(struct dpdk_conf *conf, const char *word, const struct rtsan_host *host);
/** Read "key=value" words. -EINVAL with a text by *host*. */
int dpdk_conf_read(struct dpdk_conf *conf, char *const *words, int nb_words,
		   const struct rtsan_host *host);
/** "drop=0.01,dup=..." ; *why* is set on error. */
int dpdk_conf_impair(const char *text, struct rtsan_dpdk_impair *out, const char **why);
/** As the engine wants it. -EINVAL: a probability is none. */
int dpdk_conf_impair_engine(const struct rtsan_dpdk_impair *in,
			    struct san_engine_impair_conf *out);

/* ---- dpdk_eal.c ---- */

/**
 * Split *text* into words at blanks; '...' and "..." keep blanks together.
 * Words lie in *buf*. The number, or -EINVAL, -E2BIG.
 */
int dpdk_eal_split(const char *text, char *buf, size_t size, char **words, int max);
/** Start EAL, or find it running with the same arguments. */
int dpdk_eal_start(int argc, char *const *argv, const struct rtsan_host *host);
/** The device behind a port: taken away by dpdk_eal_remove(), brought back by dpdk_eal_start(). */
struct rte_device;
struct rte_device *dpdk_eal_device(uint16_t port_id);
void dpdk_eal_remove(struct rte_device *dev);
/**
 * Devices among the words of EAL's arguments (--vdev, --allow): for who may not have them before
 * another process has given them up. *words* is without them afterwards.
 *
 * @param devices
 *   Room for as many as there are words; names and arguments lie in those.
 * @param nb
 *   Words, and then those that are left.
 * @return
 *   How many devices there are.
 */
int dpdk_eal_take_devices(char **words, int *nb, char **devices);
/** Have it now, or have it already. -ENODEV with a text by *host*. */
int dpdk_eal_probe(const char *device, const struct rtsan_host *host);

/* ---- dpdk_memif.c ---- */

/** The value of *key* in "name,key=value,..."; false: it is not there or does not fit. */
bool dpdk_device_value(const char *device, const char *key, char *to, size_t size);

/**
 * Before the driver makes *device* ("net_memif0,role=server,..."): a socket file of a process that
 * has ended goes. Other devices pass.
 *
 * @param is_first
 *   No device of this process has been made yet, so none can have the socket.
 * @return
 *   0, or with a text by *host*
 *   - -EADDRINUSE: another process has it.
 *   - -ENOTSOCK: the file is no socket, and stays.
 *   - what unlink() says.
 */
int dpdk_memif_clear(const char *device, bool is_first, const struct rtsan_host *host);

/* ---- dpdk_ctx.c: one thread ---- */

/** For who opens one context on one EAL: -EBUSY, or 0 and it is claimed. */
int dpdk_ctx_claim(const struct rtsan_host *host);
void dpdk_ctx_unclaim(void);
/**
 * Everything but EAL: engine and context from port arguments. *name* is what operators call the
 * port. With *mem* its state lies there (san_engine_park()), and its lcores begin with
 * dpdk_ctx_start(). -EBUSY: another context has its device.
 */
int dpdk_ctx_open(const char *name, char *const *words, int nb_words, struct san_mem *mem,
		  const struct rtsan_host *host, struct dpdk_ctx **out);
/**
 * Likewise the device only, for a port that was parked; dpdk_ctx_resume() follows. *mac* is the one
 * that peers know it by.
 */
int dpdk_ctx_open_device(const char *name, char *const *words, int nb_words,
			 const struct rte_ether_addr *mac, const struct rtsan_host *host,
			 struct dpdk_ctx **out);
/** What was parked in *mem* goes on, with dpdk_ctx_start(). 0, or see san_engine_resume(). */
int dpdk_ctx_resume(struct dpdk_ctx *ctx, struct san_mem *mem);
/** Before another process has given up the device: see san_engine_warm(). */
int dpdk_ctx_warm(char *const *words, int nb_words, const struct rtsan_host *host);
/** Of one with *mem*: lcores begin. */
int dpdk_ctx_start(struct dpdk_ctx *ctx);
void dpdk_ctx_close(struct dpdk_ctx *ctx);
/** Live restart: it lies in its *mem* now, for dpdk_ctx_resume(), here or in another process. */
void dpdk_ctx_park(struct dpdk_ctx *ctx);
/** The process ends with contexts open. */
void dpdk_ctx_halt(void);

/* ---- dpdk_ops.c ---- */

/*
 * For applications in other processes, whose queues are in memory of the caller's: what the
 * provider's operations do for the program itself. One thread.
 */

/** Of *user*. *bells*, *wake_fds*: one for each engine; see san_engine_app_add(). */
int dpdk_app_add(struct dpdk_ctx *ctx, uint16_t app, uint32_t user,
		 struct san_bells *const bells[], const int wake_fds[]);
/** It has nothing any more. */
void dpdk_app_del(struct dpdk_ctx *ctx, uint16_t app);
/** Connections that *app* has, with those whose numbers rest after it; of all engines. */
uint32_t dpdk_app_slots(struct dpdk_ctx *ctx, uint16_t app);
/** Queue pairs of streams that programs of *user* left behind and that linger; of all engines. */
uint32_t dpdk_user_orphans(struct dpdk_ctx *ctx, uint32_t user);
/** *base*: what *app* and remote sides call the first byte. */
int dpdk_mr_add(struct dpdk_ctx *ctx, uint16_t app, uint64_t base, struct rtsan_provider_mr *mr);
/** -EBUSY: its posted work names it. */
int dpdk_mr_del(struct dpdk_ctx *ctx, uint16_t app, uint32_t key);
/** In *mem*, zeroed, if not NULL: then *depth* is a power of two, at least 2. */
int dpdk_cq_create(struct dpdk_ctx *ctx, uint32_t depth, struct san_cq *mem, void **cq);
int dpdk_cq_destroy(void *priv, void *cq);
/** A write to *fd*, the caller's, wakes who waits for completions; -1: nobody any more. */
void dpdk_cq_watch(struct dpdk_ctx *ctx, void *cq, int fd);
/** With conf->wq, zeroed. */
int dpdk_qp_create(struct dpdk_ctx *ctx, uint16_t app, struct rtsan_provider_qp *conf);
/** Its wq, not touched any more. */
struct san_wq *dpdk_qp_destroy(struct dpdk_ctx *ctx, uint32_t qp);
/** What its application wrote into its queues that ended it, or NULL. */
const char *dpdk_qp_fault(struct dpdk_ctx *ctx, uint32_t qp);

/** Memory that such a stream may take at any time, beside its program's; 0: it is none. */
uint64_t dpdk_stream_bytes(const struct rtsan_provider_qp *conf);

/* ---- dpdk_conn.c ---- */

int dpdk_listen(void *priv, uint64_t service, uint16_t pkey, uint16_t backlog, uint32_t cookie);
void dpdk_unlisten(void *priv, uint64_t service, uint16_t pkey);
int dpdk_connect(void *priv, uint32_t qp, const char *peer, uint64_t service,
		 const struct rtsan_conn_param *param);
int dpdk_accept(void *priv, uint64_t request, uint32_t qp, const struct rtsan_conn_param *param);
int dpdk_reject(void *priv, uint64_t request, const void *data, uint16_t len);
int dpdk_disconnect(void *priv, uint32_t qp);
int dpdk_event_poll(void *priv, struct rtsan_provider_event *ev);

#endif /* DPDK_PRIV_H */
