-- SPDX-License-Identifier: BSD-3-Clause
--
-- Wireshark dissector of sanstack's reliable transport; doc/wire.md is the authority.
--
--   tshark -X lua_script:usertools/sanstack.lua -r capture.pcap
--   wireshark: Help > About > Folders > Personal Lua Plugins
--
-- It takes BTH opcodes 0xC0 to 0xCC on the UDP port (preference "UDP port"); all other
-- packets there go to the dissector that had the port before, which is Wireshark's own for RoCE.

local san = Proto("san", "sanstack reliable transport")

local BTH_LEN, RT_LEN, ICRC_LEN = 12, 28, 4
local VERSION = 1
local LENGTH_MAX = 0x80000000
local CM_LEN = 164
local PACK_MAX = 64
local FEAT_STREAM, FEAT_USER = 1, 2 -- bits of the features
local SM_VERSION, SM_HDR_LEN = 1, 28

san.prefs.port = Pref.uint("UDP port", 4791, "UDP destination port of the transport")
san.prefs.streams = Pref.bool("All sends are session messages", false,
	"Also those of connections whose beginning is not in the capture")

local op_names = {
	[0xC0] = "PUSH_SLCTD_REQ", [0xC1] = "PULL_REQ", [0xC2] = "ATOMIC_REQ", [0xC3] = "PUSH_GRNT",
	[0xC4] = "PUSH_SLCTD_DATA", [0xC5] = "PUSH_UNSLCTD_DATA", [0xC6] = "PULL_DATA",
	[0xC7] = "ACK", [0xC8] = "NACK", [0xC9] = "RESYNC", [0xCA] = "CM", [0xCB] = "PROBE",
	[0xCC] = "PUSH_PACKED",
}
local kind_names = {[0] = "push", [1] = "send", [2] = "push with immediate", [3] = "send with immediate"}
local status_names = {
	[0] = "ok", [1] = "rnr", [2] = "access", [5] = "length",
	[6] = "revoked", [7] = "align", [8] = "resource", [9] = "refused", [10] = "aborted",
}
local atomic_names = {[1] = "fetch and add", [2] = "compare and swap"}
local resync_names = {[0] = "fill", [1] = "abort"}
local cm_names = {
	[1] = "REQ", [2] = "COOKIE", [3] = "REP", [4] = "RTU", [5] = "REJ", [6] = "DREQ",
	[7] = "DREP", [8] = "RESET",
}
local reason_names = {
	[0] = "none", [1] = "no_listener", [2] = "refused", [3] = "resources", [4] = "pkey",
	[5] = "parameter", [6] = "version", [7] = "backlog", [8] = "timeout", [9] = "stale",
	[10] = "path_mtu",
}
local sm_mode_names = {
	[0] = "discovery", [1] = "small receive", [2] = "large receive", [3] = "small then large",
}
-- Bit, name, text: parts in the order in which they follow the header, then facts.
local sm_flags = {
	{0, "hello", "First message"}, {1, "wdone", "Writes that are complete"},
	{2, "adv", "Advertisements"}, {3, "notice", "Begins a large send"},
	{4, "offer", "Begins a large send, and offers the rest"}, {5, "rdone", "Offer is given back"},
	{6, "small", "Send the rest in messages"}, {7, "resize", "Larger buffers wanted"},
	{8, "resized", "Size of buffers"}, {9, "urgent", "Urgent byte announced"},
	{10, "cancel", "Advertisements withdrawn"}, {11, "cancelled", "Withdrawal answered"},
	{16, "initial", "Payload is an initial portion"}, {17, "large", "Payload is of a large send"},
	{18, "urgent_byte", "Payload is the urgent byte"}, {19, "fin", "Nothing follows"},
	{20, "update", "Credit update"}, {21, "rediscover", "Leave small receive mode"},
	{22, "withdraw", "Offer wanted back"}, {23, "acceptor", "Sender has accepted"},
}
local SM_FLAGS_ZERO = {0x0000f000, 0xff000000}

