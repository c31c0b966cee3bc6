/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libgpuarb-rt: runs jobs with deadlines on one HIP stream, in the order that `gpuarbctl rt plan`
 * assumes for the policy of a partition.
 *
 *	struct gpuarb_rt_options options = GPUARB_RT_OPTIONS_INIT;
 *	struct gpuarb_rt_task_options warp = GPUARB_RT_TASK_OPTIONS_INIT;
 *
 *	r = gpuarb_hip_stream_create(lease, 0, &stream);
 *	options.policy = GPUARB_RT_NP_EDF;
 *	options.device = device;
 *	if (r >= 0)
 *		r = gpuarb_rt_new(stream, &options, &rt);
 *	warp.name = "warp";
 *	warp.period_usec = 11111;
 *	warp.deadline_usec = 9000;
 *	warp.budget_usec = 4774;	(budget_usec and bound_usec of the plan)
 *	warp.bound_usec = 8076;
 *	if (r >= 0)
 *		r = gpuarb_rt_add_task(rt, &warp, &task);
 *	...
 *	r = gpuarb_rt_submit(task, launch, frame);
 *
 * A thread of the library runs one job at a time: it calls the function of the job, which launches
 * work on the stream, and waits until the stream has done it. Then it chooses the next of the
 * waiting jobs. A job that runs is never preempted. Jobs of one task run in the order of
 * submission.
 *
 * Times are those of CLOCK_MONOTONIC of the host, in microseconds: a response lasts from
 * gpuarb_rt_submit() until the thread knows that the stream is done, an execution from the call of
 * the job's function on. What other programs of the host delay counts in both.
 *
 * Budget: a GPU does not preempt a kernel that takes too long. Instead a job that has executed for k
 * budgets, rounded up, counts for k periods from its release: the next job of its task waits until
 * then, and has its release and deadline from then on for the order of jobs. A task that overruns or
 * submits too often delays its own later jobs, and no other task by more than one overrun. A task with
 * a budget so has one job in a period, as in the plan. Its jobs stay that late until the program leaves
 * as many out.
 *
 * Use budget_usec of `gpuarbctl rt plan --json` as the budget, not the execution time (wcet): executions also
 * have the copies, the margin, host-submission and the standstill that the plan allows for a job. Where
 * nothing stands still, a task can execute that much longer before it overruns.
 *
 * Monitor: the first job of a task that takes longer than the bound of the plan writes an event to
 * the journal, with the MESSAGE_ID 5d4a8f0f6f6a4b0e8f6a0f4f6b3d9c21 and the fields GPUARB_PLAN,
 * GPUARB_TASK, GPUARB_BOUND_USEC and GPUARB_OBSERVED_USEC; GPUARB_DISTURBED_CUS if the program has said that CUs of
 * its lease are disturbed.
 *
 * Only one thread of the library uses the stream: launch nothing on it elsewhere while there are
 * jobs. Functions return 0 or a negative errno, can be called by any thread, and by the function of
 * a job except for gpuarb_rt_wait() and gpuarb_rt_free().
 */

#include <stddef.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpuarb_rt;
struct gpuarb_rt_task;

enum gpuarb_rt_policy {
	GPUARB_RT_FIFO = 0,   /* in the order of submission */
	GPUARB_RT_NP_EDF = 1, /* the job with the earliest deadline */
	GPUARB_RT_NP_DM = 2,  /* the job of the task with the shortest deadline */
};

struct gpuarb_rt_options {
	size_t size; /* of this structure: GPUARB_RT_OPTIONS_INIT sets it */
	uint32_t policy;
	int32_t device;   /* of HIP, to which the stream belongs */
	const char *plan; /* its name in the journal, as the file of the task set; copied */
};

#define GPUARB_RT_OPTIONS_INIT                                           \
	{                                                                \
		sizeof(struct gpuarb_rt_options), GPUARB_RT_FIFO, 0, "", \
	}

/* A job that waits, and the tasks of a stream: more are refused. */
#define GPUARB_RT_JOBS_MAX 1024
#define GPUARB_RT_TASKS_MAX 4096

