/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#define FAKE_VRAM (64ULL << 30)

struct amdgpu_device;

/* Starts the scheduler with the queue of this descriptor. */
int fake_load_hiq(struct amdgpu_device *adev, void *mqd, uint32_t pipe, uint32_t queue,
		  uint32_t doorbell);
