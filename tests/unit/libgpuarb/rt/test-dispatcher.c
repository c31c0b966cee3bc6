/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libgpuarb-rt with a stream of the test, which is done when it is asked. */

#include <errno.h>
#include <semaphore.h>
#include <stdarg.h>

#include <systemd/sd-journal.h>

#include "check.h"
#include "lack.h"
#include "libgpuarb/rt/job-queue.h"

static hipError_t stream_ends = hipSuccess;
static char journal[2048];
static unsigned entries;

hipError_t hipSetDevice(int device)
{
	return device == 3 ? hipSuccess : hipErrorInvalidDevice;
}

hipError_t hipStreamSynchronize(hipStream_t)
{
	return stream_ends;
}

int sd_journal_send_with_location(const char *, const char *, const char *, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	/* The formats of the library: its arguments follow each in their order. */
	for (const char *f = format; f; f = va_arg(args, const char *)) {
		size_t n = strlen(journal);

		for (; *f; f++) {
			if (*f != '%')
				n += (size_t)snprintf(journal + n, sizeof(journal) - n, "%c", *f);
			else if (*++f == 's')
				n += (size_t)snprintf(journal + n, sizeof(journal) - n, "%s",
						      va_arg(args, const char *));
			else
				n += (size_t)snprintf(journal + n, sizeof(journal) - n, "%llu",
						      va_arg(args, unsigned long long)),
					f += 2;
		}
		snprintf(journal + n, sizeof(journal) - n, "\n");
	}
	va_end(args);
	entries++;
	return 0;
}

/* ---- order, without a thread --------------------------------------------------------------- */

static struct gpuarb_rt_task task_of(uint64_t period, uint64_t deadline, uint64_t budget)
{
	return (struct gpuarb_rt_task){ .period = period, .deadline = deadline, .budget = budget };
}

/* Adds jobs that are released one after the other, and writes the letters of the order in which they
 * run. */
static void order_of(uint32_t policy, const char *letters, struct gpuarb_rt_task *tasks, char *ret)
{
	struct job jobs[16], *job;
	struct job_queue queue = { .policy = policy };
	uint64_t when;
	size_t n = 0;

	for (; letters[n]; n++) {
		jobs[n] = (struct job){ .task = &tasks[letters[n] - 'a'], .release = 10 * n };
		job_queue_add(&queue, &jobs[n]);
	}
	CHECK(queue.n == n);
	for (n = 0; (job = job_queue_take(&queue, 1000, &when)); n++)
		ret[n] = (char)('a' + (job->task - tasks));
	ret[n] = '\0';
	CHECK(queue.n == 0 && when == UINT64_MAX);
}

TEST(each_policy_has_its_order)
{
	struct gpuarb_rt_task tasks[] = { task_of(900, 500, 0), task_of(900, 100, 0),
					  task_of(900, 85, 0) };
	char order[17];

	order_of(GPUARB_RT_FIFO, "abcab", tasks, order);
	CHECK(strcmp(order, "abcab") == 0);
	/* Deadlines: a 500, b 110, c 105, a 530, b 140. */
	order_of(GPUARB_RT_NP_EDF, "abcab", tasks, order);
	CHECK(strcmp(order, "cbbaa") == 0);
	/* b 100, c 95 + 60: the earlier release goes first. */
	order_of(GPUARB_RT_NP_EDF, "baaaaac", tasks, order);
	CHECK(strcmp(order, "bcaaaaa") == 0);
	order_of(GPUARB_RT_NP_DM, "baaaaac", tasks, order);
	CHECK(strcmp(order, "cbaaaaa") == 0);
}

TEST(a_task_that_overruns_its_budget_waits_for_as_many_periods)
{
	struct gpuarb_rt_task greedy = task_of(100, 100, 20), modest = task_of(100, 100, 0);
	struct job_queue queue = { .policy = GPUARB_RT_FIFO };
	struct job first = { .task = &greedy, .release = 990 },
		   second = { .task = &greedy, .release = 990 }, other = { .task = &modest };
	uint64_t when;

	greedy.statistics.waiting = 3;
	job_queue_add(&queue, &first);
	job_queue_add(&queue, &second);
	job_queue_add(&queue, &other);
	CHECK(job_queue_take(&queue, 1000, &when) == &first);
	job_count(&first, 1000, 1050); /* two budgets and a half */
	CHECK(greedy.statistics.overruns == 1 && greedy.statistics.longest_execution_usec == 50);
	CHECK(job_queue_take(&queue, 1050, &when) == &other);
	CHECK(!job_queue_take(&queue, 1289, &when) && when == 1290);
	CHECK(job_queue_take(&queue, 1290, &when) == &second);
	job_count(&second, 1380, 1400); /* late, but within its budget: one period from 1290 on */
	CHECK(greedy.statistics.overruns == 1);
	first.release = 1400;
	job_queue_add(&queue, &first);
	CHECK(job_queue_take(&queue, 1400, &when) == &first);
}

