/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the file of a task set: its sections, and its keys by a table. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rt/set-value.h"
#include "core/policy/settings.h"
#include "util/text.h"

struct rt_reader {
	struct rt_set *set;
	enum rt_section section;
	void *target; /* the row that its keys fill; NULL: the section is not valid */
	unsigned errors;
};

static const char *const section_names[] = {
	[RT_SET] = "taskset",
	[RT_PARTITION] = "partition",
	[RT_TASK] = "task",
	NULL,
};

/* ---- sections ----------------------------------------------------------------------------- */

static bool has_room(const struct ini_place *place, size_t n, size_t max, const char *rows)
{
	if (n == max)
		ini_bad(place, "more than %zu %s: use several files, each for GPUs of its own", max,
			rows);
	return n < max;
}

static void *add_partition(struct rt_set *set, const struct ini_place *place, const char *name)
{
	struct rt_partition *row = &set->partitions[set->n_partitions];

	if (!has_room(place, set->n_partitions, RT_PARTITIONS_MAX, "partitions"))
		return NULL;
	*row = (struct rt_partition){
		.line = place->line,
		.isolation = ISOLATION_SHADER_ENGINE,
		.activation = RT_UNSET,
		.host_submission = RT_UNSET,
		.sdma_queues = RT_UNSET,
		.pipe_neighbours = RT_UNSET,
		.processes = 1,
		.priority = PRIORITY_NORMAL,
	};
	strcpy(row->name, name);
	set->n_partitions++;
	return row;
}

static void *add_task(struct rt_set *set, const struct ini_place *place, const char *name)
{
	struct rt_task *row = &set->tasks[set->n_tasks];

	if (!has_room(place, set->n_tasks, RT_TASKS_MAX, "tasks"))
		return NULL;
	row->line = place->line;
	strcpy(row->name, name);
	set->n_tasks++;
	return row;
}

static void bad_section(const struct ini_place *place, const char *section, const char *word)
{
	const char *nearest = text_nearest(word, section_names);

	if (nearest)
		ini_bad(place, "unknown section [%s]; did you mean [%s%s]?", section, nearest,
			strcmp(nearest, "taskset") == 0 ? "" : " NAME");
	else
		ini_bad(place,
			"unknown section [%s]: use [taskset], [partition NAME] or [task NAME]",
			section);
}

static bool find_section(struct rt_reader *reader, const struct ini_place *place,
			 const char *section, const char **ret_name)
{
	size_t size = strcspn(section, " ");
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)size, section);
	*ret_name = section[size] ? section + size + 1 : "";
	for (unsigned i = 0; i < RT_SECTIONS; i++) {
		if (strcmp(word, section_names[i]) != 0)
			continue;
		reader->section = i;
		if ((i == RT_SET) == (**ret_name == '\0'))
			return true;
		ini_bad(place,
			i == RT_SET ? "[%s] takes no name: use [%s]"
				    : "[%s] needs a name: use [%s NAME]",
			section, word);
		return false;
	}
	bad_section(place, section, word);
	return false;
}

static void take_section(const struct ini_place *place, const char *section, void *userdata)
{
	struct rt_reader *reader = userdata;
	const char *name;

	reader->target = NULL;
	if (!find_section(reader, place, section, &name))
		return;
	if (reader->section == RT_SET) {
		reader->target = reader->set;
		return;
	}
	if (!set_value_is_name(name)) {
		ini_bad(place, "[%s]: invalid name: use up to %u letters, digits and -._@", section,
			RT_NAME_MAX - 1);
		return;
	}
	reader->target = reader->section == RT_PARTITION ? add_partition(reader->set, place, name)
							 : add_task(reader->set, place, name);
}

/* ---- rows --------------------------------------------------------------------------------- */

/* clang-format off */
#define SET(key, how, member, least, most)                                                  \
	{ RT_SET, key, how, offsetof(struct rt_set, member), least, most }
#define PARTITION(key, how, member, least, most)                                            \
	{ RT_PARTITION, key, how, offsetof(struct rt_partition, member), least, most }
#define TASK(key, how, member, least)                                                       \
	{ RT_TASK, key, how, offsetof(struct rt_task, member), least, 0 }
/* clang-format on */

