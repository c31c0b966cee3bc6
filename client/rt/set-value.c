/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Values of keys in the file of a task set. */

#include "client/rt/set-value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/settings.h"
#include "util/number.h"
#include "util/text.h"

#define CUS_MAX 1024U /* of an execution time */

bool set_value_is_name(const char *name)
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

void take_time(const struct entry *entry)
{
	take_times_of(entry, 1, ", as 250us, 11ms or 2s");
}

/* As in gpuarbd.conf(5). */
void take_interval(const struct entry *entry)
{
	take_times_of(entry, 1000, " in whole milliseconds, as 500ms or 2s");
}

void take_number(const struct entry *entry)
{
	ini_unsigned(entry->place, entry->key->name, entry->value, (unsigned)entry->key->min,
		     (unsigned)entry->key->max, entry->field);
}

void take_count(const struct entry *entry)
{
	unsigned count;

	if (ini_unsigned(entry->place, entry->key->name, entry->value, (unsigned)entry->key->min,
			 (unsigned)entry->key->max, &count) >= 0)
		*(uint64_t *)entry->field = count;
}

static void take_percent(const struct entry *entry)
{
	ini_percent(entry->place, entry->key->name, entry->value, (unsigned)entry->key->min,
		    (unsigned)entry->key->max, entry->field);
}

void take_margin(const struct entry *entry)
{
	if (strcmp(entry->value, "measured") == 0)
		*(unsigned *)entry->field = MARGIN_MEASURED;
	else
		take_percent(entry);
}

void take_neighbours(const struct entry *entry)
{
	int kind = text_index(neighbours_names, entry->value);

	if (kind >= 0)
		*(enum neighbours *)entry->field = (enum neighbours)kind;
	else
		ini_bad(entry->place, "%s: invalid word '%s': use memory or compute",
			entry->key->name, entry->value);
}

void take_policy(const struct entry *entry)
{
	int policy = text_index(rt_policy_names, entry->value);

	if (policy >= 0)
		*(enum rt_policy *)entry->field = (enum rt_policy)policy;
	else
		ini_bad(entry->place, "%s: invalid policy '%s': use fifo, np-edf or np-dm",
			entry->key->name, entry->value);
}

void take_bool(const struct entry *entry)
{
	ini_bool(entry->place, entry->key->name, entry->value, entry->field);
}

void take_dispatcher(const struct entry *entry)
{
	((struct rt_partition *)entry->target)->dispatcher_stated = true;
	take_bool(entry);
}

void take_law(const struct entry *entry)
{
	((struct rt_set *)entry->target)->law_stated = true;
	take_bool(entry);
}

void take_isolation(const struct entry *entry)
{
	int isolation = isolation_from_name(entry->value);

	if (isolation == ISOLATION_SHADER_ENGINE || isolation == ISOLATION_CU)
		*(enum isolation *)entry->field = (enum isolation)isolation;
	else
		ini_bad(entry->place,
			"%s: invalid isolation '%s' of a realtime lease: use shader-engine or cu",
			entry->key->name, entry->value);
}

void take_priority(const struct entry *entry)
{
	int priority = priority_from_name(entry->value);

	if (priority >= 0)
		*(unsigned *)entry->field = (unsigned)priority;
	else
		ini_bad(entry->place,
			"%s: invalid priority '%s': use low, normal, high or a number from 0 to 15",
			entry->key->name, entry->value);
}

void take_text(const struct entry *entry)
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
void take_user(const struct entry *entry)
{
	if (set_value_is_name(entry->value))
		take_text(entry);
	else
		ini_bad(entry->place, "%s: invalid user '%s': use one name or number",
			entry->key->name, entry->value);
}

void take_gpu(const struct entry *entry)
{
	if (*entry->value && strlen(entry->value) < RT_GPU_NAME_MAX &&
	    !strpbrk(entry->value, ", \t="))
		strcpy(entry->field, entry->value);
	else
		ini_bad(entry->place, "%s: invalid name '%s': use that of one GPU of the set",
			entry->key->name, entry->value);
}

void take_partition(const struct entry *entry)
{
	if (set_value_is_name(entry->value))
		strcpy(entry->field, entry->value);
	else if (strpbrk(entry->value, ", \t"))
		ini_bad(entry->place,
			"%s: '%s' is more than one partition: use one task for each partition",
			entry->key->name, entry->value);
	else
		ini_bad(entry->place, "%s: invalid name '%s' of a [partition NAME]",
			entry->key->name, entry->value);
}

void take_after(const struct entry *entry)
{
	struct rt_task *task = entry->target;

	task->after_line = entry->place->line;
	if (set_value_is_name(entry->value))
		strcpy(entry->field, entry->value);
	else
		ini_bad(entry->place, "%s: invalid name '%s' of a [task NAME]", entry->key->name,
			entry->value);
}

void take_deadline(const struct entry *entry)
{
	struct rt_task *task = entry->target;

	task->deadline_line = entry->place->line;
	take_time(entry);
}

void take_offset(const struct entry *entry)
{
	struct rt_task *task = entry->target;

	task->offset_line = entry->place->line;
	take_time(entry);
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
void take_often(const struct entry *entry)
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

void take_wcet(const struct entry *entry)
{
	_cleanup_(freep) char *copy = strdup(entry->value);
	struct rt_task *task = entry->target;
	char *word, *rest = copy;

	task->wcet_line = entry->place->line;
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
