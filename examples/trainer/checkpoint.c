/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint: a header, then parameters, mean and square as they lie in memory, and a checksum over all of it. It is
 * read on the machine type that wrote it. A crash at any point leaves either the old file or the new one.
 */
#include "trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "RMTRAIN1"

struct header {
    char magic[8];
    uint64_t seed;
    uint64_t step;
    uint64_t len;
    uint64_t hidden;
};

/* FNV-1a, carried on from `sum`. */
static uint64_t checksum(uint64_t sum, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ p[i]) * 0x100000001b3u;
    return sum;
}

static uint64_t checksum_of(const struct header *h, const struct model *m)
{
    uint64_t sum = checksum(0xcbf29ce484222325u, h, sizeof *h);
    sum = checksum(sum, m->params, m->len * sizeof *m->params);
    sum = checksum(sum, m->mean, m->len * sizeof *m->mean);
    return checksum(sum, m->square, m->len * sizeof *m->square);
}

static int write_all(FILE *f, const struct header *h, const struct model *m)
{
    uint64_t sum = checksum_of(h, m);
    bool ok = fwrite(h, sizeof *h, 1, f) == 1 && fwrite(m->params, sizeof *m->params, m->len, f) == m->len &&
              fwrite(m->mean, sizeof *m->mean, m->len, f) == m->len &&
              fwrite(m->square, sizeof *m->square, m->len, f) == m->len && fwrite(&sum, sizeof sum, 1, f) == 1 &&
              fflush(f) == 0 && fsync(fileno(f)) == 0;
    return ok ? 0 : -1;
}

/* The new name is durable once its folder is. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        *(slash == folder ? slash + 1 : slash) = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

int checkpoint_save(const char *path, const struct model *m)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s.new", path) >= (int)sizeof name)
        return complain("checkpoint: the path is too long");
    struct header h = {.seed = m->seed, .step = m->step, .len = m->len, .hidden = m->hidden};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    FILE *f = fopen(name, "we");
    if (f == NULL)
        return complain("checkpoint %s: %s", name, strerror(errno));
    int rc = write_all(f, &h, m);
    int saved = errno;
    if (fclose(f) != 0)
        rc = -1;
    if (rc == 0 && rename(name, path) == 0) {
        sync_folder(path);
        return 0;
    }
    unlink(name);
    return complain("checkpoint %s: %s", name, strerror(saved));
}

static int read_all(FILE *f, struct header *h, struct model *m)
{
    uint64_t sum;
    if (fread(h, sizeof *h, 1, f) != 1 || memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return complain("checkpoint: is not one");
    if (h->seed != m->seed || h->len != m->len || h->hidden != m->hidden)
        return complain("checkpoint: is of seed %llu with %llu hidden units, not of seed %llu with %u",
                        (unsigned long long)h->seed, (unsigned long long)h->hidden, (unsigned long long)m->seed,
                        m->hidden);
    if (fread(m->params, sizeof *m->params, m->len, f) != m->len ||
        fread(m->mean, sizeof *m->mean, m->len, f) != m->len ||
        fread(m->square, sizeof *m->square, m->len, f) != m->len || fread(&sum, sizeof sum, 1, f) != 1 ||
        sum != checksum_of(h, m))
        return complain("checkpoint: is damaged");
    m->step = h->step;
    return 0;
}

int checkpoint_load(const char *path, struct model *m)
{
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT ? 1 : complain("checkpoint %s: %s", path, strerror(errno));
    struct header h;
    int rc = read_all(f, &h, m);
    fclose(f);
    return rc;
}
