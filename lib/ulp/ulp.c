/* SPDX-License-Identifier: BSD-3-Clause */

#include "ulp_priv.h"

void
san_ulp_conf_default(struct san_ulp_conf *conf)
{
	*conf = (struct san_ulp_conf){
		.max_conns = 1024,
		.max_qps = 1024,
		.max_cqs = 1024,
		.max_mrs = 4096,
		.max_stream_mrs = 4096,
		.pull_piece = 64 * 1024,
		.guesses_per_conn = 64,
		.guesses_per_hour = 1000,
	};
}

static bool
is_valid(const struct san_ulp_conf *conf)
{
	return conf->max_conns > 0 && conf->max_conns <= SAN_CONNS_MAX && conf->max_qps > 0 &&
		conf->max_qps <= SAN_ULP_QPS_MAX &&
		conf->first_qp <= SAN_ULP_QPS_MAX - conf->max_qps && conf->max_cqs > 0 &&
		rte_is_power_of_2(conf->max_mrs) && rte_is_power_of_2(conf->max_stream_mrs) &&
		conf->max_mrs <= SAN_ULP_MRS_MAX &&
		conf->max_stream_mrs <= SAN_ULP_MRS_MAX - conf->max_mrs &&
		conf->guesses_per_conn > 0 && conf->guesses_per_hour > 1 && conf->pull_piece > 0 &&
		conf->pull_piece <= SAN_WIRE_LENGTH_MAX && conf->secret32 != NULL;
}

int
san_ulp_create(const struct san_ulp_conf *conf, struct san_ulp **out)
{
	struct san_mem *mem = conf->mem;
	struct san_ulp *ulp;

	if (!is_valid(conf))
		return -EINVAL;
	ulp = san_mem_calloc(mem, 1, sizeof(*ulp));
	if (ulp == NULL)
		return -ENOMEM;
	ulp->conf = *conf;
	ulp->mrs = san_mem_calloc(mem, conf->max_mrs + conf->max_stream_mrs, sizeof(ulp->mrs[0]));
	LIST_INIT(&ulp->owns);
	TAILQ_INIT(&ulp->pump);
	TAILQ_INIT(&ulp->failed);
	TAILQ_INIT(&ulp->fulls);
	ulp->cqs = san_mem_calloc(mem, conf->max_cqs, sizeof(ulp->cqs[0]));
	ulp->qps = san_mem_calloc(mem, conf->max_qps, sizeof(ulp->qps[0]));
	ulp->qp_gens = san_mem_calloc(mem, conf->max_qps, sizeof(ulp->qp_gens[0]));
	ulp->qp_of_slot = san_mem_calloc(mem, conf->max_conns, sizeof(ulp->qp_of_slot[0]));
	if (ulp->mrs == NULL || ulp->cqs == NULL || ulp->qps == NULL || ulp->qp_gens == NULL ||
	    ulp->qp_of_slot == NULL || san_ulp_guess_init(ulp) != 0) {
		san_ulp_destroy(ulp);
		return -ENOMEM;
	}
	*out = ulp;
	return 0;
}

void
san_ulp_destroy(struct san_ulp *ulp)
{
	struct san_ulp_cq *cq;
	struct san_mem *mem;
	uint32_t i;

	if (ulp == NULL)
		return;
	mem = ulp->conf.mem;
	/* Unbind all: there is no connection any more. */
	for (i = 0; ulp->qp_of_slot != NULL && ulp->qps != NULL && i < ulp->conf.max_qps; i++) {
		if (ulp->qps[i] == NULL)
			continue;
		san_ulp_qp_unbind(ulp, ulp->qps[i]->qpn);
		san_ulp_qp_destroy(ulp, ulp->qps[i]->qpn);
	}
	for (i = 0; ulp->cqs != NULL && i < ulp->conf.max_cqs; i++)
		if (ulp->cqs[i] != NULL)
			san_ulp_cq_free(ulp, ulp->cqs[i]);
	while ((cq = LIST_FIRST(&ulp->owns)) != NULL) {
		LIST_REMOVE(cq, own_link);
		san_ulp_cq_free(ulp, cq);
	}
	san_mem_end(mem, ulp->guessers);
	san_mem_end(mem, ulp->qp_of_slot);
	san_mem_end(mem, ulp->qps);
	san_mem_end(mem, ulp->qp_gens);
	san_mem_end(mem, ulp->cqs);
	san_mem_end(mem, ulp->mrs);
	san_mem_end(mem, ulp);
}

