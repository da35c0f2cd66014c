#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every requirement is named in the code, in a test, and has a row in doc/coverage.md;
# every file and function that the rows name is there.
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

# $1: where paths begin, unless they begin with a folder of the tree; then cells of one column
look_up() {
	tr ',' '\n' | sed -n 's/.*`\(.*\)`.*/\1/p' | sort -u | while IFS=: read -r path name; do
		[ -e "$path" ] || path=$1/$path
		if [ ! -e "$path" ]; then
			echo "doc/coverage.md: there is no $path"
		elif [ -n "$name" ] && ! grep -qE "(^|[^a-z0-9_])$name\(" "$path"; then
			echo "doc/coverage.md: there is no $name in $path"
		fi
	done
}
lost=$(grep -E '^\| [A-Z]+-[0-9]' doc/coverage.md | cut -d'|' -f3 | look_up lib
	grep -E '^\| [A-Z]+-[0-9]' doc/coverage.md | cut -d'|' -f4 | look_up test)
if [ -n "$lost" ]; then
	echo "$lost"
	failed=1
fi
exit $failed
