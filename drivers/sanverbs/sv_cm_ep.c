/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Names, and identifiers with all that a connection needs: rdma_getaddrinfo(), rdma_create_ep().
 */

#include <netdb.h>

#include "sv_cm.h"

/* ---- names ---- */

void
rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
	SV_CM_ELSE_NEXT(rdma_freeaddrinfo, info);
	free(info->ai_src_addr);
	free(info->ai_dst_addr);
	free(info);
}

static int
copy_addr(struct sockaddr **to, socklen_t *length, const struct sockaddr *from, socklen_t bytes)
{
	*to = malloc(bytes);
	if (*to == NULL)
		return -ENOMEM;
	memcpy(*to, from, bytes);
	*length = bytes;
	return 0;
}

int
rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		 struct rdma_addrinfo **out)
{
	static const struct rdma_addrinfo none;
	const struct rdma_addrinfo *h = hints != NULL ? hints : &none;
	bool is_passive = (h->ai_flags & RAI_PASSIVE) != 0;
	bool is_datagram = h->ai_qp_type == IBV_QPT_UD || h->ai_port_space == RDMA_PS_UDP;
	struct addrinfo ask = {
		.ai_flags = (is_passive ? AI_PASSIVE : 0) |
			((h->ai_flags & RAI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0),
		.ai_family = (h->ai_flags & RAI_FAMILY) != 0 ? h->ai_family : AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *found;
	struct rdma_addrinfo *info;
	int rc;

	SV_CM_ELSE_NEXT(rdma_getaddrinfo, node, service, hints, out);
	rc = getaddrinfo(node, service, &ask, &found);
	if (rc != 0)
		return rc;
	info = calloc(1, sizeof(*info));
	rc = info != NULL ? 0 : -ENOMEM;
	if (rc == 0)
		rc = copy_addr(is_passive ? &info->ai_src_addr : &info->ai_dst_addr,
			       is_passive ? &info->ai_src_len : &info->ai_dst_len,
			       found->ai_addr, found->ai_addrlen);
	if (rc == 0 && h->ai_src_len != 0 && !is_passive)
		rc = copy_addr(&info->ai_src_addr, &info->ai_src_len, h->ai_src_addr,
			       h->ai_src_len);
	if (rc != 0) {
		if (info != NULL)
			rdma_freeaddrinfo(info);
	} else {
		info->ai_flags = h->ai_flags;
		info->ai_family = found->ai_family;
		info->ai_qp_type = is_datagram ? IBV_QPT_UD : IBV_QPT_RC;
		info->ai_port_space = h->ai_port_space != 0 ? h->ai_port_space :
			is_datagram                         ? RDMA_PS_UDP :
							      RDMA_PS_TCP;
		*out = info;
	}
	freeaddrinfo(found);
	return san_sv_result(rc, "rdma_getaddrinfo()");
}

/* ---- endpoints ---- */

#define RESOLVE_MS 2000

void
rdma_destroy_ep(struct rdma_cm_id *id)
{
	SV_CM_ELSE_NEXT(rdma_destroy_ep, id);
	if (id->qp != NULL)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

int
rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *info, struct ibv_pd *pd,
	       struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *cm_id;
	struct sv_id *id;
	int rc;

	SV_CM_ELSE_NEXT(rdma_create_ep, out, info, pd, attr);
	if (rdma_create_id(NULL, &cm_id, NULL, (enum rdma_port_space)info->ai_port_space) != 0)
		return -1;
	id = (struct sv_id *)cm_id;
	if ((info->ai_flags & RAI_PASSIVE) != 0) {
		rc = rdma_bind_addr(cm_id, info->ai_src_addr);
		id->has_attr = attr != NULL;
		if (attr != NULL)
			id->attr = *attr;
		id->attr.qp_type = (enum ibv_qp_type)info->ai_qp_type;
		if (pd != NULL)
			cm_id->pd = pd;
	} else {
		rc = rdma_resolve_addr(cm_id, info->ai_src_addr, info->ai_dst_addr, RESOLVE_MS);
		if (rc == 0)
			rc = rdma_resolve_route(cm_id, RESOLVE_MS);
		if (rc == 0 && attr != NULL) {
			attr->qp_type = (enum ibv_qp_type)info->ai_qp_type;
			rc = rdma_create_qp(cm_id, pd, attr);
		}
	}
	if (rc != 0) {
		int error = errno;

		rdma_destroy_ep(cm_id);
		errno = error;
		return -1;
	}
	*out = cm_id;
	return 0;
}

int
rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **out)
{
	struct sv_id *l = (struct sv_id *)listener;
	struct ibv_qp_init_attr attr;
	int error;

	SV_CM_ELSE_NEXT(rdma_get_request, listener, out);
	if (!l->is_sync)
		return san_sv_result(-EINVAL, "rdma_get_request()");
	if (san_sv_cm_complete(l) != 0 || rdma_migrate_id(listener->event->id, NULL) != 0)
		return -1;
	*out = listener->event->id;
	(*out)->event = listener->event;
	listener->event = NULL;
	if (!l->has_attr)
		return 0;
	attr = l->attr;
	if (rdma_create_qp(*out, listener->pd, &attr) == 0)
		return 0;
	error = errno;
	rdma_destroy_id(*out);
	errno = error;
	return -1;
}