/* When jobs begin that are submitted at once, one after the other, with this execution. */
static void begins_of(uint64_t execution, uint64_t ret[static 4])
{
	struct gpuarb_rt_task task = task_of(10000, 10000, 2000);
	struct job_queue queue = { .policy = GPUARB_RT_FIFO };
	struct job jobs[4];
	uint64_t now = 50000, when;

	task.statistics.waiting = 4;
	for (size_t i = 0; i < 4; i++) {
		jobs[i] = (struct job){ .task = &task, .release = 50000 };
		job_queue_add(&queue, &jobs[i]);
	}
	for (size_t i = 0; i < 4; now += execution) {
		struct job *job = job_queue_take(&queue, now, &when);

		if (!job) {
			CHECK(when > now && when < UINT64_MAX);
			job = job_queue_take(&queue, now = when, &when);
		}
		CHECK(job == &jobs[i]);
		ret[i++] = now - 50000;
		job_count(job, now, now + execution);
	}
}

TEST(budgets_pay_for_each_job_in_whole_periods)
{
	uint64_t at[4];

	begins_of(3000, at);
	CHECK(at[0] == 0 && at[1] == 20000 && at[2] == 40000 && at[3] == 60000);
	begins_of(1900, at);
	CHECK(at[0] == 0 && at[1] == 10000 && at[2] == 20000 && at[3] == 30000);
	begins_of(2000, at);
	CHECK(at[1] == 10000 && at[3] == 30000);
}

/* 100 ms of execution, and 2 of the 4 ms of standstill that rt plan counts in the budget. */
TEST(standstill_within_the_budget_of_the_plan_delays_no_later_job)
{
	struct gpuarb_rt_task task = task_of(500000, 400000, 104000);
	struct job_queue queue = { .policy = GPUARB_RT_NP_EDF };
	uint64_t when;

	task.statistics.waiting = 2;
	for (uint64_t i = 0; i < 2; i++) {
		struct job job = { .task = &task, .release = 1000 + 500000 * i };

		job_queue_add(&queue, &job);
		CHECK(job_queue_take(&queue, job.release, &when) == &job);
		job_count(&job, job.release, job.release + 102000);
	}
	CHECK(task.statistics.overruns == 0 && task.statistics.misses == 0);
}

TEST(a_job_that_waits_for_budget_has_a_later_deadline)
{
	struct gpuarb_rt_task greedy = task_of(100, 100, 20), modest = task_of(100, 90, 20);
	struct job_queue queue = { .policy = GPUARB_RT_NP_EDF };
	struct job first = { .task = &greedy, .release = 1000 },
		   second = { .task = &greedy, .release = 1000 },
		   other = { .task = &modest, .release = 1100 };
	uint64_t when;

	greedy.statistics.waiting = 2;
	job_queue_add(&queue, &first);
	job_queue_add(&queue, &second);
	CHECK(job_queue_take(&queue, 1000, &when) == &first);
	job_count(&first, 1000, 1010);
	job_queue_add(&queue, &other);
	CHECK(job_queue_take(&queue, 1100, &when) == &other); /* 1190, and the second 1200 */
	CHECK(job_queue_take(&queue, 1100, &when) == &second);
}

TEST(misses_and_violations_are_counted_from_the_release)
{
	struct gpuarb_rt_task task = task_of(100, 80, 0);
	struct job job = { .task = &task, .release = 10 };

	task.bound = 70;
	task.statistics.waiting = 3;
	job_count(&job, 20, 80);
	CHECK(task.statistics.misses == 0 && task.statistics.violations == 0);
	job_count(&job, 20, 81);
	CHECK(task.statistics.misses == 0 && task.statistics.violations == 1);
	job_count(&job, 20, 91);
	CHECK(task.statistics.misses == 1 && task.statistics.violations == 2);
	CHECK(task.statistics.jobs == 3 && task.statistics.waiting == 0);
	CHECK(task.statistics.longest_response_usec == 81);
}

/* ---- with the thread ----------------------------------------------------------------------- */

static struct gpuarb_rt *new_rt(uint32_t policy)
{
	struct gpuarb_rt_options options = GPUARB_RT_OPTIONS_INIT;
	struct gpuarb_rt *rt = NULL;

