/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb top: cards, jobs and the queue, looked at again and again. A screen is first made as lines of text, of any
 * width and length; then shown by ncurses, or printed when there is no terminal.
 */
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/units.h"
#include "cli/verb.h"
#include "cli/view.h"

#include <curses.h>
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#define CARD_ROWS_MAX 32 /* with more cards, or more than half of the screen, one row for each node */
#define KEY_WAIT_MS   100
#define PRINT_COLUMNS 160

enum order { ORDER_ID, ORDER_GPUS, ORDER_USER, ORDERS_LEN };

/* What the daemon last said; owned. NULL before the first answer. */
struct look {
    json_t *status;
    json_t *nodes;
    json_t *jobs;
};

struct top {
    struct cli *cli;
    struct look look;
    struct err err; /* of the last look; code 0: it went well */
    int exit;
    enum order order;
    size_t skip; /* jobs scrolled past */
    size_t rows; /* of the screen; 0: printed, as long as it gets */
    bool paused;
};

static volatile sig_atomic_t stopped;

static void on_stop(int signum)
{
    (void)signum;
    stopped = 1;
}

static void look_done(struct look *l)
{
    json_decref(l->status);
    json_decref(l->nodes);
    json_decref(l->jobs);
    *l = (struct look){NULL, NULL, NULL};
}

static bool fetch(struct top *t, const char *path, const char *key, json_t **ret)
{
    struct api_reply r;
    t->exit = api_call(t->cli->api, "GET", path, NULL, &r);
    if (t->exit == CLI_OK)
        *ret = json_incref(key != NULL ? json_object_get(r.body, key) : r.body);
    else
        t->err = r.err;
    api_reply_done(&r);
    return t->exit == CLI_OK;
}

/* A new look; the old one stays when the daemon does not answer. */
static void look_again(struct top *t)
{
    struct look l = {NULL, NULL, NULL};
    t->err.code = 0;
    if (fetch(t, "/v1/status", NULL, &l.status) && fetch(t, "/v1/nodes", "nodes", &l.nodes) &&
        fetch(t, "/v1/jobs?limit=1000", "jobs", &l.jobs)) {
        look_done(&t->look);
        t->look = l;
    } else {
        look_done(&l);
    }
}

/* --- lines --- */

struct sums {
    int64_t cards;
    int64_t given_milli;
    int64_t util_pct; /* of `utils` cards */
    int64_t utils;
    int64_t used_mib;
    int64_t mem_mib; /* of cards that tell what is used */
};

static int64_t optional(const json_t *v, const char *key)
{
    const json_t *n = json_object_get(v, key);
    return json_is_integer(n) ? json_integer_value(n) : -1;
}

static void add_card(struct sums *s, const json_t *g)
{
    int64_t util = optional(g, "util_pct");
    int64_t used = optional(g, "mem_used_mib");
    s->cards++;
    s->given_milli += 1000 - get_int(g, "free_milli");
    if (util >= 0) {
        s->util_pct += util;
        s->utils++;
    }
    if (used >= 0) {
        s->used_mib += used;
        s->mem_mib += get_int(g, "mem_mib");
    }
}

static void add_node(struct sums *s, const json_t *node)
{
    size_t i;
    json_t *g;
    json_array_foreach(json_object_get(node, "gpus"), i, g) add_card(s, g);
}

static void format_pct(int64_t part, int64_t whole, char out[32])
{
    if (whole <= 0)
        (void)snprintf(out, 32, "-");
    else
        (void)snprintf(out, 32, "%" PRId64 "%%", (100 * part + whole / 2) / whole);
}

static void format_used(const struct sums *s, char out[64])
{
    if (s->mem_mib <= 0) {
        (void)snprintf(out, 64, "-");
        return;
    }
    (void)snprintf(out, 64, "%.1f/%.0f GiB", (double)s->used_mib / 1024, (double)s->mem_mib / 1024);
}

/* "allocated [||||||||  ] 82%" */
static void add_bar(struct strbuf *b, const char *title, int64_t part, int64_t whole)
{
    char text[32];
    int full = whole > 0 ? (int)((20 * part + whole / 2) / whole) : 0;
    format_pct(part, whole, text);
    strbuf_printf(b, "%s [", title);
    for (int i = 0; i < 20; i++)
        strbuf_putc(b, i < full ? '|' : ' ');
    strbuf_printf(b, "] %-4s   ", text);
}

