#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Through the API with durable commits: 4,000 one-GPU jobs on 500 simulated nodes of eight cards, and 4,000 through a
# queue four times as long as what fits.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/daemon.bash

start_daemon --simulate-cluster examples/clusters/500-nodes.yaml
load 4000 32 started '{"name":"b","command":["true"],"gpus":1,"cwd":"/","sim_duration":"1h"}'
stop_daemon

start_daemon --simulate-cluster examples/clusters/64-nodes.yaml
load 4000 32 ended '{"name":"b","command":["true"],"gpus":1,"cwd":"/","sim_duration":"10ms"}' | sed 's/^/queue of short jobs: /'
stop_daemon
