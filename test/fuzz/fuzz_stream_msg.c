/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes through the codec of session messages. Input: a message. (AFC-3)
 *
 * Checked: no access outside the message; what was taken is within its limits, can be written
 * again, and then has the same bytes and reads the same.
 */

#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "san_assert.h"
#include "wire_stream.h"

static void
verify_where(const struct san_sm_where *w)
{
	SAN_VERIFY(w->nb_seg >= 1 && w->nb_seg <= SAN_SM_SEGS);
	for (uint8_t i = 0; i < w->nb_seg; i++)
		SAN_VERIFY(w->seg[i].len > 0);
}

static void
verify_limits(const struct san_sm *m)
{
	SAN_VERIFY(m->mode < SAN_SM_MODES && m->rep.rdone.mode < SAN_SM_MODES);
	SAN_VERIFY(m->nb_wdone <= SAN_SM_WDONES && m->nb_adv <= SAN_SM_ADVS);
	SAN_VERIFY((m->nb_wdone > 0) == ((m->flags & SAN_SM_WDONE) != 0));
	SAN_VERIFY((m->nb_adv > 0) == ((m->flags & SAN_SM_ADV) != 0));
	SAN_VERIFY((m->send_id != 0) == ((m->flags & (SAN_SM_NOTICE | SAN_SM_OFFER)) != 0));
	for (uint8_t i = 0; i < m->nb_adv; i++)
		verify_where(&m->adv[i].where);
	if (m->flags & SAN_SM_OFFER)
		verify_where(&m->offer);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct san_sm m, again;
	uint8_t p[SAN_SM_HDR_MAX];
	uint32_t payload, len;
	int rc;

	if (size > UINT32_MAX)
		return 0;
	rc = san_wire_stream_get(data, (uint32_t)size, &m, &payload);
	SAN_VERIFY(rc == 0 || rc == -EBADMSG);
	if (rc != 0)
		return 0;
	verify_limits(&m);
	len = san_wire_stream_len(&m);
	SAN_VERIFY(len <= sizeof(p) && payload == len && len + m.len == size);
	san_wire_stream_put(&m, p);
	SAN_VERIFY(memcmp(p, data, len) == 0);
	m.len = 0;
	san_wire_stream_put(&m, p);
	rc = san_wire_stream_get(p, len, &again, &payload);
	if (m.flags & SAN_SM_URGENT_BYTE)
		SAN_VERIFY(rc == -EBADMSG);
	else
		SAN_VERIFY(rc == 0 && memcmp(&m, &again, sizeof(m)) == 0);
	return 0;
}
