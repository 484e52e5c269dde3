/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without a fuzzer: over every file of its corpus and over MUTANTS changed copies of each, the
 * same ones in every run (seeded). So each build and each sanitizer sees the inputs that once were interesting and
 * some thousand near them; tools/fuzz runs the same target under libFuzzer for as long as one likes.
 *
 * Usage: fuzz_NAME [--mutants N] [--seed N] FOLDER|FILE...
 */
#include "base/mem.h"
#include "base/rng.h"
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX ((size_t)1 << 20)
#define MUTANTS   400

struct run {
    struct rng rng;
    unsigned long mutants;
    unsigned long inputs;
    unsigned long files;
};

/* Signs that parsers look at. */
static const char *const tokens[] = {"-1",    "nan",  "1e999",    "18446744073709551616",
                                     "\0",    "\xff", "\xc0\x80", "{",
                                     "[[",    "\"",   ": ",       "- ",
                                     "&a *a", "#",    "\n",       "\r\n",
                                     "\t",    "0x"};

static void one(struct run *r, const uint8_t *bytes, size_t len)
{
    /* A copy of the very size, so that reading past the end is seen. */
    uint8_t *copy = mem_alloc(len > 0 ? len : 1, 1);
    if (copy == NULL)
        return;
    memcpy(copy, bytes, len);
    LLVMFuzzerTestOneInput(copy, len);
    mem_free(copy);
    r->inputs++;
}

/* Cuts `count` bytes at `at` and puts `len` others there. Returns the new length. */
static size_t splice(uint8_t *bytes, size_t total, size_t at, size_t count, const void *in, size_t len)
{
    if (total - count + len > INPUT_MAX)
        return total;
    memmove(bytes + at + len, bytes + at + count, total - at - count);
    memcpy(bytes + at, in, len);
    return total - count + len;
}

static size_t mutate(struct run *r, uint8_t *bytes, size_t len)
{
    size_t at = (size_t)rng_below(&r->rng, len + 1);
    size_t span = (size_t)rng_below(&r->rng, 1 + (len - at < 64 ? len - at : 64));
    const char *token = tokens[rng_below(&r->rng, sizeof tokens / sizeof tokens[0])];
    uint8_t piece[64];
    switch (rng_below(&r->rng, 5)) {
    case 0: /* flip a bit */
        if (at < len)
            bytes[at] ^= (uint8_t)(1u << rng_below(&r->rng, 8));
        return len;
    case 1: /* drop a span */
        return splice(bytes, len, at, span, "", 0);
    case 2: /* double a span */
        memcpy(piece, bytes + at, span);
        return splice(bytes, len, at, 0, piece, span);
    case 3: /* put a token in a span's place */
        return splice(bytes, len, at, span, token, token[0] == '\0' ? 1 : strlen(token));
    default: /* cut off the rest */
        return at;
    }
}

static void run_file(struct run *r, const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = mem_alloc(INPUT_MAX, 1);
    uint8_t *work = mem_alloc(INPUT_MAX, 1);
    if (f == NULL || bytes == NULL || work == NULL) {
        fprintf(stderr, "fuzz: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    size_t len = fread(bytes, 1, INPUT_MAX, f);
    fclose(f);
    r->files++;
    one(r, bytes, len);
    for (unsigned long i = 0; i < r->mutants; i++) {
        size_t now = len;
        memcpy(work, bytes, len);
        for (uint64_t changes = 1 + rng_below(&r->rng, 4); changes > 0; changes--)
            now = mutate(r, work, now);
        one(r, work, now);
    }
    mem_free(bytes);
    mem_free(work);
}

static int no_dots(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* A folder's files in order of name, so that every run sees the same mutants. */
static void run_folder(struct run *r, const char *folder)
{
    struct dirent **list;
    int count = scandir(folder, &list, no_dots, alphasort);
    if (count < 0) {
        fprintf(stderr, "fuzz: %s: %s\n", folder, strerror(errno));
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        run_file(r, path);
        free(list[i]);
    }
    free(list);
}

int main(int argc, char **argv)
{
    struct run r = {.mutants = MUTANTS};
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (i + 1 < argc && strcmp(argv[i], "--mutants") == 0)
            r.mutants = strtoul(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10);
        else {
            rng_init(&r.rng, seed);
            if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
                run_folder(&r, argv[i]);
            else
                run_file(&r, argv[i]);
        }
    }
    printf("%lu files, %lu inputs, seed %llu\n", r.files, r.inputs, (unsigned long long)seed);
    return r.files > 0 ? 0 : 1;
}
