/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/set.h"

#include <stdlib.h>
#include <string.h>

#include "core/policy/settings.h"
#include "util/ini.h"
#include "util/text.h"

const char *const rt_policy_names[] = {
	[RT_FIFO] = "fifo",
	[RT_NP_EDF] = "np-edf",
	[RT_NP_DM] = "np-dm",
	NULL,
};

#define ERRORS_MAX 100U /* more do not help the reader */

unsigned rt_partition_queues(const struct rt_partition *partition)
{
	return partition->queues > 0 ? partition->queues : 2 * partition->processes;
}

uint64_t rt_set_longest_deadline(const struct rt_set *set, size_t partition)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < set->n_tasks; i++)
		if (set->tasks[i].partition == partition)
			longest = max_u64(longest, set->tasks[i].deadline);
	return longest;
}

bool rt_set_copies(const struct rt_set *set, size_t partition)
{
	for (size_t i = 0; i < set->n_tasks; i++)
		if (set->tasks[i].partition == partition &&
		    set->tasks[i].copy_in + set->tasks[i].copy_out > 0)
			return true;
	return false;
}

unsigned rt_set_sdma_queues(const struct rt_set *set, size_t i)
{
	const struct rt_partition *partition = &set->partitions[i];

	if (partition->sdma_queues != RT_UNSET)
		return (unsigned)partition->sdma_queues;
	return rt_set_copies(set, i) ? 2 * partition->processes : 0;
}

bool rt_often_is_stated(const struct rt_often *often)
{
	return often->number != RT_UNSET || often->rates.n > 0;
}

struct rt_set *rt_set_free(struct rt_set *set)
{
	for (size_t i = 0; i < set->n_partitions; i++) {
		free(set->partitions[i].user);
		free(set->partitions[i].command);
	}
	free(set->tasks);
	free(set);
	return NULL;
}

/* ---- execution times ---------------------------------------------------------------------- */

/* The time on so many CUs by the law of masks, rounded up. */
static uint64_t scaled(const struct rt_point *point, unsigned cus)
{
	return bound_divide_up(point->usec * point->cus, cus);
}

static uint64_t between(const struct rt_point *less, const struct rt_point *more, unsigned cus)
{
	uint64_t up = scaled(less, cus), down = scaled(more, cus);
	uint64_t longer = up > down ? up : down;

	return longer < less->usec ? longer : less->usec;
}

uint64_t rt_wcet(const struct rt_task *task, unsigned cus, bool law, enum rt_source *ret_source)
{
	const struct rt_point *points = task->points;
	size_t n = 0; /* points with at most so many CUs */

	while (n < task->n_points && points[n].cus <= cus)
		n++;
	if (n == 0) {
		*ret_source = RT_UNKNOWN;
		return RT_UNSET;
	}
	if (points[n - 1].cus == cus) {
		*ret_source = RT_MEASURED;
		return points[n - 1].usec;
	}
	if (n == task->n_points || !law) {
		*ret_source = RT_KEPT;
		return points[n - 1].usec;
	}
	*ret_source = RT_MODELLED;
	return between(&points[n - 1], &points[n], cus);
}

uint64_t rt_set_wcet(const struct rt_set *set, const struct rt_task *task, unsigned cus,
		     enum rt_source *ret_source)
{
	uint64_t usec = rt_wcet(task, cus, set->law, ret_source);
	enum rt_source kept;

	if (*ret_source != RT_MODELLED || set->margin_percent == MARGIN_MEASURED)
		return usec;
	usec = bound_divide_up(usec * (100 + MARGIN_LAW), 100);
	return min_u64(usec, rt_wcet(task, cus, false, &kept));
}

/* ---- checks ------------------------------------------------------------------------------- */

/* clang-format off */
#define BAD(whole, at_line, ...)                        \
	({                                              \
		struct ini_place place_ = *(whole);     \
		place_.line = (at_line);                \
		ini_bad(&place_, __VA_ARGS__);          \
	})
/* clang-format on */

/* ---- one task ----------------------------------------------------------------------------- */

static int by_cus(const void *left, const void *right)
{
	const struct rt_point *a = left, *b = right;

	return a->cus < b->cus ? -1 : a->cus > b->cus;
}

static void check_table(const struct ini_place *whole, struct rt_task *task)
{
	qsort(task->points, task->n_points, sizeof(task->points[0]), by_cus);
	for (size_t i = 1; i < task->n_points; i++) {
		const struct rt_point *less = &task->points[i - 1], *more = &task->points[i];

		if (less->cus == more->cus)
			BAD(whole, task->wcet_line, "[task %s]: wcet has %u CUs twice", task->name,
			    more->cus);
		else if (more->usec > less->usec)
			BAD(whole, task->wcet_line,
			    "[task %s]: wcet grows with CUs: %llu us on %u, %llu us on %u; "
			    "measure with masks that have the same number of CUs in each "
			    "shader "
			    "engine (gpuarbctl mask explain), and use the longest of many runs",
			    task->name, ull(less->usec), less->cus, ull(more->usec), more->cus);
	}
}

