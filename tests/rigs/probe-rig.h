/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A probe, and the directory that stands for debugfs. */

#include <string.h>
#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "await.h"
#include "check-cond.h"
#include "scratch.h"
#include "helpers/debugfs-reader.h"

#define NOBODY 65534U

struct stage {
	struct scratch scratch;
	sd_event *event;
	struct probe_files files;
	struct probe *probe;
	char *text; /* all pieces until now, and a NUL */
	size_t size, total;
	unsigned pieces;
	bool forgets; /* the text: only its size counts */
	bool ended;
	int r;
	char why[300];
};

/* debugfs: it has a directory for that; else a socket. */
void probe_stage_new(struct stage *stage, bool debugfs);

/* Other files instead of kfd/mqds. */
void probe_stage_read(struct stage *stage, const struct probe_files *files);

void probe_stage_end(struct stage *stage);

int start(struct stage *stage);

/* One turn of the event loop that waits for nothing. -EAGAIN: the text has not ended. */
int go_on(struct stage *stage);

void wait_readable(const struct stage *stage);

bool is_quiet(const struct stage *stage);

int finish(struct stage *stage);

bool probe_says(const struct stage *stage, const char *words);

void check_no_children(void);

rlim_t open_files(void);
