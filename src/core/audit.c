/* SPDX-License-Identifier: Apache-2.0 */
#include "core/audit.h"

#include "base/mem.h"
#include "core/state.h"

#include <errno.h>
#include <string.h>

/* What the grants of all jobs add up to, to be compared with what the state says. */
struct sums {
    struct node_sum {
        uint64_t cpu_milli;
        uint64_t mem_mib;
        uint32_t holders; /* workers on the node */
        struct {
            uint32_t milli;
            uint64_t mem_mib;
            uint32_t holders;
            uint32_t whole;
        } gpus[NODE_GPUS_MAX];
    } * nodes;
    struct account *tenants;
    struct account *users;
    struct account *members;
    struct account *queues;
    uint64_t states[JOB_STATES_LEN];
};

static void sums_done(struct sums *s)
{
    mem_free(s->nodes);
    mem_free(s->tenants);
    mem_free(s->users);
    mem_free(s->members);
    mem_free(s->queues);
}

static int sums_init(struct sums *s, const struct core *c)
{
    *s = (struct sums){0};
    s->nodes = mem_alloc(c->cluster.nodes_len, sizeof *s->nodes);
    s->tenants = mem_alloc(c->tenants.count, sizeof *s->tenants);
    s->users = mem_alloc(c->users.count, sizeof *s->users);
    s->members = mem_alloc(c->members.count, sizeof *s->members);
    s->queues = mem_alloc(c->queues.count, sizeof *s->queues);
    if (s->nodes == NULL || s->tenants == NULL || s->users == NULL || s->members == NULL || s->queues == NULL)
        return -ENOMEM;
    return 0;
}

static void charge(struct account *a, const struct job *j)
{
    a->gpus_milli += job_gpus_milli(j);
    a->jobs++;
    for (uint32_t i = 0; i < j->workers; i++) {
        a->cpu_milli += j->grants[i].cpu_milli;
        a->mem_mib += j->grants[i].mem_mib;
    }
}

static int add_grant(struct sums *s, const struct core *c, const struct job *j, const struct grant *g, struct err *e)
{
    if (g->node >= c->cluster.nodes_len)
        return err_set(e, -EPROTO, "job %llu holds something on node %u, which does not exist",
                       (unsigned long long)j->id, g->node);
    const struct node *n = c->cluster.nodes[g->node];
    struct node_sum *t = &s->nodes[g->node];
    t->cpu_milli += g->cpu_milli;
    t->mem_mib += g->mem_mib;
    t->holders++;
    uint32_t cards = (uint32_t)__builtin_popcount(g->gpu_mask);
    uint32_t asked = j->req.gpus > 0 ? j->req.gpus : j->req.share_milli > 0 ? 1 : 0;
    if (cards != asked)
        return err_set(e, -EPROTO, "a worker of job %llu holds %u cards and asked for %u", (unsigned long long)j->id,
                       cards, asked);
    uint32_t milli = j->req.gpus > 0 ? GPU_MILLI : j->req.share_milli;
    if (g->milli != milli || (milli < GPU_MILLI && g->gpu_mem_mib != j->req.share_mem_mib) ||
        g->cpu_milli != j->req.cpu_milli || g->mem_mib != j->req.mem_mib)
        return err_set(e, -EPROTO, "a worker of job %llu holds something else than it asked for",
                       (unsigned long long)j->id);
    for (uint32_t i = 0; i < NODE_GPUS_MAX; i++) {
        if ((g->gpu_mask >> i & 1) == 0)
            continue;
        if (i >= n->gpus_len)
            return err_set(e, -EPROTO, "job %llu holds card %u of %s, which has %u", (unsigned long long)j->id, i,
                           n->name, n->gpus_len);
        t->gpus[i].milli += g->milli;
        t->gpus[i].holders++;
        t->gpus[i].whole += g->milli == GPU_MILLI;
        t->gpus[i].mem_mib += g->milli == GPU_MILLI ? n->gpus[i].mem_mib : g->gpu_mem_mib;
    }
    return 0;
}

