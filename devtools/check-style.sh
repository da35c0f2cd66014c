#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# clang-format, 100 columns, no trailing white space, SPDX line first.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C.UTF-8

sources=$(find lib drivers apps examples test -name '*.[ch]' | sort)
texts=$(find lib drivers apps examples test devtools usertools doc Makefile meson* .ci README.md \
	-type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.lua' -o -name '*.md' \
	-o -name 'meson*' -o -name Makefile -o -name '*.list' -o -name '*.map' \) | sort)
failed=0

for file in $sources; do
	if ! clang-format --dry-run -Werror "$file" 2>/dev/null; then
		echo "$file: clang-format would change it: run clang-format -i $file"
		failed=1
	fi
	if expand -t 8 "$file" | grep -nE '^.{101,}' | sed "s|^|$file: over 100 columns: |" | grep .; then
		failed=1
	fi
	if ! head -n 1 "$file" | grep -q '^/\* SPDX-License-Identifier: BSD-3-Clause \*/$'; then
		echo "$file: SPDX line is not first"
		failed=1
	fi
done

# shellcheck disable=SC2086
if grep -nE '[[:blank:]]+$' /dev/null $texts; then
	echo "trailing white space"
	failed=1
fi
exit $failed
