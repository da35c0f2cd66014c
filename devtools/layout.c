/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a new daemon reads in the memory of an old one (live restart, SYS-8). This file is in no
 * program. layout.py takes from its debug information the layouts of the structures named here, and
 * of all that they contain and point to. The files of other folders are included for structures
 * that no header declares.
 */

#include "app_priv.h"
#include "cm_priv.h"
#include "core_priv.h"
#include "engine_priv.h"
#include "pdl_priv.h"
#include "server.h"
#include "shmq.h"
#include "sock_priv.h"
#include "stream_priv.h"
#include "tl_priv.h"
#include "ulp_priv.h"

#include "../apps/sanstack-daemon/app/app_state.c"
#include "../apps/sanstack-daemon/state.c"
#include "../apps/sanstack-daemon/takeover.c"
#include "../lib/base/san_mem.c"
#include "../lib/tl/tl_reorder.c"
#include "../lib/ulp/ulp_guess.c"

/** Numbers on which that memory depends beside its structures: tables, parts of words, units. */
enum layout_number {
	/**
	 * Raise it by one in a change after which the memory means something else although no
	 * layout differs: unit or range of a field, when a field is valid, a bit of a word, hash or
	 * order of a table, who frees what, a step that parking or resuming does no more.
	 */
	LAYOUT_MEANING = 1,
	LAYOUT_ABI = SHMQ_ABI,
	LAYOUT_SOCK_ABI = SAN_SOCK_ABI,
	LAYOUT_STATE_FROM = PORTS_STATE_FROM,
	LAYOUT_SHARE_FROM = PORTS_SHARE_FROM,
	LAYOUT_CM_OUT = CM_OUT_MAX,
	LAYOUT_CM_PRIVATES = CM_PRIVATES,
	LAYOUT_GUESS_SETS = SETS,
	LAYOUT_GUESS_WAYS = WAYS,
	LAYOUT_BITMAP_NARROW = SAN_BITMAP_NARROW,
	LAYOUT_CID_LCORE = SAN_CID_LCORE_SHIFT,
	LAYOUT_QPN_INDEX = SAN_QPN_INDEX_BITS,
	LAYOUT_KEY_STREAM = SAN_ULP_KEY_STREAM,
	LAYOUT_COOKIE_STREAM = SAN_STREAM_COOKIE,
	LAYOUT_CQ_OWN = SAN_ULP_CQ_OWN,
	LAYOUT_WHEEL_TICK = SAN_WHEEL_SHIFT,
	LAYOUT_PDL_TICK = SAN_PDL_TICK_SHIFT,
	LAYOUT_PDL_TURN = SAN_PDL_TURN_NS,
	LAYOUT_PDL_TIMEOUT = SAN_PDL_USER_TIMEOUT_MS,
	LAYOUT_CC_ONE = SAN_CC_ONE,
};

/** Read: the arena, memory shared with programs, records; then enumerations kept as integers. */
void (*const layout_read)(
	struct san_mem *, struct san_engine_image *, struct cm_setup *, struct san_doorbells *,
	struct shmq_ctl *, struct given *, struct state_msg *, struct saved_port *,
	struct saved_app *, struct saved *, enum saved_kind, enum app_kind, enum layout_number,
	enum rtsan_access, enum rtsan_event_type, enum rtsan_order, enum rtsan_reason,
	enum rtsan_recv_flags, enum rtsan_stream_event, enum rtsan_stream_mode,
	enum rtsan_stream_option, enum rtsan_stream_read, enum rtsan_stream_work, enum rtsan_user,
	enum rtsan_wc_opcode, enum rtsan_wc_status, enum rtsan_wr_flags, enum rtsan_wr_opcode,
	enum san_cam_kind, enum san_cm_event_type, enum san_cm_state, enum san_conn_state,
	enum san_drop, enum san_engine_image_state, enum san_engine_qp_end, enum san_odd,
	enum san_pdl_cc_kind, enum san_pdl_entry_state, enum san_rxn_queue, enum san_rxn_state,
	enum san_sm_flag, enum san_sm_mode, enum san_sock_df, enum san_sock_mirrored,
	enum san_sock_option, enum san_sock_returned, enum san_sock_state, enum san_stream_option,
	enum san_stream_right, enum san_stream_why, enum san_tl_policy, enum san_tl_solicit,
	enum san_tl_type, enum san_tl_want, enum san_txn_list, enum san_txn_state,
	enum san_ulp_qp_list, enum san_ulp_qp_state, enum san_ulp_rqe_state, enum san_win,
	enum san_wire_atomic, enum san_wire_cm_feature, enum san_wire_cm_flag,
	enum san_wire_cm_msg, enum san_wire_flag, enum san_wire_kind, enum san_wire_oow,
	enum san_wire_op, enum san_wire_resync, enum san_wire_status, enum san_wr_op,
	enum stream_buf_state, enum stream_pattern, enum stream_piece_flag, enum stream_req,
	enum stream_rx_way, enum stream_stall, enum stream_way);

/** Not read through a pointer: they belong to a process, and the new one has its own. */
void (*const layout_own)(struct app *, struct app_sock *, struct san_cm_steer *,
			 struct san_engine_port *, struct san_inet *, struct san_pdl_cc_ops *,
			 struct san_stream_ops *);
