/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define OTHER_FIRST 0x40000000U /* KFD_FIRST_NONSIGNAL_EVENT_ID */
#define OWN_SLOTS 256U          /* of a page of the driver's: as old clients expect */
#define PAGE_SIZE_OWN (8ULL * SIM_EVENT_SLOTS_MAX)

/* Those that a GPU signals by a slot in the page; a client sets SIGNAL alone. */
static bool has_slot(uint32_t type)
{
	return type == KFD_IOC_EVENT_SIGNAL || type == KFD_IOC_EVENT_DEBUG_EVENT;
}

struct sim_event *sim_find_event(const struct sim_process *process, uint32_t id)
{
	for (struct sim_event *event = process->events; event; event = event->next)
		if (event->id == id)
			return event;
	return NULL;
}

/* UNSIGNALED_EVENT_SLOT */
static void empty_slots(struct sim_process *process, unsigned first, unsigned n)
{
	memset(process->sim->world.arena + process->event_page + 8ULL * first, 0xff, 8ULL * n);
}

/* ---- the page ---- */

/* A client's own buffer, named by its handle: so libhsakmt does it where there are GPUs. */
static int set_page(const struct sim_call *call, uint64_t handle)
{
	struct sim_process *process = call->process;
	struct sim_buffer *buffer;
	struct sim_gpu *gpu;
	int r;

	if (process->event_page != 0)
		return -EINVAL;
	r = sim_bound_gpu(call, (uint32_t)(handle >> 32), &gpu);
	if (r < 0)
		return r == -ESRCH ? -ENODEV : r;
	buffer = sim_find_buffer(process, handle);
	if (!buffer || buffer->place == 0 || buffer->size < 8)
		return -EINVAL;
	process->event_page = buffer->place;
	process->event_handle = handle;
	process->event_slots = buffer->size / 8 > SIM_EVENT_SLOTS_MAX
				       ? SIM_EVENT_SLOTS_MAX
				       : (unsigned)(buffer->size / 8);
	empty_slots(process, 0, process->event_slots);
	return 0;
}

static int make_page(struct sim_process *process)
{
	int r = sim_arena_take(process->sim, PAGE_SIZE_OWN, &process->event_page);

	if (r < 0)
		return r;
	process->event_slots = OWN_SLOTS;
	empty_slots(process, 0, SIM_EVENT_SLOTS_MAX);
	return 0;
}

/* ---- making and unmaking ---- */

/* The lowest id from first on that is free: one of the first n + 1, where n are there. */
static int lowest_free(const struct sim_process *process, uint32_t first, uint32_t *ret)
{
	_cleanup_(freep) bool *used = NULL;
	uint32_t n = 0, i = 0;

	for (struct sim_event *event = process->events; event; event = event->next)
		n++;
	used = calloc(n + 1ULL, sizeof(*used));
	if (!used)
		return -ENOMEM;
	for (struct sim_event *event = process->events; event; event = event->next)
		if (event->id - first <= n)
			used[event->id - first] = true;
	while (used[i])
		i++;
	*ret = first + i;
	return 0;
}

/* Signals' ids are slots, and 0 is for who has none. */
static int choose_id(const struct sim_process *process, bool slot, uint32_t *ret)
{
	int r = lowest_free(process, slot ? 1 : OTHER_FIRST, ret);

	return r == 0 && slot && *ret >= process->event_slots ? -ENOSPC : r;
}

static int prepare(const struct sim_call *call, const struct kfd_ioctl_create_event_args *args,
		   bool slot)
{
	if (args->event_page_offset != 0)
		return set_page(call, args->event_page_offset);
	return slot && call->process->event_page == 0 ? make_page(call->process) : 0;
}

int ioctl_create_event(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_create_event_args *args = argument;
	struct sim_process *process = call->process;
	bool slot = has_slot(args->event_type);
	struct sim_event *event;
	uint32_t id;
	int r;

	r = prepare(call, args, slot);
	if (r < 0)
		return r;
	args->event_page_offset = 0;
	r = choose_id(process, slot, &id);
	if (r < 0)
		return r;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	event->id = id;
	event->type = args->event_type;
	event->auto_reset = args->auto_reset != 0;
	event->next = process->events;
	process->events = event;
	if (slot) {
		empty_slots(process, id, 1);
		args->event_page_offset = process->event_page;
		args->event_slot_index = id;
	}
	args->event_id = id;
	args->event_trigger_data = id;
	return 0;
}

int ioctl_destroy_event(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_destroy_event_args *args = argument;
	struct sim_event **at = &call->process->events, *event;

	while (*at && (*at)->id != args->event_id)
		at = &(*at)->next;
	event = *at;
	if (!event)
		return -EINVAL;
	*at = event->next;
	free(event);
	sim_waits_fail(call->process, args->event_id);
	return 0;
}

void sim_events_free(struct sim_process *process)
{
	for (struct sim_event *event = process->events, *next; event; event = next) {
		next = event->next;
		free(event);
	}
	process->events = NULL;
}

/* ---- signalling ---- */

/* With auto reset, whoever waits uses it up. */
void sim_event_set(struct sim_process *process, struct sim_event *event)
{
	bool had = sim_waits_wake(process, event);

	event->set = !event->auto_reset || !had;
}

int ioctl_set_event(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_set_event_args *args = argument;
	struct sim_event *event = sim_find_event(call->process, args->event_id);

	if (!event || event->type != KFD_IOC_EVENT_SIGNAL)
		return -EINVAL;
	sim_event_set(call->process, event);
	return 0;
}

int ioctl_reset_event(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_reset_event_args *args = argument;
	struct sim_event *event = sim_find_event(call->process, args->event_id);

	if (!event || event->type != KFD_IOC_EVENT_SIGNAL)
		return -EINVAL;
	event->set = false;
	return 0;
}

void sim_raise(struct sim_process *process, uint32_t event_id)
{
	struct sim_event *event = sim_find_event(process, event_id);

	if (!event || !has_slot(event->type) || process->dead)
		return;
	empty_slots(process, event_id, 1); /* acknowledged */
	sim_event_set(process, event);
}

/* kfd_signal_reset_event(): every process is told, whether it has queues there or not. The removal of a GPU,
 * kgd2kfd_device_exit(), tells of nothing. */
void sim_events_of_reset(struct sim *sim, const struct sim_gpu *gpu)
{
	for (struct sim_process *process = sim->processes; process; process = process->next)
		for (struct sim_event *event = process->events; event; event = event->next) {
			if (event->type != KFD_IOC_EVENT_HW_EXCEPTION || process->dead)
				continue;
			event->gpu_id = gpu->info.kfd_gpu_id;
			sim_event_set(process, event);
		}
}
