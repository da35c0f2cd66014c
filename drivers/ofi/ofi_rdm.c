/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoints FI_EP_RDM and their address vectors: a connection for each peer, made with the first
 * operation to it. If both peers begin at once, each has a connection of its own to send by, and
 * receives from both.
 *
 * The name of an endpoint has a random token. Who connects proves that it knows the token of the
 * peer's name, and the token of its own, so that no other program takes its place; who accepts
 * proves that it knows its own. A proof is a hash of tokens and of a number that the connecting
 * side has drawn: it is of no use for another connection, and nobody learns a token from it.
 */

#include <stdio.h>

#include <sodium.h>

#include "ofi_priv.h"

#define AV_SIZE        64
#define RDM_GIVE_UP_MS 150000 /* a peer that does not accept may be computing */
#define RDM_ORIGIN_MAX 512    /* connections from a host, or from a user of this one */

/* The address, or NULL. */
static const union ofi_addr *
av_find(const struct ofi_av *av, fi_addr_t at)
{
	return at < av->nb && av->places[at].uses != 0 ? &av->places[at].addr : NULL;
}

/* ---- names ---- */

/** What a proof shows. */
enum rdm_proof {
	RDM_KNOWS = 1,   /**< the connecting side: the accepting one's token */
	RDM_OWNS = 2,    /**< the connecting side: its own */
	RDM_ACCEPTS = 3, /**< the accepting side: its own */
};

/* *other*: OWNS: the accepting side's token, so that this side cannot pass the proof on. */
static void
rdm_prove(uint8_t to[OFI_PROOF], enum rdm_proof what, uint64_t token, uint64_t other,
	  const uint8_t nonce[OFI_PROOF])
{
	const uint64_t in[] = {what, token, other};

	crypto_generichash(to, OFI_PROOF, (const uint8_t *)in, sizeof(in), nonce, OFI_PROOF);
}

static bool
rdm_proves(const uint8_t proof[OFI_PROOF], enum rdm_proof what, uint64_t token, uint64_t other,
	   const uint8_t nonce[OFI_PROOF])
{
	uint8_t want[OFI_PROOF];

	rdm_prove(want, what, token, other, nonce);
	return sodium_memcmp(want, proof, OFI_PROOF) == 0;
}

/* Address *a* is the name of the peer that has made *conn*, or that of the one it is made to. */
static bool
rdm_is_named(const struct ofi_ep *conn, const union ofi_addr *a)
{
	uint64_t token;

	if (a == NULL || san_ofi_addr_port(&conn->peer) != san_ofi_addr_port(a))
		return false;
	token = san_ofi_addr_token(a);
	if (token == san_ofi_addr_token(&conn->peer)) /* none, if the peer has made it */
		return san_ofi_addr_is_same_ip(&conn->peer, a);
	/* a host may send from another address than the one that the name has */
	return rdm_proves(conn->owns, RDM_OWNS, token, conn->token, conn->nonce);
}

void
san_ofi_rdm_name(struct ofi_ep *ep)
{
	uint64_t token = san_ofi_addr_token(&ep->local);

	if (token != 0) /* the program begins again at a name that it had */
		ep->rdm->token = token;
	else
		san_ofi_addr_set_token(&ep->local, ep->rdm->token);
}

bool
san_ofi_rdm_is_proved(const struct ofi_ep *conn, const struct rtsan_event *ev)
{
	bool has_token = conn->token != 0;

	return san_ofi_cm_is_user(ev, !has_token) &&
		(!has_token ||
		 rdm_proves(san_ofi_cm_data(ev), RDM_ACCEPTS, conn->token, 0, conn->nonce));
}

/* ---- peers ---- */

static struct ofi_peer *
rdm_peer(struct ofi_rdm *rdm, fi_addr_t at)
{
	size_t nb = rdm->av->nb;
	struct ofi_peer *peers;

	if (av_find(rdm->av, at) == NULL)
		return NULL;
	if (at < rdm->nb_peers)
		return &rdm->peers[at];
	peers = realloc(rdm->peers, nb * sizeof(*peers));
	if (peers == NULL)
		return NULL;
	memset(&peers[rdm->nb_peers], 0, (nb - rdm->nb_peers) * sizeof(*peers));
	rdm->peers = peers;
	rdm->nb_peers = nb;
	return &peers[at];
}

