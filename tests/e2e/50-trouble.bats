#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Trouble: bad input at the door, and parts that break. Each has a defined result and a clear message.
# REQ: B4, H4, F5

load helper

setup() {
    start_clean
}

teardown() {
    stop_all
    if [ -n "${small:-}" ]; then
        umount -l "$small" || true
    fi
}

# refused TEXT WORDS...: `remuda WORDS...` fails, says TEXT, and the queue is as it was.
refused() {
    local text=$1 before
    shift
    before=$(remuda ps --all --json | jq '.jobs | length')
    run remuda "$@"
    [ "$status" -ne 0 ]
    [[ "$output" == *"$text"* ]] || { echo "said: $output, wanted: $text"; return 1; }
    [ "$(remuda ps --all --json | jq '.jobs | length')" -eq "$before" ]
}

@test "bad requests are refused with the field, the value and what is allowed" {
    remuda up --simulate dgx-a100
    refused "gpus" submit --gpus -1 -- true
    refused "gpus" submit --gpus 1.5 -- true
    refused "gpus" submit --gpus 99999999999999999999 -- true
    refused "gpus" submit --gpus "" -- true
    refused "gpu-percent" submit --gpu-mem 1GiB --gpu-percent nan -- true
    refused "gpu-percent" submit --gpu-mem 1GiB --gpu-percent 101 -- true
    refused "gpu-mem" submit --gpu-mem 8XB --gpu-percent 10 -- true
    refused "mem" submit --mem -5 -- true
    refused "time" submit --time 5parsecs -- true
    refused "cpus" submit --cpus inf -- true
    refused "workers" submit --workers 0 -- true
    refused "priority" submit --priority 1001 -- true
    refused "strategy" submit --strategy best -- true
    refused "require" submit --require moon -- true
    refused "gpus" submit --gpus 1 --gpu-percent 10 -- true
    refused "--gpu" submit --gppus 1 -- true
    refused "name" submit --name "$(printf 'a\nb')" -- true
    refused "queue" submit --queue nowhere -- true
    refused "COMMAND" submit
}

@test "what is not built yet is refused with the reason" {
    remuda up --simulate dgx-a100
    refused "MIG" submit --mig 1g.10gb -- true
    refused "not built yet" submit --workers 2..4 --gpus 1 -- true
}

@test "what can never fit is refused, with what there is" {
    remuda up --simulate dgx-a100
    refused "8" submit --gpus 9 -- true
    refused "gpu" submit --gpus 1 --gpu-model H100 -- true
    refused "gpu" submit --gpu-mem 200GiB --gpu-percent 10 -- true
    refused "mem" submit --mem 100TiB -- true
}

# bats test_tags=slow
@test "scripts: 10,000 lines are fine; empty, not UTF-8, binary and gone ones are refused" {
    remuda up --simulate dgx-a100
    {
        printf '#!/bin/sh\n#REMUDA --name long\n'
        for i in $(seq 10000); do
            echo ": line $i"
        done
        echo 'echo the end'
    } >long.sh
    id=$(submit_id long.sh)
    remuda wait "$id"
    [ "$(remuda logs "$id")" = "the end" ]
    : >empty.sh
    refused "empty" submit empty.sh
    printf '#!/bin/sh\n# \xff\xfe\ntrue\n' >latin.sh
    refused "UTF-8" submit latin.sh
    refused "gone.sh" submit gone.sh
    printf '#!/bin/sh\n#REMUDA --gpus 2 --colour red\ntrue\n' >unknown.sh
    refused "colour" submit unknown.sh
    refused "line 2" submit unknown.sh
}

@test "two jobs may have one name" {
    remuda up --simulate dgx-a100
    a=$(submit_id --name twin -- /bin/true)
    b=$(submit_id --name twin -- /bin/true)
    [ "$a" != "$b" ]
    remuda wait "$a" "$b"
}

@test "up on a running daemon says so and succeeds; a second daemon on the folder is refused" {
    remuda up --simulate dgx-a100
    pid=$(remuda status --json | jq .pid)
    run remuda up --simulate dgx-a100
    [ "$status" -eq 0 ]
    [[ "$output" == *"$pid"* ]]
    run timeout 10 remuda daemon --simulate dgx-a100
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    [[ "$output" == *"$pid"* || "$output" == *"another"* || "$output" == *"already"* ]]
    [ "$(remuda status --json | jq .pid)" = "$pid" ]
}

@test "a state folder of a newer version is left alone" {
    remuda up --simulate dgx-a100
    remuda down
    db=$(find "$state" -name '*.db' | head -n 1)
    sqlite3 "$db" 'PRAGMA user_version = 999'
    run timeout 10 remuda daemon --simulate dgx-a100
    [ "$status" -ne 0 ]
    [[ "$output" == *"newer"* ]]
    [ "$(sqlite3 "$db" 'PRAGMA user_version')" = 999 ]
}

