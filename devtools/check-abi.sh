#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs that were built with the last release run with the libraries of this tree: compares the
# headers of its tag with these, as a compiler reads them. Additions are no difference. (CONTRIBUTING.md)
# The libraries themselves were compared first: where private structs differ as well, abidiff is silent
# about public ones that point to them.
#
# Exit 77: skipped, the reason is printed
set -u
cd "$(dirname "$0")/.." || exit 1

skip() {
	echo "$1"
	exit 77
}
command -v abidiff >/dev/null || skip "abigail-tools is not installed"
tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null) ||
	skip "no tag v...: there is no release to compare with"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
git archive "$tag" | tar x -C "$dir/src" || exit 1

# A variable for each function, struct and enum that programs see.
surface() { # $1: tree, $2: shared object
	(
		cd "$1" || exit 1
		headers='lib/abi/rtsan_abi.h lib/rtsan/rtsan.h lib/rtsan/rtsan_stream.h drivers/san/dpdk/rtsan_dpdk.h'
		{
			echo '#include "rtsan_stream.h"'
			echo '#include "rtsan_dpdk.h"'
			# shellcheck disable=SC2086
			/usr/bin/python3 devtools/gen-man.py --list $headers | sed 's/.*/__typeof__(&) *call_&;/'
			# shellcheck disable=SC2086
			sed -n 's/^\(struct\|enum\) \(rtsan_[a-z_]*\) {$/\1 \2 *object_\2;/p' $headers
		} >"$2.c"
		${CC:-cc} -g -shared -fPIC -Ilib/abi -Ilib/rtsan -Idrivers/san/dpdk -o "$2" "$2.c"
	)
}
surface "$dir/src" "$dir/old.so" && surface . "$dir/new.so" || exit 1
nb=$(grep -c '_rtsan_.*;$' "$dir/old.so.c")
echo "$tag and now: $nb functions and types"
[ "$nb" -ge 70 ] || exit 1
abidiff --no-added-syms --suppressions devtools/abi.suppr "$dir/old.so" "$dir/new.so"
