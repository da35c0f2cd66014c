#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `make bench` in short: every kind of run works, results.json has a whole record for each
# figure, the table and the plots come out, nothing stays behind. No speed is asserted. (SYS-3)
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

ninja -C "$SAN_BUILD_DIR" bench-programs >"$tmp/table" 2>&1 || { cat "$tmp/table"; fail "build"; }
TMPDIR=$tmp /usr/bin/python3 "$SAN_SOURCE_DIR/test/bench/bench.py" --quick "$SAN_BUILD_DIR" \
	>"$tmp/table"
status=$?
cat "$tmp/table"
[ "$status" = 77 ] && exit 77
[ "$status" = 0 ] || fail "exit code $status"

/usr/bin/python3 - "$SAN_BUILD_DIR/bench" "$tmp/table" <<'PY' || fail "results"
import json
import pathlib
import sys

folder, table = map(pathlib.Path, sys.argv[1:])
found = json.loads((folder / 'results.json').read_text())
assert {'commit', 'flags', 'cpus', 'machine', 'figures'} <= set(found), found.keys()
assert found['commit'] and found['flags']['compiler'] and len(set(found['cpus'].values())) == 2
groups = set()
for r in found['figures']:
    missing = {'name', 'value', 'unit', 'baseline', 'ratio', 'target', 'met', 'suspect',
               'samples', 'counters'} - set(r)
    assert not missing, (r['name'], missing)
    assert r['value'] > 0 and r['baseline']['value'] > 0 and r['ratio'] > 0, r
    assert not (r['met'] and r['suspect']), r
    assert len(r['samples']['ours']) == len(r['samples']['baseline']) == 1, r
    assert r['title'] in table.read_text(), r['title']
    assert (folder / f"{r['name']}.svg").read_text().startswith('<svg'), r['name']
assert len(found['figures']) >= 10, [r['name'] for r in found['figures']]
PY
number='[0-9][0-9.e+-]*'
grep -qE "^\| 1408 B of payload \|( $number \|){4}$" "$tmp/table" || fail "no row for packets"

[ "$(ls "$tmp")" = table ] || fail "files were left: $(ls "$tmp")"
[ "$(cat /proc/sys/vm/nr_hugepages)" = "$pages" ] || fail "hugepages were left"
pgrep -f "socket=$tmp" >/dev/null && fail "processes were left"
exit 0
