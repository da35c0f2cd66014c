/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "san_assert.h"
#include "tl_reorder.h"

/** 16 bytes, for which rte_hash has a special comparison; no hidden padding. */
struct cam_key {
	uint32_t engine;
	uint32_t cid;
	uint32_t kind;
	uint32_t seq;
};
static_assert(sizeof(struct cam_key) == 16, "CAM key");

struct san_cam_entry {
	struct cam_key key;
	void *value;
};

struct rte_hash *
san_tl_reorder_create_table(const char *name, uint32_t entries, int socket_id)
{
	const struct rte_hash_parameters params = {
		.name = name,
		.entries = entries,
		.key_len = sizeof(struct cam_key),
		.hash_func = rte_hash_crc,
		.hash_func_init_val = 0,
		.socket_id = socket_id,
		/* Otherwise two full buckets reject keys while the table is half empty. */
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};

	return rte_hash_create(&params);
}

static inline struct cam_key
make_key(const struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq)
{
	return (struct cam_key){.engine = cam->engine, .cid = cid, .kind = kind, .seq = seq};
}

int
san_tl_reorder_add(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq,
		   void *value)
{
	struct cam_key key = make_key(cam, cid, kind, seq);
	hash_sig_t sig = rte_hash_hash(cam->hash, &key);

	SAN_ASSERT(value != NULL);
	if (rte_hash_lookup_with_hash(cam->hash, &key, sig) >= 0)
		return -EEXIST;
	if (rte_hash_add_key_with_hash_data(cam->hash, &key, sig, value) != 0) {
		cam->nb_rejects++;
		return -ENOSPC;
	}
	cam->nb_inserts++;
	cam->nb_used++;
	if (cam->nb_used > cam->nb_high)
		cam->nb_high = cam->nb_used;
	return 0;
}

void *
san_tl_reorder_find(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq)
{
	struct cam_key key = make_key(cam, cid, kind, seq);
	void *value;

	cam->nb_lookups++;
	if (rte_hash_lookup_data(cam->hash, &key, &value) < 0)
		return NULL;
	cam->nb_hits++;
	return value;
}

void *
san_tl_reorder_take(struct san_cam *cam, uint32_t cid, enum san_cam_kind kind, uint32_t seq)
{
	struct cam_key key = make_key(cam, cid, kind, seq);
	hash_sig_t sig = rte_hash_hash(cam->hash, &key);
	void *value;

	cam->nb_lookups++;
	if (rte_hash_lookup_with_hash_data(cam->hash, &key, sig, &value) < 0)
		return NULL;
	cam->nb_hits++;
	cam->nb_used--;
	rte_hash_del_key_with_hash(cam->hash, &key, sig);
	return value;
}

/* ---- live restart ---- */

void
san_tl_reorder_park(struct san_cam *cam, struct san_mem *mem)
{
	uint32_t at = 0, n = 0;
	const void *key;
	void *value;

	cam->parked = san_mem_calloc(mem, cam->nb_used + 1, sizeof(*cam->parked));
	SAN_VERIFY(cam->parked != NULL);
	while (rte_hash_iterate(cam->hash, &key, &value, &at) >= 0) {
		/* Tests share one table between several engines. */
		if (((const struct cam_key *)key)->engine != cam->engine)
			continue;
		SAN_VERIFY(n < cam->nb_used);
		cam->parked[n++] = (struct san_cam_entry){*(const struct cam_key *)key, value};
	}
	SAN_VERIFY(n == cam->nb_used);
	cam->hash = NULL;
}

int
san_tl_reorder_resume(struct san_cam *cam, struct san_mem *mem, struct rte_hash *table)
{
	uint32_t i;

	for (i = 0; i < cam->nb_used; i++)
		if (rte_hash_add_key_data(table, &cam->parked[i].key, cam->parked[i].value) != 0)
			return -ENOSPC;
	cam->hash = table;
	san_mem_free(mem, cam->parked, (cam->nb_used + 1) * sizeof(*cam->parked));
	cam->parked = NULL;
	return 0;
}
