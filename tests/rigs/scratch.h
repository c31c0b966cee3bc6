/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A temporary directory of a test. Files in it have mode 0644 with any umask. */

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

/* Where tests make directories, some with thousands of files: /dev/shm where programs can be started
 * from there, or else /tmp. */
const char *scratch_root(void);

/* Makes a directory there, and returns its path. */
void scratch_directory(char *ret, size_t size);

/* Removes a directory with all that is in it. Returns as nftw(3) does. */
int scratch_remove(const char *path);

/* A socket of this type that has the path as its name, in place of one that was there. */
int scratch_bind(const char *path, int type);

struct scratch scratch_new(void);

void scratch_done(const struct scratch *scratch);

/* The path of a name in the directory, in one of 64 buffers that are used in turn. */
const char *scratch_at(const struct scratch *scratch, const char *name);

const char *scratch_put(const struct scratch *scratch, const char *name, const void *bytes,
			size_t size);

const char *scratch_write(const struct scratch *scratch, const char *name, const char *text);

const char *scratch_mkdir(const struct scratch *scratch, const char *name);

/* The number of entries of a directory, without names that begin with a dot. */
unsigned count_entries(const char *path);

/* The open file descriptors of this process, and the one that counts them. */
unsigned count_fds(void);

/* A sysfs tree with GPU 7 and compute queues of process 5 on it; free it with scratch_done(). */

void queue_tree_add(const struct scratch *tree, unsigned queue);

struct scratch queue_tree_new(unsigned queues);
