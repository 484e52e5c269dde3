/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys/log.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static struct {
    const char *program;
    enum log_level level;
    int fd;
    char *path; /* owned; NULL for standard error */
    uint64_t dropped;
} the_log = {.program = "remuda", .level = LOG_LEVEL_INFO, .fd = STDERR_FILENO};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static int open_file(const char *path, int *ret_fd, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
    if (fd < 0) {
        int code = -errno;
        return err_set(e, code, "log file %s: %s", path, strerror(-code));
    }
    *ret_fd = fd;
    return 0;
}

int log_open(const char *program, enum log_level level, const char *path, struct err *e)
{
    int fd = STDERR_FILENO;
    char *copy = NULL;
    if (path != NULL) {
        int r = open_file(path, &fd, e);
        if (r < 0)
            return r;
        copy = mem_strdup(path);
        if (copy == NULL) {
            close(fd);
            return err_set(e, -ENOMEM, "no memory for the log's path");
        }
    }
    log_close();
    the_log.program = program;
    the_log.level = level;
    the_log.fd = fd;
    the_log.path = copy;
    return 0;
}

int log_reopen(void)
{
    if (the_log.path == NULL)
        return 0;
    int fd = -1;
    int r = open_file(the_log.path, &fd, NULL);
    if (r < 0)
        return r;
    close(the_log.fd);
    the_log.fd = fd;
    return 0;
}

void log_close(void)
{
    if (the_log.path != NULL) {
        close(the_log.fd);
        mem_free(the_log.path);
    }
    the_log.path = NULL;
    the_log.fd = STDERR_FILENO;
}

int log_parse_level(const char *text, enum log_level *ret, struct err *e)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof level_names[0]; i++)
        if (strcmp(text, level_names[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    return err_set(e, -EINVAL, "log level '%.40s': allowed are debug, info, warn, error", text);
}

const char *log_quote(const char *text, char *out, unsigned size)
{
    if (size < 3) {
        if (size > 0)
            out[0] = '\0';
        return out;
    }
    unsigned at = 0;
    out[at++] = '"';
    for (const char *p = text != NULL ? text : ""; *p != '\0' && at + 4 < size; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            out[at++] = '\\';
            out[at++] = (char)c;
        } else if (c == '\n') {
            out[at++] = '\\';
            out[at++] = 'n';
        } else if (c < 0x20 || c == 0x7f) {
            out[at++] = '?';
        } else {
            out[at++] = (char)c;
        }
    }
    out[at++] = '"';
    out[at] = '\0';
    return out;
}

/* Appends like snprintf; `at` never passes size - 1. */
static size_t add(char *line, size_t size, size_t at, const char *fmt, va_list args)
{
    int n = vsnprintf(line + at, size - at, fmt, args);
    if (n < 0)
        return at;
    size_t room = size - at - 1;
    return at + ((size_t)n < room ? (size_t)n : room);
}

static size_t addf(char *line, size_t size, size_t at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static size_t addf(char *line, size_t size, size_t at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    at = add(line, size, at, fmt, args);
    va_end(args);
    return at;
}

void log_line(enum log_level level, const char *msg, const char *fields, ...)
{
    if (level < the_log.level)
        return;
    char line[LINE_MAX_BYTES], time[UNITS_TIME_SIZE], quoted[512];
    size_t size = sizeof line - 1; /* room for the newline */
    units_format_time(clock_wall_ms(), time);
    size_t at = addf(line, size, 0, "time=%s level=%s program=%s msg=%s", time, level_names[level], the_log.program,
                     log_quote(msg, quoted, sizeof quoted));
    if (the_log.dropped > 0)
        at = addf(line, size, at, " log_lines_dropped=%llu", (unsigned long long)the_log.dropped);
    if (fields != NULL) {
        line[at < size - 1 ? at++ : at] = ' ';
        va_list args;
        va_start(args, fields);
        at = add(line, size, at, fields, args);
        va_end(args);
    }
    line[at++] = '\n';
    ssize_t n;
    do
        n = write(the_log.fd, line, at);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)at)
        the_log.dropped = 0;
    else
        the_log.dropped++;
}
