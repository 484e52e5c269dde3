/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e == NULL)
        return code;
    e->code = code;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
    return code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    if (e == NULL)
        return -1;
    char whole[2 * sizeof e->text];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(whole, sizeof e->text, fmt, args);
    va_end(args);
    size_t at = len < 0 ? 0 : (size_t)len < sizeof e->text ? (size_t)len : sizeof e->text - 1;
    memcpy(whole + at, ": ", 2);
    memcpy(whole + at + 2, e->text, sizeof e->text - 2);
    memcpy(e->text, whole, sizeof e->text - 1);
    e->text[sizeof e->text - 1] = '\0';
    return e->code;
}
