/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading job traces.
 *
 * A source hands out bytes (zlib reads compressed and plain files alike; memory for tests), a
 * reader cuts them into lines of bounded length, the header line binds column numbers to the four
 * fields that are needed, and every later line is cut at its commas in place. Nothing is kept of a
 * line but the numbers and the id, so that the memory used is that of the jobs, and a hostile file
 * is stopped by the limits on line length and number of jobs, not by the machine.
 *
 * The order of the jobs decides the results of a replay to the second, so it is total: submission,
 * then id. Ids are compared as numbers when all are numbers; otherwise (ITP uses UUIDs, Philly has
 * none) the order of the file decides, which is what the published lists mean, as their ids are not
 * ordered.
 *
 * Limitations: no quoted fields, since none of the known lists has them; a quotation mark ends up
 * in a message.
 */
#include "replay/trace.h"

#include "base/intern.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define COLUMNS_MAX 64u

enum field {
    FIELD_ID,
    FIELD_GPUS,
    FIELD_SUBMIT,
    FIELD_DURATION,
    FIELD_STAMP, /* a date and time, instead of FIELD_SUBMIT */
    FIELD_COUNT,
};

/* What each field is called in the lists that are known. */
static const struct {
    const char *name;
    enum field field;
} column_names[] = {
    {"job_id", FIELD_ID},          {"num_gpu", FIELD_GPUS},           {"num_gpus", FIELD_GPUS},
    {"submit_time", FIELD_SUBMIT}, {"submission_time", FIELD_SUBMIT}, {"timestamp", FIELD_STAMP},
    {"duration", FIELD_DURATION},
};

/* A job while the whole list is not known yet. */
struct row {
    struct trace_job job; /* submit_s as the file has it */
    int64_t number;       /* the id as a number */
};

struct reader {
    const char *name;
    struct err *e;
    /* the source: a file, or what is left of some memory */
    gzFile gz;
    const unsigned char *bytes;
    size_t bytes_left;
    /* the chunk that is being cut */
    char *chunk;
    size_t chunk_at, chunk_len;
    /* the line */
    char *line;
    size_t line_len;
    uint32_t line_no;
    int column_of[FIELD_COUNT]; /* -1: not there */
    const char *column_name[FIELD_COUNT];
    unsigned columns;
    /* the result */
    struct row *rows;
    size_t rows_cap;
    uint32_t len;
    char *ids;
    size_t ids_cap, ids_len;
    bool all_numbers;
};

/* ---- bytes and lines ---- */

static int refill(struct reader *r)
{
    r->chunk_at = 0;
    r->chunk_len = 0;
    if (!r->gz) {
        size_t take = r->bytes_left < TRACE_LINE_MAX ? r->bytes_left : TRACE_LINE_MAX;
        if (take > 0)
            memcpy(r->chunk, r->bytes, take);
        r->bytes += take;
        r->bytes_left -= take;
        r->chunk_len = take;
        return 0;
    }
    int got = gzread(r->gz, r->chunk, TRACE_LINE_MAX);
    int code = Z_OK;
    const char *why = gzerror(r->gz, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) /* a cut file ends with Z_BUF_ERROR */
        return err_set(r->e, code == Z_ERRNO ? -(errno ? errno : EIO) : -EINVAL, "%s: cannot be read after line %u: %s",
                       r->name, r->line_no, code == Z_ERRNO ? strerror(errno) : why);
    r->chunk_len = (size_t)got;
    return 0;
}

/* Fetches the next line without its end into r->line, terminated. 1: there is one; 0: the file is
 * over. */
