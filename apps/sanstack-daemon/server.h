/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file The daemon as a whole, and the loop of its main thread. (SYS-2) */

#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "engine_clock.h"
#include "logging.h"

enum server_phase {
	SERVER_SERVING,
	SERVER_DRAINING, /**< posted work completes, then connections end */
	SERVER_LEAVING,  /**< connections have ended: applications read their last events */
	SERVER_OVER,
};

struct pidfh;

struct server {
	struct apps all; /**< its address tags events of the ports */
	struct conf conf;
	const char *conf_path;
	uint64_t watchdog_ns;     /**< period of the watchdog; 0: there is none */
	uint64_t watchdog_due_ns; /**< when it is to be reset */
	/** Rounds of each lcore at the last reset. */
	uint64_t loops[CONF_PORTS_MAX][SAN_ENGINE_LCORES];
	struct pidfh *pidfile; /**< or NULL */
	uid_t user;            /**< user to switch to, or the current one */
	int epoll;
	/* watched by epoll; the address of each tags its events */
	int listener, signals, guard, helpers;
	int spare;         /**< descriptor to free when no other is left */
	bool takes_over;   /**< --takeover */
	bool is_taken;     /**< another daemon has taken over: nothing is left to close */
	bool is_lost;      /**< neither daemon could go on: nothing serves */
	struct app *taker; /**< a daemon that asks to take over, or NULL */
	int other;         /**< socket to the daemon that serves; -1: none */
	int note;          /**< what proves this daemon to the next one; see takeover.c */
	pid_t other_pid;
	uint64_t parked_ns; /**< applications have been waiting since then */
	enum server_phase phase;
	uint64_t phase_ns;    /**< end of DRAINING, LEAVING */
	uint32_t nb_notified; /**< applications in the last reported status */
};

/** Run until the phase is SERVER_OVER. */
void san_server_run(struct server *s);

/* ---- ports.c: EAL and the ports of the configuration (SYS-1) ---- */

/*
 * Address ranges that nothing else uses: programs, libraries and heaps lie above or below, EAL's
 * memory below. The first range holds the state of the ports, with more room for each than it can
 * need, the second one the memory shared with applications.
 */
#define PORTS_STATE_FROM  0x200000000000
#define PORTS_STATE_BYTES ((size_t)16 << 40)
#define PORTS_SHARE_FROM  0x300000000000
#define PORTS_SHARE_BYTES ((size_t)32 << 40)

/* Those of int return 0 or -errno with a text in rtsan_error(). */

/** Check that EAL's arguments name the lcores of the ports, if they name any. */
int san_ports_check_lcores(const struct conf *conf);
/** *bare*: without the devices, which another daemon has. */
int san_ports_start_eal(const struct conf *conf, bool bare);
/**
 * Probe the devices that EAL does not have yet. *is_early*: another daemon has them, so do only the
 * part of san_ports_open() that is possible.
 */
int san_ports_probe(const struct conf *conf, bool is_early);
/** What is done with port number *i* of the configuration. */
typedef int ports_fn(struct server *s, uint32_t i);
/** Call *fn* for each port, until one fails: then the text begins with the port's section. */
int san_ports_each(struct server *s, ports_fn fn);
/** Open a port with new state; the lcores wait. */
ports_fn san_ports_open;
/** Open the device of a parked port, if it is closed. */
ports_fn san_ports_open_device;
/** Resume a parked port on an open device; the lcores wait. */
ports_fn san_ports_resume;
/** Start the lcores of a port. */
ports_fn san_ports_begin;
/** Stop the open ports, keep their state, and close devices that only one process can open. */
void san_ports_park(struct server *s);
/** The process that had started to resume the ports has died: take their memory back. */
void san_ports_reclaim(struct server *s);
/** True if all ports can be parked. */
bool san_ports_can_park(const struct server *s);
/** Close all ports. Returns the number of leaked records. */
uint64_t san_ports_close(struct server *s);

/* ---- takeover.c: live restart (SYS-8) ---- */

/*
 * The new daemon starts EAL without devices, connects and asks. The old one stops its lcores, parks
 * its ports, closes devices that only one process can have, and sends its state. The new one opens
 * the devices, drops its rights, loads the state of the applications, resumes the ports and asks to
 * commit. The old one confirms and exits without another access. The lcores of the new one start.
 * If the new daemon ends before the commit, the old one continues to serve. The two never work at
 * the same time.
 */

/** Digest of the layouts that both daemons must have: devtools/layout.c. */
extern const char san_layout[];
/** What must be equal in both: these layouts; DPDK's version, sections of ports. */
void san_takeover_describe_layout(const struct conf *conf, char text[SHMQ_LAYOUT]);

/** Make the note that proves the caller, which still has its rights, to a new daemon; or -1. */
int san_takeover_make_note(void);

/* Of the new daemon: 0, or see rtsan_error(). */

/** Ask whether the daemon that serves would hand over, which it does not. */
int san_takeover_try(struct server *s);
/** True if a daemon serves conf->socket. */
bool san_takeover_find(const struct conf *conf);
/** Ask, and receive s->listener and what opening the devices needs: now the old daemon waits. */
int san_takeover_receive(struct server *s);
/** Load its state: the ports in s->all, which are parked on open devices, and the shared memory. */
int san_takeover_load(struct server *s);
/** Ask to commit, once the ports can start. On error park them: the old daemon continues. */
int san_takeover_commit(struct server *s);

/* Of the old daemon. */

/** True if *req* asks for a takeover. */
bool san_takeover_is_request(const struct shmq_req *req);
/** *a* asks for a takeover: it becomes s->taker, or is refused. */
void san_takeover_on_request(struct server *s, struct app *a, const struct shmq_req *req);
/**
 * Hand over to s->taker. All applications that are over are destroyed. Returns after the takeover,
 * with s->phase SERVER_OVER and s->is_taken true, or after a failure. Then this daemon serves
 * unless s->is_lost.
 */
void san_takeover_give(struct server *s);