static void write_head(const struct top *t, struct strbuf *out)
{
    const json_t *status = t->look.status;
    const json_t *jobs = json_object_get(status, "jobs");
    struct sums s = {0};
    char when[32];
    char text[32];
    size_t i;
    json_t *n;
    json_array_foreach(t->look.nodes, i, n) add_node(&s, n);
    format_local(now_ms(), when);
    strbuf_printf(out, "%s   %s   ", msg(MSG_TOP_TITLE), when);
    if (get_bool(status, "simulated"))
        add_cards_line(out, status);
    if (t->paused)
        strbuf_printf(out, "   [%s]", msg(MSG_TOP_PAUSED));
    strbuf_putc(out, '\n');
    format_milli(get_int(status, "gpus_free_milli"), text);
    ADD(out, TOP_SUMMARY, (long long)get_int(status, "gpus"), text,
        (long long)(get_int(jobs, "running") + get_int(jobs, "starting")), (long long)get_int(jobs, "queued"));
    strbuf_putc(out, '\n');
    add_bar(out, msg(MSG_TOP_ALLOCATED), s.given_milli, s.cards * 1000);
    add_bar(out, msg(MSG_TOP_USE), s.util_pct, s.utils * 100);
    add_bar(out, msg(MSG_TOP_MEMORY), s.used_mib, s.mem_mib);
    strbuf_putc(out, '\n');
}

static void card_jobs(struct strbuf *b, const json_t *g)
{
    size_t i;
    json_t *job;
    json_array_foreach(json_object_get(g, "jobs"), i, job)
    {
        strbuf_printf(b, "%s%" PRId64 " %s", i > 0 ? ", " : "", get_int(job, "id"), get_str(job, "name"));
        if (get_int(job, "milli") < 1000) {
            char text[32];
            format_milli(get_int(job, "milli") * 100, text);
            strbuf_printf(b, " %s%%", text);
        }
    }
}

static void card_row(struct table *table, const json_t *node, const json_t *g)
{
    struct sums s = {0};
    char text[64];
    struct strbuf b = {0};
    add_card(&s, g);
    table_add(table, get_str(node, "name"));
    table_addf(table, "%" PRId64, get_int(g, "index"));
    table_add(table, get_str(g, "model"));
    format_pct(s.given_milli, 1000, text);
    table_add(table, text);
    format_pct(s.util_pct, s.utils * 100, text);
    table_add(table, text);
    format_used(&s, text);
    table_add(table, text);
    if (optional(g, "temp_c") >= 0)
        table_addf(table, "%" PRId64 " C", optional(g, "temp_c"));
    else
        table_add(table, "-");
    if (optional(g, "power_w") >= 0)
        table_addf(table, "%" PRId64 " W", optional(g, "power_w"));
    else
        table_add(table, "-");
    card_jobs(&b, g);
    if (!get_bool(g, "healthy"))
        strbuf_printf(&b, "%s%s", b.len > 0 ? ", " : "", msg(MSG_NODE_DOWN));
    table_add(table, strbuf_str(&b));
    strbuf_done(&b);
}

static void write_cards(const struct top *t, struct strbuf *out)
{
    static const enum msg_id titles[] = {MSG_COL_NODE,    MSG_COL_CARD, MSG_COL_MODEL, MSG_COL_GIVEN,  MSG_COL_USE,
                                         MSG_COL_GPU_MEM, MSG_COL_TEMP, MSG_COL_POWER, MSG_COL_HOLDERS};
    struct table table;
    table_init(&table, sizeof titles / sizeof titles[0], 2 | 8 | 16 | 32 | 64 | 128);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        table_add(&table, msg(titles[i]));
    size_t i;
    size_t k;
    json_t *n;
    json_t *g;
    json_array_foreach(t->look.nodes, i, n) json_array_foreach(json_object_get(n, "gpus"), k, g) card_row(&table, n, g);
    table_write(&table, out, 0);
    table_done(&table);
}

/* On a screen at most half of the rows, so that there is room for jobs. */
static size_t nodes_shown(const struct top *t)
{
    size_t len = json_array_size(t->look.nodes);
    size_t room = t->rows / 2 > 3 ? t->rows / 2 : 3;
    return t->rows == 0 || len <= room ? len : room - 1;
}

