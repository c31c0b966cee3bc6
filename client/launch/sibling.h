/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <limits.h>

/* Writes the path of another program of gpuarb: beside the running one, where both were built or moved to, else
 * `installed`. Returns the path, which is ret or installed. */
const char *sibling_find(const char *name, const char *installed, char ret[static PATH_MAX]);
