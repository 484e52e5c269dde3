#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What hostile or unlucky users do: folders that vanish, daemons on top of each other, floods, others' jobs.
# REQ: F5, H4, B4

load helper

setup() {
    start_clean
}

teardown() {
    stop_all
}

# Processes that speak of this test's state folder.
left() {
    grep -lasF "$state" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | sort -u |
        while read -r pid; do
            words=$(cat "/proc/$pid/cmdline" 2>/dev/null | tr '\0' ' ') || true
            case $words in
            *remuda-runner* | *sleep\ 600*) echo "$pid" ;;
            esac
        done
}

@test "a state folder that is removed ends its jobs: nothing runs on unseen" {
    remuda up --simulate dgx-a100
    id=$(submit_id --grace 1s -- sleep 600)
    wait_until 5 is_state "$id" running
    [ -n "$(left)" ]
    kill -KILL "$(remuda status --json | jq .pid)"
    rm -rf "$state"
    gone() { [ -z "$(left)" ]; }
    wait_until 15 gone
}

@test "twenty at once: one daemon, and all are told of it" {
    for i in $(seq 20); do
        remuda up --simulate dgx-a100 >"up.$i" 2>&1 &
    done
    bad=0
    for job in $(jobs -p); do
        wait "$job" || bad=$((bad + 1))
    done
    cat up.*
    [ "$bad" -eq 0 ]
    [ "$(grep -ho 'pid [0-9]*' up.* | sort -u | wc -l)" -eq 1 ]
    [ "$(pgrep -fc "remuda daemon --state $state")" -eq 1 ]
}

@test "a flood of clients: every accepted job is there once" {
    remuda up --simulate-cluster "$top/examples/clusters/4-nodes.yaml"
    for c in $(seq 8); do
        (for _ in $(seq 15); do submit_id --sim-duration 10ms -- true; done >"ids.$c") &
    done
    wait
    [ "$(cat ids.* | sort -n | uniq | wc -l)" -eq 120 ]
    done_all() { [ "$(remuda ps --json | jq '.jobs | length')" -eq 0 ]; }
    wait_until 20 done_all
    [ "$(remuda history --json | jq '[.jobs[] | select(.state == "succeeded")] | length')" -eq 120 ]
}

@test "somebody else may look, but not touch" {
    [ "$(id -u)" = 0 ] || skip "needs root to be somebody else"
    remuda up --simulate dgx-a100
    chmod 755 "$state"
    id=$(submit_id -- sleep 600)
    wait_until 5 is_state "$id" running
    cp "$(command -v remuda)" "$state/remuda" # the tree may be in a folder of ours alone
    other() { setpriv --reuid 65534 --regid 65534 --clear-groups env REMUDA_STATE="$state" "$state/remuda" "$@"; }
    other ps | grep -q running
    for words in "cancel $id" "update $id --priority 5" "logs $id" "drain $(hostname)" "down"; do
        run other $words
        [ "$status" -eq 5 ] || { echo "$words: $status $output"; return 1; }
    done
    is_state "$id" running
    mine=$(cd /tmp && other submit --parsable -- /usr/bin/id -u)
    remuda wait "$mine"
    [ "$(remuda logs "$mine")" = 65534 ]
    run other submit --json -f <(echo '{"command": ["id"], "uid": 0}')
    [ "$status" -ne 0 ]
}

