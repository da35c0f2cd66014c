/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

/**
 * @file
 * Invariants of a run. A checker gets notes of what the programs see
 * (san_sim_check_note()), examines a host after its round, and judges the end of the run. It
 * reports with san_sim_world_fail() and changes nothing.
 */

#include "sim_load.h"
#include "sim_world.h"

enum sim_note_type {
	SIM_NOTE_UP,        /**< a side's connection is established */
	SIM_NOTE_BROKEN,    /**< it ended unexpectedly; DOWN follows */
	SIM_NOTE_DOWN,      /**< it ended; every request has completed */
	SIM_NOTE_POSTED,    /**< op */
	SIM_NOTE_COMPLETED, /**< op, wc */
	SIM_NOTE_RECEIVED,  /**< wc; data: what was received */
	SIM_NOTE_LOST,      /**< op: its process died */
	SIM_NOTE_RESTARTED, /**< the process of the side was replaced */
};

struct sim_note {
	enum sim_note_type type;
	struct sim_side *side;
	const struct sim_op *op;
	const struct san_ulp_wc *wc;
	const uint8_t *data;
};

/** Any function may be NULL. Sides that are not innocent cause no note (sim_lie.c). */
struct sim_checker {
	/** *state* is passed to the other functions. 0 or -ENOMEM. */
	int (*begin)(struct sim_world *w, void **state);
	void (*note)(struct sim_world *w, void *state, const struct sim_note *n);
	/** After each round of a host. */
	void (*round)(struct sim_world *w, void *state, struct sim_host *h);
	/** Every run.sample, and after the load. */
	void (*sample)(struct sim_world *w, void *state);
	/** All requests have completed; connections are still open. */
	void (*settled)(struct sim_world *w, void *state);
	/** Connections are closed, queue pairs and regions released. */
	void (*end)(struct sim_world *w, void *state);
	/** NULL: *state* is freed. */
	void (*fini)(struct sim_world *w, void *state);
};

extern const struct sim_checker sim_check_order;
extern const struct sim_checker sim_check_bytes;
extern const struct sim_checker sim_check_complete;
extern const struct sim_checker sim_check_place;
extern const struct sim_checker sim_check_grant;
extern const struct sim_checker sim_check_pcb;

int san_sim_check_create(struct sim_world *w);
void san_sim_check_destroy(struct sim_world *w);
void san_sim_check_note(struct sim_world *w, const struct sim_note *n);
void san_sim_check_round(struct sim_world *w, struct sim_host *h);
void san_sim_check_sample(struct sim_world *w);
void san_sim_check_settled(struct sim_world *w);
void san_sim_check_end(struct sim_world *w);

#endif /* SIM_CHECK_H */
