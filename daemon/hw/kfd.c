/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

/* AMD GPUs as the kernel driver amdkfd shows them in sysfs. /dev/kfd stays closed: a
 * process that has it open keeps everybody from changing partition modes. */
struct hw {
	struct kfd_dir sys;
};

static void kfd_close(struct hw *hw)
{
	if (!hw)
		return;

	kfd_dir_close(&hw->sys);
	free(hw);
}
DEFINE_CLEANUP(struct hw *, kfd_close)

static int kfd_open(const char *where, struct hw **ret, struct diagnostics *diagnostics)
{
	_cleanup_(kfd_closep) struct hw *hw = calloc(1, sizeof(*hw));
	int n, r;

	if (!hw)
		return -ENOMEM;

	if (!where)
		where = "/sys";
	n = snprintf(hw->sys.path, sizeof(hw->sys.path), "%s", where);
	hw->sys.fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = hw->sys.fd < 0 ? -errno : (size_t)n >= sizeof(hw->sys.path) ? -ENAMETOOLONG : 0;
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s: %s", where, kfd_trouble(r));
		return r;
	}
	*ret = TAKE_PTR(hw);
	return 0;
}

static int kfd_list(struct hw *hw, struct gpu_info *gpus, size_t max,
		    struct diagnostics *diagnostics)
{
	return kfd_topology_list(&hw->sys, gpus, max, diagnostics);
}

static uint64_t kfd_generation(struct hw *hw)
{
	return kfd_topology_generation(&hw->sys);
}

static int kfd_use(struct hw *hw, struct hw_use *uses, size_t max)
{
	return kfd_use_read(&hw->sys, uses, max);
}

const struct hw_ops hw_kfd = {
	.name = "kfd",
	.open = kfd_open,
	.close = kfd_close,
	.list = kfd_list,
	.generation = kfd_generation,
	.use = kfd_use,
};
