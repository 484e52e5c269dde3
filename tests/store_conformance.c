/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store_conformance.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    uint64_t seqs[64];
    size_t len;
    size_t stop_after;     /* 0: never */
    struct store_row last; /* its body is in `body` */
    char body[64];
};

static int see(void *arg, const struct store_row *row)
{
    struct seen *s = arg;
    assert_true(s->len < 64);
    s->seqs[s->len++] = row->seq;
    s->last = *row;
    if (row->len < sizeof(s->body) && row->len > 0)
        memcpy(s->body, row->body, row->len);
    return s->len == s->stop_after ? -ECANCELED : 0;
}

static struct store_row text_row(uint64_t seq, uint64_t job, const char *text)
{
    return (struct store_row){.seq = seq,
                              .time_ms = 1000 + (int64_t)seq,
                              .kind = (uint32_t)seq % 7,
                              .job = job,
                              .body = text,
                              .len = strlen(text)};
}

static void fill(struct store *s)
{
    struct store_row rows[] = {text_row(1, 0, "one"), text_row(2, 7, "two"), text_row(3, 8, "three")};
    struct store_row more[] = {text_row(4, 7, "four"), text_row(5, 0, "five")};
    assert_int_equal(store_append(s, rows, 3, NULL), 0);
    assert_int_equal(store_append(s, more, 2, NULL), 0);
}

void conformance_empty(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    uint64_t last = 99;
    assert_int_equal(store_last_seq(s, &last, NULL), 0);
    assert_int_equal(last, 0);
    struct seen seen = {0};
    assert_int_equal(store_read(s, 0, 0, 0, see, &seen, NULL), 0);
    assert_int_equal(seen.len, 0);
    assert_int_equal(store_append(s, NULL, 0, NULL), 0);
    assert_int_equal(store_probe(s, NULL), 0);
    store_close(s);
    store_close(NULL);
}