static bool
rdm_is_alive(const struct ofi_ep *conn)
{
	return conn->state != OFI_EP_ENDED && !conn->is_shut;
}

/*
 * A connection that the peer has made serves as well, unless its request came from another address
 * than that of its name: then messages for that address must not go to it.
 */
static struct ofi_ep *
rdm_adopt(struct ofi_rdm *rdm, fi_addr_t at)
{
	const union ofi_addr *a = av_find(rdm->av, at);
	struct ofi_ep *conn;

	LIST_FOREACH(conn, &rdm->conns, conn_link)
		if (conn->from == at && san_ofi_addr_is_same_ip(&conn->peer, a) &&
		    rdm_is_alive(conn))
			return conn;
	return NULL;
}

static int
rdm_connect(struct ofi_rdm *rdm, fi_addr_t at, struct ofi_peer *peer)
{
	const union ofi_addr *a = av_find(rdm->av, at);
	struct ofi_ep *conn = san_ofi_conn_open(rdm->ep);
	struct ofi_rdm_req req;
	int rc;

	if (conn == NULL)
		return -FI_ENOMEM;
	conn->peer = *a;
	conn->from = at;
	conn->token = san_ofi_addr_token(a);
	randombytes_buf(conn->nonce, sizeof(conn->nonce));
	rdm_prove(req.knows, RDM_KNOWS, conn->token, 0, conn->nonce);
	rdm_prove(req.owns, RDM_OWNS, rdm->token, conn->token, conn->nonce);
	memcpy(req.nonce, conn->nonce, sizeof(req.nonce));
	rc = san_ofi_conn_begin(conn, OFI_RDM_SERVICE(san_ofi_addr_port(a)), NULL, &req,
				sizeof(req));
	if (rc != 0) {
		san_ofi_conn_close(conn);
		return rc;
	}
	peer->conn = conn;
	if (peer->since == 0)
		peer->since = san_ofi_wait_now_ms();
	return 0;
}

struct ofi_ep *
san_ofi_rdm_reach(struct ofi_rdm *rdm, fi_addr_t to, int *rc)
{
	struct ofi_peer *peer = rdm_peer(rdm, to);

	*rc = peer == NULL ? -FI_EINVAL : rdm->ep->state == OFI_EP_ENDED ? -FI_ENOTCONN :
									   0;
	if (*rc != 0)
		return NULL;
	if (peer->conn == NULL || !rdm_is_alive(peer->conn)) {
		peer->conn = rdm_adopt(rdm, to);
		if (peer->conn != NULL) /* our own attempts no longer count */
			*peer = (struct ofi_peer){.conn = peer->conn};
	}
	if (peer->err != 0) {
		*rc = -peer->err;
		*peer = (struct ofi_peer){0};
		return NULL;
	}
	if (peer->conn == NULL)
		*rc = rdm_connect(rdm, to, peer);
	if (*rc == 0 && peer->conn->state != OFI_EP_CONNECTED)
		*rc = -FI_EAGAIN;
	return *rc == 0 ? peer->conn : NULL;
}

/* ---- events ---- */

/* One origin alone does not get all that the program and the daemon have. */
static bool
rdm_is_room_for(const struct ofi_rdm *rdm, const struct ofi_origin *origin)
{
	const struct ofi_ep *conn;
	uint32_t nb = 0;

	LIST_FOREACH(conn, &rdm->conns, conn_link)
		nb += conn->is_accepted && memcmp(&conn->origin, origin, sizeof(*origin)) == 0;
	return nb < RDM_ORIGIN_MAX;
}

