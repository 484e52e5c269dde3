/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line without a daemon: texts in both languages, columns of any script, reasons in words, lists, and what
 * wrong command lines are told. REQ: G3
 */
#include "test.h"

#include "cli/cli.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "cli/view.h"
#include "core/job.h"
#include "core/reason.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The arguments of a text, "1s 2d ", each once, by number. */
static void arguments(const char *text, char out[9][8], const char *what)
{
    for (int i = 0; i < 9; i++)
        out[i][0] = '\0';
    for (const char *p = text; *p != '\0'; p++) {
        if (*p != '%')
            continue;
        if (*++p == '%')
            continue;
        if (*p < '1' || *p > '9' || p[1] != '$')
            fail_msg("%s: an argument without a number in \"%s\"", what, text);
        int at = *p - '1';
        size_t len = strspn(p += 2, "lz");
        if (len > 4 || strchr("sdu", p[len]) == NULL)
            fail_msg("%s: an unknown conversion in \"%s\"", what, text);
        char kind[8];
        snprintf(kind, sizeof kind, "%.*s", (int)len + 1, p);
        if (out[at][0] != '\0' && strcmp(out[at], kind) != 0)
            fail_msg("%s: argument %d has two kinds", what, at + 1);
        memcpy(out[at], kind, sizeof kind);
        p += len;
    }
}

static void test_both_languages(void **state)
{
    (void)state;
    int same = 0;
    for (int i = 0; i < MSG_COUNT; i++) {
        char en[9][8];
        char zh[9][8];
        const char *name = msg_name((enum msg_id)i);
        const char *text = msg_in((enum msg_id)i, LANG_EN);
        const char *other = msg_in((enum msg_id)i, LANG_ZH);
        assert_true(text[0] != '\0' && other[0] != '\0');
        assert_true(utf8_valid(other, strlen(other)));
        arguments(text, en, name);
        arguments(other, zh, name);
        for (int k = 0; k < 9; k++)
            if (strcmp(en[k], zh[k]) != 0)
                fail_msg("%s: argument %d is \"%s\" in English and \"%s\" in Chinese", name, k + 1, en[k], zh[k]);
        same += strcmp(text, other) == 0;
    }
    assert_true(same < MSG_COUNT / 10); /* "GPU" and the like; everything else is translated */
}

static void test_language(void **state)
{
    static const struct {
        const char *lc_all, *lang;
        enum lang want;
    } cases[] = {{NULL, NULL, LANG_EN},           {NULL, "C", LANG_EN},
                 {NULL, "zh_CN.UTF-8", LANG_ZH},  {NULL, "zh_CN.utf8", LANG_ZH},
                 {NULL, "zh_CN.GB2312", LANG_EN}, {"en_US.UTF-8", "zh_CN.UTF-8", LANG_EN},
                 {"zh_TW.UTF-8", "C", LANG_ZH},   {"", "zh_CN.UTF-8", LANG_ZH},
                 {NULL, "zhxx.UTF-8", LANG_EN}};
    (void)state;
    unsetenv("LC_MESSAGES");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsetenv("LC_ALL");
        unsetenv("LANG");
        if (cases[i].lc_all != NULL)
            setenv("LC_ALL", cases[i].lc_all, 1);
        if (cases[i].lang != NULL)
            setenv("LANG", cases[i].lang, 1);
        if (lang_from_env() != cases[i].want)
            fail_msg("case %zu", i);
    }
    unsetenv("LC_ALL");
    unsetenv("LANG");
}

