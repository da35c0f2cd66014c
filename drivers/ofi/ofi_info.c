/* SPDX-License-Identifier: BSD-3-Clause */

/* fi_getinfo(): what the provider offers, and whether it matches the hints of the program. */

#include <stdio.h>

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

/** What a program asks, with addresses that have no family if it passes none. */
struct info_query {
	uint32_t version;
	struct fi_info hints;
	union ofi_addr src, dest;
	union ofi_addr own[OFI_ADDRS]; /**< of the context */
	int nb_own;
};

/* What hints have that a program does not give. */
static struct fi_tx_attr info_no_tx;
static struct fi_rx_attr info_no_rx;
static struct fi_ep_attr info_no_ep;
static struct fi_domain_attr info_no_domain = {.mr_mode = INFO_MR_MODE};
static struct fi_fabric_attr info_no_fabric;

struct fi_info
san_ofi_info_complete(const struct fi_info *hints)
{
	struct fi_info h = hints != NULL ? *hints : (struct fi_info){0};

	if (h.tx_attr == NULL)
		h.tx_attr = &info_no_tx;
	if (h.rx_attr == NULL)
		h.rx_attr = &info_no_rx;
	if (h.ep_attr == NULL)
		h.ep_attr = &info_no_ep;
	if (h.domain_attr == NULL)
		h.domain_attr = &info_no_domain;
	if (h.fabric_attr == NULL)
		h.fabric_attr = &info_no_fabric;
	return h;
}

static bool
info_refuse(const char *what)
{
	OFI_INFO(FI_LOG_CORE, "asked for what is not offered: %s\n", what);
	return false;
}

static bool
info_offers_mr_mode(uint32_t version, uint64_t caps, int mode)
{
	uint64_t target = caps == 0 ? INFO_TARGET : caps & (FI_RMA | FI_ATOMIC | INFO_TARGET);

	return target == 0 || mode == INFO_MR_BASIC || (mode & INFO_MR_MODE) == INFO_MR_MODE ||
		(FI_VERSION_LT(version, FI_VERSION(1, 5)) && mode == 0);
}

static const char *
info_domain_name(void)
{
	static char name[FI_NAME_MAX];

	snprintf(name, sizeof(name), "%s", san_ofi_ctx_spec());
	return name;
}

