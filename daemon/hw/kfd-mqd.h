/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The text of debugfs kfd/mqds, which has the descriptor of every queue as the hardware gets it,
 * as pqm_debugfs_mqds() in drivers/gpu/drm/amd/amdkfd/kfd_process_queue_manager.c prints it
 * (Linux 6.1 to 6.12). Pure: who reads the text is somebody else.
 *
 *	Process 4711 PASID 0x8001:
 *	  Compute queue on device 3a7c
 *	    00000000: c0310800 00000000 …   8 words a line, one descriptor for each XCC
 */

#include <stddef.h>

#include "core/mask/gpu-info.h"
#include "core/mask/observed-mask.h"

/*
 * Every compute queue in the text on one of these GPUs, in the order of the text: within a process
 * the newest first. *ret is for free(), NULL where there is none.
 *
 * Passed over: SDMA and debug queues, whose descriptors have no masks (and are there once for
 * each XCC of the compute queue before them: the kernel does not set its count back); GPUs that are
 * not in gpus[], for they come and go; processes without a queue.
 *
 * Returns -EBADMSG where the text is not what the kernel prints, or not all of it, and in why
 * what is wrong on which line; -ENOMEM. A text that ends between two queues cannot be told
 * from a whole one, and a text without a process may come from a reader that could read nothing:
 * what is absent here was not seen, and nothing more.
 */
int kfd_mqds_parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		   struct observed_mask **ret, size_t *ret_n, char *why, size_t why_size);
