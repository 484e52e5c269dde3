/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line to a verb: options, the state folder, errors. */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/units.h"
#include "cli/verb.h"
#include "config/suggest.h"
#include "replay/replay.h"

#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const exit_names[] = {
    [CLI_ERROR] = "error",         [CLI_USAGE] = "usage",     [CLI_NO_DAEMON] = "no-daemon",
    [CLI_NOT_FOUND] = "not-found", [CLI_REFUSED] = "refused", [CLI_TIMEOUT] = "timeout",
};

static void fail_json(int code, const char *problem, const char *text)
{
    const char *name = problem != NULL && problem[0] != '\0' ? problem : NULL;
    if (name == NULL && code > 0 && (size_t)code < sizeof exit_names / sizeof exit_names[0])
        name = exit_names[code];
    json_t *v = json_pack("{s:{s:s,s:s,s:i}}", "error", "code", name != NULL ? name : "error", "detail", text,
                          "exit_code", code);
    if (v != NULL)
        (void)json_dumpf(v, stderr, JSON_COMPACT);
    (void)fputc('\n', stderr);
    json_decref(v);
}

int cli_fail(const struct cli *c, int code, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c != NULL && c->json)
        fail_json(code, NULL, text);
    else
        (void)fprintf(stderr, "%s%s\n", msg(MSG_PREFIX_ERROR), text);
    return code;
}

int cli_fail_reply(const struct cli *c, const struct api_reply *r)
{
    if (c->json)
        fail_json(r->exit, r->code, r->err.text);
    else
        (void)fprintf(stderr, "%s%s\n", msg(MSG_PREFIX_ERROR), r->err.text);
    return r->exit;
}

const char *arg_get(const struct args *a, const char *name)
{
    for (size_t i = a->given_len; i > 0; i--)
        if (strcmp(a->given[i - 1].name, name) == 0)
            return a->given[i - 1].value != NULL ? a->given[i - 1].value : "";
    return NULL;
}

bool arg_has(const struct args *a, const char *name)
{
    return arg_get(a, name) != NULL;
}

void print_json(const json_t *v)
{
    (void)json_dumpf(v, stdout, JSON_INDENT(2));
    (void)fputc('\n', stdout);
}

uint64_t parse_job_id(const struct cli *c, const char *word)
{
    int64_t id = 0;
    if (units_parse_int(word, 1, INT64_MAX, &id, NULL) < 0)
        (void)FAIL(c, CLI_USAGE, BAD_JOB_ID, word);
    return (uint64_t)id;
}

/* --- options --- */

#define OPTS_MAX 64

/* The tables of getopt_long for a verb; `known` keeps what each entry stands for. */
struct parser {
    struct option longs[OPTS_MAX + 1];
    char letters[2 * OPTS_MAX + 3];
    size_t len;
    size_t letters_len;
};

static void parser_add(struct parser *p, const char *name, char letter, const char *arg)
{
    int has = arg == NULL ? no_argument : arg[0] == '[' ? optional_argument : required_argument;
    if (p->len == OPTS_MAX)
        return;
    p->longs[p->len] = (struct option){.name = name, .has_arg = has, .val = letter != 0 ? letter : 256 + (int)p->len};
    p->len++;
    if (letter == 0)
        return;
    p->letters[p->letters_len++] = letter;
    for (int i = 0; i < has; i++)
        p->letters[p->letters_len++] = ':';
}

static void parser_fill(struct parser *p, const struct verb *v)
{
    *p = (struct parser){0};
    if ((v->flags & VERB_STOP_AT_WORD) != 0)
        p->letters[p->letters_len++] = '+';
    p->letters[p->letters_len++] = ':';
    for (const struct opt *o = common_opts; o->name != NULL; o++)
        parser_add(p, o->name, o->letter, o->arg);
    for (const struct opt *o = v->opts; o != NULL && o->name != NULL; o++)
        parser_add(p, o->name, o->letter, o->arg);
    for (int i = 0; i < JOB_OPT_COUNT && (v->flags & VERB_JOB_OPTIONS) != 0; i++)
        parser_add(p, job_options()[i].name, 0, job_options()[i].arg);
}

