/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe-rig.h"

struct stage probe_stage_new(void)
{
	struct stage stage = { .scratch = scratch_new() };

	scratch_mkdir(&stage.scratch, "kfd");
	CHECK(probe_new(stage.scratch.path, &probe_mqds, &stage.probe) == 0);
	return stage;
}

void probe_stage_end(struct stage *stage)
{
	free(stage->text);
	stage->probe = probe_free(stage->probe);
	CHECK(!stage->probe);
	scratch_done(&stage->scratch);
}

struct probe_files probe_files_at(const char *socket)
{
	struct probe_files files = probe_mqds;

	files.socket = socket;
	return files;
}

int start(struct stage *stage)
{
	free(stage->text);
	stage->text = calloc(1, 1);
	CHECK(stage->text);
	stage->size = 0;
	return probe_start(stage->probe, stage->why, sizeof(stage->why));
}

int go_on(struct stage *stage)
{
	const char *piece;
	size_t size;
	int r = probe_read(stage->probe, &piece, &size, stage->why, sizeof(stage->why));

	if (r <= 0)
		return r;
	CHECK(size > 0 && size <= PROBE_PIECE_MAX);
	stage->text = realloc(stage->text, stage->size + size + 1);
	CHECK(stage->text);
	memcpy(stage->text + stage->size, piece, size);
	stage->size += size;
	stage->text[stage->size] = '\0';
	return -EAGAIN;
}

void wait_readable(const struct stage *stage)
{
	AWAIT_FD(probe_fd(stage->probe), POLLIN);
}

bool is_quiet(const struct stage *stage)
{
	struct pollfd event = { .fd = probe_fd(stage->probe), .events = POLLIN };

	return poll(&event, 1, 0) == 0;
}

int finish(struct stage *stage)
{
	int r;

	while ((r = go_on(stage)) == -EAGAIN)
		wait_readable(stage);
	return r;
}

bool probe_says(const struct stage *stage, const char *words)
{
	if (strstr(stage->why, words))
		return true;
	fprintf(stderr, "it says: %s\n", stage->why);
	return false;
}

int start_patiently(struct stage *stage)
{
	int r;

	while ((r = start(stage)) == -EBUSY)
		wait_readable(stage);
	return r;
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
