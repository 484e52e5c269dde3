/* SPDX-License-Identifier: Apache-2.0 */
/* See visible.h. LIMITATIONS. MIG entries are not known. */
#include "simgpu/state/visible.h"

#include <string.h>
#include <strings.h>

/* The card that the entry of `len` characters names, or -1. */
static int card_of(const struct sim_state *s, const char *text, size_t len)
{
    uint32_t cards = s->header->cards_len;
    if (len >= 4 && strncasecmp(text, "GPU-", 4) == 0) {
        int found = -1;
        for (uint32_t i = 0; i < cards; i++) {
            const char *uuid = sim_card(s, i)->uuid;
            if (len > strlen(uuid) || strncasecmp(uuid, text, len) != 0)
                continue;
            if (found >= 0)
                return -1;
            found = (int)i;
        }
        return found;
    }
    if (len < 1 || len > 4)
        return -1;
    uint32_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = n * 10 + (uint32_t)(text[i] - '0');
    }
    return n < cards ? (int)n : -1;
}

uint32_t sim_visible_cards(const struct sim_state *s, const char *list, uint32_t out[SIMGPU_CARDS_MAX])
{
    uint32_t n = 0;
    if (!list) {
        for (; n < s->header->cards_len; n++)
            out[n] = n;
        return n;
    }
    while (*list) {
        size_t lead = strspn(list, " "), len;
        list += lead;
        len = strcspn(list, ",");
        size_t end = len;
        while (end > 0 && list[end - 1] == ' ')
            end--;
        int card = card_of(s, list, end);
        if (card < 0)
            return n;
        for (uint32_t i = 0; i < n; i++)
            if (out[i] == (uint32_t)card)
                return 0;
        out[n++] = (uint32_t)card;
        list += len;
        if (*list == ',')
            list++;
    }
    return n;
}
