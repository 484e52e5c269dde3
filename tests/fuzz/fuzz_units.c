/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts: what is accepted is within bounds, and a time that was read is printed and read as the same. */
#include "base/mem.h"
#include "base/units.h"
#include "fuzz.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = mem_strndup((const char *)bytes, len);
    uint64_t unsigned_value;
    int64_t value, again;
    struct err e = {0};
    char out[UNITS_TIME_SIZE];
    if (text == NULL)
        return 0;
    if (units_parse_mib(text, &unsigned_value, &e) == 0)
        units_format_mib(unsigned_value, out);
    else
        assert(e.text[0] != '\0');
    if (units_parse_duration_ms(text, &value, &e) == 0) {
        assert(value >= 0 && value <= INT64_C(100) * 366 * 86400 * 1000);
        units_format_duration(value, out);
    }
    if (units_parse_int(text, -1000, 1000, &value, &e) == 0)
        assert(value >= -1000 && value <= 1000);
    if (units_parse_milli(text, 5000, &unsigned_value, &e) == 0)
        assert(unsigned_value <= 5000);
    if (units_parse_time(text, &value, &e) == 0) {
        units_format_time(value, out);
        assert(units_parse_time(out, &again, &e) == 0 && again == value);
    }
    mem_free(text);
    return 0;
}
