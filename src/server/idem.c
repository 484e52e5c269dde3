/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idempotency keys of mutating calls. An answer is kept under (caller, key) and given again to a
 * repetition; the same key with another request is refused. The newest IDEM_ENTRIES answers are
 * kept in memory. A submission's key is kept with its job too (control_submit()), so that it holds
 * across restarts of the daemon.
 */
#include "server/state.h"

#include "base/mem.h"

#include <sodium.h>
#include <string.h>

#define IDEM_ENTRIES 2048
#define KEY_MAX      128
#define ANSWER_MAX   65536 /* larger answers are not kept */

struct entry {
    uint64_t number; /* 0: free */
    uint64_t hash;   /* of (uid, key) */
    bool done;
    uint32_t uid;
    char key[KEY_MAX + 1];
    unsigned char request[16]; /* hash of method, path and body */
    unsigned status;
    char *answer; /* owned */
    size_t len;
};

struct idem {
    struct entry entries[IDEM_ENTRIES]; /* number n stands at n % IDEM_ENTRIES */
    struct idmap by_hash;               /* hash of (uid, key) -> entry */
    uint64_t last;
};

struct idem *idem_new(void)
{
    struct idem *c = mem_alloc(1, sizeof(*c));
    if (c != NULL)
        idmap_init(&c->by_hash);
    return c;
}

void idem_free(struct idem *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < IDEM_ENTRIES; i++)
        mem_free(c->entries[i].answer);
    idmap_done(&c->by_hash);
    mem_free(c);
}

static uint64_t hash_key(uint32_t uid, const char *key)
{
    unsigned char out[16];
    crypto_generichash_state h;
    crypto_generichash_init(&h, NULL, 0, sizeof(out));
    crypto_generichash_update(&h, (const unsigned char *)&uid, sizeof(uid));
    crypto_generichash_update(&h, (const unsigned char *)key, strlen(key));
    crypto_generichash_final(&h, out, sizeof(out));
    uint64_t n;
    memcpy(&n, out, sizeof(n));
    return n == 0 ? 1 : n;
}

static void hash_request(const struct http_request *r, unsigned char out[16])
{
    crypto_generichash_state h;
    crypto_generichash_init(&h, NULL, 0, 16);
    const struct server_call *call = &r->route->call;
    crypto_generichash_update(&h, (const unsigned char *)call->method, strlen(call->method) + 1);
    crypto_generichash_update(&h, (const unsigned char *)call->path, strlen(call->path) + 1);
    crypto_generichash_update(&h, (const unsigned char *)r->params[0], strlen(r->params[0]) + 1);
    crypto_generichash_update(&h, (const unsigned char *)strbuf_str(&r->body), r->body.len);
    crypto_generichash_final(&h, out, 16);
}

static bool key_ok(const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < len; i++)
        if (key[i] < 0x21 || key[i] > 0x7e)
            return false;
    return len >= 1 && len <= KEY_MAX;
}

static void entry_free(struct idem *c, struct entry *x)
{
    if (x->number != 0 && idmap_get(&c->by_hash, x->hash) == x)
        idmap_remove(&c->by_hash, x->hash);
    mem_free(x->answer);
    *x = (struct entry){0};
}

static bool answer_again(struct http_request *r, const struct entry *x)
{
    unsigned char request[16];
    hash_request(r, request);
    if (memcmp(request, x->request, sizeof(request)) != 0) {
        request_problem(r, 422, "idempotency-mismatch", NULL,
                        "this Idempotency-Key was used for another request; take a new one");
    } else if (!x->done) {
        request_problem(r, 409, "in-progress", NULL, "the first request with this Idempotency-Key is not answered yet");
    } else {
        strbuf_add(&r->out, x->answer, x->len);
        r->replayed = true;
        request_answer(r, x->status);
    }
    return false;
}

bool idem_begin(struct server *s, struct http_request *r)
{
    struct idem *c = s->idem;
    const char *key = request_header(r, "Idempotency-Key");
    if (key == NULL)
        return true;
    if (!key_ok(key)) {
        request_problem(r, 400, "invalid-field", "Idempotency-Key",
                        "Idempotency-Key: 1 to %d visible ASCII characters are wanted", KEY_MAX);
        return false;
    }
    uint64_t hash = hash_key(r->who.uid, key);
    struct entry *known = idmap_get(&c->by_hash, hash);
    if (known != NULL && known->uid == r->who.uid && strcmp(known->key, key) == 0)
        return answer_again(r, known);
    struct entry *x = &c->entries[(c->last + 1) % IDEM_ENTRIES];
    entry_free(c, x);
    if (idmap_put(&c->by_hash, hash, x) != 0)
        return true; /* no memory: the call works, only without a cache */
    *x = (struct entry){.number = ++c->last, .hash = hash, .uid = r->who.uid};
    memcpy(x->key, key, strlen(key) + 1);
    hash_request(r, x->request);
    r->idem = x->number;
    return true;
}

void idem_end(struct server *s, struct http_request *r)
{
    struct entry *x = r->idem == 0 ? NULL : &s->idem->entries[r->idem % IDEM_ENTRIES];
    if (x == NULL || x->number != r->idem)
        return; /* none, or pushed out by newer ones */
    r->idem = 0;
    x->answer = r->status < 500 && r->out.len <= ANSWER_MAX ? mem_strndup(strbuf_str(&r->out), r->out.len) : NULL;
    if (x->answer == NULL) {
        entry_free(s->idem, x);
        return;
    }
    x->len = r->out.len;
    x->status = r->status;
    x->done = true;
}
