#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# One side of the demo in containers, by the daemon whose socket is mounted: a file by pushes and by
# sends, messages, a stream. The programs compare what returns; the copies are as their SHA-256 says.
set -eu
socket=/run/sanstack/sanstack.sock
spec=unix:$socket
cd /tmp
for _ in $(seq 300); do
	[ ! -S $socket ] || break
	sleep 0.1
done

case $1 in
server)
	for way in push send; do
		filecopy server $spec copy
		echo "copy by $way: $(sha256sum <copy)"
	done
	pingpong -w server $spec
	stream server $spec
	;;
client)
	head -c 32M /dev/urandom >file
	echo "file: $(sha256sum <file)"
	filecopy client $spec 10.0.0.1 file push
	filecopy client $spec 10.0.0.1 file send
	pingpong -w client $spec 10.0.0.1
	stream client $spec 10.0.0.1 16
	;;
esac
echo "$1: OK"
