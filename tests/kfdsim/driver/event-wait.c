/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define FOR_EVER 0xffffffffU
#define MSEC_MAX 0x7fffffffU
#define NS_OF_MSEC 1000000ULL

struct waiter {
	uint32_t event_id, type;
	bool activated;
};

/* A request that is answered later. */
struct sim_wait {
	struct sim_process *process;
	uint64_t request, deadline_ns; /* UINT64_MAX: none */
	struct kfd_ioctl_wait_events_args args;
	size_t size; /* of the argument, as the client had it */
	struct sim_wait *next;
	struct waiter waiters[]; /* args.num_events */
};

static bool complete(const struct sim_wait *wait)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < wait->args.num_events; i++)
		n += wait->waiters[i].activated;
	if (n > 0 && !wait->args.wait_for_all)
		return true;
	return n == wait->args.num_events;
}

/* What GPU was reset; there are no memory exceptions here. */
static int tell_reset(const struct sim_wait *wait, uint32_t i)
{
	const struct sim_world *world = &wait->process->sim->world;
	const struct sim_event *event = sim_find_event(wait->process, wait->waiters[i].event_id);
	struct kfd_hsa_hw_exception_data data = {
		.reset_type = KFD_HW_EXCEPTION_WHOLE_GPU_RESET,
		.reset_cause = KFD_HW_EXCEPTION_GPU_HANG,
		.memory_lost = 1,
		.gpu_id = event ? event->gpu_id : 0,
	};

	return world->write(world->userdata, wait->process->pid,
			    wait->args.events_ptr + i * sizeof(struct kfd_event_data), &data,
			    sizeof(data));
}

/* copy_signaled_event_data() */
static int tell(const struct sim_wait *wait)
{
	for (uint32_t i = 0; i < wait->args.num_events; i++)
		if (wait->waiters[i].activated &&
		    wait->waiters[i].type == KFD_IOC_EVENT_HW_EXCEPTION && tell_reset(wait, i) < 0)
			return -EFAULT;
	return 0;
}

static int finish(struct sim_wait *wait)
{
	int r = tell(wait);

	wait->args.wait_result = r < 0 ? KFD_IOC_WAIT_RESULT_FAIL : KFD_IOC_WAIT_RESULT_COMPLETE;
	return r;
}

/* ---- those that wait ---- */

static void unlink_wait(struct sim *sim, struct sim_wait *wait)
{
	struct sim_wait **at = &sim->waits;

	while (*at != wait)
		at = &(*at)->next;
	*at = wait->next;
}

static void answer(struct sim_wait *wait, int result)
{
	struct sim *sim = wait->process->sim;

	unlink_wait(sim, wait);
	sim->world.answer(sim->world.userdata, wait->request, result, &wait->args, wait->size);
	free(wait);
}

static bool activate(struct sim_wait *wait, uint32_t event_id)
{
	bool any = false;

	for (uint32_t i = 0; i < wait->args.num_events; i++)
		if (wait->waiters[i].event_id == event_id) {
			any |= !wait->waiters[i].activated;
			wait->waiters[i].activated = true;
		}
	return any;
}

bool sim_waits_wake(struct sim_process *process, struct sim_event *event)
{
	bool any = false;

	for (struct sim_wait *wait = process->sim->waits, *next; wait; wait = next) {
		next = wait->next;
		if (wait->process != process || !activate(wait, event->id))
			continue;
		any = true;
		if (complete(wait))
			answer(wait, finish(wait));
	}
	return any;
}

void sim_waits_fail(struct sim_process *process, uint32_t event_id)
{
	for (struct sim_wait *wait = process->sim->waits, *next; wait; wait = next) {
		bool waits = false;

		next = wait->next;
		for (uint32_t i = 0; i < wait->args.num_events; i++)
			waits |= wait->waiters[i].event_id == event_id;
		if (wait->process != process || !waits)
			continue;
		wait->args.wait_result = KFD_IOC_WAIT_RESULT_FAIL;
		answer(wait, -EIO);
	}
}

