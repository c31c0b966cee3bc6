/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Leases on disk: RUNTIME/leases/ID.json, one file a lease, written beside and renamed.
 * A lease exists for the world only once its file is in place.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/change/arbiter.h"
#include "util/diagnostics.h"

struct state;

/* Opens the directory, making what is missing in it, and locks it: -EBUSY where another
 * daemon uses it. -errno, with a note. */
int state_open(const char *runtime_directory, struct state **ret, struct diagnostics *diagnostics);
struct state *state_close(struct state *state);
DEFINE_CLEANUP(struct state *, state_close)

/* Writes the lease's file. -errno, and then the file is what it was. */
int state_save(struct state *state, const struct arbiter *arbiter, const struct lease *lease);
int state_forget(struct state *state, uint64_t id); /* -ENOENT is fine: 0 */

/* The first id that no daemon before handed out. Ids are set aside on disk in blocks:
 * state_ids_until() makes sure that `id` may be used. */
uint64_t state_first_id(const struct state *state);
int state_ids_until(struct state *state, uint64_t id);

/* What a daemon before saved. */
struct state_lease {
	struct lease *lease;
	char lost[GPU_NAME_MAX]; /* a GPU of it that is not here, or is another; "": none */
	struct lease_process processes[LEASE_PROCESSES_MAX];
	size_t n_processes;
};

/* Ids of the leases that are saved, ascending; for free(). What is no file of ours is set
 * aside, with a note. -errno, with a note. */
int state_list(struct state *state, uint64_t **ret, size_t *ret_n, struct diagnostics *diagnostics);

/* Reads one, for arbiter_adopt(), which finds what contradicts itself or others. -EINVAL: it is
 * torn, foreign, or from another version; it has been set aside, with a note. -ENOMEM, -EMFILE,
 * -ENFILE: it is left as it is, with a note, and a start has to wait until there is room. */
int state_load(struct state *state, const struct arbiter *arbiter, uint64_t id,
	       struct state_lease *ret, struct diagnostics *diagnostics);

/* Moves a lease's file to RUNTIME/set-aside, under another name where one of its name is there
 * already, and says why in a note. */
void state_set_aside(struct state *state, uint64_t id, const char *why,
		     struct diagnostics *diagnostics);

/*
 * Which GPUs are drained (as bits): RUNTIME/drained, a name a line; no file: none. What cannot be read,
 * or names no GPU, is a note. A GPU that is not here stays in the file, so that it is drained
 * when it is loaded again after the GPU came back.
 */
int state_save_drained(struct state *state, const struct arbiter *arbiter, uint64_t drained);
void state_load_drained(struct state *state, struct arbiter *arbiter,
			struct diagnostics *diagnostics);
