/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file: YAML in, `struct config` out, checked as a whole. docs/configuration.md says what each key
 * means; config_schema_write() gives the same as a table, so that the document can be held against the program.
 * Reading changes nothing: a file with any mistake gives an error that names file, line, column, key, value and what
 * is allowed, and no configuration.
 */
#ifndef REMUDA_CONFIG_CONFIG_FILE_H
#define REMUDA_CONFIG_CONFIG_FILE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "config/types.h"

/*
 * Fills *ret (owned by the caller, config_done()) from `len` bytes of YAML; keys that are not there keep their
 * defaults. `name` is what messages call the text. 0, -EINVAL or -ENOMEM.
 */
int config_parse(const char *text, size_t len, const char *name, struct config *ret, struct err *e);

/*
 * The same for a file ("-": standard input). *ret_text, when not NULL, gets the file's text (mem_free). Also -ENOENT
 * and other errors of reading.
 */
int config_load_file(const char *path, struct config *ret, char **ret_text, struct err *e);

/*
 * What is in force as lines "KEY<TAB>VALUE", lists by name ("queues[batch].max_gpus"), in the order of the document;
 * what has its default in a list (no cap, no limit) is left out. Two configurations with the same lines are the same.
 */
void config_write_flat(const struct config *c, struct strbuf *out);

/* One difference; `from` or `to` is NULL where the key is only in one of the two. Strings are valid for the call. */
typedef void config_diff_cb(void *arg, const char *key, const char *from, const char *to);
/* Every difference between two configurations, by key. 0 or -ENOMEM. */
int config_diff(const struct config *from, const struct config *to, config_diff_cb *cb, void *arg);

/* One line for each key: "key<TAB>type<TAB>default<TAB>allowed", lists as "queues[].name". */
void config_schema_write(struct strbuf *out);

#endif
