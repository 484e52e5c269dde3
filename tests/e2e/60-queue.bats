#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Order, caps, gangs and placement on a simulated cluster, through the command line: four nodes of eight cards in two
# racks, no processes.
# REQ: C2, C5, C6, C8, E2, G3, G8, H3

load helper

setup() {
    start_clean
}

teardown() {
    stop_all
}

cluster() { # cluster WORDS...: the daemon on two racks of two nodes
    cat >cluster.yaml <<'YAML'
racks:
  - name: "r%d"
    count: 2
    nodes:
      - name: "n%d"
        count: 2
        preset: dgx-a100
YAML
    remuda up --simulate-cluster cluster.yaml "$@"
}

# busy GPUS [WORDS...]: a job that holds the cards for an hour.
busy() {
    submit_id --gpus "$1" "${@:2}" --sim-duration 1h -- true
}

# One node is left, and six of its eight cards are held for two hours: by job $a.
six_of_eight() {
    cluster
    for n in n2 n3 n4; do
        remuda drain "$n"
    done
    a=$(busy 6 --time 2h)
    wait_until 5 is_state "$a" running
}

nodes_of() {
    remuda show "$1" --json | jq -r '.nodes | unique | join(" ")'
}

started_order() { # started_order ID...: the ids in the order in which they started
    for id in "$@"; do
        remuda show "$id" --json | jq -r '[.timeline[] | select(.event | test("start")) | .seq][0] as $s | "\($s) \(.id)"'
    done | sort -n | cut -d' ' -f2 | tr '\n' ' '
}

# bats test_tags=slow
@test "priority first, then submission" {
    cluster
    blocker=$(submit_id --workers 4 --gpus 8 --sim-duration 3s -- true)
    wait_until 5 is_state "$blocker" running
    low=$(submit_id --workers 4 --gpus 8 --priority -5 --sim-duration 100ms -- true)
    first=$(submit_id --workers 4 --gpus 8 --sim-duration 100ms -- true)
    second=$(submit_id --workers 4 --gpus 8 --sim-duration 100ms -- true)
    high=$(submit_id --workers 4 --gpus 8 --priority 5 --sim-duration 100ms -- true)
    remuda wait "$low" "$first" "$second" "$high"
    [ "$(started_order "$low" "$first" "$second" "$high")" = "$high $first $second $low " ]
}

# bats test_tags=slow
@test "a priority that is changed while the job waits counts" {
    cluster
    blocker=$(submit_id --workers 4 --gpus 8 --sim-duration 3s -- true)
    wait_until 5 is_state "$blocker" running
    a=$(submit_id --workers 4 --gpus 8 --sim-duration 100ms -- true)
    b=$(submit_id --workers 4 --gpus 8 --sim-duration 100ms -- true)
    remuda update "$b" --priority 7
    remuda wait "$a" "$b"
    [ "$(started_order "$a" "$b")" = "$b $a " ]
}

@test "a tenant, a user and a queue at their caps start nothing more, however idle the cluster is" {
    cat >caps.yaml <<'YAML'
queues:
  - name: batch
  - name: narrow
    max_jobs: 1
tenants:
  - name: small
    max_gpus: 4
  - name: many
    user_max_jobs: 2
YAML
    cluster --config caps.yaml
    busy 3 --tenant small
    a=$(busy 2 --tenant small)
    c=$(busy 1 --tenant small)
    wait_until 5 is_state "$c" running
    is_state "$a" queued
    remuda explain "$a" --json | jq -e '.reasons[0].code == "tenant-gpus" and .reasons[0].args.cap == 4000'
    for _ in 1 2 3 4; do
        jobs+=("$(busy 1 --tenant many)")
    done
    wait_until 5 is_state "${jobs[1]}" running
    is_state "${jobs[2]}" queued
    is_state "${jobs[3]}" queued
    remuda explain "${jobs[2]}" --json | jq -e '.reasons[0].code == "user-jobs"'
    x=$(busy 1 --queue narrow)
    y=$(busy 1 --queue narrow)
    wait_until 5 is_state "$x" running
    is_state "$y" queued
    remuda explain "$y" --json | jq -e '.reasons[0].code == "queue-jobs"'
    remuda cancel "${jobs[0]}"
    wait_until 5 is_state "${jobs[2]}" running
    is_state "${jobs[3]}" queued
}