static void write_nodes(const struct top *t, struct strbuf *out)
{
    size_t shown = nodes_shown(t);
    static const enum msg_id titles[] = {MSG_COL_NODE,  MSG_COL_RACK, MSG_COL_STATE,  MSG_COL_GPUS,
                                         MSG_COL_GIVEN, MSG_COL_USE,  MSG_COL_GPU_MEM};
    struct table table;
    table_init(&table, sizeof titles / sizeof titles[0], 8 | 16 | 32 | 64);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        table_add(&table, msg(titles[i]));
    for (size_t i = 0; i < shown; i++) {
        const json_t *n = json_array_get(t->look.nodes, i);
        struct sums s = {0};
        char text[64];
        add_node(&s, n);
        table_add(&table, get_str(n, "name"));
        table_add(&table, get_str(n, "rack"));
        table_add(&table, get_bool(n, "draining") ? msg(MSG_NODE_DRAINING) : state_text(get_str(n, "state")));
        table_addf(&table, "%" PRId64, s.cards);
        format_pct(s.given_milli, s.cards * 1000, text);
        table_add(&table, text);
        format_pct(s.util_pct, s.utils * 100, text);
        table_add(&table, text);
        format_used(&s, text);
        table_add(&table, text);
    }
    table_write(&table, out, 0);
    table_done(&table);
    if (shown < json_array_size(t->look.nodes)) {
        ADD(out, TOP_MORE_NODES, (long long)(json_array_size(t->look.nodes) - shown));
        strbuf_putc(out, '\n');
    }
}

/* Running jobs first, then those that wait; within each by what was chosen, then by id. */
static enum order sort_order; /* qsort() has no argument for it */

static int compare_jobs(const void *x, const void *y)
{
    const json_t *a = *(json_t *const *)x;
    const json_t *b = *(json_t *const *)y;
    bool waits_a = strcmp(get_str(a, "state"), "queued") == 0;
    bool waits_b = strcmp(get_str(b, "state"), "queued") == 0;
    int64_t d = (int64_t)waits_a - (int64_t)waits_b;
    if (d == 0 && sort_order == ORDER_GPUS)
        d = get_int(b, "gpus_milli") - get_int(a, "gpus_milli");
    if (d == 0 && sort_order == ORDER_USER)
        d = strcmp(get_str(a, "user"), get_str(b, "user"));
    if (d == 0)
        d = get_int(a, "id") - get_int(b, "id");
    return d < 0 ? -1 : d > 0;
}

static void write_jobs(const struct top *t, struct strbuf *out)
{
    size_t len = json_array_size(t->look.jobs);
    json_t **rows = mem_alloc(len + 1, sizeof *rows);
    json_t *sorted = json_array();
    for (size_t i = 0; rows != NULL && i < len; i++)
        rows[i] = json_array_get(t->look.jobs, i);
    sort_order = t->order;
    if (rows != NULL)
        qsort(rows, len, sizeof *rows, compare_jobs);
    for (size_t i = t->skip; rows != NULL && i < len; i++)
        (void)json_array_append(sorted, rows[i]);
    if (len == 0)
        strbuf_printf(out, "%s\n", msg(MSG_NO_JOBS));
    else
        jobs_write(out, sorted, NULL, false);
    json_decref(sorted);
    mem_free(rows);
}

static void write_screen(const struct top *t, struct strbuf *out)
{
    if (t->look.status != NULL) {
        write_head(t, out);
        strbuf_putc(out, '\n');
        size_t cards = 0;
        size_t i;
        json_t *n;
        json_array_foreach(t->look.nodes, i, n) cards += json_array_size(json_object_get(n, "gpus"));
        if (cards <= CARD_ROWS_MAX && (t->rows == 0 || cards <= t->rows / 2))
            write_cards(t, out);
        else
            write_nodes(t, out);
        strbuf_putc(out, '\n');
        write_jobs(t, out);
    }
}

/* --- once --- */

static int print_once(struct top *t)
{
    struct cli *c = t->cli;
    look_again(t);
    if (t->exit != CLI_OK)
        return cli_fail(c, t->exit, "%s", t->err.text);
    if (c->json) {
        json_t *v = json_pack("{s:O,s:O,s:O}", "status", t->look.status, "nodes", t->look.nodes, "jobs", t->look.jobs);
        print_json(v);
        json_decref(v);
        return CLI_OK;
    }
    struct strbuf out = {0};
    write_screen(t, &out);
    for (char *line = out.data, *end; line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        size_t len = text_cut(line, PRINT_COLUMNS);
        len = len < (size_t)(end - line) ? len : (size_t)(end - line);
        while (len > 0 && line[len - 1] == ' ')
            len--;
        (void)printf("%.*s\n", (int)len, line);
    }
    strbuf_done(&out);
    return CLI_OK;
}

/* --- live --- */

static void draw_line(int y, const char *text, size_t len, attr_t attr)
{
    char *line = mem_strndup(text, len);
    if (line == NULL)
        return;
    size_t width = (size_t)(COLS > 0 ? COLS : 0);
    (void)attrset(attr);
    (void)mvaddnstr(y, 0, line, (int)text_cut(line, width));
    (void)clrtoeol();
    (void)attrset(A_NORMAL);
    mem_free(line);
}

