/* SPDX-License-Identifier: Apache-2.0 */
/* The program `remuda`: the command line, which becomes the daemon when it is asked to. */
#include "cli/cli.h"
#include "server/server.h"

static int be_daemon(const struct cli_daemon *o)
{
    const struct server_setup s = {
        .state_dir = o->state_dir,
        .version = REMUDA_VERSION,
        .config_path = o->config_path,
        .preset = o->preset,
        .cluster_file = o->cluster_file,
        .time_scale_milli = o->time_scale_milli,
        .cards = o->cards,
        .listen = o->listen,
        .simgpu_dir = SIMGPU_DIR,
        .presets_dir = PRESETS_DIR,
    };
    return server_run(&s);
}

int main(int argc, char **argv)
{
    static const struct cli_hooks hooks = {
        .daemon = be_daemon,
        .version = REMUDA_VERSION,
    };
    return cli_main(argc, argv, &hooks);
}