static bool
info_offers(const struct info_query *q, bool is_rdm)
{
	const struct fi_info *h = &q->hints;
	enum fi_ep_type type = is_rdm ? FI_EP_RDM : FI_EP_MSG;
	uint64_t rdm_caps = is_rdm ? INFO_RDM_CAPS : 0, format = h->addr_format;
	uint64_t tx_caps = INFO_TX_CAPS | INFO_DOMAIN_CAPS | (rdm_caps & INFO_RDM_TX_CAPS);
	uint64_t rx_caps = INFO_RX_CAPS | INFO_DOMAIN_CAPS | (rdm_caps & INFO_RDM_RX_CAPS);
	const struct fi_tx_attr *tx = h->tx_attr;
	const struct fi_rx_attr *rx = h->rx_attr;
	const struct fi_ep_attr *ep = h->ep_attr;
	const struct fi_domain_attr *d = h->domain_attr;
	const char *fabric = h->fabric_attr->name;
	bool shares = ep->rx_ctx_cnt == FI_SHARED_CONTEXT && !is_rdm;
	const struct {
		bool is_asked;
		const char *what;
	} lacks[] = {
		{(h->caps & ~(INFO_CAPS | rdm_caps)) != 0, "caps"},
		{format != FI_FORMAT_UNSPEC && format != FI_SOCKADDR && format != FI_SOCKADDR_IN &&
			 format != FI_SOCKADDR_IN6,
		 "addr_format"},
		{ep->type != FI_EP_UNSPEC && ep->type != type, "type of endpoint"},
		{ep->protocol != FI_PROTO_UNSPEC && ep->protocol != OFI_PROTOCOL, "protocol"},
		{ep->max_msg_size > OFI_LENGTH, "max_msg_size"},
		{ep->msg_prefix_size != 0, "msg_prefix_size"},
		{ep->max_order_raw_size > OFI_LENGTH, "max_order_raw_size"},
		{ep->max_order_war_size != 0, "max_order_war_size"},
		{ep->max_order_waw_size > OFI_LENGTH, "max_order_waw_size"},
		{ep->tx_ctx_cnt > 1 || (ep->rx_ctx_cnt > 1 && !shares), "contexts of an endpoint"},
		{ep->auth_key_size != 0 || d->auth_key_size != 0, "auth_key"},
		{d->control_progress == FI_PROGRESS_AUTO || d->data_progress == FI_PROGRESS_AUTO,
		 "automatic progress"},
		{(d->caps & ~INFO_DOMAIN_CAPS) != 0, "caps of the domain"},
		{d->mr_key_size > sizeof(uint64_t), "mr_key_size"},
		{d->cq_data_size > sizeof(uint64_t), "cq_data_size"},
		{d->cq_cnt > INFO_ENDS || d->ep_cnt > INFO_ENDS || d->tx_ctx_cnt > INFO_ENDS ||
			 d->rx_ctx_cnt > INFO_ENDS || d->cntr_cnt > INFO_ENDS ||
			 d->mr_cnt > info_domain.mr_cnt || d->mr_iov_limit > 1,
		 "number of objects"},
		{d->max_ep_tx_ctx > 1 || d->max_ep_rx_ctx > 1 || d->max_ep_stx_ctx != 0 ||
			 d->max_ep_srx_ctx > (type == FI_EP_MSG),
		 "contexts of an endpoint"},
		{!info_offers_mr_mode(q->version, h->caps, d->mr_mode), "mr_mode"},
		{(tx->caps & ~tx_caps) != 0, "caps of sending"},
		{(tx->op_flags & ~INFO_TX_FLAGS) != 0, "op_flags of sending"},
		{(tx->msg_order & ~INFO_ORDER) != 0 || tx->comp_order != 0, "order of sending"},
		{tx->inject_size > OFI_INJECT || tx->size > OFI_REQUESTS ||
			 tx->iov_limit > OFI_IOV || tx->rma_iov_limit > 1,
		 "sizes of sending"},
		{(rx->caps & ~rx_caps) != 0, "caps of receiving"},
		{(rx->op_flags & ~INFO_RX_FLAGS) != 0, "op_flags of receiving"},
		{(rx->msg_order & ~INFO_ORDER) != 0 || rx->comp_order != 0, "order of receiving"},
		{rx->size > OFI_RX_MAX || rx->iov_limit > OFI_IOV || rx->total_buffered_recv != 0,
		 "sizes of receiving"},
		{fabric != NULL && strcmp(fabric, OFI_NAME) != 0, "name of the fabric"},
		{d->name != NULL && strcmp(d->name, info_domain_name()) != 0, "name of the domain"},
	};
	size_t i;

	for (i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++)
		if (lacks[i].is_asked)
			return info_refuse(lacks[i].what);
	return true;
}

/* ---- answers ---- */

