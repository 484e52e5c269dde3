/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remuda-runner and those who start and watch it agree on. Freestanding: no function, no include.
 *
 * One runner supervises all workers of one attempt of a job on one node. Its home is the folder
 * STATE/jobs/JOB/ATTEMPT, which belongs to the daemon's user and which the job can not write:
 *
 *   spec          what to run, written by the engine before the runner starts (below)
 *   lock          locked with flock(2) by the runner for its whole life: held means alive
 *   status        replaced atomically; the first one is on disk before the first worker's first instruction
 *   exit          one line for each ended worker, on disk before it is announced
 *   ctl.sock      the control socket
 *   runner.log    what the runner itself had to say
 *   script        text of a submitted script, owned by the job's user
 *   worker-R.out, worker-R.err   output of the worker of rank R; rotated files are PATH.1 (the newest), PATH.2, ...
 *
 * SPEC. Strings "key=value", each ended by a zero byte, in any order but: the first is RUNNER_SPEC_FIRST and the
 * last is "end=", so that a cut file is seen. Numbers are decimal. Keys, those marked * may come several times:
 *
 *   job, attempt                 numbers, at least 1
 *   name, user, tenant, queue, node, state    texts; state is the daemon's state folder
 *   uid, gid, umask              whose processes; numbers
 *   cwd                          absolute path
 *   arg *                        the command, or with a script its arguments
 *   script                       text; runs instead of arg
 *   env *                        NAME=value of the submitter
 *   world, nodes, node_rank      workers of the attempt on all nodes, nodes, this node among them
 *   master_addr, master_port     rendezvous; port 0: the runner finds a free one
 *   grace_ms                     from SIGTERM to SIGKILL when the runner itself is told to end (SIGTERM)
 *   log_bytes, log_files         rotation: size of a file (0: none), files kept beside the current one
 *   cgroup                       where cgroups may be made: the text form of struct cgroup_plan (src/runner/cgroup.h)
 *   tag                          unique text in the environment of each process of the attempt
 *   simgpu, simgpu_lib           simulated cards: their state folder, folder of the stand-in libraries
 *   worker *                     "RANK CPU_MILLI MEM_MIB GPU_MILLI GPU_MEM_MIB UUID,UUID,..." ("-": no cards)
 *   end                          empty
 *
 * An unknown key is an error: a runner never runs half of what was asked.
 *
 * STATUS. Lines "key=value": version, state (RUNNER_STATE_*), pid, start (clock ticks after boot), boot (its id),
 * started_ms (wall clock, 0: not yet), cgroup (text form), note (why it is degraded, when it is), and for each worker
 * that was started "worker=RANK PID START".
 *
 * EXIT and the same words on the control socket, a line each:
 *
 *   rank=0 code=0 signal=0 cause=normal core=0 peak_mem_mib=3 cpu_ms=20 time_ms=1764565980000 output_lost=0 detail=
 *
 * cause is normal, oom, launch_failed or lost; code is -1 when a signal ended the worker; detail is the rest of the
 * line. A last line without its newline was cut by a crash and does not count.
 *
 * CONTROL. Lines of text. The runner's end of the descriptor that it inherits as RUNNER_CHANNEL_FD and each
 * connection to ctl.sock speak the same; who connects must have the runner's uid or be root. At the start the
 * runner says all it knows, then what happens, as it happens; everything may be said again:
 *
 *   runner -> other    hello VERSION          first line
 *                      busy                   another runner has this attempt; the end
 *                      started TIME_MS NOTE   all workers run; NOTE is the rest of the line, may be empty
 *                      exit LINE              a worker ended (line as above)
 *                      error TEXT             a command was not understood
 *   other -> runner    term GRACE_MS          SIGTERM to all, SIGKILL after the grace; 0: SIGKILL now. Again: only
 *                                             an earlier end counts
 *                      signal NUMBER          to every process of the attempt
 *
 * When all workers have ended the runner closes everything and exits.
 */
#ifndef REMUDA_ABI_RUNNER_H
#define REMUDA_ABI_RUNNER_H

#define RUNNER_VERSION    1
#define RUNNER_SPEC_FIRST "remuda-runner-spec=1"
#define RUNNER_SPEC_BYTES (32u << 20) /* a longer spec is refused */
#define RUNNER_LINE_BYTES 1024        /* of the control protocol and of the exit file, newline included */
#define RUNNER_CHANNEL_FD 3

#define RUNNER_FILE_SPEC   "spec"
#define RUNNER_FILE_LOCK   "lock"
#define RUNNER_FILE_STATUS "status"
#define RUNNER_FILE_EXIT   "exit"
#define RUNNER_FILE_SOCKET "ctl.sock"
#define RUNNER_FILE_LOG    "runner.log"
#define RUNNER_FILE_SCRIPT "script"
/* Written by an engine that found a spec without a life: a runner that comes late must not start. */
#define RUNNER_FILE_VOID "void"

#define RUNNER_STATE_STARTING "starting"
#define RUNNER_STATE_RUNNING  "running"
#define RUNNER_STATE_STOPPING "stopping"
#define RUNNER_STATE_ENDED    "ended"

/* Exit codes of remuda-runner itself; anything but 0 means that this process supervised nothing. */
#define RUNNER_EXIT_USAGE  64
#define RUNNER_EXIT_SPEC   65 /* the spec can not be used */
#define RUNNER_EXIT_SYSTEM 71 /* the system refused something; runner.log says what */
#define RUNNER_EXIT_BUSY   75 /* another runner has or had this attempt */

#endif
