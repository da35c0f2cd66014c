/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STREAM_ATTR_H
#define STREAM_ATTR_H

/**
 * @file
 * Attributes of a stream for a session. Shared by all providers that run sessions.
 */

#include "rtsan_provider.h"
#include "stream.h"

/** Convert conf->stream, which is not NULL, without checks. */
void san_stream_attr_fill(const struct rtsan_provider_qp *conf, struct san_stream_conf *out);
/** Convert and check conf->stream, if there is one. -EINVAL with a text by *host*. */
int san_stream_attr_conf(const struct rtsan_host *host, const struct rtsan_provider_qp *conf,
			 struct san_stream_conf *out);

#endif /* STREAM_ATTR_H */
