/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every text that a person reads, in English and Simplified Chinese: X(ID, English, Chinese). Arguments are positional
 * (%1$s), because word order differs; both texts of an entry take the same arguments (a unit test holds them to it).
 * Codes of the scheduler (reasons, causes, states, events) have entries named after them: REASON_ + code, and so on.
 * Help texts of options that describe a job are OPT_ + name.
 */
#ifndef REMUDA_I18N_MESSAGES_H
#define REMUDA_I18N_MESSAGES_H

/* clang-format off */
#define MESSAGES_HELP(X) \
X(HELP_TITLE, "Remuda shares a pool of GPUs between jobs.", "Remuda 让多个作业共享一组 GPU。") \
X(HELP_USAGE, "Usage: remuda %1$s", "用法：remuda %1$s") \
X(HELP_COMMANDS, "Commands:", "命令：") \
X(HELP_OPTIONS, "Options:", "选项：") \
X(HELP_JOB_OPTIONS, "Options that describe the job (the same in #REMUDA lines; in job files with _ for -):", \
  "描述作业的选项（#REMUDA 行中写法相同；作业文件中以 _ 代替 -）：") \
X(HELP_COMMON, "Options of every command:", "所有命令通用的选项：") \
X(HELP_MORE, "`remuda help COMMAND` or `remuda COMMAND --help` tells more.", \
  "运行“remuda help 命令”或“remuda 命令 --help”查看详情。") \
X(HELP_EXIT_CODES, "Exit codes: 0 done, 1 failed, 2 bad command line or request, 3 no daemon, 4 not found, 5 refused.", \
  "退出码：0 成功，1 失败，2 命令行或请求有误，3 守护进程未运行，4 未找到，5 被拒绝。") \
X(VERB_UP, "start the daemon in the background", "在后台启动守护进程") \
X(VERB_DOWN, "stop the daemon; running jobs keep running", "停止守护进程；运行中的作业继续运行") \
X(VERB_STATUS, "what the daemon is and has", "显示守护进程的状态") \
X(VERB_DAEMON, "be the daemon, in the foreground", "在前台运行守护进程") \
X(VERB_SUBMIT, "put a job into the queue", "提交作业到队列") \
X(VERB_RUN, "submit a job, show its output, end as it ends", "提交作业、显示其输出，并以其退出码结束") \
X(VERB_PS, "jobs that wait or run", "列出等待和运行中的作业") \
X(VERB_HISTORY, "jobs that have ended", "列出已结束的作业") \
X(VERB_SHOW, "everything about one job", "显示一个作业的全部信息") \
X(VERB_LOGS, "what a job has written", "显示作业的输出") \
X(VERB_EVENTS, "what has happened, in order", "按顺序显示发生的事件") \
X(VERB_UPDATE, "change a job", "修改作业") \
X(VERB_CANCEL, "cancel jobs", "取消作业") \
X(VERB_HOLD, "keep waiting jobs from starting", "暂不启动等待中的作业") \
X(VERB_RELEASE, "let held jobs start", "允许被暂停的作业启动") \
X(VERB_REQUEUE, "end running jobs and put them back into the queue", "终止运行中的作业并重新排队") \
X(VERB_EXPLAIN, "why a job waits and what would let it start", "解释作业为何等待，以及怎样才能启动") \
X(VERB_NODES, "the machines and what is free on them", "列出节点及其空闲资源") \
X(VERB_DRAIN, "place nothing new on a node", "停止向节点分配新作业") \
X(VERB_UNDRAIN, "use a node again", "恢复使用节点") \
X(VERB_TOPO, "how the cards of a node are linked", "显示节点内各卡的连接方式") \
X(VERB_TOP, "a live view of cards, jobs and the queue", "实时查看卡、作业和队列") \
X(VERB_QUEUES, "queues, what runs in them, and their limits", "列出队列、运行情况和上限") \
X(VERB_TENANTS, "tenants and users, what they hold, and their limits", "列出租户和用户、占用情况和上限") \
X(VERB_CONFIG, "show, check, compare or change the configuration", "查看、检查、比较或更改配置") \
X(VERB_WAIT, "wait for jobs; end with their exit code", "等待作业结束，并返回其退出码") \
X(VERB_REPLAY, "run a recorded trace through a policy", "用某一策略重放作业记录") \
X(VERB_VERSION, "print the version", "显示版本") \
X(VERB_HELP, "explain a command", "显示命令的帮助") \
X(VERB_COMPLETION, "print a completion script for a shell", "输出 shell 补全脚本") \
X(OPT_STATE, "state folder (also REMUDA_STATE; default ~/.local/state/remuda)", \
  "状态目录（也可用 REMUDA_STATE；默认 ~/.local/state/remuda）") \
