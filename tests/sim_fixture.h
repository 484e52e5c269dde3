/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated cards for a test: a folder of its own with a state file, and REMUDA_SIMGPU pointing to
 * it. SIMGPU_DIR (stand-ins), PRESETS_DIR and SIMLOAD come from the build.
 */
#ifndef REMUDA_TESTS_SIM_FIXTURE_H
#define REMUDA_TESTS_SIM_FIXTURE_H

#include "abi/simgpu.h"
#include "base/sys/file.h"
#include "gpu/sim_setup.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NVML_PATH SIMGPU_DIR "/libnvidia-ml.so.1"

struct sim_fixture {
    char dir[64];
    char state[128];
};

/* Makes the cards of presets/NAME.yaml and points the environment to them. */
static inline void sim_begin(struct sim_fixture *f, const char *preset)
{
    char path[PATH_MAX];
    struct err e = {0};
    snprintf(f->dir, sizeof(f->dir), "%s", "/tmp/remuda-sim-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(path, sizeof(path), "%s/%s.yaml", PRESETS_DIR, preset);
    if (sim_setup_create(path, f->dir, &e) != 0)
        fail_msg("%s", e.text);
    snprintf(f->state, sizeof(f->state), "%s/%s", f->dir, SIMGPU_FILE);
    setenv(SIMGPU_ENV, f->state, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static inline void sim_end(struct sim_fixture *f)
{
    unsetenv(SIMGPU_ENV);
    dir_remove_tree(f->dir, NULL);
}

static inline void sim_sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Starts remuda-simload with these words (NULL ends); its pid. */
static inline pid_t sim_spawn(const char *const *words)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    char *argv[24] = {(char *)"remuda-simload"};
    for (int i = 0; words[i] && i < 22; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
    execv(SIMLOAD, argv);
    _exit(126);
}

static inline int sim_kill(pid_t pid, int sig)
{
    int status = 0;
    kill(pid, sig);
    waitpid(pid, &status, 0);
    return status;
}

#endif