void conformance_append_and_read(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    fill(s);
    uint64_t last = 0;
    assert_int_equal(store_last_seq(s, &last, NULL), 0);
    assert_int_equal(last, 5);
    struct seen all = {0};
    assert_int_equal(store_read(s, 0, 0, 0, see, &all, NULL), 0);
    assert_int_equal(all.len, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(all.seqs[i], i + 1);
    assert_int_equal(all.last.time_ms, 1005);
    assert_int_equal(all.last.kind, 5);
    assert_int_equal(all.last.job, 0);
    assert_int_equal(all.last.len, 4);
    assert_memory_equal(all.body, "five", 4);
    struct seen some = {0};
    assert_int_equal(store_read(s, 2, 0, 2, see, &some, NULL), 0);
    assert_int_equal(some.len, 2);
    assert_int_equal(some.seqs[0], 3);
    struct seen none = {0};
    assert_int_equal(store_read(s, 5, 0, 0, see, &none, NULL), 0);
    assert_int_equal(store_read(s, UINT64_MAX, 0, 0, see, &none, NULL), 0);
    assert_int_equal(none.len, 0);
    store_close(s);
}

void conformance_read_by_job(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    fill(s);
    struct seen seen = {0};
    assert_int_equal(store_read(s, 0, 7, 0, see, &seen, NULL), 0);
    assert_int_equal(seen.len, 2);
    assert_int_equal(seen.seqs[0], 2);
    assert_int_equal(seen.seqs[1], 4);
    struct seen rest = {0};
    assert_int_equal(store_read(s, 2, 7, 0, see, &rest, NULL), 0);
    assert_int_equal(rest.len, 1);
    struct seen none = {0};
    assert_int_equal(store_read(s, 0, 99, 0, see, &none, NULL), 0);
    assert_int_equal(none.len, 0);
    store_close(s);
}

void conformance_refuses_gaps(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    fill(s);
    struct store_row gap[] = {text_row(6, 0, "six"), text_row(8, 0, "eight")};
    struct store_row again[] = {text_row(5, 0, "five")};
    struct err e = {0};
    assert_int_equal(store_append(s, gap, 2, &e), -EINVAL);
    assert_non_null(strstr(e.text, "row 8"));
    assert_int_equal(store_append(s, again, 1, NULL), -EINVAL);
    uint64_t last = 0;
    assert_int_equal(store_last_seq(s, &last, NULL), 0);
    assert_int_equal(last, 5);
    struct store_row good[] = {text_row(6, 0, "six")};
    assert_int_equal(store_append(s, good, 1, NULL), 0);
    store_close(s);
}

static int check_big(void *arg, const struct store_row *row)
{
    const char *big = arg;
    if (row->seq == 2) {
        assert_int_equal(row->len, 3000000);
        assert_memory_equal(row->body, big, row->len);
    } else {
        assert_int_equal(row->len, row->seq == 1 ? 0 : 3);
    }
    return 0;
}

void conformance_odd_bodies(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    char *big = mem_alloc(3000000, 1);
    assert_non_null(big);
    for (size_t i = 0; i < 3000000; i++)
        big[i] = (char)(i * 31 % 251);
    struct store_row rows[] = {
        {.seq = 1, .time_ms = 0},
        {.seq = 2, .time_ms = -5, .kind = UINT32_MAX, .job = INT64_MAX, .body = big, .len = 3000000},
        {.seq = 3, .body = "\0x\0", .len = 3},
    };
    assert_int_equal(store_append(s, rows, 3, NULL), 0);
    assert_int_equal(store_read(s, 0, 0, 0, check_big, big, NULL), 0);
    struct store_row bad[] = {{.seq = 4, .job = UINT64_MAX}};
    assert_int_equal(store_append(s, bad, 1, NULL), -EINVAL);
    mem_free(big);
    store_close(s);
}

void conformance_callback_stops(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    fill(s);
    struct seen seen = {.stop_after = 2};
    assert_int_equal(store_read(s, 0, 0, 0, see, &seen, NULL), -ECANCELED);
    assert_int_equal(seen.len, 2);
    struct store_row next[] = {text_row(6, 0, "six")};
    assert_int_equal(store_append(s, next, 1, NULL), 0);
    store_close(s);
}

static int join(void *arg, const struct store_blob *blob)
{
    char *text = arg;
    size_t len = strlen(text);
    memcpy(text + len, blob->bytes, blob->len);
    text[len + blob->len] = '|';
    text[len + blob->len + 1] = '\0';
    return 0;
}

void conformance_snapshot(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    char text[64] = "";
    uint64_t seq = 99;
    assert_int_equal(store_read_snapshot(s, &seq, join, text, NULL), 0);
    assert_int_equal(seq, 0);
    fill(s);
    struct store_blob a[] = {{"aa", 2}, {"b", 1}};
    struct store_blob b[] = {{"c", 1}};
    assert_int_equal(store_write_snapshot(s, 6, a, 2, NULL), -EINVAL);
    assert_int_equal(store_write_snapshot(s, 0, a, 2, NULL), -EINVAL);
    assert_int_equal(store_write_snapshot(s, 3, a, 2, NULL), 0);
    assert_int_equal(store_read_snapshot(s, &seq, join, text, NULL), 0);
    assert_int_equal(seq, 3);
    assert_string_equal(text, "aa|b|");
    assert_int_equal(store_write_snapshot(s, 5, b, 1, NULL), 0);
    store_close(s);
    s = conformance_open(false);
    text[0] = '\0';
    assert_int_equal(store_read_snapshot(s, &seq, join, text, NULL), 0);
    assert_int_equal(seq, 5);
    assert_string_equal(text, "c|");
    store_close(s);
}

void conformance_reopen(void **state)
{
    (void)state;
    struct store *s = conformance_open(true);
    fill(s);
    store_close(s);
    s = conformance_open(false);
    uint64_t last = 0;
    assert_int_equal(store_last_seq(s, &last, NULL), 0);
    assert_int_equal(last, 5);
    struct seen seen = {0};
    assert_int_equal(store_read(s, 0, 0, 0, see, &seen, NULL), 0);
    assert_int_equal(seen.len, 5);
    struct store_row next[] = {text_row(6, 0, "six")};
    assert_int_equal(store_append(s, next, 1, NULL), 0);
    store_close(s);
}
