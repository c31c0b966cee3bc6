/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rt/set-internal.h"
#include "core/policy/settings.h"
#include "util/text.h"

static const char *const section_names[] = {
	[RT_SET] = "taskset",
	[RT_PARTITION] = "partition",
	[RT_TASK] = "task",
	NULL,
};

const char *rt_section_name(enum rt_section section)
{
	return section_names[section];
}

bool rt_is_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._@";
	size_t size = strlen(name);

	return size > 0 && size < RT_NAME_MAX && strspn(name, allowed) == size;
}

unsigned rt_partition_queues(const struct rt_partition *partition)
{
	return partition->queues > 0 ? partition->queues : 2 * partition->processes;
}

const char *rt_set_nearest_partition(const struct rt_set *set, const char *name)
{
	const char *names[RT_PARTITIONS_MAX + 1] = { 0 };

	for (size_t i = 0; i < set->n_partitions; i++)
		names[i] = set->partitions[i].name;
	return text_nearest(name, names);
}

/* ---- sections ----------------------------------------------------------------------------- */

/* Room for one more row of *rows; NULL after a complaint. */
static void *add_row(const struct ini_place *place, void **rows, size_t *n, size_t *room,
		     size_t size, size_t max, const char *what)
{
	void *more;

	if (*n == max) {
		ini_bad(place,
			"more than %zu %s: plan them in several files, each for GPUs of its "
			"own",
			max, what);
		return NULL;
	}
	if (*n == *room) {
		more = reallocarray(*rows, *room * 2 + 8, size);
		if (!more) {
			ini_bad(place, "out of memory");
			return NULL;
		}
		*rows = more;
		*room = *room * 2 + 8;
	}
	more = (char *)*rows + (*n)++ * size;
	memset(more, 0, size);
	return more;
}

static void *add_partition(struct rt_reader *reader, const struct ini_place *place,
			   const char *name)
{
	struct rt_set *set = reader->set;
	void *rows = set->partitions;
	struct rt_partition *row = add_row(place, &rows, &set->n_partitions,
					   &reader->room_partitions, sizeof(*row),
					   RT_PARTITIONS_MAX, "partitions");

	set->partitions = rows;
	if (!row)
		return NULL;
	snprintf(row->name, sizeof(row->name), "%s", name);
	row->line = place->line;
	row->isolation = ISOLATION_SHADER_ENGINE;
	row->activation = RT_UNSET;
	row->processes = 1;
	row->priority = PRIORITY_NORMAL;
	return row;
}

static void *add_task(struct rt_reader *reader, const struct ini_place *place, const char *name)
{
	struct rt_set *set = reader->set;
	void *rows = set->tasks;
	struct rt_task *row = add_row(place, &rows, &set->n_tasks, &reader->room_tasks,
				      sizeof(*row), RT_TASKS_MAX, "tasks");

	set->tasks = rows;
	if (!row)
		return NULL;
	snprintf(row->name, sizeof(row->name), "%s", name);
	row->line = place->line;
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
			"unknown section [%s]; there are [taskset], [partition NAME] and "
			"[task NAME]",
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
			i == RT_SET ? "[%s] takes no name: [%s]" : "[%s] needs a name: [%s NAME]",
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
	reader->within = true;
	if (!find_section(reader, place, section, &name))
		return;
	if (reader->section == RT_SET) {
		reader->target = reader->set;
		return;
	}
	if (!rt_is_name(name)) {
		ini_bad(place, "[%s]: a name is up to %u letters, digits and -._@", section,
			RT_NAME_MAX - 1);
		return;
	}
	reader->target = reader->section == RT_PARTITION ? add_partition(reader, place, name)
							 : add_task(reader, place, name);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int set_new(const struct settings *settings, struct rt_set **ret)
{
	struct rt_set *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;

	set->margin_percent = settings->margin_percent;
	set->borrowers = set->law = true;
	set->preemption = set->queue_changes = set->activations = set->changed_queues = RT_UNSET;
	set->in_force = (struct rt_daemon){
		.activate_grace = settings->activate_grace_usec,
		.activate_min_interval = settings->activate_min_interval_usec,
		.enforce_delay = settings->enforce_delay_usec,
	};
	set->daemon = set->in_force;
	set->preemption_timeout = PREEMPTION_MSEC * UINT64_C(1000);
	*ret = set;
	return 0;
}

struct rt_set *rt_set_free(struct rt_set *set)
{
	if (!set)
		return NULL;

	for (size_t i = 0; i < set->n_partitions; i++) {
		free(set->partitions[i].user);
		free(set->partitions[i].command);
	}
	free(set->partitions);
	free(set->tasks);
	free(set);
	return NULL;
}

int rt_set_load(const char *path, const struct settings *settings, struct rt_set **ret,
		struct diagnostics *diagnostics)
{
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	struct rt_reader reader = { 0 };
	int r;

	r = set_new(settings, &set);
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s: out of memory", path);
		return r;
	}
	reader.set = set;
	reader.whole = (struct ini_place){ .file = path,
					   .diagnostics = diagnostics,
					   .errors = &reader.complaints };
	r = ini_read(path, NULL, take_section, rt_take_key, &reader, diagnostics);
	if (r == -ENOENT)
		diagnostics_add(diagnostics, true, "%s: no such file", path);
	if (r < 0)
		return r;

	rt_set_check(&reader);
	if (reader.complaints > 0)
		return -EINVAL;
	*ret = TAKE_PTR(set);
	return 0;
}
