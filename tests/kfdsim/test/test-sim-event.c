/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define EVER 0xffffffffU
#define MSEC 1000000ULL

static struct sim_process *start(struct sim_rig *rig)
{
	struct gpu_info info = rig_vega();

	rig_start(rig, &info, 1);
	return rig_open(rig, 1);
}

static uint32_t make(struct sim_rig *rig, struct sim_process *process, uint32_t type,
		     bool auto_reset)
{
	struct kfd_ioctl_create_event_args args = { .event_type = type, .auto_reset = auto_reset };

	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == 0);
	CHECK(args.event_id == args.event_trigger_data);
	CHECK(args.event_page_offset == 0 || args.event_slot_index == args.event_id);
	return args.event_id;
}

static uint32_t make_signal(struct sim_rig *rig, struct sim_process *process, bool auto_reset)
{
	return make(rig, process, KFD_IOC_EVENT_SIGNAL, auto_reset);
}

static int set(struct sim_rig *rig, struct sim_process *process, uint32_t id)
{
	struct kfd_ioctl_set_event_args args = { .event_id = id };

	return RIG_CALL(rig, process, SET_EVENT, &args);
}

static int destroy(struct sim_rig *rig, struct sim_process *process, uint32_t id)
{
	struct kfd_ioctl_destroy_event_args args = { .event_id = id };

	return RIG_CALL(rig, process, DESTROY_EVENT, &args);
}

/* Result and, where it was answered at once, what it said. */
static int wait_for(struct sim_rig *rig, struct sim_process *process, const uint32_t *ids,
		    uint32_t n, bool all, uint32_t timeout, uint32_t *ret_result)
{
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = RIG_MEMORY,
		.num_events = n,
		.wait_for_all = all,
		.timeout = timeout,
		.wait_result = 77,
	};
	struct kfd_event_data *data = rig_at(rig, RIG_MEMORY);
	int r;

	memset(data, 0, (n + 1) * sizeof(*data));
	for (uint32_t i = 0; i < n; i++)
		data[i].event_id = ids[i];
	r = RIG_CALL(rig, process, WAIT_EVENTS, &args);
	*ret_result = args.wait_result;
	return r;
}

static uint32_t now(struct sim_rig *rig, struct sim_process *process, uint32_t id)
{
	uint32_t result;

	CHECK(wait_for(rig, process, &id, 1, false, 0, &result) == 0);
	return result;
}

/* ---- making them ---- */

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(until_the_page_is_mapped_it_has_256_slots, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	struct kfd_ioctl_create_event_args args = { 0 };
	uint64_t place;

	CHECK(sim_mmap_place(rig->sim, process, sim_mmap_encode(SIM_MMAP_EVENTS, 0, 0), &place) ==
	      -EINVAL);
	for (unsigned i = 1; i < 256; i++)
		CHECK(make_signal(rig, process, false) == i);
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == -ENOSPC);
	CHECK(sim_mmap_place(rig->sim, process, sim_mmap_encode(SIM_MMAP_EVENTS, 0, 8), &place) ==
	      0);
	CHECK(place == process->event_page + 8);
	CHECK(rig->world.arena[place] == 0xff);
	for (unsigned i = 256; i < 4096; i++)
		CHECK(make_signal(rig, process, false) == i);
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == -ENOSPC);
}

TEST_WITH(the_page_can_be_a_buffer_of_the_clients, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	struct kfd_ioctl_alloc_memory_of_gpu_args memory = {
		.va_addr = 0x200000,
		.size = 32768,
		.gpu_id = rig_id(rig, 0),
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT,
	};
	struct kfd_ioctl_free_memory_of_gpu_args gone;
	struct kfd_ioctl_create_event_args args = { 0 };

	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &memory) == 0);
	args.event_page_offset = memory.handle + 1;
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == -EINVAL);
	args.event_page_offset = 7ULL << 32;
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == -EINVAL);
	args.event_page_offset = memory.handle;
	sim_set_places(rig->sim, true);
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == 0);
	CHECK(args.event_page_offset == memory.mmap_offset && process->event_slots == 4096);
	CHECK(rig->world.arena[memory.mmap_offset + 32767] == 0xff);
	args.event_page_offset = memory.handle; /* once is enough */
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == -EINVAL);
	gone.handle = memory.handle;
	CHECK(RIG_CALL(rig, process, FREE_MEMORY_OF_GPU, &gone) == -EPERM);
}

