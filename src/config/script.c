/* SPDX-License-Identifier: Apache-2.0 */
#include "config/script.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <string.h>

static const char mark[] = "#REMUDA";
#define MARK_LEN (sizeof mark - 1)

void script_words_free(char **words)
{
    for (char **w = words; w != NULL && *w != NULL; w++)
        mem_free(*w);
    mem_free(words);
}

struct splitter {
    const char *at;
    const char *end;
    struct strbuf word;
    bool in_word;
    char **words;
    size_t len;
    size_t cap;
};

static int finish_word(struct splitter *s)
{
    if (!s->in_word)
        return 0;
    if (mem_grow(&s->words, &s->cap, s->len + 2, sizeof *s->words) < 0)
        return -ENOMEM;
    strbuf_add(&s->word, "", 0);
    char *text = strbuf_take(&s->word);
    if (text == NULL)
        return -ENOMEM;
    s->words[s->len++] = text;
    s->words[s->len] = NULL;
    s->in_word = false;
    return 0;
}

/* From after the opening quotation mark to after the closing one; false when there is none. */
static bool quoted(struct splitter *s, char mark_char)
{
    for (; s->at < s->end; s->at++) {
        char c = *s->at;
        if (c == mark_char) {
            s->at++;
            return true;
        }
        if (c == '\\' && mark_char == '"' && s->at + 1 < s->end && strchr("\"\\$`", s->at[1]) != NULL)
            c = *++s->at;
        strbuf_putc(&s->word, c);
    }
    return false;
}

static int split(struct splitter *s, struct err *e)
{
    while (s->at < s->end) {
        char c = *s->at++;
        if (c == ' ' || c == '\t') {
            if (finish_word(s) < 0)
                return err_set(e, -ENOMEM, "out of memory");
        } else if (c == '#' && !s->in_word) {
            break;
        } else {
            s->in_word = true;
            if (c == '\'' || c == '"') {
                if (!quoted(s, c))
                    return err_set(e, -EINVAL, "a quotation mark %c is never closed", c);
            } else if (c == '\\') {
                if (s->at == s->end)
                    return err_set(e, -EINVAL,
                                   "a backslash at the end of the line is not allowed; begin another "
                                   "#REMUDA line");
                strbuf_putc(&s->word, *s->at++);
            } else {
                strbuf_putc(&s->word, c);
            }
        }
    }
    return finish_word(s) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}

int script_words(const char *line, size_t len, char ***ret, struct err *e)
{
    struct splitter s = {.at = line, .end = line + len};
    int rc = mem_grow(&s.words, &s.cap, 1, sizeof *s.words) < 0 ? err_set(e, -ENOMEM, "out of memory") : split(&s, e);
    strbuf_done(&s.word);
    if (rc < 0) {
        script_words_free(s.words);
        return rc;
    }
    *ret = s.words;
    return 0;
}

/* One `--option value` or `--option=value` at words[*at]; moves *at past it. */
static int one_option(char **words, size_t *at, script_option_cb *cb, void *arg, struct err *e)
{
    char *word = words[(*at)++];
    if (strncmp(word, "--", 2) != 0 || word[2] == '\0')
        return err_set(e, -EINVAL, "\"%.60s\" is not an option; only --OPTION VALUE is allowed here", word);
    char *equals = strchr(word, '=');
    if (equals != NULL)
        *equals = '\0';
    const char *best = NULL;
    const struct job_option *o = job_option_by_name(word + 2, &best);
    if (o == NULL && best != NULL)
        return err_set(e, -EINVAL, "unknown option %.60s; did you mean --%s?", word, best);
    if (o == NULL)
        return err_set(e, -EINVAL, "unknown option %.60s; see `remuda submit --help`", word);
    const char *value = equals != NULL ? equals + 1 : words[*at];
    if (value == NULL)
        return err_set(e, -EINVAL, "--%s: the value is missing; give %s", o->name, o->arg);
    if (equals == NULL)
        (*at)++;
    int rc = cb(arg, o, value, e);
    return rc < 0 ? err_prefix(e, "--%s", o->name) : 0;
}