X(OPT_JSON, "print JSON", "输出 JSON") \
X(OPT_HELP, "print this text", "显示本帮助") \
X(OPT_NAME, "name of the job (default: of its program)", "作业名称（默认取自程序名）") \
X(OPT_GPUS, "whole cards for each worker, 0 to 16", "每个工作进程占用的整卡数，0 到 16") \
X(OPT_GPU_MEM, "memory of a share of one card, e.g. 8GiB; with --gpu-percent", \
  "共享一张卡时的显存，如 8GiB；与 --gpu-percent 同用") \
X(OPT_GPU_PERCENT, "compute of a share of one card, 0.1 to 100", "共享一张卡时的算力百分比，0.1 到 100") \
X(OPT_MIG, "a MIG slice (not built yet: refused)", "MIG 切片（尚未实现，会被拒绝）") \
X(OPT_GPU_MODEL, "models of card that will do, e.g. \"A100-80GB|H100\"", "可接受的卡型号，如 \"A100-80GB|H100\"") \
X(OPT_WORKERS, "workers, all started together, 1 to 4096", "工作进程数，一起启动，1 到 4096") \
X(OPT_CPUS, "CPUs for each worker, e.g. 1.5", "每个工作进程的 CPU 数，如 1.5") \
X(OPT_MEM, "host memory for each worker, e.g. 16GiB", "每个工作进程的主机内存，如 16GiB") \
X(OPT_TIME, "time limit, e.g. 2h30m or 1-12:00:00", "时间上限，如 2h30m 或 1-12:00:00") \
X(OPT_GRACE, "time between SIGTERM and SIGKILL", "SIGTERM 与 SIGKILL 之间的时间") \
X(OPT_QUEUE, "queue", "队列") \
X(OPT_PRIORITY, "-1000 to 1000, higher first", "优先级，-1000 到 1000，大者优先") \
X(OPT_TENANT, "tenant", "租户") \
X(OPT_REQUIRE, "cards must be this near: any, nvlink, machine, rack", "卡之间必须达到的距离：any、nvlink、machine、rack") \
X(OPT_PREFER, "cards should be this near, if possible", "卡之间尽量达到的距离") \
X(OPT_STRATEGY, "remuda, binpack or spread", "放置策略：remuda、binpack 或 spread") \
X(OPT_CHDIR, "working directory (default: the current one)", "工作目录（默认当前目录）") \
X(OPT_BEGIN, "not before this time (2026-12-01T20:00:00Z) or this much later (2h)", "不早于此时间（2026-12-01T20:00:00Z）或在此时长之后（2h）") \
X(OPT_AFTER_JOBS, "only after these jobs have ended: 7, ok:7, fail:7 or any:7, joined by commas", \
  "在这些作业结束之后：7、ok:7、fail:7 或 any:7，以逗号分隔") \
X(OPT_HOLD, "do not start it before it is released", "在被释放之前不启动") \
X(OPT_SIM_DURATION, "how long the simulated engine lets it run", "模拟引擎中作业的运行时长") \
X(OPT_FILE, "job file in YAML or JSON", "YAML 或 JSON 作业文件") \
X(OPT_PARSABLE, "print the id alone", "只输出作业编号") \
X(OPT_EXPORT, "environment to take along: ALL (default), NONE, or names and NAME=value joined by commas", \
  "要带上的环境变量：ALL（默认）、NONE，或以逗号分隔的名称与 NAME=value") \
X(OPT_ENV, "set a variable for the job; may be repeated", "为作业设置环境变量；可重复使用") \
X(OPT_SIMULATE, "simulated cards of one machine: a preset's name or file", "模拟一台机器的卡：预设名称或文件") \
X(OPT_SIMULATE_CLUSTER, "a simulated cluster from a file; no processes run", "按文件模拟一个集群；不运行真实进程") \
X(OPT_TIME_SCALE, "how much faster simulated time runs", "模拟时间的加速倍数") \
X(OPT_CONFIG, "configuration file", "配置文件") \
X(OPT_LISTEN, "also listen on this loopback address, e.g. 127.0.0.1:8080", "同时监听此本机地址，如 127.0.0.1:8080") \
X(OPT_TIMEOUT, "how long to wait", "最长等待时间") \
X(OPT_CANCEL_JOBS, "cancel all jobs first", "先取消所有作业") \
X(OPT_STATUS, "only jobs in these states (comma-separated)", "只看这些状态的作业（逗号分隔）") \
X(OPT_FILTER_USER, "only jobs of this user", "只看该用户的作业") \
X(OPT_FILTER_QUEUE, "only jobs in this queue", "只看该队列的作业") \
X(OPT_FILTER_TENANT, "only jobs of this tenant", "只看该租户的作业") \
X(OPT_FILTER_NAME, "only jobs of this name", "只看该名称的作业") \
X(OPT_ALL, "ended jobs too", "包括已结束的作业") \
X(OPT_CANCEL_ALL, "all jobs that have not ended", "所有未结束的作业") \
X(OPT_FORMAT, "columns (id,name,...), \"wide\", or a template like \"{id} {name}\"", \
  "列（id,name,...）、\"wide\"，或模板如 \"{id} {name}\"") \