void
san_ulp_resume(struct san_ulp *ulp, const struct san_ulp_conf *conf)
{
	uint32_t i;

	ulp->conf.secret32 = conf->secret32;
	ulp->conf.secret_arg = conf->secret_arg;
	for (i = 0; i < ulp->conf.max_cqs; i++)
		if (ulp->cqs[i] != NULL)
			san_ulp_cq_watch(ulp->cqs[i], -1);
}

void
san_ulp_set_tl(struct san_ulp *ulp, struct san_tl *tl)
{
	ulp->tl = tl;
}

const struct san_ulp_stats *
san_ulp_stats(const struct san_ulp *ulp)
{
	return &ulp->stats;
}

const char *
san_ulp_status_name(uint8_t status)
{
	static const char *const names[] = {
		[SAN_ST_OK] = "ok",
		[SAN_ST_RNR] = "rnr",
		[SAN_ST_ACCESS] = "access",
		[SAN_ST_LENGTH] = "length",
		[SAN_ST_REVOKED] = "revoked",
		[SAN_ST_ALIGN] = "align",
		[SAN_ST_RESOURCE] = "resource",
		[SAN_ST_REFUSED] = "refused",
		[SAN_ST_ABORTED] = "aborted",
		[RTSAN_WC_RETRY_EXC] = "RETRY_EXC",
		[RTSAN_WC_FLUSHED] = "FLUSHED",
		[RTSAN_WC_LOC_LENGTH] = "LOCAL_LENGTH",
		[RTSAN_WC_NO_BUFFERS] = "NO_BUFFERS",
		[RTSAN_WC_CANCELLED] = "CANCELLED",
		[RTSAN_WC_AGAIN] = "AGAIN",
		[RTSAN_WC_SHUTDOWN] = "SHUTDOWN",
		[RTSAN_WC_PROTOCOL] = "PROTOCOL",
		[RTSAN_WC_INVALID] = "INVALID",
	};

	return status < RTE_DIM(names) && names[status] != NULL ? names[status] : "unknown";
}

static void
check_mrs(const struct san_ulp *ulp)
{
	uint32_t nb_all = ulp->conf.max_mrs + ulp->conf.max_stream_mrs;
	uint32_t i, nb_mrs = 0, nb_stream_mrs = 0;

	for (i = 0; i < nb_all; i++) {
		const struct san_ulp_mr *mr = &ulp->mrs[i];

		if (!mr->used)
			continue;
		if (i < ulp->conf.max_mrs)
			nb_mrs++;
		else
			nb_stream_mrs++;
		SAN_VERIFY(mr->key != 0 && san_ulp_mr_index(ulp, mr->key) == i);
		SAN_VERIFY(mr->gen != 0 && mr->addr != NULL && mr->len > 0);
	}
	SAN_VERIFY(nb_mrs == ulp->nb_mrs);
	SAN_VERIFY(nb_stream_mrs == ulp->nb_stream_mrs);
}

void
san_ulp_check(const struct san_ulp *ulp)
{
	uint32_t i, nb_cqs = 0, nb_qps = 0;
	const struct san_ulp_cq *own, *cq;
	const struct san_ulp_qp *qp;

	check_mrs(ulp);
	for (i = 0; i < ulp->conf.max_qps; i++) {
		if (ulp->qps[i] == NULL)
			continue;
		nb_qps++;
		san_ulp_qp_check(ulp, ulp->qps[i]);
	}
	SAN_VERIFY(nb_qps == ulp->nb_qps);
	for (i = 0; i < ulp->conf.max_cqs; i++) {
		if (ulp->cqs[i] == NULL)
			continue;
		nb_cqs++;
		san_ulp_cq_check(ulp, ulp->cqs[i]);
	}
	SAN_VERIFY(nb_cqs == ulp->nb_cqs);
	LIST_FOREACH(own, &ulp->owns, own_link)
		san_ulp_cq_check(ulp, own);
	TAILQ_FOREACH(qp, &ulp->pump, link)
		SAN_VERIFY(qp->listed == SAN_ULP_IN_PUMP);
	TAILQ_FOREACH(cq, &ulp->fulls, full_link) {
		SAN_VERIFY(!TAILQ_EMPTY(&cq->full));
		TAILQ_FOREACH(qp, &cq->full, link)
			SAN_VERIFY(qp->listed == SAN_ULP_IN_FULL && qp->recv_cq == cq &&
				   qp->state == SAN_ULP_QP_ENDED);
	}
}
