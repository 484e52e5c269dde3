/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored records: the first byte is the kind, the rest what the store kept. What is decoded encodes again, and that
 * decodes to the same bytes: so a record that was read from a damaged store can not grow or shrink.
 */
#include "control/codec.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct record r = {0}, again = {0};
    struct err e = {0};
    if (len == 0 || record_kind_name(bytes[0]) == NULL)
        return 0;
    if (codec_decode(bytes[0], 1, 1000, bytes + 1, len - 1, &r, &e) < 0) {
        assert(e.text[0] != '\0');
        return 0;
    }
    struct strbuf once = {0}, twice = {0};
    codec_encode(&once, &r);
    int rc = codec_decode(bytes[0], 1, 1000, once.data, once.len, &again, &e);
    assert(rc == 0);
    codec_encode(&twice, &again);
    assert(once.len == twice.len && (once.len == 0 || memcmp(once.data, twice.data, once.len) == 0));
    strbuf_done(&once);
    strbuf_done(&twice);
    record_done(&again);
    record_done(&r);
    return 0;
}
