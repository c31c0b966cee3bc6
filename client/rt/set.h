/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A task set, as its file describes it for `gpuarbctl rt plan`. Times are microseconds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"
#include "client/rt/bound.h"
#include "client/rt/margin.h"
#include "core/policy/class.h"
#include "util/diagnostics.h"

#define RT_TASKS_MAX 4096U
#define RT_PARTITIONS_MAX 64U
#define RT_POINTS_MAX 32U
#define RT_NAME_MAX 33U /* with the NUL: partitions become tenants, which have up to 42 */
#define RT_GPU_NAME_MAX 64U
#define RT_GPUS_MAX 16U
#define RT_TIME_MAX (UINT64_C(3600) * 1000000)
#define RT_UNSET UINT64_MAX

/* The longest measured execution time on a number of CUs. */
struct rt_point {
	unsigned cus;
	uint64_t usec;
};

struct rt_task {
	char name[RT_NAME_MAX];
	char partition_name[RT_NAME_MAX];
	size_t partition; /* index, once the set has been checked */
	uint64_t period, deadline, jitter, offset;
	uint64_t copy_in, copy_out; /* by SDMA, before and after the execution; 0: none */
	char after_name[RT_NAME_MAX];
	size_t after; /* index + 1 of the task whose job ends before; 0: none */
	struct rt_point points[RT_POINTS_MAX]; /* sorted by CUs, once the set has been checked */
	size_t n_points;
	/* Of the file; 0: the key is missing. */
	unsigned line, deadline_line, wcet_line, after_line, offset_line;
};

/* Which of the waiting jobs runs next. */
enum rt_policy { RT_FIFO, RT_NP_EDF, RT_NP_DM };
extern const char *const rt_policy_names[]; /* NULL after the last */

struct rt_partition {
	char name[RT_NAME_MAX];
	char gpu[RT_GPU_NAME_MAX]; /* in the set; "": the only one */
	enum rt_policy policy;
	bool dispatcher;            /* with fifo */
	unsigned dispatcher_stated; /* the line of the key; 0: it is missing */
	enum isolation isolation;
	bool start_inactive;
	bool waits_for_grant; /* the first job is released when the lease is granted */
	uint64_t activation;  /* RT_UNSET: computed from the configuration of the daemon */
	/* From release to queue, and from end to notification. RT_UNSET counts as 0. */
	uint64_t host_submission;
	unsigned queues;      /* 0: two per process */
	uint64_t sdma_queues; /* RT_UNSET: two per process, if its tasks copy */
	unsigned processes;
	unsigned priority;
	bool alone;
	char *user;    /* NULL: the user that runs rt plan */
	char *command; /* NULL: COMMAND */
	unsigned line;
	size_t n_tasks;
	/* Not of the file: queues of others that gpuarbd observes on pipes with a queue of the lease of
	 * this partition. RT_UNSET: not observed. */
	uint64_t pipe_neighbours;
};

/* Keys of gpuarbd.conf(5). */
struct rt_daemon {
	uint64_t activate_grace, activate_min_interval, enforce_delay;
};

/* How often something happens: a number within one response time, or rates. */
struct rt_often {
	uint64_t number; /* RT_UNSET: not stated, or rates */
	struct bound_rates rates;
};

struct rt_set {
	unsigned margin_percent; /* or MARGIN_MEASURED */
	uint64_t neighbours;     /* leases that run at the same time; RT_UNSET */
	enum neighbours neighbours_use;
	bool capped, masked, own_pipes, own_copies, independent_copies, no_graphics, borrowers, law;
	unsigned law_stated;           /* the line of the key; 0: it is missing */
	uint64_t preemption;           /* cost of one preemption of the GPU; RT_UNSET */
	struct rt_often queue_changes; /* of other programs */
	struct rt_often activations;   /* of other leases */
	uint64_t changed_queues;       /* by one change of masks; RT_UNSET: all queues of others */
	uint64_t preemption_timeout;   /* the kernel's; 0: no preemption ever times out; RT_UNSET */
	struct rt_daemon daemon;       /* settings of gpuarbd that the plan assumes */
	struct rt_daemon in_force;     /* settings of its configuration */

	struct rt_partition partitions[RT_PARTITIONS_MAX];
	size_t n_partitions;
	struct rt_task *tasks; /* room for RT_TASKS_MAX */
	size_t n_tasks;
};

struct ini_place;

/* Reports what only the whole set shows; connects tasks with their partitions and sorts their
 * tables. whole: the file, and the counter of errors. */
void rt_set_check(struct rt_set *set, const struct ini_place *whole);

/* Reads and checks the file; the settings are the defaults of margin and of the keys of gpuarbd.
 * Errors are diagnostics "FILE:LINE: …". -ENOENT, -EINVAL or -ENOMEM, each with a diagnostic. */
struct settings;
int rt_set_load(const char *path, const struct settings *settings, struct rt_set **ret,
		struct diagnostics *diagnostics);
struct rt_set *rt_set_free(struct rt_set *set);
DEFINE_CLEANUP(struct rt_set *, rt_set_free)

/* For printf(). */
static inline unsigned long long ull(uint64_t number)
{
	return number;
}

/* Whether a job is submitted after the end of the one before it, so that each has host time. */
static inline bool rt_partition_dispatches(const struct rt_partition *partition)
{
	return partition->policy != RT_FIFO || partition->dispatcher;
}

unsigned rt_partition_queues(const struct rt_partition *partition);
/* SDMA queues to request for partition i. */
unsigned rt_set_sdma_queues(const struct rt_set *set, size_t i);
uint64_t rt_set_longest_deadline(const struct rt_set *set, size_t partition);
bool rt_set_copies(const struct rt_set *set, size_t partition);

/* The first task of its chain, which has its period and offset. NULL: the chain is a circle. */
const struct rt_task *rt_set_first(const struct rt_set *set, const struct rt_task *task);
bool rt_set_has_chains(const struct rt_set *set);
bool rt_often_is_stated(const struct rt_often *often);

/* How an execution time is known. */
enum rt_source {
	RT_MEASURED, /* measured on so many CUs */
	RT_MODELLED, /* computed from two measurements by the law of masks */
	RT_KEPT,     /* measured on fewer CUs; more CUs do not make a task slower */
	RT_UNKNOWN,  /* fewer CUs than in any measurement */
};

/*
 * The longest time of one job on so many effective CUs; RT_UNSET: unknown.
 *
 * Between two points (n, t) and (m, u), n < m, the law of masks (time ~ 1/E, gpuarb(7)) has two
 * answers for e CUs: t n / e from below and u m / e from above. If a kernel gains less from CUs
 * than the law predicts, the second is larger, otherwise the first. The larger one counts, but
 * never more than t, which was measured on fewer CUs. It is never less than u, because u m / e > u.
 * law = false: t.
 */
uint64_t rt_wcet(const struct rt_task *task, unsigned cus, bool law, enum rt_source *ret_source);

/* The same for a task of the set, with the error of the law in a modelled time. The measured margin has it
 * for all times. */
uint64_t rt_set_wcet(const struct rt_set *set, const struct rt_task *task, unsigned cus,
		     enum rt_source *ret_source);