local f = {
	opcode = ProtoField.uint8("san.bth.opcode", "Opcode", base.HEX, op_names),
	se = ProtoField.uint8("san.bth.se", "Solicited event", base.DEC, nil, 0x80),
	migreq = ProtoField.uint8("san.bth.migreq", "MigReq", base.DEC, nil, 0x40),
	padcnt = ProtoField.uint8("san.bth.padcnt", "Pad count", base.DEC, nil, 0x30),
	tver = ProtoField.uint8("san.bth.tver", "Transport version", base.DEC, nil, 0x0f),
	pkey = ProtoField.uint16("san.bth.pkey", "Partition key", base.HEX),
	resv8a = ProtoField.uint8("san.bth.resv8a", "Reserved (FECN, BECN)", base.HEX),
	dcid = ProtoField.uint24("san.bth.dcid", "Destination CID", base.HEX),
	ackreq = ProtoField.uint8("san.bth.ackreq", "AckReq", base.DEC, nil, 0x80),
	resv7 = ProtoField.uint8("san.bth.resv7", "Reserved", base.HEX, nil, 0x7f),
	psn_lo = ProtoField.uint24("san.bth.psn", "PSN, low 24 bits", base.HEX),

	version = ProtoField.uint8("san.version", "Version", base.DEC, nil, 0xf0),
	rsvd4 = ProtoField.uint8("san.reserved4", "Reserved", base.HEX, nil, 0x0f),
	flags = ProtoField.uint8("san.flags", "Flags", base.HEX),
	last = ProtoField.uint8("san.flags.last", "Last", base.DEC, nil, 0x01),
	win_data = ProtoField.uint8("san.flags.win_data", "Data window", base.DEC, nil, 0x02),
	kind = ProtoField.uint8("san.flags.kind", "Kind", base.DEC, kind_names, 0x0c),
	unpack = ProtoField.uint8("san.flags.unpack", "Unpack", base.DEC, nil, 0x10),
	piece = ProtoField.uint8("san.flags.piece", "Piece", base.DEC, nil, 0x20),
	flags_rsvd = ProtoField.uint8("san.flags.reserved", "Reserved", base.HEX, nil, 0xc0),
	psn_hi = ProtoField.uint8("san.psn_hi", "PSN, high 8 bits", base.HEX),
	psn = ProtoField.uint32("san.psn", "PSN", base.DEC),
	round = ProtoField.uint8("san.round", "RNR round", base.DEC),
	tag = ProtoField.uint32("san.tag", "Connection tag", base.HEX),
	rsn = ProtoField.uint32("san.rsn", "RSN", base.DEC),
	req_ebsn = ProtoField.uint32("san.req_ebsn", "Request window eBSN", base.DEC),
	data_ebsn = ProtoField.uint32("san.data_ebsn", "Data window eBSN", base.DEC),
	cmpl_rsn = ProtoField.uint32("san.cmpl_rsn", "Completed below RSN", base.DEC),
	tx_time = ProtoField.uint32("san.tx_time", "Send time (ns)", base.DEC),

	length = ProtoField.uint32("san.length", "Transaction length", base.DEC),
	key = ProtoField.uint32("san.key", "Key", base.HEX),
	addr = ProtoField.uint64("san.addr", "Remote address", base.HEX),
	ssn = ProtoField.uint32("san.ssn", "SSN", base.DEC),
	offset = ProtoField.uint32("san.offset", "Offset", base.DEC),
	status = ProtoField.uint8("san.status", "Status", base.DEC, status_names),
	rsvd = ProtoField.bytes("san.reserved", "Reserved"),
	atomic_op = ProtoField.uint8("san.atomic.op", "Operation", base.DEC, atomic_names),
	atomic_operand = ProtoField.uint64("san.atomic.operand", "Operand", base.HEX),
	atomic_swap = ProtoField.uint64("san.atomic.swap", "Swap value", base.HEX),
	resync_code = ProtoField.uint8("san.resync.code", "Code", base.DEC, resync_names),
	nack_psn = ProtoField.uint32("san.nack.psn", "Refused PSN", base.DEC),
	nack_code = ProtoField.uint8("san.nack.code", "Code", base.DEC, status_names),
	nack_delay = ProtoField.uint32("san.nack.delay_us", "Try again after (us)", base.DEC),

	ack_serial = ProtoField.uint32("san.ack.serial", "ACK serial", base.DEC),
	ack_echo_tx = ProtoField.uint32("san.ack.echo_tx", "t1: echoed send time (ns)", base.DEC),
	ack_echo_rx = ProtoField.uint32("san.ack.echo_rx", "t2: its receive time (ns)", base.DEC),
	ack_ecn = ProtoField.uint16("san.ack.ecn_count", "CE-marked packets", base.DEC),
	ack_level = ProtoField.uint16("san.ack.rx_level", "Receive buffer level (1/1000)", base.DEC),
	ack_first = ProtoField.uint16("san.ack.first_win", "First window", base.DEC),
	ack_oow_req = ProtoField.uint8("san.ack.oow_req", "Request beyond the window", base.DEC, nil, 0x01),
	ack_oow_data = ProtoField.uint8("san.ack.oow_data", "Data beyond the window", base.DEC, nil, 0x02),
	ack_nb_req = ProtoField.uint8("san.ack.nb_req", "Request bitmap words", base.DEC, nil, 0x1c),
	ack_rsvd = ProtoField.uint8("san.ack.reserved", "Reserved", base.HEX, nil, 0xe0),
	ack_nb_data = ProtoField.uint8("san.ack.nb_data", "Data bitmap words", base.DEC),
	ack_req = ProtoField.uint64("san.ack.req", "Requests acknowledged", base.HEX),
	ack_acked = ProtoField.uint64("san.ack.data_acked", "Data acknowledged", base.HEX),
	ack_rcvd = ProtoField.uint64("san.ack.data_rcvd", "Data received", base.HEX),

	cm_msg = ProtoField.uint8("san.cm.msg", "Message", base.DEC, cm_names),
	cm_flags = ProtoField.uint8("san.cm.flags", "Flags", base.HEX),
	cm_ordered = ProtoField.uint8("san.cm.flags.ordered", "Ordered", base.DEC, nil, 0x01),
	cm_relaxed = ProtoField.uint8("san.cm.flags.relaxed", "Relaxed placement", base.DEC, nil, 0x02),
	cm_has_cookie = ProtoField.uint8("san.cm.flags.cookie", "Cookie present", base.DEC, nil, 0x04),
	cm_ends = ProtoField.uint8("san.cm.flags.ends", "End on error", base.DEC, nil, 0x08),
	cm_flags_rsvd = ProtoField.uint8("san.cm.flags.reserved", "Reserved", base.HEX, nil, 0xf0),
	cm_reason = ProtoField.uint8("san.cm.reason", "Reason", base.DEC, reason_names),
	cm_nb_ports = ProtoField.uint8("san.cm.nb_ports", "Source ports offered", base.DEC),
	cm_xid = ProtoField.uint32("san.cm.xid", "Attempt", base.HEX),
	cm_src_cid = ProtoField.uint32("san.cm.src_cid", "Sender's CID", base.HEX),
	cm_src_tag = ProtoField.uint32("san.cm.src_tag", "Sender's tag", base.HEX),
	cm_dst_cid = ProtoField.uint32("san.cm.dst_cid", "Receiver's CID", base.HEX),
	cm_dst_tag = ProtoField.uint32("san.cm.dst_tag", "Receiver's tag", base.HEX),
	cm_req_psn = ProtoField.uint32("san.cm.req_psn", "First request PSN", base.DEC),
	cm_data_psn = ProtoField.uint32("san.cm.data_psn", "First data PSN (RESET: offending PSN)", base.DEC),
	cm_first_rsn = ProtoField.uint32("san.cm.first_rsn", "First RSN and SSN", base.DEC),
	cm_features = ProtoField.uint32("san.cm.features", "Features", base.HEX),
	cm_mtu = ProtoField.uint16("san.cm.mtu", "Largest payload", base.DEC),
	cm_req_win = ProtoField.uint16("san.cm.req_win", "Request window", base.DEC),
	cm_data_win = ProtoField.uint16("san.cm.data_win", "Data window", base.DEC),
	cm_first_win = ProtoField.uint16("san.cm.first_win", "First window", base.DEC),
	cm_max_txn = ProtoField.uint16("san.cm.max_txn", "Transactions at once", base.DEC),
	cm_rnr_ms = ProtoField.uint16("san.cm.rnr_ms", "Waits for receivers (ms)", base.DEC),
	cm_keepalive_ms = ProtoField.uint16("san.cm.keepalive_ms", "Keep-alive (ms)", base.DEC),
	cm_private_len = ProtoField.uint16("san.cm.private_len", "Private data length", base.DEC),
	cm_service = ProtoField.uint64("san.cm.service", "Service", base.HEX),
	cm_uid = ProtoField.uint32("san.cm.uid", "User"),
	cm_cookie = ProtoField.bytes("san.cm.cookie", "Cookie"),
	cm_port = ProtoField.uint16("san.cm.port", "Source port", base.DEC),
	cm_private = ProtoField.bytes("san.cm.private", "Private data"),
	cm_rest = ProtoField.bytes("san.cm.unused", "Unused"),

	pack_count = ProtoField.uint8("san.pack.count", "Messages", base.DEC),
	pack_rsn = ProtoField.uint32("san.pack.rsn", "RSN", base.DEC),
	pack_kind = ProtoField.uint8("san.pack.kind", "Kind", base.DEC, kind_names),
	pack_rsvd = ProtoField.uint8("san.pack.reserved", "Reserved", base.HEX),
	pack_length = ProtoField.uint16("san.pack.length", "Length", base.DEC),

	sm_version = ProtoField.uint8("san.sm.version", "Version", base.DEC),
	sm_mode = ProtoField.uint8("san.sm.mode", "Sender's mode", base.DEC, sm_mode_names),
	sm_len = ProtoField.uint16("san.sm.len", "Bytes of the stream", base.DEC),
	sm_flags = ProtoField.uint32("san.sm.flags", "Flags", base.HEX),
	sm_pr = ProtoField.uint16("san.sm.pr", "PR: receives posted", base.DEC),
	sm_seq = ProtoField.uint32("san.sm.seq", "Sequence number", base.DEC),
	sm_lrsq = ProtoField.uint32("san.sm.lrsq", "LRSQ: received without a gap", base.DEC),
	sm_rcvd = ProtoField.uint32("san.sm.rcvd", "R: data messages received", base.DEC),
	sm_freed = ProtoField.uint32("san.sm.freed", "Messages freed", base.DEC),
	sm_store = ProtoField.uint16("san.sm.hello.store", "Messages that may be unread", base.DEC),
	sm_nb_adv = ProtoField.uint16("san.sm.hello.advs", "Advertisements it can keep", base.DEC),
	sm_msg_size = ProtoField.uint32("san.sm.hello.msg_size", "Largest message", base.DEC),
	sm_threshold = ProtoField.uint32("san.sm.hello.threshold", "Large from", base.DEC),
	sm_can_read = ProtoField.uint8("san.sm.hello.can_read", "Has remote read", base.DEC),
	sm_count = ProtoField.uint8("san.sm.count", "Number", base.DEC),
	sm_wdone_id = ProtoField.uint32("san.sm.wdone.id", "Advertisement", base.DEC),
	sm_wdone_bytes = ProtoField.uint32("san.sm.wdone.bytes", "Bytes written", base.DEC),
	sm_adv_id = ProtoField.uint32("san.sm.adv.id", "Advertisement", base.DEC),
	sm_adv_after = ProtoField.uint8("san.sm.adv.after", "Posted after the notice", base.DEC),
	sm_addr = ProtoField.uint64("san.sm.addr", "Address", base.HEX),
	sm_bytes = ProtoField.uint32("san.sm.bytes", "Bytes", base.DEC),
	sm_key = ProtoField.uint32("san.sm.key", "Key", base.HEX),
	sm_send = ProtoField.uint32("san.sm.send", "Send", base.DEC),
	sm_rest = ProtoField.uint32("san.sm.rest", "Bytes behind the payload", base.DEC),
	sm_rdone_id = ProtoField.uint32("san.sm.rdone.id", "Send", base.DEC),
	sm_rdone_bytes = ProtoField.uint32("san.sm.rdone.bytes", "Bytes read", base.DEC),
	sm_rdone_mode = ProtoField.uint8("san.sm.rdone.mode", "Class of its buffers", base.DEC, sm_mode_names),
	sm_small = ProtoField.uint32("san.sm.small", "Send (0: none)", base.DEC),
	sm_resize = ProtoField.uint32("san.sm.resize", "Bytes wanted", base.DEC),
	sm_resized = ProtoField.uint32("san.sm.resized.bytes", "Bytes of a buffer", base.DEC),
	sm_after = ProtoField.uint32("san.sm.resized.after", "Behind message", base.DEC),
	sm_urgent = ProtoField.uint32("san.sm.urgent", "Bytes of the stream before it", base.DEC),
	sm_cancel = ProtoField.uint32("san.sm.cancel", "Up to the sender's advertisement", base.DEC),
	sm_cancelled = ProtoField.uint32("san.sm.cancelled", "Up to the receiver's advertisement", base.DEC),

	imm = ProtoField.bytes("san.imm", "Immediate"),
	payload = ProtoField.bytes("san.payload", "Payload"),
	piece_off = ProtoField.uint16("san.piece.offset", "Offset in the payload", base.DEC),
	piece_whole = ProtoField.uint16("san.piece.length", "Length of the payload", base.DEC),
	payload_len = ProtoField.uint32("san.payload_len", "Payload length", base.DEC),
	pad = ProtoField.bytes("san.pad", "Padding"),
	icrc = ProtoField.uint32("san.icrc", "ICRC", base.HEX),
}
for _, flag in ipairs(sm_flags) do
	f["sm_is_" .. flag[2]] = ProtoField.bool("san.sm.flags." .. flag[2], flag[3], 32, nil, 2 ^ flag[1])
