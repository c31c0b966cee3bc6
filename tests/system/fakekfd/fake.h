/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <linux/miscdevice.h>

#include "amdgpu.h"
#include "amdgpu_reset.h"
#include "kgd_kfd_interface.h"

#define FAKE_CARDS	16
#define FAKE_VRAM	(64ULL << 30)

/* The most that a geometry has. */
#define FAKE_XCCS	8
#define FAKE_PIPES	4
#define FAKE_QUEUES	8

#define FAKE_SLOT_REGISTERS 56 /* from CP_MQD_BASE_ADDR to CP_HQD_PQ_WPTR_HI */

/* Of SDMA engines. */
#define FAKE_ENGINES	16
#define FAKE_RINGS	8
#define FAKE_RING_REGISTERS 25 /* from SDMA0_RLC0_RB_CNTL to SDMA0_RLC0_CSA_ADDR_HI */

/* A kind of GPU. An array of an odd engine can have fewer CUs than one of an even engine. */
struct fake_geometry {
	const char *name;
	uint32_t gc, sdma; /* versions of the two blocks */
	unsigned int asic, xccs, engines, arrays, cus_on_die, cus[2];
	unsigned int pipes, queues, kernel_queues; /* the last two: of each pipe */
	unsigned int sdma_engines, vmids;
	bool wgp, xgmi;
};

/* The CUs that are not fused off, in the places where amdgpu has them. */
struct fake_cus {
	uint32_t number, simd_per_cu, max_waves_per_simd, wave_front_size;
	uint32_t bitmap[8][4][4];
};

/* The queue that amdkfd writes the packets for its scheduler to. */
struct fake_scheduler {
	uint32_t *ring, words;
	uint64_t *written; /* in words since the beginning, as the driver counts them */
	uint32_t *read;
};

/* A hardware queue slot; all zero: no queue is in it. */
struct fake_slot {
	uint32_t registers[FAKE_SLOT_REGISTERS];
};

/* A queue slot of an SDMA engine. */
struct fake_ring {
	uint32_t registers[FAKE_RING_REGISTERS];
};

struct fake_card {
	struct amdgpu_device *adev;
	const struct fake_geometry *geometry;
	struct fake_cus cus;
	struct fake_scheduler scheduler;
	struct fake_slot slots[FAKE_XCCS][FAKE_PIPES][FAKE_QUEUES];
	struct fake_ring rings[FAKE_ENGINES][FAKE_RINGS];
	struct amdgpu_reset_domain reset;
	struct drm_minor render;
	struct miscdevice node;
	uint32_t sdma_doorbells[FAKE_ENGINES];
};

/* The card of this device. */
struct fake_card *fake_card_of(struct amdgpu_device *adev);
struct fake_card *fake_card_first(void);

/* ---- fake-geometry.c ---- */

/* The geometry that the parameter gpus names for a card; NULL if it names none that exists. */
const struct fake_geometry *fake_geometry_find(unsigned int card);
unsigned int fake_cards(void);

void fake_geometry_fuse(const struct fake_geometry *geometry, unsigned int card,
			struct fake_cus *ret);

/* ---- fake-render.c ---- */

int fake_render_register(struct fake_card *card);

/* Whether a file is an open render node. */
bool fake_render_is(struct file *file);

/* ---- fake-scheduler.c ---- */

/* Starts the scheduler with the queue of this descriptor. */
int fake_load_hiq(struct amdgpu_device *adev, void *mqd, uint32_t pipe, uint32_t queue,
		  uint32_t doorbell OF_XCC);

/* ---- fake-linux-*.c: where one version of Linux differs from another ---- */

void fake_linux_describe(struct fake_card *card);
bool fake_linux_start(struct fake_card *card, const struct kgd2kfd_shared_resources *resources);
