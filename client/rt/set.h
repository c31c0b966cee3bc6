/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A set of realtime tasks as its file says it: `gpuarbctl rt plan`. Times are microseconds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"
#include "core/policy/class.h"
#include "util/diagnostics.h"

#define RT_TASKS_MAX 4096U
#define RT_PARTITIONS_MAX 64U
#define RT_POINTS_MAX 32U
#define RT_NAME_MAX 33U /* with the NUL: partitions become tenants, which have up to 42 */
#define RT_TIME_MAX (UINT64_C(3600) * 1000000)
#define RT_UNSET UINT64_MAX

/* The longest that it takes on so many CUs, by measurement. */
struct rt_point {
	unsigned cus;
	uint64_t usec;
};

struct rt_task {
	char name[RT_NAME_MAX];
	char partition_name[RT_NAME_MAX];
	size_t partition; /* index, when the set has been checked */
	uint64_t period, deadline, jitter;
	struct rt_point points[RT_POINTS_MAX]; /* more CUs each, when checked */
	size_t n_points;
	unsigned line, deadline_line, wcet_line; /* where it says so; 0: it does not */
};

struct rt_partition {
	char name[RT_NAME_MAX];
	enum isolation isolation;
	bool start_inactive;
	bool waits_for_grant;     /* the first job is released when the lease is granted */
	uint64_t activation;      /* RT_UNSET: by what the daemon is configured to do */
	uint64_t host_submission; /* from release to the queue, and from the end to its notice */
	unsigned queues;          /* 0: two for each process */
	unsigned processes;
	unsigned priority;
	bool alone;
	char *user;    /* NULL: who asks */
	char *command; /* NULL: COMMAND */
	unsigned line;
	size_t n_tasks;
};

/* Keys of gpuarbd.conf(5). */
struct rt_daemon {
	uint64_t activate_grace, activate_min_interval, enforce_delay;
};

struct rt_set {
	unsigned margin_percent;
	bool capped, no_graphics, borrowers, law;
	uint64_t preemption;     /* what one preemption of the GPU costs; RT_UNSET */
	uint64_t queue_changes;  /* by others, within one response time; RT_UNSET */
	uint64_t activations;    /* of others, within one response time; RT_UNSET */
	uint64_t changed_queues; /* by one change of masks; RT_UNSET: all that others can have */
	uint64_t preemption_timeout; /* the kernel's */
	struct rt_daemon daemon;     /* what gpuarbd has to do for the set to pass */
	struct rt_daemon in_force;   /* what it does by its configuration */

	struct rt_partition *partitions;
	size_t n_partitions;
	struct rt_task *tasks;
	size_t n_tasks;
};

/* Letters, digits and -._@, up to RT_NAME_MAX - 1 of them. */
bool rt_is_name(const char *name);

/* Reports what only the whole set shows; connects tasks with their partitions and sorts their
 * tables. whole: the file, and the counter of errors. */
struct ini_place;
void rt_set_check(struct rt_set *set, const struct ini_place *whole);

/* Reads and checks the file; what it does not say of margin and daemon is by the settings.
 * Everything that is wrong is a note, "FILE:LINE: …". -ENOENT, -EINVAL, -ENOMEM, each with a
 * note; *ret is left alone then. */
struct settings;
int rt_set_load(const char *path, const struct settings *settings, struct rt_set **ret,
		struct diagnostics *diagnostics);
struct rt_set *rt_set_free(struct rt_set *set);
DEFINE_CLEANUP(struct rt_set *, rt_set_free)

unsigned rt_partition_queues(const struct rt_partition *partition);

/* For tests that compare the keys with the manual: the i-th, NULL past the last. */
const char *rt_set_key(size_t i, const char **ret_section);

/* The word nearest to it of a list of names, for a complaint; NULL. */
const char *rt_set_nearest_partition(const struct rt_set *set, const char *name);