/* Releases are at offset + k x period, so each has an offset within the period. */
static void check_offset(const struct ini_place *whole, const struct rt_task *task)
{
	if (task->offset_line == 0)
		return;
	if (task->after_line > 0)
		BAD(whole, task->offset_line,
		    "[task %s]: the end of a job of [task %s] releases it, so it has no offset of "
		    "its own: use jitter for a delay",
		    task->name, task->after_name);
	else if (task->offset >= task->period)
		BAD(whole, task->offset_line,
		    "[task %s]: offset %llu us is past the period of %llu us: use 0 to %llu us",
		    task->name, ull(task->offset), ull(task->period), ull(task->period - 1));
}

static void check_times(const struct ini_place *whole, struct rt_task *task)
{
	if (task->period == 0 && task->after_line == 0)
		BAD(whole, task->line,
		    "[task %s] has no period: period = TIME is the least time between two "
		    "releases",
		    task->name);
	if (task->wcet_line == 0)
		BAD(whole, task->line,
		    "[task %s] has no wcet: wcet = 15:2100 30:1100 is the table of execution "
		    "times, 2100 us on 15 CUs",
		    task->name);
	if (task->period == 0)
		return;
	check_offset(whole, task);
	if (task->deadline_line == 0)
		task->deadline = task->period;
	if (task->deadline <= task->period)
		return;
	BAD(whole, task->deadline_line,
	    "[task %s]: deadline %llu us is longer than the period of %llu us: each job must "
	    "end before the next is released",
	    task->name, ull(task->deadline), ull(task->period));
}

/* ---- chains ------------------------------------------------------------------------------- */

static void find_before(const struct ini_place *whole, struct rt_set *set, struct rt_task *task)
{
	for (size_t i = 0; i < set->n_tasks && task->after == 0; i++)
		if (strcmp(set->tasks[i].name, task->after_name) == 0)
			task->after = i + 1;
	if (task->after == 0)
		BAD(whole, task->after_line, "[task %s]: after = %s: there is no section [task %s]",
		    task->name, task->after_name, task->after_name);
}

const struct rt_task *rt_set_first(const struct rt_set *set, const struct rt_task *task)
{
	for (size_t n = 0; n < set->n_tasks; n++) {
		if (task->after == 0)
			return task;
		task = &set->tasks[task->after - 1];
	}
	return NULL;
}

static void check_chain(const struct ini_place *whole, const struct rt_set *set,
			struct rt_task *task)
{
	const struct rt_task *first = rt_set_first(set, task);

	if (!first)
		BAD(whole, task->after_line,
		    "[task %s]: after = %s is part of a circle: no task of it is released first",
		    task->name, task->after_name);
	else if (task->period == 0)
		task->period = first->period;
	else if (task->period != first->period)
		BAD(whole, task->after_line,
		    "[task %s]: its period of %llu us is not that of [task %s], which releases it, "
		    "%llu us: leave it out",
		    task->name, ull(task->period), first->name, ull(first->period));
}

static void check_chains(const struct ini_place *whole, struct rt_set *set)
{
	unsigned before = *whole->errors;

	for (size_t i = 0; i < set->n_tasks && *whole->errors < ERRORS_MAX; i++)
		if (set->tasks[i].after_line > 0)
			find_before(whole, set, &set->tasks[i]);
	for (size_t i = 0; *whole->errors == before && i < set->n_tasks; i++)
		if (set->tasks[i].after > 0)
			check_chain(whole, set, &set->tasks[i]);
}

bool rt_set_has_chains(const struct rt_set *set)
{
	for (size_t i = 0; i < set->n_tasks; i++)
		if (set->tasks[i].after > 0)
			return true;
	return false;
}

static void find_partition(const struct ini_place *whole, struct rt_set *set, struct rt_task *task)
{
	const char *names[RT_PARTITIONS_MAX + 1] = { 0 }, *nearest;

	if (!task->partition_name[0]) {
		BAD(whole, task->line,
		    "[task %s] has no partition: set partition = NAME of a [partition NAME]",
		    task->name);
		return;
	}
	for (size_t i = 0; i < set->n_partitions; i++) {
		names[i] = set->partitions[i].name;
		if (strcmp(names[i], task->partition_name) != 0)
			continue;
		task->partition = i;
		set->partitions[i].n_tasks++;
		return;
	}
	nearest = text_nearest(task->partition_name, names);
	BAD(whole, task->line, "[task %s]: no section [partition %s]%s%s%s", task->name,
	    task->partition_name, nearest ? "; did you mean " : "", nearest ? nearest : "",
	    nearest ? "?" : "");
}

