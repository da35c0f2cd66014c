# SPDX-License-Identifier: BSD-3-Clause
# Thin front: everything is built by meson and tested by devtools/check.py.

BUILD ?= build
BUILD_ASAN ?= build-asan
PREFIX ?= /usr/local
# In front of what is silent for long; its log comes first.
HEARTBEAT_SH = sh $(CURDIR)/devtools/heartbeat.sh

.PHONY: all build tests with-tests with-prefix demo check check-all bench experiments soak \
	endurance check-verbs check-mutants install uninstall deb deps clean help
.NOTPARALLEL:

all: build

# Installs the packages that devtools/deps.list has for FOR, all of them without (needs root if one
# is missing). Every target begins with its own: deps-demo is make deps FOR=demo.
deps:
	@sh devtools/install-deps.sh $(FOR)
deps-%:
	@sh devtools/install-deps.sh $*

# The product. A folder that has the tests keeps them.
build: deps-build
	@test -f $(BUILD)/build.ninja || meson setup --werror --prefix $(PREFIX) -Dtests=false $(BUILD)
	@ninja -C $(BUILD)

# The product and the programs of the tests.
tests: deps-check with-tests
	@test -f $(BUILD)/build.ninja || meson setup --werror --prefix $(PREFIX) $(BUILD)
	@ninja -C $(BUILD)

# A folder of make build gets the tests; nothing is compiled twice.
with-tests:
	@test ! -f $(BUILD)/build.ninja || \
		grep -q '"name": "tests", "value": true' $(BUILD)/meson-info/intro-buildoptions.json || \
		meson configure -Dtests=true $(BUILD)

# Two processes on a memif link copy a file and exchange messages, on a clean link and on a bad one;
# then TCP of the kernel over a veth pair.
demo: deps-demo build
	@bash usertools/demo.sh $(BUILD)

# Plain and ASan+UBSan build and their tests, at most 15 minutes; the last line sums up.
check: deps-check with-tests
	@/usr/bin/python3 devtools/check.py --plain $(BUILD) --asan $(BUILD_ASAN)

# Every test in both builds, experiments, mutants: hours, without a limit. A run that was stopped goes on.
# SUITE=unit|model|sim|e2e|mutants|...: one of them. The result goes into doc/testing.md.
# DPDK_TREE="FOLDER...": unpacked releases of DPDK, against whose headers the sources must compile.
check-all: deps-check-all with-tests
	@/usr/bin/python3 devtools/check.py --all --suite "$(SUITE)" --plain $(BUILD) --asan $(BUILD_ASAN)

# This stack, the link and the kernel in turn, about thirty minutes; results in $(BUILD)/bench.
# BENCH=latency|rpc|push|bulk|counted|...: one figure or group. WRITE=1: into doc/ and README.md.
# PROFILE=1: instructions and cache misses per operation instead.
# BASE=commit: that commit and this tree in turn, or their instructions; fails if this one is slower
# (by more than WITHIN= percent).
bench: deps-bench build
	@ninja -C $(BUILD) bench-programs
	@/usr/bin/python3 test/bench/bench.py $(if $(BENCH),--only $(BENCH)) $(if $(WRITE),--write) \
		$(if $(PROFILE),--profile) $(if $(BASE),--base $(BASE)) $(if $(WITHIN),--within $(WITHIN)) \
		$(BUILD)

# The provider for RDMA devices, on Soft-RoCE in guests: two minutes.
# CASE=text: only cases with that in their names.
check-verbs: deps-check-verbs tests
	@SAN_BUILD_DIR=$(abspath $(BUILD)) SAN_CASE="$(CASE)" /usr/bin/python3 \
		devtools/check_one.py 900 test/verbs/test_verbs.py

# The transport in virtual time: tables and plots in $(BUILD)/experiments, two minutes.
# EXPERIMENT=loss|reorder|...: one of them. WRITE=1: into doc/experiments.md.
experiments: deps-experiments build
	@/usr/bin/python3 test/experiments/experiments.py $(if $(EXPERIMENT),--only $(EXPERIMENT)) \
		$(if $(WRITE),--write) $(BUILD)

# Random scenarios under every invariant for SECONDS_, from SEED (the date) on. What
# fails is made smaller, and left beside the log. Then stream sessions, two million operations.
SECONDS_ ?= 3600
SEED ?= $(shell date +%Y%m%d)000000
soak: tests
	@mkdir -p $(BUILD)/soak
	@echo "seeds from $(SEED) on, $(SECONDS_) s, log in $(BUILD)/soak/$(SEED).log"
	@cd $(BUILD)/soak && $(HEARTBEAT_SH) $(SEED).log $(abspath $(BUILD))/apps/sansim/sansim \
		--swarm 0 --seed $(SEED) --seconds $(SECONDS_) --shrink && tail -n 20 $(SEED).log
	@$(HEARTBEAT_SH) $(BUILD)/soak/stream.log $(BUILD)/test/property/prop_stream --runs 3000 && \
		tail -n 5 $(BUILD)/soak/stream.log

# kill -9 of programs and of daemons, ROUNDS times each, and crowds of them; ten minutes.
ROUNDS ?= 100
endurance: tests
	@SAN_BUILD_DIR=$(abspath $(BUILD)) LD_LIBRARY_PATH=$(abspath $(BUILD))/drivers/san/dpdk:$(abspath \
		$(BUILD))/lib/rtsan /usr/bin/python3 test/e2e/test_endurance.py $(ROUNDS)

# Breaks one mechanism at a time, as test/mutants.list says; the test named there must notice.
check-mutants: deps-check-all
	@/usr/bin/python3 devtools/check_mutants.py

# Into PREFIX, or below DESTDIR; root's installation is known to the loader at once.
install: with-prefix build
	@meson install -C $(BUILD) --no-rebuild
	@$(LDCONFIG)

# What the last make install of BUILD has put there.
uninstall:
	@ninja -C $(BUILD) uninstall
	@$(LDCONFIG)

# Debian packages of this tree, in $(BUILD)/deb.
deb: deps-deb
	@sh devtools/build-deb.sh $(BUILD)/deb

LDCONFIG = test -n "$(DESTDIR)" || test "$$(id -u)" != 0 || PATH="$$PATH:/sbin:/usr/sbin" ldconfig

# A folder that was made for another PREFIX than what is asked for gets that.
with-prefix:
	@test "$(origin PREFIX)" = file || test ! -f $(BUILD)/build.ninja || \
		meson configure --prefix $(PREFIX) $(BUILD)

help:
	@echo 'Targets, and what may be set:'
	@awk '/^# /{text = text "\n    " substr($$0, 3); next} \
		/^[a-z][a-z-]*:/ && !/^with-/{split($$1, name, ":"); if (text != "") print "  " name[1] text} \
		!/^[A-Z_]+ \?=/{text = ""}' Makefile

clean:
	rm -rf $(BUILD) $(BUILD_ASAN)
