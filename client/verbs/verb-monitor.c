/* SPDX-License-Identifier: LGPL-2.1-or-later */
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

/* A snapshot that takes longer than this is followed by a rest of ten times as long. */
#define SNAPSHOT_USEC 20000U

/* How long a snapshot waits for gpuarbd: the line that reports that gpuarbd went must not wait longer. The
 * calls that watch waits for have the time of every call: a slow gpuarbd does not end the monitor. */
#define ANSWER_USEC 2000000U
#define CALL_USEC 25000000U

struct monitor {
	struct command *command;
	uint64_t rests_until; /* of lease_clock_usec() */
};

/* Takes a snapshot for the names and states of leases. Returns false if there is only an older one. */
static bool refresh(struct monitor *monitor)
{
	uint64_t before = lease_clock_usec(), took;
	int r;

	if (before < monitor->rests_until)
		return false;
	gpuarb_set_timeout(monitor->command->gpuarb, ANSWER_USEC);
	r = session_refresh(monitor->command);
	gpuarb_set_timeout(monitor->command->gpuarb, CALL_USEC);
	if (r < 0)
		return false;
	took = lease_clock_usec() - before;
	if (took > SNAPSHOT_USEC)
		monitor->rests_until = before + 10 * took;
	return true;
}

static void print_text(const struct command *command, const char *time, const char *kind,
		       const char *what, const char *name, const char *state)
{
	print_line(stdout, "%s%s%s%s%s%s%s%s%s", command->time ? time : "",
		   command->time ? " " : "", kind, *what ? " " : "", what, *name ? " " : "", name,
		   *state ? " " : "", state);
	fflush(stdout);
}

static void print_event(const char *kind, const char *what, void *userdata)
{
	struct monitor *monitor = userdata;
	bool is_lease = strncmp(kind, "lease-", 6) == 0, fresh;
	const struct gpuarb_lease_info *lease = NULL;
	const char *name, *state;
	struct json_object *event;
	char time[64];

	write_time(time, sizeof(time));
	fresh = strcmp(kind, "lease-added") == 0 || strcmp(kind, "lease-changed") == 0 ||
		strcmp(kind, "watching") == 0;
	fresh = fresh && refresh(monitor);
	if (is_lease)
		lease = session_find(monitor->command, strtoull(what, NULL, 10));
	name = lease ? lease->name : "";
	state = lease && fresh ? lease_text_state(lease) : "";
	if (!monitor->command->json) {
		print_text(monitor->command, time, kind, what, name, state);
		return;
	}
	event = json_map(NULL, NULL);
	json_text(event, "time", time);
	json_text(event, "event", kind);
	json_text_known(event, "what", what);
	if (is_lease) {
		json_text_known(event, "name", name);
		json_text_known(event, "state", state);
	}
	json_print_line(stdout, event);
}

int run_monitor(struct command *command)
{
	struct monitor monitor = { .command = command };
	int r = gpuarb_watch(command->gpuarb, GPUARB_FOREVER, print_event, &monitor);

	return r < 0 ? fail_asked(command, r) : EXIT_OK;
}
