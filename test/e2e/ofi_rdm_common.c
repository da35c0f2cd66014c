/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>
#include <time.h>

#include "ofi_rdm_common.h"

struct fid_domain *rdm_domain;
struct node nodes[NODES];
char from[BIG], to[BIG];
struct fi_context contexts[MANY + 2];
static struct fi_info *infos;

/* ---- set-up ---- */

void
rdm_open_domain(void)
{
	struct fi_info *hints = fi_allocinfo();

	for (int i = 0; i < BIG; i++)
		from[i] = (char)(i * 7 + (i >> 8));
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE |
		FI_MULTI_RECV;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("sanstack");
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &infos) == 0);
	fi_freeinfo(hints);
	info = infos;
	while (strcmp(info->fabric_attr->prov_name, "sanstack") != 0) /* ofi_rxm lists it, too */
		CHECK((info = info->next) != NULL);
	CHECK(info->ep_attr->type == FI_EP_RDM && info->caps & FI_DIRECTED_RECV);
	CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
	CHECK(fi_domain(fabric, info, &rdm_domain, NULL) == 0);
}

static void
open_cntrs(struct node *n)
{
	static const uint64_t kinds[CNTRS] = {FI_SEND, FI_RECV, FI_READ,
					      FI_WRITE | FI_REMOTE_WRITE};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};

	for (int i = 0; i < CNTRS; i++) {
		CHECK(fi_cntr_open(rdm_domain, &attr, &n->cntrs[i], NULL) == 0);
		CHECK(fi_ep_bind(n->ep, &n->cntrs[i]->fid, FI_REMOTE_WRITE) == -FI_ENOSYS);
		CHECK(fi_ep_bind(n->ep, &n->cntrs[i]->fid, kinds[i]) == 0);
	}
}

void
rdm_open_node(struct node *n)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
	struct fi_av_attr av = {.type = FI_AV_MAP, .flags = FI_SYMMETRIC};
	size_t len = sizeof(n->name);

	CHECK(fi_cq_open(rdm_domain, &cq, &n->cq, NULL) == 0);
	CHECK(fi_av_open(rdm_domain, &av, &n->av, NULL) == 0);
	CHECK(fi_endpoint(rdm_domain, info, &n->ep, NULL) == 0);
	CHECK(fi_enable(n->ep) == -FI_ENOCQ);
	CHECK(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
	CHECK(fi_enable(n->ep) == -FI_ENOAV);
	CHECK(fi_ep_bind(n->ep, &n->av->fid, 0) == 0);
	open_cntrs(n);
	CHECK(fi_enable(n->ep) == 0);
	CHECK(fi_getname(&n->ep->fid, &n->name, &len) == 0);
}

void
rdm_close_node(struct node *n)
{
	CHECK(fi_close(&n->av->fid) == -FI_EBUSY);
	CLOSE(&n->ep->fid, &n->av->fid, &n->cq->fid, &n->cntrs[0]->fid, &n->cntrs[1]->fid,
	      &n->cntrs[2]->fid, &n->cntrs[3]->fid);
}

void
rdm_close_domain(void)
{
	CLOSE(&rdm_domain->fid, &fabric->fid);
	fi_freeinfo(infos);
}

/* ---- steps ---- */

void
rdm_progress(void)
{
	for (int i = 0; i < NODES; i++)
		if (nodes[i].cq != NULL)
			fi_cq_read(nodes[i].cq, NULL, 0);
}

ssize_t
rdm_wait_one(struct node *n, struct fi_cq_tagged_entry *e, fi_addr_t *source)
{
	time_t end = time(NULL) + WAIT_MS / 1000;
	ssize_t rc;

	while ((rc = fi_cq_readfrom(n->cq, e, 1, source)) == -FI_EAGAIN) {
		rdm_progress();
		CHECK(time(NULL) < end);
	}
	return rc;
}

struct fi_cq_tagged_entry
rdm_done(struct node *n, void *context, fi_addr_t *source)
{
	struct fi_cq_tagged_entry e;

	do {
		ssize_t rc = rdm_wait_one(n, &e, source);

		if (rc == -FI_EAVAIL) {
			struct fi_cq_err_entry err = {0};

			fi_cq_readerr(n->cq, &err, 0);
			fprintf(stderr, "context %td of %td: %s, %s\n",
				(struct fi_context *)err.op_context - contexts,
				(struct fi_context *)context - contexts, fi_strerror(err.err),
				fi_cq_strerror(n->cq, err.prov_errno, NULL, NULL, 0));
		}
		CHECK(rc == 1);
	} while (e.op_context != context);
	return e;
}

struct fi_cq_err_entry
rdm_failed(struct node *n, void *context)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = rdm_wait_one(n, &e, NULL)) == 1)
		;
	CHECK(rc == -FI_EAVAIL);
	CHECK(fi_cq_readerr(n->cq, &err, 0) == 1);
	CHECK(err.op_context == context);
	return err;
}

void
rdm_drain(void)
{
	struct fi_cq_tagged_entry e;

	for (int rounds = 0; rounds < 300; rounds++)
		for (int i = 0; i < NODES; i++)
			if (nodes[i].cq != NULL)
				fi_cq_read(nodes[i].cq, &e, 1);
}

struct fi_cq_tagged_entry
rdm_receive_tag(int a, uint64_t tag, size_t len)
{
	struct fi_cq_tagged_entry e;

	POST(fi_trecv(nodes[a].ep, to, BIG, NULL, FI_ADDR_UNSPEC, tag, 0, &contexts[MANY + 1]));
	e = rdm_done(&nodes[a], &contexts[MANY + 1], NULL);
	CHECK(e.len == len && e.tag == tag && memcmp(from, to, len) == 0);
	return e;
}

void
rdm_send_tag(int a, int b, uint64_t tag, size_t len)
{
	POST(fi_tsend(nodes[a].ep, from, len, NULL, nodes[a].at[b], tag, &contexts[MANY]));
}
