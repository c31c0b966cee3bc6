/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What gpuarb-probe sends over its SOCK_SEQPACKET socket: a message for each GPU, with PROBE_FDS event
 * file descriptors, or with none for a card whose compute partition mode can be changed; and then the
 * end. It reads nothing.
 */

#include <stdint.h>

#define PROBE_PROTOCOL 1U
#define PROBE_FDS \
	2U /* resets and throttling; everything else, which cannot drive those out of the buffer */

enum probe_kind { PROBE_GPU = 1, PROBE_END };

struct probe_message {
	uint32_t protocol;
	uint32_t kind;
	int32_t error;       /* END: 0, or a negative errno and text */
	uint32_t kfd_gpu_id; /* GPU, and what libhsakmt says of it */
	uint32_t gfx_target; /* 90006 is gfx906 */
	uint32_t cus, queue_slots, sdma_queues, sdma_xgmi_queues;
	char text[128]; /* ends with a NUL */
};
