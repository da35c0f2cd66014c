#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages of deps.list that are missing. Silent and without need of
# root or network when none is.
set -eu

list=$(dirname "$0")/deps.list
missing=
for package in $(sed 's/#.*//' "$list"); do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "These packages are missing, and installing them needs root:$missing" >&2
	echo "Run as root: make deps" >&2
	exit 1
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# Tests start servers themselves: installed, none may begin to serve this machine.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
fi
apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null
# shellcheck disable=SC2086
apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $missing >/dev/null
