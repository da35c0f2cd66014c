/* SPDX-License-Identifier: BSD-3-Clause */

/* fi_getinfo(): what the provider offers, and whether it matches the hints of the program. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

#define INFO_TX_CAPS (FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE)
#define INFO_RX_CAPS \
	(FI_MSG | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV)
#define INFO_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define INFO_CAPS        (INFO_TX_CAPS | INFO_RX_CAPS | INFO_DOMAIN_CAPS)
/* what FI_EP_RDM has besides */
#define INFO_RDM_TX_CAPS FI_TAGGED
#define INFO_RDM_RX_CAPS (FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
#define INFO_RDM_CAPS    (INFO_CAPS | INFO_RDM_TX_CAPS | INFO_RDM_RX_CAPS)
#define INFO_TAG_FORMAT  0xaaaaaaaaaaaaaaaaull /* each bit is a field */
#define INFO_TX_FLAGS                                                            \
	(FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_FENCE | FI_MORE | FI_REMOTE_CQ_DATA)
#define INFO_RX_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE)
#define INFO_ORDER                                                                      \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS |     \
	 FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define INFO_MR_BASIC 1 /* FI_MR_BASIC, deprecated in libfabric 2.x */
#define INFO_MR_MODE  (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define INFO_TARGET   (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define INFO_ENDS     1024

static struct fi_tx_attr info_tx = {
	.caps = INFO_TX_CAPS,
	.msg_order = INFO_ORDER,
	.inject_size = OFI_INJECT,
	.size = OFI_TX_SIZE,
	.iov_limit = OFI_IOV,
	.rma_iov_limit = 1,
};

static struct fi_rx_attr info_rx = {
	.caps = INFO_RX_CAPS,
	.msg_order = INFO_ORDER,
	.size = OFI_RX_SIZE,
	.iov_limit = OFI_IOV,
};

static struct fi_ep_attr info_ep = {
	.type = FI_EP_MSG,
	.protocol = OFI_PROTOCOL,
	.protocol_version = OFI_CM_VERSION,
	.max_msg_size = OFI_LENGTH,
	.max_order_raw_size = OFI_LENGTH,
	.max_order_waw_size = OFI_LENGTH,
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
};

static struct fi_domain_attr info_domain = {
	.threading = FI_THREAD_SAFE,
	.control_progress = FI_PROGRESS_MANUAL,
	.data_progress = FI_PROGRESS_MANUAL,
	.resource_mgmt = FI_RM_ENABLED,
	.mr_mode = INFO_MR_MODE,
	.mr_key_size = sizeof(uint64_t),
	.cq_data_size = sizeof(uint64_t),
	.cq_cnt = INFO_ENDS,
	.ep_cnt = INFO_ENDS,
	.tx_ctx_cnt = INFO_ENDS,
	.rx_ctx_cnt = INFO_ENDS,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.max_ep_srx_ctx = 1,
	.cntr_cnt = INFO_ENDS,
	.mr_iov_limit = 1,
	.caps = INFO_DOMAIN_CAPS,
	.mr_cnt = 65535,
};

static struct fi_fabric_attr info_fabric;

static const struct fi_info info_all = {
	.caps = INFO_CAPS,
	.tx_attr = &info_tx,
	.rx_attr = &info_rx,
	.ep_attr = &info_ep,
	.domain_attr = &info_domain,
	.fabric_attr = &info_fabric,
};

/* ---- hints ---- */

static bool
info_refuse(const char *what)
{
	OFI_INFO(FI_LOG_CORE, "asked for what is not offered: %s\n", what);
	return false;
}

static bool
info_check_ep(const struct fi_ep_attr *h, enum fi_ep_type type)
{
	if (h == NULL)
		return true;
	if (h->type != FI_EP_UNSPEC && h->type != type)
		return info_refuse("type of endpoint");
	if (h->protocol != FI_PROTO_UNSPEC && h->protocol != OFI_PROTOCOL)
		return info_refuse("protocol");
	if (h->max_msg_size > info_ep.max_msg_size || h->msg_prefix_size != 0)
		return info_refuse("max_msg_size, msg_prefix_size");
	if (h->max_order_raw_size > info_ep.max_order_raw_size ||
	    h->max_order_war_size > info_ep.max_order_war_size ||
	    h->max_order_waw_size > info_ep.max_order_waw_size)
		return info_refuse("max_order_size");
	if (h->tx_ctx_cnt > 1 ||
	    (h->rx_ctx_cnt > 1 && (h->rx_ctx_cnt != FI_SHARED_CONTEXT || type == FI_EP_RDM)))
		return info_refuse("contexts of an endpoint");
	return h->auth_key_size == 0 || info_refuse("auth_key");
}

