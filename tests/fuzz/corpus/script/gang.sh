#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Four workers with two cards each, which start together or not at all:  remuda submit examples/jobs/gang.sh
# Requests are per worker: this is 8 cards. The script runs once in every worker.
#REMUDA --name gang --workers 4
#REMUDA --gpus 2 --cpus 0.5 --mem 1GiB
#REMUDA --prefer nvlink       # best: all cards in one NVLink island; otherwise the nearest there is
#REMUDA --time 1h
set -eu
# What PyTorch's env:// and most others read is set for each worker: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
# MASTER_PORT. `remuda logs ID --worker 3` shows what one of them says.
echo "worker $RANK of $WORLD_SIZE, leader at $MASTER_ADDR:$MASTER_PORT"
exec "${TRAINER:-build/share/examples/trainer}" --steps 300 --step-ms 20
