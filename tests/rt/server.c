/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Partitions, each a server that runs one job at a time to its end, in the order of its policy. The
 * copies of all partitions of a GPU share one engine, which serves them in whatever order and parts.
 */

#include "adversary.h"

#include <stdlib.h>

#define JOBS_MAX 4000U
#define NEVER INT64_MAX

struct job {
	size_t task;
	int64_t release, deadline;
	int64_t arrives; /* at the queue, or at the dispatcher */
	int64_t execution, in, out;
	int64_t before, after; /* host time before and after it */
	int64_t tie;
	bool done;
};

enum stage { IDLE, SUBMITTING, COPYING_IN, RUNNING, COPYING_OUT, TELLING };

struct server {
	const struct partition *partition;
	bool inactive;
	struct job jobs[JOBS_MAX];
	size_t n_jobs;
	struct job *job;
	enum stage stage;
	int64_t begun; /* its job */
	int64_t until; /* the end of the stage; NEVER: it waits for the engine */
	int64_t copy;  /* what is left of a copy */
};

struct engine {
	struct server *server; /* whose copy it makes; NULL: none */
	int64_t until;
};

static struct world {
	struct set *set;
	const struct stills *stills;
	struct server servers[PARTITIONS_MAX];
	struct engine engines[GPUS_MAX];
	size_t first, last; /* partitions that are looked at */
	size_t victim;      /* whose copies wait */
	bool slices;
	int64_t now, horizon;
} world;

