/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The files of the emulated kernel, by path below one root, for the front end:
 *
 *	dev/kfd, dev/dri/renderD128…             devices
 *	kfd/topology/…                          from the topology directory
 *	kfd/proc/PID/{pasid,queues/Q/{gpuid,size,type},vram_*,sdma_*,stats_*}
 *	debug/kfd/{hqds,mqds,rls}                as kfd_debugfs.c prints them
 *	debug/kfdsim/state                       JSON: everything that was and is
 *	debug/kfdsim/control                     write: sim_fault()
 *
 * Texts are made when they are read. Paths have no leading slash; "" is the root. When a GPU goes,
 * the nodes behind its own move up, and its render node goes.
 */

#include <stdbool.h>
#include <stddef.h>

#include "kfdsim/driver/sim.h"

enum tree_kind { TREE_NONE, TREE_DIRECTORY, TREE_TEXT, TREE_CONTROL, TREE_KFD, TREE_RENDER };

struct tree;

/* topology: a directory with topology/ (generation_id, nodes/) in it, as fake-sysfs writes it
 * to class/kfd/kfd; the path is copied, the files are read when they are asked for. The sim
 * outlives the tree. -ENOENT and the like: there is no topology/nodes. */
int tree_new(struct sim *sim, const char *topology, struct tree **ret);
struct tree *tree_free(struct tree *tree);

enum tree_kind tree_find(struct tree *tree, const char *path);

/* Calls each() for every entry of a directory; stops at the first negative return, which it
 * returns. -ENOTDIR, -ENOENT. */
int tree_each(struct tree *tree, const char *path,
	      int (*each)(const char *name, enum tree_kind kind, void *userdata), void *userdata);

/* The whole text, *ret for free(). -ENOENT, -EISDIR, -ENOMEM; -EINVAL for what is no text. */
int tree_read(struct tree *tree, const char *path, char **ret, size_t *ret_size);

/* One fault, with a newline behind it or not. 0, or -EINVAL with a sentence in why. */
int tree_write(struct tree *tree, const char *path, const char *text, size_t size, uint64_t now_ns,
	       char *why, size_t why_size);
