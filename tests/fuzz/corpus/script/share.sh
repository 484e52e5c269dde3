#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A quarter of a card, for what does not need a whole one:  remuda submit examples/jobs/share.sh
# Four such jobs fit on one card. This version counts shares and places them; it does not yet hold a job to its
# part of the card's memory and compute.
#REMUDA --name share
#REMUDA --gpu-mem 10GiB --gpu-percent 25
#REMUDA --cpus 0.5 --mem 1GiB --queue batch
set -eu
exec "${TRAINER:-build/share/examples/trainer}" --steps 200 --step-ms 20 --busy 20 --card-mem 2048
