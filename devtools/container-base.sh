#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes an image of Debian 12 where no registry is reachable: container-base.sh FILE NAME
# FILE is its archive, made once; NAME is what Containerfile has as BASE. Podman's storage is that of
# the environment.
set -eu

podman image exists "$2" && exit 0
if [ ! -e "$1" ]; then
	mmdebstrap --variant=minbase --quiet bookworm "$1.new.tar"
	mv "$1.new.tar" "$1"
fi
podman import --quiet "$1" "$2"
