/* SPDX-License-Identifier: BSD-3-Clause */

/* Event queues. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

/* A connection request that the program has not seen is rejected. */
static void
eq_free_event(struct ofi_event *ev)
{
	if (ev != NULL && ev->info != NULL) {
		san_ofi_pep_request_drop(
			container_of(ev->info->handle, struct ofi_connreq, fid));
		fi_freeinfo(ev->info);
	}
	free(ev);
}

void
san_ofi_eq_put(struct ofi_eq *eq, const struct ofi_event *ev, const void *data)
{
	struct ofi_event *copy = malloc(sizeof(*copy) + ev->length);

	if (copy == NULL) {
		OFI_WARN(FI_LOG_EQ, "no memory: event %u is lost\n", ev->type);
		return;
	}
	*copy = *ev;
	if (ev->length != 0)
		memcpy(copy->data, data, ev->length);
	STAILQ_INSERT_TAIL(&eq->events, copy, link);
	san_ofi_wait_wake(&eq->wait);
}

void
san_ofi_eq_forget(struct ofi_eq *eq, fid_t fid)
{
	struct ofi_event *ev, *next;

	for (ev = STAILQ_FIRST(&eq->events); ev != NULL; ev = next) {
		next = STAILQ_NEXT(ev, link);
		if (ev->fid != fid || ev->is_user)
			continue;
		STAILQ_REMOVE(&eq->events, ev, ofi_event, link);
		eq_free_event(ev);
	}
}

/* Copy an event to a program's buffer. Bytes, or -FI_ETOOSMALL. */
static ssize_t
eq_copy(const struct ofi_event *ev, void *buf, size_t len)
{
	const struct fi_eq_cm_entry entry = {.fid = ev->fid, .info = ev->info};
	size_t room;

	if (ev->is_user) {
		if (len < ev->length)
			return -FI_ETOOSMALL;
		memcpy(buf, ev->data, ev->length);
		return (ssize_t)ev->length;
	}
	if (len < sizeof(entry))
		return -FI_ETOOSMALL;
	room = len - sizeof(entry);
	if (room > ev->length)
		room = ev->length;
	memcpy(buf, &entry, sizeof(entry));
	memcpy((uint8_t *)buf + sizeof(entry), ev->data, room);
	return (ssize_t)(sizeof(entry) + room);
}

static ssize_t
eq_take(struct ofi_eq *eq, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct ofi_event *ev = STAILQ_FIRST(&eq->events);
	ssize_t n;

	eq_free_event(eq->shown);
	eq->shown = NULL;
	if (ev == NULL)
		return -FI_EAGAIN;
	if (ev->err != 0)
		return -FI_EAVAIL;
	n = eq_copy(ev, buf, len);
	if (n < 0)
		return n;
	*type = ev->type;
	if ((flags & FI_PEEK) == 0) {
		STAILQ_REMOVE_HEAD(&eq->events, link);
		ev->info = NULL; /* the program's */
		eq_free_event(ev);
	}
	return n;
}

static ssize_t
eq_read(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	ssize_t n;

	san_ofi_ctx_lock();
	if (STAILQ_EMPTY(&eq->events))
		san_ofi_progress_events(eq->wait.ctx);
	n = eq_take(eq, type, buf, len, flags);
	san_ofi_ctx_unlock();
	return n;
}