X(OPT_WATCH, "show again every SECONDS (default 2)", "每隔若干秒刷新（默认 2）") \
X(OPT_LIMIT, "only the last N", "只显示最后 N 个") \
X(OPT_FOLLOW, "go on until the job has ended", "持续显示直到作业结束") \
X(OPT_FOLLOW_EVENTS, "go on as things happen", "持续显示新事件") \
X(OPT_WORKER, "which worker, from 0", "工作进程编号，从 0 开始") \
X(OPT_STDERR, "standard error instead of standard output", "显示标准错误而非标准输出") \
X(OPT_ATTEMPT, "which attempt (default: the last)", "第几次尝试（默认最后一次）") \
X(OPT_TAIL, "only the last N lines", "只显示最后 N 行") \
X(OPT_AFTER, "only events after this number", "只显示该序号之后的事件") \
X(OPT_JOB, "only events of this job", "只显示该作业的事件") \
X(OPT_REASON, "why, for others to read", "原因，供他人查看") \
X(OPT_NODE, "which node (default: all)", "节点（默认全部）") \
X(OPT_NEW_NAME, "new name", "新名称") \
X(OPT_NEW_QUEUE, "new queue", "新队列") \
X(OPT_NEW_TIME, "new time limit", "新时间上限") \
X(OPT_INTERVAL, "seconds between two looks", "两次刷新之间的秒数") \
X(OPT_ONCE, "print one screen as text and end", "以文本输出一屏后结束")

#define MESSAGES_ERRORS(X) \
X(PREFIX_ERROR, "remuda: ", "remuda：") \
X(UNKNOWN_COMMAND, "there is no command \"%1$s\"; see `remuda help`", "没有命令“%1$s”；请运行 remuda help") \
X(UNKNOWN_COMMAND_MEANT, "there is no command \"%1$s\"; did you mean \"%2$s\"?", "没有命令“%1$s”；您是指“%2$s”吗？") \
X(UNKNOWN_OPTION, "%1$s: there is no option %2$s; see `remuda %1$s --help`", "%1$s：没有选项 %2$s；请运行 remuda %1$s --help") \
X(UNKNOWN_OPTION_MEANT, "%1$s: there is no option %2$s; did you mean --%3$s?", "%1$s：没有选项 %2$s；您是指 --%3$s 吗？") \
X(OPTION_NEEDS_VALUE, "%1$s: the option %2$s needs a value", "%1$s：选项 %2$s 需要一个值") \
X(OPTION_TAKES_NO_VALUE, "%1$s: the option %2$s takes no value", "%1$s：选项 %2$s 不接受值") \
X(TOO_MANY_WORDS, "%1$s: unexpected \"%2$s\"; usage: remuda %3$s", "%1$s：多余的“%2$s”；用法：remuda %3$s") \
X(TOO_FEW_WORDS, "%1$s: something is missing; usage: remuda %2$s", "%1$s：缺少参数；用法：remuda %2$s") \
X(BAD_JOB_ID, "\"%1$s\" is not a job id; a whole number from 1 is allowed", "“%1$s”不是作业编号；应为从 1 开始的整数") \
X(EXCLUDE_EACH_OTHER, "%1$s and %2$s exclude each other; give one of them", "%1$s 与 %2$s 不能同时使用；请只给出一个") \
X(NEEDS_OTHER, "%1$s is only allowed with %2$s", "%1$s 只能与 %2$s 一起使用") \
X(NO_DAEMON, "no daemon answers at %1$s; start one with `remuda up`", "%1$s 没有守护进程应答；请用 remuda up 启动") \
X(DAEMON_TIMEOUT, "the daemon at %1$s did not answer in time", "位于 %1$s 的守护进程未及时应答") \
X(DAEMON_BROKE, "the connection to %1$s broke: %2$s", "与 %1$s 的连接中断：%2$s") \
X(OUT_OF_MEMORY, "out of memory", "内存不足") \
X(NO_STATE_DIR, "no state folder: give --state DIR, or set REMUDA_STATE or HOME", "没有状态目录：请给出 --state DIR，或设置 REMUDA_STATE 或 HOME") \
X(STATE_DIR_EMPTY, "--state: an empty value is not allowed; give a folder", "--state：不能为空；请给出目录") \
X(PATH_BAD, "%1$s: \"%2$s\": %3$s", "%1$s：“%2$s”：%3$s") \
X(NOT_ALLOWED, "%1$s: \"%2$s\" is not allowed; %3$s", "%1$s：不允许“%2$s”；%3$s") \
X(UNKNOWN_COLUMN, "--format: there is no column \"%1$s\"; allowed: %2$s", "--format：没有列“%1$s”；可用：%2$s") \
X(FILTER_NEEDED, "cancel: give job ids, or at least one of --user, --queue, --tenant, --name, --status, --all", \
  "cancel：请给出作业编号，或 --user、--queue、--tenant、--name、--status、--all 之一") \