static int option_line(const char *text, size_t len, size_t line, script_option_cb *cb, void *arg, struct err *e)
{
    char **words = NULL;
    int rc = script_words(text, len, &words, e);
    for (size_t at = 0; rc == 0 && words[at] != NULL;)
        rc = one_option(words, &at, cb, arg, e);
    script_words_free(words);
    if (rc < 0)
        (void)err_prefix(e, "line %zu", line);
    return rc;
}

static bool is_mark(const char *line, size_t len)
{
    return len >= MARK_LEN && memcmp(line, mark, MARK_LEN) == 0 &&
           (len == MARK_LEN || line[MARK_LEN] == ' ' || line[MARK_LEN] == '\t');
}

/* The line in which `at` stands, from 1. */
static size_t line_of(const char *text, const char *at)
{
    size_t line = 1;
    for (const char *p = text; p < at; p++)
        line += *p == '\n';
    return line;
}

static int check_text(const char *text, size_t len, struct err *e)
{
    size_t blank = 0;
    while (blank < len && strchr(" \t\r\n", text[blank]) != NULL && text[blank] != '\0')
        blank++;
    if (blank == len)
        return err_set(e, -EINVAL, "the script is empty; at least one command is needed");
    if (len > SCRIPT_BYTES_MAX)
        return err_set(e, -EINVAL, "the script has %zu bytes; at most %zu are allowed", len, SCRIPT_BYTES_MAX);
    const char *nul = memchr(text, '\0', len);
    if (nul != NULL)
        return err_set(e, -EINVAL, "line %zu: a NUL byte is not allowed; a script is text, is this a program?",
                       line_of(text, nul));
    const char *newline = memchr(text, '\n', len);
    if (newline != NULL && newline > text && newline[-1] == '\r' && strncmp(text, "#!", 2) == 0)
        return err_set(e, -EINVAL,
                       "line 1: ends in CR LF, so its interpreter would not be found; save with LF line ends "
                       "(sed -i 's/\\r$//' FILE)");
    if (utf8_valid(text, len))
        return 0;
    for (const char *at = text; at < text + len;) {
        const char *end = memchr(at, '\n', (size_t)(text + len - at));
        size_t n = end != NULL ? (size_t)(end - at) : (size_t)(text + len - at);
        if (!utf8_valid(at, n))
            return err_set(e, -EINVAL, "line %zu: is not UTF-8; save the script as UTF-8", line_of(text, at));
        at += n + 1;
    }
    return err_set(e, -EINVAL, "the script is not UTF-8; save it as UTF-8");
}

int script_parse(const char *text, size_t len, script_option_cb *cb, void *arg, size_t *ret_late_line, struct err *e)
{
    int rc = check_text(text, len, e);
    if (rc < 0)
        return rc;
    bool head = true;
    size_t late = 0;
    size_t line = 1;
    for (const char *at = text; at < text + len; line++) {
        const char *end = memchr(at, '\n', (size_t)(text + len - at));
        size_t n = end != NULL ? (size_t)(end - at) : (size_t)(text + len - at);
        size_t used = n > 0 && at[n - 1] == '\r' ? n - 1 : n;
        size_t indent = 0;
        while (indent < used && (at[indent] == ' ' || at[indent] == '\t'))
            indent++;
        if (indent < used && at[indent] != '#')
            head = false;
        if (is_mark(at, used)) {
            if (head) {
                rc = option_line(at + MARK_LEN, used - MARK_LEN, line, cb, arg, e);
                if (rc < 0)
                    return rc;
            } else if (late == 0) {
                late = line;
            }
        }
        at += n + 1;
    }
    if (ret_late_line != NULL)
        *ret_late_line = late;
    return 0;
}
