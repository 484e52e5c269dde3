/* SPDX-License-Identifier: Apache-2.0 */
/* Records survive encoding and decoding; damaged bytes are refused and never crash. REQ: H4 */
#include "test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "control/codec.h"

#include <errno.h>
#include <string.h>

static void fill_name(char *out, size_t size, struct rng *rng)
{
    size_t len = 1 + (size_t)rng_below(rng, size - 1);
    for (size_t i = 0; i < len; i++)
        out[i] = (char)('a' + rng_below(rng, 26));
    out[len] = '\0';
}

static char *word(struct rng *rng)
{
    char text[40] = "";
    fill_name(text, sizeof text, rng);
    return mem_strdup(text);
}

static char **words(struct rng *rng)
{
    size_t len = 1 + (size_t)rng_below(rng, 5);
    char **list = mem_alloc(len + 1, sizeof *list);
    for (size_t i = 0; i < len; i++)
        list[i] = i == 1 ? mem_strdup("") : word(rng);
    return list;
}

static void random_spec(struct job_spec *s, struct rng *rng)
{
    fill_name(s->name, sizeof s->name, rng);
    fill_name(s->user, sizeof s->user, rng);
    fill_name(s->strategy, sizeof s->strategy, rng);
    s->uid = (uint32_t)rng_next(rng);
    s->req.gpus = (uint32_t)rng_below(rng, GPUS_PER_WORKER_MAX + 1);
    s->req.mem_mib = rng_next(rng);
    fill_name(s->req.gpu_model, sizeof s->req.gpu_model, rng);
    s->workers = 1 + (uint32_t)rng_below(rng, WORKERS_MAX);
    s->priority = (int32_t)rng_between(rng, PRIORITY_MIN, PRIORITY_MAX);
    s->require = (enum level)rng_below(rng, LEVEL_COUNT);
    s->time_limit_ms = (int64_t)rng_below(rng, 1u << 30);
    s->argv = words(rng);
    s->env = words(rng);
    s->cwd = word(rng);
    s->script = rng_chance(rng, 500000) ? word(rng) : NULL;
    s->key = rng_chance(rng, 500000) ? word(rng) : NULL;
}

static void random_config(struct config *c, struct rng *rng)
{
    assert_int_equal(config_defaults(c), 0);
    c->tenants_len = 1 + (size_t)rng_below(rng, 4);
    c->tenants = mem_alloc(c->tenants_len, sizeof *c->tenants);
    for (size_t i = 0; i < c->tenants_len; i++) {
        fill_name(c->tenants[i].name, sizeof c->tenants[i].name, rng);
        c->tenants[i].caps = (struct caps){NO_CAP, rng_next(rng)};
    }
    c->racks_len = 1;
    c->racks = mem_alloc(1, sizeof *c->racks);
    fill_name(c->racks[0].name, NAME_SIZE, rng);
    c->racks[0].nodes_len = 5;
    c->racks[0].nodes = mem_alloc(5, NAME_SIZE);
    for (size_t i = 0; i < 5; i++)
        fill_name(c->racks[0].nodes[i], NAME_SIZE, rng);
}

static void random_node(struct node_desc *n, struct rng *rng)
{
    fill_name(n->name, sizeof n->name, rng);
    n->cpu_milli = (uint32_t)rng_next(rng);
    n->gpus_len = (uint32_t)rng_below(rng, NODE_GPUS_MAX + 1);
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        fill_name(n->gpus[i].uuid, sizeof n->gpus[i].uuid, rng);
        n->gpus[i].mem_mib = (uint32_t)rng_next(rng);
        n->gpus[i].healthy = rng_chance(rng, 500000);
        n->link[i][0] = (uint8_t)rng_below(rng, 8);
    }
}

static void random_record(struct record *r, struct rng *rng)
{
    static const enum record_kind kinds[] = {REC_CONFIG,      REC_NODE,       REC_NODE_STATE, REC_JOB_SUBMIT,
                                             REC_JOB_UPDATE,  REC_JOB_CANCEL, REC_JOB_START,  REC_JOB_RUNNING,
                                             REC_WORKER_EXIT, REC_JOB_STOP,   REC_JOB_RETRY,  REC_JOB_END};
    *r = (struct record){.kind = kinds[rng_below(rng, sizeof kinds / sizeof kinds[0])],
                         .seq = rng_next(rng),
                         .time_ms = (int64_t)rng_below(rng, 1ull << 42),
                         .job = rng_next(rng),
                         .attempt = (uint32_t)rng_next(rng)};
    fill_name(r->by, sizeof r->by, rng);
    if (r->kind == REC_CONFIG) {
        r->config = mem_alloc(1, sizeof *r->config);
        random_config(r->config, rng);
        r->text = word(rng);
    } else if (r->kind == REC_NODE) {
        r->node = mem_alloc(1, sizeof *r->node);
        random_node(r->node, rng);
    } else if (r->kind == REC_JOB_SUBMIT) {
        r->spec = mem_alloc(1, sizeof *r->spec);
        random_spec(r->spec, rng);
    } else if (r->kind == REC_JOB_START) {
        r->grants_len = 1 + (uint32_t)rng_below(rng, 9);
        r->grants = mem_alloc(r->grants_len, sizeof *r->grants);
        for (uint32_t i = 0; i < r->grants_len; i++)
            r->grants[i] = (struct grant){.node = (uint32_t)rng_next(rng),
                                          .gpu_mask = (uint32_t)rng_next(rng),
                                          .milli = (uint32_t)rng_below(rng, GPU_MILLI + 1),
                                          .mem_mib = rng_next(rng)};
    } else if (r->kind == REC_WORKER_EXIT) {
        r->exit = (struct worker_exit){.worker = (uint32_t)rng_next(rng), .code = -1, .signal = 9, .cause = CAUSE_OOM};
        fill_name(r->exit.detail, sizeof r->exit.detail, rng);
    } else if (r->kind == REC_JOB_UPDATE) {
        r->change = (struct job_change){.set_priority = true, .priority = -5, .set_time_limit = true};
    }
}

