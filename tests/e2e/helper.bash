# SPDX-License-Identifier: Apache-2.0
# What the end-to-end tests share. A .bats file begins with
#
#     load helper
#     setup() { start_clean; }
#     teardown() { stop_all; }
#
# and then has $state (a folder of its own, also in REMUDA_STATE), `remuda` (the binary that was built) and
# $BATS_TEST_TMPDIR. A file that takes more than a few seconds carries the line `# bats file_tags=slow`.

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
build=${REMUDA_BUILD:-$top/build}
PATH=$build/bin:$PATH
export trainer=$build/share/examples/trainer

start_clean() {
    # A Unix socket's path has at most 107 bytes; the test's own folder may be deep.
    state=$(mktemp -d /tmp/remuda-e2e.XXXXXX)
    export REMUDA_STATE=$state
    unset CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
    cd "$BATS_TEST_TMPDIR" || return 1
}

# Ends the test's own daemon and its jobs, by what the state folder says.
stop_all() {
    [ -n "${state:-}" ] || return 0
    if [ -S "$state/daemon.sock" ]; then
        remuda cancel --all >/dev/null 2>&1 || true
        wait_until 5 no_jobs_left || true
        remuda down >/dev/null 2>&1 || true
    fi
    if [ -n "${BATS_TEST_COMPLETED:-}" ]; then
        rm -rf "$state"
    else
        tail -n 40 "$state"/*.log 2>/dev/null
    fi
    return 0
}

no_jobs_left() {
    [ "$(remuda ps --json | jq '.jobs | length')" = 0 ]
}

# wait_until SECONDS COMMAND...: until it succeeds, looked at ten times a second.
wait_until() {
    local tries=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# is_state ID STATE...: the job is in one of the states.
is_state() {
    local now
    now=$(remuda show "$1" --json | jq -r .state) || return 1
    shift
    printf '%s\n' "$@" | grep -qx "$now"
}

# submit_id WORDS...: submits and prints the id alone.
submit_id() {
    remuda submit --parsable "$@"
}

# A free TCP port.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
