/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Definitions shared by the files of this folder. */

#include <errno.h>
#include <sys/queue.h>

#include "core.h"

#define NO_SLOT UINT32_MAX

/** A user with streams. */
struct core_user {
	LIST_ENTRY(core_user) link;
	uint32_t id;
	uint32_t nb_streams, nb_orphans; /**< its streams; those of them that are orphaned */
	uint64_t bytes;
};

/** Resources that a stream holds. */
struct core_share {
	struct core_user *user;
	uint64_t bytes;
	bool is_orphan;
};

/** A stream: its session, and the queue pair below it. */
struct core_stream {
	struct san_timer timer;
	struct san_core *core;
	struct san_stream *session;
	struct san_ulp_cq *own;               /* completions of the session's requests */
	struct san_ulp_cq *send_cq, *recv_cq; /* the application's; NULL: ended, or none */
	TAILQ_ENTRY(core_stream) work_link;   /* if *is_listed* */
	uint64_t armed_ns;                    /* deadline of *timer*; SAN_TIME_NEVER: not armed */
	uint64_t linger_ns;                   /* when an orphan is ended; NEVER_ORPHANED */
	uint64_t retry_ns;                    /* delay before a full queue is tried again */
	uint32_t qpn;
	uint32_t sock; /* socket that gets the completions, if *is_sock* */
	bool is_sock;
	bool is_listed;
	bool is_open;     /* the session has a connection */
	bool is_over;     /* the connection has ended */
	bool accepted;    /* the peer requested the connection */
	bool disconnects; /* cm is disconnecting */
	struct core_share share;
	struct san_stream_conf conf;
};

/** A disconnect that waits for outstanding work. */
struct core_drain {
	uint16_t slot;
	uint64_t idle_ns; /**< since when only the peer has work; 0 = we have, too */
};

struct san_core {
	struct san_core_conf conf;
	struct san_pdl *pdl;
	struct san_tl *tl;
	struct san_cm *cm;
	struct san_ulp *ulp;
	struct san_inet *inet;
	struct san_socks *socks; /* NULL: there are none */
	struct san_death_row death;
	struct san_spare spare;
	struct san_express express;
	struct san_wire_ack ack_in;  /* of the ACK being received */
	struct san_wire_ack ack_out; /* of the ACK being built */
	struct san_wire_cm cm_out;
	uint32_t *slot_of_qp; /* NO_SLOT: not connecting or connected */
	struct core_drain *draining;
	uint32_t nb_draining;
	uint64_t inet_deadline_ns;
	uint64_t drops[SAN_DROP_MAX];
	/* core_stream.c */
	struct core_stream **streams;                      /* by san_ulp_qp_index() */
	TAILQ_HEAD(core_streams, core_stream) stream_work; /* streams to be processed */
	uint64_t stream_now_ns;                            /* time for requests of sessions */
	struct san_wheel stream_wheel;
	/* core_share.c */
	LIST_HEAD(, core_user) users;
	struct san_core_use use;
};

/** Process events of cm: open and close the other layers, report to the owner. */
void san_core_conn_cm_events(struct san_core *core, uint64_t now_ns);
/** Continue disconnects whose outstanding work is done. */
void san_core_conn_check_draining(struct san_core *core, uint64_t now_ns);

/** If the peer of *c* is silent, find out whether its MAC address has changed. */
void san_core_mac_follow_peer(struct san_core *core, struct san_pdl_conn *c, uint64_t now_ns);
/** The peer of *c* sent *m*, which shows that it does not receive our packets: likewise. */
void san_core_mac_follow_deaf(struct san_core *core, struct san_pdl_conn *c,
			      const struct rte_mbuf *m, uint64_t now_ns);

/** Like san_core_conn_disconnect(), on the level of ulp: without the end of a stream. */
int san_core_conn_disconnect_qp(struct san_core *core, uint32_t qp, bool hard, uint64_t now_ns);

/* ---- core_stream.c; called only if there are streams ---- */

/** The stream of *qp*; NULL: it is not a stream. */
struct core_stream *san_core_stream_at(const struct san_core *core, uint32_t qp);
uint32_t san_core_stream_post(struct san_core *core, struct core_stream *s,
			      const struct san_ulp_wr *wr, uint32_t n, uint64_t now_ns);
uint32_t san_core_stream_post_recv(struct san_core *core, struct core_stream *s,
				   const struct san_ulp_recv *r, uint32_t n, uint64_t now_ns);
/**
 * Process completions of ulp, pump the sessions, complete for applications. Called before packets
 * are built.
 */
void san_core_stream_run_all(struct san_core *core, uint64_t now_ns);
void san_core_stream_tick_all(struct san_core *core, uint64_t now_ns);
uint64_t san_core_stream_deadline_ns(const struct san_core *core);
void san_core_stream_resume_all(struct san_core *core);
void san_core_stream_fini_all(struct san_core *core);
void san_core_stream_check_all(const struct san_core *core);

/** The stream is to be connected, perhaps again. -EBUSY: see san_ulp_qp_renew(); -ENOMEM. */
int san_core_stream_renew(struct core_stream *s, uint64_t now_ns);
void san_core_stream_opened(struct core_stream *s, uint64_t now_ns);
/** ulp holds nothing more of the stream; posted work completes with *status*. */
void san_core_stream_ended(struct core_stream *s, uint8_t status, uint64_t now_ns);
/** Disconnect when all is sent. False: there is nothing to wait for. */
bool san_core_stream_close(struct core_stream *s);

/* ---- core_stream_ops.c ---- */

/** Operations of each session; *arg* is its stream. */
extern const struct san_stream_ops san_core_stream_ops;

/* ---- core_share.c ---- */

/** Open an account for a new stream of *user*, without resources. -ENOMEM. */
int san_core_share_init(struct san_core *core, struct core_share *share, uint32_t user);
/** Close the account; the stream holds nothing. */
void san_core_share_fini(struct san_core *core, struct core_share *share);
/** False: the limit for all streams, for the user or for orphans would be exceeded. */
bool san_core_share_take(struct san_core *core, struct core_share *share, uint64_t bytes);
void san_core_share_give(struct san_core *core, struct core_share *share, uint64_t bytes);
/** True if the stream may be orphaned with the resources it holds. */
bool san_core_share_may_linger(const struct san_core *core, const struct core_share *share);
/** The stream is orphaned. */
void san_core_share_orphan(struct san_core *core, struct core_share *share);
void san_core_share_check(const struct san_core *core);
