/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "util/text-stream.h"

/* "2026-11-23T04:31:00.123Z" */
static void write_time(char *buf, size_t size)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, size - n, ".%03uZ", (unsigned)(now.tv_nsec / 1000000));
}

/* A tenth of the time, snapshots may be taken; and for a second at once, if there were none before. */
#define SNAPSHOT_SHARE 10U
#define SNAPSHOT_BURST_USEC 10000000U /* with the rests that follow */

/* How long a snapshot waits for gpuarbd: the line that reports that gpuarbd went must not wait longer. The
 * calls that watch waits for have the time of every call: a slow gpuarbd does not end the monitor. */
#define ANSWER_USEC 2000000U
#define CALL_USEC 25000000U

struct monitor {
	struct command *command;
	uint64_t rests_until;      /* of lease_clock_usec(): when all rests are over */
	struct json_object *shown; /* GPUs by name, leases by number, as of the last line of each */
};

/* ---- what changed ----------------------------------------------------------------------------- */

static void add_change(struct json_object *list, const char *key, struct json_object *from,
		       struct json_object *to)
{
	struct json_object *map = json_map(list, NULL);

	json_text(map, "key", key);
	json_value(map, "from", json_object_get(from));
	json_value(map, "to", json_object_get(to));
}

static bool is_list(struct json_object *value)
{
	return json_object_is_type(value, json_type_array);
}

static bool is_map(struct json_object *value)
{
	return json_object_is_type(value, json_type_object);
}

static void compare(struct json_object *changes, const char *key, struct json_object *from,
		    struct json_object *to);

static void compare_maps(struct json_object *changes, const char *key, struct json_object *from,
			 struct json_object *to)
{
	const char *dot = *key ? "." : "";
	char path[256];

	json_object_object_foreach(to, name, value)
	{
		snprintf(path, sizeof(path), "%s%s%s", key, dot, name);
		compare(changes, path, json_object_object_get(from, name), value);
	}
	json_object_object_foreach(from, gone, old)
	{
		snprintf(path, sizeof(path), "%s%s%s", key, dot, gone);
		if (!json_object_object_get_ex(to, gone, NULL))
			compare(changes, path, old, NULL);
	}
}

/* Adds each value that differs, with the place where it is: "partitions[0].cus". */
static void compare(struct json_object *changes, const char *key, struct json_object *from,
		    struct json_object *to)
{
	size_t n = is_list(to) ? json_object_array_length(to) : 0;
	char path[256];

	if (json_object_equal(from, to))
		return;
	if (is_map(from) && is_map(to)) {
		compare_maps(changes, key, from, to);
	} else if (n > 0 && is_list(from) && json_object_array_length(from) == n) {
		for (size_t i = 0; i < n; i++) {
			snprintf(path, sizeof(path), "%s[%zu]", key, i);
			compare(changes, path, json_object_array_get_idx(from, i),
				json_object_array_get_idx(to, i));
		}
	} else {
		add_change(changes, key, from, to);
	}
}

/* Without what gpuarbd sends no event for: it differs in every snapshot. */
static struct json_object *describe_gpu(const struct command *command, size_t i)
{
	static const char *const silent[] = { "clients", "observed", "masks_observed", "unseen" };
	struct json_object *gpu = json_gpu(NULL, command->view, i);

	for (size_t k = 0; k < ARRAY_SIZE(silent); k++)
		json_object_object_del(gpu, silent[k]);
	return gpu;
}

/* NULL: the snapshot does not have it. */
static struct json_object *describe(const struct command *command, const char *what, bool is_lease)
{
	uint64_t id = is_lease ? strtoull(what, NULL, 10) : 0;

	for (size_t i = 0; is_lease && i < command->n_leases; i++)
		if (command->leases[i].id == id)
			return json_lease(NULL, command->view, i);
	for (size_t i = 0; !is_lease && i < command->n_gpus; i++)
		if (strcmp(command->gpus[i].name, what) == 0)
			return describe_gpu(command, i);
	return NULL;
}

/* Takes the state over from the snapshot. Returns what has changed since the last line; NULL: it is not
 * known. */
static struct json_object *take_changes(struct monitor *monitor, const char *what, bool is_lease)
{
	struct json_object *now = describe(monitor->command, what, is_lease), *before;
	struct json_object *changes = NULL;

	if (!now)
		return NULL;
	if (json_object_object_get_ex(monitor->shown, what, &before)) {
		changes = json_list(NULL, NULL);
		compare(changes, "", before, now);
	}
	json_value(monitor->shown, what, now);
	return changes;
}

