#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Version and commit of this tree. The number is in VERSION, the tag v0.2.0 says that it is released:
#   0.2.0 (COMMIT)              the commit with that tag
#   0.2.0+5.gCOMMIT (COMMIT)    five commits after it: newer for apt, and older than 0.2.1
#   0.2.0~900.gCOMMIT (COMMIT)  before it, with 900 commits so far; also a clone without the tag
#   0.2.0 (unknown)             neither a clone nor an archive of git
# .dirty follows a commit from which files differ.
#
# usage: version.sh             print it
#        version.sh IN OUT      copy IN to OUT with it instead of @BUILD@; an equal OUT stays as it is
set -eu
root=$(cd "$(dirname "$0")/.." && pwd -P)

# git archive writes "DESCRIPTION COMMIT" here, build-deb.sh the result.
archived='$Format:%(describe:tags=true,match=v*) %h$'

# Root may build the clone of another user, whose git refuses that otherwise.
ask() {
	git -C "$root" --no-optional-locks -c safe.directory='*' "$@" 2>/dev/null
}

release=$(cat "$root/VERSION")
dirty=
nb='~0'
case $archived in
*' ('*')')
	text=$archived
	;;
*Format*)
	commit=unknown
	# the tree of another project around an unpacked tarball says nothing
	if [ "$(ask rev-parse --show-toplevel)" = "$root" ] &&
		head=$(ask rev-parse --short=9 HEAD); then
		commit=$head
		tag=refs/tags/v$release
		if ask merge-base --is-ancestor "$tag" HEAD; then
			nb=+$(ask rev-list --count "$tag..HEAD")
		else
			nb=~$(ask rev-list --count HEAD)
		fi
		[ -z "$(ask status --porcelain -uno)" ] || dirty=.dirty
	fi
	;;
*)
	commit=${archived##* }
	case ${archived% *} in
	"v$release") nb=+0 ;;
	"v$release-"*-g*)
		nb=${archived#"v$release-"}
		nb=+${nb%%-*}
		;;
	esac
	;;
esac
if [ -z "${text:-}" ]; then
	text=$release
	[ "$commit" = unknown ] || [ "$nb$dirty" = +0 ] || text=$release$nb.g$commit$dirty
	text="$text ($commit)"
fi

if [ $# = 0 ]; then
	echo "$text"
else
	new=$(sed "s/@BUILD@/$text/" "$1")
	[ "$new" = "$(cat "$2" 2>/dev/null)" ] || printf '%s\n' "$new" >"$2"
fi
