#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Version and commit: what devtools/version.sh says of clones and archives, and of each program; for
# apt a newer build is newer. CHANGELOG.md, and the list of symbols for packages, belong to it.
set -u
cd "$SAN_SOURCE_DIR" || exit 1
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
release=$(cat VERSION)

fail() {
	echo "$*"
	failed=1
}

# ---- clones and archives ----
tree=$dir/tree
mkdir -p "$tree/devtools"
cp VERSION .gitattributes "$tree" 2>/dev/null || cp VERSION "$tree"
cp devtools/version.sh "$tree/devtools"
says() { # $1: of this tree, $2: an extended regular expression
	text=$(sh "$1/devtools/version.sh" 2>&1)
	[[ $text =~ ^$2$ ]] || fail "version.sh says \"$text\", not $2"
	echo "${text%% *}" >>"$dir/versions"
}
quiet_git() {
	git -C "$tree" -c user.name=t -c user.email=t@localhost -c init.defaultBranch=main \
		-c commit.gpgsign=false -c tag.gpgsign=false "$@" >>"$dir/log" 2>&1 ||
		fail "git $*: $(tail -n 3 "$dir/log")"
}
hash='[0-9a-f]{7,}'
number=${release//./\\.}
if grep -q '^archived=.\$Format' devtools/version.sh; then
	says "$tree" "$number \(unknown\)"
	quiet_git init
	says "$tree" "$number \(unknown\)"      # a tarball that is about to become a clone
	: >"$dir/versions"
	quiet_git add .
	quiet_git commit -m one
	says "$tree" "$number~1\.g($hash) \($hash\)"
	quiet_git commit --allow-empty -m two
	says "$tree" "$number~2\.g($hash) \($hash\)"
	echo >>"$tree/VERSION"
	says "$tree" "$number~2\.g$hash\.dirty \($hash\)"
	quiet_git checkout VERSION
	quiet_git tag "v$release"
	says "$tree" "$number \($hash\)"
	echo "$tree" >"$tree/untracked"
	touch "$tree/VERSION"
	[ "$(sh "$tree/devtools/version.sh")" = "$text" ] || fail "a file of another date makes it dirty"
	quiet_git archive -o "$dir/release.tar" HEAD
	for nb in $(seq 11); do
		quiet_git commit --allow-empty -m "$nb"
		[ "$nb" != 2 ] && [ "$nb" -lt 10 ] || says "$tree" "$number\+$nb\.g$hash \($hash\)"
	done
	echo >>"$tree/VERSION"
	says "$tree" "$number\+11\.g$hash\.dirty \($hash\)"
	quiet_git checkout VERSION
	quiet_git archive -o "$dir/later.tar" HEAD
	last=0.0
	for version in $(cat "$dir/versions") "${release%.*}.$((${release##*.} + 1))~1.gffffffff"; do
		dpkg --compare-versions "$last" lt "$version" || fail "for apt $version is not newer than $last"
		last=$version
	done
	dpkg --compare-versions "$(tail -n 1 "$dir/versions")" lt "${release%.*}.$((${release##*.} + 1))" ||
		fail "a commit after $release is as new as the next release"
	for name in release later; do
		mkdir "$dir/$name"
		tar x -C "$dir/$name" -f "$dir/$name.tar"
	done
	says "$dir/release" "$number \($hash\)"
	says "$dir/later" "$number\+11\.g$hash \($hash\)"
	# within the clone of another project
	mkdir -p "$tree/inside/devtools"
	cp VERSION "$tree/inside"
	cp devtools/version.sh "$tree/inside/devtools"
	says "$tree/inside" "$number \(unknown\)"
	git clone -q --depth 1 --no-tags "file://$tree" "$dir/shallow" 2>>"$dir/log"
	says "$dir/shallow" "$number~1\.g$hash \($hash\)"
else
	says . "$number.* \(.*\)"       # of the sources of a package
fi

# ---- programs ----
build=$SAN_BUILD_DIR
want=$("$build/apps/sanbench/sanbench" --version)
want=${want#sanbench }
[[ $want =~ ^$number([~+][0-9]+\.g[0-9a-f]+(\.dirty)?)?\ \(($hash|unknown)\)$ ]] || fail "sanbench: $want"
for program in apps/sansim/sansim apps/sansock/sansock apps/sanstack-daemon/sanstack-daemon; do
	text=$("$build/$program" --version)
	[ "$text" = "${program##*/} $want" ] || fail "$program: $text, but of sanbench $want"
done
text=$(/usr/bin/python3 "$build/usertools/sanctl" --version)
[ "$text" = "sanctl $want" ] || fail "sanctl: $text, but of sanbench $want"
text=$(usertools/sanctl --version)
[ "$text" = "sanctl $(sh devtools/version.sh)" ] || fail "usertools/sanctl: $text"

# One object has it: a commit compiles nothing else.
nb=$(grep -rlF --include='*.o' -e "$want" "$build/lib" "$build/apps" "$build/drivers" | grep -cv rtsan_build)
[ "$nb" = 0 ] || fail "$nb objects have the version"

# ---- changes, and symbols ----
grep -m 1 '^## ' CHANGELOG.md | grep -qE "^## $number \(([0-9]{4}-[0-9]{2}-[0-9]{2}|unreleased)\)$" ||
	fail "CHANGELOG.md does not begin with $release"
if command -v dpkg-gensymbols >/dev/null && [ "$SAN_SANITIZE" = 0 ]; then
	dpkg-gensymbols -c4 -q -plibrtsan0 -v"$release" -Idebian/librtsan0.symbols -O/dev/null \
		-e"$build/lib/rtsan/librtsan.so.0" -e"$build/drivers/san/dpdk/librtsan-dpdk.so" \
		-e"$build/drivers/san/unix/librtsan-unix.so" -e"$build/drivers/san/verbs/librtsan-verbs.so" ||
		fail "debian/librtsan0.symbols is not what the libraries have"
fi
exit $failed
