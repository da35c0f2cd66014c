#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages of this tree in a folder, from a copy, so that the sources stay clean:
#   build-deb.sh FOLDER
# The version is that of version.sh, changes are those of CHANGELOG.md, and the build dependencies are
# in deps.list.
set -eu

out=$1
cd "$(dirname "$0")/.."
mkdir -p "$out"
out=$(cd "$out" && pwd)
mail='maintainers@sanstack.invalid'
author="The sanstack authors <$mail>"

build=$(sh devtools/version.sh)
version=${build%% *}
# Each build of a changed tree is newer than the last.
case $version in
*.dirty) version=$version.$(date -u +%Y%m%d%H%M%S) ;;
esac
depends=$(awk '{ sub(/#.*/, ""); for (i = 2; i <= NF; i++) if ($i == "build") print $1 }' \
	devtools/deps.list | paste -s -d , | sed 's/,/, /g')
# Reproducible: the date is that of the commit, if there is one.
date=$(git log -1 --format=%cD 2>/dev/null) || date=$(date -R -r VERSION)

# "## 0.2.0 (2026-11-29)" and its items; the first ones are those of this build.
changes() (
	while IFS= read -r line; do
		case $line in
		'## '*)
			[ -z "${entry:-}" ] || printf '\n -- %s  %s\n\n' "$author" "$date"
			if [ -n "${entry:-}" ]; then
				version=${line#'## '}
				version=${version%% *}
				date=${line##*\(}
				date=$(date -R -u -d "${date%\)}")
			fi
			entry=yes
			printf 'sanstack (%s) unstable; urgency=medium\n' "$version"
			;;
		'### '*) printf '\n  [ %s ]\n' "${line#'### '}" ;;
		'- '*) echo "  * ${line#- }" ;;
		'  '*) echo "  $line" ;;
		esac
	done <CHANGELOG.md
	printf '\n -- %s  %s\n' "$author" "$date"
)

rm -rf "$out/sanstack" "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mkdir "$out/sanstack"
cp -a CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md VERSION apps bindings config debian devtools doc drivers \
	examples lib meson.build meson_options.txt test usertools "$out/sanstack"
cd "$out/sanstack"
sed "s/@mail@/$mail/; s/@build-depends@/$depends/" debian/control.in >debian/control
sed -i "s|^archived=.*|archived='$build'|" devtools/version.sh
changes >debian/changelog

echo "Building the Debian packages of sanstack $version, minutes, log in $out/log"
# -b: binary packages only. -d: skip the check of dependencies. make deb has installed those of
# deps.list, and the C++ compiler of build-essential, which dpkg requires, is not needed.
if ! sh devtools/heartbeat.sh "$out/log" dpkg-buildpackage -b -d -us -uc; then
	echo "make deb failed: all of it is in $out/log" >&2
	exit 1
fi
rm -rf "$out/sanstack"
echo "They are there:"
ls -1 "$out"/*.deb