static bool
info_check_domain(uint32_t version, uint64_t caps, const struct fi_domain_attr *h,
		  enum fi_ep_type type)
{
	uint64_t target = caps == 0 ? INFO_TARGET : caps & (FI_RMA | FI_ATOMIC | INFO_TARGET);

	if (h == NULL)
		return true;
	if (h->control_progress == FI_PROGRESS_AUTO || h->data_progress == FI_PROGRESS_AUTO)
		return info_refuse("automatic progress");
	if ((h->caps & ~INFO_DOMAIN_CAPS) != 0)
		return info_refuse("caps of the domain");
	if (h->mr_key_size > info_domain.mr_key_size ||
	    h->cq_data_size > info_domain.cq_data_size)
		return info_refuse("mr_key_size, cq_data_size");
	if (h->cq_cnt > INFO_ENDS || h->ep_cnt > INFO_ENDS || h->tx_ctx_cnt > INFO_ENDS ||
	    h->rx_ctx_cnt > INFO_ENDS || h->cntr_cnt > INFO_ENDS ||
	    h->mr_cnt > info_domain.mr_cnt || h->mr_iov_limit > 1)
		return info_refuse("number of objects");
	if (h->max_ep_tx_ctx > 1 || h->max_ep_rx_ctx > 1 || h->max_ep_stx_ctx != 0 ||
	    h->max_ep_srx_ctx > (type == FI_EP_MSG))
		return info_refuse("contexts of an endpoint");
	if (h->auth_key_size != 0)
		return info_refuse("auth_key");
	if (target == 0 || h->mr_mode == INFO_MR_BASIC ||
	    (FI_VERSION_LT(version, FI_VERSION(1, 5)) && h->mr_mode == 0))
		return true;
	return (h->mr_mode & INFO_MR_MODE) == INFO_MR_MODE || info_refuse("mr_mode");
}

static bool
info_check_tx(const struct fi_tx_attr *h, enum fi_ep_type type)
{
	uint64_t caps = INFO_TX_CAPS | INFO_DOMAIN_CAPS |
		(type == FI_EP_RDM ? INFO_RDM_TX_CAPS : 0);

	if (h == NULL)
		return true;
	if ((h->caps & ~caps) != 0 ||
	    (h->op_flags & ~INFO_TX_FLAGS) != 0)
		return info_refuse("caps, op_flags of sending");
	if ((h->msg_order & ~INFO_ORDER) != 0 || h->comp_order != 0)
		return info_refuse("order of sending");
	if (h->inject_size > OFI_INJECT || h->size > OFI_REQUESTS || h->iov_limit > OFI_IOV ||
	    h->rma_iov_limit > 1)
		return info_refuse("sizes of sending");
	return true;
}

static bool
info_check_rx(const struct fi_rx_attr *h, enum fi_ep_type type)
{
	uint64_t caps = INFO_RX_CAPS | INFO_DOMAIN_CAPS |
		(type == FI_EP_RDM ? INFO_RDM_RX_CAPS : 0);

	if (h == NULL)
		return true;
	if ((h->caps & ~caps) != 0 ||
	    (h->op_flags & ~INFO_RX_FLAGS) != 0)
		return info_refuse("caps, op_flags of receiving");
	if ((h->msg_order & ~INFO_ORDER) != 0 || h->comp_order != 0)
		return info_refuse("order of receiving");
	if (h->size > OFI_RX_MAX || h->iov_limit > OFI_IOV || h->total_buffered_recv != 0)
		return info_refuse("sizes of receiving");
	return true;
}

static const char *
info_domain_name(void)
{
	static char name[FI_NAME_MAX];

	snprintf(name, sizeof(name), "%s", san_ofi_ctx_spec());
	return name;
}

static bool
info_check(uint32_t version, const struct fi_info *h, enum fi_ep_type type)
{
	if (h == NULL)
		return true;
	if ((h->caps & ~(type == FI_EP_RDM ? INFO_RDM_CAPS : INFO_CAPS)) != 0)
		return info_refuse("caps");
	if (h->addr_format != FI_FORMAT_UNSPEC && h->addr_format != FI_SOCKADDR &&
	    h->addr_format != FI_SOCKADDR_IN && h->addr_format != FI_SOCKADDR_IN6)
		return info_refuse("addr_format");
	if (!info_check_ep(h->ep_attr, type) ||
	    !info_check_domain(version, h->caps, h->domain_attr, type) ||
	    !info_check_tx(h->tx_attr, type) || !info_check_rx(h->rx_attr, type))
		return false;
	if (h->fabric_attr != NULL && h->fabric_attr->name != NULL &&
	    strcmp(h->fabric_attr->name, OFI_NAME) != 0)
		return info_refuse("name of the fabric");
	if (h->domain_attr != NULL && h->domain_attr->name != NULL &&
	    strcmp(h->domain_attr->name, info_domain_name()) != 0)
		return info_refuse("name of the domain");
	return true;
}

