#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every header compiles by itself, and included twice, with only the include folders of its layer.
#
# usage: check-headers.sh FOLDER=INCLUDE,INCLUDE... ...     relative to the tree
set -u
cd "$(dirname "$0")/.." || exit 1

dpdk=$(pkg-config --cflags libdpdk | sed 's/-I/-isystem /g')
failed=0
for layer in "$@"; do
	folder=${layer%%=*}
	includes=$(echo "${layer#*=}" | tr ',' '\n' | sed 's/^/-I/')
	outside=$dpdk
	case $folder in
	# These must do without DPDK.
	lib/abi | lib/base | lib/rtsan | lib/stream | lib/sansock | apps/common) outside= ;;
	drivers/san/stream | drivers/san/verbs | drivers/sanverbs) outside= ;;
	esac
	for header in "$folder"/*.h; do
		[ -e "$header" ] || continue
		name=$(basename "$header")
		# shellcheck disable=SC2086
		printf '#include "%s"\n#include "%s"\n' "$name" "$name" |
			${CC:-cc} -fsyntax-only -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Werror \
				$includes $outside -x c - || {
			echo "$header does not compile alone"
			failed=1
		}
	done
done
exit $failed
