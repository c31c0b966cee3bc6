/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A probe, and the directory that stands for debugfs. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"
#include "scratch.h"
#include "helpers/debugfs-reader.h"

#define FOR_EVER 60000 /* ms: reached by a failure only */
#define NOBODY 65534U
#define NOWHERE "/nonexistent/socket"

struct stage {
	struct scratch scratch;
	struct probe *probe;
	char *text;
	size_t size;
	char why[300];
};

static inline struct stage stage_new(void)
{
	struct stage stage = { .scratch = scratch_new() };

	scratch_mkdir(&stage.scratch, "kfd");
	CHECK(probe_new(stage.scratch.path, NOWHERE, &stage.probe) == 0);
	return stage;
}

static inline void stage_end(struct stage *stage)
{
	free(stage->text);
	stage->probe = probe_free(stage->probe);
	CHECK(!stage->probe);
	scratch_done(&stage->scratch);
}

static inline int start(struct stage *stage)
{
	return probe_start(stage->probe, stage->why, sizeof(stage->why));
}

static inline int go_on(struct stage *stage)
{
	free(stage->text);
	stage->text = NULL;
	return probe_read(stage->probe, &stage->text, &stage->size, stage->why, sizeof(stage->why));
}

static inline void wait_readable(const struct stage *stage)
{
	struct pollfd event = { .fd = probe_fd(stage->probe), .events = POLLIN };

	CHECK(poll(&event, 1, FOR_EVER) == 1);
}

static inline bool is_quiet(const struct stage *stage)
{
	struct pollfd event = { .fd = probe_fd(stage->probe), .events = POLLIN };

	return poll(&event, 1, 0) == 0;
}

static inline int finish(struct stage *stage)
{
	int r;

	while ((r = go_on(stage)) == -EAGAIN)
		wait_readable(stage);
	return r;
}

static inline bool says(const struct stage *stage, const char *words)
{
	if (strstr(stage->why, words))
		return true;
	fprintf(stderr, "it says: %s\n", stage->why);
	return false;
}

/* One that was given up may take a moment to die. */
static inline int start_patiently(struct stage *stage)
{
	int r;

	while ((r = start(stage)) == -EBUSY)
		wait_readable(stage);
	return r;
}

static inline void check_no_children(void)
{
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static inline rlim_t open_files(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	CHECK(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}