/* ---- answers ---- */

static void
info_fit(uint32_t version, const struct fi_info *h, enum fi_ep_type type, struct fi_info *info)
{
	bool has_format = h != NULL && h->ep_attr != NULL && h->ep_attr->mem_tag_format != 0;
	uint64_t asked = h != NULL ? h->caps : 0;

	info->caps = asked | INFO_DOMAIN_CAPS;
	if (asked == 0)
		info->caps = type == FI_EP_RDM ? INFO_RDM_CAPS : INFO_CAPS;
	/* without a direction both are meant */
	if ((asked & (FI_MSG | FI_TAGGED)) != 0 && (asked & (FI_SEND | FI_RECV)) == 0)
		info->caps |= FI_SEND | FI_RECV;
	if ((asked & (FI_RMA | FI_ATOMIC)) != 0 &&
	    (asked & (FI_READ | FI_WRITE | INFO_TARGET)) == 0)
		info->caps |= FI_READ | FI_WRITE | INFO_TARGET;
	info->tx_attr->caps = info->caps & (INFO_TX_CAPS | INFO_RDM_TX_CAPS);
	info->rx_attr->caps = info->caps & (INFO_RX_CAPS | INFO_RDM_RX_CAPS);
	if (type == FI_EP_RDM) {
		info->ep_attr->type = FI_EP_RDM;
		info->ep_attr->mem_tag_format = has_format ? h->ep_attr->mem_tag_format :
							     INFO_TAG_FORMAT;
		info->domain_attr->max_ep_srx_ctx = 0;
		if (h != NULL && h->domain_attr != NULL)
			info->domain_attr->av_type = h->domain_attr->av_type;
	}
	if ((info->caps & (FI_RMA | FI_ATOMIC)) == 0)
		info->domain_attr->mr_mode = 0;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) ||
	    (h != NULL && h->domain_attr != NULL && h->domain_attr->mr_mode == INFO_MR_BASIC))
		info->domain_attr->mr_mode = INFO_MR_BASIC;
	if (h == NULL)
		return;
	info->handle = h->handle;
	if (h->tx_attr != NULL) {
		info->tx_attr->op_flags = h->tx_attr->op_flags;
		if (h->tx_attr->size != 0)
			info->tx_attr->size = h->tx_attr->size;
	}
	if (h->rx_attr != NULL) {
		info->rx_attr->op_flags = h->rx_attr->op_flags;
		if (h->rx_attr->size != 0)
			info->rx_attr->size = h->rx_attr->size;
	}
	if (h->ep_attr != NULL && h->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT)
		info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (h->domain_attr != NULL && h->domain_attr->threading != FI_THREAD_UNSPEC)
		info->domain_attr->threading = h->domain_attr->threading;
}

static void *
info_dup_addr(const union ofi_addr *a)
{
	void *copy = malloc(sizeof(*a));

	if (copy != NULL)
		memcpy(copy, a, sizeof(*a));
	return copy;
}

int
san_ofi_info_set_addrs(struct fi_info *info, const union ofi_addr *src, const union ofi_addr *dest)
{
	free(info->src_addr);
	free(info->dest_addr);
	info->src_addr = info_dup_addr(src);
	info->dest_addr = dest != NULL ? info_dup_addr(dest) : NULL;
	info->src_addrlen = san_ofi_addr_len(src);
	info->dest_addrlen = dest != NULL ? san_ofi_addr_len(dest) : 0;
	info->addr_format = src->sa.sa_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	return info->src_addr == NULL || (dest != NULL && info->dest_addr == NULL) ? -FI_ENOMEM : 0;
}

/* ---- addresses ---- */

/** Addresses that the program passes, and those of the context. */
struct info_where {
	bool has_src, has_dest;
	union ofi_addr src, dest;
	union ofi_addr own[OFI_ADDRS];
	int nb_own;
};

static int
info_family(const struct fi_info *h)
{
	if (h == NULL || h->addr_format == FI_SOCKADDR || h->addr_format == FI_FORMAT_UNSPEC)
		return AF_UNSPEC;
	return h->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
}

