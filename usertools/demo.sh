#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two processes on a memif link copy a file, then send messages of every kind, on a clean link and on
# a bad one. The file is compared by SHA-256, each message by its content. Then iperf3 and sockperf
# show what TCP of the kernel does over a veth pair, on the same two CPUs.
#
# usage: demo.sh [BUILD-FOLDER]
#
# Needs no NIC, no hugepages and no configuration, and leaves nothing behind.
# Hugepages that are there already are used.
set -u
shopt -s nullglob
export LC_ALL=C
PATH=$PATH:/sbin:/usr/sbin # of a user, too: ldconfig, ip

build=$(cd "${1:-build}" 2>/dev/null && pwd) || {
	echo "demo: no build in ${1:-build}; make builds it" >&2
	exit 1
}
bench=$build/apps/sanbench/sanbench
filecopy=$build/examples/filecopy
for program in "$bench" "$filecopy"; do
	[ -x "$program" ] || {
		echo "demo: $program is missing" >&2
		exit 1
	}
done
export LD_LIBRARY_PATH=$build/drivers/san/dpdk:$build/lib/rtsan${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

phase_seconds=60 # no phase may take longer
bad_link='drop=0.01,dup=0.01,reorder=0.05,corrupt=0.001,seed=7'
work=$(mktemp -d /tmp/sanstack-demo.XXXXXX) || exit 1
prefix=sandemo$$
server=
client=

cleanup() {
	trap - EXIT INT TERM
	for pid in $client $server; do
		kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	# DPDK's own run-time folders, of these two processes only.
	for base in /var/run/dpdk "${XDG_RUNTIME_DIR:-/nonexistent}/dpdk" /tmp/dpdk; do
		for dir in "$base/${prefix}s" "$base/${prefix}c"; do
			[ ! -d "$dir" ] || rm -rf "$dir" # others' folders are closed to a user
		done
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
	echo "demo: FAILED: $*" >&2
	for log in "$work"/*.log; do
		[ -s "$log" ] && { echo "--- $(basename "$log")" >&2; tail -n 20 "$log" >&2; }
	done
	exit 1
}

# The CPUs that we may use: a process each.
mapfile -t cpus < <(/usr/bin/python3 -c 'import os
print(*sorted(os.sched_getaffinity(0)), sep="\n")')
cpu_server=${cpus[0]}
cpu_client=${cpus[1]:-${cpus[0]}}

# Hugepages if enough of them are free for both, else ordinary memory.
read -r huge_free huge_kb < <(awk '/^HugePages_Free:/ {n = $2} /^Hugepagesize:/ {k = $2}
	END {print n + 0, k + 0}' /proc/meminfo)
if [ $((huge_free * huge_kb)) -ge $((2 * 512 * 1024)) ]; then
	memory=(--in-memory -m 512)
	memory_kind='hugepages'
else
	memory=(--no-huge --no-shconf -m 512)
	memory_kind='no hugepages'
fi

# What to copy: the installed DPDK libraries and drivers, as one file.
make_file() {
	local libs
	libs=$(dirname "$(ldconfig -p | awk '/librte_eal\.so/ {print $NF; exit}')")
	cat "$libs"/librte_*.so.?? "$libs"/dpdk/*/*.so >"$work/file" 2>/dev/null
	[ "$(stat -c %s "$work/file")" -gt 1000000 ] || die 'no DPDK libraries to copy'
}

# EAL arguments of one end: its CPU, prefix and link.
eal() {
	local role=$1 cpu=$2 number=1
	[ "$role" = server ] || number=2
	printf '%s\n' --lcores="0@$cpu" --no-pci --file-prefix="$prefix${role:0:1}" "${memory[@]}" \
		--log-level=error \
		--vdev="net_memif0,role=$role,id=0,socket=$work/memif,socket-abstract=no,bsize=2048,rsize=10,mac=02:00:00:00:77:0$number"
}

# The end of a process, within $2 seconds; its exit status.
wait_for() {
	local pid=$1 all=$(($2 * 20)) left=$(($2 * 20))
	while kill -0 "$pid" 2>/dev/null; do
		[ $((left--)) -gt 0 ] || return 124
		[ $(((all - left) % 200)) != 0 ] || echo "... $(((all - left) / 20)) s, $phase" >&2
		sleep 0.05
	done
	wait "$pid"
}

# start_server PROGRAM ARGUMENT...: waits until it listens.
start_server() {
	local left=400
	: >"$work/server.log" # not that the one before listened
	rm -f "$work/memif"
	"$@" >"$work/server.log" 2>&1 &
	server=$!
	until grep -Eq 'listening|waiting' "$work/server.log"; do
		kill -0 "$server" 2>/dev/null || die 'the server did not start'
		[ $((left--)) -gt 0 ] || die 'the server does not listen'
		sleep 0.05
	done
}

run_client() {
	"$@" >"$work/client.log" 2>&1 &
	client=$!
	wait_for "$client" "$phase_seconds" || die "$phase: the client failed"
	client=
	wait_for "$server" 10 || die "$phase: the server failed"
	server=
}

# One line of the table.
print_result() {
	/usr/bin/python3 - "$1" "$2" "$work/result.json" <<'PYTHON'
import json
import sys

kind, link, path = sys.argv[1:]
r = json.load(open(path, encoding='utf-8'))
assert r['ok'] and r['server_errors'] == 0 and r['leaks'] == 0, r['error']
lat = r['latency_ns']
print(f"{kind:18} {link:6} {r['gbps']:8.3f} {r['mps']:12.4f} {lat['p50'] / 1e3:10.1f} "
      f"{lat['p99'] / 1e3:10.1f} {r['rtx'] + r['server_rtx']:9d}")
PYTHON
}

# copy_phase LINK send|push
copy_phase() {
	phase="file by $2, $1 link"
	local faults=
	[ "$1" = clean ] || faults=" impair_tx=$bad_link"
	start_server "$filecopy" server "dpdk:$(eal server "$cpu_server" | paste -sd ' ') -- ip=10.77.0.1/24$faults" \
		"$work/copy"
	run_client "$filecopy" client "dpdk:$(eal client "$cpu_client" | paste -sd ' ') -- ip=10.77.0.2/24$faults" \
		10.77.0.1 "$work/file" "$2"
	[ "$(sha256sum <"$work/copy")" = "$(sha256sum <"$work/file")" ] || die "$phase: the copy differs"
	rm -f "$work/copy"
	echo "$phase: $(sed -n 's/.*, //p' "$work/client.log"), SHA-256 compared"
}

# bench_phase KIND LINK NAME ARGUMENT...: the result is in NAME.json
bench_phase() {
	local kind=$1 link=$2 name=$3
	shift 3
	phase="$kind, $link link"
	local faults=()
	[ "$link" = clean ] || faults=(--impair "$bad_link")
	mapfile -t own < <(eal server "$cpu_server")
	start_server "$bench" "${own[@]}" -- --server --ip 10.77.0.1/24 --sessions 1 "${faults[@]}"
	mapfile -t own < <(eal client "$cpu_client")
	run_client "$bench" "${own[@]}" -- --connect 10.77.0.1 --ip 10.77.0.2/24 \
		--json "$work/result.json" "${faults[@]}" "$@"
	print_result "$kind" "$link" || die "$phase: no good result"
	mv "$work/result.json" "$work/$name.json"
}

# What a program has today: bytes by iperf3, questions by sockperf, between two namespaces.
kernel_tcp() {
	unshare -n sleep 600 &
	server=$!
	until [ "$(readlink /proc/$server/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
	ip link add v0 type veth peer name v1 netns $server
	ip address add 10.78.0.2/24 dev v0 && ip link set v0 up
	nsenter -t $server -n sh -c 'ip address add 10.78.0.1/24 dev v1 && ip link set v1 up'
	nsenter -t $server -n taskset -c "$cpu_server" iperf3 -s -1 >/dev/null &
	nsenter -t $server -n taskset -c "$cpu_server" sockperf server --tcp >/dev/null 2>&1 &
	sleep 0.5
	taskset -c "$cpu_client" iperf3 -c 10.78.0.1 -t 2 -J >"$work/iperf3.json" &&
		taskset -c "$cpu_client" sockperf ping-pong --tcp -i 10.78.0.1 -m 64 -t 2 >"$work/sockperf.txt"
	status=$?
	kill %2 %3 $server 2>/dev/null
	return $status
}

kernel_phases() {
	phase='kernel TCP'
	if ! unshare -n true 2>"$work/kernel.log"; then
		echo "kernel TCP left out: $(tail -n 1 "$work/kernel.log")"
		return
	fi
	export -f kernel_tcp
	export work cpu_server cpu_client
	unshare -nf --kill-child bash -c kernel_tcp >"$work/kernel.log" 2>&1 &
	client=$!
	wait_for "$client" "$phase_seconds" || die "$phase: status $?"
	client=
	/usr/bin/python3 - "$work" <<'PYTHON'
import json
import re
import sys


def of(name):
    with open(f'{sys.argv[1]}/{name}.json', encoding='utf-8') as f:
        return json.load(f)


def say(what, ours, kernels):
    much = ours / kernels
    print(f'{what}: {much:.1f} times as fast as kernel TCP' if much >= 1 else
          f'{what}: slower than kernel TCP, {1 / much:.1f} times')


with open(f'{sys.argv[1]}/sockperf.txt', encoding='utf-8') as f:
    text = f.read()
p50, p99 = (2 * float(re.search(rf'percentile {p}.000 = *([0-9.]+)', text)[1]) for p in (50, 99))
gbps = of('iperf3')['end']['sum_received']['bits_per_second'] / 1e9
print(f"{'kernel TCP, 64 B':18} {'veth':6} {'':8} {'':12} {p50:10.1f} {p99:10.1f}")
print(f"{'kernel TCP, bytes':18} {'veth':6} {gbps:8.3f}")
print()
say('64 B asked, half of them answered within p50', p50, of('ask')['latency_ns']['p50'] / 1e3)
say('bytes, by the fastest kind on the clean link',
    max(of(f'clean-{kind}')['gbps'] for kind in ('send', 'push', 'pull')), gbps)
PYTHON
}

make_file
echo "$(($(stat -c %s "$work/file") >> 20)) MiB over memif, $memory_kind, CPUs $cpu_server and $cpu_client"
echo "bad link, both ways: 1 % drop, 1 % duplication, 5 % reordering, 0.1 % corruption"
echo
for link in clean bad; do
	copy_phase $link push
	copy_phase $link send
done
echo
printf '%-18s %-6s %8s %12s %10s %10s %9s\n' kind link Gb/s 'M trans/s' 'p50 us' 'p99 us' resent
for link in clean bad; do
	messages=(--verify --size 65536 --depth 16 --duration 1)
	bench_phase 'send' $link $link-send --mode send "${messages[@]}"
	bench_phase 'solicited push' $link $link-solicited --mode push --solicit always "${messages[@]}"
	bench_phase 'unsolicited push' $link $link-push --mode push --solicit never "${messages[@]}"
	bench_phase 'pull' $link $link-pull --mode pull "${messages[@]}"
done
bench_phase '64 B asked' clean ask --mode rpc --size 64 --depth 1 --duration 1
kernel_phases
echo
echo 'every file compared by SHA-256, every message by its content'
echo 'demo: OK'
