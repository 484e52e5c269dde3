/* SPDX-License-Identifier: Apache-2.0 */
#include "config/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *value_kind(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "a mapping";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        break;
    }
    return "nothing";
}

int value_text(const json_t *v, const char *what, char out[VALUE_SIZE], struct err *e)
{
    if (json_is_string(v)) {
        size_t len = json_string_length(v);
        if (len >= VALUE_SIZE)
            return err_set(e, -EINVAL, "text of %zu bytes is not allowed; %s is", len, what);
        if (memchr(json_string_value(v), '\0', len) != NULL)
            return err_set(e, -EINVAL, "text with a NUL character is not allowed; %s is", what);
        memcpy(out, json_string_value(v), len + 1);
        return 0;
    }
    if (json_is_integer(v)) {
        (void)snprintf(out, VALUE_SIZE, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return 0;
    }
    if (json_is_real(v)) {
        (void)snprintf(out, VALUE_SIZE, "%.15g", json_real_value(v));
        return 0;
    }
    return err_set(e, -EINVAL, "%s is not allowed; %s is", value_kind(v), what);
}
