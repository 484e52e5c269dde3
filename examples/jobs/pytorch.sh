#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two PyTorch workers with DistributedDataParallel:  remuda submit examples/jobs/pytorch.sh
#REMUDA --name pytorch --workers 2 --gpus 1 --cpus 1 --mem 2GiB --require machine
set -eu
exec /usr/bin/python3 "${REMUDA_EXAMPLES:-examples}/pytorch/train.py" --steps 300
