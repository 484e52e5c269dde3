/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* Reads digits at *p into *value; false when there are none or they do not fit. */
static bool read_digits(const char **p, uint64_t *value)
{
    const char *at = *p;
    uint64_t sum = 0;
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(sum, 10u, &sum) || __builtin_add_overflow(sum, (uint64_t)(*at - '0'), &sum))
            return false;
    if (at == *p)
        return false;
    *p = at;
    *value = sum;
    return true;
}

/* Reads "123.456" in thousandths; more than three decimals are refused. */
static bool read_milli(const char **p, uint64_t *milli)
{
    uint64_t whole;
    if (!read_digits(p, &whole) || whole > UINT64_MAX / 1000 - 1)
        return false;
    uint64_t sum = whole * 1000;
    if (**p == '.') {
        (*p)++;
        uint64_t place = 100;
        if (!isdigit((unsigned char)**p))
            return false;
        for (; isdigit((unsigned char)**p); (*p)++, place /= 10) {
            if (place == 0 && **p != '0')
                return false;
            sum += place * (uint64_t)(**p - '0');
        }
    }
    *milli = sum;
    return true;
}

int units_parse_mib(const char *text, uint64_t *ret_mib, struct err *e)
{
    static const char allowed[] = "allowed: a number with K, M, G or T, e.g. \"512M\" or \"8 GiB\"";
    const char *p = skip_space(text);
    uint64_t milli;
    if (!read_milli(&p, &milli))
        return err_set(e, -EINVAL, "\"%.60s\" is not a size; %s", text, allowed);
    p = skip_space(p);
    /* bytes per unit, as a power of two */
    unsigned shift = 20;
    if (*p != '\0') {
        const char *units = "KMGT";
        const char *unit = strchr(units, toupper((unsigned char)*p));
        if (unit == NULL)
            return err_set(e, -EINVAL, "\"%.60s\" has an unknown unit; %s", text, allowed);
        shift = 10 * (unsigned)(unit - units + 1);
        p++;
        if (*p == 'i')
            p++;
        if (*p == 'B' || *p == 'b')
            p++;
    }
    if (*skip_space(p) != '\0')
        return err_set(e, -EINVAL, "\"%.60s\" has an unknown unit; %s", text, allowed);
    unsigned __int128 bytes = ((unsigned __int128)milli << shift) / 1000;
    unsigned __int128 mib = (bytes + (1u << 20) - 1) >> 20;
    if (mib > (uint64_t)1 << 40)
        return err_set(e, -ERANGE, "\"%.60s\" is too large; at most 1 EiB is allowed", text);
    *ret_mib = (uint64_t)mib;
    return 0;
}

#define DURATION_MAX_MS ((uint64_t)100 * 366 * 86400 * 1000)

/* "MM:SS", "HH:MM:SS" or "D-HH:MM:SS"; false when the text has another form. */
static bool clock_form(const char *text, uint64_t *ret_ms)
{
    const char *p = text;
    uint64_t days = 0;
    uint64_t parts[3];
    unsigned count = 0;
    uint64_t value;
    if (!read_digits(&p, &value))
        return false;
    if (*p == '-') {
        days = value;
        p++;
        if (!read_digits(&p, &value))
            return false;
    }
    parts[count++] = value;
    while (*p == ':' && count < 3) {
        p++;
        if (!read_digits(&p, &value) || value > 59)
            return false;
        parts[count++] = value;
    }
    if (*p != '\0' || count < 2 || days > 100000 || parts[0] > 10000000)
        return false;
    uint64_t seconds = 0;
    for (unsigned i = 0; i < count; i++)
        seconds = seconds * 60 + parts[i];
    if (count == 2 && strchr(text, '-') != NULL)
        seconds *= 60; /* "D-HH:MM" */
    *ret_ms = (days * 86400 + seconds) * 1000;
    return true;
}

static uint64_t duration_unit_ms(const char **p)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {"w", 604800000}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t len = strlen(units[i].name);
        if (strncmp(*p, units[i].name, len) == 0 && !isalpha((unsigned char)(*p)[len])) {
            *p += len;
            return units[i].ms;
        }
    }
    return 0;
}

int units_parse_duration_ms(const char *text, int64_t *ret_ms, struct err *e)
{
    static const char allowed[] = "allowed: e.g. \"90s\", \"2h30m\", \"1d\", \"HH:MM:SS\", \"D-HH:MM:SS\"";
    uint64_t total = 0;
    const char *p = skip_space(text);
    if (!clock_form(p, &total)) {
        do {
            uint64_t milli;
            if (!read_milli(&p, &milli))
                return err_set(e, -EINVAL, "\"%.60s\" is not a duration; %s", text, allowed);
            p = skip_space(p);
            uint64_t unit = *p == '\0' ? 1000 : duration_unit_ms(&p);
            if (unit == 0)
                return err_set(e, -EINVAL, "\"%.60s\" has an unknown unit; %s", text, allowed);
            unsigned __int128 sum = total + (unsigned __int128)milli * unit / 1000;
            if (sum > DURATION_MAX_MS)
                return err_set(e, -ERANGE, "\"%.60s\" is too long; at most 100 years are allowed", text);
            total = (uint64_t)sum;
            p = skip_space(p);
        } while (*p != '\0');
    }
    if (total > DURATION_MAX_MS)
        return err_set(e, -ERANGE, "\"%.60s\" is too long; at most 100 years are allowed", text);
    *ret_ms = (int64_t)total;
    return 0;
}

