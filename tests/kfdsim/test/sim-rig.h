/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A driver over a world of the test's: memory of clients in an array, answers kept, time by
 * hand. */

#include "check-cond.h"
#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define RIG_MEMORY 0x10000U /* where clients' memory begins, the same piece for all of them */
#define RIG_SIZE 0x10000U
#define RIG_ARENA (16U << 20)
#define RIG_ANSWERS 64U
#define RIG_FD 5U /* of the render node */

struct rig_answer {
	uint64_t request;
	int result;
	struct kfd_ioctl_wait_events_args args;
	size_t size;
};

struct sim_rig {
	struct sim *sim;
	struct sim_world world;
	uint8_t memory[RIG_SIZE];
	struct rig_answer answers[RIG_ANSWERS];
	unsigned n_answers;
	uint64_t request, now;
};

struct gpu_info rig_info(unsigned target, enum scheduler scheduler, unsigned queue_slots,
			 unsigned process_slots);
struct gpu_info rig_vega(void);  /* gfx906: 24 queues, 8 processes, 16 SDMA */
struct gpu_info rig_navi(void);  /* gfx1030: 8 queues */
struct gpu_info rig_navi3(void); /* gfx1100: MES */

/* Names "0000:03:00.0" and up, ids 0x1000 and up. */
void rig_start(struct sim_rig *rig, const struct gpu_info *infos, size_t n);
void rig_start_with(struct sim_rig *rig, const struct gpu_info *infos, size_t n,
		    struct sim_config config, uint64_t arena_size);
void rig_stop(struct sim_rig *rig);

uint32_t rig_id(const struct sim_rig *rig, size_t gpu);

/* With ACQUIRE_VM called for every GPU. */
struct sim_process *rig_open(struct sim_rig *rig, pid_t pid);

int rig_call(struct sim_rig *rig, struct sim_process *process, unsigned cmd, void *argument,
	     size_t size);
#define RIG_CALL(rig, process, name, args) \
	rig_call((rig), (process), AMDKFD_IOC_##name, (args), sizeof(*(args)))

void *rig_at(struct sim_rig *rig, uint64_t address); /* a client's memory, as the test sees it */

/* The argument that CREATE_QUEUE likes. */
struct kfd_ioctl_create_queue_args rig_queue_args(const struct sim_rig *rig, size_t gpu,
						  uint32_t type);
int rig_try_queue(struct sim_rig *rig, struct sim_process *process, size_t gpu, uint32_t type);
unsigned rig_queue(struct sim_rig *rig, struct sim_process *process, size_t gpu); /* AQL */
int rig_update(struct sim_rig *rig, struct sim_process *process, unsigned id, uint32_t percentage,
	       uint32_t priority);
int rig_destroy(struct sim_rig *rig, struct sim_process *process, unsigned id);
int rig_mask(struct sim_rig *rig, struct sim_process *process, unsigned id, const uint32_t *mask,
	     uint32_t bits);
int rig_gws(struct sim_rig *rig, struct sim_process *process, unsigned id, uint32_t n);
int rig_fault(struct sim_rig *rig, const char *text);
