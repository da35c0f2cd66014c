/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TREE_ENTRY_H
#define TREE_ENTRY_H

/** @file What tree_list.c and tree_write.c share: entries, and their form in a manifest. */

#include <stdint.h>

enum tree_kind {
	TREE_DIR = 1,
	TREE_FILE = 2,
	TREE_LINK = 3,
};

struct tree_entry {
	uint8_t kind; /**< enum tree_kind */
	uint16_t mode;
	uint64_t size;   /**< files: bytes */
	uint64_t offset; /**< files: in the stream */
	char *path;      /**< relative to the root */
	char *target;    /**< links */
};

/** In a manifest, followed by path and target without terminators. */
struct tree_record {
	uint64_t size;
	uint16_t kind, mode;
	uint16_t path_len, target_len;
};

_Static_assert(sizeof(struct tree_record) == 16, "no padding");

/** First entry that may hold byte *off*: offsets of files ascend, others have none. */
static inline uint32_t
tree_find(const struct tree_entry *entries, uint32_t nb, uint64_t off)
{
	uint32_t low = 0, high = nb, mid, at;

	/* Invariant: no file below low ends behind off; files from high on begin behind it. */
	while (low < high) {
		mid = at = low + (high - low) / 2;
		while (at < high && entries[at].kind != TREE_FILE)
			at++;
		if (at == high || entries[at].offset > off)
			high = mid;
		else if (entries[at].offset + entries[at].size > off)
			return at;
		else
			low = at + 1;
	}
	return low;
}

#endif /* TREE_ENTRY_H */
