/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define GFX10 100000U

/* pqm_update_mqd(): from GC 10 on, CUs come in pairs. */
static bool half_pairs(const uint32_t *mask, unsigned words)
{
	for (unsigned i = 0; i < words; i++)
		if ((mask[i] & 0x55555555U) != (mask[i] >> 1 & 0x55555555U))
			return true;
	return false;
}

/* Among the bits of the CUs that work. */
static void rotate(const struct sim_gpu *gpu, uint32_t *mask, unsigned words, unsigned by)
{
	unsigned n = min_u(geometry_cus(&gpu->info.geometry), words * 32);
	uint32_t rotated[SIM_MASK_WORDS] = { 0 };

	for (unsigned bit = 0; bit < n; bit++)
		if (mask[bit / 32] >> bit % 32 & 1)
			rotated[(bit + by) % n / 32] |= UINT32_C(1) << (bit + by) % n % 32;
	memcpy(mask, rotated, words * sizeof(mask[0]));
}

/* The bit array is read before the queue is looked for: a bad address and an unknown queue are
 * both -EFAULT. Bits past the 1024th are left out without a word. */
int ioctl_set_cu_mask(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_set_cu_mask_args *args = argument;
	uint32_t mask[SIM_MASK_WORDS] = { 0 };
	unsigned words = args->num_cu_mask / 32;
	struct sim_queue *queue;
	int r;

	if (args->num_cu_mask % 32 != 0 || words == 0)
		return -EINVAL;
	if (words > SIM_MASK_WORDS)
		words = SIM_MASK_WORDS;
	if (sim_copy_from(call, args->cu_mask_ptr, mask, words * sizeof(mask[0])) < 0)
		return -EFAULT;
	queue = sim_find_queue(call->process, args->queue_id);
	if (!queue)
		return -EFAULT;
	if (queue->gpu->info.gfx_target >= GFX10 && half_pairs(mask, words))
		return -EINVAL;
	if (queue->reset)
		return -EACCES;

	if (queue->type == SIM_COMPUTE) { /* others have no CUs, and are preempted nevertheless */
		if (call->sim->shift > 0)
			rotate(queue->gpu, mask, words, call->sim->shift);
		memcpy(queue->mask, mask, sizeof(mask));
		queue->mask_bits = words * 32;
		queue->mask_changes++;
		sim_mask_map(queue);
	}
	r = sim_queue_changed(queue, sim_queue_wanted(queue), call->now_ns);
	sim_record_change(queue);
	return r;
}

int ioctl_alloc_queue_gws(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_alloc_queue_gws_args *args = argument;
	struct sim_queue *queue = sim_find_queue(call->process, args->queue_id);
	struct sim_queue *holder;

	if (!queue)
		return -EINVAL;
	if (queue->reset)
		return -EACCES;
	holder = sim_find_gws(call->process, queue->gpu);
	if (args->num_gws > 0 && holder)
		return -EBUSY;
	if (args->num_gws == 0 && holder != queue)
		return -EINVAL;
	queue->gws = args->num_gws > 0;
	args->first_gws = 0;
	return sim_queue_changed(queue, sim_queue_wanted(queue), call->now_ns);
}

/* Of a compute queue that is not in the run list. No wave ever ran here: nothing is saved. */
int ioctl_get_queue_wave_state(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_get_queue_wave_state_args *args = argument;
	const struct sim_queue *queue = sim_find_queue(call->process, args->queue_id);

	if (!queue)
		return -EFAULT;
	if (queue->type != SIM_COMPUTE || queue->active)
		return -EINVAL;
	args->ctl_stack_used_size = 0;
	args->save_area_used_size = 0;
	return 0;
}
