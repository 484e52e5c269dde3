/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a program: one line per message in logfmt, to standard error or to a file.
 *
 *     time=2026-12-01T05:13:00.000Z level=info program=remudad msg="listening" socket=/run/x.sock
 *
 * Only programs log (the daemon, the runner); libraries return errors. A line is written with one write(), so that
 * lines of several processes in one file do not mix. A log that can not be written (full disk) never blocks or ends
 * the program: the line is dropped and counted, and the count stands in the next line that can be written.
 * Not for use from several threads at once.
 */
#ifndef REMUDA_BASE_SYS_LOG_H
#define REMUDA_BASE_SYS_LOG_H

#include "base/err.h"

#include <stdint.h>

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARN,
    LOG_LEVEL_ERROR,
};

/*
 * Opens the log. `path` NULL: standard error. `program` is borrowed for the life of the log. Lines below `level` are
 * dropped. Without this call everything from info on goes to standard error. 0 or -errno (the old log stays).
 */
int log_open(const char *program, enum log_level level, const char *path, struct err *e);
/* Opens the same path anew, as after a rotation by somebody else; nothing for standard error. 0 or -errno. */
int log_reopen(void);
void log_close(void);
/* "debug", "info", "warn" or "error". 0 or -EINVAL. */
int log_parse_level(const char *text, enum log_level *ret, struct err *e);

/*
 * log_line(LOG_LEVEL_INFO, "started", "job=%llu attempt=%u", id, n): the message and then fields in logfmt, which
 * may be NULL. Write text values of others with log_quote().
 */
void log_line(enum log_level level, const char *msg, const char *fields, ...) __attribute__((format(printf, 3, 4)));
/* `text` as a quoted logfmt value (quotes, backslashes and control bytes escaped), cut to fit. Returns `out`. */
const char *log_quote(const char *text, char *out, unsigned size);

#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
