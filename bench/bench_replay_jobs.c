/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole Philly list, 82,247 jobs, on 64 nodes of eight cards: processor time from opening the
 * compressed file to the printed figures, and the largest memory. Each policy runs in a process of
 * its own, the faster of three counts.
 */
#include "replay/replay.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int replay(const char *policy)
{
    char trace[] = PHILLY, name[32];
    snprintf(name, sizeof name, "%s", policy);
    char *argv[] = {"replay", "--trace",  trace, "--nodes", "64", "--gpus-per-node",
                    "8",      "--policy", name,  "--json",  NULL};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
        return 1;
    return replay_main(10, argv);
}

/* CPU milliseconds and KiB of one replay. False when it failed. */
static bool measure(const char *policy, double *ret_ms, long *ret_kib)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(replay(policy));
    int status;
    struct rusage use;
    if (child < 0 || wait4(child, &status, 0, &use) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return false;
    *ret_ms = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
              (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
    *ret_kib = use.ru_maxrss;
    return true;
}

int main(void)
{
    static const char *const policies[] = {"fifo", "fjf", "easy", "conservative", "srtf", "las"};
    long most_kib = 0;
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        double best_ms = 0;
        for (int run = 0; run < 3; run++) {
            double ms;
            long kib;
            if (!measure(policies[i], &ms, &kib)) {
                fprintf(stderr, "policy %s failed\n", policies[i]);
                return EXIT_FAILURE;
            }
            best_ms = run == 0 || ms < best_ms ? ms : best_ms;
            most_kib = kib > most_kib ? kib : most_kib;
        }
        const char *aim = strcmp(policies[i], "fjf") == 0    ? "\taim: 300 at most"
                          : strcmp(policies[i], "easy") == 0 ? "\taim: 1000 at most"
                                                             : "";
        printf("82,247 jobs on 512 GPUs, %s\t%.0f\tms of CPU%s\n", policies[i], best_ms, aim);
        printf("%s, per job\t%.2f\tus of CPU\n", policies[i], best_ms * 1000 / 82247);
    }
    printf("largest memory\t%.1f\tMiB\taim: 200 at most\n", (double)most_kib / 1024);
    return EXIT_SUCCESS;
}
