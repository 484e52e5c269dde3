/* SPDX-License-Identifier: Apache-2.0 */
/* How things of the API look to a person: times, amounts, reasons in words, columns of job lists. */
#ifndef REMUDA_CLI_VIEW_H
#define REMUDA_CLI_VIEW_H

#include "base/err.h"
#include "cli/text.h"

#include <jansson.h>
#include <stdint.h>

/* Members of JSON objects; the default when absent or null. */
const char *get_str(const json_t *v, const char *key); /* "" */
int64_t get_int(const json_t *v, const char *key);     /* 0 */
bool get_bool(const json_t *v, const char *key);
/* An RFC 3339 member as milliseconds since the epoch; 0 when absent. */
int64_t get_time(const json_t *v, const char *key);
int64_t now_ms(void);

/* "2026-12-01 13:05:02" in local time, "-" for 0. */
void format_local(int64_t ms, char out[32]);
/* 1500 -> "1.5", 2000 -> "2". */
void format_milli(int64_t milli, char out[32]);
/* "2", "4x2" (workers x cards), "30%", "-". */
void format_gpus(const json_t *job, char out[64]);

/* "queued" and so on in words; a stopping job says so. */
const char *state_word(const json_t *job);
const char *state_text(const char *state);
const char *cause_text(const char *cause);
const char *event_text(const char *event);
const char *level_text(const char *level);
/* One line, without its end: where the cards of a status come from, and that they are simulated if they are. */
void add_cards_line(struct strbuf *b, const json_t *status);
/* {"code", "args"} in words. */
void add_reason(struct strbuf *b, const json_t *reason);
/* An amount in the unit of a reason. */
void reason_amount(const char *code, int64_t amount, char out[32]);

/* Job lists. `format`: NULL (default columns), "wide", names joined by commas, or a template with {names}. */
int jobs_check_format(const char *format, struct err *e);
void jobs_write(struct strbuf *out, const json_t *jobs, const char *format, bool ended);
/* All that `remuda show` prints. */
void job_write(struct strbuf *out, const json_t *job);
void explain_write(struct strbuf *out, const json_t *explain);

#endif