@test "TCP needs the token, and only answers on loopback" {
    port=$(free_port)
    remuda up --simulate dgx-a100 --listen "127.0.0.1:$port"
    [ "$(curl -s -o body -w '%{http_code}' "http://127.0.0.1:$port/v1/status")" = 401 ]
    [ "$(curl -s -o body -w '%{http_code}' -H 'Authorization: Bearer wrong' "http://127.0.0.1:$port/v1/status")" = 401 ]
    unset REMUDA_STATE
    REMUDA_URL=http://127.0.0.1:$port REMUDA_TOKEN=$(cat "$state/token") remuda status --json | jq -e '.pid > 0'
    run env REMUDA_URL="http://127.0.0.1:$port" REMUDA_TOKEN=no remuda ps
    [ "$status" -eq 5 ]
    export REMUDA_STATE=$state
    remuda down
    run remuda up --simulate dgx-a100 --listen "0.0.0.0:$port" --timeout 5s
    [ "$status" -ne 0 ]
    [[ "$output" == *"loopback"* ]]
}

@test "a long path of the state folder is no hindrance" {
    long=$state/$(printf 'x%.0s' $(seq 60))/$(printf 'y%.0s' $(seq 60))
    mkdir -p "$long"
    export REMUDA_STATE=$long
    remuda up --simulate dgx-a100
    id=$(submit_id -- echo hello)
    remuda wait "$id"
    [ "$(remuda logs "$id")" = hello ]
    remuda down
}

@test "another engine on the folder of running jobs is refused, and the jobs are left alone" {
    remuda up --simulate dgx-a100
    id=$(submit_id --gpus 2 -- sleep 600)
    wait_until 5 is_state "$id" running
    remuda down
    run remuda up --simulate-cluster "$top/examples/clusters/4-nodes.yaml" --timeout 10s
    [ "$status" -ne 0 ]
    [[ "$output" == *"engine"* ]]
    remuda up --simulate dgx-a100
    is_state "$id" running
    [ "$(remuda show "$id" --json | jq .attempt)" -eq 1 ]
    remuda cancel "$id"
    remuda wait "$id" || true
    remuda down
    # With nothing running it may change, and the machine it had is gone from the list.
    remuda up --simulate-cluster "$top/examples/clusters/4-nodes.yaml"
    remuda nodes --json | jq -e '[.nodes[].name] | length == 4'
    is_state "$id" cancelled
}

# bats test_tags=slow
@test "a folder that is gone, or not the user's to enter, is told as the reason" {
    remuda up --simulate dgx-a100
    mkdir here
    id=$(cd here && submit_id --gpus 0 -- true)
    remuda wait "$id"
    run remuda submit --chdir /no/such/folder -- true
    if [ "$status" -eq 0 ]; then
        id=$(remuda ps --all --json | jq '.jobs[-1].id')
        remuda wait "$id" || true
        is_state "$id" failed
        remuda show "$id" | grep -q /no/such/folder
    fi
}

@test "a store that is damaged is refused with the reason and left as it is" {
    remuda up --simulate dgx-a100
    submit_id -- true
    remuda down
    cp "$state/store.db" kept
    dd if=/dev/urandom of="$state/store.db" bs=1 seek=4096 count=4096 conv=notrunc status=none
    rm -f "$state"/store.db-*
    run timeout 20 remuda daemon --simulate dgx-a100
    [ "$status" -eq 1 ]
    [[ "$output" == *"store"* || "$output" == *"malformed"* || "$output" == *"damaged"* ]]
    printf 'not a database at all, but longer than the header of one would be, at any rate: %0200d' 0 >"$state/store.db"
    run timeout 20 remuda daemon --simulate dgx-a100
    [ "$status" -eq 1 ]
    cp kept "$state/store.db"
    remuda up --simulate dgx-a100
    is_state 1 succeeded
}

@test "jobs that stop themselves, close their output or leave it to others end when they should" {
    remuda up --simulate dgx-a100
    a=$(submit_id --time 1s --grace 1s -- /bin/sh -c 'kill -STOP $$')
    b=$(submit_id -- /bin/sh -c 'exec >&- 2>&-; sleep 0.3')
    c=$(submit_id -- /bin/sh -c 'setsid -f sleep 600; echo kept')
    rc=0
    remuda wait --timeout 20s "$a" || rc=$?
    [ "$rc" -ne 124 ]
    remuda wait --timeout 20s "$b" "$c"
    [ "$(remuda logs "$c")" = kept ]
}
