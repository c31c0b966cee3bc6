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
	struct probe *probe;
	char *text; /* all pieces until now, and a NUL */
	size_t size;
	char why[300];
};

struct stage probe_stage_new(void);

void probe_stage_end(struct stage *stage);

/* The files of kfd/mqds, with another socket. */
struct probe_files probe_files_at(const char *socket);

int start(struct stage *stage);

/* Adds the next piece to the text. -EAGAIN: more may follow. */
int go_on(struct stage *stage);

void wait_readable(const struct stage *stage);

bool is_quiet(const struct stage *stage);

int finish(struct stage *stage);

bool probe_says(const struct stage *stage, const char *words);

/* One that was given up may take a moment to die. */
int start_patiently(struct stage *stage);

void check_no_children(void);

rlim_t open_files(void);
