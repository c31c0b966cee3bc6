/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <time.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
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

static void print_event(const char *kind, const char *what, void *userdata)
{
	const struct command *command = userdata;
	struct json_object *event;
	char time[64];

	write_time(time, sizeof(time));
	if (!command->json) {
		print_line(stdout, "%s%s%s%s%s", command->time ? time : "",
			   command->time ? " " : "", kind, *what ? " " : "", what);
		fflush(stdout);
		return;
	}
	event = json_map(NULL, NULL);
	json_text(event, "time", time);
	json_text(event, "event", kind);
	json_text_known(event, "what", what);
	json_print_line(stdout, event);
}

int run_monitor(struct command *command)
{
	int r = gpuarb_watch(command->gpuarb, GPUARB_FOREVER, print_event, command);

	return r < 0 ? fail_asked(command, r) : EXIT_OK;
}
