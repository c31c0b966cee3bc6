/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One partition: a server that runs one job at a time to its end, in the order of its policy. */

#include "adversary.h"

#include <stdlib.h>

#define JOBS_MAX 4000U

struct job {
	size_t task;
	int64_t release, deadline;
	int64_t arrives;                  /* at the queue, or at the dispatcher */
	int64_t execution, before, after; /* host time before and after it */
	int64_t tie;
	bool done;
};

/* What a task did last, for those that come after it. */
static struct {
	struct notice {
		int64_t release, time;
	} list[JOBS_MAX];
	size_t n;
} notices[TASKS_MAX];

struct server {
	struct set *set;
	const struct partition *partition;
	const struct still *stills;
	size_t n_stills;
	struct job jobs[JOBS_MAX];
	size_t n_jobs;
};

/* The end of so much execution that begins at this time. */
static int64_t run(const struct server *s, int64_t time, int64_t execution)
{
	for (size_t i = 0; i < s->n_stills; i++) {
		const struct still *still = &s->stills[i];

		if (still->to <= time)
			continue;
		if (still->from >= time + execution)
			break;
		if (still->from > time) {
			execution -= still->from - time;
			time = still->from;
		}
		time = still->to;
	}
	return time + execution;
}

static int64_t execution_of(const struct server *s, const struct task *task)
{
	int64_t full = (task->part / s->partition->cus + task->fixed) * (100 + s->set->margin);

	return one_in(5) ? 1 + below(full) : full;
}

static void add_job(struct server *s, size_t i, int64_t release, int64_t ready)
{
	const struct task *task = &s->set->tasks[i];
	int64_t host = s->partition->host * TICKS, before = one_in(2) ? host : below(host + 1);
	bool dispatcher = s->partition->policy != POLICY_FIFO;

	if (s->n_jobs < JOBS_MAX)
		s->jobs[s->n_jobs++] = (struct job){
			.task = i,
			.release = release,
			.arrives = dispatcher ? ready : ready + before,
			.deadline = release + task->deadline * TICKS,
			.execution = execution_of(s, task),
			.before = before,
			.after = host - before,
			.tie = below(1000),
		};
}

/* The jobs of one task that comes after another one. */
static void add_later_jobs(struct server *s, size_t i)
{
	const struct task *task = &s->set->tasks[i];

	for (size_t k = 0; k < notices[task->after].n; k++) {
		const struct notice *notice = &notices[task->after].list[k];

		add_job(s, i, notice->release,
			notice->time + (one_in(2) ? task->jitter * TICKS
						  : below(task->jitter * TICKS + 1)));
	}
}

/* The jobs of one task: they meet at the time 0, or one of them is ready just before. */
static void add_jobs(struct server *s, size_t i, bool history, int64_t horizon)
{
	const struct task *task = &s->set->tasks[i];
	int64_t period = task->period * TICKS, jitter = task->jitter * TICKS;
	int64_t first = one_in(3) ? -1 : one_in(4) ? below(period) : 0;
	int64_t release = first - (one_in(4) ? below(jitter + 1) : jitter);
	bool dense = !one_in(4);

	add_job(s, i, release, first);
	for (int64_t k = 1; history && k <= 3; k++) {
		int64_t before = release - k * period - (dense ? 0 : below(period));

		add_job(s, i, before, before + below(jitter + 1));
		if (!dense)
			break;
	}
	while (release + period < horizon && s->n_jobs < JOBS_MAX) {
		release += period + (dense ? 0 : below(period / 2 + 1));
		add_job(s, i, release, release + (dense ? 0 : below(jitter + 1)));
	}
}

/* Whether a is served before b, both of which wait. */
static bool precedes(const struct server *s, const struct job *a, const struct job *b)
{
	const struct task *x = &s->set->tasks[a->task], *y = &s->set->tasks[b->task];

	switch (s->partition->policy) {
	case POLICY_NP_EDF:
		if (a->deadline != b->deadline)
			return a->deadline < b->deadline;
		break;
	case POLICY_NP_DM:
		if (x->deadline != y->deadline)
			return x->deadline < y->deadline;
		break;
	default: break;
	}
	return a->arrives != b->arrives ? a->arrives < b->arrives : a->tie < b->tie;
}

/* The next job at this time, or the one that is ready next. */
static struct job *next_job(struct server *s, int64_t *time)
{
	struct job *best = NULL;
	int64_t soonest = INT64_MAX;

	for (size_t i = 0; i < s->n_jobs; i++)
		if (!s->jobs[i].done && s->jobs[i].arrives < soonest)
			soonest = s->jobs[i].arrives;
	if (soonest > *time)
		*time = soonest;
	for (size_t i = 0; i < s->n_jobs; i++) {
		struct job *job = &s->jobs[i];

		if (!job->done && job->arrives <= *time && (!best || precedes(s, job, best)))
			best = job;
	}
	return best;
}

/* With fifo the host works while other jobs run. A dispatcher begins a job when it knows that the
 * one before it has ended. Returns when the server is free. */
static int64_t serve_job(struct server *s, struct job *job, int64_t time)
{
	bool dispatcher = s->partition->policy != POLICY_FIFO;
	int64_t end = run(s, time + (dispatcher ? job->before : 0), job->execution);
	struct task *task = &s->set->tasks[job->task];

	job->done = true;
	notices[job->task].list[notices[job->task].n++] = (struct notice){ job->release,
									   end + job->after };
	if (end + job->after - job->release > task->worst)
		task->worst = end + job->after - job->release;
	return end + (dispatcher ? job->after : 0);
}

void serve(struct set *set, size_t partition, bool history, const struct still *stills,
	   size_t n_stills, int64_t horizon)
{
	static struct server s;
	const struct partition *p = &set->partitions[partition];
	bool inactive = p->activation >= 0 && !p->waits_for_grant;
	int64_t time = INT64_MIN;
	struct job *job;

	s.set = set;
	s.partition = p;
	s.stills = stills;
	s.n_stills = n_stills;
	s.n_jobs = 0;
	for (size_t i = 0; i < set->n_tasks; i++) {
		if (set->tasks[i].partition != partition)
			continue;
		notices[i].n = 0;
		if (set->tasks[i].after >= 0)
			add_later_jobs(&s, i);
		else
			add_jobs(&s, i, history && !inactive && one_in(2), horizon);
	}
	while ((job = next_job(&s, &time))) {
		/* The first job asks for the activation. */
		if (inactive)
			time += p->activation * TICKS - (one_in(4) ? below(p->activation) : 0);
		inactive = false;
		time = serve_job(&s, job, time);
	}
}
