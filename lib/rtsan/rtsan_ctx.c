/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "rtsan_priv.h"

#define NAME_MAX_LEN 31
#define MRS_MAX      (1u << 20)

const char *
rtsan_version(void)
{
	return RTSAN_VERSION;
}

/* ---- providers ---- */

static const struct rtsan_host host = {.fail = rtsan_fail};

const struct rtsan_host *
rtsan_provider_host(void)
{
	return &host;
}

void *
rtsan_provider_priv(const struct rtsan_ctx *ctx, const struct rtsan_provider *provider)
{
	return ctx->ops == provider ? ctx->priv : NULL;
}

/*
 * Load *file* from one of *dirs*, separated by colons. *err*: error for the last one that has the
 * file.
 */
static void *
load_from(const char *dirs, const char *file, char *err, size_t err_len)
{
	char path[4096];
	size_t len;
	void *dl;

	for (; dirs != NULL && *dirs != '\0'; dirs += len + (dirs[len] == ':')) {
		len = strcspn(dirs, ":");
		snprintf(path, sizeof(path), "%.*s/%s", (int)len, dirs, file);
		if (access(path, F_OK) != 0)
			continue;
		dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (dl != NULL)
			return dl;
		snprintf(err, err_len, "%s", dlerror());
	}
	return NULL;
}

/*
 * The default path comes first; the environment variable is for providers not installed there.
 * (SYS-10)
 */
static void *
ctx_load_provider(const char *name)
{
	char file[NAME_MAX_LEN + 32], err[256];
	void *dl;

	snprintf(file, sizeof(file), "librtsan-%s.so", name);
	dl = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (dl != NULL)
		return dl;
	snprintf(err, sizeof(err), "%s", dlerror());
	dl = load_from(secure_getenv("RTSAN_PROVIDER_PATH"), file, err, sizeof(err));
	if (dl == NULL)
		rtsan_fail(-ENOENT, "provider \"%s\": %s (RTSAN_PROVIDER_PATH names other folders)",
			   name, err);
	return dl;
}

/*
 * The object stays loaded until the process ends: DPDK has threads and exit handlers of its own,
 * which outlive a context.
 */
static int
find_provider(const char *name, const struct rtsan_provider **out)
{
	char symbol[sizeof(RTSAN_PROVIDER_SYM) + NAME_MAX_LEN];
	const struct rtsan_provider *p;
	void *dl = ctx_load_provider(name);

	if (dl == NULL)
		return -ENOENT;
	snprintf(symbol, sizeof(symbol), RTSAN_PROVIDER_SYM "%s", name);
	p = dlsym(dl, symbol);
	if (p == NULL || p->abi != RTSAN_PROVIDER_ABI) {
		rtsan_fail(-ENOENT, "provider \"%s\": librtsan-%s.so %s", name, name,
			   p == NULL ? "has no symbol of that name" : "is of another version");
		dlclose(dl);
		return -ENOENT;
	}
	*out = p;
	return 0;
}

/* ---- contexts ---- */

static void
free_ctx(struct rtsan_ctx *ctx)
{
	struct rtsan_kept *k;

	rtsan_turn_fini(&ctx->events);
	pthread_mutex_destroy(&ctx->lock);
	while ((k = STAILQ_FIRST(&ctx->kept)) != NULL) {
		STAILQ_REMOVE_HEAD(&ctx->kept, link);
		free(k);
	}
	free(ctx->spare);
	free(ctx->qps);
	free(ctx->mrs);
	free(ctx);
}

int
rtsan_provider_attach(const struct rtsan_provider *provider, void *priv, struct rtsan_ctx **out)
{
	struct rtsan_ctx *ctx = calloc(1, sizeof(*ctx));

	if (ctx == NULL)
		return rtsan_fail(-ENOMEM, "no memory for a context");
	ctx->ops = provider;
	ctx->priv = priv;
	rtsan_turn_init(&ctx->events);
	pthread_mutex_init(&ctx->lock, NULL);
	STAILQ_INIT(&ctx->kept); /* other lists are empty if they are zero */
	ctx->ops->query(priv, &ctx->caps);
	if (ctx->caps.max_mrs > MRS_MAX)
		ctx->caps.max_mrs = MRS_MAX;
	while ((1u << ctx->lkey_bits) < ctx->caps.max_mrs)
		ctx->lkey_bits++;
	ctx->mrs = calloc(ctx->caps.max_mrs, sizeof(*ctx->mrs));
	ctx->qps = calloc(ctx->caps.max_qps, sizeof(*ctx->qps));
	if (ctx->mrs == NULL || ctx->qps == NULL) {
		free_ctx(ctx);
		return rtsan_fail(-ENOMEM, "no memory for the tables of a context");
	}
	*out = ctx;
	return 0;
}

