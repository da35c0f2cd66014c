#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages of this tree in a folder, from a copy, so that the sources stay clean:
#   build-deb.sh FOLDER
# Fills in the version from meson.build, and the build dependencies from deps.list.
set -eu

out=$1
cd "$(dirname "$0")/.."
mkdir -p "$out"
out=$(cd "$out" && pwd)
mail='maintainers@sanstack.invalid'

version=$(sed -n "s/^    version: '\(.*\)',$/\1/p" meson.build)
depends=$(awk '{ sub(/#.*/, ""); for (i = 2; i <= NF; i++) if ($i == "build") print $1 }' \
	devtools/deps.list | paste -s -d , | sed 's/,/, /g')
# Reproducible: the date is that of the commit, if there is one.
date=$(git log -1 --format=%cD 2>/dev/null) || date=$(date -R -r meson.build)

rm -rf "$out/sanstack" "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mkdir "$out/sanstack"
cp -a CONTRIBUTING.md LICENSE Makefile README.md apps config debian devtools doc drivers examples lib meson.build \
	meson_options.txt test usertools "$out/sanstack"
cd "$out/sanstack"
sed "s/@mail@/$mail/; s/@build-depends@/$depends/" debian/control.in >debian/control
cat >debian/changelog <<EOF
sanstack ($version) unstable; urgency=medium

  * This version; the history of its sources has what is new.

 -- The sanstack authors <$mail>  $date
EOF

echo "Building the Debian packages of sanstack $version, log in $out/log"
# -b: binary packages only. -d: skip the check of dependencies. make deb has installed those of
# deps.list, and the C++ compiler of build-essential, which dpkg requires, is not needed.
if ! dpkg-buildpackage -b -d -us -uc >"$out/log" 2>&1; then
	tail -n 40 "$out/log"
	echo "make deb failed: all of it is in $out/log" >&2
	exit 1
fi
rm -rf "$out/sanstack"
echo "They are there:"
ls -1 "$out"/*.deb
