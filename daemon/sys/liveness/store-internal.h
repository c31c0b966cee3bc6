/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the two files of the store share: store-start.c finds it, store.c uses it. */

#include "sys/liveness/store.h"

struct message;
struct waiter;

struct store {
	sd_event *event;
	unsigned max;
	char *address;
	int socket; /* -1: there is no store */

	int next_fd, end_fd; /* what an earlier process kept */
	char *names, *next_name;

	struct message *queue, **queue_end;
	unsigned n_kept_back; /* of the queue: those of kind KEEP */
	sd_event_source *room;

	struct waiter *waiters, **waiters_end;
	int barrier; /* hangs up when the manager has passed it; -1: none */
	sd_event_source *passed;
	sd_event_source *deliver; /* for callbacks that are due outside of the loop */
	int failed;               /* went wrong on its way since the last barrier went out … */
	int barrier_failed;       /* … and before that */
};

/* store_new() for a manager that may take so long to answer. */
int store_new_patient(sd_event *event, int patience_msec, struct store **ret,
		      struct diagnostics *diagnostics);

/* What LISTEN_FDS and the like say. */
int store_take_over(struct store *store, struct diagnostics *diagnostics);
/* Leaves the socket -1, and a note, where there is no store. */
int store_find_manager(struct store *store, int patience_msec, struct diagnostics *diagnostics);
