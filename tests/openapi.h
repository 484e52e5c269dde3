/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds what the server answers against api/openapi.yaml: the part of JSON Schema that the document
 * uses. Every reply that a test gets through tests/daemon.h passes here.
 */
#ifndef REMUDA_TESTS_OPENAPI_H
#define REMUDA_TESTS_OPENAPI_H

#include <jansson.h>

/* The document; loaded once. Borrowed. */
const json_t *openapi_document(void);
/* Fails the test when the document does not allow this answer to this call. `json` may be NULL (no
 * JSON body). */
void openapi_check_reply(const char *method, const char *path, int status, const json_t *json);

#endif
