/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Debian's kernel headers leave <drm/drm.h> to libdrm, which has it elsewhere. All that
 * <linux/kfd_ioctl.h> wants of it are the types. Add tests/kfdsim/uapi to the include path. */

#include <linux/types.h>
#include <sys/ioctl.h>