	options.policy = policy;
	options.device = 3;
	options.plan = "taskset.ini";
	CHECK(gpuarb_rt_new(NULL, &options, &rt) == 0);
	return rt;
}

static struct gpuarb_rt_task *add(struct gpuarb_rt *rt, const char *name, uint64_t deadline,
				  uint64_t bound)
{
	struct gpuarb_rt_task_options options = GPUARB_RT_TASK_OPTIONS_INIT;
	struct gpuarb_rt_task *task = NULL;

	options.name = name;
	options.period_usec = UINT64_C(3600) * 1000000;
	options.deadline_usec = deadline;
	options.bound_usec = bound;
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == 0);
	return task;
}

static struct gpuarb_rt_statistics read_task(struct gpuarb_rt_task *task)
{
	struct gpuarb_rt_statistics ret;

	CHECK(gpuarb_rt_read(task, &ret, sizeof(ret)) == 0);
	return ret;
}

static int do_nothing(hipStream_t, void *)
{
	return 0;
}

static int fail(hipStream_t, void *)
{
	return -ENODEV;
}

struct gate {
	sem_t begun, opened;
};

static int hold(hipStream_t, void *userdata)
{
	struct gate *gate = userdata;

	CHECK(sem_post(&gate->begun) == 0 && sem_wait(&gate->opened) == 0);
	return 0;
}

/* A job that runs until the gate is opened. */
static void hold_by(struct gpuarb_rt_task *task, struct gate *gate)
{
	CHECK(gpuarb_rt_submit(task, 0, hold, gate) == 0 && sem_wait(&gate->begun) == 0);
}

TEST(waiting_jobs_are_limited_and_dropped_at_the_end)
{
	struct gpuarb_rt *rt = new_rt(GPUARB_RT_NP_EDF);
	struct gpuarb_rt_task *task = add(rt, "t", 0, 0);
	struct gate gate;
	unsigned n = 0;

	CHECK(sem_init(&gate.begun, 0, 0) == 0 && sem_init(&gate.opened, 0, 0) == 0);
	hold_by(task, &gate);
	while (gpuarb_rt_submit(task, 0, do_nothing, NULL) == 0)
		n++;
	CHECK(n == GPUARB_RT_JOBS_MAX);
	CHECK(gpuarb_rt_submit(task, 0, do_nothing, NULL) == -ENOBUFS);
	CHECK(sem_post(&gate.opened) == 0 && gpuarb_rt_wait(task) == 0);
	CHECK(read_task(task).jobs == n + 1 && read_task(task).waiting == 0);
	hold_by(task, &gate);
	CHECK(gpuarb_rt_submit(task, 0, do_nothing, NULL) == 0);
	CHECK(sem_post(&gate.opened) == 0);
	CHECK(!gpuarb_rt_free(rt) && !gpuarb_rt_free(NULL));
	sem_destroy(&gate.begun);
	sem_destroy(&gate.opened);
}

TEST(the_first_response_above_the_bound_of_the_plan_is_a_journal_event)
{
	struct gpuarb_rt *rt = new_rt(GPUARB_RT_NP_DM);
	struct gpuarb_rt_task *late = add(rt, "warp", 0, 1), *fine = add(rt, "blend", 0, 0);

	gpuarb_rt_set_disturbed(rt, 4);
	for (unsigned i = 0; i < 2; i++) /* released when the machine was started */
		CHECK(gpuarb_rt_submit(late, 1, do_nothing, NULL) == 0);
	CHECK(gpuarb_rt_wait(late) == 0);
	gpuarb_rt_set_disturbed(rt, 0);
	CHECK(gpuarb_rt_submit(fine, 0, fail, NULL) == 0 && gpuarb_rt_wait(fine) == 0);
	CHECK(read_task(late).violations == 2 && read_task(fine).failures == 1 && entries == 1);
	CHECK(read_task(late).disturbed == 2 && read_task(fine).disturbed == 0);
	CHECK(strstr(journal, "\nGPUARB_DISTURBED_CUS=4"));
	CHECK(strstr(journal, "\nGPUARB_PLAN=taskset.ini\nGPUARB_TASK=warp\n"));
	CHECK(strstr(journal, "\nGPUARB_BOUND_USEC=1\nGPUARB_OBSERVED_USEC="));
	gpuarb_rt_free(rt);
}

