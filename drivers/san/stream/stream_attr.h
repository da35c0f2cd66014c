/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STREAM_ATTR_H
#define STREAM_ATTR_H

/**
 * @file
 * What rtsan_stream_attr means for a session: of every provider that has sessions in it.
 */

#include "rtsan_provider.h"
#include "stream.h"

/** conf->stream, which is not NULL; not checked. */
void stream_attr_fill(const struct rtsan_provider_qp *conf, struct san_stream_conf *out);
/** Of conf->stream, if there is one. -EINVAL with a text by *host*. */
int stream_attr_conf(const struct rtsan_host *host, const struct rtsan_provider_qp *conf,
		     struct san_stream_conf *out);

#endif /* STREAM_ATTR_H */