static int next_line(struct reader *r)
{
    bool any = false;
    r->line_len = 0;
    for (;;) {
        if (r->chunk_at == r->chunk_len) {
            int rc = refill(r);
            if (rc < 0)
                return rc;
            if (r->chunk_len == 0)
                break;
        }
        any = true;
        const char *from = r->chunk + r->chunk_at;
        size_t left = r->chunk_len - r->chunk_at;
        const char *end = memchr(from, '\n', left);
        size_t take = end ? (size_t)(end - from) : left;
        if (r->line_len + take >= TRACE_LINE_MAX)
            return err_set(r->e, -EINVAL, "%s:%u: the line is longer than %u bytes", r->name, r->line_no + 1,
                           TRACE_LINE_MAX - 1);
        memcpy(r->line + r->line_len, from, take);
        r->line_len += take;
        r->chunk_at += take + (end ? 1 : 0);
        if (end)
            break;
    }
    if (!any)
        return 0;
    if (r->line_len > 0 && r->line[r->line_len - 1] == '\r')
        r->line_len--;
    r->line[r->line_len] = '\0';
    r->line_no++;
    if (memchr(r->line, '\0', r->line_len))
        return err_set(r->e, -EINVAL, "%s:%u: a zero byte in the line; a trace is text", r->name, r->line_no);
    return 1;
}

/* Cuts the line at its commas. Returns the number of fields, at most COLUMNS_MAX are set; spaces
 * round them go. */
static unsigned cut(char *line, char *fields[COLUMNS_MAX])
{
    unsigned n = 0;
    for (char *at = line;;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (n < COLUMNS_MAX) {
            at += strspn(at, " \t");
            size_t len = strlen(at);
            while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
                at[--len] = '\0';
            fields[n] = at;
        }
        n++;
        if (!comma)
            return n;
        at = comma + 1;
    }
}

/* ---- values ---- */

static int bad_value(struct reader *r, enum field f, const char *value, const char *allowed)
{
    char shown[48]; /* only printable ASCII reaches a terminal */
    size_t len = 0;
    while (value[len] && len < sizeof shown - 4) {
        shown[len] = value[len];
        if (shown[len] < 0x20 || shown[len] > 0x7e)
            shown[len] = '?';
        len++;
    }
    memcpy(shown + len, "...", 4);
    if (!value[len])
        shown[len] = '\0';
    return err_set(r->e, -EINVAL, "%s:%u: column %s is \"%s\"; allowed: %s", r->name, r->line_no, r->column_name[f],
                   shown, allowed);
}

/* A decimal integer of at most 18 digits, the whole text. */
static bool parse_whole(const char *s, int64_t *ret)
{
    int64_t value = 0;
    size_t digits = 0;
    for (; s[digits] >= '0' && s[digits] <= '9'; digits++) {
        if (digits == 18)
            return false;
        value = value * 10 + (s[digits] - '0');
    }
    if (digits == 0 || s[digits] != '\0')
        return false;
    *ret = value;
    return true;
}

/* Seconds with an optional fraction, rounded to the nearest second. */
static bool parse_seconds(char *s, int64_t *ret)
{
    char *dot = strchr(s, '.');
    if (!dot)
        return parse_whole(s, ret);
    size_t decimals = strspn(dot + 1, "0123456789");
    if (decimals == 0 || dot[1 + decimals] != '\0')
        return false;
    *dot = '\0';
    bool ok = parse_whole(s, ret);
    *dot = '.';
    if (ok && dot[1] >= '5')
        *ret += 1;
    return ok;
}

static bool two_digits(const char *s, int low, int high, int *ret)
{
    if (s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9')
        return false;
    *ret = (s[0] - '0') * 10 + (s[1] - '0');
    return *ret >= low && *ret <= high;
}

/* "YYYY-MM-DD HH:MM:SS" (or a T between) as seconds, every day taken to have 86,400 of them. */
static bool parse_stamp(const char *s, int64_t *ret)
{
    int century, year, month, day, hour, minute, second;
    if (strlen(s) != 19 || s[4] != '-' || s[7] != '-' || (s[10] != ' ' && s[10] != 'T') || s[13] != ':' || s[16] != ':')
        return false;
    if (!two_digits(s, 19, 99, &century) || !two_digits(s + 2, 0, 99, &year) || !two_digits(s + 5, 1, 12, &month) ||
        !two_digits(s + 8, 1, 31, &day) || !two_digits(s + 11, 0, 23, &hour) || !two_digits(s + 14, 0, 59, &minute) ||
        !two_digits(s + 17, 0, 60, &second))
        return false;
    year += century * 100;
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day > before[month] - before[month - 1] + (leap && month == 2))
        return false;
    int past = year - 1;
    int64_t days =
        (int64_t)past * 365 + past / 4 - past / 100 + past / 400 + before[month - 1] + (leap && month > 2) + day - 1;
    *ret = days * 86400 + hour * 3600 + minute * 60 + second;
    return true;
}

