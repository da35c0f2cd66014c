#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints the progress of a long command: heartbeat.sh LOG COMMAND [ARGUMENT...]
# The output goes to LOG. Every ten seconds (HEARTBEAT=) a line shows the elapsed time and the last
# line of the output. Exits with the command's status; if it fails, prints the end of LOG. The
# command stays in the foreground, so Ctrl-C reaches it.
set -u

log=$1
shift
: >"$log"
beat() {
	seconds=0
	while sleep "${HEARTBEAT:-10}" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
		seconds=$((seconds + ${HEARTBEAT:-10}))
		printf '  %d s: %s\n' "$seconds" "$(tail -n 1 "$log" | tr -d '\r' | cut -c 1-90)"
	done
}
beat &
beat=$!
trap 'kill $beat 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$@" >>"$log" 2>&1 </dev/null
status=$?
[ $status = 0 ] || tail -n 20 "$log"
exit $status
