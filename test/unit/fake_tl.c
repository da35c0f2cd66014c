/* SPDX-License-Identifier: BSD-3-Clause */

/* A fake transaction sublayer for unit tests of the ULP. */

#include "test_ulp.h"

struct fake_tl fake;

int
san_tl_initiator_submit(struct san_tl *tl, uint16_t slot, const struct san_tl_req *req,
			uint64_t now_ns)
{
	struct san_tl_txn *txn = &fake.txns[fake.nb_txns];

	if (fake.room == 0 || fake.nb_txns == FAKE_TXNS) {
		fake.nb_refused++;
		if (fake.room_inside)
			san_tl_ulp_room(fake.ulp, slot);
		return -EAGAIN;
	}
	fake.room--;
	memset(txn, 0, sizeof(*txn));
	txn->req = *req;
	txn->slot = slot;
	fake.nb_txns++;
	return 0;
}

uint32_t
san_tl_initiator_plain_room(const struct san_tl *tl, uint16_t slot, uint32_t n)
{
	return RTE_MIN(n, RTE_MIN(fake.room, FAKE_TXNS - fake.nb_txns));
}

uint32_t
san_tl_initiator_plain_submit(struct san_tl *tl, uint16_t slot,
			      const struct san_tl_req *const req[], uint32_t n)
{
	uint32_t k = 0;

	assert_in_range(n, 1, fake.room);
	while (k < n && req[k]->type == SAN_TL_PUSH &&
	       san_tl_initiator_submit(tl, slot, req[k], 0) == 0)
		k++;
	return k;
}

void
san_tl_want_end(struct san_tl *tl, uint16_t slot)
{
	assert_int_equal(slot, SLOT);
	fake.nb_unwanted++;
}

void
san_tl_on_recv_posted(struct san_tl *tl, uint16_t slot, uint64_t now_ns)
{
	assert_int_equal(slot, SLOT);
	fake.nb_recv_posted++;
}
