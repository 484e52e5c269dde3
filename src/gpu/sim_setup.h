/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes simulated cards: writes the state file of abi/simgpu.h from a preset. Whoever shall see the
 * cards needs REMUDA_SIMGPU set to the path of the file, and the stand-in libraries first in
 * LD_LIBRARY_PATH (or opened by path).
 */
#ifndef REMUDA_GPU_SIM_SETUP_H
#define REMUDA_GPU_SIM_SETUP_H

#include "base/err.h"

/*
 * Writes DIR/simgpu.state for the preset file. A file that is there already and describes the very
 * same machine is kept, with the loads of the processes that have it open: a daemon that starts
 * again finds its jobs' use. Any other file is replaced. The file is readable and writable for the
 * owner, and for all when root makes it, since jobs then run as other users. -EINVAL for a bad
 * preset, or the errno of writing.
 */
int sim_setup_create(const char *preset_path, const char *dir, struct err *e);

#endif
