/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs and their options, as tables: parsing, help and shell completion all read them. A verb's function gets its
 * parsed options, its words, and a context with the connection; it returns the exit code.
 */
#ifndef REMUDA_CLI_VERB_H
#define REMUDA_CLI_VERB_H

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/text.h"
#include "config/options.h"

#include <stdbool.h>
#include <stdint.h>

struct opt {
    const char *name; /* long name */
    char letter;      /* short name, or 0 */
    const char *arg;  /* what stands for the value; NULL: a flag; "[X]": optional */
    enum msg_id help;
    int hidden; /* not shown in help and completion */
};

struct given {
    const char *name;  /* long name, as in the table */
    const char *value; /* NULL for a flag */
};

struct args {
    struct given *given; /* options in the order given; owned */
    size_t given_len;
    size_t given_cap;
    int argc; /* words that are no options */
    char **argv;
    bool after_dashes; /* the words came after "--" */
};

struct cli {
    const struct cli_hooks *hooks;
    const struct verb *verb;
    char *state_dir; /* absolute; owned */
    const char *url; /* REMUDA_URL or NULL */
    bool json;
    struct api *api; /* connects when used */
};

enum verb_flags {
    VERB_JOB_OPTIONS = 1,  /* takes the options of config/options.h */
    VERB_STOP_AT_WORD = 2, /* what follows the first word is not parsed */
    VERB_RAW = 4,          /* gets everything unparsed */
    VERB_OFFLINE = 8,      /* needs no state folder */
};

struct verb {
    const char *name;
    const char *usage; /* behind "remuda " */
    enum msg_id summary;
    const struct opt *opts; /* ends with a NULL name; may be NULL */
    int words_min;
    int words_max; /* -1: any */
    unsigned flags;
    int (*run)(struct cli *c, struct args *a);
};

extern const struct verb verbs[];
extern const size_t verbs_len;
extern const struct opt common_opts[];

const struct verb *verb_find(const char *name);
/* The last value given for an option; NULL when it was not given. "" for a flag. */
const char *arg_get(const struct args *a, const char *name);
bool arg_has(const struct args *a, const char *name);
/* The help message of a job option. */
enum msg_id job_option_help(enum job_option_id id);

/* Says what went wrong on standard error, as "remuda: text" or, with --json, as an object; returns `code`. */
int cli_fail(const struct cli *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for an answer that is an error. */
int cli_fail_reply(const struct cli *c, const struct api_reply *r);
#define FAIL(c, code, id, ...)                                            \
    ({                                                                    \
        struct strbuf fail_ = {0};                                        \
        ADD(&fail_, id, ##__VA_ARGS__);                                   \
        int fail_code_ = cli_fail((c), (code), "%s", strbuf_str(&fail_)); \
        strbuf_done(&fail_);                                              \
        fail_code_;                                                       \
    })

/* Prints a JSON value for scripts. */
void print_json(const json_t *v);
/* A job id; 0 when it is none (said already). */
uint64_t parse_job_id(const struct cli *c, const char *word);

/* `path` as an absolute path; the caller's (mem_free). NULL with errno without memory or a current folder. */
char *cli_absolute(const char *path);
/*
 * Waits for the end of a job for at most `timeout_ms` (negative: for ever); *ret (owned by the caller) is then the
 * answer of the API. CLI_OK, CLI_TIMEOUT, or an exit code whose reason has been said.
 */
int cli_wait(struct cli *c, uint64_t id, int64_t timeout_ms, json_t **ret);

/* The verbs, by file. */
int run_up(struct cli *c, struct args *a);
int run_down(struct cli *c, struct args *a);
int run_status(struct cli *c, struct args *a);
int run_daemon(struct cli *c, struct args *a);
int run_submit(struct cli *c, struct args *a);
int run_run(struct cli *c, struct args *a);
int run_ps(struct cli *c, struct args *a);
int run_history(struct cli *c, struct args *a);
int run_show(struct cli *c, struct args *a);
int run_logs(struct cli *c, struct args *a);
int run_events(struct cli *c, struct args *a);
int run_update(struct cli *c, struct args *a);
int run_cancel(struct cli *c, struct args *a);
int run_hold(struct cli *c, struct args *a);
int run_release(struct cli *c, struct args *a);
int run_requeue(struct cli *c, struct args *a);
int run_explain(struct cli *c, struct args *a);
int run_config(struct cli *c, struct args *a);
int run_queues(struct cli *c, struct args *a);
int run_tenants(struct cli *c, struct args *a);
int run_nodes(struct cli *c, struct args *a);
int run_drain(struct cli *c, struct args *a);
int run_undrain(struct cli *c, struct args *a);
int run_topo(struct cli *c, struct args *a);
int run_top(struct cli *c, struct args *a);
int run_wait(struct cli *c, struct args *a);
int run_replay(struct cli *c, struct args *a);
int run_version(struct cli *c, struct args *a);
int run_help(struct cli *c, struct args *a);
int run_completion(struct cli *c, struct args *a);

void print_help(FILE *f);
void print_verb_help(FILE *f, const struct verb *v);

#endif
