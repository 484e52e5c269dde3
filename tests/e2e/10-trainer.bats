#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The example trainer by itself: it learns, the same seed gives the same numbers, a checkpoint gives them too, and
# several workers train the model that one would.

load helper

setup() {
    start_clean
}

teardown() {
    stop_all
}

last() {
    grep '^done:' "$1"
}

# field FILE NAME: the number after the name in the last line.
field() {
    sed -nE "s/^done:.* $2 ([0-9.]+).*/\1/p" "$1"
}

less() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'
}

@test "the loss falls and nearly everything is classified rightly" {
    "$trainer" --steps 300 --print 1 >out
    first=$(sed -nE 's/^step 1 loss ([0-9.]+).*/\1/p' out)
    less 1.0 "$first"
    less "$(field out loss)" 0.2
    less 95 "$(field out accuracy)"
}

@test "the same seed gives the same numbers, another seed others" {
    "$trainer" --steps 60 --seed 5 >a
    "$trainer" --steps 60 --seed 5 >b
    "$trainer" --steps 60 --seed 6 >c
    [ "$(last a)" = "$(last b)" ]
    [ "$(last a)" != "$(last c)" ]
}

@test "SIGTERM saves, ends with 143, and the next run ends as an undisturbed one" {
    "$trainer" --steps 120 >whole
    "$trainer" --steps 120 --step-ms 20 --checkpoint ckpt >first &
    pid=$!
    sleep 0.7
    kill -TERM $pid
    rc=0
    wait $pid || rc=$?
    [ "$rc" -eq 143 ]
    grep -q '^stopped after step' first
    ! grep -q '^done' first
    "$trainer" --steps 120 --checkpoint ckpt >second
    grep -q '^going on from step' second
    [ "$(last whole)" = "$(last second)" ]
}

@test "SIGUSR1 saves and goes on" {
    "$trainer" --steps 60 --step-ms 20 --checkpoint ckpt >out &
    pid=$!
    sleep 0.5
    kill -USR1 $pid
    wait $pid
    [ "$(grep -c '^saved step' out)" -eq 2 ]
    last out
    [ ! -e ckpt.new ]
}

@test "a damaged checkpoint, or one of another model, is refused" {
    "$trainer" --steps 5 --checkpoint ckpt >out
    run "$trainer" --steps 5 --hidden 32 --checkpoint ckpt
    [ "$status" -eq 1 ]
    [[ "$output" == *"is of seed 1 with 64 hidden units"* ]]
    printf 'x' | dd of=ckpt bs=1 seek=1000 conv=notrunc status=none
    run "$trainer" --steps 10 --checkpoint ckpt
    [ "$status" -eq 1 ]
    [[ "$output" == *"damaged"* ]]
}

start_rank() { # start_rank RANK WORLD PORT WORDS...
    local rank=$1 world=$2 port=$3
    shift 3
    RANK=$rank WORLD_SIZE=$world MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$trainer" "$@" >"rank$rank" 2>&1 &
}

@test "four workers train the model that one would" {
    port=$(free_port)
    for rank in 1 2 3 0; do
        start_rank "$rank" 4 "$port" --steps 100
        pids[rank]=$!
    done
    for rank in 0 1 2 3; do
        wait "${pids[rank]}"
    done
    "$trainer" --steps 100 >alone
    [ "$(last rank0)" = "$(last rank3)" ]
    less "$(awk -v a="$(field rank0 loss)" -v b="$(field alone loss)" 'BEGIN { d = a - b; print d < 0 ? -d : d }')" 0.02
}

@test "SIGTERM to one worker stops all at the same step" {
    port=$(free_port)
    for rank in 0 1; do
        start_rank "$rank" 2 "$port" --steps 500 --step-ms 20 --checkpoint ckpt
        pids[rank]=$!
    done
    wait_until 5 grep -q 'rank 1 of 2' rank1
    sleep 0.3
    kill -TERM "${pids[1]}"
    for rank in 0 1; do
        rc=0
        wait "${pids[rank]}" || rc=$?
        [ "$rc" -eq 143 ]
    done
    [ "$(grep '^stopped' rank0)" = "$(grep '^stopped' rank1)" ]
    [ -s ckpt ]
}

@test "when a worker dies the others end with an error" {
    port=$(free_port)
    for rank in 0 1; do
        start_rank "$rank" 2 "$port" --steps 5000 --step-ms 20
        pids[rank]=$!
    done
    wait_until 5 grep -q 'rank 1 of 2' rank1
    sleep 0.2
    kill -KILL "${pids[1]}"
    rc=0
    wait "${pids[0]}" || rc=$?
    [ "$rc" -eq 1 ]
    grep -q 'a worker went away' rank0
}

@test "wrong options are refused with what is allowed" {
    for words in "--steps 0" "--steps x" "--rate nan" "--rate 2" "--device tpu" "--busy 101" "more"; do
        # shellcheck disable=SC2086 # two words
        run "$trainer" $words
        [ "$status" -eq 2 ]
        [[ "$output" == *allowed* ]]
    done
    WORLD_SIZE=2 RANK=2 MASTER_PORT=1 run "$trainer"
    [ "$status" -eq 2 ]
    [[ "$output" == *"from 0 to 1 is"* ]]
}
