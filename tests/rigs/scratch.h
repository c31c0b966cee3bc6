/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A directory of its own for a test, gone afterwards. Files in it are 0644, whatever the
 * umask. */

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check-cond.h"

struct scratch {
	char path[64];
};

struct scratch scratch_new(void);

/* For thousands of files; where there is no /dev/shm, as above. */
struct scratch scratch_in_memory(void);

void scratch_done(const struct scratch *scratch);

/* The path of a name in it: a buffer of 64 that are used in turn. */
const char *scratch_at(const struct scratch *scratch, const char *name);

const char *scratch_put(const struct scratch *scratch, const char *name, const void *bytes,
			size_t size);

const char *scratch_write(const struct scratch *scratch, const char *name, const char *text);

const char *scratch_mkdir(const struct scratch *scratch, const char *name);

/* How many there are in a directory, without those that begin with a dot: fds that are open,
 * leases that are saved. */
unsigned count_entries(const char *path);

/* What sysfs shows of GPU 7 and of the compute queues that process 5 has on it, in a directory
 * of their own; scratch_done() ends it. */

void queue_tree_add(const struct scratch *tree, unsigned queue);

struct scratch queue_tree_new(unsigned queues);
