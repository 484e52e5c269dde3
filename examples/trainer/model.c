/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three spirals and a network that tells them apart.
 *
 * The points of class k lie on an arm that turns by 6 radians from the middle outwards, begun at k * 120 degrees,
 * with some noise: no straight line separates them, so that a network has to learn for a while, and a small one
 * can. Network: 2 -> hidden (tanh) -> hidden (tanh) -> 3, softmax, cross-entropy; optimiser: Adam (Kingma and Ba
 * 2015). At the start the loss is near ln 3 = 1.10 and a third is right; after 400 steps of 256 points with 64 hidden
 * units about 99 % are.
 *
 * Parameters lie in one array, in this order (h = hidden):
 *   w1[h][2] b1[h] w2[h][h] b2[h] w3[3][h] b3[3]          h = 64: 128 + 64 + 4096 + 64 + 192 + 3 = 4547
 *
 * The same seed, batch and number of workers give the same numbers, bit for bit, on the same machine: the random
 * numbers are our own, sums run in a fixed order.
 */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TURN        6.0
#define NOISE       0.2
#define BETA1       0.9f
#define BETA2       0.999f
#define ADAM_SMALL  1e-8f
#define FULL_CIRCLE 6.283185307179586

/* splitmix64 by Vigna: the next number of the sequence that *state stands in. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in 0..1. */
static double uniform(uint64_t *state)
{
    return (double)(next(state) >> 11) / 9007199254740992.0;
}

/* Normal with mean 0 and deviation 1 (Box and Muller). */
static double normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(1.0 - uniform(state)));
    return radius * cos(FULL_CIRCLE * uniform(state));
}

/* Where the parts of the parameters begin. */
struct layout {
    size_t w1, b1, w2, b2, w3, b3, len;
};

static struct layout layout_of(size_t h)
{
    struct layout l;
    l.w1 = 0;
    l.b1 = l.w1 + h * INPUTS;
    l.w2 = l.b1 + h;
    l.b2 = l.w2 + h * h;
    l.w3 = l.b2 + h;
    l.b3 = l.w3 + h * CLASSES;
    l.len = l.b3 + CLASSES;
    return l;
}

static void fill(float *w, size_t len, size_t inputs, uint64_t *state)
{
    double scale = sqrt(1.0 / (double)inputs);
    for (size_t i = 0; i < len; i++)
        w[i] = (float)(scale * normal(state));
}

int model_init(struct model *m, uint32_t hidden, uint64_t seed)
{
    struct layout l = layout_of(hidden);
    *m = (struct model){.hidden = hidden, .len = l.len, .seed = seed};
    m->params = calloc(l.len, sizeof *m->params);
    m->mean = calloc(l.len, sizeof *m->mean);
    m->square = calloc(l.len, sizeof *m->square);
    if (m->params == NULL || m->mean == NULL || m->square == NULL) {
        model_done(m);
        return complain("no memory for %zu parameters", l.len);
    }
    uint64_t state = seed ^ 0x6d6f64656cu;
    fill(m->params + l.w1, l.b1 - l.w1, INPUTS, &state);
    fill(m->params + l.w2, l.b2 - l.w2, hidden, &state);
    fill(m->params + l.w3, l.b3 - l.w3, hidden, &state);
    return 0;
}

void model_done(struct model *m)
{
    free(m->params);
    free(m->mean);
    free(m->square);
    *m = (struct model){0};
}

int points_make(struct points *p, size_t len, uint64_t seed)
{
    *p = (struct points){.len = len, .xy = calloc(len, 2 * sizeof *p->xy), .label = calloc(len, 1)};
    if (p->xy == NULL || p->label == NULL) {
        points_done(p);
        return complain("no memory for %zu points", len);
    }
    uint64_t state = seed ^ 0x706f696e7473u;
    for (size_t i = 0; i < len; i++) {
        unsigned class = (unsigned)(i % CLASSES);
        double out = 0.1 + 0.9 * uniform(&state);
        double angle = FULL_CIRCLE * class / CLASSES + TURN * out + NOISE * normal(&state);
        p->xy[2 * i] = (float)(out * cos(angle));
        p->xy[2 * i + 1] = (float)(out * sin(angle));
        p->label[i] = (uint8_t) class;
    }
    return 0;
}

void points_done(struct points *p)
{
    free(p->xy);
    free(p->label);
    *p = (struct points){0};
}

int gradient_init(struct gradient *g, const struct model *m)
{
    *g = (struct gradient){.sum = calloc(m->len, sizeof *g->sum)};
    return g->sum == NULL ? complain("no memory for a gradient of %zu", m->len) : 0;
}

void gradient_done(struct gradient *g)
{
    free(g->sum);
    g->sum = NULL;
}

/* What one point makes of the network. */
struct pass {
    float *first;       /* after the first layer, hidden elements */
    float *second;      /* after the second */
    float *back;        /* room for the way back */
    float out[CLASSES]; /* probabilities */
};

static int pass_init(struct pass *s, size_t hidden)
{
    float *room = calloc(3 * hidden, sizeof *room);
    *s = (struct pass){.first = room, .second = room + hidden, .back = room + 2 * hidden};
    return room == NULL ? complain("no memory for %zu hidden units", hidden) : 0;
}