X(UPDATE_NOTHING, "update: nothing to change; give --priority, --time, --name or --queue", \
  "update：没有要修改的内容；请给出 --priority、--time、--name 或 --queue") \
X(SUBMIT_NOTHING, "%1$s: nothing to run; give a script, `-f FILE`, or `-- COMMAND`", "%1$s：没有要运行的内容；请给出脚本、-f FILE 或 -- 命令") \
X(SCRIPT_LATE, "warning: %1$s: line %2$zu: #REMUDA stands after the first command and means nothing; move it up", \
  "警告：%1$s：第 %2$zu 行：#REMUDA 位于第一条命令之后，不起作用；请上移") \
X(WARNING, "warning: %1$s", "警告：%1$s") \
X(SUBMIT_COMMAND_HINT, "to run a command rather than a script, put -- before it: remuda submit -- COMMAND", \
  "要运行命令而非脚本，请在命令前加 --：remuda submit -- 命令") \
X(NOT_UTF8, "%1$s: a word is not UTF-8", "%1$s：有参数不是 UTF-8") \
X(ENV_NOT_UTF8, "warning: the environment variable %1$s is not UTF-8 and is left out", "警告：环境变量 %1$s 不是 UTF-8，已略去") \
X(ENV_NOT_SET, "--export: the environment variable \"%1$s\" is not set; give NAME=value, or a name that is", \
  "--export：环境变量“%1$s”未设置；请给出 NAME=value 或已设置的名称") \
X(GIVE_FILE, "give a file", "请给出文件") \
X(NOT_OVER_URL, "%1$s: only works on this machine, but REMUDA_URL is %2$s; unset it, or give --state", \
  "%1$s：只能用于本机，但 REMUDA_URL 为 %2$s；请取消该变量，或给出 --state") \
X(RUN_NO_JSON, "run: --json is not allowed: the output is the job's; use `submit --json` and `wait --json`", \
  "run：不能使用 --json，输出属于作业；请用 submit --json 和 wait --json") \
X(NO_TERMINAL, "top: needs a terminal (TERM is \"%1$s\")", "top：需要终端（TERM 为“%1$s”）") \
X(NOT_IN_TIME, "not in time: waited %1$s", "超时：已等待 %1$s")

#define MESSAGES_DAEMON(X) \
X(UP_READY, "the daemon is up (pid %1$lld, state in %2$s)", "守护进程已启动（进程 %1$lld，状态目录 %2$s）") \
X(UP_ALREADY, "the daemon is already up (pid %1$lld, state in %2$s)", "守护进程已在运行（进程 %1$lld，状态目录 %2$s）") \
X(UP_DIFFERS, "warning: it runs with other settings: %1$s is %2$s, asked for %3$s; to change: remuda down, then up", \
  "警告：运行中的设置不同：%1$s 为 %2$s，而要求的是 %3$s；如需更改：先 remuda down，再 up") \
X(UP_FAILED, "the daemon did not start (%1$s); the end of %2$s:", "守护进程未能启动（%1$s）；%2$s 的末尾：") \
X(UP_EXIT, "it ended with code %1$d", "以退出码 %1$d 结束") \
X(UP_SIGNAL, "it was killed by signal %1$d", "被信号 %1$d 终止") \
X(UP_SLOW, "it is not ready after %1$s", "%1$s 后仍未就绪") \
X(SIMULATED_LINE, "SIMULATED: %1$s", "模拟（SIMULATED）：%1$s") \
X(SIMULATED_SHORT, "SIMULATED cards", "模拟卡（SIMULATED）") \
X(CARDS_LINE, "cards: %1$s", "卡：%1$s") \
X(UP_NO_CARDS, "no GPU was found: jobs without cards run; to try cards that are simulated: remuda down, then remuda up --simulate dgx-a100", \
  "未找到 GPU：可运行不用卡的作业；如需试用模拟卡：先 remuda down，再 remuda up --simulate dgx-a100") \
