#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the documents say is held against the program: commands and options, the API's calls, a job's environment,
# the keys of the configuration, the example jobs.
# REQ: G3, G4

shopt -s extglob # docs/!(requirements).md: that one also names what is still to come
load helper

setup() {
    start_clean
}

teardown() {
    stop_all
}

verbs() {
    remuda help | sed -nE 's/^  ([a-z]+)( .*|$)/\1/p' | sort -u
}

@test "docs/cli.md has every command and every long option, and no command that is not there" {
    [ "$(verbs | wc -l)" -ge 20 ]
    for verb in $(verbs); do
        grep -q "remuda $verb" "$top/docs/cli.md" || { echo "docs/cli.md lacks: remuda $verb"; return 1; }
        for option in $(remuda help "$verb" | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
            grep -qe "$option" "$top/docs/cli.md" || { echo "docs/cli.md lacks: $option of $verb"; return 1; }
        done
    done
    for verb in $(grep -oE '`remuda [a-z]+' "$top/docs/cli.md" | cut -d' ' -f2 | sort -u); do
        remuda help "$verb" >/dev/null || { echo "docs/cli.md names remuda $verb, which is not there"; return 1; }
    done
}

@test "every command of the README and of the examples is one" {

    for verb in $(grep -ohE '(^|`|\$ |# |  )remuda [a-z]+' "$top/README.md" "$top"/examples/jobs/* \
        "$top"/docs/!(requirements).md | grep -oE '[a-z]+$' | sort -u); do
        remuda help "$verb" >/dev/null || { echo "no command: remuda $verb"; return 1; }
    done
}

@test "the calls of docs/api.md answer" {
    remuda up --simulate dgx-a100
    id=$(submit_id -- /bin/true)
    remuda wait "$id"
    calls=$(grep -oE '`GET /v1/[A-Za-z/]+' "$top/docs/api.md" | cut -d' ' -f2 | sort -u)
    [ "$(echo "$calls" | wc -l)" -ge 8 ]
    for call in $calls; do
        case $call in
        */events) call="$call?follow=0" ;;
        */wait) call="$call?timeout_ms=1000" ;;
        esac
        code=$(curl -s -o body -w '%{http_code}' --unix-socket "$state/daemon.sock" "http://localhost${call/ID/$id}")
        [ "$code" = 200 ] || { echo "$call: $code $(cat body)"; return 1; }
    done
}

@test "an error of the API is a problem document that names the field" {
    remuda up --simulate dgx-a100
    curl -s --unix-socket "$state/daemon.sock" -D head -o body -H 'Content-Type: application/json' \
        -d '{"command": ["true"], "gpus": -1}' http://localhost/v1/jobs
    grep -qi '^content-type: application/problem+json' head
    jq -e '.status >= 400 and .field == "gpus" and (.detail | length) > 0 and .code != null and .title != null' body
    curl -s --unix-socket "$state/daemon.sock" -o body http://localhost/v1/jobs/999999
    jq -e '.status == 404' body
}

@test "a job's environment is what docs/job-environment.md says" {
    remuda up --simulate dgx-a100
    id=$(submit_id --gpus 1 -- env)
    remuda wait "$id"
    remuda logs "$id" | cut -d= -f1 | sort -u >seen
    named=$(grep -oE '`(REMUDA_[A-Z_]+|RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES)`' \
        "$top/docs/job-environment.md" | tr -d '`' | sort -u)
    [ "$(echo "$named" | wc -l)" -ge 12 ]
    for name in $(grep -E '^REMUDA_' seen); do
        echo "$named" | grep -qx "$name" || { echo "not in the document: $name"; return 1; }
    done
    for name in REMUDA_JOB_ID REMUDA_ATTEMPT REMUDA_RANK REMUDA_WORLD_SIZE REMUDA_NODES RANK WORLD_SIZE MASTER_ADDR \
        MASTER_PORT CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES; do
        grep -qx "$name" seen || { echo "not set: $name"; return 1; }
        echo "$named" | grep -qx "$name" || { echo "not in the document: $name"; return 1; }
    done
}

# bats test_tags=slow
@test "the example jobs run" {
    remuda up --simulate dgx-a100 --config "$top/examples/config/teams.yaml"
    cd "$top"
    export TRAINER=$trainer TMPDIR=$BATS_TEST_TMPDIR
    a=$(submit_id examples/jobs/one-card.sh)
    b=$(submit_id examples/jobs/gang.sh)
    c=$(submit_id examples/jobs/share.sh)
    sed "s|build/share/examples/trainer|$trainer|" examples/jobs/job.yaml >"$BATS_TEST_TMPDIR/job.yaml"
    d=$(submit_id --file "$BATS_TEST_TMPDIR/job.yaml")
    remuda wait --timeout 60s "$a" "$b" "$c" "$d"
    for id in "$a" "$b" "$c" "$d"; do
        remuda logs "$id" | grep -q '^done: '
    done
    remuda logs --worker 3 "$b" | grep -q 'worker 3 of 4'
    [ "$(remuda show "$d" --json | jq -r .name)" = from-a-file ]
}

@test "the manual page is what the program's help says" {
    REMUDA_BUILD=$build "$top/tools/man" --check
}
