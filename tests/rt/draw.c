/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "adversary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const policy_names[] = { "fifo", "np-edf", "np-dm" };

int64_t below(int64_t n)
{
	return n > 0 ? (int64_t)(drand48() * (double)n) : 0;
}

/* From least to most, as often in each decade. */
static int64_t draw_time(int64_t least, int64_t most)
{
	return (int64_t)((double)least * pow((double)most / (double)least, drand48()));
}

/* Execution times that take the given time on 15 CUs, from a tenth to all of it in proportion to
 * the CUs. */
static void draw_execution(struct task *task, int64_t usec)
{
	int64_t scales = usec * (1 + below(10)) / 10;

	task->part = 15 * scales;
	task->fixed = usec - scales;
}

/* The task comes after one of those that are there. Its deadline counts from the release of the
 * first. */
static void draw_chain(struct set *set, struct task *task)
{
	const struct task *before;

	task->after = (int)below((int64_t)set->n_tasks);
	before = &set->tasks[task->after];
	task->period = before->period;
	task->deadline = task->period - below((task->period - before->deadline) / 2 + 1);
	task->jitter = one_in(3) ? below(task->deadline / 10) : 0;
	task->offset = -1;
	set->partitions[task->partition].waits_for_grant = false; /* an error */
	set->chains = true;
}

/* With few different periods, so that jobs of different tasks never meet; now and then not. */
static void draw_offset(struct task *task, int64_t base)
{
	if (!one_in(8))
		task->period = base << below(3);
	if (!one_in(8))
		task->offset = one_in(4) ? 0 : below(task->period);
}

/* The total is not too far from what the policy can serve, so that many sets pass. */
static void draw_tasks(struct set *set, size_t partition)
{
	enum policy policy = set->partitions[partition].policy;
	size_t n = 1 + (size_t)below(TASKS_MAX / (int64_t)set->n_partitions);
	int64_t base = draw_time(500, 20000), shortest = INT64_MAX;
	struct task *first = &set->tasks[set->n_tasks];
	bool offsets = one_in(3);
	double left = (policy == POLICY_FIFO && !offsets ? 0.8 : 1.0) * drand48();

	for (size_t i = 0; i < n; i++) {
		struct task *task = &first[i];

		*task = (struct task){
			.partition = partition, .after = -1, .offset = -1, .bound = -1
		};
		task->period = one_in(4) ? base : draw_time(base, 10 * base);
		if (offsets)
			draw_offset(task, base);
		else if (one_in(8))
			task->period = draw_time(PERIOD_LONG, 3600 * INT64_C(1000000));
		task->deadline = one_in(2) ? task->period : task->period - below(task->period / 2);
		task->jitter = one_in(3) ? below(task->deadline / 4) : 0;
		if (i == 0 && partition > 0 && one_in(3))
			draw_chain(set, task);
		if (task->deadline < shortest)
			shortest = task->deadline;
	}
	for (size_t i = 0; i < n; i++) {
		double share = i + 1 < n ? left * drand48() : left;
		int64_t of = policy == POLICY_FIFO ? shortest : first[i].period;
		int64_t usec = (int64_t)(share * (double)of);

		left -= share;
		draw_execution(&first[i], usec > 10 ? usec : 10);
	}
	set->n_tasks += n;
}

/* Some tasks of the set copy: not much, as a copy can wait for those of all other partitions. */
static void draw_copies(struct set *set)
{
	set->copies = true;
	for (size_t i = 0; i < set->n_tasks; i++) {
		struct task *task = &set->tasks[i];
		int64_t most = task->period / (4 * (int64_t)set->n_tasks) + 2;

		if (one_in(2))
			task->copy_in = 1 + below(most);
		if (one_in(2))
			task->copy_out = 1 + below(most);
	}
}

static void draw_partition(struct set *set, size_t i)
{
	struct partition *partition = &set->partitions[i];

	*partition = (struct partition){ .activation = -1, .response = -1 };
	partition->policy = (enum policy)below(POLICIES);
	partition->dispatcher = partition->policy != POLICY_FIFO || one_in(2);
	partition->host = one_in(2) ? below(200) : 0;
	if (one_in(4)) {
		partition->activation = below(2000);
		partition->waits_for_grant = one_in(2);
	}
	draw_tasks(set, i);
}

