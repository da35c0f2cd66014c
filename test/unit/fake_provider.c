/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_provider.h"

#define EXPORT __attribute__((visibility("default")))

extern struct fake_state fake_state;
extern const struct rtsan_provider rtsan_provider_fake, rtsan_provider_old;

EXPORT struct fake_state fake_state;

static int
fake_open(const char *args, const struct rtsan_host *host, void **priv)
{
	snprintf(fake_state.args, sizeof(fake_state.args), "%s", args);
	if (fake_state.open_rc == -EINVAL)
		return host->fail(-EINVAL, "fake: %s is wrong", args);
	if (fake_state.open_rc != 0)
		return fake_state.open_rc;
	fake_state.nb_open++;
	*priv = &fake_state;
	return 0;
}

static void
fake_close(void *priv)
{
	fake_state.nb_open--;
}

static int
fake_progress(void *priv)
{
	fake_state.nb_progress++;
	fake_state.nb_wc += fake_state.wc_at_progress;
	fake_state.wc_at_progress = 0;
	return fake_state.progress_rc;
}

static void
fake_query(void *priv, struct rtsan_caps *caps)
{
	memset(caps, 0, sizeof(*caps));
	caps->max_qps = FAKE_MAX;
	caps->max_cqs = FAKE_MAX;
	caps->max_mrs = 4;
	caps->max_wr = 64;
	caps->max_sge = RTSAN_SGE_MAX;
	caps->max_msg = RTSAN_LENGTH_MAX;
	caps->has_mr_reg = !fake_state.no_mr_reg;
	caps->has_unordered = true;
	caps->has_atomic = true;
	strcpy(caps->provider, "fake");
}

static int
fake_mr_add(void *priv, const struct shmq_req *req, int fd, struct rtsan_provider_keys *keys)
{
	fake_state.mr_addr = (void *)(uintptr_t)req->mr.addr;
	fake_state.mr_seals = fcntl(fd, F_GET_SEALS);
	keys->key = 0x1000 + req->mr.access;
	keys->rkey = 0x2000 + req->mr.access;
	if (fake_state.mr_add_rc == 0)
		fake_state.nb_mrs++;
	return fake_state.mr_add_rc;
}

static int
fake_call(void *priv, const struct shmq_req *req)
{
	bool is_mr = req->type == SHMQ_MR_DEL;
	int rc = is_mr ? fake_state.mr_del_rc : fake_state.conn_rc;

	fake_state.last = *req;
	if (req->type == SHMQ_LISTEN)
		fake_state.cookie = req->id;
	if (rc != 0)
		return rc;
	fake_state.nb_mrs -= is_mr;
	fake_state.nb_listeners += (req->type == SHMQ_LISTEN) - (req->type == SHMQ_UNLISTEN);
	return 0;
}

static int
fake_cq_create(void *priv, uint32_t depth, void **cq)
{
	*cq = &fake_state;
	if (fake_state.cq_rc == 0)
		fake_state.nb_cqs++;
	return fake_state.cq_rc;
}

static int
fake_cq_destroy(void *priv, void *cq)
{
	if (fake_state.cq_destroy_rc == 0)
		fake_state.nb_cqs--;
	return fake_state.cq_destroy_rc;
}

static int
fake_cq_poll(void *cq, struct san_ulp_wc *wc, int n)
{
	n = n < fake_state.nb_wc ? n : fake_state.nb_wc;
	memcpy(wc, fake_state.wc, (size_t)n * sizeof(*wc));
	fake_state.nb_wc -= n;
	memmove(fake_state.wc, &fake_state.wc[n], (size_t)fake_state.nb_wc * sizeof(*wc));
	return n;
}

static int
fake_cq_fd(void *priv, void *cq)
{
	if (fake_state.nb_cq_fd++ == 1) {
		fake_state.nb_wc += fake_state.wc_at_fd;
		fake_state.wc_at_fd = 0;
	}
	return fake_state.cq_fd_rc;
}

static int
fake_qp_create(void *priv, struct rtsan_provider_qp *conf)
{
	size_t bytes = san_wr_wq_bytes(conf->req->qp.sq_depth, conf->req->qp.rq_depth);

	if (fake_state.qp_rc != 0)
		return fake_state.qp_rc;
	for (conf->qp = 0; fake_state.qp_used[conf->qp]; conf->qp++)
		;
	conf->wq = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	memset(conf->wq, 0, bytes);
	fake_state.qp_used[conf->qp] = true;
	fake_state.qp[conf->qp] = *conf;
	fake_state.qp_req[conf->qp] = *conf->req;
	fake_state.nb_qps++;
	return 0;
}

static void
fake_qp_destroy(void *priv, uint32_t qp)
{
	free(fake_state.qp[qp].wq);
	fake_state.qp_used[qp] = false;
	fake_state.nb_qps--;
}

static void
fake_doorbell(void *priv, uint32_t qp)
{
	fake_state.nb_doorbells++;
}

static int
fake_event_poll(void *priv, struct shmq_event *ev)
{
	if (fake_state.nb_ev == 0)
		return 0;
	*ev = fake_state.ev[0];
	fake_state.nb_ev--;
	memmove(fake_state.ev, &fake_state.ev[1], (size_t)fake_state.nb_ev * sizeof(*ev));
	return 1;
}

static int
fake_address(void *priv, uint32_t index, char text[RTSAN_ADDRESS_MAX])
{
	if (index > 1)
		return -ENOENT;
	strcpy(text, index == 0 ? "10.0.0.1" : "fd00::1");
	return 0;
}

#ifdef FAKE_OLD
EXPORT const struct rtsan_provider rtsan_provider_old = {
	.abi = RTSAN_PROVIDER_ABI + 1,
#else
EXPORT const struct rtsan_provider rtsan_provider_fake = {
	.abi = RTSAN_PROVIDER_ABI,
#endif
	.open = fake_open,
	.close = fake_close,
	.progress = fake_progress,
	.query = fake_query,
	.call = fake_call,
	.address = fake_address,
	.mr_add = fake_mr_add,
	.cq_create = fake_cq_create,
	.cq_destroy = fake_cq_destroy,
	.cq_poll = fake_cq_poll,
	.cq_fd = fake_cq_fd,
	.qp_create = fake_qp_create,
	.qp_destroy = fake_qp_destroy,
	.doorbell = fake_doorbell,
	.event_poll = fake_event_poll,
};
