/* SPDX-License-Identifier: Apache-2.0 */
/* From what `remuda daemon` was asked for to a server: files are found and read, the log is opened. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sys/log.h"
#include "base/sys/process.h"
#include "config/config_file.h"
#include "gpu/preset.h"
#include "server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* "PREFIX/`tail`", PREFIX being the folder above that of this program. NULL without memory. */
static char *installed(const char *tail)
{
    CLEANUP_FREE char *self = NULL;
    struct strbuf b = {0};
    if (process_self_path(&self, NULL) < 0)
        return NULL;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(self, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    strbuf_printf(&b, "%s/%s", self, tail);
    return strbuf_take(&b);
}

/* What the daemon needs beside its options; all owned. */
struct places {
    char *runner;
    char *simgpu;
    char *presets;
    char *preset;
    char *config_text;
    struct config config;
    bool have_config;
};

static void places_done(struct places *p)
{
    mem_free(p->runner);
    mem_free(p->simgpu);
    mem_free(p->presets);
    mem_free(p->preset);
    mem_free(p->config_text);
    if (p->have_config)
        config_done(&p->config);
}

static int find_places(const struct server_setup *o, struct places *p, struct err *e)
{
    int rc = process_sibling_path("remuda-runner", &p->runner, e);
    p->simgpu = installed(o->simgpu_dir);
    p->presets = installed(o->presets_dir);
    if (rc == 0 && (p->simgpu == NULL || p->presets == NULL))
        rc = err_set(e, -ENOMEM, "out of memory");
    if (rc == 0 && o->preset != NULL)
        rc = preset_find(o->preset, p->presets, &p->preset, e);
    if (rc == 0 && o->config_path != NULL) {
        rc = config_load_file(o->config_path, &p->config, &p->config_text, e);
        p->have_config = rc == 0;
    }
    return rc;
}

static enum log_level level_from_env(void)
{
    enum log_level level = LOG_LEVEL_INFO;
    const char *text = getenv("REMUDA_LOG");
    struct err e;
    if (text != NULL && log_parse_level(text, &level, &e) < 0)
        log_warn("REMUDA_LOG is ignored", "why=\"%s\"", e.text);
    return level;
}

int server_run(const struct server_setup *o)
{
    struct places p = {.have_config = false};
    struct err e = {0};
    char text[600];
    bool cluster = o->cluster_file != NULL;
    (void)log_open("remuda", level_from_env(), NULL, NULL);
    (void)umask(022);
    int rc = find_places(o, &p, &e);
    if (rc < 0) {
        log_error("can't start", "why=%s", log_quote(e.text, text, sizeof text));
        rc = 1;
    } else {
        struct server_options s = {
            .state_dir = o->state_dir,
            .version = o->version,
            .config = p.have_config ? &p.config : NULL,
            .config_text = p.config_text,
            .engine = cluster ? "simulated" : "local",
            .engine_options = {.preset = p.preset,
                               .runner_path = p.runner,
                               .simgpu_dir = p.simgpu,
                               .cluster_file = o->cluster_file,
                               .time_scale_milli = o->time_scale_milli},
            .simulated = cluster || p.preset != NULL,
            .cards = o->cards,
            .listen = o->listen,
            .ready_fd = -1,
        };
        rc = server_main(&s);
    }
    places_done(&p);
    log_close();
    return rc;
}
