/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimal string alignment distance (Damerau 1964 in the restricted form), three rows. Words longer
 * than the rows are taken to be unlike everything.
 */
#include "config/suggest.h"

#include <ctype.h>
#include <string.h>

#define WORD_MAX 48

static int letter(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t suggest_distance(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    size_t rows[3][WORD_MAX + 1];
    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return 99;
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3];
        const size_t *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            int x = letter(a[i - 1]);
            int y = letter(b[j - 1]);
            size_t best = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == letter(b[j - 2]) && y == letter(a[i - 2]))
                best = least(best, before[j - 2] + 1);
            now[j] = best;
        }
    }
    return rows[a_len % 3][b_len];
}

void suggest_offer(const char *word, const char *candidate, const char **best)
{
    size_t allowed = strlen(word) / 3;
    allowed = allowed < 1 ? 1 : allowed > 3 ? 3 : allowed;
    size_t distance = suggest_distance(word, candidate);
    if (distance > allowed)
        return;
    if (*best == NULL || distance < suggest_distance(word, *best))
        *best = candidate;
}
