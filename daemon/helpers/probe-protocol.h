/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The protocol between gpuarbd and gpuarb-probe: a request of one byte, and one answer. */

#include <stdint.h>

#define PROBE_PROTOCOL 2U
#define PROBE_GPUS 64U /* the driver has no more: MAX_GPU_INSTANCE of amdgpu.h */
#define PROBE_FDS \
	2U /* resets and throttling; everything else, which cannot drive those out of the buffer */

/* What libhsakmt says of a GPU. A subscribed one has PROBE_FDS descriptors in the answer, in the order of the GPUs; a card
 * whose compute partition mode can be changed has none. */
struct probe_gpu {
	uint32_t kfd_gpu_id;
	uint32_t subscribed; /* 0 or 1 */
	uint32_t gfx_target; /* 90006 is gfx906 */
	uint32_t cus, queue_slots, sdma_queues, sdma_xgmi_queues;
};

struct probe_answer {
	uint32_t protocol;
	int32_t error; /* 0; or a negative errno and text, and no GPU */
	uint32_t n;
	struct probe_gpu gpus[PROBE_GPUS];
	char text[128]; /* ends with a NUL */
};