@test "explain names resource, asked, free, holders and what would start now" {
    cluster
    held=$(busy 8 --workers 3)
    busy 6 >/dev/null
    id=$(busy 4)
    wait_until 5 is_state "$held" running
    remuda explain "$id" --json >why
    jq -e --argjson held "$held" '.verdict == "waits" and (.reasons[0].args | .asked == 4 and .free == 2) and
        ([.reasons[0].holders[].job] | index($held) != null)' why
    jq -e '.would_start_with | map(select(.change == "gpus" and .value == 2)) | length == 1' why
    run remuda explain "$id"
    [[ "$output" == *4* && "$output" == *2* ]]
}

# bats test_tags=slow
@test "a gang waits as a whole and starts as a whole; small jobs do not starve it" {
    cluster
    a=$(submit_id --workers 3 --gpus 8 --time 4s --sim-duration 4s -- true)
    wait_until 5 is_state "$a" running
    gang=$(busy 8 --workers 4 --time 1h)
    wait_until 5 sh -c "remuda explain $gang --json | jq -e '.reservation != null'"
    # Does not end before the gang may start: stays behind it. The second does, and fits now.
    long=$(submit_id --gpus 8 --time 1h --sim-duration 1h -- true)
    short=$(submit_id --gpus 8 --time 1s --sim-duration 500ms -- true)
    wait_until 5 is_state "$short" running succeeded
    is_state "$gang" queued
    is_state "$long" queued
    remuda show "$gang" --json | jq -e '.placement == [] or .placement == null'
    wait_until 10 is_state "$gang" running
    [ "$(remuda show "$gang" --json | jq '.placement | length')" -eq 4 ]
    is_state "$long" queued
}

@test "placement: one NVLink island, one machine, one rack; required levels wait, preferred ones do not" {
    cluster
    a=$(busy 5)
    b=$(submit_id --workers 2 --gpus 3 --require machine --sim-duration 1h -- true)
    c=$(submit_id --workers 2 --gpus 8 --require rack --sim-duration 1h -- true)
    wait_until 5 is_state "$c" running
    [ "$(nodes_of "$b" | wc -w)" -eq 1 ]
    racks=$(for n in $(nodes_of "$c"); do
        remuda nodes --json | jq -r --arg n "$n" '.nodes[] | select(.name == $n) | .rack'
    done | sort -u | wc -l)
    [ "$racks" -eq 1 ]
    # Three cards are left on a's node, two on b's.
    d=$(submit_id --workers 2 --gpus 2 --require machine --sim-duration 1h -- true)
    is_state "$d" queued
    remuda explain "$d" --json | jq -e '.reasons[0] | .code == "level" and .args.level == "machine" and .args.asked == 2
        and .args.free == 1'
    # Short enough to be gone before the cards are kept for the one that waits.
    e=$(submit_id --workers 2 --gpus 2 --prefer machine --time 1m --sim-duration 30s -- true)
    wait_until 5 is_state "$e" running
    is_state "$d" queued
    [ "$(nodes_of "$e" | wc -w)" -eq 2 ]
    is_state "$a" running
}

@test "packed by default, spread on request" {
    cluster
    a=$(busy 1)
    b=$(busy 1)
    c=$(busy 1 --strategy spread)
    wait_until 5 is_state "$c" running
    [ "$(nodes_of "$a")" = "$(nodes_of "$b")" ]
    [ "$(nodes_of "$c")" != "$(nodes_of "$a")" ]
}

@test "a drained node gets nothing new, and says so" {
    cluster
    for n in n1 n2 n3; do
        remuda drain "$n" --reason "new fans"
    done
    a=$(busy 8)
    b=$(busy 8)
    wait_until 5 is_state "$a" running
    [ "$(nodes_of "$a")" = n4 ]
    is_state "$b" queued
    remuda undrain n2
    wait_until 5 is_state "$b" running
    [ "$(nodes_of "$b")" = n2 ]
}

@test "every change of a job is an event with its cause, also after a restart" {
    cluster
    id=$(submit_id --sim-duration 100ms -- true)
    remuda wait "$id"
    remuda events --job "$id" --json >before
    [ "$(wc -l <before)" -ge 3 ]
    jq -es 'all(has("seq") and has("time") and has("event")) and ([.[].seq] | . == sort)' before
    remuda down
    remuda up --simulate-cluster cluster.yaml
    remuda events --job "$id" --json | diff before -
}

