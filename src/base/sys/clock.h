/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two clocks of rule 13: records carry wall time, deadlines and durations use the monotonic clock. Only shells
 * read clocks; core and control are told the time.
 */
#ifndef REMUDA_BASE_SYS_CLOCK_H
#define REMUDA_BASE_SYS_CLOCK_H

#include <stdint.h>

/* Milliseconds since the epoch; may jump when somebody sets the clock. */
int64_t clock_wall_ms(void);
/* Milliseconds and nanoseconds since some fixed moment of this boot; never goes back, counts while suspended. */
int64_t clock_mono_ms(void);
int64_t clock_mono_ns(void);
/* Sleeps `ms` milliseconds, also when signals come in between. For tests and small tools, never for the daemon. */
void clock_sleep_ms(int64_t ms);

#endif
