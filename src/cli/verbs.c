/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of verbs and options, and what is made of them: help and completion. */
#include "cli/verb.h"

#include "base/mem.h"

#include <string.h>

const struct opt common_opts[] = {
    {"state", 0, "DIR", MSG_OPT_STATE, 0},
    {"json", 0, NULL, MSG_OPT_JSON, 0},
    {"help", 'h', NULL, MSG_OPT_HELP, 0},
    {.name = NULL},
};

#define FILTERS                                                                                              \
    {"status", 0, "STATES", MSG_OPT_STATUS, 0}, {"user", 'u', "USER", MSG_OPT_FILTER_USER, 0},               \
        {"queue", 'q', "QUEUE", MSG_OPT_FILTER_QUEUE, 0}, {"tenant", 0, "TENANT", MSG_OPT_FILTER_TENANT, 0}, \
    {                                                                                                        \
        "name", 'n', "NAME", MSG_OPT_FILTER_NAME, 0                                                          \
    }

#define DAEMON_OPTS                                                                                                  \
    {"config", 'c', "FILE", MSG_OPT_CONFIG, 0}, {"simulate", 0, "PRESET", MSG_OPT_SIMULATE, 0},                      \
        {"simulate-cluster", 0, "FILE", MSG_OPT_SIMULATE_CLUSTER, 0}, {"time-scale", 0, "N", MSG_OPT_TIME_SCALE, 0}, \
    {                                                                                                                \
        "listen", 0, "ADDRESS:PORT", MSG_OPT_LISTEN, 0                                                               \
    }

static const struct opt up_opts[] = {DAEMON_OPTS, {"timeout", 0, "DURATION", MSG_OPT_TIMEOUT, 0}, {.name = NULL}};
static const struct opt daemon_opts[] = {DAEMON_OPTS, {.name = NULL}};
static const struct opt down_opts[] = {
    {"cancel-jobs", 0, NULL, MSG_OPT_CANCEL_JOBS, 0}, {"timeout", 0, "DURATION", MSG_OPT_TIMEOUT, 0}, {.name = NULL}};
static const struct opt submit_opts[] = {
    {"file", 'f', "FILE", MSG_OPT_FILE, 0},     {"hold", 'H', NULL, MSG_OPT_HOLD, 0},
    {"parsable", 0, NULL, MSG_OPT_PARSABLE, 0}, {"export", 0, "LIST", MSG_OPT_EXPORT, 0},
    {"env", 'e', "NAME=VALUE", MSG_OPT_ENV, 0}, {.name = NULL}};
static const struct opt run_opts[] = {{"file", 'f', "FILE", MSG_OPT_FILE, 0},
                                      {"export", 0, "LIST", MSG_OPT_EXPORT, 0},
                                      {"env", 'e', "NAME=VALUE", MSG_OPT_ENV, 0},
                                      {.name = NULL}};
static const struct opt ps_opts[] = {FILTERS,
                                     {"all", 'a', NULL, MSG_OPT_ALL, 0},
                                     {"format", 'o', "FORMAT", MSG_OPT_FORMAT, 0},
                                     {"watch", 'w', "[SECONDS]", MSG_OPT_WATCH, 0},
                                     {.name = NULL}};
static const struct opt history_opts[] = {
    FILTERS, {"format", 'o', "FORMAT", MSG_OPT_FORMAT, 0}, {"limit", 0, "N", MSG_OPT_LIMIT, 0}, {.name = NULL}};
static const struct opt logs_opts[] = {
    {"follow", 'f', NULL, MSG_OPT_FOLLOW, 0}, {"worker", 0, "N", MSG_OPT_WORKER, 0},
    {"stderr", 0, NULL, MSG_OPT_STDERR, 0},   {"attempt", 0, "N", MSG_OPT_ATTEMPT, 0},
    {"tail", 0, "N", MSG_OPT_TAIL, 0},        {.name = NULL}};
static const struct opt events_opts[] = {{"follow", 'f', NULL, MSG_OPT_FOLLOW_EVENTS, 0},
                                         {"after", 0, "N", MSG_OPT_AFTER, 0},
                                         {"job", 0, "ID", MSG_OPT_JOB, 0},
                                         {.name = NULL}};
