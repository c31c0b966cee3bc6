/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Saved leases: RUNTIME/leases/ID.json, one file per lease, written beside and renamed. Nobody
 * learns of a lease before its file is in place.
 */

#include <stddef.h>
#include <stdint.h>

#include "util/diagnostics.h"

struct arbiter;
struct lease;
struct state;
struct state_lease;

/* Opens and locks the directory and makes what is missing in it. -EBUSY: another daemon uses it.
 * -errno with a diagnostic. The state directory outlives a boot, and has the next id: without it (NULL), or
 * if it cannot be used (a diagnostic), ids begin at 1 again when the runtime directory is new. */
int state_open(const char *runtime_directory, const char *state_directory, struct state **ret,
	       struct diagnostics *diagnostics);
struct state *state_close(struct state *state);
DEFINE_CLEANUP(struct state *, state_close)

/* Writes the file of the lease. -errno: the old file, if any, is unchanged. */
int state_save(struct state *state, const struct arbiter *arbiter, struct lease *lease);

/* The same for several leases: all files, or none. */
int state_save_group(struct state *state, const struct arbiter *arbiter, struct lease **leases,
		     size_t n);
int state_forget(struct state *state, uint64_t id); /* 0 also if there is no file */

/* The first id that no earlier daemon used. Ids are reserved on disk in blocks: call
 * state_ids_until() before `id` is used. A daemon that ends calls state_ids_end(), so that the next
 * one continues with next_id and not with the next block. */
uint64_t state_first_id(const struct state *state);
int state_ids_until(struct state *state, uint64_t id);
void state_ids_end(struct state *state, uint64_t next_id);

/* Ids of the saved leases, ascending; for free(). Other files are set aside with a diagnostic.
 * -errno with a diagnostic. */
int state_list(struct state *state, uint64_t **ret, size_t *ret_n, struct diagnostics *diagnostics);

/* Reads one lease for arbiter_adopt(), which finds what contradicts itself or other leases.
 * -EINVAL: the file is damaged, foreign or of another version, and has been set aside with a
 * diagnostic. -ENOMEM, -EMFILE, -ENFILE: the file is left, with a diagnostic, and the daemon must
 * not start without it. */
int state_load(struct state *state, const struct arbiter *arbiter, uint64_t id,
	       struct state_lease *ret, struct diagnostics *diagnostics);

/* Reads the file of a lease that is in force. -errno. */
int state_read(struct state *state, const struct arbiter *arbiter, uint64_t id,
	       struct state_lease *ret);

/* Moves the file of a lease to RUNTIME/set-aside, under another name if that one exists, and adds a
 * diagnostic with the reason. */
void state_set_aside(struct state *state, uint64_t id, const char *why,
		     struct diagnostics *diagnostics);

/*
 * Drained GPUs (as bits): RUNTIME/drained, one name per line; no file: none. A line that cannot be
 * used is a diagnostic. An absent GPU stays in the file: an administrator who drained a GPU and
 * took it out of the machine does not want it back in service because the daemon restarted.
 */
int state_save_drained(struct state *state, const struct arbiter *arbiter, uint64_t drained);
void state_load_drained(struct state *state, struct arbiter *arbiter,
			struct diagnostics *diagnostics);

/* The accounting, STATE/usage, or RUNTIME/usage without a directory that outlives a boot; not synced to
 * the disk. */
int state_save_usage(struct state *state, const char *text);
int state_load_usage(struct state *state, char **ret); /* -ENOENT; *ret is for free() */