X(DOWN_DONE, "the daemon has stopped; %1$lld jobs keep running", "守护进程已停止；%1$lld 个作业继续运行") \
X(DOWN_NONE, "no daemon is running at %1$s", "%1$s 没有运行中的守护进程") \
X(STATUS_DAEMON, "daemon", "守护进程") \
X(STATUS_DAEMON_VALUE, "version %1$s, pid %2$lld, up %3$s", "版本 %1$s，进程 %2$lld，已运行 %3$s") \
X(STATUS_ENGINE, "engine", "引擎") \
X(STATUS_CARDS, "cards", "卡") \
X(STATUS_CARDS_VALUE, "%1$lld on %2$lld nodes, %3$s free", "%1$lld 张，%2$lld 个节点，空闲 %3$s") \
X(STATUS_JOBS, "jobs", "作业") \
X(STATUS_JOBS_VALUE, "%1$lld queued, %2$lld starting, %3$lld running; ended: %4$lld succeeded, %5$lld failed, %6$lld cancelled", \
  "等待 %1$lld，启动中 %2$lld，运行 %3$lld；已结束：成功 %4$lld，失败 %5$lld，取消 %6$lld") \
X(STATUS_STATE, "state", "状态目录") \
X(STATUS_AUDIT, "audit", "核查") \
X(STATUS_AUDIT_OK, "clean", "无问题") \
X(STATUS_RECOVERING, "still asking what runs; nothing is started yet", "正在核对运行中的作业，暂不启动新作业") \
X(STATUS_SOURCE, "source", "来源")

