/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys/clock.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

static int64_t read_ns(clockid_t which)
{
    struct timespec t;
    int r = clock_gettime(which, &t);
    assert(r == 0); /* both clocks exist on every Linux */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_wall_ms(void)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t clock_mono_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

int64_t clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

void clock_sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}
