#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# No function over 70 lines (brace to brace), no C file over 800, and in all of product and test
# code no more lines than devtools/ceiling allows. A commit that adds lines raises it and says why.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

while read -r what most folders; do
	[ "$what" != '#' ] || continue
	# shellcheck disable=SC2086
	lines=$(find $folders -name '*.[ch]' -exec cat {} + | wc -l)
	echo "$what: $lines lines, at most $most"
	[ "$lines" -le "$most" ] || status=1
done <devtools/ceiling

find lib drivers apps examples test -name '*.[ch]' | sort | xargs awk -v function_max=70 -v file_max=800 '
function end_of_file() {
	if (file != "" && lines > file_max) {
		printf "%s: %d lines, at most %d\n", file, lines, file_max
		bad = 1
	}
}
FNR == 1 { end_of_file(); file = FILENAME; start = 0; head = "" }
{ lines = FNR }
/^[A-Za-z_].*\(/ { head = $0; sub(/\(.*/, "", head) }
/^\{/ { start = FNR }
/^\}/ {
	# A body follows its head; the brace of a struct or table is on the line of its name.
	if (start && FNR - start + 1 > function_max) {
		printf "%s:%d: %s() has %d lines, at most %d\n", FILENAME, start, head, FNR - start + 1, function_max
		bad = 1
	}
	start = 0
}
END { end_of_file(); exit bad }' || status=1
exit $status
