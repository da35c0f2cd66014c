#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is installed is enough to build and to read: headers, libraries, pkg-config files, one
# manual page for each public call; programs are protected. (SYS-2, SYS-10)
set -u
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$SAN_SOURCE_DIR" || exit 1

fail() {
	echo "$*"
	failed=1
}

meson install -C "$SAN_BUILD_DIR" --no-rebuild --quiet --destdir "$dir/root" >"$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}

# ---- manual pages ----
man3=$(find "$dir/root" -type d -name man3)
calls=$(sed -n -e '/^RTSAN_PROVIDER/,/^}/d' -e 's/^[[:space:]]*\(rtsan_[a-z_]*\);$/\1/p' lib/rtsan/librtsan.map \
	drivers/san/dpdk/librtsan-dpdk.map | grep -v '^rtsan_provider_')
[ "$(echo "$calls" | wc -l)" -ge 39 ] || fail "only $(echo "$calls" | wc -l) public calls found"
for call in $calls; do
	page=$man3/$call.3
	if [ ! -s "$page" ]; then
		fail "$call has no manual page"
		continue
	fi
	grep -q "$call(" "$page" || fail "$page does not show how to call it"
	[ "$(sed -n '/^.SH DESCRIPTION/,/^.SH /p' "$page" | wc -l)" -ge 3 ] || fail "$page: empty"
done
for page in rtsan.7 rtsan-dpdk.7; do
	[ -n "$(find "$dir/root" -path "*man7/$page")" ] || fail "$page is not installed"
done

sanctl=$(find "$dir/root" -path '*bin/sanctl')
[ -n "$(find "$dir/root" -path '*man1/sanctl.1')" ] || fail "sanctl.1 is not installed"
"$sanctl" --help | grep -q 'usage: sanctl' || fail "sanctl is not installed, or does not run"
sansock=$(find "$dir/root" -path '*bin/sansock')
bench=$(find "$dir/root" -path '*bin/sanbench')

# ---- wherever it is installed, programs find libraries, and these the providers (SYS-10) ----
if [ "$SAN_SANITIZE" = 0 ]; then
	out=$(env -u LD_LIBRARY_PATH -u RTSAN_PROVIDER_PATH "$bench" --attach unix:/nosuch/daemon --server 2>&1)
	echo "$out" | grep -q 'unix:.*No such file' || fail "sanbench without paths of its own: $out"
	for file in $(find "$dir/root" -name 'librtsan*.so' -o -name libsanstack-fi.so -o -path '*bin/san*'); do
		! env -u LD_LIBRARY_PATH ldd "$file" | grep 'librtsan.*not found' || fail "$file needs a path"
	done
fi

# ---- completion in bash: commands, options, and the words that they take ----
completes() { # $1: what is offered for the last of the others
	want=$1
	shift
	# shellcheck disable=SC2016
	got=$(PATH=$(dirname "$sanctl"):$PATH bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
		_sanstack "$1" "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[*]}"' \
		"$(find "$dir/root" -path "*/bash-completion/completions/$1")" "$@")
	[ "$got" = "$want" ] || fail "completion of $*: \"$got\", not \"$want\""
}
completes 'conn conns' sanctl con
completes '--watch' sanctl conns --wa
completes 'start stop' sanctl -p x capture st
completes '' sanctl --config ''
completes 'pull push' sanbench --mode pu
completes 'topology.hosts=' sansim --set topology.ho
completes '--seconds --seed --series --set' sansim --se
completes 'check' sansock che
for page in man1/sansock.1 man5/sansock.conf.5 man7/sanstack-counters.7; do
	[ -n "$(find "$dir/root" -path "*$page")" ] || fail "$page is not installed"
done
"$sansock" check "$(find "$dir/root" -path '*/examples/config/sansock.conf')" ||
	fail "sansock is not installed, or its example is wrong"
for conf in config/*.conf; do
	[ -n "$(find "$dir/root" -path "*/doc/sanstack/examples/$conf")" ] || fail "$conf is not installed"
done

# ---- links of the documents ----
docs=$(dirname "$(find "$dir/root" -path '*/doc/sanstack/README.md')")
find "$docs" -name '*.md' | while read -r doc; do
	grep -oE '\]\([^):#]+' "$doc" | cut -c 3- | while read -r link; do
		[ -e "$(dirname "$doc")/$link" ] || echo "$(basename "$doc"): $link"
	done
done >"$dir/links"
[ ! -s "$dir/links" ] || fail "these links lead nowhere: $(tr '\n' ' ' <"$dir/links")"

