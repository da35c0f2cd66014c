#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two sanbench processes on a memif link copy a real file tree with every kind of
# transaction, on a clean link and on a bad one; each copy is compared by SHA-256. Then TCP of the
# kernel does the same over a veth pair, on the same two CPUs.
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
[ -x "$bench" ] || {
	echo "demo: $bench is missing" >&2
	exit 1
}
export LD_LIBRARY_PATH=$build/drivers/san/dpdk:$build/lib/rtsan${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

kernel_tcp=$build/apps/kerneltcp/kerneltcp
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

# What to copy: the installed DPDK drivers and libraries, with their symbolic links.
make_tree() {
	local libs
	libs=$(dirname "$(ldconfig -p | awk '/librte_eal\.so/ {print $NF; exit}')")
	mkdir -p "$work/tree/lib" "$work/tree/empty"
	cp -a "$libs/dpdk" "$work/tree/" 2>/dev/null
	for file in "$libs"/librte_*; do
		cp -a "$file" "$work/tree/lib/"
	done
	: >"$work/tree/empty file"
	[ "$(find "$work/tree" -type f | wc -l)" -gt 10 ] || die 'no DPDK libraries to copy'
}

# One line per file: content; then kind, permissions, name and target of everything.
fingerprint() {
	(
		cd "$1" || exit 1
		find . -type f -print0 | sort -z | xargs -0 -r sha256sum
		find . -mindepth 1 \( -type l -printf '%y %p %l\n' \) -o -printf '%y %m %p\n' | sort
	)
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

start_server() {
	local left=400
	: >"$work/server.log" # not that the one before listened
	"$bench" --lcores="0@$cpu_server" --no-pci --file-prefix="${prefix}s" "${memory[@]}" \
		--log-level=error \
		--vdev="net_memif0,role=server,id=0,socket=$work/memif,socket-abstract=no,bsize=2048,rsize=10,mac=02:00:00:00:77:01" \
		-- --server --ip 10.77.0.1/24 --sessions 1 "$@" \
		>"$work/server.log" 2>&1 &
	server=$!
	until grep -q 'listening' "$work/server.log"; do
		kill -0 "$server" 2>/dev/null || die 'the server did not start'
		[ $((left--)) -gt 0 ] || die 'the server does not listen'
		sleep 0.05
	done
}

run_client() {
	"$bench" --lcores="0@$cpu_client" --no-pci --file-prefix="${prefix}c" "${memory[@]}" \
		--log-level=error \
		--vdev="net_memif0,role=client,id=0,socket=$work/memif,socket-abstract=no,bsize=2048,rsize=10,mac=02:00:00:00:77:02" \
		-- --connect 10.77.0.1 --ip 10.77.0.2/24 --json "$work/result.json" "$@" \
		>"$work/client.log" 2>&1 &
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

run_phase() {
	phase="$1, $2 link"
	local kind=$1 link=$2
	shift 2
	local faults=()
	[ "$link" = clean ] || faults=(--impair "$bad_link")
	rm -rf "$work/out" "$work/memif" "$work/result.json"
	start_server --out "$work/out" "${faults[@]}"
	run_client --tree "$work/tree" "${faults[@]}" "$@"
	fingerprint "$work/out" >"$work/out.sum"
	cmp -s "$work/tree.sum" "$work/out.sum" || {
		diff "$work/tree.sum" "$work/out.sum" | head -n 10 >&2
		die "$phase: the copy differs"
	}
	print_result "$kind" "$link" || die "$phase: no good result"
	cp "$work/result.json" "$work/$link$((nb++ % 4)).json"
}

# One question at a time, so that nothing but the way there and back counts.
ask_phase() {
	phase='64 B asked'
	rm -f "$work/memif" "$work/result.json"
	start_server
	run_client --mode rpc --size 64 --depth 1 --duration 1
	cp "$work/result.json" "$work/ask.json"
	print_result "$phase" clean || die "$phase: no good result"
}

# What a program has today: as many bytes in the same pieces, and the same questions.
kernel_phase() {
	phase="$1"
	local status row=$1 name=$2
	shift 2
	"$kernel_tcp" "$cpu_server" "$cpu_client" "$work/result.json" "$@" >"$work/kernel.log" 2>&1 &
	client=$!
	wait_for "$client" "$phase_seconds"
	status=$?
	client=
	[ $status != 77 ] || return 77
	[ $status = 0 ] || die "$phase: status $status"
	cp "$work/result.json" "$work/$name.json"
	print_result "$row" veth || die "$phase: no good result"
}

kernel_phases() {
	local files
	mapfile -d '' files < <(find "$work/tree" -type f -print0 | sort -z)
	kernel_phase 'kernel TCP, tree' kernel_tree "$work/tcp" "${files[@]}" || {
		echo "kernel TCP left out: $(tail -n 1 "$work/kernel.log")"
		return
	}
	[ "$(sha256sum <"$work/tcp")" = "$(cat "${files[@]}" | sha256sum)" ] ||
		die 'kernel TCP: the copy differs'
	rm -f "$work/tcp"
	kernel_phase 'kernel TCP, 64 B' kernel_ask
	/usr/bin/python3 - "$work" <<'PYTHON'
import json
import sys


def of(name):
    with open(f'{sys.argv[1]}/{name}.json', encoding='utf-8') as f:
        return json.load(f)


def say(what, ours, kernels):
    much = ours / kernels
    print(f'{what}: {much:.1f} times as fast as kernel TCP' if much >= 1 else
          f'{what}: slower than kernel TCP, {1 / much:.1f} times')


print()
say('64 B asked, half of them answered within p50', of('kernel_ask')['latency_ns']['p50'],
    of('ask')['latency_ns']['p50'])
say('the tree, by the fastest kind on the clean link', max(of(f'clean{i}')['gbps'] for i in range(4)),
    of('kernel_tree')['gbps'])
PYTHON
}

make_tree
fingerprint "$work/tree" >"$work/tree.sum"
echo "$(find "$work/tree" -type f | wc -l) files," \
	"$(du -sm --apparent-size "$work/tree" | cut -f 1) MiB, over memif, $memory_kind," \
	"CPUs $cpu_server and $cpu_client"
echo "bad link, both ways: 1 % drop, 1 % duplication, 5 % reordering, 0.1 % corruption"
echo
printf '%-18s %-6s %8s %12s %10s %10s %9s\n' kind link Gb/s 'M trans/s' 'p50 us' 'p99 us' resent
nb=0
for link in clean bad; do
	run_phase 'send' $link --mode tree-send
	run_phase 'solicited push' $link --mode tree-push --solicit always
	run_phase 'unsolicited push' $link --mode tree-push --solicit never
	run_phase 'pull' $link --mode tree-pull
done
ask_phase
kernel_phases
echo
echo 'every copy compared by SHA-256'
echo 'demo: OK'
