/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small files that are replaced as a whole, and files that are set aside. */

#include <stddef.h>

#include "util/diagnostics.h"

#define STATE_FILE_MAX (1024U * 1024U)

/* The name of a file while it is written; a crash may leave it behind. */
#define STATE_NEW_FILE ".new"

/* Writes a file beside and renames it: after a failure the old file, if any, is unchanged. */
int state_put_file(int directory, const char *name, const char *text);

/* Reads a regular file of up to STATE_FILE_MAX bytes and adds a NUL. -ENOENT; -ENOMEM, -EMFILE and
 * -ENFILE, after which it can be read later; -EINVAL for anything else. */
int state_read_file(int directory, const char *name, char **ret, size_t *ret_length);

/* A directory of the runtime directory, for moving its files to RUNTIME/set-aside. */
struct state_place {
	int runtime;       /* the runtime directory */
	const char *path;  /* its path, for diagnostics */
	int directory;     /* of the file: the runtime directory or one in it */
	const char *below; /* "" or its name and "/", for diagnostics */
};

/* Moves a file to RUNTIME/set-aside, where an administrator can read it, under another name if that
 * one exists, and adds a diagnostic with the reason. */
void state_move_aside(const struct state_place *place, const char *name, const char *why,
		      struct diagnostics *diagnostics);

/* Removes STATE_NEW_FILE. */
void state_remove_new(const struct state_place *place, struct diagnostics *diagnostics);
