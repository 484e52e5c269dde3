# SPDX-License-Identifier: Apache-2.0
# The words people expect, over meson and ninja. Everything runnable ends up under build/bin and build/lib.
BUILD  ?= build
JOBS   ?= $(shell nproc)
WITH   ?=

.PHONY: all deps build check check-fast check-asan soak demo bench install clean format

all: build

deps:
	@tools/deps build

build: deps
	@tools/build $(BUILD)

# These build by themselves, so that a tree that does not compile is a failed test too.
check: deps
	@BUILD=$(BUILD) tools/check --all

check-fast: deps
	@BUILD=$(BUILD) tools/check --fast

check-asan: deps
	@BUILD=$(BUILD) tools/check --asan

soak: deps
	@BUILD=$(BUILD) tools/check --soak

demo: build
	@BUILD=$(BUILD) WITH=$(WITH) examples/demo/run

bench: build
	@BUILD=$(BUILD) bench/run

install: build
	meson install -C $(BUILD)/meson --no-rebuild --destdir "$(DESTDIR)"

format:
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

clean:
	rm -rf $(BUILD)
