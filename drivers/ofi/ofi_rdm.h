/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFI_RDM_H
#define OFI_RDM_H

/**
 * @file
 * Endpoints FI_EP_RDM: the address vector, connections made when they are needed, and the matching
 * of messages. (OFI-1)
 */

#include "ofi_priv.h"

/** A message for which there is no receive yet. */
struct ofi_umsg {
	struct ofi_ep *conn;
	struct ofi_rx *rx; /**< of the pool; NULL: it is copied */
	size_t length;     /**< with the header */
	void *claim;       /**< by FI_CLAIM with this context */
	STAILQ_ENTRY(ofi_umsg) link;
	uint8_t copy[];
};

STAILQ_HEAD(ofi_umsgs, ofi_umsg);

/** What a connection is to be made for: an entry of the address vector. */
struct ofi_peer {
	struct ofi_ep *conn;
	int64_t since; /**< of the first attempt; 0: none */
	int err;       /**< why there is none, for the next call */
};

/** What an endpoint FI_EP_RDM has. */
struct ofi_rdm {
	struct ofi_ep *ep;
	struct ofi_av *av;
	struct rtsan_listener *listener;
	bool is_directed;
	uint64_t token;            /**< of its name */
	struct ofi_rxq tagged;     /**< tagged receives; others are in own_rxq */
	struct ofi_umsgs umsgs[2]; /**< untagged, tagged */
	size_t copied;             /**< bytes of their copies */
	LIST_HEAD(, ofi_ep) conns;
	struct ofi_peer *peers; /**< by address */
	size_t nb_peers;
	LIST_ENTRY(ofi_rdm) link, av_link;
};

struct ofi_av_place {
	union ofi_addr addr;
	uint32_t uses; /**< times that it was inserted and not removed; 0: free */
};

/** An address vector, of both types: numbers of addresses are places in its table. */
struct ofi_av {
	struct fid_av fid;
	struct ofi_domain *domain;
	uint32_t refs;
	struct ofi_av_place *places;
	size_t nb;
	LIST_HEAD(, ofi_rdm) rdms;
};

/* ---- ofi_av.c ---- */

int san_ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		    void *context);
/** The address, or NULL. */
const union ofi_addr *san_ofi_av_find(const struct ofi_av *av, fi_addr_t at);

/* ---- ofi_rdm.c: connections of endpoints FI_EP_RDM ---- */

/** Make *ep* an endpoint FI_EP_RDM. 0 or -errno. */
int san_ofi_rdm_init(struct ofi_ep *ep);
int san_ofi_rdm_enable(struct ofi_ep *ep);
/** Its address, which is known by now, has its token. */
void san_ofi_rdm_name(struct ofi_ep *ep);
/** Close its connections, in order until *end_ms*. */
void san_ofi_rdm_close(struct ofi_ep *ep, int64_t end_ms);
/** The connection to *to*, or NULL: -FI_EAGAIN in *rc*, while it is made, or -errno. */
struct ofi_ep *san_ofi_rdm_conn(struct ofi_ep *ep, fi_addr_t to, int *rc);
/** A request for a listener. False: of none of these endpoints. */
bool san_ofi_rdm_on_request(struct ofi_ctx *ctx, const struct rtsan_event *ev);
/** Whether the peer that has accepted is the program that was meant. */
bool san_ofi_rdm_is_proved(const struct ofi_ep *conn, const struct rtsan_event *ev);
/** A connection has been made, or not, or has ended. */
void san_ofi_rdm_on_event(struct ofi_ep *conn, const struct rtsan_event *ev);
/** An address is new in the vector. */
void san_ofi_rdm_on_insert(struct ofi_rdm *rdm, fi_addr_t at, const union ofi_addr *a);
/** An address is no longer in the vector. */
void san_ofi_rdm_on_remove(struct ofi_rdm *rdm, fi_addr_t at);
/** The daemon or the port has ended: nothing comes any more. */
void san_ofi_rdm_end_all(struct ofi_ctx *ctx);
/** Free connections that have ended. */
void san_ofi_rdm_reap(struct ofi_ctx *ctx);

/* ---- ofi_tag.c: messages of endpoints FI_EP_RDM ---- */

/** A message has come. False: it stays in the receive of the pool. */
bool san_ofi_tag_on_message(struct ofi_ep *conn, struct ofi_rx *rx);
/** Post a receive, tagged or not. */
int san_ofi_tag_post(struct ofi_ep *ep, const struct fi_msg *msg, uint64_t tag, uint64_t ignore,
		     uint64_t flags);
/** Drop the messages that wait for a receive. */
void san_ofi_tag_drop_all(struct ofi_rdm *rdm);

extern struct fi_ops_tagged san_ofi_tagged_ops;

#endif /* OFI_RDM_H */
