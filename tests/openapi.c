/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/openapi.h"

#include "config/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct yaml_doc doc;

const json_t *openapi_document(void)
{
    struct err e = {0};
    if (doc.root == NULL && yaml_load_file(SOURCE_ROOT "/api/openapi.yaml", &doc, &e) != 0)
        fail_msg("%s", e.text);
    return doc.root;
}

/* "#/components/schemas/Job" -> the object. */
static const json_t *resolve(const json_t *schema)
{
    const json_t *ref;
    while ((ref = json_object_get(schema, "$ref")) != NULL) {
        char path[256];
        const json_t *at = openapi_document();
        snprintf(path, sizeof(path), "%s", json_string_value(ref));
        char *rest = path + 2;
        for (char *part; (part = strsep(&rest, "/")) != NULL;)
            at = json_object_get(at, part);
        if (at == NULL)
            fail_msg("the document has no %s", json_string_value(ref));
        schema = at;
    }
    return schema;
}

static bool type_is(const char *type, const json_t *v)
{
    return (strcmp(type, "object") == 0 && json_is_object(v)) || (strcmp(type, "array") == 0 && json_is_array(v)) ||
           (strcmp(type, "string") == 0 && json_is_string(v)) || (strcmp(type, "integer") == 0 && json_is_integer(v)) ||
           (strcmp(type, "number") == 0 && json_is_number(v)) || (strcmp(type, "boolean") == 0 && json_is_boolean(v)) ||
           (strcmp(type, "null") == 0 && json_is_null(v));
}

static bool type_allowed(const json_t *type, const json_t *v)
{
    if (json_is_string(type))
        return type_is(json_string_value(type), v);
    for (size_t i = 0; i < json_array_size(type); i++)
        if (type_is(json_string_value(json_array_get(type, i)), v))
            return true;
    return type == NULL;
}

/* Writes what is wrong and where; false then. */
static bool valid(const json_t *schema, const json_t *v, const char *where, char why[512]);

static bool valid_object(const json_t *schema, const json_t *v, const char *where, char why[512])
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required");
    const json_t *more = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *value;
    char place[256];
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (json_object_get(v, name) == NULL) {
            snprintf(why, 512, "%s: \"%s\" is missing", where, name);
            return false;
        }
    }
    json_object_foreach((json_t *)v, key, value)
    {
        const json_t *s = json_object_get(properties, key);
        snprintf(place, sizeof(place), "%.200s.%.40s", where, key);
        if (s == NULL && json_is_false(more)) {
            snprintf(why, 512, "%s is not described", place);
            return false;
        }
        if (s == NULL && json_is_object(more))
            s = more;
        if (s != NULL && !valid(s, value, place, why))
            return false;
    }
    return true;
}

static bool valid(const json_t *schema, const json_t *v, const char *where, char why[512])
{
    schema = resolve(schema);
    const json_t *one_of = json_object_get(schema, "oneOf");
    const json_t *words = json_object_get(schema, "enum");
    char place[256];
    for (size_t i = 0; i < json_array_size(one_of); i++)
        if (valid(json_array_get(one_of, i), v, where, why))
            return true;
    if (one_of != NULL)
        return false;
    if (!type_allowed(json_object_get(schema, "type"), v)) {
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        snprintf(why, 512, "%s: wrong type: %.200s", where, text);
        free(text);
        return false;
    }
    bool found = words == NULL || json_is_null(v);
    for (size_t i = 0; i < json_array_size(words); i++)
        found = found || json_equal(json_array_get(words, i), v);
    if (!found) {
        snprintf(why, 512, "%s: \"%s\" is not among the words allowed", where,
                 json_is_string(v) ? json_string_value(v) : "?");
        return false;
    }
    if (json_is_object(v))
        return valid_object(schema, v, where, why);
    const json_t *items = json_object_get(schema, "items");
    for (size_t i = 0; json_is_array(v) && items != NULL && i < json_array_size(v); i++) {
        snprintf(place, sizeof(place), "%.200s[%zu]", where, i);
        if (!valid(items, json_array_get(v, i), place, why))
            return false;
    }
    return true;
}

/* True when a path (without its query) is one of the template; a literal segment never matches a
 * parameter here. */
static bool path_matches(const char *template, const char *path)
{
    size_t len = strcspn(path, "?");
    const char *end = path + len;
    while (*template != '\0' && path < end) {
        if (*template == '{') {
            if (strncmp(path, "cancel", 6) == 0)
                return false;
            template = strchr(template, '}') + 1;
            while (path < end && *path != '/')
                path++;
        } else if (*template ++ != *path++) {
            return false;
        }
    }
    return *template == '\0' && path == end;
}

static const json_t *operation_of(const char *method, const char *path)
{
    const char *template;
    json_t *item;
    char lower[16];
    snprintf(lower, sizeof(lower), "%s", method);
    for (char *c = lower; *c != '\0'; c++)
        *c = (char)(*c | 0x20);
    json_object_foreach(json_object_get(openapi_document(), "paths"), template, item)
    {
        if (path_matches(template, path))
            return json_object_get(item, lower);
    }
    return NULL;
}

void openapi_check_reply(const char *method, const char *path, int status, const json_t *json)
{
    char code[16];
    char why[512] = "";
    const json_t *problem =
        json_object_get(json_object_get(json_object_get(openapi_document(), "components"), "schemas"), "Problem");
    const json_t *operation = operation_of(method, path);
    if (status == 0)
        return;
    if (status >= 400) {
        if (json == NULL || !valid(problem, json, "problem", why))
            fail_msg("%s %s: the answer %d is no problem document: %s", method, path, status, why);
        return;
    }
    snprintf(code, sizeof(code), "%d", status);
    const json_t *response = resolve(json_object_get(json_object_get(operation, "responses"), code));
    if (response == NULL)
        fail_msg("%s %s: the document knows no answer %d", method, path, status);
    const json_t *schema =
        json_object_get(json_object_get(json_object_get(response, "content"), "application/json"), "schema");
    if (schema == NULL)
        return;
    if (json == NULL || !valid(schema, json, "body", why))
        fail_msg("%s %s: %d: %s", method, path, status, why);
}
