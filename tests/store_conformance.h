/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test that every store passes (src/store/store.h). A store's own test gives a function that
 * opens the same store again and again, and puts the cases into its list with
 * STORE_CONFORMANCE_TESTS.
 */
#ifndef REMUDA_TESTS_STORE_CONFORMANCE_H
#define REMUDA_TESTS_STORE_CONFORMANCE_H

#include "store/store.h"

#include <stdbool.h>

/* Given by the test program. `fresh`: an empty store; otherwise the one that was open before. Fails
 * the test itself. */
struct store *conformance_open(bool fresh);

void conformance_empty(void **state);
void conformance_append_and_read(void **state);
void conformance_read_by_job(void **state);
void conformance_refuses_gaps(void **state);
void conformance_odd_bodies(void **state);
void conformance_callback_stops(void **state);
void conformance_snapshot(void **state);
void conformance_reopen(void **state);

#define STORE_CONFORMANCE_TESTS                                                                 \
    cmocka_unit_test(conformance_empty), cmocka_unit_test(conformance_append_and_read),         \
        cmocka_unit_test(conformance_read_by_job), cmocka_unit_test(conformance_refuses_gaps),  \
        cmocka_unit_test(conformance_odd_bodies), cmocka_unit_test(conformance_callback_stops), \
        cmocka_unit_test(conformance_snapshot), cmocka_unit_test(conformance_reopen)

#endif