TEST_WITH(the_clients_own_memory_cannot_be_the_page, struct sim_rig *rig)
{
	struct sim_process *process = start(rig), *unbound;
	struct kfd_ioctl_alloc_memory_of_gpu_args memory = {
		.va_addr = 0x200000,
		.size = 32768,
		.gpu_id = rig_id(rig, 0),
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
		.mmap_offset = RIG_MEMORY,
	};
	struct kfd_ioctl_create_event_args args = { 0 };

	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &memory) == 0);
	args.event_page_offset = memory.handle;
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &args) == -EINVAL);
	CHECK(sim_open(rig->sim, 2, &unbound) == 0);
	CHECK(RIG_CALL(rig, unbound, CREATE_EVENT, &args) == -ENODEV);
}

/* ---- waiting ---- */

TEST_WITH(auto_reset_event_satisfies_one_wait, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t id = make_signal(rig, process, true), result;

	CHECK(set(rig, process, id) == 0);
	CHECK(now(rig, process, id) == KFD_IOC_WAIT_RESULT_COMPLETE);
	CHECK(now(rig, process, id) == KFD_IOC_WAIT_RESULT_TIMEOUT);
	CHECK(wait_for(rig, process, &id, 1, false, EVER, &result) == -EINPROGRESS);
	CHECK(wait_for(rig, process, &id, 1, false, EVER, &result) == -EINPROGRESS);
	CHECK(set(rig, process, id) == 0 && rig->n_answers == 2); /* all who wait are woken */
	CHECK(now(rig, process, id) == KFD_IOC_WAIT_RESULT_TIMEOUT);
}

TEST_WITH(wait_returns_when_the_event_is_set, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t id = make_signal(rig, process, false), result;
	uint64_t *slots = (uint64_t *)(void *)(rig->world.arena + process->event_page);

	CHECK(wait_for(rig, process, &id, 1, false, EVER, &result) == -EINPROGRESS);
	CHECK(sim_work(rig->sim, rig->now) == UINT64_MAX && rig->n_answers == 0);
	slots[id] = id; /* as a packet processor writes its mailbox */
	sim_raise(process, id);
	CHECK(rig->n_answers == 1 && rig->answers[0].request == rig->request);
	CHECK(rig->answers[0].result == 0 && rig->answers[0].size == sizeof(rig->answers[0].args));
	CHECK(rig->answers[0].args.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE);
	CHECK(slots[id] == UINT64_MAX);
	sim_raise(process, 99);
	sim_raise(process, make(rig, process, KFD_IOC_EVENT_MEMORY, false));
	CHECK(rig->n_answers == 1 && !rig->sim->waits);
}

TEST_WITH(wait_for_all_needs_every_event, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t ids[3], result;

	for (unsigned i = 0; i < 3; i++)
		ids[i] = make_signal(rig, process, true);
	CHECK(set(rig, process, ids[1]) == 0);
	CHECK(wait_for(rig, process, ids, 3, true, EVER, &result) == -EINPROGRESS);
	CHECK(set(rig, process, ids[2]) == 0 && set(rig, process, ids[2]) == 0);
	CHECK(rig->n_answers == 0);
	CHECK(set(rig, process, ids[0]) == 0);
	CHECK(rig->n_answers == 1 && rig->answers[0].args.wait_result == 0);
	CHECK(now(rig, process, ids[2]) == KFD_IOC_WAIT_RESULT_COMPLETE); /* set twice */
	CHECK(wait_for(rig, process, ids, 0, true, EVER, &result) == 0 && result == 0);
}

TEST_WITH(wait_times_out, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t id = make_signal(rig, process, false), result;

	CHECK(wait_for(rig, process, &id, 1, false, 0xfffffffe, &result) == -EINPROGRESS);
	CHECK(wait_for(rig, process, &id, 1, false, 5, &result) == -EINPROGRESS);
	CHECK(sim_work(rig->sim, rig->now + MSEC) == 4 * MSEC && rig->n_answers == 0);
	CHECK(sim_work(rig->sim, rig->now + 5 * MSEC) == (0x7fffffffULL - 5) * MSEC);
	CHECK(rig->n_answers == 1 && rig->answers[0].request == rig->request);
	CHECK(rig->answers[0].result == 0);
	CHECK(rig->answers[0].args.wait_result == KFD_IOC_WAIT_RESULT_TIMEOUT);
}

