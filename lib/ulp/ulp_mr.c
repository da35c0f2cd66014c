/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A key is random. Its lowest bits are the slot in the table, so an access needs no search. One key
 * reveals nothing about another. The highest bit marks regions of streams; keys of applications
 * are copied to all lcores, where their slots must be free. If the slot is in use, a new key is
 * drawn. Taking the next free slot would make keys adjacent; only an almost full table does that,
 * so that the number of draws is bounded.
 *
 * A transaction that was admitted stores slot and generation, and each use compares the generation.
 * So a region can be removed at any time (SAN_ST_REVOKED) without knowing which transactions use
 * it.
 */

#include <stddef.h>

#include "ulp_priv.h"

#define DRAWS_MAX  64
#define RIGHTS_ALL (RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL | RTSAN_REMOTE_ATOMIC)

/** True if *key* may be used: 0 means "no key", and the last key of a slot must stay invalid. */
static bool
is_fresh(const struct san_ulp *ulp, uint32_t key)
{
	const struct san_ulp_mr *mr = &ulp->mrs[san_ulp_mr_index(ulp, key)];

	return key != 0 && !mr->used && mr->key != key;
}

/** The table has a free slot for this kind. */
static uint32_t
draw_key(const struct san_ulp *ulp, uint32_t kind)
{
	uint32_t mask = (kind != 0 ? ulp->conf.max_stream_mrs : ulp->conf.max_mrs) - 1;
	uint32_t key = 0, draws;

	for (draws = 0; draws < DRAWS_MAX; draws++) {
		key = (ulp->conf.secret32(ulp->conf.secret_arg) & ~SAN_ULP_KEY_STREAM) | kind;
		if (is_fresh(ulp, key))
			return key;
	}
	while (ulp->mrs[san_ulp_mr_index(ulp, key)].used)
		key = (key & ~mask) | ((key + 1) & mask);
	while (!is_fresh(ulp, key))
		key = ((key + mask + 1) & ~SAN_ULP_KEY_STREAM) | kind;
	return key;
}

static int
check_region(const void *addr, uint64_t len, uint64_t base, uint8_t rights)
{
	if (addr == NULL || len == 0 || (rights & ~RIGHTS_ALL) != 0)
		return -EINVAL;
	if (len > UINTPTR_MAX - (uintptr_t)addr || len > UINT64_MAX - base)
		return -EINVAL;
	return 0;
}

/* Fill the slot of *key*, which is free. */
static struct san_ulp_mr *
ulp_mr_fill_entry(const struct san_ulp *ulp, void *addr, uint64_t len, uint64_t base,
		  uint8_t rights, uint32_t key)
{
	struct san_ulp_mr *mr = &ulp->mrs[san_ulp_mr_index(ulp, key)];

	mr->addr = addr;
	mr->len = len;
	mr->base = base;
	mr->rights = rights;
	mr->owner = 0;
	mr->closing = false;
	mr->key = key;
	mr->used = true;
	if (++mr->gen == 0)
		mr->gen = 1;
	return mr;
}

int
san_ulp_mr_copy(struct san_ulp *ulp, void *addr, uint64_t len, uint64_t base, uint8_t rights,
		uint16_t pkey, uint32_t key)
{
	int rc = check_region(addr, len, base, rights);

	if (rc != 0)
		return rc;
	if ((key & SAN_ULP_KEY_STREAM) != 0)
		return -EINVAL;
	if (ulp->nb_mrs == ulp->conf.max_mrs)
		return -ENOSPC;
	if (ulp->mrs[san_ulp_mr_index(ulp, key)].used)
		return -EEXIST;
	ulp_mr_fill_entry(ulp, addr, len, base, rights, key)->pkey = pkey;
	ulp->nb_mrs++;
	return 0;
}

int
san_ulp_mr_add(struct san_ulp *ulp, void *addr, uint64_t len, uint64_t base, uint8_t rights,
	       uint16_t pkey, uint32_t *key)
{
	int rc = check_region(addr, len, base, rights);

	if (rc != 0)
		return rc;
	if (ulp->nb_mrs == ulp->conf.max_mrs)
		return -ENOSPC;
	*key = draw_key(ulp, 0);
	return san_ulp_mr_copy(ulp, addr, len, base, rights, pkey, *key);
}

int
san_ulp_mr_add_stream(struct san_ulp *ulp, uint32_t qpn, void *addr, uint64_t len, uint8_t rights,
		      uint32_t *key)
{
	const struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);
	int rc = check_region(addr, len, 0, rights);
	struct san_ulp_mr *mr;

	if (rc != 0)
		return rc;
	if (qp == NULL || qp->state != SAN_ULP_QP_BOUND)
		return -EINVAL;
	if (ulp->nb_stream_mrs == ulp->conf.max_stream_mrs)
		return -ENOSPC;
	*key = draw_key(ulp, SAN_ULP_KEY_STREAM);
	mr = ulp_mr_fill_entry(ulp, addr, len, 0, rights, *key);
	mr->pkey = qp->pkey;
	mr->qpn = qpn;
	mr->closing = true; /* no work of applications can name it */
	ulp->nb_stream_mrs++;
	return 0;
}

