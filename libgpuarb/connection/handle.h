/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The handle, struct gpuarb, and what the program can ask about its last call. */

#include "libgpuarb/connection/basics.h"
#include "libgpuarb/gpuarb.h"

DEFINE_CLEANUP(struct gpuarb *, gpuarb_close)
DEFINE_CLEANUP(struct gpuarb_view *, gpuarb_view_free)

struct connection;

struct gpuarb {
	unsigned references;     /* the program's own, and one for each lease */
	char *address;           /* of the bus */
	uint64_t answer_usec;    /* how long a call waits for its answer */
	uint64_t reconnect_usec; /* how long a call waits for a daemon or bus that went away */
	struct connection *connection; /* NULL: the next call makes one */
	const int *cancel; /* an fd; while it is readable waits end with -ECANCELED. NULL: none */
	bool interactive;  /* polkit may ask a person */
	bool stop_watch;   /* gpuarb_watch_stop() was called */
	bool daemon_seen;  /* the daemon has answered before, so it is worth waiting for */
	/* the last call was sent again after a lost connection: the daemon may have carried it out
	 * before */
	bool repeated;

	/* The last failure, and the lists of the last answer. */
	char *sentence, *error_name;
	bool no_memory;
	struct arena answer; /* what the lists point to */
	struct refusals refusals;
	const struct gpuarb_partition *plan;
	size_t n_plan;
	struct terms plan_terms;
	const struct gpuarb_effects *effects; /* of the plan; NULL: none */
};

/* Forgets the last failure and answer. */
void handle_begin(struct gpuarb *gpuarb);

/* Every public function that can fail starts with it: returns -EINVAL if an argument is NULL that
 * must not be. */
#define HANDLE_BEGIN(valid, gpuarb)     \
	do {                            \
		if (!(valid))           \
			return -EINVAL; \
		handle_begin(gpuarb);   \
	} while (0)

/* Every public function that can fail returns through it: for -ENOMEM there may be no room for a
 * sentence, so only the fact is kept. Returns r. */
int handle_end(struct gpuarb *gpuarb, int r);

/* Stores the sentence for gpuarb_last_error(). Returns error, or -ENOMEM. */
int fail(struct gpuarb *gpuarb, int error, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same with a D-Bus error name, which determines the errno. */
int fail_as(struct gpuarb *gpuarb, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);

int fail_interrupted(struct gpuarb *gpuarb); /* -EINTR */

/* -EPROTO for an answer to this method. key: the key whose type is wrong, or NULL. */
int fail_answer(struct gpuarb *gpuarb, const char *method, const char *key);

/* The errno for a D-Bus error name; -EPROTO for an unknown name. */
int error_from_name(const char *name);