static int bad_option(const struct cli *c, const struct parser *p, int kind, const char *word)
{
    const char *verb = c->verb->name;
    char name[64];
    bool is_long = strncmp(word, "--", 2) == 0;
    if (!is_long)
        (void)snprintf(name, sizeof name, "-%c", optopt);
    else
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (kind == ':')
        return FAIL(c, CLI_USAGE, OPTION_NEEDS_VALUE, verb, name);
    if (is_long && optopt != 0)
        return FAIL(c, CLI_USAGE, OPTION_TAKES_NO_VALUE, verb, name);
    const char *best = NULL;
    for (size_t i = 0; i < p->len && is_long; i++)
        suggest_offer(name + 2, p->longs[i].name, &best);
    if (best != NULL)
        return FAIL(c, CLI_USAGE, UNKNOWN_OPTION_MEANT, verb, name, best);
    return FAIL(c, CLI_USAGE, UNKNOWN_OPTION, verb, name);
}

static int keep(struct args *a, const struct parser *p, int value, const char *arg)
{
    if (mem_grow(&a->given, &a->given_cap, a->given_len + 1, sizeof *a->given) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < p->len; i++)
        if (p->longs[i].val == value)
            a->given[a->given_len++] = (struct given){p->longs[i].name, arg};
    return 0;
}

/* Parses argv behind the verb (argv[0] is the verb). */
static int parse(struct cli *c, int argc, char **argv, struct args *a)
{
    struct parser p;
    parser_fill(&p, c->verb);
    optind = 0; /* glibc: begin anew */
    opterr = 0;
    for (;;) {
        int before = optind == 0 ? 1 : optind;
        int got = getopt_long(argc, argv, p.letters, p.longs, NULL);
        if (got == -1)
            break;
        if (got == '?' || got == ':') {
            const char *word = argv[optind > 1 && optind <= argc ? optind - 1 : before];
            if (got == '?' && before < argc && strncmp(word, "-", 1) != 0)
                word = argv[before];
            return bad_option(c, &p, got, word);
        }
        if (keep(a, &p, got, optarg) < 0)
            return FAIL(c, CLI_ERROR, OUT_OF_MEMORY);
    }
    a->after_dashes = optind > 1 && strcmp(argv[optind - 1], "--") == 0;
    a->argc = argc - optind;
    a->argv = argv + optind;
    c->json = c->json || arg_has(a, "json");
    if (arg_has(a, "help"))
        return -1;
    if (c->verb->words_max >= 0 && a->argc > c->verb->words_max)
        return FAIL(c, CLI_USAGE, TOO_MANY_WORDS, c->verb->name, a->argv[c->verb->words_max], c->verb->usage);
    if (a->argc < c->verb->words_min)
        return FAIL(c, CLI_USAGE, TOO_FEW_WORDS, c->verb->name, c->verb->usage);
    return 0;
}

/* --- the state folder --- */

char *cli_absolute(const char *path)
{
    if (path[0] == '/')
        return mem_strdup(path);
    char here[4096];
    if (getcwd(here, sizeof here) == NULL)
        return NULL;
    struct strbuf b = {0};
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    strbuf_printf(&b, "%s%s%s", here, strcmp(path, ".") == 0 ? "" : "/", strcmp(path, ".") == 0 ? "" : path);
    return strbuf_take(&b);
}

