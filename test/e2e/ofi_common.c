/* SPDX-License-Identifier: BSD-3-Clause */

#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "ofi_common.h"

struct fid_fabric *fabric;
struct fid_eq *eq;
struct fi_info *info;

void
ofi_common_get_info(const char *ip, const char *port)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("sanstack");
	CHECK(fi_getinfo(FI_VERSION(1, 17), ip, port, 0, hints, &info) == 0);
	fi_freeinfo(hints);
	CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
	CHECK(fi_eq_open(fabric, &(struct fi_eq_attr){.wait_obj = FI_WAIT_UNSPEC}, &eq, NULL) == 0);
}

const struct fi_eq_cm_entry *
ofi_common_expect(uint32_t type, size_t data_len)
{
	static union {
		struct fi_eq_cm_entry e;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + 64];
	} event;
	uint32_t got = 0;

	CHECK(fi_eq_sread(eq, &got, &event, sizeof(event), WAIT_MS, 0) ==
	      (ssize_t)(sizeof(event.e) + data_len));
	CHECK(got == type);
	return &event.e;
}

struct fi_eq_err_entry
ofi_common_refused(void)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_cm_entry e;
	uint32_t type;

	CHECK(fi_eq_sread(eq, &type, &e, sizeof(e), WAIT_MS, 0) == -FI_EAVAIL);
	CHECK(fi_eq_readerr(eq, &err, 0) == sizeof(err));
	return err;
}

struct fid_pep *
ofi_common_listen(struct fi_info *of, struct sockaddr_storage *at)
{
	size_t len = sizeof(*at);
	struct fid_pep *pep;

	CHECK(fi_passive_ep(fabric, of, &pep, NULL) == 0);
	CHECK(fi_pep_bind(pep, &eq->fid, 0) == 0);
	CHECK(fi_listen(pep) == 0);
	CHECK(fi_getname(&pep->fid, at, &len) == 0);
	return pep;
}

struct fid_cq *
ofi_common_open_cq(struct fid_domain *domain)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct fid_cq *cq;

	CHECK(fi_cq_open(domain, &attr, &cq, NULL) == 0);
	return cq;
}

struct fid_mr *
ofi_common_region(struct fid_domain *domain, void *buf, size_t len, uint64_t rights)
{
	struct fid_mr *mr;

	CHECK(fi_mr_reg(domain, buf, len, rights, 0, 0, 0, &mr, NULL) == 0);
	return mr;
}

void *
ofi_common_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

struct fid_ep *
ofi_common_make_ep(struct fid_domain *domain, struct fi_info *of, struct fid_cq *cq)
{
	struct fid_ep *one;

	CHECK(fi_endpoint(domain, of, &one, NULL) == 0);
	CHECK(fi_ep_bind(one, &eq->fid, 0) == 0);
	if (cq != NULL)
		CHECK(fi_ep_bind(one, &cq->fid, FI_TRANSMIT | FI_RECV) == 0);
	return one;
}

void
ofi_common_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void
ofi_common_close(struct fid *const *fids)
{
	for (; *fids != NULL; fids++) {
		int rc = fi_close(*fids);

		if (rc != 0)
			fprintf(stderr, "object of class %zu\n", (*fids)->fclass);
		CHECK(rc == 0);
	}
}

ssize_t
ofi_common_wait(struct fid_cq *cq, struct fi_cq_data_entry *e)
{
	struct fid *fids[] = {&cq->fid};
	struct pollfd p = {.events = POLLIN};
	ssize_t n;

	CHECK(fi_control(&cq->fid, FI_GETWAIT, &p.fd) == 0);
	for (;;) {
		n = fi_cq_read(cq, e, 1);
		if (n != -FI_EAGAIN)
			return n;
		if (fi_trywait(fabric, fids, 1) == 0)
			CHECK(poll(&p, 1, WAIT_MS) == 1);
	}
}

static void
print_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = {0};

	if (fi_cq_readerr(cq, &err, 0) == 1)
		fprintf(stderr, "completion: %s: %s\n", fi_strerror(err.err),
			fi_cq_strerror(cq, err.prov_errno, err.err_data, NULL, 0));
}

struct fi_cq_data_entry
ofi_common_done(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry e;
	ssize_t rc = ofi_common_wait(cq, &e);

	if (rc == -FI_EAVAIL)
		print_error(cq);
	CHECK(rc == 1);
	CHECK(e.op_context == context);
	return e;
}

struct fi_cq_err_entry
ofi_common_failed(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry e;
	struct fi_cq_err_entry err = {0};

	CHECK(ofi_common_wait(cq, &e) == -FI_EAVAIL);
	CHECK(fi_cq_readerr(cq, &err, 0) == 1);
	CHECK(err.op_context == context);
	CHECK(strlen(fi_cq_strerror(cq, err.prov_errno, err.err_data, NULL, 0)) > 5);
	return err;
}
