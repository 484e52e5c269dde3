#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs as real processes on simulated cards: what they get, how they end, and how their end is told.
# REQ: A1, A2, A4, C9, H1, H3, F5, E4

load helper

setup() {
    start_clean
    remuda up --simulate dgx-a100
}

teardown() {
    stop_all
}

exit_of() { # exit_of ID: what `wait` exits with
    local rc=0
    remuda wait "$1" >/dev/null || rc=$?
    echo "$rc"
}

field() { # field ID EXPRESSION
    remuda show "$1" --json | jq -r "$2"
}

@test "submit, wait and the ways to end" {
    [ "$(exit_of "$(submit_id -- /bin/true)")" -eq 0 ]
    [ "$(exit_of "$(submit_id -- /bin/sh -c 'exit 3')")" -eq 3 ]
    [ "$(exit_of "$(submit_id -- /bin/sh -c 'kill -TERM $$')")" -eq 143 ]
    id=$(submit_id -- sleep 600)
    wait_until 5 is_state "$id" running
    remuda cancel "$id"
    [ "$(exit_of "$id")" -eq 125 ]
    [ "$(field "$id" .state)" = cancelled ]
}

@test "what scripts lean on is there" {
    id=$(remuda submit --json --name lean -- /bin/true | jq -e .id)
    remuda wait "$id"
    remuda ps --all --json | jq -e --argjson id "$id" '.jobs[] | select(.id == $id) |
        has("name") and has("state") and has("tenant") and has("user") and has("queue") and has("gpus")
        and has("submitted_at") and has("started_at") and has("reason")'
    remuda ps --all --json | jq -e '.jobs[0].submitted_at | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\\.[0-9]+)?Z$")'
    remuda status --json | jq -e '(.pid | type) == "number" and (.version | length) > 0 and .engine == "local"
        and .simulated == true'
    [[ "$(submit_id -- /bin/true)" =~ ^[0-9]+$ ]]
}

@test "a job sees its own cards and nothing else of the pool" {
    a=$(submit_id --gpus 2 -- /bin/sh -c 'echo $CUDA_VISIBLE_DEVICES; sleep 600')
    b=$(submit_id --gpus 3 -- /bin/sh -c 'echo $CUDA_VISIBLE_DEVICES; sleep 600')
    wait_until 10 is_state "$a" running
    wait_until 10 is_state "$b" running
    wait_until 5 sh -c "remuda logs $a | grep -q GPU- && remuda logs $b | grep -q GPU-"
    remuda logs "$a" | tr , '\n' >a
    remuda logs "$b" | tr , '\n' >b
    [ "$(wc -l <a)" -eq 2 ]
    [ "$(wc -l <b)" -eq 3 ]
    [ "$(sort -u a b | wc -l)" -eq 5 ]
    [ "$(remuda show "$a" --json | jq -r '.gpu_uuids[]' | sort)" = "$(sort a)" ]
}

@test "a job without cards sees none" {
    id=$(submit_id -- /bin/sh -c 'echo "[$CUDA_VISIBLE_DEVICES] [$NVIDIA_VISIBLE_DEVICES]"')
    remuda wait "$id"
    [ "$(remuda logs "$id")" = "[] [void]" ]
}

@test "more than fits waits, with the reason, and starts when cards are given back" {
    a=$(submit_id --gpus 8 -- sleep 600)
    b=$(submit_id --gpus 1 -- /bin/true)
    wait_until 5 is_state "$a" running
    is_state "$b" queued
    remuda ps --json | jq -e --argjson id "$b" '.jobs[] | select(.id == $id) | .reason.code == "gpus"'
    remuda explain "$b" --json | jq -e --argjson a "$a" '.verdict == "waits" and .reasons[0].args.asked == 1 and
        .reasons[0].args.free == 0 and .reasons[0].holders[0].job == $a'
    remuda cancel "$a"
    remuda wait "$b"
    remuda status --json | jq -e '.gpus_free_milli == 8000'
}

@test "shares of one card: four quarters fit, a fifth waits, and a whole card is not shared" {
    whole=$(submit_id --gpus 7 -- sleep 600)
    for _ in 1 2 3 4; do
        quarters+=("$(submit_id --gpu-mem 10GiB --gpu-percent 25 -- sleep 600)")
    done
    fifth=$(submit_id --gpu-mem 10GiB --gpu-percent 25 -- sleep 600)
    wait_until 5 is_state "$whole" running
    for id in "${quarters[@]}"; do
        wait_until 5 is_state "$id" running
    done
    is_state "$fifth" queued
    [ "$(for id in "${quarters[@]}"; do remuda show "$id" --json | jq -r '.gpu_uuids[]'; done | sort -u | wc -l)" -eq 1 ]
}

