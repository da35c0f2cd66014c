/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Shared by the files of applications: answering requests, and releasing objects. */

#include <stdlib.h>
#include <string.h>

#include "engine_clock.h"
#include "logging.h"
#include "rtsan_priv.h"
#include "san_time.h"
#include "socks.h"

/** Serve a request. Returns *rc* of san_app_answer(). */
typedef int app_serve_fn(struct app *a, const struct shmq_req *req);

app_serve_fn san_app_conn_listen, san_app_conn_unlisten, san_app_conn_set_up, san_app_conn_reject,
	san_app_conn_disconnect;

/**
 * Add an application with the credentials of *sock*, not attached. NULL: no memory, or *sock* is no
 * UNIX socket.
 */
struct app *san_apps_add(struct apps *all, int sock);
/** Name *a* as it calls itself, if /proc hides it, as with ProtectProc=invisible. */
void san_apps_name(struct app *a, const char name[SHMQ_NAME]);
/** Set the user that *a* counts as. *is_root*: it is root of this host; see san_shmq_is_root(). */
void san_apps_own(struct app *a, bool is_root);
/** Set the text of its answer; returns *rc*. */
int san_app_refuse(struct app *a, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** Check that *a* may have one more of *what*, called *name*: an application has *each* at most. */
int san_app_check_one(struct app *a, enum users_place what, const char *name, uint32_t each);
/** Its hello was accepted. */
void san_apps_attached(struct apps *all, struct app *a);
/** Count the object and its memory, or no longer: *sign* is 1 or -1. */
void san_app_count(struct app *a, enum users_place what, int sign, uint64_t bytes);
/** End mapping the region that *a* waits for, if any. */
void san_app_end_growing(struct app *a);
/** NULL, and the text of its answer: *a* has no object of that number. */
struct app_thing *san_app_find(struct app *a, enum app_kind kind, uint32_t number);
/**
 * Map one more step of the region that *a* waits for; see san_app_mem_populate(). Returns *rc* of
 * san_app_answer().
 */
int san_app_grow(struct app *a, uint64_t *due_ns);
/** Send the pending answer, now or as soon as its descriptor can be sent. */
void san_app_turn_send(struct apps *all, struct app *a);

/** What an object of a kind counts as. */
extern const enum users_place san_app_places[APP_KINDS];
/** Count an object and its memory for its application, or no longer: *sign* is 1 or -1. */
void san_app_count_thing(const struct app_thing *t, enum app_kind kind, int sign);
/** -EBUSY: posted work refers to the region, or a queue pair uses the completion queue. */
int san_app_del(struct app_port *port, enum app_kind kind, struct app_thing *t);
void san_app_conn_del_listener(struct app_port *port, struct app_listener *l);