/* ---- one partition ------------------------------------------------------------------------ */

/* Uses the shortest times. No GPU can serve a utilisation above one. */
static void check_utilisation(const struct ini_place *whole, const struct rt_set *set)
{
	double load[RT_PARTITIONS_MAX] = { 0 };

	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct rt_task *task = &set->tasks[i];

		load[task->partition] += (double)task->points[task->n_points - 1].usec /
					 (double)task->period;
	}
	for (size_t i = 0; i < set->n_partitions; i++) {
		/* A rounding error is no error here: the response time bound rejects such a set. */
		if (load[i] > 1 + 1e-9)
			BAD(whole, set->partitions[i].line,
			    "[partition %s]: utilisation %.10g is above one even with the "
			    "shortest times of each wcet: move tasks to another partition, or "
			    "use longer periods",
			    set->partitions[i].name, load[i]);
	}
}

/* The end of a job of another partition does not wait for the grant. */
static void check_waits(const struct ini_place *whole, const struct rt_set *set)
{
	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct rt_task *task = &set->tasks[i], *first = rt_set_first(set, task);
		const struct rt_partition *partition = &set->partitions[task->partition];

		if (partition->waits_for_grant && first->partition != task->partition)
			BAD(whole, task->after_line,
			    "[task %s]: a job of [task %s] releases it, whether [partition %s] is "
			    "granted or not: leave out waits-for-grant, or put [task %s] in this "
			    "partition, too",
			    task->name, first->name, partition->name, first->name);
	}
}

static void check_sdma_queues(const struct ini_place *whole, const struct rt_set *set, size_t i)
{
	const struct rt_partition *partition = &set->partitions[i];

	if (rt_set_copies(set, i) && rt_set_sdma_queues(set, i) < 2 * partition->processes)
		BAD(whole, partition->line,
		    "[partition %s]: sdma-queues = %u is too small for copies of %u process%s: "
		    "without a free one, HIP copies with compute units; use at least %u",
		    partition->name, rt_set_sdma_queues(set, i), partition->processes,
		    partition->processes == 1 ? "" : "es", 2 * partition->processes);
}

static void check_partition(const struct ini_place *whole, const struct rt_partition *partition)
{
	if (partition->n_tasks == 0)
		BAD(whole, partition->line, "[partition %s] has no task", partition->name);
	if (partition->queues > 0 && partition->queues < 2 * partition->processes)
		BAD(whole, partition->line,
		    "[partition %s]: queues = %u is too small for %u process%s: HIP needs at "
		    "least 2 per process",
		    partition->name, partition->queues, partition->processes,
		    partition->processes == 1 ? "" : "es");
	if (rt_partition_dispatches(partition) && partition->processes > 1)
		BAD(whole, partition->line,
		    "[partition %s]: the dispatcher of policy = %s is one process, not %u: leave "
		    "out processes, or use fifo without a dispatcher",
		    partition->name, rt_policy_names[partition->policy], partition->processes);
	if (partition->policy != RT_FIFO && partition->dispatcher_stated && !partition->dispatcher)
		BAD(whole, partition->line,
		    "[partition %s]: policy = %s needs a dispatcher: leave out dispatcher = no, or "
		    "use fifo",
		    partition->name, rt_policy_names[partition->policy]);
	if (!partition->start_inactive &&
	    (partition->activation != RT_UNSET || partition->waits_for_grant))
		BAD(whole, partition->line,
		    "[partition %s]: %s needs a lease that starts inactive: set start-inactive "
		    "= yes",
		    partition->name,
		    partition->waits_for_grant ? "waits-for-grant" : "activation-latency");
}

void rt_set_check(struct rt_set *set, const struct ini_place *whole)
{
	if (set->n_tasks == 0)
		BAD(whole, 1, "the task set is empty: add a section [task NAME]");
	check_chains(whole, set);
	for (size_t i = 0; i < set->n_tasks && *whole->errors < ERRORS_MAX; i++) {
		check_times(whole, &set->tasks[i]);
		check_table(whole, &set->tasks[i]);
		find_partition(whole, set, &set->tasks[i]);
	}
	for (size_t i = 0; i < set->n_partitions; i++)
		check_partition(whole, &set->partitions[i]);
	if (*whole->errors > 0)
		return;
	for (size_t i = 0; i < set->n_partitions; i++)
		check_sdma_queues(whole, set, i);
	check_waits(whole, set);
	check_utilisation(whole, set);
}
