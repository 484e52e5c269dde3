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

check: build
	@tools/check --all

check-fast: build
	@tools/check --fast

check-asan: build
	@tools/check --asan

soak: build
	@tools/check --soak

demo: build
	@WITH=$(WITH) examples/demo/run

bench: build
	@bench/run

install: build
	meson install -C $(BUILD)/meson --no-rebuild --destdir "$(DESTDIR)"

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build