static const struct opt update_opts[] = {{"priority", 0, "N", MSG_OPT_PRIORITY, 0},
                                         {"time", 0, "DURATION", MSG_OPT_NEW_TIME, 0},
                                         {"name", 0, "NAME", MSG_OPT_NEW_NAME, 0},
                                         {"queue", 0, "QUEUE", MSG_OPT_NEW_QUEUE, 0},
                                         {.name = NULL}};
static const struct opt cancel_opts[] = {FILTERS, {"all", 'a', NULL, MSG_OPT_CANCEL_ALL, 0}, {.name = NULL}};
static const struct opt drain_opts[] = {{"reason", 0, "TEXT", MSG_OPT_REASON, 0}, {.name = NULL}};
static const struct opt topo_opts[] = {{"node", 'n', "NODE", MSG_OPT_NODE, 0}, {.name = NULL}};
static const struct opt wait_opts[] = {{"timeout", 0, "DURATION", MSG_OPT_TIMEOUT, 0}, {.name = NULL}};
static const struct opt top_opts[] = {
    {"interval", 0, "SECONDS", MSG_OPT_INTERVAL, 0}, {"once", 0, NULL, MSG_OPT_ONCE, 0}, {.name = NULL}};

#define SUBMIT_USAGE "[OPTIONS] SCRIPT [ARGS...] | [OPTIONS] -- COMMAND [ARGS...] | -f FILE"

const struct verb verbs[] = {
    {"up", "up [OPTIONS]", MSG_VERB_UP, up_opts, 0, 0, 0, run_up},
    {"down", "down [OPTIONS]", MSG_VERB_DOWN, down_opts, 0, 0, 0, run_down},
    {"status", "status", MSG_VERB_STATUS, NULL, 0, 0, 0, run_status},
    {"daemon", "daemon [OPTIONS]", MSG_VERB_DAEMON, daemon_opts, 0, 0, 0, run_daemon},
    {"submit", "submit " SUBMIT_USAGE, MSG_VERB_SUBMIT, submit_opts, 0, -1, VERB_JOB_OPTIONS | VERB_STOP_AT_WORD,
     run_submit},
    {"run", "run " SUBMIT_USAGE, MSG_VERB_RUN, run_opts, 0, -1, VERB_JOB_OPTIONS | VERB_STOP_AT_WORD, run_run},
    {"ps", "ps [OPTIONS]", MSG_VERB_PS, ps_opts, 0, 0, 0, run_ps},
    {"history", "history [OPTIONS]", MSG_VERB_HISTORY, history_opts, 0, 0, 0, run_history},
    {"show", "show ID", MSG_VERB_SHOW, NULL, 1, 1, 0, run_show},
    {"logs", "logs [OPTIONS] ID", MSG_VERB_LOGS, logs_opts, 1, 1, 0, run_logs},
    {"events", "events [OPTIONS]", MSG_VERB_EVENTS, events_opts, 0, 0, 0, run_events},
    {"update", "update ID OPTIONS", MSG_VERB_UPDATE, update_opts, 1, 1, 0, run_update},
    {"cancel", "cancel ID... | OPTIONS", MSG_VERB_CANCEL, cancel_opts, 0, -1, 0, run_cancel},
    {"hold", "hold ID...", MSG_VERB_HOLD, NULL, 1, -1, 0, run_hold},
    {"release", "release ID...", MSG_VERB_RELEASE, NULL, 1, -1, 0, run_release},
    {"requeue", "requeue ID...", MSG_VERB_REQUEUE, NULL, 1, -1, 0, run_requeue},
    {"explain", "explain ID", MSG_VERB_EXPLAIN, NULL, 1, 1, 0, run_explain},
    {"nodes", "nodes", MSG_VERB_NODES, NULL, 0, 0, 0, run_nodes},
    {"drain", "drain NODE [--reason TEXT]", MSG_VERB_DRAIN, drain_opts, 1, 1, 0, run_drain},
    {"undrain", "undrain NODE", MSG_VERB_UNDRAIN, NULL, 1, 1, 0, run_undrain},
    {"topo", "topo [--node NODE]", MSG_VERB_TOPO, topo_opts, 0, 0, 0, run_topo},
    {"top", "top [OPTIONS]", MSG_VERB_TOP, top_opts, 0, 0, 0, run_top},
    {"queues", "queues", MSG_VERB_QUEUES, NULL, 0, 0, 0, run_queues},
    {"tenants", "tenants", MSG_VERB_TENANTS, NULL, 0, 0, 0, run_tenants},
    {"config", "config show | check FILE | diff FILE | apply FILE", MSG_VERB_CONFIG, NULL, 1, 2, 0, run_config},
    {"wait", "wait [--timeout DURATION] ID...", MSG_VERB_WAIT, wait_opts, 1, -1, 0, run_wait},
    {"replay", "replay ...", MSG_VERB_REPLAY, NULL, 0, -1, VERB_RAW | VERB_OFFLINE, run_replay},
    {"version", "version", MSG_VERB_VERSION, NULL, 0, 0, VERB_OFFLINE, run_version},
    {"help", "help [COMMAND]", MSG_VERB_HELP, NULL, 0, 1, VERB_OFFLINE, run_help},
    {"completion", "completion bash", MSG_VERB_COMPLETION, NULL, 1, 1, VERB_OFFLINE, run_completion},
};
const size_t verbs_len = sizeof verbs / sizeof verbs[0];

