/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process under a seccomp filter that reports calls which create queues, for the method Cap. It makes
 * its calls on /dev/null, which refuses them with ENOTTY. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum filtered_command {
	FILTERED_CREATE = 'c',
	FILTERED_PROVE = 'p', /* the call on no file */
	FILTERED_FORK = 'f',  /* a call in a child, which stays as a zombie */
	FILTERED_LEAVE = 'v', /* a child that lives on, and ends with the test */
	FILTERED_FLOOD = 'l', /* calls without end; no answer */
};

/* Memory of both processes. */
struct filtered_shared {
	volatile unsigned calls; /* of a flood */
};

struct filtered {
	pid_t pid;
	int pidfd, socket;
	int listener; /* the test's copy; -1: it has none any more */
	struct filtered_shared *shared;
};

struct filtered filtered_start(void);
void filtered_end(struct filtered *process);

void filtered_say(const struct filtered *process, enum filtered_command command);
int filtered_hear(const struct filtered *process); /* the errno that the command ended with */
int filtered_after(const struct filtered *process, enum filtered_command command); /* both */