end
f.sm_zero_parts = ProtoField.uint32("san.sm.flags.reserved_parts", "Reserved", base.HEX, nil, SM_FLAGS_ZERO[1])
f.sm_zero_facts = ProtoField.uint32("san.sm.flags.reserved_facts", "Reserved", base.HEX, nil, SM_FLAGS_ZERO[2])
san.fields = f

local e = {
	short = ProtoExpert.new("san.expert.short", "Shorter than its headers say",
		expert.group.MALFORMED, expert.severity.ERROR),
	cut = ProtoExpert.new("san.expert.cut", "The capture has only the beginning of this frame",
		expert.group.UNDECODED, expert.severity.NOTE),
	reserved = ProtoExpert.new("san.expert.reserved", "A reserved field is not zero",
		expert.group.PROTOCOL, expert.severity.WARN),
	value = ProtoExpert.new("san.expert.value", "A value that no sender makes",
		expert.group.PROTOCOL, expert.severity.WARN),
	version = ProtoExpert.new("san.expert.version", "Unknown version",
		expert.group.PROTOCOL, expert.severity.ERROR),
}
san.experts = e

local function zero(item, range, what)
	for i = 0, range:len() - 1 do
		if range(i, 1):uint() ~= 0 then
			item:add_proto_expert_info(e.reserved, (what or "Reserved") .. " is not zero")
			return
		end
	end
