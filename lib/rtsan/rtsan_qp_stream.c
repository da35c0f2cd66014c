/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests of streams besides sends and receives: they have no SGEs. (AFC-1) */

#include <errno.h>

#include "rtsan_priv.h"

#define NS_PER_US    1000
#define OPT_ADAPTIVE 0xff /* see enum san_stream_option */

int
rtsan_stream_wait(struct rtsan_qp *qp, uint32_t events, uint64_t wr_id)
{
	return rtsan_qp_post_control(qp, SAN_WR_WAIT, events, 0, wr_id);
}

int
rtsan_stream_cancel(struct rtsan_qp *qp, uint32_t work, uint64_t wr_id)
{
	return rtsan_qp_post_control(qp, SAN_WR_CANCEL, work, 0, wr_id);
}

int
rtsan_stream_shutdown(struct rtsan_qp *qp, uint64_t wr_id)
{
	return rtsan_qp_post_control(qp, SAN_WR_SHUTDOWN, 0, 0, wr_id);
}

int
rtsan_stream_urgent(struct rtsan_qp *qp, uint64_t wr_id)
{
	return rtsan_qp_post_control(qp, SAN_WR_URGENT, 0, 0, wr_id);
}

int
rtsan_stream_give_back(struct rtsan_qp *qp, uint32_t loan, uint64_t wr_id)
{
	if (qp->is_stream && !qp->ctx->caps.has_loan)
		return rtsan_fail(-EOPNOTSUPP, "stream: the provider has no loans");
	return rtsan_qp_post_control(qp, SAN_WR_GIVE_BACK, loan, 0, wr_id);
}

int
rtsan_stream_option(struct rtsan_qp *qp, enum rtsan_stream_option option, uint32_t value,
		    uint64_t wr_id)
{
	static const uint32_t option_of[] = {
		[RTSAN_STREAM_OPT_MODE] = SAN_STREAM_OPT_MODE,
		[RTSAN_STREAM_OPT_READ] = SAN_STREAM_OPT_READ,
		[RTSAN_STREAM_OPT_HOLD_US] = SAN_STREAM_OPT_HOLD_NS,
		[RTSAN_STREAM_OPT_GATHER_US] = SAN_STREAM_OPT_GATHER_NS,
	};
	uint64_t inner = value;

	if ((unsigned int)option >= sizeof(option_of) / sizeof(option_of[0]) ||
	    option_of[option] == 0)
		return rtsan_fail(-EINVAL, "stream: option %u is unknown", (unsigned int)option);
	if (option == RTSAN_STREAM_OPT_MODE && value == RTSAN_STREAM_ADAPTIVE)
		inner = OPT_ADAPTIVE;
	if (option >= RTSAN_STREAM_OPT_HOLD_US)
		inner *= NS_PER_US;
	return rtsan_qp_post_control(qp, SAN_WR_OPTION, option_of[option], inner, wr_id);
}