/* Encoding what was decoded gives the same bytes: nothing was lost or made up. */
static void test_round_trip(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, TEST_SEED);
    for (int i = 0; i < 2000; i++) {
        struct record r;
        struct record back;
        struct err e = {0};
        random_record(&r, &rng);
        struct strbuf first = {0};
        struct strbuf second = {0};
        codec_encode(&first, &r);
        assert_int_equal(codec_decode(r.kind, r.seq, r.time_ms, first.data, first.len, &back, &e), 0);
        codec_encode(&second, &back);
        assert_int_equal(first.len, second.len);
        assert_memory_equal(first.data, second.data, first.len);
        assert_int_equal(back.kind, r.kind);
        assert_true(back.seq == r.seq && back.time_ms == r.time_ms && back.job == r.job);
        if (r.spec != NULL) {
            assert_string_equal(back.spec->argv[0], r.spec->argv[0]);
            assert_string_equal(back.spec->req.gpu_model, r.spec->req.gpu_model);
            assert_int_equal(back.spec->workers, r.spec->workers);
        }
        strbuf_done(&first);
        strbuf_done(&second);
        record_done(&r);
        record_done(&back);
    }
}

/* Flipped, cut and grown records are decoded or refused; the sanitizers watch. */
static void test_damage(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, TEST_SEED + 1);
    int refused = 0;
    for (int i = 0; i < 20000; i++) {
        struct record r;
        struct record back;
        struct err e = {0};
        random_record(&r, &rng);
        struct strbuf bytes = {0};
        codec_encode(&bytes, &r);
        size_t len = bytes.len;
        if (rng_chance(&rng, 300000))
            len = (size_t)rng_below(&rng, bytes.len + 1);
        for (uint64_t k = rng_below(&rng, 4); k > 0; k--)
            bytes.data[rng_below(&rng, bytes.len)] ^= (char)(1 << rng_below(&rng, 8));
        int res = codec_decode(r.kind, r.seq, r.time_ms, bytes.data, len, &back, &e);
        if (res == 0) {
            record_done(&back);
        } else {
            assert_int_equal(res, -EINVAL);
            assert_true(e.text[0] != '\0');
            refused++;
        }
        strbuf_done(&bytes);
        record_done(&r);
    }
    assert_true(refused > 1000);
}

/* A field of a newer version is skipped unless it must be understood. */
static void test_newer_fields(void **state)
{
    (void)state;
    struct record r = {.kind = REC_JOB_CANCEL, .job = 7};
    struct record back;
    struct err e = {0};
    struct strbuf bytes = {0};
    codec_encode(&bytes, &r);
    strbuf_add(&bytes, "\x70\x00\x03\x00\x00\x00xyz", 9);
    assert_int_equal(codec_decode(r.kind, 1, 1, bytes.data, bytes.len, &back, &e), 0);
    assert_int_equal(back.job, 7);
    record_done(&back);
    strbuf_add(&bytes, "\x70\x80\x01\x00\x00\x00x", 7);
    assert_int_equal(codec_decode(r.kind, 1, 1, bytes.data, bytes.len, &back, &e), -EINVAL);
    assert_non_null(strstr(e.text, "newer version"));
    strbuf_done(&bytes);
}

/* Whatever allocation fails, the result is -ENOMEM and nothing leaks. */
static void test_no_memory(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, TEST_SEED + 2);
    for (int i = 0; i < 60; i++) {
        struct record r;
        random_record(&r, &rng);
        struct strbuf bytes = {0};
        codec_encode(&bytes, &r);
        int res = -ENOMEM;
        for (uint64_t nth = 1; res == -ENOMEM; nth++) {
            struct record back;
            mem_fail_from(nth);
            res = codec_decode(r.kind, 1, 1, bytes.data, bytes.len, &back, NULL);
            mem_fail_from(0);
            if (res == 0)
                record_done(&back);
        }
        assert_int_equal(res, 0);
        strbuf_done(&bytes);
        record_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_newer_fields),
        cmocka_unit_test(test_no_memory),
    };
    return test_run("codec", tests);
}
