/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What <linux/fuse.h> lacks before protocol 7.40 (Linux 6.9): passthrough. Layouts and numbers
 * as in include/uapi/linux/fuse.h; the names are ours, so that newer headers do no harm.
 */

#include <linux/fuse.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define WIRE_MINOR 40U
#define WIRE_INIT_EXT (1U << 30)
#define WIRE_PASSTHROUGH (1U << 5) /* in flags2 */
#define WIRE_OPEN_DIRECT_IO (1U << 0)
#define WIRE_OPEN_NO_FLUSH (1U << 5)
#define WIRE_OPEN_PASSTHROUGH (1U << 7)

struct wire_init_out {
	uint32_t major, minor, max_readahead, flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write, time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2, max_stack_depth;
	uint32_t unused[6];
};
_Static_assert(sizeof(struct wire_init_out) == 64, "as struct fuse_init_out");

struct wire_open_out {
	uint64_t handle;
	uint32_t flags;
	int32_t backing_id;
};
_Static_assert(sizeof(struct wire_open_out) == 16, "as struct fuse_open_out");

struct wire_backing {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};

#define WIRE_BACKING_OPEN _IOW(229, 1, struct wire_backing)
