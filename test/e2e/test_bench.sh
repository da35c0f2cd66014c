#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `make bench` in short: every baseline and this stack are measured, a table with
# ratios comes out, nothing stays behind. No speed is asserted. (SYS-3)
set -u

if [ "$(nproc)" -lt 2 ]; then
	echo "needs two CPUs"
	exit 77
fi
if ! unshare --net --fork true; then
	echo "needs the right to make namespaces"
	exit 77
fi

fail() {
	echo "FAILED: $*"
	exit 1
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
pages=$(cat /proc/sys/vm/nr_hugepages)

TMPDIR=$tmp /usr/bin/python3 "$SAN_SOURCE_DIR/test/bench/bench.py" --quick "$SAN_BUILD_DIR" \
	>"$tmp/table"
status=$?
cat "$tmp/table"
[ "$status" = 0 ] || fail "exit code $status"

# a row per quantity, with a number and a ratio for each baseline
number='[0-9][0-9.e+-]*'
base="$number \| ${number}x \|"
for quantity in 'round trip.*p50, us' 'round trip.*p99, us' 'operations.*M/s'; do
	grep -qE "^\| push: .*$quantity \| $number \| $base $base $base$" "$tmp/table" ||
		fail "no complete row for $quantity"
done
grep -qE "^\| push: .*transfers.*Gb/s \| $number \| $base $base \| \|$" "$tmp/table" ||
	fail "no complete row for transfers"
grep -qE "^\| 1408 B of payload \|( $number \|){4}$" "$tmp/table" || fail "no row for packets"

[ "$(ls "$tmp")" = table ] || fail "files were left: $(ls "$tmp")"
[ "$(cat /proc/sys/vm/nr_hugepages)" = "$pages" ] || fail "hugepages were left"
pgrep -f "socket=$tmp" >/dev/null && fail "processes were left"
exit 0