@test "a gang starts wholly, knows its ranks, and ends with the first that failed" {
    id=$(submit_id --workers 3 --gpus 1 -- /bin/sh -c 'echo "$RANK/$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT";
        [ "$RANK" = 1 ] && exit 7; sleep 600')
    [ "$(exit_of "$id")" -eq 7 ]
    [ "$(field "$id" .state)" = failed ]
    for rank in 0 1 2; do
        remuda logs --worker "$rank" "$id" >>all
    done
    [ "$(cut -d/ -f1 all | tr '\n' ' ')" = "0 1 2 " ]
    [ "$(cut -d' ' -f2 all | sort -u | wc -l)" -eq 1 ]
}

@test "a job that escapes its session is found and ended with the others" {
    id=$(submit_id -- /bin/sh -c 'setsid -f sh -c "echo \$\$ >escaped; exec sleep 600"; sleep 0.5; echo done')
    remuda wait "$id"
    [ -s escaped ]
    wait_until 5 sh -c '! kill -0 "$(cat escaped)"'
}

@test "a job that ignores SIGTERM is killed after its grace time, children too" {
    id=$(submit_id --grace 1s -- /bin/sh -c 'trap "" TERM; sh -c "trap \"\" TERM; echo \$\$ >child; sleep 600" & sleep 600')
    wait_until 5 test -s child
    began=$SECONDS
    remuda cancel "$id"
    [ "$(exit_of "$id")" -eq 125 ]
    [ $((SECONDS - began)) -le 10 ]
    wait_until 5 sh -c '! kill -0 "$(cat child)"'
}

@test "SIGTERM comes first: a job can save itself" {
    id=$(submit_id --grace 20s -- /bin/sh -c 'trap "echo saved >saved; exit 0" TERM; while :; do sleep 0.1; done')
    wait_until 5 is_state "$id" running
    sleep 0.3
    remuda cancel "$id"
    [ "$(exit_of "$id")" -eq 125 ]
    [ "$(cat saved)" = saved ]
}

@test "a time limit ends a job and is its cause" {
    id=$(submit_id --time 1s --grace 1s -- sleep 600)
    rc=$(exit_of "$id")
    [ "$rc" -ne 0 ]
    [ "$(field "$id" .cause)" = time-limit ]
    [ "$(field "$id" .state)" = failed ]
}

@test "a program that is not there is a failure with a reason" {
    id=$(submit_id -- /no/such/program)
    [ "$(exit_of "$id")" -ne 0 ]
    [ "$(field "$id" .state)" = failed ]
    remuda show "$id" | grep -q '/no/such/program'
}

@test "working directory, environment and script arguments are the submitter's" {
    mkdir there
    printf '#!/bin/sh\n#REMUDA --name scripted --cpus 0.5\necho "$PWD $MINE $1 $2"\n' >there/job.sh
    id=$(cd there && MINE=yes submit_id job.sh "a b" c)
    remuda wait "$id"
    [ "$(remuda logs "$id")" = "$BATS_TEST_TMPDIR/there yes a b c" ]
    [ "$(field "$id" .name)" = scripted ]
}

@test "run streams the output and exits as the job does" {
    run remuda run -- /bin/sh -c 'echo out; echo err >&2; exit 4'
    [ "$status" -eq 4 ]
    [[ "$output" == *out* ]]
    [[ "$output" == *err* ]]
}

@test "a trainer's load shows in the telemetry of its card, labelled as simulated" {
    id=$(submit_id --gpus 1 -- "$trainer" --steps 100000 --step-ms 20 --busy 90 --card-mem 4096)
    wait_until 10 is_state "$id" running
    uuid=$(field "$id" '.gpu_uuids[0]')
    busy() {
        remuda nodes --json | jq -e --arg u "$uuid" '.nodes[] | .simulated == true and
            (.gpus[] | select(.uuid == $u) | .util_pct > 40 and .mem_used_mib >= 4096)'
    }
    wait_until 15 busy
}

@test "a trainer whose checkpoint is already at the last step ends well on its card" {
    for _ in 1 2; do
        id=$(submit_id --gpus 1 -- "$trainer" --steps 20 --device cuda --checkpoint "$BATS_TEST_TMPDIR/done.ckpt")
        remuda wait "$id" || { remuda logs --stderr "$id"; return 1; }
    done
    remuda logs "$id" | grep -q 'going on from step 20'
}

@test "hold, release, a begin time, and requeue" {
    a=$(submit_id --hold -- /bin/true)
    b=$(submit_id --begin 2s -- /bin/true)
    c=$(submit_id --gpus 8 --grace 1s -- /bin/sh -c 'echo "attempt $REMUDA_ATTEMPT" >>attempts; exec sleep 600')
    wait_until 5 is_state "$c" running
    is_state "$a" queued
    is_state "$b" queued
    remuda ps --json | jq -e --argjson a "$a" '.jobs[] | select(.id == $a) | .reason.code == "held"'
    remuda release "$a"
    remuda wait --timeout 10s "$a" "$b"
    wait_until 5 test -s attempts
    remuda requeue "$c"
    wait_until 10 sh -c '[ "$(wc -l <attempts)" -eq 2 ]'
    [ "$(tail -n 1 attempts)" = "attempt 2" ]
    wait_until 5 is_state "$c" running
    run remuda hold "$c"
    [ "$status" -eq 5 ]
    run remuda requeue "$a"
    [ "$status" -eq 5 ]
}

@test "jobs that start after others" {
    a=$(submit_id -- /bin/sh -c 'sleep 0.5; echo a >>order; exit 3')
    b=$(submit_id --after "any:$a" -- /bin/sh -c 'echo b >>order')
    c=$(submit_id --after "ok:$a" -- /bin/sh -c 'echo c >>order')
    d=$(submit_id --after "fail:$a,$b" -- /bin/sh -c 'echo d >>order')
    e=$(submit_id --after "$c" -- /bin/sh -c 'echo e >>order')
    is_state "$d" queued
    remuda explain "$d" | grep -q "job $a"
    remuda wait --timeout 20s "$b" "$d"
    rc=0
    remuda wait --timeout 20s "$c" "$e" || rc=$?
    [ "$rc" -eq 125 ]
    [ "$(tr '\n' ' ' <order)" = "a b d " ]
    [ "$(remuda show "$e" --json | jq -r .cause)" = dependency ]
    run remuda submit --after 999999 -- true
    [ "$status" -eq 2 ]
    [[ "$output" == *999999* ]]
}