enum msg_id job_option_help(enum job_option_id id)
{
    static const enum msg_id ids[JOB_OPT_COUNT] = {
        [JOB_OPT_NAME] = MSG_OPT_NAME,
        [JOB_OPT_GPUS] = MSG_OPT_GPUS,
        [JOB_OPT_GPU_MEM] = MSG_OPT_GPU_MEM,
        [JOB_OPT_GPU_PERCENT] = MSG_OPT_GPU_PERCENT,
        [JOB_OPT_MIG] = MSG_OPT_MIG,
        [JOB_OPT_GPU_MODEL] = MSG_OPT_GPU_MODEL,
        [JOB_OPT_WORKERS] = MSG_OPT_WORKERS,
        [JOB_OPT_CPUS] = MSG_OPT_CPUS,
        [JOB_OPT_MEM] = MSG_OPT_MEM,
        [JOB_OPT_TIME] = MSG_OPT_TIME,
        [JOB_OPT_GRACE] = MSG_OPT_GRACE,
        [JOB_OPT_QUEUE] = MSG_OPT_QUEUE,
        [JOB_OPT_PRIORITY] = MSG_OPT_PRIORITY,
        [JOB_OPT_TENANT] = MSG_OPT_TENANT,
        [JOB_OPT_REQUIRE] = MSG_OPT_REQUIRE,
        [JOB_OPT_PREFER] = MSG_OPT_PREFER,
        [JOB_OPT_STRATEGY] = MSG_OPT_STRATEGY,
        [JOB_OPT_CHDIR] = MSG_OPT_CHDIR,
        [JOB_OPT_BEGIN] = MSG_OPT_BEGIN,
        [JOB_OPT_AFTER] = MSG_OPT_AFTER_JOBS,
        [JOB_OPT_SIM_DURATION] = MSG_OPT_SIM_DURATION,
    };
    return ids[id];
}

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < verbs_len; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static void help_option(struct table *t, char letter, const char *name, const char *arg, enum msg_id help)
{
    bool optional = arg != NULL && arg[0] == '[';
    char first[8] = "    ";
    if (letter != 0)
        (void)snprintf(first, sizeof first, "-%c, ", letter);
    if (optional)
        table_addf(t, "  %s--%s[=%.*s]", first, name, (int)strlen(arg) - 2, arg + 1);
    else
        table_addf(t, "  %s--%s%s%s", first, name, arg != NULL ? " " : "", arg != NULL ? arg : "");
    table_add(t, msg(help));
}

static void help_options(FILE *f, enum msg_id title, const struct opt *opts)
{
    struct table t;
    table_init(&t, 2, 0);
    for (const struct opt *o = opts; o->name != NULL; o++)
        if (!o->hidden)
            help_option(&t, o->letter, o->name, o->arg, o->help);
    (void)fprintf(f, "\n%s\n", msg(title));
    table_print(&t, f);
    table_done(&t);
}