/* ---- header and rows ---- */

static int check_header(struct reader *r)
{
    static const char *const missing[] = {
        [FIELD_GPUS] = "num_gpu (or num_gpus)",
        [FIELD_SUBMIT] = "submit_time (or submission_time, timestamp)",
        [FIELD_DURATION] = "duration",
    };
    for (enum field f = FIELD_GPUS; f <= FIELD_DURATION; f++) {
        if (r->column_of[f] >= 0 || (f == FIELD_SUBMIT && r->column_of[FIELD_STAMP] >= 0))
            continue;
        return err_set(r->e, -EINVAL,
                       "%s:%u: the header has no column %s; needed are num_gpu, submit_time and duration", r->name,
                       r->line_no, missing[f]);
    }
    if (r->column_of[FIELD_SUBMIT] >= 0 && r->column_of[FIELD_STAMP] >= 0)
        return err_set(r->e, -EINVAL, "%s:%u: the header has both %s and %s; allowed: one of them", r->name, r->line_no,
                       r->column_name[FIELD_SUBMIT], r->column_name[FIELD_STAMP]);
    return 0;
}

static int read_header(struct reader *r)
{
    char *fields[COLUMNS_MAX];
    int rc = next_line(r);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set(r->e, -EINVAL,
                       "%s: the file is empty; a trace begins with a header line such as "
                       "job_id,num_gpu,submit_time,duration",
                       r->name);
    char *line = r->line;
    if (strncmp(line, "\xef\xbb\xbf", 3) == 0) /* the mark some editors put before UTF-8 */
        line += 3;
    r->columns = cut(line, fields);
    if (r->columns > COLUMNS_MAX)
        return err_set(r->e, -EINVAL, "%s:1: the header has %u columns; allowed: at most %u", r->name, r->columns,
                       COLUMNS_MAX);
    for (int f = 0; f < FIELD_COUNT; f++)
        r->column_of[f] = -1;
    for (unsigned c = 0; c < r->columns; c++) {
        for (size_t i = 0; i < sizeof column_names / sizeof column_names[0]; i++) {
            enum field f = column_names[i].field;
            if (strcmp(fields[c], column_names[i].name) != 0)
                continue;
            if (r->column_of[f] >= 0)
                return err_set(r->e, -EINVAL, "%s:1: the header names column %s again as %s (column %u)", r->name,
                               r->column_name[f], column_names[i].name, c + 1);
            r->column_of[f] = (int)c;
            r->column_name[f] = column_names[i].name;
        }
    }
    return check_header(r);
}

static int keep_id(struct reader *r, const char *id, struct row *row)
{
    size_t len = strlen(id);
    if (len == 0 || len > 255)
        return bad_value(r, FIELD_ID, id, "1 to 255 bytes");
    if (r->ids_len + len + 1 > UINT32_MAX)
        return err_set(r->e, -EINVAL, "%s:%u: the ids take more than 4 GiB", r->name, r->line_no);
    if (mem_grow(&r->ids, &r->ids_cap, r->ids_len + len + 1, 1) < 0)
        return err_set(r->e, -ENOMEM, "%s: no memory for the ids of %u jobs", r->name, r->len);
    memcpy(r->ids + r->ids_len, id, len + 1);
    row->job.id_at = (uint32_t)r->ids_len;
    r->ids_len += len + 1;
    if (r->all_numbers && !parse_whole(id, &row->number))
        r->all_numbers = false;
    return 0;
}

static int read_submit(struct reader *r, char **fields, int64_t *ret_s)
{
    int at = r->column_of[FIELD_STAMP];
    if (at >= 0) {
        if (!parse_stamp(fields[at], ret_s))
            return bad_value(r, FIELD_STAMP, fields[at], "a date and time such as 2017-10-09 07:01:55");
        return 0;
    }
    at = r->column_of[FIELD_SUBMIT];
    if (!parse_seconds(fields[at], ret_s) || *ret_s > INT64_C(1000000000000))
        return bad_value(r, FIELD_SUBMIT, fields[at], "seconds, 0 to 1000000000000");
    return 0;
}

