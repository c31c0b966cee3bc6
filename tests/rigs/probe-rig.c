/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe-rig.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_USEC UINT64_C(600000000) /* reached by a failure only */

static int on_piece(void *userdata, const char *text, size_t size, char *, size_t)
{
	struct stage *stage = userdata;

	CHECK(size > 0 && size <= PROBE_PIECE_MAX);
	stage->pieces++;
	stage->total += size;
	if (stage->forgets)
		return 0;
	CHECK(stage->size == 0 || stage->text[stage->size - 1] == '\n');
	stage->text = realloc(stage->text, stage->size + size + 1);
	CHECK(stage->text);
	memcpy(stage->text + stage->size, text, size);
	stage->size += size;
	stage->text[stage->size] = '\0';
	return 0;
}

static void on_done(void *userdata, int r, const char *why)
{
	struct stage *stage = userdata;

	CHECK(!stage->ended);
	stage->ended = true;
	stage->r = r;
	snprintf(stage->why, sizeof(stage->why), "%s", why);
}

void probe_stage_read(struct stage *stage, const struct probe_files *files)
{
	bool debugfs = stage->files.socket == NULL;

	stage->probe = probe_free(stage->probe);
	CHECK(!stage->probe);
	CHECK(probe_new(stage->event, debugfs ? stage->scratch.path : NULL, files, PATIENCE_USEC,
			on_piece, on_done, stage, &stage->probe) == 0);
}

void probe_stage_new(struct stage *stage, bool debugfs)
{
	*stage = (struct stage){ .scratch = scratch_new() };
	CHECK(sd_event_new(&stage->event) >= 0);
	if (debugfs) {
		scratch_mkdir(&stage->scratch, "kfd");
		probe_stage_read(stage, &probe_mqds);
		return;
	}
	stage->files = probe_mqds;
	stage->files.socket = strdup(scratch_at(&stage->scratch, "socket"));
	probe_stage_read(stage, &stage->files);
}

void probe_stage_end(struct stage *stage)
{
	free(stage->text);
	stage->probe = probe_free(stage->probe);
	CHECK(!stage->probe);
	sd_event_unref(stage->event);
	free((char *)(uintptr_t)stage->files.socket);
	scratch_done(&stage->scratch);
}

int start(struct stage *stage)
{
	free(stage->text);
	stage->text = calloc(1, 1);
	CHECK(stage->text);
	stage->size = stage->total = stage->pieces = 0;
	stage->ended = false;
	return probe_start(stage->probe, stage->why, sizeof(stage->why));
}

static int result(struct stage *stage)
{
	bool ended = stage->ended;

	stage->ended = false;
	return ended ? stage->r : -EAGAIN;
}

int go_on(struct stage *stage)
{
	CHECK(sd_event_run(stage->event, 0) >= 0);
	return result(stage);
}

void wait_readable(const struct stage *stage)
{
	AWAIT_FD(sd_event_get_fd(stage->event), POLLIN);
}

bool is_quiet(const struct stage *stage)
{
	struct pollfd event = { .fd = sd_event_get_fd(stage->event), .events = POLLIN };

	return poll(&event, 1, 0) == 0;
}

int finish(struct stage *stage)
{
	AWAIT_LOOP(stage->event, stage->ended);
	return result(stage);
}

bool probe_says(const struct stage *stage, const char *words)
{
	if (strstr(stage->why, words))
		return true;
	fprintf(stderr, "it says: %s\n", stage->why);
	return false;
}

void check_no_children(void)
{
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

rlim_t open_files(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	CHECK(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}