static int
info_read_addrs(struct info_where *w, const char *node, const char *service, uint64_t flags,
		const struct fi_info *h)
{
	bool numeric = (flags & FI_NUMERICHOST) != 0, is_src = (flags & FI_SOURCE) != 0;
	int rc = 0;

	if (node != NULL || service != NULL) {
		union ofi_addr *to = is_src ? &w->src : &w->dest;
		int family = info_family(h);

		if (node == NULL && family == AF_UNSPEC)
			family = w->nb_own > 0 ? w->own[0].sa.sa_family : AF_INET;
		rc = san_ofi_addr_resolve(to, node, service, numeric, family);
		*(is_src ? &w->has_src : &w->has_dest) = rc == 0;
	}
	if (rc == 0 && h != NULL && h->src_addr != NULL && !w->has_src) {
		rc = san_ofi_addr_read(&w->src, h->src_addr, h->src_addrlen);
		w->has_src = rc == 0;
	}
	if (rc == 0 && h != NULL && h->dest_addr != NULL && !w->has_dest) {
		rc = san_ofi_addr_read(&w->dest, h->dest_addr, h->dest_addrlen);
		w->has_dest = rc == 0;
	}
	return rc;
}

static bool
info_is_loopback(const union ofi_addr *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
	return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
}

/*
 * Choose the source address for *family*: an own one, with the requested port, or the wildcard
 * address while none is known. Returns false if the requested addresses cannot be used.
 */
static bool
info_choose(const struct info_where *w, int family, union ofi_addr *src)
{
	bool is_any = san_ofi_addr_is_any(&w->src);
	int i;

	if ((w->has_src && w->src.sa.sa_family != family) ||
	    (w->has_dest && w->dest.sa.sa_family != family))
		return false;
	if (w->has_dest && info_is_loopback(&w->dest))
		return info_refuse("an address of the kernel's");
	*src = w->src;
	src->sa.sa_family = (sa_family_t)family;
	if (w->nb_own == 0)
		return true; /* the engine does not run yet */
	for (i = 0; i < w->nb_own; i++) {
		if (is_any && w->own[i].sa.sa_family == family) {
			*src = w->own[i];
			san_ofi_addr_set_port(src, san_ofi_addr_port(&w->src));
			return true;
		}
		if (san_ofi_addr_is_same_ip(&w->own[i], src))
			return true;
	}
	return !is_any && info_refuse("source address");
}

/* Add an answer for addresses of *family*, if that is possible. */
static int
info_add_one(uint32_t version, const struct fi_info *hints, const struct info_where *w, int family,
	     enum fi_ep_type type, struct fi_info **tail)
{
	struct fi_info *info;
	union ofi_addr src;

	if (!info_choose(w, family, &src))
		return 0;
	info = fi_dupinfo(&info_all);
	if (info == NULL)
		return -FI_ENOMEM;
	*tail = info;
	info_fit(version, hints, type, info);
	info->fabric_attr->name = strdup(OFI_NAME);
	info->domain_attr->name = strdup(info_domain_name());
	if (info->fabric_attr->name == NULL || info->domain_attr->name == NULL)
		return -FI_ENOMEM;
	return san_ofi_info_set_addrs(info, &src, w->has_dest ? &w->dest : NULL);
}

/* Add the answers for endpoints of *type*. */
static int
info_add(uint32_t version, const struct fi_info *hints, const struct info_where *w,
	 enum fi_ep_type type, struct fi_info **tail)
{
	int family = info_family(hints), rc = 0;

	if (!info_check(version, hints, type))
		return 0;
	if (family != AF_INET6)
		rc = info_add_one(version, hints, w, AF_INET, type, tail);
	/* without known addresses both families would be guesses */
	if (rc == 0 && family != AF_INET && (*tail == NULL || w->nb_own > 0))
		rc = info_add_one(version, hints, w, AF_INET6, type,
				  *tail != NULL ? &(*tail)->next : tail);
	return rc;
}

int
san_ofi_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	struct info_where w = {0};
	struct fi_info **tail;
	int rc;

	*info = NULL;
	if (!info_check(version, hints, FI_EP_MSG) && !info_check(version, hints, FI_EP_RDM))
		return -FI_ENODATA;
	w.nb_own = san_ofi_ctx_addrs(w.own);
	if (w.nb_own < 0)
		return -FI_ENODATA;
	rc = info_read_addrs(&w, node, service, flags, hints);
	if (rc != 0)
		return rc;
	rc = info_add(version, hints, &w, FI_EP_MSG, info);
	for (tail = info; *tail != NULL;)
		tail = &(*tail)->next;
	if (rc == 0)
		rc = info_add(version, hints, &w, FI_EP_RDM, tail);
	if (rc != 0) {
		fi_freeinfo(*info);
		*info = NULL;
		return rc;
	}
	return *info != NULL ? 0 : -FI_ENODATA;
}