static int read_row(struct reader *r)
{
    char *fields[COLUMNS_MAX];
    unsigned n = cut(r->line, fields);
    if (n != r->columns)
        return err_set(r->e, -EINVAL, "%s:%u: the line has %u columns, the header %u", r->name, r->line_no, n,
                       r->columns);
    if (r->len == TRACE_JOBS_MAX)
        return err_set(r->e, -EINVAL, "%s:%u: more than %u jobs", r->name, r->line_no, TRACE_JOBS_MAX);
    if (mem_grow(&r->rows, &r->rows_cap, (size_t)r->len + 1, sizeof r->rows[0]) < 0)
        return err_set(r->e, -ENOMEM, "%s: no memory for more than %u jobs", r->name, r->len);
    struct row *row = &r->rows[r->len];
    int64_t gpus;
    const char *text = fields[r->column_of[FIELD_GPUS]];
    if (!parse_whole(text, &gpus) || gpus < 1 || gpus > TRACE_GPUS_MAX)
        return bad_value(r, FIELD_GPUS, text, "a whole number, 1 to 1000000");
    text = fields[r->column_of[FIELD_DURATION]];
    if (!parse_seconds(fields[r->column_of[FIELD_DURATION]], &row->job.duration_s) ||
        row->job.duration_s > TRACE_DURATION_MAX)
        return bad_value(r, FIELD_DURATION, text, "seconds, 0 to 3155760000 (100 years)");
    int rc = read_submit(r, fields, &row->job.submit_s);
    if (rc < 0)
        return rc;
    row->job.gpus = (uint32_t)gpus;
    row->job.line = r->line_no;
    row->number = r->len;
    if (r->column_of[FIELD_ID] >= 0) {
        rc = keep_id(r, fields[r->column_of[FIELD_ID]], row);
        if (rc < 0)
            return rc;
    }
    r->len++;
    return 0;
}

static int read_rows(struct reader *r)
{
    for (;;) {
        int rc = next_line(r);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return r->len > 0 ? 0 : err_set(r->e, -EINVAL, "%s: the file has a header and no jobs", r->name);
        if (r->line_len == 0)
            continue; /* an empty line at the end, as editors leave it */
        rc = read_row(r);
        if (rc < 0)
            return rc;
    }
}

/* ---- the order ---- */

static int compare_by_number(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->job.submit_s != y->job.submit_s)
        return x->job.submit_s < y->job.submit_s ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->job.line < y->job.line ? -1 : 1;
}

static int compare_by_line(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->job.submit_s != y->job.submit_s)
        return x->job.submit_s < y->job.submit_s ? -1 : 1;
    return (x->job.line > y->job.line) - (x->job.line < y->job.line);
}

static int same_id(struct reader *r, const struct row *row)
{
    r->line_no = row->job.line;
    return bad_value(r, FIELD_ID, r->ids + row->job.id_at, "an id that no line above has");
}

/* No two jobs may have one id: the per-job output would be ambiguous. */
static int check_ids(struct reader *r)
{
    if (r->column_of[FIELD_ID] < 0)
        return 0;
    struct intern seen;
    intern_init(&seen);
    int rc = 0;
    for (uint32_t i = 0; i < r->len && rc == 0; i++) {
        uint32_t id = intern_id(&seen, r->ids + r->rows[i].job.id_at);
        if (id == INTERN_NONE)
            rc = err_set(r->e, -ENOMEM, "%s: no memory to compare the ids of %u jobs", r->name, r->len);
        else if (id != i)
            rc = same_id(r, &r->rows[i]);
    }
    intern_done(&seen);
    return rc;
}

static void sort_rows(struct reader *r)
{
    int (*compare)(const void *, const void *) = r->all_numbers ? compare_by_number : compare_by_line;
    bool sorted = true; /* most lists are, and then a pass is cheaper than a sort */
    for (uint32_t i = 1; i < r->len && sorted; i++)
        sorted = compare(&r->rows[i - 1], &r->rows[i]) < 0;
    if (!sorted)
        qsort(r->rows, r->len, sizeof r->rows[0], compare);
}