/* The name of the peer is its port, at the address that the link reports, or what it proves. */
static int
rdm_accept(struct ofi_rdm *rdm, const struct rtsan_event *ev)
{
	const struct ofi_rdm_req *req = (const void *)san_ofi_cm_data(ev);
	uint8_t accepts[OFI_PROOF];
	struct ofi_origin origin;
	struct ofi_cm_hdr hdr;
	struct ofi_ep *conn;
	bool knows;
	size_t i;
	int rc;

	if (!san_ofi_cm_read(ev, &hdr) || hdr.length != sizeof(*req) ||
	    san_ofi_cm_origin(ev, &origin) != 0)
		return -FI_EINVAL;
	knows = rdm_proves(req->knows, RDM_KNOWS, rdm->token, 0, req->nonce);
	if (!san_ofi_cm_is_user(ev, !knows) || !rdm_is_room_for(rdm, &origin))
		return -FI_EACCES;
	conn = san_ofi_conn_open(rdm->ep);
	if (conn == NULL)
		return -FI_ENOMEM;
	conn->origin = origin;
	conn->token = knows ? rdm->token : 0;
	memcpy(conn->nonce, req->nonce, sizeof(conn->nonce));
	memcpy(conn->owns, req->owns, sizeof(conn->owns));
	san_ofi_addr_parse(&conn->peer, ev->peer, hdr.port);
	for (i = 0; i < rdm->av->nb && conn->from == FI_ADDR_NOTAVAIL; i++)
		if (rdm_is_named(conn, av_find(rdm->av, i)))
			conn->from = i;
	rdm_prove(accepts, RDM_ACCEPTS, rdm->token, 0, req->nonce);
	rc = san_ofi_conn_begin(conn, ev->request, &hdr, accepts, sizeof(accepts));
	if (rc != 0)
		san_ofi_conn_close(conn);
	return rc;
}

bool
san_ofi_rdm_on_request(struct ofi_ctx *ctx, const struct rtsan_event *ev)
{
	struct ofi_rdm *rdm;

	LIST_FOREACH(rdm, &ctx->rdms, link)
		if (rdm->listener == ev->listener)
			break;
	if (rdm == NULL)
		return false;
	if (rdm_accept(rdm, ev) != 0)
		rtsan_reject(ctx->san, ev->request, NULL, 0);
	return true;
}

/* Why a connection was not made, if it is not to be tried again. */
static int
rdm_verdict(const struct ofi_peer *peer, const struct rtsan_event *ev)
{
	bool late = san_ofi_wait_now_ms() - peer->since > RDM_GIVE_UP_MS;
	bool is_absent = ev->type == RTSAN_EV_UNREACHABLE;
	bool is_full = ev->reason == RTSAN_R_BACKLOG || ev->reason == RTSAN_R_RESOURCES;
	const char *why = ev->reason == RTSAN_R_NO_LISTENER ?
		"no FI_EP_RDM listens there" OFI_KINDS :
		rtsan_reason_text(ev->reason);

	if (!late && (is_absent || is_full))
		return 0;
	if (ev->type != RTSAN_EV_ESTABLISHED) /* it has been logged */
		san_ofi_cm_warn(&peer->conn->peer, why);
	return is_absent ? FI_ETIMEDOUT : FI_ECONNREFUSED;
}

void
san_ofi_rdm_on_event(struct ofi_ep *conn, const struct rtsan_event *ev)
{
	struct ofi_rdm *rdm = conn->owner->rdm;
	struct ofi_peer *peer;

	if (conn->from >= rdm->nb_peers || rdm->peers[conn->from].conn != conn)
		return;
	peer = &rdm->peers[conn->from];
	if (conn->state == OFI_EP_CONNECTED)
		peer->since = 0;
	else if (ev->type != RTSAN_EV_DISCONNECTED) /* ESTABLISHED, but not as it was meant */
		peer->err = rdm_verdict(peer, ev);
	if (conn->state == OFI_EP_ENDED)
		peer->conn = NULL;
}

void
san_ofi_rdm_reap(struct ofi_ctx *ctx)
{
	struct ofi_ep *conn, *next;
	struct ofi_rdm *rdm;

	LIST_FOREACH(rdm, &ctx->rdms, link)
		for (conn = LIST_FIRST(&rdm->conns); conn != NULL; conn = next) {
			next = LIST_NEXT(conn, conn_link);
			if (conn->state != OFI_EP_ENDED || conn->nb_held != 0 ||
			    !LIST_EMPTY(&conn->ops))
				continue;
			if (conn->from < rdm->nb_peers && rdm->peers[conn->from].conn == conn)
				rdm->peers[conn->from].conn = NULL;
			san_ofi_conn_close(conn);
		}
}

