/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In Linux 6.12 what is done to a GPU is done to one of its XCCs, or to a partition of it. */
#pragma once

#define OF_XCC		, uint32_t xcc
#define XCC		xcc
#define CAUSE		, NULL
#define FIRST_NODE(kfd)	((kfd)->nodes[0])
#define OF_PARTITION	, struct amdgpu_xcp *partition
#define ADDRESS_SPACE	struct amdgpu_vm

/* Further entries of the tables of a generation. */
#define FURTHER_CALLS                                    \
	.enable_debug_trap = fake_debug_trap,            \
	.disable_debug_trap = fake_debug_trap,           \
	.get_iq_wait_times = fake_wait_times,            \
	.build_grace_period_packet_info = fake_grace_period,

#include <linux/types.h>

struct amdgpu_device;

uint32_t fake_debug_trap(struct amdgpu_device *adev, bool keep, uint32_t vmid);
void fake_wait_times(struct amdgpu_device *adev, uint32_t *ret, uint32_t xcc);
void fake_grace_period(struct amdgpu_device *adev, uint32_t times, uint32_t period,
		       uint32_t *offset, uint32_t *data);