@test "a configuration with a mistake is refused as a whole, with line and key" {
    printf 'queues:\n  - name: batch\n    max_gpus: many\n' >bad.yaml
    run remuda up --simulate dgx-a100 --config bad.yaml
    [ "$status" -ne 0 ]
    [[ "$output" == *"bad.yaml"* && "$output" == *"3"* && "$output" == *"max_gpus"* ]]
}

@test "a killed runner: its job is lost, its processes are ended, its cards come back" {
    remuda up --simulate dgx-a100
    id=$(submit_id --gpus 4 -- /bin/sh -c 'echo $$ >pid; exec sleep 600')
    wait_until 10 test -s pid
    wait_until 5 is_state "$id" running
    runner=$(awk '{ print $4 }' "/proc/$(cat pid)/stat")
    grep -aq remuda-runner "/proc/$runner/cmdline"
    kill -KILL "$runner"
    wait_until 20 is_state "$id" failed
    [ "$(remuda show "$id" --json | jq -r .cause)" = lost ]
    wait_until 10 sh -c '! kill -0 "$(cat pid)"'
    wait_until 5 sh -c 'remuda status --json | jq -e ".gpus_free_milli == 8000"'
}

@test "a killed daemon: jobs run on, are found again, and their end is not missed" {
    remuda up --simulate dgx-a100
    long=$(submit_id --gpus 2 -- /bin/sh -c 'echo $$ >pid; exec sleep 600')
    short=$(submit_id -- /bin/sh -c 'sleep 1; exit 5')
    wait_until 10 test -s pid
    wait_until 5 is_state "$short" running
    kill -KILL "$(remuda status --json | jq .pid)"
    sleep 2
    kill -0 "$(cat pid)"
    remuda up --simulate dgx-a100
    rc=0
    remuda wait "$short" || rc=$?
    [ "$rc" -eq 5 ]
    is_state "$long" running
    [ "$(remuda show "$long" --json | jq .attempt)" -eq 1 ]
    remuda cancel "$long"
    rc=0
    remuda wait "$long" || rc=$?
    [ "$rc" -eq 125 ]
    ! kill -0 "$(cat pid)"
}

@test "down leaves jobs running, up finds them" {
    remuda up --simulate dgx-a100
    id=$(submit_id -- /bin/sh -c 'echo $$ >pid; exec sleep 600')
    wait_until 10 test -s pid
    remuda down
    kill -0 "$(cat pid)"
    remuda up --simulate dgx-a100
    is_state "$id" running
}

# bats test_tags=slow
@test "1 GB of output is rotated, and the job is not held up" {
    remuda up --simulate dgx-a100
    id=$(submit_id -- /bin/sh -c 'head -c 1000000000 /dev/zero | tr "\0" x; echo; echo the end')
    remuda wait --timeout 120s "$id"
    [ "$(remuda logs --tail 1 "$id")" = "the end" ]
    [ "$(du -sm "$state" | cut -f1)" -lt 400 ]
}

@test "out of host memory is told apart from other deaths" {
    remuda up --simulate dgx-a100
    if remuda status --json | jq -e '.degraded // false' >/dev/null; then
        skip "no control groups here"
    fi
    id=$(submit_id --mem 64MiB -- /usr/bin/python3 -c 'x = bytearray(1 << 30)')
    rc=0
    remuda wait "$id" || rc=$?
    [ "$rc" -ne 0 ]
    if [ "$(remuda show "$id" --json | jq -r .cause)" != out-of-memory ]; then
        remuda show "$id"
        false
    fi
}

@test "a full disk: the submission is refused, nothing is lost, and it goes on when there is room" {
    [ "$(id -u)" = 0 ] || skip "mounting a small file system needs root"
    small=$state/small
    mkdir "$small"
    mount -t tmpfs -o size=8m tmpfs "$small" || skip "no tmpfs can be mounted here"
    export REMUDA_STATE=$small
    remuda up --simulate dgx-a100
    kept=$(submit_id -- /bin/true)
    remuda wait "$kept"
    dd if=/dev/zero of="$small/filler" bs=4k status=none || true
    run remuda submit -- /bin/true
    # There may be room left inside the store's own files for a few.
    tries=0
    while [ "$status" -eq 0 ] && [ $tries -lt 300 ]; do
        run remuda submit -- /bin/true
        tries=$((tries + 1))
    done
    [ "$status" -ne 0 ]
    [[ "$output" == *"space"* || "$output" == *"full"* || "$output" == *"store"* ]]
    rm "$small/filler"
    works() { id=$(submit_id -- /bin/true) && remuda wait "$id"; }
    wait_until 20 works
    remuda show "$kept" --json | jq -e '.state == "succeeded"'
    remuda down
}
