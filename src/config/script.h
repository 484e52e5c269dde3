/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job scripts: options in comment lines at the head of a script, so that a script carries what it needs.
 *
 *     #!/bin/sh
 *     #REMUDA --gpus 2 --name "two cards"
 *     #REMUDA --time=1h            # what follows a lone # is a comment
 *     python3 train.py
 *
 * The head is everything before the first line that is neither empty nor a comment. Words are split as a shell does
 * it: blanks part them, '...' and "..." keep them together, a backslash takes the next character as it is (within
 * "..." only before " \ $ and `). Nothing is expanded. A long option may stand as `--gpus 2` or `--gpus=2`; nothing but
 * long options may stand there.
 *
 * The text must be UTF-8 without NUL, at most SCRIPT_BYTES_MAX, and a first line "#!..." must not end in CR LF: the
 * kernel would look for an interpreter whose name ends in CR. CR LF elsewhere is left to the interpreter; `#REMUDA`
 * lines may have it.
 */
#ifndef REMUDA_CONFIG_SCRIPT_H
#define REMUDA_CONFIG_SCRIPT_H

#include "base/err.h"
#include "config/options.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Called for each option, in order. `line` counts from 1. An error ends the parsing: script_parse() puts "line N:
 * --OPTION: " before its text.
 */
typedef int script_option_cb(void *arg, const struct job_option *o, const char *value, struct err *e);

/*
 * Checks the text and hands out its options. *ret_late_line, when not NULL, is the line of the first `#REMUDA` line
 * that stands after the head and therefore means nothing (worth a warning), else 0. 0, -EINVAL or what `cb` returned.
 */
int script_parse(const char *text, size_t len, script_option_cb *cb, void *arg, size_t *ret_late_line, struct err *e);

/*
 * Splits one line into words as said above. The array (NULL-terminated) and its words are owned by the caller
 * (script_words_free()). -EINVAL for an open quotation or a lone backslash at the end.
 */
int script_words(const char *line, size_t len, char ***ret, struct err *e);
void script_words_free(char **words);

#endif