static ssize_t
eq_sread(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, int timeout, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	int64_t now, end = san_ofi_wait_now_ms() + timeout;
	int rc = 0;
	ssize_t n;

	if (eq->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	san_ofi_ctx_lock();
	for (;;) {
		san_ofi_progress_events(eq->wait.ctx);
		n = eq_take(eq, type, buf, len, flags);
		now = san_ofi_wait_now_ms();
		if (n != -FI_EAGAIN || rc != 0 || (timeout >= 0 && now >= end))
			break;
		if (eq->wait.ctx->is_lost) {
			n = -FI_EIO;
			break;
		}
		if (san_ofi_wait_arm(&eq->wait) == 0)
			rc = san_ofi_wait_sleep(&eq->wait, timeout < 0 ? -1 : (int)(end - now));
	}
	san_ofi_wait_leave(&eq->wait);
	san_ofi_ctx_unlock();
	return n;
}

static ssize_t
eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	struct ofi_event *ev;
	size_t room = buf->err_data_size;
	ssize_t n = sizeof(*buf);

	san_ofi_ctx_lock();
	ev = STAILQ_FIRST(&eq->events);
	if (ev == NULL || ev->err == 0) {
		n = -FI_EAGAIN;
	} else {
		buf->fid = ev->fid;
		buf->context = ev->fid != NULL ? ev->fid->context : NULL;
		buf->data = 0;
		buf->err = ev->err;
		buf->prov_errno = ev->prov_errno;
		buf->err_data_size = ev->length;
		if (room == 0 || FI_VERSION_LT(eq->fabric->fid.api_version, FI_VERSION(1, 5))) {
			buf->err_data = ev->data;
		} else {
			buf->err_data_size = room < ev->length ? room : ev->length;
			memcpy(buf->err_data, ev->data, buf->err_data_size);
		}
		if ((flags & FI_PEEK) == 0) {
			STAILQ_REMOVE_HEAD(&eq->events, link);
			eq_free_event(eq->shown);
			eq->shown = ev;
		}
	}
	san_ofi_ctx_unlock();
	return n;
}

static ssize_t
eq_write(struct fid_eq *fid, uint32_t type, const void *buf, size_t len, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	const struct ofi_event ev = {.type = type, .is_user = true, .length = len};

	(void)flags;
	san_ofi_ctx_lock();
	san_ofi_eq_put(eq, &ev, buf);
	san_ofi_ctx_unlock();
	return (ssize_t)len;
}

static const char *
eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	const char *text = rtsan_reason_text((uint8_t)prov_errno);

	(void)fid, (void)err_data;
	if (buf != NULL && len != 0)
		snprintf(buf, len, "%s", text);
	return text;
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

/* ---- open, close ---- */

static int
eq_close(struct fid *fid)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid.fid);
	struct ofi_event *ev;

	san_ofi_ctx_lock();
	if (eq->refs != 0) {
		san_ofi_ctx_unlock();
		return -FI_EBUSY;
	}
	while ((ev = STAILQ_FIRST(&eq->events)) != NULL) {
		STAILQ_REMOVE_HEAD(&eq->events, link);
		eq_free_event(ev);
	}
	eq_free_event(eq->shown);
	san_ofi_wait_fini(&eq->wait);
	san_ofi_ctx_put(eq->wait.ctx);
	eq->fabric->refs--;
	san_ofi_ctx_unlock();
	free(eq);
	return 0;
}

static int
eq_control(struct fid *fid, int command, void *arg)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid.fid);

	return san_ofi_wait_control(&eq->wait, command, arg);
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = san_ofi_none_bind,
	.control = eq_control,
	.ops_open = san_ofi_none_ops_open,
};

int
san_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
		void *context)
{
	struct ofi_eq *eq = calloc(1, sizeof(*eq));
	struct ofi_ctx *ctx;
	int rc;

	if (eq == NULL)
		return -FI_ENOMEM;
	eq->fabric = container_of(fabric, struct ofi_fabric, fid);
	STAILQ_INIT(&eq->events);
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	san_ofi_ctx_lock();
	rc = san_ofi_ctx_get(&ctx);
	if (rc == 0) {
		rc = san_ofi_wait_init(&eq->wait, ctx,
				       attr != NULL ? attr->wait_obj : FI_WAIT_NONE, true);
		if (rc != 0)
			san_ofi_ctx_put(ctx);
	}
	if (rc == 0)
		eq->fabric->refs++;
	san_ofi_ctx_unlock();
	if (rc != 0) {
		free(eq);
		return rc;
	}
	*out = &eq->fid;
	return 0;
}
