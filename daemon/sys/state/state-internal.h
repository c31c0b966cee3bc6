/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the saved state share. */

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/state/state.h"

#define STATE_ID_MAX (UINT64_C(1) << 53) /* JSON readers hold integers up to here */
#define STATE_FILE_MAX (1024U * 1024U)

/* What is written before it is renamed; left by a crash, it is nothing. */
#define STATE_NEW_FILE ".new"

struct state {
	char *path;
	int runtime, leases; /* directories; runtime is locked */
	uint64_t first_id;
	uint64_t set_aside; /* the first id that is not set aside on disk */

	/* Drained, and not here: kept for when they come back. */
	char away[REQUEST_WANTS][GPU_NAME_MAX];
	size_t n_away;
};

/* ---- state-file.c ------------------------------------------------------------------- */

/* Puts a file in place, or leaves what was there and nothing else. */
int state_put_file(int directory, const char *name, const char *text);

/* The whole of a regular file of up to STATE_FILE_MAX bytes, and a NUL. -ENOENT; -ENOMEM,
 * -EMFILE and -ENFILE, where it can be read when there is room; -EINVAL for what is none. */
int state_read_file(int directory, const char *name, char **ret, size_t *ret_length);

/* Moves it to RUNTIME/set-aside, where a person can look at it, under another name if that
 * is taken. below: "leases/" or "", for the note. */
void state_move_aside(const struct state *state, int directory, const char *below, const char *name,
		      const char *why, struct diagnostics *diagnostics);

/* Removes the rest of a write. */
void state_remove_new(const struct state *state, int directory, const char *below,
		      struct diagnostics *diagnostics);

#define STATE_NAME_MAX 32U
void state_name_of_id(uint64_t id, char ret[static STATE_NAME_MAX]);
uint64_t state_id_of_name(const char *name); /* "17.json"; 0 if it is no name of ours */
DIR *state_open_list(const struct state *state);

/* ---- state-ids.c -------------------------------------------------------------------- */

void state_find_first_id(struct state *state, struct diagnostics *diagnostics);