static void test_columns(void **state)
{
    static const struct {
        const char *text;
        size_t width;
    } cases[] = {{"", 0},
                 {"abc", 3},
                 {"\xe8\xae\xad\xe7\xbb\x83", 4}, /* two Chinese characters */
                 {"e\xcc\x81", 1},                /* e and a combining accent */
                 {"\xf0\x9f\x9a\x80", 2},         /* an emoji */
                 {"\xff\xfe", 2},                 /* bad bytes count one each */
                 {"\xe8\xae", 2},                 /* cut short */
                 {"\xc3\xa4\xc3\xb6", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (text_width(cases[i].text) != cases[i].width)
            fail_msg("case %zu: %zu columns", i, text_width(cases[i].text));
    assert_int_equal(text_cut("\xe8\xae\xad\xe7\xbb\x83", 3), 3); /* half a character is none */
    assert_int_equal(text_cut("abc", 2), 2);
    struct strbuf b = {0};
    text_pad(&b, "\xe8\xae\xad", 4, false);
    text_pad(&b, "a\nb", 4, true);
    assert_string_equal(strbuf_str(&b), "\xe8\xae\xad   a?b");
    strbuf_clear(&b);
    text_add(&b, "a\x1b[1m\x7f\xc2\x9b\xc2\xa0\xc3\xa9"); /* escape, delete, C1; a hard space and e' stay */
    assert_string_equal(strbuf_str(&b), "a?[1m??\xc2\xa0\xc3\xa9");
    strbuf_done(&b);
}

static void test_table(void **state)
{
    (void)state;
    struct table t;
    struct strbuf out = {0};
    table_init(&t, 3, 2);
    table_add(&t, "NAME");
    table_add(&t, "N");
    table_add(&t, "REST");
    table_add(&t, "\xe8\xae\xad\xe7\xbb\x83");
    table_addf(&t, "%d", 100);
    table_add(&t, "x");
    table_write(&t, &out, 0);
    assert_string_equal(strbuf_str(&out), "NAME    N  REST\n\xe8\xae\xad\xe7\xbb\x83  100  x\n");
    table_done(&t);
    strbuf_done(&out);
}

/* Every code of the scheduler has words in both languages. */
static void test_codes(void **state)
{
    (void)state;
    for (int lang = 0; lang < LANG_COUNT; lang++) {
        lang_set((enum lang)lang);
        for (int i = REASON_NONE + 1; i < REASON_CODES_LEN; i++) {
            struct strbuf b = {0};
            const char *code = reason_name((enum reason_code)i);
            json_t *r = json_pack("{s:s,s:{s:i,s:i,s:i,s:s,s:i,s:s}}", "code", code, "args", "asked", 2000, "free",
                                  1000, "total", 8000, "name", "someone", "job", 7, "until", "2026-12-01T05:13:00Z");
            add_reason(&b, r);
            const char *text = strbuf_str(&b);
            if (strcmp(text, code) == 0 || strchr(text, '$') != NULL)
                fail_msg("reason %s: \"%s\"", code, text);
            json_decref(r);
            strbuf_done(&b);
        }
        for (int i = CAUSE_NONE + 1; i <= CAUSE_LAST; i++)
            if (strcmp(cause_text(cause_name((enum cause)i)), cause_name((enum cause)i)) == 0)
                fail_msg("cause %s has no words", cause_name((enum cause)i));
#define X(symbol, name) assert_true(lang == LANG_EN || strcmp(state_text(name), name) != 0);
        JOB_STATES(X)
#undef X
#define X(symbol, number, name)                                           \
    if (strcmp(event_text(name), name) == 0 && strchr(name, '-') != NULL) \
        fail_msg("event %s has no words", name);
        RECORD_KINDS(X)
#undef X
    }
    lang_set(LANG_EN);
}

static void test_cards_line(void **state)
{
    static const struct {
        bool simulated;
        const char *cards, *want;
    } cases[] = {{true, "simulated (dgx-a100)", "SIMULATED: dgx-a100"},
                 {true, "simulated cluster (lab)", "SIMULATED: cluster (lab)"},
                 {true, "()", "SIMULATED: ()"},
                 {false, "NVML", "cards: NVML"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct strbuf b = {0};
        json_t *status = json_pack("{s:b,s:s}", "simulated", cases[i].simulated, "cards", cases[i].cards);
        add_cards_line(&b, status);
        assert_string_equal(strbuf_str(&b), cases[i].want);
        json_decref(status);
        strbuf_done(&b);
    }
}

static void test_formats(void **state)
{
    (void)state;
    struct err e = {0};
    struct strbuf out = {0};
    json_t *jobs = json_pack("[{s:i,s:s,s:s,s:i,s:i,s:i,s:s,s:s}]", "id", 7, "name", "train", "state", "running",
                             "gpus", 2, "workers", 4, "gpus_milli", 8000, "user", "eve", "queue", "batch");
    assert_int_equal(jobs_check_format(NULL, &e), 0);
    assert_int_equal(jobs_check_format("wide", &e), 0);
    assert_int_equal(jobs_check_format("id,name,gpus", &e), 0);
    assert_int_equal(jobs_check_format("{id}-{name}", &e), 0);
    assert_true(jobs_check_format("id,colour", &e) < 0);
    assert_non_null(strstr(e.text, "colour"));
    assert_true(jobs_check_format("{id", &e) < 0);
    assert_true(jobs_check_format("", &e) < 0);
    jobs_write(&out, jobs, "{id}-{name}", false);
    assert_string_equal(strbuf_str(&out), "7-train\n");
    strbuf_clear(&out);
    jobs_write(&out, jobs, "id,gpus", false);
    assert_string_equal(strbuf_str(&out), "ID  GPUS\n 7   4x2\n");
    json_decref(jobs);
    strbuf_done(&out);
}

static int no_daemon(const struct cli_daemon *o)
{
    (void)o;
    return 77;
}

/* Runs the command line in a child; its exit code, and what it wrote. */
static int run(char *const *words, char *out, size_t size)
{
    static const struct cli_hooks hooks = {.daemon = no_daemon, .version = "9.9.9"};
    int fds[2];
    char *argv[16] = {(char[]){"remuda"}};
    int argc = 1;
    while (words[argc - 1] != NULL && argc < 15) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        close(fds[0]);
        setenv("REMUDA_STATE", "/tmp/remuda-test-no-such-state", 1);
        int code = cli_main(argc, argv, &hooks);
        fflush(NULL);
        _exit(code);
    }
    close(fds[1]);
    size_t len = 0;
    for (ssize_t n; len + 1 < size && (n = read(fds[0], out + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    out[len] = '\0';
    close(fds[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_command_lines(void **state)
{
    static const struct {
        const char *words[8];
        int code;
        const char *said;
    } cases[] = {
        {{"version"}, 0, "9.9.9"},
        {{"--version"}, 0, "9.9.9"},
        {{"version", "--json"}, 0, "\"version\""},
        {{"help"}, 0, "Commands:"},
        {{"--help"}, 0, "Commands:"},
        {{"submit", "--help"}, 0, "--gpu-percent"},
        {{"help", "top"}, 0, "--interval"},
        {{NULL}, 2, "Usage:"},
        {{"sumbit"}, 2, "submit"},
        {{"ps", "--colour"}, 2, "--colour"},
        {{"submit", "--gpu", "1", "--", "true"}, 2, "--gpu"},
        {{"submit", "--gpus"}, 2, "needs a value"},
        {{"ps", "--all=yes"}, 2, "no value"},
        {{"ps", "extra"}, 2, "extra"},
        {{"show"}, 2, "missing"},
        {{"show", "seven"}, 2, "seven"},
        {{"show", "0"}, 2, "0"},
        {{"show", "-1"}, 2, "-1"},
        {{"ps"}, 3, "remuda up"},
        {{"show", "1"}, 3, "remuda up"},
        {{"down"}, 0, "no daemon"},
        {{"ps", "--json"}, 3, "\"no-daemon\""},
        {{"ps", "--state", ""}, 2, "--state"},
        {{"submit"}, 2, "nothing to run"},
        {{"submit", "/no/such/script"}, 2, "/no/such/script"},
        {{"submit", "python3", "x.py"}, 2, "--"},
        {{"submit", "--gpus", "99", "--", "true"}, 2, "--gpus: 99"},
        {{"submit", "-f", "a.yaml", "--", "true"}, 2, "exclude"},
        {{"submit", "--export", "NO_SUCH_VARIABLE", "--", "true"}, 2, "NO_SUCH_VARIABLE"},
        {{"submit", "-e", "novalue", "--", "true"}, 2, "novalue"},
        {{"run", "--json", "--", "true"}, 2, "run: --json"},
        {{"wait", "--timeout", "soon", "1"}, 2, "soon"},
        {{"update", "1"}, 2, "nothing to change"},
        {{"update", "1", "--priority", "5000"}, 2, "-1000..1000"},
        {{"cancel"}, 2, "--all"},
        {{"cancel", "1", "--all"}, 2, "exclude"},
        {{"up", "--simulate", "a", "--simulate-cluster", "b"}, 2, "exclude"},
        {{"up", "--time-scale", "2"}, 2, "--simulate-cluster"},
        {{"up", "--simulate-cluster", "b", "--time-scale", "0"}, 2, "--time-scale"},
        {{"up", "--config", "/no/such.yaml"}, 2, "/no/such.yaml"},
        {{"daemon"}, 77, ""},
        {{"top", "--interval", "0"}, 2, "--interval"},
        {{"completion", "fish"}, 2, "bash"},
        {{"completion", "bash"}, 0, "complete -o default"},
    };
    (void)state;
    char out[20000];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = run((char *const *)(uintptr_t)cases[i].words, out, sizeof out);
        if (code != cases[i].code || strstr(out, cases[i].said) == NULL)
            fail_msg("remuda %s %s %s: code %d, not %d; said: %.400s", cases[i].words[0], cases[i].words[1],
                     cases[i].words[1] != NULL ? cases[i].words[2] : "", code, cases[i].code, out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_languages), cmocka_unit_test(test_language),      cmocka_unit_test(test_columns),
        cmocka_unit_test(test_table),          cmocka_unit_test(test_codes),         cmocka_unit_test(test_formats),
        cmocka_unit_test(test_cards_line),     cmocka_unit_test(test_command_lines),
    };
    return test_run("cli", tests);
}