TEST_WITH(interrupted_wait_frees_its_resources, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t ids[2] = { make_signal(rig, process, true), make_signal(rig, process, true) };
	uint32_t result;

	CHECK(set(rig, process, ids[0]) == 0);
	CHECK(wait_for(rig, process, ids, 2, true, EVER, &result) == -EINPROGRESS);
	sim_cancel(rig->sim, rig->request + 1); /* another's */
	CHECK(rig->sim->waits);
	sim_cancel(rig->sim, rig->request);
	CHECK(!rig->sim->waits && rig->n_answers == 0);
	CHECK(now(rig, process, ids[0]) == KFD_IOC_WAIT_RESULT_COMPLETE);
	CHECK(now(rig, process, ids[1]) == KFD_IOC_WAIT_RESULT_TIMEOUT);
}

TEST_WITH(wait_for_a_destroyed_event_fails, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t ids[2] = { make_signal(rig, process, true), make_signal(rig, process, true) };
	uint32_t result;

	CHECK(wait_for(rig, process, ids, 2, false, EVER, &result) == -EINPROGRESS);
	CHECK(wait_for(rig, process, ids, 1, false, EVER, &result) == -EINPROGRESS);
	CHECK(destroy(rig, process, ids[1]) == 0 && rig->n_answers == 1);
	CHECK(rig->answers[0].result == -EIO);
	CHECK(rig->answers[0].args.wait_result == KFD_IOC_WAIT_RESULT_FAIL);
}

TEST_WITH(invalid_wait_fails_at_once, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t ids[2] = { make_signal(rig, process, true), 9 }, result;
	struct kfd_ioctl_wait_events_args args = { .num_events = 1 };

	CHECK(wait_for(rig, process, ids, 2, false, EVER, &result) == -EINVAL);
	CHECK(result == KFD_IOC_WAIT_RESULT_FAIL);
	CHECK(RIG_CALL(rig, process, WAIT_EVENTS, &args) == -EFAULT);
	CHECK(args.wait_result == KFD_IOC_WAIT_RESULT_FAIL);
	args.num_events = UINT32_MAX;
	CHECK(RIG_CALL(rig, process, WAIT_EVENTS, &args) == -ENOMEM);
}

TEST_WITH(waits_of_ended_processes_are_dropped, struct sim_rig *rig)
{
	struct sim_process *process = start(rig), *other = rig_open(rig, 2);
	uint32_t id = make_signal(rig, process, false), result;

	CHECK(make_signal(rig, other, false) == id);
	CHECK(wait_for(rig, process, &id, 1, false, 5, &result) == -EINPROGRESS);
	CHECK(wait_for(rig, other, &id, 1, false, EVER, &result) == -EINPROGRESS);
	sim_raise(rig_open(rig, 3), id);
	CHECK(make_signal(rig, rig_open(rig, 3), false) == id);
	CHECK(set(rig, rig_open(rig, 3), id) == 0 && rig->n_answers == 0); /* a third's */
	sim_exit(rig->sim, 1, rig->now);
	CHECK(sim_work(rig->sim, rig->now + 9 * MSEC) == UINT64_MAX && rig->n_answers == 0);
	CHECK(set(rig, other, id) == 0 && rig->n_answers == 1);
}

TEST_WITH(gpu_reset_wakes_waiting_processes_and_gpu_removal_does_not, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t id = make(rig, process, KFD_IOC_EVENT_HW_EXCEPTION, true), result;
	const struct kfd_event_data *data = rig_at(rig, RIG_MEMORY);
	uint32_t gpu_id = rig_id(rig, 0);

	CHECK(wait_for(rig, process, &id, 1, false, EVER, &result) == -EINPROGRESS);
	CHECK(rig_fault(rig, "reset:0000:03:00.0") == 0);
	CHECK(rig->n_answers == 1 && rig->answers[0].result == 0);
	CHECK(data->hw_exception_data.gpu_id == gpu_id);
	CHECK(data->hw_exception_data.memory_lost == 1);
	CHECK(wait_for(rig, process, &id, 1, false, EVER, &result) == -EINPROGRESS);
	CHECK(rig_fault(rig, "gone:0000:03:00.0") == 0 && rig->n_answers == 1);
}
