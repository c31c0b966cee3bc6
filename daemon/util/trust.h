/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whom a file can be believed of: whoever can change it, or put another in its place. */

#include <sys/types.h>

#include "util/diagnostics.h"

struct trust {
	uid_t owners[2]; /* beside root; 0: nobody else */
};

/* The user that gpuarbd runs as where it is installed, 0 where there is none. */
uid_t trust_service(void);

/* Opens a file or directory as open(2) does, with O_CLOEXEC and without ever waiting, but not
 * where others than root and the owners could change what the path leads to. Theirs alone must
 * be, and only who owns it may write,
 *
 *	what is opened, but for /dev/null, which says nothing;
 *	every directory on the way to it, from "/" and also behind symbolic links. One that is sticky
 *	others may write, for what is there stays, but not the last one;
 *	every symbolic link on the way, as far as its owner goes.
 *
 * Returns the fd, -ENOENT if there is no such file (no note), else -EINVAL with a note of what
 * is wrong and what would help, which is added once. */
int trust_open(const char *path, const struct trust *trust, int flags,
	       struct diagnostics *diagnostics);
