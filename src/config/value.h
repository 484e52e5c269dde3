/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars of JSON as the text a person would have written, so that one parser serves numbers and strings. */
#ifndef REMUDA_CONFIG_VALUE_H
#define REMUDA_CONFIG_VALUE_H

#include "base/err.h"

#include <jansson.h>

#define VALUE_SIZE 512

/*
 * Writes a string, an integer or a real of up to VALUE_SIZE - 1 bytes to `out`. -EINVAL for booleans, null, lists,
 * objects and longer strings; the text says what stood there ("true", "a list") and that `what` is expected.
 */
int value_text(const json_t *v, const char *what, char out[VALUE_SIZE], struct err *e);
/* "a list", "null", "text", for messages. */
const char *value_kind(const json_t *v);

#endif
