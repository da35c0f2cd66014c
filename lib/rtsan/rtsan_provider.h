/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Interface of providers. A provider is a shared object "librtsan-<name>.so" that exports one
 * symbol, `const struct rtsan_provider rtsan_provider_<name>`. librtsan loads it by the name before
 * the colon in the spec of rtsan_open().
 *
 * A control call crosses this interface as a record (shmq_req.h), which librtsan has filled in and
 * checked.
 *
 * The data path crosses this interface in two places only: struct san_wq (work requests, checked by
 * librtsan) with one doorbell per posting call, and cq_poll. (SYS-2, RT-10)
 *
 * Provider functions return 0 or -errno. If a person can do something about a failure, they explain
 * it by host->fail(). librtsan serialises nothing: a provider follows the thread rule of rtsan.h
 * itself.
 */

#include <stdint.h>

#include "rtsan.h"
#include "san_wr.h"
#include "shmq_req.h"

/** Changes whenever a struct of this file, shmq_req.h or san_wr.h does. */
#define RTSAN_PROVIDER_ABI 8
#define RTSAN_PROVIDER_SYM "rtsan_provider_"

/** Functions of librtsan for providers. */
struct rtsan_host {
	/** Store a text for rtsan_error(), return *rc*. */
	int (*fail)(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
};

/** Names of a region. */
struct rtsan_provider_keys {
	uint32_t key;  /**< in entries of work queues, and in SHMQ_MR_DEL */
	uint32_t rkey; /**< for the peer */
};

struct rtsan_provider_qp {
	const struct shmq_req *req; /**< SHMQ_QP_CREATE, without the ids of the queues: */
	void *send_cq, *recv_cq;
	/* result */
	uint32_t qp;
	struct san_wq *wq; /**< of the provider, valid until qp_destroy is called */
};

struct rtsan_provider {
	uint32_t abi; /**< RTSAN_PROVIDER_ABI; the first field, so that it can always be checked */

	/** *args*: the spec after the colon. */
	int (*open)(const char *args, const struct rtsan_host *host, void **priv);
	/**
	 * All listeners were removed before, and all queue pairs were destroyed. Completion queues
	 * and regions may be left.
	 */
	void (*close)(void *priv);
	int (*progress)(void *priv);
	void (*query)(void *priv, struct rtsan_caps *caps);
	/** See rtsan_address(). */
	int (*address)(void *priv, uint32_t index, char text[RTSAN_ADDRESS_MAX]);

	/**
	 * Execute a record without a result: SHMQ_MR_DEL (-EBUSY: posted work names the region;
	 * nothing has changed), and SHMQ_LISTEN to SHMQ_DISCONNECT.
	 */
	int (*call)(void *priv, const struct shmq_req *req);
	/**
	 * SHMQ_MR_ADD. The memory stays mapped in this process until SHMQ_MR_DEL. *fd*: a memfd
	 * with it; -1: it cannot be shared.
	 */
	int (*mr_add)(void *priv, const struct shmq_req *req, int fd,
		      struct rtsan_provider_keys *keys);

	int (*cq_create)(void *priv, uint32_t depth, void **cq);
	int (*cq_destroy)(void *priv, void *cq);
	int (*cq_poll)(void *cq, struct san_ulp_wc *wc, int n);
	/** See rtsan_cq_fd(); belongs to the provider, one for the life of *cq*. */
	int (*cq_fd)(void *priv, void *cq);
	/** With or without a cq_fd: see rtsan_cq_arm(). */
	int (*cq_arm)(void *priv, void *cq);

	int (*qp_create)(void *priv, struct rtsan_provider_qp *conf);
	/** Ends the connection; memory of posted work is not accessed after return. */
	void (*qp_destroy)(void *priv, uint32_t qp);
	/** The work queues of *qp* have new entries. */
	void (*doorbell)(void *priv, uint32_t qp);

	/** 1, 0 or -EIO. */
	int (*event_poll)(void *priv, struct shmq_event *ev);
	/** Like cq_fd and cq_arm, for events. */
	int (*event_fd)(void *priv);
	int (*event_arm)(void *priv);
};

/* ---- exported by librtsan for calls of providers beyond rtsan.h ---- */

/** Create a context for an instance that the provider opened itself. -ENOMEM: not closed. */
int rtsan_provider_attach(const struct rtsan_provider *provider, void *priv,
			  struct rtsan_ctx **ctx);
/** The instance of *ctx* if it belongs to *provider*, else NULL. */
void *rtsan_provider_priv(const struct rtsan_ctx *ctx, const struct rtsan_provider *provider);
/** The host functions of this librtsan. */
const struct rtsan_host *rtsan_provider_host(void);