# ---- what makes a fault in a program harder to use; sanitizers go without ----
protected() { # $1: a program or library, $2: symbols that it must use
	readelf -hldW "$1" >"$dir/elf"
	grep -q 'Type: *DYN' "$dir/elf" || fail "$1: at a fixed address"
	grep -q 'GNU_RELRO' "$dir/elf" || fail "$1: relocations stay writable"
	grep -qE '\(FLAGS_1\).*NOW|BIND_NOW' "$dir/elf" || fail "$1: functions are bound late"
	grep 'GNU_STACK' "$dir/elf" | grep -q 'RW ' || fail "$1: its stack can be executed"
	for symbol in $2; do
		readelf --dyn-syms -W "$1" | grep -qE " UND $symbol(@|$)" || fail "$1: no $symbol"
	done
}
if [ "$SAN_SANITIZE" = 0 ]; then
	nb=0
	for file in $(find "$dir/root" -type f -perm -u+x); do
		readelf -h "$file" >/dev/null 2>&1 || continue
		nb=$((nb + 1))
		case $file in
		*/sanstack-daemon | */sanbench) protected "$file" '__stack_chk_fail __[a-z_]*cpy_chk' ;;
		*) protected "$file" '' ;;
		esac
		[ "$(uname -m)" != x86_64 ] || objdump -d "$file" | grep -q endbr64 ||
			fail "$file: jumps may end anywhere"
	done
	[ $nb -ge 8 ] || fail "only $nb programs and libraries found"
fi

# ---- a program built from what is installed, shared and static ----
pc=$(dirname "$(find "$dir/root" -name librtsan.pc)")
[ -e "$pc/librtsan-dpdk.pc" ] || fail "librtsan-dpdk.pc is not installed"
sanitize=
[ "$SAN_SANITIZE" = 0 ] || sanitize=-fsanitize=address,undefined
export PKG_CONFIG_PATH=$pc PKG_CONFIG_SYSROOT_DIR=$dir/root
cflags=$(pkg-config --cflags librtsan) && libs=$(pkg-config --libs librtsan) || exit 1
# shellcheck disable=SC2086
{
	cc $sanitize -o "$dir/shared" $cflags examples/pingpong.c examples/ex.c $libs ||
		fail "does not build with the shared library"
	cc $sanitize -o "$dir/static" $cflags examples/pingpong.c examples/ex.c \
		"$(find "$dir/root" -name librtsan.a)" || fail "does not build with the static library"
	echo '#include <rtsan_dpdk.h>
	int main(void) { return rtsan_dpdk_impair(NULL, false, "drop=0.5"); }' |
		cc $sanitize -o "$dir/tool" $(pkg-config --cflags librtsan-dpdk) -x c - \
			-Wl,--allow-shlib-undefined $(pkg-config --libs librtsan-dpdk) ||
		fail "does not build with librtsan-dpdk"
}
root_lib=$(dirname "$(find "$dir/root" -name librtsan.so)")
for program in shared static; do
	out=$(LD_LIBRARY_PATH=$root_lib "$dir/$program" client "nosuch:x" 10.0.0.1 2>&1)
	[ $? = 1 ] && echo "$out" | grep -q librtsan-nosuch.so || fail "$program: $out"
done
LD_LIBRARY_PATH=$root_lib "$dir/tool" || fail "a program with librtsan-dpdk does not run"
[ $failed = 0 ] || exit 1

# ---- make install, as root, on a machine whose /usr/local and /etc are copies (SYS-10) ----
[ "$SAN_SANITIZE" = 0 ] && [ "$(id -u)" = 0 ] || exit 0
cat >"$dir/machine" <<'END'
set -eu
mount --make-rprivate / 2>/dev/null || :    # in a chroot it is no mount point
mount -t tmpfs upper "$1"
for at in /usr/local /etc; do
	mkdir -p "$1$at/upper" "$1$at/work"
	mount -t overlay overlay -o "lowerdir=$at,upperdir=$1$at/upper,workdir=$1$at/work" $at ||
		exit 42
done
find /usr/local ! -type d | sort >"$1/before"
unset LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR RTSAN_PROVIDER_PATH
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
run_make() {
	make -C "$SAN_SOURCE_DIR" -o build -o with-prefix "BUILD=$SAN_BUILD_DIR" "$2" >"$1/log" 2>&1 && return
	cat "$1/log"
	exit 1
}
run_make "$1" install
sanbench --version
sansock --version
sanctl --help >/dev/null
test -s /usr/local/share/man/man8/sanstack-daemon.8
test -s /usr/local/share/doc/sanstack/README.md
test -s /usr/local/share/sanstack/sanstack.lua
cd "$1"
# shellcheck disable=SC2046
cc -o pingpong /usr/local/share/doc/sanstack/examples/pingpong.c \
	/usr/local/share/doc/sanstack/examples/ex.c $(pkg-config --cflags --libs librtsan)
./pingpong client unix:/nosuch/daemon.sock 10.0.0.1 2>&1 | grep -q 'unix:.*No such file'
run_make "$1" uninstall
find /usr/local ! -type d | sort | diff "$1/before" -
END
mkdir "$dir/machine.d"
unshare --mount --propagation unchanged sh "$dir/machine" "$dir/machine.d"
case $? in
0) ;;
42) echo "make install, make uninstall: not tried, overlays can't be mounted here" ;;
*) fail "make install, make uninstall: not as on a fresh machine" ;;
esac
exit $failed
