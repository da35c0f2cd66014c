#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The protocol libraries do no I/O, read no clock, start no thread, generate no random numbers and
# use no floating point. (ARCH-1, RULE-18)
#
# usage: check-core.sh ARCHIVE...     the static libraries of wire up to core
set -u
cd "$(dirname "$0")/.." || exit 1

failed=0
refuse() {
	echo "$1"
	failed=1
}

folders='lib/wire_stream lib/wire lib/inet lib/pdl lib/cm lib/tl lib/ulp lib/stream lib/core'
headers='rte_ethdev|rte_cycles|time|sys/time|sys/timerfd|unistd|pthread|threads|poll|fcntl|sys/socket|sys/epoll|sys/mman|sys/random|bsd/stdlib'
# shellcheck disable=SC2086
found=$(grep -rnE --include='*.[ch]' "^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*[<\"]($headers)\.h[>\"]" $folders)
[ -z "$found" ] || refuse "header of I/O, clock or thread:
$found"

found=$(grep -rnE --include='*.[ch]' '^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"[^"]*/' lib)
[ -z "$found" ] || refuse "include by path, which gets around the layers:
$found"

# Inline clocks of DPDK or of the compiler have no symbol.
inline='rte_rdtsc[a-z_]*|rte_get_(tsc|timer)_(cycles|hz)|rte_delay_[a-z_]+|__rdtscp?|__builtin_ia32_rdtscp?|rte_rand[a-z_]*'
# shellcheck disable=SC2086
found=$(grep -rnwE --include='*.[ch]' "($inline)" $folders)
[ -z "$found" ] || refuse "inline clock or randomness:
$found"

for file in $(find lib/base $folders -name '*.[ch]' | sort); do
	# Comments may say "double"; the preprocessor takes them out.
	found=$(${CC:-cc} -fpreprocessed -dD -E -P -x c "$file" 2>/dev/null |
		sed 's/"[^"]*"//g' | grep -nwE 'float|double')
	[ -z "$found" ] || refuse "$file: floating point: $found"
done

symbols='rte_eth_.*|rte_get_(tsc|timer)_.*|rte_delay_.*|rte_rand.*|pthread_.*|thrd_.*'
symbols="$symbols|clock_gettime|gettimeofday|time|times|nanosleep|clock_nanosleep|usleep|sleep"
symbols="$symbols|open|openat|fopen|read|write|pread|pwrite|close|ioctl|mmap|socket|bind|connect|accept"
symbols="$symbols|send|sendto|sendmsg|recv|recvfrom|recvmsg|select|poll|epoll_.*|eventfd|fork|system"
symbols="$symbols|printf|puts|putchar|exit|_exit|rand|random|rand_r|drand48|getrandom|getentropy|arc4random.*|randombytes.*"
for archive in "$@"; do
	found=$(nm -u "$archive" 2>/dev/null | awk '$1 == "U" {print $2}' | sort -u | grep -xE "$symbols")
	[ -z "$found" ] || refuse "$archive: uses $(echo "$found" | tr '\n' ' ')"
done
exit $failed
