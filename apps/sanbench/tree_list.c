/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"
#include "tree_entry.h"

struct tree {
	int root;
	struct tree_entry *entries;
	uint32_t nb, max;
	uint64_t bytes;
	uint32_t open_entry; /**< entry of the open file */
	int fd;              /**< -1: no open file */
	char *error;
	size_t error_size;
};

static int
tree_list_fail(struct tree *t, const char *path, int err)
{
	snprintf(t->error, t->error_size, "%s: %s", path, strerror(err));
	return -err;
}

static struct tree_entry *
entry_add(struct tree *t)
{
	struct tree_entry *grown;

	if (t->nb == t->max) {
		t->max = t->max == 0 ? 256 : t->max * 2;
		grown = realloc(t->entries, t->max * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		t->entries = grown;
	}
	memset(&t->entries[t->nb], 0, sizeof(*t->entries));
	return &t->entries[t->nb++];
}

/* The path of *name* in folder *dir*, relative to the root. */
static char *
tree_list_join(const char *dir, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s%s%s", dir, dir[0] != '\0' ? "/" : "", name) < 0)
		return NULL;
	if (strlen(path) >= PATH_MAX) {
		free(path);
		errno = ENAMETOOLONG;
		return NULL;
	}
	return path;
}

/* List one file, link or folder, without the folder's content. */
static int
list_one(struct tree *t, int dirfd, const char *dir, const char *name)
{
	char *path = tree_list_join(dir, name), target[PATH_MAX];
	struct tree_entry *e;
	struct stat st;
	ssize_t n;

	if (path == NULL)
		return tree_list_fail(t, name, errno);
	e = entry_add(t);
	if (e == NULL) {
		free(path);
		return tree_list_fail(t, name, ENOMEM);
	}
	e->path = path;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_list_fail(t, path, errno);
	e->mode = st.st_mode & 0777;
	if (S_ISDIR(st.st_mode)) {
		e->kind = TREE_DIR;
	} else if (S_ISREG(st.st_mode)) {
		e->kind = TREE_FILE;
		e->size = (uint64_t)st.st_size;
		e->offset = t->bytes;
		t->bytes += e->size;
	} else if (S_ISLNK(st.st_mode)) {
		e->kind = TREE_LINK;
		n = readlinkat(dirfd, name, target, sizeof(target) - 1);
		if (n < 0)
			return tree_list_fail(t, path, errno);
		e->target = strndup(target, (size_t)n);
		if (e->target == NULL)
			return tree_list_fail(t, path, ENOMEM);
	} else {
		return tree_list_fail(t, path, ENOTSUP);
	}
	return 0;
}

/* List one folder, sorted, so that equal trees are sent equally. */
static int
list_folder(struct tree *t, const char *dir)
{
	struct dirent **names;
	int fd, n, i, ret = 0;

	fd = openat(t->root, dir[0] != '\0' ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return tree_list_fail(t, dir, errno);
	n = scandirat(fd, ".", &names, NULL, alphasort);
	if (n < 0)
		ret = tree_list_fail(t, dir, errno);
	for (i = 0; i < n; i++) {
		if (ret == 0 && strcmp(names[i]->d_name, ".") != 0 &&
		    strcmp(names[i]->d_name, "..") != 0)
			ret = list_one(t, fd, dir, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	close(fd);
	return ret;
}

int
san_tree_list_open(const char *path, struct tree **out, char *error, size_t size)
{
	struct tree *t = calloc(1, sizeof(*t));
	uint32_t i;
	int ret;

	if (t == NULL)
		return -ENOMEM;
	t->fd = -1;
	t->error = error;
	t->error_size = size;
	t->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = t->root < 0 ? tree_list_fail(t, path, errno) : list_folder(t, "");
	/* breadth first: folders that list_folder() appends are visited later */
	for (i = 0; i < t->nb && ret == 0; i++)
		if (t->entries[i].kind == TREE_DIR)
			ret = list_folder(t, t->entries[i].path);
	if (ret < 0) {
		san_tree_list_close(t);
		return ret;
	}
	*out = t;
	return 0;
}

void
san_tree_list_close(struct tree *t)
{
	uint32_t i;

	if (t == NULL)
		return;
	for (i = 0; i < t->nb; i++) {
		free(t->entries[i].path);
		free(t->entries[i].target);
	}
	free(t->entries);
	if (t->fd >= 0)
		close(t->fd);
	if (t->root >= 0)
		close(t->root);
	free(t);
}

uint64_t
san_tree_list_bytes(const struct tree *t)
{
	return t->bytes;
}

uint32_t
san_tree_list_entries(const struct tree *t)
{
	return t->nb;
}

size_t
san_tree_list_manifest(const struct tree *t, size_t *at, void *buf, size_t size)
{
	struct tree_record r;
	uint8_t *p = buf;
	const struct tree_entry *e;

	for (; *at < t->nb; (*at)++) {
		e = &t->entries[*at];
		r = (struct tree_record){
			.kind = e->kind,
			.mode = e->mode,
			.size = e->size,
			.path_len = (uint16_t)strlen(e->path),
			.target_len = e->target != NULL ? (uint16_t)strlen(e->target) : 0,
		};
		if (sizeof(r) + r.path_len + r.target_len > size - (size_t)(p - (uint8_t *)buf))
			break;
		memcpy(p, &r, sizeof(r));
		p += sizeof(r);
		memcpy(p, e->path, r.path_len);
		p += r.path_len;
		if (r.target_len > 0)
			memcpy(p, e->target, r.target_len);
		p += r.target_len;
	}
	return (size_t)(p - (uint8_t *)buf);
}

static int
tree_list_file_open(struct tree *t, uint32_t i)
{
	if (t->fd >= 0 && t->open_entry == i)
		return 0;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = openat(t->root, t->entries[i].path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	t->open_entry = i;
	return t->fd < 0 ? -errno : 0;
}

int
san_tree_list_read(struct tree *t, uint64_t off, void *buf, size_t len)
{
	uint8_t *p = buf;
	ssize_t done;
	uint32_t i;
	size_t n;
	int ret;

	for (; len > 0; len -= (size_t)done) {
		n = len;
		i = san_tree_entry_at(t->entries, t->nb, off, &n);
		if (i == t->nb)
			return -ERANGE;
		ret = tree_list_file_open(t, i);
		if (ret < 0)
			return ret;
		done = pread(t->fd, p, n, (off_t)(off - t->entries[i].offset));
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		off += (uint64_t)done;
	}
	return 0;
}
