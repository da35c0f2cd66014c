/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Attributes of a stream for a session. Shared by all providers that run sessions. */

#include "rtsan_provider.h"
#include "stream.h"

/** Convert qp->stream without checks. */
void san_stream_attr_fill(const struct shmq_qp *qp, struct san_stream_conf *out);
/** If it is a stream, convert and check qp->stream. -EINVAL with a text by *host*. */
int san_stream_attr_conf(const struct rtsan_host *host, const struct shmq_qp *qp,
			 struct san_stream_conf *out);
