/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test needs: cmocka with what it wants included first, and the seed of random tests. The seed is
 * fixed, so that a run can be repeated; REMUDA_TEST_SEED gives another one. It is printed first.
 */
#ifndef REMUDA_TESTS_TEST_H
#define REMUDA_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static inline uint64_t test_seed(void)
{
    const char *text = getenv("REMUDA_TEST_SEED");
    return text == NULL ? 20261201u : strtoull(text, NULL, 10);
}
#define TEST_SEED test_seed()

/* A number from the environment, for longer runs of the same test. */
static inline uint64_t test_count(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text == NULL ? usual : strtoull(text, NULL, 10);
}

#define test_run(name, tests)                                                            \
    (printf("%s: seed %llu\n", (name), (unsigned long long)test_seed()), fflush(stdout), \
     cmocka_run_group_tests_name((name), (tests), NULL, NULL))

#endif
