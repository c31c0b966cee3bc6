/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The queue slots of a GPU, from ReadSlots. */

#include <errno.h>

#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

static const struct dictionary slot_dictionary =
	DICTIONARY(gpuarb_queue_slot,
		   MEMBERS(gpuarb_queue_slot, xcc, pipe, queue, active, vmid, priority, doorbell,
			   pid, lease, command),
		   FIELD('u', "engine", gpuarb_queue_slot, pipe));

static const struct dictionary slots_dictionary =
	DICTIONARY(gpuarb_slots, MEMBERS(gpuarb_slots, usec, queues, without_slot),
		   ROWS('R', "sdma", &slot_dictionary, gpuarb_slots, sdma, n_sdma));

const struct argument slots_arguments[SLOTS_ARGUMENTS] = {
	ARGUMENT_ROWS(&slot_dictionary, gpuarb_slots, rows, n),
	{ .dictionary = &slots_dictionary },
};

GPUARB_EXPORT int gpuarb_read_slots(struct gpuarb *gpuarb, const char *gpu,
				    struct gpuarb_slots **ret)
{
	void *slots;
	int r;

	HANDLE_BEGIN(gpuarb && gpu && ret, gpuarb);
	if (!dbus_validate_utf8(gpu, NULL))
		return handle_end(gpuarb, fail(gpuarb, -EINVAL, "gpu is not UTF-8"));
	r = call_read(gpuarb, "ReadSlots", DBUS_TYPE_STRING, &gpu, slots_arguments, SLOTS_ARGUMENTS,
		      sizeof(**ret), &slots);
	if (r >= 0)
		*ret = slots;
	return handle_end(gpuarb, r);
}

GPUARB_EXPORT void gpuarb_slots_free(struct gpuarb_slots *slots)
{
	arena_object_free(slots);
}

GPUARB_EXPORT const struct gpuarb_queue_slot *gpuarb_slots_get(const struct gpuarb_slots *slots,
							       size_t i)
{
	return slots && i < slots->n ? &slots->rows[i] : NULL;
}

GPUARB_EXPORT const struct gpuarb_queue_slot *gpuarb_slots_sdma(const struct gpuarb_slots *slots,
								size_t i)
{
	return slots && i < slots->n_sdma ? &slots->sdma[i] : NULL;
}

GPUARB_EXPORT uint64_t gpuarb_slots_usec(const struct gpuarb_slots *slots)
{
	return slots ? slots->usec : 0;
}

GPUARB_EXPORT unsigned gpuarb_slots_queues(const struct gpuarb_slots *slots, unsigned *ret_without)
{
	if (ret_without)
		*ret_without = slots ? slots->without_slot : 0;
	return slots ? slots->queues : 0;
}
