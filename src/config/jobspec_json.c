/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order matters: the options in the script's head first, then the keys, so that a key wins. The
 * keys themselves may come in any order.
 */
#include "config/jobspec_json.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "config/options.h"
#include "config/script.h"
#include "config/suggest.h"
#include "config/value.h"
#include "config/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const char *const other_keys[] = {"command", "script", "args", "env", "uid", "gid", "hold"};

static int on_script_option(void *arg, const struct job_option *o, const char *value, struct err *e)
{
    return job_option_set(arg, o->id, value, e);
}

static bool text_ok(const json_t *v)
{
    return json_is_string(v) && memchr(json_string_value(v), '\0', json_string_length(v)) == NULL;
}

/* Words of a list behind what *words holds (`have` of them). */
static int add_words(const char *key, const json_t *v, char ***words, size_t *have, struct err *e)
{
    if (!json_is_array(v))
        return err_set(e, -EINVAL, "%s: a list of words is allowed, not %s", key, value_kind(v));
    size_t more = json_array_size(v);
    if (more > JOB_WORDS_MAX)
        return err_set(e, -EINVAL, "%s: %zu words; at most %d are allowed", key, more, JOB_WORDS_MAX);
    char **grown = mem_alloc(*have + more + 1, sizeof *grown);
    if (grown == NULL)
        return err_set(e, -ENOMEM, "out of memory");
    if (*words != NULL)
        memcpy(grown, *words, *have * sizeof *grown);
    mem_free(*words);
    *words = grown;
    for (size_t i = 0; i < more; i++) {
        const json_t *item = json_array_get(v, i);
        char number[VALUE_SIZE];
        const char *text = number;
        if (text_ok(item))
            text = json_string_value(item);
        else if (value_text(item, "a word", number, NULL) < 0)
            return err_set(e, -EINVAL, "%s: entry %zu is %s; text without NUL is allowed", key, i + 1,
                           value_kind(item));
        grown[*have] = mem_strdup(text);
        if (grown[*have] == NULL)
            return err_set(e, -ENOMEM, "out of memory");
        (*have)++;
    }
    return 0;
}

static int set_command(const json_t *v, struct job_spec *s, struct err *e)
{
    const json_t *command = json_object_get(v, "command");
    const json_t *args = json_object_get(v, "args");
    size_t have = 0;
    json_t *words = NULL;
    if (s->script != NULL)
        words = json_pack("[s]", s->name[0] != '\0' ? s->name : "script");
    else if (text_ok(command) && json_string_length(command) > 0)
        words = json_pack("[sss]", "/bin/sh", "-c", json_string_value(command));
    else if (command != NULL)
        words = json_incref((json_t *)command);
    if (words == NULL)
        return err_set(e, -EINVAL, "command: is missing; give command or script");
    int rc = add_words("command", words, &s->argv, &have, e);
    json_decref(words);
    if (rc == 0 && (have == 0 || s->argv[0][0] == '\0'))
        return err_set(e, -EINVAL, "command: names no program; a list of words or a text is allowed, not empty");
    if (rc == 0 && args != NULL)
        rc = add_words("args", args, &s->argv, &have, e);
    return rc;
}

static int set_env(const json_t *v, struct job_spec *s, struct err *e)
{
    if (!json_is_object(v))
        return err_set(e, -EINVAL, "env: a mapping of names to values is allowed, not %s", value_kind(v));
    if (json_object_size(v) > JOB_WORDS_MAX)
        return err_set(e, -EINVAL, "env: %zu variables; at most %d are allowed", json_object_size(v), JOB_WORDS_MAX);
    s->env = mem_alloc(json_object_size(v) + 1, sizeof *s->env);
    if (s->env == NULL)
        return err_set(e, -ENOMEM, "out of memory");
    size_t have = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)v, name, value)
    {
        char number[VALUE_SIZE];
        const char *text = number;
        if (text_ok(value))
            text = json_string_value(value);
        else if (json_is_boolean(value))
            text = json_is_true(value) ? "true" : "false";
        else if (value_text(value, "text", number, NULL) < 0)
            return err_set(e, -EINVAL, "env: \"%.60s\" is %s; text without NUL is allowed", name, value_kind(value));
        if (name[0] == '\0' || strchr(name, '=') != NULL)
            return err_set(e, -EINVAL, "env: \"%.60s\" is not a name; text without = is allowed", name);
        struct strbuf b = {0};
        strbuf_printf(&b, "%s=%s", name, text);
        s->env[have] = strbuf_take(&b);
        if (s->env[have++] == NULL)
            return err_set(e, -ENOMEM, "out of memory");
    }
    return 0;
}

static int set_id(const json_t *v, const char *key, uint32_t *at, struct err *e)
{
    char text[VALUE_SIZE];
    int64_t number;
    int rc = value_text(v, "a number", text, e);
    if (rc == 0)
        rc = units_parse_int(text, 0, JOB_ID_NONE - 1, &number, e);
    if (rc < 0)
        return err_prefix(e, "%s", key);
    *at = (uint32_t)number;
    return 0;
}

static int unknown_key(const char *key, struct err *e)
{
    const char *best = NULL;
    (void)job_option_by_key(key, &best);
    for (size_t i = 0; i < sizeof other_keys / sizeof other_keys[0]; i++)
        suggest_offer(key, other_keys[i], &best);
    if (best != NULL)
        return err_set(e, -EINVAL, "%.60s: unknown key; did you mean \"%s\"?", key, best);
    struct strbuf all = {0};
    for (size_t i = 0; i < JOB_OPT_COUNT; i++)
        strbuf_printf(&all, "%s, ", job_options()[i].key);
    strbuf_puts(&all, "command, script, args, env");
    int rc = err_set(e, -EINVAL, "%.40s: unknown key; allowed: %s", key, strbuf_str(&all));
    strbuf_done(&all);
    return rc;
}