/* The longest period: 1 h, as in the file of the task set. */
#define GPUARB_RT_USEC_MAX UINT64_C(3600000000)

struct gpuarb_rt_task_options {
	size_t size;            /* of this structure: GPUARB_RT_TASK_OPTIONS_INIT sets it */
	const char *name;       /* of the [task NAME] of the plan; copied */
	uint64_t period_usec;   /* 1 to GPUARB_RT_USEC_MAX */
	uint64_t deadline_usec; /* 0: the period; at most the period */
	uint64_t budget_usec;   /* of one job: budget_usec of the plan's JSON; 0: no limit */
	uint64_t bound_usec;    /* of its response: bound_usec of the plan's JSON; 0: none */
};

#define GPUARB_RT_TASK_OPTIONS_INIT                                    \
	{                                                              \
		sizeof(struct gpuarb_rt_task_options), "", 0, 0, 0, 0, \
	}

/* Since the task was added. Times are 0 while no job is done. */
struct gpuarb_rt_statistics {
	uint64_t jobs;       /* done */
	uint64_t waiting;    /* submitted, and not done */
	uint64_t misses;     /* done after their deadline */
	uint64_t overruns;   /* executed for longer than the budget */
	uint64_t violations; /* took longer than the bound of the plan */
	uint64_t failures;   /* their function returned an error */
	uint64_t last_response_usec, longest_response_usec;
	uint64_t last_execution_usec, longest_execution_usec;
	uint64_t disturbed; /* done, and begun or ended while CUs of the lease were disturbed */
};

/* Launches the work of a job. Returns 0, or a negative errno if it launched nothing. */
typedef int (*gpuarb_rt_function)(hipStream_t stream, void *userdata);

/* Starts the thread. The stream must outlive it. -EINVAL: an unknown policy; -ENOMEM; -EAGAIN. */
int gpuarb_rt_new(hipStream_t stream, const struct gpuarb_rt_options *options,
		  struct gpuarb_rt **ret);

/* Waits for the job that runs; the function of a job that waits is not called any more. NULL is
 * allowed. Returns NULL. */
struct gpuarb_rt *gpuarb_rt_free(struct gpuarb_rt *rt);

/* The task lives as long as rt. -EINVAL: no period or one above GPUARB_RT_USEC_MAX, a deadline
 * above the period, or a budget above the deadline; -ENOSPC: there are GPUARB_RT_TASKS_MAX tasks; -ENOMEM. */
int gpuarb_rt_add_task(struct gpuarb_rt *rt, const struct gpuarb_rt_task_options *options,
		       struct gpuarb_rt_task **ret);

/* Submits a job of the task. Its deadline and response count from release_usec, a time of
 * CLOCK_MONOTONIC that is not later than now, nor earlier than that of the job before; 0: from now. With
 * jitter, pass the release, not the later time at which the job is ready: the proof counts from it. A
 * job that follows another one (the key "after" of a plan) has the release of the first job of its
 * chain. -ENOBUFS: GPUARB_RT_JOBS_MAX jobs wait; -EIO: HIP failed before, see gpuarb_rt_wait();
 * -EINVAL; -ENOMEM. */
int gpuarb_rt_submit(struct gpuarb_rt_task *task, uint64_t release_usec,
		     gpuarb_rt_function function, void *userdata);

/* From now on so many CUs of the lease are disturbed, as gpuarb_lease_disturbed_cus() tells after each
 * gpuarb_lease_dispatch(); 0: none. Jobs are counted meanwhile, and a violation is told with it. */
void gpuarb_rt_set_disturbed(struct gpuarb_rt *rt, unsigned cus);

/* Waits until all jobs of the task are done. -EIO: hipStreamSynchronize() failed; no job runs any
 * more. */
int gpuarb_rt_wait(struct gpuarb_rt_task *task);

/* Fills up to `size` bytes: the size of the structure of the caller. */
int gpuarb_rt_read(struct gpuarb_rt_task *task, struct gpuarb_rt_statistics *ret, size_t size);

#ifdef __cplusplus
}
#endif
