# SPDX-License-Identifier: GPL-2.0-or-later
# The two commands to start with are `make demo` and `make check`; the build itself is meson's.

SHELL = /bin/bash
BUILD ?= build
CHECK_BUILD ?= build-check
SANITIZED_BUILD ?= build-sanitized
THREADS_BUILD ?= build-threads
DESTDIR ?=
BENCH_ARGUMENTS ?=

.PHONY: all demo bench check check-long install format lint clean packages

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

packages:
	@scripts/install-packages.sh build

# The comparison of directory allocators on a real file tree, in virtual time; and, where /dev/fuse
# is usable, the same through real mounts in wall time.
demo: packages
	@$(MAKE) --no-print-directory all
	@source=$$(scripts/fetch-source.sh $(BUILD)/source) && \
	$(BUILD)/tools/layoutfs bench orlov-2002 $${source:+--source "$$source"} $(BENCH_ARGUMENTS) \
	    $$([ -r /dev/fuse ] && [ -w /dev/fuse ] && echo --mount)

bench: all
	$(BUILD)/tools/layoutfs bench orlov-2002 $(BENCH_ARGUMENTS)

$(BUILD)/build.ninja:
	meson setup $(BUILD) -Dbuildtype=debugoptimized -Dtests=disabled

# Everything: warnings are errors; unit and integration tests; the unit tests and the bad-input
# tests again under the address and undefined-behaviour sanitizers, a busy mount under the thread
# sanitizer; lint. (In instrumented code the compiler warns of what is not there, so that there
# warnings are only warnings.)
check:
	@scripts/install-packages.sh check
	@[ -f $(CHECK_BUILD)/build.ninja ] || \
	    meson setup $(CHECK_BUILD) -Dwerror=true -Dtests=enabled -Dman=enabled
	@[ -f $(SANITIZED_BUILD)/build.ninja ] || \
	    meson setup $(SANITIZED_BUILD) -Dtests=enabled -Dman=disabled \
	        -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
	@[ -f $(THREADS_BUILD)/build.ninja ] || \
	    meson setup $(THREADS_BUILD) -Dtests=disabled -Dman=disabled \
	        -Db_sanitize=thread -Db_lundef=false -Doptimization=1
	ninja -C $(CHECK_BUILD)
	ninja -C $(SANITIZED_BUILD)
	ninja -C $(THREADS_BUILD)
	tests/run.sh --lint $(CHECK_BUILD) $(SANITIZED_BUILD) $(THREADS_BUILD)

# The same tests with more iterations: those that read LAYOUTFS_TEST_FACTOR do that many times more.
check-long:
	LAYOUTFS_TEST_FACTOR=20 LAYOUTFS_TEST_SECONDS=7200 $(MAKE) check

install: all
	DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild

format:
	find . -path './build*' -prune -o -name '*.[ch]' -exec clang-format -i {} +

lint: all
	@for tool in format tidy cppcheck shell; do \
	    scripts/lint.sh $$tool $(BUILD) || [ $$? -eq 77 ] || exit 1; \
	done

clean:
	rm -rf $(BUILD) $(CHECK_BUILD) $(SANITIZED_BUILD) $(THREADS_BUILD)
