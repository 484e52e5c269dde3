#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The live view, under a terminal of our own; and what it prints where there is none.
# REQ: G3

load helper

setup() {
    start_clean
    unset TMUX
}

teardown() {
    for terminal in "$state"/tmux.*; do
        # Asked to end first: a leak check at its end would never be done with a terminal that is gone.
        tmux -S "$terminal" send-keys q 2>/dev/null && sleep 0.3
        tmux -S "$terminal" kill-server 2>/dev/null || true
    done
    stop_all
}

# open_terminal COLUMNS ROWS COMMAND...: runs it in a terminal; its exit code is told there when it ends.
open_terminal() {
    terminal=$(mktemp -u "$state/tmux.XXXX")
    tmux -S "$terminal" -f /dev/null new-session -d -x "$1" -y "$2" "export LC_ALL=${language:-C.UTF-8} PATH='$PATH'; \
        ${*:3}; echo code=\$?; stty -a | grep -o ' echo ' | tr ' ' =; sleep 60"
}

keys() {
    tmux -S "$terminal" send-keys "$@"
}

screen() {
    tmux -S "$terminal" capture-pane -p
}

shows() {
    screen | grep -qe "$1"
}

hides() {
    [ -n "$(screen)" ] && ! shows "$1"
}

# Rows of the jobs on the screen, by number, in their order.
jobs_seen() {
    screen | sed -n '/^ *ID /,$p' | sed -nE 's/^ *([0-9]+) .*/\1/p' | tr '\n' ' '
}

order_is() {
    [ "$(jobs_seen)" = "$1 " ]
}

@test "the live view: cards, jobs, order, scrolling, pause, size, a daemon that goes and comes back" {
    remuda up --simulate dgx-a100
    remuda submit --name one --gpus 1 -- sleep 300
    remuda submit --name two --gpus 2 -- sleep 300
    remuda submit --name part --gpu-mem 8GiB --gpu-percent 30 -- sleep 300
    remuda submit --name gang --workers 4 --gpus 2 -- sleep 300
    open_terminal 110 24 remuda top --interval 0.2
    wait_until 5 shows 'order: id'
    shows 'SIMULATED'
    shows '8 GPUs, 4.7 free; jobs: 3 running, 1 waiting'
    [ "$(screen | grep -c 'A100-80GB')" = 8 ]
    shows '3 part 30%'
    shows 'needs 8, 4 of 8 free'
    order_is '1 2 3 4'
    keys s
    wait_until 2 order_is '2 1 3 4'
    shows 'order: GPUs'
    keys s s j
    wait_until 2 order_is '2 3 4'
    keys NPage
    wait_until 2 order_is '4'
    keys k
    wait_until 2 order_is '3 4'
    keys Home
    wait_until 2 order_is '1 2 3 4'

    keys Space
    wait_until 2 shows '\[paused\]'
    remuda cancel 1
    remuda wait 1 || true
    sleep 0.5
    order_is '1 2 3 4'
    keys Space
    wait_until 3 order_is '2 3 4'

    # A small screen: a row for each node instead of each card, and the jobs stay in sight.
    tmux -S "$terminal" resize-window -x 50 -y 12
    wait_until 3 hides 'A100-80GB'
    shows '^NODE *RACK'
    order_is '2 3 4'
    [ "$(screen | awk '{ if (length($0) > n) n = length($0) } END { print n }')" -le 50 ]

    tmux -S "$terminal" resize-window -x 110 -y 24
    remuda down
    wait_until 5 shows 'no answer from the daemon'
    shows 'two'
    remuda up
    wait_until 10 shows 'order: id'

    keys q
    wait_until 3 shows 'code=0'
    wait_until 3 shows '=echo='
}

@test "a signal ends the live view and leaves the terminal as it was" {
    remuda up --simulate 2xt4
    open_terminal 80 24 "sh -c 'echo \$\$ >$state/pid; exec remuda top'"
    wait_until 5 shows 'order: id'
    kill -TERM "$(cat "$state/pid")"
    wait_until 3 shows 'code=0'
    wait_until 3 shows '=echo='
}

@test "Chinese words and names stand in their columns" {
    remuda up --simulate 2xt4
    remuda submit --name 训练任务 --gpus 1 -- sleep 300
    remuda submit --name x --gpus 1 -- sleep 300
    language=zh_CN.UTF-8 open_terminal 100 24 remuda top
    wait_until 5 shows '排序：编号'
    python3 - "$(screen)" <<'PYTHON'
import sys
import unicodedata

def column(line, word):
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line[: line.index(word)])

lines = sys.argv[1].split("\n")
title = next(i for i, line in enumerate(lines) if "编号" in line and "用户" in line)
rows = lines[title + 1 : title + 3]
assert "训练任务" in rows[0], rows
assert {column(row, "batch") for row in rows} == {column(lines[title], "队列")}, rows
PYTHON
}

@test "without a terminal one screen is printed; without a daemon the exit code says so" {
    code=0
    remuda top >out 2>err || code=$?
    [ "$code" = 3 ]
    [ ! -s out ]
    grep -q 'remuda up' err
    remuda up --simulate dgx-a100
    remuda submit --gpus 1 -- sleep 300
    remuda top >out
    grep -q 'SIMULATED' out
    [ "$(grep -c A100-80GB out)" = 8 ]
    [ "$(grep -c $'\033' out)" = 0 ]
    remuda top --json | jq -e '.status.simulated and (.nodes[0].gpus | length) == 8 and .jobs[0].state == "running"'

    # Its input is no terminal: nobody could end it.
    open_terminal 100 24 'remuda top </dev/null'
    wait_until 5 shows 'code=0'
    open_terminal 100 24 'TERM=dumb remuda top'
    wait_until 5 shows 'code=1'
    shows 'TERM is "dumb"'
}

@test "many nodes: the screen has room for jobs, and says how many nodes it leaves out" {
    cat >lab.yaml <<'YAML'
nodes:
  - name: "n%03d"
    count: 100
    preset: dgx-a100
YAML
    remuda up --simulate-cluster lab.yaml
    remuda submit --gpus 1 --sim-duration 10m -- true
    open_terminal 100 24 remuda top
    wait_until 5 shows 'order: id'
    shows 'and 89 more nodes'
    order_is 1
    [ "$(remuda top --once | grep -c '^n[0-9]')" = 100 ]
}
