#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# librtsan, and a program that uses it, need no DPDK library: only the provider does. (SYS-2)
set -u
failed=0

needed() {
	readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'
}

must_not() { # FILE
	if needed "$1" | grep -E 'librte_|libdpdk|librtsan-dpdk'; then
		echo "$1 needs DPDK"
		failed=1
	fi
}

lib=$SAN_BUILD_DIR/lib/rtsan/librtsan.so
[ -n "$(needed "$lib")" ] || { echo "readelf says nothing of $lib"; exit 1; }
must_not "$lib"
for program in pingpong kvget filecopy; do
	must_not "$SAN_BUILD_DIR/examples/$program"
done
# The check can fail at all: the provider does need it.
needed "$SAN_BUILD_DIR/drivers/san/dpdk/librtsan-dpdk.so" | grep -q librte_ || {
	echo "the provider needs no DPDK: what does this test look at?"
	failed=1
}

# Nothing but the interface is exported.
while read -r name; do
	case $name in
	rtsan_* | RTSAN_*) ;;
	*)
		echo "exported: $name"
		failed=1
		;;
	esac
done < <(for so in "$lib" "$SAN_BUILD_DIR/drivers/san/dpdk/librtsan-dpdk.so"; do
	nm -D --defined-only "$so" | awk '{ sub(/@.*/, "", $3); print $3 }'
done)
exit $failed
