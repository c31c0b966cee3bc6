/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/packet/packet.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "kfdsim/packet/kernel.h"

/*
 * Packets of the HSA Platform System Architecture Specification 1.2, section 2.9, and AMD's two
 * vendor packets (ROCR-Runtime, hsa_ext_amd.h and amd_aql_queue.cpp). A kernel is not run: where
 * the model of times is asked for, a dispatch takes its time, and kernel.h plays some kernels.
 */
#define PACKET_SIZE 64U
#define DEPENDENCIES 5U

enum packet_type {
	PACKET_VENDOR,
	PACKET_INVALID,
	PACKET_DISPATCH,
	PACKET_BARRIER_AND,
	PACKET_AGENT_DISPATCH,
	PACKET_BARRIER_OR,
};

enum vendor_format { VENDOR_PM4_BUFFER = 1, VENDOR_BARRIER_VALUE = 2 };
enum condition { CONDITION_EQUAL, CONDITION_NOT_EQUAL, CONDITION_LESS, CONDITION_NOT_LESS };

union packet {
	struct {
		uint16_t header; /* low byte: type */
		uint8_t format;  /* of vendor packets */
		uint8_t reserved[53];
		uint64_t completion;
	};
	struct {
		uint16_t header, setup, group[3], reserved;
		uint32_t grid[3], private_size, group_size;
		uint64_t kernel_object, arguments, reserved2, completion;
	} dispatch;
	struct {
		uint16_t header, reserved[3];
		uint64_t signal[DEPENDENCIES], reserved2, completion;
	} barrier;
	struct {
		uint16_t header, reserved[3];
		uint64_t signal;
		int64_t value, mask;
		uint32_t condition, reserved1;
		uint64_t reserved2[2], completion;
	} compare;
};
_Static_assert(sizeof(union packet) == PACKET_SIZE, "a slot of the ring");
_Static_assert(offsetof(union packet, dispatch.kernel_object) == 32, "as in hsa.h");
_Static_assert(offsetof(union packet, completion) == 56, "as in hsa.h");

/* What lies behind a signal's handle (ROCR-Runtime, amd_hsa_signal.h). */
struct signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event, reserved;
	uint64_t start, end;
};

static uint64_t slots(const struct sim_queue *queue)
{
	return queue->ring_size / PACKET_SIZE;
}

static uint64_t head(const struct sim_queue *queue)
{
	return queue->ring_base + queue->read_index % slots(queue) * PACKET_SIZE;
}

/*
 * The doorbell's value is the index of the packet last written. Several threads may ring one
 * after the other in the wrong order, and only the last is seen here: so what the write index
 * says counts too, as soon as anyone rings. Packets that are not ready are invalid still.
 */
static int update_limit(struct sim_queue *queue)
{
	uint64_t value = sim_doorbell(queue), written, limit;
	int r;

	if (value == queue->doorbell_value)
		return 0;
	r = packet_get(queue, queue->write_pointer, &written, sizeof(written));
	if (r < 0)
		return r;

	queue->doorbell_value = value;
	limit = written > value + 1 ? written : value + 1;
	if (limit <= queue->limit)
		return 0;
	if (limit > queue->read_index + slots(queue))
		limit = queue->read_index + slots(queue);
	queue->limit = limit;
	return 0;
}

/*
 * What the packet processor writes to the queue's own signal when it stops at a packet, so that the
 * runtime can tell the program why (ROCR-Runtime, amd_aql_queue.cpp). The signal is a field of struct
 * amd_queue_s, of which the packet processor knows the place of the read index (amd_hsa_queue.h).
 */
#define READ_INDEX_OFFSET 128U
#define INACTIVE_SIGNAL_OFFSET 192U

enum queue_error {
	ERROR_DIMENSIONS = 2,
	ERROR_GROUP_MEMORY = 4,
	ERROR_CODE = 8,
	ERROR_PACKET = 32,
	ERROR_GROUP_SIZE = 64,
	ERROR_VENDOR_PACKET = 256,
};

