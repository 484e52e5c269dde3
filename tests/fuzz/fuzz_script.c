/* SPDX-License-Identifier: Apache-2.0 */
/* Job scripts: whatever their options set in a specification keeps it one that passes the common check or says why. */
#include "config/script.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static int take(void *arg, const struct job_option *o, const char *value, struct err *e)
{
    struct job_spec *s = arg;
    int rc = job_option_set(s, o->id, value, e);
    assert(rc == 0 || (e->code == rc && e->text[0] != '\0'));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct job_spec s;
    struct err e = {0};
    size_t late = 0;
    job_spec_init(&s);
    int rc = script_parse((const char *)bytes, len, take, &s, &late, &e);
    assert(rc == 0 || e.text[0] != '\0');
    if (rc == 0) {
        rc = job_spec_check(&s, &e);
        assert(rc == 0 || e.text[0] != '\0');
    }
    job_spec_done(&s);

    char **words = NULL;
    const uint8_t *end = memchr(bytes, '\n', len);
    size_t line = end == NULL ? len : (size_t)(end - bytes);
    if (script_words((const char *)bytes, line, &words, &e) == 0)
        script_words_free(words);
    return 0;
}