static struct san_ulp_mr *
ulp_mr_find_key(const struct san_ulp *ulp, uint32_t key)
{
	struct san_ulp_mr *mr = &ulp->mrs[san_ulp_mr_index(ulp, key)];

	return mr->used && mr->key == key ? mr : NULL;
}

int
san_ulp_mr_del(struct san_ulp *ulp, uint32_t key)
{
	struct san_ulp_mr *mr = ulp_mr_find_key(ulp, key);

	if (mr == NULL)
		return -ENOENT;
	mr->used = false;
	mr->addr = NULL;
	if ((key & SAN_ULP_KEY_STREAM) != 0)
		ulp->nb_stream_mrs--;
	else
		ulp->nb_mrs--;
	return 0;
}

int
san_ulp_mr_give(struct san_ulp *ulp, uint32_t key, uint16_t owner)
{
	struct san_ulp_mr *mr = ulp_mr_find_key(ulp, key);

	if (mr == NULL)
		return -ENOENT;
	mr->owner = owner;
	return 0;
}

uint16_t
san_ulp_mr_owner(const struct san_ulp *ulp, uint32_t key)
{
	const struct san_ulp_mr *mr = ulp_mr_find_key(ulp, key);

	return mr != NULL ? mr->owner : SAN_ULP_NOBODY;
}

void
san_ulp_mr_close(struct san_ulp *ulp, uint32_t key, bool closing)
{
	struct san_ulp_mr *mr = ulp_mr_find_key(ulp, key);

	if (mr != NULL)
		mr->closing = closing;
}

void *
san_ulp_mr_find(const struct san_ulp *ulp, uint32_t key, uint16_t owner, uint64_t addr,
		uint32_t len)
{
	const struct san_ulp_mr *mr = ulp_mr_find_key(ulp, key);

	if (mr == NULL || mr->owner != owner || mr->closing || !san_ulp_mr_has(mr, addr, len))
		return NULL;
	return san_ulp_mr_at(mr, addr);
}

uint32_t
san_ulp_mr_nb(const struct san_ulp *ulp)
{
	return ulp->nb_mrs + ulp->nb_stream_mrs;
}

/* Key of a stream: it was given to the peer, and is useless to others. */
static inline bool
is_stream(uint32_t key)
{
	return unlikely((key & SAN_ULP_KEY_STREAM) != 0);
}

/* An application's region is for all peers of its queue pairs, a stream's for one. */
static inline bool
ulp_mr_is_for_qp(const struct san_ulp_mr *mr, const struct san_ulp_qp *qp)
{
	if (is_stream(mr->key))
		return mr->qpn == qp->qpn;
	return mr->owner == qp->owner;
}

enum access {
	ACCESS_OK = 0,
	ACCESS_KEY, /**< also a key of another partition or application (RT-29) */
	ACCESS_BOUNDS,
	ACCESS_RIGHTS,
};

static inline enum access
ulp_mr_check_access(const struct san_ulp *ulp, const struct san_ulp_qp *qp, uint32_t key,
		    uint64_t addr, uint64_t len, enum rtsan_access right, struct san_ulp_mr **out)
{
	struct san_ulp_mr *mr = ulp_mr_find_key(ulp, key);

	if (mr == NULL || mr->pkey != qp->pkey || !ulp_mr_is_for_qp(mr, qp))
		return ACCESS_KEY;
	if (!san_ulp_mr_has(mr, addr, len))
		return ACCESS_BOUNDS;
	*out = mr;
	return (mr->rights & right) != 0 ? ACCESS_OK : ACCESS_RIGHTS;
}

bool
san_ulp_mr_may(const struct san_ulp *ulp, const struct san_ulp_qp *qp, uint32_t key, uint64_t addr,
	       uint64_t len, enum rtsan_access right, struct san_ulp_mr **out)
{
	return !qp->failed && (qp->is_known || is_stream(key)) &&
		ulp_mr_check_access(ulp, qp, key, addr, len, right, out) == ACCESS_OK;
}

uint8_t
san_ulp_mr_access(struct san_ulp *ulp, const struct san_tl_rxn *r, uint64_t len,
		  struct san_ulp_qp *qp, enum rtsan_access right, struct san_ulp_mr **out)
{
	enum access found = ACCESS_KEY;

	if (!qp->failed && (qp->is_known || is_stream(r->key) || !san_ulp_guess_is_over(ulp, qp)))
		found = ulp_mr_check_access(ulp, qp, r->key, r->addr, len, right, out);
	if (likely(found == ACCESS_OK)) {
		qp->is_known |= !is_stream(r->key);
		return SAN_ST_OK;
	}
	ulp->stats.nb_key_errors += found == ACCESS_KEY;
	ulp->stats.nb_bounds_errors += found == ACCESS_BOUNDS;
	ulp->stats.nb_rights_errors += found == ACCESS_RIGHTS;
	san_ulp_guess(ulp, qp);
	return SAN_ST_ACCESS; /* the peer must not learn what was wrong */
}