/* packet_stop() has said why. A queue that no ROCr made has no such signal. */
static int tell_error(struct sim_queue *queue, enum queue_error error)
{
	uint64_t at = queue->read_pointer - READ_INDEX_OFFSET + INACTIVE_SIGNAL_OFFSET, handle = 0;
	int64_t value = error;
	struct signal signal;
	uint64_t event;

	if (sim_get(queue->process, at, &handle, sizeof(handle)) < 0 || handle == 0 ||
	    sim_get(queue->process, handle, &signal, sizeof(signal)) < 0)
		return -EIO;
	event = signal.event;
	if (sim_put(queue->process, handle + offsetof(struct signal, value), &value,
		    sizeof(value)) == 0 &&
	    signal.mailbox != 0 &&
	    sim_put(queue->process, signal.mailbox, &event, sizeof(event)) == 0)
		sim_raise(queue->process, signal.event);
	return -EIO;
}

static int signal_value(struct sim_queue *queue, uint64_t handle, int64_t *ret)
{
	return packet_get(queue, handle + offsetof(struct signal, value), ret, sizeof(*ret));
}

/* As the driver's interrupt handler finds it: the event's id in its mailbox. */
static int complete(struct sim_queue *queue, uint64_t handle, uint64_t start, uint64_t end)
{
	struct signal signal;
	uint64_t times[2] = { start, end }, event;
	int r;

	if (handle == 0)
		return 0;
	r = packet_get(queue, handle, &signal, sizeof(signal));
	if (r < 0)
		return r;
	r = packet_put(queue, handle + offsetof(struct signal, start), times, sizeof(times));
	if (r < 0)
		return r;
	signal.value = (int64_t)((uint64_t)signal.value - 1);
	r = packet_put(queue, handle + offsetof(struct signal, value), &signal.value,
		       sizeof(signal.value));
	if (r < 0 || signal.mailbox == 0)
		return r;
	event = signal.event;
	r = packet_put(queue, signal.mailbox, &event, sizeof(event));
	if (r == 0)
		sim_raise(queue->process, signal.event);
	return r;
}

static int retire(struct sim_queue *queue, const union packet *packet, uint64_t end_ns)
{
	const uint16_t invalid = PACKET_INVALID;
	uint64_t start = queue->began;
	int r;

	r = packet_put(queue, head(queue), &invalid, sizeof(invalid));
	if (r < 0)
		return r;
	r = packet_retire(queue, 1, end_ns);
	if (r < 0)
		return r;
	r = complete(queue, packet->completion, start, end_ns);
	return r < 0 ? r : 1;
}

/* Null handles count as satisfied for «and», and not at all for «or» where others are there. */
static int barrier_open(struct sim_queue *queue, const union packet *packet, bool all)
{
	unsigned asked = 0, open = 0;
	int64_t value;
	int r;

	for (unsigned i = 0; i < DEPENDENCIES; i++) {
		if (packet->barrier.signal[i] == 0)
			continue;
		r = signal_value(queue, packet->barrier.signal[i], &value);
		if (r < 0)
			return r;
		asked++;
		open += value == 0;
	}
	return all ? open == asked : open > 0 || asked == 0;
}

static int value_open(struct sim_queue *queue, const union packet *packet)
{
	int64_t value, against = packet->compare.value;
	int r;

	if (packet->compare.signal == 0)
		return 1;
	r = signal_value(queue, packet->compare.signal, &value);
	if (r < 0)
		return r;
	value &= packet->compare.mask;

	switch (packet->compare.condition) {
	case CONDITION_EQUAL: return value == against;
	case CONDITION_NOT_EQUAL: return value != against;
	case CONDITION_LESS: return value < against;
	case CONDITION_NOT_LESS: return value >= against;
	default:
		packet_stop(queue, "AQL barrier with condition %u", packet->compare.condition);
		return tell_error(queue, ERROR_VENDOR_PACKET);
	}
}

