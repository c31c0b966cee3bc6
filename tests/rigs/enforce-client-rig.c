/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "enforce-client-rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include "sys/process.h"
#include "core/observe/attribution.h"

void on_lost(void *userdata)
{
	struct stage *stage = userdata;

	stage->lost++;
}

void on_done(void *userdata, const struct asker_request *request, int r, const void *packet,
	     const char *why)
{
	const struct enforce_answer *answer = packet;
	struct stage *stage = userdata;
	struct heard *heard = &stage->heard[stage->n++];

	CHECK(stage->n <= 600);
	heard->tag = request->tag;
	heard->r = answer ? answer->r : r;
	snprintf(heard->sentence, sizeof(heard->sentence), "%s", answer ? answer->sentence : why);
	if (stage->then)
		stage->then(stage);
}

struct stage *client_stage_new(uint64_t patience_usec)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	CHECK(stage);
	helper_listen(&stage->helper);
	CHECK(sd_event_new(&stage->event) >= 0);
	CHECK(asker_new(stage->event, &enforce_helper, stage->helper.path, patience_usec, on_done,
			on_lost, stage, &stage->enforce) == 0);
	return stage;
}

void client_stage_end(struct stage *stage)
{
	CHECK(!asker_free(stage->enforce));
	sd_event_unref(stage->event);
	helper_stop(&stage->helper);
	free(stage);
}

void run_until(struct stage *stage, unsigned n)
{
	AWAIT_LOOP(stage->event, stage->n >= n);
	CHECK(stage->n == n);
}

void run_all_there_is(struct stage *stage)
{
	while (sd_event_run(stage->event, 0) > 0)
		;
}

int freeze(struct stage *stage, const char *unit, uint64_t tag)
{
	return enforce_ask(stage->enforce, ENFORCE_FREEZE, STDIN_FILENO, 1, 0, unit, tag,
			   stage->why, sizeof(stage->why));
}

int thaw(struct stage *stage, const char *unit, uint64_t tag)
{
	return enforce_ask(stage->enforce, ENFORCE_THAW, -1, 0, 0, unit, tag, stage->why,
			   sizeof(stage->why));
}

int kill_it(struct stage *stage, int pidfd, uint64_t tag)
{
	struct observed row = { 0 };

	if (process_pid_of_pidfd(pidfd, &row.pid) == 0)
		process_describe(&row);
	return enforce_ask(stage->enforce, ENFORCE_KILL, pidfd, row.start_time, 0, "", tag,
			   stage->why, sizeof(stage->why));
}

bool heard(const struct stage *stage, unsigned i, uint64_t tag, int r, const char *words)
{
	const struct heard *row = &stage->heard[i];

	if (i < stage->n && row->tag == tag && row->r == r && strstr(row->sentence, words) &&
	    (r != 0 || row->sentence[0] == '\0'))
		return true;
	fprintf(stderr, "tag %d: %d: %s\n", (int)row->tag, row->r, row->sentence);
	return false;
}

bool client_says(const struct stage *stage, const char *words)
{
	if (strstr(stage->why, words))
		return true;
	fprintf(stderr, "it says: %s\n", stage->why);
	return false;
}

int accept_one(const struct stage *stage)
{
	int fd = accept4(stage->helper.listening, NULL, NULL, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

void client_answer(int fd, const char *text)
{
	struct enforce_answer answer = { 0 };
	const void *packet = &answer;
	size_t size = sizeof(answer);
	int n = 0;

	if (sscanf(text, "error %" SCNd32 " %n", &answer.r, &n) == 1) {
		answer.r = -answer.r;
		snprintf(answer.sentence, sizeof(answer.sentence), "%s", text + n);
	} else if (strcmp(text, "ok") != 0) {
		packet = text;
		size = strlen(text);
	}
	CHECK(send(fd, packet, size, MSG_NOSIGNAL) == (ssize_t)size);
}