void
san_ofi_rdm_end_all(struct ofi_ctx *ctx)
{
	struct ofi_rdm *rdm;

	LIST_FOREACH(rdm, &ctx->rdms, link) {
		rdm->ep->state = OFI_EP_ENDED;
		san_ofi_rxq_flush(&rdm->ep->own_rxq, rdm->ep);
		san_ofi_rxq_flush(&rdm->tagged, rdm->ep);
	}
}

/* ---- open, close ---- */

int
san_ofi_rdm_init(struct ofi_ep *ep, const struct fi_rx_attr *attr)
{
	struct ofi_rdm *rdm = calloc(1, sizeof(*rdm));

	if (rdm == NULL)
		return -FI_ENOMEM;
	randombytes_buf(&rdm->token, sizeof(rdm->token));
	rdm->ep = ep;
	san_ofi_rxq_init(&rdm->tagged, ep->domain, attr);
	ep->rdm = rdm;
	return 0;
}

int
san_ofi_rdm_enable(struct ofi_ep *ep)
{
	struct ofi_ctx *ctx = ep->domain->ctx;
	int rc;

	rc = san_ofi_conn_enable(ep);
	if (rc != 0 || ep->state != OFI_EP_NEW)
		return rc;
	if (ep->rdm->av == NULL)
		return -FI_ENOAV;
	rc = san_ofi_ctx_addr(ep->local.sa.sa_family, &ep->local);
	/* from now on, sleepers for completions wait for events of connections, too */
	if (rc == 0 && !ctx->has_rdm)
		rc = san_ofi_wait_add(ctx, NULL);
	if (rc != 0)
		return rc;
	ctx->has_rdm = true;
	rc = san_ofi_cm_listen(ctx, &ep->local, OFI_RDM_SERVICE(0), OFI_BACKLOG,
			       &ep->rdm->listener);
	if (rc != 0)
		return san_ofi_ctx_fail(rc, "fi_enable");
	san_ofi_rdm_name(ep);
	ep->state = OFI_EP_ENABLED;
	LIST_INSERT_HEAD(&ctx->rdms, ep->rdm, link);
	LIST_INSERT_HEAD(&ep->rdm->av->rdms, ep->rdm, av_link);
	return 0;
}

/* ---- address vectors: a table, whose places are the addresses of either type ---- */

/* An address is no longer in the vector. */
static void
rdm_on_remove(struct ofi_rdm *rdm, fi_addr_t at)
{
	struct ofi_ep *conn;

	LIST_FOREACH(conn, &rdm->conns, conn_link)
		if (conn->from == at)
			conn->from = FI_ADDR_NOTAVAIL;
	if (at < rdm->nb_peers)
		rdm->peers[at] = (struct ofi_peer){0};
}

/* The place of *a*, or else the first free one. 0 or -FI_ENOMEM. */
static int
av_place(struct ofi_av *av, const union ofi_addr *a, fi_addr_t *at)
{
	size_t i, nb = av->nb != 0 ? 2 * av->nb : AV_SIZE;
	struct ofi_av_place *places;

	*at = av->nb;
	for (i = 0; i < av->nb; i++)
		if (av->places[i].uses == 0 && i < *at)
			*at = i;
		else if (av->places[i].uses != 0 &&
			 memcmp(&av->places[i].addr, a, sizeof(*a)) == 0) {
			*at = i;
			return 0;
		}
	if (*at < av->nb)
		return 0;
	places = realloc(av->places, nb * sizeof(*places));
	if (places == NULL)
		return -FI_ENOMEM;
	memset(&places[av->nb], 0, (nb - av->nb) * sizeof(*places));
	av->places = places;
	av->nb = nb;
	return 0;
}

