#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages build and lintian finds no error in them. Installed, they work without an
# environment variable; an upgrade leaves the daemon alone; purged, they leave nothing. (SYS-10)
set -u
cd "$SAN_SOURCE_DIR" || exit 1
for tool in dpkg-buildpackage dh lintian; do
	command -v $tool >/dev/null || {
		echo "$tool is not installed"
		exit 77
	}
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

sh devtools/build-deb.sh "$dir/deb" || exit 1
lintian --allow-root --fail-on error "$dir"/deb/*.changes || {
	echo "lintian finds errors"
	exit 1
}
[ "$(id -u)" = 0 ] || {
	echo "installing needs root"
	exit 77
}

# ---- on a machine that is a copy of this one ----
mkdir "$dir/copy" "$dir/root"
cat >"$dir/machine" <<'END'
set -eu
mount --make-rprivate / 2>/dev/null || :    # in a chroot it is no mount point
mount -t tmpfs copy "$1/copy"
mkdir "$1/copy/upper" "$1/copy/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/copy/upper,workdir=$1/copy/work" "$1/root" ||
	exit 42
mount -t proc proc "$1/root/proc"
mount --rbind /sys "$1/root/sys"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs -o mode=755 run "$1/root/run"
mount -t tmpfs -o mode=1777 tmp "$1/root/tmp"
cp "$1/inside" "$1"/deb/*.deb "$1/root/tmp"
ip link set lo up
exec chroot "$1/root" env -i HOME=/root DEBIAN_FRONTEND=noninteractive \
	PATH=/tmp/fakes:/usr/sbin:/usr/bin:/sbin:/bin sh /tmp/inside "$2"
END
cat >"$dir/inside" <<'END'
set -eu
cd /tmp
rm -f ./*-dbgsym_*
fail() {
	echo "$*"
	exit 1
}
quietly() {
	"$@" >log 2>&1 || fail "$*: $(cat log)"
}
files() {
	find /etc /usr /var/lib/systemd | sort
}

# ---- a system manager that only writes down what it is asked for ----
mkdir -p fakes /run/systemd/system
for name in systemctl deb-systemd-invoke; do
	printf '#!/bin/sh\necho %s "$@" >>/tmp/asked\n' $name >fakes/$name
	chmod +x fakes/$name
done

files >before
quietly dpkg -i ./*.deb
[ "$(cat asked)" = 'systemctl --system daemon-reload' ] || fail "at installation: $(cat asked)"
[ ! -e /etc/systemd/system/multi-user.target.wants/sanstack-daemon.service ] || fail "it is enabled"

id sanstack >log && getent group san >>log || fail "no user sanstack, or no group san"
[ -d /run/sanstack ] || fail "there is no /run/sanstack"

# ---- programs, pages, development ----
for name in sanbench sanctl sansim sanstack-daemon sansock; do
	[ "$($name --version)" = "$name $1" ] || fail "$name: $($name --version), not $1"
done
case $(dpkg-query -W -f '${Version}' sanstack) in
"${1%% *}" | "${1%% *}".2*) ;;
*) fail "the package is $(dpkg-query -W -f '${Version}' sanstack), not ${1%% *}" ;;
esac
sansock check /usr/share/doc/sanstack/examples/config/sansock.conf
LD_PRELOAD=libsansock.so true 2>log
[ ! -s log ] || fail "libsansock.so: $(cat log)"
sansock run true
sanverbs run true
for page in man1/sanctl.1 man1/sansock.1 man3/rtsan_open.3 man5/sanstack.conf.5 man7/rtsan.7 \
	man7/rtsan-dpdk.7 man7/sanstack-counters.7 man8/sanstack-daemon.8; do
	[ -s /usr/share/man/$page.gz ] || fail "there is no page $page"
done
[ -s /usr/share/sanstack/sanstack.lua ] && [ -s /usr/share/doc/sanstack/doc/wire.md ]
cat >program.c <<EOF
#include <stdio.h>
#include <rtsan.h>

int
main(int argc, char **argv)
{
	struct rtsan_ctx *ctx;
	struct rtsan_mr *mr;

	if (argc != 2 || rtsan_open(argv[1], &ctx) != 0 ||
	    rtsan_mr_alloc(ctx, 65536, RTSAN_REMOTE_PUSH, &mr) != 0) {
		fprintf(stderr, "%s\n", rtsan_error());
		return 1;
	}
	printf("%s has memory\n", argv[1]);
	rtsan_mr_dereg(mr);
	rtsan_close(ctx);
	return 0;
}
EOF
flags=$(pkg-config --cflags --libs librtsan)
# shellcheck disable=SC2086
{
	cc -Wall -Werror -o program program.c $flags
	cd /usr/share/doc/sanstack/examples
	cc -o /tmp/pingpong pingpong.c ex.c $flags
	cd /tmp
}
./program 'dpdk:--lcores=0@0 --no-pci --no-huge -m 256 --vdev=net_null0 -- ip=10.0.0.1/24' |
	grep 'has memory'
./program verbs:none 2>&1 | grep -v 'provider "verbs"'

# ---- the service ----
if command -v systemd-analyze >/dev/null; then
	quietly systemd-analyze verify --man=no sanstack-daemon.service sanstack-daemon@new.service
	! grep sanstack log || fail "the units: $(cat log)"
fi
sanstack-daemon --check-config

sanstack-daemon >daemon.log 2>&1 &
daemon=$!
until grep 'ready on' daemon.log; do
	kill -0 $daemon 2>/dev/null || fail "the daemon: $(cat daemon.log)"
	sleep 0.1
done
grep -qx 'user = sanstack' /usr/share/doc/sanstack/examples/config/af-packet.conf ||
	fail "an example for the service stays root"
work() {
	[ "$(stat -c %U /proc/$daemon)" = sanstack ] || fail "the daemon is $(stat -c %U /proc/$daemon)"
	./pingpong -w server unix:/run/sanstack/sanstack.sock >server.log 2>&1 &
	./pingpong -w client unix:/run/sanstack/sanstack.sock 10.0.0.1 100
	wait $!
	sanctl apps >/dev/null
}
./program unix:/run/sanstack/sanstack.sock
work

# ---- again, as an upgrade: nobody may be asked to stop or start the daemon ----
rm asked
quietly dpkg -i ./*.deb
[ "$(cat asked)" = 'systemctl --system daemon-reload' ] || fail "at an upgrade: $(cat asked)"
work
kill $daemon
wait $daemon

# ---- and away ----
rm asked
names='sanstack sanstack-doc librtsan-dev libsansock libsanverbs libsanstack-fi librtsan0'
# shellcheck disable=SC2086
{
	quietly dpkg --remove $names
	grep -q '^deb-systemd-invoke stop sanstack-daemon.service sanstack-daemon@' asked ||
		fail "when it is removed: $(cat asked)"
	[ -e /etc/sanstack/sanstack.conf ] || fail "removal takes the configuration away"
	quietly dpkg --purge $names
}
files | diff before - || fail "it is not as before"
END
version=$(sh devtools/version.sh)
unshare --mount --propagation unchanged --net --pid --fork --kill-child sh "$dir/machine" "$dir" "$version"
status=$?
[ $status != 42 ] || {
	echo "overlays can't be mounted here"
	exit 77
}
exit $status
