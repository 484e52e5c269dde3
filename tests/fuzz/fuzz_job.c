/* SPDX-License-Identifier: Apache-2.0 */
/* A job object as the API takes it: what is accepted passes the common check. */
#include "config/jobspec_json.h"
#include "fuzz.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    json_t *v = json_loadb((const char *)bytes, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (v == NULL)
        return 0;
    struct job_spec s = {0};
    struct err e = {0};
    int rc = job_spec_from_json(v, &s, &e);
    if (rc == 0) {
        assert(job_spec_check(&s, &e) == 0);
        job_spec_done(&s);
    } else {
        char key[64];
        assert(e.text[0] != '\0');
        job_spec_error_key(&e, key, sizeof key);
    }
    json_decref(v);
    return 0;
}
