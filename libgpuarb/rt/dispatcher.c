/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The thread that runs jobs on a stream, and the functions of the program. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-journal.h>

#include "libgpuarb/rt/job-queue.h"

#define GPUARB_EXPORT __attribute__((visibility("default")))
#define EVENT_VIOLATED "5d4a8f0f6f6a4b0e8f6a0f4f6b3d9c21"

struct gpuarb_rt {
	hipStream_t stream;
	int device;
	char plan[256];
	pthread_t thread;

	pthread_mutex_t lock; /* for all that follows, and for the tasks */
	pthread_cond_t submitted, done;
	struct job_queue queue;
	struct gpuarb_rt_task *tasks;
	size_t n_tasks;
	unsigned disturbed; /* CUs of the lease */
	bool stops;
	int error; /* of HIP */
};

static uint64_t now_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- the thread --------------------------------------------------------------------------- */

static void wait_until(struct gpuarb_rt *rt, uint64_t when)
{
	struct timespec t = { .tv_sec = (time_t)(when / 1000000),
			      .tv_nsec = (long)(when % 1000000 * 1000) };

	if (when == UINT64_MAX)
		pthread_cond_wait(&rt->submitted, &rt->lock);
	else
		pthread_cond_timedwait(&rt->submitted, &rt->lock, &t);
}

/* Waits for a job that may run. NULL: the thread ends. */
static struct job *await_job(struct gpuarb_rt *rt)
{
	struct job *job = NULL;
	uint64_t when;

	while (!rt->stops && rt->error == 0) {
		job = job_queue_take(&rt->queue, now_usec(), &when);
		if (job)
			break;
		wait_until(rt, when);
	}
	return job;
}

/* The first response of a task that is longer than its bound. */
static void report(const struct gpuarb_rt *rt, const struct gpuarb_rt_task *task)
{
	unsigned long long observed = task->statistics.last_response_usec, bound = task->bound;
	char disturbed[40] = "";

	if (rt->disturbed > 0)
		snprintf(disturbed, sizeof(disturbed), "GPUARB_DISTURBED_CUS=%u", rt->disturbed);
	sd_journal_send(
		"MESSAGE_ID=" EVENT_VIOLATED, "PRIORITY=3",
		"MESSAGE=plan %s: a job of task %s took %llu us, and its bound is %llu us: an "
		"assumption of the plan does not hold, or its execution time is too short",
		rt->plan, task->name, observed, bound, "GPUARB_PLAN=%s", rt->plan, "GPUARB_TASK=%s",
		task->name, "GPUARB_BOUND_USEC=%llu", bound, "GPUARB_OBSERVED_USEC=%llu", observed,
		*disturbed ? disturbed : NULL, NULL);
}

/* Runs the job without the lock. */
static void run_job(struct gpuarb_rt *rt, struct job *job)
{
	struct gpuarb_rt_task *task = job->task;
	uint64_t begin, before;
	bool disturbed = rt->disturbed > 0;
	int r, error = 0;

	pthread_mutex_unlock(&rt->lock);
	begin = now_usec();
	r = job->function(rt->stream, job->userdata);
	if (hipStreamSynchronize(rt->stream) != hipSuccess)
		error = -EIO;
	pthread_mutex_lock(&rt->lock);
	before = task->statistics.violations;
	task->statistics.failures += r < 0;
	task->statistics.disturbed += disturbed || rt->disturbed > 0;
	job_count(job, begin, now_usec());
	if (before == 0 && task->statistics.violations > 0)
		report(rt, task);
	rt->error = error;
}

static void *run(void *userdata)
{
	struct gpuarb_rt *rt = userdata;
	struct job *job;

	pthread_mutex_lock(&rt->lock);
	if (hipSetDevice(rt->device) != hipSuccess)
		rt->error = -EIO;
	while ((job = await_job(rt))) {
		run_job(rt, job);
		free(job);
		pthread_cond_broadcast(&rt->done);
	}
	pthread_cond_broadcast(&rt->done);
	pthread_mutex_unlock(&rt->lock);
	return NULL;
}

/* The thread blocks all signals: they are for the program. */
static int start(struct gpuarb_rt *rt)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&rt->thread, NULL, run, rt);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

/* ---- called by the program ---------------------------------------------------------------- */

static void dispose(struct gpuarb_rt *rt)
{
	struct gpuarb_rt_task *task;
	struct job *job;

	while ((job = rt->queue.first)) {
		rt->queue.first = job->next;
		free(job);
	}
	while ((task = rt->tasks)) {
		rt->tasks = task->next;
		free(task);
	}
	pthread_cond_destroy(&rt->submitted);
	pthread_cond_destroy(&rt->done);
	pthread_mutex_destroy(&rt->lock);
	free(rt);
}

GPUARB_EXPORT int gpuarb_rt_new(hipStream_t stream, const struct gpuarb_rt_options *options,
				struct gpuarb_rt **ret)
{
	pthread_condattr_t monotonic;
	struct gpuarb_rt *rt;
	int r;

