/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fuzz target is: one function that feeds bytes to a parser and checks what must hold whatever they are: no
 * crash, a text with every error, and that what was accepted stands when it is checked again. Targets are
 * fuzz_NAME.c, their corpora tests/fuzz/corpus/NAME.
 */
#ifndef REMUDA_TESTS_FUZZ_H
#define REMUDA_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The name that libFuzzer looks for. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
