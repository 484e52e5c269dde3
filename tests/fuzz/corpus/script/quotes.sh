#!/bin/sh
#REMUDA --name "a \"b\" c" --gpus=2 # note
#REMUDA --time=1h --require nvlink --prefer rack --mig 1g.10gb
true
#REMUDA --late
