#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training on one whole card:  remuda submit examples/jobs/one-card.sh
# Options stand in #REMUDA lines before the first command; the same options on the command line win over them.
#REMUDA --name one-card
#REMUDA --gpus 1 --cpus 1 --mem 2GiB
#REMUDA --time 30m            # SIGTERM after 30 minutes,
#REMUDA --grace 20s           # SIGKILL 20 s later: time to save a checkpoint
set -eu
# The job runs in the folder and with the environment it was submitted from. CUDA_VISIBLE_DEVICES holds the card it
# was given and nothing else.
echo "job $REMUDA_JOB_ID, attempt $REMUDA_ATTEMPT, card $CUDA_VISIBLE_DEVICES"
trainer=${TRAINER:-build/share/examples/trainer}
# After an interruption the next attempt goes on from the checkpoint. `exec`, so that SIGTERM reaches the trainer.
exec "$trainer" --steps 400 --step-ms 10 --checkpoint "${TMPDIR:-/tmp}/one-card-$REMUDA_JOB_ID.ckpt"
