/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file What the programs with endpoints FI_EP_RDM have in common. (OFI-1) */

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "ofi_common.h"

#define NODES    3
#define CNTRS    4
#define BIG      3000000
#define MANY     300    /* more than the credits of a pool */
#define TAG_LAST 0x7777 /* what a victim waits for */

/** An endpoint with its parts. */
struct node {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_cntr *cntrs[CNTRS];
	struct sockaddr_storage name;
	fi_addr_t at[NODES];
};

extern struct fid_domain *rdm_domain;
extern struct node nodes[NODES];
extern char from[BIG], to[BIG];
extern struct fi_context contexts[MANY + 2];

void rdm_open_domain(void);
/** Free what rdm_open_domain() has opened. */
void rdm_close_domain(void);
void rdm_open_node(struct node *n);
void rdm_close_node(struct node *n);

void rdm_progress(void);
/** A completion, or -FI_EAVAIL. */
ssize_t rdm_wait_one(struct node *n, struct fi_cq_tagged_entry *e, fi_addr_t *source);
/** The completion of *context*, whatever comes before. */
struct fi_cq_tagged_entry rdm_done(struct node *n, void *context, fi_addr_t *source);
/** The first error, which is that of *context*. */
struct fi_cq_err_entry rdm_failed(struct node *n, void *context);
/** Read completions until there are no more. */
void rdm_drain(void);
/** Send to node *b*; the completion is that of contexts[MANY]. */
void rdm_send_tag(int a, int b, uint64_t tag, size_t len);
/** Receive a message that has come, or is under way. */
struct fi_cq_tagged_entry rdm_receive_tag(int a, uint64_t tag, size_t len);

/* Repeat a call while it is to be repeated; then it returns *want*. */
#define POST_FOR(want, call)                         \
	do {                                         \
		ssize_t rc_;                         \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			rdm_progress();              \
		CHECK(rc_ == (want));                \
	} while (0)
#define POST(call) POST_FOR(0, call)