	if (!options || !ret || options->size < sizeof(*options) ||
	    options->policy > GPUARB_RT_NP_DM)
		return -EINVAL;
	rt = calloc(1, sizeof(*rt));
	if (!rt)
		return -ENOMEM;
	rt->stream = stream;
	rt->device = options->device;
	rt->queue.policy = options->policy;
	snprintf(rt->plan, sizeof(rt->plan), "%s", options->plan ? options->plan : "");
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&rt->submitted, &monotonic);
	pthread_cond_init(&rt->done, NULL);
	pthread_mutex_init(&rt->lock, NULL);
	pthread_condattr_destroy(&monotonic);
	r = start(rt);
	if (r < 0) {
		dispose(rt);
		return r;
	}
	*ret = rt;
	return 0;
}

GPUARB_EXPORT struct gpuarb_rt *gpuarb_rt_free(struct gpuarb_rt *rt)
{
	if (!rt)
		return NULL;

	pthread_mutex_lock(&rt->lock);
	rt->stops = true;
	pthread_cond_signal(&rt->submitted);
	pthread_mutex_unlock(&rt->lock);
	pthread_join(rt->thread, NULL);
	dispose(rt);
	return NULL;
}

static bool is_valid(const struct gpuarb_rt_task_options *options)
{
	uint64_t deadline;

	if (!options || options->size < sizeof(*options) || options->period_usec == 0 ||
	    options->period_usec > GPUARB_RT_USEC_MAX)
		return false;
	deadline = options->deadline_usec > 0 ? options->deadline_usec : options->period_usec;
	return deadline <= options->period_usec && options->budget_usec <= deadline;
}

GPUARB_EXPORT int gpuarb_rt_add_task(struct gpuarb_rt *rt,
				     const struct gpuarb_rt_task_options *options,
				     struct gpuarb_rt_task **ret)
{
	struct gpuarb_rt_task *task;
	int r = 0;

	if (!rt || !ret || !is_valid(options))
		return -EINVAL;
	task = calloc(1, sizeof(*task));
	if (!task)
		return -ENOMEM;
	task->rt = rt;
	task->period = options->period_usec;
	task->deadline = options->deadline_usec > 0 ? options->deadline_usec : options->period_usec;
	task->budget = options->budget_usec;
	task->bound = options->bound_usec;
	snprintf(task->name, sizeof(task->name), "%s", options->name ? options->name : "");
	pthread_mutex_lock(&rt->lock);
	if (rt->n_tasks == GPUARB_RT_TASKS_MAX) {
		r = -ENOSPC;
	} else {
		task->next = rt->tasks;
		rt->tasks = task;
		rt->n_tasks++;
		*ret = task;
	}
	pthread_mutex_unlock(&rt->lock);
	if (r < 0)
		free(task);
	return r;
}

GPUARB_EXPORT int gpuarb_rt_submit(struct gpuarb_rt_task *task, uint64_t release_usec,
				   gpuarb_rt_function function, void *userdata)
{
	struct gpuarb_rt *rt;
	struct job *job;
	uint64_t now;
	int r = 0;

	if (!task || !function)
		return -EINVAL;
	rt = task->rt;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->task = task;
	job->function = function;
	job->userdata = userdata;
	pthread_mutex_lock(&rt->lock);
	now = now_usec();
	job->release = release_usec > 0 ? release_usec : now;
	if (job->release > now || job->release < task->released) {
		r = -EINVAL;
	} else if (rt->error < 0) {
		r = rt->error;
	} else if (rt->queue.n == GPUARB_RT_JOBS_MAX) {
		r = -ENOBUFS;
	} else {
		job_queue_add(&rt->queue, job);
		task->released = job->release;
		task->statistics.waiting++;
		pthread_cond_signal(&rt->submitted);
	}
	pthread_mutex_unlock(&rt->lock);
	if (r < 0)
		free(job);
	return r;
}

GPUARB_EXPORT void gpuarb_rt_set_disturbed(struct gpuarb_rt *rt, unsigned cus)
{
	if (!rt)
		return;
	pthread_mutex_lock(&rt->lock);
	rt->disturbed = cus;
	pthread_mutex_unlock(&rt->lock);
}

GPUARB_EXPORT int gpuarb_rt_wait(struct gpuarb_rt_task *task)
{
	struct gpuarb_rt *rt;
	int r;

	if (!task)
		return -EINVAL;
	rt = task->rt;
	pthread_mutex_lock(&rt->lock);
	while (task->statistics.waiting > 0 && rt->error == 0)
		pthread_cond_wait(&rt->done, &rt->lock);
	r = rt->error;
	pthread_mutex_unlock(&rt->lock);
	return r;
}

GPUARB_EXPORT int gpuarb_rt_read(struct gpuarb_rt_task *task, struct gpuarb_rt_statistics *ret,
				 size_t size)
{
	if (!task || !ret || size > sizeof(*ret))
		return -EINVAL;
	pthread_mutex_lock(&task->rt->lock);
	memcpy(ret, &task->statistics, size);
	pthread_mutex_unlock(&task->rt->lock);
	return 0;
}
