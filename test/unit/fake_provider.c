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
	(void)priv;
	fake_state.nb_open--;
}

static int
fake_progress(void *priv)
{
	(void)priv;
	fake_state.nb_progress++;
	fake_state.nb_wc += fake_state.wc_at_progress;
	fake_state.wc_at_progress = 0;
	return fake_state.progress_rc;
}

static void
fake_query(void *priv, struct rtsan_caps *caps)
{
	(void)priv;
	memset(caps, 0, sizeof(*caps));
	caps->max_qps = FAKE_MAX;
	caps->max_cqs = FAKE_MAX;
	caps->max_mrs = 4;
	caps->max_wr = 64;
	caps->max_sge = RTSAN_SGE_MAX;
	caps->has_mr_reg = !fake_state.no_mr_reg;
	caps->has_unordered = true;
	caps->has_atomic = true;
	strcpy(caps->provider, "fake");
}

static int
fake_mr_add(void *priv, struct rtsan_provider_mr *mr)
{
	(void)priv;
	fake_state.mr_addr = mr->addr;
	fake_state.mr_seals = fcntl(mr->fd, F_GET_SEALS);
	mr->key = 0x1000 + mr->access;
	mr->rkey = 0x2000 + mr->access;
	if (fake_state.mr_add_rc == 0)
		fake_state.nb_mrs++;
	return fake_state.mr_add_rc;
}

static int
fake_mr_del(void *priv, uint32_t key)
{
	(void)priv;
	fake_state.last_key = key;
	if (fake_state.mr_del_rc == 0)
		fake_state.nb_mrs--;
	return fake_state.mr_del_rc;
}

static int
fake_cq_create(void *priv, uint32_t depth, void **cq)
{
	(void)priv;
	(void)depth;
	*cq = &fake_state;
	if (fake_state.cq_rc == 0)
		fake_state.nb_cqs++;
	return fake_state.cq_rc;
}

static int
fake_cq_destroy(void *priv, void *cq)
{
	(void)priv;
	(void)cq;
	if (fake_state.cq_destroy_rc == 0)
		fake_state.nb_cqs--;
	return fake_state.cq_destroy_rc;
}

static int
fake_cq_poll(void *cq, struct san_ulp_wc *wc, int n)
{
	(void)cq;
	n = n < fake_state.nb_wc ? n : fake_state.nb_wc;
	memcpy(wc, fake_state.wc, (size_t)n * sizeof(*wc));
	fake_state.nb_wc -= n;
	memmove(fake_state.wc, &fake_state.wc[n], (size_t)fake_state.nb_wc * sizeof(*wc));
	return n;
}

static int
fake_qp_create(void *priv, struct rtsan_provider_qp *conf)
{
	(void)priv;
	if (fake_state.qp_rc != 0)
		return fake_state.qp_rc;
	for (conf->qp = 0; fake_state.qp_used[conf->qp]; conf->qp++)
		;
	conf->wq = aligned_alloc(64, san_wr_wq_bytes(conf->sq_depth, conf->rq_depth));
	memset(conf->wq, 0, san_wr_wq_bytes(conf->sq_depth, conf->rq_depth));
	fake_state.qp_used[conf->qp] = true;
	fake_state.qp[conf->qp] = *conf;
	fake_state.nb_qps++;
	return 0;
}

static void
fake_qp_destroy(void *priv, uint32_t qp)
{
	(void)priv;
	free(fake_state.qp[qp].wq);
	fake_state.qp_used[qp] = false;
	fake_state.nb_qps--;
}

static void
fake_doorbell(void *priv, uint32_t qp)
{
	(void)priv;
	(void)qp;
	fake_state.nb_doorbells++;
}

static int
fake_listen(void *priv, uint64_t service, uint16_t pkey, uint16_t backlog, uint32_t cookie)
{
	(void)priv;
	(void)pkey;
	(void)backlog;
	fake_state.service = service;
	fake_state.cookie = cookie;
	if (fake_state.conn_rc == 0)
		fake_state.nb_listeners++;
	return fake_state.conn_rc;
}

static void
fake_unlisten(void *priv, uint64_t service, uint16_t pkey)
{
	(void)priv;
	(void)pkey;
	fake_state.service = service;
	fake_state.nb_listeners--;
}

static int
fake_connect(void *priv, uint32_t qp, const char *peer, uint64_t service,
	     const struct rtsan_conn_param *param)
{
	(void)priv;
	(void)qp;
	fake_state.service = service;
	snprintf(fake_state.peer, sizeof(fake_state.peer), "%s", peer);
	if (param != NULL)
		fake_state.param = *param;
	return fake_state.conn_rc;
}

static int
fake_accept(void *priv, uint64_t request, uint32_t qp, const struct rtsan_conn_param *param)
{
	(void)request;
	return fake_connect(priv, qp, "", 0, param);
}

static int
fake_reject(void *priv, uint64_t request, const void *data, uint16_t len)
{
	(void)priv;
	(void)request;
	(void)data;
	(void)len;
	return fake_state.conn_rc;
}

static int
fake_disconnect(void *priv, uint32_t qp)
{
	(void)priv;
	(void)qp;
	return fake_state.conn_rc;
}

static int
fake_event_poll(void *priv, struct rtsan_provider_event *ev)
{
	(void)priv;
	if (fake_state.nb_ev == 0)
		return 0;
	*ev = fake_state.ev[0];
	fake_state.nb_ev--;
	memmove(fake_state.ev, &fake_state.ev[1], (size_t)fake_state.nb_ev * sizeof(*ev));
	return 1;
}

static const struct rtsan_provider_ops ops = {
	.open = fake_open,
	.close = fake_close,
	.progress = fake_progress,
	.query = fake_query,
	.mr_add = fake_mr_add,
	.mr_del = fake_mr_del,
	.cq_create = fake_cq_create,
	.cq_destroy = fake_cq_destroy,
	.cq_poll = fake_cq_poll,
	.qp_create = fake_qp_create,
	.qp_destroy = fake_qp_destroy,
	.doorbell = fake_doorbell,
	.listen = fake_listen,
	.unlisten = fake_unlisten,
	.connect = fake_connect,
	.accept = fake_accept,
	.reject = fake_reject,
	.disconnect = fake_disconnect,
	.event_poll = fake_event_poll,
};

#ifdef FAKE_OLD
EXPORT const struct rtsan_provider rtsan_provider_old = {
	.abi = RTSAN_PROVIDER_ABI + 1,
	.name = "old",
	.ops = &ops,
};
#else
EXPORT const struct rtsan_provider rtsan_provider_fake = {
	.abi = RTSAN_PROVIDER_ABI,
	.name = "fake",
	.ops = &ops,
};
#endif
