/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command `remuda replay`: public traces on a virtual clock. Job traces (--trace) are replayed
 * here; --openb hands the whole command line over to openb.h.
 */
#ifndef REMUDA_REPLAY_REPLAY_H
#define REMUDA_REPLAY_REPLAY_H

/*
 * argv[0] is the command's name. Writes to standard output and error and the files it is told to.
 * Returns the exit code: 0, 1 when something failed (file, memory), 2 when the command line is
 * wrong.
 */
int replay_main(int argc, char **argv);

/* The part of it for --openb DIR (openb_cli.c); the same conventions. */
int openb_main(int argc, char **argv);

#endif
