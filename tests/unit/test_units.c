/* SPDX-License-Identifier: Apache-2.0 */
/* base/units: what people write as sizes, durations, numbers and times, and what is refused. */
#include "base/units.h"
#include "test.h"

#include <errno.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof(a)[0])

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t mib;
    } good[] = {{"512", 512},      {"512M", 512},   {"8GiB", 8192}, {"8 gb", 8192},
                {"1.5T", 1572864}, {"1K", 1},       {"1024K", 1},   {"1025K", 2},
                {"0", 0},          {" 1 G ", 1024}, {"0.001G", 2},  {"1048576T", (uint64_t)1 << 40}};
    static const struct {
        const char *text;
        int rc;
    } bad[] = {{"", -EINVAL},         {"-1", -EINVAL},      {"8X", -EINVAL},
               {"8GiBs", -EINVAL},    {"nan", -EINVAL},     {"1e3", -EINVAL},
               {".5G", -EINVAL},      {"0.0001G", -EINVAL}, {"99999999999999999999", -EINVAL},
               {"1048577T", -ERANGE}, {"8 G G", -EINVAL},   {"0x10", -EINVAL},
               {"inf", -EINVAL}};
    for (size_t i = 0; i < LEN(good); i++) {
        uint64_t mib = 77;
        assert_int_equal(units_parse_mib(good[i].text, &mib, NULL), 0);
        assert_int_equal(mib, good[i].mib);
    }
    for (size_t i = 0; i < LEN(bad); i++) {
        uint64_t mib = 77;
        struct err e = {0};
        assert_int_equal(units_parse_mib(bad[i].text, &mib, &e), bad[i].rc);
        assert_int_equal(mib, 77);
        assert_non_null(strstr(e.text, bad[i].text));
    }
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"90", 90000},      {"250ms", 250},       {"2h30m", 9000000},     {"1d", 86400000}, {"1-12:00:00", 129600000},
        {"01:30", 90000},   {"1:00:00", 3600000}, {"1-06:00", 108000000}, {"0", 0},         {"1.5h", 5400000},
        {"2w", 1209600000}, {"1h 30m", 5400000}};
    static const char *const bad[] = {
        "", "-1", "1y", "1:60", "1:2:3:4", "1h30x", "nan", "36601d", "10m-", "1-", "99999999999999999999", "h"};
    for (size_t i = 0; i < LEN(good); i++) {
        int64_t ms = 77;
        assert_int_equal(units_parse_duration_ms(good[i].text, &ms, NULL), 0);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < LEN(bad); i++) {
        int64_t ms = 77;
        struct err e = {0};
        assert_true(units_parse_duration_ms(bad[i], &ms, &e) < 0);
        assert_int_equal(ms, 77);
        assert_true(e.text[0] != '\0');
    }
}

static void numbers(void **state)
{
    (void)state;
    int64_t value = 77;
    uint64_t milli = 77;
    assert_int_equal(units_parse_int("-12", -12, 5, &value, NULL), 0);
    assert_int_equal(value, -12);
    assert_int_equal(units_parse_int("6", -12, 5, &value, NULL), -ERANGE);
    assert_int_equal(units_parse_int("", -12, 5, &value, NULL), -EINVAL);
    assert_int_equal(units_parse_int("1 ", -12, 5, &value, NULL), -EINVAL);
    assert_int_equal(units_parse_int("+1", -12, 5, &value, NULL), -EINVAL);
    assert_int_equal(units_parse_int("9223372036854775808", INT64_MIN, INT64_MAX, &value, NULL), -EINVAL);
    assert_int_equal(value, -12);
    assert_int_equal(units_parse_milli("1.5", 4000, &milli, NULL), 0);
    assert_int_equal(milli, 1500);
    assert_int_equal(units_parse_milli("0.0010", 4000, &milli, NULL), 0);
    assert_int_equal(milli, 1);
    assert_int_equal(units_parse_milli("4.001", 4000, &milli, NULL), -ERANGE);
    assert_int_equal(units_parse_milli("1.0001", 4000, &milli, NULL), -EINVAL);
    assert_int_equal(units_parse_milli("1.", 4000, &milli, NULL), -EINVAL);
    assert_int_equal(units_parse_milli("-0", 4000, &milli, NULL), -EINVAL);
    assert_int_equal(milli, 1);
}

static void times(void **state)
{
    (void)state;
    char out[UNITS_TIME_SIZE];
    int64_t ms = 0;
    units_format_time(0, out);
    assert_string_equal(out, "1970-01-01T00:00:00.000Z");
    assert_int_equal(units_parse_time("2026-12-01T05:13:00.250Z", &ms, NULL), 0);
    assert_int_equal(ms, 1796101980250);
    units_format_time(ms, out);
    assert_string_equal(out, "2026-12-01T05:13:00.250Z");
    assert_int_equal(units_parse_time("2024-02-29T23:59:59Z", &ms, NULL), 0);
    assert_int_equal(ms, 1709251199000);
    units_format_time(INT64_MAX, out);
    assert_string_equal(out, "9999-12-31T23:59:59.999Z");
    static const char *const bad[] = {"-19-01-01T0:00:00Z",   "2026-02-29T00:00:00Z",     "2026-13-01T00:00:00Z",
                                      "2026-12-01T24:00:00Z", "2026-12-01T00:00:00",      "2026-12-01T00:00:00.1Z",
                                      "1969-12-31T00:00:00Z", "2026-12-01 00:00:00Z",     "2026-12-01T00:00:00ZZ",
                                      "2026-12-1T00:00:00Z",  "2026-12-01T00:00:00.+12Z", "",
                                      "2026-04-31T00:00:00Z"};
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(units_parse_time(bad[i], &ms, NULL), -EINVAL);
    /* Every day of 400 years and some of its milliseconds come back. */
    for (int64_t day = 0; day < 146097; day++) {
        int64_t at = day * 86400000 + day * 7919 % 86400000, again;
        units_format_time(at, out);
        assert_int_equal(units_parse_time(out, &again, NULL), 0);
        assert_int_equal(again, at);
    }
}

static void printed(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } durations_out[] = {{9000000, "2h30m"}, {45000, "45s"}, {273600000, "3d4h"},
                         {250, "250ms"},     {-5, "0ms"},    {60000, "1m"}};
    char out[32];
    for (size_t i = 0; i < LEN(durations_out); i++) {
        units_format_duration(durations_out[i].ms, out);
        assert_string_equal(out, durations_out[i].text);
    }
    units_format_mib(40960, out);
    assert_string_equal(out, "40 GiB");
    units_format_mib(512, out);
    assert_string_equal(out, "512 MiB");
    units_format_mib(1572864, out);
    assert_string_equal(out, "1.5 TiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes), cmocka_unit_test(durations), cmocka_unit_test(numbers),
        cmocka_unit_test(times), cmocka_unit_test(printed),
    };
    return test_run("units", tests);
}
