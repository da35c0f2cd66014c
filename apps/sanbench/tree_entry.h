/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TREE_ENTRY_H
#define TREE_ENTRY_H

/** @file Shared by tree_list.c and tree_write.c: entries, and their encoding in a manifest. */

#include <stdint.h>

#include <rte_common.h>

enum tree_kind {
	TREE_DIR = 1,
	TREE_FILE = 2,
	TREE_LINK = 3,
};

struct tree_entry {
	uint8_t kind; /**< enum tree_kind */
	uint16_t mode;
	uint64_t size;   /**< of a file, in bytes */
	uint64_t offset; /**< of a file, in the stream */
	char *path;      /**< relative to the root */
	char *target;    /**< of a link */
};

/** In a manifest; path and target follow without terminators. */
struct tree_record {
	uint64_t size;
	uint16_t kind, mode;
	uint16_t path_len, target_len;
};

_Static_assert(sizeof(struct tree_record) == 16, "no padding");

/**
 * The file that contains byte *off*; *len* is cut to what it has from there. *nb*: none. Offsets of
 * files ascend; other entries have none.
 */
static inline uint32_t
san_tree_entry_at(const struct tree_entry *entries, uint32_t nb, uint64_t off, size_t *len)
{
	uint32_t low = 0, high = nb, mid, at;

	/* invariant: files below low end at or before off, files from high on begin after it */
	while (low < high) {
		mid = at = low + (high - low) / 2;
		while (at < high && entries[at].kind != TREE_FILE)
			at++;
		if (at == high || entries[at].offset > off)
			high = mid;
		else if (entries[at].offset + entries[at].size <= off)
			low = at + 1;
		else {
			*len = RTE_MIN(*len, entries[at].offset + entries[at].size - off);
			return at;
		}
	}
	return nb;
}

#endif /* TREE_ENTRY_H */
