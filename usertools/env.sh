# SPDX-License-Identifier: BSD-3-Clause
# To use the programs of a build folder, SAN_BUILD_DIR or build, as if they were installed:
# . usertools/env.sh. It takes no argument: in a script "$1" is that of the script.

san_build=${SAN_BUILD_DIR:-build}
san_build=$(cd "$san_build" && pwd) || echo "$san_build: make build makes it" >&2
for san_at in examples usertools apps/sansock apps/sansim apps/sanbench apps/sanstack-daemon; do
	PATH=$san_build/$san_at:$PATH
done
PATH=$PWD/usertools:$PATH
LD_LIBRARY_PATH=$san_build/lib/rtsan:$san_build/drivers/san/dpdk${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
RTSAN_PROVIDER_PATH=$san_build/drivers/san/dpdk:$san_build/drivers/san/unix:$san_build/drivers/san/verbs
FI_PROVIDER_PATH=$san_build/drivers/ofi
export PATH LD_LIBRARY_PATH RTSAN_PROVIDER_PATH FI_PROVIDER_PATH
