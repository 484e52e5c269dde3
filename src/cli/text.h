/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words and columns. Every text a person reads comes from i18n/messages.h in the language of LC_ALL, LC_MESSAGES or
 * LANG (the first that is set; "zh..." in UTF-8 gives Chinese, everything else English). Arguments are positional
 * (%1$s), since word order differs between languages; the macros below let the compiler hold the arguments against
 * the English text, and a unit test holds both languages against each other.
 */
#ifndef REMUDA_CLI_TEXT_H
#define REMUDA_CLI_TEXT_H

#include "base/strbuf.h"
#include "i18n/messages.h"

#include <stdio.h>

enum msg_id {
#define X(id, en, zh) MSG_##id,
    MESSAGES(X)
#undef X
        MSG_COUNT,
};

enum lang { LANG_EN, LANG_ZH, LANG_COUNT };

#define X(id, en, zh) static const char EN_##id[] __attribute__((unused)) = en;
MESSAGES(X)
#undef X

/* The language that the environment asks for. */
enum lang lang_from_env(void);
/* Sets the language of msg(); English until called. */
void lang_set(enum lang lang);
enum lang lang_get(void);

/* The text of a message in the chosen language. */
const char *msg(enum msg_id id);
const char *msg_in(enum msg_id id, enum lang lang);
/* "JOB_NOT_FOUND" and so on, for tests. */
const char *msg_name(enum msg_id id);

void say_(FILE *f, enum msg_id id, ...);
void add_(struct strbuf *b, enum msg_id id, ...);
/* Prints a message; appends one to a strbuf. Arguments are checked by the compiler against the English text. */
#define SAY(f, id, ...) ((void)(0 && printf(EN_##id, ##__VA_ARGS__)), say_(f, MSG_##id, ##__VA_ARGS__))
#define ADD(b, id, ...) ((void)(0 && printf(EN_##id, ##__VA_ARGS__)), add_(b, MSG_##id, ##__VA_ARGS__))

/*
 * For texts that use only some of many arguments (reasons): replaces %N$s by args[N - 1] and %% by %.
 */
void add_strings(struct strbuf *b, enum msg_id id, const char *const *args, size_t len);

/*
 * Columns that UTF-8 text takes on a terminal: 2 for wide East Asian characters and emoji, 0 for combining ones; each
 * bad byte counts 1. Independent of the locale.
 */
size_t text_width(const char *s);
/* Bytes of the longest start of `s` that takes at most `columns`. */
size_t text_cut(const char *s, size_t columns);
/* Appends `s`; control characters, which could steer the terminal, become '?'. */
void text_add(struct strbuf *b, const char *s);
/* Appends `s` cut and padded to `columns`, control characters as in text_add(). */
void text_pad(struct strbuf *b, const char *s, size_t columns, bool right);

/* A table for people: cells row by row, columns as wide as their widest cell. */
struct table {
    size_t columns;
    char **cells; /* owned */
    size_t len;
    size_t cap;
    uint64_t right; /* bit i: column i is aligned to the right */
    bool failed;
};
void table_init(struct table *t, size_t columns, uint64_t right);
void table_done(struct table *t);
void table_add(struct table *t, const char *cell);
void table_addf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends the table as lines; `columns_max` 0: any width, else lines are cut there. */
void table_write(const struct table *t, struct strbuf *out, size_t columns_max);
void table_print(const struct table *t, FILE *f);

#endif