static void draw_foot(const struct top *t)
{
    static const enum msg_id orders[ORDERS_LEN] = {MSG_TOP_ORDER_ID, MSG_TOP_ORDER_GPUS, MSG_TOP_ORDER_USER};
    struct strbuf b = {0};
    if (t->err.code != 0) {
        ADD(&b, TOP_NO_ANSWER, t->err.text);
    } else {
        strbuf_printf(&b, "%s   ", msg(MSG_TOP_KEYS));
        ADD(&b, TOP_SORT, msg(orders[t->order]));
    }
    draw_line(LINES - 1, strbuf_str(&b), b.len, A_REVERSE);
    strbuf_done(&b);
}

static void draw(struct top *t)
{
    struct strbuf out = {0};
    t->rows = (size_t)(LINES > 0 ? LINES : 1);
    write_screen(t, &out);
    (void)erase();
    int y = 0;
    bool title = true; /* of a table: the first line, and each after an empty one */
    for (char *line = out.data, *end; line != NULL && *line != '\0' && y < LINES - 1; line = end + 1, y++) {
        end = strchr(line, '\n');
        draw_line(y, line, (size_t)(end - line), title ? A_BOLD : A_NORMAL);
        title = end == line;
    }
    draw_foot(t);
    (void)refresh();
    strbuf_done(&out);
}

/* What a key asks for; true when there is something to draw. */
static bool on_key(struct top *t, int key)
{
    size_t jobs = json_array_size(t->look.jobs);
    switch (key) {
    case 'q':
    case 'Q':
        stopped = 1;
        break;
    case 's':
        t->order = (enum order)((t->order + 1) % ORDERS_LEN);
        break;
    case ' ':
        t->paused = !t->paused;
        break;
    case 'j':
    case KEY_DOWN:
        t->skip += 1;
        break;
    case 'k':
    case KEY_UP:
        t->skip -= t->skip > 0;
        break;
    case KEY_NPAGE:
        t->skip += 10;
        break;
    case KEY_PPAGE:
        t->skip -= t->skip < 10 ? t->skip : 10;
        break;
    case KEY_HOME:
        t->skip = 0;
        break;
    default:
        return key == KEY_RESIZE;
    }
    if (t->skip >= jobs)
        t->skip = jobs > 0 ? jobs - 1 : 0;
    return true;
}

/* Waits a moment for keys; true when one asks for a new screen. A terminal that is gone ends the view. */
static bool take_keys(struct top *t)
{
    bool changed = false;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&p, 1, KEY_WAIT_MS) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
        stopped = 1;
    for (int key; !stopped && (key = getch()) != ERR;)
        changed |= on_key(t, key);
    return changed;
}

static void run_live(struct top *t, int64_t interval_ms)
{
    struct sigaction act = {.sa_handler = on_stop};
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, true);
    (void)curs_set(0);
    timeout(0);
    int64_t next = 0;
    while (!stopped) {
        bool changed = false;
        if (!t->paused && clock_mono_ms() >= next) {
            look_again(t);
            next = clock_mono_ms() + interval_ms;
            changed = true;
        }
        if (changed)
            draw(t);
        if (take_keys(t))
            draw(t);
    }
}

static int be_live(struct top *t, int64_t interval_ms)
{
    /* Names may be in any script: also without a locale the terminal is taken to speak UTF-8. */
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    look_again(t); /* without a daemon, say so in the ordinary way */
    if (t->exit != CLI_OK)
        return cli_fail(t->cli, t->exit, "%s", t->err.text);
    const char *term = getenv("TERM");
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (screen != NULL && cursor_address == NULL) { /* "dumb" */
        (void)endwin();
        delscreen(screen);
        screen = NULL;
    }
    if (screen == NULL)
        return FAIL(t->cli, CLI_ERROR, NO_TERMINAL, term != NULL ? term : "");
    run_live(t, interval_ms);
    (void)endwin();
    delscreen(screen);
    return CLI_OK;
}

int run_top(struct cli *c, struct args *a)
{
    const char *interval = arg_get(a, "interval");
    uint64_t milli = 2000;
    struct top t = {.cli = c};
    if (interval != NULL && (units_parse_milli(interval, 86400000, &milli, NULL) < 0 || milli < 100))
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, "--interval", interval, "0.1..86400");
    api_timeout(c->api, 5000);
    bool once = c->json || arg_has(a, "once") || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
    int rc = once ? print_once(&t) : be_live(&t, (int64_t)milli);
    look_done(&t.look);
    return rc;
}
