/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"
#include "tree_entry.h"

#define ENTRIES_MAX  1000000
#define FINISH_BURST 32 /* entries: the caller must poll in between */

struct tree_out {
	int root;
	struct tree_entry *entries;
	uint32_t nb, max, nb_finished;
	uint64_t bytes;
	uint32_t open_entry;
	int fd; /**< -1: none */
};

int
san_tree_write_open(const char *dir, struct tree_out **out)
{
	struct tree_out *o;
	int root;

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return -errno;
	root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	o = calloc(1, sizeof(*o));
	if (o == NULL) {
		close(root);
		return -ENOMEM;
	}
	o->root = root;
	o->fd = -1;
	*out = o;
	return 0;
}

void
san_tree_write_close(struct tree_out *o)
{
	uint32_t i;

	if (o == NULL)
		return;
	for (i = 0; i < o->nb; i++) {
		free(o->entries[i].path);
		free(o->entries[i].target);
	}
	free(o->entries);
	if (o->fd >= 0)
		close(o->fd);
	close(o->root);
	free(o);
}

/*
 * Check that the path is relative and each component is a plain name, so that it stays in the
 * folder.
 */
static bool
is_path_plain(const char *path)
{
	size_t n;

	if (path[0] == '\0')
		return false;
	for (;; path += n + 1) {
		n = strcspn(path, "/");
		if (n == 0 || n > NAME_MAX || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[n] == '\0')
			return true;
	}
}

static const char *
entry_wrong(const struct tree_out *o, const struct tree_entry *e)
{
	if (e->kind < TREE_DIR || e->kind > TREE_LINK)
		return "unknown kind of entry";
	if (!is_path_plain(e->path))
		return "a name that leaves the folder";
	if (e->kind != TREE_FILE && e->size != 0)
		return "bytes in what is no file";
	if (e->size > INT64_MAX - o->bytes)
		return "too many bytes";
	if ((e->kind == TREE_LINK) != (e->target[0] != '\0'))
		return "a link without target, or a target without link";
	return NULL;
}

/*
 * Decode one entry. A name that contains a NUL is cut there, and checked in the form that is used.
 */
static const char *
entry_take(struct tree_out *o, const struct tree_record *r, const char *text)
{
	struct tree_entry *e, *grown;
	const char *wrong;

	if (o->nb == ENTRIES_MAX)
		return "too many entries";
	if (o->nb == o->max) {
		o->max = o->max == 0 ? 256 : o->max * 2;
		grown = realloc(o->entries, o->max * sizeof(*grown));
		if (grown == NULL)
			return "out of memory";
		o->entries = grown;
	}
	e = &o->entries[o->nb];
	*e = (struct tree_entry){
		.kind = (uint8_t)r->kind,
		.mode = r->mode & 0777,
		.size = r->size,
		.offset = o->bytes,
		.path = strndup(text, r->path_len),
		.target = strndup(text + r->path_len, r->target_len),
	};
	o->nb++;
	if (e->path == NULL || e->target == NULL)
		return "out of memory";
	wrong = entry_wrong(o, e);
	if (wrong == NULL)
		o->bytes += e->size;
	return wrong;
}

/*
 * Open the folder of *path* component by component, so that no symbolic link is followed. *name*
 * becomes the last component.
 */
static int
parent_open(const struct tree_out *o, const char *path, const char **name)
{
	int fd = dup(o->root), next;
	char part[NAME_MAX + 1];
	size_t n;

	if (fd < 0)
		return -errno;
	for (*name = path; fd >= 0; *name += n + 1) {
		n = strcspn(*name, "/");
		if ((*name)[n] == '\0')
			break;
		memcpy(part, *name, n);
		part[n] = '\0';
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
		close(fd);
		fd = next;
	}
	return fd;
}

