/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Leases on disk: RUNTIME/leases/ID.json, one file a lease, written beside and renamed.
 * A lease exists for the world only once its file is in place.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/arbiter.h"
#include "core/notes.h"

struct state;

/* Opens the directory, making what is missing in it. -errno, with a note. */
int state_open(const char *runtime_directory, struct state **ret, struct notes *notes);
struct state *state_close(struct state *state);
DEFINE_CLEANUP(struct state *, state_close)

/* Writes the lease's file. -errno, and then the file is what it was. */
int state_save(struct state *state, const struct arbiter *arbiter, const struct lease *lease);
int state_forget(struct state *state, uint64_t id); /* -ENOENT is fine: 0 */

/* The first id that no daemon before handed out. Ids are set aside on disk in blocks:
 * state_ids_until() makes sure that `id` may be used. */
uint64_t state_first_id(const struct state *state);
int state_ids_until(struct state *state, uint64_t id);

/* Leases of a daemon before, which have ended since nobody kept their holders: a note
 * each, and the files are gone. Returns how many. */
int state_clear(struct state *state, struct notes *notes);