#define MESSAGES_JOBS(X) \
X(COL_ID, "ID", "编号") \
X(COL_NAME, "NAME", "名称") \
X(COL_STATE, "STATE", "状态") \
X(COL_USER, "USER", "用户") \
X(COL_TENANT, "TENANT", "租户") \
X(COL_QUEUE, "QUEUE", "队列") \
X(COL_PRIORITY, "PRIO", "优先级") \
X(COL_GPUS, "GPUS", "GPU") \
X(COL_WORKERS, "WORKERS", "工作进程") \
X(COL_CPUS, "CPUS", "CPU") \
X(COL_MEM, "MEM", "内存") \
X(COL_JOBS, "JOBS", "作业") \
X(COL_DEFAULT_TIME, "DEFAULT TIME", "默认时间") \
X(COL_MAX_TIME, "MAX TIME", "最长时间") \
X(COL_TIME, "TIME", "时间") \
X(COL_LIMIT, "LIMIT", "上限") \
X(COL_SUBMITTED, "SUBMITTED", "提交时间") \
X(COL_STARTED, "STARTED", "开始时间") \
X(COL_ENDED, "ENDED", "结束时间") \
X(COL_EXIT, "EXIT", "退出码") \
X(COL_CAUSE, "CAUSE", "结束原因") \
X(COL_ATTEMPT, "ATTEMPT", "尝试") \
X(COL_NODES, "NODES", "节点") \
X(COL_REASON, "REASON", "原因") \
X(COL_WHERE, "NODES OR REASON", "节点或原因") \
X(COL_NODE, "NODE", "节点") \
X(COL_RACK, "RACK", "机架") \
X(COL_MODEL, "MODEL", "型号") \
X(COL_FREE, "FREE", "空闲") \
X(COL_CPU_FREE, "CPUS FREE", "CPU 空闲") \
X(COL_MEM_FREE, "MEM FREE", "内存空闲") \
X(COL_EVENT, "EVENT", "事件") \
X(COL_WORKER, "WORKER", "工作进程") \
X(COL_CODE, "CODE", "退出码") \
X(COL_SIGNAL, "SIGNAL", "信号") \
X(COL_PEAK_MEM, "PEAK MEM", "内存峰值") \
X(COL_CPU_TIME, "CPU TIME", "CPU 时间") \
X(COL_DETAIL, "DETAIL", "说明") \
X(COL_BY, "BY", "操作者") \
X(STATE_QUEUED, "queued", "等待") \
X(STATE_STARTING, "starting", "启动中") \
X(STATE_RUNNING, "running", "运行") \
X(STATE_SUCCEEDED, "succeeded", "成功") \
X(STATE_FAILED, "failed", "失败") \
X(STATE_CANCELLED, "cancelled", "已取消") \
X(STATE_STOPPING, "stopping", "停止中") \
X(NODE_UP, "up", "正常") \
X(NODE_DOWN, "down", "失联") \
X(NODE_GONE, "gone", "已移除") \
X(NODE_DRAINING, "draining", "排空中") \
X(NO_JOBS, "no jobs", "没有作业") \
X(NO_NODES, "no nodes", "没有节点") \
X(SUBMITTED, "job %1$lld is %2$s", "作业 %1$lld：%2$s") \
X(CANCEL_ASKED, "job %1$lld is being cancelled", "正在取消作业 %1$lld") \
X(CANCEL_DONE, "job %1$lld is cancelled", "作业 %1$lld 已取消") \
X(CANCELLED_COUNT, "%1$zu jobs are being cancelled", "正在取消 %1$zu 个作业") \
X(HELD, "job %1$lld is held", "作业 %1$lld 已暂停") \
X(RELEASED, "job %1$lld is released", "作业 %1$lld 已释放") \
X(REQUEUED, "job %1$lld goes back into the queue", "作业 %1$lld 将重新排队") \
X(CONFIG_SAME, "nothing would change", "没有变化") \
X(CONFIG_VALID, "%1$s is valid", "%1$s 有效") \
X(CONFIG_APPLIED, "in force as version %1$lld", "已生效，版本 %1$lld") \
X(UPDATED, "job %1$lld has been changed", "作业 %1$lld 已修改") \
X(DRAINED, "node %1$s gets nothing new", "节点 %1$s 不再接收新作业") \
X(UNDRAINED, "node %1$s is used again", "节点 %1$s 恢复使用") \
X(RUN_WAITS, "job %1$lld waits: %2$s", "作业 %1$lld 等待中：%2$s") \
X(RUN_CANCELS, "cancelling job %1$lld; press Ctrl-C again to leave it alone", "正在取消作业 %1$lld；再按 Ctrl-C 则直接离开") \
X(SHOW_JOB, "Job", "作业") \
X(SHOW_STATE, "State", "状态") \
X(SHOW_OWNER, "Owner", "所有者") \
X(SHOW_OWNER_VALUE, "user %1$s, tenant %2$s", "用户 %1$s，租户 %2$s") \
X(SHOW_QUEUE, "Queue", "队列") \
X(SHOW_QUEUE_VALUE, "%1$s, priority %2$lld", "%1$s，优先级 %2$lld") \
X(SHOW_COMMAND, "Command", "命令") \
X(SHOW_CWD, "Folder", "目录") \
X(SHOW_REQUEST, "Request", "请求") \
X(SHOW_REQUEST_VALUE, "%1$lld workers, each: %2$s; CPUs %3$s; memory %4$s", "%1$lld 个工作进程，每个：%2$s；CPU %3$s；内存 %4$s") \
X(SHOW_REQUEST_ONE, "%1$s; CPUs %2$s; memory %3$s", "%1$s；CPU %2$s；内存 %3$s") \
X(SHOW_LEVELS, "Nearness", "距离") \
X(SHOW_LEVELS_VALUE, "required %1$s, preferred %2$s, reached %3$s", "要求 %1$s，期望 %2$s，实际 %3$s") \
X(SHOW_SUBMITTED, "Submitted", "提交时间") \
X(SHOW_STARTED, "Started", "开始时间") \
X(SHOW_ENDED, "Ended at", "结束时间") \
X(SHOW_LIMIT, "Time limit", "时间上限") \
X(SHOW_REASON, "Waits for", "等待原因") \
X(SHOW_CAUSE, "Ended", "结束") \
X(SHOW_CAUSE_VALUE, "%1$s (exit status %2$lld)", "%1$s（退出状态 %2$lld）") \
X(SHOW_SIMULATED, "Simulated", "模拟") \
X(SHOW_SIMULATED_VALUE, "SIMULATED: its cards are simulated", "SIMULATED：该作业使用的卡是模拟的") \
X(SHOW_PLACEMENT, "Placement", "放置") \
X(SHOW_EXITS, "Exits", "退出情况") \
X(SHOW_TIMELINE, "Timeline", "时间线") \
X(GPUS_WHOLE, "%1$lld GPU", "%1$lld 张整卡") \
X(GPUS_SHARE, "%1$s%% of a GPU with %2$s", "一张卡的 %1$s%% 及 %2$s 显存") \
X(GPUS_SHARE_ONLY, "%1$s%% of a GPU", "一张卡的 %1$s%%") \
X(GPUS_NONE, "no GPU", "不用 GPU") \
X(NONE, "none", "无") \
X(ANY, "any", "任意")