void sim_waits_work(struct sim *sim, uint64_t now_ns, uint64_t *next_ns)
{
	for (struct sim_wait *wait = sim->waits, *next; wait; wait = next) {
		next = wait->next;
		if (wait->deadline_ns <= now_ns) {
			wait->args.wait_result = KFD_IOC_WAIT_RESULT_TIMEOUT;
			answer(wait, 0);
		} else if (wait->deadline_ns < *next_ns) {
			*next_ns = wait->deadline_ns;
		}
	}
}

void sim_waits_forget(struct sim *sim, const struct sim_process *process)
{
	for (struct sim_wait *wait = sim->waits, *next; wait; wait = next) {
		next = wait->next;
		if (wait->process != process)
			continue;
		unlink_wait(sim, wait);
		free(wait);
	}
}

/* What it used up of events that reset themselves, it gives back: the call is made again. */
void sim_cancel(struct sim *sim, uint64_t request)
{
	struct sim_wait *wait = sim->waits;

	while (wait && wait->request != request)
		wait = wait->next;
	if (!wait)
		return;
	unlink_wait(sim, wait);
	for (uint32_t i = 0; i < wait->args.num_events; i++) {
		struct sim_event *event = sim_find_event(wait->process, wait->waiters[i].event_id);

		if (event && wait->waiters[i].activated && event->auto_reset)
			sim_event_set(wait->process, event);
	}
	free(wait);
}

/* ---- the ioctl ---- */

/* init_event_waiter(): takes what is set already. */
static int look(const struct sim_call *call, struct sim_wait *wait)
{
	for (uint32_t i = 0; i < wait->args.num_events; i++) {
		struct kfd_event_data data;
		struct sim_event *event;

		if (sim_copy_from(call, wait->args.events_ptr + i * sizeof(data), &data,
				  sizeof(data)) < 0)
			return -EFAULT;
		event = sim_find_event(call->process, data.event_id);
		if (!event)
			return -EINVAL;
		wait->waiters[i] = (struct waiter){
			.event_id = event->id,
			.type = event->type,
			.activated = event->set,
		};
		event->set = event->set && !event->auto_reset;
	}
	return 0;
}

static uint64_t deadline(uint32_t msec, uint64_t now_ns)
{
	if (msec == FOR_EVER)
		return UINT64_MAX;
	return now_ns + NS_OF_MSEC * (msec < MSEC_MAX ? msec : MSEC_MAX);
}

/* Done, failed, or nothing to wait for: 1 where it is to wait. */
static int first_look(const struct sim_call *call, struct sim_wait *wait)
{
	int r = look(call, wait);

	if (r == 0 && complete(wait))
		return finish(wait);
	if (r == 0 && wait->args.timeout == 0)
		wait->args.wait_result = KFD_IOC_WAIT_RESULT_TIMEOUT;
	else if (r == 0)
		return 1;
	else
		wait->args.wait_result = KFD_IOC_WAIT_RESULT_FAIL;
	return r;
}

int ioctl_wait_events(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_wait_events_args *args = argument;
	struct sim_wait *wait;
	int r;

	args->wait_result = KFD_IOC_WAIT_RESULT_FAIL;
	if (args->num_events > 2 * SIM_EVENT_SLOTS_MAX)
		return -ENOMEM;
	wait = calloc(1, sizeof(*wait) + args->num_events * sizeof(wait->waiters[0]));
	if (!wait)
		return -ENOMEM;
	wait->process = call->process;
	wait->request = call->request;
	wait->args = *args;
	wait->size = call->size < sizeof(*args) ? call->size : sizeof(*args);
	wait->deadline_ns = deadline(args->timeout, call->now_ns);
	r = first_look(call, wait);
	if (r > 0) {
		wait->next = call->sim->waits;
		call->sim->waits = wait;
		return -EINPROGRESS;
	}
	*args = wait->args;
	free(wait);
	return r;
}
