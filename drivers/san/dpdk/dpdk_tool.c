/* SPDX-License-Identifier: BSD-3-Clause */

/* Functions of rtsan_dpdk.h, for tools. Each checks that the context is this provider's. */

#include "dpdk_priv.h"
#include "view.h"

static struct san_engine_port *
dpdk_tool_port_of(const struct rtsan_ctx *ctx)
{
	const struct dpdk_ctx *c =
		ctx != NULL ? rtsan_provider_priv(ctx, &rtsan_provider_dpdk) : NULL;

	return c != NULL ? c->port : NULL;
}

int
rtsan_dpdk_open(int argc, char **argv, const char *conf, struct rtsan_ctx **ctx)
{
	const struct rtsan_host *host = rtsan_provider_host();
	char buf[DPDK_WORD_MAX * 8], *words[DPDK_ARGS_MAX];
	struct dpdk_ctx *c;
	int n, rc;

	if (argc < 1 || argv == NULL || conf == NULL || ctx == NULL)
		return host->fail(-EINVAL, "rtsan_dpdk_open: an argument is missing");
	n = san_dpdk_eal_split(conf, buf, sizeof(buf), words, DPDK_ARGS_MAX);
	if (n < 0)
		return host->fail(-EINVAL, "port arguments: too long, or a quote is open");
	rc = san_dpdk_ctx_open_alone(argc, argv, words, n, host, &c);
	if (rc != 0)
		return rc;
	rc = rtsan_provider_attach(&rtsan_provider_dpdk, c, ctx);
	if (rc != 0)
		san_dpdk_ctx_close_alone(c);
	return rc;
}

int
rtsan_dpdk_impair(struct rtsan_ctx *ctx, bool tx, const char *text)
{
	struct san_engine_port *p = dpdk_tool_port_of(ctx);
	struct san_engine_impair_conf conf;
	char err[SAN_KEY_TEXT];

	if (text == NULL)
		return p != NULL ? san_engine_set_impair(p, tx, NULL) : -EINVAL;
	if (san_dpdk_conf_impair(&conf, text, err, sizeof(err)) != 0)
		return rtsan_provider_host()->fail(-EINVAL, "%s", err);
	if (ctx == NULL)
		return 0;
	conf.seed += tx;
	return p != NULL ? san_engine_set_impair(p, tx, &conf) : -EINVAL;
}

void
rtsan_dpdk_show(struct rtsan_ctx *ctx, enum rtsan_dpdk_show what, FILE *f)
{
	struct san_engine_port *p = dpdk_tool_port_of(ctx);

	if (p != NULL)
		san_view_text(p, (enum rtsan_dpdk_show)what, f);
}

int
rtsan_dpdk_counters(struct rtsan_ctx *ctx, struct rtsan_dpdk_counter *c, int max)
{
	struct san_engine_port *p = dpdk_tool_port_of(ctx);
	struct rtsan_dpdk_counter all[SAN_VIEW_COUNTERS];
	int i, n;

	if (p == NULL)
		return -EINVAL;
	n = (int)san_view_counters(p, NULL, all);
	for (i = 0; i < n && i < max; i++)
		c[i] = all[i];
	return n;
}

uint64_t
rtsan_dpdk_leaks(struct rtsan_ctx *ctx)
{
	struct san_engine_port *p = dpdk_tool_port_of(ctx);

	return p != NULL ? san_view_counters_leaks(p) : 0;
}

int
rtsan_dpdk_capture(struct rtsan_ctx *ctx, const char *file)
{
	struct san_engine_port *p = dpdk_tool_port_of(ctx);
	int rc = p != NULL ? san_view_capture(p, file) : -EINVAL;

	return rc == 0 ? 0 : rtsan_provider_host()->fail(rc, "%s", strerror(-rc));
}
