/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the file of a task set: its sections, and its keys by a table. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rt/set.h"
#include "core/policy/settings.h"
#include "util/ini.h"
#include "util/number.h"
#include "util/text.h"

enum rt_section { RT_SET, RT_PARTITION, RT_TASK, RT_SECTIONS };

struct entry;

struct key {
	enum rt_section section;
	const char *name;
	void (*take)(const struct entry *entry);
	size_t offset;            /* of the member that it sets */
	uint64_t min, max;        /* of numbers, times and words */
	size_t line;              /* of the member for its line, an unsigned; 0: none asks for it */
	const char *noun, *works; /* works: what follows the value in a message */
	const char *const *words;
};

/* KEY = VALUE in a valid section. */
struct entry {
	const struct ini_place *place;
	const struct key *key;
	const char *value;
	void *target; /* the row of its section */
	void *field;  /* the member that the key sets */
};

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

/* ---- values -------------------------------------------------------------------------------- */

/* Each stores a valid value in its field, and reports any other. */

#define CUS_MAX 1024U /* of an execution time */

/* Letters, digits and -._@, up to RT_NAME_MAX - 1 of them. */
static bool is_name(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@";
	size_t size = strlen(name);

	return size > 0 && size < RT_NAME_MAX && strspn(name, allowed) == size;
}

/* Microseconds of "250us", "11ms", "2s", "1min", "1h", "250". */
static int read_time(const char *text, uint64_t *ret)
{
	static const struct number_unit units[] = {
		{ "", 1 },           { "us", 1 },          { "ms", 1000 }, { "s", 1000000 },
		{ "min", 60000000 }, { "h", RT_TIME_MAX }, { NULL, 0 },
	};

	return number_parse_units(text, units, ret);
}

static void take_times_of(const struct entry *entry, uint64_t step, const char *advice)
{
	uint64_t usec;

	if (read_time(entry->value, &usec) < 0 || usec < entry->key->min || usec > RT_TIME_MAX ||
	    usec % step != 0)
		ini_bad(entry->place, "%s: invalid time '%s': use %llu us to 1 h%s",
			entry->key->name, entry->value, ull(entry->key->min), advice);
	else
		*(uint64_t *)entry->field = usec;
}

static void take_time(const struct entry *entry)
{
	take_times_of(entry, 1, ", as 250us, 11ms or 2s");
}

/* As in gpuarbd.conf(5). */
static void take_interval(const struct entry *entry)
{
	take_times_of(entry, 1000, " in whole milliseconds, as 500ms or 2s");
}

static void take_number(const struct entry *entry)
{
	ini_unsigned(entry->place, entry->key->name, entry->value, (unsigned)entry->key->min,
		     (unsigned)entry->key->max, entry->field);
}

static void take_count(const struct entry *entry)
{
	unsigned count;

	if (ini_unsigned(entry->place, entry->key->name, entry->value, (unsigned)entry->key->min,
			 (unsigned)entry->key->max, &count) >= 0)
		*(uint64_t *)entry->field = count;
}

static void take_margin(const struct entry *entry)
{
	if (strcmp(entry->value, "measured") == 0)
		*(unsigned *)entry->field = MARGIN_MEASURED;
	else
		ini_percent(entry->place, entry->key->name, entry->value, (unsigned)entry->key->min,
			    (unsigned)entry->key->max, entry->field);
}

/* An enum of the words, from the first one that a set may use. */
static void take_word(const struct entry *entry)
{
	const struct key *key = entry->key;
	int word = text_index(key->words, entry->value);

	if (word >= (int)key->min && word <= (int)key->max)
		*(unsigned *)entry->field = (unsigned)word;
	else
		ini_bad(entry->place, "%s: invalid %s '%s'%s", key->name, key->noun, entry->value,
			key->works);
}

static void take_bool(const struct entry *entry)
{
	ini_bool(entry->place, entry->key->name, entry->value, entry->field);
}

static void take_priority(const struct entry *entry)
{
	int priority = priority_from_name(entry->value);

	if (priority >= 0)
		*(unsigned *)entry->field = (unsigned)priority;
	else
		ini_bad(entry->place,
			"%s: invalid priority '%s': use low, normal, high or a number from 0 to 15",
			entry->key->name, entry->value);
}

static void take_text(const struct entry *entry)
{
	char **text = entry->field, *copy;

	if (!*entry->value) {
		ini_bad(entry->place, "%s: the value must not be empty", entry->key->name);
		return;
	}
	copy = strdup(entry->value);
	if (!copy) {
		ini_bad(entry->place, "out of memory");
		return;
	}
	free(*text);
	*text = copy;
}