#define MESSAGES_CODES(X) \
X(REASON_GPUS, "GPUs: needs %1$s, %2$s of %3$s free", "GPU：需要 %1$s 张，空闲 %2$s 张，共 %3$s 张") \
X(REASON_GPU_SHARE, "GPU share: needs %1$s of a card, the freest has %2$s", "GPU 份额：需要一张卡的 %1$s，最空的卡剩 %2$s") \
X(REASON_GPU_MEM, "GPU memory: needs %1$s on one card, the best has %2$s free", "显存：需要一张卡上的 %1$s，最好的卡空闲 %2$s") \
X(REASON_WORKERS, "%4$s: needs room for %1$s workers, there is room for %2$s", "%4$s：需要放下 %1$s 个工作进程，只能放下 %2$s 个") \
X(RESOURCE_GPUS, "GPUs", "GPU") \
X(RESOURCE_CPU, "CPUs", "CPU") \
X(RESOURCE_MEM, "memory", "内存") \
X(REASON_GPU_MODEL, "GPU model %4$s: needs %1$s, %2$s of %3$s free", "GPU 型号 %4$s：需要 %1$s 张，空闲 %2$s 张，共 %3$s 张") \
X(REASON_CPU, "CPUs: needs %1$s, %2$s of %3$s free", "CPU：需要 %1$s，空闲 %2$s，共 %3$s") \
X(REASON_MEM, "memory: needs %1$s, %2$s of %3$s free", "内存：需要 %1$s，空闲 %2$s，共 %3$s") \
X(REASON_LEVEL, "nearness %4$s: needs room for %1$s workers together, the best place has room for %2$s", \
  "距离 %4$s：需要在一处放下 %1$s 个工作进程，最好的位置只能放下 %2$s 个") \
X(REASON_FRAGMENTED, "fragmented: needs %1$s GPUs on one machine, the best has %2$s free of %3$s", \
  "碎片：需要同一台机器上 %1$s 张卡，最好的机器空闲 %2$s 张，共 %3$s 张") \
X(REASON_TENANT_GPUS, "tenant %4$s: needs %1$s GPUs, %2$s left of its cap of %3$s", "租户 %4$s：需要 %1$s 张卡，上限 %3$s 中还剩 %2$s") \
X(REASON_TENANT_JOBS, "tenant %4$s: its cap of %3$s running jobs is reached", "租户 %4$s：已达到 %3$s 个运行作业的上限") \
X(REASON_USER_GPUS, "user %4$s: needs %1$s GPUs, %2$s left of the cap of %3$s", "用户 %4$s：需要 %1$s 张卡，上限 %3$s 中还剩 %2$s") \
X(REASON_USER_JOBS, "user %4$s: the cap of %3$s running jobs is reached", "用户 %4$s：已达到 %3$s 个运行作业的上限") \
X(REASON_QUEUE_GPUS, "queue %4$s: needs %1$s GPUs, %2$s left of its cap of %3$s", "队列 %4$s：需要 %1$s 张卡，上限 %3$s 中还剩 %2$s") \
X(REASON_QUEUE_JOBS, "queue %4$s: its cap of %3$s running jobs is reached", "队列 %4$s：已达到 %3$s 个运行作业的上限") \
X(REASON_RESERVED, "reserved for job %5$s, which is to start at %6$s", "已为作业 %5$s 保留，该作业预计于 %6$s 开始") \
X(REASON_BACKOFF, "tried again at %6$s after a failed start", "启动失败，将在 %6$s 重试") \
X(REASON_HELD, "held; `remuda release` lets it start", "已暂停；用 remuda release 允许启动") \
X(REASON_BEGIN, "asked to begin at %6$s", "要求于 %6$s 开始") \
X(REASON_AFTER, "waits for job %5$s to end (%2$s of %1$s have)", "等待作业 %5$s 结束（%1$s 个中已有 %2$s 个结束）") \
X(REASON_BEHIND, "behind job %5$s in the queue", "排在作业 %5$s 之后") \
X(REASON_NODES, "no node is open for new work", "没有可接收新作业的节点") \
X(REASON_RECOVERING, "the daemon is still asking what runs", "守护进程正在核对运行中的作业") \
X(CAUSE_EXIT, "its processes ended by themselves", "进程自行结束") \
X(CAUSE_CANCEL, "it was cancelled", "被取消") \
X(CAUSE_TIME_LIMIT, "its time limit was reached", "达到时间上限") \
X(CAUSE_WORKER_FAILED, "another worker failed", "另一个工作进程失败") \
X(CAUSE_LAUNCH_FAILED, "it could not be started", "无法启动") \
X(CAUSE_LOST, "its runner vanished", "运行器丢失") \
X(CAUSE_OOM, "out of host memory", "主机内存不足") \
X(CAUSE_REQUEUE, "put back into the queue", "重新排队") \
X(CAUSE_DEPENDENCY, "a job it was to start after ended otherwise", "所依赖的作业未按要求结束") \
X(CAUSE_NODE_GONE, "its node is gone", "节点已移除") \
X(EVENT_CONFIG, "configuration", "配置") \
X(EVENT_NODE, "node", "节点") \
X(EVENT_NODE_STATE, "node changed", "节点状态变化") \
X(EVENT_SUBMITTED, "submitted", "提交") \
X(EVENT_UPDATED, "updated", "修改") \
X(EVENT_CANCEL_REQUESTED, "cancel requested", "请求取消") \
X(EVENT_STARTING, "starting", "启动") \
X(EVENT_RUNNING, "running", "运行") \
X(EVENT_WORKER_EXITED, "worker exited", "工作进程退出") \
X(EVENT_STOPPING, "stopping", "停止") \
X(EVENT_REQUEUED, "requeued", "重新排队") \
X(EVENT_ENDED, "ended", "结束") \
X(EVENT_REQUEUE_REQUESTED, "requeue requested", "请求重新排队") \
X(EVENT_RESTORED, "restored", "恢复") \
X(LEVEL_ANY, "any", "任意") \
X(LEVEL_NVLINK, "nvlink", "NVLink") \
X(LEVEL_MACHINE, "machine", "同一机器") \
X(LEVEL_RACK, "rack", "同一机架") \
X(VERDICT_RUNNING, "Job %1$lld is running.", "作业 %1$lld 正在运行。") \
X(VERDICT_ENDED, "Job %1$lld has ended: %2$s.", "作业 %1$lld 已结束：%2$s。") \
X(VERDICT_CAN_START, "Job %1$lld can start: nothing stands against it.", "作业 %1$lld 可以启动，没有阻碍。") \
X(VERDICT_WAITS, "Job %1$lld waits, number %2$lld in the queue, because:", "作业 %1$lld 在等待，排第 %2$lld 位，原因：") \
X(VERDICT_NEVER, "Job %1$lld can never start on this pool as it is, because:", "在当前资源池上作业 %1$lld 永远无法启动，原因：") \
X(HELD_BY, "held by job %1$lld (%2$s, user %3$s): %4$s", "被作业 %1$lld（%2$s，用户 %3$s）占用：%4$s") \
X(HELD_UNTIL, ", at most until %1$s", "，最迟至 %1$s") \
X(RESERVED_START, "Starts at the latest, as far as time limits tell: %1$s", "按时间上限推算，最迟开始于：%1$s") \
X(RESERVED_GUESS, "Expected to start about %1$s; a guess, for jobs before it have no time limit", \
  "预计约于 %1$s 开始；前面的作业没有时间上限，仅为估计") \
