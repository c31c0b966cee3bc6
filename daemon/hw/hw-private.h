/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of hw.h share. */

#include "hw/hw.h"
#include "hw/kfd-read.h"

/* /dev/kfd is never opened: a process that has it open prevents changes of the partition mode. */
struct hw {
	struct kfd_dir sys; /* without a descriptor: the GPUs are simulated */
	char maps[512];     /* what gpuarb-harvest wrote; "": nothing did */
	size_t n;           /* simulated GPUs */
	struct gpu_info gpus[];
};