/* The name becomes the value of match-user: no list, no blanks. */
static void take_user(const struct entry *entry)
{
	if (is_name(entry->value))
		take_text(entry);
	else
		ini_bad(entry->place, "%s: invalid user '%s': use one name or number",
			entry->key->name, entry->value);
}

static void take_gpu(const struct entry *entry)
{
	if (*entry->value && strlen(entry->value) < RT_GPU_NAME_MAX &&
	    !strpbrk(entry->value, ", \t="))
		strcpy(entry->field, entry->value);
	else
		ini_bad(entry->place, "%s: invalid name '%s': use that of one GPU of the set",
			entry->key->name, entry->value);
}

/* The name of another section. */
static void take_section_name(const struct entry *entry)
{
	if (is_name(entry->value))
		strcpy(entry->field, entry->value);
	else if (entry->key->works && strpbrk(entry->value, ", \t"))
		ini_bad(entry->place, "%s: '%s' is more than one %s%s", entry->key->name,
			entry->value, entry->key->noun, entry->key->works);
	else
		ini_bad(entry->place, "%s: invalid name '%s' of a [%s NAME]", entry->key->name,
			entry->value, entry->key->noun);
}

/* ---- numbers and rates ---------------------------------------------------------------------- */

/* NUMBER, the mark and TIME: "4/10ms", "15:2100". */
static int read_pair(char *text, char mark, uint64_t most, uint64_t *ret_number, uint64_t *ret_usec)
{
	char *at = strchr(text, mark);

	if (!at)
		return -EINVAL;
	*at++ = '\0';
	if (number_parse(text, 1, most, ret_number) < 0 || read_time(at, ret_usec) < 0)
		return -EINVAL;
	return *ret_usec < 1 || *ret_usec > RT_TIME_MAX ? -ERANGE : 0;
}

static void add_rate(const struct entry *entry, char *word, struct bound_rates *rates)
{
	struct bound_rate rate;
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", word);
	if (read_pair(word, '/', entry->key->max, &rate.count, &rate.usec) < 0)
		ini_bad(entry->place,
			"%s: invalid rate '%s': use NUMBER/TIME, as 4/10ms, with 1 to %llu events in 1 "
			"us to 1 h; %s = 0 is for none",
			entry->key->name, copy, ull(entry->key->max), entry->key->name);
	else if (rates->n == BOUND_RATES_MAX)
		ini_bad(entry->place, "%s: more than %u rates", entry->key->name, BOUND_RATES_MAX);
	else
		rates->list[rates->n++] = rate;
}

/* A number for one response time, or rates. */
static void take_often(const struct entry *entry)
{
	_cleanup_(freep) char *copy = strdup(entry->value);
	struct rt_often *often = entry->field;
	char *word, *rest = copy;
	struct entry number = *entry;

	*often = (struct rt_often){ .number = RT_UNSET };
	number.field = &often->number;
	if (!copy)
		ini_bad(entry->place, "out of memory");
	else if (!strchr(copy, '/'))
		take_count(&number);
	else
		while ((word = strtok_r(rest, " \t,", &rest)))
			add_rate(entry, word, &often->rates);
}

/* ---- the table of execution times --------------------------------------------------------- */

static int take_point(const struct entry *entry, char *word)
{
	struct rt_task *task = entry->target;
	uint64_t cus, usec;
	char copy[64];
	int r;

	snprintf(copy, sizeof(copy), "%s", word);
	r = read_pair(word, ':', CUS_MAX, &cus, &usec);
	if (r < 0) {
		ini_bad(entry->place,
			"%s: invalid point '%s': use CUS:TIME, as 15:2100 or 15:2100us, with 1 to "
			"%u CUs and 1 us to 1 h",
			entry->key->name, copy, CUS_MAX);
		return r;
	}
	if (task->n_points == RT_POINTS_MAX) {
		ini_bad(entry->place, "%s: more than %u points", entry->key->name, RT_POINTS_MAX);
		return -E2BIG;
	}
	task->points[task->n_points++] = (struct rt_point){ (unsigned)cus, usec };
	return 0;
}