/* A peer has one number, however often it is inserted: receives are matched by that. */
static int
av_add(struct ofi_av *av, const union ofi_addr *a, fi_addr_t *at)
{
	struct ofi_ep *conn;
	struct ofi_rdm *rdm;
	int rc = av_place(av, a, at);

	if (rc != 0 || av->places[*at].uses++ != 0)
		return rc;
	av->places[*at].addr = *a;
	LIST_FOREACH(rdm, &av->rdms, av_link)
		LIST_FOREACH(conn, &rdm->conns, conn_link)
			if (conn->from == FI_ADDR_NOTAVAIL && rdm_is_named(conn, a))
				conn->from = *at;
	return 0;
}

static int
av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out, uint64_t flags,
	  void *context)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	int *errors = (flags & FI_SYNC_ERR) != 0 ? context : NULL;
	const uint8_t *from = addr;
	union ofi_addr a = {0};
	fi_addr_t at;
	int rc, n = 0;
	size_t i;
	OFI_LOCKED;

	if ((flags & ~(FI_MORE | FI_SYNC_ERR)) != 0)
		return -FI_EBADFLAGS;
	for (i = 0; i < count; i++) {
		rc = san_ofi_addr_read(&a, from, sizeof(a)); /* its length is that of its family */
		from += san_ofi_addr_len(&a);
		if (rc == 0)
			rc = av_add(av, &a, &at);
		if (out != NULL)
			out[i] = rc == 0 ? at : FI_ADDR_NOTAVAIL;
		if (errors != NULL)
			errors[i] = -rc;
		n += rc == 0;
	}
	return n;
}

static int
av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *out,
	     uint64_t flags, void *context)
{
	union ofi_addr a;
	int rc = san_ofi_addr_resolve(&a, node, service, false, AF_UNSPEC);

	return rc == 0 ? av_insert(fid, &a, 1, out, flags, context) : rc;
}

static int
av_remove(struct fid_av *fid, fi_addr_t *at, size_t count, uint64_t flags)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	struct ofi_rdm *rdm;
	int rc = 0;
	size_t i;
	OFI_LOCKED;

	if (flags != 0)
		return -FI_EBADFLAGS;
	for (i = 0; i < count; i++) {
		if (av_find(av, at[i]) == NULL) {
			rc = -FI_EINVAL;
			continue;
		}
		if (--av->places[at[i]].uses != 0)
			continue;
		LIST_FOREACH(rdm, &av->rdms, av_link)
			rdm_on_remove(rdm, at[i]);
	}
	return rc;
}

static int
av_lookup(struct fid_av *fid, fi_addr_t at, void *addr, size_t *addrlen)
{
	const struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	const union ofi_addr *a;
	OFI_LOCKED;

	a = av_find(av, at);
	if (a == NULL)
		return -FI_EINVAL;
	san_ofi_addr_copy(a, addr, addrlen); /* cut, if there is no room */
	return 0;
}

static const char *
av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	char ip[RTSAN_ADDRESS_MAX], text[RTSAN_ADDRESS_MAX + 16];
	union ofi_addr a;
	int n;

	if (san_ofi_addr_read(&a, addr, sizeof(a)) != 0)
		return NULL;
	san_ofi_addr_text(&a, ip);
	n = snprintf(text, sizeof(text), a.sa.sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u", ip,
		     san_ofi_addr_port(&a));
	if (*len != 0)
		snprintf(buf, *len, "%s", text);
	*len = (size_t)n + 1;
	return buf;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = OFI_NONE,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
};

static int
av_close(struct fid *fid)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid.fid);
	OFI_LOCKED;

	if (av->refs != 0)
		return -FI_EBUSY;
	av->domain->refs--;
	free(av->places);
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = OFI_FID_OPS(av_close, OFI_NONE, OFI_NONE);

int
san_ofi_rdm_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
		    void *context)
{
	struct ofi_av *av;
	OFI_LOCKED;

	if ((attr->flags & ~FI_SYMMETRIC) != 0 || attr->name != NULL || attr->rx_ctx_bits != 0)
		return -FI_ENOSYS; /* neither asynchronous nor shared by processes */
	av = calloc(1, sizeof(*av));
	if (av == NULL)
		return -FI_ENOMEM;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->domain = container_of(domain, struct ofi_domain, fid);
	av->fid = (struct fid_av){{FI_CLASS_AV, context, &av_fid_ops}, &av_ops};
	av->domain->refs++;
	*out = &av->fid;
	return 0;
}