end

local function zero_bits(item, value, mask, what)
	-- no bit library that every version has: the mask is one run of bits
	local low = 1
	while math.floor(mask / low) % 2 == 0 do
		low = low * 2
	end
	if math.floor(value / low) % (math.floor(mask / low) + 1) ~= 0 then
		item:add_proto_expert_info(e.reserved, what .. " is not zero")
	end
end

local function bits(value, shift, n)
	return math.floor(value / 2 ^ shift) % 2 ^ n
end

local function known(item, ok)
	if not ok then
		item:add_proto_expert_info(e.value)
	end
end

local function add_reserved(tree, range)
	zero(tree:add(f.rsvd, range), range)
end

local function add_length(tree, range)
	known(tree:add(f.length, range), range:uint() <= LENGTH_MAX)
end

local function add_remote(tree, ext)
	add_length(tree, ext(0, 4))
	tree:add(f.key, ext(4, 4))
	tree:add(f.addr, ext(8, 8))
end

local function add_offset(tree, range)
	known(tree:add(f.offset, range), range:uint() <= LENGTH_MAX)
	return " Offset=" .. range:uint()
end

local function add_status(tree, field, range, names)
	known(tree:add(field, range), names[range:uint()] ~= nil)
	return " " .. (names[range:uint()] or "?")
end

-- Extended headers: length, and a function that adds its fields and returns text for the summary.
local exts = {}

exts[0xC0] = {20, function(tree, ext)
	add_remote(tree, ext)
	tree:add(f.ssn, ext(16, 4))
	return string.format(" SSN=%d Len=%d", ext(16, 4):uint(), ext(0, 4):uint())
end}

exts[0xC1] = {16, function(tree, ext)
	add_remote(tree, ext)
	return " Len=" .. ext(0, 4):uint()
end}

exts[0xC2] = {16, function(tree, ext)
	local text = add_status(tree, f.atomic_op, ext(0, 1), atomic_names)
	add_reserved(tree, ext(1, 3))
	tree:add(f.key, ext(4, 4))
	tree:add(f.addr, ext(8, 8))
	return text
end}

exts[0xC3] = {12, function(tree, ext)
	tree:add(f.ssn, ext(0, 4))
	local text = " SSN=" .. ext(0, 4):uint() .. add_offset(tree, ext(4, 4))
	text = text .. add_status(tree, f.status, ext(8, 1), status_names)
	add_reserved(tree, ext(9, 3))
	return text
end}

exts[0xC4] = {4, function(tree, ext)
	return add_offset(tree, ext(0, 4))
end}

exts[0xC5] = {20, function(tree, ext)
	add_remote(tree, ext)
	return add_offset(tree, ext(16, 4))
end}

exts[0xC6] = {8, function(tree, ext)
	local text = add_offset(tree, ext(0, 4))
	text = text .. add_status(tree, f.status, ext(4, 1), status_names)
	add_reserved(tree, ext(5, 3))
	return text
end}

exts[0xC7] = {20, function(tree, ext)
	local b = ext(18, 1):uint()
	tree:add(f.ack_serial, ext(0, 4))
	tree:add(f.ack_echo_tx, ext(4, 4))
	tree:add(f.ack_echo_rx, ext(8, 4))
	tree:add(f.ack_ecn, ext(12, 2))
	known(tree:add(f.ack_level, ext(14, 2)), ext(14, 2):uint() <= 1000)
	tree:add(f.ack_first, ext(16, 2))
	tree:add(f.ack_oow_req, ext(18, 1))
	tree:add(f.ack_oow_data, ext(18, 1))
	known(tree:add(f.ack_nb_req, ext(18, 1)), bits(b, 2, 3) <= 4)
	zero_bits(tree:add(f.ack_rsvd, ext(18, 1)), b, 0xe0, "Reserved")
	known(tree:add(f.ack_nb_data, ext(19, 1)), ext(19, 1):uint() <= 16)
	return " Serial=" .. ext(0, 4):uint()
end}

exts[0xC8] = {12, function(tree, ext)
	tree:add(f.nack_psn, ext(0, 4))
	local item = tree:add(f.nack_code, ext(4, 1))
	local code = ext(4, 1):uint()
	known(item, code ~= 0 and status_names[code] ~= nil)
	add_reserved(tree, ext(5, 3))
	tree:add(f.nack_delay, ext(8, 4))
	return string.format(" NackPSN=%d %s", ext(0, 4):uint(), status_names[code] or "?")
end}

exts[0xC9] = {4, function(tree, ext)
	local text = add_status(tree, f.resync_code, ext(0, 1), resync_names)
	add_reserved(tree, ext(1, 3))
	return text
end}

exts[0xCA] = {0, function() return "" end}
exts[0xCB] = {0, function() return "" end}

exts[0xCC] = {4, function(tree, ext)
	local n = ext(0, 1):uint()
	known(tree:add(f.pack_count, ext(0, 1)), n >= 2 and n <= PACK_MAX)
	add_reserved(tree, ext(1, 3))
	return " Messages=" .. n
end}

