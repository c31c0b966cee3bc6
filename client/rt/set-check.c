/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What can be wrong with a task set as a whole: what it lacks, and what contradicts itself. */

#include <stdlib.h>
#include <string.h>

#include "client/rt/set-internal.h"

#define COMPLAINTS_MAX 100U /* what follows is no use to anybody */

static struct ini_place at_line(const struct rt_reader *reader, unsigned line)
{
	struct ini_place place = reader->whole;

	place.line = line;
	return place;
}

static unsigned long long ull(uint64_t number)
{
	return number;
}

/* ---- one task ----------------------------------------------------------------------------- */

static int by_cus(const void *left, const void *right)
{
	const struct rt_point *a = left, *b = right;

	return a->cus < b->cus ? -1 : a->cus > b->cus;
}

static void check_table(const struct rt_reader *reader, struct rt_task *task)
{
	struct ini_place place = at_line(reader, task->wcet_line);

	qsort(task->points, task->n_points, sizeof(task->points[0]), by_cus);
	for (size_t i = 1; i < task->n_points; i++) {
		const struct rt_point *less = &task->points[i - 1], *more = &task->points[i];

		if (less->cus == more->cus)
			ini_bad(&place, "[task %s]: wcet has %u CUs twice", task->name, more->cus);
		else if (more->usec > less->usec)
			ini_bad(&place,
				"[task %s]: wcet grows with CUs: %llu us on %u, %llu us on %u; "
				"measure with masks that have as many CUs in each shader engine "
				"(gpuarbctl mask explain), and take the longest of many runs",
				task->name, ull(less->usec), less->cus, ull(more->usec), more->cus);
	}
}

static void check_times(const struct rt_reader *reader, struct rt_task *task)
{
	struct ini_place place = at_line(reader, task->line);

	if (task->period == 0)
		ini_bad(&place,
			"[task %s] has no period, the least time between two of its "
			"releases",
			task->name);
	if (task->wcet_line == 0)
		ini_bad(&place,
			"[task %s] has no wcet, the table of its execution times: "
			"wcet = 15:2100 30:1100 for 2100 us on 15 CUs",
			task->name);
	if (task->period == 0)
		return;
	if (task->deadline_line == 0)
		task->deadline = task->period;
	if (task->deadline <= task->period)
		return;
	place.line = task->deadline_line;
	ini_bad(&place,
		"[task %s]: deadline %llu us is past the period, %llu us: each job has to be "
		"done before the next",
		task->name, ull(task->deadline), ull(task->period));
}

static void find_partition(const struct rt_reader *reader, struct rt_task *task)
{
	struct ini_place place = at_line(reader, task->line);
	struct rt_set *set = reader->set;
	const char *nearest;

	if (!task->partition_name[0]) {
		ini_bad(&place,
			"[task %s] has no partition: partition = NAME, of a [partition NAME]",
			task->name);
		return;
	}
	for (size_t i = 0; i < set->n_partitions; i++) {
		if (strcmp(set->partitions[i].name, task->partition_name) != 0)
			continue;
		task->partition = i;
		set->partitions[i].n_tasks++;
		return;
	}
	nearest = rt_set_nearest_partition(set, task->partition_name);
	ini_bad(&place, "[task %s]: there is no [partition %s]%s%s%s", task->name,
		task->partition_name, nearest ? "; did you mean " : "", nearest ? nearest : "",
		nearest ? "?" : "");
}

/* ---- one partition ------------------------------------------------------------------------ */

/* With the shortest times there are. What is above one can never be served, on any GPU. */
static void check_utilisation(const struct rt_reader *reader)
{
	double load[RT_PARTITIONS_MAX] = { 0 };
	const struct rt_set *set = reader->set;

	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct rt_task *task = &set->tasks[i];

		load[task->partition] += (double)task->points[task->n_points - 1].usec /
					 (double)task->period;
	}
	for (size_t i = 0; i < set->n_partitions; i++) {
		struct ini_place place = at_line(reader, set->partitions[i].line);

		/* What rounding hides is refused by the bound, if it matters. */
		if (load[i] > 1 + 1e-9)
			ini_bad(&place,
				"[partition %s]: utilisation %.2f is above one even with the "
				"shortest times of each wcet: put tasks into another partition, or "
				"make periods longer",
				set->partitions[i].name, load[i]);
	}
}

static void check_partition(const struct rt_reader *reader, const struct rt_partition *partition)
{
	struct ini_place place = at_line(reader, partition->line);

	if (partition->n_tasks == 0)
		ini_bad(&place, "[partition %s] has no task", partition->name);
	if (partition->queues > 0 && partition->queues < 2 * partition->processes)
		ini_bad(&place,
			"[partition %s]: queues %u is too few for %u process%s: the least that HIP "
			"can live with is 2 in each",
			partition->name, partition->queues, partition->processes,
			partition->processes == 1 ? "" : "es");
	if (!partition->start_inactive &&
	    (partition->activation != RT_UNSET || partition->waits_for_grant))
		ini_bad(&place,
			"[partition %s]: %s is for a lease that starts inactive: "
			"start-inactive = yes",
			partition->name,
			partition->waits_for_grant ? "waits-for-grant" : "activation-latency");
}

void rt_set_check(struct rt_reader *reader)
{
	struct rt_set *set = reader->set;
	struct ini_place place = at_line(reader, 1);

	if (set->n_tasks == 0)
		ini_bad(&place, "the set is empty: there is no [task NAME]");
	for (size_t i = 0; i < set->n_tasks && reader->complaints < COMPLAINTS_MAX; i++) {
		check_times(reader, &set->tasks[i]);
		check_table(reader, &set->tasks[i]);
		find_partition(reader, &set->tasks[i]);
	}
	for (size_t i = 0; i < set->n_partitions; i++)
		check_partition(reader, &set->partitions[i]);
	if (reader->complaints == 0)
		check_utilisation(reader);
}
