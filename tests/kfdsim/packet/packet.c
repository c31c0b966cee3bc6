/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/packet/packet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* One turn of a queue, so that none keeps the others waiting. */
#define TURN_PACKETS 256U
#define TURN_BYTES (16U << 20)

/* A queue is looked at the more seldom, the longer nothing came: an eighth of that time. */
#define LOOK_MIN_NS 20000U
#define LOOK_MAX_NS 1000000U

#define NEVER_RUNG UINT64_MAX

static uint64_t *doorbell(const struct sim_queue *queue)
{
	const struct sim_process *process = queue->process;
	uint64_t place = process->slices[queue->gpu->index] + 8ULL * queue->doorbell;

	return (uint64_t *)(void *)(process->sim->world.arena + place);
}

/* The client writes it at any time, from its own address space. */
uint64_t sim_doorbell(const struct sim_queue *queue)
{
	return __atomic_load_n(doorbell(queue), __ATOMIC_ACQUIRE);
}

void sim_doorbell_init(struct sim_queue *queue)
{
	queue->doorbell_value = NEVER_RUNG;
	__atomic_store_n(doorbell(queue), NEVER_RUNG, __ATOMIC_RELEASE);
}

int packet_stop(struct sim_queue *queue, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(queue->note, sizeof(queue->note), format, arguments);
	va_end(arguments);
	queue->stopped = true;
	return -EIO;
}

int packet_get(struct sim_queue *queue, uint64_t address, void *buf, size_t size)
{
	if (sim_get(queue->process, address, buf, size) < 0)
		return packet_stop(queue, "cannot read %zu bytes at 0x%" PRIx64, size, address);
	return 0;
}

int packet_put(struct sim_queue *queue, uint64_t address, const void *buf, size_t size)
{
	if (sim_put(queue->process, address, buf, size) < 0)
		return packet_stop(queue, "cannot write %zu bytes at 0x%" PRIx64, size, address);
	return 0;
}

void packet_begin(struct sim_queue *queue, uint64_t now_ns)
{
	if (queue->began == 0)
		queue->began = now_ns;
}

int packet_retire(struct sim_queue *queue, uint64_t by, uint64_t now_ns)
{
	queue->read_index += by;
	queue->packets++;
	queue->began = 0;
	queue->progress = 0;
	queue->dispatched = false;
	queue->first_ns = queue->ran_ns = queue->meets_ns = 0;
	queue->active_ns = now_ns;
	return packet_put(queue, queue->read_pointer, &queue->read_index,
			  sizeof(queue->read_index));
}

static int step_once(struct sim_queue *queue, struct packet_step *step)
{
	if (queue->type != SIM_COMPUTE)
		return sdma_step(queue, step);
	return queue->aql ? aql_step(queue, step) : 0; /* PM4: nothing here runs a command stream */
}

static uint64_t look_again(const struct sim_queue *queue, bool more, uint64_t now_ns)
{
	uint64_t idle = (now_ns - queue->active_ns) / 8;

	if (queue->meets_ns > 0 && !queue->stopped)
		return queue->meets_ns;
	if (queue->stopped || queue->dispatched)
		return UINT64_MAX;
	if (more)
		return now_ns;
	if (idle < LOOK_MIN_NS)
		idle = LOOK_MIN_NS;
	return now_ns + (idle > LOOK_MAX_NS ? LOOK_MAX_NS : idle);
}

bool sim_queue_work(struct sim_queue *queue, uint64_t now_ns, uint64_t *next_ns)
{
	struct packet_step step = { .now_ns = now_ns, .bytes = TURN_BYTES };
	uint64_t packets = queue->packets, progress = queue->progress, again;
	bool dispatched = queue->dispatched;
	unsigned turns = TURN_PACKETS;

	/* The pid of a dead process may be another's by now. */
	if (queue->stopped || queue->reset || !queue->active || queue->process->dead)
		return false;

	while (turns > 0 && step.bytes > 0 && step_once(queue, &step) > 0)
		turns--;
	if (queue->meets_ns > 0 && now_ns >= queue->meets_ns)
		(void)aql_dispatch_give_up(queue, now_ns);

	again = look_again(queue, turns == 0 || step.bytes == 0, now_ns);
	if (again < *next_ns)
		*next_ns = again;
	return queue->packets != packets || queue->progress != progress ||
	       queue->dispatched != dispatched || queue->stopped;
}

void sim_queue_ended(struct sim_queue *queue, uint64_t end_ns)
{
	if (!queue->dispatched || queue->stopped || queue->process->dead)
		return;
	(void)aql_dispatch_ended(queue, end_ns);
}
