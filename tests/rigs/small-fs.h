/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A runtime directory with a file system of its own that a test fills. */

#include "rig.h"

/* Runs it in a child process with a mount namespace of its own, which the daemon inherits. 77: there are no
 * such namespaces here. */
int small_fs_run(void (*play)(void));

#define SMALL_FS(play)                                                   \
	do {                                                             \
		int status_ = small_fs_run(play);                        \
                                                                         \
		if (status_ == 77)                                       \
			SKIP("mount namespaces are not to be had here"); \
		CHECK(status_ == 0);                                     \
	} while (0)

/* In that child: rig_new(), with a tmpfs that has these options as runtime directory. */
void small_fs_mount(struct rig *rig, const char *options);

/* Leaves room for so many pages, or none at all. */
void small_fs_fill(const struct rig *rig, unsigned pages);
void small_fs_empty(const struct rig *rig);

/* rig_done(), and ends the child. */
void small_fs_done(struct rig *rig);