local function add_bth(tree, tvb)
	local t = tree:add(tvb(0, BTH_LEN), "Base transport header")
	local second, ninth = tvb(1, 1):uint(), tvb(8, 1):uint()
	t:add(f.opcode, tvb(0, 1))
	zero_bits(t:add(f.se, tvb(1, 1)), second, 0x80, "SE")
	zero_bits(t:add(f.migreq, tvb(1, 1)), second, 0x40, "MigReq")
	t:add(f.padcnt, tvb(1, 1))
	zero_bits(t:add(f.tver, tvb(1, 1)), second, 0x0f, "Transport version")
	t:add(f.pkey, tvb(2, 2))
	zero(t:add(f.resv8a, tvb(4, 1)), tvb(4, 1), "FECN, BECN or reserved")
	t:add(f.dcid, tvb(5, 3))
	t:add(f.ackreq, tvb(8, 1))
	zero_bits(t:add(f.resv7, tvb(8, 1)), ninth, 0x7f, "Reserved")
	t:add(f.psn_lo, tvb(9, 3))
	return bits(second, 4, 2)
end

local flags_allowed = {
	[0xC0] = {kind = true}, [0xC4] = {last = true, kind = true, piece = true},
	[0xC5] = {last = true, kind = true, piece = true}, [0xC6] = {last = true, piece = true}, [0xCC] = {piece = true}, [0xC8] = {win_data = true, unpack = true}, [0xC9] = {win_data = true},
}

local function add_flags(tree, range, op)
	local v = range:uint()
	local allowed = flags_allowed[op] or {}
	local t = tree:add(f.flags, range)
	known(t:add(f.last, range), bits(v, 0, 1) == 0 or allowed.last)
	known(t:add(f.win_data, range), bits(v, 1, 1) == 0 or allowed.win_data)
	local kind = bits(v, 2, 2)
	if allowed.kind or kind ~= 0 then
		known(t:add(f.kind, range), allowed.kind and kind_names[kind] ~= nil)
	end
	known(t:add(f.unpack, range), bits(v, 4, 1) == 0 or allowed.unpack)
	known(t:add(f.piece, range), bits(v, 5, 1) == 0 or allowed.piece)
	zero_bits(t:add(f.flags_rsvd, range), v, 0xc0, "Reserved flag")
	return bits(v, 0, 1) == 1, kind
end

local function add_rt(tree, tvb, op)
	local rt = tvb(BTH_LEN, RT_LEN)
	local t = tree:add(rt, "Common header")
	local first = rt(0, 1):uint()
	local item = t:add(f.version, rt(0, 1))
	if bits(first, 4, 4) ~= VERSION then
		item:add_proto_expert_info(e.version)
	end
	zero_bits(t:add(f.rsvd4, rt(0, 1)), first, 0x0f, "Reserved")
	local last, kind = add_flags(t, rt(1, 1), op)
	t:add(f.psn_hi, rt(2, 1))
	local psn = rt(2, 1):uint() * 2 ^ 24 + tvb(9, 3):uint()
	t:add(f.psn, rt(2, 1), psn):set_generated()
	t:add(f.round, rt(3, 1))
	t:add(f.tag, rt(4, 4))
	local rsn = t:add(f.rsn, rt(8, 4))
	if op == 0xC7 and rt(8, 4):uint() ~= 0 then
		rsn:append_text(" (bytes of the PROBE that came)")
	end
	t:add(f.req_ebsn, rt(12, 4))
	t:add(f.data_ebsn, rt(16, 4))
	t:add(f.cmpl_rsn, rt(20, 4))
	t:add(f.tx_time, rt(24, 4))
	return string.format(" PSN=%.0f RSN=%d%s%s", psn, rt(8, 4):uint(), last and " LAST" or "",
		kind ~= 0 and " " .. (kind_names[kind] or "?") or ""), last, kind
end

local function add_words(tree, field, range, first, n)
	for i = first, first + n - 1 do
		tree:add(field, range(i * 8, 8))
	end
end

local function add_bitmaps(tree, range, ext, len)
	local nb_req, nb_data = bits(ext(18, 1):uint(), 2, 3), ext(19, 1):uint()
	local want = (nb_req + 2 * nb_data) * 8
	if len ~= want then
		tree:add_proto_expert_info(len < want and e.short or e.value)
		return
	end
	if len == 0 then
		return
	end
	local t = tree:add(range, "Bitmaps")
	add_words(t, f.ack_req, range, 0, nb_req)
	add_words(t, f.ack_acked, range, nb_req, nb_data)
	add_words(t, f.ack_rcvd, range, nb_req + nb_data, nb_data)
end

local cm_layout = {
	{f.cm_xid, 4, 4}, {f.cm_src_cid, 8, 4}, {f.cm_src_tag, 12, 4}, {f.cm_dst_cid, 16, 4},
	{f.cm_dst_tag, 20, 4}, {f.cm_req_psn, 24, 4}, {f.cm_data_psn, 28, 4}, {f.cm_first_rsn, 32, 4},
	{f.cm_features, 36, 4}, {f.cm_mtu, 40, 2}, {f.cm_req_win, 42, 2}, {f.cm_data_win, 44, 2},
	{f.cm_first_win, 46, 2}, {f.cm_max_txn, 48, 2}, {f.cm_rnr_ms, 50, 2},
	{f.cm_keepalive_ms, 52, 2}, {f.cm_private_len, 54, 2}, {f.cm_service, 56, 8},
}

local function add_cm_tail(t, cm, flags)
	local nb_ports, private_len = cm(3, 1):uint(), cm(54, 2):uint()
	local item = t:add(f.cm_cookie, cm(64, 20))
	if bits(flags, 2, 1) == 0 then
		zero(item, cm(64, 20), "Cookie without its flag")
	end
	for i = 0, 7 do
		local port = cm(84 + 2 * i, 2)
		if i < nb_ports then
			known(t:add(f.cm_port, port), port:uint() ~= 0)
		elseif port:uint() ~= 0 then
			zero(t:add(f.cm_rest, port), port, "Port beyond their number")
		end
	end
	private_len = math.min(private_len, 64)
	if private_len > 0 then
		t:add(f.cm_private, cm(100, private_len))
	end
	if private_len < 64 then
		local rest = cm(100 + private_len, 64 - private_len)
		zero(t:add(f.cm_rest, rest), rest, "Private data beyond its length")
	end
end

-- Connections whose sends are session messages, by the CID and tag that their packets carry.
local streams = {}

