#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# clang-format, 100 columns, no trailing white space, SPDX line first.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C.UTF-8

sources=$(find lib drivers apps examples test -name '*.[ch]' | sort)
texts=$(find lib drivers apps bindings config examples test devtools usertools doc Makefile meson* .ci CONTRIBUTING.md README.md \
	-type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.lua' -o -name '*.md' -o -name '*.rs' \
	-o -name 'meson*' -o -name Makefile -o -name '*.list' -o -name '*.map' -o -name '*.conf' \) | sort)
failed=0

report() { # $1: what is wrong with each file named on standard input
	found=$(grep . | sort -u | sed "s|\$|: $1|")
	[ -z "$found" ] || { echo "$found" && failed=1; }
}

report "clang-format -i would change it" <<END
$(echo "$sources" | xargs -P "$(nproc)" -n 32 clang-format --dry-run -Werror 2>&1 | sed -n 's/:.*//p')
END
report "over 100 columns" <<END
$(echo "$sources" | while read -r file; do expand -t 8 "$file" | grep -qE '^.{101,}' && echo "$file"; done)
END
report "length of a cache line: SAN_LINE of san_line.h, not 64, and not DPDK's, which differs" <<END
$(echo "$sources" | grep '^[lda]' | xargs grep -lE '_Alignas\(64\)|RTE_CACHE_LINE|__rte_cache_')
END
report "SPDX line is not first" <<END
$(echo "$sources" | xargs awk 'FNR == 1 && $0 != "/* SPDX-License-Identifier: BSD-3-Clause */" { print FILENAME }')
END

# shellcheck disable=SC2086
if grep -nE '[[:blank:]]+$' /dev/null $texts; then
	echo "trailing white space"
	failed=1
fi
exit $failed
