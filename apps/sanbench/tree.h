/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TREE_H
#define TREE_H

/**
 * @file
 * A directory tree as a list of entries, and a stream of bytes with the contents of all regular
 * files in order. Whatever carries the stream carries the tree. It has directories, regular files,
 * symbolic links and permission bits. (SYS-3)
 *
 * Input from the network is not trusted: a name that leaves the target folder is refused, and no
 * symbolic link is followed in it.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- reading: tree_list.c ---- */

struct tree;

/**
 * List *path* in a fixed order.
 *
 * @return
 *   0, or a negative errno with a text in *error*. -ENOTSUP: it has entries other than
 *   directories, regular files and symbolic links.
 */
int san_tree_list_open(const char *path, struct tree **out, char *error, size_t size);
void san_tree_list_close(struct tree *t);
uint64_t san_tree_list_bytes(const struct tree *t);
uint32_t san_tree_list_entries(const struct tree *t);
/** Encode entries from *at* on, and advance *at*. Returns the bytes written, 0 at the end. */
size_t san_tree_list_manifest(const struct tree *t, size_t *at, void *buf, size_t size);
/** Read *len* bytes of the stream from *off*. -EIO: a file has become shorter. */
int san_tree_list_read(struct tree *t, uint64_t off, void *buf, size_t len);

/* ---- writing: tree_write.c ---- */

struct tree_out;

/** *dir* is created if missing. 0 or a negative errno. */
int san_tree_write_open(const char *dir, struct tree_out **out);
/** Release it; written files stay. */
void san_tree_write_close(struct tree_out *o);
/**
 * Decode entries of san_tree_list_manifest(), and create folders and empty files. 0, or -1 with a
 * text in *error*.
 */
int san_tree_write_manifest(struct tree_out *o, const void *buf, size_t len, char *error,
			    size_t size);
uint64_t san_tree_write_bytes(const struct tree_out *o);
uint32_t san_tree_write_entries(const struct tree_out *o);
/** Write bytes of the stream. 0 or a negative errno; -ERANGE: outside of the stream. */
int san_tree_write_file(struct tree_out *o, uint64_t off, const void *buf, size_t len);
/** All is written: make links, set permissions. 1: call again, 0, or -1 with a text in *error*. */
int san_tree_write_finish(struct tree_out *o, char *error, size_t size);

#endif /* TREE_H */
