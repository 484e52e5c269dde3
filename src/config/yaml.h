/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as far as people need it for configuration: mappings, lists and scalars, and nothing with a surprise in it.
 * Refused with file, line and column: anchors and aliases (so no "billion laughs"), tags, several documents,
 * duplicate keys, keys that are not plain text, text that is not UTF-8, NUL, nesting and size past the limits.
 *
 * Scalars become JSON values without loss: a plain `true` or `false` is a boolean (`yes`, `no`, `on` are words), a
 * plain `null`, `~` or nothing is null, a plain number is an integer or a real when printing it gives the very same
 * text, everything else, and whatever is quoted, is a string ("010", "1.10" and "1e3" stay as they are written).
 *
 * Positions are kept beside the tree, so that a check that comes later can still say where a value stands.
 */
#ifndef REMUDA_CONFIG_YAML_H
#define REMUDA_CONFIG_YAML_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define YAML_DEPTH_MAX 16
#define YAML_BYTES_MAX ((size_t)8 << 20)
#define YAML_NODES_MAX 1000000

struct yaml_doc {
    json_t *root; /* owned; json_null() for an empty document */
    char *name;   /* of the source, for messages */
    struct yaml_place *places;
    size_t places_len;
    size_t places_cap;
};

/*
 * Parses `len` bytes; `name` is what messages call the source, e.g. the file's path. Fills *ret (owned by the caller,
 * yaml_done()) on success only. Errors: -EINVAL "NAME:LINE:COLUMN: what is wrong; what is allowed", -ENOMEM.
 */
int yaml_parse(const char *text, size_t len, const char *name, struct yaml_doc *ret, struct err *e);
/* Reads and parses a file; also -ENOENT, -EACCES and so on with the path in the text. */
int yaml_load_file(const char *path, struct yaml_doc *ret, struct err *e);
void yaml_done(struct yaml_doc *d);

/*
 * An error about a value: puts "NAME:LINE:COLUMN: " of the value under `key` (or at `index` when key is NULL) of
 * `container` before the formatted text. The place of the container itself is used when the key is not there.
 */
int yaml_err_key(const struct yaml_doc *d, struct err *e, const json_t *container, const char *key, const char *fmt,
                 ...) __attribute__((format(printf, 5, 6)));
int yaml_err_item(const struct yaml_doc *d, struct err *e, const json_t *container, size_t index, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/*
 * A whole file as owned, terminated memory (mem_free), at most `max` bytes, NUL bytes refused. Errors name the path.
 */
int config_read_text(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e);

#endif