static int settle_state(struct cli *c, const struct args *a)
{
    const char *given = arg_get(a, "state");
    if (given != NULL && given[0] == '\0')
        return FAIL(c, CLI_USAGE, STATE_DIR_EMPTY);
    if (given == NULL)
        given = getenv("REMUDA_STATE");
    const char *base = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    struct strbuf b = {0};
    if (given != NULL && given[0] != '\0')
        strbuf_puts(&b, given);
    else if (base != NULL && base[0] == '/')
        strbuf_printf(&b, "%s/remuda", base);
    else if (home != NULL && home[0] == '/')
        strbuf_printf(&b, "%s/.local/state/remuda", home);
    while (b.len > 1 && b.data[b.len - 1] == '/')
        b.data[--b.len] = '\0';
    c->state_dir = b.len > 0 ? cli_absolute(b.data) : NULL;
    strbuf_done(&b);
    if (c->state_dir == NULL)
        return FAIL(c, CLI_USAGE, NO_STATE_DIR);
    c->url = getenv("REMUDA_URL");
    if (c->url != NULL && c->url[0] == '\0')
        c->url = NULL;
    if (arg_has(a, "state"))
        c->url = NULL; /* the option is more particular than the environment */
    c->api = api_new(c->state_dir, c->url, getenv("REMUDA_TOKEN"));
    return c->api == NULL ? FAIL(c, CLI_ERROR, OUT_OF_MEMORY) : 0;
}

/* Options of every command may stand before the verb: they are moved behind it. */
static int find_verb(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--state") == 0)
            i++;
        else if (argv[i][0] != '-')
            return i;
    }
    return 0;
}

static int run_verb(struct cli *c, int argc, char **argv)
{
    struct args a = {0};
    int rc;
    if ((c->verb->flags & VERB_RAW) != 0) {
        a.argc = argc;
        a.argv = argv;
        return c->verb->run(c, &a);
    }
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        c->json = c->json || strcmp(argv[i], "--json") == 0; /* errors of parsing too */
    rc = parse(c, argc, argv, &a);
    if (rc == -1) {
        print_verb_help(stdout, c->verb);
        rc = 0;
    } else if (rc == 0) {
        if ((c->verb->flags & VERB_OFFLINE) == 0)
            rc = settle_state(c, &a);
        if (rc == 0)
            rc = c->verb->run(c, &a);
    }
    mem_free(a.given);
    return rc;
}

static int unknown_verb(const struct cli *c, const char *word)
{
    const char *best = NULL;
    for (size_t i = 0; i < verbs_len; i++)
        suggest_offer(word, verbs[i].name, &best);
    if (best != NULL)
        return FAIL(c, CLI_USAGE, UNKNOWN_COMMAND_MEANT, word, best);
    return FAIL(c, CLI_USAGE, UNKNOWN_COMMAND, word);
}

static int no_verb(struct cli *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0)
            return run_version(c, NULL);
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(stdout);
            return CLI_OK;
        }
    }
    print_help(stderr);
    return CLI_USAGE;
}

int cli_main(int argc, char **argv, const struct cli_hooks *hooks)
{
    lang_set(lang_from_env());
    (void)signal(SIGPIPE, SIG_DFL);
    struct cli c = {.hooks = hooks};
    int at = find_verb(argc, argv);
    if (at == 0)
        return no_verb(&c, argc, argv);
    c.verb = verb_find(argv[at]);
    if (c.verb == NULL)
        return unknown_verb(&c, argv[at]);
    /* argv[at] is the verb: it takes the first place, what stood before it follows. */
    char *verb = argv[at];
    memmove(&argv[2], &argv[1], (size_t)(at - 1) * sizeof *argv);
    argv[1] = verb;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    int rc = run_verb(&c, argc - 1, argv + 1);
    api_free(c.api);
    mem_free(c.state_dir);
    curl_global_cleanup();
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (rc == CLI_OK)
            rc = CLI_ERROR;
    }
    return rc;
}

int run_version(struct cli *c, struct args *a)
{
    (void)a;
    if (c->json)
        (void)printf("{\"version\": \"%s\"}\n", c->hooks->version);
    else
        (void)printf("remuda %s\n", c->hooks->version);
    return CLI_OK;
}

int run_replay(struct cli *c, struct args *a)
{
    (void)c;
    return replay_main(a->argc, a->argv);
}