static void
info_fit(const struct info_query *q, bool is_rdm, struct fi_info *info)
{
	const struct fi_info *h = &q->hints;

	info->caps = h->caps | INFO_DOMAIN_CAPS;
	if (h->caps == 0)
		info->caps = is_rdm ? INFO_RDM_CAPS : INFO_CAPS;
	/* without a direction both are meant */
	if ((h->caps & (FI_MSG | FI_TAGGED)) != 0 && (h->caps & (FI_SEND | FI_RECV)) == 0)
		info->caps |= FI_SEND | FI_RECV;
	if ((h->caps & (FI_RMA | FI_ATOMIC)) != 0 &&
	    (h->caps & (FI_READ | FI_WRITE | INFO_TARGET)) == 0)
		info->caps |= FI_READ | FI_WRITE | INFO_TARGET;
	info->tx_attr->caps = info->caps & (INFO_TX_CAPS | INFO_RDM_TX_CAPS);
	info->rx_attr->caps = info->caps & (INFO_RX_CAPS | INFO_RDM_RX_CAPS);
	if (is_rdm) {
		info->ep_attr->type = FI_EP_RDM;
		info->ep_attr->mem_tag_format = INFO_TAG_FORMAT;
		if (h->ep_attr->mem_tag_format != 0)
			info->ep_attr->mem_tag_format = h->ep_attr->mem_tag_format;
		info->domain_attr->max_ep_srx_ctx = 0;
		info->domain_attr->av_type = h->domain_attr->av_type;
	}
	if ((info->caps & (FI_RMA | FI_ATOMIC)) == 0)
		info->domain_attr->mr_mode = 0;
	if (FI_VERSION_LT(q->version, FI_VERSION(1, 5)) || h->domain_attr->mr_mode == INFO_MR_BASIC)
		info->domain_attr->mr_mode = INFO_MR_BASIC;
	info->handle = h->handle;
	info->tx_attr->op_flags = h->tx_attr->op_flags;
	if (h->tx_attr->size != 0)
		info->tx_attr->size = h->tx_attr->size;
	info->rx_attr->op_flags = h->rx_attr->op_flags;
	if (h->rx_attr->size != 0)
		info->rx_attr->size = h->rx_attr->size;
	if (h->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT)
		info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (h->domain_attr->threading != FI_THREAD_UNSPEC)
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

static int
info_family(const struct fi_info *h)
{
	if (h->addr_format == FI_SOCKADDR || h->addr_format == FI_FORMAT_UNSPEC)
		return AF_UNSPEC;
	return h->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
}

static int
info_read_addrs(struct info_query *q, const char *node, const char *service, uint64_t flags)
{
	const struct fi_info *h = &q->hints;
	union ofi_addr *to = (flags & FI_SOURCE) != 0 ? &q->src : &q->dest;
	int family = info_family(h), rc = 0;

	if (node == NULL && family == AF_UNSPEC)
		family = q->nb_own > 0 ? q->own[0].sa.sa_family : AF_INET;
	if (node != NULL || service != NULL)
		rc = san_ofi_addr_resolve(to, node, service, (flags & FI_NUMERICHOST) != 0, family);
	if (rc == 0 && h->src_addr != NULL && q->src.sa.sa_family == AF_UNSPEC)
		rc = san_ofi_addr_read(&q->src, h->src_addr, h->src_addrlen);
	if (rc == 0 && h->dest_addr != NULL && q->dest.sa.sa_family == AF_UNSPEC)
		rc = san_ofi_addr_read(&q->dest, h->dest_addr, h->dest_addrlen);
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
info_choose(const struct info_query *q, sa_family_t family, union ofi_addr *src)
{
	bool is_any = san_ofi_addr_is_any(&q->src);
	int i;

	if ((q->src.sa.sa_family != AF_UNSPEC && q->src.sa.sa_family != family) ||
	    (q->dest.sa.sa_family != AF_UNSPEC && q->dest.sa.sa_family != family))
		return false;
	if (info_is_loopback(&q->dest))
		return info_refuse("an address of the kernel's");
	*src = q->src;
	src->sa.sa_family = family;
	if (q->nb_own == 0)
		return true; /* the engine does not run yet */
	for (i = 0; i < q->nb_own; i++) {
		if (is_any && q->own[i].sa.sa_family == family) {
			*src = q->own[i];
			san_ofi_addr_set_port(src, san_ofi_addr_port(&q->src));
			return true;
		}
		if (san_ofi_addr_is_same_ip(&q->own[i], src))
			return true;
	}
	return !is_any && info_refuse("source address");
}

/* Add an answer for addresses of *family*, if that is possible. */
static int
info_add_one(const struct info_query *q, sa_family_t family, bool is_rdm, struct fi_info **tail)
{
	struct fi_info *info;
	union ofi_addr src;

	if (!info_choose(q, family, &src))
		return 0;
	info = fi_dupinfo(&info_all);
	if (info == NULL)
		return -FI_ENOMEM;
	*tail = info;
	info_fit(q, is_rdm, info);
	info->fabric_attr->name = strdup(OFI_NAME);
	info->domain_attr->name = strdup(info_domain_name());
	if (info->fabric_attr->name == NULL || info->domain_attr->name == NULL)
		return -FI_ENOMEM;
	return san_ofi_info_set_addrs(info, &src,
				      q->dest.sa.sa_family != AF_UNSPEC ? &q->dest : NULL);
}

/* Add the answers for endpoints of a type. */
static int
info_add(const struct info_query *q, bool is_rdm, struct fi_info **tail)
{
	int family = info_family(&q->hints), rc = 0;

	while (*tail != NULL)
		tail = &(*tail)->next;
	if (family != AF_INET6)
		rc = info_add_one(q, AF_INET, is_rdm, tail);
	/* without known addresses both families would be guesses */
	if (rc == 0 && family != AF_INET && (*tail == NULL || q->nb_own > 0))
		rc = info_add_one(q, AF_INET6, is_rdm, *tail != NULL ? &(*tail)->next : tail);
	return rc;
}

int
san_ofi_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	struct info_query q = {.version = version, .hints = san_ofi_info_complete(hints)};
	bool has_msg = info_offers(&q, false), has_rdm = info_offers(&q, true);
	int rc;

	*info = NULL;
	if (!has_msg && !has_rdm)
		return -FI_ENODATA;
	q.nb_own = san_ofi_ctx_addrs(q.own);
	if (q.nb_own < 0)
		return -FI_ENODATA;
	rc = info_read_addrs(&q, node, service, flags);
	if (rc == 0 && has_msg)
		rc = info_add(&q, false, info);
	if (rc == 0 && has_rdm)
		rc = info_add(&q, true, info);
	if (rc == 0)
		return *info != NULL ? 0 : -FI_ENODATA;
	fi_freeinfo(*info);
	*info = NULL;
	return rc;
}