/* A job is in exactly the places that its state asks for. */
static int check_job(const struct core *c, const struct job *j, struct err *e)
{
    unsigned long long id = (unsigned long long)j->id;
    bool waits = j->state == JOB_QUEUED;
    bool placed = j->class != NULL && otree_linked(&j->in_class);
    bool delayed = j->class == NULL && otree_linked(&j->by_time);
    if (waits && placed == delayed)
        return err_set(e, -EPROTO, "queued job %llu is in %s", id, placed ? "two queues" : "no queue");
    if (!waits && placed)
        return err_set(e, -EPROTO, "job %llu is %s and still queued", id, job_state_name(j->state));
    if ((j->grants != NULL) != job_holds(j))
        return err_set(e, -EPROTO, "job %llu is %s and %s", id, job_state_name(j->state),
                       j->grants == NULL ? "holds nothing" : "still holds something");
    if (job_holds(j) && (j->attempt == 0 || j->exits > j->workers))
        return err_set(e, -EPROTO, "job %llu: attempt %u, %u of %u workers ended", id, j->attempt, j->exits,
                       j->workers);
    if (job_ended(j) && (j->ended_ms == 0 || otree_linked(&j->by_time) || otree_linked(&j->in_todo)))
        return err_set(e, -EPROTO, "job %llu has ended and is still waited for", id);
    uint32_t linked = 0;
    for (uint32_t i = 0; i < j->links_len; i++) {
        const struct job *on = otree_linked(&j->links[i].node) ? core_job(c, j->links[i].on) : NULL;
        linked += otree_linked(&j->links[i].node);
        if (otree_linked(&j->links[i].node) && (!waits || on == NULL || job_ended(on)))
            return err_set(e, -EPROTO, "job %llu is %s and waits for the end of job %llu", id, job_state_name(j->state),
                           (unsigned long long)j->links[i].on);
    }
    if (waits && !j->links_failed && linked != j->links_left)
        return err_set(e, -EPROTO, "job %llu waits for %u jobs, linked are %u", id, j->links_left, linked);
    bool limited = job_holds(j) && j->time_limit_ms > 0 && j->stop_cause == CAUSE_NONE;
    if (job_holds(j) && limited != otree_linked(&j->by_time))
        return err_set(e, -EPROTO, "job %llu: its time limit is %s", id, limited ? "not watched" : "watched in vain");
    (void)c;
    return 0;
}

static int sum_jobs(struct sums *s, const struct core *c, struct err *e)
{
    for (uint64_t i = 0; i < c->table_len; i++) {
        const struct job *j = c->table[i];
        if (j == NULL)
            continue;
        s->states[j->state]++;
        int r = check_job(c, j, e);
        if (r < 0)
            return r;
        if (!job_holds(j))
            continue;
        charge(&s->tenants[j->payer.tenant], j);
        charge(&s->users[j->payer.user], j);
        charge(&s->members[j->payer.member], j);
        charge(&s->queues[j->payer.queue], j);
        for (uint32_t w = 0; w < j->workers && r == 0; w++)
            r = add_grant(s, c, j, &j->grants[w], e);
        if (r < 0)
            return r;
    }
    for (int k = 0; k < JOB_STATES_LEN; k++)
        if (s->states[k] != c->counts[k])
            return err_set(e, -EPROTO, "%llu jobs are %s, counted are %llu", (unsigned long long)s->states[k],
                           job_state_name((enum job_state)k), (unsigned long long)c->counts[k]);
    return 0;
}