static const struct key keys[] = {
	SET("margin", take_margin, margin_percent, 0, 1000),
	SET("neighbours", take_count, neighbours, 0, 1024),
	SET("neighbours-use", take_neighbours, neighbours_use, 0, 0),
	SET("every-client-capped", take_bool, capped, 0, 0),
	SET("every-client-masked", take_bool, masked, 0, 0),
	SET("own-pipes", take_bool, own_pipes, 0, 0),
	SET("own-copies", take_bool, own_copies, 0, 0),
	SET("independent-copies", take_bool, independent_copies, 0, 0),
	SET("no-graphics", take_bool, no_graphics, 0, 0),
	SET("borrowers", take_bool, borrowers, 0, 0),
	SET("law", take_law, law, 0, 0),
	SET("preemption", take_time, preemption, 1, 0),
	SET("queue-changes", take_often, queue_changes, 0, 100000),
	SET("activations", take_often, activations, 0, 100000),
	SET("changed-queues", take_count, changed_queues, 0, 100000),
	SET("activate-grace", take_interval, daemon.activate_grace, 1000, 0),
	SET("activate-min-interval", take_interval, daemon.activate_min_interval, 1000, 0),
	SET("enforce-delay", take_interval, daemon.enforce_delay, 1000, 0),
	SET("preemption-timeout", take_time, preemption_timeout, 0, 0),

	PARTITION("gpu", take_gpu, gpu, 0, 0),
	PARTITION("policy", take_policy, policy, 0, 0),
	PARTITION("dispatcher", take_dispatcher, dispatcher, 0, 0),
	PARTITION("isolation", take_isolation, isolation, 0, 0),
	PARTITION("start-inactive", take_bool, start_inactive, 0, 0),
	PARTITION("waits-for-grant", take_bool, waits_for_grant, 0, 0),
	PARTITION("activation-latency", take_time, activation, 0, 0),
	PARTITION("host-submission", take_time, host_submission, 0, 0),
	PARTITION("queues", take_number, queues, 1, 1024),
	PARTITION("sdma-queues", take_count, sdma_queues, 0, 1024),
	PARTITION("processes", take_number, processes, 1, 1024),
	PARTITION("priority", take_priority, priority, 0, 0),
	PARTITION("alone", take_bool, alone, 0, 0),
	PARTITION("user", take_user, user, 0, 0),
	PARTITION("command", take_text, command, 0, 0),

	TASK("partition", take_partition, partition_name, 0),
	TASK("period", take_time, period, 1),
	TASK("deadline", take_deadline, deadline, 1),
	TASK("after", take_after, after_name, 0),
	TASK("offset", take_offset, offset, 0),
	TASK("jitter", take_time, jitter, 0),
	TASK("copy-in", take_time, copy_in, 1),
	TASK("copy-out", take_time, copy_out, 1),
	TASK("wcet", take_wcet, n_points, 0),
};

static void unknown_key(const struct ini_place *place, enum rt_section section, const char *name)
{
	const char *words[ARRAY_SIZE(keys) + 1] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].section == section)
			words[n++] = keys[i].name;
	ini_unknown_key(place, section_names[section], name, words);
}

static void take_key(const struct ini_place *place, const char *section, const char *name,
		     const char *value, void *userdata)
{
	struct rt_reader *reader = userdata;

	if (!*section) {
		ini_bad(place, "%s: the key needs a [section] above it", name);
		return;
	}
	if (!reader->target)
		return; /* the section was not valid */
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].section != reader->section || strcmp(keys[i].name, name) != 0)
			continue;
		keys[i].take(&(struct entry){
			.place = place,
			.key = &keys[i],
			.value = value,
			.target = reader->target,
			.field = (char *)reader->target + keys[i].offset,
		});
		return;
	}
	unknown_key(place, reader->section, name);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int set_new(const struct settings *settings, struct rt_set **ret)
{
	_cleanup_(rt_set_freep) struct rt_set *set = calloc(1, sizeof(*set));

	if (set)
		set->tasks = calloc(RT_TASKS_MAX, sizeof(*set->tasks));
	if (!set || !set->tasks)
		return -ENOMEM;

	set->margin_percent = settings->margin_percent;
	set->borrowers = set->law = true;
	set->neighbours = set->preemption = set->changed_queues = RT_UNSET;
	set->queue_changes.number = set->activations.number = RT_UNSET;
	set->in_force = (struct rt_daemon){
		.activate_grace = settings->activate_grace_usec,
		.activate_min_interval = settings->activate_min_interval_usec,
		.enforce_delay = settings->enforce_delay_usec,
	};
	set->daemon = set->in_force;
	set->preemption_timeout = RT_UNSET;
	*ret = TAKE_PTR(set);
	return 0;
}

int rt_set_load(const char *path, const struct settings *settings, struct rt_set **ret,
		struct diagnostics *diagnostics)
{
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	struct rt_reader reader = { 0 };
	const struct ini_place whole = {
		.file = path,
		.diagnostics = diagnostics,
		.errors = &reader.errors,
	};
	int r;

	r = set_new(settings, &set);
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s: out of memory", path);
		return r;
	}
	reader.set = set;
	r = ini_read(path, NULL, take_section, take_key, &reader, diagnostics);
	if (r == -ENOENT)
		diagnostics_add(diagnostics, true, "%s: no such file", path);
	if (r < 0)
		return r;

	rt_set_check(set, &whole);
	if (reader.errors > 0)
		return -EINVAL;
	*ret = TAKE_PTR(set);
	return 0;
}
