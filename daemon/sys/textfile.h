/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A small file in memory, read without trust in what it is or whose. */

#include <stdbool.h>
#include <stddef.h>

#include "core/notes.h"

#define TEXTFILE_MAX (1024U * 1024U)

/* Refuses whatever is not a regular file of up to TEXTFILE_MAX bytes, but takes /dev/null
 * for an empty one. trusted: refuses a file, or a directory that holds it, that others
 * than root or this user own or can write. The text gets a NUL at its end and may hold
 * others. Returns -ENOENT if there is no such file (no note), -EINVAL if it was refused or
 * cannot be read, -ENOMEM; each with a note. */
int textfile_load(const char *path, bool trusted, char **ret, size_t *ret_size,
		  struct notes *notes);
