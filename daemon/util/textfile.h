/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A small file in memory, read without trust in what it is or whose. */

#include <stddef.h>

#include "util/diagnostics.h"
#include "util/trust.h"

#define TEXTFILE_MAX (1024U * 1024U)

/* Refuses whatever is not a regular file of up to TEXTFILE_MAX bytes, but takes /dev/null
 * for an empty one; and what trust_open() refuses, unless trust is NULL: then it may be
 * anybody's. The text gets a NUL at its end and may hold others. Returns
 * -ENOENT if there is no such file (no note), -EINVAL if it was refused or cannot be read,
 * -ENOMEM; each with a note. */
int textfile_load(const char *path, const struct trust *trust, char **ret, size_t *ret_size,
		  struct diagnostics *diagnostics);
