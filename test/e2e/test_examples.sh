#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each example between two processes on a memif link: right results, right exit codes, nothing
# left behind. Over IPv4 and IPv6, polled by the caller and by an lcore. (SYS-2, RT-10, RT-11)
set -u
failed=0
dir=$(mktemp -d)
tag=ex$$
pids=
finish() {
	# only what was started here
	for pid in $pids; do
		kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$dir" /var/run/dpdk/$tag* "${XDG_RUNTIME_DIR:-/tmp}"/dpdk/$tag*
}
trap finish EXIT

fail() {
	echo "$*"
	failed=1
}

last_cpu=$(($(nproc) - 1))
eal() { # ROLE CPU LCORES
	echo "--lcores=$3 --no-pci --no-huge --no-shconf -m 256 --file-prefix=$tag$1" \
		"--log-level=error --vdev=net_memif0,role=$1,id=0,socket=$dir/memif.sock,socket-abstract=no"
}

# run NAME PROGRAM PEER PORT_ARGS "SERVER ARGS" "CLIENT ARGS"
run() {
	local name=$1 program=$SAN_BUILD_DIR/examples/$2 peer=$3 port=$4
	local lcores_s=0@0 lcores_c=0@$last_cpu server rc_s rc_c
	case $port in
	*poll=lcore*)
		lcores_s=0@0,1@0
		lcores_c=0@$last_cpu,1@$last_cpu
		;;
	esac
	rm -f "$dir/memif.sock"
	# shellcheck disable=SC2086
	timeout 120 "$program" server "dpdk:$(eal server 0 $lcores_s) -- ip=10.8.0.1/24 ip=fd08::1/64 $port" \
		$5 >"$dir/server" 2>&1 &
	server=$!
	pids=$server
	for _ in $(seq 200); do
		[ -S "$dir/memif.sock" ] && break
		sleep 0.05
	done
	# shellcheck disable=SC2086
	timeout 120 "$program" client "dpdk:$(eal client 0 $lcores_c) -- ip=10.8.0.2/24 ip=fd08::2/64 $port" \
		"$peer" $6 >"$dir/client" 2>&1
	rc_c=$?
	[ $rc_c = 0 ] || kill "$server" 2>/dev/null
	wait "$server"
	rc_s=$?
	pids=
	if [ $rc_c != 0 ] || [ $rc_s != 0 ]; then
		fail "$name: client $rc_c, server $rc_s"
		cat "$dir/client" "$dir/server"
	else
		echo "$name: $(tail -n 1 "$dir/client")"
	fi
	if [ "$(wc -l <"$dir/client")" != 1 ]; then
		fail "$name: the client prints more than its result"
		cat "$dir/client"
	fi
}

head -c 5000001 /dev/urandom >"$dir/in"
: >"$dir/empty"
rounds=2000
[ "$SAN_SANITIZE" = 0 ] || rounds=300

run pingpong pingpong 10.8.0.1 "" "" $rounds
run pingpong-v6 pingpong fd08::1 "" "" $rounds
run pingpong-lcore pingpong 10.8.0.1 "poll=lcore" "" $rounds
run kvget kvget 10.8.0.1 "" "" $rounds
run kvget-sleep kvget 10.8.0.1 "idle=sleep" "" 300
for how in push send; do
	for mtu in 1500 1280; do
		rm -f "$dir/out"
		run "filecopy-$how-$mtu" filecopy 10.8.0.1 "mtu=$mtu" "$dir/out" "$dir/in $how"
		cmp "$dir/in" "$dir/out" || fail "filecopy-$how-$mtu: the copy differs"
	done
done
rm -f "$dir/out"
run filecopy-lcore filecopy fd08::1 "poll=lcore" "$dir/out" "$dir/in push"
cmp "$dir/in" "$dir/out" || fail "filecopy-lcore: the copy differs"
rm -f "$dir/out"
bad=drop=0.02,dup=0.02,reorder=0.05,corrupt=0.005
run filecopy-bad filecopy 10.8.0.1 "impair_tx=$bad" "$dir/out" "$dir/in send"
cmp "$dir/in" "$dir/out" || fail "filecopy-bad: the copy differs"
rm -f "$dir/out"
run filecopy-empty filecopy 10.8.0.1 "" "$dir/out" "$dir/empty send"
cmp "$dir/empty" "$dir/out" || fail "filecopy-empty: the copy differs"

# Wrong use: one line and 2; a wrong argument: one line and 1.
for program in pingpong kvget filecopy; do
	out=$("$SAN_BUILD_DIR/examples/$program" 2>&1)
	[ $? = 2 ] && [ "$(echo "$out" | wc -l)" = 1 ] || fail "$program without arguments: $out"
done
out=$("$SAN_BUILD_DIR/examples/pingpong" client "dpdk:$(eal none 0 0@0 | sed 's/ --vdev.*//') -- ip=10.0.0.300/24" \
	10.0.0.1 2>&1)
[ $? = 1 ] && [ "$out" = "pingpong: ip=10.0.0.300/24: not an address" ] || fail "bad address: $out"
out=$("$SAN_BUILD_DIR/examples/pingpong" client "dpdk:$(eal none 0 0@0 | sed 's/ --vdev.*//') -- ip=10.0.0.3/24" \
	10.0.0.1 2>&1)
[ $? = 1 ] && echo "$out" | grep -q "port=0: no such port" || fail "no port: $out"

# Nothing is left: no process, no socket but the server's own, no runtime folder of ours in use.
[ ! -S "$dir/memif.sock" ] || fail "the memif socket is still there"
exit $failed
