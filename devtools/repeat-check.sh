#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Verifies that the verdict of make check does not depend on other load: three runs alone, and two
# with a busy loop on each CPU at nice 0. One line per run is appended to LOG (default
# build/repeat-check.log). Runs of this commit that are in LOG are not repeated, so an interrupted
# script can be continued. Exit status 1 if a run failed.
# usage: devtools/repeat-check.sh [LOG]
set -u
cd "$(dirname "$0")/.." || exit 2

log=${1:-build/repeat-check.log}
commit=$(git describe --always --dirty --abbrev=12) || exit 2
mkdir -p "$(dirname "$log")" && touch "$log" || exit 2
loops=
# shellcheck disable=SC2086
trap '[ -z "$loops" ] || kill $loops; exit 130' INT TERM

# $1: number of busy loops, $2: number of the run of this kind
run() {
	kind="beside $1 busy loops"
	grep -q "^$commit $kind, run $2: " "$log" && return
	for _ in $(seq "$1"); do
		sh -c 'while :; do :; done' &
		loops="$loops $!"
	done
	began=$(date +%s)
	make check >"$log.out" 2>&1
	# shellcheck disable=SC2086
	[ -z "$loops" ] || kill $loops
	loops=
	echo "$commit $kind, run $2: $(tail -n 1 "$log.out"), $(($(date +%s) - began)) s," \
		"$(date -u +%FT%TZ)" >>"$log"
	tail -n 1 "$log"
	tail -n 1 "$log" | grep -q ', 0 failed' || cp "$log.out" "$log.$1-$2.failed"
}

for i in 1 2 3; do run 0 "$i"; done
for i in 1 2; do run "$(nproc)" "$i"; done
! grep "^$commit " "$log" | grep -qv ', 0 failed'
