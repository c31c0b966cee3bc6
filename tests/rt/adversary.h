/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * An adversary of `gpuarbctl rt plan`: draws task sets at random, lets gpuarbctl plan them, and
 * simulates programs and a GPU that do the worst that the stated model of gpuarbctl-rt(1) permits.
 * It shares no code with gpuarbctl: what it knows of a plan is the JSON output.
 *
 * Times of a set are microseconds, those of the simulation are ticks of a hundredth: margins are
 * whole percents.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TICKS 100
#define TASKS_MAX 8U
#define PARTITIONS_MAX 3U
#define GPUS_MAX 2U
#define STILLS_MAX 20000U
#define PERIOD_LONG (60 * INT64_C(1000000)) /* other periods are shorter than a second */

enum policy { POLICY_FIFO, POLICY_NP_EDF, POLICY_NP_DM, POLICIES };
extern const char *const policy_names[];

struct task {
	size_t partition;
	int64_t period, deadline, jitter;
	int64_t offset; /* -1: released at any time */
	int64_t copy_in, copy_out;
	int after; /* the task of an earlier partition whose job ends before; -1: none */
	/* It runs for part / CUs + fixed. */
	int64_t part, fixed;

	int64_t bound;   /* of the plan, from release to notice; -1: none */
	int64_t budget;  /* of the plan, of one execution by a dispatcher; -1: none */
	int64_t worst;   /* ticks, simulated */
	int64_t longest; /* execution by a dispatcher; ticks, simulated */
};

struct partition {
	enum policy policy;
	bool dispatcher;          /* a job is submitted after the end of the one before it */
	int64_t host, activation; /* activation -1: active from the start */
	bool waits_for_grant;
	size_t gpu;
	bool shares; /* shader engines: isolation = cu */

	unsigned cus;     /* of the plan */
	unsigned engines; /* one bit each */
	int64_t response; /* of the plan; -1: none */
	bool offsets;     /* the plan uses them */
};

struct set {
	int64_t margin;     /* percent; -1: as measured beside so many neighbours */
	int64_t neighbours; /* -1: those of the set */
	bool preempts;      /* the GPU stands still for each change of a queue */
	bool borrowers;
	int64_t preemption, interval, grace, timeout; /* timeout 0: none */
	unsigned changed_queues, activations, queue_changes;
	int64_t activation_window, change_window; /* within which they happen; 0: one response */
	int64_t margins[GPUS_MAX];                /* of the plan */
	struct partition partitions[PARTITIONS_MAX];
	size_t n_partitions;
	struct task tasks[TASKS_MAX];
	size_t n_tasks;
	bool chains, copies;

	char verdict[16]; /* of the plan */
};

/* Random numbers that other drawings do not change: 0 to n - 1, and whether one of n. */
int64_t below(int64_t n);
static inline bool one_in(int64_t n)
{
	return below(n) == 0;
}

/* Draws a set, and writes it to a file. */
void draw_set(bool preempts, struct set *ret);
bool draw_write(const struct set *set, const char *path);

/* The GPU stands still from `from` to `to`. */
struct still {
	int64_t from, to;
};

struct stills {
	struct still list[STILLS_MAX];
	size_t n;
};

/* Draws what stops a GPU around the time 0, at which the jobs of a partition meet. What happens at
 * most so often happens so often within the window, in microseconds. lagging: no job is ready before
 * -1, and leases were activated just before: these are in no window. Sorted; no two overlap. Times
 * are ticks. */
void disturb_draw(const struct set *set, bool lagging, int64_t window, int64_t from, int64_t to,
		  struct stills *ret);

/* Runs the tasks of these partitions, and notes the longest time from a release to its notice. stills:
 * of each GPU. history: jobs may be ready before the time 0. */
void serve(struct set *set, size_t first, size_t last, bool history, const struct stills *stills,
	   int64_t horizon);