/* Lists without ids get the place in queue order as id. */
static int number_jobs(struct reader *r)
{
    if (r->column_of[FIELD_ID] >= 0)
        return 0;
    if (mem_grow(&r->ids, &r->ids_cap, (size_t)r->len * 9, 1) < 0)
        return err_set(r->e, -ENOMEM, "%s: no memory for the ids of %u jobs", r->name, r->len);
    for (uint32_t i = 0; i < r->len; i++) {
        r->rows[i].job.id_at = (uint32_t)r->ids_len;
        char digits[10];
        size_t n = 0;
        uint32_t rest = i;
        do
            digits[n++] = (char)('0' + rest % 10);
        while ((rest /= 10) > 0);
        while (n > 0)
            r->ids[r->ids_len++] = digits[--n];
        r->ids[r->ids_len++] = '\0';
    }
    return 0;
}

static char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t len = strlen(base);
    if (len > 3 && strcmp(base + len - 3, ".gz") == 0)
        len -= 3;
    if (len > 4 && strncmp(base + len - 4, ".csv", 4) == 0)
        len -= 4;
    return mem_strndup(base, len);
}

static int hand_over(struct reader *r, struct trace *t)
{
    struct trace out = {.len = r->len, .name = base_name(r->name)};
    if (!out.name || mem_grow(&out.jobs, &out.jobs_cap, r->len, sizeof out.jobs[0]) < 0) {
        trace_done(&out);
        return err_set(r->e, -ENOMEM, "%s: no memory for %u jobs", r->name, r->len);
    }
    for (uint32_t i = 0; i < r->len; i++) {
        out.jobs[i] = r->rows[i].job;
        out.jobs[i].submit_s -= r->rows[0].job.submit_s;
    }
    out.ids = TAKE_PTR(r->ids);
    out.ids_cap = r->ids_cap;
    out.ids_len = r->ids_len;
    *t = out;
    return 0;
}

static int read_all(struct reader *r, struct trace *t)
{
    r->all_numbers = true;
    r->chunk = mem_alloc(TRACE_LINE_MAX, 1);
    r->line = mem_alloc(TRACE_LINE_MAX, 1);
    int rc = 0;
    if (!r->chunk || !r->line)
        rc = err_set(r->e, -ENOMEM, "%s: no memory to read it", r->name);
    if (rc == 0)
        rc = read_header(r);
    if (rc == 0)
        rc = read_rows(r);
    if (rc == 0)
        rc = check_ids(r);
    if (rc == 0) {
        sort_rows(r);
        rc = number_jobs(r);
    }
    if (rc == 0)
        rc = hand_over(r, t);
    mem_free(r->chunk);
    mem_free(r->line);
    mem_free(r->rows);
    mem_free(r->ids);
    return rc;
}

int trace_read(const char *path, struct trace *t, struct err *e)
{
    struct reader r = {.name = path, .e = e};
    errno = 0;
    r.gz = gzopen(path, "rbe");
    if (!r.gz)
        return err_set(e, -(errno ? errno : ENOMEM), "%s: cannot be opened: %s", path,
                       strerror(errno ? errno : ENOMEM));
    gzbuffer(r.gz, 1u << 17);
    int rc = read_all(&r, t);
    gzclose(r.gz);
    return rc;
}

int trace_parse(const char *name, const void *bytes, size_t len, struct trace *t, struct err *e)
{
    struct reader r = {.name = name, .e = e, .bytes = bytes, .bytes_left = len};
    return read_all(&r, t);
}

void trace_done(struct trace *t)
{
    mem_free(t->name);
    mem_free(t->jobs);
    mem_free(t->ids);
    *t = (struct trace){0};
}

const char *trace_id(const struct trace *t, uint32_t job)
{
    return t->ids + t->jobs[job].id_at;
}

void trace_limit(struct trace *t, uint32_t gpus)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->len; i++)
        if (t->jobs[i].gpus <= gpus)
            t->jobs[kept++] = t->jobs[i];
    t->skipped += t->len - kept;
    t->len = kept;
    for (uint32_t i = kept; i-- > 0;) /* the first submission that is left is at 0 */
        t->jobs[i].submit_s -= t->jobs[0].submit_s;
}
