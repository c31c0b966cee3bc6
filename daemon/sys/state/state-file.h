/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small files of gpuarbd, in a directory of its own. */

#include <stdbool.h>
#include <stddef.h>

#define STATE_FILE_MAX (1024U * 1024U)
#define STATE_FILE_NEW \
	".new" /* the name of a file while it is written; a crash may leave it behind */

/* Writes a file beside and renames it: after a failure the old file, if any, is unchanged. sync:
 * waits until the contents are on the disk. */
int state_file_put(int directory, const char *name, const char *text, bool sync);

int state_file_remove(int directory, const char *name); /* 0 also if there is no file */

/* Reads a regular file of up to 1 MiB and adds a NUL. -ENOENT; -ENOMEM, -EMFILE and -ENFILE, after
 * which it can be read later; -EINVAL for anything else. */
int state_file_read(int directory, const char *name, char **ret, size_t *ret_length);
