#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages that deps.list has for the given purposes, or for all:
#   install-deps.sh [PURPOSE]...
# If none is missing it is silent and needs neither root nor network; else it prints a line every
# ten seconds.
set -eu

list=$(dirname "$0")/deps.list
purposes=$(awk '{ sub(/#.*/, ""); for (i = 2; i <= NF; i++) print $i }' "$list" |
	sort -u | tr '\n' ' ')
for purpose; do
	case " $purposes" in
	*" $purpose "*) ;;
	*)
		echo "install-deps.sh: no package is for \"$purpose\"; there are: $purposes" >&2
		exit 2
		;;
	esac
done

wanted=$(awk -v for_="${*:-check-all}" '
	BEGIN { n = split("build " for_, purposes); for (i = 1; i <= n; i++) is[purposes[i]] = 1 }
	{
		sub(/#.*/, "")
		for (i = 2; i <= NF; i++)
			if ($i in is || "check-all" in is) { print $1; break }
	}' "$list")
missing=
for package in $wanted; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "These packages are missing, and installing them needs root:$missing" >&2
	echo "Run as root: make deps${*:+ FOR=\"$*\"}" >&2
	exit 1
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# Tests start their own servers: installed ones must not start as services.
policy=/usr/sbin/policy-rc.d
made=
log=$(mktemp)
trap 'rm -f "$log"; [ -z "$made" ] || rm -f "$policy"' EXIT
if [ ! -e "$policy" ]; then
	made=yes
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
fi
apt() {
	sh "$(dirname "$0")/heartbeat.sh" "$log" apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}
apt update
# shellcheck disable=SC2086
apt -y install --no-install-recommends $missing