@test "everything is labelled as simulated" {
    cluster
    remuda status --json | jq -e '.simulated == true and .engine == "simulated"'
    remuda nodes --json | jq -e 'all(.nodes[]; .simulated == true)'
    remuda nodes | grep -qi simulated
    remuda status | grep -qi simulated
}

@test "cancel by filter ends what it names and nothing else" {
    cluster
    a=$(busy 1 --name keep)
    b=$(busy 1 --name drop)
    c=$(busy 1 --name drop)
    wait_until 5 is_state "$c" running
    remuda cancel --name drop
    wait_until 5 is_state "$b" cancelled
    wait_until 5 is_state "$c" cancelled
    is_state "$a" running
    run remuda cancel
    [ "$status" -ne 0 ]
}

@test "a job passes one that waits where it leaves it its room, and only there" {
    six_of_eight
    wide=$(busy 6 --time 2h)
    wait_until 5 sh -c "remuda explain $wide --json | jq -e '.reservation.bounded'"
    # Eight cards are free when a ends; the one that waits needs six of them.
    for _ in 1 2; do
        small+=("$(busy 1)")
    done
    cpu=$(submit_id --cpus 1 --sim-duration 1h -- true)
    wait_until 5 is_state "$cpu" running
    is_state "${small[0]}" running
    is_state "${small[1]}" running
    is_state "$wide" queued
    remuda cancel "${small[0]}"
    share=$(submit_id --gpu-mem 1GiB --gpu-percent 10 --sim-duration 1h -- true)
    wait_until 5 is_state "$share" running
    remuda cancel "$a"
    wait_until 5 is_state "$wide" running
}

@test "what would take the room of the job that waits stays behind it, also when cards are free" {
    six_of_eight
    wide=$(busy 8 --time 2h)
    wait_until 5 sh -c "remuda explain $wide --json | jq -e '.reservation != null'"
    late=$(busy 1)
    short=$(busy 1 --time 1h)
    wait_until 5 is_state "$short" running
    is_state "$late" queued
    remuda explain "$late" --json | jq -e --argjson w "$wide" '.reasons[0] | .code == "reserved" and .args.job == $w'
    remuda explain "$late" --json | jq -e '.would_start_with | any(.change == "time-limit" or .change == "time")'
}

@test "a configuration is checked, compared and changed while the daemon runs" {
    printf 'queues:\n  - name: batch\n  - name: quick\n    max_time: 30m\n' >one.yaml
    printf 'queues:\n  - name: batch\n    max_gpus: 3\n  - name: quick\n    max_time: 30m\n' >two.yaml
    printf 'queues:\n  - name: batch\n' >three.yaml
    printf 'queues:\n  - name: batch\n    max_gpus: lots\n' >bad.yaml
    cluster --config one.yaml
    remuda config check one.yaml
    run remuda config check bad.yaml
    [ "$status" -eq 2 ]
    [[ "$output" == *"bad.yaml:3"* && "$output" == *"lots"* ]]
    a=$(busy 3)
    b=$(busy 3)
    wait_until 5 is_state "$b" running
    remuda config diff two.yaml --json | jq -e '.changes == [{"key": "queues[batch].max_gpus", "from": null, "to": "3"}]'
    remuda queues --json | jq -e '.queues[0].cap_gpus_milli == null'
    remuda config apply two.yaml
    [ "$(remuda config show)" = "$(cat two.yaml)" ]
    # Nothing is stopped, and nothing more starts until there is room again.
    is_state "$b" running
    c=$(busy 1)
    remuda explain "$c" --json | jq -e '.reasons[0] | .code == "queue-gpus" and .args.cap == 3000 and .args.used == 6000'
    # A queue with a job in it stays; the job got the queue's longest time.
    d=$(submit_id --queue quick --sim-duration 1h -- true)
    remuda show "$d" --json | jq -e '.time_limit_ms == 1800000'
    run remuda config apply three.yaml
    [ "$status" -eq 5 ]
    [[ "$output" == *"quick"* && "$output" == *"$d"* ]]
    remuda cancel "$d"
    remuda wait "$d" || true
    remuda config apply three.yaml
    wait_until 5 is_state "$c" running
    remuda down
    remuda up --simulate-cluster cluster.yaml
    [ "$(remuda config show)" = "$(cat three.yaml)" ]
    remuda tenants --json | jq -e '.tenants | length == 1'
}
