#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every requirement is named in the code, in a test, and has a row in doc/coverage.md.
set -u
cd "$(dirname "$0")/.." || exit 1

failed=0
miss() {
	echo "$1: $2"
	failed=1
}

for id in $(sed 's/#.*//' devtools/requirement-ids.list); do
	grep -rqw --include='*.[ch]' -e "$id" lib apps drivers || miss "$id" "not in lib, apps or drivers"
	grep -rqw --include='*.[ch]' --include='*.sh' --include='*.py' -e "$id" test || miss "$id" "not in test"
	grep -qE "^\|[^|]*\b$id\b[^0-9|]*\|" doc/coverage.md 2>/dev/null || miss "$id" "no row in doc/coverage.md"
done
exit $failed