static void take_wcet(const struct entry *entry)
{
	_cleanup_(freep) char *copy = strdup(entry->value);
	struct rt_task *task = entry->target;
	char *word, *rest = copy;

	if (!copy)
		ini_bad(entry->place, "out of memory");
	while (copy && (word = strtok_r(rest, " \t,", &rest)))
		if (take_point(entry, word) < 0)
			return;
	if (copy && task->n_points == 0)
		ini_bad(entry->place,
			"%s: the table is empty: add CUS:TIME for each measured mask, as 15:2100 "
			"30:1100",
			entry->key->name);
}

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
	if (!is_name(name)) {
		ini_bad(place, "[%s]: invalid name: use up to %u letters, digits and -._@", section,
			RT_NAME_MAX - 1);
		return;
	}
	reader->target = reader->section == RT_PARTITION ? add_partition(reader->set, place, name)
							 : add_task(reader->set, place, name);
}

/* ---- rows --------------------------------------------------------------------------------- */

#define MEMBER(part, type, key, how, member) \
	.section = (part), .name = (key), .take = (how), .offset = offsetof(struct type, member)
#define LINE(type, member) .line = offsetof(struct type, member)
/* clang-format off */
#define SET(key, how, member, least, most, ...) \
	{ MEMBER(RT_SET, rt_set, key, how, member), .min = (least), .max = (most), ##__VA_ARGS__ }
#define PARTITION(key, how, member, least, most, ...) \
	{ MEMBER(RT_PARTITION, rt_partition, key, how, member), .min = (least), .max = (most), \
	  ##__VA_ARGS__ }
#define TASK(key, how, member, least, ...) \
	{ MEMBER(RT_TASK, rt_task, key, how, member), .min = (least), ##__VA_ARGS__ }
/* clang-format on */

static const struct key keys[] = {
	SET("margin", take_margin, margin_percent, 0, 1000),
	SET("neighbours", take_count, neighbours, 0, 1024),
	SET("neighbours-use", take_word, neighbours_use, 0, NEIGHBOURS_COMPUTE, .noun = "word",
	    .works = ": use memory or compute", .words = neighbours_names),
	SET("every-client-capped", take_bool, capped, 0, 0),
	SET("every-client-masked", take_bool, masked, 0, 0),
	SET("own-pipes", take_bool, own_pipes, 0, 0),
	SET("own-copies", take_bool, own_copies, 0, 0),
	SET("independent-copies", take_bool, independent_copies, 0, 0),
	SET("no-graphics", take_bool, no_graphics, 0, 0),
	SET("borrowers", take_bool, borrowers, 0, 0),
	SET("law", take_bool, law, 0, 0, LINE(rt_set, law_stated)),
	SET("preemption", take_time, preemption, 1, 0),
	SET("queue-changes", take_often, queue_changes, 0, 100000),
	SET("activations", take_often, activations, 0, 100000),
	SET("changed-queues", take_count, changed_queues, 0, 100000),
	SET("activate-grace", take_interval, daemon.activate_grace, 1000, 0),
	SET("activate-min-interval", take_interval, daemon.activate_min_interval, 1000, 0),
	SET("enforce-delay", take_interval, daemon.enforce_delay, 1000, 0),
	SET("preemption-timeout", take_time, preemption_timeout, 0, 0),

	PARTITION("gpu", take_gpu, gpu, 0, 0),
	PARTITION("policy", take_word, policy, 0, RT_NP_DM, .noun = "policy",
		  .works = ": use fifo, np-edf or np-dm", .words = rt_policy_names),
	PARTITION("dispatcher", take_bool, dispatcher, 0, 0, LINE(rt_partition, dispatcher_stated)),
	PARTITION("isolation", take_word, isolation, ISOLATION_SHADER_ENGINE, ISOLATION_CU,
		  .noun = "isolation", .works = " of a realtime lease: use shader-engine or cu",
		  .words = isolation_names),
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

	TASK("partition", take_section_name, partition_name, 0, .noun = "partition",
	     .works = ": use one task for each partition"),
	TASK("period", take_time, period, 1),
	TASK("deadline", take_time, deadline, 1, LINE(rt_task, deadline_line)),
	TASK("after", take_section_name, after_name, 0, LINE(rt_task, after_line), .noun = "task"),
	TASK("offset", take_time, offset, 0, LINE(rt_task, offset_line)),
	TASK("jitter", take_time, jitter, 0),
	TASK("copy-in", take_time, copy_in, 1),
	TASK("copy-out", take_time, copy_out, 1),
	TASK("wcet", take_wcet, n_points, 0, LINE(rt_task, wcet_line)),
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
		if (keys[i].line > 0)
			*(unsigned *)(void *)((char *)reader->target + keys[i].line) = place->line;
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
