#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each example between two processes on a memif link: right results, right exit codes, nothing
# left behind. Over IPv4 and IPv6, polled by the caller and by an lcore, and attached to daemons.
# (SYS-2, RT-10, RT-11, AFC-1)
set -u
failed=0
dir=$(mktemp -d)
tag=ex$$
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$SAN_BUILD_DIR/drivers/san/unix
pids=
daemons=
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

# What programs open: an engine of their own, or the daemon of that side.
attached=
spec() { # ROLE CPU LCORES PORT_ARGS LAST_BYTE
	if [ -n "$attached" ]; then
		echo "unix:$dir/$1.sock"
	else
		echo "dpdk:$(eal "$1" "$2" "$3") -- ip=10.8.0.$5/24 ip=fd08::$5/64 $4"
	fi
}

start_daemon() { # ROLE CPU LAST_BYTE PORT_LINES
	local seccomp=on
	# the sanitizers do what the filter forbids
	[ "$SAN_SANITIZE" = 0 ] || seccomp=off
	{
		echo "[eal]"
		printf 'args = %s\n' "$(eal "$1" "$2" "0@$2,1@$2" | sed 's/ --vdev=.*//')"
		printf 'args = %s\n' "$(eal "$1" "$2" - | sed 's/.* --vdev=/--vdev=/')"
		printf '[port]\nip = 10.8.0.%s/24\nip6 = fd08::%s/64\nidle = sleep\n' "$3" "$3"
		printf '%b\n[daemon]\nsocket = %s\nseccomp = %s\n' "$4" "$dir/$1.sock" $seccomp
	} >"$dir/$1.conf"
	"$SAN_BUILD_DIR/apps/sanstack-daemon/sanstack-daemon" -c "$dir/$1.conf" >"$dir/$1.log" 2>&1 &
	daemons="$daemons $!"
	pids="$pids $!"
	for _ in $(seq 400); do
		grep -q ready "$dir/$1.log" && return
		sleep 0.05
	done
	fail "no daemon: $(cat "$dir/$1.log")"
}

attach() { # PORT_LINES
	rm -f "$dir/memif.sock"
	daemons=
	start_daemon server 0 1 "$1"
	start_daemon client "$last_cpu" 2 "$1"
	attached=yes
}

detach() {
	for pid in $daemons; do
		kill "$pid"
		wait "$pid" || fail "a daemon ends with $?: $(cat "$dir"/*.log)"
	done
	daemons=
	attached=
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
	[ -n "$attached" ] || rm -f "$dir/memif.sock"
	# shellcheck disable=SC2086
	timeout 120 "$program" server "$(spec server 0 $lcores_s "$port" 1)" $5 >"$dir/server" 2>&1 &
	server=$!
	pids="$daemons $server"
	for _ in $(seq 200); do
		[ -S "$dir/memif.sock" ] && break
		sleep 0.05
	done
	# there is no telling when an attached one listens
	[ -z "$attached" ] || sleep 0.3
	# shellcheck disable=SC2086
	timeout 120 "$program" client "$(spec client 0 $lcores_c "$port" 2)" "$peer" $6 \
		>"$dir/client" 2>&1
	rc_c=$?
	[ $rc_c = 0 ] || kill "$server" 2>/dev/null
	wait "$server"
	rc_s=$?
	pids=$daemons
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
mbytes=8
[ "$SAN_SANITIZE" = 0 ] || rounds=300 mbytes=1

run pingpong pingpong 10.8.0.1 "" "" $rounds
run pingpong-v6 pingpong fd08::1 "" "" $rounds
run pingpong-lcore pingpong 10.8.0.1 "poll=lcore" "" $rounds
run kvget kvget 10.8.0.1 "" "" $rounds
run kvget-sleep kvget 10.8.0.1 "idle=sleep" "" 300
run stream stream 10.8.0.1 "" "" $mbytes
run stream-lcore stream fd08::1 "poll=lcore" "" $mbytes
run stream-sleep stream 10.8.0.1 "poll=lcore idle=sleep" "" 1
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
run stream-bad stream 10.8.0.1 "impair_tx=$bad" "" 1
rm -f "$dir/out"
run filecopy-empty filecopy 10.8.0.1 "" "$dir/out" "$dir/empty send"
cmp "$dir/empty" "$dir/out" || fail "filecopy-empty: the copy differs"

# Threads, time limits and the rest of streams, from a program to itself.
streams() { # NAME SPEC
	out=$(timeout 120 "$SAN_BUILD_DIR/test/e2e/streams" "$2" 10.8.0.1 2>&1) || fail "$1: $out"
	echo "$1: $out"
}
null=$(eal none 0 0@0,1@0 | sed 's/--vdev=.*/--vdev=net_null0/')
for idle in poll sleep; do
	streams "streams-$idle" "dpdk:$null -- ip=10.8.0.1/24 poll=lcore idle=$idle"
done

# The same programs, attached; on a clean link and on a bad one.
few=$((rounds / 5))
for faults in "" "impair_tx = $bad"; do
	attach "$faults"
	run "attached pingpong" pingpong 10.8.0.1 "" "" $few
	run "attached pingpong-v6" pingpong fd08::1 "" "" $few
	run "attached kvget" kvget 10.8.0.1 "" "" $few
	run "attached stream" stream 10.8.0.1 "" "" 1
	streams "attached streams" "unix:$dir/server.sock"
	for how in push send; do
		rm -f "$dir/out"
		run "attached filecopy-$how" filecopy 10.8.0.1 "" "$dir/out" "$dir/in $how"
		cmp "$dir/in" "$dir/out" || fail "attached filecopy-$how: the copy differs"
	done
	rm -f "$dir/out"
	run "attached filecopy-empty" filecopy 10.8.0.1 "" "$dir/out" "$dir/empty send"
	cmp "$dir/empty" "$dir/out" || fail "attached filecopy-empty: the copy differs"
	detach
done

# Wrong use: one line and 2; a wrong argument: one line and 1.
for program in pingpong kvget filecopy stream; do
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