/* The end of so much execution on a GPU that begins at this time. */
static int64_t run(size_t gpu, int64_t time, int64_t execution)
{
	const struct stills *stills = &world.stills[gpu];

	for (size_t i = 0; i < stills->n; i++) {
		const struct still *still = &stills->list[i];

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

/* ---- jobs ----------------------------------------------------------------------------------- */

static int64_t shorter(const struct server *s, int64_t usec)
{
	int64_t full = usec * (100 + world.set->margins[s->partition->gpu]);

	return full > 0 && one_in(5) ? 1 + below(full) : full;
}

static void add_job(size_t i, int64_t release, int64_t ready)
{
	const struct task *task = &world.set->tasks[i];
	struct server *s = &world.servers[task->partition];
	int64_t host = s->partition->host * TICKS, before = one_in(2) ? host : below(host + 1);
	bool dispatcher = s->partition->dispatcher;

	if (s->n_jobs < JOBS_MAX)
		s->jobs[s->n_jobs++] = (struct job){
			.task = i,
			.release = release,
			.arrives = dispatcher ? ready : ready + before,
			.deadline = release + task->deadline * TICKS,
			.execution = shorter(s, task->part / s->partition->cus + task->fixed),
			.in = shorter(s, task->copy_in),
			.out = shorter(s, task->copy_out),
			.before = before,
			.after = host - before,
			.tie = below(1000),
		};
}

/* The jobs of one task: they meet at the time 0, or one of them is ready just before. */
static void add_jobs(size_t i, bool history)
{
	const struct task *task = &world.set->tasks[i];
	int64_t period = task->period * TICKS, jitter = task->jitter * TICKS;
	int64_t first = one_in(3) ? -1 : one_in(4) ? below(period) : 0;
	int64_t release = first - (one_in(4) ? below(jitter + 1) : jitter);
	bool dense = !one_in(4);

	add_job(i, release, first);
	for (int64_t k = 1; history && k <= 3; k++) {
		int64_t before = release - k * period - (dense ? 0 : below(period));

		add_job(i, before, before + below(jitter + 1));
		if (!dense)
			break;
	}
	while (release + period < world.horizon) {
		release += period + (dense ? 0 : below(period / 2 + 1));
		add_job(i, release, release + (dense ? 0 : below(jitter + 1)));
	}
}

/* The jobs of a task with an offset, from the given time of the clock on. */
static void add_periodic_jobs(size_t i, int64_t clock, bool history)
{
	const struct task *task = &world.set->tasks[i];
	int64_t period = task->period * TICKS, jitter = task->jitter * TICKS;
	int64_t release = clock + task->offset * TICKS, least = history ? -4 * period : -jitter - 1;

	release -= (release - least) / period * period;
	for (; release < world.horizon; release += period) {
		int64_t latest = release + jitter;
		int64_t meeting = release <= 0 && latest >= 0 && !one_in(4) ? 0 : release;

		if (release < least)
			continue;
		add_job(i, release, one_in(6) ? release + below(jitter + 1) : meeting);
	}
}

/* The time of the clock at which a job with an offset is ready as late as it can be at 0. */
static int64_t draw_clock(void)
{
	const struct task *task = &world.set->tasks[below((int64_t)world.set->n_tasks)];

	if (task->offset < 0)
		return -below(1000000 * TICKS);
	return -(task->offset + task->jitter + below(64) * task->period) * TICKS;
}

static void add_all_jobs(bool history)
{
	int64_t clock = draw_clock();

	for (size_t i = 0; i < world.set->n_tasks; i++) {
		const struct task *task = &world.set->tasks[i];
		bool before = history && !world.servers[task->partition].inactive;

		if (task->partition < world.first || task->partition > world.last ||
		    task->after >= 0)
			continue;
		if (task->offset >= 0)
			add_periodic_jobs(i, clock, before);
		else
			add_jobs(i, before && one_in(2));
	}
}

/* Whether a is served before b, both of which wait. */
static bool precedes(const struct server *s, const struct job *a, const struct job *b)
{
	const struct task *x = &world.set->tasks[a->task], *y = &world.set->tasks[b->task];

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

/* ---- a job ---------------------------------------------------------------------------------- */

/* When an idle server has a job. */
static int64_t next_arrival(const struct server *s)
{
	int64_t soonest = NEVER;

	for (size_t i = 0; i < s->n_jobs; i++)
		if (!s->jobs[i].done && s->jobs[i].arrives < soonest)
			soonest = s->jobs[i].arrives;
	return soonest < world.now ? world.now : soonest;
}

static void begin(struct server *s)
{
	bool dispatcher = s->partition->dispatcher;

	s->job = NULL;
	for (size_t i = 0; i < s->n_jobs; i++) {
		struct job *job = &s->jobs[i];

		if (!job->done && job->arrives <= world.now &&
		    (!s->job || precedes(s, job, s->job)))
			s->job = job;
	}
	s->stage = SUBMITTING;
	s->begun = world.now;
	s->until = world.now + (dispatcher ? s->job->before : 0);
	if (!s->inactive)
		return;
	/* The first job asks for the activation. */
	s->until += s->partition->activation * TICKS -
		    (one_in(4) ? below(s->partition->activation) : 0);
	s->inactive = false;
}

static void copy(struct server *s, enum stage stage, int64_t length)
{
	s->stage = stage;
	s->copy = length;
	s->until = length > 0 ? NEVER : world.now;
}

/* With fifo the host works while other jobs run. A dispatcher begins a job when it knows that the
 * one before it has ended. */
static void tell(struct server *s)
{
	struct job *job = s->job;
	int64_t notice = world.now + job->after;
	struct task *task = &world.set->tasks[job->task];

	job->done = true;
	if (notice - job->release > task->worst)
		task->worst = notice - job->release;
	if (s->partition->dispatcher && notice - s->begun > task->longest)
		task->longest = notice - s->begun;
	for (size_t i = 0; i < world.set->n_tasks; i++) {
		int64_t jitter = world.set->tasks[i].jitter * TICKS;

		if (world.set->tasks[i].after == (int)job->task)
			add_job(i, job->release, notice + (one_in(2) ? jitter : below(jitter + 1)));
	}
	s->stage = TELLING;
	s->until = s->partition->dispatcher ? notice : world.now;
}

static void go_on(struct server *s)
{
	switch (s->stage) {
	case IDLE: begin(s); break;
	case SUBMITTING: copy(s, COPYING_IN, s->job->in); break;
	case COPYING_IN:
		s->stage = RUNNING;
		s->until = run(s->partition->gpu, world.now, s->job->execution);
		break;
	case RUNNING: copy(s, COPYING_OUT, s->job->out); break;
	case COPYING_OUT: tell(s); break;
	case TELLING: s->stage = IDLE; break;
	}
}

/* ---- copies --------------------------------------------------------------------------------- */

static void end_copy(struct engine *engine)
{
	struct server *s = engine->server;

	engine->server = NULL;
	if (s->copy == 0)
		s->until = world.now;
}

/* Any copy that waits, mostly not that of the victim. */
static void begin_copy(size_t gpu)
{
	struct engine *engine = &world.engines[gpu];
	int64_t part;

	for (size_t i = world.first; i <= world.last; i++) {
		struct server *s = &world.servers[i];

		if (s->partition->gpu != gpu || s->until != NEVER || s->stage == IDLE)
			continue;
		if (!engine->server || i != world.victim || one_in(8))
			engine->server = s;
	}
	if (!engine->server)
		return;
	part = engine->server->copy;
	if (world.slices && part > 1)
		part = 1 + below(part);
	engine->server->copy -= part;
	engine->until = run(gpu, world.now, part);
}

/* ---- the world ------------------------------------------------------------------------------ */

/* The next event of a server; NULL with the next event of an engine, or with NEVER. Servers are first. */
static struct server *next_server(int64_t *ret_time)
{
	struct server *best = NULL;

	*ret_time = NEVER;
	for (size_t i = world.first; i <= world.last; i++) {
		struct server *s = &world.servers[i];
		int64_t time = s->stage == IDLE ? next_arrival(s) : s->until;

		if (time < *ret_time) {
			*ret_time = time;
			best = s;
		}
	}
	for (size_t i = 0; i < GPUS_MAX; i++)
		if (world.engines[i].server && world.engines[i].until < *ret_time) {
			*ret_time = world.engines[i].until;
			best = NULL;
		}
	return best;
}

static void step(struct server *s)
{
	if (s)
		go_on(s);
	for (size_t i = 0; !s && i < GPUS_MAX; i++)
		if (world.engines[i].server && world.engines[i].until == world.now)
			end_copy(&world.engines[i]);
}

void serve(struct set *set, size_t first, size_t last, bool history, const struct stills *stills,
	   int64_t horizon)
{
	struct server *s;
	int64_t time;

	world.set = set;
	world.stills = stills;
	world.first = first;
	world.last = last;
	world.victim = first + (size_t)below((int64_t)(last - first + 1));
	world.slices = one_in(2);
	world.now = INT64_MIN;
	world.horizon = horizon;
	for (size_t i = first; i <= last; i++) {
		const struct partition *p = &set->partitions[i];

		s = &world.servers[i];
		s->partition = p;
		s->inactive = p->activation >= 0 && !p->waits_for_grant;
		s->n_jobs = 0;
		s->stage = IDLE;
	}
	add_all_jobs(history);
	for (;;) {
		s = next_server(&time);
		/* What is ready at one time asks for the engine before the engine chooses. */
		for (size_t i = 0; time > world.now && i < GPUS_MAX; i++)
			if (!world.engines[i].server)
				begin_copy(i);
		s = next_server(&time);
		if (time == NEVER)
			return;
		world.now = time;
		step(s);
	}
}