/* Create a folder unless it exists. Create a file anew, never through a link. */
static int
entry_make(struct tree_out *o, const struct tree_entry *e)
{
	const char *name;
	int dir = parent_open(o, e->path, &name), fd, ret = 0;

	if (dir < 0)
		return dir;
	if (e->kind == TREE_DIR) {
		if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
			ret = -errno;
	} else if (unlinkat(dir, name, 0) < 0 && errno != ENOENT) {
		ret = -errno;
	} else if (e->kind == TREE_FILE) {
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			ret = -errno;
		else
			close(fd);
	}
	close(dir);
	return ret;
}

int
san_tree_write_manifest(struct tree_out *o, const void *buf, size_t len, char *error, size_t size)
{
	const uint8_t *p = buf, *end = p + len;
	const char *wrong = NULL;
	struct tree_record r;
	int ret = 0;

	while (p < end && wrong == NULL && ret == 0) {
		if ((size_t)(end - p) < sizeof(r)) {
			wrong = "an entry is cut off";
			break;
		}
		memcpy(&r, p, sizeof(r));
		p += sizeof(r);
		if ((size_t)(end - p) < (size_t)r.path_len + r.target_len) {
			wrong = "an entry is cut off";
			break;
		}
		wrong = entry_take(o, &r, (const char *)p);
		p += r.path_len + r.target_len;
		if (wrong == NULL)
			ret = entry_make(o, &o->entries[o->nb - 1]);
	}
	if (wrong != NULL)
		snprintf(error, size, "manifest refused: %s", wrong);
	else if (ret < 0)
		snprintf(error, size, "%.100s: %s", o->entries[o->nb - 1].path, strerror(-ret));
	return wrong == NULL && ret == 0 ? 0 : -1;
}

uint64_t
san_tree_write_bytes(const struct tree_out *o)
{
	return o->bytes;
}

uint32_t
san_tree_write_entries(const struct tree_out *o)
{
	return o->nb;
}

static int
tree_write_file_open(struct tree_out *o, uint32_t i)
{
	const char *name;
	int dir;

	if (o->fd >= 0 && o->open_entry == i)
		return 0;
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
	dir = parent_open(o, o->entries[i].path, &name);
	if (dir < 0)
		return dir;
	o->fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	o->open_entry = i;
	close(dir);
	return o->fd < 0 ? -errno : 0;
}

int
san_tree_write_file(struct tree_out *o, uint64_t off, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	ssize_t done;
	uint32_t i;
	size_t n;
	int ret;

	for (; len > 0; len -= (size_t)done) {
		n = len;
		i = san_tree_entry_at(o->entries, o->nb, off, &n);
		if (i == o->nb)
			return -ERANGE;
		ret = tree_write_file_open(o, i);
		if (ret < 0)
			return ret;
		done = pwrite(o->fd, p, n, (off_t)(off - o->entries[i].offset));
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		off += (uint64_t)done;
	}
	return 0;
}

static int
entry_finish(struct tree_out *o, const struct tree_entry *e)
{
	const char *name;
	int dir = parent_open(o, e->path, &name), fd, ret = 0;

	if (dir < 0)
		return dir;
	if (e->kind == TREE_LINK) {
		if (symlinkat(e->target, dir, name) < 0)
			ret = -errno;
	} else {
		/* fchmodat() would follow a link that was created meanwhile */
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fchmod(fd, e->mode) < 0)
			ret = -errno;
		if (fd >= 0)
			close(fd);
	}
	close(dir);
	return ret;
}

int
san_tree_write_finish(struct tree_out *o, char *error, size_t size)
{
	const struct tree_entry *e;
	uint32_t i;
	int ret;

	/* backwards: the content of a folder that becomes read-only is complete by then */
	for (i = 0; i < FINISH_BURST && o->nb_finished < o->nb; i++) {
		e = &o->entries[o->nb - 1 - o->nb_finished++];
		ret = entry_finish(o, e);
		if (ret < 0) {
			snprintf(error, size, "%.100s: %s", e->path, strerror(-ret));
			return -1;
		}
	}
	return o->nb_finished < o->nb;
}