TEST(no_job_runs_after_a_failure_of_hip)
{
	struct gpuarb_rt_options elsewhere = GPUARB_RT_OPTIONS_INIT;
	struct gpuarb_rt *rt = new_rt(GPUARB_RT_FIFO);
	struct gpuarb_rt_task *task = add(rt, "t", 0, 0);

	stream_ends = hipErrorLaunchFailure;
	CHECK(gpuarb_rt_submit(task, 0, do_nothing, NULL) == 0);
	CHECK(gpuarb_rt_submit(task, 0, do_nothing, NULL) != -EINVAL);
	CHECK(gpuarb_rt_wait(task) == -EIO);
	CHECK(gpuarb_rt_submit(task, 0, do_nothing, NULL) == -EIO && read_task(task).jobs == 1);
	gpuarb_rt_free(rt);
	stream_ends = hipSuccess;

	CHECK(gpuarb_rt_new(NULL, &elsewhere, &rt) == 0); /* the thread finds that out */
	task = add(rt, "t", 0, 0);
	(void)gpuarb_rt_submit(task, 0, do_nothing, NULL);
	while (gpuarb_rt_submit(task, 0, do_nothing, NULL) == 0)
		continue;
	CHECK(gpuarb_rt_wait(task) == -EIO);
	gpuarb_rt_free(rt);
}

TEST(invalid_arguments_are_refused)
{
	struct gpuarb_rt_task_options options = GPUARB_RT_TASK_OPTIONS_INIT;
	struct gpuarb_rt_options policy = GPUARB_RT_OPTIONS_INIT;
	struct gpuarb_rt_statistics statistics;
	struct gpuarb_rt *rt = NULL;
	struct gpuarb_rt_task *task = NULL;

	policy.policy = GPUARB_RT_NP_DM + 1;
	CHECK(gpuarb_rt_new(NULL, &policy, &rt) == -EINVAL && !rt);
	CHECK(gpuarb_rt_new(NULL, NULL, &rt) == -EINVAL);
	rt = new_rt(GPUARB_RT_FIFO);
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == -EINVAL); /* no period */
	options.period_usec = 100;
	options.deadline_usec = 101;
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == -EINVAL);
	options.deadline_usec = 80;
	options.budget_usec = 81;
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == -EINVAL && !task);
	options.budget_usec = 80;
	options.period_usec = GPUARB_RT_USEC_MAX + 1;
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == -EINVAL && !task);
	options.period_usec = GPUARB_RT_USEC_MAX;
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == 0);
	CHECK(gpuarb_rt_submit(task, 0, NULL, NULL) == -EINVAL);
	CHECK(gpuarb_rt_submit(task, UINT64_MAX, do_nothing, NULL) == -EINVAL);
	CHECK(gpuarb_rt_submit(task, 2, do_nothing, NULL) == 0);
	CHECK(gpuarb_rt_submit(task, 1, do_nothing, NULL) == -EINVAL); /* before the one before */
	CHECK(gpuarb_rt_submit(NULL, 0, do_nothing, NULL) == -EINVAL &&
	      gpuarb_rt_wait(NULL) == -EINVAL);
	CHECK(gpuarb_rt_read(task, &statistics, sizeof(statistics) + 1) == -EINVAL);
	for (unsigned i = 1; i < GPUARB_RT_TASKS_MAX; i++)
		CHECK(gpuarb_rt_add_task(rt, &options, &task) == 0);
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == -ENOSPC);
	gpuarb_rt_free(rt);
}

/* Without memory for its stack, pthread_create() returns EAGAIN. */
static int dispatch(long allocations)
{
	struct gpuarb_rt_options options = { .size = sizeof(options), .device = 3 };
	struct gpuarb_rt_task_options each = { .size = sizeof(each), .period_usec = 100 };
	struct gpuarb_rt_statistics statistics = { 0 };
	struct gpuarb_rt_task *task = NULL;
	struct gpuarb_rt *rt = NULL;
	int r;

	lack_left = allocations;
	r = gpuarb_rt_new(NULL, &options, &rt);
	CHECK((r == 0) == (rt != NULL));
	if (r == 0)
		r = gpuarb_rt_add_task(rt, &each, &task);
	CHECK((r == 0) == (task != NULL));
	if (r == 0)
		r = gpuarb_rt_submit(task, 0, do_nothing, NULL);
	if (task)
		CHECK(gpuarb_rt_wait(task) == 0 &&
		      gpuarb_rt_read(task, &statistics, sizeof(statistics)) == 0 &&
		      statistics.waiting == 0 && statistics.jobs == (r == 0));
	gpuarb_rt_free(rt);
	return r == -EAGAIN ? -ENOMEM : r;
}

TEST(a_job_that_cannot_be_remembered_does_not_run)
{
	CHECK(lack_each("dispatch", dispatch) >= 3);
}
