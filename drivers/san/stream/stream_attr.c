/* SPDX-License-Identifier: BSD-3-Clause */

/* Converts the attributes of a stream in rtsan.h, where 0 is the default, to those of a session. */

#include <errno.h>

#include "san_time.h"
#include "stream_attr.h"

/* Set *field* to *value*, unless that is 0. */
#define SET(field, value) ((field) = (value) != 0 ? (value) : (field))

static void
set_ns(uint64_t *field, uint32_t us)
{
	if (us == RTSAN_STREAM_OFF)
		*field = 0;
	else if (us != 0)
		*field = us * SAN_NS_PER_US;
}

void
san_stream_attr_fill(const struct shmq_qp *qp, struct san_stream_conf *out)
{
	const struct rtsan_stream_attr *a = &qp->stream;

	san_stream_conf_default(out);
	out->sq_depth = qp->sq_depth;
	out->rq_depth = qp->rq_depth;
	SET(out->mode, a->mode);
	out->read = a->read;
	SET(out->learn, a->learn);
	SET(out->scans, a->scans);
	SET(out->threshold, a->threshold);
	SET(out->msg_size, a->msg_size);
	/* msg_size alone may exceed the default of msg_max: raise that, too */
	out->msg_max = out->msg_size > out->msg_max ? out->msg_size : out->msg_max;
	SET(out->msg_max, a->msg_max);
	SET(out->nb_recv, a->nb_recv);
	SET(out->nb_store, a->nb_store);
	SET(out->nb_send, a->nb_send);
	out->t1 = a->t1;
	out->t2 = a->t2;
	SET(out->frags, a->frags);
	out->send_buffer = a->send_buffer;
	set_ns(&out->scan_ns, a->scan_us);
	set_ns(&out->hold_ns, a->hold_us);
	set_ns(&out->gather_ns, a->gather_us);
}

int
san_stream_attr_conf(const struct rtsan_host *host, const struct shmq_qp *qp,
		     struct san_stream_conf *out)
{
	const char *why;

	if (!qp->is_stream)
		return 0;
	san_stream_attr_fill(qp, out);
	why = san_stream_conf_check(out);
	return why != NULL ? host->fail(-EINVAL, "stream: %s", why) : 0;
}