static int vendor_open(struct sim_queue *queue, const union packet *packet)
{
	switch (packet->format) {
	case VENDOR_PM4_BUFFER: /* caches and trap state: nothing here has any */ return 1;
	case VENDOR_BARRIER_VALUE: return value_open(queue, packet);
	default:
		packet_stop(queue, "AQL vendor packet of format %u", packet->format);
		return tell_error(queue, ERROR_VENDOR_PACKET);
	}
}

static uint32_t clamp(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

#define SETUP_DIMENSIONS 3U /* the field, and the largest number in it; other bits are reserved */

static uint32_t group_memory(unsigned target)
{
	return target == 90500 ? 160U << 10 : target == 120500 ? 320U << 10 : 64U << 10;
}

/* 0: its fields can be so. */
static int check_dispatch(struct sim_queue *queue, const union packet *packet)
{
	if (packet->dispatch.setup == 0 || packet->dispatch.setup > SETUP_DIMENSIONS) {
		packet_stop(queue, "AQL dispatch with setup %#x", packet->dispatch.setup);
		return tell_error(queue, ERROR_DIMENSIONS);
	}
	if (packet->dispatch.group_size > group_memory(queue->gpu->info.gfx_target)) {
		packet_stop(queue, "AQL dispatch with %" PRIu32 " bytes of group memory",
			    packet->dispatch.group_size);
		return tell_error(queue, ERROR_GROUP_MEMORY);
	}
	if (packet->dispatch.kernel_object == 0) {
		packet_stop(queue, "AQL dispatch of no kernel");
		return tell_error(queue, ERROR_CODE);
	}
	return 0;
}

/* Work-groups and threads of each; the last one of a row may be cut. */
static int measure(struct sim_queue *queue, const union packet *packet, struct timing_kernel *ret)
{
	uint64_t blocks = 1, threads = 1;
	int r = check_dispatch(queue, packet);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t grid = packet->dispatch.grid[i], group = packet->dispatch.group[i];

		if (grid == 0 || group == 0) {
			packet_stop(queue, "AQL dispatch of nothing");
			return tell_error(queue, ERROR_DIMENSIONS);
		}
		blocks = clamp(blocks * ((grid + group - 1) / group));
		threads = clamp(threads * group);
	}
	if (threads > SIM_GROUP_MAX) {
		packet_stop(queue, "AQL dispatch with %" PRIu64 " threads a work-group", threads);
		return tell_error(queue, ERROR_GROUP_SIZE);
	}
	*ret = (struct timing_kernel){
		.blocks = clamp(blocks),
		.threads = clamp(threads),
		.block_ns = queue->process->sim->block_ns[threads],
	};
	return 0;
}

static void note_dispatch(struct sim_queue *queue, const union packet *packet)
{
	for (unsigned i = 0; i < 3; i++) {
		queue->last.grid[i] = packet->dispatch.grid[i];
		queue->last.group[i] = packet->dispatch.group[i];
	}
	queue->last.kernel_object = packet->dispatch.kernel_object;
	queue->dispatches++;
}

static void note_time(struct sim_queue *queue, uint64_t ns)
{
	queue->model_ns.last = ns;
	queue->model_ns.all += ns;
	if (queue->model_ns.most < ns)
		queue->model_ns.most = ns;
}

static struct kernel_call call_of(const union packet *packet, const struct timing_kernel *kernel)
{
	return (struct kernel_call){ packet->dispatch.kernel_object, packet->dispatch.arguments,
				     kernel->blocks, kernel->threads };
}

/* The model may have no place for the queue now: it is asked again. */
static int give_away(struct sim_queue *queue, const union packet *packet,
		     struct timing_kernel *kernel, uint64_t now_ns)
{
	const struct kernel_call call = call_of(packet, kernel);
	const struct sim_world *world = &queue->process->sim->world;
	int r;

