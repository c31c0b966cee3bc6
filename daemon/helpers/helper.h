/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>

/* Connects to a helper of gpuarbd's by its socket, of this type, without waiting; unit is what has
 * to be enabled for somebody to be there. Returns the fd, which is close-on-exec and does not
 * block. -EOPNOTSUPP: nobody is there; -ENAMETOOLONG, or what socket() and connect() say; why has
 * the sentence. */
int helper_connect(const char *path, int type, const char *unit, char *why, size_t size);