function san.init()
	streams = {}
end

local function stream_key(cid, tag)
	return cid:uint() .. "/" .. tag:uint()
end

-- A request of a stream, or the reply: from then on its sender gets session messages; once a
-- reply has been sent, its receiver, too.
local function learn_stream(cm, msg)
	if (msg ~= 1 and msg ~= 3) or bits(cm(36, 4):uint(), FEAT_STREAM, 1) == 0 then
		return
	end
	streams[stream_key(cm(8, 4), cm(12, 4))] = true
	if msg == 3 then
		streams[stream_key(cm(16, 4), cm(20, 4))] = true
	end
end

local function is_stream(tvb)
	return san.prefs.streams or streams[stream_key(tvb(5, 3), tvb(BTH_LEN + 4, 4))] == true
end

local function add_cm(tree, range, len)
	if len == 0 then
		return " RESET"	-- all of it is in the common header
	end
	if len ~= CM_LEN then
		tree:add_proto_expert_info(e.short, "A CM message has " .. CM_LEN .. " bytes")
		return ""
	end
	local cm, msg, flags = range, range(0, 1):uint(), range(1, 1):uint()
	local t = tree:add(cm, "Connection management")
	known(t:add(f.cm_msg, cm(0, 1)), cm_names[msg] ~= nil)
	local ft = t:add(f.cm_flags, cm(1, 1))
	ft:add(f.cm_ordered, cm(1, 1))
	ft:add(f.cm_relaxed, cm(1, 1))
	ft:add(f.cm_has_cookie, cm(1, 1))
	ft:add(f.cm_ends, cm(1, 1))
	zero_bits(ft:add(f.cm_flags_rsvd, cm(1, 1)), flags, 0xf0, "Reserved flag")
	known(t:add(f.cm_reason, cm(2, 1)), reason_names[cm(2, 1):uint()] ~= nil)
	known(t:add(f.cm_nb_ports, cm(3, 1)), cm(3, 1):uint() <= 8)
	for _, l in ipairs(cm_layout) do
		t:add(l[1], cm(l[2], l[3]))
	end
	if (msg == 1 or msg == 3) and bits(cm(36, 4):uint(), FEAT_USER, 1) == 1 then
		t:add(f.cm_uid, cm(msg == 1 and 20 or 60, 4))
	end
	add_cm_tail(t, cm, flags)
	learn_stream(cm, msg)
	local reason = cm(2, 1):uint()
	return " " .. (cm_names[msg] or "?") ..
		(reason ~= 0 and " " .. (reason_names[reason] or "?") or "")
end

-- Parts of session messages: a title, its length, what it adds, and text for the summary. A
-- length is nil if not even the bytes are there that would say it.

local function sm_segs(tree, r, n)
	for i = 0, n - 1 do
		local t = tree:add(r(16 * i, 16), "Piece")
		t:add(f.sm_addr, r(16 * i, 8))
		known(t:add(f.sm_bytes, r(16 * i + 8, 4)), r(16 * i + 8, 4):uint() > 0)
		t:add(f.sm_key, r(16 * i + 12, 4))
	end
end

local function sm_count(tree, r, most)
	known(tree:add(f.sm_count, r), r:uint() >= 1 and r:uint() <= most)
end

local function sm_bool(tree, field, r)
	known(tree:add(field, r), r:uint() <= 1)
end

local function sm_send(tree, r)
	known(tree:add(f.sm_send, r(0, 4)), r(0, 4):uint() ~= 0)
	tree:add(f.sm_rest, r(4, 4))
	return "=" .. r(0, 4):uint() .. " rest=" .. r(4, 4):uint()
end

-- A part of four bytes: one number.
local function sm_number(title, field)
	return {title, function() return 4 end, function(t, r)
		t:add(field, r(0, 4))
		return "=" .. r(0, 4):uint()
	end}
end

local sm_parts = {}

sm_parts.hello = {"First message", function() return 16 end, function(t, r)
	t:add(f.sm_store, r(0, 2))
	t:add(f.sm_nb_adv, r(2, 2))
	t:add(f.sm_msg_size, r(4, 4))
	t:add(f.sm_threshold, r(8, 4))
	sm_bool(t, f.sm_can_read, r(12, 1))
	add_reserved(t, r(13, 3))
	return "=" .. r(4, 4):uint()
end}

sm_parts.wdone = {"Completed writes", function(r)
	return r:len() >= 4 and 4 + 8 * r(0, 1):uint() or nil
end, function(t, r)
	local text = ""
	sm_count(t, r(0, 1), 8)
	add_reserved(t, r(1, 3))
	for at = 4, r:len() - 8, 8 do
		local w = t:add(r(at, 8), "Write")
		w:add(f.sm_wdone_id, r(at, 4))
		w:add(f.sm_wdone_bytes, r(at + 4, 4))
		text = text .. (at == 4 and "=" or ",") .. r(at, 4):uint() .. ":" .. r(at + 4, 4):uint()
	end
	return text
end}

sm_parts.adv = {"Advertisements", function(r)
	local at = 4
	for _ = 1, r:len() >= 4 and r(0, 1):uint() or 0 do
		if r:len() < at + 8 then
			return nil
		end
		at = at + 8 + 16 * r(at + 4, 1):uint()
	end
	return at
end, function(t, r)
	local at, text = 4, ""
	sm_count(t, r(0, 1), 4)
	add_reserved(t, r(1, 3))
	for _ = 1, r(0, 1):uint() do
		local n = r(at + 4, 1):uint()
		local a = t:add(r(at, 8 + 16 * n), "Advertisement " .. r(at, 4):uint())
		a:add(f.sm_adv_id, r(at, 4))
		sm_count(a, r(at + 4, 1), 4)
		sm_bool(a, f.sm_adv_after, r(at + 5, 1))
		add_reserved(a, r(at + 6, 2))
		if n > 0 then
			sm_segs(a, r(at + 8, 16 * n), n)
		end
		text = text .. (at == 4 and "=" or ",") .. r(at, 4):uint()
		at = at + 8 + 16 * n
	end
	return text
end}

sm_parts.notice = {"Notice", function() return 8 end, sm_send}

