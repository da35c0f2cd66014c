#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Contexts, regions and queue pairs come and go while a server lives on: nothing is left, nothing
# is touched after it is gone, EAL is used again, a program may exit without closing.
# (SYS-2, RT-23, RT-26)
set -u
failed=0
dir=$(mktemp -d)
tag=life$$
server=
finish() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	rm -rf "$dir" /var/run/dpdk/$tag* "${XDG_RUNTIME_DIR:-/tmp}"/dpdk/$tag*
}
trap finish EXIT
program=$SAN_BUILD_DIR/test/e2e/lifecycle
last=$(($(nproc) - 1))

spec() { # ROLE LCORES LAST_BYTE PORT_ARGS
	echo "dpdk:--lcores=$2 --no-pci --no-huge --no-shconf -m 256 --file-prefix=$tag$1" \
		"--log-level=error" \
		"--vdev=net_memif0,role=$1,id=0,socket=$dir/sock,socket-abstract=no,mac=02:00:00:00:00:0$3" \
		"-- ip=10.5.0.$3/24 conns=64 $4"
}

for poll in caller lcore; do
	lcores_s=0@0 lcores_c=0@$last
	[ $poll = caller ] || lcores_s=0@0,1@0 lcores_c=0@$last,1@$last
	rm -f "$dir/sock"
	timeout 150 "$program" server "$(spec server $lcores_s 1 poll=$poll)" >"$dir/server" 2>&1 &
	server=$!
	for _ in $(seq 200); do
		[ -S "$dir/sock" ] && break
		sleep 0.05
	done
	timeout 120 "$program" client "$(spec client $lcores_c 2 "poll=$poll cm_retry_ms=50 cm_retries=3")" 10.5.0.1 \
		>"$dir/client" 2>&1
	rc=$?
	[ $rc = 0 ] || kill "$server"
	wait "$server"
	rc_s=$?
	server=
	if [ $rc != 0 ] || [ $rc_s != 0 ]; then
		echo "poll=$poll: client $rc, server $rc_s"
		cat "$dir/client" "$dir/server"
		failed=1
	fi
done
exit $failed