static int set_option(const char *key, const json_t *v, struct job_spec *s, struct err *e)
{
    const struct job_option *o = job_option_by_key(key, NULL);
    char text[VALUE_SIZE];
    if (o == NULL)
        return unknown_key(key, e);
    int rc;
    if (o->id == JOB_OPT_CHDIR && text_ok(v))
        rc = job_option_set(s, o->id, json_string_value(v), e); /* longer than other values */
    else if ((rc = value_text(v, o->arg, text, e)) == 0)
        rc = job_option_set(s, o->id, text, e);
    return rc < 0 ? err_prefix(e, "%s", key) : 0;
}

static int set_script(const json_t *v, struct job_spec *s, struct err *e)
{
    if (!json_is_string(v))
        return err_set(e, -EINVAL, "script: text is allowed, not %s", value_kind(v));
    int rc = script_parse(json_string_value(v), json_string_length(v), on_script_option, s, NULL, e);
    if (rc < 0)
        return err_prefix(e, "script");
    s->script = mem_strdup(json_string_value(v));
    return s->script == NULL ? err_set(e, -ENOMEM, "out of memory") : 0;
}

static int set_hold(const json_t *v, struct job_spec *s, struct err *e)
{
    if (!json_is_boolean(v))
        return err_set(e, -EINVAL, "hold: true or false is allowed, not %s", value_kind(v));
    s->hold = json_is_true(v);
    return 0;
}

static int set_all(const json_t *v, struct job_spec *s, struct err *e)
{
    const json_t *script = json_object_get(v, "script");
    if (script != NULL && json_object_get(v, "command") != NULL)
        return err_set(e, -EINVAL, "script: and command exclude each other; give one of them");
    int rc = script != NULL ? set_script(script, s, e) : 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)v, key, value)
    {
        if (rc < 0)
            return rc;
        if (strcmp(key, "env") == 0)
            rc = set_env(value, s, e);
        else if (strcmp(key, "hold") == 0)
            rc = set_hold(value, s, e);
        else if (strcmp(key, "uid") == 0)
            rc = set_id(value, key, &s->uid, e);
        else if (strcmp(key, "gid") == 0)
            rc = set_id(value, key, &s->gid, e);
        else if (strcmp(key, "command") != 0 && strcmp(key, "script") != 0 && strcmp(key, "args") != 0)
            rc = set_option(key, value, s, e);
    }
    return rc < 0 ? rc : set_command(v, s, e);
}

void job_name_from(const char *program, char ret[NAME_SIZE])
{
    const char *slash = strrchr(program, '/');
    const char *last = slash != NULL && slash[1] != '\0' ? slash + 1 : program;
    size_t len = strnlen(last, NAME_SIZE - 1);
    while (len > 0 && !utf8_valid(last, len))
        len--;
    memcpy(ret, last, len);
    ret[len] = '\0';
    if (!job_name_ok(ret))
        memcpy(ret, "job", sizeof "job");
}

int job_spec_from_json(const json_t *v, struct job_spec *ret, struct err *e)
{
    if (!json_is_object(v))
        return err_set(e, -EINVAL, "a job is a mapping of keys, not %s", v != NULL ? value_kind(v) : "nothing");
    struct job_spec s;
    job_spec_init(&s);
    int rc = set_all(v, &s, e);
    if (rc == 0 && s.name[0] == '\0' && s.argv[0] != NULL) {
        bool shell = json_is_string(json_object_get(v, "command")) && s.script == NULL;
        char first[NAME_SIZE * 4] = "";
        if (shell) {
            size_t n = strcspn(s.argv[2], " \t\n;|&");
            n = n < sizeof first ? n : sizeof first - 1;
            memcpy(first, s.argv[2], n);
        }
        job_name_from(shell && first[0] != '\0' ? first : s.argv[0], s.name);
    }
    if (rc == 0)
        rc = job_spec_check(&s, e);
    if (rc < 0) {
        job_spec_done(&s);
        return rc;
    }
    *ret = s;
    return 0;
}

void job_spec_error_key(const struct err *e, char *ret, size_t size)
{
    const char *colon = strchr(e->text, ':');
    size_t len = colon != NULL ? (size_t)(colon - e->text) : 0;
    for (size_t i = 0; i < len; i++)
        if (!(e->text[i] >= 'a' && e->text[i] <= 'z') && e->text[i] != '_')
            len = 0;
    if (len >= size)
        len = 0;
    memcpy(ret, e->text, len);
    ret[len] = '\0';
}

int job_file_load(const char *path, json_t **ret, struct err *e)
{
    struct yaml_doc doc;
    int rc = yaml_load_file(path, &doc, e);
    if (rc < 0)
        return rc;
    struct job_spec trial;
    struct err why;
    rc = job_spec_from_json(doc.root, &trial, &why);
    if (rc == 0) {
        job_spec_done(&trial);
        *ret = json_incref(doc.root);
    } else {
        char key[64];
        job_spec_error_key(&why, key, sizeof key);
        (void)yaml_err_key(&doc, e, doc.root, key, "%s", why.text);
    }
    yaml_done(&doc);
    return rc;
}