static void forward(const struct model *m, const float *xy, struct pass *s)
{
    struct layout l = layout_of(m->hidden);
    const float *w = m->params;
    size_t h = m->hidden;
    for (size_t i = 0; i < h; i++)
        s->first[i] = tanhf(w[l.w1 + 2 * i] * xy[0] + w[l.w1 + 2 * i + 1] * xy[1] + w[l.b1 + i]);
    for (size_t i = 0; i < h; i++) {
        float sum = w[l.b2 + i];
        for (size_t k = 0; k < h; k++)
            sum += w[l.w2 + i * h + k] * s->first[k];
        s->second[i] = tanhf(sum);
    }
    float top = -INFINITY, total = 0;
    for (size_t i = 0; i < CLASSES; i++) {
        s->out[i] = w[l.b3 + i];
        for (size_t k = 0; k < h; k++)
            s->out[i] += w[l.w3 + i * h + k] * s->second[k];
        top = fmaxf(top, s->out[i]);
    }
    for (size_t i = 0; i < CLASSES; i++)
        total += s->out[i] = expf(s->out[i] - top);
    for (size_t i = 0; i < CLASSES; i++)
        s->out[i] /= total;
}

static bool is_right(const struct pass *s, unsigned label)
{
    for (unsigned i = 0; i < CLASSES; i++) {
        if (i != label && s->out[i] >= s->out[label])
            return false;
    }
    return true;
}

static double loss_of(const struct pass *s, unsigned label)
{
    return -log(fmax((double)s->out[label], 1e-12));
}

/* Adds one point's gradient of the loss; *s is what forward() left. */
static void backward(const struct model *m, const float *xy, unsigned label, struct pass *s, float *sum)
{
    struct layout l = layout_of(m->hidden);
    const float *w = m->params;
    size_t h = m->hidden;
    memset(s->back, 0, h * sizeof *s->back);
    for (size_t i = 0; i < CLASSES; i++) {
        float d = s->out[i] - (i == label ? 1.0f : 0.0f);
        sum[l.b3 + i] += d;
        for (size_t k = 0; k < h; k++) {
            sum[l.w3 + i * h + k] += d * s->second[k];
            s->back[k] += d * w[l.w3 + i * h + k];
        }
    }
    for (size_t i = 0; i < h; i++)
        s->second[i] = s->back[i] * (1.0f - s->second[i] * s->second[i]);
    memset(s->back, 0, h * sizeof *s->back);
    for (size_t i = 0; i < h; i++) {
        float d = s->second[i];
        sum[l.b2 + i] += d;
        for (size_t k = 0; k < h; k++) {
            sum[l.w2 + i * h + k] += d * s->first[k];
            s->back[k] += d * w[l.w2 + i * h + k];
        }
    }
    for (size_t i = 0; i < h; i++) {
        float d = s->back[i] * (1.0f - s->first[i] * s->first[i]);
        sum[l.b1 + i] += d;
        sum[l.w1 + 2 * i] += d * xy[0];
        sum[l.w1 + 2 * i + 1] += d * xy[1];
    }
}

int model_gradient(const struct model *m, const struct points *p, uint32_t batch, uint32_t rank, uint32_t world,
                   struct gradient *ret)
{
    struct pass s;
    if (pass_init(&s, m->hidden) < 0)
        return -1;
    float *sum = ret->sum;
    *ret = (struct gradient){.sum = sum};
    memset(sum, 0, m->len * sizeof *sum);
    uint64_t state = m->seed ^ (m->step * 0x5851f42d4c957f2du);
    for (uint32_t i = 0; i < batch; i++) {
        size_t point = (size_t)(next(&state) % p->len); /* drawn by all, so that all know the whole batch */
        if (i % world != rank)
            continue;
        forward(m, p->xy + 2 * point, &s);
        ret->loss += loss_of(&s, p->label[point]);
        ret->correct += is_right(&s, p->label[point]);
        ret->count += 1;
        backward(m, p->xy + 2 * point, p->label[point], &s, sum);
    }
    free(s.first);
    return 0;
}

void model_update(struct model *m, const struct gradient *g, float rate)
{
    m->step++;
    float count = (float)g->count;
    float fix1 = 1.0f - powf(BETA1, (float)m->step);
    float fix2 = 1.0f - powf(BETA2, (float)m->step);
    for (size_t i = 0; i < m->len; i++) {
        float d = g->sum[i] / count;
        m->mean[i] = BETA1 * m->mean[i] + (1.0f - BETA1) * d;
        m->square[i] = BETA2 * m->square[i] + (1.0f - BETA2) * d * d;
        m->params[i] -= rate * (m->mean[i] / fix1) / (sqrtf(m->square[i] / fix2) + ADAM_SMALL);
    }
}

int model_evaluate(const struct model *m, const struct points *p, double *ret_loss, double *ret_accuracy)
{
    struct pass s;
    if (pass_init(&s, m->hidden) < 0)
        return -1;
    double loss = 0;
    size_t right = 0;
    for (size_t i = 0; i < p->len; i++) {
        forward(m, p->xy + 2 * i, &s);
        loss += loss_of(&s, p->label[i]);
        right += is_right(&s, p->label[i]);
    }
    *ret_loss = loss / (double)p->len;
    *ret_accuracy = (double)right / (double)p->len;
    free(s.first);
    return 0;
}