static int check_gpu(const struct node *n, uint32_t i, const struct node_sum *t, struct err *e)
{
    const struct gpu *g = &n->gpus[i];
    if (t->gpus[i].milli > GPU_MILLI || t->gpus[i].mem_mib > g->mem_mib)
        return err_set(e, -EPROTO, "card %u of %s: %u/1000 and %llu MiB are held, it has 1000 and %u", i, n->name,
                       t->gpus[i].milli, (unsigned long long)t->gpus[i].mem_mib, g->mem_mib);
    if (g->free_milli != GPU_MILLI - t->gpus[i].milli || g->free_mem_mib != g->mem_mib - t->gpus[i].mem_mib)
        return err_set(e, -EPROTO, "card %u of %s: %u/1000 and %u MiB are called free, %u and %llu are", i, n->name,
                       g->free_milli, g->free_mem_mib, GPU_MILLI - t->gpus[i].milli,
                       (unsigned long long)(g->mem_mib - t->gpus[i].mem_mib));
    if (g->holders != t->gpus[i].holders)
        return err_set(e, -EPROTO, "card %u of %s: %u holders are counted, there are %u", i, n->name, g->holders,
                       t->gpus[i].holders);
    if (g->whole != (t->gpus[i].whole > 0) || (g->whole && g->holders != 1))
        return err_set(e, -EPROTO, "card %u of %s is held whole by %u and in all by %u", i, n->name, t->gpus[i].whole,
                       t->gpus[i].holders);
    return 0;
}

static int check_node(const struct core *c, uint32_t id, const struct node_sum *t, struct err *e)
{
    const struct node *n = c->cluster.nodes[id];
    if (t->cpu_milli > n->cpu_milli || n->free_cpu_milli != n->cpu_milli - t->cpu_milli)
        return err_set(e, -EPROTO, "%s: %llu thousandths of a CPU are held and %u called free of %u", n->name,
                       (unsigned long long)t->cpu_milli, n->free_cpu_milli, n->cpu_milli);
    if (t->mem_mib > n->mem_mib || n->free_mem_mib != n->mem_mib - t->mem_mib)
        return err_set(e, -EPROTO, "%s: %llu MiB are held and %llu called free of %llu", n->name,
                       (unsigned long long)t->mem_mib, (unsigned long long)n->free_mem_mib,
                       (unsigned long long)n->mem_mib);
    uint32_t holders;
    (void)core_holders(c, id, &holders);
    if (holders != t->holders)
        return err_set(e, -EPROTO, "%s: %u workers are listed, %u are there", n->name, holders, t->holders);
    uint64_t free_milli = 0;
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        int r = check_gpu(n, i, t, e);
        if (r < 0)
            return r;
        free_milli += n->gpus[i].healthy ? n->gpus[i].free_milli : 0;
    }
    if (free_milli != n->gpus_milli_free)
        return err_set(e, -EPROTO, "%s: %u/1000 cards are called free, %llu are", n->name, n->gpus_milli_free,
                       (unsigned long long)free_milli);
    return 0;
}

static int check_accounts(const struct accounts *have, const struct account *want, const struct intern *names,
                          const char *what, struct err *e)
{
    for (uint32_t i = 0; i < names->count; i++) {
        struct account a = i < have->cap ? have->rows[i] : (struct account){0};
        if (memcmp(&a, &want[i], sizeof a) != 0)
            return err_set(e, -EPROTO,
                           "%s %s: charged with %llu/1000 cards, %llu jobs, %llu CPU, %llu MiB; its jobs hold "
                           "%llu, %llu, %llu, %llu",
                           what, intern_name(names, i), (unsigned long long)a.gpus_milli, (unsigned long long)a.jobs,
                           (unsigned long long)a.cpu_milli, (unsigned long long)a.mem_mib,
                           (unsigned long long)want[i].gpus_milli, (unsigned long long)want[i].jobs,
                           (unsigned long long)want[i].cpu_milli, (unsigned long long)want[i].mem_mib);
    }
    return 0;
}

int core_audit(const struct core *c, struct err *e)
{
    struct sums s;
    int r = sums_init(&s, c);
    if (r == 0)
        r = sum_jobs(&s, c, e);
    for (uint32_t i = 0; i < c->cluster.nodes_len && r == 0; i++)
        r = check_node(c, i, &s.nodes[i], e);
    if (r == 0)
        r = check_accounts(&c->ledger.tenants, s.tenants, &c->tenants, "tenant", e);
    if (r == 0)
        r = check_accounts(&c->ledger.users, s.users, &c->users, "user", e);
    if (r == 0)
        r = check_accounts(&c->ledger.members, s.members, &c->members, "user within a tenant", e);
    if (r == 0)
        r = check_accounts(&c->ledger.queues, s.queues, &c->queues, "queue", e);
    sums_done(&s);
    return r;
}
