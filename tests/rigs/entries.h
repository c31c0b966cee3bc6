/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <dirent.h>

#include "check-cond.h"

/* How many there are in a directory, without those that begin with a dot: fds that are open,
 * leases that are saved. */
static inline unsigned count_entries(const char *path)
{
	const struct dirent *entry;
	DIR *directory = opendir(path);
	unsigned n = 0;

	CHECK(directory);
	while ((entry = readdir(directory)))
		n += entry->d_name[0] != '.';
	closedir(directory);
	return n;
}
