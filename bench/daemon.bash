# SPDX-License-Identifier: Apache-2.0
# What the measurements of a running daemon share: one on a state folder of its own, and `load` (bench/load.c).
# Figures go to standard output, everything else to standard error.
# Sourced from the top of the tree.
build=${REMUDA_BUILD:-build}
state=""

start_daemon() {
    state=$(mktemp -d "${BENCH_TMP:-/tmp}/remuda-bench.XXXXXX")
    "$build/bin/remuda" up --state "$state" "$@" >&2
}

stop_daemon() {
    [ -n "$state" ] || return 0
    local pid
    pid=$("$build/bin/remuda" status --state "$state" --json | jq .pid)
    # Peak memory and processor time of the daemon.
    awk '/^VmHWM/ { printf "daemon, peak memory\t%d\tMiB\n", $2 / 1024 }' "/proc/$pid/status"
    awk -v hz="$(getconf CLK_TCK)" '{ printf "daemon, processor time\t%.2f\ts\n", ($14 + $15) / hz }' "/proc/$pid/stat"
    "$build/bin/remuda" cancel --all --state "$state" >&2 || true
    "$build/bin/remuda" down --state "$state" >&2
    rm -rf "$state"
    state=""
}

load() {
    "$build/meson/bench/load" "$state/daemon.sock" "$@"
}
