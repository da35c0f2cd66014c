/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * What the programs of ofi_cases.py have in common: one fabric, and waiting for what comes. (OFI-1)
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#define CHECK(cond)                                                                               \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "%s:%d: not: %s (errno %d)\n", __FILE__, __LINE__, #cond, \
				errno);                                                           \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define WAIT_MS 60000

extern struct fid_fabric *fabric;
extern struct fid_eq *eq;
extern struct fi_info *info;

/** Open the fabric and its event queue. */
void ofi_common_get_info(const char *ip, const char *port);
/** The next event is of *type*, with that much CM data behind it. Valid until the next call. */
const struct fi_eq_cm_entry *ofi_common_expect(uint32_t type, size_t data_len);
/** The next event is an error. */
struct fi_eq_err_entry ofi_common_refused(void);
/** Listen; the address is in *at*. */
struct fid_pep *ofi_common_listen(struct fi_info *of, struct sockaddr_storage *at);
struct fid_cq *ofi_common_open_cq(struct fid_domain *domain);
/** Memory that a daemon cannot have: the provider itself serves a region of it. */
void *ofi_common_shared(size_t len);
struct fid_mr *ofi_common_region(struct fid_domain *domain, void *buf, size_t len, uint64_t rights);
/** An endpoint that is not enabled, with the event queue, and *cq* if that is not NULL. */
struct fid_ep *ofi_common_make_ep(struct fid_domain *domain, struct fi_info *of, struct fid_cq *cq);
/** Print a line for the case, at once. */
void ofi_common_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Close objects, in this order. */
#define CLOSE(...) ofi_common_close((struct fid *const[]){__VA_ARGS__, NULL})
void ofi_common_close(struct fid *const *fids);
/** Sleep on the descriptor until there is a completion or an error. */
ssize_t ofi_common_wait(struct fid_cq *cq, struct fi_cq_data_entry *e);
/** The next completion is that of *context*. */
struct fi_cq_data_entry ofi_common_done(struct fid_cq *cq, void *context);
/** The next completion is an error of *context*. */
struct fi_cq_err_entry ofi_common_failed(struct fid_cq *cq, void *context);
