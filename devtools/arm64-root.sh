#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Unpacks the arm64 libraries that the build needs into a folder: arm64-root.sh FOLDER
# They are not installed: some packages of DPDK exclude those of another architecture. deps.list has
# their names. apt has its own lists there, so neither root nor the machine's state is involved.
set -eu

mkdir -p "$1"
root=$(cd "$1" && pwd)
list=$(dirname "$0")/deps.list
packages=$(awk '{ sub(/#.*/, "") } $1 ~ /^lib.*-dev$/ && /build|libcmocka/ { print $1 }' "$list")
if [ -e "$root/packages" ] && [ "$packages" = "$(cat "$root/packages")" ]; then
	exit 0
fi
mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial"
: >"$root/apt/status"
apt() {
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
		-o Dir::State="$root/apt" -o Dir::State::status="$root/apt/status" \
		-o Dir::Cache="$root/apt" -o Debug::NoLocking=1 "$@"
}
apt update
# shellcheck disable=SC2086
apt -y --download-only --no-install-recommends install $packages
for deb in "$root"/apt/archives/*.deb; do
	dpkg-deb -x "$deb" "$root"
done
printf "[constants]\nroot = '%s'\n" "$root" >"$root/root.ini"
rm -rf "$root/apt"
echo "$packages" >"$root/packages"