X(WOULD_START, "It would start now with one of:", "若改为以下之一，现在即可启动：")

#define MESSAGES_TOP(X) \
X(TOP_TITLE, "remuda top", "remuda top") \
X(TOP_KEYS, "q quit   s order   j/k scroll   space pause", "q 退出   s 排序   j/k 滚动   空格 暂停") \
X(TOP_SUMMARY, "%1$lld GPUs, %2$s free; jobs: %3$lld running, %4$lld waiting", "GPU %1$lld 张，空闲 %2$s；作业：运行 %3$lld，等待 %4$lld") \
X(TOP_SORT, "order: %1$s", "排序：%1$s") \
X(TOP_ORDER_ID, "id", "编号") \
X(TOP_ORDER_GPUS, "GPUs", "GPU 数") \
X(TOP_ORDER_USER, "user", "用户") \
X(TOP_PAUSED, "paused", "已暂停") \
X(COL_CARD, "GPU", "GPU") \
X(COL_GIVEN, "GIVEN", "已分配") \
X(COL_USE, "USE", "使用率") \
X(COL_GPU_MEM, "MEMORY", "显存") \
X(COL_TEMP, "TEMP", "温度") \
X(COL_POWER, "POWER", "功率") \
X(COL_HOLDERS, "JOBS", "作业") \
X(TOP_ALLOCATED, "allocated", "已分配") \
X(TOP_USE, "use", "使用率") \
X(TOP_MEMORY, "memory", "显存") \
X(TOP_MORE_NODES, "and %1$lld more nodes, see remuda nodes", "另有 %1$lld 个节点，见 remuda nodes") \
X(TOP_NO_ANSWER, "no answer from the daemon: %1$s", "守护进程无应答：%1$s")

#define MESSAGES(X) \
MESSAGES_HELP(X) \
MESSAGES_ERRORS(X) \
MESSAGES_DAEMON(X) \
MESSAGES_JOBS(X) \
MESSAGES_CODES(X) \
MESSAGES_TOP(X)
/* clang-format on */

#endif
