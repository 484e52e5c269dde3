/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts as people write them: sizes ("8 GiB", "512M"), durations ("2h30m", "90s", "1-12:00:00"), counts, and
 * time stamps (RFC 3339). All parsers take the whole text, refuse what they do not know with a sentence that
 * says what is allowed, and never overflow silently.
 */
#ifndef REMUDA_BASE_UNITS_H
#define REMUDA_BASE_UNITS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define UNITS_TIME_SIZE 32 /* "2026-12-01T05:13:00.000Z" and its terminator fit */

/*
 * A size in MiB, rounded up. A bare number is MiB; K, M, G, T (with or without "iB" or "B") are powers of 1024,
 * as memory sizes are meant by everybody here. A fraction is allowed ("1.5G"). Errors: -EINVAL, -ERANGE.
 */
int units_parse_mib(const char *text, uint64_t *ret_mib, struct err *e);

/*
 * A duration in milliseconds. Forms: "90" (seconds), "250ms", "2h30m", "1d", "MM:SS", "HH:MM:SS",
 * "D-HH:MM:SS". At most 100 years.
 */
int units_parse_duration_ms(const char *text, int64_t *ret_ms, struct err *e);

/* A decimal integer in low..high; nothing else may stand in the text. */
int units_parse_int(const char *text, int64_t low, int64_t high, int64_t *ret, struct err *e);

/* A count with up to three decimals in thousandths ("1.5" -> 1500), in 0..max_milli. */
int units_parse_milli(const char *text, uint64_t max_milli, uint64_t *ret, struct err *e);

/* "2026-12-01T05:13:00.000Z" for milliseconds since the epoch (UTC, proleptic Gregorian; years 1970..9999). */
void units_format_time(int64_t ms, char out[UNITS_TIME_SIZE]);
/* The inverse for the forms "YYYY-MM-DDTHH:MM:SS[.mmm]Z". */
int units_parse_time(const char *text, int64_t *ret_ms, struct err *e);

/* "2h30m", "45s", "3d4h", "250ms": the two largest units. `out` of at least 32 bytes. */
void units_format_duration(int64_t ms, char out[32]);
/* "40 GiB", "512 MiB", "1.5 TiB". `out` of at least 32 bytes. */
void units_format_mib(uint64_t mib, char out[32]);

#endif