	kernel_prepare(queue, &call, kernel);
	/* Its work-groups tell when they began. HIP's events count from the packet before. */
	if (world->now && kernel->places)
		now_ns = world->now(world->userdata);
	r = timing_dispatch(queue->gpu->timing, queue->serial, kernel, now_ns);
	if (r == -EBUSY || r == -ENOENT)
		return 0;
	if (r < 0)
		return packet_stop(queue, "no time for a dispatch: errno %d", -r);
	queue->dispatched = true;
	queue->began = timing_now(queue->gpu->timing);
	kernel_begin(queue, &call, queue->began);
	return 0;
}

static int dispatch(struct sim_queue *queue, const union packet *packet, uint64_t now_ns)
{
	struct timing_kernel kernel;
	int r = measure(queue, packet, &kernel);

	if (r < 0)
		return r;
	packet_begin(queue, now_ns);
	if (queue->gpu->timing)
		return give_away(queue, packet, &kernel, now_ns);
	note_dispatch(queue, packet);
	return retire(queue, packet, now_ns);
}

static int passes(struct sim_queue *queue, const union packet *packet)
{
	switch (packet->header & 0xff) {
	case PACKET_INVALID: /* its producer is not ready */ return 0;
	case PACKET_VENDOR: return vendor_open(queue, packet);
	case PACKET_BARRIER_AND: return barrier_open(queue, packet, true);
	case PACKET_BARRIER_OR: return barrier_open(queue, packet, false);
	default: /* agent dispatches are for agents that run software */
		packet_stop(queue, "AQL packet of type %u", packet->header & 0xffU);
		return tell_error(queue, ERROR_PACKET);
	}
}

int aql_step(struct sim_queue *queue, struct packet_step *step)
{
	union packet packet;
	int r;

	if (slots(queue) == 0)
		return packet_stop(queue, "AQL ring of %" PRIu64 " bytes", queue->ring_size);
	r = update_limit(queue);
	if (r < 0)
		return r;
	if (queue->dispatched || queue->read_index >= queue->limit)
		return 0;
	r = packet_get(queue, head(queue), &packet, sizeof(packet));
	if (r < 0)
		return r;

	if ((packet.header & 0xff) == PACKET_DISPATCH)
		return dispatch(queue, &packet, step->now_ns);
	r = passes(queue, &packet);
	if (r <= 0)
		return r;
	packet_begin(queue, step->now_ns);
	return retire(queue, &packet, step->now_ns);
}

/* What is at the queue's head, which is read anew. */
static int read_dispatch(struct sim_queue *queue, union packet *ret,
			 struct timing_kernel *ret_kernel)
{
	int r = packet_get(queue, head(queue), ret, sizeof(*ret));

	return r < 0 ? r : measure(queue, ret, ret_kernel);
}

static int read_call(struct sim_queue *queue, union packet *packet, struct timing_kernel *kernel,
		     struct kernel_call *ret)
{
	int r = read_dispatch(queue, packet, kernel);

	if (r >= 0)
		*ret = call_of(packet, kernel);
	return r;
}

int aql_dispatch_retire(struct sim_queue *queue, uint64_t end_ns)
{
	struct timing_kernel kernel;
	union packet packet;
	int r = read_dispatch(queue, &packet, &kernel);

	if (r < 0)
		return r;
	note_dispatch(queue, &packet);
	note_time(queue, end_ns - queue->began);
	sim_record_dispatch(queue, &kernel, end_ns);
	return retire(queue, &packet, end_ns);
}

int aql_dispatch_ended(struct sim_queue *queue, uint64_t end_ns)
{
	struct timing_kernel kernel;
	struct kernel_call call;
	union packet packet;
	int r = read_call(queue, &packet, &kernel, &call);

	if (r >= 0)
		r = kernel_end(queue, &call, end_ns);
	if (r != 0)
		return r < 0 ? r : 0;
	return aql_dispatch_retire(queue, end_ns);
}

int aql_dispatch_give_up(struct sim_queue *queue, uint64_t now_ns)
{
	struct timing_kernel kernel;
	struct kernel_call call;
	union packet packet;
	int r = read_call(queue, &packet, &kernel, &call);

	if (r >= 0)
		r = kernel_give_up(queue, &call);
	return r < 0 ? r : aql_dispatch_retire(queue, now_ns);
}