static int
split_spec(const char *spec, char name[NAME_MAX_LEN + 1], const char **args)
{
	const char *colon = spec != NULL ? strchr(spec, ':') : NULL;
	size_t i, len;

	if (colon == NULL)
		return rtsan_fail(-EINVAL, "spec: \"%s\" has no \"provider:\" in front",
				  spec != NULL ? spec : "");
	len = (size_t)(colon - spec);
	if (len == 0 || len > NAME_MAX_LEN)
		return rtsan_fail(-EINVAL, "spec: \"%s\": name of the provider: 1 to %d characters",
				  spec, NAME_MAX_LEN);
	for (i = 0; i < len; i++) /* nothing that could be a path */
		if (!isalnum((unsigned char)spec[i]) && spec[i] != '_')
			return rtsan_fail(-EINVAL, "spec: \"%.*s\" is not the name of a provider",
					  (int)len, spec);
	memcpy(name, spec, len);
	name[len] = '\0';
	*args = colon + 1;
	return 0;
}

int
rtsan_open(const char *spec, struct rtsan_ctx **ctx)
{
	const struct rtsan_provider *provider;
	char name[NAME_MAX_LEN + 1];
	const char *args = NULL;
	void *priv;
	int rc;

	if (ctx == NULL)
		return rtsan_fail(-EINVAL, "rtsan_open: no place for the context");
	rc = split_spec(spec, name, &args);
	if (rc != 0)
		return rc;
	rc = find_provider(name, &provider);
	if (rc != 0)
		return rc;
	rtsan_error_clear();
	rc = provider->open(args, &host, &priv);
	if (rc != 0)
		return rtsan_fail_else(rc, "rtsan_open");
	rc = rtsan_provider_attach(provider, priv, ctx);
	if (rc != 0)
		provider->close(priv);
	return rc;
}

void
rtsan_close(struct rtsan_ctx *ctx)
{
	struct rtsan_listener *listener;
	struct rtsan_cq *cq;
	uint32_t i;

	if (ctx == NULL)
		return;
	while ((listener = LIST_FIRST(&ctx->listeners)) != NULL)
		rtsan_listener_destroy(listener);
	for (i = 0; i < ctx->caps.max_qps; i++)
		rtsan_qp_destroy(atomic_load(&ctx->qps[i].qp));
	while ((cq = LIST_FIRST(&ctx->cqs)) != NULL)
		if (rtsan_cq_destroy(cq) != 0)
			break;
	/* Nothing arrives from here on: the provider's close ends every access to memory. */
	ctx->ops->close(ctx->priv);
	while ((cq = LIST_FIRST(&ctx->cqs)) != NULL) {
		LIST_REMOVE(cq, link);
		free(cq);
	}
	for (i = 0; i < ctx->caps.max_mrs; i++)
		if (atomic_load(&ctx->mrs[i].lkey) != 0)
			rtsan_mr_release(&ctx->mrs[i]);
	free_ctx(ctx);
}

int
rtsan_progress(struct rtsan_ctx *ctx)
{
	return ctx->ops->progress(ctx->priv);
}

int
rtsan_query(struct rtsan_ctx *ctx, struct rtsan_caps *caps, size_t size)
{
	memset(caps, 0, size);
	memcpy(caps, &ctx->caps, size < sizeof(*caps) ? size : sizeof(*caps));
	return 0;
}

int
rtsan_address(struct rtsan_ctx *ctx, uint32_t index, char text[RTSAN_ADDRESS_MAX])
{
	int rc = ctx->ops->address(ctx->priv, index, text);

	return rc == 0 ? 0 : rtsan_fail(rc, "address %u: there is none", index);
}