sm_parts.offer = {"Offer", function(r)
	return r:len() >= 12 and 12 + 16 * r(8, 1):uint() or nil
end, function(t, r)
	local text, n = sm_send(t, r), r(8, 1):uint()
	sm_count(t, r(8, 1), 4)
	add_reserved(t, r(9, 3))
	if n > 0 then
		sm_segs(t, r(12, 16 * n), n)
	end
	return text
end}

sm_parts.rdone = {"Offer given back", function() return 12 end, function(t, r)
	t:add(f.sm_rdone_id, r(0, 4))
	t:add(f.sm_rdone_bytes, r(4, 4))
	known(t:add(f.sm_rdone_mode, r(8, 1)), sm_mode_names[r(8, 1):uint()] ~= nil)
	add_reserved(t, r(9, 3))
	return "=" .. r(0, 4):uint() .. ":" .. r(4, 4):uint()
end}

sm_parts.resized = {"Size of buffers", function() return 8 end, function(t, r)
	t:add(f.sm_resized, r(0, 4))
	t:add(f.sm_after, r(4, 4))
	return "=" .. r(0, 4):uint() .. " after=" .. r(4, 4):uint()
end}

sm_parts.small = sm_number("The rest in messages", f.sm_small)
sm_parts.resize = sm_number("Larger buffers", f.sm_resize)
sm_parts.urgent = sm_number("Urgent byte", f.sm_urgent)
sm_parts.cancel = sm_number("Withdrawal", f.sm_cancel)
sm_parts.cancelled = sm_number("Withdrawal answered", f.sm_cancelled)

local function sm_combined(item, is, len)
	known(item, not (is.notice and is.offer))
	known(item, not is.initial or is.notice or is.offer)
	known(item, not is.urgent_byte or len == 1)
	known(item, not is.withdraw or is.rdone)
	known(item, not is.acceptor or is.hello)
end

-- Header of a session message; which flags it has, and text for the summary.
local function add_sm_hdr(t, r)
	local is, text, flags, len = {}, "", r(4, 4):uint(), r(2, 2):uint()
	known(t:add(f.sm_mode, r(1, 1)), sm_mode_names[r(1, 1):uint()] ~= nil)
	t:add(f.sm_len, r(2, 2))
	local item = t:add(f.sm_flags, r(4, 4))
	for _, flag in ipairs(sm_flags) do
		is[flag[2]] = bits(flags, flag[1], 1) == 1
		item:add(f["sm_is_" .. flag[2]], r(4, 4))
		if is[flag[2]] and sm_parts[flag[2]] == nil then
			text = text .. " " .. string.upper(flag[2])
		end
	end
	zero_bits(item:add(f.sm_zero_parts, r(4, 4)), flags, SM_FLAGS_ZERO[1], "Reserved flag")
	zero_bits(item:add(f.sm_zero_facts, r(4, 4)), flags, SM_FLAGS_ZERO[2], "Reserved flag")
	sm_combined(item, is, len)
	t:add(f.sm_pr, r(8, 2))
	add_reserved(t, r(10, 2))
	t:add(f.sm_seq, r(12, 4))
	t:add(f.sm_lrsq, r(16, 4))
	t:add(f.sm_rcvd, r(20, 4))
	t:add(f.sm_freed, r(24, 4))
	return is, text
end

-- A send's payload, or its beginning (not *whole*); text for the summary.
local function add_sm(tree, r, whole)
	local t = tree:add(r, "Session message")
	if r:len() < SM_HDR_LEN then
		t:add_proto_expert_info(e.short, "Shorter than the header of a session message")
		return ""
	end
	local item = t:add(f.sm_version, r(0, 1))
	if r(0, 1):uint() ~= SM_VERSION then
		item:add_proto_expert_info(e.version)
		return ""
	end
	local is, facts = add_sm_hdr(t, r)
	local len, at = r(2, 2):uint(), SM_HDR_LEN
	local text = string.format(" | seq=%d lrsq=%d pr=%d %s", r(12, 4):uint(), r(16, 4):uint(),
		r(8, 2):uint(), sm_mode_names[r(1, 1):uint()] or "?")
	for _, flag in ipairs(sm_flags) do
		local part = is[flag[2]] and sm_parts[flag[2]]
		if part then
			local rest = at < r:len() and r(at) or nil
			local n = rest and part[2](rest)
			if n == nil or n > rest:len() then
				t:add_proto_expert_info(e.short, part[1] .. ": not there")
				return text
			end
			text = text .. " " .. string.upper(flag[2]) .. part[3](t:add(rest(0, n), part[1]), rest(0, n))
			at = at + n
		end
	end
	if at < r:len() then
		t:add(f.payload, r(at))
	end
	if at + len < r:len() or (whole and at + len > r:len()) then
		t:add_proto_expert_info(e.value, "Length is not that of the payload")
	end
	return text .. facts .. (len > 0 and " data=" .. len or "")
end

-- Header of a message of PUSH_PACKED: bytes by kind.
local msg_hdr_len = {[0] = 16, [1] = 4, [2] = 20, [3] = 8}

-- One message at *at* of *range*; how many bytes it takes, or nil if it is none, and text for the
-- summary. *stream*: sends are session messages.
local function add_msg(tree, range, at, rsn, stream)
	local left = range:len() - at
	if left < 4 then
		return nil
	end
	local kind, length = range(at, 1):uint(), range(at + 2, 2):uint()
	local hdr_len = msg_hdr_len[kind]
	local len = hdr_len and hdr_len + math.ceil(length / 4) * 4
	if len == nil or len > left then
		return nil
	end
	local t = tree:add(range(at, len), string.format("Message RSN=%.0f %s", rsn, kind_names[kind]))
	t:add(f.pack_rsn, range(at, 0), rsn):set_generated()
	t:add(f.pack_kind, range(at, 1))
	zero(t:add(f.pack_rsvd, range(at + 1, 1)), range(at + 1, 1))
	t:add(f.pack_length, range(at + 2, 2))
	if kind == 0 or kind == 2 then
		t:add(f.key, range(at + 4, 4))
		t:add(f.addr, range(at + 8, 8))
	end
	if kind >= 2 then
		t:add(f.imm, range(at + hdr_len - 4, 4))
	end
	local text = ""
	if length > 0 and stream and kind == 1 then
		text = add_sm(t, range(at + hdr_len, length), true)
	elseif length > 0 then
		t:add(f.payload, range(at + hdr_len, length))
	end
	if length % 4 ~= 0 then
		local pad = range(at + hdr_len + length, len - hdr_len - length)
		zero(t:add(f.pad, pad), pad, "Padding")
	end
	return len, text