static void take_all(struct monitor *monitor)
{
	const struct command *command = monitor->command;
	char decimal[24];

	for (size_t i = 0; i < command->n_gpus; i++)
		json_value(monitor->shown, command->gpus[i].name, describe_gpu(command, i));
	for (size_t i = 0; i < command->n_leases; i++) {
		snprintf(decimal, sizeof(decimal), "%" PRIu64, command->leases[i].id);
		json_value(monitor->shown, decimal, json_lease(NULL, command->view, i));
	}
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* Takes a snapshot for the names and states of leases. Returns false if there is only an older one. */
static bool refresh(struct monitor *monitor)
{
	uint64_t before = lease_clock_usec();
	int r;

	if (monitor->rests_until < before)
		monitor->rests_until = before;
	if (monitor->rests_until - before > SNAPSHOT_BURST_USEC)
		return false;
	gpuarb_set_timeout(monitor->command->gpuarb, ANSWER_USEC);
	r = session_refresh(monitor->command);
	gpuarb_set_timeout(monitor->command->gpuarb, CALL_USEC);
	monitor->rests_until += SNAPSHOT_SHARE * (lease_clock_usec() - before);
	return r >= 0;
}

static bool ends_with(const char *kind, const char *end)
{
	size_t n = strlen(kind), k = strlen(end);

	return n >= k && strcmp(kind + n - k, end) == 0;
}

/* A time of CLOCK_BOOTTIME, as a duration from now. */
static void write_from_now(FILE *out, uint64_t usec)
{
	uint64_t now = lease_clock_usec();
	char span[LEASE_TEXT_AGE];

	lease_text_span((usec > now ? usec - now + 999999 : now - usec) / 1000000, span);
	fprintf(out, usec > now ? "in %s" : "%s ago", span);
}

/* Of a list, how many entries it has: what is in it is for JSON. */
static void write_value(FILE *out, const char *key, struct json_object *value)
{
	if (value && (ends_with(key, "deadline") || ends_with(key, "since")))
		write_from_now(out, json_object_get_uint64(value));
	else if (is_list(value))
		fprintf(out, "%zu", json_object_array_length(value));
	else if (is_map(value))
		fputs("{...}", out);
	else
		fputs(json_line(value), out);
}

static void write_changes(FILE *out, struct json_object *changes)
{
	size_t n = changes ? json_object_array_length(changes) : 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *change = json_object_array_get_idx(changes, i);
		const char *key = json_object_get_string(json_object_object_get(change, "key"));

		fprintf(out, "%s%s ", i == 0 ? ": " : ", ", key);
		write_value(out, key, json_object_object_get(change, "from"));
		fputs(" -> ", out);
		write_value(out, key, json_object_object_get(change, "to"));
	}
}

/* "gpu-changed 0000:03:00.0: cus_free 60 -> 45, queue_slots_free 24 -> 22" */
static void print_text(const struct command *command, struct json_object *event)
{
	static const char *const keys[] = { "time", "event", "what", "name", "state" };
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);
	const char *before = "", *word;
	char *text;

	for (size_t i = command->time ? 0 : 1; out && i < ARRAY_SIZE(keys); i++) {
		word = json_object_get_string(json_object_object_get(event, keys[i]));
		if (word) {
			fprintf(out, "%s%s", before, word);
			before = " ";
		}
	}
	if (out)
		write_changes(out, json_object_object_get(event, "changes"));
	text = text_stream_close(&stream);
	print_line(stdout, "%s", text ? text : "out of memory");
	free(text);
	fflush(stdout);
}

/* Adds the name and the state of the lease. */
static void add_lease(struct json_object *event, const struct command *command, uint64_t id,
		      bool fresh)
{
	const struct gpuarb_lease_info *lease = session_find(command, id);

	json_text_known(event, "name", lease ? lease->name : "");
	json_text_known(event, "state", lease && fresh ? lease_text_state(lease) : "");
}

static void print_event(const char *kind, const char *what, void *userdata)
{
	struct monitor *monitor = userdata;
	bool is_lease = strncmp(kind, "lease-", 6) == 0, begins = strcmp(kind, "watching") == 0;
	bool changed = ends_with(kind, "-changed"), fresh;
	struct json_object *event = json_map(NULL, NULL), *changes = NULL;
	char time[64];

	write_time(time, sizeof(time));
	json_text(event, "time", time);
	json_text(event, "event", kind);
	json_text_known(event, "what", what);
	fresh = (begins || changed || ends_with(kind, "-added")) && refresh(monitor);
	if (begins)
		take_all(monitor);
	else if (fresh)
		changes = take_changes(monitor, what, is_lease);
	if (is_lease)
		add_lease(event, monitor->command, strtoull(what, NULL, 10), fresh);
	if (changed)
		json_value(event, "changes", changes);
	else
		json_object_put(changes);
	if (ends_with(kind, "-removed"))
		json_object_object_del(monitor->shown, what);
	if (changed && changes && json_object_array_length(changes) == 0) {
		json_object_put(event); /* the line before has shown it, or it is in no line */
	} else if (monitor->command->json) {
		json_print_line(stdout, event);
	} else {
		print_text(monitor->command, event);
		json_object_put(event);
	}
}

int run_monitor(struct command *command)
{
	struct monitor monitor = { .command = command, .shown = json_map(NULL, NULL) };
	int r = gpuarb_watch(command->gpuarb, GPUARB_FOREVER, print_event, &monitor);

	json_object_put(monitor.shown);
	return r < 0 ? fail_asked(command, r) : EXIT_OK;
}