int units_parse_int(const char *text, int64_t low, int64_t high, int64_t *ret, struct err *e)
{
    const char *p = text;
    bool negative = *p == '-';
    if (negative)
        p++;
    uint64_t value;
    bool ok = read_digits(&p, &value) && *p == '\0' && value <= INT64_MAX;
    if (!ok)
        return err_set(e, -EINVAL, "\"%.60s\" is not a whole number; allowed: %lld..%lld", text, (long long)low,
                       (long long)high);
    int64_t number = negative ? -(int64_t)value : (int64_t)value;
    if (number < low || number > high)
        return err_set(e, -ERANGE, "%lld is out of range; allowed: %lld..%lld", (long long)number, (long long)low,
                       (long long)high);
    *ret = number;
    return 0;
}

int units_parse_milli(const char *text, uint64_t max_milli, uint64_t *ret, struct err *e)
{
    const char *p = text;
    uint64_t milli;
    if (!read_milli(&p, &milli) || *p != '\0')
        return err_set(e, -EINVAL, "\"%.60s\" is not a number with at most three decimals; allowed: 0..%llu", text,
                       (unsigned long long)(max_milli / 1000));
    if (milli > max_milli)
        return err_set(e, -ERANGE, "%.60s is out of range; allowed: 0..%llu", text,
                       (unsigned long long)(max_milli / 1000));
    *ret = milli;
    return 0;
}

/* Civil date from days since 1970-01-01; H. Hinnant, "chrono-compatible low-level date algorithms". */
static void civil_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    int64_t z = days + 719468;
    int64_t era = z / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = (int64_t)yoe + era * 400 + (*month <= 2);
}

static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    unsigned yoe = (unsigned)(year - era * 400);
    unsigned doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + (int64_t)doe - 719468;
}

void units_format_time(int64_t ms, char out[UNITS_TIME_SIZE])
{
    const int64_t latest = 253402300799999; /* 9999-12-31T23:59:59.999Z */
    ms = ms < 0 ? 0 : ms > latest ? latest : ms;
    int64_t year;
    unsigned month;
    unsigned day;
    civil_from_days(ms / 86400000, &year, &month, &day);
    unsigned left = (unsigned)(ms % 86400000);
    (void)snprintf(out, UNITS_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)year & 0x3fffu, month, day,
                   left / 3600000, left / 60000 % 60, left / 1000 % 60, left % 1000);
}

/* Reads exactly `digits` decimal digits at *at and moves behind them; false, *ret untouched, when others stand there.
 */
static bool take_digits(const char **at, unsigned digits, unsigned *ret)
{
    unsigned value = 0;
    for (unsigned i = 0; i < digits; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (unsigned)(c - '0');
    }
    *at += digits;
    *ret = value;
    return true;
}

static bool take_sign(const char **at, char sign)
{
    if (**at != sign)
        return false;
    ++*at;
    return true;
}

static unsigned days_in_month(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

int units_parse_time(const char *text, int64_t *ret_ms, struct err *e)
{
    unsigned year, month, day, hour, minute, second, milli = 0;
    const char *p = text;
    bool ok = take_digits(&p, 4, &year) && take_sign(&p, '-') && take_digits(&p, 2, &month) && take_sign(&p, '-') &&
              take_digits(&p, 2, &day) && take_sign(&p, 'T') && take_digits(&p, 2, &hour) && take_sign(&p, ':') &&
              take_digits(&p, 2, &minute) && take_sign(&p, ':') && take_digits(&p, 2, &second);
    if (ok && take_sign(&p, '.'))
        ok = take_digits(&p, 3, &milli);
    ok = ok && strcmp(p, "Z") == 0 && year >= 1970 && month >= 1 && month <= 12 && day >= 1 &&
         day <= days_in_month(year, month) && hour < 24 && minute < 60 && second < 60;
    if (!ok)
        return err_set(
            e, -EINVAL,
            "\"%.60s\" is not a time; allowed: \"YYYY-MM-DDTHH:MM:SSZ\" from 1970 on, milliseconds as \".mmm\"", text);
    int64_t seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    *ret_ms = seconds * 1000 + milli;
    return 0;
}

void units_format_duration(int64_t ms, char out[32])
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
    const size_t count = sizeof units / sizeof units[0];
    if (ms < 1000) {
        (void)snprintf(out, 32, "%ums", (unsigned)(ms < 0 ? 0 : ms));
        return;
    }
    size_t i = 0;
    while (i + 1 < count && ms < units[i].ms)
        i++;
    int64_t whole = ms / units[i].ms;
    unsigned first = whole > UINT32_MAX ? UINT32_MAX : (unsigned)whole;
    unsigned second = i + 1 < count ? (unsigned)(ms % units[i].ms / units[i + 1].ms) : 0;
    if (second > 0)
        (void)snprintf(out, 32, "%u%s%u%s", first, units[i].name, second, units[i + 1].name);
    else
        (void)snprintf(out, 32, "%u%s", first, units[i].name);
}

void units_format_mib(uint64_t mib, char out[32])
{
    const char *unit = "MiB";
    uint64_t tenths = mib * 10;
    if (mib >= 1024 * 1024) {
        unit = "TiB";
        tenths = mib * 10 / (1024 * 1024);
    } else if (mib >= 1024) {
        unit = "GiB";
        tenths = mib * 10 / 1024;
    }
    if (tenths % 10 == 0)
        (void)snprintf(out, 32, "%llu %s", (unsigned long long)(tenths / 10), unit);
    else
        (void)snprintf(out, 32, "%llu.%llu %s", (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10),
                       unit);
}