end

local function add_msgs(tree, tvb, range, len, stream)
	local count = tvb(BTH_LEN + RT_LEN, 1):uint()
	local rsn = tvb(BTH_LEN + 8, 4):uint()
	local at, all = 0, ""
	for i = 0, count - 1 do
		local n, text
		if at < len then
			n, text = add_msg(tree, range, at, (rsn + i) % 2 ^ 32, stream)
		end
		if n == nil then
			tree:add_proto_expert_info(e.value, "Fewer messages than their number")
			return all
		end
		at, all = at + n, all .. text
	end
	if at ~= len then
		tree:add_proto_expert_info(e.value, "Bytes behind the last message")
	end
	return all
end

-- Where a push's data stands in its message.
local function data_offset(tvb, op)
	return tvb(BTH_LEN + RT_LEN + (op == 0xC5 and 16 or 0), 4):uint()
end

-- A part of a payload: what it means shows when it is whole.
local function add_piece(tree, range, len)
	local t = tree:add(range(0, 4), "Piece")
	local off, whole = range(0, 2):uint(), range(2, 2):uint()
	t:add(f.piece_off, range(0, 2))
	known(t:add(f.piece_whole, range(2, 2)), len - 4 < whole and off + len - 4 <= whole)
	tree:add(f.payload, range(4))
	return string.format(" Bytes=%d Piece=%d/%d", len - 4, off, whole)
end

local function add_payload(tree, tvb, op, off, len, last, kind)
	tree:add(f.payload_len, len):set_generated()
	if bits(tvb(BTH_LEN + 1, 1):uint(), 5, 1) == 1 and flags_allowed[op] and flags_allowed[op].piece then
		if len > 4 then
			return add_piece(tree, tvb(off, len), len)
		end
		tree:add_proto_expert_info(e.value, "No piece")
		return ""
	end
	local range = len > 0 and tvb(off, len) or nil
	local imm, stream, text = last and kind >= 2, is_stream(tvb), ""
	if op == 0xC7 then
		add_bitmaps(tree, range, tvb(BTH_LEN + RT_LEN, 20), len)
	elseif op == 0xCA then
		return add_cm(tree, range, len)
	elseif op == 0xCC then
		text = add_msgs(tree, tvb, range, len, stream)
	elseif op == 0xC2 then
		if len ~= 16 then
			tree:add_proto_expert_info(e.value, "Operands of an atomic have 16 bytes")
			return ""
		end
		tree:add(f.atomic_operand, range(0, 8))
		tree:add(f.atomic_swap, range(8, 8))
	elseif imm and len < 4 then
		tree:add_proto_expert_info(e.value, "No immediate")
	elseif imm then
		tree:add(f.imm, range(0, 4))
		if len > 4 then
			tree:add(f.payload, range(4))
		end
	elseif len > 0 and stream and kind == 1 and data_offset(tvb, op) == 0 then
		text = add_sm(tree, range, last)
	elseif len > 0 then
		tree:add(f.payload, range)
	end
	return (op >= 0xC4 and op <= 0xC6 or op == 0xCC) and " Bytes=" .. len .. text or ""
end

local function dissect(tvb, pinfo, root)
	local op, len, is_cut = tvb(0, 1):uint(), tvb:len(), tvb:len() < tvb:reported_len()
	local ext_len, add_ext = exts[op][1], exts[op][2]
	local hdr_len = BTH_LEN + RT_LEN + ext_len
	local tree = root:add(san, tvb(0, len))

	pinfo.cols.protocol = "SAN"
	pinfo.cols.info = op_names[op]
	tree:append_text(", " .. op_names[op])
	if len < hdr_len + (is_cut and 0 or ICRC_LEN) then
		tree:add_proto_expert_info(is_cut and e.cut or e.short)
		return len
	end
	local pad = add_bth(tree, tvb)
	local text, last, kind = add_rt(tree, tvb, op)
	if ext_len > 0 then
		local ext = tvb(BTH_LEN + RT_LEN, ext_len)
		text = text .. add_ext(tree:add(ext, "Extended header"), ext)
	end
	if is_cut then
		tree:add_proto_expert_info(e.cut)
		pinfo.cols.info = op_names[op] .. text
		return len
	end
	local payload_len = len - hdr_len - pad - ICRC_LEN
	if payload_len < 0 or len % 4 ~= 0 then
		tree:add_proto_expert_info(e.short, "Length does not fit the pad count")
		return len
	end
	text = text .. add_payload(tree, tvb, op, hdr_len, payload_len, last, kind)
	if pad > 0 then
		local range = tvb(len - ICRC_LEN - pad, pad)
		zero(tree:add(f.pad, range), range, "Padding")
	end
	tree:add_le(f.icrc, tvb(len - ICRC_LEN, ICRC_LEN))
	pinfo.cols.info = op_names[op] .. text
	return len
end

local udp_table = DissectorTable.get("udp.port")
local port, before

function san.dissector(tvb, pinfo, root)
	if tvb:len() > 0 and tvb:reported_len() >= BTH_LEN and exts[tvb(0, 1):uint()] ~= nil then
		return dissect(tvb, pinfo, root)
	end
	if before ~= nil then
		-- Reading behind the captured bytes would leave this function by a jump, and Lua allows
		-- 200 of these. In a buffer that ends there, it is an error like others, and displayed.
		local done, n = pcall(before.call, before, tvb(0, tvb:len()):tvb(), pinfo, root)
		return done and n or tvb:len()
	end
	return 0
end

local function take_port()
	if port == san.prefs.port then
		return
	end
	if port ~= nil then
		udp_table:remove(port, san)
		if before ~= nil then
			udp_table:add(port, before)
		end
	end
	port = san.prefs.port
	before = udp_table:get_dissector(port)
	udp_table:add(port, san)
end

function san.prefs_changed()
	take_port()
end

take_port()
