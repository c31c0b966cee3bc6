/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens files only if no untrusted user can change or replace them. */

#include <sys/types.h>

#include "util/diagnostics.h"

struct trust {
	uid_t owners[2]; /* trusted in addition to root; 0: none */
};

/* The user that an installed gpuarbd runs as, 0 if it does not exist. */
uid_t trust_service(void);

/* Opens a file or directory like open(2), with O_CLOEXEC and without ever waiting, unless another
 * user than root and the owners could change what the path leads to. Root or one of them must own,
 * and only the owner may be able to write:
 *
 *	the opened file or directory, except /dev/null;
 *	every directory of the path, from "/" on and also behind symbolic links. Other users may
 *	write to a sticky directory, because they cannot replace its entries, but not to the last
 *	directory;
 *	every symbolic link of the path (only its owner counts).
 *
 * Returns the file descriptor, -ENOENT without diagnostic if there is no such file, else -EINVAL
 * with a diagnostic that says what to change. The same diagnostic is added once. */
int trust_open(const char *path, const struct trust *trust, int flags,
	       struct diagnostics *diagnostics);