void print_verb_help(FILE *f, const struct verb *v)
{
    SAY(f, HELP_USAGE, v->usage);
    (void)fprintf(f, "\n%s\n", msg(v->summary));
    if (v->opts != NULL)
        help_options(f, MSG_HELP_OPTIONS, v->opts);
    if ((v->flags & VERB_JOB_OPTIONS) != 0) {
        struct table t;
        table_init(&t, 2, 0);
        for (int i = 0; i < JOB_OPT_COUNT; i++)
            help_option(&t, 0, job_options()[i].name, job_options()[i].arg, job_option_help((enum job_option_id)i));
        (void)fprintf(f, "\n%s\n", msg(MSG_HELP_JOB_OPTIONS));
        table_print(&t, f);
        table_done(&t);
    }
    help_options(f, MSG_HELP_COMMON, common_opts);
}

void print_help(FILE *f)
{
    struct table t;
    table_init(&t, 2, 0);
    for (size_t i = 0; i < verbs_len; i++) {
        table_addf(&t, "  %s", verbs[i].name);
        table_add(&t, msg(verbs[i].summary));
    }
    (void)fprintf(f, "%s\n", msg(MSG_HELP_TITLE));
    SAY(f, HELP_USAGE, "COMMAND [OPTIONS] ...");
    (void)fprintf(f, "\n\n%s\n", msg(MSG_HELP_COMMANDS));
    table_print(&t, f);
    table_done(&t);
    help_options(f, MSG_HELP_COMMON, common_opts);
    (void)fprintf(f, "\n%s\n%s\n", msg(MSG_HELP_EXIT_CODES), msg(MSG_HELP_MORE));
}

int run_help(struct cli *c, struct args *a)
{
    if (a->argc == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    const struct verb *v = verb_find(a->argv[0]);
    if (v == NULL)
        return FAIL(c, CLI_USAGE, UNKNOWN_COMMAND, a->argv[0]);
    print_verb_help(stdout, v);
    return CLI_OK;
}

static void completion_words(const struct opt *opts)
{
    for (const struct opt *o = opts; o != NULL && o->name != NULL; o++)
        if (!o->hidden)
            (void)printf(" --%s", o->name);
}

int run_completion(struct cli *c, struct args *a)
{
    if (strcmp(a->argv[0], "bash") != 0)
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, "completion", a->argv[0], "bash");
    (void)printf("# bash completion for remuda: source <(remuda completion bash)\n"
                 "_remuda() {\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]} verb= i\n"
                 "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                 "        case ${COMP_WORDS[i]} in -*) ;; *) verb=${COMP_WORDS[i]}; break ;; esac\n"
                 "    done\n"
                 "    local words=\n"
                 "    case $verb in\n"
                 "    '') words='");
    for (size_t i = 0; i < verbs_len; i++)
        (void)printf("%s%s", i > 0 ? " " : "", verbs[i].name);
    (void)printf("' ;;\n");
    for (size_t i = 0; i < verbs_len; i++) {
        if ((verbs[i].flags & VERB_RAW) != 0)
            continue;
        (void)printf("    %s) words='", verbs[i].name);
        completion_words(common_opts);
        completion_words(verbs[i].opts);
        for (int k = 0; k < JOB_OPT_COUNT && (verbs[i].flags & VERB_JOB_OPTIONS) != 0; k++)
            (void)printf(" --%s", job_options()[k].name);
        (void)printf("' ;;\n");
    }
    (void)printf("    esac\n"
                 "    case $word in\n"
                 "    -*) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;\n"
                 "    *)\n"
                 "        if [ -z \"$verb\" ]; then\n"
                 "            mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                 "        else\n"
                 "            case $verb in\n"
                 "            show | logs | cancel | wait | explain | update)\n"
                 "                mapfile -t COMPREPLY < <(compgen -W \"$(remuda ps --all --format id "
                 "2>/dev/null | tail -n +2)\" -- \"$word\") ;;\n"
                 "            drain | undrain)\n"
                 "                mapfile -t COMPREPLY < <(compgen -W \"$(remuda nodes 2>/dev/null | "
                 "awk 'NR > 1 { print $1 }')\" -- \"$word\") ;;\n"
                 "            esac\n"
                 "        fi ;;\n"
                 "    esac\n"
                 "}\n"
                 "complete -o default -F _remuda remuda\n");
    return CLI_OK;
}
