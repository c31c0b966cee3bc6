/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/packet-rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"

#define SLICE 1024U /* where in the arena the doorbells are */

static struct rig *rig_of(const struct sim *sim)
{
	return (struct rig *)sim->world.userdata;
}

static bool inside(uint64_t address, size_t size)
{
	return address >= RIG_MEMORY && size <= RIG_SIZE && address - RIG_MEMORY <= RIG_SIZE - size;
}

int sim_get(struct sim_process *process, uint64_t address, void *buf, size_t size)
{
	if (!inside(address, size))
		return -EFAULT;
	memcpy(buf, rig_of(process->sim)->memory + (address - RIG_MEMORY), size);
	return 0;
}

int sim_put(struct sim_process *process, uint64_t address, const void *buf, size_t size)
{
	if (!inside(address, size))
		return -EFAULT;
	memcpy(rig_of(process->sim)->memory + (address - RIG_MEMORY), buf, size);
	return 0;
}

void sim_record_dispatch(const struct sim_queue *queue, const struct timing_kernel *kernel,
			 uint64_t end_ns)
{
	(void)queue;
	(void)kernel;
	(void)end_ns;
}

void sim_raise(struct sim_process *process, uint32_t event_id)
{
	struct rig *rig = rig_of(process->sim);

	CHECK(rig->n_raised < 8);
	rig->raised[rig->n_raised++] = event_id;
}

/* struct timing is never looked into: the rig itself stands for it. */
int timing_dispatch(struct timing *timing, uint64_t key, const struct timing_kernel *kernel,
		    uint64_t now_ns)
{
	struct rig *rig = (struct rig *)(void *)timing;

	(void)now_ns;
	rig->timed++;
	rig->timed_key = key;
	rig->kernel = *kernel;
	return rig->timing_answer;
}

uint64_t timing_now(const struct timing *timing)
{
	return ((const struct rig *)(const void *)timing)->model_now;
}

const struct timing_ran *timing_ran(const struct timing *timing, uint64_t key, size_t *ret_n)
{
	const struct rig *rig = (const struct rig *)(const void *)timing;

	(void)key;
	*ret_n = rig->n_ran;
	return rig->ran;
}

void rig_start(struct rig *rig, enum sim_queue_type type, uint64_t ring_size)
{
	*rig = (struct rig){ .now_ns = 1000000 };
	rig->memory = calloc(1, RIG_SIZE);
	CHECK(rig->memory);
	rig->sim.world.userdata = rig;
	rig->sim.world.arena = (uint8_t *)rig->arena;
	rig->sim.world.arena_size = sizeof(rig->arena);
	rig->gpu = &rig->sim.gpus[0];
	rig->process.sim = &rig->sim;
	rig->process.slices[0] = SLICE;
	rig->queue = (struct sim_queue){
		.process = &rig->process,
		.gpu = rig->gpu,
		.serial = 77,
		.type = type,
		.aql = type == SIM_COMPUTE,
		.ring_base = RIG_RING,
		.ring_size = ring_size,
		.read_pointer = RIG_READ,
		.write_pointer = RIG_WRITE,
		.active = true,
		.doorbell = 3,
	};
	sim_doorbell_init(&rig->queue);
	CHECK(sim_doorbell(&rig->queue) == UINT64_MAX);
	for (uint64_t at = 0; type == SIM_COMPUTE && at < ring_size; at += 64)
		*(uint8_t *)rig_at(rig, RIG_RING + at) = 1;
}

void rig_stop(struct rig *rig)
{
	free(rig->memory);
	rig->memory = NULL;
}

void *rig_at(struct rig *rig, uint64_t address)
{
	CHECK(inside(address, 1));
	return rig->memory + (address - RIG_MEMORY);
}

uint64_t rig_read64(struct rig *rig, uint64_t address)
{
	uint64_t value;

	memcpy(&value, rig_at(rig, address), sizeof(value));
	return value;
}

void rig_write64(struct rig *rig, uint64_t address, uint64_t value)
{
	memcpy(rig_at(rig, address), &value, sizeof(value));
}

void rig_ring(struct rig *rig, uint64_t doorbell)
{
	rig->arena[SLICE / 8 + rig->queue.doorbell] = doorbell;
}

bool rig_work(struct rig *rig)
{
	rig->next_ns = UINT64_MAX;
	return sim_queue_work(&rig->queue, rig->now_ns, &rig->next_ns);
}

uint64_t rig_signal(struct rig *rig, unsigned i, int64_t value, bool mailed)
{
	uint64_t handle = RIG_SIGNALS + 64 * i;

	rig_write64(rig, handle, 1);
	rig_write64(rig, handle + 8, (uint64_t)value);
	rig_write64(rig, handle + 16, mailed ? RIG_MAILBOXES + 8 * i : 0);
	rig_write64(rig, handle + 24, i + 1);
	return handle;
}

int64_t rig_value(struct rig *rig, unsigned i)
{
	return (int64_t)rig_read64(rig, RIG_SIGNALS + 64 * i + 8);
}

uint8_t *rig_packet(struct rig *rig, unsigned type, uint64_t completion)
{
	uint8_t *packet = rig_at(rig, RIG_RING + rig->written * 64 % rig->queue.ring_size);

	CHECK(packet[0] == 1);
	memset(packet, 0, 64);
	packet[0] = (uint8_t)type;
	memcpy(packet + 56, &completion, sizeof(completion));
	rig->written++;
	rig_write64(rig, RIG_WRITE, rig->written);
	return packet;
}

uint8_t *rig_dispatch(struct rig *rig, uint32_t grid, uint16_t group, uint64_t completion)
{
	uint8_t *packet = rig_packet(rig, 2, completion);
	uint16_t groups[3] = { group, 1, 1 };
	uint32_t grids[3] = { grid, 1, 1 };

	packet[2] = 1;  /* dimension */
	packet[32] = 1; /* of the address of a kernel */
	memcpy(packet + 4, groups, sizeof(groups));
	memcpy(packet + 12, grids, sizeof(grids));
	return packet;
}

bool rig_sdma(struct rig *rig, const uint32_t *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++, rig->written += 4)
		memcpy(rig_at(rig, RIG_RING + rig->written % rig->queue.ring_size), &words[i], 4);
	rig_ring(rig, rig->written);
	return rig_work(rig);
}
