#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The local engine: real processes (`true`), from submitted to ended, with the store on disk.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/daemon.bash

start_daemon --simulate dgx-a100
jobs=1000
[ -z "${BENCH_QUICK:-}" ] || jobs=100
load $jobs 16 ended '{"name":"b","command":["/bin/true"],"gpus":0,"cwd":"/"}'
stop_daemon
