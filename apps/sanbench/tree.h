/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TREE_H
#define TREE_H

/**
 * @file
 * A directory tree as a list of entries and one stream of bytes, the contents
 * of all its regular files one after the other: whatever carries the pieces of
 * the stream carries the tree. Directories, regular files, symbolic links,
 * permission bits. (SYS-3)
 *
 * What comes from the network is not trusted: a name that leaves the target
 * folder is refused, and no symbolic link is followed in it.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- reading: tree_list.c ---- */

struct tree;

/**
 * List *path*, in a fixed order.
 *
 * @return
 *   0, or a negative errno with *error* set; anything but directories, regular
 *   files and symbolic links in it is -ENOTSUP.
 */
int tree_open(const char *path, struct tree **out, char *error, size_t size);
void tree_close(struct tree *t);
uint64_t tree_bytes(const struct tree *t);
uint32_t tree_entries(const struct tree *t);
/** Encode entries from *at* on; bytes written, 0 at the end. Moves *at*. */
size_t tree_manifest(const struct tree *t, size_t *at, void *buf, size_t size);
/** Bytes *off* to *off* + *len* of the stream. -EIO: a file has become shorter. */
int tree_read(struct tree *t, uint64_t off, void *buf, size_t len);

/* ---- writing: tree_write.c ---- */

struct tree_out;

/** *dir* is made if it is not there. 0 or a negative errno. */
int tree_out_open(const char *dir, struct tree_out **out);
/** Releases; files written so far stay. */
void tree_out_close(struct tree_out *o);
/** Entries as tree_manifest() made them. 0, or -1 with *error* set. */
int tree_out_manifest(struct tree_out *o, const void *buf, size_t len, char *error, size_t size);
/** All entries are known: make folders and empty files. 0, or -1 with *error* set. */
int tree_out_make(struct tree_out *o, char *error, size_t size);
uint64_t tree_out_bytes(const struct tree_out *o);
uint32_t tree_out_entries(const struct tree_out *o);
/** 0 or a negative errno; -ERANGE: outside of the stream. */
int tree_out_write(struct tree_out *o, uint64_t off, const void *buf, size_t len);
/** Everything is written: symbolic links and permissions. 0, or -1 with *error* set. */
int tree_out_finish(struct tree_out *o, char *error, size_t size);

#endif /* TREE_H */