void draw_set(bool preempts, struct set *ret)
{
	static const int64_t margins[] = { 0, 0, 1, 7, 12, 50, -1 };
	size_t gpus = one_in(3) ? GPUS_MAX : 1;
	unsigned inactive = 0;

	*ret = (struct set){
		.margin = margins[below(7)],
		.preempts = preempts,
		.borrowers = !one_in(3),
		.preemption = one_in(4) ? draw_time(100, 2000) : draw_time(10, 200),
		.interval = 1000 * (one_in(2) ? 1 + below(50) : 100 + below(4000)),
		.grace = 1000 * (1 + below(100)),
		.timeout = one_in(10) ? 1000 * (1 + below(10)) : 0,
		.changed_queues = (unsigned)(1 + below(8)),
		.activations = (unsigned)(one_in(2) ? 0 : below(4)),
		.queue_changes = (unsigned)(one_in(2) ? 0 : below(6)),
		.n_partitions = 1 + (size_t)below(PARTITIONS_MAX),
	};
	if (ret->activations > 0 && one_in(3))
		ret->activation_window = draw_time(10000, 1000000);
	if (ret->queue_changes > 0 && one_in(3))
		ret->change_window = draw_time(1000, 1000000);
	for (size_t i = 0; i < ret->n_partitions; i++) {
		draw_partition(ret, i);
		ret->partitions[i].gpu = (size_t)below((int64_t)gpus);
		ret->partitions[i].shares = one_in(4);
	}
	/* Not fewer than the partitions of the set, and a borrower. */
	ret->neighbours = one_in(2) ? (int64_t)ret->n_partitions - 1 + below(6) : -1;
	if (ret->neighbours == 0 && ret->borrowers)
		ret->neighbours = 1;
	for (size_t i = 0; i < ret->n_partitions; i++)
		inactive += ret->partitions[i].activation >= 0;
	if (ret->n_partitions > 1 && ret->activations < inactive && ret->activation_window == 0)
		ret->activations = inactive;
	if (one_in(4))
		draw_copies(ret);
}

/* ---- the file ------------------------------------------------------------------------------ */

static void write_partition(FILE *out, const struct set *set, size_t i)
{
	const struct partition *partition = &set->partitions[i];

	fprintf(out, "[partition p%zu]\ngpu = g%zu\nhost-submission = %" PRId64 "us\n", i,
		partition->gpu, partition->host);
	if (partition->shares)
		fprintf(out, "isolation = cu\n");
	if (partition->policy != POLICY_FIFO)
		fprintf(out, "policy = %s\n", policy_names[partition->policy]);
	else if (partition->dispatcher)
		fprintf(out, "dispatcher = yes\n");
	if (partition->activation >= 0)
		fprintf(out, "start-inactive = yes\nactivation-latency = %" PRId64 "us\n",
			partition->activation);
	if (partition->waits_for_grant)
		fprintf(out, "waits-for-grant = yes\n");
}

static void write_task(FILE *out, const struct task *task, size_t i)
{
	fprintf(out, "[task t%zu]\npartition = p%zu\n", i, task->partition);
	if (task->after >= 0)
		fprintf(out, "after = t%d\n", task->after);
	else
		fprintf(out, "period = %" PRId64 "us\n", task->period);
	if (task->copy_in > 0)
		fprintf(out, "copy-in = %" PRId64 "us\n", task->copy_in);
	if (task->copy_out > 0)
		fprintf(out, "copy-out = %" PRId64 "us\n", task->copy_out);
	if (task->offset >= 0)
		fprintf(out, "offset = %" PRId64 "us\n", task->offset);
	fprintf(out, "deadline = %" PRId64 "us\njitter = %" PRId64 "us\nwcet =", task->deadline,
		task->jitter);
	for (int64_t cus = 15; cus <= 60; cus += cus == 15 ? 15 : 30)
		fprintf(out, " %" PRId64 ":%" PRId64 "us", cus,
			(task->part + cus - 1) / cus + task->fixed);
	fprintf(out, "\n");
}

static void write_often(FILE *out, const char *key, unsigned n, int64_t window)
{
	fprintf(out, "%s = %u", key, n);
	if (window > 0)
		fprintf(out, "/%" PRId64 "us", window);
	fprintf(out, "\n");
}

bool draw_write(const struct set *set, const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return false;
	fprintf(out, "[taskset]\n");
	if (set->margin >= 0)
		fprintf(out, "margin = %" PRId64 "%%\n", set->margin);
	if (set->neighbours >= 0)
		fprintf(out, "neighbours = %" PRId64 "\n", set->neighbours);
	write_often(out, "queue-changes", set->queue_changes, set->change_window);
	write_often(out, "activations", set->activations, set->activation_window);
	fprintf(out, "preemption = %" PRId64 "us\nchanged-queues = %u\nborrowers = %s\n",
		set->preemption, set->changed_queues, set->borrowers ? "yes" : "no");
	fprintf(out, "activate-min-interval = %" PRId64 "us\nactivate-grace = %" PRId64 "us\n",
		set->interval, set->grace);
	if (set->timeout > 0)
		fprintf(out, "preemption-timeout = %" PRId64 "us\n", set->timeout);
	fprintf(out, "every-client-capped = yes\nevery-client-masked = yes\nno-graphics = yes\n"
		     "own-pipes = yes\nown-copies = yes\n");
	for (size_t i = 0; i < set->n_partitions; i++)
		write_partition(out, set, i);
	for (size_t i = 0; i < set->n_tasks; i++)
		write_task(out, &set->tasks[i], i);
	return fclose(out) == 0;
}
