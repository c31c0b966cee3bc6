/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process under a seccomp filter that reports calls which create queues, for the method Cap. It makes
 * its calls on /dev/null, which refuses them with ENOTTY. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FILTERED_SAMPLES 2000

enum filtered_command {
	FILTERED_CREATE = 'c',
	FILTERED_PROVE = 'p',   /* the call on no file */
	FILTERED_FORK = 'f',    /* a call in a child, which stays as a zombie */
	FILTERED_LEAVE = 'v',   /* a child that lives on, and ends with the test */
	FILTERED_FLOOD = 'l',   /* calls without end; no answer */
	FILTERED_MEASURE = 'm', /* the time of FILTERED_SAMPLES calls, one each millisecond */
	FILTERED_OTHER = 'o',   /* and of calls that create no queue, without a pause */
};

/* Memory of both processes. */
struct filtered_shared {
	volatile unsigned calls; /* of a flood */
	uint64_t nsec[FILTERED_SAMPLES];
};

struct filtered {
	pid_t pid;
	int pidfd, socket;
	int listener; /* the test's copy; -1: it has none */
	struct filtered_shared *shared;
};

/* filter false: it has no filter and no listener. */
struct filtered filtered_start(bool filter);
void filtered_end(struct filtered *process);

void filtered_say(const struct filtered *process, enum filtered_command command);
int filtered_hear(const struct filtered *process); /* the errno that the command ended with */
int filtered_after(const struct filtered *process, enum filtered_command command); /* both */
